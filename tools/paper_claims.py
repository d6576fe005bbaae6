"""Write the claims of the paper and what the runs of ``results/paper-small`` say about them into ``results/README.md``.

    python tools/paper_claims.py            # replace the tables and paragraphs between the marks
    python tools/paper_claims.py --check    # fail if they are outdated

All figures and verdicts are computed from ``runs.csv``, from the NMI in ``results.json`` and from the published tables.
"A above B" means that the mean of A over seeds is higher, by Welch's t-test (one-sided, 5%).
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from textwrap import wrap

import numpy as np
import pandas as pd
from scipy import stats

from qlae.metrics.information import concentration
from qlae.paper_tables import PAPER_ROWS, PRIOR, published_results
from qlae.study.tuning import select

RESULTS = Path(__file__).parents[1] / "results"
README = RESULTS / "README.md"
START, END = "<!-- claims: written by tools/paper_claims.py -->", "<!-- end of claims -->"
DATA = {"shapes3d": "Shapes3D", "mpi3d": "MPI3D", "falcor3d": "Falcor3D", "isaac3d": "Isaac3D"}
SCORES = {"infom": "InfoM", "infoe": "InfoE", "infoc": "InfoC", "d": "D", "i": "I", "c": "C", "psnr": "PSNR"}
RECONSTRUCTING = [model for model in PAPER_ROWS if "gan" not in model]
LEVEL = 0.05
SMALL_SLACK = 3.0  # dB


class Claims:
    """The runs of a folder, and sentences about them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.runs = pd.read_csv(folder / "runs.csv")
        self.counted = self.runs[self.runs.counts]
        self.groups = dict(list(self.counted.groupby(["data", "model"])))

    def values(self, data: str, model: str, score: str) -> "pd.Series[float]":
        return self.groups[data, model][score].dropna()

    def mean(self, data: str, model: str, score: str) -> float:
        return float(self.values(data, model, score).mean())

    @cached_property
    def published(self) -> pd.DataFrame:
        return pd.Series({key: cell.mean for key, cell in published_results().items()}).unstack()

    @cached_property
    def means(self) -> pd.DataFrame:
        return self.counted.groupby(["data", "model"])[list(SCORES)].mean()

    def is_above(self, data: str, one: str, other: str, score: str) -> bool | None:
        """Return whether a model has the higher mean; None with fewer than three seeds of either."""
        first, second = self.values(data, one, score), self.values(data, other, score)
        if min(len(first), len(second)) < 3:
            return None
        return bool(stats.ttest_ind(first, second, equal_var=False, alternative="greater").pvalue < LEVEL)

    def compare(self, one: str, other: str, score: str, *, digits: int = 2) -> str:
        """Return the means of two models on each data set, with the verdict."""
        parts, verdicts = [], {}
        for data, name in DATA.items():
            verdicts[name] = self.is_above(data, one, other, score)
            if min(len(self.values(data, one, score)), len(self.values(data, other, score))):
                numbers = f"{self.mean(data, one, score):.{digits}f} and {self.mean(data, other, score):.{digits}f}"
                n = min(len(self.values(data, one, score)), len(self.values(data, other, score)))
                parts.append(f"{name} {numbers}" + f" (n = {n})" * (n < 5))
        text = f"{SCORES[score]} of `{one}` and `{other}`: {', '.join(parts) or 'no runs yet'}"
        tested = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
        return f"{text}; {self._where(tested)}." if tested else f"{text}."

    @staticmethod
    def _where(verdicts: dict[str, bool]) -> str:
        above = [name for name, verdict in verdicts.items() if verdict]
        return f"above on {join(above)}" if above else "above on none of them"

    def agreement(self, score: str) -> tuple[int, float, float, list[str]]:
        """Return Spearman's ρ with the published means: number of rows, ρ, p, and ρ on each data set."""
        both = pd.concat([self.means[score], self.published[score]], axis=1, keys=["ours", "theirs"]).dropna()
        result = stats.spearmanr(both.ours, both.theirs)
        by_data = []
        for data in DATA:
            rows = both[both.index.get_level_values(0) == data]
            by_data.append(f"{rows.ours.corr(rows.theirs, method='spearman'):.2f}" if len(rows) >= 5 else "–")
        return len(both), float(result.statistic), float(result.pvalue), by_data


