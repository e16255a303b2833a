"""Values whose types ONNX's inference gets wrong, with the types that ONNX Runtime computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import copy_of, graphs_within, value_info
from passlib.dialects.onnx.reading import EXTERNAL
from passlib.dialects.onnx.soundness.corrected.own_shapes import TYPED_BY, Dims, Operation, rules
from passlib.files.optional import require

Place = tuple[int, int]
"""Number of a graph, and of a node in it."""

Corrections = dict[Place, list[Any]]
"""Types of the outputs of nodes, as ``onnx.TypeProto``; None for unknown ones."""

_MOST_ELEMENTS: Final = 1024
"""Of constants that rules look at."""

_UNEXPECTED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Raised by rules for attributes and inputs that the operator does not allow."""

_CHECKED: Final = frozenset((*rules, *TYPED_BY))


def questionable(graphs: Sequence[Any]) -> list[Place]:
    """Find the nodes about whose results ONNX's inference may be wrong.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto or onnx.FunctionProto
    """
    return [
        (number, place)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if node.op_type in _CHECKED and not schema.plain(node.domain)
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


def corrections(
    graphs: Sequence[Any], places: Sequence[Place], version: int, before: Corrections
) -> Corrections:
    """Return the types of nodes for which inference found others than ONNX Runtime computes.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        Those of a model with inferred types, in the order of `graphs_within`.
    places : sequence of (int, int)
        See `questionable`.
    version : int
        Of ONNX's own operator set.
    before : dict of (int, int) to list of onnx.TypeProto
        Corrections of a former round, which are stated in the graphs; those that still hold are
        left out.
    """
    found: Corrections = {}
    known = _Known(graphs)
    for number, place in places:
        node = graphs[number].node[place]
        inferred = [known.type(name, number) for name in node.output]
        right = _right(node, number, known, version)
        made = [
            kind if kind is None or output not in right else _corrected(kind, *right[output])
            for output, kind in enumerate(inferred)
        ]
        if (number, place) in before:
            if made != before[number, place]:
                found[number, place] = made
        elif right and any(
            kind is not None and _differs(kind, *right[output], known.names(node, number))
            for output, kind in enumerate(inferred)
            if output in right and made[output] != kind
        ):
            found[number, place] = made
    return found


class _Known:
    """Types and constants of graphs with inferred types."""

    def __init__(self, graphs: Sequence[Any]) -> None:
        self._types: list[dict[str, Any]] = []
        self._arrays: list[dict[str, Any]] = []
        for graph in graphs:
            types = {
                value.name: value.type
                for value in (*graph.input, *graph.value_info, *graph.output)
                if value.type.WhichOneof("value") == "tensor_type"
            }
            arrays = {tensor.name: tensor for tensor in graph.initializer}
            for name, tensor in arrays.items():
                types[name] = value_info(name, tensor.data_type, tensor.dims).type
            arrays |= {
                node.output[0]: node.attribute[0]
                for node in graph.node
                if node.op_type == "Constant" and len(node.attribute) == 1 and node.output
            }
            self._types.append(types)
            self._arrays.append(arrays)

    def type(self, name: str, number: int) -> Any:
        """Return the type of a tensor in a graph, or in the main graph around it; or None."""
        return self._types[number].get(name) or self._types[0].get(name)

    def names(self, node: Any, number: int) -> set[str]:
        """Return the names of dimensions of a node's inputs."""
        shapes = (_dims(self.type(name, number)) for name in node.input)
        return {size for shape in shapes for size in shape or () if isinstance(size, str)}

    def array(self, name: str, number: int) -> np.ndarray[Any, Any] | None:
        """Return the elements of a small constant; None for others."""
        if name not in self._arrays[number] and name not in self._types[number]:
            number = 0
        found = self._arrays[number].get(name)
        if found is None or isinstance(found, np.ndarray):
            return found
        value = found if hasattr(found, "data_location") else _value(found)
        array = _elements(value) if hasattr(value, "data_location") else np.asarray(value)
        self._arrays[number][name] = array
        return array


def _elements(tensor: Any) -> np.ndarray[Any, Any] | None:
    if tensor.data_location == EXTERNAL or np.prod(tensor.dims, dtype=float) > _MOST_ELEMENTS:
        return None
    helper: Any = require("onnx.numpy_helper", extra="onnx")
    try:
        found: np.ndarray[Any, Any] = helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):  # too few elements, or of no type
        return None
    return found


