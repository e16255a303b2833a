"""Conditions inside a model that inputs should show, such as both branches of an If."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.attributes import ABSENT
from passlib.errors import printable
from passlib.graph.attributes import parse_float
from passlib.graph.node import Entry, Node
from passlib.model import Model
from passlib.workbench.flow import Flow, axis_of, constant_of, rows_of

Value = tuple[Node, int]
Seen = Mapping[Value, Any]
"""Intermediate values of a run."""

_RECTIFYING: Final = {
    # The arguments at which the function changes.
    **dict.fromkeys(("Relu", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "relu"), (0.0,)),
    **dict.fromkeys(("Abs", "Sign", "abs", "sign", "LeakyReLU"), (0.0,)),
    **dict.fromkeys(("HardSwish", "HardSigmoid"), (-3.0, 3.0)),
}

_COMPARING: Final = {
    # Pairs of operands become true where their difference is: above, at, below 0.
    "Greater": "+", "GreaterOrEqual": "+=", "Less": "-", "LessOrEqual": "-=", "Equal": "=",
    "broadcast_greater": "+", "broadcast_lesser": "-", "broadcast_equal": "=",
}  # fmt: skip

PREDICATES: Final = frozenset({"IsNaN", "IsInf"})

_CHOOSING: Final = frozenset({"Max", "Min", "broadcast_maximum", "broadcast_minimum"})

_CLIPPING: Final = frozenset({"Clip", "clip"})

_NEVER_NEGATIVE: Final = """
    Abs Exp HardSigmoid LpPool ReduceL1 ReduceL2 ReduceSumSquare Relu Sigmoid Softmax Softplus Sqrt
    abs exp relu sigmoid softmax sqrt square
"""
_PASSING: Final = """
    AveragePool Flatten GlobalAveragePool GlobalMaxPool Identity MaxPool Reshape Slice Squeeze
    Transpose Unsqueeze
    Pooling
