"""The values of the nodes of two models, one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib import pages
from passlib.dialects.onnx.attributes import ID
from passlib.errors import PasslibError, printable, short_repr
from passlib.graph.node import Node
from passlib.model import Model
from passlib.model.graph import ModelGraph
from passlib.pages import origin_of, pair_nodes
from passlib.runtime.profiling import profile
from passlib.workbench.equal_values import Side, pair_values
from passlib.workbench.nested import NestedGraph, nested_graphs
from passlib.workbench.numbers import Difference, Tolerance, difference
from passlib.workbench.parts import values_of
from passlib.workbench.rounding import Rounding, half_unit
from passlib.workbench.two_files import at_the_same_sets, message_of

Fed = tuple[Model, Mapping[str, Any]]
"""A model and its inputs by name."""


@short_repr
@dataclass(frozen=True)
class NodeDifference:
    """A node whose value differs although the values before it agree.

    Attributes
    ----------
    name, op : str
        In the second model.
    compared : int
        Number of compared values.
    """

    name: str
    op: str
    difference: Difference
    compared: int

    def __str__(self) -> str:
        return printable(
            f"first different node: {self.name} ({self.op}), {self.difference.what}, "
            f"absolute {self.difference.absolute:.3g}; {self.compared} values compared"
        )


@short_repr
@dataclass(frozen=True)
class ValueDifference:
    """A value that two models compute.

    Attributes
    ----------
    name, op : str
        The value in the second model, and the operator that computes it. A value of a nested graph
        is ``node/attribute/name``.
    first : str
        The value in the first model.
    mean : float
        Mean absolute difference of the elements that are finite in both.
    cosine : float
        Cosine of the angle between the finite elements as vectors; NaN if one of them is zero.
    seconds : tuple of (float or None)
        Time of the node in the first and the second model, in ONNX Runtime without optimizations,
        the best of three runs; None if it is not known, as in models of other dialects than ONNX.
    place : tuple of str
        The node and the attribute of the nested graph that it is in, from the outermost one.
    """

    name: str
    op: str
    first: str
    difference: Difference
    mean: float
    cosine: float
    seconds: tuple[float | None, float | None] = (None, None)
    place: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as JSON values."""
        found = {"name": self.name, "operator": self.op, "name_in_a": self.first}
        numbers = {"mean": self.mean, "cosine": None if np.isnan(self.cosine) else self.cosine}
        times = {"seconds": dict(zip("ab", self.seconds, strict=True))}
        return {**found, **numbers, **times, "difference": asdict(self.difference)}


def value_differences(first: Fed, second: Fed, tolerance: Tolerance) -> tuple[ValueDifference, ...]:
    """Compare the values that two models both compute, in the order of the second one.

    Values are paired like the nodes in `diff`, or by the origin of a node that a rule created. If
    most values of two ONNX models have no pair of this kind, because a tool named them anew, they
    are paired by what they compute. Values of the nested graphs that both models run, of a Loop in
    its first eight iterations, or until one differs, come before the value of the If or Loop.
    """
    left, right = values_of(*first), values_of(*second)
    rounding = _Rounding(first, second[0])
    tolerance = replace(tolerance, half=rounding.unit is not None)
    nodes = {node.name: node for node in second[0].symbol.nodes()}
    old = pair_nodes(first[0].symbol, second[0].symbol)
    found = []
    for (name, index), value in right.items():
        node = nodes[name]
        # A node into which others were folded keeps its name and has their value.
        stands_for = origin_of(node)[-1:] or ([old[node].name] if node in old else [])
        if stands_for and (stands_for[0], index) in left:
            labels = _label(name, index), _label(stands_for[0], index)
            one = left[stands_for[0], index]
            repeats = partial(rounding.of, labels[1])
            found.append(_of(*labels, node.op, one, value, tolerance, repeats))
    if 2 * len(found) < len(right) and first[0].dialect == second[0].dialect == "onnx":
        found = _by_what_they_compute(first, second, tolerance, rounding)
    return tuple(_with_nested(found, _seen(first, left), _seen(second, right), tolerance))


Seen = tuple[Model, Mapping[tuple[Node, int], Any]]
"""A model, and the values of its nodes in a run."""


def _seen(fed: Fed, values: Mapping[tuple[str, int], Any]) -> Seen:
    model, inputs = fed
    given = {**model.args, **model.aux, **inputs}
    seen = {}
    for node in model.symbol.nodes():
        for index in range(max(node.num_outputs, 1)):
            value = values.get((node.name, index))
            seen[node, index] = given.get(node.name) if node.is_variable else value
    return model, seen


