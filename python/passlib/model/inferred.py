"""Results of inference in the form of ``infer_shape`` and ``infer_type``: three lists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from passlib.errors import listed
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import TypeSpec, type_of

Lists = tuple[list[Any], list[Any], list[Any]]
Outputs = Mapping[Node, tuple[TypeSpec, ...]]
Reasons = Callable[[], Iterable[str]]


def named(symbol: PlainGraph, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is given for arguments by position or by name, by name."""
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


def shapes(
    symbol: PlainGraph, known: Outputs, *, partial: bool, numpy: bool, reasons: Reasons = list
) -> Lists | tuple[None, None, None]:
    """Return the shapes of arguments, outputs and auxiliary states.

    ``partial``: otherwise, where something is unknown, a warning is issued and the result is None.
    ``numpy``: unknown shapes are None and unknown sizes -1, otherwise ``()`` and 0. ``reasons``:
    returns why something is unknown, for the warning.
    """

    def describe(spec: TypeSpec) -> tuple[int, ...] | None:
        if spec.shape is None:
            return None if numpy else ()
        unknown = -1 if numpy else 0
        return tuple(unknown if size is None else size for size in spec.shape)

    def complete(spec: TypeSpec) -> bool:
        return spec.shape is not None and None not in spec.shape

    return _collect(symbol, known, describe, complete, "shape", reasons, partial=partial)


def types(
    symbol: PlainGraph, known: Outputs, *, partial: bool, reasons: Reasons = list
) -> Lists | tuple[None, None, None]:
    """Return the element types of arguments, outputs and auxiliary states, see `shapes`."""

    def describe(spec: TypeSpec) -> type[np.generic] | None:
        return None if spec.dtype is None else spec.dtype.type

    def complete(spec: TypeSpec) -> bool:
        return spec.dtype is not None

    return _collect(symbol, known, describe, complete, "type", reasons, partial=partial)


def _collect(
    symbol: PlainGraph,
    outputs: Mapping[Any, tuple[TypeSpec, ...]],
    describe: Callable[[TypeSpec], Any],
    complete: Callable[[TypeSpec], bool],
    what: str,
    reasons: Reasons,
    *,
    partial: bool,
) -> Lists | tuple[None, None, None]:
    variables = {node.name: outputs[node][0] for node in symbol.nodes() if node.is_variable}
    arguments = [variables[name] for name in symbol.list_arguments()]
    results = [type_of(entry, outputs) for entry in symbol.entries]
    states = [variables[name] for name in symbol.list_auxiliary_states()]
    if not partial and not all(complete(spec) for spec in (*arguments, *results, *states)):
        unknown = [name for name, spec in variables.items() if not complete(spec)]
        warnings.warn(
            f"the {what}s of some arguments cannot be inferred: "
            f"{listed(unknown[:5])}; give more of them"
            + "".join(f"; {reason}" for reason in reasons()),
            stacklevel=5,
        )
        return None, None, None
    return (
        [describe(spec) for spec in arguments],
        [describe(spec) for spec in results],
        [describe(spec) for spec in states],
    )
