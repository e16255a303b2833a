"""Symbols with BatchNorm after a layer, and how many of them a pass can fold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from passlib import sym
from passlib.model import Model
from passlib.symbol import Symbol


def assert_close(actual: object, expected: object, tolerance: float) -> None:
    left, right = np.asarray(actual), np.asarray(expected)
    assert left.shape == right.shape
    assert left.dtype == right.dtype
    assert np.isfinite(right).all()
    scale = np.abs(right).max()
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * scale)


def values(*shape: int) -> np.ndarray:
    """Make an array of normally distributed numbers, the same for equal shapes."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def data() -> Symbol:
    return sym.var("data")


def conv(x: Symbol, name: str = "conv", **attrs: object) -> Symbol:
    attrs = {"kernel": (3, 3), "num_filter": 6, "pad": (1, 1), **attrs}
    return sym.Convolution(x, name=name, **attrs)


def norm(x: Symbol, name: str = "norm", **attrs: object) -> Symbol:
    return sym.BatchNorm(x, name=name, **{"fix_gamma": False, **attrs})


def deconv(**attrs: object) -> Symbol:
    attrs = {"kernel": (3, 3), "num_filter": 6, "stride": (2, 2), **attrs}
    return norm(sym.Deconvolution(data(), name="deconv", **attrs))


def dense(**attrs: object) -> Symbol:
    return sym.FullyConnected(data(), num_hidden=5, name="fc", **attrs)


def shared_variable(which: str) -> Symbol:
    shared = sym.var("shared")
    attrs = {"num_filter": 4}
    first = conv(data(), "first", **attrs, **{which: shared})
    second = conv(norm(first, "norm1"), "second", **attrs, **{which: shared})
    return norm(second, "norm2")


def shared_statistics() -> Symbol:
    own = {key: sym.var(f"all_{key}") for key in ("gamma", "beta", "moving_mean", "moving_var")}
    first = norm(conv(data(), "first"), "norm1", **own)
    return norm(conv(first, "second"), "norm2", **own)


def two_users() -> Symbol:
    x = conv(data())
    return sym.broadcast_add(norm(x), sym.relu(x))


def statistics_used() -> Symbol:
    both = norm(conv(data()), output_mean_var=True)
    return sym.Group([both[0], sym.exp(both[1])])


def statistics_as_output() -> Symbol:
    both = norm(conv(data()), output_mean_var=True)
    return sym.Group([both[0], both[2]])


def taken_name() -> Symbol:
    x = norm(conv(data(), no_bias=True))
    return sym.broadcast_mul(x, sym.reshape(sym.var("conv_bias", shape=(6,)), shape=(1, 6, 1, 1)))


def gamma_used_elsewhere() -> Symbol:
    gamma = sym.var("gamma")
    x = norm(conv(data()), gamma=gamma)
    return sym.broadcast_mul(x, sym.reshape(gamma, shape=(1, 6, 1, 1)))


def after_relu() -> Symbol:
    return norm(sym.relu(conv(data())))


def head_behind_layer() -> Symbol:
    x = conv(data())
    return sym.Group([norm(x), x])


def parameter_is_output() -> Symbol:
    weight = sym.var("weight")
    return sym.Group([norm(conv(data(), weight=weight)), weight])


def beta_is_output() -> Symbol:
    beta = sym.var("beta")
    return sym.Group([norm(conv(data()), beta=beta), beta])


def computed_weight() -> Symbol:
    return norm(conv(data(), weight=sym.tanh(sym.var("raw", shape=(6, 4, 3, 3)))))


def mean_as_data() -> Symbol:
    both = norm(sym.expand_dims(norm(conv(data()), "first", output_mean_var=True)[1], 0))
    return sym.Group([both])


SQUARE = (2, 4, 5, 5)

