"""Copy the committed part of a study into ``results``, for maintainers.

    python tools/keep_runs.py runs/leaderboard-small results/leaderboard-small
    python tools/keep_runs.py runs/leaderboard results/leaderboard --samples
    python tools/keep_runs.py runs/paper-small results/paper-small --replace

Of each finished run these are its config and its results, and with ``--samples`` the sample that it was scored
on. The run of median InfoM of each model and data set also gets a picture of interventions, a smaller one than `qlae
report` draws: one image, a few steps and 256 colours. ``runs.csv`` has one row for each run that is kept, with the
device and the precision that it was trained with.

Runs that are there already are left as they are, so a study can be kept in parts, from several machines. With
``--replace``, the runs of the study take the place of runs of the same name, and all other runs stay. The plan that is
there stays as well, so runs that lack a metric of the study's plan still count in its tables.
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
from qlae.study.folder import StudyFolder, collect
from qlae.study.report.figures import decoded_pictures
from qlae.study.report.summary import summarise

FILES = ("config.json", "results.json")
SAMPLE = "sample.npz"
PICTURE = "interventions.png"
NUM_STEPS = 5  # rows of the picture, at most
#: Columns of ``runs.csv``, named as in the published tables where these have them. Scores of the other weights follow
#: those of the weights that the plan names.
RUN_COLUMNS = ("data", "model", "seed", "stage", "hyperparameter", "value", "counts", "device", "precision", "weights")
SCORE_COLUMNS = ("infom", "infoe", "infoc", "d", "i", "c", "psnr", "active", "informative", "infoe_scalar")
SCORE_COLUMNS += ("infom_corrected", "infoe_corrected", "infoc_corrected", "infoe_input")
OTHER_COLUMNS = ("infom", "infoe", "infoc", "d", "i", "c", "psnr")


def keep(study: Path, out: Path, *, samples: bool = False, replace: bool = False) -> None:
    """Copy the finished runs of a study to ``out``, draw the median ones, and write ``runs.csv``.

    Args:
        study: the folder of the study.
        out: where to; runs that it holds are left as they are.
        samples: whether to copy samples.
        replace: whether to replace runs that ``out`` holds, and to leave its plan as it is.
    """
    out.mkdir(parents=True, exist_ok=True)
    if not (replace and (out / "study.json").is_file()):
        shutil.copyfile(study / "study.json", out / "study.json")
    summary = summarise(StudyFolder.open(study))
    for (data, model), runs in summary.groups.items():
        median = summary.median_run(data, model)
        for run in map(summary.run, runs.run):
            folder = out / run.path.relative_to(study)
            folder.mkdir(parents=True, exist_ok=True)
            for name in (*FILES, *([SAMPLE] if samples else [])):
                if (run.path / name).is_file() and (replace or not (folder / name).exists()):
                    shutil.copyfile(run.path / name, folder / name)
            if run.path == median.path:
                draw_interventions(run, f"{model} on {data}", folder / PICTURE, summary.weights)
            else:
                (folder / PICTURE).unlink(missing_ok=True)  # of a run that was the median before
    write_table(out)


def write_table(out: Path) -> None:
    """Write ``runs.csv``, one row for each finished run in a folder."""
    runs = collect(out)
    runs = runs[runs.state == "done"].rename(columns={"training.precision": "precision"})
    other = "averaged" if runs.weights.iloc[0] == "raw" else "raw"
    columns = [*RUN_COLUMNS, "steps", *SCORE_COLUMNS, *(f"{other}_{key}" for key in OTHER_COLUMNS), "run"]
    table = runs[[name for name in columns if name in runs]].round(4)
    text = table.to_csv(index=False, lineterminator="\n")
    write_whole(out / "runs.csv", lambda file: file.write(text.encode()))


def draw_interventions(run: Run, title: str, path: Path, weights: str) -> None:
    """Draw a few steps through each latent's range from one image."""
    arrays, weights = decoded_pictures(run, weights)
    blocks = arrays["interventions"]
    num_steps, num_latents = blocks.shape[1:3]
    rows = np.linspace(0, num_steps - 1, min(num_steps, NUM_STEPS)).round().astype(int)
    figure = plot_interventions(blocks[:1, rows], LatentLabels.from_results(run.results, num_latents, weights), title)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    picture = Image.open(buffer).convert("RGB").quantize(256, kmeans=2, dither=Image.Dither.NONE)
    write_whole(path, lambda file: picture.save(file, format="PNG", optimize=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder of the study")
    parser.add_argument("out", type=Path, help="folder in results/")
    parser.add_argument("--samples", action="store_true", help="also copy sample.npz")
    parser.add_argument("--replace", action="store_true", help="replace runs of the same name in out, keep its plan")
    arguments = parser.parse_args()
    keep(arguments.study, arguments.out, samples=arguments.samples, replace=arguments.replace)


if __name__ == "__main__":
    main()
