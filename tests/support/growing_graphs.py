"""Chains, trees, stars and ladders of each operator that standard passes look at.

``python tests/support/growing_graphs.py [WORD...]`` runs every standard pass, and `simplify` with
a save, on those whose name has one of the words, in a process for each core. It prints where the
work for each operator grows: the steps of Python, with up to 16,000 operators; and the processor
time, which counts native code too, with up to 64,000.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import passlib
from fusion_drawing import Drawing
from passlib.library.backends import joined
from steps import counted_steps

GROWTH = 1.3
"""By so much the steps for each operator may grow when there are several times as many."""

SLOWER = 2.0
"""By so much the time for each operator may grow; caches and memory cost some of it."""

COUNTED = (1000, 4000, 16000)
"""Numbers of operators of the models whose steps are counted."""

TIMED = (4000, 16000, 64000)
"""Numbers of operators of the models that are measured in seconds."""

Link = Callable[[Drawing, str, str], str]
"""Adds operators behind a value, whose shape the result has; gets a weight of that shape too."""


def _of(op: str, *more: Any, **attributes: Any) -> Link:
    """Make a link of one operator, with constants as further inputs."""

    def link(drawing: Drawing, x: str, weight: str) -> str:
        del weight
        constants = [drawing.shared(np.asarray(each)) for each in more]
        return str(drawing(op, x, *constants, **attributes))

    return link


def _with_weight(op: str) -> Link:
    return lambda drawing, x, weight: str(drawing(op, x, weight))


def _chained(*links: Link) -> Link:
    def link(drawing: Drawing, x: str, weight: str) -> str:
        for each in links:
            x = each(drawing, x, weight)
        return x

    return link


def _new_summand(drawing: Drawing, x: str, weight: str) -> str:
    del weight
    return str(drawing("Add", x, drawing.of(np.float32(1 + len(drawing.nodes) % 7))))


def _by_shape(drawing: Drawing, x: str, weight: str) -> str:
    """Reshape a value to its own shape, which is computed."""
    del weight
    sizes = drawing("Shape", x)
    rows = drawing("Gather", sizes, drawing.shared(np.array([0])))
    columns = drawing("Gather", sizes, drawing.shared(np.array([1])))
    return str(drawing("Reshape", x, drawing("Concat", rows, columns, axis=0)))


def _gelu(drawing: Drawing, x: str, weight: str) -> str:
    del weight
    inner = drawing("Erf", drawing("Div", x, drawing.shared(np.float32(2**0.5))))
    added = drawing("Add", inner, drawing.shared(np.float32(1)))
    return str(drawing("Mul", drawing("Mul", x, added), drawing.shared(np.float32(0.5))))


def _heads(drawing: Drawing, x: str, weight: str) -> str:
    """Add three projections, whose rows become heads."""
    del weight
    x = drawing("Reshape", x, drawing.shared(np.array([1, 4, 4])))
    made = []
    for _ in range(3):
        rows = drawing("Add", drawing("MatMul", x, drawing.random(4, 4)), drawing.random(4))
        made.append(drawing("Reshape", rows, drawing.shared(np.array([1, 4, 2, 2]))))
    joined = drawing("Concat", *(drawing("Tanh", each) for each in made), axis=0)
    total = drawing("ReduceMean", joined, axes=[0], keepdims=0)
    return str(drawing("Reshape", total, drawing.shared(np.array([4, 4]))))


def _known_if(drawing: Drawing, x: str, weight: str) -> str:
    del weight
    branches = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        node = helper.make_node(op, [x], [f"{name}_{len(drawing.nodes)}"])
        result = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, [4, 4])
        branches[name] = helper.make_graph([node], name, [], [result])
    return str(drawing("If", drawing.shared(np.array(True)), **branches))


def _joined(drawing: Drawing, x: str, weight: str) -> str:
    joined = drawing("Concat", drawing("Concat", x, weight, axis=0), weight, axis=0)
    return str(_of("Slice", [0], [4], [0])(drawing, joined, weight))


def _quantized(drawing: Drawing, x: str, weight: str) -> str:
    del weight
    scale = drawing.shared(np.float32(0.5)), drawing.shared(np.uint8(3))
    return str(drawing("DequantizeLinear", drawing("QuantizeLinear", x, *scale), *scale))


LINKS: dict[str, Link] = {
    "Relu": _of("Relu"),
    "Identity": _of("Identity"),
    "Dropout": _of("Dropout"),
    "Add of a weight": _with_weight("Add"),
    "Mul by a weight": _with_weight("Mul"),
    "Add of a number": _of("Add", np.float32(1.5)),
    "Add of another number": _new_summand,
    "Mul by a number": _of("Mul", np.float32(1.0625)),
    "Add of zero": _of("Add", np.float32(-0.0)),
    "Sub and Div": _chained(_of("Sub", np.float32(2)), _of("Div", np.float32(2))),
    "Clip": _of("Clip", np.float32(0), np.float32(6)),
    "MatMul": _with_weight("MatMul"),
    "MatMul and Add": _chained(_with_weight("MatMul"), _with_weight("Add")),
    "Heads": _heads,
    "Mul and MatMul": _chained(_of("Mul", np.float32(2)), _with_weight("MatMul")),
    "Gemm": _with_weight("Gemm"),
    "Cast": _chained(_of("Cast", to=TensorProto.DOUBLE), _of("Cast", to=TensorProto.FLOAT)),
    "Transpose": _of("Transpose", perm=[1, 0]),
    "Transpose and Relu": _chained(_of("Transpose", perm=[1, 0]), _of("Relu")),
    "Transpose, Mul, Transpose": _chained(
        _of("Transpose", perm=[1, 0]), _with_weight("Mul"), _of("Transpose", perm=[1, 0])
    ),
    "Reshape": _chained(_of("Reshape", [2, 8]), _of("Reshape", [4, 4])),
    "Reshape to the same": _of("Reshape", [4, 4]),
    "Unsqueeze": _chained(_of("Unsqueeze", [0]), _of("Squeeze", [0])),
    "Unsqueeze, Relu, Squeeze": _chained(_of("Unsqueeze", [0]), _of("Relu"), _of("Squeeze", [0])),
    "Slice": _chained(_of("Slice", [0], [4], [0]), _of("Slice", [0], [4], [1])),
    "Pad": _of("Pad", [0, 0, 0, 0]),
    "Gather": _of("Gather", [3, 2, 1, 0]),
    "Concat": _joined,
    "Expand": _of("Expand", [4, 4]),
    "Shape": _by_shape,
    "Gelu": _gelu,
    "Softmax": _of("Softmax", axis=-1),
    "If": _known_if,
    "DequantizeLinear": _quantized,
}  # fmt: skip
"""By name; each adds one operator or a few."""


def _chain(drawing: Drawing, link: Link, count: int, x: str, weight: str) -> list[str]:
    for _ in range(count):
        x = link(drawing, x, weight)
    return [x]


def _star(drawing: Drawing, link: Link, count: int, x: str, weight: str) -> list[str]:
    return [link(drawing, x, weight) for _ in range(count)]


def _tree(drawing: Drawing, link: Link, count: int, x: str, weight: str) -> list[str]:
    level = [link(drawing, x, weight) for _ in range(max(count // 3, 1))]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        rest = level[len(level) // 2 * 2 :]
        level = [link(drawing, drawing("Add", *pair), weight) for pair in pairs] + rest
    return level


def _ladder(drawing: Drawing, link: Link, count: int, x: str, weight: str) -> list[str]:
    left = right = x
    for _ in range(count // 3):
        left = link(drawing, left, weight)
        right = drawing("Add", link(drawing, right, weight), left)
    return [left, right]


STANDARD = [backend.declaration.name for backend in joined("simplify")]

SHAPES = {"chain": _chain, "tree": _tree, "star": _star, "ladder": _ladder}


def graph(link: str, shape: str, count: int) -> onnx.ModelProto:
    """Return a model of about so many operators."""
    drawing = Drawing(17, (4, 4))
    x = drawing.feed((4, 4))
    results = SHAPES[shape](drawing, LINKS[link], count, x, drawing.random(4, 4))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in results]
    made = helper.make_graph(drawing.nodes, "g", drawing.inputs, outputs, drawing.weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def growth(work: Callable[[passlib.Model], Any], models: Sequence[onnx.ModelProto]) -> float:
    """Return by how much the steps for each operator grow at most, from one model to the next."""
    found = []
    for message in models:
        model = passlib.load(message)
        found.append(counted_steps(lambda model=model: work(model))[1] / len(message.graph.node))  # type: ignore[misc]
    return max(after / before for before, after in pairwise(found))


def _seconds(work: Callable[[passlib.Model], Any], message: onnx.ModelProto) -> float:
    model = passlib.load(message)
    start = time.process_time()
    work(model)
    return (time.process_time() - start) / len(message.graph.node)


def _passes(folder: str) -> Iterator[tuple[str, Callable[[passlib.Model], Any]]]:
    for name in STANDARD:
        yield name, lambda model, name=name: model.optimize_for(name)  # type: ignore[misc]
    yield "simplify and save", lambda model: model.simplify().save(f"{folder}/m.onnx")


def growth_in_time(
    work: Callable[[passlib.Model], Any], models: Sequence[onnx.ModelProto]
) -> float:
    """Return by how much the time for each operator grows at most; the least of three tries."""
    found = float("inf")
    for _ in range(3):
        times = [_seconds(work, model) for model in models]
        found = min(found, max(after / before for before, after in pairwise(times)))
        if found <= SLOWER:
            break
    return found


def _swept(title: tuple[str, str]) -> list[tuple[str, float, float]]:
    """Return the growth in steps and in time of the work on the graphs of a link and a shape."""
    models = {size: graph(*title, size) for size in {*COUNTED, *TIMED}}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, work in _passes(folder):
            # Steps are slow: those of the pipeline are mostly those of its passes.
            sizes = COUNTED if name in STANDARD else COUNTED[:2]
            steps = growth(work, [models[size] for size in sizes])
            slower = growth_in_time(work, [models[size] for size in TIMED])
            found.append((name, steps, slower))
    return found


def main(words: Sequence[str]) -> None:
    """Print what grows too much, and how much was tried."""
    titles = [(link, shape) for link in LINKS for shape in SHAPES
              if not words or any(word in f"{shape} of {link}" for word in words)]  # fmt: skip
    tried = found = 0
    with ProcessPoolExecutor() as pool:
        for (link, shape), rows in zip(titles, pool.map(_swept, titles), strict=True):
            tried += len(rows)
            for name, steps, slower in rows:
                if steps > GROWTH or slower > SLOWER:
                    found += 1
                    sys.stdout.write(
                        f"{name}, {shape} of {link}: steps {steps:.2f}, time {slower:.2f}\n"
                    )
            sys.stdout.flush()
    sys.stdout.write(f"{tried} tried, {found} grow too much\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1:])
