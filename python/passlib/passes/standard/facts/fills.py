"""Values all of whose elements are one number, whatever their shape is."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from passlib._core import EditableValue
from passlib.passes.standard.facts.nodes import Model, operator

_MOVES = frozenset(
    ("Expand", "Slice", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Identity",
     "Gather", "Tile", "Split")
)  # fmt: skip
"""Operators whose results are elements of their first input."""


def is_zero(model: Model, value: EditableValue) -> bool:
    """Whether all elements of a value of floats are 0.0, not -0.0."""
    pending, seen = [value], {value}
    while pending:
        item = pending.pop()
        node = item.node
        name = operator(node)
        if node.is_variable:
            array = model.array(item)
            if array is None or np.any(array != 0) or np.any(np.signbit(array)):
                return False
            continue
        if name == "ConstantOfShape":
            if not _fills_zero(node.attrs.get("value")):
                return False
            continue
        if name not in _MOVES and name != "Concat":
            return False
        for source in node.inputs if name == "Concat" else node.inputs[:1]:
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return True


def _fills_zero(tensor: str | None) -> bool:
    if tensor is None:
        return True
    found: Any = json.loads(tensor)
    return all(item == 0 and str(item)[0] != "-" for item in found.get("data", [1]))
