"""``infer_shape`` and ``infer_type`` as MXNet's symbols have them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from passlib.arrays.given import as_shapes, as_types
from passlib.dialects.inference import infer
from passlib.dialects.operator_types import refusals
from passlib.errors import listed
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import TypeSpec, type_of
from passlib.mxnet.inference.infer import infer as infer_mxnet
from passlib.mxnet.inference.type_checks import ElementTypeError
from passlib.mxnet.numpy_mode import is_numpy
from passlib.mxnet.schema.library_operator import library_rules

Lists = tuple[list[Any], list[Any], list[Any]]
Outputs = Mapping[Node, tuple[TypeSpec, ...]]

_OTHERS: Final = (np.int32, np.bool_, np.float64, np.int64, np.int8, np.uint8)


def infer_shape(
    symbol: PlainGraph, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
) -> Any:
    """Infer shapes: see `Symbol.infer_shape` and `Symbol.infer_shape_partial`.

    Returns
    -------
    tuple of three lists
        For arguments, outputs and auxiliary states; three times None where something stays
        unknown and ``partial`` is not set.
    """
    shapes = as_shapes("infer_shape", _named(symbol, args, kwargs))
    numpy = is_numpy(symbol)
    if symbol.dialect == "mxnet" and not numpy:  # () is unknown there
        shapes = {name: shape for name, shape in shapes.items() if shape}
    known = _of_any_types(symbol, shapes, partial=partial)

    def describe(spec: TypeSpec) -> tuple[int, ...] | None:
        if spec.shape is None:
            return None if numpy else ()
        unknown = -1 if numpy else 0
        return tuple(unknown if size is None else size for size in spec.shape)

    def complete(spec: TypeSpec) -> bool:
        return spec.shape is not None and None not in spec.shape

    return _collect(symbol, known, describe, complete, "shape", partial=partial)


def _of_any_types(symbol: PlainGraph, shapes: Mapping[str, Any], *, partial: bool) -> Outputs:
    """Infer from shapes alone: variables have the first type that all operators take.

    MXNet infers shapes whatever the types are, and lowering wants types.
    """

    def attempt(dtype: Any) -> Outputs:
        default = np.dtype(dtype)
        if symbol.dialect == "mxnet":
            return infer_mxnet(symbol, shapes, default_dtype=default, partial=partial)
        return infer(symbol, shapes, {}, default_dtype=default).outputs

    try:
        return attempt(np.float32)
    except ElementTypeError as error:
        refused = error
    for dtype in _OTHERS:
        with contextlib.suppress(ElementTypeError):
            return attempt(dtype)
    raise refused


def infer_type(
    symbol: PlainGraph, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
) -> Any:
    """Infer element types: see `Symbol.infer_type`; results as of `infer_shape`."""
    types = as_types("infer_type", _named(symbol, args, kwargs))
    known = infer(symbol, {}, types)

    def describe(spec: TypeSpec) -> type[np.generic] | None:
        return None if spec.dtype is None else spec.dtype.type

    def complete(spec: TypeSpec) -> bool:
        return spec.dtype is not None

    return _collect(symbol, known.outputs, describe, complete, "type", partial=partial)


def _named(symbol: PlainGraph, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    names = symbol.list_arguments()
    if args and kwargs:
        message = "give the arguments all by position or all by name, not both"
        raise ValueError(message)
    if len(args) > len(names):
        message = f"there are {len(names)} arguments, not {len(args)}"
        raise ValueError(message)
    unknown = sorted(set(kwargs) - {*names, *symbol.list_auxiliary_states()})
    if unknown:
        message = f"the symbol has no argument {', '.join(map(repr, unknown))}"
        raise ValueError(message)
    given = dict(zip(names, args, strict=False)) if args else dict(kwargs)
    return {name: value for name, value in given.items() if value is not None}


def _collect(
    symbol: PlainGraph,
    outputs: Mapping[Any, tuple[TypeSpec, ...]],
    describe: Callable[[TypeSpec], Any],
    complete: Callable[[TypeSpec], bool],
    what: str,
    *,
    partial: bool,
) -> Lists | tuple[None, None, None]:
    variables = {node.name: outputs[node][0] for node in symbol.nodes() if node.is_variable}
    arguments = [variables[name] for name in symbol.list_arguments()]
    results = [type_of(entry, outputs) for entry in symbol.entries]
    states = [variables[name] for name in symbol.list_auxiliary_states()]
    if not partial and not all(complete(spec) for spec in (*arguments, *results, *states)):
        unknown = [name for name, spec in variables.items() if not complete(spec)]
        reasons = "".join(f"; {reason}" for reason in refusals(library_rules(symbol), outputs))
        warnings.warn(
            f"the {what}s of some arguments cannot be inferred: "
            f"{listed(unknown[:5])}; give more of them{reasons}",
            stacklevel=4,
        )
        return None, None, None
    return (
        [describe(spec) for spec in arguments],
        [describe(spec) for spec in results],
        [describe(spec) for spec in states],
    )
