"""Decide every value of a config: model → size → recipe → data set → options, each of which overrides those before it.

``resolve_values`` is the one place where values are decided, such as the learning rate: the constants come from
``presets.py``, and each of its steps below sets the values that it has an opinion about. A value remembers which step
set it, which ``qlae train … --dry-run`` and ``qlae.configure`` show. The config that results holds every number that a
training depends on; nothing is looked up later. ``docs/configuration.md`` explains the order.
"""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ._checks import plain, require_known, require_not_negative, values_per_latent, whole_number
from .config import DataConfig, OptimizerConfig, RunConfig, TrainingConfig, require_number
from .observations import Observations
from .options import TrainingOptions, chosen_options, option_names, parse_curve
from .presets import (
    FORMS,
    LATENTS_PER_SOURCE,
    OFFICIAL_CLIP,
    PAPER_NETWORKS,
    ModelSpec,
    Recipe,
    TrainingPreset,
    find_model,
    find_recipe,
)
from .registry import LATENTS, NETWORKS, OBJECTIVES, Entry
from .schedules import Curve, LearningRateSchedule, check_curve, step_curve, warm_up_curve

#: Fewest latents for data of which more may vary than their known sources. Ten are usual in the field
#: (disentanglement_lib gives every model ten), suffice for the 5 to 9 sources of its benchmarks, and pruning tells
#: which of them a model does not use.
DEFAULT_LATENTS = 10
#: Data sets whose published files, too, vary in nothing but their sources.
PUBLISHED_SETS = ("shapes3d", "mpi3d", "falcor3d", "isaac3d", "dsprites")
#: Groups of values → where they are in a config.
PLACES = {
    "networks": "networks",
    "latent": "latent",
    "objective": "objective",
    "weights": "objective.weights",
    "schedules": "objective.schedules",
    "optimizer": "training.optimizer",
    "schedule": "training.schedule",
    "training": "training",
}
#: Options that set one value each → its group and its name there.
OPTIONS = {
    "steps": ("training", "steps"),
    "batch_size": ("training", "batch_size"),
    "learning_rate": ("optimizer", "learning_rate"),
    "schedule": ("schedule", "kind"),
    "decay_steps": ("schedule", "decay_steps"),
    "floor": ("schedule", "floor"),
    "learning_rate_warm_up": ("schedule", "warm_up"),
    "weight_decay": ("optimizer", "weight_decay"),
    "num_latents": ("latent", "num_latents"),
    "seed": ("training", "seed"),
    "precision": ("training", "precision"),
}
SHARES = "as shares of the run"  # of a schedule until the number of updates is known
COUNTS = ("steps", "batch_size", "decay_steps", "learning_rate_warm_up", "num_latents", "seed")  # whole numbers


class Origin(NamedTuple):
    """Where a value of a config comes from.

    Attributes:
        layer: ``"default"``, ``"model"``, ``"form"``, ``"size"``, ``"recipe"``, ``"data set"`` or ``"option"``.
        name: of the model, the size, …, the option.
        note: how the value follows, if it is not the layer's own number.
    """

    layer: str
    name: str = ""
    note: str = ""

    def __str__(self) -> str:
        layer = "your option" if self.layer == "option" else self.layer
        return f"{layer} {self.name}".strip() + (f", {self.note}" if self.note else "")


class Resolved(NamedTuple):
    """A config, and the origin of its values by dotted name, such as ``"training.optimizer.learning_rate"``."""

    config: RunConfig
    origins: dict[str, Origin]

    def origin_of(self, name: str) -> Origin:
        """Return the origin of a value, or of the part that it belongs to."""
        if name.startswith("data."):
            return Origin("data set", self.config.data.name)
        parts = name.split(".")
        known = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        return next((self.origins[place] for place in known if place in self.origins), Origin("default"))


