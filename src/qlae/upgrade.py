"""Convert configs and weights of earlier versions to the current format.

In 0.1 a config had one latent with the fields of all latent spaces, an objective that was a name, and the options of
training at its top level; a GAN's critic was ``critic`` where it is now ``parts.critic``. Networks had no revision, and
those of the form ``official`` differed from today's (``models/networks/paper.py``).
"""

from typing import Any, TypeVar

T = TypeVar("T")

# Fields that a latent space had use for, by its kind in 0.1.
_LATENT_FIELDS = {
    "continuous": (),
    "gaussian": ("decomposed",),
    "uniform": (),
    "quantized": ("num_values", "shared", "learned", "reduction"),
    "vector-quantized": ("num_values", "vector_size", "learned", "reduction"),
    "finite-scalar": ("num_values",),
}
_OBJECTIVE_TERMS = {
    "autoencoding": ("reconstruct",),
    "adversarial": ("reconstruct_latent", "value", "gradient_penalty"),
}
_TRAINING_FIELDS = ("optimizer", "batch_size", "steps", "seed", "precision", "average_decay", "log_every")


def upgrade_config(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a ``config.json`` in the current format; current content is returned unchanged."""
    return _with_revision(_upgrade_layout(content))


def _with_revision(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content with the revision of the official networks, which earlier versions did not write."""
    networks = content.get("networks")
    if not isinstance(networks, dict) or "revision" in networks:
        return content
    if (networks.get("kind"), networks.get("form")) != ("paper", "official"):
        return content
    return content | {"networks": networks | {"revision": 1}}


def _upgrade_layout(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a config of 0.1 in the current layout."""
    if not isinstance(content.get("objective"), str) or not isinstance(content.get("latent"), dict):
        return content
    old, kind = dict(content), content["objective"]
    weights, latent, network = old.get("weights", {}), old["latent"], old.get("network", {})
    if not isinstance(weights, dict) or not isinstance(network, dict):
        return content
    objective: dict[str, Any] = {"kind": kind, "weights": weights, "schedules": {}}
    if old.get("warm_up"):
        own = [name for name in weights if name not in _OBJECTIVE_TERMS.get(kind, ())]
        objective["schedules"] = {name: [[0, 0.0], [old["warm_up"], 1.0]] for name in own}
    if kind == "adversarial":
        objective["generator_period"] = old.get("generator_period", 5)
    latent_fields = ("kind", "num_latents", *_LATENT_FIELDS.get(str(latent.get("kind")), latent))
    moved_fields = {"network", "latent", "objective", "weights", "warm_up", "generator_period", *_TRAINING_FIELDS}
    return {
        **{key: value for key, value in old.items() if key not in moved_fields},
        "networks": {
            "kind": "paper",
            "size": network.get("size", "full"),
            "form": network.get("form", "paper"),
            "patches": kind != "adversarial",
            "own": ["encoder", "decoder"] if network.get("own") else [],
        },
        "latent": {key: value for key, value in latent.items() if key in latent_fields},
        "objective": objective,
        "training": {key: _round(old[key]) for key in _TRAINING_FIELDS if key in old},
    }


def _round(value: Any) -> Any:
    """Return 0.3 for what 0.1 wrote as 0.30000000000000004, also inside a table."""
    if isinstance(value, dict):
        return {key: _round(entry) for key, entry in value.items()}
    return float(f"{value:.12g}") if isinstance(value, float) else value


def upgrade_tensors(tensors: dict[str, T]) -> dict[str, T]:
    """Return the tensors of a checkpoint or an export under their current names.

    >>> upgrade_tensors({"weights.critic.bias": 1, "encoder.head.bias": 2})
    {'weights.parts.critic.bias': 1, 'encoder.head.bias': 2}
    """
    return {_rename(name): tensor for name, tensor in tensors.items()}


def _rename(name: str) -> str:
    for prefix in ("", "weights.", "average.", "optimizer.encoder."):
        if name.startswith(f"{prefix}critic."):
            return f"{prefix}parts.{name.removeprefix(prefix)}"
    return name
