"""Resolve a model, a data set and a few options to a whole config: what is not set follows the paper.

The constants come from ``presets.py``, what a recipe changes from ``recipes.py``. The config that results holds every
number that a training depends on; nothing is looked up later.
"""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ._checks import plain, require_known, require_not_negative, values_per_latent, whole_number
from .config import DataConfig, OptimizerConfig, RunConfig, TrainingConfig, require_number
from .observations import Observations
from .options import TrainingOptions, chosen_options, option_names, parse_curve
from .presets import FORMS, LATENTS_PER_SOURCE, OFFICIAL_CLIP, PAPER_NETWORKS, ModelSpec, TrainingPreset, find_model
from .recipes import Recipe, find_recipe
from .registry import LATENTS, NETWORKS, OBJECTIVES, Entry
from .schedules import Curve, LearningRateSchedule, check_curve, step_curve, warm_up_curve

#: Fewest latents for data of which more may vary than their known sources. Ten are usual in the field
#: (disentanglement_lib gives every model ten), suffice for the 5 to 9 sources of its benchmarks, and pruning tells
#: which of them a model does not use.
DEFAULT_LATENTS = 10
#: Data sets whose published files, too, vary in nothing but their sources.
PUBLISHED_SETS = ("shapes3d", "mpi3d", "falcor3d", "isaac3d", "dsprites")


def resolve(
    model: str | ModelSpec,
    data: DataConfig,
    num_sources: int,
    options: TrainingOptions | None = None,
    *,
    own_networks: Sequence[str] = (),
    **more: Any,
) -> RunConfig:
    """Return the whole config of a model on a data set. Options that are not set follow the paper.

    Args:
        model: a key of ``MODELS``, or a specification.
        data: the images; their name decides the tuned value.
        num_sources: number of sources of the data, from which the number of latents follows.
        options: the options of the training.
        own_networks: which of ``"encoder"`` and ``"decoder"`` the caller brings.
        more: further options by name, as in ``TrainingOptions``.
    """
    spec = find_model(model)
    for name in (*spec.training, *more):
        require_known(name, option_names(TrainingOptions), "training option")
    options = replace(options or TrainingOptions(), **more)
    if spec.training:
        options = _with_defaults(options, spec.training)
    require_known(options.form, FORMS, "form")
    is_gan = not OBJECTIVES[spec.objective].part.reconstructs
    recipe = find_recipe(options.recipe, model=spec.name, is_gan=is_gan)
    preset = spec.training_preset(options.size, options.recipe)
    latent = _resolve_latent(spec, preset, data, num_sources, options)
    training = _resolve_training(spec, preset, data, options, recipe)
    return RunConfig(
        model=spec.name,
        data=data,
        networks=_resolve_networks(spec, data, options, own_networks),
        latent=latent,
        objective=_resolve_objective(spec, preset, data, options, recipe, training.steps),
        training=training,
    )


def _resolve_training(
    spec: ModelSpec, preset: TrainingPreset, data: DataConfig, options: TrainingOptions, recipe: Recipe
) -> TrainingConfig:
    steps = preset.steps if options.steps is None else whole_number("steps", options.steps)
    return TrainingConfig(
        optimizer=_resolve_optimizer(spec, preset, data, options),
        schedule=_resolve_schedule(options, recipe, steps, preset.decay_share),
        weight_decay_schedule=_resolve_decay_schedule(options.weight_decay_schedule, steps),
        batch_size=preset.batch_size if options.batch_size is None else plain(options.batch_size),
        steps=steps,
        seed=plain(options.seed),
        precision="float32" if options.precision == "auto" else options.precision,
    )


def _with_defaults(options: TrainingOptions, defaults: Mapping[str, Any]) -> TrainingOptions:
    """Return options with a model's defaults for those that are not set."""
    if options.schedule == "constant":  # then there is no decay that the model's defaults could describe
        defaults = {name: value for name, value in defaults.items() if name not in ("decay_steps", "floor")}
    return replace(TrainingOptions(**defaults), **chosen_options(options))


def _resolve_latent(
    spec: ModelSpec, preset: TrainingPreset, data: DataConfig, num_sources: int, options: TrainingOptions
) -> Any:
    entry = LATENTS[spec.latent]
    fields = _field_names(entry)
    settings: dict[str, Any] = {"num_latents": plain(options.num_latents)}
    if options.num_latents is None:
        settings["num_latents"] = _count_latents(data, num_sources, options.num_values)
    if "num_values" in fields:
        settings["num_values"] = preset.num_values
    if "reduction" in fields and options.form == "official":
        settings["reduction"] = "mean"
    settings |= {name: value for name, value in preset.latent_options.items() if name in fields}
    settings |= _checked_settings(spec.latent_options, fields, f"setting of the latent space {spec.latent}")
    if options.num_values is not None:
        if "num_values" in fields:
            settings["num_values"] = plain(options.num_values)
        else:
            warnings.warn(f"{spec.name} has no codebooks, so num_values changes nothing", stacklevel=3)
    if options.fixed_values:
        if "learned" in fields:
            settings["learned"] = False
        else:
            warnings.warn(f"{spec.name} has no codebooks that learn, so fixed_values changes nothing", stacklevel=3)
    if options.code_noise is not None:
        is_gan = not OBJECTIVES[spec.objective].part.reconstructs
        if "noise" not in fields or is_gan:
            what = "is a GAN" if is_gan else f"has the latent space {spec.latent!r}"
            raise ValueError(
                f"code_noise is for autoencoders with the latent space 'quantized', as qlae has, and {spec.name} {what}"
            )
        settings["noise"] = require_not_negative("code_noise", options.code_noise)
    if "num_values" in settings:
        values_per_latent(settings["num_latents"], settings["num_values"])
    return entry.config(**settings)


