"""Print the features, channels and sources of a data set as a table, for ``qlae data inspect``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..data.inspection import Column, Inspection

MAX_LINES = 60  # of the table


def print_columns(inspection: "Inspection") -> None:
    """Print a table with one line per column, and below it what is worth a look."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    columns = inspection.columns
    table = Table()
    table.add_column("column", overflow="fold")
    table.add_column("role", no_wrap=True)
    for heading in ("lowest", "mean", "highest", "deviation", "different", "missing"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("remark")
    for column in columns[:MAX_LINES]:
        numbers = (column.low, column.mean, column.high, column.deviation)
        table.add_row(
            escape(column.name),
            column.role,
            *("–" if number != number else f"{number:.4g}" for number in numbers),
            f"{column.num_distinct:,}",
            f"{column.num_missing:,}" if column.num_missing else "–",
            escape(_remark(column)),
        )
    Console().print(table)
    if len(columns) > MAX_LINES:
        print(f"… and {len(columns) - MAX_LINES:,} more columns")
    constant = [column.name for column in columns if column.is_constant and column.role == "feature"]
    if constant:
        few = ", ".join(constant[:5]) + (f", … ({len(constant)} in all)" if len(constant) > 5 else "")
        print(f"Constant: {few}. They say nothing about an observation; leave them out if you can.")


def _remark(column: "Column") -> str:
    if column.num_texts:
        few = ", ".join(repr(text if len(text) <= 20 else f"{text[:19]}…") for text in column.texts)
        rows = "row" if column.num_texts == 1 else "rows"
        return f"text in {column.num_texts:,} {rows}: {few}" + (
            ", …" if column.num_distinct > len(column.texts) else ""
        )
    if column.is_constant:
        return "constant"
    return ""
