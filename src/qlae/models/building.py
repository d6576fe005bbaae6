"""Build a freshly initialised model from a config, with a custom encoder or decoder if there is one.

Custom modules are checked before anything is trained or written: they must map the shapes that the latent space needs,
return a tensor, and leave their input as it is.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..config import RunConfig
from ..observations import KINDS, Observations
from ..registry import LATENTS, NETWORKS, OBJECTIVES
from .latents import LatentSpace
from .model import Model

Networks = tuple[nn.Module | None, nn.Module | None]  # a custom encoder and decoder; None for those of qlae
ROLES = ("encoder", "decoder")


def own_roles(own: Networks | None) -> tuple[str, ...]:
    """Return which of ``"encoder"`` and ``"decoder"`` the caller brings.

    Raises:
        ValueError: if ``own`` is not a pair of modules, of which one may be None.
    """
    if own is None:
        return ()
    modules = own if isinstance(own, tuple | list) else (own,)
    roles = tuple(role for role, module in zip(ROLES, modules, strict=False) if isinstance(module, nn.Module))
    if not roles or len(modules) != len(ROLES) or len(roles) + list(modules).count(None) != len(ROLES):
        raise ValueError(
            "networks takes two torch modules, (encoder, decoder), of which one may be None for the paper's; got "
            f"({', '.join(type(module).__name__ for module in modules)}). A registered pair is named when a training "
            "starts, and a run remembers it"
        )
    return roles


def build_networks(config: RunConfig, latent: LatentSpace, own: Networks | None = None) -> tuple[nn.Module, nn.Module]:
    """Return the encoder and the decoder of a config, for a latent space.

    A module that neither the caller nor the registered pair brings is that of qlae for the kind of observations, the
    paper's for images.
    """
    observations = config.data.observations
    default = NETWORKS[observations.traits.networks].part
    part = NETWORKS.entry_of(config.networks).part
    kinds = {NETWORKS[kind.networks].part: kind for kind in KINDS.values()}
    if part in kinds and part is not default:
        raise ValueError(
            f"the networks {kinds[part].networks!r} take {kinds[part].many}, the data have {observations.traits.many} "
            f"of {observations.size}; leave the networks out, which are then {observations.traits.networks!r}"
        )
    pair: list[Any] = list(part.from_config(config.networks, observations=observations, latent=latent))
    if None in pair:
        ours = default.from_config(config.networks, observations=observations, latent=latent)
        pair = [fallback if module is None else module for module, fallback in zip(pair, ours, strict=True)]
    for i, module in enumerate(own or ()):
        if module is not None:
            pair[i] = copy.deepcopy(module).cpu()
    return pair[0], pair[1]


def build_model(config: RunConfig, own: Networks | None = None) -> Model:
    """Return a freshly initialised model; its weights follow from torch's global seed.

    Args:
        config: of the run.
        own: a custom encoder and decoder, if the config says so. The model uses copies of them.
    """
    expected = tuple(config.networks.own)
    if expected != own_roles(own):
        if not expected:
            raise ValueError("this run was trained with the networks of qlae; leave networks=… out")
        pair = ", ".join(role if role in expected else "None" for role in ROLES)
        raise ValueError(
            f"this run was trained with a custom {' and '.join(expected)}; pass the same in Python: networks=({pair})"
        )
    latent: LatentSpace = LATENTS.build(config.latent, num_images=config.data.num_training)
    _require_latent(latent, config.latent)
    encoder, decoder = build_networks(config, latent, own)
    if not is_ours(config):
        _require_untied(encoder)
        _require_untied(decoder)
        _require_fit(encoder, decoder, latent, config.data.observations)
    model = Model(encoder, latent, decoder, observations=config.data.observations)
    model.parts.update(OBJECTIVES.build(config.objective).build_parts(model))
    return model


def is_ours(config: RunConfig) -> bool:
    """Return whether both networks of a run are those of qlae, which keep no state except their weights."""
    return not config.networks.own and NETWORKS.entry_of(config.networks).is_ours


def is_all_ours(config: RunConfig) -> bool:
    """Return whether every part of a run belongs to qlae; others may draw from torch's global generators."""
    entries = LATENTS.entry_of(config.latent), OBJECTIVES.entry_of(config.objective)
    return is_ours(config) and all(entry.is_ours for entry in entries)


