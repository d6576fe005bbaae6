"""``qlae score``: score plain arrays."""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Flag, Imports, Names, OptionalPath


@dataclass(frozen=True)
class Score:
    """Score any representation: an .npz file or a CSV table with sources and latents, or a file of each.

    Integer latents are codes, and floats are continuous; if an .npz file also has an array `codes`, the floats are the
    values of these codes. This command needs no torch. For example:
      qlae score codes.npz --metrics infomec dci --plot nmi.png
      qlae score latents.npy --sources sources.npy
      qlae score table.csv --source-columns hue shape
      qlae score pca.npz ica.npz    # side by side

    Attributes:
        files: An .npz file, as np.savez(path, sources=…, latents=…) writes it, or a .csv file with a header; or two
            files, .npy or .csv, of latents and of sources. Several .npz files are compared side by side.
        sources: File of the sources, if FILE holds only latents: .npy (n, n_s) or .csv.
        source_columns: Columns of a single .csv file that are sources; by default those whose names start
            with "source". All others are latents, except a first column named image, vector, series, file, index,
            row or id.
        metrics: Metrics to compute, such as infomec, dci and mig, or all; an unknown name prints the list.
        protocol: InfoMEC protocol: paper, official-train, official-standalone or tripod.
        latent_kind: Override the type of the latents, for codes that are stored as floats or continuous values stored
            as integers.
        source_kinds: Override the types of the sources, with one word for all or one per source. With auto, floats are
            continuous unless their values repeat.
        prune: InfoMEC counts every latent that varies, however little, instead of leaving out those that vary little by
            the rule of the protocol.
        code_input: How codes enter the linear model of InfoE: as the protocol says (auto), one-hot, or as numbers.
        continuous_nmi: The NMI of continuous sources, 1 − exp(−2 I), from the denoised mutual information I or from
            the raw one (r-squared).
        corrected: Leave out the scores that are corrected for chance, which saves their time.
        null_encoder: Number of null encoders (the same latents with shuffled rows) whose mean scores are shown next to
            each score; 5 are enough.
        max_features: Number of latents that each split of DCI's forests considers: sqrt, log2, all, a whole number, or
            a fraction such as 0.5. With sqrt, D of an ideal representation is 0.5 to 0.7; with all it is 1.
        dci_split: The rows on which DCI's I is computed: those that chose the depths (paper), or others (honest).
        bootstrap: Number of half-samples for 95% intervals; 200 are enough.
        jobs: Number of processes for the half-samples, and of threads for DCI; -1 for all cores.
        seed: Seed of everything random.
        json: Print only JSON to standard output.
        imports: A module or file of yours to import first, which registers metrics.
        plot: Draw the NMI heatmap to this .png, .svg or .pdf file; without a path, to FILE-nmi.png next to FILE.
    """

    files: Positional[Annotated[tuple[Path, ...], arg(metavar="FILE …", help_behavior_hint="")]]
    sources: OptionalPath = None
    source_columns: Names = ()
    metrics: tuple[str, ...] = ("infomec",)
    protocol: str = "paper"
    latent_kind: Literal["auto", "codes", "continuous"] = "auto"
    source_kinds: tuple[Literal["auto", "discrete", "continuous"], ...] = ("auto",)
    prune: Flag = True
    code_input: Literal["auto", "one-hot", "scalar"] = "auto"
    continuous_nmi: Literal["denoised", "r-squared"] = "denoised"
    corrected: Flag = True
    null_encoder: int = 0
    max_features: str = "sqrt"
    dci_split: Literal["paper", "honest"] = "paper"
    bootstrap: int = 0
    jobs: int = 1
    seed: int = 0
    json: Flag = False
    imports: Imports = ()
    plot: Annotated[tuple[Path, ...] | None, arg(metavar="[PATH]", help_behavior_hint="")] = None

    def __call__(self) -> None:
        from .._progress import progress_bar
        from ..metrics import metric_names, null_scores, plot_nmi, print_scores, score
        from ..metrics.sample_files import read_sample

        if len(self.files) > 1 and all(file.suffix == ".npz" for file in self.files):
            self._compare()
            return
        file, sources_path = self._sample()
        import_modules(self.imports)
        names = metric_names(self.metrics)
        picture = self._picture(names, file)
        if self.null_encoder < 0:
            raise ValueError(f"--null-encoder takes a number of draws, at least 0, got {self.null_encoder}")
        sources, latents, options = read_sample(
            file, self._options(names), sources_path=sources_path, source_columns=self.source_columns
        )
        steps = iter(range(len(names) + self.bootstrap))
        with progress_bar("scoring", len(names) + self.bootstrap) as report:
            scores = score(
                sources,
                latents,
                bootstrap=self.bootstrap,
                progress=lambda part: report(next(steps), note=part),
                **options,
            )
        null = null_scores(sources, latents, num_draws=self.null_encoder, **options) if self.null_encoder else None
        if self.json:
            plain = scores.to_dict() | ({} if null is None else {"null_encoder": null.to_dict()})
            print(json.dumps(plain, indent=2))
        else:
            print_scores(scores, title=str(file), null=null)
        if picture is not None:
            plot_nmi(scores.results["infomec"], picture, title=file.stem)
            if not self.json:
                print(picture)

    def _compare(self) -> None:
        """Score several files, and print their scores side by side."""
        from rich.console import Console

        from .._progress import progress_bar
        from ..metrics import metric_names, score
        from ..metrics.sample_files import read_sample
        from ..metrics.scores import comparison_table

        unused = {"--plot": self.plot is not None, "--sources": self.sources, "--null-encoder": self.null_encoder}
        if given := [option for option, value in unused.items() if value]:
            raise ValueError(f"{', '.join(given)} goes with a single file, got {len(self.files)} of them")
        import_modules(self.imports)
        options = self._options(metric_names(self.metrics))
        scored = {}
        with progress_bar("scoring", len(self.files)) as report:
            for number, file in enumerate(self.files, start=1):
                sources, latents, own = read_sample(file, options, source_columns=self.source_columns)
                scored[str(file)] = score(sources, latents, bootstrap=self.bootstrap, **own)
                report(number, note=file.name)
        if self.json:
            print(json.dumps({name: scores.to_dict() for name, scores in scored.items()}, indent=2))
        else:
            Console().print(comparison_table(scored))

    def _sample(self) -> tuple[Path, Path | None]:
        """Return the file that is scored, and the file of its sources if that is another."""
        from ..metrics.sample_files import which_is_sources

        if not self.files or len(self.files) > 2 - (self.sources is not None):
            raise ValueError(
                f"give one file, or two of which one holds the sources, got {len(self.files) + bool(self.sources)}"
            )
        if len(self.files) == 1:
            return self.files[0], self.sources
        number = which_is_sources(self.files)
        return self.files[1 - number], self.files[number]

    def _picture(self, names: list[str], file: Path) -> Path | None:
        """Return the path of the heatmap, or None without --plot; raise an error if it cannot be drawn or written."""
        if self.plot is None:
            return None
        if len(self.plot) > 1:
            raise ValueError(f"--plot takes one path, got {len(self.plot)}")
        if "infomec" not in names:
            raise ValueError(f"--plot draws the NMI of InfoMEC, and --metrics are {' '.join(names)}: add infomec")
        picture = self.plot[0] if self.plot else file.parent / f"{file.stem}-nmi.png"
        if picture.suffix not in (".png", ".svg", ".pdf") or not picture.parent.is_dir():
            raise ValueError(f"--plot takes a .png, .svg or .pdf in a folder that exists, got {picture}")
        return picture

    def _options(self, names: list[str]) -> dict[str, Any]:
        """Return the options of `qlae.metrics.score`, without those that leave the choice to the file."""
        options: dict[str, Any] = {
            "metrics": names,
            "protocol": self.protocol,
            "prune": self.prune,
            "continuous_nmi": self.continuous_nmi,
            "corrected": self.corrected,
            "seed": self.seed,
            "n_jobs": self.jobs,
            "source_kinds": self.source_kinds[0] if len(self.source_kinds) == 1 else self.source_kinds,
            "metric_options": dci_options(self.max_features, self.dci_split),
        }
        chosen = {"latent_kind": self.latent_kind, "code_input": self.code_input}
        return options | {name: word for name, word in chosen.items() if word != "auto"}


def dci_options(max_features: Any, split: str) -> dict[str, dict[str, Any]]:
    """Return the options of DCI from words of the command line; none if they are the defaults.

    >>> dci_options("0.5", "honest"), dci_options("4", "paper"), dci_options("sqrt", "paper")
    ({'dci': {'max_features': 0.5, 'split': 'honest'}}, {'dci': {'max_features': 4}}, {})
    """
    options: dict[str, Any] = {}
    if max_features != "sqrt":
        with contextlib.suppress(ValueError):
            max_features = int(max_features) if max_features.isdecimal() else float(max_features)
        options["max_features"] = max_features
    if split != "paper":
        options["split"] = split
    return {"dci": options} if options else {}
