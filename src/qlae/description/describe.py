"""``describe``: what every latent of a model means, as sentences, tables and a page."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._io import write_bytes
from .._process import evaluation_process, usual_errors
from .._progress import progress_bar
from ..metrics.corrected import correct_information
from ..metrics.information import estimate
from ..metrics.inputs import check_pair
from ..models.building import Networks
from ..scoring.round_trip import NUM_ROWS, draw_rows, recombine
from ..selection.verdict import UNKNOWN, LatentVerdict, RunVerdict, find_verdict
from .effects import FIFTHS, Change, Effects, Ints, Movement, choose_settings, num_rows
from .samples import Sample, take_sample
from .words import percent

FOLDER = "description"  # in the run directory
PAGE_FILE = "index.html"
MAX_ASSOCIATED = 2_000  # rows on which sources are compared with latents
MIN_ASSOCIATION = 0.02  # NMI beyond chance of a source that is named
LATENT_COLUMNS = (
    *("latent", "name", "moves", "score_without", "score_lost", "score_lost_low", "score_lost_high", "found_again"),
    *("verdict", "returned", "returned_recombined", "source", "source_nmi", "num_used", "perplexity", "consistency"),
)


@dataclass(frozen=True, eq=False)
class LatentDescription:
    """What one latent means.

    Attributes:
        latent: its column.
        name: as given in the explorer; empty if it has none.
        movement: the effects of its codes; None if it does not vary.
        changes: what it moves, the largest first.
        sentence: what it moves, for people.
        details: further sentences about it.
        glance, html: a small and a large picture of its effects.
        verdict: whether other runs found it; None if this is not known.
        returned, returned_recombined: shares of its codes that decoding and encoding returns, for codes of the data and
            for recombined ones.
        sources: sources that go with it beyond chance, with their NMI, the closest first.
        perplexity: the number of codes that it uses, if they were equally frequent; NaN if it is continuous.
    """

    latent: int
    name: str
    movement: Movement | None
    changes: tuple[Change, ...]
    sentence: str
    details: tuple[str, ...]
    glance: str
    html: str
    verdict: LatentVerdict | None
    returned: float
    returned_recombined: float
    sources: tuple[tuple[str, float], ...]
    perplexity: float

    @property
    def title(self) -> str:
        """The name for people, such as "wall hue (latent 3)"."""
        return f"{self.name} (latent {self.latent})" if self.name else f"Latent {self.latent}"

    def to_row(self) -> dict[str, Any]:
        """Return the row of `Description.to_frame`."""
        loss = None if self.movement is None else self.movement.loss
        lost, margin = (0.0, 0.0) if loss is None else (loss.lost, loss.margin)
        return {
            "latent": self.latent,
            "name": self.name,
            "moves": self.sentence,
            "score_without": np.nan if loss is None else loss.score - lost,
            "score_lost": lost,
            "score_lost_low": lost - margin,
            "score_lost_high": lost + margin,
            "found_again": None if self.verdict is None else self.verdict.found_again,
            "verdict": "unknown" if self.verdict is None else self.verdict.status,
            "returned": self.returned,
            "returned_recombined": self.returned_recombined,
            "source": self.sources[0][0] if self.sources else "",
            "source_nmi": self.sources[0][1] if self.sources else np.nan,
            "num_used": 0 if self.movement is None else self.movement.settings.num_used,
            "perplexity": self.perplexity,
            "consistency": np.nan if self.movement is None else self.movement.consistency,
        }


@dataclass(frozen=True, eq=False)
class Description:
    """What the latents of a model mean; printing it shows a sentence or two for each.

    Attributes:
        latents: one description per latent, in their order.
        verdict: on the run as a whole; None if it was never compared with others.
        title: of the page.
        about: the data and the sample.
        num_rows: on which interventions were made.
        score_title, unit, digits: of the score of reconstructions, R² or the PSNR in dB.
        score: with all latents.
        kind: of the observations.
    """

    latents: tuple[LatentDescription, ...]
    verdict: RunVerdict | None
    title: str
    about: str
    num_rows: int
    score_title: str
    unit: str
    digits: int
    score: float
    kind: str

    @property
    def ranked(self) -> tuple[LatentDescription, ...]:
        """The latents that vary, the one without which reconstructions lose most first."""
        used = [each for each in self.latents if each.movement is not None]
        return tuple(sorted(used, key=lambda each: -each.movement.loss.lost if each.movement else 0.0))

    def summary(self) -> str:
        """Return the verdict on the whole."""
        titles = [each.name or f"latent {each.latent}" for each in self.latents]
        return UNKNOWN if self.verdict is None else self.verdict.describe(titles)

    def facts(self, each: LatentDescription) -> list[str]:
        """Return sentences about a latent that is in use, after the one that says what it moves."""
        assert each.movement is not None
        loss, facts = each.movement.loss, list(each.details)
        before, after = (f"{score:.{self.digits}f}{self.unit}" for score in (loss.score, loss.score - loss.lost))
        if loss.lost > loss.margin:
            facts.append(f"Without it, {self.score_title} falls from {before} to {after}.")
        else:
            facts.append(f"Without it, {self.score_title} is {after} instead of {before}: no clear difference.")
        if each.verdict is not None:
            facts.append(f"{each.verdict.text[0].upper()}{each.verdict.text[1:]}.")
        facts.append(
            f"{percent(each.returned)} of its codes survive decoding and encoding, "
            f"{percent(each.returned_recombined)} in new combinations."
        )
        if each.sources:
            facts.append(f"Goes with {', '.join(f'{name} ({_strength(nmi)})' for name, nmi in each.sources[:3])}.")
        return facts

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.about}", self.summary()]
        for each in self.ranked:
            lines += ["", each.title, f"  {each.sentence}", *(f"  {fact}" for fact in self.facts(each))]
        if unused := self.unused():
            lines += ["", unused]
        return "\n".join(lines)

    def unused(self) -> str:
        """Return a sentence about the latents that always have the same code, or nothing."""
        still = [str(each.latent) for each in self.latents if each.movement is None]
        if not still:
            return ""
        one = len(still) == 1
        return f"Latent{'' if one else 's'} {', '.join(still)} always {'has' if one else 'have'} the same code."

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per latent; ``docs/describe.md`` explains the columns."""
        return pd.DataFrame([each.to_row() for each in self.latents], columns=list(LATENT_COLUMNS))

    def effects_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per latent and feature, region of the picture or channel.

        ``change`` is the mean difference between the codes ``first`` and ``last``, with its 95% interval over rows.
        """
        rows = []
        for each in self.latents:
            if each.movement is not None:
                first, last = (each.movement.settings.values[place].item() for place in each.movement.ends)
                label = {"latent": each.latent, "name": each.name, "first": first, "last": last}
                rows += [{**label, **_change_row(change)} for change in each.changes]
        names = ["latent", "name", "first", "last", "feature", "change", "change_low", "change_high", "unit", "size"]
        return pd.DataFrame(rows, columns=names)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``index.html``, ``latents.csv`` and ``effects.csv`` to a folder, and return their paths.

        The folder is created if it does not exist. It must be empty or hold an earlier description, which is replaced.
        """
        from .page import description_page

        target = Path(folder)
        contents = {
            PAGE_FILE: description_page(self),
            "latents.csv": self.to_frame().to_csv(index=False, float_format="%.6g", lineterminator="\n"),
            "effects.csv": self.effects_frame().to_csv(index=False, float_format="%.6g", lineterminator="\n"),
        }
        require_description_folder(target)
        target.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_bytes(target / name, content.encode())
        return [target / name for name in contents]


