"""`import passlib as mx` is enough: a script for MXNet's extensions gives the results of MXNet.

The results of MXNet 1.9.1 are in tests/data/mxnet/extension_script.json, which an interop test
checks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from example_build import extension_libraries
from places import DATA, TESTS

EXACT = ("arguments", "inferred shapes", "rectified", "without a GPU")
GOLDEN = json.loads((DATA / "mxnet/extension_script.json").read_text("utf-8"))


def own_attributes(found: Any) -> Any:
    """Remove the attributes that MXNet leaves on nodes after shape inference."""
    return {
        step: [
            [op, name, {k: v for k, v in attrs.items() if not k.startswith("__ext_")}]
            for op, name, attrs in value
        ]
        if step.endswith("symbol")
        else value
        for step, value in found.items()
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    libraries = extension_libraries()
    folder = tmp_path_factory.mktemp("exported")
    command = [sys.executable, TESTS / "support/extension_script.py", "passlib", *libraries, folder]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return own_attributes(json.loads(run.stdout.splitlines()[-1]))


def test_same_steps(found: Any) -> None:
    assert list(found) == list(GOLDEN)


@pytest.mark.parametrize("step", GOLDEN)
def test_step(found: Any, step: str) -> None:
    wanted = own_attributes(GOLDEN)[step]
    if step.endswith("symbol") or step in EXACT:
        assert found[step] == wanted
    else:
        # Arrays of one step may differ in length.
        for one, other in zip(found[step], wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
