"""The settings that every pair of an encoder and a decoder has."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NetworksConfig:
    """The settings that every network pair has; the config of a custom pair subclasses this.

    Attributes:
        size: ``"full"`` or ``"small"``.
        form: ``"paper"`` or ``"official"``.
        patches: whether small networks may work on patches of several pixels; those of a GAN may not.
        own: which of ``"encoder"`` and ``"decoder"`` the caller brings as a module instead.
    """

    size: str = "full"
    form: str = "paper"
    patches: bool = True
    own: tuple[str, ...] = ()