def _require_latent(latent: LatentSpace, config: Any) -> None:
    """Raise an error unless a latent space says how large it is and agrees with its config about codes."""
    name = type(latent).__name__
    for attribute in ("num_latents", "num_inputs", "num_outputs"):
        if not isinstance(getattr(latent, attribute, None), int):
            raise ValueError(f"{name} must set self.{attribute} in its constructor, to a whole number")
    if latent.has_codes != config.has_codes:
        base = "DiscreteLatentConfig" if latent.has_codes else "LatentConfig"
        raise ValueError(
            f"{name} is {'a' if latent.has_codes else 'no'} space of codes, so its config {type(config).__name__} must "
            f"be a subclass of {base}"
        )


def _require_fit(encoder: nn.Module, decoder: nn.Module, latent: LatentSpace, observations: Observations) -> None:
    """Raise an error unless encoder and decoder have the sizes that the latent space needs."""
    shape = observations.traits.load("form")(observations).input_shape
    encoder_shape = output_shape(encoder, encoder, *shape)
    if encoder_shape != (latent.num_inputs,):
        raise ValueError(
            f"the encoder must map {observations.traits.many} {_batch(shape)} to (b, {latent.num_inputs}) for "
            f"{latent.num_latents} latents; it returns {_batch(encoder_shape)}"
        )
    decoder_shape = output_shape(decoder, decoder, latent.num_outputs)
    if decoder_shape != shape:
        outputs = "logits" if len(shape) == 3 else "means"
        raise ValueError(
            f"the decoder must map (b, {latent.num_outputs}) to {outputs} {_batch(shape)}; "
            f"it returns {_batch(decoder_shape)}"
        )


def _batch(shape: tuple[int, ...]) -> str:
    return f"(b, {', '.join(map(str, shape))})"


def output_shape(module: nn.Module, function: Callable[[Tensor], Tensor], *shape: int) -> tuple[int, ...]:
    """Return the shape, without the batch, of a module's function applied to noise; the module stays as it is.

    Raises:
        ValueError: if the function fails, does not return a tensor or modifies its input.
    """
    modes = {part: part.training for part in module.modules()}
    name = type(module).__name__
    is_meta = any(parameter.is_meta for parameter in module.parameters())  # which has shapes and no numbers
    draw = torch.rand if len(shape) == 3 else torch.randn  # images lie in [0, 1], latents and features anywhere
    generator = None if is_meta else torch.Generator().manual_seed(0)
    noise = draw(2, *shape, generator=generator, device="meta" if is_meta else None)
    inputs = noise.clone(memory_format=torch.channels_last if noise.dim() == 4 else torch.preserve_format)
    module.eval()
    try:
        with torch.inference_mode():
            outputs = function(inputs)
    except RuntimeError as error:
        message = (str(error).strip().splitlines() or [""])[0]
        hint = "; images come channels last, so write .flatten(1) or .reshape" if "view size" in message else ""
        raise ValueError(f"{name} does not take {_batch(shape)}: {message}{hint}") from error
    finally:
        for part, training in modes.items():
            part.training = training
    if not isinstance(outputs, Tensor):
        raise ValueError(f"{name} must return a tensor, it returns a {type(outputs).__name__}")
    if not is_meta and not torch.equal(inputs, noise):
        raise ValueError(f"{name} modifies its input, which others use too: write x = 2 * x, not x.mul_(2)")
    return tuple(outputs.shape[1:])


def _require_untied(module: nn.Module) -> None:
    """Raise an error if a tensor has two names in a module: it would be saved twice, and loaded as two tensors."""
    names: dict[int, str] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if (first := names.setdefault(id(tensor), name)) != name:
            raise ValueError(
                f"{type(module).__name__} has one tensor under two names, {first} and {name}; "
                "keep it under one name and use it from there"
            )
