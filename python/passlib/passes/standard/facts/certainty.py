"""Values for which ONNX's specification and ONNX Runtime disagree, or that it leaves open.

Folding them would change the results of another runtime or a later one. A Loop that may not end
soon is not computed either.
tests/data/onnx/values.jsonl lists the findings of tests/support/value_sweep.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from passlib._core import EditableNode
from passlib.arrays import dtypes
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.passes.standard.facts.nodes import graphs_within, operator

Array = np.ndarray[Any, Any]
Inputs = Sequence[Array | None]
Certainty = Callable[[EditableNode, Inputs], bool]

ENDS: Final = ((1 << 31) - 1, (1 << 63) - 1)
"""Ends of a Slice with a negative step that ONNX Runtime takes for the beginning of the axis."""


def certainty(node: EditableNode) -> Certainty | None:
    """Return a predicate on a node and its inputs: whether all runtimes compute the same results.

    Omitted inputs, and those of dtypes that NumPy lacks, are None. Return None for nodes that are
    always certain.
    """
    inner = [each for graph in graphs_within(node) for each in graph.nodes if not each.is_variable]
    if any(_has_odd_switch(each) for each in (node, *inner)) or any(map(_has_rule, inner)):
        return lambda node, inputs: False
    return _RULES.get(operator(node))


ELEMENTWISE: Final = ("Abs", "Add", "Max", "Min", "Mul", "Neg", "Sub")
"""Operators whose results depend on their inputs element by element, and are certain."""


def uncertain_elements(node: EditableNode, inputs: Inputs) -> Array | None:
    """Return which elements of a result depend on the runtime, if the others do not; or None."""
    target = _target(node, inputs)
    if operator(node) != "Cast" or inputs[0] is None or target not in ELEMENT_TYPES.values():
        return None
    dtype = dtypes.as_dtype(target)
    return ~_held(dtype, inputs[0]) if dtype.kind in "iu" else None


def _has_odd_switch(node: EditableNode) -> bool:
    return any(node.attrs.get(name, "0") not in ("0", "1") for name in _SWITCHES)


def _has_rule(node: EditableNode) -> bool:
    """Whether a node in a nested graph, with unknown inputs, may be uncertain."""
    forward = operator(node) == "Slice" and len(node.inputs) < 5
    return operator(node) in _RULES and not forward


_SWITCHES: Final = (
    "allowzero", "align_corners", "ceil_mode", "count_include_pad", "exclusive", "fmod", "inverse",
    "is_causal", "keepdims", "largest", "noop_with_empty_axes", "onesided", "reverse", "saturate",
    "select_last_index", "sorted", "upper",
)  # fmt: skip
"""Attributes that are 0 or 1. Runtimes take other numbers for either."""


_TEXT: Final = "8"


def _target(node: EditableNode, inputs: Inputs) -> str | None:
    if node.op == "Cast":
        stated = node.attrs.get("to", "")
        return ELEMENT_TYPES.get(int(stated)) if stated.isdecimal() else stated.lower()
    return None if len(inputs) < 2 or inputs[1] is None else inputs[1].dtype.name


def _cast(node: EditableNode, inputs: Inputs) -> bool:
    source = inputs[0]
    if source is None:
        return False  # text
    target = _target(node, inputs)
    if node.attrs.get("to") == _TEXT:  # of which a real number has several
        return source.dtype.kind in "iu"
    if source.dtype.kind in "biu" or target is None or target not in ELEMENT_TYPES.values():
        return True
    dtype = dtypes.as_dtype(target)
    return dtype.kind not in "iu" or _holds(dtype, source)


def _holds(dtype: np.dtype[Any], array: Array) -> bool:
    """Whether an integer dtype represents all numbers without their fractions."""
    return bool(np.all(_held(dtype, array)))


def _held(dtype: np.dtype[Any], array: Array) -> Array:
    """Return which numbers an integer dtype represents without their fractions."""
    bounds = np.iinfo(dtype)
    whole = np.trunc(np.asarray(array, np.float64))
    # As floating point the upper bound may be one more.
    held: Array = (whole >= bounds.min) & (whole < float(bounds.max) + (bounds.bits < 53))
    return held


def _slice(node: EditableNode, inputs: Inputs) -> bool:
    ends, steps = (inputs[place] if place < len(inputs) else None for place in (2, 4))
    if ends is None or steps is None or ends.size != steps.size:
        return True
    return not np.any((steps < 0) & np.isin(ends, ENDS))


def _non_zero(node: EditableNode, inputs: Inputs) -> bool:
    return inputs[0] is not None and inputs[0].ndim > 0


def _quotient(node: EditableNode, inputs: Inputs) -> bool:
    left, right = inputs
    if left is None or right is None or right.dtype.kind not in "iu":
        return True
    overflows = right.dtype.kind == "i" and -1 in right and np.iinfo(right.dtype).min in left
    return bool(np.all(right != 0)) and not overflows


def _shift(node: EditableNode, inputs: Inputs) -> bool:
    amount = inputs[1]
    return amount is not None and bool(np.all(amount < amount.dtype.itemsize * 8))


def _power(node: EditableNode, inputs: Inputs) -> bool:
    base, exponent = inputs
    if base is None or exponent is None or base.dtype.kind not in "iu":
        return True
    power = np.asarray(exponent, np.float64)
    with np.errstate(all="ignore"):
        return bool(np.all(power >= 0)) and _holds(base.dtype, np.float64(base) ** power)


def _squeeze(node: EditableNode, inputs: Inputs) -> bool:
    """Whether axes are stated: an empty list stands for none or for all dimensions of 1."""
    if len(inputs) < 2:
        return node.attrs.get("axes") != "[]"
    return inputs[1] is None or inputs[1].size > 0


def _mean(node: EditableNode, inputs: Inputs) -> bool:
    return inputs[0] is None or inputs[0].size > 0


def _finite(node: EditableNode, inputs: Inputs) -> bool:
    """Whether kernels meet no NaN, which has no order, and no infinity, which some cannot reach."""
    return all(
        bool(np.isfinite(array).all())
        for array in inputs
        if array is not None and array.dtype.kind not in "biuOUS"
    )


_MOST_STEPS: Final = 10_000
"""Operators that run in a Loop that is computed before the model runs."""


def _loop(node: EditableNode, inputs: Inputs) -> bool:
    """Whether a trip count is known and ends soon: one number of a file may stand for years."""
    if not inputs or inputs[0] is None or inputs[0].size != 1:
        return False
    size = sum(1 for graph in graphs_within(node) for _ in graph.nodes)
    return int(inputs[0].reshape(())) * max(size, 1) <= _MOST_STEPS


_ORDERED: Final = (
    "ArgMax", "ArgMin", "Clip", "GlobalMaxPool", "Hardmax", "MaxPool", "ReduceLogSumExp",
    "ReduceMax", "ReduceMin", "ScatterElements", "ScatterND", "Sign",
)  # fmt: skip
"""Operators whose results depend on how a kernel orders what is not finite."""

_RULES: Final[dict[str, Certainty]] = {
    **dict.fromkeys(_ORDERED, _finite),
    "BitShift": _shift,
    "Cast": _cast,
    "CastLike": _cast,
    "Div": _quotient,
    "Loop": _loop,
    "Mod": _quotient,
    "NonZero": _non_zero,
    "Pow": _power,
    "ReduceMean": _mean,
    "Slice": _slice,
    "Squeeze": _squeeze,
}
