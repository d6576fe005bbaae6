"""``qlae explore``, ``encode``, ``decode`` and ``export``: look at a trained model, and use it elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Directory, Flag, Imports, OptionalName, OptionalPath


@dataclass(frozen=True)
class Explore:
    """Open a local web page that shows what each latent and each code of a trained model means.

    The server needs `pip install 'qlae[explorer]'`; --export needs only qlae. For example:
      qlae explore shapes3d-qlae             # a trained model that comes with qlae
      qlae explore runs/quick
      qlae explore runs/a runs/b             # two runs of the same data, side by side
      qlae explore runs/quick --export page/

    Attributes:
        run: The run directory, a folder of several seeds (which opens the run to take), an exported folder with a
            sample (qlae export --samples), or the name of a model that comes with qlae.
        beside: Another run of the same data, to be shown next to the first.
        port: Preferred port on 127.0.0.1; if it is not available, a free one is used.
        no_browser: Only print the address of the page; do not open the browser.
        export: Instead of starting the server, write a page that needs none to this folder.
        export_samples: Number of samples on an exported page.
        device: Where the model runs: auto, cpu, cuda, cuda:1, …; a CPU is fast enough for one picture at a time.
        imports: A module or file of yours to import first, which registers the run's parts.
        quiet: Do not show progress bars.
    """

    run: Positional[Directory]
    beside: Positional[Annotated[Path | None, arg(metavar="[RUN]", help_behavior_hint="")]] = None
    port: int = 8642
    no_browser: Flag = False
    export: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None
    export_samples: int = 12
    device: str = "cpu"
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from ..explorer import explore, open_run, save_page
        from ..explorer.static_page import MAX_SAMPLES
        from ..runs.directory import SELECTION_FILE, find_taken_run, is_shipped, shipped_models

        import_modules(self.imports)
        run = find_taken_run(self.run) or self.run
        if run != self.run:
            print(f"{self.run} holds runs of several seeds; opening {run}, the one to take by {SELECTION_FILE}")
        if self.export is None:
            browser = not self.no_browser
            if is_shipped(self.run):
                print(f"{self.run}: {shipped_models()[str(self.run)]['about']}")
            explore(run, self.beside, port=self.port, browser=browser, device=self.device, show=not self.quiet)
            return
        if self.beside is not None:
            raise ValueError("--export writes the page of one run; leave the second out")
        if not 1 <= self.export_samples <= MAX_SAMPLES:
            raise ValueError(f"--export-samples must lie between 1 and {MAX_SAMPLES}, got {self.export_samples}")
        exploration = open_run(run, device=self.device, show=not self.quiet)
        print(save_page(exploration, self.export, num_samples=self.export_samples, show=not self.quiet))


@dataclass(frozen=True)
class Encode:
    """Write codes to a table, one row per observation: what identifies it, then one column per latent.

    Rows are identified by file names, identifiers of a table, unit and start of a window, or row numbers. Latents and
    values that were named in `qlae explore` appear under these names. For example:
      qlae encode runs/holiday --out codes.csv
      qlae encode runs/holiday --data more/ --out more.parquet

    Attributes:
        run: The run directory, the folder of an exported model, or the name of a model that comes with qlae.
        data: A data set by name, or the path of your own data, read as the training data were; by default those that
            the run was trained on.
        out: The .csv, .parquet or .npz file to write; it must not exist. `qlae decode` reads it again. For data in
            an .h5ad also an .h5ad: a copy with the codes in obsm["X_qlae"].
        numbers: Write the values that codes stand for, instead of the codes.
        device: Where the model runs: auto, cpu, cuda, cuda:1, …
        imports: A module or file of yours to import first, which registers the run's parts.
        quiet: Do not show progress bars.
    """

    run: Positional[Directory]
    data: OptionalName = None
    out: Path = Path("codes.csv")
    numbers: Flag = False
    device: str = "auto"
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from ..runs.encode import encode_to_file

        import_modules(self.imports)
        show = not self.quiet
        print(encode_to_file(self.run, self.out, data=self.data, numbers=self.numbers, device=self.device, show=show))


@dataclass(frozen=True)
class Decode:
    """Write what codes stand for, given a table that `qlae encode` wrote, or one with the same columns.

    Images become PNG files, named by the first columns of the table. Vectors become a table with the columns of the
    training data, and series one with a row per time step. For example:
      qlae decode runs/holiday codes.csv --out pictures/
      qlae decode runs/sensors codes.csv --out decoded.csv

    Attributes:
        run: The run directory, the folder of an exported model, or the name of a model that comes with qlae.
        codes: The .csv, .parquet or .npz file with a column for each latent, by its name or as z0, z1, …
        out: What to write, which must not exist: a folder for images, a .csv or .parquet file for vectors and series,
            or an .npz file for any of them.
        device: Where the model runs: auto, cpu, cuda, cuda:1, …
        imports: A module or file of yours to import first, which registers the run's parts.
        quiet: Do not show progress bars.
    """

    run: Positional[Directory]
    codes: Positional[Annotated[Path, arg(metavar="CODES")]]
    out: Path
    device: str = "auto"
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from ..runs.decode import decode

        import_modules(self.imports)
        decode(self.run, self.codes, out=self.out, device=self.device, show=not self.quiet)
        print(self.out)


@dataclass(frozen=True)
class Export:
    """Write a trained model to a folder to share: config.json, model.safetensors and a model card with its scores.

    Names that you gave to latents and values in `qlae explore` are included (names.json). In Python, `qlae.load` loads
    the folder like a run directory. For example:
      qlae export runs/quick --onnx --out quick

    Attributes:
        run: The run directory.
        out: The folder; by default RUN/export. It must be new, empty, or hold an earlier export, which is replaced.
        half: Round the weights to half precision, which halves the file.
        samples: Also write this many rows of the evaluation sample (codes and sources, no images), so
            that `qlae explore` can open the folder; 0 for none.
        onnx: Also write encoder.onnx and decoder.onnx, and check them against torch. Needs `pip install 'qlae[onnx]'`.
        weights: Export the exponential average of the weights, or the raw weights after the last update.
        imports: A module or file of yours to import first, which registers the run's parts.
    """

    run: Positional[Directory]
    out: OptionalPath = None
    half: Flag = False
    samples: int = 0
    onnx: Flag = False
    weights: Literal["averaged", "raw"] = "averaged"
    imports: Imports = ()

    def __call__(self) -> None:
        from ..runs.export import export_run

        import_modules(self.imports)
        out, samples = self.out or self.run / "export", self.samples
        paths = export_run(self.run, out, onnx=self.onnx, half=self.half, num_samples=samples, weights=self.weights)
        print(*paths, sep="\n")


@dataclass(frozen=True)
class Push:
    """Write a trained model to a repository of the Hugging Face Hub, from which `hf://USER/MODEL` loads it anywhere.

    What is written is what `qlae export` writes; loading verifies its checksums. Log in with `hf auth login` first, and
    install `pip install 'qlae[hub]'`. For example:
      qlae push runs/quick me/shapes3d-qlae
      qlae explore hf://me/shapes3d-qlae

    Attributes:
        run: The run directory.
        repo: The repository, as USER/MODEL; it is created if it does not exist.
        private: Make a new repository private.
        half: Round the weights to half precision, which halves the file.
        samples: Also write this many rows of the evaluation sample (codes and sources, no images), so
            that `qlae explore` can open the model; 0 for none.
        imports: A module or file of yours to import first, which registers the run's parts.
    """

    run: Positional[Directory]
    repo: Positional[Annotated[str, arg(metavar="USER/MODEL")]]
    private: Flag = False
    half: Flag = False
    samples: int = 100
    imports: Imports = ()

    def __call__(self) -> None:
        from ..runs.hub import push_model

        import_modules(self.imports)
        address = push_model(self.run, self.repo, private=self.private, half=self.half, num_samples=self.samples)
        print(f"{address}: load it with qlae.load({address!r})")
