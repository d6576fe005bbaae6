"""Decide every value of a config: model → size → recipe → data set → options, each of which overrides those before it.

``resolve_values`` is the one place where values are decided, such as the learning rate: the constants come from
``presets.py``, and each step below sets the values that it has an opinion about. A value remembers which step set it,
which ``qlae train … --dry-run`` and ``qlae.configure`` show. The config that results holds every number that a training
depends on; nothing is looked up later. ``docs/configuration.md`` explains the order.
"""

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ._checks import plain, require_known, require_not_negative, values_per_latent, whole_number
from .config import DataConfig, OptimizerConfig, RunConfig, TrainingConfig
from .observations import Observations
from .options import TrainingOptions, chosen_options, option_names
from .presets import FORMS, LATENTS_PER_SOURCE, OFFICIAL_CLIP, PAPER_NETWORKS, RECIPES, ModelSpec, find_model
from .registry import LATENTS, NETWORKS, OBJECTIVES, Entry, Registry
from .schedules import LearningRateSchedule, check_curve, step_curve, warm_up_curve

#: Fewest latents for data of which more may vary than their known sources. Ten are usual in the field
#: (disentanglement_lib gives every model ten), suffice for the 5 to 9 sources of its benchmarks, and pruning tells
#: which of them a model does not use.
DEFAULT_LATENTS = 10
#: Data sets whose published files, too, vary in nothing but their sources.
PUBLISHED_SETS = ("shapes3d", "mpi3d", "falcor3d", "isaac3d", "dsprites")
#: Options that set one value each → its dotted name.
OPTIONS = {
    "steps": "training.steps",
    "batch_size": "training.batch_size",
    "learning_rate": "training.optimizer.learning_rate",
    "schedule": "training.schedule.kind",
    "decay_steps": "training.schedule.decay_steps",
    "floor": "training.schedule.floor",
    "learning_rate_warm_up": "training.schedule.warm_up",
    "weight_decay": "training.optimizer.weight_decay",
    "num_latents": "latent.num_latents",
    "seed": "training.seed",
    "precision": "training.precision",
}
SHARES = "as shares of the run"  # of a schedule until the number of updates is known
FOR_DEVICE = "for this device"


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


def resolve(
    model: str | ModelSpec, data: DataConfig, num_sources: int, options: TrainingOptions | None = None, **more: Any
) -> RunConfig:
    """Return the whole config of a model on a data set; arguments as for `resolve_values`."""
    return resolve_values(model, data, num_sources, options, **more)[0]


def resolve_values(
    model: str | ModelSpec,
    data: DataConfig,
    num_sources: int,
    options: TrainingOptions | None = None,
    *,
    own_networks: Sequence[str] = (),
    auto_precision: str = "float32",
    default_size: str = "full",
    **more: Any,
) -> tuple[RunConfig, dict[str, Origin]]:
    """Return the whole config of a model on a data set, and the origin of each value by its dotted name.

    Args:
        model: a key of ``MODELS``, or a specification.
        data: the observations; their name decides the tuned value.
        num_sources: number of sources of the data, from which the number of latents follows.
        options: the options of the training.
        own_networks: which of ``"encoder"`` and ``"decoder"`` the caller brings.
        auto_precision: what the precision ``"auto"`` means.
        default_size: the size if neither the options nor the model choose one.
        more: further options by name, as in ``TrainingOptions``.
    """
    spec = find_model(model)
    for name in (*spec.training, *more):
        require_known(name, option_names(TrainingOptions), "training option")
    values = _Values(spec, data, replace(options or TrainingOptions(), **more), default_size)
    values.set_by_model_and_size()
    values.set_by_recipe()
    values.set_by_data(num_sources)
    values.set_by_options()
    values.set_by_networks(own_networks)
    values.derive(auto_precision)
    config = values.build()
    return config, {name: values.origin(name) for name in config.values()}


