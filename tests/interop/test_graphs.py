"""Graphs of built-in and libraries' operators: equal in MXNet and in passlib."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from environment import Environment
from hosts import build_plugin, run_script

SCRIPT = Path(__file__).parent / "support" / "graph_script.py"


@pytest.fixture(scope="module")
def golden(mxnet_environment: Environment) -> Any:
    library = build_plugin("graph_operators", "mxnet", mxnet_environment)
    return run_script(SCRIPT, mxnet_environment.python, "mxnet", library)


@pytest.mark.parametrize("header", ["passlib", "mxnet"])
@pytest.mark.parametrize("host", ["passlib", "mxnet"])
def test_equal(mxnet_environment: Environment, golden: Any, host: str, header: str) -> None:
    python = sys.executable if host == "passlib" else mxnet_environment.python
    library = build_plugin("graph_operators", header, mxnet_environment)
    found = run_script(SCRIPT, python, host, library)
    assert list(found) == list(golden)
    for name, steps in golden.items():
        assert len(found[name]) == len(steps)
        for actual, expected in zip(found[name], steps, strict=True):
            assert len(actual) == len(expected)
            for one, other in zip(actual, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=name)
