"""MXNet's initializers: constants, distributions, and those made of others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from passlib.arrays import random
from passlib.nd import load
from passlib.nn.initializer import InitDesc, Initializer, alias, create, register

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
]

_GATES: Final = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


@alias("zeros")
class Zero(Initializer):
    """Sets weights to 0."""

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = 0


@alias("ones")
class One(Initializer):
    """Sets weights to 1."""

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """Sets weights to a number, or to the elements of an array."""

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = self.value


@register
class Uniform(Initializer):
    """Draws weights uniformly from ``-scale`` to ``scale``."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = _uniform(self.scale, arr.shape)


@register
class Normal(Initializer):
    """Draws weights from the normal distribution of mean 0 and standard deviation ``sigma``."""

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
    rnd_type : {"uniform", "gaussian"}
    factor_type : {"avg", "in", "out"}
        Which number of connections counts: coming in, going out, or their mean.
    magnitude : float
        The variance of the weights is proportional to it.
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
    """Draws weights for layers before a PReLU of this slope (He et al., 2015)."""

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """Sets the weights of an upsampling layer so that it interpolates."""

    def _init_weight(self, name: str, arr: Any) -> None:
        self._init_bilinear(name, arr)


@register
class LSTMBias(Initializer):
    """Sets the biases of an LSTM to 0, those of the forget gate to ``forget_bias``."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, _: str, arr: Any) -> None:
        width = arr.shape[0] // 4
        arr[:] = 0.0
        arr[width : 2 * width] = self.forget_bias


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
    default_init : Initializer, optional
    verbose : bool
        Ignored; accepted for compatibility with MXNet.
    """

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False) -> None:
        del verbose
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

    Parameters
    ----------
    patterns : sequence of str
    initializers : sequence of Initializer

    Raises
    ------
    ValueError
        There are more of one than of the other.
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


def _uniform(scale: float, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return random.draw(lambda generator: generator.uniform(-scale, scale, tuple(shape)))


def _normal(sigma: float, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return random.draw(lambda generator: generator.normal(0.0, sigma, tuple(shape)))
