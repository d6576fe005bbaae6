"""Measure how well agreement between runs finds disentangled ones: its rank correlation with InfoM, and what is chosen.

    python benchmarks/selection.py train runs/selection                  # small runs, about a minute each on one core
    python benchmarks/selection.py measure runs/selection --out results/selection

`train` trains four models with five seeds on Shapes3D and Isaac3D and skips runs that are finished. `measure` compares
the runs of each set with each other, and the committed full-length runs on Shapes3D, which have samples. It writes
``selection.json`` and ``selection.png``.

Variants of the score are compared on Shapes3D, where the one that `qlae select` uses was chosen. Isaac3D was kept back
for the report: nothing was chosen on it.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from qlae.selection.agreement import FORMS
from qlae.selection.ranking import FORM, agreement_matrix, scores_of
from qlae.selection.reading import common_representations, find_runs, read_candidates

REPOSITORY = Path(__file__).parents[1]
MODELS = ("qlae", "beta-tcvae", "ae", "vq-vae")
DATA = ("shapes3d", "isaac3d")
SEEDS = (10, 11, 12, 13, 14)
STEPS = 3_000
FULL_LENGTH = ("results/paper-length", "results/paper-length-no-weight-decay")
AVERAGES = {"median": np.nanmedian, "mean": np.nanmean, "upper quartile": lambda m, axis: np.nanquantile(m, 0.75, axis)}
SUBSETS, NUM_SUBSETS = (3, 4, 6, 8, 12), 1_000


def train_all(folder: Path) -> None:
    """Train the runs that are not finished, seed by seed."""
    import qlae

    for seed, model, data in itertools.product(SEEDS, MODELS, DATA):
        out = folder / f"{data}-{model}-{seed}"
        if not (out / "results.json").is_file():
            images = qlae.load_data(data, resolution=32)
            qlae.train(model, images, out=out, size="small", steps=STEPS, seed=seed, threads=1)


def measure_group(paths: list[Path], *, gaps: bool) -> dict:
    """Compare runs with each other: matrices of agreement, and what each variant of the score would choose."""
    candidates, skipped = read_candidates(find_runs(paths), weights="averaged")
    for skip in skipped:
        print(f"skipped {skip.path}: {skip.reason}")
    representations = common_representations(candidates, weights="averaged", data=None, device="cpu", show=True)
    matrices = {form: agreement_matrix(representations, form=form, show=True) for form in FORMS}
    infom = np.array([candidate.results["averaged"]["infom"] for candidate in candidates])
    models = np.array([candidate.results["model"] for candidate in candidates])
    group = {
        "runs": [
            {
                "run": candidate.run.path.name,
                "model": candidate.results["model"],
                "seed": candidate.results["seed"],
                "infom": infom[i],
                "psnr": candidate.results["averaged"].get("psnr"),
                "num_used": representations[i].num_used,
            }
            for i, candidate in enumerate(candidates)
        ],
        "matrices": {form: np.round(np.nan_to_num(m), 5).tolist() for form, m in matrices.items()},
        "variants": measure_variants(matrices, infom, models),
        "subsets": measure_subsets(matrices[FORM], infom),
    }
    if gaps:
        from qlae.selection.encoding import straight_through_gaps

        values = straight_through_gaps(candidates, weights="averaged", data=None, device="cpu", show=True)
        for run, gap in zip(group["runs"], values, strict=True):
            run["gap"] = gap
        group["gap"] = measure_gaps(values, infom, models)
    return group


def measure_variants(matrices: dict, infom: np.ndarray, models: np.ndarray) -> list[dict]:
    """Return for each variant the rank correlation with InfoM, over all runs and within models, and the choice."""
    rows = []
    for form, peers, (name, average) in itertools.product(matrices, ("all", "same model"), AVERAGES.items()):
        matrix = matrices[form].copy()
        if peers == "same model":
            matrix[models[:, None] != models] = np.nan
            if (np.isfinite(matrix).sum(axis=1) == 0).any():
                continue
        scores = average(matrix, axis=1)
        within = {m: correlate(scores[models == m], infom[models == m]) for m in sorted(set(models.tolist()))}
        rows.append(
            {
                "form": form,
                "peers": peers,
                "average": name,
                "spearman": correlate(scores, infom),
                "p": float(spearmanr(scores, infom).pvalue),
                "within": {model: value for model, value in within.items() if value is not None},
                "chosen": float(infom[scores.argmax()]),
                "mean": float(infom.mean()),
                "best": float(infom.max()),
                "chosen_of_qlae": chosen_of(scores, infom, models == "qlae"),
            }
        )
    return rows


def measure_subsets(matrix: np.ndarray, infom: np.ndarray) -> list[dict]:
    """Return what is chosen among few runs, compared only with each other: means over random subsets."""
    random = np.random.default_rng(0)
    rows = []
    for size in SUBSETS:
        if size >= len(infom):
            continue
        chosen, means, bests = [], [], []
        for _ in range(NUM_SUBSETS):
            part = random.choice(len(infom), size, replace=False)
            scores = scores_of(matrix[np.ix_(part, part)])
            chosen.append(infom[part][scores.argmax()])
            means.append(infom[part].mean())
            bests.append(infom[part].max())
        rows.append({"size": size, "chosen": np.mean(chosen), "mean": np.mean(means), "best": np.mean(bests)})
    return rows


def measure_gaps(gaps: list, infom: np.ndarray, models: np.ndarray) -> dict:
    """Return the rank correlation of the straight-through gap with InfoM, over discrete runs and within models."""
    known = np.array([gap is not None for gap in gaps])
    values = np.array([np.nan if gap is None else gap for gap in gaps])
    names = sorted(set(models[known].tolist()))
    within = {m: correlate(values[known & (models == m)], infom[known & (models == m)]) for m in names}
    return {"num_runs": int(known.sum()), "spearman": correlate(values[known], infom[known]), "within": within}


def correlate(scores: np.ndarray, infom: np.ndarray) -> float | None:
    """Return Spearman's rank correlation; None with fewer than three runs."""
    return None if len(scores) < 3 else float(spearmanr(scores, infom).statistic)


