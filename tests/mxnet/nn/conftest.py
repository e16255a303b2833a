"""Fixtures: a small block, and the passes on weights."""

from __future__ import annotations

import pytest

from dense_layer import BIAS, WEIGHT, X, layer
from passlib import nn, sym
from passlib.library import Library
from weight_passes import load_weight_passes


@pytest.fixture
def block() -> nn.SymbolBlock:
    made = nn.SymbolBlock(layer(), sym.var("data"))
    made.initialize("zeros")
    made(X)
    made.params["fc_weight"].set_data(WEIGHT)
    made.params["fc_bias"].set_data(BIAS)
    return made


@pytest.fixture
def passes() -> Library:
    return load_weight_passes()
