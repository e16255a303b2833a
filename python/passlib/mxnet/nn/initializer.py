"""Initial values of parameters: MXNet's initializers, and the rules for names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from passlib.arrays import random
from passlib.arrays.ndarray import NDArray
from passlib.errors import UnsupportedError
from passlib.mxnet.nd import load

_registry: dict[str, type[Initializer]] = {}


class InitDesc(str):
    """The name of a parameter, with the attributes of its variable.

    Parameters
    ----------
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
        """Create the string; parameters are those of the class."""
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
    """Register a class for `create` under its name in lower case.

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
    """Return a decorator that registers a class for `create` under other names.

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
    """Return an initializer from its name, from text of `Initializer.dumps`, or unchanged.

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

    Raises `ValueError` if there are fewer than two axes.
    """
    if len(shape) < 2:
        raise ValueError(f"weights of shape {shape} cannot interpolate in two axes")
    factor = -(-shape[-1] // 2)
    centre = (2 * factor - 1 - factor % 2) / (2 * factor)
    rows, columns = (1 - np.abs(np.arange(size) / factor - centre) for size in shape[-2:])
    return np.broadcast_to(np.outer(rows, columns), shape)


@alias("zeros")
class Zero(Initializer):
    """Sets weights to 0.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.ones((2,))
    >>> mx.init.Zero()("fc_weight", weight)
    >>> weight.asnumpy()
    array([0., 0.], dtype=float32)
    """

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = 0


@alias("ones")
class One(Initializer):
    """Sets weights to 1.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((2,))
    >>> mx.init.One()("fc_weight", weight)
    >>> weight.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """Sets weights to a number, or to the elements of an array.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((2,))
    >>> mx.init.Constant(3)("fc_weight", weight)
    >>> weight.asnumpy()
    array([3., 3.], dtype=float32)
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = self.value


@register
class Uniform(Initializer):
    """Draws weights uniformly from ``-scale`` to ``scale``.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((100,))
    >>> mx.init.Uniform(scale=2)("fc_weight", weight)
    >>> 1 < float(abs(weight.asnumpy()).max()) <= 2
    True
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = _uniform(self.scale, arr.shape)


@register
class Normal(Initializer):
    """Draws weights from the normal distribution of mean 0 and standard deviation ``sigma``.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((100, 100))
    >>> mx.init.Normal(sigma=2)("fc_weight", weight)
    >>> 1.9 < float(weight.asnumpy().std()) < 2.1
    True
    """

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = _normal(self.sigma, arr.shape)


@register
class Orthogonal(Initializer):
    """Makes the rows or the columns of a matrix orthogonal, of length ``scale``.

    The first axis are the rows, all others together the columns (Saxe et al., "Exact solutions to
    the nonlinear dynamics of learning in deep linear neural networks").

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((3, 3))
    >>> mx.init.Orthogonal(scale=1)("fc_weight", weight)
    >>> np.allclose(weight.asnumpy() @ weight.asnumpy().T, np.eye(3), atol=1e-5)
    True
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, _: str, arr: Any) -> None:
        sizes = (arr.shape[0], int(np.prod(arr.shape[1:])))
        drawn = _uniform(1.0, sizes) if self.rand_type == "uniform" else _normal(1.0, sizes)
        left, _singular, right = np.linalg.svd(drawn, full_matrices=False)
        chosen = left if left.shape == sizes else right
        arr[:] = self.scale * chosen.reshape(arr.shape)


@register
class Xavier(Initializer):
    """Draws weights so that signals keep their size from layer to layer (Glorot and Bengio, 2010).

    Parameters
    ----------
    factor_type : {"avg", "in", "out"}
        Which number of connections counts: coming in, going out, or their mean.
    magnitude : float
        The variance of the weights is proportional to it.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((100, 200))
    >>> mx.init.Xavier(magnitude=3)("fc_weight", weight)
    >>> float(abs(weight.asnumpy()).max()) <= (3 / 150) ** 0.5
    True
    """

    def __init__(
        self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3
    ) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: Any) -> None:
        if arr.ndim < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two axes, and {name!r} has shape {arr.shape}"
            )
        area = float(np.prod(arr.shape[2:]))
        coming, going = arr.shape[1] * area, arr.shape[0] * area
        factors = {"avg": (coming + going) / 2, "in": coming, "out": going}
        if self.factor_type not in factors:
            raise ValueError(f"factor_type {self.factor_type!r} is none of {', '.join(factors)}")
        if self.rnd_type not in ("uniform", "gaussian"):
            raise ValueError(f"rnd_type {self.rnd_type!r} is neither uniform nor gaussian")
        scale = float(np.sqrt(self.magnitude / factors[self.factor_type]))
        draw = _uniform if self.rnd_type == "uniform" else _normal
        arr[:] = draw(scale, arr.shape)


