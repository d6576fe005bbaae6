"""Measure how well agreement between runs finds disentangled ones: its rank correlation with InfoM, and the choice.

    # 40 small runs, about a minute each on one core
    python benchmarks/selection.py train runs/selection-3000 --steps 3000 --models qlae beta-tcvae ae vq-vae
    # 50 small runs, about two minutes each on one core
    python benchmarks/selection.py train runs/selection-7000 --steps 7000
    qlae study negative-quick                                             # minutes on two cores
    python benchmarks/selection.py measure runs/selection-3000 runs/selection-7000 --study runs/negative-quick
    python benchmarks/selection.py measure runs/selection-7000 --keep     # if the other runs no longer exist
    qlae study results/leaderboard-small/plan.toml --out runs/leaderboard-small    # hours on two cores
    python benchmarks/selection.py measure --leaderboard runs/leaderboard-small --keep
    python benchmarks/selection.py measure runs/selection-3000 --data shapes3d --out scratch   # to choose a variant

`train` trains models with five seeds each on Shapes3D and Isaac3D, as FOLDER/DATA/MODEL-sSEED, and skips runs that are
finished. Each run is that of `qlae train MODEL --data DATA --size small --resolution 32 --steps STEPS --seed SEED`.

`measure` compares the runs of each group with each other: the committed full-length runs on Shapes3D, which have
samples; the small runs of each data set and number of updates; the runs of a study; and those of the leaderboard of
small networks, by data set. It writes ``selection.json`` and ``selection.png``. With ``--keep``, groups that are
already in ``selection.json`` and not measured now stay there, without what depends on the score if they were measured
with another one.

The score that `qlae select` uses is the variant with the highest mean correlation over the full-length runs, the small
runs with 3,000 updates and the study. The small runs with 7,000 updates were kept back for the report, and the
leaderboard was trained after the choice.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata, spearmanr

from qlae._io import write_json
from qlae.selection.agreement import information, scores_of
from qlae.selection.ranking import common_representations, find_runs, read_codes, select

REPOSITORY = Path(__file__).parents[1]
MODELS = ("qlae", "beta-tcvae", "ae", "vq-vae", "bioae")
DATA = ("shapes3d", "isaac3d")
SEEDS = (10, 11, 12, 13, 14)
STEPS = 7_000
FULL_LENGTH = ("results/paper-length", "results/paper-length-no-weight-decay")
AVERAGES = {"median": np.nanmedian, "mean": np.nanmean, "upper quartile": lambda m, axis: np.nanquantile(m, 0.75, axis)}
NORMALISATIONS = {"geometric": lambda a, b: np.sqrt(np.outer(a, b)), "min": np.minimum.outer, "max": np.maximum.outer}
FORMS = ("udr", "udr, by entropy", "unsquared", "coherence", "matching")
OURS = {"form": "coherence", "normalisation": "min", "chance": True, "peers": "all", "average": "mean"}
SUBSETS, NUM_SUBSETS = (3, 4, 6, 8, 12), 1_000
NUM_PERMUTATIONS = 10_000
COLUMNS = 3  # of panels in the picture


def train_all(folder: Path, models: list[str], steps: int) -> None:
    """Train the runs that are not finished, seed by seed."""
    import qlae

    for seed, model, data in itertools.product(SEEDS, models, DATA):
        out = folder / data / f"{model}-s{seed}"
        if not (out / "results.json").is_file():
            images = qlae.load_data(data, resolution=32)
            qlae.train(model, images, out=out, size="small", steps=steps, seed=seed, threads=1)


def find_small_runs(folders: list[Path], names: list[str]) -> dict[str, list[Path]]:
    """Return the finished runs of `train` by the name of their group, which says the data and the number of updates."""
    groups: dict[str, list[Path]] = {}
    for folder, data in itertools.product(folders, names):
        for path in sorted(folder.glob(f"{data}/*-s*/results.json")):
            steps = json.loads(path.read_text())["steps"]
            groups.setdefault(f"{data}, small, {steps:,} updates", []).append(path.parent)
    return groups


def measure_group(paths: list[Path], *, earlier: set[tuple[str, int]]) -> dict:
    """Compare runs with each other: matrices of agreement, and what each variant of the score would choose.

    Args:
        paths: run directories, or folders of some.
        earlier: (model, seed) of runs on the same data in earlier groups. They start like the runs of this group, so
            the variants are measured once more without them.
    """
    selection = select(paths)
    for skip in selection.skipped:
        print(f"skipped {skip.path}: {skip.reason}")
    candidates, _ = read_codes(find_runs(paths), weights="averaged")
    places = {ranked.path: place for place, ranked in enumerate(selection.runs)}
    candidates = [candidate for candidate in candidates if candidate.run.path in places]  # without copies
    order = [places[candidate.run.path] for candidate in candidates]
    ranked, matrix = [selection.runs[i] for i in order], selection.matrix[np.ix_(order, order)]
    representations = common_representations(candidates, show=True)
    infom = np.array([run.infom for run in ranked])
    models = np.array([run.model for run in ranked])
    near = np.array([run.is_near for run in ranked])
    is_qlae = models == "qlae"
    group = {
        "runs": [
            {
                "run": "/".join(run.path.parts[-2:]),
                "model": run.model,
                "seed": run.seed,
                "infom": run.infom,
                "psnr": run.psnr,
                "is_near": run.is_near,
                "num_used": run.num_used,
                "agreement": run.agreement,
            }
            for run in ranked
        ],
        "taken": "/".join(selection.best.path.parts[-2:]),
        "matrix": np.round(np.nan_to_num(matrix), 5).tolist(),
        "variants": measure_variants(representations, infom, models, near),
        "subsets": measure_subsets(matrix, infom),
        "subsets_of_qlae": measure_subsets(matrix[np.ix_(is_qlae, is_qlae)], infom[is_qlae]),
    }
    new = np.array([(run.model, run.seed) not in earlier for run in ranked])
    if 3 <= new.sum() < len(ranked):
        own = [representation for representation, is_new in zip(representations, new, strict=True) if is_new]
        group["new_seeds"] = {
            "runs": ["/".join(run.path.parts[-2:]) for run, is_new in zip(ranked, new, strict=True) if is_new],
            "variants": measure_variants(own, infom[new], models[new], near[new]),
        }
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


def measure_variants(representations: list, infom: np.ndarray, models: np.ndarray, near: np.ndarray) -> list[dict]:
    """Return for each variant the rank correlation with InfoM, over all runs and within models, and the choice.

    Only runs whose PSNR is ``near`` the best are taken, as by `qlae select`; correlations are over all runs.
    """
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
                    **measure_within(scores, infom, models),
                    **chosen_of(scores, infom, near),
                    "qlae": chosen_of(scores, infom, near & (models == "qlae")),
                }
            )
    return rows


def measure_within(scores: np.ndarray, infom: np.ndarray, models: np.ndarray) -> dict:
    """Return the mean of the rank correlations within models, and its p-value: two-sided, InfoM permuted in models."""
    random = np.random.default_rng(0)
    observed, permuted = [], []
    for model in sorted(set(models.tolist())):
        own = models == model
        if own.sum() >= 3:
            ranks = np.stack([rankdata(scores[own]), rankdata(infom[own])])
            ranks = (ranks - ranks.mean(axis=1, keepdims=True)) / np.linalg.norm(ranks - ranks.mean(), axis=1)[:, None]
            observed.append(ranks[0] @ ranks[1])
            permuted.append(random.permuted(np.tile(ranks[1], (NUM_PERMUTATIONS, 1)), axis=1) @ ranks[0])
    if not observed:
        return {"mean_within": None, "p_within": None}
    mean, means = np.mean(observed), np.mean(permuted, axis=0)
    extreme = np.sum(np.abs(means) >= abs(mean) - 1e-9)
    return {"mean_within": float(mean), "p_within": float((extreme + 1) / (NUM_PERMUTATIONS + 1))}


def measure_subsets(matrix: np.ndarray, infom: np.ndarray) -> list[dict]:
    """Return the choices among few runs, compared only with each other: means over random subsets."""
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


def correlate(scores: np.ndarray, infom: np.ndarray) -> float | None:
    """Return Spearman's rank correlation; None with fewer than three runs."""
    return None if len(scores) < 3 else float(spearmanr(scores, infom).statistic)


