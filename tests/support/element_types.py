"""Small models that standard passes rewrite, on values of every element type.

As a program, compares ONNX Runtime's acceptance and results before and after each pass::

    python tests/support/element_types.py [--match TEXT]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

import passlib
from passlib.proof.counterexamples import same_bits
from rewriting import accepted, results

TYPES = {
    name: code
    for name, code in TensorProto.DataType.items()
    if name not in ("UNDEFINED", "COMPLEX64", "COMPLEX128")
}
OPSETS = (11, 13, 14, 18, 19, 20, 21, 23, 24, 25)

_CLOSE = {"FLOAT16": 2e-2, "BFLOAT16": 1e-1}


class Builder:
    """A graph as it grows. ``x`` has the element type ``code`` and shape (2, 4, 2, 2)."""

    def __init__(self, code: int, opset: int) -> None:
        self.code = code
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Add an operator; return the name of its first result."""
        name = f"v{len(self.nodes)}"
        names = [name, *(f"{name}_{number}" for number in range(1, outputs))]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Add an initializer."""
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def whole(self, *numbers: int) -> str:
        """Add an initializer of whole numbers."""
        return self.constant(np.array(numbers, np.int64))

    def cast(self, value: str, code: int) -> str:
        return self.add("Cast", value, to=code)

    def typed(self, array: Any) -> str:
        """Add a constant of the element type: numbers that are cast."""
        return self.cast(self.constant(np.asarray(array, np.float32)), self.code)

    def squeeze(self, value: str, *axes: int, op: str = "Squeeze") -> str:
        if self.opset < 13:
            return self.add(op, value, axes=list(axes))
        return self.add(op, value, self.whole(*axes))

    def unsqueeze(self, value: str, *axes: int) -> str:
        return self.squeeze(value, *axes, op="Unsqueeze")

    def reshape(self, value: str, *sizes: int) -> str:
        return self.add("Reshape", value, self.whole(*sizes))

    def slice(self, value: str, start: int, end: int, axis: int) -> str:
        bounds = (self.whole(start), self.whole(end), self.whole(axis))
        return self.add("Slice", value, *bounds)

    def turn(self, value: str, *perm: int) -> str:
        return self.add("Transpose", value, perm=list(perm or (0, 2, 3, 1)))


def _halves(b: Builder, x: str) -> Sequence[str]:
    return b.slice(x, 0, 2, 1), b.slice(x, 2, 4, 1)


def _blocks(b: Builder, x: str) -> str:
    parts = [
        b.add("Slice", x, b.whole(row, column), b.whole(9, 9), b.whole(2, 3), b.whole(2, 2))
        for column, row in product((0, 1), (0, 1))
    ]
    return b.add("Concat", *parts, axis=1)


def _loop(b: Builder, x: str) -> str:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Identity", [x], ["collected"]),
        ],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("collected", b.code, [2, 4, 2, 2])],
    )  # fmt: skip
    return b.add("Loop", b.constant(np.int64(1)), "", body=body)


def _branch(b: Builder, x: str) -> str:
    graphs = [
        helper.make_graph(
            [helper.make_node("Transpose", [x], [f"r{number}"], perm=[1, 0, 2, 3])],
            f"g{number}",
            [],
            [helper.make_tensor_value_info(f"r{number}", b.code, [4, 2, 2, 2])],
        )
        for number in range(2)
    ]
    known = b.constant(np.bool_(True))
    return b.add("If", known, then_branch=graphs[0], else_branch=graphs[1])


def _quantized(b: Builder, x: str) -> str:
    """Integers, or small reals, of real numbers, behind a Transpose."""
    numbers = b.turn(b.cast(x, TensorProto.FLOAT))
    scale, zero = b.constant(np.float32(0.5)), b.cast(b.constant(np.float32(0)), b.code)
    small = b.add("QuantizeLinear", numbers, scale, zero)
    return b.turn(b.add("DequantizeLinear", small, scale, zero), 0, 3, 1, 2)


def _scaled(b: Builder, op: str, x: str) -> str:
    """A layer between operators with constants."""
    rng = np.random.default_rng(3)
    factor = b.typed(rng.uniform(0.5, 2, (1, 4, 1, 1)))
    before = b.add("Mul", x, factor)
    layer = b.add(op, before, b.typed(rng.uniform(-1, 1, (4, 4, 1, 1))))
    mean = [b.typed(rng.uniform(0.5, 1, 4)) for _ in range(4)]
    return b.add("Mul", b.add("BatchNormalization", layer, *mean), factor)


PATTERNS: dict[str, Callable[[Builder, str], str | Sequence[str]]] = {
    "Identity": lambda b, x: b.add("Identity", x),
    "Cast": lambda b, x: b.cast(x, b.code),
    "constant": lambda b, x: b.typed([[1, 0], [1, 1]]),
    "constant, moved": lambda b, x: b.turn(b.reshape(b.typed([1, 0, 1, 1]), 2, 2), 1, 0),
    "constants, joined": lambda b, x: b.add("Concat", b.typed([1, 0]), b.typed([1]), axis=0),
    "constant and x": lambda b, x: b.add("Concat", b.typed(np.ones((2, 1, 2, 2))), x, axis=1),
    "equal constants": lambda b, x: [b.typed([1, 0]), b.typed([1, 0])],
    "equal values": lambda b, x: [b.turn(x), b.turn(x)],
    "Reshape, Reshape": lambda b, x: b.reshape(b.reshape(x, 8, 4), 16, 2),
    "Reshape to one axis more": lambda b, x: b.reshape(b.reshape(x, 32), 2, 4, 2, 2, 1),
    "Reshape to one axis less": lambda b, x: b.reshape(b.reshape(x, 2, 4, 2, 2, 1), 32),
    "Reshape and back": lambda b, x: b.reshape(b.reshape(x, 32), 2, 4, 2, 2),
    "Reshape and back, from the end": lambda b, x: b.reshape(b.reshape(x, -1, 4), 2, 4, 2, 2),
    "Flatten, Reshape": lambda b, x: b.reshape(b.add("Flatten", x), 2, 4, 4),
    "Squeeze, Unsqueeze": lambda b, x: b.squeeze(b.unsqueeze(b.unsqueeze(x, 0), 3), 0),
    "Unsqueeze, Transpose": lambda b, x: b.turn(b.unsqueeze(b.reshape(x, 32), 0), 1, 0),
    "Reshape, Transpose": lambda b, x: b.turn(b.reshape(x, 32, 1), 1, 0),
    "Reshape, Transpose, Transpose": lambda b, x: b.turn(b.turn(b.reshape(x, 32, 1), 1, 0), 1, 0),
    "Reshape, Transpose, Reshape": lambda b, x: b.reshape(
        b.turn(b.reshape(x, 2, 4, 4), 0, 2, 1), 2, 2, 2, 4
    ),
    "Transpose, Transpose": lambda b, x: b.turn(b.turn(x)),
    "Transpose and back": lambda b, x: b.turn(b.turn(x), 0, 3, 1, 2),
    "Transpose and back, another result": lambda b, x: [b.turn(b.turn(x), 0, 3, 1, 2), b.turn(x)],
    "Transpose through Cast": lambda b, x: b.turn(
        b.cast(b.turn(b.cast(x, TensorProto.FLOAT)), b.code), 0, 3, 1, 2
    ),
    "Transpose through Cast, two": lambda b, x: b.add(
        "Concat", *(b.cast(b.turn(b.cast(x, 1)), b.code) for _ in range(2)), axis=1
    ),
    "Transpose through Add": lambda b, x: b.turn(
        b.add("Add", b.turn(x), b.typed(np.ones(4))), 0, 3, 1, 2
    ),
    "Transposes into Concat": lambda b, x: b.add("Concat", b.turn(x), b.turn(x), axis=3),
    "Transpose through Relu": lambda b, x: b.turn(b.add("Relu", b.turn(x)), 0, 3, 1, 2),
    "Transpose through QuantizeLinear": _quantized,
    "Slice, Slice": lambda b, x: b.slice(b.slice(x, 1, 4, 1), 0, 1, 0),
    "Slices of all": _halves,
    "Slices of all, joined": lambda b, x: b.add("Concat", *_halves(b, x), axis=0),
    "Gather, Unsqueeze": lambda b, x: b.unsqueeze(
        b.add("Gather", x, b.constant(np.int64(1)), axis=1), 1
    ),
    "Concat, Concat": lambda b, x: b.add(
        "Concat", x, b.add("Concat", x, b.slice(x, 0, 1, 1), axis=1), axis=1
    ),
    "blocks": _blocks,
    "Loop of one round": _loop,
    "If with a known condition": _branch,
    "Expand": lambda b, x: b.add("Mul", b.add("Expand", x, b.whole(3, 2, 4, 2, 2)), x),
    "Pad by nothing": lambda b, x: b.add("Pad", x, b.whole(*[0] * 8)),
    "Tile once": lambda b, x: b.add("Tile", x, b.whole(1, 1, 1, 1)),
    "Mul, Mul": lambda b, x: b.add("Mul", b.add("Mul", x, b.typed([1])), b.typed([2])),
    "Add, Add": lambda b, x: b.add("Add", b.add("Add", x, b.typed([1])), b.typed([2])),
    "Add 0": lambda b, x: b.add("Add", x, b.typed([0])),
    "Mul 1": lambda b, x: b.add("Mul", x, b.typed([1])),
    "MatMul, Add": lambda b, x: b.add(
        "Add", b.add("MatMul", b.reshape(x, 8, 4), b.typed(np.eye(4))), b.typed(np.ones(4))
    ),
    "Mul, Conv, BatchNormalization, Mul": lambda b, x: _scaled(b, "Conv", x),
    "Mul, ConvTranspose, BatchNormalization, Mul": lambda b, x: _scaled(b, "ConvTranspose", x),
    "Cast of constants, Mul": lambda b, x: b.add(
        "Mul",
        b.cast(b.typed(np.arange(8).reshape(2, 4)), TensorProto.FLOAT),
        b.constant(np.array([[0.5], [2]], np.float32)),
    ),
    "Max of one": lambda b, x: b.add("Max", x),
    "Where": lambda b, x: b.add("Where", b.constant(np.bool_(False)), x, b.add("Identity", x)),
    **{
        f"{op} between Casts": lambda b, x, op=op, inputs=inputs, attributes=attributes: b.cast(  # type: ignore[misc]
            b.add(op, b.cast(x, TensorProto.DOUBLE), *map(b.constant, inputs), **attributes),
            b.code,
        )
        for op, inputs, attributes in (
            ("Identity", [], {}),
            ("Flatten", [], {}),
            ("Transpose", [], {"perm": [1, 0, 2, 3]}),
            ("Reshape", [np.array([8, 4])], {}),
            ("Slice", [np.array([0]), np.array([1])], {}),
            ("Gather", [np.array([1, 0])], {}),
            ("Expand", [np.array([2, 4, 2, 2])], {}),
            ("Tile", [np.array([2, 1, 1, 1])], {}),
            ("SpaceToDepth", [], {"blocksize": 2}),
            ("DepthToSpace", [], {"blocksize": 2}),
        )
    },
}


def model_of(pattern: str, type_name: str, opset: int, *, ends: bool = True) -> onnx.ModelProto:
    """Return the model of a pattern.

    Parameters
    ----------
    pattern, type_name : str
        Of `PATTERNS` and `TYPES`.
    opset : int
    ends : bool
        Whether casts of float are around the pattern; else inputs and outputs have the type.
    """
    code = TYPES[type_name]
    built = Builder(code, opset)
    outer = TensorProto.FLOAT if ends else code
    first = built.cast("x", code) if ends else "x"
    made = PATTERNS[pattern](built, first)
    names = [made] if isinstance(made, str) else list(made)
    if ends:
        names = [built.cast(name, TensorProto.FLOAT) for name in names]
    graph = helper.make_graph(
        built.nodes,
        "g",
        [helper.make_tensor_value_info("x", outer, [2, 4, 2, 2])],
        [helper.make_value_info(name, onnx.TypeProto()) for name in names],
        built.initializers,
    )
    imports = [helper.make_opsetid("", opset)]
    version = helper.find_min_ir_version_for(imports)
    model = helper.make_model(graph, opset_imports=imports, ir_version=version)
    found = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    del found.graph.value_info[:]
    return found


@cache
def _introduced(type_name: str) -> int:
    """Return the first operator set with a Cast to the type."""
    kind = f"tensor({type_name.lower()})"
    for opset in OPSETS:
        constraints = defs.get_schema("Cast", opset).type_constraints
        if any(kind in each.allowed_type_strs for each in constraints):
            return opset
    return 99


def cases(match: str = "") -> Iterator[tuple[str, str, int, bool]]:
    """Iterate over patterns, types, operator sets, and whether casts are around."""
    for pattern, type_name, opset, ends in product(PATTERNS, TYPES, OPSETS, (True, False)):
        if opset >= _introduced(type_name) and match in f"{pattern} {type_name} {opset} {ends}":
            yield pattern, type_name, opset, ends


def invalid(pattern: str, type_name: str, opset: int, ends: bool) -> bool:
    """Whether ONNX has no such model."""
    if (pattern, type_name) == ("Gather, Unsqueeze", "STRING"):
        return True  # ONNX Runtime loses all but the first string of an Unsqueeze in place
    try:
        model_of(pattern, type_name, opset, ends=ends)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return True
    return False


def _results(model: bytes, type_name: str) -> list[Any] | str:
    """Return what ONNX Runtime computes, or the beginning of its objection."""
    proto = onnx.ModelProto.FromString(model)
    kind = proto.graph.input[0].type.tensor_type.elem_type
    numbers = np.random.default_rng(1).integers(0, 3, (2, 4, 2, 2)).astype(np.float32)
    try:
        if kind == TensorProto.STRING:
            feed: Any = numbers.astype(str).astype(object)
        elif kind == TensorProto.FLOAT:
            feed = numbers
        else:
            feed = numbers.astype(helper.tensor_dtype_to_np_dtype(kind))
        if kind not in _OF_NUMPY or any(
            value.type.tensor_type.elem_type not in _OF_NUMPY for value in proto.graph.output
        ):
            accepted(model)  # whose values are not handed over to NumPy
            return []
        return results(model, {"x": feed})
    except Exception as error:  # ONNX Runtime's
        return str(error)[:200]


_OF_NUMPY = frozenset((*range(1, 14),)) - {TensorProto.UNDEFINED}


def difference(model: onnx.ModelProto, passes: str, type_name: str) -> str:
    """Return what a pass changes for users of ONNX Runtime; empty if nothing."""
    data = model.SerializeToString()
    before = _results(data, type_name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "after.onnx")
        try:
            passlib.load(data).optimize_for(passes).save(path)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        after = path.read_bytes()
    old = [value.type.tensor_type.elem_type for value in model.graph.output]
    made = onnx.ModelProto.FromString(after)
    new = [value.type.tensor_type.elem_type for value in made.graph.output]
    if old != new:
        return f"outputs had types {old}, and have {new}"
    if isinstance(before, str):
        return ""
    now = _results(after, type_name)
    operators = [node.op_type for node in made.graph.node]
    if isinstance(now, str):
        return f"{operators}: {now}"
    if same_bits(before, now):
        return ""
    close = _CLOSE.get(type_name, 1e-5)
    for a, b in zip(before, now, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{operators}: {a.dtype} {a.shape} before, {b.dtype} {b.shape} after"
        if a.dtype.kind in "OUSb" or not np.allclose(a, b, close, close, equal_nan=True):
            return f"{operators}: {a.ravel()[:4]} before, {b.ravel()[:4]} after"
    return ""


def main() -> int:
    """Check all cases; return whether any differs."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--match", default="")
    arguments.add_argument("--passes", default="simplify")
    options = arguments.parse_args()
    count, wrong, without = 0, 0, 0
    for pattern, type_name, opset, ends in cases(options.match):
        if invalid(pattern, type_name, opset, ends):
            without += 1
            continue
        count += 1
        model = model_of(pattern, type_name, opset, ends=ends)
        for passes in options.passes.split("/"):
            found = difference(model, passes, type_name)
            if found:
                wrong += 1
                print(
                    f"{pattern} | {type_name} | {opset} | {ends} | {passes} | {found}", flush=True
                )
    print(f"{count} models, {wrong} differ; {without} more are no models")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
