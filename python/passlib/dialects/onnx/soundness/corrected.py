"""Operators whose types ONNX's inference gets wrong, where ONNX Runtime computes others.

The sweep of tests/support/shape_sweep.py finds them, with onnx 1.23 and ONNX Runtime 1.32; the
cases that differ stand in tests/data/onnx/shapes.jsonl.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import INPUTS_ALSO
from passlib.dialects.onnx.nested import graphs_within, refill, value_info
from passlib.dialects.onnx.reading import EXTERNAL
from passlib.files.optional import require

QUESTIONABLE: Final = frozenset(
    ("Attention", "AveragePool", "CenterCropPad", "Concat", "ConvTranspose", "DFT", "Einsum",
     "LpPool", "MaxPool", "NonZero", "PRelu", "RMSNormalization", "ReduceL1", "ReduceL2",
     "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
     "ReduceSum", "ReduceSumSquare", "Reshape", "Resize", "STFT", "Slice", "Squeeze", "Unsqueeze",
     "Upsample")
)  # fmt: skip

_MOST_BYTES: Final = 8192
"""Larger constants are not shown to inference; none of the operators lists so much."""

Place = tuple[int, int]
"""Number of a graph, and of a node in it."""

Corrections = dict[Place, list[Any]]
"""Types of the outputs of nodes, as ``onnx.TypeProto``; None for unknown ones."""


def questionable(graphs: Sequence[Any]) -> list[Place]:
    """Find the nodes about whose results ONNX's inference may be wrong."""
    return [
        (number, place)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if node.op_type in QUESTIONABLE and not schema.plain(node.domain)
    ]


def questionable_calls(model: Any, graphs: Sequence[Any]) -> list[Place]:
    """Find the nodes that call functions of the model with such nodes in them.

    Inference does not state what it finds within a function.
    """
    wrong: set[tuple[str, str]] = set()
    before = -1
    while len(wrong) > before:
        before = len(wrong)
        for function in model.functions:
            inside = list(graphs_within(function))
            if questionable(inside) or _calling(inside, wrong):
                wrong.add((function.domain, function.name))
    return _calling(graphs, wrong)


def _calling(graphs: Sequence[Any], functions: set[tuple[str, str]]) -> list[Place]:
    return [
        (number, place)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if (node.domain, node.op_type) in functions
    ]


class Known:
    """The types and small constants of a model with inferred types."""

    def __init__(self, model: Any) -> None:
        self._types: list[dict[str, Any]] = []
        self._constants: list[dict[str, Any]] = []
        for graph in graphs_within(model.graph):
            values = (*graph.input, *graph.value_info, *graph.output)
            types = {value.name: value.type for value in values}
            constants = {tensor.name: tensor for tensor in graph.initializer}
            for name, tensor in constants.items():
                types[name] = value_info(name, tensor.data_type, tensor.dims).type
            constants |= {
                node.output[0]: node
                for node in graph.node
                if node.op_type == "Constant" and not schema.plain(node.domain) and node.output
            }
            self._types.append(types)
            self._constants.append(
                {name: each for name, each in constants.items() if each.ByteSize() <= _MOST_BYTES}
            )

    def type(self, name: str, number: int) -> Any:
        """Return the type of a value in a graph, or in the main graph around it; or None."""
        return self._types[number].get(name) or self._types[0].get(name)

    def names(self, node: Any, number: int) -> set[str]:
        """Return the names of dimensions of a node's inputs."""
        kinds = (self.type(name, number) for name in node.input)
        dims = (dim for kind in kinds if kind for dim in kind.tensor_type.shape.dim)
        return {dim.dim_param for dim in dims if dim.dim_param}

    def alone(self, node: Any, number: int, model: Any) -> Any:
        """Return a model of one node of a graph, on inputs of these types.

        ``model``: the one with the node.
        """
        made = require("onnx", extra="onnx").ModelProto(ir_version=model.ir_version)
        made.opset_import.extend(model.opset_import)
        made.graph.name = "alone"
        for name in dict.fromkeys(filter(None, node.input)):
            own = self._constants[number].get(name)
            if own is None and name not in self._types[number]:
                own = self._constants[0].get(name)
            kind = self.type(name, number)
            if own is None or getattr(own, "data_location", None) == EXTERNAL:
                value = made.graph.input.add(name=name)
                if kind is not None:
                    value.type.CopyFrom(kind)
            elif hasattr(own, "dims"):
                made.graph.initializer.append(own)
                if made.ir_version < INPUTS_ALSO:
                    made.graph.input.add(name=name).type.CopyFrom(kind)
            else:
                made.graph.node.append(own)
        made.graph.node.append(node)
        for name in filter(None, node.output):
            made.graph.output.add(name=name)
        return made


def differs(kind: Any, right: Any, names: Collection[str]) -> bool:
    """Whether a type that ONNX's inference found states what is wrong, or what is not certain.

    Names of dimensions state nothing but those of ``names``. ``right``: None if it is not known.
    """
    if kind.WhichOneof("value") != "tensor_type":
        return False
    found = kind.tensor_type
    if right is None:
        return bool(found.HasField("shape"))
    true = right.tensor_type
    if found.elem_type and found.elem_type != true.elem_type:
        return True
    if not found.HasField("shape"):
        return False
    if not true.HasField("shape") or len(true.shape.dim) != len(found.shape.dim):
        return True
    return any(
        (old.HasField("dim_value") and not new.dim_param and old.dim_value != new.dim_value)
        or (old.dim_param in names and old.dim_param != new.dim_param)
        for old, new in zip(found.shape.dim, true.shape.dim, strict=True)
    )


def put(graphs: Sequence[Any], found: Corrections) -> None:
    """State types in graphs, and those of no values that depend on them.

    ``graphs``: those of a model. ``found``: see `corrections`.
    """
    types: list[dict[str, Any]] = [{} for _ in graphs]
    for (number, place), kinds in found.items():
        types[number].update(zip(graphs[number].node[place].output, kinds, strict=True))
    doubtful = set().union(*types)
    for graph, stated in zip(graphs, types, strict=True):
        for node in graph.node:
            nested = any(each.HasField("g") or each.graphs for each in node.attribute)
            if nested or not doubtful.isdisjoint(node.input):
                doubtful.update(node.output)
        foreign = {n for node in graph.node if schema.plain(node.domain) for n in node.output}
        gone = (doubtful - foreign) | stated.keys()
        refill(graph.value_info, [each for each in graph.value_info if each.name not in gone])
        for value in graph.output:
            if value.name in gone:
                value.type.tensor_type.ClearField("shape")
            kind = stated.pop(value.name, None)
            if kind is not None:
                value.type.CopyFrom(kind)
        for name, kind in stated.items():
            if kind is not None and name:
                graph.value_info.add(name=name).type.CopyFrom(kind)
