"""Shapes and element types of every node of a symbol, and how MXNet writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passlib import dtypes
from passlib.dialects.attribute_text import parse_int, parse_optional_ints
from passlib.dialects.lowering import Graph, Shape, TypeSpec
from passlib.dialects.mxnet import schema
from passlib.dialects.mxnet.hidden_types import with_hidden
from passlib.dialects.mxnet.lowering import load_table
from passlib.dialects.mxnet.parameter_shapes import complete
from passlib.dialects.type_inference import infer_graph
from passlib.errors import FormatError, UnsupportedError
from passlib.node import Node

__all__ = ["Inferred", "ext_dtype", "ext_shape", "infer"]

_UNKNOWN = TypeSpec(None, None)


@dataclass(frozen=True)
class Inferred:
    """What is known of a symbol's values.

    Attributes
    ----------
    outputs : mapping of Node to tuple of TypeSpec
        For every node, variables too, each of its outputs, the hidden ones included.
    """

    outputs: Mapping[Node, tuple[TypeSpec, ...]]

    def by_name(self) -> dict[str, tuple[TypeSpec, ...]]:
        """Give the outputs by name of the node; of several nodes of one name the last."""
        return {node.name: specs for node, specs in self.outputs.items()}


def infer(
    symbol: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype] | None = None,
    *,
    default_dtype: np.dtype | None = None,
    train: bool = False,
) -> Inferred:
    """Infer shapes and element types of every node.

    An operator that has no lowering has outputs of unknown shape and stops nothing.

    Parameters
    ----------
    symbol : Graph
    shapes : mapping of str to shape
        Of any variables; a size of 0, -1 or ``None`` is unknown. Where a variable is not among
        them, its attribute ``__shape__`` counts.
    types : mapping of str to numpy.dtype, optional
        Of any variables. Where a variable is not among them, its attribute ``__dtype__`` counts,
        unless ``default_dtype`` is given.
    default_dtype : numpy.dtype, optional
        Element type of the variables whose type neither is given nor follows from others.
    train : bool
        Infer for training.

    Returns
    -------
    Inferred

    Raises
    ------
    GraphError
        Shapes or types contradict each other; the message names the node.
    """
    given = types or {}
    nodes = symbol.nodes()
    variables = {node.name: node for node in nodes if node.is_variable}
    known = {
        name: TypeSpec(
            _dtype(node, given, ignore_attribute=default_dtype is not None), _shape(node, shapes)
        )
        for name, node in variables.items()
    }
    found = infer_graph(symbol, load_table(), known, complete, default=default_dtype, train=train)
    outputs: dict[Node, tuple[TypeSpec, ...]] = {}
    for node in nodes:
        values = (found.value_of.get((node, index)) for index in range(_count(node)))
        specs = [_UNKNOWN if v is None else TypeSpec(v.dtype, v.shape) for v in values]
        inputs = [outputs[entry.node][entry.index] for entry in node.inputs]
        outputs[node] = with_hidden(node, inputs, specs)
    return Inferred(outputs)


def ext_shape(specs: Sequence[TypeSpec]) -> str:
    """Write shapes as MXNet does in ``__ext_shape__``: ``[[2,4],[4],[4]]``.

    An output of unknown rank is ``None``, an unknown size -1.
    """
    return "[" + ",".join(_shape_text(spec.shape) for spec in specs) + "]"


def ext_dtype(specs: Sequence[TypeSpec]) -> str:
    """Write element types as MXNet does in ``__ext_dtype__``: ``[0,0,0]``; unknown is -1.

    Raises
    ------
    UnsupportedError
        MXNet has no such type.
    """
    codes = (-1 if spec.dtype is None else dtypes.code(spec.dtype) for spec in specs)
    return "[" + ",".join(map(str, codes)) + "]"


def _shape_text(shape: Shape | None) -> str:
    if shape is None:
        return "None"
    return "[" + ",".join("-1" if size is None else str(size) for size in shape) + "]"


def _shape(node: Node, shapes: Mapping[str, Sequence[int] | Shape]) -> Shape | None:
    given: Sequence[int | None] | None = shapes.get(node.name)
    if given is None:
        text = node.attrs.get("__shape__")
        if text is None or text == "None":
            return None
        try:
            given = parse_optional_ints(text)
        except ValueError as error:
            raise FormatError(f"variable {node.name!r}: attribute __shape__: {error}") from None
        if not given:
            return None
    return tuple(None if size is None or size <= 0 else int(size) for size in given)


def _dtype(node: Node, given: Mapping[str, np.dtype], *, ignore_attribute: bool) -> np.dtype | None:
    if node.name in given:
        return np.dtype(given[node.name])
    text = node.attrs.get("__dtype__")
    if text is None or ignore_attribute:
        return None
    try:
        code = parse_int(text)
        return None if code < 0 else dtypes.from_code(code)
    except (ValueError, UnsupportedError) as error:
        raise FormatError(f"variable {node.name!r}: attribute __dtype__: {error}") from None


def _count(node: Node) -> int:
    """All outputs of a node, hidden ones included."""
    if node.is_variable:
        return 1
    operator = schema.find(node.op)
    if operator is None:
        return max(node.num_outputs, 1)
    return operator.num_outputs(node.attrs)
