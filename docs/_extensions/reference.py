"""Write the reference pages from the package itself: every public name, the help of every command, and plans."""

import importlib
import inspect
import os
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import docstring_parser
from generated_pages import register, write_page

#: Page of the reference → module, in the order of the navigation.
MODULES = {
    "qlae": "The functions that most programs need. [Options of training](options.md) lists what `train` accepts.",
    "qlae.data": "Data sets: rendered, published, and your own.",
    "qlae.metrics": "Metrics over plain arrays.",
    "qlae.models": "Models: encoder, latent space, decoder.",
    "qlae.models.latents": "Latent spaces.",
    "qlae.models.networks": "Encoders and decoders: the paper's, and Tripod's.",
    "qlae.objectives": "Objectives: what a model is trained to do.",
    "qlae.training": "Training and callbacks.",
    "qlae.report": "Tables and pictures of runs.",
    "qlae.selection": "Comparing runs without labels.",
    "qlae.study": "Studies: many runs, tables and figures.",
    "qlae.study.report": "Reports of studies.",
    "qlae.explorer": "The explorer.",
    "qlae.description": "What the latents of a model mean.",
}
#: What programs use of a module, in the order of use. Other names are for extensions, and follow.
USED = {
    "qlae": (
        *("load_data", "configure", "train", "resume", "evaluate", "rescore", "load", "encode", "decode", "add_codes"),
        *("describe", "name_latents", "train_seeds", "select", "consensus", "train_consensus", "train_consensus_model"),
        *("find_components", "QLAE", "Run", "SourceDataset"),
    ),
    "qlae.data": ("load_data", "data_names", "keep_on_disk", "hold_out_as", "register_dataset", "SourceDataset"),
    "qlae.metrics": (
        *("score", "score_file", "print_scores", "score_table", "null_scores", "r2", "r2_per_feature", "psnr", "nmi"),
        *("mutual_information", "active_latents", "beta_vae_score", "factor_vae_score", "plot_nmi", "nmi_figure"),
        *("metric_names", "Scores", "NullScores", "InfoMEC", "ConditionalInfoMEC", "DCI"),
    ),
    "qlae.models": ("Model", "build_model"),
    "qlae.models.latents": (
        *("QuantizedLatent", "FiniteScalarLatent", "VectorQuantizedLatent", "RelaxedLatent", "GaussianLatent"),
        *("UniformLatent", "ContinuousLatent", "IndependentComponents"),
    ),
    "qlae.training": ("Callback", "train_run", "TrainingDiverged", "TrainingInterrupted"),
    "qlae.report": ("results_table", "print_results", "intervals_table", "draw_pictures"),
    "qlae.selection": ("represent", "Representation", "agreement", "similarity"),
    "qlae.study": ("plan_names", "read_plan", "run_study", "collect", "Plan", "StudyFolder"),
    "qlae.explorer": ("explore", "save_page", "open_run", "Exploration"),
}
#: Descriptions of tables, constants and type aliases, which have no docstrings.
ABOUT = {
    "DATA": "The table of kinds of data; `DATA.register` adds one.",
    "LATENTS": "The table of latent spaces by kind; `LATENTS.register` adds one.",
    "NETWORKS": "The table of encoder and decoder pairs by kind; `NETWORKS.register` adds one.",
    "OBJECTIVES": "The table of objectives by kind; `OBJECTIVES.register` adds one.",
    "METRICS": "The table of metrics by name; `register_metric` adds one.",
    "Progress": "The type of functions that are called with the number of items done and the total.",
    "Networks": "The type of an encoder and a decoder, each of which may be missing.",
    "Terms": "The type of loss terms: scalars by name.",
    "PAPER": "The form that follows the paper's text.",
    "OFFICIAL": "The form that follows the authors' code.",
    "FULL": "The size of the paper's networks.",
    "SMALL": "The size of networks that a CPU can train in minutes.",
}
WIDTH = 88  # characters of help that fit on a page
PLANS = """# Plans of studies

A plan is a TOML or JSON file that describes a study: data sets × models × one tuned hyperparameter per model × seeds.
Reading a plan executes nothing. [Studies](../../study.md#the-plan) explains how to write one, and what its top-level
keys mean; this page lists all other keys.

```bash
qlae study mine.toml --dry-run      # check a plan and list its runs
```"""


def write_pages(folder: Path) -> None:
    """Write the pages of all modules, of the command line, of options and of plans."""
    folder.mkdir(parents=True, exist_ok=True)
    for module, about in MODULES.items():
        write_page(folder / f"{module}.md", module_page(module, about))
    write_page(folder / "command-line.md", command_page())
    write_page(folder / "options.md", options_page())
    write_page(folder / "plans.md", plan_page())


def module_page(name: str, about: str) -> str:
    """Return a page with every public name of a module: those in `USED` in their order, then all others."""
    module = importlib.import_module(name)
    used = USED.get(name, ())
    others = [public for public in module.__all__ if public not in ("__version__", *used)]
    others.sort(key=lambda public: _rank(getattr(module, public)))
    homes = {public: _home(name, public, getattr(module, public)) for public in (*used, *others)}
    lines = [f"# {name}", "", about]
    for heading, names in (("", used), ("For extensions:" if used else "", others)):
        if names:
            lines += ["", *([heading, ""] if heading else []), "| name | what it does |", "|---|---|"]
            lines += [
                f"| {{py:obj}}`~{homes[public]}.{public}` | {_summary(public, getattr(module, public))} |"
                for public in names
            ]
    for public, home in homes.items():
        lines += ["", *(_entry(name, public, getattr(module, public)) if home == name else [])]
    return "\n".join(lines)


def _home(module: str, name: str, thing: Any) -> str:
    """Return the module on whose page a name is described: the deepest that has it."""
    other = next((other for other in MODULES if other != module and _has(other, name, thing)), module)
    return other if other.count(".") > module.count(".") else module


