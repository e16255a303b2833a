"""The libraries of the examples in MXNet: a script for extensions gives the recorded results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from environment import Environment
from example_build import extension_libraries
from places import DATA, TESTS

GOLDEN = json.loads((DATA / "mxnet/extension_script.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def found(mxnet_environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Any:
    libraries = extension_libraries()
    script: list[str | Path] = [TESTS / "support/extension_script.py", "mxnet", *libraries]
    folder = tmp_path_factory.mktemp("exported")
    run = subprocess.run(
        [mxnet_environment.python, *script, folder], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("step", GOLDEN)
def test_step(found: Any, step: str) -> None:
    assert found[step] == GOLDEN[step]


def test_no_step_is_missing(found: Any) -> None:
    assert list(found) == list(GOLDEN)
