"""``qlae score``: score plain arrays."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Imports

BUILT_IN_METRICS = "infomec, dci, mig, sap, modularity, explicitness, irs, mcc"  # for help, which loads no metrics


@dataclass(frozen=True)
class Score:
    """Score any representation: a file with arrays `sources` (n, n_s) and `latents` (n, n_z), which any tool can write.

    Integer latents are codes, floats are continuous; an array `codes` beside them says that floats stand for codes.
    For example: qlae score codes.npz --metrics infomec dci --plot nmi.png
    """

    file: Positional[Annotated[Path, arg(metavar="FILE.npz")]]
    """Written with np.savez(path, sources=…, latents=…)."""
    metrics: Annotated[tuple[str, ...], arg(help=f"{BUILT_IN_METRICS}, one of your own (--import), or all.")] = (
        "infomec",
    )
    protocol: str = "paper"
    """InfoMEC protocol: paper, official-train, official-standalone or tripod."""
    latent_kind: Literal["auto", "codes", "continuous"] = "auto"
    """Overrules the type of the latents: codes that are stored as floats, or continuous values stored as integers."""
    source_kinds: tuple[Literal["auto", "discrete", "continuous"], ...] = ("auto",)
    """Overrules the types of the sources: one word for all, or one per source. With auto, floats are continuous unless
    their values repeat."""
    max_features: str = "sqrt"
    """Latents that each split of DCI's forests considers: sqrt, log2, all, a whole number, or a share such as 0.5. With
    sqrt, D of an ideal representation is 0.5 to 0.7; with all it is 1."""
    dci_split: Literal["paper", "honest"] = "paper"
    """Rows that give DCI's I: those that chose the depths (paper), or others (honest)."""
    bootstrap: int = 0
    """Compute 95% intervals from this many half-samples; 200 are plenty."""
    jobs: int = 1
    """Processes for the half-samples, and threads for DCI; -1 for all cores."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON, and nothing else, to standard output."""
    imports: Imports = ()
    """Modules of your own to import first, which register metrics."""
    plot: Annotated[tuple[Path, ...] | None, arg(metavar="[PATH]")] = None
    """Draw the NMI heatmap: to this .png, .svg or .pdf, or without a path beside FILE, as FILE-nmi.png."""

    def __call__(self) -> None:
        from .._progress import progress_bar
        from ..metrics import metric_names, plot_nmi, print_scores, score_file
        from ..metrics.metric_options import dci_options

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
                metric_options=dci_options(self.max_features, self.dci_split),
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
        """Return the path of the heatmap, None without --plot; raise if it could not be drawn or written."""
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
        """Return only the kinds that overrule the types of the arrays, because the file may say them, too."""
        kinds: dict[str, Any] = {} if self.latent_kind == "auto" else {"latent_kind": self.latent_kind}
        if set(self.source_kinds) - {"auto"}:
            kinds["source_kinds"] = self.source_kinds[0] if len(self.source_kinds) == 1 else self.source_kinds
        return kinds