def _with_nested(
    found: Sequence[ValueDifference], first: Seen, second: Seen, tolerance: Tolerance
) -> Iterator[ValueDifference]:
    """Yield the differences, those in the nested graphs of a node before those of the node."""
    inner: list[dict[str, dict[str, NestedGraph]]] = [{}, {}]
    for by_node, (model, values) in zip(inner, (first, second), strict=True):
        for graph in nested_graphs(model, values):
            by_node.setdefault(graph.node.name, {})[graph.attribute] = graph
    olds, news = (node_labels(model) for model, _ in (first, second))
    for each in found:
        old, new = olds.get(each.first, each.first), news.get(each.name, each.name)
        others = inner[0].get(old.partition(":")[0], {})
        for attribute, graph in inner[1].pop(new.partition(":")[0], {}).items():
            if attribute in others:
                yield from _inside(others[attribute], graph, first, second, tolerance)
        yield each


_MOST_EXECUTIONS: Final = 8
"""Iterations of a Loop that are compared."""


def _inside(
    one: NestedGraph, two: NestedGraph, first: Seen, second: Seen, tolerance: Tolerance
) -> Iterator[ValueDifference]:
    """Yield the largest difference of each value of two nested graphs."""
    worst: dict[str, ValueDifference] = {}
    executions = zip(one.executions(first[1]), two.executions(second[1]), strict=False)
    for left, right in islice(executions, _MOST_EXECUTIONS):
        values = value_differences((one.model, left), (two.model, right), tolerance)
        for each in values:
            known = worst.setdefault(each.name, each)
            if known.difference.worse(each.difference) is not known.difference:
                worst[each.name] = each
        if not all(each.difference.equal for each in values):
            break  # what comes later follows from this
    olds, news = node_labels(one.model), node_labels(two.model)
    for each in worst.values():
        yield replace(
            each,
            name=f"{two.node.name}/{two.attribute}/{news.get(each.name, each.name)}",
            place=(two.node.name, two.attribute, *each.place),
            first=f"{one.node.name}/{one.attribute}/{olds.get(each.first, each.first)}",
        )


def with_seconds(
    first: Fed, second: Fed, values: Sequence[ValueDifference]
) -> tuple[ValueDifference, ...]:
    """Return the values with the time that each node takes in both models."""
    before, after = _seconds(*first), _seconds(*second)
    return tuple(
        replace(each, seconds=(before.get(each.first), after.get(each.name))) for each in values
    )


def _seconds(model: Model, inputs: Mapping[str, Any]) -> dict[str, float]:
    """Measure the node of each value; nothing for models that ONNX Runtime cannot run so."""
    if model.dialect != "onnx":
        return {}
    message = message_of(model, {})
    names = {str(number): list(node.output) for number, node in enumerate(message.graph.node)}
    for number, node in enumerate(message.graph.node):
        node.name = str(number)
    with tempfile.TemporaryDirectory() as folder:
        try:
            events = profile(message.SerializeToString(), inputs, Path(folder))
        except PasslibError:
            return {}
    labels = node_labels(model)
    best: dict[str, float] = {}
    for name, seconds in events:
        for value in names.get(name, ()):
            for key in (value, labels.get(value, value)):
                best[key] = min(best.get(key, seconds), seconds)
    return best


def node_labels(model: Model) -> dict[str, str]:
    """Return the names of nodes, with the number of the output, by the names of values."""
    internals = model.symbol.get_internals()
    names = zip(internals.list_outputs(), internals.entries, strict=True)
    return {name: _label(entry.node.name, entry.index) for name, entry in names}


def first_difference(values: tuple[ValueDifference, ...]) -> NodeDifference | None:
    """Return the first node whose value differs, or None.

    All values before it agree, so the fault is in this node, or between it and those values.
    """
    for each in values:
        if not each.difference.equal:
            return NodeDifference(each.name, each.op, each.difference, len(values))
    return None


class _Rounding:
    """The values of a model with other rounding, computed when they are needed first."""

    def __init__(self, fed: Fed, other: Model) -> None:
        self._model, self._inputs = fed
        self.unit = None if half_unit(self._model) else half_unit(other)
        self._runs: list[dict[str, Any]] | None = None

    def of(self, label: str) -> list[Any]:
        """Return a value of each run."""
        if self._runs is None:
            found = Rounding(self._model, _labelled, self.unit).outputs_of(self._inputs)
            self._runs = [values for (values,) in found]
        return [values[label] for values in self._runs if label in values]


