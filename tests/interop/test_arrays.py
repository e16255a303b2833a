"""The recorded results of arrays, and the recorded names, are those of the real MXNet."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from environment import Environment
from places import DATA, TESTS

SUPPORT = TESTS / "interop" / "support"


@pytest.mark.parametrize(
    ("script", "arguments", "recorded"),
    [
        ("array_cases.py", ["mxnet"], "array_cases.json"),
        ("make_names.py", [], "public_names.json"),
    ],
)
def test_recorded(
    mxnet_environment: Environment,
    tmp_path: Path,
    script: str,
    arguments: list[str],
    recorded: str,
) -> None:
    target = tmp_path / recorded
    command = [mxnet_environment.python, SUPPORT / script, *arguments, target]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(target.read_text("utf-8"))
    wanted = json.loads((DATA / "mxnet" / recorded).read_text("utf-8"))
    assert list(found) == list(wanted)
    assert [key for key in wanted if not alike(found[key], wanted[key])] == []


def alike(found: object, wanted: object) -> bool:
    """Whether results are equal but for the last digits of functions of real numbers."""
    if isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
        return all(map(alike, found, wanted))
    if isinstance(wanted, dict) and isinstance(found, dict) and "values" in wanted:
        kinds = [(each["dtype"], each["shape"]) for each in (found, wanted)]
        if kinds[0] != kinds[1] or wanted["dtype"] == "bool":
            return found == wanted
        numbers = [np.array(each["values"], np.float64) for each in (found, wanted)]
        return np.allclose(*numbers, rtol=1e-4, atol=1e-5, equal_nan=True)
    return found == wanted
