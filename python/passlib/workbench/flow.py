"""How the inputs of a model reach its operators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.attributes import ABSENT
from passlib.graph.node import Entry, Node
from passlib.model import Model

Value = tuple[Node, int]

_SHAPES: Final = frozenset({"SequenceLength", "Shape", "Size", "shape_array", "size_array"})
"""Operators whose result does not depend on the elements of their input."""

_INDEXING: Final = {
    # Positions of the indices and of the table.
    "Gather": (1, 0),
    "GatherElements": (1, 0),
    "GatherND": (1, 0),
    "Embedding": (0, 1),
    "take": (1, 0),
}

_FREE: Final = """
    Abs Add And ArgMax ArgMin BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Clip Concat
    ConvInteger DepthToSpace DequantizeLinear Equal Flatten Gemm Greater GreaterOrEqual Identity
    Less LessOrEqual MatMul MatMulInteger Max MaxPool Mean Min Mul Neg NonZero Not Or QLinearConv
    QLinearMatMul ReduceL1 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
    Sign SpaceToDepth Sub Sum Transpose Unique Where Xor
    _copy abs cast elemwise_add elemwise_mul elemwise_sub negative relu transpose where
"""
"""Operators that take every integer."""

_DATA_FIRST: Final = """
    Compress CumSum Expand Gather GatherElements GatherND Pad Reshape ReverseSequence Slice Split
    Squeeze Tile TopK Trilu Unsqueeze
    expand_dims reshape slice_axis take
"""
"""Operators whose first input may have every integer, but not the others."""


_MOST_DEEP: Final = 1 << 20

_NEVER_NEGATIVE: Final = """
    Abs ArgMax ArgMin Exp HardSigmoid LpPool NonZero ReduceL1 ReduceL2 ReduceSumSquare Relu
    Shape Sigmoid Size Softmax Softplus Sqrt
    abs exp relu sigmoid softmax sqrt square
"""
_PASSING: Final = """
    AveragePool Cast Flatten GlobalAveragePool GlobalMaxPool Identity MaxPool Reshape Slice Squeeze
    Transpose Unsqueeze
    Pooling
"""


@dataclass
class Flow:
    """What the inputs of a model reach.

    Attributes
    ----------
    values : dict of value to set of str
        The inputs on whose elements each value depends.
    anything : dict of value to set of str
        The same, on elements or shapes.
    bounded : set of str
        Inputs that some operator uses as a size, an index, a count or a divisor.
    tables : dict of str to list of (Entry, int)
        The tables that an input selects rows of, with the axis.
    depths : dict of str to list of Entry
        The depths of OneHot whose elements an input selects.
    """

    values: dict[Value, frozenset[str]] = field(default_factory=dict)
    anything: dict[Value, frozenset[str]] = field(default_factory=dict)
    bounded: set[str] = field(default_factory=set)
    tables: dict[str, list[tuple[Entry, int]]] = field(default_factory=dict)
    depths: dict[str, list[Entry]] = field(default_factory=dict)

    def depends(self, entry: Entry) -> bool:
        """Whether a value depends on the elements of an input."""
        return bool(self.values.get((entry.node, entry.index)))


def flow_of(model: Model, varying: Collection[str] | None = None) -> Flow:
    """Follow the inputs through the main graph, in linear time.

    ``varying``: the inputs that are followed, by default all.
    """
    flow = Flow()
    inputs = set(model.inputs if varying is None else varying)
    nothing: frozenset[str] = frozenset()
    for node in model.symbol.nodes():
        if node.is_variable:
            own = frozenset({node.name}) & inputs
            flow.values[node, 0] = flow.anything[node, 0] = own
            continue
        names = [flow.values.get((e.node, e.index), nothing) for e in node.inputs]
        passed = nothing.union(*names)
        reached = nothing.union(
            *(flow.anything.get((e.node, e.index), nothing) for e in node.inputs)
        )
        indexing = _INDEXING.get(node.op)
        if indexing and len(names) > max(indexing):
            place, table = indexing
            for name in names[place]:
                flow.tables.setdefault(name, []).append((node.inputs[table], axis_of(node)))
            flow.bounded |= names[place]
            if place:
                passed = names[table] | names[place]
        elif node.op == "OneHot" and len(names) > 1:
            for name in names[0]:
                flow.depths.setdefault(name, []).append(node.inputs[1])
            flow.bounded |= passed
        elif node.op in _DATA_FIRST.split():
            flow.bounded |= nothing.union(*names[1:])
        elif node.op in ("Div", "Mod") and _divides(model, node):
            pass
        elif node.op not in _FREE.split() or node.subgraphs:
            flow.bounded |= passed
        if node.op in _SHAPES:
            passed = nothing
        for index in range(max(node.num_outputs, 1)):
            flow.values[node, index] = passed
            flow.anything[node, index] = reached
    return flow


def _divides(model: Model, node: Node) -> bool:
    """Whether the divisor is a constant by which every integer can be divided."""
    divisor = constant_of(model, node.inputs[1]) if len(node.inputs) == 2 else None
    return divisor is not None and not bool(np.any((divisor == 0) | (divisor == -1)))


def axis_of(node: Node, default: int = 0) -> int:
    """Return the axis of a node, which selects rows of it, for example."""
    return number_of(node, "axis", default)


def number_of(node: Node, key: str, default: int) -> int:
    """Return an attribute that is a whole number; the default if it is none."""
    text = node.attrs.get(key, "")
    return int(text) if text.lstrip("-").isdecimal() else default


def rows_of(shape: tuple[int, ...], axis: int) -> int:
    """Return the number of rows along an axis; 0 if there is no such axis."""
    return int(shape[axis]) if -len(shape) <= axis < len(shape) else 0


def constant_of(model: Model, entry: Entry) -> np.ndarray[Any, Any] | None:
    """Return the elements of a weight, or None."""
    if not entry.node.is_variable:
        return None
    weights: Mapping[str, Any]
    for weights in (model.args, model.aux):
        if entry.node.name in weights:
            return np.asarray(weights[entry.node.name])
    return None


def depth_of(model: Model, entry: Entry) -> int:
    """Return a constant depth of OneHot; 0 if it is not known, or too large to look at."""
    array = constant_of(model, entry)
    depth = int(array.ravel()[0]) if array is not None and array.size == 1 else 0
    return depth if 0 < depth <= _MOST_DEEP else 0


def given(node: Node, place: int) -> Entry | None:
    """Return an optional input, or None if it is absent."""
    entry = node.inputs[place] if len(node.inputs) > place else None
    return None if entry is None or entry.node.name == ABSENT else entry


def never_negative(entry: Entry) -> bool:
    """Whether operators near a value show that it is at least 0."""
    node = entry.node
    while node.op in _PASSING.split() and node.inputs:
        entry = node.inputs[0]
        node = entry.node
    if node.op in ("Activation", "LeakyReLU"):
        return node.attrs.get("act_type") in ("relu", "sigmoid")
    if node.op == "Mul" and len(node.inputs) == 2:
        return node.inputs[0] == node.inputs[1]
    return (node.op == "TopK" and entry.index == 1) or node.op in _NEVER_NEGATIVE.split()


def scalars_of(model: Model) -> list[float]:
    """Return the distinct elements of small constants that nodes read, at most 32."""
    found: dict[float, None] = {}
    for node in model.symbol.nodes():
        for entry in node.inputs:
            array = constant_of(model, entry)
            if array is not None and array.size <= 4 and array.dtype.kind in "fiu":
                found.update(dict.fromkeys(map(float, array.ravel())))
    return [value for value in found if np.isfinite(value)][:32]
