"""List the runs of a study with links to their directories, relative to the page."""

import html
from collections.abc import Mapping
from urllib.parse import quote

from ...runs.directory import Run
from ..folder import Entry
from .aggregate import Summary
from .tables import order_models

RUNS = "../runs"  # from the page's folder


def name_in_study(run: Run) -> str:
    """Return the path of a run's directory in the folder of its study: ``runs/DATA/MODEL/NAME``."""
    return "/".join(("runs", *run.path.parts[-3:]))


def run_link(run: Run) -> str:
    """Return the address of a run's directory from the page."""
    return f"../{quote(name_in_study(run))}/"


def runs_table(summary: Summary) -> str:
    """Return the HTML of a table with one row per data set, model and value, and a link for each seed."""
    models = [model for block in order_models(summary) for model in block]
    rows = []
    for data in summary.data:
        for model in models:
            entries = {n: e for n, e in summary.index.runs.items() if (e.data, e.model) == (data, model)}
            for value in dict.fromkeys(entry.value for entry in entries.values()):
                seeds = {name: entry for name, entry in entries.items() if entry.value == value}
                rows.append(_row(data, model, _value_text(summary, data, model, value), seeds))
    heads = "".join(f"<th class=text>{head}</th>" for head in ("data", "model", "value", "seeds"))
    return f"<div class=wide><table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _value_text(summary: Summary, data: str, model: str, value: float | None) -> str:
    if value is None:
        return "preset"
    selected = value in summary.index.selected_values(data, model)
    return f"{value:g}{' (selected)' if selected else ''}"


def _row(data: str, model: str, value: str, entries: Mapping[str, Entry]) -> str:
    links = ", ".join(
        f'<a href="{RUNS}/{quote(name)}/">{entry.seed}</a>'
        if entry.state == "done"
        else f"{entry.seed} ({entry.state})"
        for name, entry in sorted(entries.items(), key=lambda item: item[1].seed)
    )
    cells = "".join(f"<td class=text>{html.escape(text)}</td>" for text in (data, model, value))
    return f"<tr>{cells}<td class=text>{links}</td></tr>"
