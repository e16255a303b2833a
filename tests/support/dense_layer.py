"""A layer of three units with its weights, an input, and the output computed by NumPy."""

from __future__ import annotations

import numpy as np

from passlib import nd, sym
from passlib.symbol import Symbol

X = np.array([[1, -1], [2, 0.5]], np.float32)
WEIGHT = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
BIAS = np.array([0.5, -0.5, 1], np.float32)
Y = X @ WEIGHT.T + BIAS


def layer(num_hidden: int = 3) -> Symbol:
    made: Symbol = sym.FullyConnected(sym.var("data"), num_hidden=num_hidden, name="fc")
    return made


def weights() -> dict[str, nd.NDArray]:
    return {"fc_weight": nd.array(WEIGHT), "fc_bias": nd.array(BIAS)}
