"""Write the table of the models that come with the package: their scores, their training and how to open them."""

from pathlib import Path
from typing import Any

from generated_pages import register, write_page
from run_pictures import TITLES

import qlae
from qlae.metrics import find_score
from qlae.paper_tables import published_results
from qlae.runs.directory import Run, find_folder, shipped_models

SCORES = ("infom", "infoe", "infoc", "psnr")
OPENING = """# Shipped models

These trained models come with the package. Their names stand for their folders:

```bash
qlae explore {example}
qlae encode {example} --data pictures/ --out codes.csv
```

```python
model = qlae.load("{example}")
```

## Scores

Scores are those of the averaged weights on 10,000 samples, protocol `paper`; InfoE reads codes as one-hot vectors, and
PSNR is in dB. The published InfoM of the same model is that of full-size networks on the published images at 64×64, and
the models here are small and saw rendered images, so the two columns do not measure the same thing.

"""
MAKING = """
## Their training

Weights are stored in half precision; the file is `model.safetensors`. The best of several runs scores higher than a run
does on average: [Recipes](../../recipe.md#longer-runs-of-small-networks) lists the runs that those on Falcor3D, Isaac3D
and MPI3D were chosen from.

"""


def write_table(folder: Path) -> None:
    """Write ``shipped.md`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {name: describe_model(name) for name in shipped_models()}
    heads = ("model", "data", *(find_score(key).title for key in SCORES), "published InfoM", "open it")
    scores = [
        (f"`{name}`", row["data"], *row["scores"], row["published"], f"`qlae explore {name}`")
        for name, row in rows.items()
    ]
    keys = ("networks", "images", "latents", "updates", "parameters", "file", "how it was made")
    making = [(f"`{name}`", *(row[key] for key in keys)) for name, row in rows.items()]
    text = OPENING.format(example="shapes3d-qlae") + _table(heads, scores) + MAKING + _table(("model", *keys), making)
    write_page(folder / "shipped.md", text)


def describe_model(name: str) -> dict[str, Any]:
    """Return the cells of a model, as text."""
    run = Run(find_folder(name))
    config, scores = run.config, run.results["averaged"]
    published = published_results().get((config.data.name, config.model, "infom"))
    values = config.latent.num_values
    return {
        "data": f"{TITLES[config.data.name]}, {config.data.origin}",
        "scores": [find_score(key).format(scores[key]) for key in SCORES],
        "published": f"{published.mean:.2f}" if published else "–",
        "networks": config.networks.size,
        "images": f"{config.data.resolution}×{config.data.resolution}",
        "latents": f"{config.latent.num_latents} of {values} values",
        "updates": f"{config.training.steps:,}",
        "parameters": f"{sum(parameter.numel() for parameter in qlae.load(name).parameters()):,}",
        "file": f"{(run.path / 'model.safetensors').stat().st_size / 2**10:.0f} KiB",
        "how it was made": shipped_models()[name]["about"],
    }


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    return register(app, lambda folder, root: write_table(folder))
