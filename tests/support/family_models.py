"""MXNet's symbols that standard passes in Python make smaller, with what they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passlib import sym
from passlib.model import Model
from passlib.symbol import Symbol

X = sym.var("data")
IMAGE, ROWS, CUBE = (2, 4, 5, 5), (3, 4), (2, 3, 4)


def conv(x: Symbol = X, **attrs: Any) -> Symbol:
    return sym.Convolution(x, **{"kernel": (3, 3), "num_filter": 6, "name": "conv", **attrs})


def per_channel(name: str = "c", axes: int = 4) -> Symbol:
    return sym.var(name, shape=(1, 6, *(1,) * (axes - 2)))


def dense(x: Symbol = X, **attrs: Any) -> Symbol:
    return sym.FullyConnected(x, **{"num_hidden": 6, "name": "fc", **attrs})


def relu(x: Symbol) -> Symbol:
    """Keep what is tested from being an output, which has its name."""
    return sym.relu(x, name="out")


def two_users() -> Symbol:
    layer = conv()
    return sym.Group([relu(layer * 2.0), sym.exp(layer)])


def shared_weights() -> Symbol:
    weight = sym.var("w")
    scaled = relu(conv(weight=weight) * 2.0)
    return sym.Group([scaled, sym.exp(conv(weight=weight, name="other"))])


def made(symbol: Symbol, shape: tuple[int, ...]) -> Model:
    """Return a model with random weights."""
    random = np.random.default_rng(3)
    shapes, _, states = symbol.infer_shape(data=shape)
    args = {
        name: random.normal(size=size).astype(np.float32) + 0.1
        for name, size in zip(symbol.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    aux = {
        name: random.uniform(0.5, 1, size).astype(np.float32)
        for name, size in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    return Model(symbol, args, aux)


Case = tuple[str, Callable[[], Symbol], tuple[int, ...], dict[str, int]]
"""The pass, the symbol, the shape of its data, and the operators that are left."""

FOLDED: dict[str, Case] = {
    "copy": ("removeNoOps", lambda: relu(sym.identity(X)), ROWS, {"relu": 1}),
    "BlockGrad": ("removeNoOps", lambda: relu(sym.BlockGrad(X)), ROWS, {"relu": 1}),
    "Dropout": ("removeNoOps", lambda: relu(sym.Dropout(X, p=0.3)), ROWS, {"relu": 1}),
    "Concat of one": ("removeNoOps", lambda: relu(sym.concat(X, dim=1)), ROWS, {"relu": 1}),
    "add_n of one": ("removeNoOps", lambda: relu(sym.add_n(X)), ROWS, {"relu": 1}),
    "split into one": (
        "removeNoOps",
        lambda: relu(sym.split(X, num_outputs=1, axis=1)),
        ROWS,
        {"relu": 1},
    ),
    "transpose to the same order": (
        "removeNoOps",
        lambda: relu(sym.transpose(X, axes=(0, 1))),
        ROWS,
        {"relu": 1},
    ),
    "swapaxes": ("removeNoOps", lambda: relu(sym.swapaxes(X, dim1=1, dim2=1)), ROWS, {"relu": 1}),
    "Pad by nothing": (
        "removeNoOps",
        lambda: relu(sym.pad(X, mode="edge", pad_width=(0,) * 8)),
        IMAGE,
        {"relu": 1},
    ),
    "arithmetic that does nothing": (
        "removeNoOps",
        lambda: relu(dense() * 1.0 / 1.0 - 0.0),
        ROWS,
        {"FullyConnected": 1, "relu": 1},
    ),
    "Flatten before dense layers": (
        "removeNoOps",
        lambda: relu(dense(sym.Flatten(X))),
        IMAGE,
        {"FullyConnected": 1, "relu": 1},
    ),
    "transposes that cancel": (
        "cancelTransposes",
        lambda: relu(sym.transpose(sym.transpose(X, axes=(1, 2, 0)), axes=(2, 0, 1))),
        CUBE,
        {"relu": 1},
    ),
    "transposes that merge": (
        "cancelTransposes",
        lambda: relu(sym.transpose(sym.transpose(X, axes=(1, 2, 0)), axes=(0, 2, 1))),
        CUBE,
        {"transpose": 1, "relu": 1},
    ),
    "Concat of Concat": (
        "mergeConcats",
        lambda: relu(sym.concat(sym.concat(X, sym.exp(X), dim=1), sym.abs(X), dim=1)),
        ROWS,
        {"Concat": 1, "exp": 1, "abs": 1, "relu": 1},
    ),
    "numbers after Convolution": (
        "foldLinear",
        lambda: relu(3.0 - (conv(no_bias=True) * 2.0 + 1.0) / 4.0),
        IMAGE,
        {"Convolution": 1, "relu": 1},
    ),
    "channels after Convolution": (
        "foldLinear",
        lambda: relu(sym.broadcast_sub(per_channel("d"), sym.broadcast_mul(conv(), per_channel()))),
        IMAGE,
        {"Convolution": 1, "relu": 1},
    ),
    "channels after Deconvolution in groups": (
        "foldLinear",
        lambda: relu(
            sym.broadcast_mul(
                sym.Deconvolution(X, kernel=(2, 2), num_filter=6, num_group=2), per_channel()
            )
        ),
        IMAGE,
        {"Deconvolution": 1, "relu": 1},
    ),
    "channels after dense layers of three axes": (
        "foldLinear",
        lambda: relu(sym.broadcast_div(dense(flatten=False), per_channel(axes=2))),
        CUBE,
        {"FullyConnected": 1, "relu": 1},
    ),
    "zeros around": (
        "foldLinear",
        lambda: relu(
            conv(sym.pad(X, mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 2, 2)), pad=(1, 0))
        ),
        IMAGE,
        {"Convolution": 1, "relu": 1},
    ),
    "weights that are computed": (
        "foldConstants",
        lambda: relu(
            dense(weight=sym.transpose(sym.var("w", shape=(4, 6))) * 2.0 + sym.ones((6, 4)))
        ),
        ROWS,
        {"FullyConnected": 1, "relu": 1},
    ),
}