def _value(attribute: Any) -> Any:
    helper: Any = require("onnx.helper", extra="onnx")
    return helper.get_attribute_value(attribute)


def _dims(kind: Any) -> Dims | None:
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    return tuple(
        int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None
        for dim in kind.tensor_type.shape.dim
    )


def _right(
    node: Any, number: int, known: _Known, version: int
) -> Mapping[int, tuple[int, Dims | None]]:
    """Return element types and shapes by output, for outputs that inference may be wrong about."""
    inputs = [known.type(name, number) for name in node.input]
    source = TYPED_BY.get(node.op_type)
    if source is not None:
        typed = inputs[source] if source < len(inputs) else None
        return {} if typed is None else {0: (typed.tensor_type.elem_type, _dims(inputs[0]))}
    operation = Operation(
        version,
        {each.name: _value(each) for each in node.attribute},
        [bool(name) for name in node.input],
        [_dims(kind) for kind in inputs],
        [known.array(name, number) for name in node.input],
        len(node.output),
    )
    try:
        found = rules[node.op_type](operation)
    except _UNEXPECTED:
        found = dict.fromkeys(range(operation.outputs))
    return {
        output: (0, None if dims is None else tuple(map(_representable, dims)))
        for output, dims in found.items()
    }


def _representable(size: Any) -> Any:
    """Leave a dimension open that no file can state."""
    return None if isinstance(size, int) and size >= 1 << 63 else size


def _differs(kind: Any, code: int, dims: Dims | None, names: set[str]) -> bool:
    """Whether an inferred type states what is wrong, or what is not certain.

    Names that inference made up state nothing.
    """
    found = _dims(kind)
    if code not in (0, kind.tensor_type.elem_type):
        return True
    if found is None:
        return False
    if dims is None or len(dims) != len(found):
        return True
    return any(
        size != right and (size in names or (isinstance(size, int) and not isinstance(right, str)))
        for size, right in zip(found, dims, strict=True)
    )


def _corrected(kind: Any, code: int, dims: Dims | None) -> Any:
    made = copy_of(kind)
    made.tensor_type.elem_type = code or kind.tensor_type.elem_type
    made.tensor_type.ClearField("shape")
    if dims is not None:
        made.tensor_type.shape.SetInParent()
    for size in dims or ():
        dim = made.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size
    return made


def put(graphs: Sequence[Any], found: Corrections) -> None:
    """State types in graphs, and those of no values that depend on them.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        Those of a model.
    found : dict of (int, int) to list of onnx.TypeProto
        See `corrections`.
    """
    types: list[dict[str, Any]] = [{} for _ in graphs]
    for (number, place), kinds in found.items():
        types[number].update(zip(graphs[number].node[place].output, kinds, strict=True))
    doubtful = set().union(*types)
    for graph, stated in zip(graphs, types, strict=True):
        for node in graph.node:
            if _has_graphs(node) or not doubtful.isdisjoint(node.input):
                doubtful.update(node.output)
        foreign = {n for node in graph.node if schema.plain(node.domain) for n in node.output}
        gone = (doubtful - foreign) | stated.keys()
        kept = [copy_of(value) for value in graph.value_info if value.name not in gone]
        del graph.value_info[:]
        graph.value_info.extend(kept)
        for value in graph.output:
            if value.name in gone:
                value.type.tensor_type.ClearField("shape")
            kind = stated.pop(value.name, None)
            if kind is not None:
                value.type.CopyFrom(kind)
        for name, kind in stated.items():
            if kind is not None and name:
                graph.value_info.add(name=name).type.CopyFrom(kind)


def _has_graphs(node: Any) -> bool:
    return any(each.HasField("g") or each.graphs for each in node.attribute)
