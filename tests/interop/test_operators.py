"""Operators in MXNet and in passlib, from libraries built with either header: equal in all four."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib as pl
from environment import Environment
from hosts import build_plugin, run_script
from operator_failures import FAILURES, STATE_FAILURES
from passlib.errors import OperatorError

SCRIPT = Path(__file__).parent / "support" / "operator_script.py"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def golden(mxnet_environment: Environment) -> Any:
    library = build_plugin("operators", "mxnet", mxnet_environment)
    return run_script(SCRIPT, mxnet_environment.python, "mxnet", library)


@pytest.mark.parametrize("header", ["passlib", "mxnet"])
@pytest.mark.parametrize("host", ["passlib", "mxnet"])
def test_equal(mxnet_environment: Environment, golden: Any, host: str, header: str) -> None:
    python = sys.executable if host == "passlib" else mxnet_environment.python
    found = run_script(SCRIPT, python, host, build_plugin("operators", header, mxnet_environment))
    assert list(found) == list(golden)
    for step, value in golden.items():
        assert found[step] == value, step


@pytest.mark.parametrize("how", [*FAILURES, *STATE_FAILURES])
def test_failure_of_a_library_built_with_mxnet(mxnet_environment: Environment, how: str) -> None:
    # What such a library throws goes through its entry points.
    library = build_plugin("bad_operators", "mxnet", mxnet_environment)
    pl.library.load(library, verbose=False, replace=True)
    name = "bad_operator" if how in FAILURES else "bad_state"
    arrays = [X.copy(), X.copy()]
    with pytest.raises(OperatorError, match=f"(?s){({**FAILURES, **STATE_FAILURES})[how]}"):
        getattr(pl.nd, name)(*arrays, how=how)
    for array in arrays:
        np.testing.assert_array_equal(array, X)