class _Values:
    """Values in the groups of ``PLACES``; the one that is set last counts."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, Any]] = {group: {} for group in PLACES}
        self.origins: dict[str, Origin] = {}

    def set(self, group: str, origin: Origin, values: Mapping[str, Any]) -> None:
        """Set values of a group, all with the same origin."""
        self._groups[group] |= values
        self.origins |= {f"{PLACES[group]}.{name}": origin for name in values}

    def __getitem__(self, group: str) -> dict[str, Any]:
        return self._groups[group]

    def origin(self, group: str, name: str) -> Origin:
        return self.origins.get(f"{PLACES[group]}.{name}", Origin("default"))


class _Choices(NamedTuple):
    """What the values of a config follow from."""

    spec: ModelSpec
    data: DataConfig
    num_sources: int
    options: TrainingOptions  # the user's, and the model's where the user has none
    asked: Mapping[str, Any]  # the user's options alone
    own_networks: Sequence[str]
    auto_precision: str

    @property
    def is_gan(self) -> bool:
        return not OBJECTIVES[self.spec.objective].part.reconstructs

    @property
    def latent_fields(self) -> tuple[str, ...]:
        return _field_names(LATENTS[self.spec.latent])

    @property
    def objective_fields(self) -> tuple[str, ...]:
        return _field_names(OBJECTIVES[self.spec.objective])

    def origin(self, option: str) -> Origin:
        """Return where an option comes from: the user, or the model, whose options are the user's defaults."""
        if option in self.asked:
            return Origin("option", option)
        return Origin("model", self.spec.name) if option in self.spec.training else Origin("default")


def resolve(
    model: str | ModelSpec,
    data: DataConfig,
    num_sources: int,
    options: TrainingOptions | None = None,
    *,
    own_networks: Sequence[str] = (),
    **more: Any,
) -> RunConfig:
    """Return the whole config of a model on a data set; arguments as for `resolve_values`."""
    return resolve_values(model, data, num_sources, options, own_networks=own_networks, **more).config


def resolve_values(
    model: str | ModelSpec,
    data: DataConfig,
    num_sources: int,
    options: TrainingOptions | None = None,
    *,
    own_networks: Sequence[str] = (),
    auto_precision: str = "float32",
    **more: Any,
) -> Resolved:
    """Return the whole config of a model on a data set, and where each of its values comes from.

    Args:
        model: a key of ``MODELS``, or a specification.
        data: the observations; their name decides the tuned value.
        num_sources: number of sources of the data, from which the number of latents follows.
        options: the options of the training.
        own_networks: which of ``"encoder"`` and ``"decoder"`` the caller brings.
        auto_precision: what the precision ``"auto"`` means.
        more: further options by name, as in ``TrainingOptions``.
    """
    spec = find_model(model)
    for name in (*spec.training, *more):
        require_known(name, option_names(TrainingOptions), "training option")
    asked = replace(options or TrainingOptions(), **more)
    both = _with_defaults(asked, spec.training)
    choices = _Choices(spec, data, num_sources, both, chosen_options(asked), own_networks, auto_precision)
    require_known(both.form, FORMS, "form")
    recipe = find_recipe(both.recipe, model=spec.name, is_gan=choices.is_gan)

    values = _Values()
    _set_by_model(values, choices)
    _set_by_size(values, choices)
    _set_by_recipe(values, choices, recipe)
    _set_by_data(values, choices)
    _set_by_options(values, choices)
    _derive(values, choices)
    return Resolved(_build(values, choices), values.origins)


def _with_defaults(options: TrainingOptions, defaults: Mapping[str, Any]) -> TrainingOptions:
    """Return options with a model's defaults for those that are not set."""
    if options.schedule == "constant":  # then there is no decay that the model's defaults could describe
        defaults = {name: value for name, value in defaults.items() if name not in ("decay_steps", "floor")}
    return replace(TrainingOptions(**defaults), **chosen_options(options))


def _set_by_model(values: _Values, choices: _Choices) -> None:
    """Set the paper's constants for the objective, the model's weights and settings, and what its form changes."""
    spec, form = choices.spec, choices.options.form
    origin = Origin("model", spec.name)
    for group, constants in _constants(spec.training_preset("full"), choices).items():
        values.set(group, origin, constants)
    values.set("optimizer", origin, {"weight_decay": spec.weight_decay})
    values.set("weights", origin, spec.weights)
    if form == "official":
        _set_by_official_form(values, choices)
    for group, settings, fields in (
        ("latent", spec.latent_options, choices.latent_fields),
        ("objective", spec.objective_options, choices.objective_fields),
    ):
        kind = f"latent space {spec.latent}" if group == "latent" else f"objective {spec.objective}"
        values.set(group, origin, _checked_settings(settings, fields, f"setting of the {kind}"))


def _set_by_official_form(values: _Values, choices: _Choices) -> None:
    """Set what the authors' code does differently from the paper's text."""
    spec, origin = choices.spec, Origin("form", "official")
    preset = spec.training_preset("full")
    values.set("optimizer", origin, {"beta2": preset.beta2["official"], "decay_biases": False, "clip": OFFICIAL_CLIP})
    if spec.official_weight_decay is not None:
        values.set("optimizer", origin, {"weight_decay": spec.official_weight_decay})
    if "reduction" in choices.latent_fields:
        values.set("latent", origin, {"reduction": "mean"})


