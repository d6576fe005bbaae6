"""Copy the committed part of a study into ``results``, for maintainers.

    python tools/keep_runs.py runs/leaderboard-small results/leaderboard-small
    python tools/keep_runs.py runs/leaderboard results/leaderboard --samples

Of each finished run these are its config and its results, and with ``--samples`` the sample that it was scored
on. The run of median InfoM of each model and data set also gets a picture of interventions, a smaller one than `qlae
report` draws: one image, a few steps and 256 colours. Runs that are there already are left as they are, so a study can
be kept in parts, from several machines.
"""

import argparse
import io
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from qlae._io import write_whole
from qlae.report.image_pictures import plot_interventions
from qlae.runs.directory import Run
from qlae.scoring.latent_labels import LatentLabels
from qlae.study.folder import StudyFolder
from qlae.study.report.summary import summarise

FILES = ("config.json", "results.json")
SAMPLE = "sample.npz"
PICTURE = "interventions.png"
NUM_STEPS = 5  # rows of the picture, at most


def keep(study: Path, out: Path, *, samples: bool) -> None:
    """Copy the finished runs of a study that are not in ``out`` yet, and draw the median ones."""
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(study / "study.json", out / "study.json")
    summary = summarise(StudyFolder.open(study))
    for (data, model), runs in summary.groups.items():
        median = summary.median_run(data, model)
        for run in map(summary.run, runs.run):
            folder = out / run.path.relative_to(study)
            folder.mkdir(parents=True, exist_ok=True)
            for name in (*FILES, *([SAMPLE] if samples else [])):
                if (run.path / name).is_file() and not (folder / name).exists():
                    shutil.copyfile(run.path / name, folder / name)
            if run.path == median.path:
                draw_interventions(run, f"{model} on {data}", folder / PICTURE)
            else:
                (folder / PICTURE).unlink(missing_ok=True)  # of a run that was the median before


def draw_interventions(run: Run, title: str, path: Path) -> None:
    """Draw a few steps through each latent's range from one image."""
    blocks = run.arrays(run.pictures_path, ("interventions",))["interventions"]
    num_steps, num_latents = blocks.shape[1:3]
    rows = np.linspace(0, num_steps - 1, min(num_steps, NUM_STEPS)).round().astype(int)
    figure = plot_interventions(blocks[:1, rows], LatentLabels.from_results(run.results, num_latents), title)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    picture = Image.open(buffer).convert("RGB").quantize(256, kmeans=2, dither=Image.Dither.NONE)
    write_whole(path, lambda file: picture.save(file, format="PNG", optimize=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder of the study")
    parser.add_argument("out", type=Path, help="folder in results/")
    parser.add_argument("--samples", action="store_true", help="also copy sample.npz")
    arguments = parser.parse_args()
    keep(arguments.study, arguments.out, samples=arguments.samples)


if __name__ == "__main__":
    main()
