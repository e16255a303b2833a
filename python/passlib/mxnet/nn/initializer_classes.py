"""MXNet's initializers: constants, distributions, and those made of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.arrays import random
from passlib.mxnet.nn.initializer import Initializer, alias, register


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
    rnd_type : {"uniform", "gaussian"}
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