def chosen_of(scores: np.ndarray, infom: np.ndarray, mask: np.ndarray) -> dict | None:
    """Return the InfoM of the run chosen among some runs, and their mean and best InfoM; None if there are none."""
    if not mask.any():
        return None
    own = infom[mask]
    return {"chosen": float(own[scores[mask].argmax()]), "mean": float(own.mean()), "best": float(own.max())}


def draw(groups: dict, path: Path) -> None:
    """Draw agreement against InfoM, one panel per group of runs; a model has the same colour in all panels.

    Groups that were measured with another score are left out.
    """
    groups = {name: group for name, group in groups.items() if "matrix" in group}
    models = dict.fromkeys(run["model"] for group in groups.values() for run in group["runs"])
    colours = {model: f"C{number}" for number, model in enumerate(models)}
    columns = min(COLUMNS, len(groups))
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.9 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (name, group) in itertools.zip_longest(panels, groups.items(), fillvalue=(None, None)):
        if name is None:
            axes.set_axis_off()
            continue
        matrix = np.array(group["matrix"])
        np.fill_diagonal(matrix, np.nan)
        scores, runs = scores_of(matrix), group["runs"]
        for model in dict.fromkeys(run["model"] for run in runs):
            own = [i for i, run in enumerate(runs) if run["model"] == model]
            infom = [runs[i]["infom"] for i in own]
            axes.scatter(scores[own], infom, label=model, s=24, alpha=0.8, color=colours[model])
        taken = int(np.where([run.get("is_near", True) for run in runs], scores, -np.inf).argmax())
        axes.scatter(scores[taken], runs[taken]["infom"], s=120, facecolors="none", edgecolors="#222", label="taken")
        rho = correlate(scores, np.array([run["infom"] for run in runs]))
        axes.set_title(f"{name}\n{len(runs)} runs, Spearman {rho:.2f}", fontsize=10)
        axes.set_xlabel("agreement, without labels")
        axes.set_ylabel("InfoM")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=130)


