"""Write the explorer's page of every model that comes with the package, for the site to embed.

The pages need no server. They are written to ``build/site-extra/explorer/NAME``, which Sphinx copies to the site, and
only if the model, the explorer or this file has changed. In a frame they leave out what the page around them says, so
that a phone shows latents without scrolling.
"""

import hashlib
from pathlib import Path
from typing import Any

from qlae.explorer import open_run, save_page
from qlae.runs.directory import shipped_models

NUM_SAMPLES = 6  # about 0.6 MB for a small model; the page has to appear at once
EMBEDDED = """<script>if (window !== window.top) document.documentElement.classList.add("embedded");</script>
    <style>
      .embedded #notice { display: none; }
      @media (max-width: 60rem) {
        .embedded :is(#facts, #scores) { display: none; }
        .embedded :is(.stage-text, .stage .bar, #heatmap-card) { order: 1; }
        .embedded .pictures:not(.chart) figure { flex-basis: calc(24vh * var(--ratio, 1)); }
      }
    </style>
  </head>"""


def write_pages(target: Path, package: Path) -> None:
    """Write the page of each shipped model below a folder."""
    for name in shipped_models():
        folder, stamp = target / "explorer" / name, target / f"{name}.stamp"
        digest = hash_files(
            [
                Path(__file__),
                *sorted((package / "shipped" / name).iterdir()),
                *sorted((package / "explorer").rglob("*.*")),
            ]
        )
        if stamp.is_file() and stamp.read_text() == digest and (folder / "index.html").is_file():
            continue
        save_page(open_run(name, show=False), folder, num_samples=NUM_SAMPLES, show=False)
        page = folder / "index.html"
        page.write_text(page.read_text().replace("</head>", EMBEDDED, 1))
        stamp.write_text(digest)


def hash_files(paths: list[Path]) -> str:
    """Return a hash of the content of files."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.hexdigest()


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""

    def write(app: Any, config: Any) -> None:
        target = Path(config.html_extra_path[0])
        target.mkdir(parents=True, exist_ok=True)
        write_pages(target, Path(app.confdir).parent / "src" / "qlae")

    app.connect("config-inited", write)
    return {"parallel_read_safe": True}