def join(names: Sequence[str]) -> str:
    """Return names as in "a, b and c"."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def signed(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers).replace("-", "−")


def paragraph(claim: str, verdict: str, sentences: Iterable[str]) -> str:
    text = f"**{claim}** *{verdict}.* {' '.join(sentences)}"
    return "\n".join(wrap(text, 120, break_long_words=False, break_on_hyphens=False))


def say(verdicts: Sequence[bool | None]) -> str:
    """Return a verdict over data sets."""
    known = [verdict for verdict in verdicts if verdict is not None]
    if not known:
        return "Open"
    number = sum(known)
    words = {len(known): "Holds", 0: "Does not hold"}
    return words.get(number, f"Holds on {number} of {len(known)} data sets")


def table_of_runs(claims: Claims) -> str:
    heads = " | ".join(DATA.values())
    lines = [f"| model | {heads} |", f"|---|{'---|' * len(DATA)}"]
    for model in PAPER_ROWS:
        cells = []
        for data in DATA:
            values = claims.values(data, model, "infom")
            cells.append(f"{values.mean():.2f} ± {values.std():.2f} ({claims.published.infom[data, model]:.2f})")
        lines.append(f"| `{model}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_ranks(claims: Claims) -> str:
    lines = [f"| score | rows | ρ | p | {' | '.join(DATA.values())} |", f"|---|---|---|---|{'---|' * len(DATA)}"]
    for score, name in SCORES.items():
        number, rho, p, by_data = claims.agreement(score)
        lines.append(f"| {name} | {number} | {rho:.2f} | {p:.1g} | {' | '.join(by_data)} |")
    return "\n".join(lines)


def about_runs(claims: Claims) -> str:
    reruns = claims.counted
    on_cpu = reruns[reruns.device == "cpu"]
    rows = on_cpu.groupby(["data", "model"]).seed.nunique()
    complete = int((rows == 5).sum())
    seeds = join([str(seed) for seed in sorted(on_cpu.seed.unique())])
    places = join([f"{DATA[d]} ({len(g)})" for d, g in on_cpu.groupby("data", sort=False)])
    text = (
        f"Of the {len(reruns)} reruns, {len(on_cpu)} were trained on one CPU core each, in float32 and with DCI (seed "
        f"{seeds}: {places}); they replace runs of the same seed on an H200 in bfloat16, of which "
        f"{len(reruns) - len(on_cpu)} remain, without DCI. {complete} of {len(claims.groups)} rows have all five seeds "
        f"from the CPU, {len(rows) - complete} mix both machines; `device` and `precision` in `runs.csv` name them. "
        f"The {len(claims.runs) - len(reruns)} tuning runs are those of the H200."
    )
    return "\n".join(wrap(text, 120, break_long_words=False, break_on_hyphens=False))


def quantization(claims: Claims) -> str:
    verdicts = [claims.is_above(data, "qlae", "ae", score) for score in ("infom", "infoc") for data in DATA]
    known = [bool(v) for v in verdicts]
    return paragraph(
        "Latent quantization with regularization increases modularity and compactness of the autoencoder.",
        f"Holds in {sum(known)} of {len(known)} comparisons",
        [claims.compare("qlae", "ae", score) for score in ("infom", "infoc", "d", "c")],
    )


def explicitness(claims: Claims) -> str:
    gains = {s: [claims.mean(d, "qlae", s) - claims.mean(d, "ae", s) for d in DATA] for s in ("infoe", "i")}
    lower = sum(gain < 0 for gain in gains["infoe"])
    return paragraph(
        "Explicitness improves, more under I than under InfoE.",
        f"Does not hold for InfoE, which is lower than that of `ae` on {lower} of 4 data sets"
        if lower
        else "Holds for InfoE",
        [claims.compare("qlae", "ae", score) for score in ("infoe", "i")],
    )


def prior(claims: Claims) -> str:
    sentences, verdicts = [], []
    for data, name in DATA.items():
        best = max(PRIOR, key=lambda model: claims.mean(data, model, "infom"))
        ours, theirs = claims.mean(data, "qlae", "infom"), claims.mean(data, best, "infom")
        verdicts.append(claims.is_above(data, "qlae", best, "infom"))
        word = "above" if verdicts[-1] else "not above"
        sentences.append(f"On {name}, `qlae` has {ours:.2f}, {word} the best prior method, `{best}` with {theirs:.2f}.")
    ranks = []
    for data, name in DATA.items():
        known = {m: claims.mean(data, m, "d") for m in (*PRIOR, "qlae") if len(claims.values(data, m, "d"))}
        if len(known) == len(PRIOR) + 1:
            ordered = sorted(known, key=lambda model: -known[model])
            ranks.append(f"{name}: `{ordered[0]}` {known[ordered[0]]:.2f}, then `{ordered[1]}` {known[ordered[1]]:.2f}")
    sentences.append(f"Highest D (CPU runs alone): {'; '.join(ranks) or 'no data set is complete yet'}.")
    sentences.append("The paper excepts β-VAE and β-TCVAE on Falcor3D.")
    return paragraph("QLAE outperforms all prior methods in modularity.", say(verdicts), sentences)


def reconstruction(claims: Claims) -> str:
    gaps = {data: claims.mean(data, "ae", "psnr") - claims.mean(data, "qlae", "psnr") for data in DATA}
    theirs = {data: claims.published.psnr[data, "ae"] - claims.published.psnr[data, "qlae"] for data in DATA}
    parts = [f"{name} {gaps[data]:.1f} ({theirs[data]:.1f})" for data, name in DATA.items()]
    within = sum(gaps[data] <= max(theirs[data], 0) + 1 for data in DATA)
    return paragraph(
        "QLAE does not compromise reconstruction.",
        f"Holds on {within} of 4 data sets",
        [
            f"PSNR of `ae` minus that of `qlae`, in dB (in brackets the paper): {', '.join(parts).replace('-', '−')}.",
            "Counted as holding where the difference is at most 1 dB larger than the paper's or than none.",
        ],
    )


def compactness(claims: Claims) -> str:
    verdicts, parts = [], []
    for data, name in DATA.items():
        numbers = {model: claims.mean(data, model, "infoc") for model in ("beta-vae", "beta-tcvae", "qlae")}
        verdicts.append(min(numbers["beta-vae"], numbers["beta-tcvae"]) > numbers["qlae"])
        parts.append(f"{name} {', '.join(f'{number:.2f}' for number in numbers.values())}")
    return paragraph(
        "InfoC ranks β-VAE and β-TCVAE above QLAE.",
        say(verdicts),
        [
            f"Mean InfoC of `beta-vae`, `beta-tcvae` and `qlae`: {'; '.join(parts)}. In the paper's tables it holds "
            "for β-VAE on Falcor3D and Isaac3D (equal on MPI3D) and for β-TCVAE on Shapes3D, MPI3D and Falcor3D.",
            "An InfoC of 1 with one active latent is no success.",
        ],
    )


def metrics(claims: Claims) -> str:
    parts, alike = [], []
    for (one, other), theirs in zip((("infom", "d"), ("infoe", "i"), ("infoc", "c")), (0.80, 0.77, 0.59), strict=True):
        both = claims.counted[[one, other, "data", "model"]].dropna().groupby(["data", "model"]).mean()
        rho = both[one].corr(both[other], method="spearman")
        parts.append(f"{SCORES[one]} and {SCORES[other]} {rho:.2f} over {len(both)} rows ({theirs:.2f})")
        alike += [f"{SCORES[one]} and {SCORES[other]}"] * bool(rho >= 0.5)
    return paragraph(
        "InfoMEC and DCI rank models alike.",
        f"Holds for {join(alike)}" if alike else "Does not hold",
        [f"Spearman's ρ between row means of the runs that have both, in brackets the paper: {'; '.join(parts)}."],
    )


def ablation(claims: Claims, title: str, other: str, note: str = "") -> str:
    return paragraph(
        title,
        say([claims.is_above(data, "qlae", other, "infom") for data in DATA]),
        [claims.compare("qlae", other, score) for score in ("infom", "infoe", "d")] + [note] * bool(note),
    )


def gans(claims: Claims) -> str:
    return paragraph(
        "QLInfoWGAN-GP improves on InfoWGAN-GP.",
        say([claims.is_above(data, "qlinfowgan-gp", "infowgan-gp", "infom") for data in DATA]),
        [claims.compare("qlinfowgan-gp", "infowgan-gp", score) for score in ("infom", "infoe", "infoc")]
        + [claims.compare("qlinfowgan-gp", "infowgan-gp", "psnr", digits=1)]
        + ["After 8,000 updates none of the GANs has converged."],
    )


def gan_ablation(claims: Claims) -> str:
    names = "qlinfowgan-gp", "qlinfowgan-gp-no-weight-decay"
    ours = [claims.mean(data, names[0], "infom") - claims.mean(data, names[1], "infom") for data in DATA]
    theirs = [claims.mean(data, "qlae", "infom") - claims.mean(data, "qlae-no-weight-decay", "infom") for data in DATA]
    return paragraph(
        "Weight decay matters less for QLInfoWGAN-GP than for QLAE.",
        "Holds" if max(map(abs, ours)) < max(map(abs, theirs)) else "Does not hold",
        [
            f"On {join(list(DATA.values()))}, InfoM of the GAN falls without it by "
            f"{signed(ours)} (a minus sign: rises), that of QLAE by {signed(theirs)}."
        ],
    )


def pruning(claims: Claims) -> str:
    parts = []
    for data, model in (("falcor3d", "beta-vae"), ("mpi3d", "beta-tcvae")):
        pruned, unpruned = [], []
        for run in claims.groups[data, model].run:
            scores = json.loads((claims.folder / "runs" / run / "results.json").read_text())["raw"]
            matrix = np.array(scores["nmi"])
            pruned.append((scores["infom"], scores["infoc"]))
            unpruned.append((concentration(matrix.T), concentration(matrix)))
        numbers = ["({:.2f}, {:.2f})".format(*np.mean(pairs, 0)) for pairs in (pruned, unpruned)]
        parts.append(f"`{model}` on {DATA[data]} {numbers[0]} with and {numbers[1]} without pruning")
    return paragraph(
        "Inactive latents must be removed before InfoM and InfoC are computed.",
        "Holds where latents are inactive",
        [
            f"Mean (InfoM, InfoC): {'; '.join(parts)}. The paper has (0.71, 0.70) and (0.47, 0.51) for a β-VAE on "
            "Falcor3D."
        ],
    )


def vignettes(claims: Claims) -> str:
    table = pd.read_csv(claims.folder / "report" / "vignettes.csv")
    parts, changes = [], {}
    for name, text in (
        ("bins", "over 2 to 160 bins"),
        ("neighbours", "over k of 1 to 20"),
        ("depth", "over depths of 1 to 16"),
    ):
        of_one = table[table.vignette == name]
        spans = of_one.groupby(["score", "model"], sort=False).value.agg(lambda v: v.max() - v.min())
        largest = spans.groupby("score", sort=False).max()
        changes[name] = largest.max()
        parts.append(f"{text} {join([f'{SCORES[score]} {value:.2f}' for score, value in largest.items()])}")
    models = join([f"`{model}`" for model in table.model.unique()])
    return paragraph(
        "Histograms and DCI depend on their settings, the nearest-neighbour estimate does not.",
        "Holds" if changes["neighbours"] < 0.1 < min(changes["bins"], changes["depth"]) else "Does not hold",
        [
            f"Largest change of a score of {models} on Shapes3D: {'; '.join(parts)} "
            "([bins](paper-small/report/vignette-bins.png), [k](paper-small/report/vignette-neighbours.png), "
            "[depth](paper-small/report/vignette-depth.png)).",
        ],
    )


def negative(claims: Claims) -> str:
    runs = pd.read_csv(RESULTS / "negative-small" / "runs.csv")
    groups = dict(list(runs[runs.counts].groupby("model").infom))
    better, ranges = [], []
    for base in ("qlae", "qlinfowgan-gp"):
        others = {name: values for name, values in groups.items() if name.startswith(f"{base}-")}
        better += [
            name
            for name, values in others.items()
            if stats.ttest_ind(values, groups[base], equal_var=False, alternative="greater").pvalue < LEVEL
        ]
        means = [values.mean() for values in others.values()]
        ranges.append(
            f"the {len(others)} modifications of `{base}` have an InfoM of {min(means):.2f} to {max(means):.2f}, where "
            f"it has {groups[base].mean():.2f} ± {groups[base].std():.2f}"
        )
    worst = min(groups, key=lambda name: groups[name].mean())
    return paragraph(
        "The negative results.",
        f"Hold except for {join([f'`{name}`' for name in better])}"
        if better
        else "Hold: none of the modifications helps",
        [
            f"On Shapes3D ([plan](negative-small/plan.toml), [runs](negative-small/runs.csv), H200), "
            f"{'; '.join(ranges)}.",
            f"The worst is `{worst}` with {groups[worst].mean():.2f}.",
            f"Of {len(groups) - 2} tests at 5%, one is expected to find a difference by chance.",
        ],
    )


def selection(claims: Claims) -> str:
    tuning = claims.runs[claims.runs.stage == "tune"]
    changes, low = [], []
    for (data, model), grid in tuning.groupby(["data", "model"], sort=False):
        if model not in RECONSTRUCTING:
            continue
        scores = [(row.value, {"infom": row.infom, "psnr": row.psnr}) for row in grid.itertuples()]
        chosen = {db: next(c for c in select(scores, db) if c.selected) for db in (6.0, SMALL_SLACK)}
        by_value = grid.set_index("value").infoe
        near = [c.value for c in select(scores, 6.0) if c.near]
        if by_value[chosen[6.0].value] < 0.5 * by_value[near].max():
            low.append(f"`{model}` on {DATA[data]} ({by_value[chosen[6.0].value]:.2f}, {by_value[near].max():.2f})")
        if chosen[6.0].value != chosen[SMALL_SLACK].value:
            values = [chosen[db].value for db in (6.0, SMALL_SLACK)]
            text = " to ".join(f"{value:g}" for value in values)
            numbers = " to ".join(f"{chosen[db].quality:.2f}" for db in (6.0, SMALL_SLACK))
            encoded = " to ".join(f"{by_value[value]:.2f}" for value in values)
            changes.append(f"`{model}` on {DATA[data]} ({text}; InfoM {numbers}, InfoE {encoded})")
    text = (
        '**Some selected values switch sources off.** The paper filters autoencoders for "near-perfect data '
        'reconstruction" and gives no number; the 6 dB below the best PSNR of the grid are our reading of its tables '
        f"([selection](../docs/study.md#selection)). Here they admit values with less than half of the InfoE of "
        f"another eligible value (in brackets InfoE of the selected and of that value): {join(low)}. The report of "
        f"a study warns about them. With {SMALL_SLACK:g} dB, other values would be selected in {len(changes)} of the "
        f"{len(tuning[tuning.model.isin(RECONSTRUCTING)].groupby(['data', 'model']))} grids of autoencoders, by their "
        f"tuning runs: {'; '.join(changes)}. A high InfoM with a low InfoE is no success."
    )
    return "\n".join(wrap(text, 120, break_long_words=False, break_on_hyphens=False))


def content(claims: Claims) -> str:
    """Return the generated part of the page."""
    scalar = "The paper adds that the gap is small in InfoMEC only because codes are scored and not vectors."
    parts = [
        about_runs(claims),
        "InfoM, mean ± standard deviation over the five seeds, with the paper's value in brackets:",
        table_of_runs(claims),
        "Spearman's ρ between our means and the paper's, over all rows that have the score, and on each data set "
        "with at\nleast five of them:",
        table_of_ranks(claims),
        selection(claims),
        'One paragraph per claim of the paper follows. "Above" is by Welch\'s t-test (one-sided, 5%) over seeds.',
        quantization(claims),
        explicitness(claims),
        prior(claims),
        reconstruction(claims),
        compactness(claims),
        metrics(claims),
        ablation(claims, "Weight decay matters.", "qlae-no-weight-decay"),
        ablation(claims, "A codebook per dimension is better than a global one.", "qlae-global-codebook"),
        ablation(claims, "Scalar codebooks are better than vectors.", "vq-vae-weight-decay", scalar),
        gans(claims),
        gan_ablation(claims),
        pruning(claims),
        vignettes(claims),
        negative(claims),
    ]
    return "\n\n".join(parts).replace("| -", "| −")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    text = README.read_text()
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    new = f"{before}{START}\n\n{content(Claims(RESULTS / 'paper-small'))}\n\n{END}{after}"
    if arguments.check:
        return int(new != text)
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
