"""Tensors of DLPrimitives are memory: random networks, run as by the original program.

`run_file` keeps a NumPy array for each tensor, with views for aliases, and writes in place where
the file does. Graphs are run without memory. Both must agree, before and after random passes.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import passlib
from dlprim_files import dialect
from passlib import _core
from passlib.dialects.protocol import ModelData

SHAPE = (2, 1, 3)
SHAPES = [(2, 1, 3), (2, 3), (1, 6), (6,)]
SIZE = 6
quick = settings(
    max_examples=int(os.environ.get("PASSLIB_FUZZ_EXAMPLES", "200")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
Array = np.ndarray[Any, Any]


def compute(kind: str, options: dict[str, Any], inputs: list[Array]) -> Array:
    if kind == "Elementwise":
        return options.get("coef1", 1.0) * inputs[0] + inputs[1]
    if kind == "Hardtanh":
        return np.clip(inputs[0], options["min_val"], options["max_val"])
    if kind == "Threshold":
        return (inputs[0] > options["threshold"]).astype(np.float64)
    if kind == "Activation":
        chosen = options.get("activation", "identity")
        return np.maximum(inputs[0], 0) if chosen == "relu" else inputs[0].copy()
    raise AssertionError(kind)


def run_file(text: str, feeds: dict[str, Array]) -> dict[str, Array]:
    """Run a network as the original program does, with tensors as memory."""
    network = json.loads(text)
    memory = {item["name"]: feeds[item["name"]].copy() for item in network["inputs"]}
    for layer in network["operators"]:
        options = layer.get("options", {})
        inputs = [memory[name] for name in layer["inputs"]]
        (output,) = layer["outputs"]
        if layer["type"] == "Reshape":
            memory[output] = inputs[0].reshape(options["dims"])
            assert np.shares_memory(memory[output], inputs[0])
            continue
        result = compute(layer["type"], options, inputs)
        if output in memory:
            assert output in layer["inputs"]
            memory[output][...] = result
        else:
            memory[output] = result
    names = [item if isinstance(item, str) else item["name"] for item in network["outputs"]]
    return {name: memory[name].copy() for name in names}


def run_graph(graph: _core.Graph, feeds: dict[str, Array]) -> list[Array]:
    """Run a graph, in which every node has its own output."""
    values: dict[int, Array] = {}

    def value(position: int) -> Array:
        if position in values:
            return values[position]
        node = nodes[position]
        if node.op == "null":
            values[position] = feeds[node.name]
            return values[position]
        inputs = [value(source) for source, _, _ in node.inputs]
        if node.op == "Reshape":
            values[position] = inputs[0].reshape(json.loads(node.attrs["dims"]))
        else:
            shown = {k: v for k, v in node.attrs.items() if not k.startswith("__")}
            options = {k: v if k == "activation" else float(v) for k, v in shown.items()}
            values[position] = compute(node.op, options, inputs)
        return values[position]

    nodes = graph.nodes()
    return [value(position) for position, _, _ in graph.heads()]


def pointwise(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(["Hardtanh", "Threshold", "Activation"]))
    limit = draw(st.sampled_from([0.25, 0.5, 0.75]))
    return kind, {
        "Hardtanh": {"min_val": -limit, "max_val": limit},
        "Threshold": {"threshold": limit},
        "Activation": {"activation": "relu"},
    }[kind]


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    tensors = {"data": SHAPE}
    if draw(st.booleans()):
        tensors["more"] = (2, 3)
    inputs = [{"name": name, "shape": list(shape)} for name, shape in tensors.items()]
    layers = []
    for number in range(draw(st.integers(1, 9))):
        source = draw(st.sampled_from(sorted(tensors)))
        name = f"t{number}"
        same = sorted(t for t, shape in tensors.items() if shape == tensors[source])
        choice = draw(st.sampled_from(["alias", "in place", "new", "sum", "sum in place"]))
        sources, options = [source], {}
        if choice == "alias":
            kind = "Reshape"
            tensors[name] = draw(st.sampled_from(SHAPES))
            options = {"dims": list(tensors[name])}
        elif choice.startswith("sum"):
            kind, options = "Elementwise", {"coef1": 0.5}
            sources = [source, draw(st.sampled_from(same))]
            tensors[name] = tensors[source]
        else:
            kind, options = pointwise(draw)
            tensors[name] = tensors[source]
        if choice.endswith("in place"):
            del tensors[name]
            name = draw(st.sampled_from(sources))
        layer = {"name": f"op{number}", "type": kind, "inputs": sources, "outputs": [name]}
        layers.append({**layer, "options": options})
    outputs = draw(st.lists(st.sampled_from(sorted(tensors)), min_size=1, max_size=4, unique=True))
    return {"inputs": inputs, "operators": layers, "outputs": outputs}


def feeds_of(network: dict[str, Any]) -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {item["name"]: random.uniform(-1, 1, item["shape"]) for item in network["inputs"]}


def shapes_of(nodes: list[_core.NodeTuple], feeds: dict[str, Array]) -> list[tuple[int, ...]]:
    shapes: list[tuple[int, ...]] = []
    for node in nodes:
        if node.op == "null":
            shapes.append(feeds[node.name].shape)
        elif node.op == "Reshape":
            shapes.append(tuple(json.loads(node.attrs["dims"])))
        else:
            shapes.append(shapes[node.inputs[0][0]])
    return shapes


@st.composite
def edits(
    draw: st.DrawFn, nodes: list[_core.NodeTuple], heads: list[Any], feeds: dict[str, Array]
) -> None:
    """Rewire inputs and outputs, insert new operators, remove old ones."""
    for number in range(draw(st.integers(1, 4))):
        shapes = shapes_of(nodes, feeds)
        action = draw(st.sampled_from(["rewire", "head", "insert", "append", "remove"]))
        operators = [i for i, node in enumerate(nodes) if node.op != "null"]
        position = draw(st.sampled_from(operators))
        op, inputs = nodes[position].op, nodes[position].inputs
        alike = [i for i in range(position) if shapes[i] == shapes[inputs[0][0]]]
        if action == "rewire" and op != "Reshape":
            slot = draw(st.integers(0, len(inputs) - 1))
            inputs[slot] = (draw(st.sampled_from(alike)), 0, 0)
        elif action == "remove" and op != "Reshape":
            source = inputs[0]
            for node in nodes:
                node.inputs[:] = [source if e[0] == position else e for e in node.inputs]
            heads[:] = [source if entry[0] == position else entry for entry in heads]
        elif action == "head":
            slot = draw(st.integers(0, len(heads) - 1))
            heads[slot] = (draw(st.integers(0, len(nodes) - 1)), 0, 0)
        else:
            kind, options = pointwise(draw)
            texts = {key: str(value) for key, value in options.items()}
            source = draw(st.integers(0, len(nodes) - 1))
            entries = [(source, 0, 0)]
            nodes.append(_core.NodeTuple(kind, f"new{number}", texts, entries, 1, [], []))
            slot = draw(st.integers(0, len(heads) - 1))
            heads[slot] = (len(nodes) - 1, 0, 0)


def save(graph: _core.Graph, attributes: Any, template: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.json"
        dialect.save(path, ModelData(graph, attributes, {}, {}, template))
        text = path.read_text()
        passlib.load(path, "dlprim")  # sound in the original program too
        return text


def read(network: dict[str, Any]) -> ModelData:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.json"
        path.write_text(json.dumps(network))
        return dialect.load(path)


def same_outputs(network: dict[str, Any], wanted: list[Array], found: dict[str, Array]) -> None:
    """Compare in order; names stay, except those that an input of that name still needs."""
    inputs = {item["name"] for item in network["inputs"]}
    for name, (new, array), expected in zip(network["outputs"], found.items(), wanted, strict=True):
        assert new == name or name in inputs
        np.testing.assert_array_equal(array, expected)


@quick
@given(networks())
def test_versions_are_what_memory_holds(network: dict[str, Any]) -> None:
    feeds = feeds_of(network)
    data = read(network)
    wanted = run_file(json.dumps(network), feeds)
    for found, name in zip(run_graph(data.graph, feeds), network["outputs"], strict=True):
        np.testing.assert_array_equal(found, wanted[name])
    assert save(data.graph, data.attributes, data.template) == json.dumps(network)
    # Without the file, the names alone must lead to the same results.
    text = save(data.graph, data.attributes, None)
    same_outputs(network, list(wanted.values()), run_file(text, feeds))


@quick
@given(st.data())
def test_edited_graphs_are_written_as_they_are(data: st.DataObject) -> None:
    network = data.draw(networks())
    feeds = feeds_of(network)
    model = read(network)
    nodes, heads = model.graph.nodes(), model.graph.heads()
    data.draw(edits(nodes, heads, feeds))
    graph = _core.Graph.build(nodes, heads)
    graph.check()
    wanted = run_graph(graph, feeds)
    text = save(graph, model.attributes, model.template)
    same_outputs(network, wanted, run_file(text, feeds))