def chosen_of(scores: np.ndarray, infom: np.ndarray, mask: np.ndarray) -> dict | None:
    """Return what is chosen among some runs, beside their mean and best InfoM."""
    if mask.sum() < 2:
        return None
    own = infom[mask]
    return {"chosen": float(own[scores[mask].argmax()]), "mean": float(own.mean()), "best": float(own.max())}


def draw(groups: dict, path: Path) -> None:
    """Draw agreement against InfoM, one panel per group of runs."""
    figure = Figure(figsize=(4.2 * len(groups), 3.8), layout="constrained")
    for axes, (name, group) in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups.items(), strict=True):
        matrix = np.array(group["matrices"][FORM])
        np.fill_diagonal(matrix, np.nan)
        scores, runs = scores_of(matrix), group["runs"]
        for model in dict.fromkeys(run["model"] for run in runs):
            own = [i for i, run in enumerate(runs) if run["model"] == model]
            axes.scatter(scores[own], [runs[i]["infom"] for i in own], label=model, s=24, alpha=0.8)
        taken = int(scores.argmax())
        axes.scatter(scores[taken], runs[taken]["infom"], s=120, facecolors="none", edgecolors="#222", label="taken")
        rho = correlate(scores, np.array([run["infom"] for run in runs]))
        axes.set_title(f"{name}: {len(runs)} runs, Spearman {rho:.2f}", fontsize=10)
        axes.set_xlabel("agreement, without labels")
        axes.set_ylabel("InfoM")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=130)


def measure(folder: Path, out: Path) -> None:
    """Measure all groups, and write the numbers and the picture."""
    small = {data: sorted(folder.glob(f"{data}-*/")) for data in DATA}
    groups = {
        "shapes3d, full length": measure_group([REPOSITORY / path for path in FULL_LENGTH], gaps=False),
        **{f"{data}, small": measure_group(paths, gaps=True) for data, paths in small.items() if paths},
    }
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"form": FORM, "steps": STEPS, "groups": groups}, indent=1)
    (out / "selection.json").write_text(text + "\n")
    draw(groups, out / "selection.png")
    for name, group in groups.items():
        print(f"\n{name}: {len(group['runs'])} runs")
        for row in group["variants"]:
            within = ", ".join(f"{m} {v:.2f}" for m, v in row["within"].items())
            print(
                f"  {row['form']:10} {row['peers']:10} {row['average']:15} Spearman {row['spearman']:.2f} "
                f"chosen {row['chosen']:.3f} mean {row['mean']:.3f} best {row['best']:.3f}  within: {within}  "
                f"{row['chosen_of_qlae']}"
            )
        for row in group["subsets"]:
            print("  of {size}: chosen {chosen:.3f} mean {mean:.3f} best {best:.3f}".format(**row))
        if "gap" in group:
            print(f"  gap {group['gap']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results" / "selection")
    arguments = parser.parse_args()
    if arguments.what == "train":
        train_all(arguments.folder)
    else:
        measure(arguments.folder, arguments.out)


if __name__ == "__main__":
    main()
