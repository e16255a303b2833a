"""The base of MXNet's initializers: which rule a parameter's name selects, and their registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from passlib.arrays import random
from passlib.errors import UnsupportedError

_registry: dict[str, type[Initializer]] = {}


class InitDesc(str):
    """The name of a parameter, with what else is known of it.

    Parameters
    ----------
    name : str
    attrs : mapping of str to str, optional
        Attributes of its variable. ``__init__`` is an initializer as `Initializer.dumps` writes
        it, which replaces the rules for names.
    global_init : Initializer, optional
        For initializers that leave a part to another one.

    Examples
    --------
    >>> import passlib as mx
    >>> name = mx.init.InitDesc("fc_weight", {"__init__": mx.init.One().dumps()})
    >>> weight = mx.nd.zeros((2,))
    >>> mx.init.Zero()(name, weight)
    >>> weight.asnumpy()
    array([1., 1.], dtype=float32)
    """

    attrs: Mapping[str, str]
    global_init: Initializer | None

    def __new__(
        cls,
        name: str,
        attrs: Mapping[str, str] | None = None,
        global_init: Initializer | None = None,
    ) -> InitDesc:
        """Make the string; parameters are those of the class."""
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


class Initializer:
    """Sets initial values of parameters. Derive from it and override ``_init_weight``.

    Parameters
    ----------
    **kwargs
        The arguments of the derived class, for `dumps`.

    Examples
    --------
    >>> import passlib as mx
    >>> class Halves(mx.init.Initializer):
    ...     def _init_weight(self, name, array):
    ...         array[:] = 0.5
    >>> weight = mx.nd.zeros((2,))
    >>> Halves()("fc_weight", weight)
    >>> weight.asnumpy()
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def set_verbosity(self, verbose: bool = False, print_func: Any = None) -> Initializer:
        """Return this initializer; accepted for compatibility with MXNet, which prints norms."""
        del verbose, print_func
        return self

    def dumps(self) -> str:
        """Return class and arguments as JSON, for `create` and the attribute ``__init__``."""
        return json.dumps([type(self).__name__.lower(), self._kwargs], default=np.ndarray.tolist)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    def __hash__(self) -> int:
        return hash(self.dumps())

    def __call__(self, desc: str, arr: Any) -> None:
        """Set the elements of an array.

        Parameters
        ----------
        desc : InitDesc or str
            The name decides: of an `InitDesc`, names in ``weight`` get this initializer's values,
            those in ``bias``, ``beta`` and ``min`` 0, those in ``gamma`` and ``max`` 1. A plain
            str also has MXNet's older rules, such as ``moving_var``.
        arr : NDArray

        Raises
        ------
        ValueError
            No rule concerns the name.
        """
        if not isinstance(desc, InitDesc):
            self._older_rule(desc, arr)
        elif desc.attrs.get("__init__"):
            create(desc.attrs["__init__"])._init_weight(desc, arr)
        else:
            self._named(desc, arr, _BY_NAME)

    def _older_rule(self, name: str, arr: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a parameter is a string, not {type(name).__name__}")
        if name.startswith("upsampling"):
            self._init_bilinear(name, arr)
        elif name.startswith("stn_loc") and name.endswith("weight"):
            self._init_zero(name, arr)
        elif name.startswith("stn_loc") and name.endswith("bias"):
            self._init_loc_bias(name, arr)
        else:
            self._named(name, arr, _BY_OLDER_NAME)

    def _named(self, name: str, arr: Any, rules: Mapping[str, str]) -> None:
        for ending, method in rules.items():
            if name.endswith(ending):
                getattr(self, method)(name, arr)
                return
        self._init_default(name, arr)

    def concerns(self, name: str) -> bool:
        """Whether a rule for names concerns this one."""
        return name.endswith(tuple(_BY_NAME))

    def _init_weight(self, name: str, arr: Any) -> None:
        """Set the elements of a weight; derived classes define it."""
        del arr
        raise UnsupportedError(
            f"initializer {type(self).__name__} has no values for {name!r}: derive from it and "
            "define _init_weight(self, name, arr)"
        )

    def _init_bilinear(self, _: str, arr: Any) -> None:
        arr[:] = bilinear(tuple(arr.shape))

    def _init_loc_bias(self, _: str, arr: Any) -> None:
        arr[:] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]

    def _init_zero(self, _: str, arr: Any) -> None:
        arr[:] = 0.0

    def _init_one(self, _: str, arr: Any) -> None:
        arr[:] = 1.0

    _init_bias = _init_beta = _init_zero
    _init_gamma = _init_one

    def _init_quantized_weight(self, _: str, arr: Any) -> None:
        arr[:] = random.draw(lambda generator: generator.integers(-127, 127, tuple(arr.shape)))

    def _init_default(self, name: str, _: Any) -> None:
        raise ValueError(
            f"no rule for the parameter {name!r}: names end in weight, bias, gamma or beta; give "
            "its variable an initializer of its own, passlib.sym.var(name, init=...)"
        )