def require_description_folder(folder: Path) -> None:
    """Raise an error unless a description can be written to a folder: a new one, an empty one, or that of another."""
    if folder.is_file():
        raise ValueError(f"{folder} is a file; give a folder with out=…")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    others = sorted(names - {PAGE_FILE, "latents.csv", "effects.csv"})
    if others or (names and "latents.csv" not in names):
        raise ValueError(
            f"{folder} holds other files ({(others or sorted(names))[0]}, …); choose a new or empty folder with out=…"
        )


@usual_errors()
def describe(
    run: Any, data: Any = None, *, networks: Networks | None = None, device: str = "cpu", show: bool = False
) -> Description:
    """Describe what every latent of a model means, by changing its codes and looking at what the decoder does.

    Args:
        run: a run directory, the folder or name of an exported or shipped model, or a model that ``qlae.load`` returns.
        data: the observations to measure on: a data set, its name or path, or an array or data frame of the form that
            the model takes. By default the evaluation sample of the run.
        networks: the encoder and the decoder, if the run was trained with custom networks.
        device: where the model runs.
        show: whether to draw progress bars.

    Returns:
        The description: print it, call ``to_frame()``, or ``save(folder)`` it as a page and CSV files.

    Raises:
        ValueError: ``run`` has no decoder, or its data are not available and none were passed.
    """
    with evaluation_process():
        sample = take_sample(run, data, networks=networks, device=device, show=show)
        return describe_sample(sample, show=show)


