"""Draw the pictures of docs/metrics.md and print its tables: `python docs/metrics/pictures.py`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qlae.metrics import dci, infomec, mig, nmi

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "tests" / "metrics" / "fixtures"


def figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, np.ndarray]:
    drawing = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing, np.atleast_2d(drawing.subplots(rows, columns, squeeze=False))


def examples() -> None:
    """Draw four representations of the same three sources, with their InfoMEC scores."""
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 6, size=(4000, 3))
    unit = (sources - 2.5) / 1.7
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    cases = {
        "one latent per source": unit + 0.1 * rng.normal(size=unit.shape),
        "a rotation": unit @ rotation + 0.1 * rng.normal(size=unit.shape),
        "each source twice": np.hstack([unit, -unit]) + 0.1 * rng.normal(size=(4000, 6)),
        "noise only": rng.normal(size=(4000, 3)),
    }
    drawing, axes = figure(1, 4, 11, 3.4)
    for axis, (name, latents) in zip(axes[0], cases.items(), strict=True):
        result = infomec(sources, latents)
        shown = np.clip(result.nmi.T, 0, 1)
        axis.imshow(shown, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (j, i), value in np.ndenumerate(shown):
            axis.text(
                i, j, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if value > 0.6 else "black"
            )
        axis.set_xticks(range(3), [f"s{i}" for i in range(3)])
        axis.set_yticks(range(shown.shape[0]), [f"z{j}" for j in range(shown.shape[0])])
        informative = f"{int(result.informative.sum())} of {result.informative.size} latents informative"
        scores = f"M {result.infom:.2f}  E {result.infoe:.2f}  C {result.infoc:.2f}"
        beyond = f"{result.infom_corrected:.2f}  {result.infoe_corrected:.2f}  {result.infoc_corrected:.2f}"
        axis.set_title(f"{name}\n{scores}\ncorrected {beyond}\n{informative}", fontsize=9)
    drawing.savefig(HERE / "examples.png", dpi=130)


def one_hot_or_scalar() -> None:
    """Draw a source as a function of a code, ordered and scattered."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 10, 2000)
    drawing, axes = figure(1, 2, 8, 2.8)
    maps = {"ordered": np.arange(10) * 4 // 10, "scattered": np.array([3, 0, 1, 2, 2, 0, 2, 3, 0, 1])}
    for axis, (name, table) in zip(axes[0], maps.items(), strict=True):
        result = infomec(table[codes], codes)
        axis.step(range(10), table, where="mid")
        axis.plot(range(10), table, "o")
        axis.set_xlabel("code")
        axis.set_ylabel("source")
        axis.set_title(f"{name}: one-hot {result.infoe:.2f}, scalar {result.infoe_scalar:.2f}", fontsize=10)
    drawing.savefig(HERE / "one_hot_or_scalar.png", dpi=130)


def bins_or_neighbours() -> None:
    """Draw the NMI of an informative latent and of noise, against the number of bins and against KSG's k."""
    rng = np.random.default_rng(2)
    source = rng.integers(0, 8, 2000)
    informed, noise = source + 0.5 * rng.normal(size=2000), rng.normal(size=2000)
    bins, ks = [2, 4, 8, 16, 32, 64, 128, 256], [1, 2, 3, 5, 10, 20, 40]
    drawing, axes = figure(1, 2, 8, 2.8)
    for latent, label in ((informed, "informative latent"), (noise, "noise")):
        edges = [np.histogram_bin_edges(latent, b)[1:-1] for b in bins]
        axes[0, 0].plot(bins, [nmi(source, np.digitize(latent, e)).item() for e in edges], "o-", label=label)
        axes[0, 1].plot(ks, [nmi(source, latent, k=k).item() for k in ks], "o-", label=label)
    for axis, name in zip(axes[0], ("bins of equal width", "neighbours k (KSG)"), strict=True):
        axis.set_xscale("log")
        axis.set_xlabel(name)
        axis.set_ylabel("NMI")
        axis.set_ylim(-0.02, 1)
        axis.legend(fontsize=8)
    drawing.savefig(HERE / "bins_or_neighbours.png", dpi=130)


def corrected() -> None:
    """Draw InfoM and its corrected form for noise, for perfect codes and for weak signals, against the sample size."""
    sizes = [300, 600, 1_000, 2_000, 5_000, 10_000]
    panels = {
        "noise": lambda s, rng: rng.normal(size=s.shape),
        "perfect codes": lambda s, rng: s,
        "half of the latents are noise": lambda s, rng: np.hstack([s, rng.integers(0, 10, s.shape)]),
        "weak signal: 1 code in 10 is right": lambda s, rng: np.where(
            rng.random(s.shape) < 0.1, s, np.column_stack([rng.permutation(column) for column in s.T])
        ),
    }
    drawing, axes = figure(1, 4, 13, 3.1)
    for axis, (name, encode) in zip(axes[0], panels.items(), strict=True):
        curves: dict[str, list[list[float]]] = {"infom": [], "infom_corrected": []}
        for n in sizes:
            results = []
            for seed in range(3):
                rng = np.random.default_rng([seed, n])
                sources = rng.integers(0, 10, size=(n, 4))
                results.append(infomec(sources, encode(sources, rng)).to_dict())
            for key, values in curves.items():
                values.append([result[key] for result in results])
        for key, label in (("infom", "InfoM"), ("infom_corrected", "InfoM, corrected")):
            values = np.array(curves[key])
            axis.plot(sizes, values.mean(axis=1), "o-", label=label)
            axis.fill_between(sizes, values.min(axis=1), values.max(axis=1), alpha=0.25)
        axis.set_xscale("log")
        axis.set_ylim(-0.03, 1.03)
        axis.set_xlabel("samples")
        axis.set_title(name, fontsize=10)
    axes[0, 1].legend(fontsize=8, loc="lower right")
    drawing.savefig(HERE / "corrected.png", dpi=130)


def correlated_sources() -> None:
    """Print what an exact copy of correlated continuous sources scores, and a whitened one."""
    print("| correlation | InfoM of a copy | corrected | InfoM of a whitened copy | corrected |\n|---|---|---|---|---|")
    for correlation in (0.0, 0.25, 0.5, 0.75):
        rng = np.random.default_rng(0)
        covariance = np.full((4, 4), correlation) + (1 - correlation) * np.eye(4)
        sources = rng.multivariate_normal(np.zeros(4), covariance, size=4000)
        values, vectors = np.linalg.eigh(covariance)
        whitened = sources @ (vectors / np.sqrt(values)) @ vectors.T
        cells = []
        for latents in (sources, whitened):
            result = infomec(sources, latents)
            cells += [f"{result.infom:.2f}", f"{result.infom_corrected:.2f}"]
        print(f"| {correlation} | {' | '.join(cells)} |")


def protocol_table() -> None:
    """Print the scores of the published variants of InfoMEC on test fixtures where they disagree."""
    names = ("paper", "official-train", "official-standalone", "tripod")
    cases = (
        "inactive_codes",
        "many_to_one",
        "imbalanced_codes",
        "noisy_medium",
        "scales_continuous",
        "noise_only_continuous",
    )
    print("| sample | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for case in cases:
        cells = []
        for name in names:
            result = infomec(*load(case), protocol=name)
            cells.append(f"{result.infom:.2f} / {result.infoe:.2f} / {result.infoc:.2f} ({result.num_active})")
        print(f"| `{case}` | " + " | ".join(cells) + " |")


def other_table() -> None:
    """Print the scores of different metrics on the same samples."""
    print(
        "| sample | InfoM | InfoC | MIG | MIG, ubisoft | DCI D (forest) | DCI D (all features) |\n"
        "|---|---|---|---|---|---|---|"
    )
    for case in ("perfect_codes", "duplicated_codes", "entangled", "many_to_one", "noise_codes"):
        sources, latents = load(case)
        info = infomec(sources, latents)
        forest = dci(sources, latents, num_trees=50)
        every = dci(sources, latents, num_trees=50, max_features=None)
        print(
            f"| `{case}` | {info.infom:.2f} | {info.infoc:.2f} | {mig(sources, latents).score:.2f} | "
            f"{mig(sources, latents, protocol='ubisoft').score:.2f} | {forest.d:.2f} | {every.d:.2f} |"
        )


def load(case: str) -> tuple[np.ndarray, np.ndarray]:
    assert case in json.loads((FIXTURES / "cases.json").read_text())
    with np.load(FIXTURES / f"{case}.npz", allow_pickle=False) as file:
        return file["sources"], file["latents"]


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    examples()
    one_hot_or_scalar()
    bins_or_neighbours()
    corrected()
    correlated_sources()
    protocol_table()
    other_table()
