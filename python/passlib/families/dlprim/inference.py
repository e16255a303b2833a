"""Shapes and element types of every node of a DLPrimitives graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from passlib.arrays import dtypes
from passlib.errors import GraphError
from passlib.families.dlprim import network as notes
from passlib.families.dlprim import options
from passlib.families.dlprim import shapes as rules
from passlib.families.dlprim.network import FLOAT, Spec, numpy_type
from passlib.families.dlprim.schema import OPERATORS
from passlib.families.dlprim.shapes import Inferred
from passlib.graph.attributes import parse_int, parse_optional_ints
from passlib.graph.node import Node
from passlib.lowering import Graph, Shape, TypeSpec, blame
from passlib.lowering.types import Misfit, partial_shape

_UNKNOWN = TypeSpec(None, None)


def infer(
    graph: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype] | None = None,
    *,
    default_dtype: np.dtype | None = None,
    train: bool = False,
) -> dict[Node, tuple[TypeSpec, ...]]:
    """Infer shapes and element types of every node; see `Dialect.infer`.

    Inputs that are not given have the shapes stated in the file; shapes of parameters follow from
    the operators. Every type is known, and training changes none.
    """
    found: dict[Node, TypeSpec] = {}
    for node in graph.nodes():
        if node.is_variable:
            found[node] = _variable(node, shapes, types or {})
            continue
        inputs = [found[entry.node] for entry in node.inputs]
        inferred = _operator(node, inputs)
        found[node] = _UNKNOWN if inferred is None else _type_spec(inferred.output)
        if inferred is not None:
            _parameters(node, inferred, found)
    return {node: (spec,) for node, spec in found.items()}


def input_spec(attributes: Mapping[str, str]) -> TypeSpec:
    """Return the type stated in the attributes of an input, unknown where they are invalid."""
    try:
        sizes = parse_optional_ints(attributes.get(notes.SHAPE, "()"))
        dtype = dtypes.NAMES.get(parse_int(attributes.get(notes.DTYPE, "-1")))
    except ValueError:
        return _UNKNOWN
    return TypeSpec(None if dtype is None else numpy_type(dtype), partial_shape(sizes) or None)


def _variable(
    node: Node, shapes: Mapping[str, Sequence[int] | Shape], types: Mapping[str, np.dtype]
) -> TypeSpec:
    own = input_spec(node.attrs)
    given = shapes.get(node.name)
    dtype = types.get(node.name, own.dtype)
    return TypeSpec(
        None if dtype is None else np.dtype(dtype),
        own.shape if given is None else partial_shape(given),
    )


def _operator(node: Node, inputs: Sequence[TypeSpec]) -> Inferred | None:
    """Infer the types of an operator; None if too little is known."""
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
        return rules.infer(node.op, tuple(own), tuple(specs))
    except (Misfit, options.OptionError) as error:
        raise GraphError(f"{blame(node)}: {error}") from error


def _parameters(node: Node, inferred: Inferred, found: dict[Node, TypeSpec]) -> None:
    parameters = node.inputs[OPERATORS[node.op].inputs :]
    for entry, spec in zip(parameters, inferred.parameters, strict=False):
        known, wanted = found[entry.node], _type_spec(spec)
        if known.shape not in (None, wanted.shape):
            raise GraphError(
                f"{blame(node)}: parameter {entry.node.name!r} must have shape {wanted.shape}, "
                f"but has {known.shape}"
            )
        if entry.node.is_variable:
            found[entry.node] = TypeSpec(known.dtype or wanted.dtype, wanted.shape)


def _type_spec(spec: Spec) -> TypeSpec:
    return TypeSpec(numpy_type(spec.dtype), spec.shape)
