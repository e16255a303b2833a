"""Rules that compute the elements of small integer tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.passes.standard.facts.known import (
    Content,
    Known,
    Quantity,
    at_least,
    differ,
    product,
    quotient,
    registering,
    towards_zero,
)
from passlib.passes.standard.facts.nodes import given, integer, integers, is_old_broadcast
from passlib.passes.standard.facts.rules.certainty import ENDS
from passlib.passes.standard.facts.rules.reals import without_fraction

MOST_ELEMENTS = 256
"""Larger tensors are not followed: sizes are few."""

_INT = frozenset((2, 3, 4, 5, 6, 7, 9, 12, 13))

Rule = Callable[[EditableNode, Known], Content | None]

content_rules: dict[str, Rule] = {}
_rule = registering(content_rules)


def _array(items: list[Quantity], shape: tuple[int, ...] | None = None) -> Content:
    made = np.empty(len(items), object)
    made[:] = items
    return made if shape is None else made.reshape(shape)


def axes_of(node: EditableNode, known: Known, number: int = 1) -> list[int] | None:
    """Return the axes of a node from its attribute or an input; None if computed or omitted."""
    stated = integers(node, "axes")
    if stated is not None:
        return stated
    content = known.content(given(node, number))
    if content is None or not all(isinstance(item, int) for item in content.flat):
        return None
    return [int(item) for item in content.flat]


@_rule("Shape")
def _shape(node: EditableNode, known: Known) -> Content | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    start, end = integer(node, "start", 0), integer(node, "end", len(shape))
    return _array(list(shape[start:end]))


@_rule("Size")
def _size(node: EditableNode, known: Known) -> Content | None:
    shape = known.shape(node.inputs[0])
    return None if shape is None else _array([product(shape)], ())


@_rule("Identity")
def _identity(node: EditableNode, known: Known) -> Content | None:
    return known.content(node.inputs[0])


@_rule("Cast")
def _cast(node: EditableNode, known: Known) -> Content | None:
    content = known.content(node.inputs[0])
    target = integer(node, "to", 0)
    if content is None:
        return without_fraction(node, known)
    if target not in _INT:
        return None
    if target == 9:
        truths = [_truth(item) for item in content.flat]
        known_truths: list[Quantity] = [truth for truth in truths if truth is not None]
        return _array(known_truths, content.shape) if len(known_truths) == len(truths) else None
    # A product of sizes may be beyond the range of 32 bits; a size is not.
    if target != 7 and not all(_is_plain(item) for item in content.flat):
        return None
    return content


def _is_plain(item: Quantity) -> bool:
    return isinstance(item, int) or (
        len(item.terms) == 1 and len(item.terms[0][0]) == 1 and item.terms[0][1] == 1
    )


def _truth(item: Quantity) -> int | None:
    if isinstance(item, int):
        return int(item != 0)
    return 1 if differ(item, 0) else None


@_rule("Gather")
def _gather(node: EditableNode, known: Known) -> Content | None:
    data, places = known.content(node.inputs[0]), known.content(node.inputs[1])
    if data is None or places is None or not data.ndim:
        return None
    if integer(node, "axis", 0) not in (0, -data.ndim):
        return None
    if not all(isinstance(item, int) and -len(data) <= item < len(data) for item in places.flat):
        return None
    return np.asarray(data[places.astype(np.int64)], object)


@_rule("Concat")
def _concat(node: EditableNode, known: Known) -> Content | None:
    parts = [known.content(value) for value in node.inputs]
    if any(part is None or part.ndim != 1 for part in parts):
        return None
    return np.concatenate([part for part in parts if part is not None])


@_rule("Unsqueeze", "Squeeze", "Reshape", "Flatten")
def _reshape(node: EditableNode, known: Known) -> Content | None:
    content, shape = known.content(node.inputs[0]), known.shape(node.outputs[0])
    if content is None or shape is None or not all(isinstance(size, int) for size in shape):
        return None
    sizes = tuple(int(size) for size in shape if isinstance(size, int))
    return content.reshape(sizes) if math.prod(sizes) == content.size else None


@_rule("Transpose")
def _transpose(node: EditableNode, known: Known) -> Content | None:
    content = known.content(node.inputs[0])
    return None if content is None else content.transpose(integers(node, "perm"))


@_rule("Slice")
def _slice(node: EditableNode, known: Known) -> Content | None:
    content = known.content(node.inputs[0])
    if content is None or content.ndim != 1:
        return None
    if "starts" in node.attrs:
        starts, ends, steps = integers(node, "starts"), integers(node, "ends"), [1]
    else:
        bounds = [known.content(given(node, number)) for number in (1, 2)]
        stride = known.content(given(node, 4))
        if given(node, 4) is not None and stride is None:
            return None
        if any(b is None or b.size != 1 or not isinstance(b.flat[0], int) for b in bounds):
            return None
        starts, ends = ([int(b.flat[0])] for b in bounds if b is not None)
        steps = [1] if stride is None else [int(item) for item in stride.flat]
    if not starts or not ends or steps[0] == 0 or (steps[0] < 0 and ends[0] in ENDS):
        return None
    return content[slice(*_bounds(starts[0], ends[0], steps[0], len(content)))]


def _bounds(start: int, end: int, step: int, size: int) -> tuple[int, int | None, int]:
    """Return the bounds of a slice for Python; ONNX clamps them."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size), step
    last = min(max(end, -1), size - 1)
    return min(max(start, 0), size - 1), None if last < 0 else last, step


Binary = Callable[[Quantity, Quantity], "Quantity | None"]


