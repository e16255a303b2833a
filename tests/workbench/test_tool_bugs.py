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
SWEEP = TESTS / "support" / "tool_sweep.py"

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

FAULTS = {
    ("float16", "multiple times", "celu_expanded"): "celu",
    ("float16", "LayerNormalization", "layer_normalization_default_axis"): "layernormalization",
    ("float16", "HannWindow", "hannwindow"): "hannwindow",
    ("dynamic quantization", "QAttention", "attention_4d"): "attention",
    ("ORT inference", "GatherND", "gathernd_example_int32_batch_dim1"): "gathernd",
    ("ORT inference", "numbers", "loop11"): "loop",
    ("onnxslim", "UnboundLocalError", "if_opt"): "if_",
    ("onnxoptimizer", "value_info", "if_seq"): "if_",
}
"""Tool, fault in the words of tool_sweep.py, and model, with the suite's module of the model."""

RANDOM = {
    ("onnxsim", 14): "eraseOutput",
    ("onnxoptimizer", 28): "eliminate_shape_gather",
    ("onnxoptimizer", 474): "numbers",
    ("onnxslim", 8): "names of inputs",
    ("onnxslim", 159): "numbers",
    ("onnxscript rewriter", 421): "allowzero",
    ("ORT inference", 24): "(op_type:Slice)",
    ("ORT inference", 290): "numbers",
    ("ORT inference", 392): "crash",
    ("float16", 3): "topologically sorted",
    ("float16", 35): "AttributeError",
    ("float16", 272): "type of",
}
"""Tool and seed of a random graph, with the fault."""

VERSIONS = {
    "onnxconverter-common": "1.16.0",
    "onnxoptimizer": "0.4.2",
    "onnxruntime": "1.32.0",
    "onnxscript": "0.7.2",
    "onnxsim": "0.8.1",
    "onnxslim": "0.1.98",
}
"""The versions that have the bugs."""

PACKAGES = {
    "float16": "onnxconverter-common",
    "dynamic quantization": "onnxruntime",
    "ORT inference": "onnxruntime",
    "onnxscript rewriter": "onnxscript",
}
"""Packages of tools with other names."""


def require_version(tool: str) -> None:
    """Skip the test without this version of a tool."""
    try:
        found = version(tool)
    except PackageNotFoundError:
        pytest.skip(f"{tool} is not installed: pip install --group tools")
    if found != VERSIONS[tool]:
        pytest.skip(f"{tool} is {found}; the bug was found in {VERSIONS[tool]}")


def require_tool(tool: str) -> None:
    require_version(PACKAGES.get(tool, tool))
    if tool == "ORT inference":
        pytest.importorskip("sympy", reason="ONNX Runtime's inference needs it")


def write_model(model: str, module: str, path: Path) -> Path:
    """Write a model of the suite."""
    path.write_bytes(next(c.data for c in node_cases([module]) if c.name == f"node/test_{model}"))
    return path


def prepared(script: str, model: str, module: str, folder: Path) -> tuple[list[str], Path]:
    """Return the command that shows a bug, and the file of the model."""
    require_version(script.partition("_")[0])
    path = write_model(model, module, folder / "model.onnx")
    return [sys.executable, str(SCRIPTS / f"{script}.py")], path


@pytest.mark.parametrize(("script", "model"), SEEN)
def test_bug_is_seen(script: str, model: str, tmp_path: Path) -> None:
    command, path = prepared(script, model, SEEN[script, model], tmp_path)
    assert subprocess.run([*command, path], capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize(("tool", "fault", "model"), FAULTS)
def test_fault_is_found(tool: str, fault: str, model: str, tmp_path: Path) -> None:
    require_tool(tool)
    path = write_model(model, FAULTS[tool, fault, model], tmp_path / "model.onnx")
    command = [sys.executable, str(SWEEP), "--tools", tool, "--fault", fault, str(path)]
    found = subprocess.run(command, capture_output=True, check=False, text=True, cwd=tmp_path)
    assert (found.returncode, fault in found.stdout) == (1, True), found.stdout + found.stderr


@pytest.mark.sample(1)
@pytest.mark.parametrize(("tool", "fault", "model"), FAULTS)
def test_fault_becomes_a_script(tool: str, fault: str, model: str, tmp_path: Path) -> None:
    require_tool(tool)
    path = write_model(model, FAULTS[tool, fault, model], tmp_path / "original.onnx")
    command = [sys.executable, str(SWEEP), "--tools", tool, "--fault", fault]
    given = ("--script", "issue.py", "--test", f"{shlex.join(command)} {{}}")
    found = passlib_command("reduce", path, *given, folder=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    # Nothing but what pip installs with onnx and ONNX Runtime is needed.
    alone = [sys.executable, "-I", "issue.py"]
    made = subprocess.run(alone, capture_output=True, check=False, text=True, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "passlib" not in (tmp_path / "issue.py").read_text("utf-8").partition("import")[2]
    again = subprocess.run([*command, tmp_path / "model.onnx"], capture_output=True, check=False)
    assert again.returncode == 1, again.stdout


@pytest.mark.parametrize(("tool", "seed"), RANDOM)
def test_fault_is_found_on_random_graphs(tool: str, seed: int, tmp_path: Path) -> None:
    for package in sorted(VERSIONS):
        require_version(package)
    require_tool(tool)
    command = [sys.executable, str(SWEEP), "--random", str(seed), "1", "--tools", tool]
    found = subprocess.run(command, capture_output=True, check=False, text=True, cwd=tmp_path)
    line = found.stdout.partition("\n")[0]
    assert line.startswith(f"seed {seed} | {tool} | "), found.stdout + found.stderr
    assert RANDOM[tool, seed] in line


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
