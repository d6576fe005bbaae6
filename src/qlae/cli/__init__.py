"""The command line: a few commands, each of which does a whole job. Torch is loaded only when a command needs it."""

import io
import os
import signal
import sys
import typing
import warnings
from typing import Annotated, Any

import tyro
from rich.console import Console
from tyro.conf import subcommand

from .._imports import explain_missing
from .._version import __version__
from .data import Data
from .demo import Demo
from .explore import Explore
from .export import Encode, Export
from .overview import overview, require_command
from .parsing import REGISTRY
from .runs import Evaluate, Report, Train
from .score import Score
from .select import Select
from .study import Study

Command = (
    Annotated[Demo, subcommand("demo")]
    | Annotated[Train, subcommand("train")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Select, subcommand("select")]
    | Annotated[Study, subcommand("study")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Explore, subcommand("explore")]
    | Annotated[Encode, subcommand("encode")]
    | Annotated[Export, subcommand("export")]
    | Annotated[Score, subcommand("score")]
    | Annotated[Data, subcommand("data")]
)

PIPE_WIDTH = 120  # of tables and help in a pipe or a file, where there is no terminal to ask
READER_GONE = 141  # the exit status of a program that SIGPIPE ended


def main(arguments: list[str] | None = None) -> None:
    """Run a command line; bad input ends with a one-line message and exit status 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"qlae {__version__}")
        return
    if arguments in ([], ["-h"], ["--help"], ["help"]):
        print(overview())
        return
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # a terminal that has no "×" shows "?" instead of an error
    if not sys.stdout.isatty():
        os.environ.setdefault("COLUMNS", str(PIPE_WIDTH))
    # Before torch loads: let idle threads sleep instead of spinning. Spinning is a little faster on idle cores and ten
    # times slower on busy ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    command = None
    try:
        form, prog, options = _find_command(arguments)
        command = tyro.cli(
            form,
            prog=prog,
            args=options,
            registry=REGISTRY,
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff),
        )
        _require_run_directories(command)
        _own_process(command)
        Console.on_broken_pipe = _reader_gone  # type: ignore[method-assign,assignment]
        command()
    except ValueError as error:
        return _fail(error, 2)
    except BrokenPipeError:  # the reader has seen enough: qlae data list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 2)
    except ModuleNotFoundError as error:
        explained = explain_missing(error, f"qlae {arguments[0]}" if arguments else "qlae")
        if explained is None:
            raise
        return _fail(explained, 2)
    except KeyboardInterrupt as stop:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # impatient further ones would only print a traceback
        if isinstance(command, Train) and str(stop):
            print(f"\nqlae: {stop}. To continue, run the same command again", file=sys.stderr)
        return 128 + getattr(stop, "signal", signal.SIGINT)
    except RuntimeError as error:
        if _is_divergence(error):
            return _fail(error, 1)
        raise
    return 0


def _find_command(arguments: list[str]) -> tuple[Any, str, list[str]]:
    """Return what to parse, the name that help and errors show for it, and its options.

    Only the named command is parsed, so that an error points to its help and not to that of all commands.
    """
    name, *options = arguments
    if name.startswith("-"):  # such as --tyro-print-completion
        return Command, "qlae", arguments
    require_command(name)
    forms = {annotation.__metadata__[0].name: annotation.__origin__ for annotation in typing.get_args(Command)}
    return forms[name], f"qlae {name}", options


def _is_divergence(error: RuntimeError) -> bool:
    if "qlae.training" not in sys.modules:  # only metrics were computed, perhaps without torch
        return False
    from ..training import TrainingDiverged

    return isinstance(error, TrainingDiverged)


def _require_run_directories(command: object) -> None:
    """Raise ``ValueError`` if a command that scores or draws runs gets the name of a shipped model."""
    if isinstance(command, Evaluate | Report):
        from ..runs.shipped import require_not_shipped

        for path in command.runs if isinstance(command, Report) else [command.run]:
            require_not_shipped(path)


def _own_process(command: object) -> None:
    """Tune the memory allocator for training, which only a program that owns its process may do."""
    if isinstance(command, Train):
        from .._process import keep_freed_memory

        keep_freed_memory()


def _reader_gone(console: Console) -> None:
    """Raise a `BrokenPipeError`, where a `rich` console would end the process with another exit status."""
    raise BrokenPipeError


def _fail(message: object, code: int) -> int:
    print(f"qlae: {message}", file=sys.stderr)
    return code


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"qlae: warning: {message}", file=sys.stderr)