def _resolve_objective(
    spec: ModelSpec, preset: TrainingPreset, data: DataConfig, options: TrainingOptions, recipe: Recipe, steps: int
) -> Any:
    entry = OBJECTIVES[spec.objective]
    weights = spec.weights_for(data.name)
    offered = _offered_terms(spec)
    of_recipe = [name for name in recipe.weights if name in offered and name not in weights]
    of_latent = [name for name in weights if name not in (*entry.part.terms, *entry.part.optional_terms)]
    weights |= {name: recipe.weights[name] for name in of_recipe}
    known = dict.fromkeys((*weights, *offered))
    for name, weight in _mapping("weights", options.weights).items():
        weights[require_known(name, known, f"loss term of {spec.name}")] = weight
    schedules = {name: curve for name in of_recipe if (curve := recipe.curve(name, steps))}
    warm_up = 0 if options.warm_up is None else plain(options.warm_up)
    require_number("warm_up", warm_up)
    if warm_up:
        curve = check_curve("warm_up", warm_up_curve(warm_up))
        schedules |= dict.fromkeys(of_latent, curve)
    for name, points in _mapping("weight_schedules", options.weight_schedules).items():
        require_known(name, weights, f"loss term of {spec.name}")
        curve_points = parse_curve(points) if isinstance(points, str) else points
        schedules[name] = check_curve(f"the schedule of {name}", curve_points)
    fields = _field_names(entry)
    settings = {name: value for name, value in preset.objective_options.items() if name in fields}
    settings |= _checked_settings(spec.objective_options, fields, f"setting of the objective {spec.objective}")
    if options.codebook_player != "generator":
        if "codebook_player" in fields and "learned" in _field_names(LATENTS[spec.latent]):
            settings["codebook_player"] = options.codebook_player
        else:
            warnings.warn(
                f"{spec.name} is not a GAN with codebooks that learn, so codebook_player changes nothing", stacklevel=3
            )
    return entry.config(weights=weights, schedules=schedules, **settings)


def _offered_terms(spec: ModelSpec) -> list[str]:
    """Return the loss terms that a model can compute besides its own."""
    objective, latent = OBJECTIVES[spec.objective].part, LATENTS[spec.latent].part
    return [name for name in objective.optional_terms if name not in objective.code_terms or latent.has_scalar_codes]


def network_pair(spec: ModelSpec, data: DataConfig, options: TrainingOptions) -> Entry:
    """Return the network pair of a model on a data set: the one that is asked for, or that of the observations."""
    default = data.observed.traits.networks if spec.networks == PAPER_NETWORKS else spec.networks
    return NETWORKS[options.networks or default]


def _resolve_networks(spec: ModelSpec, data: DataConfig, options: TrainingOptions, own: Sequence[str]) -> Any:
    entry = network_pair(spec, data, options)
    fields = _field_names(entry)
    settings = {
        "size": options.size,
        "form": options.form,
        "patches": OBJECTIVES[spec.objective].part.networks_in_patches,
        "own": tuple(own),
    }
    settings = {name: value for name, value in settings.items() if name in fields}
    settings |= _checked_settings(spec.networks_options, fields, f"setting of the networks {spec.networks}")
    return entry.config(**settings)


def _resolve_optimizer(
    spec: ModelSpec, preset: TrainingPreset, data: DataConfig, options: TrainingOptions
) -> OptimizerConfig:
    official = options.form == "official"
    weight_decay = options.weight_decay
    if weight_decay is None:
        weight_decay = preset.weight_decay_factor * spec.weight_decay_for(data.name, options.form)
        weight_decay = float(f"{weight_decay:.12g}")  # 3 · 0.1 is 0.3, in messages and files as well
    return OptimizerConfig(
        learning_rate=preset.learning_rate if options.learning_rate is None else options.learning_rate,
        beta1=preset.beta1,
        beta2=preset.beta2[options.form],
        weight_decay=weight_decay,
        decay_biases=not official,
        clip=OFFICIAL_CLIP if official else preset.clip,
    )


def _resolve_schedule(options: TrainingOptions, recipe: Recipe, steps: int, decay_share: float) -> LearningRateSchedule:
    kind = options.schedule or recipe.schedule
    falls = kind != "constant"
    if not falls and (options.decay_steps is not None or options.floor):
        warnings.warn("the learning rate is constant, so decay_steps and floor change nothing", stacklevel=3)
    decay_steps = max(1, int(decay_share * steps)) if options.decay_steps is None else plain(options.decay_steps)
    return LearningRateSchedule(
        kind=kind,
        decay_steps=decay_steps if falls else 0,
        floor=float(options.floor or 0.0) if falls else 0.0,
        warm_up=plain(options.learning_rate_warm_up or 0),
    )


def _resolve_decay_schedule(schedule: Any, steps: int) -> Curve:
    if schedule is None or schedule == "constant":
        return ()
    if schedule == "step":
        return step_curve(steps)
    return check_curve("weight_decay_schedule", parse_curve(schedule) if isinstance(schedule, str) else schedule)


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
    num_latents = max(from_sources, default_latents(data.observed))
    if num_latents > from_sources:
        sources = "sources" if num_sources > 1 else "source"
        reason = f"{num_sources} {sources}, and more may vary than that" if num_sources else "no sources to count"
        warnings.warn(
            f"{data.name} has {reason}, so the model gets {num_latents} latents; choose another number with "
            f"num_latents={2 * num_latents}, or --num-latents {2 * num_latents} on the command line",
            stacklevel=4,
        )
    return num_latents


def default_latents(observed: Observations) -> int:
    """Return the number of latents for observations whose sources are unknown; never more than they have entries."""
    return min(DEFAULT_LATENTS, observed.num_entries)
