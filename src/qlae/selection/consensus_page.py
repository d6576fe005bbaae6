"""The files of a consensus: consensus.json, the codes of the sample, a picture, and a page."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._io import write_bytes, write_json, write_npz
from .consensus_display import describe_comparison, ordered_factors
from .consensus_picture import consensus_figure, plot_consensus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .consensus import Consensus
    from .consensus_strips import Strips

JSON_FILE, CODES_FILE, PICTURE_FILE, PAGE_FILE = "consensus.json", "codes.npz", "factors.png", "index.html"
DPI = 110

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


def write_consensus(consensus: Consensus, folder: Path, *, device: str = "cpu", show: bool = False) -> list[Path]:
    """Write the files of a consensus; see `Consensus.save`."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = consensus.scores()
    paths = [folder / name for name in (JSON_FILE, CODES_FILE, PICTURE_FILE)]
    write_json(paths[0], consensus.to_dict() | {"scores": scores})
    arrays = {"codes": consensus.codes}
    if consensus.latents is not None:
        arrays["latents"] = consensus.latents
    if consensus.runs:
        arrays["indices"] = consensus.indices
    write_npz(paths[1], **arrays)
    plot_consensus(consensus, paths[2])
    if consensus.runs:
        from .consensus_strips import decode_strips

        strips = decode_strips(consensus, device=device, show=show)
        paths.append(folder / PAGE_FILE)
        write_bytes(paths[3], consensus_page(consensus, strips, scores).encode())
    return paths


def consensus_page(consensus: Consensus, strips: Strips, scores: dict[str, Any] | None) -> str:
    """Return the page, from the strips of `decode_strips` and the scores."""
    from ..report.html_page import Section, page, paragraph, picture

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
        caption = "One row per factor, one column per run. z14 is the latent of that run that is most like the factor."
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
    from ..report.html_page import paragraph

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
    from ..report.html_page import paragraph, picture
    from .consensus_strips import strip_figure, strip_runs

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
    from ..report.html_page import paragraph, plain_table

    rows = [[name, *(f"{row[key]:.3f}" for key in ("infom", "infoe", "infoc"))] for name, row in score_rows(scores)]
    note = (
        "The data have sources, so the code can be scored. The scores were computed after the consensus was found and "
        "have no influence on it."
    )
    return paragraph(note) + plain_table(["", "InfoM", "InfoE", "InfoC"], rows)


def score_rows(scores: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """Return the rows of the table of scores, with their names."""
    rows = [("consensus", scores["code"])]
    if scores["confirmed"] and scores["confirmed"] != scores["code"]:
        rows.append(("confirmed factors alone", scores["confirmed"]))
    if scores["mean"]:
        rows.append((f"mean of {scores['num_runs']} single runs", scores["mean"]))
        rows.append(("single run with the highest InfoM", scores["best"]))
    return rows


def _usage(consensus: Consensus) -> str:
    """Return how to compute the code in Python."""
    from ..observations import KINDS

    runs = ", ".join(repr(str(run.path)) for run in consensus.runs)
    return HOW_TO_USE.format(
        runs=html.escape(runs),
        count=len(consensus.factors),
        num_images=f"{consensus.num_images:,}",
        many=KINDS[consensus.kind].many,
    )
