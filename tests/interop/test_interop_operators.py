"""Operators in MXNet and in passlib, from libraries built with either header: equal in all four."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import environment
import passlib as pl
from environment import ROOT, Environment
from passlib.errors import OperatorError
from test_operator_failures import FAILURES, STATE_FAILURES

PLUGINS = ROOT / "tests" / "plugins"
SCRIPT = Path(__file__).parent / "operator_script.py"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def build(name: str, header: str, mxnet: Environment) -> Path:
    sources, include = [PLUGINS / f"{name}.cc"], [ROOT / "include"]
    if header == "mxnet":
        sources.append(mxnet.package / "src" / "lib_api.cc")
        include = [mxnet.package / "include", mxnet.package / "include" / "mxnet"]
    return environment.build(f"interop_{name}_{header}", sources, include)


def run(python: Path | str, module: str, library: Path) -> Any:
    command = [python, SCRIPT, module, library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def golden(mxnet_environment: Environment) -> Any:
    library = build("operators", "mxnet", mxnet_environment)
    return run(mxnet_environment.python, "mxnet", library)


@pytest.mark.parametrize("header", ["passlib", "mxnet"])
@pytest.mark.parametrize("host", ["passlib", "mxnet"])
def test_equal(mxnet_environment: Environment, golden: Any, host: str, header: str) -> None:
    python = sys.executable if host == "passlib" else mxnet_environment.python
    found = run(python, host, build("operators", header, mxnet_environment))
    assert list(found) == list(golden)
    for step, value in golden.items():
        assert found[step] == value, step


@pytest.mark.parametrize("how", [*FAILURES, *STATE_FAILURES])
def test_failure_of_a_library_built_with_mxnet(mxnet_environment: Environment, how: str) -> None:
    # What such a library throws goes through its entry points.
    library = build("bad_operators", "mxnet", mxnet_environment)
    pl.library.load(library, verbose=False, replace=True)
    name = "bad_operator" if how in FAILURES else "bad_state"
    arrays = [X.copy(), X.copy()]
    with pytest.raises(OperatorError, match=f"(?s){({**FAILURES, **STATE_FAILURES})[how]}"):
        getattr(pl.nd, name)(*arrays, how=how)
    for array in arrays:
        np.testing.assert_array_equal(array, X)