"""


@dataclass
class Goal:
    """A condition that a run meets or not.

    Attributes
    ----------
    subject, state : str
        The node, and what no run shows of it: ``state subject`` is a sentence.
    reads : tuple of Entry
        The values that it looks at.
    distance : function
        Of these values; 0 or less if they meet the condition, else how far they are from it.
    """

    subject: str
    state: str
    reads: tuple[Entry, ...]
    distance: Callable[..., float]

    def of(self, seen: Seen) -> float:
        """Return the distance of a run; infinite if a value is missing or empty."""
        values = [seen.get((each.node, each.index)) for each in self.reads]
        if any(value is None for value in values):
            return np.inf
        arrays = [np.asarray(value) for value in values]
        if any(array.size == 0 or array.dtype.kind not in "biufV" for array in arrays):
            return np.inf
        with np.errstate(all="ignore"):
            found = self.distance(*(_real(array) for array in arrays))
        return float(found) if np.isfinite(found) else np.inf


def _real(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(array, np.float64).view(np.ndarray)


def _above(limit: float) -> Callable[[Any], float]:
    return lambda x: 0.0 if np.any(x > limit) else float(limit - _most(x)) + 1e-9


def _below(limit: float) -> Callable[[Any], float]:
    return lambda x: 0.0 if np.any(x < limit) else float(_least(x) - limit) + 1e-9


def _most(x: Any) -> Any:
    return np.max(x, initial=-np.inf, where=~np.isnan(x))


def _least(x: Any) -> Any:
    return np.min(x, initial=np.inf, where=~np.isnan(x))


def _is(wanted: bool) -> Callable[[Any], float]:
    return lambda x: 0.0 if np.any((x != 0) == wanted) else 1.0


def _gap_above(a: Any, b: Any) -> float:
    return _above(0.0)(a - b)


def _gap_below(a: Any, b: Any) -> float:
    return _below(0.0)(a - b)


def _meets(a: Any, b: Any) -> float:
    return float(_least(np.abs(a - b)))


def _parts(a: Any, b: Any) -> float:
    return 0.0 if np.any(a != b) else 1.0


def goals_of(model: Model, flow: Flow) -> list[Goal]:
    """Return the conditions of a graph, without its nested ones, that depend on inputs."""
    found: list[Goal] = []
    producers = {}
    deciding: set[Value] = set()
    for node in model.symbol.nodes():
        for index in range(max(node.num_outputs, 1)):
            producers[node, index] = node
        if node.op in ("If", "Where", "where") and node.inputs:
            deciding.add((node.inputs[0].node, node.inputs[0].index))
    for node in model.symbol.nodes():
        if node.is_variable or not any(map(flow.depends, node.inputs)):
            continue
        found += _goals(model, flow, node, deciding)
    return found


def _goals(model: Model, flow: Flow, node: Node, deciding: set[Value]) -> Iterator[Goal]:
    name = f"{printable(node.op)} {printable(node.name)!r}"
    first = node.inputs[0]
    if node.op in _RECTIFYING or (node.op, node.attrs.get("act_type")) == ("Activation", "relu"):
        limits = _RECTIFYING.get(node.op, (0.0,))
        if not (limits[0] == 0 and _never_negative(first)):
            yield Goal(name, f"values below {limits[0]:g} at", (first,), _below(limits[0]))
        yield Goal(name, f"values above {limits[-1]:g} at", (first,), _above(limits[-1]))
    elif node.op in _CLIPPING:
        low, high = _limits(model, node)
        if low is not None and not (low <= 0 and _never_negative(first)):
            yield Goal(name, f"values below the minimum {low:g} of", (first,), _below(low))
        if high is not None:
            yield Goal(name, f"values above the maximum {high:g} of", (first,), _above(high))
    elif node.op in ("If", "Where", "where") and flow.depends(first):
        words = ("then branch", "else branch") if node.op == "If" else ("first", "second")
        what = "the {} of" if node.op == "If" else "elements of the {} value of"
        for wanted, word in zip((True, False), words, strict=True):
            yield _decided(name, what.format(word), first, wanted)
    elif node.op in _COMPARING and (node, 0) not in deciding:
        entry = Entry(node)
        yield _decided(name, "true results of", entry, True)
        yield _decided(name, "false results of", entry, False)
    elif node.op in PREDICATES:
        yield Goal(name, "true results of", (Entry(node),), _is(True))
    elif node.op in _CHOOSING and len(node.inputs) == 2:
        yield Goal(name, "a larger first value at", node.inputs[:2], _gap_above)
        yield Goal(name, "a larger second value at", node.inputs[:2], _gap_below)
    elif node.op == "Loop" and any(map(flow.depends, node.inputs[:2])):
        yield from _iterations(name, node)


def _decided(subject: str, state: str, entry: Entry, wanted: bool) -> Goal:
    """Return the goal that a condition is true, or false; with the distance of its operands."""
    node = entry.node
    while node.op in ("Not", "Identity", "Squeeze", "Reshape", "Unsqueeze") and node.inputs:
        wanted ^= node.op == "Not"
        entry = node.inputs[0]
        node = entry.node
    kind = _COMPARING.get(node.op, "")
    if not kind:
        return Goal(subject, state, (entry,), _is(wanted))
    if kind == "=":
        return Goal(subject, state, node.inputs[:2], _meets if wanted else _parts)
    above = kind.startswith("+") == wanted
    reads = node.inputs[:2]
    if kind.endswith("=") == wanted:  # at 0 as well
        return Goal(subject, state, reads, _least_at if above else _most_at)
    return Goal(subject, state, reads, _gap_above if above else _gap_below)


def _least_at(a: Any, b: Any) -> float:
    return 0.0 if np.any(a >= b) else float(-_most(a - b))


def _most_at(a: Any, b: Any) -> float:
    return 0.0 if np.any(a <= b) else float(_least(a - b))


def _iterations(name: str, node: Node) -> Iterator[Goal]:
    count, go = node.inputs[0], node.inputs[1]
    reads = tuple(entry for entry in (count, go) if entry.node.name != ABSENT)
    is_counted = count.node.name != ABSENT

    def runs(*values: Any) -> float:
        return 0.0 if all(np.all(value > 0) for value in values) else 1.0

    def stands(*values: Any) -> float:
        return 0.0 if any(np.all(value <= 0) for value in values) else 1.0

    def repeats(*values: Any) -> float:
        return 0.0 if runs(*values) == 0 and np.all(values[0] > 1) else 1.0

    yield Goal(name, "an iteration of", reads, runs)
    if is_counted:
        yield Goal(name, "a second iteration of", reads, repeats)
    yield Goal(name, "no iteration at all of", reads, stands)


def _never_negative(entry: Entry) -> bool:
    node = entry.node
    while node.op in _PASSING.split() and node.inputs:
        node = node.inputs[0].node
    if node.op in ("Activation", "LeakyReLU"):
        return node.attrs.get("act_type") in ("relu", "sigmoid")
    if node.op == "Mul" and len(node.inputs) == 2:
        return node.inputs[0] == node.inputs[1]
    return node.op in _NEVER_NEGATIVE.split()


def _limits(model: Model, node: Node) -> tuple[float | None, float | None]:
    found: list[float | None] = []
    for position, keys in enumerate((("min", "a_min"), ("max", "a_max")), 1):
        value: float | None = None
        if len(node.inputs) > position:
            array = constant_of(model, node.inputs[position])
            value = float(array.ravel()[0]) if array is not None and array.size == 1 else None
        text = next((node.attrs[key] for key in keys if key in node.attrs), None)
        if value is None and text is not None:
            try:
                value = parse_float(text)
            except ValueError:
                value = None
        # A limit at the edge of the type is none.
        found.append(value if value is not None and abs(value) < 1e30 else None)
    return found[0], found[1]


def unread_rows(model: Model, flow: Flow, runs: Sequence[Seen]) -> Iterator[tuple[str, int, int]]:
    """Yield each node that selects rows of a table, the number of unread rows, and of all."""
    for node in model.symbol.nodes():
        if node.op not in ("Gather", "Embedding", "take") or len(node.inputs) < 2:
            continue
        table, index = node.inputs[:2]
        if node.op == "Embedding":
            table, index = index, table
        if not runs or flow.depends(table) or not flow.depends(index):
            continue
        tables = (seen.get((table.node, table.index)) for seen in runs)
        rows_seen = next((each for each in tables if each is not None), None)
        if rows_seen is None:
            continue
        rows = rows_of(np.shape(rows_seen), axis_of(node))
        read = np.zeros(rows, np.bool_)
        for seen in runs:
            values = seen.get((index.node, index.index))
            if values is not None:
                chosen = np.asarray(values).astype(np.int64).ravel()
                read[chosen[(chosen >= -rows) & (chosen < rows)]] = True
        missing = rows - int(np.count_nonzero(read))
        if missing:
            yield f"{printable(node.op)} {printable(node.name)!r}", missing, rows


def watched_within(node: Node) -> list[str]:
    """Return the operators in the nested graphs of a node that have conditions."""
    return sorted({each.op for each in _nested(node)})


def _nested(node: Node) -> Iterator[Node]:
    pending = list(node.subgraphs)
    watched = _RECTIFYING.keys() | _CLIPPING | _CHOOSING | {"If", "Where", "Loop"}
    while pending:
        for each in pending.pop().nodes():
            pending.extend(each.subgraphs)
            if each.op in watched:
                yield each
