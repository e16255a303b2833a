"""Graphs for the fusions of ONNX Runtime, alone and next to layers.

``python tests/support/runtime_fusions.py [WORD...]`` simplifies every fusion whose name has one of
the words between all pairs of neighbours, and prints those of which ONNX Runtime then fuses less.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import fusions_quantized  # noqa: F401 - adds to FUSIONS
import passlib
from fusion_drawing import FUSIONS, Drawing, Part
from fusions_of_layers import conv, product_and_sum

LEVELS = {
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def _turned(drawing: Drawing, x: str) -> str:
    """Go through another order of axes and back."""
    order = [0, *range(2, len(drawing.shape)), 1] if len(drawing.shape) > 2 else [1, 0]
    bent = drawing("Sigmoid", drawing("Transpose", x, perm=order))
    return str(drawing("Transpose", bent, perm=[int(axis) for axis in np.argsort(order)]))


def _reshaped(drawing: Drawing, x: str) -> str:
    flat = drawing("Reshape", x, drawing.of([-1, drawing.shape[-1]], np.int64))
    return str(drawing("Reshape", flat, drawing.of(drawing.shape, np.int64)))


NEIGHBOURS: dict[str, Part] = {
    "nothing": lambda drawing, x: x,
    "Relu": lambda drawing, x: drawing("Relu", x),
    "layer": lambda drawing, x: (
        conv(drawing, x)
        if len(drawing.shape) == 4
        else drawing("MatMul", x, drawing.random(16, 16))
    ),
    "layer and sum": lambda drawing, x: (
        drawing("Add", drawing("Conv", x, drawing.random(16, 16, 1, 1)), drawing.random(16, 1, 1))
        if len(drawing.shape) == 4
        else product_and_sum(drawing, x)
    ),
    "factor": lambda drawing, x: drawing("Mul", x, drawing.random(*drawing.by_channel)),
    "number": lambda drawing, x: drawing("Div", x, drawing.of(3)),
    "summand": lambda drawing, x: drawing("Add", x, drawing.random(*drawing.by_channel)),
    "factor and summand": lambda drawing, x: drawing(
        "Add",
        drawing("Mul", x, drawing.random(*drawing.by_channel)),
        drawing.random(*drawing.by_channel),
    ),
    "turn": _turned,
    "shape": _reshaped,
    "halves": lambda drawing, x: drawing("Mul", drawing("Mul", x, drawing.of(0.5)), drawing.of(4)),
    "residual": lambda drawing, x: drawing("Add", drawing("Relu", x), x),
}
"""Neighbours of a fusion, by name."""


def drawn(name: str, before: str = "nothing", behind: str = "nothing") -> bytes:
    """Return the model of a fusion between two neighbours."""
    found = FUSIONS[name]
    drawing = Drawing(found.opset, found.shape)
    value = NEIGHBOURS[before](drawing, drawing.feed(found.sizes or found.shape))
    value = NEIGHBOURS[behind](drawing, found.part(drawing, value))
    # Some are not fused if they compute an output.
    return drawing.model(drawing("Abs", value))


def cases(words: Sequence[str] = ()) -> Iterator[tuple[str, str, str]]:
    """Iterate over the fusions whose names have one of the words, with all pairs of neighbours."""
    for name in FUSIONS:
        if not words or any(word in name for word in words):
            yield from ((name, *pair) for pair in itertools.product(NEIGHBOURS, repeat=2))


def session_operators(data: bytes, level: str) -> Counter[str]:
    """Count the operators that ONNX Runtime's optimised session of a model has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = LEVELS[level]
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return Counter(node.op_type for node in onnx.load(path).graph.node)


def simplified(data: bytes, **options: Any) -> bytes:
    """Return a model after simplification."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "after.onnx"
        passlib.simplify(data, **options).save(path)
        return path.read_bytes()


def count(operators: Counter[str], fused: str) -> int:
    """Return how many of the operators are what a fusion makes."""
    return sum(operators[name] for name in fused.split())


def less_fused(data: bytes, fused: str, **options: Any) -> list[str]:
    """Simplify a model; return what ONNX Runtime then fuses less."""
    made = simplified(data, **options)
    wrong = []
    for level in LEVELS:
        try:
            old = session_operators(data, level)
        except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument:
            continue  # ONNX Runtime 1.32 loses an edge where it fuses a factor that two share
        new = session_operators(made, level)
        # The last level has another layout, in which activations are attributes of Conv.
        lost = level == "extended" and count(new, fused) < count(old, fused)
        if lost or new.total() > old.total():
            wrong.append(f"{level}: {dict(new - old)} instead of {dict(old - new)}")
    return wrong


def main(words: Sequence[str]) -> None:
    """Print what is fused less after simplification, and how much was tried."""
    tried = found = 0
    for name, before, behind in cases(words):
        tried += 1
        try:
            lost = less_fused(drawn(name, before, behind), FUSIONS[name].fused)
        except passlib.PasslibError as error:
            lost = [f"fails: {error}"]
        found += bool(lost)
        if lost:
            sys.stdout.write(f"{before} > {name} > {behind}: {'; '.join(lost)}\n")
    sys.stdout.write(f"{tried} tried, {found} fused less\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1:])