def _labelled(model: Model, inputs: Mapping[str, Any]) -> list[Any]:
    return [{_label(*key): value for key, value in values_of(model, inputs).items()}]


def _by_what_they_compute(
    first: Fed, second: Fed, tolerance: Tolerance, rounding: _Rounding
) -> list[ValueDifference]:
    shapes = {name: np.shape(array) for name, array in first[1].items()}
    before, after = map(Side, at_the_same_sets(first[0], second[0], shapes))
    given = dict(first[1])
    pairing = pair_values(before, after, [given], tolerance)
    left = before.computed(given, list(before.producers), {})
    right = after.computed(dict(second[1]), list(after.producers), {})
    labels = node_labels(first[0])
    found = []
    for new, (number, _) in after.producers.items():
        old = pairing.old.get(new)
        if old in left and new in right:
            repeats = partial(rounding.of, labels.get(old, old))
            op = after.nodes[number].op_type
            found.append(_of(new, old, op, left[old], right[new], tolerance, repeats))
    return found


def drawn_side(model: Model, values: Sequence[ValueDifference]) -> pages.Side:
    """Return the second model, with the differences and times of its values on its nodes."""
    labels = node_labels(model)
    named = [replace(each, name=labels.get(each.name, each.name)) for each in values]
    return _drawn(model.symbol, {**model.args, **model.aux}, named)


def _drawn(
    graph: ModelGraph, weights: Mapping[str, Any], values: Sequence[ValueDifference]
) -> pages.Side:
    notes: dict[str, str] = {}
    lines: dict[str, str] = {}
    nested: dict[tuple[str, int], pages.Side] = {}
    own: dict[str, list[ValueDifference]] = {}
    for each in values:
        if not each.place:
            own.setdefault(each.name.partition(":")[0], []).append(each)
    for node in graph.nodes():
        # A model of a nested graph numbers the nodes without names anew.
        numbered = f"{node.op}_{node.attrs.get(ID, '').rpartition('.')[2]}"
        found = own.get(node.name) or own.get(numbered, [])
        wrong = [each for each in found if not each.difference.equal]
        if wrong:
            notes[node.name] = "; ".join(map(_note_of, wrong))
        if found:
            lines[node.name] = _line_of(found)
        for number, inner in enumerate(node.subgraphs):
            attribute = _attribute_of(node, number)
            inside = [
                replace(each, place=each.place[2:], name=each.name.removeprefix(prefix))
                for each in values
                for prefix in [f"{node.name}/{attribute}/"]
                if each.place[:2] == (node.name, attribute)
            ]
            if inside:
                nested[node.name, number] = _drawn(inner, {}, inside)
    return pages.Side(graph, weights, notes, lines, nested)


def _attribute_of(node: Node, number: int) -> str:
    text = f"subgraph[{number}]"
    return next((name for name, value in node.attrs.items() if value == text), "")


def _note_of(value: ValueDifference) -> str:
    """Say how a value differs."""
    found = value.difference
    return (
        f"value: {found.what}, largest {found.absolute:.3g}, {found.of_tolerance}, "
        f"mean {value.mean:.3g}, cosine {value.cosine:.6g}"
    )


def _line_of(values: Sequence[ValueDifference]) -> str:
    """Return the largest difference and the times of a node."""
    largest = max(each.difference.absolute for each in values)
    before, after = values[0].seconds
    times = [f"{1e6 * each:.3g}" for each in (before, after) if each is not None]
    return f"off by {largest:.3g}" + (f", {' → '.join(times)} us" if times else "")


def _label(name: str, index: int) -> str:
    return f"{name}:{index}" if index else name


def _of(
    name: str,
    first: str,
    op: str,
    left: Any,
    right: Any,
    tolerance: Tolerance,
    repeats: Callable[[], Sequence[Any]],
) -> ValueDifference:
    found = difference(name, left, right, tolerance, repeats)
    mean, cosine = 0.0, 1.0
    one, two = np.asarray(left), np.asarray(right)
    if one.shape == two.shape and one.dtype.kind in "biuf" and two.dtype.kind in "biuf":
        one, two = one.astype(np.float64).ravel(), two.astype(np.float64).ravel()
        finite = np.isfinite(one) & np.isfinite(two)
        one, two = one[finite], two[finite]
        mean = float(np.abs(one - two).mean()) if one.size else 0.0
        length = float(np.linalg.norm(one) * np.linalg.norm(two))
        cosine = float(np.clip(one @ two / length, -1, 1)) if length else float("nan")
    return ValueDifference(name, op, first, found, mean, cosine)
