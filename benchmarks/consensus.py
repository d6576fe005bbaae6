"""Measure what a consensus of several runs is worth: its scores, compared with those of the runs that it is made from.

    python benchmarks/consensus.py keep runs/isaac3d/s2? --data isaac3d --model qlae    # add codes of runs
    python benchmarks/consensus.py measure                                              # some ten minutes on one core
    python benchmarks/consensus.py noise runs/noise                                     # data without structure

`measure` scores groups of runs from the codes in ``results/consensus`` (``DATA-MODEL.npz``, one array per seed) and the
samples of the full-length runs in ``results/paper-length``, and writes ``results/consensus/scores.csv``: one row per
group, with the mean, the worst and the best InfoM of its runs, the run that agreement would select, the consensus, and
its confirmed factors alone. The method was chosen on seeds 0 to 9 of `qlae`; seeds from 20 on were looked at once.

`noise` reports the verdict on each folder of runs of data without sources.
"""

import argparse
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from qlae._io import write_bytes, write_npz
from qlae._progress import progress_bar
from qlae.metrics import dci, infomec
from qlae.selection.agreement import agreement_matrix, represent, scores_of
from qlae.selection.factors import find_factors

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / "results" / "consensus"
FULL_LENGTH = REPOSITORY / "results" / "paper-length"
SCORES = ("infom", "infoe", "infoc", "d")
NUM_SUBSETS = 5
FRESH = 20  # seeds from here on were not used for choosing the method
MIXED = {"qlae": (0, 1), "tripod": (0, 1), "vq-vae": (0, 1), "beta-tcvae": (0, 1)}

Name = tuple[str, str, int]  # data, model, seed


@cache
def sources_of(data: str) -> Any:
    if data == "shapes3d-64":
        return np.load(FULL_LENGTH / "seed-0" / "sample.npz")["sources"]
    return np.load(FOLDER / f"{data}-sources.npz")["sources"]


@cache
def latents_of(name: Name) -> Any:
    """Return the codes (integers) or latents (floats) of a run."""
    data, model, seed = name
    if data == "shapes3d-64":
        return np.load(FULL_LENGTH / f"seed-{seed}" / "sample.npz")["codes"]
    array = np.load(FOLDER / f"{data}-{model}.npz")[f"seed-{seed}"]
    return array.astype(np.float64) if array.dtype.kind == "f" else array


@cache
def representation_of(name: Name) -> Any:
    array = latents_of(name)
    return represent(latents=array) if array.dtype.kind == "f" else represent(codes=array)


def score(data: str, latents: Any) -> np.ndarray:
    """Return InfoM, InfoE, InfoC and D."""
    if not latents.shape[1]:
        return np.full(len(SCORES), np.nan)
    info = infomec(sources_of(data), latents, corrected=False)
    return np.array([info.infom, info.infoe, info.infoc, dci(sources_of(data), latents).d])


@cache
def score_of(name: Name) -> tuple[float, ...]:
    return tuple(score(name[0], latents_of(name)).tolist())


def measure(kind: str, names: tuple[Name, ...]) -> dict[str, Any]:
    """Return one row: the runs of a group, their consensus, and its confirmed factors."""
    data, representations = names[0][0], [representation_of(name) for name in names]
    found = find_factors(representations)
    confirmed = [place for place, factor in enumerate(found.factors) if factor.is_confirmed]
    runs = np.array([score_of(name) for name in names])
    taken = int(scores_of(agreement_matrix(representations)).argmax())
    parts = {
        "mean": runs.mean(axis=0),
        "selected": runs[taken],
        "consensus": score(data, found.codes),
        "confirmed": score(data, found.codes[:, confirmed]),
    }
    row: dict[str, Any] = {
        "data": data,
        "models": "+".join(sorted({name[1] for name in names})),
        "runs": len(names),
        "seeds": " ".join(str(name[2]) for name in names),
        "kind": kind,
        "worst_infom": runs[:, 0].min(),
        "best_infom": runs[:, 0].max(),
        "num_latents": len(found.factors),
        "num_confirmed": len(confirmed),
    }
    return row | {
        f"{part}_{key}": value for part, values in parts.items() for key, value in zip(SCORES, values, strict=True)
    }


