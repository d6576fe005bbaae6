"""The page of a description: a verdict, a table of all latents, and a card for each. One file without scripts."""

import html
import re
from importlib import resources

from ..observations import KINDS
from ..report.html_page import Section, page, paragraph
from .describe import Description, LatentDescription
from .words import percent

_COMMAND = re.compile("`([^`]+)`")
HOW_TO_READ = """\
<ul>
<li><b>What a latent moves.</b> {rows} {many} were decoded with the latent set to each of its codes in turn, all others
as they are. The effect of a code is the difference from the mean over the codes of the same {one}. Numbers in sentences
compare the two codes that differ most. Intervals hold with 95% confidence: 1.96 standard errors over {many}.
Of more than eight codes, eight are compared; of a continuous latent, the medians of its fifths.</li>
<li><b>Without it</b>: the latent always has one code, the one for which reconstructions of these {many} are best.</li>
<li><b>Found again</b>: other trainings, with other seeds, have a latent that carries the same information. Only then
its meaning is a property of the data rather than an accident of one training.</li>
<li><b>Survives decoding</b>: a code is decoded, and the result encoded again. New combinations draw each latent
independently of the others from its codes in the data. A latent that hardly varies always survives.</li>
<li><b>Goes with</b>: a source or another known column shares information with the latent, beyond what chance explains.
Codes were found without it.</li>
</ul>
"""


def description_page(description: Description) -> str:
    """Return the page as HTML."""
    verdict = description.verdict
    look = "unknown" if verdict is None else "note" if verdict.is_consensus and verdict.confirmed else "warning"
    intro = _COMMAND.sub(r"<code>\1</code>", paragraph(description.summary(), look))
    score = f"{description.score_title} {description.score:.{description.digits}f}{description.unit}"
    many = KINDS[description.kind].many
    measured = f"the {description.num_rows:,} {many} that effects are measured on"
    intro += paragraph(f"{description.about}. Reconstructions of {measured} have {score}.")
    sections = [Section("overview", "All latents", _overview(description))]
    cards = "".join(_card(description, each) for each in description.ranked)
    sections.append(
        Section("latents", "Each latent", f"<div class=cards>{cards}</div>{paragraph(description.unused())}")
    )
    reading = HOW_TO_READ.format(rows=f"{description.num_rows:,}", many=many, one=KINDS[description.kind].one)
    sections.append(Section("reading", "How to read this page", reading))
    style = (resources.files(__package__) / "description.css").read_text()
    return page(f"What the latents of {description.title} mean", intro, sections, style=style)


def _overview(description: Description) -> str:
    """Return the table of all latents in use, the most important first."""
    heads = [
        "Latent",
        "What it moves",
        f"{description.score_title} lost without it",
        "Other runs",
        "Codes that survive",
    ]
    if description.verdict is None:
        heads.remove("Other runs")
    most = max((each.movement.loss.lost for each in description.ranked if each.movement), default=0.0)
    rows = []
    for each in description.ranked:
        assert each.movement is not None
        loss = each.movement.loss
        width = 80 * max(loss.lost, 0.0) / max(most, 1e-12)
        lost = f"{loss.lost:.{description.digits}f} ± {loss.margin:.{description.digits}f}{description.unit}"
        lost = lost.replace("-", "−")
        verdict = f"<td class=text>{_badge(each)}</td>" if each.verdict is not None else ""
        rows.append(
            f'<tr><td class="text name"><a href="#latent-{each.latent}">{html.escape(each.title)}</a></td>'
            f'<td class="text long">{each.glance}{html.escape(each.sentence)}</td>'
            f'<td class=text><span class="share" style="width:{width:.0f}px"></span>{lost}</td>{verdict}'
            f"<td>{percent(each.returned)}</td></tr>"
        )
    head = "".join(f"<th class=text>{html.escape(text)}</th>" for text in heads)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _badge(each: LatentDescription) -> str:
    assert each.verdict is not None
    words = {"confirmed": "found again", "some": "by few", "none": "not found", "unused": "hardly varies"}
    return f'<span class="badge {each.verdict.status}">{words[each.verdict.status]}</span>'


def _card(description: Description, each: LatentDescription) -> str:
    """Return the card of a latent: what it moves, further facts, its pictures, and the numbers behind them."""
    assert each.movement is not None
    facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in description.facts(each))
    badge = f" {_badge(each)}" if each.verdict is not None else ""
    return (
        f'<article id="latent-{each.latent}"><h3>{html.escape(each.title)}{badge}</h3>'
        f'<p class="moves">{html.escape(each.sentence)}</p><ul class="facts">{facts}</ul>{each.html}'
        f"<details><summary>Numbers</summary>{_numbers(description, each)}</details></article>"
    )


def _numbers(description: Description, each: LatentDescription) -> str:
    """Return the numbers behind the sentences."""
    assert each.movement is not None
    settings, loss = each.movement.settings, each.movement.loss
    unit, digits = description.unit, description.digits + 1
    lines = [f"z{each.latent}, column {each.latent} of the codes."]
    if settings.num_used:
        lines.append(f"{settings.num_used} codes occur; perplexity {each.perplexity:.1f}.")
    lines.append(f"{description.score_title} lost: {loss.lost:.{digits}f} ± {loss.margin:.{digits}f}{unit} (95%).")
    lines.append(f"Share of the squared effects that is the same in all rows: {percent(each.movement.consistency)}.")
    lines += [f"NMI with {name}, beyond chance: {nmi:.2f}." for name, nmi in each.sources]
    return "".join(paragraph(line) for line in lines)
