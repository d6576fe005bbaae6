"""Explain imports that fail because qlae was installed without what training needs."""

#: Modules that `pip install 'qlae[train]'` adds to the metrics.
TRAINING = ("torch", "safetensors", "h5py", "PIL")
#: What needs more than that → the extra to install instead; it includes `train`.
_LARGER_EXTRAS = {"qlae explore": "explorer", "qlae.explorer": "explorer"}


def explain_missing(error: ModuleNotFoundError, wanted: str) -> ModuleNotFoundError | None:
    """Return an error that names what to install, or None if the missing module has nothing to do with training.

    Args:
        error: what the import raised.
        wanted: what was asked for, such as "qlae.train".

    >>> print(explain_missing(ModuleNotFoundError("No module named 'torch'", name="torch"), "qlae.train"))
    qlae.train needs torch, and only the metrics of qlae are installed: pip install 'qlae[train]'
    """
    module = (error.name or "").partition(".")[0]
    if module not in TRAINING:
        return None
    package = "pillow" if module == "PIL" else module
    extra = _LARGER_EXTRAS.get(wanted, "train")
    message = f"{wanted} needs {package}, and only the metrics of qlae are installed: pip install 'qlae[{extra}]'"
    return ModuleNotFoundError(message, name=module)
