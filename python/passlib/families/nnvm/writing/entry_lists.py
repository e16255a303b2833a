"""Graph attributes with one value for each output, edited together with the nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passlib.arrays import dtypes
from passlib.errors import GraphError, UnsupportedError
from passlib.families.nnvm.reading.graph_attributes import PER_ENTRY, is_per_entry
from passlib.families.nnvm.storage import separated
from passlib.families.nnvm.writing.outputs import Outputs
from passlib.lowering.types import TypeSpec

logger = logging.getLogger(__name__)

_CPU = 1
_UNKNOWN_CODE = -1
_NOT_IN_PLACE = -1

TypeOf = Callable[[int], TypeSpec]
"""Returns the type of a new output."""


def edited(
    original: Mapping[str, Any], current: Mapping[str, Any], outputs: Outputs, type_of: TypeOf
) -> Mapping[str, Any]:
    """Update the attributes of a graph to its nodes.

    Lists with one value for each output keep the values of remaining outputs. New outputs get
    shape and type where known, a buffer of their own, and the device of their node's input.
    Where nodes moved, entries that share a buffer while both are live are separated. A list
    that a pass rewrote in the new length stays unchanged.

    Parameters
    ----------
    original, current : mapping of str to [str, value]
        As in the file, and as the pass left them: ``original`` itself if unchanged.
    outputs : Outputs
    type_of : callable

    Returns
    -------
    mapping
        ``current`` itself if nothing changes.

    Raises
    ------
    GraphError
        A list that a pass wrote has neither the new nor the old length.
    UnsupportedError
        A list of unknown name would need a value for a new output.
    """
    result = dict(current)
    for name, pair in current.items():
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise GraphError(f"graph attribute {name!r} must be a pair of a type and a value")
        before = original.get(name)
        untouched = before is not None and pair == before
        reference = before if before is not None else pair
        if name not in PER_ENTRY and outputs.same:
            continue
        if not is_per_entry(name, reference, outputs.old_count):
            continue
        values = pair[1]
        if not isinstance(values, list):
            raise GraphError(f"graph attribute {name!r} must hold a list")
        if (not untouched and len(values) == len(outputs.old)) or outputs.same:
            if len(values) != len(outputs.old):
                raise _wrong_length(name, values, outputs)
            continue
        if len(values) != outputs.old_count:
            raise _wrong_length(name, values, outputs)
        kept = [values[old] if old >= 0 else None for old in outputs.old]
        result[name] = [pair[0], kept]
        _fill(name, kept, outputs, type_of)
    _separate(result, original, current, outputs)
    return result if any(result[name] is not current[name] for name in result) else current


def _wrong_length(name: str, values: Sequence[Any], outputs: Outputs) -> GraphError:
    return GraphError(
        f"graph attribute {name!r} has {len(values)} values, but the nodes have "
        f"{len(outputs.old)} outputs (and had {outputs.old_count})"
    )


def _fill(name: str, values: list[Any], outputs: Outputs, type_of: TypeOf) -> None:
    """Set the values of new outputs."""
    new = [entry for entry, old in enumerate(outputs.old) if old < 0]
    if not new:
        return
    if name == "storage_id":
        fresh = max((v for v in values if v is not None), default=-1) + 1
        for i, entry in enumerate(new):
            values[entry] = fresh + i
    elif name in ("shape", "dltype", "dtype"):
        unknown = []
        for entry in new:
            values[entry] = _of_type(name, type_of(entry))
            if values[entry] in ([], "", _UNKNOWN_CODE):
                unknown.append(outputs.names[entry])
        if unknown:
            logger.warning(
                "%s of the outputs of %s is unknown and written so: let the pass set __shape__ and "
                "__dtype__ of these nodes",
                name,
                ", ".join(list(dict.fromkeys(unknown))[:5]),
            )
    elif name == "storage_inplace_index":
        for entry in new:
            values[entry] = _NOT_IN_PLACE
    elif name in _INHERITED:
        _inherit(values, new, outputs, _INHERITED[name])
    else:
        node = outputs.names[new[0]]
        raise UnsupportedError(
            f"node {node!r}: graph attribute {name!r} has a value for each output of a node, and "
            "that of a new one is unknown; let the pass write or remove the attribute"
        )


_INHERITED = {"device_index": _CPU, "storage_scope": "global", "layout": "__undef__"}
"""Default values of attributes that an output inherits from its node's input, or a variable
from its first user.
"""


def _inherit(values: list[Any], new: Sequence[int], outputs: Outputs, default: Any) -> None:
    for entry in new:
        source = outputs.sources[entry]
        values[entry] = values[source] if source is not None else None
    for entry in reversed(new):
        if values[entry] is None:
            user = outputs.users.get(entry)
            values[entry] = values[user] if user is not None else None
    for entry in new:
        if values[entry] is None:
            source = outputs.sources[entry]
            known = values[source] if source is not None else None
            values[entry] = default if known is None else known


def _of_type(name: str, spec: TypeSpec) -> Any:
    """Write a shape or element type; NNVM's mark for an unknown one."""
    if name == "shape":
        shape = spec.shape
        return [] if shape is None or None in shape else [size or 0 for size in shape]
    if spec.dtype is None:
        return "" if name == "dltype" else _UNKNOWN_CODE
    if name == "dltype":
        return spec.dtype.name
    try:
        code = dtypes.code(spec.dtype)
    except UnsupportedError:
        return _UNKNOWN_CODE
    return code if code < _FIRST_DIFFERENT else _NNVM_CODES.get(spec.dtype.name, _UNKNOWN_CODE)


_FIRST_DIFFERENT = 7
"""The first code that means another type in NNVM than in MXNet."""

_NNVM_CODES = {"int16": 7, "uint16": 8, "uint32": 9, "uint64": 10}


def _separate(
    result: dict[str, Any],
    original: Mapping[str, Any],
    current: Mapping[str, Any],
    outputs: Outputs,
) -> None:
    """Separate entries that share a buffer while live, unless the pass chose the buffers."""
    pair = result.get("storage_id")
    if pair is None or not outputs.rewired:
        return
    values = pair[1]
    by_pass = pair is current["storage_id"] and pair != original.get("storage_id")
    if by_pass or not all(type(value) is int for value in values):
        return
    apart = separated(outputs.steps, outputs.heads, values)
    if apart != values:
        result["storage_id"] = [pair[0], apart]
