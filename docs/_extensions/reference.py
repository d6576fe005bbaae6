"""Write the reference pages from the package itself: every public name, and the help of every command.

Pages are written before the sources are read, into ``docs/reference/generated``, which is not under version control.
"""

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

#: Page of the reference → module, in the order of the navigation.
MODULES = {
    "qlae": "The functions that most programs need.",
    "qlae.data": "Data sets: rendered, published, and your own.",
    "qlae.metrics": "Metrics over plain arrays.",
    "qlae.models": "Models: encoder, latent space, decoder.",
    "qlae.models.latents": "Latent spaces.",
    "qlae.models.networks": "Encoders and decoders: the paper's, and Tripod's.",
    "qlae.objectives": "Objectives: what a model is trained to do.",
    "qlae.training": "Training and callbacks.",
    "qlae.report": "Tables and pictures of runs.",
    "qlae.selection": "Choosing among runs without labels.",
    "qlae.study": "Studies: many runs, tables and figures.",
    "qlae.study.report": "Reports of studies.",
    "qlae.explorer": "The explorer.",
}
WIDTH = 100


def write_pages(folder: Path) -> None:
    """Write the pages of all modules and of the command line."""
    folder.mkdir(parents=True, exist_ok=True)
    for module, about in MODULES.items():
        _write(folder / f"{module}.md", module_page(module, about))
    _write(folder / "command-line.md", command_page())


def module_page(name: str, about: str) -> str:
    """Return a page with every public name of a module."""
    module = importlib.import_module(name)
    lines = [f"# {name}", "", about, ""]
    for public in sorted(module.__all__, key=lambda public: _rank(getattr(module, public))):
        if public == "__version__":
            continue
        thing = getattr(module, public)
        home = next((other for other in MODULES if other != name and _has(other, public, thing)), name)
        lines += [*(_entry(name, public, thing) if home.count(".") <= name.count(".") else _link(home, public)), ""]
    return "\n".join(lines)


def _rank(thing: Any) -> int:
    """Return where a kind of thing stands on a page: functions, then classes, then the rest."""
    return 0 if isinstance(thing, types.FunctionType) else 1 if isinstance(thing, type) else 2


def _has(module: str, name: str, thing: Any) -> bool:
    other = importlib.import_module(module)
    return name in other.__all__ and getattr(other, name) is thing


def _link(home: str, name: str) -> list[str]:
    """Return a line that refers to the page of a name that the package also offers at its top."""
    return ["```{eval-rst}", f"**{name}**: see :py:obj:`{home}.{name}`.", "```"]


def _entry(module: str, name: str, thing: Any) -> list[str]:
    if isinstance(thing, types.FunctionType):
        directive = f".. autofunction:: {module}.{name}"
    elif isinstance(thing, type) and thing.__module__.startswith("qlae"):
        directive = f".. {'autoexception' if issubclass(thing, BaseException) else 'autoclass'}:: {module}.{name}"
    else:  # a table, or another name of a type: what it is has no docstring of its own
        about = type(thing).__doc__ if type(thing).__module__.startswith("qlae") else f"``{_plain(thing)}``"
        return ["```{eval-rst}", f".. py:data:: {module}.{name}", "", f"   {(about or '').splitlines()[0]}", "```"]
    return ["```{eval-rst}", directive, "```"]


def _plain(thing: Any) -> str:
    """Return how a type is written; of a table, its keys."""
    return ", ".join(map(str, thing)) if isinstance(thing, dict) else str(thing).replace("collections.abc.", "")


def command_page() -> str:
    """Return a page with the help of every command."""
    from qlae.cli.overview import COMMANDS, overview

    lines = ["# Command line", "", "```text", overview(), "```", ""]
    for command in COMMANDS:
        lines += [f"## qlae {command}", "", "```text", _help_of(command), "```", ""]
    return "\n".join(lines)


def _help_of(command: str) -> str:
    environment = os.environ | {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    result = subprocess.run(
        [sys.executable, "-m", "qlae", command, "--help"], capture_output=True, text=True, env=environment, check=True
    )
    return result.stdout.rstrip()


def _write(path: Path, text: str) -> None:
    """Write a page only if it changed, so that Sphinx reads only what is new."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "reference" / "generated"))
    return {"parallel_read_safe": True}
