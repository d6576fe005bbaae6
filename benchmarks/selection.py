"""Measure how well agreement between runs finds disentangled ones: its rank correlation with InfoM, and what is chosen.

    python benchmarks/selection.py train runs/selection                  # small runs, about a minute each on one core
    qlae study negative-quick                                             # minutes on two cores
    python benchmarks/selection.py measure runs/selection --study runs/negative-quick --out results/selection
    python benchmarks/selection.py measure runs/selection --data shapes3d       # while choosing a variant

`train` trains four models with five seeds on Shapes3D and Isaac3D and skips runs that are finished. `measure` compares
the runs of each set with each other, the committed full-length runs on Shapes3D, which have samples, and the runs of a
study. It writes ``selection.json`` and ``selection.png``.

Variants of the score are compared on the full-length and small runs on Shapes3D, where the one that `qlae select` uses
was chosen. Isaac3D and the study were kept back for the report: nothing was chosen on them.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr

from qlae._files import write_json
from qlae.selection.agreement import information
from qlae.selection.ranking import agreement_matrix, scores_of
from qlae.selection.reading import common_representations, find_runs, read_candidates

REPOSITORY = Path(__file__).parents[1]
MODELS = ("qlae", "beta-tcvae", "ae", "vq-vae")
DATA = ("shapes3d", "isaac3d")
SEEDS = (10, 11, 12, 13, 14)
STEPS = 3_000
FULL_LENGTH = ("results/paper-length", "results/paper-length-no-weight-decay")
AVERAGES = {"median": np.nanmedian, "mean": np.nanmean, "upper quartile": lambda m, axis: np.nanquantile(m, 0.75, axis)}
NORMALISATIONS = {"geometric": lambda a, b: np.sqrt(np.outer(a, b)), "min": np.minimum.outer, "max": np.maximum.outer}
FORMS = ("udr", "udr, by entropy", "unsquared", "coherence", "matching")
OURS = {"form": "udr", "normalisation": "geometric", "chance": True, "peers": "all", "average": "mean"}
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
    infom = np.array([candidate.results["averaged"]["infom"] for candidate in candidates])
    models = np.array([candidate.results["model"] for candidate in candidates])
    matrix = agreement_matrix(representations)
    group = {
        "runs": [
            {
                "run": "/".join(candidate.run.path.parts[-2:]),
                "model": candidate.results["model"],
                "seed": candidate.results["seed"],
                "infom": infom[i],
                "psnr": candidate.results["averaged"].get("psnr"),
                "num_used": representations[i].num_used,
                "agreement": scores_of(matrix)[i],
            }
            for i, candidate in enumerate(candidates)
        ],
        "matrix": np.round(np.nan_to_num(matrix), 5).tolist(),
        "variants": measure_variants(representations, infom, models),
        "subsets": measure_subsets(matrix, infom),
        "subsets_of_qlae": measure_subsets(matrix[np.ix_(models == "qlae", models == "qlae")], infom[models == "qlae"]),
    }
    if gaps:
        from qlae.selection.encoding import straight_through_gaps

        values = straight_through_gaps(candidates, weights="averaged", data=None, device="cpu", show=True)
        for run, gap in zip(group["runs"], values, strict=True):
            run["gap"] = gap
        group["gap"] = measure_gaps(values, infom, models)
    return group


def variant_matrices(representations: list) -> dict[tuple, np.ndarray]:
    """Return the agreement (n, n) of each pair of runs by (form, normalisation, whether chance is subtracted)."""
    count = len(representations)
    matrices = {key: np.full((count, count), np.nan) for key in itertools.product(FORMS, NORMALISATIONS, (True, False))}
    entropies = [each.entropies[each.used] for each in representations]
    pairs = {}
    for i, j in itertools.combinations_with_replacement(range(count), 2):
        nats, chance = information(representations[i], representations[j])
        pairs[i, j], pairs[j, i] = (nats, chance), (nats.T, chance.T)
    for (form, normalisation, corrected), matrix in matrices.items():

        def similar(i: int, j: int, normalisation: str = normalisation, corrected: bool = corrected) -> np.ndarray:
            nats, chance = pairs[i, j]
            largest = NORMALISATIONS[normalisation](entropies[i], entropies[j])
            expected = chance if corrected else 0.0
            return np.clip((nats - expected) / np.maximum(largest - expected, 1e-9), 0.0, 1.0)

        for i, j in itertools.combinations(range(count), 2):
            between = similar(i, j)
            sides = (between, similar(j, j), entropies[i]), (between.T, similar(i, i), entropies[j])
            matrix[i, j] = matrix[j, i] = np.mean([agree(form, *side) for side in sides]) if between.size else 0.0
    return matrices


def agree(form: str, between: np.ndarray, within: np.ndarray, entropies: np.ndarray) -> float:
    """Return the agreement of the latents of one run with another run.

    Args:
        form: one of ``FORMS``. "unsquared" leaves out the factor max R. "coherence" replaces the share of the nearest
            latent by the similarity among all latents that are similar. "matching" pairs latents one to one.
        between: (n_1, n_2) similarities.
        within: (n_2, n_2) similarities in the other run.
        entropies: (n_1,) of the latents.
    """
    nearest, total = between.max(axis=1), np.maximum(between.sum(axis=1), 1e-12)
    if form == "matching":
        rows, columns = linear_sum_assignment(-between)
        return float(between[rows, columns].sum() / max(between.shape))
    if form == "coherence":
        shares, related = between / total[:, None], within.copy()
        np.fill_diagonal(related, 1.0)
        return float((nearest * np.einsum("ij,jk,ik->i", shares, related, shares)).mean())
    if form == "unsquared":
        return float((nearest / total).mean())
    return float(np.average(nearest**2 / total, weights=entropies if form == "udr, by entropy" else None))


def measure_variants(representations: list, infom: np.ndarray, models: np.ndarray) -> list[dict]:
    """Return for each variant the rank correlation with InfoM, over all runs and within models, and the choice."""
    rows = []
    for (form, normalisation, corrected), full in variant_matrices(representations).items():
        for peers, (name, average) in itertools.product(("all", "same model"), AVERAGES.items()):
            matrix = full.copy()
            if peers == "same model":
                matrix[models[:, None] != models] = np.nan
                if (np.isfinite(matrix).sum(axis=1) == 0).any():
                    continue
            scores = average(matrix, axis=1)
            within = {m: correlate(scores[models == m], infom[models == m]) for m in sorted(set(models.tolist()))}
            rows.append(
                {
                    "form": form,
                    "normalisation": normalisation,
                    "chance": corrected,
                    "peers": peers,
                    "average": name,
                    "spearman": correlate(scores, infom),
                    "p": float(spearmanr(scores, infom).pvalue),
                    "within": {model: value for model, value in within.items() if value is not None},
                    "chosen": float(infom[scores.argmax()]),
                    "mean": float(infom.mean()),
                    "best": float(infom.max()),
                    "qlae": chosen_of(scores, infom, models == "qlae"),
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
        matrix = np.array(group["matrix"])
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


def measure(folder: Path, names: list[str], study: Path | None, out: Path) -> None:
    """Measure all groups, and write the numbers and the picture."""
    small = {data: [path.parent for path in sorted(folder.glob(f"{data}-*/results.json"))] for data in names}
    groups = {
        "shapes3d, full length": measure_group([REPOSITORY / path for path in FULL_LENGTH], gaps=False),
        **{f"{data}, small": measure_group(paths, gaps=True) for data, paths in small.items() if paths},
    }
    if study is not None:
        groups[study.name] = measure_group([study / "runs"], gaps=True)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "selection.json", {"variant": OURS, "steps": STEPS, "groups": groups})
    draw(groups, out / "selection.png")
    for name, group in groups.items():
        print(f"\n{name}: {len(group['runs'])} runs")
        for row in group["variants"]:
            if is_shown(row):
                print("  {} {} {} {} {}".format(*(row[key] for key in OURS)), end=": ")
                print(
                    "Spearman {spearman:.2f} chosen {chosen:.3f} mean {mean:.3f} best {best:.3f}".format(**row),
                    end="; ",
                )
                print(", ".join(f"{m} {v:.2f}" for m, v in row["within"].items()), row["qlae"])
        for kind in ("subsets", "subsets_of_qlae"):
            for row in group[kind]:
                print(f"  {kind}", "{size}: chosen {chosen:.3f} mean {mean:.3f} best {best:.3f}".format(**row))
        print("  gap", group.get("gap"))


def is_shown(row: dict) -> bool:
    """Return whether a variant differs from ours in at most one respect."""
    return sum(row[key] != value for key, value in OURS.items()) <= 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--study", type=Path, help="folder of a study, such as runs/negative-quick")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results" / "selection")
    arguments = parser.parse_args()
    if arguments.what == "train":
        train_all(arguments.folder)
    else:
        measure(arguments.folder, arguments.data, arguments.study, arguments.out)


if __name__ == "__main__":
    main()
