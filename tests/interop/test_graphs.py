"""Graphs of built-in and libraries' operators: equal results in MXNet and in passlib."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from environment import Environment
from hosts import run_plugin


@pytest.fixture(scope="module")
def golden(mxnet_environment: Environment) -> Any:
    return run_plugin("graph_script.py", "graph_operators", "mxnet", "mxnet", mxnet_environment)


@pytest.mark.parametrize("header", ["passlib", "mxnet"])
@pytest.mark.parametrize("host", ["passlib", "mxnet"])
def test_equal(mxnet_environment: Environment, golden: Any, host: str, header: str) -> None:
    found = run_plugin("graph_script.py", "graph_operators", header, host, mxnet_environment)
    assert list(found) == list(golden)
    for name, steps in golden.items():
        assert len(found[name]) == len(steps)
        for actual, expected in zip(found[name], steps, strict=True):
            assert len(actual) == len(expected)
            for one, other in zip(actual, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=name)