def _summary(name: str, thing: Any) -> str:
    """Return what a name is in one line, for a table: the first paragraph of its docstring."""
    text = ABOUT.get(name) or inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _rank(thing: Any) -> int:
    """Return where a kind of thing stands on a page: functions, then classes, then the rest."""
    return 0 if isinstance(thing, types.FunctionType) else 1 if isinstance(thing, type) else 2


def _has(module: str, name: str, thing: Any) -> bool:
    other = importlib.import_module(module)
    return name in other.__all__ and getattr(other, name) is thing


def _entry(module: str, name: str, thing: Any) -> list[str]:
    if isinstance(thing, types.FunctionType):
        directive = f".. autofunction:: {module}.{name}"
    elif isinstance(thing, type) and thing.__module__.startswith("qlae"):
        directive = f".. {'autoexception' if issubclass(thing, BaseException) else 'autoclass'}:: {module}.{name}"
    else:  # a table, a constant, or another name of a type
        about = ABOUT[name].replace("`", "``")
        value = [] if type(thing).__module__.startswith("qlae") else ["", f"   ``{_plain(thing)}``"]
        return ["```{eval-rst}", f".. py:data:: {module}.{name}", "", f"   {about}", *value, "```"]
    return ["```{eval-rst}", directive, "```"]


def _plain(thing: Any) -> str:
    """Return how a type is written; of a table, its keys."""
    return ", ".join(map(str, thing)) if isinstance(thing, Mapping) else str(thing).replace("collections.abc.", "")


def command_page() -> str:
    """Return a page with the help of every command."""
    from qlae.cli import COMMANDS, overview

    lines = ["# Command line", "", "```text", overview(), "```", ""]
    for command in COMMANDS:
        lines += [f"## qlae {command}", "", "```text", _help_of(command), "```", ""]
    return "\n".join(lines)


def _help_of(command: str) -> str:
    environment = os.environ | {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    program = [sys.executable, "-m", "qlae", command, "--help-all"]
    result = subprocess.run(program, capture_output=True, text=True, env=environment, check=True)
    lines = (textwrap.fill(line, WIDTH) if len(line) > WIDTH else line for line in result.stdout.splitlines())
    return "\n".join(lines).rstrip()  # descriptions are not wrapped without a terminal


def options_page() -> str:
    """Return a page with the options of training and of its execution."""
    lines = ["# Options of training", "", "Keyword arguments of `qlae.train`; on the command line `num_latents` is"]
    lines += [
        "`--num-latents`, and so on. An option that is not set follows the recipe and the preset of the model.",
        "",
    ]
    for name in ("TrainingOptions", "ExecutionOptions"):
        lines += ["```{eval-rst}", f".. autoclass:: qlae.options.{name}", "   :no-members:", "```", ""]
    return "\n".join(lines)


def plan_page() -> str:
    """Return a page with every key of a plan and the text of every plan that comes with the package."""
    from qlae.data import load_data
    from qlae.options import TrainingOptions
    from qlae.study.plan import MODEL_OPTIONS, plan_names

    lines = [PLANS, "", "## Keys of a data set", "", "Arguments of `qlae.load_data`, below `[data.LABEL]`.", ""]
    own = {
        "name": "Name or path of the data set, if the label is not.",
        "correlated": 'Correlations between pairs of sources, such as `[["scale", "shape", 0.5]]`.',
        "source_columns": "Columns of a table that are sources.",
        "drop_columns": "Columns of a table that are left out.",
    }
    options = _listed_options(load_data)
    in_memory = ("feature_names",)
    lines += _definitions(["name", *(key for key in options if key not in in_memory)], options | own)
    lines += [
        "## Keys of a model",
        "",
        "For one model below `[models.LABEL]`, or at the top of the plan for all models.",
    ]
    lines += ["Keys that are left out follow the recipe and the preset, the paper's by default.", ""]
    own = {
        "model": "Name of the model, if the label is not.",
        "grid": "Values of the tuned hyperparameter, instead of the paper's. An empty list tunes nothing.",
        "rerun_seeds": "Number of seeds of this model, instead of the plan's.",
    }
    lines += _definitions([*own, *MODEL_OPTIONS], own | _descriptions(TrainingOptions))
    lines += ["## Plans that come with the package", ""]
    for name in plan_names():
        text = (resources.files("qlae.study") / "plans" / f"{name}.toml").read_text()
        lines += [f"### {name}", "", "```toml", text.rstrip(), "```", ""]
    return "\n".join(lines)


def _descriptions(thing: Any) -> dict[str, str]:
    """Return what a docstring says about each argument or attribute; two that share a text both have it."""
    parameters = docstring_parser.parse(thing.__doc__ or "").params
    texts = {parameter.arg_name: " ".join((parameter.description or "").split()) for parameter in parameters}
    return {name: text for names, text in texts.items() for name in names.split(", ")}


def _listed_options(thing: Any) -> dict[str, str]:
    """Return what a docstring says about each option in a list such as "- ``seed``: determines the noise."."""
    options: dict[str, str] = {}
    for names, text in re.findall(
        r"^ *- (``.+?``): (.+?)(?=^ *- |^ *$)", thing.__doc__ or "", re.MULTILINE | re.DOTALL
    ):
        options |= dict.fromkeys(re.findall(r"\w+", names), " ".join(text.split()))
    return options


def _definitions(names: Iterable[str], about: dict[str, str]) -> list[str]:
    lines = []
    for name in names:
        text = about[name].replace("``", "`")
        lines += [f"`{name}`", f": {text[0].upper()}{text[1:]}", ""]
    return lines


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    return register(app, lambda folder, root: write_pages(folder))
