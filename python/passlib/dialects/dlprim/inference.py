"""Shapes and element types of every node of a graph of DLPrimitives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from passlib.dialects.dlprim import notes, options
from passlib.dialects.dlprim.schema import OPERATORS
from passlib.dialects.dlprim.shape_rules import Misfit
from passlib.dialects.dlprim.shapes import Inferred, infer_cached
from passlib.dialects.dlprim.types import FLOAT, Spec, from_code, numpy_type
from passlib.errors import GraphError
from passlib.graph.attribute_text import parse_int, parse_optional_ints
from passlib.graph.node import Node
from passlib.lowering import Graph, Shape, TypeSpec, blame

__all__ = ["infer_types", "input_spec"]

_UNKNOWN = TypeSpec(None, None)


def infer_types(
    symbol: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype] | None = None,
    *,
    default_dtype: np.dtype | None = None,
    train: bool = False,
) -> dict[Node, tuple[TypeSpec, ...]]:
    """Infer shapes and element types of every node.

    Inputs have the shapes that the file says where none is given; those of parameters follow
    from the operators. Parameters and errors are those of `passlib.dialects.inference.infer`.
    """
    del default_dtype, train  # everything has a type, and the mode changes none
    found: dict[Node, TypeSpec] = {}
    for node in symbol.nodes():
        if node.is_variable:
            found[node] = _variable(node, shapes, types or {})
            continue
        inputs = [found[entry.node] for entry in node.inputs]
        inferred = _operator(node, inputs)
        found[node] = _UNKNOWN if inferred is None else _type_spec(inferred.output)
        if inferred is not None:
            _parameters(node, inferred, found)
    return {node: (spec,) for node, spec in found.items()}


def input_spec(node_attributes: Mapping[str, str]) -> TypeSpec:
    """Give the type that the file says of an input, as far as it can be read."""
    try:
        sizes = parse_optional_ints(node_attributes.get(notes.SHAPE, "()"))
        dtype = from_code(parse_int(node_attributes.get(notes.DTYPE, "-1")))
    except ValueError:
        return _UNKNOWN
    shape = tuple(size if size is not None and size > 0 else None for size in sizes)
    return TypeSpec(None if dtype is None else numpy_type(dtype), shape or None)


def _variable(
    node: Node,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype],
) -> TypeSpec:
    own = input_spec(node.attrs)
    given = shapes.get(node.name)
    shape = own.shape
    if given is not None:
        shape = tuple(None if size is None or size <= 0 else int(size) for size in given)
    dtype = types.get(node.name, own.dtype)
    return TypeSpec(None if dtype is None else np.dtype(dtype), shape)


def _operator(node: Node, inputs: Sequence[TypeSpec]) -> Inferred | None:
    """Infer an operator; None where too little is known."""
    if node.op not in OPERATORS:
        return None
    count = OPERATORS[node.op].inputs
    specs = []
    for dtype, shape in inputs[:count]:
        if shape is None or None in shape:
            return None
        sizes = tuple(size for size in shape if size is not None)
        specs.append(Spec(FLOAT if dtype is None else dtype.name, sizes))
    try:
        own = ((k, v) for k, v in node.attrs.items() if not options.is_hidden(k))
        return infer_cached(node.op, tuple(own), tuple(specs))
    except (Misfit, options.OptionError) as error:
        raise GraphError(f"{blame(node)}: {error}") from error


def _parameters(node: Node, inferred: Inferred, found: dict[Node, TypeSpec]) -> None:
    parameters = node.inputs[OPERATORS[node.op].inputs :]
    for entry, spec in zip(parameters, inferred.parameters, strict=False):
        known, wanted = found[entry.node], _type_spec(spec)
        if known.shape not in (None, wanted.shape):
            raise GraphError(
                f"{blame(node)}: parameter {entry.node.name!r} has shape {known.shape}, and must "
                f"have {wanted.shape}"
            )
        if entry.node.is_variable:
            found[entry.node] = TypeSpec(known.dtype or wanted.dtype, wanted.shape)


def _type_spec(spec: Spec) -> TypeSpec:
    return TypeSpec(numpy_type(spec.dtype), spec.shape)