def groups() -> Iterator[tuple[str, tuple[Name, ...]]]:
    """Yield the kind and the runs of each group."""
    seeds = {}
    for path in sorted(FOLDER.glob("*-*.npz")):
        data, _, model = path.stem.partition("-")
        if model != "sources":
            seeds[data, model] = sorted(int(key.removeprefix("seed-")) for key in np.load(path).files)
    random = np.random.default_rng(0)
    for (data, model), there in seeds.items():
        chosen_on, fresh = [s for s in there if s < FRESH], [s for s in there if s >= FRESH]
        if model == "qlae" and len(chosen_on) == 10:
            for count in (2, 3, 8):
                for _ in range(NUM_SUBSETS):
                    yield "subset", named(data, model, sorted(random.choice(chosen_on, count, replace=False).tolist()))
            yield "chosen on", named(data, model, chosen_on)
        for start in range(0, len(chosen_on), 5):
            yield (
                "chosen on" if model == "qlae" and len(chosen_on) == 10 else "other",
                named(data, model, chosen_on[start : start + 5]),
            )
        if fresh:
            yield "fresh", named(data, model, fresh)
        if model == "qlae" and all((data, other) in seeds for other in MIXED):
            yield "mixture", tuple((data, other, seed) for other, some in MIXED.items() for seed in some)
    full = list(range(6))
    for count in (2, 3, 4, 5, 6):
        subsets = list(itertools.combinations(full, count))
        for subset in [subsets[i] for i in random.permutation(len(subsets))[:NUM_SUBSETS]]:
            yield "full length", named("shapes3d-64", "qlae", list(subset))


def measure_all() -> None:
    """Score the groups that are not in the table yet, and write it after each."""
    path = FOLDER / "scores.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    known = {(row["data"], row["models"], row["seeds"], row["kind"]) for row in rows}
    everything = list(groups())
    with progress_bar("scoring", len(everything)) as report:
        for done, (kind, names) in enumerate(everything, start=1):
            models, seeds = "+".join(sorted({name[1] for name in names})), " ".join(str(name[2]) for name in names)
            if (names[0][0], models, seeds, kind) not in known:
                rows.append(measure(kind, names))
                table = pd.DataFrame(rows)
                write_bytes(path, table.to_csv(index=False, float_format="%.4f").encode())
            report(done)


def named(data: str, model: str, seeds: list[int]) -> tuple[Name, ...]:
    return tuple((data, model, seed) for seed in seeds)


def keep(runs: list[Path], data: str, model: str) -> None:
    """Add the codes of runs to the folder, and the sources of their sample if the data set is new."""
    path, sample = FOLDER / f"{data}-{model}.npz", np.load(runs[0] / "sample.npz")
    kept = dict(np.load(path)) if path.exists() else {}
    sources = FOLDER / f"{data}-sources.npz"
    if not sources.exists():
        write_npz(sources, sources=sample["sources"], indices=sample["indices"])
    for run in runs:
        sample = np.load(run / "sample.npz")
        if not np.array_equal(sample["sources"], np.load(sources)["sources"]):
            raise SystemExit(f"{run} has another sample than {sources}")
        codes = sample["codes"]
        kept[f"seed-{run.name.removeprefix('s')}"] = codes.astype(np.int8 if codes.max() < 128 else np.int16)
    write_npz(path, **kept)


def noise(folder: Path) -> None:
    """Print the verdict on the runs in each folder."""
    for data in sorted(path for path in folder.iterdir() if path.is_dir()):
        codes = [np.load(path)["codes"] for path in sorted(data.glob("*/sample.npz"))]
        found = find_factors([represent(codes=array) for array in codes])
        print(f"{data.name}: {found.describe()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep", help="add the codes of runs to results/consensus")
    keeping.add_argument("runs", nargs="+", type=Path)
    keeping.add_argument("--data", required=True)
    keeping.add_argument("--model", required=True)
    commands.add_parser("measure", help="score groups of runs and their consensus")
    commands.add_parser("noise", help="print the verdicts on data without structure").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "keep":
        keep(arguments.runs, arguments.data, arguments.model)
    elif arguments.command == "noise":
        noise(arguments.folder)
    else:
        measure_all()


if __name__ == "__main__":
    main()
