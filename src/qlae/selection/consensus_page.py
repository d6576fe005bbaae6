"""The page of a consensus: the verdicts, the picture of factors and runs, and traversals of each factor.

In a traversal, one latent is moved through its values, in each run that found the factor. All runs start from the codes
of the same observation. The values of a counterpart are shown in the order of those values of the factor that occur
together with them, since runs number their codes differently.
"""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .._process import evaluation_process
from .._progress import progress_bar
from ..data.pictures import to_colours
from ..metrics.heatmap import escape_math
from ..metrics.inputs import Ints
from ..models.latents import DiscreteLatent
from ..models.model import Model
from ..observations import KINDS, Observations
from ..report.html_page import Section, page, paragraph, picture, plain_table
from ..report.image_pictures import GAP, tile
from ..report.run_pictures import LABEL_SIZE, measure_text
from ..runs.directory import Run
from ..scoring.interventions import NUM_RECONSTRUCTIONS, NUM_STEPS, interpolation_steps
from ..scoring.latent_labels import LatentLabels
from ..scoring.sample import PREFIXES
from .consensus import Consensus
from .consensus_display import describe_comparison, ordered_factors, score_rows
from .consensus_picture import consensus_figure

DPI = 110  # of pictures in the page
TILE = 0.75  # inches from one image to the next
WHITE = 255

HOW_TO_READ = """\
<p>The runs were trained independently. A latent that encodes one source of the data has a counterpart in every run
that found the source; a latent that mixes several sources has none, since each run mixes them differently. So the
latents that other runs have too are kept. No labels were used.</p>
<ul>
<li><b>Similarity</b> of two latents: their mutual information, as a share of the geometric mean of their entropies,
from 0 to 1. A run found a factor if its most similar latent is similar enough. The number given for a factor is the
mean over the other runs.</li>
<li><b>Purity</b>: whether the latents of other runs that are like a factor are also like each other, as they are if
all encode one source. 1 is best, 0 is that of an arbitrary latent.</li>
<li><b>Stability</b>: how often the factor is found again if one of the other runs, or half of the
observations, is left out.</li>
</ul>
"""
HOW_TO_USE = """\
<pre>import qlae
consensus = qlae.consensus([{runs}])
codes = consensus.encode(images)  # (n, {count}), a column for each factor f0, f1, …</pre>
<p><code>codes.npz</code> next to this page has the codes of the {num_images} compared {many} (<code>codes</code>) and
their row numbers (<code>indices</code>); <code>consensus.json</code> has every number of this page.</p>
"""


def consensus_page(consensus: Consensus, *, device: str = "cpu", show: bool = False) -> str:
    """Return the page of a consensus of runs, whose models run on ``device``."""
    strips, scores = decode_strips(consensus, device=device, show=show), consensus.scores()
    order = ordered_factors(consensus)
    confirmed = [k for k in order if consensus.factors[k].is_confirmed]
    rest = [k for k in order if k not in confirmed]
    intro = paragraph(consensus.describe(), "note" if confirmed else "warning")
    intro += paragraph(describe_comparison(consensus))
    notes = [*(f"{text[0].upper()}{text[1:]}" for text in consensus.warnings)]
    notes += [f"Left out: {skip.reason}" for skip in consensus.skipped]
    notes += [f"{consensus.names[run]} is not shown below: {reason}" for run, reason in strips.missing.items()]
    intro += "".join(paragraph(note, "warning") for note in notes)
    sections = []
    if order:
        caption = "One row per factor, one column per run. A cell names the latent that is most like the factor."
        overview = _png(consensus_figure(consensus, has_title=False))
        sections.append(Section("runs", "Factors and runs", picture(overview, caption)))
    for anchor, title, numbers in (("confirmed", "Confirmed factors", confirmed), ("rest", "Not confirmed", rest)):
        if numbers:
            body = "\n".join(_factor(consensus, strips, scores, k) for k in numbers)
            body = f'{_explain(consensus, strips, anchor)}\n<div class="factors">{body}</div>'
            sections.append(Section(anchor, title, body))
    if scores:
        sections.append(Section("scores", "Scores by the sources", _scores(consensus, scores)))
    sections.append(Section("reading", "How to read this page", HOW_TO_READ))
    if order:
        sections.append(Section("use", "How to use the code", _usage(consensus)))
    return page(f"Consensus of {len(consensus.names)} runs: {consensus.data}", intro, sections)


def _explain(consensus: Consensus, strips: Strips, anchor: str) -> str:
    """Return the paragraphs above the factors of a group."""
    place = "row" if strips.has_tiles else "column"
    strip = (
        f"Each {place} is one run: its latent moves through its values and all others stay as they are, from the same "
        f"observation in every run. The first {place} is the latent that the code takes. If the runs found the same "
        f"factor, all {place}s show the same change."
    )
    texts = {
        "confirmed": strip,
        "none": f"These runs have no factor in common. The latents below come closest to one. {strip}",
        "rest": "These latents complete the code with information that the confirmed factors lack. Too few other runs "
        "have them, so their apparent meaning may be an accident of one training.",
    }
    return paragraph(texts[anchor if consensus.confirmed else "none"])


