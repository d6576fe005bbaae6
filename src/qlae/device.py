"""Where tensors live."""

import torch


def pick_device(name: str = "auto") -> torch.device:
    """The device behind a name; ``auto`` takes a GPU where there is one. An error names what is there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        there = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        raise ValueError(f"no such device: {name!r}; this machine has {', '.join(there)}, or use 'auto'") from None
    return device


def told_device(device: torch.device) -> str:
    """A device in words: ``"cpu"``, or ``"cuda (NVIDIA H200)"``."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