_BY_NAME: Final = {
    "weight": "_init_weight",
    "bias": "_init_bias",
    "gamma": "_init_gamma",
    "beta": "_init_beta",
    "min": "_init_zero",
    "max": "_init_one",
    "weight_quantize": "_init_quantized_weight",
    "bias_quantize": "_init_quantized_weight",
}
_BY_OLDER_NAME: Final = {
    **{ending: _BY_NAME[ending] for ending in ("bias", "gamma", "beta", "weight", "min", "max")},
    "moving_mean": "_init_zero",
    "moving_var": "_init_one",
    "moving_inv_var": "_init_zero",
    "moving_avg": "_init_zero",
}

_I = TypeVar("_I", bound=type[Initializer])


def register(klass: _I) -> _I:
    """Make a class known to `create` by its name in lower case.

    Examples
    --------
    >>> import passlib as mx
    >>> @mx.init.register
    ... class Thirds(mx.init.Initializer):
    ...     pass
    >>> type(mx.init.create("thirds")).__name__
    'Thirds'
    """
    _registry[klass.__name__.lower()] = klass
    return klass


def alias(*names: str) -> Callable[[_I], _I]:
    """Return a decorator that makes a class known to `create` by other names.

    Examples
    --------
    >>> import passlib as mx
    >>> @mx.init.alias("halves")
    ... @mx.init.register
    ... class HalfWeights(mx.init.Initializer):
    ...     pass
    >>> type(mx.init.create("halves")).__name__
    'HalfWeights'
    """

    def decorate(klass: _I) -> _I:
        _registry.update({name.lower(): klass for name in names})
        return register(klass)

    return decorate


def create(init: Any, /, **kwargs: Any) -> Initializer:
    """Return an initializer of its name, of what `Initializer.dumps` wrote, or itself.

    Raises
    ------
    ValueError
        The name is not registered, or the text is no initializer.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.init.create("normal", sigma=0.5).dumps()
    '["normal", {"sigma": 0.5}]'
    """
    if isinstance(init, Initializer):
        return init
    name = init
    if isinstance(init, str) and init.startswith("["):
        try:
            name, kwargs = json.loads(init)
        except ValueError as error:
            raise ValueError(f"{init!r} is no initializer: {error}") from None
    found = _registry.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(sorted(_registry))
        raise ValueError(f"unknown initializer {name!r}; the names are {known}")
    return found(**kwargs)


def bilinear(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the weights that interpolate between neighbours in the last two axes.

    Raises
    ------
    ValueError
        There are fewer than two axes.
    """
    if len(shape) < 2:
        raise ValueError(f"weights of shape {shape} cannot interpolate in two axes")
    factor = -(-shape[-1] // 2)
    centre = (2 * factor - 1 - factor % 2) / (2 * factor)
    rows, columns = (1 - np.abs(np.arange(size) / factor - centre) for size in shape[-2:])
    return np.broadcast_to(np.outer(rows, columns), shape)