def _factor(consensus: Consensus, strips: Strips, scores: dict[str, Any] | None, number: int) -> str:
    """Return the HTML of one factor: the verdict, the numbers, and its traversals."""
    factor = consensus.factors[number]
    verdict = consensus.describe_factor(number)
    numbers = f"Similarity {factor.replicability:.2f}, purity {factor.purity:.2f}"
    if not np.isnan(factor.stability):
        numbers += f", stability {factor.stability:.0%}"
    if scores and (encoded := scores["sources"][number]):
        numbers += f". Of the sources, it is most informative about {encoded[0]} (NMI {encoded[1]:.2f})"
    title = f"f{number}: {consensus.names[factor.run]}, latent z{factor.latent}"
    parts = [f"<h3>{html.escape(title)}</h3>", paragraph(f"{verdict[0].upper()}{verdict[1:]}. {numbers}.")]
    figure = strip_figure(consensus, strips, number)
    if figure is not None:
        shown = strip_runs(consensus, strips, number)
        caption = f"Traversals of f{number}, decoded by {', '.join(consensus.names[run] for run in shown)}"
        parts.append(picture(_png(figure), caption))
    else:
        parts.append(paragraph("No run that found it has a checkpoint to decode it with."))
    return "\n".join(["<article>", *parts, "</article>"])


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI)
    return content.getvalue()


def _scores(consensus: Consensus, scores: dict[str, Any]) -> str:
    """Return the table of scores."""
    rows = [[name, *(f"{row[key]:.3f}" for key in ("infom", "infoe", "infoc"))] for name, row in score_rows(scores)]
    note = (
        "The data have sources, so the code can be scored. The scores were computed after the consensus was found and "
        "have no influence on it."
    )
    return paragraph(note) + plain_table(["", "InfoM", "InfoE", "InfoC"], rows)


def _usage(consensus: Consensus) -> str:
    """Return how to compute the code in Python."""
    runs = ", ".join(repr(str(run.path)) for run in consensus.runs)
    return HOW_TO_USE.format(
        runs=html.escape(runs),
        count=len(consensus.factors),
        num_images=f"{consensus.num_images:,}",
        many=KINDS[consensus.kind].many,
    )


@dataclass
class Strips:
    """Decoded observations, by factor and run.

    Attributes:
        decoded: (steps, *shape) of each factor in each run that found it.
        steps: (steps,) the codes or values that the latent is set to.
        missing: why a run has no strips, by its position.
        observations: their description.
    """

    decoded: dict[tuple[int, int], NDArray[Any]] = field(default_factory=dict)
    steps: dict[tuple[int, int], NDArray[Any]] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)
    observations: Observations | None = None

    @property
    def has_tiles(self) -> bool:
        """Whether observations are shown as small pictures."""
        return self.observations is not None and bool(self.observations.traits.load("drawing").has_tiles)


def decode_strips(consensus: Consensus, *, device: str = "cpu", show: bool = False) -> Strips:
    """Return the traversals of every factor, decoded by the models of the runs that found it."""
    strips = Strips()
    used = [k for k in range(len(consensus.runs)) if any(factor.found[k] for factor in consensus.factors)]
    with progress_bar("decoding", len(used), show=show) as report:
        for done, run in enumerate(used, start=1):
            try:
                with evaluation_process():
                    _decode_run(consensus, run, consensus.load_model(run, device=device), strips)
            except (ValueError, OSError) as error:  # such as a run without a checkpoint
                strips.missing[run] = str(error)
            report(done)
    return strips


def _decode_run(consensus: Consensus, run: int, model: Model, strips: Strips) -> None:
    """Add the strips of one run."""
    strips.observations = model.observations
    latents, rows, common = _sample(consensus, consensus.runs[run])
    start = latents[_start(len(consensus.indices), rows, common)]
    for k, factor in enumerate(consensus.factors):
        if not factor.found[run]:
            continue
        latent = factor.counterparts[run]
        steps = _steps(model, latent, latents[:, latent])
        if factor.run != run:
            numbers = consensus.codes if consensus.latents is None else consensus.latents
            steps = _aligned(steps, latents[rows, latent], numbers[common, k])
        changed = np.repeat(start[None], len(steps), axis=0)
        changed[:, latent] = steps
        strips.decoded[k, run], strips.steps[k, run] = model.decode(changed, as_array=True), steps


def _sample(consensus: Consensus, run: Run) -> tuple[NDArray[Any], Ints, Ints]:
    """Return the codes or latents (n, n_z) of a run, and the rows that are common to them and to the consensus."""
    arrays, prefix = run.arrays(run.sample_path, ("indices",)), PREFIXES[consensus.weights]
    latents = arrays[prefix + "codes"] if prefix + "codes" in arrays else arrays[prefix + "latents"]
    _, rows, common = np.intersect1d(arrays["indices"], consensus.indices, return_indices=True)
    return latents, rows, common