class _Values:
    """The values of a config by part and name, and their origins by dotted name; the one that is set last counts."""

    def __init__(self, spec: ModelSpec, data: DataConfig, asked: TrainingOptions, default_size: str):
        defaults = dict(spec.training)
        if asked.schedule == "constant":  # then there is no decay that the model's defaults could describe
            defaults = {name: value for name, value in defaults.items() if name not in ("decay_steps", "floor")}
        self.spec, self.data, self.asked = spec, data, chosen_options(asked)
        self.options = replace(TrainingOptions(**defaults), **self.asked)
        self.size: str = self.options.size or default_size
        require_known(self.options.form, FORMS, "form")
        self.model, self.preset = Origin("model", spec.name), spec.training_preset(self.size)
        self.objective, self.latent = OBJECTIVES[spec.objective], LATENTS[spec.latent]
        self.is_gan = not self.objective.part.reconstructs
        self.parts: dict[str, dict[str, Any]] = defaultdict(dict)
        self.origins: dict[str, Origin] = {}

    def set(self, part: str, origin: Origin, **values: Any) -> None:
        """Set values of a part, all with the same origin."""
        self.parts[part] |= values
        self.origins |= {f"{part}.{name}": origin for name in values}

    def origin(self, name: str) -> Origin:
        """Return the origin of a value, or of the part that it belongs to."""
        if name.startswith("data."):
            return Origin("data set", self.data.name)
        while name not in self.origins and "." in name:
            name = name.rpartition(".")[0]
        return self.origins.get(name, Origin("default"))

    def option(self, name: str) -> Origin:
        """Return where an option comes from: the user, or the model, whose options are the user's defaults."""
        if name in self.asked:
            return Origin("option", name)
        return self.model if name in self.spec.training else Origin("default")

    # -- the order of the steps

    def set_by_model_and_size(self) -> None:
        """Set the paper's constants, those of a smaller size where it differs, and the model's weights and settings."""
        spec, full = self.spec, self._constants("full")
        for part, constants in self._constants(self.size).items():
            for name, value in constants.items():
                is_models = full[part].get(name) == value
                self.set(part, self.model if is_models else Origin("size", self.size), **{name: value})
        self.set("training.optimizer", self.model, weight_decay=spec.weight_decay)
        self.set("objective.weights", self.model, **spec.weights)
        if self.options.form == "official":  # what the authors' code does differently from the paper's text
            official, beta2 = Origin("form", "official"), spec.training_preset("full").beta2["official"]
            self.set("training.optimizer", official, beta2=beta2, decay_biases=False, clip=OFFICIAL_CLIP)
            if spec.official_weight_decay is not None:
                self.set("training.optimizer", official, weight_decay=spec.official_weight_decay)
            if "reduction" in self.latent.fields:
                self.set("latent", official, reduction="mean")
        self.set("latent", self.model, **spec.latent_options)
        self.set("objective", self.model, **spec.objective_options)

    def _constants(self, size: str) -> dict[str, dict[str, Any]]:
        """Return the constants of a size by part; settings that the model's parts do not have are left out."""
        preset = self.spec.training_preset(size)
        latent = {"num_values": preset.num_values, **preset.latent_options}
        optimizer = {name: getattr(preset, name) for name in ("learning_rate", "beta1", "clip")}
        return {
            "training.optimizer": {**optimizer, "beta2": preset.beta2["paper"]},
            "training": {"batch_size": preset.batch_size, "steps": preset.steps},
            "latent": {name: latent[name] for name in latent if name in self.latent.fields},
            "objective": {n: value for n, value in preset.objective_options.items() if n in self.objective.fields},
        }

    def set_by_recipe(self) -> None:
        """Set the length of the run, the schedule, and weights of optional terms that the model can compute."""
        spec, size, origin = self.spec, self.size, Origin("recipe", self.options.recipe)
        recipe = RECIPES[require_known(self.options.recipe, RECIPES, "recipe")]
        if self.is_gan and recipe != RECIPES["paper"]:
            raise ValueError(
                f"the recipe {self.options.recipe!r} is for autoencoders, and {spec.name} is a GAN; use the recipe "
                "'paper'"
            )
        self.set("training.schedule", origin, kind=recipe.schedule)
        if size in recipe.steps:
            self.set("training", origin, steps=recipe.steps[size])
        offered = set(self._offered_terms()) - set(spec.weights)
        weights = {name: weight for name, weight in recipe.weights.items() if name in offered}
        self.set("objective.weights", origin, **weights)
        curves = {name: curve for name, curve in recipe.weight_schedules.items() if name in weights}
        self.set("objective.schedules", origin._replace(note=SHARES), **curves)

    def _offered_terms(self) -> list[str]:
        """Return the loss terms that a model can compute in addition to its own."""
        objective, has_scalar_codes = self.objective.part, self.latent.part.has_scalar_codes
        return [name for name in objective.optional_terms if name not in objective.code_terms or has_scalar_codes]

    def set_by_data(self, num_sources: int) -> None:
        """Set the values tuned on the data set, and the number of latents."""
        spec, name, origin = self.spec, self.data.name, Origin("data set", self.data.name)
        tuned = {term: weight for term, weight in spec.weights_for(name).items() if weight != spec.weights[term]}
        self.set("objective.weights", origin, **tuned)
        if name in spec.weight_decay_on and self.origin("training.optimizer.weight_decay").layer != "form":
            self.set("training.optimizer", origin, weight_decay=spec.weight_decay_on[name])
        if self.options.num_latents is None:
            self.set("latent", origin, num_latents=_count_latents(self.data, num_sources, self.options.num_values))

    def set_by_options(self) -> None:
        """Set what the user asks for, or the model in place of the user."""
        options, chosen, fields = self.options, chosen_options(self.options), self.latent.fields
        for option in (name for name in OPTIONS if name in chosen):
            part, _, name = OPTIONS[option].rpartition(".")
            self.set(part, self.option(option), **{name: plain(chosen[option])})
        is_learned, player = "learned" in fields, {"codebook_player": options.codebook_player}
        has_player, no_player = "codebook_player" in self.objective.fields, "is not a GAN with codebooks that learn"
        for option, possible, part, value, lacking in (
            ("num_values", "num_values" in fields, "latent", {"num_values": options.num_values}, "has no codebooks"),
            ("fixed_values", is_learned, "latent", {"learned": False}, "has no codebooks that learn"),
            ("codebook_player", has_player and is_learned, "objective", player, no_player),
        ):
            if option in chosen and possible:
                self.set(part, self.option(option), **value)
            elif option in chosen:
                warnings.warn(f"{self.spec.name} {lacking}, so {option} changes nothing", stacklevel=5)
        self._set_weights()

    def _set_weights(self) -> None:
        """Set the weights of loss terms and their schedules."""
        options, weights, what = self.options, self.parts["objective.weights"], f"loss term of {self.spec.name}"
        for name in ("weights", "weight_schedules"):
            if not isinstance(getattr(options, name), Mapping):
                raise ValueError(f"{name} must map loss terms to their values, got {getattr(options, name)!r}")
        known = dict.fromkeys((*weights, *self._offered_terms()))
        chosen = {require_known(name, known, what): weight for name, weight in options.weights.items()}
        self.set("objective.weights", self.option("weights"), **chosen)
        warm_up = 0 if options.warm_up is None else plain(options.warm_up)
        require_not_negative("warm_up", warm_up)
        if warm_up:
            of_objective = (*self.objective.part.terms, *self.objective.part.optional_terms)
            of_latent = [name for name in self.spec.weights if name not in of_objective]
            curves = dict.fromkeys(of_latent, warm_up_curve(warm_up))
            self.set("objective.schedules", self.option("warm_up"), **curves)
        for name, points in options.weight_schedules.items():
            curve = check_curve(f"the schedule of {require_known(name, weights, what)}", points)
            self.set("objective.schedules", self.option("weight_schedules"), **{name: curve})

    def set_by_networks(self, own: Sequence[str]) -> None:
        """Set the settings that every pair of networks has, and the model's own."""
        options, spec = self.options, self.spec
        kind = Origin("data set", self.data.name) if spec.networks == PAPER_NETWORKS else self.model
        self.origins["networks.kind"] = kind if options.networks is None else self.option("networks")
        by_device = Origin("default", note=FOR_DEVICE)
        self.set("networks", self.option("size") if options.size else by_device, size=self.size)
        self.set("networks", self.option("form"), form=options.form)
        self.set("networks", self.model, patches=self.objective.part.networks_in_patches)
        self.set("networks", Origin("option", "networks") if own else self.model, own=tuple(own))
        self.set("networks", self.model, **spec.networks_options)

    def derive(self, auto_precision: str) -> None:
        """Set values that follow from others: shares of the run become updates, and factors are multiplied."""
        options, schedules = self.options, self.parts["objective.schedules"]
        steps = self.parts["training"]["steps"] = whole_number("steps", self.parts["training"]["steps"])
        self._derive_schedule(steps)
        for name, curve in schedules.items():
            if self.origin(f"objective.schedules.{name}").note == SHARES:
                schedules[name] = tuple((round(share * steps), factor) for share, factor in curve)
        if options.weight_decay is None:  # tuned for full networks
            factor, origin = self.preset.weight_decay_factor, self.origin("training.optimizer.weight_decay")
            weight_decay = float(f"{factor * self.parts['training.optimizer']['weight_decay']:.12g}")  # 3 · 0.1 is 0.3
            note = "" if factor == 1 or not weight_decay else f"times {factor:g} for size {self.size}"
            self.set("training.optimizer", origin._replace(note=note), weight_decay=weight_decay)
        decay = options.weight_decay_schedule
        if decay is not None and decay != "constant":
            curve = step_curve(steps) if decay == "step" else check_curve("weight_decay_schedule", decay)
            self.set("training", self.option("weight_decay_schedule"), weight_decay_schedule=curve)
        if options.precision == "auto":
            self.set("training", Origin("default", note=FOR_DEVICE), precision=auto_precision)

    def _derive_schedule(self, steps: int) -> None:
        """Set the length of a decay of the learning rate; without a decay, drop its options."""
        schedule = self.parts["training.schedule"]
        if schedule["kind"] == "constant":
            if "decay_steps" in schedule or schedule.get("floor"):
                warnings.warn("the learning rate is constant, so decay_steps and floor change nothing", stacklevel=5)
            for name in ("decay_steps", "floor"):
                schedule.pop(name, None)
                self.origins.pop(f"training.schedule.{name}", None)
            return
        if "decay_steps" not in schedule:
            share = self.preset.decay_share
            origin = self.origin("training.schedule.kind")._replace(note=f"{share:.0%} of the updates")
            self.set("training.schedule", origin, decay_steps=max(1, int(share * steps)))
        schedule["floor"] = float(schedule.get("floor", 0.0))

    def build(self) -> RunConfig:
        """Return the config that holds all values."""
        parts = self.parts
        if "num_values" in parts["latent"]:
            sizes = values_per_latent(parts["latent"]["num_latents"], parts["latent"]["num_values"])
            if min(sizes) < 2:
                raise ValueError("num_values must be at least 2 for each latent: one value encodes nothing")
        self.origins |= {"latent.kind": self.model, "objective.kind": self.model, "model": Origin("option", "model")}
        objective = {name: parts[f"objective.{name}"] for name in ("weights", "schedules")}
        return RunConfig(
            model=self.spec.name,
            data=self.data,
            networks=_build_part(NETWORKS, network_pair(self.spec, self.data, self.options), parts["networks"]),
            latent=_build_part(LATENTS, self.latent, parts["latent"]),
            objective=_build_part(OBJECTIVES, self.objective, parts["objective"] | objective),
            training=TrainingConfig(
                OptimizerConfig(**parts["training.optimizer"]),
                LearningRateSchedule(**parts["training.schedule"]),
                **parts["training"],
            ),
        )


def network_pair(spec: ModelSpec, data: DataConfig, options: TrainingOptions) -> Entry:
    """Return the network pair of a model on a data set: the one that is asked for, or that of the observations."""
    default = data.observations.traits.networks if spec.networks == PAPER_NETWORKS else spec.networks
    return NETWORKS[options.networks or default]


def _build_part(registry: Registry, entry: Entry, settings: Mapping[str, Any]) -> Any:
    """Return the config of a part; a model may be registered with settings that its part does not have."""
    for name in settings:
        require_known(name, entry.fields, f"setting of the {registry.what} {entry.kind}")
    return entry.config(**settings)


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
        reason = f"has {num_sources} {sources}, and more may vary than that" if num_sources else "has no known sources"
        warnings.warn(
            f"{data.name} {reason}, so the model gets {num_latents} latents by default; for twice as many, set "
            f"num_latents={2 * num_latents}",
            stacklevel=4,
        )
    return num_latents


def default_latents(observed: Observations) -> int:
    """Return the number of latents for observations whose sources are unknown; never more than they have entries."""
    return min(DEFAULT_LATENTS, observed.num_entries)