def _set_by_size(values: _Values, choices: _Choices) -> None:
    """Set the constants in which a size of the networks differs from the full one, unless the model settles them."""
    spec, size = choices.spec, choices.options.size
    full, sized = spec.training_preset("full"), spec.training_preset(size)
    before, after = _constants(full, choices), _constants(sized, choices)
    settled = {"latent": spec.latent_options, "objective": spec.objective_options}
    for group, constants in after.items():
        changed = {
            name: value
            for name, value in constants.items()
            if before[group].get(name) != value and name not in settled.get(group, ())
        }
        values.set(group, Origin("size", size), changed)


def _set_by_recipe(values: _Values, choices: _Choices, recipe: Recipe) -> None:
    """Set the length of the run, the schedule, and the weights of terms that the model can compute besides its own."""
    size, origin = choices.options.size, Origin("recipe", choices.options.recipe)
    values.set("schedule", origin, {"kind": recipe.schedule})
    if size in recipe.steps:
        values.set("training", origin, {"steps": recipe.steps[size]})
    offered = [name for name in _offered_terms(choices.spec) if name not in values["weights"]]
    weights = {name: weight for name, weight in recipe.weights.items() if name in offered}
    values.set("weights", origin, weights)
    curves = {name: curve for name, curve in recipe.weight_schedules.items() if name in weights}
    values.set("schedules", origin._replace(note=SHARES), curves)


def _set_by_data(values: _Values, choices: _Choices) -> None:
    """Set what was tuned on the data set, the number of latents, and networks that suit the observations."""
    spec, data, origin = choices.spec, choices.data, Origin("data set", choices.data.name)
    tuned = spec.weights_for(data.name)
    values.set("weights", origin, {name: tuned[name] for name in tuned if tuned[name] != spec.weights[name]})
    if data.name in spec.weight_decay_on and values.origin("optimizer", "weight_decay").layer != "form":
        values.set("optimizer", origin, {"weight_decay": spec.weight_decay_on[data.name]})
    if choices.options.num_latents is None:
        count = _count_latents(data, choices.num_sources, choices.options.num_values)
        values.set("latent", origin, {"num_latents": count})
    if spec.networks == PAPER_NETWORKS:
        values.origins["networks.kind"] = origin


def _set_by_options(values: _Values, choices: _Choices) -> None:
    """Set what the user asks for, or the model in place of the user."""
    for option, (group, name) in OPTIONS.items():
        value = getattr(choices.options, option)
        if value != getattr(TrainingOptions(), option):
            values.set(group, choices.origin(option), {name: plain(value) if option in COUNTS else value})
    _set_networks(values, choices)
    _set_latent(values, choices)
    _set_weights(values, choices)
    if choices.options.codebook_player != "generator":
        _set_codebook_player(values, choices)


def _set_networks(values: _Values, choices: _Choices) -> None:
    """Set those of the settings that every pair may have which this pair has, and the model's for it."""
    spec, options, model = choices.spec, choices.options, Origin("model", choices.spec.name)
    fields = _field_names(network_pair(spec, choices.data, options))
    patches = OBJECTIVES[spec.objective].part.networks_in_patches
    for name, value, origin in (
        ("size", options.size, choices.origin("size")),
        ("form", options.form, choices.origin("form")),
        ("patches", patches, model),
        ("own", tuple(choices.own_networks), Origin("option", "networks") if choices.own_networks else model),
    ):
        if name in fields:
            values.set("networks", origin, {name: value})
    own = _checked_settings(spec.networks_options, fields, f"setting of the networks {spec.networks}")
    values.set("networks", model, own)
    if options.networks is not None:
        values.origins["networks.kind"] = choices.origin("networks")
    elif spec.networks != PAPER_NETWORKS:
        values.origins["networks.kind"] = model


def _set_latent(values: _Values, choices: _Choices) -> None:
    """Set the options of the latent space; warn about those that it does not have."""
    name, options, fields = choices.spec.name, choices.options, choices.latent_fields
    if options.num_values is not None:
        if "num_values" in fields:
            values.set("latent", choices.origin("num_values"), {"num_values": plain(options.num_values)})
        else:
            warnings.warn(f"{name} has no codebooks, so num_values changes nothing", stacklevel=5)
    if options.fixed_values:
        if "learned" in fields:
            values.set("latent", choices.origin("fixed_values"), {"learned": False})
        else:
            warnings.warn(f"{name} has no codebooks that learn, so fixed_values changes nothing", stacklevel=5)
    if options.code_noise is not None:
        if "noise" not in fields or choices.is_gan:
            what = "is a GAN" if choices.is_gan else f"has the latent space {choices.spec.latent!r}"
            raise ValueError(
                f"code_noise is for autoencoders with the latent space 'quantized', as qlae has, and {name} {what}"
            )
        noise = require_not_negative("code_noise", options.code_noise)
        values.set("latent", choices.origin("code_noise"), {"noise": noise})