def _start(num_samples: int, rows: Ints, common: Ints) -> int:
    """Return the row of the observation that strips start from, the first of those that pictures of runs show."""
    drawn = np.random.default_rng(0).choice(num_samples, min(NUM_RECONSTRUCTIONS, num_samples), replace=False)[0]
    places = np.flatnonzero(common == drawn)
    return int(rows[places[0]]) if places.size else 0


def _steps(model: Model, latent: int, column: NDArray[Any]) -> NDArray[Any]:
    """Return the steps of a traversal: the codes that occur (n,), in order, or even steps over the range of numbers."""
    if not isinstance(model.latent, DiscreteLatent):
        return np.asarray(interpolation_steps(column[:, None])[:, 0])
    codes = model.latent.ordered_codes(latent, column, NUM_STEPS)
    codes = codes[np.isin(codes, column)]
    return np.asarray(codes[np.linspace(0, len(codes) - 1, min(len(codes), NUM_STEPS)).round().astype(int)])


def _aligned(steps: NDArray[Any], column: NDArray[Any], reference: NDArray[Any]) -> NDArray[Any]:
    """Return the steps of a counterpart (n,) in the order of the factor (n,).

    >>> _aligned(np.array([0, 1, 2]), np.array([0, 1, 2, 2]), np.array([2.0, 3.0, 1.0, 1.0])).tolist()
    [2, 0, 1]
    """
    if not np.issubdtype(steps.dtype, np.integer):
        falls = np.corrcoef(column, reference)[0, 1] < 0
        return steps[::-1] if falls else steps
    means = [reference[column == step].mean() if (column == step).any() else np.inf for step in steps]
    return np.asarray(steps[np.argsort(means, kind="stable")])


def strip_runs(consensus: Consensus, strips: Strips, number: int) -> list[int]:
    """Return the runs that a factor has strips of: its own, then those that are most similar."""
    factor = consensus.factors[number]
    runs = [run for k, run in strips.decoded if k == number]
    return sorted(runs, key=lambda run: (run != factor.run, -factor.similarities[run]))


def strip_figure(consensus: Consensus, strips: Strips, number: int) -> Figure | None:
    """Return the picture of the traversals of a factor, one row per run for images; None if no run can decode it."""
    runs, factor, observed = strip_runs(consensus, strips, number), consensus.factors[number], strips.observations
    if not runs or observed is None:
        return None
    kind = observed.traits.load("drawing")
    if kind.has_tiles:
        rows = [to_colours(strips.decoded[number, run], observed) for run in runs]
        names = [f"{escape_math(consensus.names[run])} $z_{{{factor.counterparts[run]}}}$" for run in runs]
        return _image_strips(rows, names, is_own=[run == factor.run for run in runs])
    count = max(len(strips.steps[number, run]) for run in runs)
    every = {run: np.linspace(0, len(strips.steps[number, run]) - 1, count).round().astype(int) for run in runs}
    blocks = np.stack([strips.decoded[number, run][every[run]] for run in runs], axis=1)[None]
    steps = np.stack([strips.steps[number, run][every[run]] for run in runs], axis=1)
    flags, names = np.ones(len(runs), dtype=bool), [consensus.names[run] for run in runs]
    labels = LatentLabels(flags, flags, names, tuple(factor.counterparts[run] for run in runs))
    figure: Figure = kind(observed, labels).interventions(blocks, steps, f"f{number}: {kind.moved}")
    return figure


def _image_strips(rows: Sequence[NDArray[np.uint8]], names: Sequence[str], *, is_own: Sequence[bool]) -> Figure:
    """Draw images (steps, h, w, 3) of each run in a row; the name of the run that the factor is from is bold."""
    most, height, width = max(map(len, rows)), *rows[0].shape[1:3]
    sheet = np.full((len(rows), most, height, width, 3), WHITE, np.uint8)
    for row, images in zip(sheet, rows, strict=True):
        row[: len(images)] = images
    pixels = tile(sheet)
    left = max(measure_text(name, LABEL_SIZE) for name in names) + 0.2
    inches = TILE / (width + GAP)
    size = left + pixels.shape[1] * inches, pixels.shape[0] * inches
    figure = Figure(figsize=size)
    axes = figure.add_axes((left / size[0], 0.0, 1 - left / size[0], 1.0))
    axes.imshow(pixels, interpolation="nearest", aspect="auto")
    axes.set_xticks([])
    axes.set_yticks(np.arange(len(rows)) * (height + GAP) + height / 2, names)
    axes.tick_params(length=0, labelsize=LABEL_SIZE)
    axes.spines[:].set_visible(False)
    for label, is_bold in zip(axes.get_yticklabels(), is_own, strict=True):
        label.set_fontweight("bold" if is_bold else "normal")
    return figure
