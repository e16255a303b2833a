"""Typed attributes of a graph: ``name: [type, value]``, many with a value for each entry."""

from __future__ import annotations

import re
from typing import Any

from passlib.dialects.json_text import JsonNumber
from passlib.families.nnvm.reading.findings import Finding, Report, describe_type, integers

PER_ENTRY = {
    "shape": "list_shape",
    "dltype": "list_str",
    "dtype": "list_int",
    "storage_id": "list_int",
    "device_index": "list_int",
    "storage_inplace_index": "list_int",
    "storage_scope": "list_str",
    "layout": "list_layout",
}
"""Attributes with a value for each output of each node, and their types."""

_NEEDED = ("dltype", "storage_id", "shape")
"""The attributes that TVM's graph executor needs."""

_READ = frozenset((*_NEEDED, "device_index", "storage_scope"))
_SKIPPED = ("list_int", "size_t")
"""Types of other attributes, which TVM's graph executor skips."""

_ELEMENT = re.compile(r"(bool|handle|(custom\[\w+\]|int|uint|float|bfloat|e\dm\d_float)\d+)\w*")
"""Names of element types in TVM."""


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _shapes(value: Any) -> bool:
    return isinstance(value, list) and all(integers(item) for item in value)


def _size(value: Any) -> bool:
    if isinstance(value, JsonNumber):  # unsigned 64-bit integers
        return value.text.isdigit() and int(value.text[:21]) < 1 << 64
    return type(value) is int and value >= 0


VALUE_TYPES = {
    "int": lambda value: type(value) is int,
    "size_t": _size,
    "str": lambda value: isinstance(value, str),
    "list_int": integers,
    "list_str": _strings,
    "list_layout": _strings,
    "list_shape": _shapes,
}
"""The check of the value, by known type."""


def is_per_entry(name: str, pair: list[Any], entries: int) -> bool:
    """Whether an attribute has a value for each of the graph's entries.

    An attribute of unknown name does if it is a list with as many values.
    """
    if name in PER_ENTRY:
        return True
    return isinstance(pair[1], list) and pair[0].startswith("list_") and len(pair[1]) == entries


def examine(
    value: Any, where: str, entries: int | None, report: Report, *, executable: bool
) -> bool:
    """Check the attributes of a graph, and return whether they can be edited with its nodes.

    Parameters
    ----------
    value : object
        As parsed.
    where : str
        Path of the attributes in the file.
    entries : int or None
        Number of all outputs of all nodes, if the file states it.
    executable : bool
        Whether this is a graph for TVM's executor.
    """
    fine = True

    def error(place: str, message: str) -> None:
        nonlocal fine
        fine = False
        report(Finding("error", place, message))

    if not isinstance(value, dict):
        error(where, f"must be an object, not {describe_type(value)}")
        return False
    for name, pair in value.items():
        place = f"{where}.{name}"
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            error(place, "must be a pair of a type and a value")
            continue
        kind, content = pair
        wanted = PER_ENTRY.get(name, kind)
        if kind != wanted:
            error(f"{place}[0]", f"is of type {kind!r}, must be {wanted!r}")
            continue
        if executable and name not in _READ and kind not in _SKIPPED:
            message = f"is {kind!r}, but TVM's graph executor skips only {' and '.join(_SKIPPED)}"
            report(Finding("error", f"{place}[0]", message, bearable=True))
        elif kind not in VALUE_TYPES:
            report(Finding("warning", f"{place}[0]", f"{kind!r} is not a known type; kept"))
        if kind in VALUE_TYPES and not VALUE_TYPES[kind](content):
            error(f"{place}[1]", f"is not of type {kind!r}")
        elif name in PER_ENTRY:
            if entries is not None and len(content) != entries:
                error(f"{place}[1]", f"has {len(content)} values for {entries} outputs of nodes")
            entries = len(content) if entries is None else entries
    if executable and fine:
        for name in _NEEDED:
            if name not in value:
                message = "is missing, and TVM's graph executor needs it"
                report(Finding("error", f"{where}.{name}", message, bearable=True))
        for i, dtype in enumerate(value["dltype"][1] if "dltype" in value else ()):
            if not _ELEMENT.fullmatch(dtype):
                what = f"{dtype!r} is unknown" if dtype else "is not stated"
                message = f"{what}, and TVM's graph executor needs it"
                report(Finding("warning", f"{where}.dltype[1][{i}]", message))
        for i, shape in enumerate(value["shape"][1] if "shape" in value else ()):
            if any(size < 0 for size in shape):
                report(Finding("warning", f"{where}.shape[1][{i}]", "has a negative size"))
    return fine
