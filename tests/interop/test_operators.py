"""Operators in MXNet and passlib, from libraries built with either header: four equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passlib as pl
from environment import Environment
from hosts import build_plugin, run_plugin
from operator_failures import FAILURES, STATE_FAILURES
from passlib.errors import OperatorError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def golden(mxnet_environment: Environment) -> Any:
    return run_plugin("operator_script.py", "operators", "mxnet", "mxnet", mxnet_environment)


@pytest.mark.parametrize("header", ["passlib", "mxnet"])
@pytest.mark.parametrize("host", ["passlib", "mxnet"])
def test_equal(mxnet_environment: Environment, golden: Any, host: str, header: str) -> None:
    found = run_plugin("operator_script.py", "operators", header, host, mxnet_environment)
    assert list(found) == list(golden)
    for step, value in golden.items():
        assert found[step] == value, step


@pytest.mark.parametrize("how", [*FAILURES, *STATE_FAILURES])
def test_failure_of_a_library_built_with_mxnet(mxnet_environment: Environment, how: str) -> None:
    # Exceptions of such a library leave through its entry points.
    library = build_plugin("bad_operators", "mxnet", mxnet_environment)
    pl.library.load(library, verbose=False, replace=True)
    name = "bad_operator" if how in FAILURES else "bad_state"
    arrays = [X.copy(), X.copy()]
    with pytest.raises(OperatorError, match=f"(?s){({**FAILURES, **STATE_FAILURES})[how]}"):
        getattr(pl.nd, name)(*arrays, how=how)
    for array in arrays:
        np.testing.assert_array_equal(array, X)
