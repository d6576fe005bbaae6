"""The site: ``make docs`` builds it into ``build/site``."""

import os
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs" / "_extensions")]

# Tutorials run in processes that inherit this: one thread that sleeps while it waits, so that they take their time and
# no more also while the machine does other work.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.update(COLUMNS="84", JUPYTER_COLUMNS="84")  # tables in their output are as wide as a page
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

from jupyter_cache.executors import utils  # noqa: E402

from qlae import __version__  # noqa: E402

# Commands write in chunks, each of which would start a new line.
utils.executenb = partial(utils.executenb, coalesce_streams=True)

project = "qlae"
author = "The qlae authors"
copyright = "The qlae authors"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "explorer_pages",
    "gallery",
    "leaderboard",
    "reference",
    "repository_links",
    "shipped_table",
]
exclude_patterns = ["metrics/*.json"]
html_extra_path = [str(ROOT / "build" / "site-extra")]  # written by explorer_pages
html_theme = "furo"
html_title = "qlae"
html_favicon = str(ROOT / "src" / "qlae" / "explorer" / "page" / "icon.svg")
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_theme_options = {"navigation_with_keys": True}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "site-cache")
nb_execution_timeout = 1200  # per cell; a busy machine takes ten times as long as an idle one
nb_execution_in_temp = True  # tutorials write runs and pictures
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # with tables

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
