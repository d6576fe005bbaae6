"""The effects of latents on series: which channels, when, and by how much."""

import html
from collections.abc import Sequence

import numpy as np

from .charts import colour, curve_chart, small_curves
from .effects import INTERVAL, Change, Floats, Movement, NumberEffects, interval, largest
from .words import listing, percent, signed

MAX_CHANNELS = 3  # of the charts
NUM_EXAMPLES = 4  # series of the data per code
PARTS = ("at the start", "in the middle", "at the end")
MOSTLY = 0.6  # share of the squared change in a third of the time, so that a sentence names it


class SeriesEffects(NumberEffects):
    """Measures and describes the effects of latents on series."""

    def changes(self, movement: Movement) -> list[Change]:
        """Return the change of each channel at the time step where it is largest on average."""
        sizes = np.sqrt(np.square(movement.sizes / self.scale).mean(0))
        found = []
        for channel in np.argsort(-sizes, kind="stable").tolist():
            mean = movement.differences[..., channel].mean(0)
            step = int(np.abs(mean).argmax())
            change = interval(movement.differences[:, step, channel])
            squares = np.square(movement.differences[..., channel]).mean(0)
            note = f"at step {step}{_when(squares)}"
            found.append(Change(self.observations.names[channel], *change, float(sizes[channel]), note))
        return found

    def say(self, movement: Movement, changes: Sequence[Change]) -> str:
        named = largest(changes)
        if not named:
            return "Hardly moves any channel."
        channels = listing([f"{each.name} (up to {signed(each.change)} {each.note})" for each in named])
        return f"Mostly moves {channels}, {movement.describe_ends()}."

    def show(self, movement: Movement, changes: Sequence[Change]) -> str:
        names, settings = self.observations.names, movement.settings
        shown = [names.index(each.name) for each in (largest(changes) or changes[:1])[:MAX_CHANNELS]]
        panels = [
            curve_chart(
                names[channel],
                movement.average[:, channel] + movement.means[..., channel],
                INTERVAL * movement.errors[..., channel],
                settings.labels,
            )
            for channel in shown
        ]
        caption = (
            "The mean decoded curve with this latent set to each code, other latents as in the data. Bands are 95% "
            "intervals of the code’s effect over series."
        )
        charts = f"<figure><div class=panels>{''.join(panels)}</div><figcaption>{caption}</figcaption></figure>"
        return charts + self._examples(movement, shown[0])

    def glance(self, movement: Movement, changes: Sequence[Change]) -> str:
        channel = self.observations.names.index(changes[0].name)
        curves = (movement.average + movement.means)[list(movement.ends), :, channel]
        count = len(movement.settings)
        styles = [colour(place, count) for place in movement.ends]
        return small_curves(curves, float(curves.min()), float(curves.max()), styles)

    def _examples(self, movement: Movement, channel: int) -> str:
        """Return small panels of series of the data with each code, in the channel that moves most."""
        settings, groups = movement.settings, []
        for members in settings.members:
            series = self.sample.read(self.sample.draw(NUM_EXAMPLES, members))
            groups.append(self.to_numbers(series)[..., channel])
        low, high = min(float(group.min()) for group in groups), max(float(group.max()) for group in groups)
        cells = "".join(
            f"<div><b>{html.escape(label)}</b>{small_curves(group, low, high, [colour(k, len(settings))] * len(group))}"
            f"<small>{percent(settings.shares[k])} of series</small></div>"
            for k, (label, group) in enumerate(zip(settings.labels, groups, strict=True))
        )
        name = html.escape(self.observations.names[channel])
        caption = f"<figcaption>Series of the data with each code: {name}.</figcaption>"
        return f"<figure><div class=examples>{cells}</div>{caption}</figure>"


def _when(squares: Floats) -> str:
    """Return when most of the squared change (t,) happens, or nothing if it is spread over the series.

    >>> _when(np.array([0, 0, 0, 0, 1, 1])), _when(np.ones(6))
    (', mostly at the end', '')
    """
    shares = [float(part.sum()) for part in np.array_split(squares, len(PARTS))]
    best = int(np.argmax(shares))
    return f", mostly {PARTS[best]}" if shares[best] >= MOSTLY * max(sum(shares), 1e-300) else ""