def _set_weights(values: _Values, choices: _Choices) -> None:
    """Set the weights of loss terms and their schedules."""
    spec, options = choices.spec, choices.options
    known = dict.fromkeys((*values["weights"], *_offered_terms(spec)))
    for name, weight in _mapping("weights", options.weights).items():
        require_known(name, known, f"loss term of {spec.name}")
        values.set("weights", choices.origin("weights"), {name: weight})
    warm_up = 0 if options.warm_up is None else plain(options.warm_up)
    require_number("warm_up", warm_up)
    if warm_up:
        objective = OBJECTIVES[spec.objective].part
        of_latent = [name for name in spec.weights if name not in (*objective.terms, *objective.optional_terms)]
        curve = check_curve("warm_up", warm_up_curve(warm_up))
        values.set("schedules", choices.origin("warm_up"), dict.fromkeys(of_latent, curve))
    for name, points in _mapping("weight_schedules", options.weight_schedules).items():
        require_known(name, values["weights"], f"loss term of {spec.name}")
        curve = check_curve(f"the schedule of {name}", parse_curve(points) if isinstance(points, str) else points)
        values.set("schedules", choices.origin("weight_schedules"), {name: curve})


def _set_codebook_player(values: _Values, choices: _Choices) -> None:
    if "codebook_player" in choices.objective_fields and "learned" in choices.latent_fields:
        player = {"codebook_player": choices.options.codebook_player}
        values.set("objective", choices.origin("codebook_player"), player)
    else:
        warnings.warn(
            f"{choices.spec.name} is not a GAN with codebooks that learn, so codebook_player changes nothing",
            stacklevel=5,
        )


def _derive(values: _Values, choices: _Choices) -> None:
    """Set the values that follow from others: shares of the run become updates, and factors are multiplied."""
    options, preset = choices.options, choices.spec.training_preset(choices.options.size)
    steps = values["training"]["steps"] = whole_number("steps", values["training"]["steps"])
    _derive_schedule(values, preset, steps)
    for name, curve in values["schedules"].items():
        if values.origin("schedules", name).note == SHARES:
            values["schedules"][name] = tuple((round(share * steps), factor) for share, factor in curve)
    if options.weight_decay is None:
        _scale_weight_decay(values, preset.weight_decay_factor, options.size)
    if options.weight_decay_schedule not in (None, "constant"):
        curve = _decay_curve(options.weight_decay_schedule, steps)
        values.set("training", choices.origin("weight_decay_schedule"), {"weight_decay_schedule": curve})
    if options.precision == "auto":
        values.set("training", Origin("default", note="for this device"), {"precision": choices.auto_precision})


def _derive_schedule(values: _Values, preset: TrainingPreset, steps: int) -> None:
    """Set the length of a decay of the learning rate; without one, leave out what describes it."""
    schedule, origin = values["schedule"], values.origin("schedule", "kind")
    if schedule["kind"] == "constant":
        if "decay_steps" in schedule or schedule.get("floor"):
            warnings.warn("the learning rate is constant, so decay_steps and floor change nothing", stacklevel=5)
        for name in ("decay_steps", "floor"):
            schedule.pop(name, None)
            values.origins.pop(f"{PLACES['schedule']}.{name}", None)
        return
    if "decay_steps" not in schedule:
        note = f"{preset.decay_share:.0%} of the updates"
        count = max(1, int(preset.decay_share * steps))
        values.set("schedule", origin._replace(note=note), {"decay_steps": count})
    schedule["floor"] = float(schedule.get("floor", 0.0))


def _scale_weight_decay(values: _Values, factor: float, size: str) -> None:
    """Multiply the weight decay, which was tuned for full networks, by the factor of a size."""
    origin = values.origin("optimizer", "weight_decay")
    weight_decay = float(f"{factor * values['optimizer']['weight_decay']:.12g}")  # 3 · 0.1 is 0.3, also in files
    note = "" if factor == 1 or not weight_decay else f"times {factor:g} for size {size}"
    values.set("optimizer", origin._replace(note=note), {"weight_decay": weight_decay})


