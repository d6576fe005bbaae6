"""``qlae score``: score plain arrays."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Flag, Imports

BUILT_IN_METRICS = "infomec, dci, mig, sap, modularity, explicitness, irs, mcc"  # for help, which loads no metrics
METRICS_HELP = f"Metrics to compute: {BUILT_IN_METRICS}, one of your own (--import), or all."


@dataclass(frozen=True)
class Score:
    """Score any representation: an .npz file with arrays `sources` (n, n_s) and `latents` (n, n_z).

    Integer latents are codes, and floats are continuous; if the file also has an array `codes`, the floats are the
    values of these codes. For example:
      qlae score codes.npz --metrics infomec dci --plot nmi.png

    Attributes:
        file: The file, as np.savez(path, sources=…, latents=…) writes it.
        protocol: InfoMEC protocol: paper, official-train, official-standalone or tripod.
        latent_kind: Override the type of the latents, for codes that are stored as floats or continuous values stored
            as integers.
        source_kinds: Override the types of the sources, with one word for all or one per source. With auto, floats are
            continuous unless their values repeat.
        bootstrap: Number of half-samples for 95% intervals; 200 are enough.
        jobs: Number of processes for the half-samples, and of threads for DCI; -1 for all cores.
        seed: Seed of everything random.
        json: Print only JSON to standard output.
        imports: A module or file of yours to import first, which registers metrics.
        plot: Draw the NMI heatmap to this .png, .svg or .pdf file; without a path, to FILE-nmi.png next to FILE.
    """

    file: Positional[Annotated[Path, arg(metavar="FILE.npz")]]
    metrics: Annotated[tuple[str, ...], arg(help=METRICS_HELP)] = ("infomec",)
    protocol: str = "paper"
    latent_kind: Literal["auto", "codes", "continuous"] = "auto"
    source_kinds: tuple[Literal["auto", "discrete", "continuous"], ...] = ("auto",)
    bootstrap: int = 0
    jobs: int = 1
    seed: int = 0
    json: Flag = False
    imports: Imports = ()
    plot: Annotated[tuple[Path, ...] | None, arg(metavar="[PATH]", help_behavior_hint="")] = None

    def __call__(self) -> None:
        from .._progress import progress_bar
        from ..metrics import metric_names, plot_nmi, print_scores, score_file

        import_modules(self.imports)
        names = metric_names(self.metrics)
        picture = self._picture(names)
        steps = iter(range(len(names) + self.bootstrap))
        with progress_bar("scoring", len(names) + self.bootstrap) as report:
            scores = score_file(
                self.file,
                metrics=names,
                protocol=self.protocol,
                seed=self.seed,
                bootstrap=self.bootstrap,
                n_jobs=self.jobs,
                **self._kinds(),
                progress=lambda part: report(next(steps), note=part),
            )
        if self.json:
            print(json.dumps(scores.to_dict(), indent=2))
        else:
            print_scores(scores, title=str(self.file))
        if picture is not None:
            plot_nmi(scores.results["infomec"], picture, title=self.file.stem)
            if not self.json:
                print(picture)

    def _picture(self, names: list[str]) -> Path | None:
        """Return the path of the heatmap, or None without --plot; raise an error if it cannot be drawn or written."""
        if self.plot is None:
            return None
        if len(self.plot) > 1:
            raise ValueError(f"--plot takes one path, got {len(self.plot)}")
        if "infomec" not in names:
            raise ValueError(f"--plot draws the NMI of InfoMEC, and --metrics are {' '.join(names)}: add infomec")
        picture = self.plot[0] if self.plot else self.file.parent / f"{self.file.stem}-nmi.png"
        if picture.suffix not in (".png", ".svg", ".pdf") or not picture.parent.is_dir():
            raise ValueError(f"--plot takes a .png, .svg or .pdf in a folder that exists, got {picture}")
        return picture

    def _kinds(self) -> dict[str, Any]:
        """Return only the kinds that override the types of the arrays, because the file may state them too."""
        kinds: dict[str, Any] = {} if self.latent_kind == "auto" else {"latent_kind": self.latent_kind}
        if set(self.source_kinds) - {"auto"}:
            kinds["source_kinds"] = self.source_kinds[0] if len(self.source_kinds) == 1 else self.source_kinds
        return kinds
