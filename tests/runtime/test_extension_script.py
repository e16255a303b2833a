"""`import passlib as mx` is enough: a script written for MXNet's extensions finds what MXNet finds.

What MXNet 1.9.1 found is in tests/data/mxnet/extension_script.json, which an interop test makes
anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from example_build import build_example
from plugin_build import TESTS

GOLDEN = json.loads((TESTS / "data/mxnet/extension_script.json").read_text("utf-8"))


def own_attributes(found: Any) -> Any:
    """Take out what MXNet leaves on nodes that it inferred the shapes of."""
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
    libraries = [
        build_example("lib_custom_op", "gemm_lib.cc"),
        build_example("lib_subgraph", "subgraph_lib.cc"),
    ]
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
    if step.endswith("symbol") or step in ("arguments", "inferred shapes"):
        assert found[step] == wanted
    else:
        np.testing.assert_allclose(found[step], wanted, rtol=1e-5)
