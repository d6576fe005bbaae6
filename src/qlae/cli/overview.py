"""What ``qlae`` and ``qlae --help`` print: every command on a line, in groups, on one screen."""

from .._checks import nearest_name
from .._version import __version__

#: Group → command → what it does, in a few words; the commands themselves say more (``qlae COMMAND --help``).
GROUPS: dict[str, dict[str, str]] = {
    "Train and compare": {
        "demo": "train two small models on rendered images, in two minutes",
        "train": "train a model, score it and draw its pictures",
        "evaluate": "score a trained run again, with other metrics or intervals",
        "select": "choose among runs without labels, by their agreement",
        "study": "run many trainings, ending in tables, figures and a page",
        "report": "redraw pictures and print scores side by side",
    },
    "Look at a model and use it": {
        "explore": "see in the browser what every latent and code means",
        "encode": "write the code of every image to a CSV file",
        "export": "write a model to a folder to share, or as ONNX",
    },
    "Without training": {
        "score": "score any representation that is stored in a file",
        "data": "list, render, prepare, download, inspect or clear data sets",
    },
}
COMMANDS = tuple(name for commands in GROUPS.values() for name in commands)


def overview() -> str:
    """Return the help of the whole command line."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"qlae {__version__}: disentangled representation learning by latent quantization", ""]
    lines += ["Usage: qlae COMMAND [OPTIONS]"]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}{text}" for name, text in commands.items())]
    return "\n".join(
        [
            *lines,
            "",
            "First steps:",
            "  qlae explore shapes3d-qlae    # a trained model that comes with qlae",
            "  qlae demo                     # train two small models and compare them",
            "",
            "`qlae COMMAND --help` explains a command; `qlae --version` prints the version,",
            "and `qlae --tyro-print-completion bash` a completion script (or zsh, tcsh).",
        ]
    )


def require_command(name: str) -> None:
    """Raise a ``ValueError`` that suggests the nearest command unless there is one of this name."""
    if name not in COMMANDS:
        raise ValueError(f"unknown command {name!r}: {nearest_name(name, COMMANDS)}")
