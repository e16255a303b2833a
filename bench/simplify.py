"""What simplification leaves of real models, in passlib and in other tools.

Run as ``python bench/simplify.py FOLDER [--tools PYTHON]``: FOLDER has ONNX files at any depth;
PYTHON is an interpreter that has onnx and some of onnxsim, onnxslim, onnxscript and onnxruntime.
Prints for each model and tool the operators (nested graphs included, Constant excluded), the
seconds, and the size of the file relative to the original.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import onnx


def count(graph: Any) -> int:
    """Count the operators of a graph and of those nested in it, without Constant."""
    total, pending = 0, [graph]
    while pending:
        for node in pending.pop().node:
            total += node.op_type != "Constant"
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.HasField("g") else []
                pending += attribute.graphs
    return total


def by_passlib(source: str, target: str) -> None:
    """Simplify with passlib."""
    import passlib

    passlib.simplify(source).save(target)


def by_onnxsim(source: str, target: str) -> None:
    """Simplify with onnxsim."""
    import onnxsim

    onnx.save(onnxsim.simplify(onnx.load(source))[0], target)


def by_onnxslim(source: str, target: str) -> None:
    """Simplify with onnxslim."""
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(source)), target)


def by_onnxscript(source: str, target: str) -> None:
    """Simplify with onnxscript's optimizer."""
    from onnxscript import optimizer

    onnx.save(optimizer.optimize(onnx.load(source)), target)


def by_onnxruntime(source: str, target: str) -> None:
    """Simplify with the basic level of ONNX Runtime, which keeps to standard operators."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = target
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


TOOLS: dict[str, tuple[str, Callable[[str, str], None]]] = {
    "passlib": ("graph-passlib", by_passlib),
    "onnxsim": ("onnxsim", by_onnxsim),
    "onnxslim": ("onnxslim", by_onnxslim),
    "onnxscript": ("onnxscript", by_onnxscript),
    "ORT basic": ("onnxruntime", by_onnxruntime),
}


def run_one(tool: str, source: str) -> dict[str, Any]:
    """Run one tool on one model in this process."""
    package, simplify = TOOLS[tool]
    try:
        named = version(package)
    except PackageNotFoundError:
        return {"failed": "not installed"}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out.onnx"
        start = time.perf_counter()
        try:
            simplify(source, str(target))
        except Exception as error:
            return {"version": named, "failed": f"{type(error).__name__}: {error}"[:80]}
        seconds = time.perf_counter() - start
        return {
            "version": named,
            "nodes": count(onnx.load(str(target)).graph),
            "seconds": seconds,
            "size": target.stat().st_size / Path(source).stat().st_size,
        }


def measure(tool: str, source: Path, python: str) -> dict[str, Any]:
    """Run one tool on one model in a process of its own, as the tools do not share versions."""
    interpreter = sys.executable if tool == "passlib" else python
    done = subprocess.run(
        [interpreter, __file__, "--one", tool, str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"failed": f"ended with {done.returncode}"}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--tools", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--one", nargs=2, metavar=("TOOL", "FILE"))
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(run_one(*given.one)) + "\n")
        return
    versions: dict[str, str] = {}
    rows = []
    for source in sorted(Path(given.folder).rglob("*.onnx")):
        cells = [source.name, str(count(onnx.load(str(source)).graph))]
        for tool in TOOLS:
            found = measure(tool, source, given.tools)
            versions[tool] = found.get("version", "")
            failed = "nodes" not in found
            cells.append(
                "fails"
                if failed
                else f"{found['nodes']} ({found['seconds']:.2f} s, {found['size']:.3f})"
            )
        rows.append(cells)
    head = ["model", "before", *(f"{tool} {versions.get(tool, '')}".strip() for tool in TOOLS)]
    for cells in (head, ["---"] * len(head), *rows):
        sys.stdout.write("| " + " | ".join(cells) + " |\n")


if __name__ == "__main__":
    main()
