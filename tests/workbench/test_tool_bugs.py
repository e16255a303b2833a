"""Bugs of other tools, each reproduced by a script and reduced by ``passlib reduce --test``."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import onnx
import pytest

from commands import passlib_command
from onnx_suite import node_cases
from places import TESTS

SCRIPTS = TESTS / "support" / "tool_bugs"

SEEN = {
    ("onnxslim_unsorted", "affine_grid_2d_expanded"): "affinegrid",
    ("onnxslim_unsorted", "affine_grid_3d_expanded"): "affinegrid",
}
"""Script and model of a bug, with the suite's module that has the model."""

BUGS = {
    ("onnxslim_domains", "ai_onnx_ml_binarizer"): ("ai_onnx_ml.binarizer", 1),
    ("onnxoptimizer_numbers", "group_normalization_example_expanded"): ("groupnormalization", 9),
    ("onnxoptimizer_crash", "shape_start_greater_than_end"): ("shape", 1),
}
"""Likewise, with the most nodes that are left of the model."""

VERSIONS = {"onnxslim": "0.1.98", "onnxoptimizer": "0.4.2"}
"""The versions that have the bugs."""


def require_version(tool: str) -> None:
    """Skip the test without this version of a tool."""
    try:
        found = version(tool)
    except PackageNotFoundError:
        pytest.skip(f"{tool} is not installed: pip install --group tools")
    if found != VERSIONS[tool]:
        pytest.skip(f"{tool} is {found}; the bug was found in {VERSIONS[tool]}")


def prepared(script: str, model: str, module: str, folder: Path) -> tuple[list[str], Path]:
    """Return the command that shows a bug, and the file of the model."""
    require_version(script.partition("_")[0])
    path = folder / "model.onnx"
    path.write_bytes(next(c.data for c in node_cases([module]) if c.name == f"node/test_{model}"))
    return [sys.executable, str(SCRIPTS / f"{script}.py")], path


@pytest.mark.parametrize(("script", "model"), SEEN)
def test_bug_is_seen(script: str, model: str, tmp_path: Path) -> None:
    command, path = prepared(script, model, SEEN[script, model], tmp_path)
    assert subprocess.run([*command, path], capture_output=True, check=False).returncode == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize(("script", "model"), BUGS)
def test_bug_is_reduced(script: str, model: str, tmp_path: Path) -> None:
    module, most = BUGS[script, model]
    command, path = prepared(script, model, module, tmp_path)
    small = tmp_path / "small.onnx"
    found = passlib_command("reduce", path, "-o", small, "--test", f"{shlex.join(command)} {{}}")
    assert (found.returncode, found.stderr) == (0, "")
    onnx.checker.check_model(small)
    again = subprocess.run([*command, small], capture_output=True, check=False)
    assert again.returncode not in (0, 125)
    nodes = onnx.load(small).graph.node
    nested = [inner for n in nodes for a in n.attribute if a.HasField("g") for inner in a.g.node]
    assert len(nodes) + len(nested) <= most