# Builder, shape of the data, number of BatchNorm folded, number left.
CASES: dict[str, tuple[Callable[[], Symbol], tuple[int, ...], int, int]] = {
    "convolution with bias": (lambda: norm(conv(data())), SQUARE, 1, 0),
    "convolution without bias": (lambda: norm(conv(data(), no_bias=True)), SQUARE, 1, 0),
    "no_bias written as 1": (lambda: norm(conv(data(), no_bias="1")), SQUARE, 1, 0),
    "two groups": (lambda: norm(conv(data(), num_group=2)), SQUARE, 1, 0),
    "a group a channel": (lambda: norm(conv(data(), num_group=4, num_filter=8)), SQUARE, 1, 0),
    "one spatial axis": (lambda: norm(conv(data(), kernel=3, pad=1)), (2, 4, 7), 1, 0),
    "three spatial axes": (
        lambda: norm(conv(data(), kernel=(2, 2, 2), pad=(0, 0, 0))),
        (1, 3, 4, 5, 6),
        1,
        0,
    ),
    "channels last": (lambda: norm(conv(data(), layout="NHWC"), axis=3), (2, 5, 5, 4), 1, 0),
    "channels last, counted from the end": (
        lambda: norm(conv(data(), layout="NHWC"), axis=-1),
        (2, 5, 5, 4),
        1,
        0,
    ),
    "axis counted from the end": (lambda: norm(conv(data()), axis=-3), SQUARE, 1, 0),
    "axis of rows": (lambda: norm(conv(data()), axis=2), SQUARE, 0, 1),
    "channels last, default axis": (lambda: norm(conv(data(), layout="NHWC")), (2, 5, 6, 4), 0, 1),
    "gamma fixed": (lambda: norm(conv(data()), fix_gamma=True), SQUARE, 1, 0),
    "gamma fixed by default": (
        lambda: sym.BatchNorm(conv(data()), name="norm"),
        SQUARE,
        1,
        0,
    ),
    "large eps": (lambda: norm(conv(data()), eps=0.5), SQUARE, 1, 0),
    "global statistics": (lambda: norm(conv(data()), use_global_stats=True), SQUARE, 1, 0),
    "BatchNorm_v1": (
        lambda: sym.BatchNorm_v1(conv(data()), name="norm", fix_gamma=False),
        SQUARE,
        1,
        0,
    ),
    "transposed": (deconv, SQUARE, 1, 0),
    "transposed, two groups": (lambda: deconv(num_group=2), SQUARE, 1, 0),
    "transposed, four groups, bias": (
        lambda: deconv(num_group=4, num_filter=12, no_bias=False),
        SQUARE,
        1,
        0,
    ),
    "dense": (lambda: norm(dense()), SQUARE, 1, 0),
    "dense without bias": (lambda: norm(dense(no_bias=True), axis=-1), SQUARE, 1, 0),
    "dense, several axes": (lambda: norm(dense(flatten=False), axis=-1), (2, 3, 4), 1, 0),
    "dense, several axes, last by number": (
        lambda: norm(dense(flatten=False), axis=2),
        (2, 3, 4),
        1,
        0,
    ),
    "dense, several axes, another": (lambda: norm(dense(flatten=False)), (2, 3, 4), 0, 1),
    "one after the other": (lambda: norm(norm(conv(data()), "a"), "b"), SQUARE, 2, 0),
    "a usable one and another": (
        lambda: norm(norm(conv(data()), "a"), "b", axis=3),
        SQUARE,
        1,
        1,
    ),
    "two layers": (lambda: norm(conv(norm(conv(data())), "c2"), "n2"), SQUARE, 2, 0),
    "shared statistics": (shared_statistics, (2, 6, 5, 5), 2, 0),
    "gamma used elsewhere": (gamma_used_elsewhere, SQUARE, 1, 0),
    "beta is an output": (beta_is_output, SQUARE, 1, 0),
    "name of the bias taken": (taken_name, SQUARE, 1, 0),
    "relu between": (after_relu, SQUARE, 0, 1),
    "before the layer": (lambda: conv(norm(data())), SQUARE, 0, 1),
    "shared weight": (lambda: shared_variable("weight"), SQUARE, 0, 2),
    "shared bias": (lambda: shared_variable("bias"), SQUARE, 0, 2),
    "second user of the layer": (two_users, SQUARE, 0, 1),
    "layer is an output": (head_behind_layer, SQUARE, 0, 1),
    "weight is an output": (parameter_is_output, SQUARE, 0, 1),
    "mean used": (statistics_used, SQUARE, 0, 1),
    "variance is an output": (statistics_as_output, SQUARE, 0, 1),
    "mean is the data of another": (mean_as_data, SQUARE, 0, 2),
    "computed weight": (computed_weight, SQUARE, 0, 1),
}


def make_model(symbol: Symbol, shape: tuple[int, ...], dtype: str = "float32") -> Model:
    """Make a model with distinct random parameters and positive variances."""
    random = np.random.default_rng(7)
    argument_shapes, _, state_shapes = symbol.infer_shape(data=shape)
    assert argument_shapes is not None
    args = {
        name: random.normal(size=extent).astype(dtype)
        for name, extent in zip(symbol.list_arguments(), argument_shapes, strict=True)
        if name != "data"
    }
    aux = {
        name: random.uniform(0.5, 2, extent).astype(dtype)
        for name, extent in zip(symbol.list_auxiliary_states(), state_shapes, strict=True)
    }
    return Model(symbol, args, aux)


def outputs(model: Model, x: np.ndarray) -> list[np.ndarray]:
    result = model(x)
    return [np.asarray(each) for each in (result if isinstance(result, list) else [result])]