def _decay_curve(schedule: Any, steps: int) -> Curve:
    """Return the factors on the weight decay: a step at half of the run, or a curve."""
    if schedule == "step":
        return step_curve(steps)
    return check_curve("weight_decay_schedule", parse_curve(schedule) if isinstance(schedule, str) else schedule)


def _build(values: _Values, choices: _Choices) -> RunConfig:
    """Return the config that holds all values."""
    spec, latent = choices.spec, values["latent"]
    if "num_values" in latent:
        values_per_latent(latent["num_latents"], latent["num_values"])
    values.origins["latent.kind"] = values.origins["objective.kind"] = Origin("model", spec.name)
    values.origins["model"] = Origin("option", "model")
    optimizer, schedule = OptimizerConfig(**values["optimizer"]), LearningRateSchedule(**values["schedule"])
    weights = {"weights": values["weights"], "schedules": values["schedules"]}
    return RunConfig(
        model=spec.name,
        data=choices.data,
        networks=network_pair(spec, choices.data, choices.options).config(**values["networks"]),
        latent=LATENTS[spec.latent].config(**latent),
        objective=OBJECTIVES[spec.objective].config(**weights, **values["objective"]),
        training=TrainingConfig(optimizer=optimizer, schedule=schedule, **values["training"]),
    )


def _constants(preset: TrainingPreset, choices: _Choices) -> dict[str, dict[str, Any]]:
    """Return the constants of a preset by group; settings that the model's parts do not have are left out."""
    latent = {"num_values": preset.num_values, **preset.latent_options}
    return {
        "optimizer": {
            "learning_rate": preset.learning_rate,
            "beta1": preset.beta1,
            "beta2": preset.beta2["paper"],
            "clip": preset.clip,
        },
        "training": {"batch_size": preset.batch_size, "steps": preset.steps},
        "latent": {name: value for name, value in latent.items() if name in choices.latent_fields},
        "objective": {n: value for n, value in preset.objective_options.items() if n in choices.objective_fields},
    }


def _offered_terms(spec: ModelSpec) -> list[str]:
    """Return the loss terms that a model can compute besides its own."""
    objective, latent = OBJECTIVES[spec.objective].part, LATENTS[spec.latent].part
    return [name for name in objective.optional_terms if name not in objective.code_terms or latent.has_scalar_codes]


def network_pair(spec: ModelSpec, data: DataConfig, options: TrainingOptions) -> Entry:
    """Return the network pair of a model on a data set: the one that is asked for, or that of the observations."""
    default = data.observations.traits.networks if spec.networks == PAPER_NETWORKS else spec.networks
    return NETWORKS[options.networks or default]


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        example = '{"reconstruct": 1.0}' if name == "weights" else '{"quantize": [[0, 0.0], [5000, 1.0]]}'
        raise ValueError(f"{name} must map loss terms to their values, such as {example}, got {value!r}")
    return value


def _field_names(entry: Entry) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(entry.config))


def _checked_settings(settings: Mapping[str, Any], fields: Sequence[str], what: str) -> dict[str, Any]:
    return {require_known(name, fields, what): value for name, value in settings.items()}


def _count_latents(data: DataConfig, num_sources: int, num_values: Any) -> int:
    """Return the paper's number of latents or, where sources need not be all that varies, at least ten.

    Sources are all that varies where they generated the data: in rendered and generated data and in published sets.
    Labels of real data rarely are: digits differ in slant and thickness, too. There, a list of numbers of values also
    says how many latents there are.
    """
    from_sources = LATENTS_PER_SOURCE * num_sources
    if num_sources and (data.origin != "real" or data.name in PUBLISHED_SETS):
        return from_sources
    if isinstance(num_values, list | tuple) and len(num_values):
        return len(num_values)
    num_latents = max(from_sources, default_latents(data.observations))
    if num_latents > from_sources:
        sources = "sources" if num_sources > 1 else "source"
        reason = f"{num_sources} {sources}, and more may vary than that" if num_sources else "no sources to count"
        warnings.warn(
            f"{data.name} has {reason}, so the model gets {num_latents} latents; choose another number with "
            f"num_latents={2 * num_latents}",
            stacklevel=4,
        )
    return num_latents


def default_latents(observed: Observations) -> int:
    """Return the number of latents for observations whose sources are unknown; never more than they have entries."""
    return min(DEFAULT_LATENTS, observed.num_entries)