def find_leaderboard_runs(folder: Path) -> dict[str, list[Path]]:
    """Return the folders of a leaderboard's runs by the name of their group, one per data set."""
    return {f"{path.name}, leaderboard": [path] for path in sorted((folder / "runs").iterdir())}


def measure(
    folders: list[Path], names: list[str], study: Path | None, leaderboard: Path | None, out: Path, *, keep: bool
) -> None:
    """Measure all groups, and write the numbers and the picture."""
    groups = read_groups(out / "selection.json") if keep else {}
    paths = {"shapes3d, full length": [REPOSITORY / path for path in FULL_LENGTH]}
    paths |= dict(sorted(find_small_runs(folders, names).items(), key=lambda item: names.index(item[0].split(",")[0])))
    if study is not None:
        paths[study.name] = [study / "runs"]
    if leaderboard is not None:
        paths |= find_leaderboard_runs(leaderboard)
    for name, own in paths.items():
        data = name.split(",")[0]
        others = [group for other, group in groups.items() if other != name and other.split(",")[0] == data]
        earlier = {(run["model"], run["seed"]) for group in others for run in group["runs"]}
        groups[name] = measure_group(own, earlier=earlier)
        print_group(name, groups[name])
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "selection.json", {"variant": OURS, "groups": groups})
    draw(groups, out / "selection.png")


def read_groups(path: Path) -> dict:
    """Return the groups measured before, without what depends on the score if they were measured with another one."""
    content = json.loads(path.read_text())
    groups = content["groups"]
    if content["variant"] != OURS:
        for group in groups.values():
            for key in ("matrix", "subsets", "subsets_of_qlae", "taken"):
                group.pop(key, None)
            for run in group["runs"]:
                run.pop("agreement", None)
    return groups


def print_group(name: str, group: dict) -> None:
    """Print the variants that are near ours, and the choice among few runs."""
    print(f"\n{name}: {len(group['runs'])} runs, taken {group['taken']}")
    print_variants(group["variants"])
    if "new_seeds" in group:
        print(f"  only the {len(group['new_seeds']['runs'])} runs whose model or seed is in no earlier group:")
        print_variants(group["new_seeds"]["variants"])
    for kind in ("subsets", "subsets_of_qlae"):
        for row in group[kind]:
            print(f"  {kind}", "{size}: chosen {chosen:.3f} mean {mean:.3f} best {best:.3f}".format(**row))


def print_variants(variants: list[dict]) -> None:
    for row in filter(is_shown, variants):
        print("  {} {} {} {} {}".format(*(row[key] for key in OURS)), end=": ")
        print("Spearman {spearman:.2f} p {p:.1e} chosen {chosen:.3f} mean {mean:.3f} best {best:.3f}".format(**row))
        within = ", ".join(f"{model} {value:.2f}" for model, value in row["within"].items())
        print(f"      within models: {within}; mean {row['mean_within']}, p {row['p_within']}; {row['qlae']}")


def is_shown(row: dict) -> bool:
    """Return whether a variant differs from ours in at most one respect."""
    return sum(row[key] != value for key, value in OURS.items()) <= 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train small runs")
    train.add_argument("folder", type=Path)
    train.add_argument("--models", nargs="+", default=list(MODELS))
    train.add_argument("--steps", type=int, default=STEPS)
    measuring = commands.add_parser("measure", help="compare agreement with InfoM")
    measuring.add_argument("folders", type=Path, nargs="*", help="folders written by train: DATA/MODEL-sSEED")
    measuring.add_argument("--study", type=Path, help="folder of a study, such as runs/negative-quick")
    measuring.add_argument("--leaderboard", type=Path, help="folder of the study results/leaderboard-small/plan.toml")
    measuring.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    measuring.add_argument("--out", type=Path, default=REPOSITORY / "results" / "selection")
    measuring.add_argument("--keep", action="store_true", help="keep groups of OUT/selection.json not measured now")
    arguments = parser.parse_args()
    if arguments.command == "train":
        train_all(arguments.folder, arguments.models, arguments.steps)
    else:
        groups = arguments.folders, arguments.data, arguments.study, arguments.leaderboard
        measure(*groups, arguments.out, keep=arguments.keep)


if __name__ == "__main__":
    main()
