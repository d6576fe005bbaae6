"""Write the gallery from the runs in ``results/``: a row of pictures for each model and data set.

If there are several runs of a model, those with the most updates count, and the one of median InfoM is shown: the best
one would promise too much. Pictures of a run are copied, its heatmap is drawn from the matrix in ``results.json``.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from qlae.metrics.heatmap import nmi_figure
from qlae.presets import MODELS

TITLES = {"shapes3d": "Shapes3D", "mpi3d": "MPI3D", "falcor3d": "Falcor3D", "isaac3d": "Isaac3D"}
PICTURES = {  # the first that a run has is shown
    "interventions": "One latent changes in each column.",
    "generated": "Generated images.",
    "reconstructions": "Originals and reconstructions.",
}
OTHER_SETTINGS = ("recipe",)  # folders of runs whose hyperparameters are not the paper's
OPENING = """# Gallery

Every model and data set of which a run is in `results/`. On the left, what each latent (row) is informative about; a
modular model has one dark cell per row. On the right, pictures of the run if they were kept.

All data are rendered. If there are several runs, those with the most updates count, and the one of **median** InfoM is
shown. [Results](../../results.md) has all runs, their commands and what to make of them.
"""


def find_runs(results: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return scored runs by data set and model, sorted by InfoM; only those with the most updates."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for file in sorted(results.rglob("results.json")):
        if not (file.parent / "config.json").is_file() or file.relative_to(results).parts[0] in OTHER_SETTINGS:
            continue
        scores, config = json.loads(file.read_text()), json.loads((file.parent / "config.json").read_text())
        if "nmi" in scores.get("averaged", {}):
            key = (config["data"]["name"], config["model"])
            runs.setdefault(key, []).append({"folder": file.parent, "scores": scores, "config": config})
    for key, found in runs.items():
        longest = max(run["scores"]["steps"] for run in found)
        found = [run for run in found if run["scores"]["steps"] == longest]
        runs[key] = sorted(found, key=lambda run: run["scores"]["averaged"]["infom"])
    return runs


def write_gallery(folder: Path, results: Path) -> None:
    """Write ``gallery.md`` and its pictures into a folder."""
    pictures = folder / "gallery"
    pictures.mkdir(parents=True, exist_ok=True)
    runs = find_runs(results)
    lines = [OPENING]
    for data, title in TITLES.items():
        models = sorted((model for model in MODELS if (data, model) in runs), key=lambda model: model != "qlae")
        if models:
            lines += [f"## {title}", ""]
        for model in models:
            lines += _row(data, model, runs[data, model], pictures, results)
    write_page(folder / "gallery.md", "\n".join(lines))


def write_page(path: Path, text: str) -> None:
    """Write a page if it changed, so that Sphinx reads only what is new."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def _row(data: str, model: str, runs: list[dict[str, Any]], pictures: Path, results: Path) -> list[str]:
    run = runs[(len(runs) - 1) // 2]
    scores = run["scores"]["averaged"]
    which = (
        ["the only run", "the lower of two runs"][len(runs) - 1] if len(runs) < 3 else f"the median of {len(runs)} runs"
    )
    name = f"{data}-{model}"
    draw_heatmap(run["folder"], scores, run["config"]["data"]["source_names"], pictures / f"{name}-nmi.png")
    lines = [
        f"### {model} on {TITLES[data]}",
        "",
        f"InfoM {scores['infom']:.2f}, InfoE {scores['infoe']:.2f}, InfoC {scores['infoc']:.2f}, PSNR "
        f"{scores['psnr']:.1f} dB; {run['scores']['steps']:,} updates, seed {run['scores']['seed']}, {which}.",
        "",
        "::::{grid} 1 1 12 12",
        ":::{grid-item}",
        ":columns: 12 12 4 4",
        f"![NMI of latents and sources, {model} on {TITLES[data]}](gallery/{name}-nmi.png)",
        ":::",
        ":::{grid-item}",
        ":columns: 12 12 8 8",
    ]
    # pictures of short GAN runs lie in a folder of their own
    lines += copy_pictures([run["folder"], results / "gans" / "pictures"], pictures, name, f"{model} on {TITLES[data]}")
    return [*lines, ":::", "::::", ""]


def copy_pictures(folders: list[Path], pictures: Path, name: str, title: str) -> list[str]:
    """Copy the most telling picture of a run, and return the lines that show it.

    Args:
        folders: where it may be, as ``KIND.png`` or ``NAME-KIND.png``.
        pictures: the folder of the page's pictures.
        name: how the copies begin.
        title: what is shown.
    """
    for kind, about in PICTURES.items():
        files = [folder / file for folder in folders for file in (f"{kind}.png", f"{name}-{kind}.png")]
        source = next((file for file in files if file.is_file()), None)
        if source is not None:
            shutil.copyfile(source, pictures / f"{name}-{kind}.png")
            return [f"![{about} {title}]({pictures.name}/{name}-{kind}.png)", f"*{about}*", ""]
    return []


def draw_heatmap(run: Path, scores: dict[str, Any], source_names: list[str], path: Path) -> None:
    """Draw the NMI matrix of a run's scores, unless the picture is newer than the scores."""
    if path.is_file() and path.stat().st_mtime >= (run / "results.json").stat().st_mtime:
        return
    nmi = np.array(scores["nmi"], float)
    count = nmi.shape[1]
    active, informative = (_mask(scores.get(key), count) for key in ("active_latents", "informative_latents"))
    nmi_figure(nmi, active=active, informative=informative, source_names=source_names).savefig(path, dpi=80)


def _mask(latents: Any, count: int) -> Any:
    """Return (n_z,) booleans from a list of booleans or of indices, or all true if there is none."""
    if latents is None:
        return np.ones(count, bool)
    values = np.array(latents)
    return values if values.dtype == bool else np.isin(np.arange(count), values)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    root = Path(app.confdir).parent
    app.connect(
        "builder-inited",
        lambda app: write_gallery(Path(app.srcdir) / "reference" / "generated", root / "results"),
    )
    return {"parallel_read_safe": True}
