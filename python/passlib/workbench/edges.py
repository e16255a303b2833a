"""Conditions at single values: ties, halves, whole numbers, edges of types, sizes from inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from passlib.errors import printable
from passlib.graph.attributes import parse_float
from passlib.graph.node import Entry, Node
from passlib.model import Model
from passlib.workbench.distances import Goal, above, below, meets, nearest, reached
from passlib.workbench.flow import Flow, axis_of, constant_of, given, never_negative, number_of

_ROUNDED: Final = frozenset({"Ceil", "Floor", "Round", "ceil", "fix", "floor", "rint", "round"})

_ORDERING: Final = frozenset(
    {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "broadcast_greater", "broadcast_lesser"}
)

_PEAKS: Final = frozenset({"GlobalMaxPool", "MaxPool", "ReduceMax"})

_DECIDING: Final = frozenset({*_ORDERING, "Max", "Min", "PRelu"})
"""Operators that compare with each element of a constant."""

_CLOSE: Final = 0.01
"""A value is close to a limit up to this share of it."""

_MOST_ELEMENTS: Final = 8
"""Elements of a constant that are looked at one by one."""

_LOGICAL: Final = frozenset({"And", "Or", "Xor"})

_INTEGERS: Final[dict[str, type[np.integer[Any]]]] = {
    # ONNX's numbers of types.
    "2": np.uint8, "3": np.int8, "4": np.uint16, "5": np.int16, "6": np.int32, "7": np.int64,
    "12": np.uint32, "13": np.uint64,
}  # fmt: skip
_BOOLEAN: Final = "9"

_NUMBERS: Final = {
    # Inputs that are sizes, counts and places, and whether they may be negative.
    "BitShift": {1: False}, "ConstantOfShape": {0: False}, "CumSum": {1: True},
    "Expand": {1: False}, "GRU": {4: False}, "GatherElements": {1: True}, "GatherND": {1: True},
    "LSTM": {4: False}, "Pad": {1: True}, "RNN": {4: False},
    "Range": {0: True, 1: True, 2: True}, "Reshape": {1: True}, "ReverseSequence": {1: False},
    "ScatterElements": {1: True}, "ScatterND": {1: True}, "SequenceAt": {1: True},
    "SequenceInsert": {2: True},
    "Slice": {1: True, 2: True, 4: True}, "Split": {1: False}, "Tile": {1: False},
    "TopK": {1: False}, "Trilu": {1: True},
}  # fmt: skip

_SMALL: Final = 1e-3
"""A constant below this that is added keeps a divisor from 0."""

_AROUND: Final = 100
"""Values are near a constant up to this factor."""

_BINARY: Final = _ORDERING | _LOGICAL | {
    "Compress", "Div", "Mod", "OneHot", "Pow", "QuantizeLinear", "ScatterElements", "ScatterND",
}  # fmt: skip

_NORMS: Final = {"InstanceNormalization": 2, "LayerNormalization": -1}
"""Operators that divide by a deviation, and their first axis."""


def edges_of(model: Model, flow: Flow, node: Node) -> Iterator[Goal]:
    """Yield the conditions of a node at which only single values tell two operators apart."""
    name = f"{printable(node.op)} {printable(node.name)!r}"
    if node.op in _BINARY and len(node.inputs) < 2:  # of a dialect with such a name
        return
    for each in _edges(model, flow, node):
        each.subject = name
        yield each


def _goal(
    state: str,
    reads: tuple[Entry, ...],
    distance: Callable[..., float],
    applies: Callable[[np.dtype[Any]], bool] | None = None,
) -> Goal:
    return Goal("", state, reads, distance, applies)


def _edges(model: Model, flow: Flow, node: Node) -> Iterator[Goal]:
    first = node.inputs[0]
    op = node.op
    if op in _ORDERING:
        yield _goal("equal values at", node.inputs[:2], meets)
    elif op in ("ArgMax", "ArgMin", "argmax", "argmin", "Hardmax"):
        axis = axis_of(node, -1 if op == "Hardmax" else 0)
        word = "smallest" if op in ("ArgMin", "argmin") else "largest"
        yield _goal(f"equal {word} elements at", (first,), _tie(axis, is_largest=word == "largest"))
    elif op == "TopK":
        yield from _of_top_k(node)
    elif op == "Unique":
        yield _goal("equal elements at", (first,), _repetition)
    elif op == "OneHot":
        yield _goal("indices below 0 at", (first,), reached(lambda x: x < 0), _is_signed)
        yield _goal(
            "indices beyond the depth of", node.inputs[:2], reached(lambda x, n: x >= n.max())
        )
    elif op == "NonMaxSuppression":
        yield from _of_suppression(node)
    elif op in ("Sign", "sign"):
        yield _goal("0 at", (first,), nearest(np.abs))
    elif op in ("Round", "rint", "round"):
        yield _goal("halves at", (first,), nearest(lambda x: np.abs(x - np.floor(x) - 0.5)))
    elif op in _ROUNDED:
        yield _goal("whole numbers at", (first,), nearest(lambda x: np.abs(x - np.rint(x))))
        if not never_negative(first):
            yield _goal("fractions below 0 at", (first,), reached(_below_0))
    elif op in ("Div", "Mod"):
        yield from _of_division(node)
    elif op == "Pow":
        yield from _of_powers(model, flow, node)
    elif op == "Cast":
        yield from _of_casts(flow, node)
    elif op == "QuantizeLinear":
        yield from _of_quantization(model, node)
    elif op in _LOGICAL:
        for one in (True, False):
            for two in (True, False):
                words = f"{one} and {two}".lower()
                yield _goal(f"{words} at", node.inputs[:2], _truths(one, two))
    elif op == "NonZero":
        yield _goal("elements other than 0 at", (first,), reached(lambda x: x != 0))
        yield _goal("zeros at", (first,), nearest(np.abs))
    elif op == "Compress":
        yield _goal("true conditions of", node.inputs[1:2], reached(lambda x: x != 0))
        yield _goal("false conditions of", node.inputs[1:2], reached(lambda x: x == 0))
    elif op in ("ScatterElements", "ScatterND") and node.attrs.get("reduction", "none") != "none":
        # Without a reduction it is not defined which of two updates stays.
        yield _goal("equal indices at", node.inputs[1:2], _scattered(node))
    elif op in ("Add", "Clip", "Max") and len(node.inputs) > 1:
        yield from _of_sums(model, node)
    elif op in _NORMS:
        yield from _of_norms(node)
    elif op == "LpNormalization":
        axis = axis_of(node, -1)
        yield _goal(
            "vectors of zeros at", (first,), nearest(lambda x: np.max(np.abs(x), axis=axis))
        )
    elif op in _PEAKS and not never_negative(first):
        yield _goal("results below 0 of", (Entry(node),), below(0.0), _is_signed)
    elif op == "ReduceMin":
        yield _goal("results above 0 of", (Entry(node),), above(0.0))
    elif op == "Gather" and all(map(flow.depends, node.inputs[:2])):
        yield _goal("indices above 1 at", node.inputs[1:2], reached(lambda x: x > 1))
    if op in _DECIDING:
        yield from _of_elements(model, node)
    if op == "Expand":
        yield _goal("repeated elements at", (first, Entry(node)), _grows)
    for place, is_signed in _NUMBERS.get(op, {}).items():
        entry = given(node, place)
        if entry is not None and flow.depends(entry):
            which = f"in input {place + 1} of"
            yield _goal(f"numbers above 1 {which}", (entry,), reached(lambda x: x > 1))
            if is_signed:
                yield _goal(f"numbers below 0 {which}", (entry,), reached(lambda x: x < 0))


def _of_elements(model: Model, node: Node) -> Iterator[Goal]:
    """Yield conditions for each element of a constant that the other operand is compared with."""
    if len(node.inputs) != 2:
        return
    for place, entry in enumerate(node.inputs):
        array = constant_of(model, entry)
        if array is None or not 0 < array.size <= _MOST_ELEMENTS or array.dtype.kind not in "iuf":
            continue
        limits = np.zeros(array.shape) if node.op == "PRelu" else array.astype(np.float64)
        other = node.inputs[1 - place]
        for number in range(array.size):
            of = f"element {number} of the constant of" if array.size > 1 else "the constant of"
            for sign, word in ((1, "above"), (-1, "below")):
                if node.op in _ORDERING:
                    yield _goal(f"values just {word} {of}", (other,), _close(limits, number, sign))
                elif array.size > 1:
                    yield _goal(f"values {word} {of}", (other,), _beside(limits, number, sign))


def _close(limits: Any, number: int, sign: int) -> Callable[[Any], float]:
    """Return the distance of values that should be a little above, or below, an element."""
    limit = float(limits.ravel()[number])
    width = max(_CLOSE * abs(limit), _CLOSE)

    def distance(x: Any) -> float:
        gaps, places = np.broadcast_arrays((x - limits) * sign, _numbers(limits))
        found = gaps[places == number]
        # The next whole number is close to a whole number.
        most = max(width, 1.0) if np.all(found == np.rint(found)) else width
        return nearest(np.abs)(found - np.clip(found, np.finfo(np.float64).tiny, most))

    return distance


def _beside(limits: Any, number: int, sign: int) -> Callable[[Any], float]:
    """Return the distance of values that should be above, or below, one element of a constant."""

    def distance(x: Any) -> float:
        gaps, places = np.broadcast_arrays((x - limits) * sign, _numbers(limits))
        return above(0.0)(gaps[places == number])

    return distance


def _numbers(array: Any) -> Any:
    return np.arange(array.size).reshape(array.shape)


def _below_0(x: Any) -> Any:
    return (x < 0) & (x != np.rint(x))


def _tie(axis: int, *, is_largest: bool) -> Callable[[Any], float]:
    def distance(x: Any) -> float:
        if not -x.ndim <= axis < x.ndim or x.shape[axis] < 2:
            return np.inf
        two = np.partition(-x if is_largest else x, 1, axis=axis)
        gaps = np.take(two, 1, axis) - np.take(two, 0, axis)
        return nearest(np.abs)(gaps)

    return distance


def _of_top_k(node: Node) -> Iterator[Goal]:
    axis = axis_of(node, -1)
    is_largest = node.attrs.get("largest", "1") != "0"
    stated = number_of(node, "k", 1)  # before operator set 10

    def distance(x: Any, *count: Any) -> float:
        k = int(count[0].ravel()[0]) if count else stated
        if not -x.ndim <= axis < x.ndim or x.shape[axis] < 2:
            return np.inf
        ordered = np.sort(-x if is_largest else x, axis=axis)
        chosen = np.take(ordered, np.arange(min(k + 1, x.shape[axis])), axis)
        return nearest(np.abs)(np.diff(chosen, axis=axis))

    yield _goal("equal elements at", tuple(node.inputs[:2]), distance)


def _repetition(x: Any) -> float:
    return nearest(np.abs)(np.diff(np.sort(x, axis=None))) if x.size > 1 else np.inf


def _of_suppression(node: Node) -> Iterator[Goal]:
    scores, count, threshold = (given(node, place) for place in (1, 2, 4))
    if scores is None or count is None:
        return
    named = {"count": count, "threshold": threshold}
    optional = {name: entry for name, entry in named.items() if entry is not None}

    def looked_at(look: Callable[..., Any]) -> Callable[..., float]:
        def distance(scores: Any, selected: Any, *values: Any) -> float:
            known = {n: v.ravel()[0] for n, v in zip(optional, values, strict=True)}
            passing = scores > known.get("threshold", -np.inf)
            chosen = np.zeros(scores.shape[:2])
            np.add.at(chosen, tuple(selected[:, :2].astype(np.int64).T), 1)
            return 0.0 if np.any(look(passing, chosen, known["count"])) else 1.0

        return distance

    def suppressed(passing: Any, chosen: Any, most: Any) -> Any:
        return chosen < np.minimum(passing.sum(axis=2), most)

    def reaching(passing: Any, chosen: Any, most: Any) -> Any:
        return (chosen == most) & (passing.sum(axis=2) > most)

    reads = (scores, Entry(node), *optional.values())
    yield _goal("overlapping boxes at", reads, looked_at(suppressed))
    yield _goal("more boxes than the maximum of", reads, looked_at(reaching))
    if threshold is not None:
        under = reached(lambda x, limit: x <= limit)
        yield _goal("scores below the threshold of", (scores, threshold), under)
    yield _goal("equal scores at", (scores,), _tied_scores)


def _tied_scores(x: Any) -> float:
    return nearest(np.abs)(np.diff(np.sort(x, axis=-1))) if x.shape[-1] > 1 else np.inf


def _of_division(node: Node) -> Iterator[Goal]:
    reads = tuple(node.inputs[:2])
    if len(reads) < 2 or all(map(never_negative, reads)):
        return
    if node.op == "Mod":
        yield _goal(
            "operands of different signs at", reads, reached(lambda a, b: a * b < 0), _is_signed
        )
    else:
        yield _goal(
            "inexact quotients below 0 at",
            reads,
            reached(lambda a, b: (a * b < 0) & (np.fmod(a, b) != 0)),
            lambda dtype: dtype.kind == "i",
        )


def _is_signed(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "if"


def _of_powers(model: Model, flow: Flow, node: Node) -> Iterator[Goal]:
    base, exponent = node.inputs[:2]
    constant = constant_of(model, exponent)
    if constant is not None and np.any(constant == np.rint(constant)) and not never_negative(base):
        yield _goal("bases below 0 at", (base,), reached(lambda x: x < 0), _is_signed)
    if flow.depends(exponent):
        yield _goal("exponents below 0 at", (exponent,), reached(lambda x: x < 0), _is_signed)
        yield _goal("exponents of 0 at", (exponent,), nearest(np.abs))


def _of_casts(flow: Flow, node: Node) -> Iterator[Goal]:
    source = node.inputs[0]
    code = node.attrs.get("to", "")
    if code == _BOOLEAN:
        yield _goal(
            "fractions below 1 at",
            (source,),
            reached(lambda x: (np.abs(x) < 1) & (x != 0)),
            lambda dtype: dtype.kind == "f",
        )
    elif code in _INTEGERS and source.node.op not in _ROUNDED:
        condition, what = _below_0, "fractions below 0 at"
        if never_negative(source) or code in ("2", "4", "12", "13"):  # undefined below 0
            condition, what = (lambda x: x != np.rint(x)), "fractions at"
        yield _goal(what, (source,), reached(condition), lambda dtype: dtype.kind == "f")
    names = flow.values.get((source.node, source.index), frozenset())
    if code in _INTEGERS and not names <= flow.bounded:
        target = np.iinfo(_INTEGERS[code])

        def narrows(dtype: np.dtype[Any]) -> bool:
            if dtype.kind not in "iu":
                return False
            own = np.iinfo(dtype)
            return own.max > target.max or own.min < target.min

        beyond = reached(lambda x: (x > target.max) | (x < target.min))
        yield _goal(f"numbers beyond {target.dtype} at", (source,), beyond, narrows)


def _of_quantization(model: Model, node: Node) -> Iterator[Goal]:
    x, scale = node.inputs[:2]
    zero = given(node, 2)
    array = None if zero is None else constant_of(model, zero)
    axis = axis_of(node, 1)
    limits = np.iinfo(np.uint8)
    if array is not None and array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)

    def along(x: Any, each: Any) -> Any:
        if each.size == 1:
            return each.ravel()[0]
        return each if each.ndim != 1 else each.reshape([-1] + [1] * (x.ndim - 1 - axis % x.ndim))

    def quotient(x: Any, scale: Any, zero: Any = None) -> Any:
        shifted = x / along(x, scale)
        return shifted if zero is None else np.rint(shifted) + along(x, zero)

    reads = (x, scale) if zero is None else (x, scale, zero)
    yield _goal(
        "halves at",
        (x, scale),
        nearest(lambda x, s: np.abs(quotient(x, s) - np.floor(quotient(x, s)) - 0.5)),
    )
    if zero is None or array is not None:
        for word, past in (
            ("above", lambda q: q > limits.max),
            ("below", lambda q: q < limits.min),
        ):
            if word == "above" or limits.min < 0 or not never_negative(x):
                yield _goal(
                    f"values {word} the range of",
                    reads,
                    reached(lambda *values, past=past: past(quotient(*values))),
                )


def _truths(one: bool, two: bool) -> Callable[..., float]:
    return reached(lambda a, b: ((a != 0) == one) & ((b != 0) == two))


def _scattered(node: Node) -> Callable[[Any], float]:
    axis = axis_of(node)

    def distance(indices: Any) -> float:
        if node.op == "ScatterND":
            rows = indices.reshape(-1, indices.shape[-1])
            return 0.0 if len(np.unique(rows, axis=0)) < len(rows) else 1.0
        if indices.shape[axis] < 2:
            return 1.0
        return 0.0 if np.any(np.diff(np.sort(indices, axis=axis), axis=axis) == 0) else 1.0

    return distance


def _of_sums(model: Model, node: Node) -> Iterator[Goal]:
    for entry, other in (node.inputs[:2], node.inputs[1::-1]):
        array = constant_of(model, other)
        if array is not None and array.size == 1 and array.dtype.kind == "f":
            epsilon = float(array.ravel()[0])
            if 0 < epsilon < _SMALL:
                yield _goal(f"values near {epsilon:g} at", (entry,), _near(epsilon, np.abs))


def _of_norms(node: Node) -> Iterator[Goal]:
    try:
        epsilon = parse_float(node.attrs.get("epsilon", "1e-5"))
    except ValueError:
        return
    first = axis_of(node, _NORMS[node.op])

    def variances(x: Any) -> Any:
        return np.var(x, axis=tuple(range(first % x.ndim, x.ndim)))

    yield _goal(f"variances near {epsilon:g} at", (node.inputs[0],), _near(epsilon, variances))


def _near(epsilon: float, what: Callable[[Any], Any]) -> Callable[[Any], float]:
    """Return the distance of values for which it matters how large an epsilon is."""

    def gaps(x: Any) -> Any:
        sizes = what(x)
        return np.fmax(np.fmax(sizes - _AROUND * epsilon, epsilon / _AROUND - sizes), 0)

    return nearest(gaps)


def _grows(before: Any, after: Any) -> float:
    return 0.0 if after.size > before.size else 1.0
