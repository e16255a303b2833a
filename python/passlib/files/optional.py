"""Import of packages that only some of passlib needs."""

from __future__ import annotations

import importlib
from typing import Any

from passlib.errors import PasslibError

__all__ = ["require"]


def require(module: str, *, extra: str) -> Any:
    """Import ``module``, or say which extra of passlib brings it.

    Parameters
    ----------
    module : str
        Dotted module name, e.g. ``"onnx.shape_inference"``.
    extra : str
        The extra of the distribution ``graph-passlib`` that installs it.

    Raises
    ------
    PasslibError
        The module is not installed.
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
