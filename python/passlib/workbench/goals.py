"""Conditions inside a model that inputs should show, such as both branches of an If."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.attributes import ABSENT
from passlib.errors import printable
from passlib.graph.attributes import parse_float
from passlib.graph.node import Entry, Node
from passlib.model import Model
from passlib.workbench.distances import (
    Goal,
    Seen,
    above,
    below,
    exceeds,
    falls_below,
    gap_above,
    gap_below,
    least_at,
    meets,
    most_at,
    parts,
    reached,
    truth,
)
from passlib.workbench.edges import edges_of
from passlib.workbench.flow import (
    Flow,
    axis_of,
    constant_of,
    depth_of,
    given,
    never_negative,
    rows_of,
)

Value = tuple[Node, int]

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

SELECTING: Final = frozenset({"Embedding", "Gather", "GatherND", "take"})
"""Operators that select rows of a table."""

_CHOOSING: Final = frozenset({"Max", "Min", "broadcast_maximum", "broadcast_minimum"})

_MOST_CHOSEN: Final = 8
"""Operands of Max and Min that are looked at."""

_CLIPPING: Final = frozenset({"Clip", "clip"})


def goals_of(model: Model, flow: Flow) -> list[Goal]:
    """Return the conditions of a graph, without its nested ones, that depend on inputs."""
    found: list[Goal] = []
    deciding: set[Value] = set()
    for node in model.symbol.nodes():
        if node.op in ("If", "Where", "where") and node.inputs:
            deciding.add((node.inputs[0].node, node.inputs[0].index))
    for node in model.symbol.nodes():
        if node.is_variable or not any(map(flow.depends, node.inputs)):
            continue
        found += _goals(model, flow, node, deciding)
        found += edges_of(model, flow, node)
    return found


def _goals(model: Model, flow: Flow, node: Node, deciding: set[Value]) -> Iterator[Goal]:
    name = f"{printable(node.op)} {printable(node.name)!r}"
    first = node.inputs[0]
    if node.op in _RECTIFYING or (node.op, node.attrs.get("act_type")) == ("Activation", "relu"):
        limits = _RECTIFYING.get(node.op, (0.0,))
        if not (limits[0] == 0 and never_negative(first)):
            yield Goal(name, f"values below {limits[0]:g} at", (first,), below(limits[0]))
        yield Goal(name, f"values above {limits[-1]:g} at", (first,), above(limits[-1]))
    elif node.op in _CLIPPING:
        low, high = _limits(model, node)
        if low is not None and not (low <= 0 and never_negative(first)):
            yield Goal(name, f"values below the minimum {low:g} of", (first,), below(low))
        if high is not None:
            yield Goal(name, f"values above the maximum {high:g} of", (first,), above(high))
        low_entry, high_entry = (given(node, place) for place in (1, 2))
        if low_entry is not None and flow.depends(low_entry):
            yield Goal(name, "values below the minimum of", (first, low_entry), gap_below)
        if high_entry is not None and flow.depends(high_entry):
            yield Goal(name, "values above the maximum of", (first, high_entry), gap_above)
    elif node.op in ("If", "Where", "where") and flow.depends(first):
        words = ("then branch", "else branch") if node.op == "If" else ("first", "second")
        what = "the {} of" if node.op == "If" else "elements of the {} value of"
        for wanted, word in zip((True, False), words, strict=True):
            yield _decided(name, what.format(word), first, wanted)
    elif node.op in _COMPARING and (node, 0) not in deciding:
        entry = Entry(node)
        yield _decided(name, "true results of", entry, True)
        yield _decided(name, "false results of", entry, False)
    elif node.op == "IsNaN":
        yield Goal(name, "true results of", (Entry(node),), truth(True))
    elif node.op == "IsInf":
        yield Goal(name, "infinity at", (first,), reached(lambda x: x == np.inf))
        yield Goal(name, "minus infinity at", (first,), reached(lambda x: x == -np.inf))
    elif node.op in _CHOOSING and len(node.inputs) == 2:
        yield Goal(name, "a larger first value at", node.inputs[:2], gap_above)
        yield Goal(name, "a larger second value at", node.inputs[:2], gap_below)
    elif node.op in _CHOOSING and 2 < len(node.inputs) <= _MOST_CHOSEN:
        word, chosen = ("largest", exceeds) if node.op == "Max" else ("smallest", falls_below)
        for place, entry in enumerate(node.inputs):
            others = (*node.inputs[:place], *node.inputs[place + 1 :])
            yield Goal(name, f"the {word} value in input {place + 1} of", (entry, *others), chosen)
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
        return Goal(subject, state, (entry,), truth(wanted))
    if kind == "=":
        return Goal(subject, state, node.inputs[:2], meets if wanted else parts)
    above = kind.startswith("+") == wanted
    reads = node.inputs[:2]
    if kind.endswith("=") == wanted:  # at 0 as well
        return Goal(subject, state, reads, least_at if above else most_at)
    return Goal(subject, state, reads, gap_above if above else gap_below)


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
        if node.op not in (*SELECTING, "OneHot") or len(node.inputs) < 2:
            continue
        table, index = node.inputs[:2]
        if node.op in ("Embedding", "OneHot"):
            table, index = index, table
        if not runs or flow.depends(table) or not flow.depends(index):
            continue
        if node.op == "OneHot":
            rows = depth_of(model, table)
        else:
            tables = (seen.get((table.node, table.index)) for seen in runs)
            rows_seen = next((each for each in tables if each is not None), None)
            rows = 0 if rows_seen is None else rows_of(np.shape(rows_seen), axis_of(node))
        read = np.zeros(rows, np.bool_)
        for seen in runs:
            values = seen.get((index.node, index.index))
            if values is not None:
                chosen = np.asarray(values).astype(np.int64)
                chosen = (chosen[..., 0] if node.op == "GatherND" else chosen).ravel()
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
