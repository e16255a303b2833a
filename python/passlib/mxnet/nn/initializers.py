"""Initial values of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from passlib.arrays.ndarray import NDArray
from passlib.mxnet.nn.initializer import InitDesc, Initializer, Load, Mixed, create

Initial: TypeAlias = (
    str | Initializer | Load | Mixed | Callable[[str, tuple[int, ...], np.dtype[Any]], Any]
)
"""A name in `_NAMES` or of one of MXNet's initializers, one of these, or a function of name, shape
and type that returns the values."""

_NAMES: Final = ("uniform", "normal", "zeros", "ones")
_SCALE: Final = 0.07
"""Half the width of MXNet's default, ``mx.init.Uniform()``."""
_DEVIATION: Final = 0.01
"""Standard deviation of ``mx.init.Normal()``."""

_BY_SUFFIX: Final = ((("bias", "beta", "mean"), 0.0), (("gamma", "var"), 1.0))
"""Constants that the random initializers use for names with these endings, as in MXNet."""


def check_initializer(init: Initial) -> Initial:
    """Return the initializer if it is valid.

    Raises
    ------
    ValueError
        The name is unknown.
    TypeError
        It is neither a name nor callable.
    """
    if isinstance(init, str):
        return init if init in _NAMES else create(init)
    if not callable(init):
        raise TypeError(
            f"an initializer must be a name ({', '.join(_NAMES)}), one of passlib.init, or a "
            f"function of name, shape and dtype, not {type(init).__name__}"
        )
    return init


def fill(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    init: Initial,
    random: np.random.Generator,
) -> np.ndarray[Any, np.dtype[Any]]:
    """Compute the initial values of a parameter.

    Parameters
    ----------
    name : str
        With ``"uniform"``, ``"normal"`` and MXNet's initializers, names that end in ``bias``,
        ``beta`` or ``mean`` get 0, those in ``gamma`` or ``var`` 1.

    Returns
    -------
    numpy.ndarray
        A new array.

    Raises
    ------
    ValueError
        A function returned values of another shape.
    """
    if isinstance(init, (Initializer, Load, Mixed)):
        return _by_class(name, np.zeros(shape, dtype), init)
    if callable(init):
        values = np.array(init(name, shape, dtype))
        if values.shape != shape:
            raise ValueError(
                f"the initializer returned values of shape {values.shape} for parameter {name!r}, "
                f"not {shape}"
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


def _by_class(
    name: str, array: np.ndarray[Any, Any], init: Initializer | Load | Mixed
) -> np.ndarray[Any, np.dtype[Any]]:
    target = array.view(NDArray)
    if not isinstance(init, Initializer) or init.concerns(name):
        init(InitDesc(name), target)
        return array
    for suffixes, constant in _BY_SUFFIX:
        if name.endswith(suffixes):
            array[...] = constant
            return array
    # MXNet has no rule for such a name; here it is a weight, as for "uniform".
    init._init_weight(InitDesc(name), target)
    return array