def _combine(node: EditableNode, known: Known, compute: Binary) -> Content | None:
    left, right = known.content(node.inputs[0]), known.content(node.inputs[1])
    if left is None or right is None:
        return None
    try:
        pairs = np.broadcast(left, right)
    except ValueError:
        return None
    found = [compute(a, b) for a, b in pairs]
    if any(item is None for item in found):
        return None
    return _array([item for item in found if item is not None], pairs.shape)


def _remainder(left: Quantity, right: Quantity) -> Quantity | None:
    if not isinstance(right, int) or right <= 0:
        return None
    if isinstance(left, int):
        return left % right if left >= 0 else None
    return 0 if quotient(left, right) is not None else None


def _equal(left: Quantity, right: Quantity) -> Quantity | None:
    return 1 if left == right else 0 if differ(left, right) else None


def _greater(left: Quantity, right: Quantity) -> Quantity | None:
    return 1 if at_least(left - right, 1) else 0 if at_least(right - left, 0) else None


def _not_less(left: Quantity, right: Quantity) -> Quantity | None:
    return 1 if at_least(left - right, 0) else 0 if at_least(right - left, 1) else None


def _larger(left: Quantity, right: Quantity) -> Quantity | None:
    if at_least(left - right, 0):
        return left
    return right if at_least(right - left, 0) else None


def _smaller(left: Quantity, right: Quantity) -> Quantity | None:
    if at_least(left - right, 0):
        return right
    return left if at_least(right - left, 0) else None


def _flipped(compute: Binary) -> Binary:
    return lambda left, right: compute(right, left)


_BINARY: dict[str, Binary] = {
    "Add": lambda left, right: left + right,
    "Sub": lambda left, right: left - right,
    "Mul": lambda left, right: left * right,
    "Div": towards_zero,
    "Mod": _remainder,
    "Equal": _equal,
    "Greater": _greater,
    "Less": _flipped(_greater),
    "GreaterOrEqual": _not_less,
    "LessOrEqual": _flipped(_not_less),
    "And": lambda left, right: left * right,
    "Or": _larger,
}


@_rule(*_BINARY)
def _binary(node: EditableNode, known: Known) -> Content | None:
    if is_old_broadcast(node) or integer(node, "fmod", 0):
        return None
    return _combine(node, known, _BINARY[node.op])


@_rule("Max", "Min")
def _extreme(node: EditableNode, known: Known) -> Content | None:
    if len(node.inputs) == 1:
        return known.content(node.inputs[0])
    if len(node.inputs) != 2:
        return None
    return _combine(node, known, _larger if node.op == "Max" else _smaller)


@_rule("Not")
def _not(node: EditableNode, known: Known) -> Content | None:
    content = known.content(node.inputs[0])
    if content is None or not all(isinstance(item, int) for item in content.flat):
        return None
    return _array([int(not item) for item in content.flat], content.shape)


@_rule("Neg")
def _negative(node: EditableNode, known: Known) -> Content | None:
    content = known.content(node.inputs[0])
    return None if content is None else _array([-item for item in content.flat], content.shape)


@_rule("Where")
def _where(node: EditableNode, known: Known) -> Content | None:
    parts = [known.content(value) for value in node.inputs]
    if any(part is None for part in parts):
        return None
    try:
        together = np.broadcast(*[part for part in parts if part is not None])
    except ValueError:
        return None
    found: list[Quantity] = []
    for condition, left, right in together:
        if not isinstance(condition, int) and left != right:
            return None
        found.append(left if condition else right)
    return _array(found, together.shape)


@_rule("ReduceProd", "ReduceSum")
def _reduce(node: EditableNode, known: Known) -> Content | None:
    content, shape = known.content(node.inputs[0]), known.shape(node.outputs[0])
    if content is None or content.ndim != 1 or shape not in ((), (1,)):
        return None
    items = list(content.flat)
    total: Quantity = product(items)
    if node.op == "ReduceSum":
        total = 0
        for item in items:
            total = total + item
    return _array([total], tuple(1 for _ in shape))


@_rule("ConstantOfShape", "Expand")
def _filled(node: EditableNode, known: Known) -> Content | None:
    shape = known.shape(node.outputs[0])
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    sizes = tuple(int(size) for size in shape if isinstance(size, int))
    if math.prod(sizes) > MOST_ELEMENTS:
        return None
    if node.op == "Expand":
        content = known.content(node.inputs[0])
        return None if content is None else np.array(np.broadcast_to(content, sizes), object)
    return _array([_fill(node)] * math.prod(sizes), sizes) if _fill(node) is not None else None


def _fill(node: EditableNode) -> Any:
    """Return the integer that a ConstantOfShape repeats, or None."""
    tensor = node.attrs.get("value")
    if tensor is None:
        return None  # a float
    found = json.loads(tensor)
    values = found.get("data", [])
    kind = str(found.get("dtype", ""))
    if not kind.startswith(("int", "uint", "bool")) or len(values) != 1:
        return None
    return int(values[0])


@_rule("Range")
def _range(node: EditableNode, known: Known) -> Content | None:
    bounds = [known.content(value) for value in node.inputs]
    if any(b is None or b.size != 1 or not isinstance(b.flat[0], int) for b in bounds):
        return None
    start, limit, step = (int(b.flat[0]) for b in bounds if b is not None)
    if step == 0 or len(range(start, limit, step)) > MOST_ELEMENTS:
        return None
    return _array(list(range(start, limit, step)))


def whole(value: EditableValue, known: Known) -> list[int] | None:
    """Return the elements of a value if all are known integers."""
    content = known.content(value)
    if content is None or not all(isinstance(item, int) for item in content.flat):
        return None
    return [int(item) for item in content.flat]
