"""Fixtures: a small model, and the passes on weights."""

from __future__ import annotations

import pytest

from dense_layer import layer, weights
from passlib.library import Library
from passlib.model import Model
from weight_passes import load_weight_passes


@pytest.fixture
def small() -> Model:
    return Model(layer(), weights())


@pytest.fixture
def passes() -> Library:
    return load_weight_passes()
