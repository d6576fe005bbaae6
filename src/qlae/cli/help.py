"""The help of commands: the options that most people need with ``--help``, and all of them with ``--help-all``."""

import dataclasses
import inspect
import typing
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import docstring_parser
from tyro.conf import Positional, arg

#: Command → the options that ``--help`` shows, with a short text where the first sentence of the long one does not fit
#: on a line. Commands that are not listed show all of theirs, which fit on a screen.
COMMON: dict[str, dict[str, str]] = {
    "train": {
        "model": "Such as qlae, ae or vq-vae; --help-all lists all models.",
        "data": "A name, or the path of images, arrays or a table.",
        "resolution": "Height and width of the images in pixels; 64 by default.",
        "source_columns": "Columns of a table that are sources; the others are features.",
        "recipe": "The paper's training, or a faster one.",
        "size": "The paper's networks, or small ones; small without a GPU.",
        "num_latents": "Number of latents; two per source, at least 10 for your data.",
        "num_values": "Values per latent, one number or one per latent.",
        "steps": "Number of updates; 200,000 in the paper, 7,000 with size small.",
        "seed": "",
        "out": "The run directory; by default runs/DATA-MODEL-SIZE-sSEED.",
        "seeds": "Train this many seeds, and choose one of the runs without labels.",
        "consensus": "Train this many seeds, and one model of the latents that they share.",
        "dry_run": "Print every value, the memory and the time; train and write nothing.",
        "resume": "Resume the run in this directory with its own configuration.",
        "device": "auto, cpu, cuda, cuda:1, …",
        "threads": "Number of CPU threads; by default as many as are fastest.",
        "quiet": "",
    },
    **{
        command: dict.fromkeys(options.split(), "")
        for command, options in (
            ("evaluate", "run from_sample num_samples protocol metrics bootstrap jobs device imports"),
            ("study", "plan folder out dry_run list retry_failed imports engine workers threads device no_report"),
            ("score", "files sources source_columns metrics latent_kind source_kinds bootstrap json plot"),
            ("data render", "data out resolution sources continuous correlated num_images noise"),
            ("data inspect", "data out resolution sources source_file source_columns drop_columns layout"),
        )
    },
}
#: Group of options → its title, if its name in the code is not what a reader looks for.
TITLES = {"images": "data", "training": "optimization", "execution": "machine"}
#: Options that stand under another title than the rest of their group.
ELSEWHERE = {
    **dict.fromkeys(("size", "recipe", "form", "networks", "num_latents", "num_values", "fixed_values"), "model"),
    **dict.fromkeys(("codebook_player", "precision"), "model"),
}


class Option(NamedTuple):
    """An option of a command, as help shows it; ``topic`` is empty for options of the command itself."""

    name: str
    hint: Any
    default: Any
    default_factory: Any
    text: str
    topic: str

    def field(self) -> Any:
        """Return a field of a dataclass with the default of the option."""
        return dataclasses.field(default=self.default, default_factory=self.default_factory)


def help_form(command: Any, name: str, *, everything: bool) -> Any:
    """Return a dataclass with the options of a command that its help shows, in groups by topic.

    Args:
        command: the class of the command.
        name: of the command, as typed after ``qlae``.
        everything: whether to show all options; otherwise those in `COMMON`, each with the first sentence of its text.
    """
    options, shown = list(options_of(command)), COMMON.get(name)
    texts, _, _ = (inspect.getdoc(command) or "").partition("Attributes:")
    if not everything and shown is not None:
        hidden = len(options) - len(shown)
        texts = f"{texts.rstrip()}\n`qlae {name} --help-all` shows {hidden} more options."
        options = [
            option._replace(text=shown[option.name] or _first_sentence(option.text))
            for option in options
            if option.name in shown
        ]
    topics: dict[str, list[Any]] = defaultdict(list)
    known = {option.topic for option in options}
    for option in options:
        hint, own, topic = Annotated[option.hint, arg(help=option.text)], option.name, option.topic
        if own in known and Positional in typing.get_args(option.hint):  # whose name is not shown
            own = f"{own}_"
        elif own in known:
            topic = own
        topics[topic].append((own, hint, option.field()))
    groups = {
        topic: dataclasses.make_dataclass(topic, fields, frozen=True) for topic, fields in topics.items() if topic
    }
    fields = [(topic, group, dataclasses.field(default_factory=group)) for topic, group in groups.items()]
    for group in groups.values():
        group.__doc__ = ""  # instead of the signature, which would be its description
    return dataclasses.make_dataclass(
        command.__name__, [*topics[""], *fields], namespace={"__doc__": texts}, frozen=True
    )


def options_of(command: Any, group: str = "") -> Iterator[Option]:
    """Yield the options of a command and of the groups in it, with their texts."""
    hints, texts = typing.get_type_hints(command, include_extras=True), _texts(command)
    for field in dataclasses.fields(command):
        hint = hints[field.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            yield from options_of(hint, field.name)
            continue
        topic = ELSEWHERE.get(field.name, TITLES.get(group, group)) if group else ""
        text = texts.get(field.name, "")
        yield Option(field.name, hint, field.default, field.default_factory, text, topic)


def _texts(command: Any) -> dict[str, str]:
    """Return the text of each attribute in the docstring of a dataclass and of those that it extends."""
    texts: dict[str, str] = {}
    for each in reversed(command.__mro__[:-1]):
        described = docstring_parser.parse(each.__doc__ or "").params
        texts |= {param.arg_name: " ".join((param.description or "").split()) for param in described}
    return texts


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text.

    >>> _first_sentence("Number of updates; 7,000 by default. GANs need more.")
    'Number of updates; 7,000 by default.'
    """
    first, end, _ = text.partition(". ")
    return first + end.strip()
