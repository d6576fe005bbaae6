"""Import modules that a user names, so that the parts they register (models, latent spaces, objectives) are known.

Also explain imports that fail because qlae was installed without the packages that training needs.
"""

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path


def import_modules(names: Iterable[str], *, directory: str | os.PathLike[str] | None = None) -> None:
    """Import modules such as ``"my_package.models"`` or files such as ``"path/to/my_models.py"``, each once.

    Modules are looked for in ``directory``, by default the current one, before the installed ones; it is on
    ``sys.path`` only meanwhile. A ``ValueError`` names a module that does not exist or raises an exception.
    """
    base = Path(os.getcwd() if directory is None else directory).absolute()
    for name in names:
        path = base / name if name.endswith(".py") else None
        module, folders = (name, [base]) if path is None else (path.stem, [path.parent, base])
        if path is not None and not path.is_file():
            raise ValueError(f"cannot import {name!r}: the file {path} does not exist")
        if not all(part.isidentifier() for part in module.split(".")):
            raise ValueError(
                f"cannot import {name!r}: {module!r} is not a valid module name; give a module such as my_models, or a "
                "file such as my_models.py"
            )
        _import(module, name, folders)
        file = getattr(sys.modules[module], "__file__", None)
        if path is not None and (file is None or Path(file).resolve() != path.resolve()):
            raise ValueError(
                f"cannot import {name!r}: another module {module!r} is already imported ({file or 'built in'}); "
                "rename the file"
            )


def _import(module: str, name: str, folders: list[Path]) -> None:
    """Import a module, which the user calls ``name``, with folders at the front of ``sys.path`` meanwhile."""
    before = [str(folder) for folder in folders]
    sys.path[:0] = before
    importlib.invalidate_caches()
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:
        # A module that the module itself imports may be missing too: that is its failure, not its absence.
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise ValueError(
                f"cannot import {name!r}: there is no module {missing!r} in {folders[-1]} or among the installed "
                "packages"
            ) from None
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_user_code = last.filename != __file__ and not last.filename.startswith("<frozen")
        where = f" ({last.filename}, line {last.lineno})" if is_user_code else ""
        raise ValueError(f"importing {name!r} failed: {type(error).__name__}: {error}{where}") from error
    finally:
        for entry in before:
            with contextlib.suppress(ValueError):
                sys.path.remove(entry)


#: Modules that `pip install 'qlae[train]'` adds to the metrics.
TRAINING = ("torch", "safetensors", "h5py", "PIL", "msgspec", "filelock")


def explain_missing(error: ModuleNotFoundError, wanted: str) -> ModuleNotFoundError | None:
    """Return an error that names what to install for what was ``wanted``, or None if training does not need the module.

    >>> print(explain_missing(ModuleNotFoundError("No module named 'torch'", name="torch"), "qlae.train"))
    qlae.train needs torch, and only the metrics of qlae are installed: pip install 'qlae[train]'
    """
    module = (error.name or "").partition(".")[0]
    if module not in TRAINING:
        return None
    package = "pillow" if module == "PIL" else module
    extra = "explorer" if "explore" in wanted else "train"
    message = f"{wanted} needs {package}, and only the metrics of qlae are installed: pip install 'qlae[{extra}]'"
    return ModuleNotFoundError(message, name=module)
