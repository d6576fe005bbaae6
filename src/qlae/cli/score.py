"""The verb over plain arrays: score."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Score:
    """Score any representation: a file with arrays `sources` (n, n_s) and `latents` (n, n_z), which any tool can write.

    Integer latents are codes, floats are continuous; an array `codes` beside them says that floats stand for codes.
    For example: qlae score codes.npz --metrics infomec dci --plot nmi.png
    """

    file: Positional[Annotated[Path, arg(metavar="FILE.npz")]]
    """Written with np.savez(path, sources=…, latents=…)."""
    metrics: tuple[str, ...] = ("infomec",)
    """infomec, dci, mig, sap, modularity, explicitness, irs, mcc, or all."""
    protocol: str = "paper"
    """InfoMEC protocol: paper, official-train, official-standalone or tripod."""
    latent_kind: Literal["auto", "codes", "continuous"] = "auto"
    """What latents are, where their type does not say: floats that stand for codes, or integers that are measured."""
    source_kinds: tuple[Literal["auto", "discrete", "continuous"], ...] = ("auto",)
    """The same of sources: one word for all, or one a source. Left alone, floats are continuous unless they repeat."""
    bootstrap: int = 0
    """Resamples for 95% intervals; 200 are plenty."""
    jobs: int = 1
    """Processes for the resamples, and threads for DCI; -1 for all cores."""
    seed: int = 0
    """Of everything random."""
    json: bool = False
    """Print JSON, and nothing else, to standard output."""
    plot: Annotated[tuple[Path, ...] | None, arg(metavar="[PATH]")] = None
    """Draw the NMI heatmap: to this .png, .svg or .pdf, or without a path beside FILE, as FILE-nmi.png."""

    def __call__(self) -> None:
        from .._progress import progress_bar
        from ..metrics import plot_nmi, print_scores, score_file
        from ..metrics.scoring import metric_names

        names = metric_names(self.metrics)
        if self.plot is not None and len(self.plot) > 1:
            raise ValueError(f"--plot takes one path, got {len(self.plot)}")
        if self.plot is not None and "infomec" not in names:
            raise ValueError(f"--plot draws the NMI of InfoMEC, and --metrics are {' '.join(names)}: add infomec")
        beside = self.file.parent / f"{self.file.stem}-nmi.png"
        picture = None if self.plot is None else next(iter(self.plot), beside)
        if picture is not None and (picture.suffix not in (".png", ".svg", ".pdf") or not picture.parent.is_dir()):
            raise ValueError(f"--plot takes a .png, .svg or .pdf in a folder that exists, got {picture}")
        parts = iter(range(len(names) + self.bootstrap))
        with progress_bar("scoring", len(names) + self.bootstrap) as report:
            scores = score_file(
                self.file,
                metrics=names,
                protocol=self.protocol,
                seed=self.seed,
                bootstrap=self.bootstrap,
                n_jobs=self.jobs,
                **self._kinds(),
                progress=lambda part: report(next(parts), note=part),
            )
        if self.json:
            print(json.dumps(scores.to_dict(), indent=2))
        else:
            print_scores(scores, title=str(self.file))
        if picture is not None:
            plot_nmi(scores.results["infomec"], picture, title=self.file.stem)
            if not self.json:
                print(picture)

    def _kinds(self) -> dict[str, Any]:
        """What overrules the types of the arrays, and nothing else, since the file may say it too."""
        said: dict[str, Any] = {} if self.latent_kind == "auto" else {"latent_kind": self.latent_kind}
        if set(self.source_kinds) - {"auto"}:
            said["source_kinds"] = self.source_kinds[0] if len(self.source_kinds) == 1 else self.source_kinds
        return said
