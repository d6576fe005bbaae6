"""Write the gallery: the models that come with the package, and a row for each model and data set in ``results/``.

If there are several runs of a model, those with the most updates count, and the one of median InfoM is shown: the best
one would promise too much. Pictures of a run are copied, its heatmap is drawn from the matrix in ``results.json``.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from generated_pages import register, write_page
from run_pictures import PICTURES, TITLES, beside_heatmap, copy_pictures, draw_heatmap, find_pictures, is_older

from qlae.explorer import open_run
from qlae.presets import MODELS
from qlae.report.image_pictures import plot_interventions
from qlae.runs.directory import shipped_folder, shipped_models
from qlae.scoring.latent_labels import LatentLabels

OTHER_SETTINGS = ("recipe", "leaderboard-small")  # folders of runs whose hyperparameters are not the paper's
VARIANTS = {  # labels of results/known-sources that are not names of models
    "qlae-10": "qlae, 10 values",
    "beta-tcvae-10": "beta-tcvae, β = 10",
}
OPENING = """# Gallery

Pictures that show what the latents of each model mean. Click on a picture to enlarge it.

- **Heatmaps** show what each latent (row) is informative about. A modular model has one dark cell per row.
- **Interventions** change one latent per column and keep the others. A good column changes one thing.

All data are rendered or generated. If there are several runs of a model, those with the most updates count, and the one
of **median** InfoM is shown. [Results](../../results.md) has all runs, their commands and a discussion.

## Models that come with the package

Small networks at 32×32 pixels, each trained in minutes on a CPU. `qlae explore NAME` opens them on your machine, and
`qlae.load(NAME)` loads them.

