"""Operators left of MXNet's model zoo, simplified in MXNet's dialect and by other tools.

Run as ``python bench/mxnet_zoo.py --mxnet PYTHON [--tools PYTHON] [NAME ...]``: the first Python
has MXNet 1.9.1, the other one the tools of simplify.py. Each architecture is exported to ONNX as
it is, for the tools, and after `Model.simplify`, for passlib. Prints the operators of either, and
the largest difference of what passlib left to MXNet's own numbers, relative to their largest
element.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import passlib
from simplify import TOOLS, count, measure

ARCHITECTURES = (
    *(f"resnet{depth}_v{version}" for version in (1, 2) for depth in (18, 34, 50, 101, 152)),
    *(f"vgg{depth}{normalized}" for normalized in ("", "_bn") for depth in (11, 13, 16, 19)),
    "alexnet",
    *(f"densenet{depth}" for depth in (121, 161, 169, 201)),
    *("squeezenet1.0", "squeezenet1.1", "inceptionv3"),
    *(f"mobilenet{width}" for width in ("1.0", "0.75", "0.5", "0.25")),
    *(f"mobilenetv2_{width}" for width in ("1.0", "0.75", "0.5", "0.25")),
)

_SIDES = {"densenet": 224, "squeezenet": 224, "inception": 299}
"""Height and width that an architecture wants; smaller ones make the others' layers small."""


def side_of(name: str) -> int:
    """Return height and width of the pictures of an architecture."""
    return next((side for start, side in _SIDES.items() if name.startswith(start)), 64)


def difference(path: Path, arrays: dict[str, np.ndarray]) -> float:
    """Return the largest difference of a model to MXNet's outputs, relative to their largest."""
    session = onnxruntime.InferenceSession(path)
    found = 0.0
    for number in range(3):
        expected = arrays[f"out/{number}"]
        (actual,) = session.run(None, {"data": arrays[f"in/{number}"]})
        found = max(found, float(np.abs(actual - expected).max() / np.abs(expected).max()))
    return found


def row(name: str, folder: Path, mxnet: str, tools: str) -> list[str]:
    """Return the cells of an architecture."""
    side = side_of(name)
    script = str(Path(__file__).parent / "zoo_models.py")
    subprocess.run([mxnet, script, name, str(folder), str(side)], check=True, capture_output=True)
    model = passlib.load(folder / f"{name}-symbol.json")
    shapes = {"data": (None, 3, side, side)}
    before, after = folder / "before.onnx", folder / "after.onnx"
    model.to_onnx(before, shapes=shapes)
    model.simplify().to_onnx(after, shapes=shapes)
    with np.load(folder / f"{name}-io.npz") as file:
        off = difference(after, dict(file))
    cells = [name, str(count(onnx.load(before).graph)), str(count(onnx.load(after).graph))]
    found = [measure(tool, before, tools) for tool in TOOLS]
    return [*cells, *(str(each.get("nodes", "fails")) for each in found), f"{off:.1e}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=ARCHITECTURES, metavar="NAME")
    parser.add_argument("--mxnet", required=True, metavar="PYTHON")
    parser.add_argument("--tools", default=sys.executable, metavar="PYTHON")
    given = parser.parse_args()
    exported = (f"{tool} on ONNX" if tool == "passlib" else tool for tool in TOOLS)
    head = ["architecture", "before", "passlib", *exported, "difference"]
    for cells in (head, ["---"] * len(head)):
        sys.stdout.write("| " + " | ".join(cells) + " |\n")
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            cells = row(name, Path(folder), given.mxnet, given.tools)
        sys.stdout.write("| " + " | ".join(cells) + " |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
