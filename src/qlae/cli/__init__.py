"""The command line: a few commands, each of which does a whole job. A command imports what it runs, when it runs."""

import importlib
import io
import os
import signal
import sys
import warnings
from typing import Annotated, Any, Union

from .._checks import nearest_name
from .._imports import explain_missing
from .._version import __version__

#: Group → command → short description; the commands themselves say more (``qlae COMMAND --help``).
GROUPS: dict[str, dict[str, str]] = {
    "Train and compare": {
        "demo": "train two small models on rendered images, in two minutes",
        "train": "train a model, score it and draw its pictures",
        "evaluate": "score a trained run again, with other metrics or intervals",
        "select": "choose among runs without labels, by their agreement",
        "consensus": "find the factors on which runs agree, without labels",
        "study": "run many trainings, ending in tables, figures and a page",
        "report": "redraw pictures and print scores side by side",
    },
    "Look at a model and use it": {
        "explore": "see in the browser what every latent and code means",
        "describe": "write a page that says what every latent means",
        "encode": "write the code of every observation to a table",
        "decode": "write the images, vectors or series that codes stand for",
        "export": "write a model to a folder to share, or as ONNX",
        "push": "write a model to the Hugging Face Hub",
    },
    "Without training": {
        "score": "score any representation that is stored in a file",
        "metrics": "list the metrics, or see where one, also yours, is wrong",
        "data": "list, render, prepare, download, inspect or clear data sets",
    },
}
COMMANDS = tuple(name for commands in GROUPS.values() for name in commands)
#: Commands that are not in a module of their name.
_MODULES = {
    "demo": "train",
    "select": "evaluate",
    "report": "evaluate",
    "encode": "explore",
    "decode": "explore",
    "export": "explore",
    "push": "explore",
}

OVERVIEW = """\
qlae {version}: disentangled representation learning by latent quantization

Usage: qlae COMMAND [OPTIONS]
{commands}

First steps:
  qlae explore shapes3d-qlae    # a trained model that comes with qlae
  qlae demo                     # train two small models and compare them

`qlae COMMAND --help` explains a command, and --help-all all of its options;
`qlae --tyro-print-completion bash` prints a completion script (or zsh, tcsh)."""
PIPE_WIDTH = 120  # of tables and help in a pipe or a file, where there is no terminal to ask
READER_GONE = 141  # the exit status of a program that SIGPIPE ended


def main(arguments: list[str] | None = None) -> None:
    """Run a command line; bad input ends with a one-line message and exit status 2."""
    _open_closed_streams()
    _forget_warning_options()
    code: Any
    try:
        try:
            code = _main(sys.argv[1:] if arguments is None else arguments)
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()  # here rather than at the end of the process, where a reader that is gone makes a traceback
    except BrokenPipeError:  # the reader has seen enough: qlae data list | head
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        code = READER_GONE
    if code is not None:
        sys.exit(code)


def _open_closed_streams() -> None:
    """Connect streams that the caller closed (``>&-``), which Python sets to None, to the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for the rest of the process


def _forget_warning_options() -> None:
    """Show warnings as Python does by default: ``PYTHONWARNINGS=error`` would end commands that only warn."""
    if sys.warnoptions:
        os.environ.pop("PYTHONWARNINGS", None)  # of the processes that this one starts
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)


def _main(arguments: list[str]) -> int | None:
    """Run a command line; return the exit status, or None if it only asks for a text."""
    if arguments == ["--version"]:
        print(f"qlae {__version__}")
        return None
    if arguments in ([], ["-h"], ["--help"], ["help"]):
        print(overview())
        return None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # a terminal that has no "×" shows "?" instead of an error
    if not sys.stdout.isatty():
        os.environ.setdefault("COLUMNS", str(PIPE_WIDTH))
    # Before torch loads: let idle threads sleep instead of spinning. Spinning is a little faster on idle cores and ten
    # times slower on busy ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return _run(arguments)


def overview() -> str:
    """Return the help of the whole command line: every command on a line, in groups, on one screen."""
    width, lines = max(map(len, COMMANDS)) + 2, []
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}{text}" for name, text in commands.items())]
    return OVERVIEW.format(version=__version__, commands="\n".join(lines))


def command_class(name: str) -> Any:
    """Return the class of a command: its fields are the options, and a call runs it."""
    if name not in COMMANDS:
        raise ValueError(f"unknown command {name!r}: {nearest_name(name, COMMANDS)}")
    module = importlib.import_module(f".{_MODULES.get(name, name)}", __name__)
    return getattr(module, name.capitalize())


def _run(arguments: list[str]) -> int:
    from .. import _progress
    from .arguments import argument_names, in_flags

    command: Any = None

    def translate(message: object) -> str:
        """Return a message of the library in the words of the command line."""
        return str(message) if command is None else in_flags(str(message), argument_names(command))

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        print(f"qlae: warning: {translate(message)}", file=sys.stderr)

    warnings.showwarning, _progress.translate = show_warning, translate
    try:
        command = _parse(arguments)
        if arguments[0] == "train":  # the process is ours, so its memory may be tuned
            from .._process import keep_freed_memory

            keep_freed_memory()
        command()
    except ValueError as error:
        return _fail(translate(error), 2)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 2)
    except ModuleNotFoundError as error:
        explained = explain_missing(error, f"qlae {arguments[0]}")
        if explained is None:
            raise
        return _fail(explained, 2)
    except KeyboardInterrupt as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # impatient further ones would only print a traceback
        if arguments[0] == "train" and str(stop):
            print(f"\nqlae: {stop}. To continue, run the same command again", file=sys.stderr)
        return 128 + getattr(stop, "signal", signal.SIGINT)
    except RuntimeError as error:
        if type(error).__name__ != "TrainingDiverged":  # by its name, since torch may not be installed
            raise
        return _fail(error, 1)
    return 0


def _parse(arguments: list[str]) -> Any:
    """Return the command that a command line names, with its options.

    Only the named command is parsed, so that an error points to its help and not to that of all commands.
    """
    import tyro
    from rich.console import Console

    from .arguments import REGISTRY, hide_unset

    name, *options = arguments
    if name.startswith("-"):  # such as --tyro-print-completion
        commands = [Annotated[command_class(each), tyro.conf.subcommand(each)] for each in COMMANDS]
        form: Any = Union[tuple(commands)]  # noqa: UP007
        prog, options = "qlae", arguments
    else:
        form, prog = command_class(name), f"qlae {name}"
        if wanted := {"-h", "--help", "--help-all"} & set(options):
            from .help import help_form

            if name == "data" and options[0] in (subcommands := form.subcommands()):
                form, prog, name = subcommands[options[0]], f"{prog} {options[0]}", f"{name} {options[0]}"
            if name != "data":
                form = help_form(form, name, everything="--help-all" in wanted)
            options = ["--help"]
        form = hide_unset(form)
    Console.on_broken_pipe = _reader_gone  # type: ignore[method-assign,assignment]
    return tyro.cli(
        form,
        prog=prog,
        args=options,
        registry=REGISTRY,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff),
    )


def _reader_gone(console: object) -> None:
    """Raise a `BrokenPipeError`, where a `rich` console would end the process with another exit status."""
    raise BrokenPipeError


def _fail(message: object, code: int) -> int:
    print(f"qlae: {message}", file=sys.stderr)
    return code
