"""``qlae metrics``: list metrics, or examine some, also your own."""

import json
from dataclasses import asdict, dataclass
from typing import Annotated

from tyro.conf import Positional, arg, subcommand

from .._imports import import_modules
from .arguments import Flag


@dataclass(frozen=True)
class Stress:
    """Print where a metric is wrong: encoders whose faults are known, on data whose structure is known.

    A file registers metrics of yours (see `qlae.metrics.register_metric`), which are all tested. For example:
      qlae metrics stress my_metric.py
      qlae metrics stress infomec conditional_infomec

    Attributes:
        metrics: Python files that register metrics, and names of metrics.
        num_samples: Samples of each case.
        seeds: Number of samples drawn for each case; their scores are averaged.
        json: Print only JSON to standard output: one entry per case.
    """

    metrics: Positional[Annotated[tuple[str, ...], arg(metavar="FILE|METRIC …", help_behavior_hint="")]]
    num_samples: int = 1000
    seeds: int = 2
    json: Flag = False

    def __call__(self) -> None:
        from rich.console import Console

        from .._progress import progress_bar
        from ..metrics import find_metric
        from ..metrics.stress import ENCODERS, PROCESSES, stress, stress_tables

        names = self._names()
        total = sum(len(ENCODERS) * (len(PROCESSES) - find_metric(name).needs_discrete) for name in names)
        steps = iter(range(total))
        with progress_bar("scoring", total) as report:
            cases = stress(
                names,
                num_samples=self.num_samples,
                num_seeds=self.seeds,
                progress=lambda part: report(next(steps), note=part),
            )
        if self.json:
            print(json.dumps([asdict(case) | {"is_wrong": case.is_wrong} for case in cases], indent=2))
            return
        console = Console()
        for table in stress_tables(cases):
            console.print(table)
        for problem in dict.fromkeys(case.problem for case in cases if case.problem):
            console.print(f"error: {problem}", markup=False)
        console.print(
            "A copy should score 1 on any data but a mixture of the sources; an encoder that ignores its input 0, or "
            "chance. A score more than 0.2 away is wrong. What the other encoders deserve depends on the metric."
        )

    def _names(self) -> list[str]:
        """Return the names of the metrics that are asked for; files are imported."""
        from ..metrics import METRICS, metric_names

        if not self.metrics:
            raise ValueError("give a Python file that registers metrics, or names of metrics")
        names: list[str] = []
        for given in self.metrics:
            if not given.endswith(".py"):
                names += metric_names(given)
                continue
            before = set(METRICS)
            import_modules([given])
            registered = [name for name in METRICS if name not in before]
            if not registered:
                raise ValueError(
                    f"{given} registers no metric: decorate a function of sources and latents with "
                    "@qlae.metrics.register_metric('name')"
                )
            names += registered
        return list(dict.fromkeys(names))


@dataclass(frozen=True)
class List:
    """List the metrics by name, with their scores and what these measure."""

    def __call__(self) -> None:
        from rich.console import Console
        from rich.table import Table

        from ..metrics import METRICS

        table = Table("metric", "score", "meaning", "in `all`")
        for metric in METRICS.values():
            for place, score in enumerate(metric.scores):
                included = "yes" if metric.in_all else "no"
                table.add_row("" if place else metric.name, score.title, score.meaning, included)
        Console().print(table)


@dataclass(frozen=True)
class Metrics:
    """List the metrics, or see where one, also yours, is wrong.

    For example:
      qlae metrics list
      qlae metrics stress my_metric.py      # a file that registers a metric
    """

    command: (
        Annotated[List, subcommand("list", prefix_name=False)]
        | Annotated[Stress, subcommand("stress", prefix_name=False)]
    )

    def __call__(self) -> None:
        self.command()