"""


def find_runs(results: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return scored runs by data set and model, sorted by InfoM; only those with the most updates."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for file in sorted(results.rglob("results.json")):
        top = file.relative_to(results).parts[0]
        if not (file.parent / "config.json").is_file() or top in OTHER_SETTINGS:
            continue
        scores, config = json.loads(file.read_text()), json.loads((file.parent / "config.json").read_text())
        if "nmi" in scores.get("averaged", {}):
            model = file.parts[-3] if file.parts[-3] in VARIANTS else config["model"]
            runs.setdefault((config["data"]["name"], model), []).append({"folder": file.parent, "scores": scores})
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
    for name in sorted(shipped_models(), key=lambda name: list(TITLES).index(name.partition("-")[0])):
        lines += _shipped_row(name, pictures)
    for data, title in TITLES.items():
        models = sorted((model for other, model in runs if other == data), key=_rank)
        shown = {model: runs[data, model] for model in models}
        pictured = [model for model in models if _pictures_of(data, model, _median(shown[model]), results)]
        lines += [f"## {title}", ""] if models else []
        for model in pictured:
            lines += _row(data, model, shown[model], pictures, results)
        rest = [model for model in models if model not in pictured]
        lines += [f"### Heatmaps of other models on {title}", ""] if rest and pictured else []
        lines += _cards(data, rest, shown, pictures) if rest else []
        together = results / "study" / "report" / f"interventions-{data}.png"
        if together.is_file():
            lines += _beside_each_other(data, together, pictures)
    write_page(folder / "gallery.md", "\n".join(lines))


def _rank(model: str) -> tuple[int, str]:
    """Return where a model stands among others: QLAE first, then in the order of the presets."""
    base = model.removesuffix("-10")
    return (-1 if base == "qlae" else list(MODELS).index(base), model)


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return runs[(len(runs) - 1) // 2]


def _shipped_row(name: str, pictures: Path) -> list[str]:
    folder = shipped_folder() / name
    results = json.loads((folder / "results.json").read_text())
    heatmap, interventions = f"shipped-{name}-nmi.png", f"shipped-{name}-interventions.png"
    _draw_heatmap(results, folder, pictures / heatmap)
    if is_older(pictures / interventions, folder / "model.safetensors"):
        _draw_interventions(name, results, pictures / interventions)
    shown = [(interventions, PICTURES["interventions"], name)]
    return [
        f"### {name}",
        "",
        f'{_scores_of(results)}. <a href="../../explorer/{name}/index.html">Open it in the explorer</a>.',
        "",
        *beside_heatmap(pictures, heatmap, f"NMI of latents and sources of {name}", shown),
    ]


def _draw_interventions(name: str, results: dict[str, Any], path: Path) -> None:
    """Draw two samples with each latent set to each of its values."""
    exploration = open_run(name, show=False)
    rows = np.random.default_rng(0).choice(len(exploration), 2, replace=False)
    count, values = exploration.codes.shape[1], 1 + int(exploration.codes.max())
    codes = np.repeat(exploration.codes[rows][:, None, None], values, 1).repeat(count, 2)  # (2, values, n, n)
    for latent in range(count):
        codes[:, :, latent, latent] = np.arange(values)
    images = exploration.decode(codes.reshape(-1, count)).reshape(2, values, count, 32, 32, 3)
    figure = plot_interventions(images, LatentLabels.from_results(results, count), name)
    figure.savefig(path, dpi=110)


def _row(data: str, model: str, runs: list[dict[str, Any]], pictures: Path, results: Path) -> list[str]:
    run = _median(runs)
    name = f"{data}-{model}"
    _draw_heatmap(run["scores"], run["folder"], pictures / f"{name}-nmi.png")
    right = copy_pictures(_pictures_of(data, model, run, results), pictures, name, f"{model} on {TITLES[data]}")
    return [
        f"### {model} on {TITLES[data]}",
        "",
        f"{_scores_of(run['scores'])}; {_which(runs)}.",
        "",
        *beside_heatmap(pictures, f"{name}-nmi.png", f"NMI of latents and sources, {model} on {TITLES[data]}", right),
    ]


def _cards(data: str, models: list[str], runs: dict[str, list[dict[str, Any]]], pictures: Path) -> list[str]:
    lines = ["::::{grid} 1 2 3 3", ":gutter: 2", ""]
    for model in models:
        run = _median(runs[model])
        name = f"{data}-{model}-nmi.png"
        _draw_heatmap(run["scores"], run["folder"], pictures / name)
        lines += [
            f":::{{grid-item-card}} {VARIANTS.get(model, model)}",
            f"{_scores_of(run['scores'])}; {_which(runs[model])}.",
            "",
            f"![NMI of latents and sources, {model} on {TITLES[data]}](gallery/{name})",
            ":::",
        ]
    return [*lines, "::::", ""]


def _beside_each_other(data: str, source: Path, pictures: Path) -> list[str]:
    name = f"{data}-study.png"
    shutil.copyfile(source, pictures / name)
    return [
        f"### QLAE and VQ-VAE on {TITLES[data]}",
        "",
        "After 30,000 updates, three samples each, one latent per column.",
        "",
        f"![Interventions and heatmaps of QLAE and VQ-VAE on {TITLES[data]}](gallery/{name})",
        "",
    ]


def _pictures_of(data: str, model: str, run: dict[str, Any], results: Path) -> dict[str, Path]:
    """Return the pictures that were kept of a run, by kind; those of short GAN runs are in a separate folder."""
    return find_pictures([run["folder"], results / "gans" / "pictures"], f"{data}-{model}")


def _scores_of(results: dict[str, Any]) -> str:
    scores = results["averaged"]
    fidelity = f"PSNR {scores['psnr']:.1f} dB" if "psnr" in scores else f"R² {scores['r2']:.3f}"
    parts = [
        f"{title} {scores[name]:.2f}" for name, title in (("infom", "InfoM"), ("infoe", "InfoE"), ("infoc", "InfoC"))
    ]
    return f"{', '.join(parts)}, {fidelity}; {results['steps']:,} updates, seed {results['seed']}"


def _which(runs: list[dict[str, Any]]) -> str:
    names = {1: "the only run", 2: "the lower of two runs"}
    return names.get(len(runs), f"the median of {len(runs)} runs")


def _draw_heatmap(results: dict[str, Any], folder: Path, path: Path) -> None:
    draw_heatmap(folder, results["averaged"], results["data"]["source_names"], path)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    return register(app, lambda folder, root: write_gallery(folder, root / "results"))