def describe_sample(sample: Sample, *, show: bool = False) -> Description:
    """Return the description of a model from a sample of its codes."""
    num_latents = sample.codes.shape[1]
    settings = [choose_settings(sample, latent) for latent in range(num_latents)]
    rows = sample.draw(num_rows(sample, settings), sample.measured)
    effects: Effects = sample.model.observations.traits.load("effects")(sample, rows)
    verdict = None if sample.run is None else find_verdict(sample.run, num_latents)
    returned = _round_trip(sample)
    sources = _associated_sources(sample)
    latents = []
    with progress_bar("describing", num_latents, show=show) as report:
        for latent, choice in enumerate(settings):
            movement = effects.move(latent, choice) if len(choice) > 1 else None
            latents.append(
                LatentDescription(
                    latent=latent,
                    name=sample.names["latents"].get(str(latent), ""),
                    movement=movement,
                    **_describe_movement(effects, movement),
                    verdict=None if verdict is None else verdict.latents[latent],
                    returned=float(returned[0][latent]),
                    returned_recombined=float(returned[1][latent]),
                    sources=sources[latent],
                    perplexity=_perplexity(sample.codes[:, latent]) if sample.has_codes else np.nan,
                )
            )
            report(latent + 1)
    return Description(
        latents=tuple(latents),
        verdict=verdict,
        title=sample.title,
        about=sample.about,
        num_rows=len(rows),
        score_title=effects.score_title,
        unit=effects.unit,
        digits=effects.digits,
        score=effects.score,
        kind=sample.model.observations.kind,
    )


def _describe_movement(effects: Effects, movement: Movement | None) -> dict[str, Any]:
    """Return the fields of a `LatentDescription` that say what it moves."""
    if movement is None:
        return {"changes": (), "sentence": "", "details": (), "glance": "", "html": ""}
    changes = effects.changes(movement)
    return {
        "changes": tuple(changes),
        "sentence": effects.say(movement, changes),
        "details": tuple(effects.explain(movement)),
        "glance": effects.glance(movement, changes),
        "html": effects.show(movement, changes),
    }


def _round_trip(sample: Sample) -> list[NDArray[np.float64]]:
    """Return for each latent the share of codes that return, of the data and recombined; of a number, its fifth."""
    encode, shares = sample.model.encode if sample.has_codes else sample.model.latents, []
    for codes in (draw_rows(sample.codes, NUM_ROWS), recombine(sample.codes, min(NUM_ROWS, len(sample)))):
        before, after = codes, encode(sample.decode(codes))
        if not sample.has_codes:
            before, after = (_fifths(table, sample.codes) for table in (before, after))
        shares.append(np.asarray((before == after).mean(0)))
    return shares


def _fifths(table: NDArray[Any], sample: NDArray[Any]) -> Ints:
    """Return the fifth of the sample that each number of a table (n, num_latents) lies in."""
    edges = np.quantile(sample, np.arange(1, len(FIFTHS)) / len(FIFTHS), axis=0)
    return np.stack([np.searchsorted(edges[:, j], column) for j, column in enumerate(table.T)], axis=1)


def _associated_sources(sample: Sample) -> list[tuple[tuple[str, float], ...]]:
    """Return for each latent the sources that go with it beyond chance, with their NMI, the closest first."""
    found: list[tuple[tuple[str, float], ...]] = [()] * sample.codes.shape[1]
    if not sample.source_names:
        return found
    rows = sample.draw(MAX_ASSOCIATED)
    sources, latents = check_pair(
        sample.sources[rows], sample.codes[rows], latent_kind="codes" if sample.has_codes else "continuous"
    )
    shares = correct_information(estimate(sources, latents, k=3, seed=0), sources, latents, k=3, seed=0).shares
    for latent, column in enumerate(shares.T):
        order = [i for i in np.argsort(-column, kind="stable").tolist() if column[i] >= MIN_ASSOCIATION]
        found[latent] = tuple((sample.source_names[i], round(float(column[i]), 4)) for i in order)
    return found


def _perplexity(codes: Ints) -> float:
    shares = np.unique(codes, return_counts=True)[1] / len(codes)
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _strength(nmi: float) -> str:
    """Return how closely a source goes with a latent, as a word.

    >>> _strength(0.05), _strength(0.3), _strength(0.8)
    ('weakly', 'partly', 'closely')
    """
    return "closely" if nmi >= 0.5 else "partly" if nmi >= 0.2 else "weakly"


def _change_row(change: Change) -> dict[str, Any]:
    return {
        "feature": change.name,
        "change": change.change,
        "change_low": change.low,
        "change_high": change.high,
        "unit": change.unit.strip(),
        "size": change.size,
    }
