"""The files of the page: plain HTML, CSS and JavaScript, the scripts in loading order."""

from html import escape
from importlib.resources import files

STYLE = "style.css"
ICON = "icon.svg"
SCRIPTS = (
    *("backend.js", "state.js", "elements.js", "pixels.js", "charts.js", "number-view.js"),
    *("image-view.js", "vector-view.js", "table-view.js", "series-view.js"),
    *("slider.js", "latents.js", "stage.js", "samples.js", "upload.js", "heatmap.js", "mix.js"),
    *("conditions.js", "search.js", "naming.js", "address.js", "companion.js", "app.js"),
)
PAIR_SCRIPT = "pair.js"
PAIR_STYLE = "pair.css"


def pair_html(first: str, second: str) -> str:
    """Return ``pair.html``, the page of two runs side by side, with their names."""
    text = (files(__package__) / "pair.html").read_text(encoding="utf-8")
    return text.replace("<!-- first -->", escape(first)).replace("<!-- second -->", escape(second))


def page_html(*extra_scripts: str) -> str:
    """Return ``index.html`` with tags for its scripts, preceded by ``extra_scripts``."""
    tags = "\n".join(f'    <script defer src="{name}"></script>' for name in (*extra_scripts, *SCRIPTS))
    return (files(__package__) / "index.html").read_text(encoding="utf-8").replace("    <!-- scripts -->", tags)
