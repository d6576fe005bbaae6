"""The effects of latents on vectors: ranked features, in their own units."""

import html
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from .charts import colour, feature_chart
from .effects import MIN_CHANGE, Change, Floats, Movement, NumberEffects, interval, largest
from .words import listing, number, percent, signed

MAX_FEATURES = 8  # of a chart
MAX_AVERAGED = 1000  # rows with a code
MAX_COLUMNS = 5  # features of the table of codes


class VectorEffects(NumberEffects):
    """Measures and describes the effects of latents on vectors."""

    summary: ClassVar[str] = "the means of their features"  # what `summarise` returns

    def changes(self, movement: Movement) -> list[Change]:
        order = np.argsort(-movement.sizes / self.scale, kind="stable")
        return [
            Change(
                self.observations.names[i],
                *interval(movement.differences[:, i]),
                float(movement.sizes[i] / self.scale[i]),
            )
            for i in order.tolist()
        ]

    def say(self, movement: Movement, changes: Sequence[Change]) -> str:
        named = largest(changes)
        if not named:
            return "Hardly moves any feature."
        features = listing([f"{each.name} ({signed(each.change)}{each.unit})" for each in named])
        return f"Mostly moves {features}, {movement.describe_ends()}."

    def show(self, movement: Movement, changes: Sequence[Change]) -> str:
        changes = self.distinct(changes)
        shown = [each for each in changes if each.size >= MIN_CHANGE][:MAX_FEATURES] or list(changes[:1])
        places = [self.observations.names.index(each.name) for each in shown]
        caption = (
            "Effect of each code on the decoded features, relative to the row’s other codes, with 95% intervals over "
            f"rows. At the right: the difference {movement.describe_ends()}, in the unit of the feature."
        )
        chart = feature_chart(movement, shown, places, self.scale)
        return f"<figure>{chart}<figcaption>{html.escape(caption)}</figcaption></figure>{self._codes(movement, places)}"

    def distinct(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Return the changes without those that follow from others."""
        return changes

    def summarise(self, rows: Floats, places: Sequence[int]) -> dict[str, str]:
        """Return the means of some features over rows as text, by the names of the features."""
        return {self.observations.names[i]: number(float(rows[:, i].mean())) for i in places[:MAX_COLUMNS]}

    def _codes(self, movement: Movement, places: Sequence[int]) -> str:
        """Return the table of codes: how frequent each is, and what the rows of the data that have it are like."""
        settings, heads, lines = movement.settings, [""], []
        for k, label in enumerate(settings.labels):
            rows = self.sample.read(self.sample.draw(MAX_AVERAGED, settings.members[k]))
            means = self.summarise(self.to_numbers(rows), places)
            heads = ["", "share of rows", *means]
            share = float(settings.shares[k])
            bar = f'<span class="share" style="width:{100 * share:.1f}px"></span>{percent(share)}'
            cells = "".join(f"<td>{html.escape(mean)}</td>" for mean in means.values())
            dot = f'<span class="dot" style="{colour(k, len(settings))}"></span>'
            lines.append(f"<tr><td class=text>{dot}{html.escape(label)}</td><td class=text>{bar}</td>{cells}</tr>")
        head = "".join(f"<th{' class=text' if i < 2 else ''}>{_breakable(text)}</th>" for i, text in enumerate(heads))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        note = f"The rows of the data that have each code: their share, and {self.summary}."
        return f"<figure class=wide>{table}<figcaption>{note}</figcaption></figure>"


def _breakable(name: str) -> str:
    """Return the HTML of a name that may be broken after underscores and slashes."""
    return html.escape(name).replace("_", "_<wbr>").replace("/", "/<wbr>")
