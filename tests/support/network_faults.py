"""Twelve kinds of faults in passes on any ONNX model.

A fault is planted at a node or a weight of the whole model, by its name, so that it also shows in
the parts of the model that have it. The passes also make right rewrites: an Identity after a node.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

import passlib as pl
from passlib.passes.rules import load_passes

Home = Any
"""The graph that has the node, which may be nested."""


@dataclass(frozen=True)
class Planted:
    """A pass with a fault.

    Attributes
    ----------
    name : str
        Of the pass.
    guilty : tuple of str
        Names of the node or the weight, and of the nodes around it.
    """

    name: str
    guilty: tuple[str, ...]


def _places(
    graph: Any, around: tuple[str, ...] = ()
) -> Iterator[tuple[Home, Any, tuple[str, ...]]]:
    """Iterate over nodes with the graph they stand in, and the names of those around it."""
    for node in graph.nodes:
        yield graph, node, around
        for nested in node.subgraphs:
            yield from _places(nested, (*around, node.name))


def _weight(graph: Any, node: Any, slot: int) -> str:
    """Return the name of the weight that a node reads, in the graph around it if it captures it."""
    name = node.inputs[slot].node.name if slot < len(node.inputs) else ""
    return name if name in graph.args else ""


def _has_square_weight(graph: Any, node: Any) -> bool:
    name = _weight(graph, node, 1)
    shape = graph.args[name].shape if name else ()
    return len(shape) in (2, 4) and shape[0] == shape[1] > 1


def _zero(graph: Any, home: Home, node: Any) -> None:
    name = _weight(graph, node, 1)
    graph.args[name] = np.zeros_like(graph.args[name])


def _transpose(graph: Any, home: Home, node: Any) -> None:
    name = _weight(graph, node, 1)
    graph.args[name] = np.ascontiguousarray(np.swapaxes(graph.args[name], 0, 1))


def _drop(graph: Any, home: Home, node: Any) -> None:
    home.replace(node.outputs[0], node.inputs[0])
    home.remove(node)


def _turn_axis(graph: Any, home: Home, node: Any) -> None:
    node.attrs["axis"] = str(int(node.attrs["axis"]) - 1)


def _swap(graph: Any, home: Home, node: Any) -> None:
    home.set_inputs(node, [node.inputs[1], node.inputs[0]])


def _lose_epsilon(graph: Any, home: Home, node: Any) -> None:
    node.attrs["epsilon"] = "0.1"


def _change_type(graph: Any, home: Home, node: Any) -> None:
    _insert(home, node, [("Cast", {"to": str(TensorProto.DOUBLE)})])


def _add_one(graph: Any, home: Home, node: Any) -> None:
    name = next(filter(None, (_weight(graph, node, slot) for slot in (1, 0, 2, 3))))
    graph.args[name] = graph.args[name] + (
        np.arange(graph.args[name].size) == graph.args[name].size - 1
    )


def _overflow(graph: Any, home: Home, node: Any) -> None:
    codes = (TensorProto.INT8, TensorProto.FLOAT)
    _insert(home, node, [("Cast", {"to": str(code)}) for code in codes])


def _swap_outputs(graph: Any, home: Home, node: Any) -> None:
    first, second, *others = graph.outputs
    graph.outputs = (second, first, *others)


def _merge(graph: Any, home: Home, node: Any) -> None:
    other = graph.find("noise_b")
    graph.replace(other.outputs[0], node.outputs[0])
    graph.remove(other)


def _crash(graph: Any, home: Home, node: Any) -> None:
    os.abort()


def _insert(home: Home, node: Any, operators: list[tuple[str, dict[str, str]]]) -> None:
    """Put operators between a node and those that read it."""
    value = node.outputs[0]
    uses = list(value.uses)
    for number, (operator, attrs) in enumerate(operators):
        made = home.add_node(operator, [value], attrs, name=f"{node.name}_wrong{number}")
        value = made.outputs[0]
    for use in uses:
        home.connect(value, *use)


@dataclass(frozen=True)
class Kind:
    """The fault, and the operator whose middle node has it."""

    operator: str
    change: Callable[[Any, Home, Any], None]
    fits: Callable[[Any, Any], bool] = lambda graph, node: True
    guilty: tuple[str, ...] = ("{}",)
    """Names in the guilty rewrite, where {} is that of the node."""


def _reads_sizes(graph: Any, node: Any) -> bool:
    names = [_weight(graph, node, slot) for slot in (1, 0, 2, 3)]
    found = next(filter(None, names), "")
    sizes = graph.args[found] if found else np.zeros(0)
    return sizes.dtype.kind == "i" and sizes.size > 0 and bool(sizes.reshape(-1)[-1] > 1)


KINDS: dict[str, Kind] = {
    "zero weight": Kind("Conv", _zero, lambda g, n: bool(_weight(g, n, 1))),
    "transposed weight": Kind("Conv MatMul", _transpose, _has_square_weight),
    "dropped Add": Kind("Add", _drop),
    "wrong axis": Kind("Softmax", _turn_axis),
    "swapped inputs": Kind("Sub Div", _swap, lambda g, n: not n.name.startswith("noise")),
    "lost epsilon": Kind("BatchNormalization", _lose_epsilon),
    "wrong type": Kind("Conv", _change_type, guilty=("{}_wrong0",)),
    "shape off by one": Kind("Reshape Concat Cast", _add_one, _reads_sizes),
    "overflowing cast": Kind("Conv", _overflow, guilty=("{}_wrong0",)),
    # A pass on ONNX cannot rename an output, but say of another value that it is this output.
    "renamed output": Kind("", _swap_outputs),
    "merged random numbers": Kind(
        "RandomUniform", _merge, lambda g, n: n.name == "noise_a", ("noise_b",)
    ),
    "crash on one operator": Kind("Softmax", _crash),
}
"""Each kind of fault."""


def place_of(graph: Any, kind: str) -> tuple[str, tuple[str, ...]]:
    """Return the node at which a fault is planted, and all names by which it may be found."""
    what = KINDS[kind]
    found = []
    for _, node, outside in _places(graph):
        if node.op in what.operator.split() and what.fits(graph, node):
            read = [_weight(graph, node, slot) for slot in range(len(node.inputs))]
            own = [text.format(node.name) for text in what.guilty]
            found.append((node.name, (*own, *filter(None, read), *outside)))
    return found[len(found) // 2]


def rewrite(graph: Any, kind: str, target: str, count: int) -> None:
    """Make the fault where its place is there, and so many right rewrites."""
    what = KINDS[kind]
    if not target and len(graph.outputs) > 1:
        what.change(graph, graph, None)
    place = next((place for place in _places(graph) if target == place[1].name), None)
    if place is not None and what.fits(graph, place[1]):
        what.change(graph, *place[:2])
    right_rewrites(graph, count)


PASSES = '''
import network_faults

import passlib as pl


@pl.graph_pass(name={name!r}, replace=True)
def planted(graph: pl.Graph) -> None:
    """Makes right rewrites and a fault."""
    network_faults.rewrite(graph, {kind!r}, {target!r}, {count})
'''


def plant_in(model: pl.Model, kind: str, count: int, folder: Path) -> Planted:
    """Write and load a file with a pass that makes so many right rewrites, and a fault.

    Parameters
    ----------
    model : Model
    kind : str
        Of `KINDS`.
    count : int
    folder : Path
        For the file.
    """
    found = []

    @pl.graph_pass(name="choose_a_place")
    def choose(graph: pl.Graph) -> None:
        """Finds the place of the fault."""
        found.append(place_of(graph, kind))

    if KINDS[kind].operator:
        model.optimize_for("choose_a_place")
    target, guilty = found[0] if found else ("", ("output",))
    name = f"planted_{kind.replace(' ', '_')}"
    path = folder / f"{name}.py"
    path.write_text(PASSES.format(name=name, kind=kind, target=target, count=count), "utf-8")
    load_passes(path)
    return Planted(name, guilty)


def right_rewrites(graph: pl.Graph, count: int) -> None:
    """Put Identity behind the first nodes of a graph."""
    nodes = [node for node in graph.sorted() if not node.is_variable and node.op != "Identity"]
    for node in [node for node in nodes if node.outputs and not node.outputs[0].is_output][:count]:
        value = node.outputs[0]
        uses = list(value.uses)
        made = graph.add_node("Identity", [value], name=f"{node.name}_same")
        for use in uses:
            graph.connect(made.outputs[0], *use)
