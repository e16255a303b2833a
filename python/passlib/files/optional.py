"""Import of optional packages."""

from __future__ import annotations

import importlib
from typing import Any

from passlib.errors import PasslibError


def require(module: str, *, extra: str) -> Any:
    """Return the imported module, or raise an error that states how to install it.

    Raises `PasslibError` if the module is not installed.

    Parameters
    ----------
    module : str
        Dotted name, e.g. ``"onnx.shape_inference"``.
    extra : str
        The extra of the distribution ``graph-passlib`` that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        message = (
            f"this needs the Python package {error.name!r}, which is not installed; "
            f"install it with: pip install 'graph-passlib[{extra}]'"
        )
        raise PasslibError(message) from error
