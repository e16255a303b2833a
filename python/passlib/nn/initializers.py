"""First values of parameters that no file gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

__all__ = ["Initializer", "check_initializer", "fill"]

Initializer: TypeAlias = str | Callable[[str, tuple[int, ...], np.dtype[Any]], Any]
"""A name in `_NAMES`, or a function of name, shape and type that gives the values."""

_NAMES: Final = ("uniform", "normal", "zeros", "ones")
_SCALE: Final = 0.07
"""Half the width of MXNet's default, ``mx.init.Uniform()``."""
_DEVIATION: Final = 0.01
"""Standard deviation of ``mx.init.Normal()``."""

_BY_SUFFIX: Final = (
    (("bias", "beta", "mean"), 0.0),
    (("gamma", "var"), 1.0),
)
"""What the random initialisers leave alone, as MXNet's do where names decide."""


def check_initializer(init: Initializer) -> Initializer:
    """Refuse what is no initialiser.

    Raises
    ------
    ValueError
        An unknown name.
    TypeError
        Neither a name nor callable.
    """
    if isinstance(init, str):
        if init not in _NAMES:
            raise ValueError(f"unknown initializer {init!r}; there are {', '.join(_NAMES)}")
    elif not callable(init):
        raise TypeError(
            f"an initializer is a name ({', '.join(_NAMES)}) or a function of name, shape and "
            f"dtype, not {type(init).__name__}"
        )
    return init


def fill(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    init: Initializer,
    random: np.random.Generator,
) -> np.ndarray[Any, np.dtype[Any]]:
    """Make the first values of a parameter.

    Parameters
    ----------
    name : str
        With ``"uniform"`` and ``"normal"``, biases, betas and means become 0, gammas and
        variances 1, by their names.
    shape : tuple of int
    dtype : numpy.dtype
    init : Initializer
    random : numpy.random.Generator

    Returns
    -------
    numpy.ndarray
        A new array.

    Raises
    ------
    ValueError
        A function gave values of another shape.
    """
    if callable(init):
        values = np.array(init(name, shape, dtype))
        if values.shape != shape:
            raise ValueError(
                f"the initializer gave parameter {name!r} the shape {values.shape}, not {shape}"
            )
        return values.astype(dtype)
    if init in ("zeros", "ones"):
        return np.full(shape, float(init == "ones")).astype(dtype)
    for suffixes, constant in _BY_SUFFIX:
        if name.endswith(suffixes):
            return np.full(shape, constant).astype(dtype)
    if init == "uniform":
        return random.uniform(-_SCALE, _SCALE, shape).astype(dtype)
    return random.normal(0.0, _DEVIATION, shape).astype(dtype)
