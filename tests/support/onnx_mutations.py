"""Damaged ONNX models through all that runs native code on them, each in a child process.

``python tests/support/onnx_mutations.py SECONDS [SEED]`` runs until the time is over, and prints
each model that ended its process, took more than its time or memory, or raised an exception that
is not of passlib's tree. A number and a seed make the same model again.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import onnx_models
import passlib
from fuzzing import attempt, fuzz

NEWEST = 21
"""The newest operator set of ONNX that the models have."""

VALUES = (-(1 << 63), -(1 << 31) - 1, -5, -1, 0, 1, 2, 3, 7, 64, 1 << 16, 1 << 31, (1 << 32) + 1,
          (1 << 62), (1 << 63) - 1)  # fmt: skip

HEAD = '<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 3, "own" : 1]> g '

TEXTS = (
    *onnx_models.TEXTS.values(),
    HEAD + "(float[2, 4] x) => (float[M, N] y) <int64[2] s = {3, 4}> { y = ConstantOfShape(s) }",
    HEAD
    + """(float[2, 4] x) => (float[M, N] y, float[K] z) <int64[2] r = {1, 2}, int64[2] s = {4, 8},
    int64[4] p = {0, 1, 0, 1}, int64 a = {0}, int64 b = {5}, int64 c = {1}, float[2] q = {1.0, 2.0}>
    {
        t = Tile(x, r) e = Expand(t, s) o = Pad(e, p) f = Range(a, b, c) z = Cast<to = 1>(f)
        u = Resize(x, , q) w = Slice(o, r, s) k = Gather(s, a) v = Concat<axis = 0>(s, s)
        l, m = Split<axis = 0, num_outputs = 2>(v) n = Mul(l, r) h = OneHot(f, b, q)
        i = Reshape(x, s) y = Relu(o)
    }""",
    HEAD
    + """(float[1, 2, 8, 8] x) => (float[N, C, H, W] y) <float[2] w1 = {1.0, 2.0},
    int64[4] ws = {2, 2, 3, 3}, int64[4] s = {1, 2, 6, 6}>
    {
        w = ConstantOfShape(ws)
        a = Conv<kernel_shape = [3, 3], strides = [1, 1], pads = [0, 0, 0, 0], group = 1>(x, w)
        b = MaxPool<kernel_shape = [2, 2], strides = [1, 1]>(a) c = Flatten<axis = 1>(b)
        d = SpaceToDepth<blocksize = 2>(a) e = LRN<size = 3>(a) f = Resize(a, , , s)
        y = ConvTranspose<kernel_shape = [3, 3], output_padding = [0, 0]>(x, w)
    }""",
    HEAD
    + """(float[3] x, float[K, 3] xs) => (float[3] last, float[K, 3] all) {
        last, all = Scan<num_scan_inputs = 1, body = body (float[3] s, float[3] e) =>
            (float[3] t, float[3] o) { t = Add(s, e) o = Relu(t) }>(x, xs)
    }""",
    HEAD
    + """(float[2, 4] x) => (seq(float[2, 4]) s, float[2, 4] y, optional(float[2, 4]) o) {
        s = SequenceConstruct(x, x) i = Constant<value = int64 {0}>() y = SequenceAt(s, i)
        o = Optional(x) p = SplitToSequence<axis = 0, keepdims = 1>(x)
    }""",
    HEAD
    + """(float[2, 4] x) => (float[2, 4] y) { a = own.f(x) y = own.f(a) }
    <domain: "own", opset_import: ["" : 18]>
    f (p) => (q) { r = Add(p, p) q = Softmax<axis = 1>(r) }""",
)
"""Models that are damaged, besides those of onnx.backend.test."""


def _originals() -> list[bytes]:
    from onnx_suite import node_cases

    texts: list[bytes] = [onnx.parser.parse_model(text).SerializeToString() for text in TEXTS]
    return texts * 20 + [_older(case.data) for case in node_cases() if len(case.data) < 20_000]


def _older(data: bytes) -> bytes:
    """Return a model in an operator set that ONNX Runtime knows, whatever its nodes need."""
    model = onnx.ModelProto.FromString(data)
    for entry in model.opset_import:
        if not entry.domain:
            entry.version = min(entry.version, NEWEST)
    model.ir_version = min(model.ir_version, 10)
    older: bytes = model.SerializeToString()
    return older


def mutated(originals: list[bytes], seed: int) -> bytes:
    """Return a damaged model."""
    source = random.Random(seed)
    model = onnx.ModelProto.FromString(source.choice(originals))
    for _ in range(source.choice((1, 1, 2, 3, 6))):
        _mutate(model, source, source.choice((model.graph, *_graphs(model))))
    damaged: bytes = model.SerializeToString()
    return damaged


def _graphs(model: Any) -> Iterator[Any]:
    pending = [model.graph]
    while pending:
        graph = pending.pop()
        yield graph
        pending += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]


def _mutate(model: Any, source: random.Random, graph: Any) -> None:
    kind = source.randrange(10)
    node = source.choice(graph.node) if graph.node else None
    value = source.choice(VALUES)
    if kind <= 2 and graph.initializer:
        _change(source.choice(graph.initializer), source)
    elif kind == 3 and graph.input:
        dims = source.choice(graph.input).type.tensor_type.shape.dim
        if dims:
            source.choice(dims).dim_value = value
    elif kind == 4:
        version = max(1, min(abs(value), (1 << 31) - 1))
        source.choice(model.opset_import).version = source.choice((version, 7, 11, 13, 19, 22))
    elif node is None:
        return
    elif kind <= 6 and node.attribute:
        attribute = source.choice(node.attribute)
        if attribute.HasField("t"):
            _change(attribute.t, source)
        elif attribute.ints:
            attribute.ints[source.randrange(len(attribute.ints))] = value
        else:
            attribute.i = value
    elif kind == 7:
        names = source.choice((node.input, node.output))
        if names and source.random() < 0.5:
            del names[source.randrange(len(names))]
        else:
            names.append(source.choice([*names, "", "new"]))
    elif kind == 8:
        other = source.choice(graph.node)
        node.op_type, node.domain = other.op_type, other.domain
    elif node.attribute:
        del node.attribute[source.randrange(len(node.attribute))]


def _change(tensor: Any, source: random.Random) -> None:
    """Change elements or dimensions of a tensor."""
    if source.random() < 0.2 and tensor.dims:
        tensor.dims[source.randrange(len(tensor.dims))] = source.choice(VALUES)
        return
    try:
        array = np.array(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, OverflowError):
        return
    if array.size and array.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            value = np.array(source.choice(VALUES)).astype(array.dtype)
        array.reshape(-1)[source.randrange(array.size)] = value
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def check(data: bytes, folder: Path, *, thoroughly: bool) -> Iterator[str]:
    """Do with a model all that runs native code on it; iterate over wrong exceptions."""
    path = folder / "a.onnx"
    path.write_bytes(data)
    if thoroughly:
        yield from attempt("validate", lambda: passlib.validate(path))
    loaded: list[passlib.Model] = []
    yield from attempt("load", lambda: loaded.append(passlib.load(path)))
    for model in loaded:
        try:  # the reader makes graphs that are sound, so that nobody looks at them again
            model.symbol.graph.copy().check()
        except passlib.errors.PasslibError as error:
            yield f"load made an unsound graph: {error}"
        given = onnx.ModelProto.FromString(data).graph.input
        feeds = {value.name: _zeros(value.type.tensor_type) for value in given}
        yield from _use(model, {n: a for n, a in feeds.items() if n in model.inputs}, folder)


def _use(model: passlib.Model, feeds: dict[str, Any], folder: Path) -> Iterator[str]:
    shapes = {name: array.shape for name, array in feeds.items()}
    yield from attempt("infer", lambda: model.symbol.infer_shape_partial(**shapes))
    yield from attempt(
        "pass", lambda: model.optimize_for("removeDeadNodes").save(folder / "b.onnx")
    )
    yield from attempt("to_onnx", lambda: model.to_onnx(folder / "c.onnx", shapes))
    yield from attempt("run", lambda: model.run(feeds))


def _zeros(kind: Any) -> np.ndarray[Any, Any]:
    sizes = [dim.dim_value if 0 < dim.dim_value < 99 else 2 for dim in kind.shape.dim[:6]]
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    except (KeyError, ValueError, TypeError):
        dtype = np.dtype(np.float32)
    return np.zeros(sizes, dtype)


def prepare() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of one model, by its number."""
    passlib.library.load_standard()
    originals = _originals()

    def check_number(number: int, folder: Path) -> Iterator[str]:
        return check(mutated(originals, number), folder, thoroughly=number % 50 == 0)

    return check_number


if __name__ == "__main__":
    fuzz(__file__, prepare, sys.argv[1:])