@register
class MSRAPrelu(Xavier):
    """Draws weights for layers before a PReLU of this slope (He et al., 2015).

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((100, 100))
    >>> mx.init.MSRAPrelu(slope=0)("fc_weight", weight)
    >>> 0.01 < float(weight.asnumpy().var()) < 0.04
    True
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """Sets the weights of an upsampling layer so that it interpolates.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((1, 1, 4, 4))
    >>> mx.init.Bilinear()("up_weight", weight)
    >>> weight.asnumpy()[0, 0, 1]
    array([0.1875, 0.5625, 0.5625, 0.1875], dtype=float32)
    """

    def _init_weight(self, name: str, arr: Any) -> None:
        self._init_bilinear(name, arr)


@register
class LSTMBias(Initializer):
    """Sets the biases of an LSTM to 0, those of the forget gate to ``forget_bias``.

    Examples
    --------
    >>> import passlib as mx
    >>> bias = mx.nd.zeros((4,))
    >>> name = mx.init.InitDesc("lstm_bias", {"__init__": mx.init.LSTMBias().dumps()})
    >>> mx.init.Zero()(name, bias)
    >>> bias.asnumpy()
    array([0., 1., 0., 0.], dtype=float32)
    """

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, _: str, arr: Any) -> None:
        width = arr.shape[0] // 4
        arr[:] = 0.0
        arr[width : 2 * width] = self.forget_bias


def _uniform(scale: float, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return random.draw(lambda generator: generator.uniform(-scale, scale, tuple(shape)))


def _normal(sigma: float, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return random.draw(lambda generator: generator.normal(0.0, sigma, tuple(shape)))


_GATES: Final = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


@register
class FusedRNN(Initializer):
    """Sets the one parameter of a fused RNN: its weights by another initializer, its biases to 0.

    Parameters
    ----------
    init : Initializer, str or None
        None is that of the `InitDesc`.
    num_hidden, num_layers, mode, bidirectional
        As of the operator RNN.
    forget_bias : float
        For the biases of the forget gates of an LSTM.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.init.FusedRNN("ones", num_hidden=2, num_layers=1, mode="lstm").dumps()[:10]
    '["fusedrnn'
    """

    def __init__(
        self,
        init: Any,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        chosen = create(init) if isinstance(init, str) else init
        super().__init__(
            init=None if chosen is None else chosen.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = chosen

    def _init_weight(self, name: str, arr: Any) -> None:
        given = self._kwargs
        init = self._init or getattr(name, "global_init", None)
        if init is None:
            raise ValueError(f"FusedRNN has no initializer for the weights of {name!r}")
        hidden, rows = given["num_hidden"], _GATES[given["mode"]] * given["num_hidden"]
        directions = 2 if given["bidirectional"] else 1
        biases = 2 * given["num_layers"] * directions * rows
        deeper = (given["num_layers"] - 1) * directions * rows * (directions + 1) * hidden
        first = arr.size - biases - deeper - directions * rows * hidden
        inputs, rest = divmod(first, directions * rows)
        if rest or inputs < 1:
            raise ValueError(f"{name!r} has {arr.size} elements, which no RNN {given} has")
        position = 0
        for layer in range(given["num_layers"]):
            width = inputs if layer == 0 else directions * hidden
            for columns in (width, hidden) * directions:
                part = arr[position : position + rows * columns].reshape((rows, columns))
                init._init_weight(InitDesc(f"{name}_weight"), part)
                position += rows * columns
        arr[position:] = 0.0
        if given["mode"] == "lstm":
            for start in range(position, arr.size, rows):
                arr[start + hidden : start + 2 * hidden] = given["forget_bias"]


class Load:
    """Sets parameters from a file or a dictionary, others by an initializer.

    Parameters
    ----------
    param : path-like or mapping of str to array
        Names may begin with ``arg:`` or ``aux:``.
    verbose : bool
        Ignored; accepted for compatibility with MXNet.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.nd.zeros((2,))
    >>> mx.init.Load({"arg:fc_weight": mx.nd.array([1, 2])})("fc_weight", weight)
    >>> weight.asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False) -> None:
        content = param if isinstance(param, Mapping) else load(param)
        if not isinstance(content, Mapping):
            raise ValueError(f"{param!r} has no names of arrays")
        self.param = {
            name.removeprefix("arg:").removeprefix("aux:"): array for name, array in content.items()
        }
        self.default_init = default_init

    def __call__(self, name: str, arr: Any) -> None:
        """Set the elements of an array; ValueError if the shapes differ, or nothing is known."""
        if name in self.param:
            if self.param[name].shape != arr.shape:
                raise ValueError(
                    f"parameter {name!r} has shape {arr.shape}, the loaded one "
                    f"{self.param[name].shape}"
                )
            arr[:] = self.param[name]
        elif self.default_init is None:
            raise ValueError(f"there is no array {name!r} to load, and no default_init")
        else:
            self.default_init(name, arr)


class Mixed:
    """Chooses an initializer by the first regular expression that matches a parameter's name.

    Raises
    ------
    ValueError
        There are more of one than of the other.

    Examples
    --------
    >>> import passlib as mx
    >>> mixed = mx.init.Mixed([".*bias", ".*"], [mx.init.Zero(), mx.init.One()])
    >>> weight = mx.nd.zeros((2,))
    >>> mixed("fc_weight", weight)
    >>> weight.asnumpy()
    array([1., 1.], dtype=float32)
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Any]) -> None:
        if len(patterns) != len(initializers):
            raise ValueError(f"{len(patterns)} patterns, but {len(initializers)} initializers")
        self.map = [(re.compile(p), i) for p, i in zip(patterns, initializers, strict=True)]

    def __call__(self, name: str, arr: Any) -> None:
        """Set the elements of an array; ValueError if no pattern matches the name."""
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ValueError(f'no pattern matches the parameter {name!r}; add ".*" as the last one')


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

    Raises `ValueError` if the name is unknown; `TypeError` if it is neither a name nor callable.
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

    Raises `ValueError` if a function returned values of another shape.

    Parameters
    ----------
    name : str
        With ``"uniform"``, ``"normal"`` and MXNet's initializers, names that end in ``bias``,
        ``beta`` or ``mean`` get 0, those in ``gamma`` or ``var`` 1.

    Returns
    -------
    numpy.ndarray
        A new array.
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
