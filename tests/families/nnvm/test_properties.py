"""Generated graphs of NNVM and TVM stay consistent, and damaged files raise our errors only."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import passlib
from nnvm_files import OWN, WRITTEN, text_of
from passlib import dialects
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.families.nnvm.reading.file import load
from passlib.families.nnvm.writing.file import render
from plugin_build import PLUGINS, Builder, library

NNVM = dialects.find("nnvm")
QUIET = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=5)


@pytest.fixture(scope="module", autouse=True)
def passes() -> Iterator[None]:
    builder = Builder({"good": PLUGINS["good"], "nnvm": library("nnvm.cc")}, ".so")
    for name in ("good", "nnvm"):
        passlib.library.load(builder(name), verbose=False)
    yield
    builder.close()


@st.composite
def graphs(draw: st.DrawFn, nested: bool = True) -> dict[str, Any]:
    """A graph in any style in use, with or without lists for each output."""
    count = draw(st.integers(1, 8))
    key = draw(st.sampled_from(["attrs", "attr", "param"]))
    size = draw(st.sampled_from([2, 3]))
    outputs = [draw(st.integers(1, 3)) for _ in range(count)]
    nodes: list[dict[str, Any]] = []
    for place in range(count):
        variable = place == 0 or draw(st.booleans())
        node: dict[str, Any] = {
            "op": "null" if variable else draw(st.sampled_from(["relu", "tvm_op", "any"])),
            "name": f"n{place}" if variable else draw(st.sampled_from(["n0", "same", "", "x"])),
        }
        if node["op"] == "tvm_op":
            node["attrs"] = {
                "func_name": draw(st.sampled_from(["f", "__nop", "__copy"])),
                "num_outputs": str(outputs[place]),
                "flatten_data": "0",
            }
        elif draw(st.booleans()):
            node[key] = draw(st.dictionaries(WORDS, WORDS, max_size=3))
        if variable:
            outputs[place] = 1
        node["inputs"] = []
        if not variable:
            for _ in range(draw(st.integers(0, 3))):
                other = draw(st.integers(0, place - 1))
                entry = [other, draw(st.integers(0, outputs[other] - 1)), draw(st.integers(0, 1))]
                node["inputs"].append(entry[:size])
            if draw(st.booleans()):
                node["control_deps"] = [draw(st.integers(0, place - 1))]
            if nested and draw(st.integers(0, 4)) == 0:
                node["subgraphs"] = [draw(graphs(nested=False))]
        if node["op"] == "tvm_op":
            node["attrs"]["num_inputs"] = str(len(node["inputs"]))
        if draw(st.integers(0, 5)) == 0:
            node["extra"] = draw(st.sampled_from([1, -2.5, None, [1, {"a": True}], "x"]))
        nodes.append(node)
    graph: dict[str, Any] = {
        "nodes": nodes,
        "arg_nodes": [i for i, node in enumerate(nodes) if node["op"] == "null"],
        "heads": [[count - 1, draw(st.integers(0, outputs[-1] - 1)), 0][:size]],
    }
    if draw(st.booleans()):
        total = sum(outputs)
        graph["node_row_ptr"] = [sum(outputs[:i]) for i in range(count + 1)]
        if draw(st.booleans()):
            ids = [draw(st.integers(0, 3)) for _ in range(total)]
            graph["attrs"] = {
                "storage_id": ["list_int", ids],
                "shape": ["list_shape", [[i] for i in range(total)]],
                "dltype": ["list_str", ["float32"] * total],
                "version": ["int", 3],
            }
    return graph


def read(graph: Any, folder: Path, indent: int | None = None) -> passlib.model.Model:
    path = folder / "graph.json"
    path.write_bytes(text_of(graph, indent))
    return passlib.model.load(path, dialect="nnvm")


def saved(model: passlib.model.Model, folder: Path) -> bytes:
    target = folder / "saved.json"
    model.save(target)
    return target.read_bytes()


@QUIET
@given(graph=graphs(), indent=st.sampled_from([None, 0, 2]))
def test_generated_graph_is_written_back_as_it_was(
    graph: dict[str, Any], indent: int | None, tmp_path: Path, handover: str
) -> None:
    model = read(graph, tmp_path, indent)
    assert saved(model.optimize_for("identity"), tmp_path) == text_of(graph, indent)


@QUIET
@given(graph=graphs(), data=st.data())
def test_edited_graph_is_consistent_and_keeps_what_was_not_edited(
    graph: dict[str, Any], data: st.DataObject, tmp_path: Path, handover: str
) -> None:
    model = read(graph, tmp_path)
    names = [node.name for node in model.symbol.nodes()]
    place = data.draw(st.integers(0, len(names) - 1))
    options = {"node": names[place], "name": "fresh", "op": "negative"}
    text = saved(model.optimize_for("insertBehind", **options), tmp_path)
    result = json.loads(text)
    found, before = (
        {
            problem.message
            for problem in NNVM.validate(tmp_path / name)
            if problem.severity == "error"
        }
        for name in ("saved.json", "graph.json")
    )
    assert found <= before
    at = next(i for i, node in enumerate(result["nodes"]) if node["name"] == "fresh")
    assert result["nodes"][at]["inputs"][0][:2] == [place, 0]

    def moved(entry: list[int]) -> list[int]:
        if entry[:2] == [place, 0]:
            return [at, 0]
        return [entry[0] + (entry[0] >= at), entry[1]]

    others = result["nodes"][:at] + result["nodes"][at + 1 :]
    for before, after in zip(graph["nodes"], others, strict=True):
        assert {k: v for k, v in after.items() if k not in ("inputs", "control_deps")} == {
            k: v for k, v in before.items() if k not in ("inputs", "control_deps")
        }
        assert list(after) == list(before)
        assert [entry[:2] for entry in after["inputs"]] == [moved(e) for e in before["inputs"]]
    assert [entry[:2] for entry in result["heads"]] == [moved(e) for e in graph["heads"]]
    if "node_row_ptr" in graph:
        assert result["node_row_ptr"][-1] == graph["node_row_ptr"][-1] + 1
    if "attrs" in graph:
        start = result["node_row_ptr"][at]
        shapes = result["attrs"]["shape"][1]
        assert shapes[:start] + shapes[start + 1 :] == graph["attrs"]["shape"][1]
        ids, rows = result["attrs"]["storage_id"][1], result["node_row_ptr"]
        # Aliases of an entry are in its buffer.
        own = [
            ids[entry]
            for i, node in enumerate(result["nodes"])
            if node.get("attrs", {}).get("func_name") != "__nop"
            for entry in range(rows[i], rows[i + 1])
        ]
        assert own.count(ids[start]) == 1


def damaged(text: bytes, chance: random.Random) -> bytes:
    """Change a few bytes or parts of a text."""
    data = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            del data[at : at + chance.randint(1, 20)]
        elif kind == 1:
            data[at:at] = chance.choice(
                [b"[", b"{", b"]", b"}", b",", b"-", b"9" * 30, b'"', b"null", b"\\u0000", b"\xff"]
            )
        elif kind == 2 and at < len(data):
            data[at] = chance.randrange(256)
        elif kind == 3:
            del data[at:]
        else:
            other = chance.randrange(len(data) + 1)
            data[at:at] = data[other : other + 40]
    return bytes(data)


def rebuilt(graph: Any, chance: random.Random) -> Any:
    """Insert a wrong value somewhere in a graph."""
    graph = copy.deepcopy(graph)
    for _ in range(chance.randint(1, 3)):
        place: Any = graph
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = chance.choice(keys)
            if not isinstance(place[key], (dict, list)) or chance.random() < 0.15:
                place[key] = chance.choice(
                    [None, True, -1, 0, 1, 5, 2**31, 2**63, 2**70, 1.5, "", "x", [], {}, [[]], [0]]
                )
                break
            place = place[key]
    return graph


SEEDS = [path.read_bytes() for path in OWN if path.stat().st_size < 5000]
SEEDS += [text_of(graph, 2) for graph in WRITTEN.values()]


def attempt(text: bytes, path: Path) -> None:
    """Do all that a file permits; each step succeeds or raises one of our errors."""
    path.write_bytes(text)
    assert isinstance(NNVM.recognises(path), bool)
    NNVM.validate(path)
    try:
        graph, attributes, document = load(text)
        model = ModelData(graph, attributes, template=document)
        assert render(model) == text
        NNVM.complete(graph)
        NNVM.variables(graph)
        NNVM.input_types(model)
    except (FormatError, GraphError, UnsupportedError):
        pass


@settings(QUIET, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_damaged_text_is_read_or_refused(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    attempt(damaged(chance.choice(SEEDS), chance), tmp_path / "damaged.json")


@settings(QUIET, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_wrong_values_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    graph = rebuilt(chance.choice(list(WRITTEN.values())), chance)
    attempt(text_of(graph), tmp_path / "wrong.json")


@settings(QUIET, max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_wrong_graph_attributes_of_a_pass_are_refused(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    graph = WRITTEN["tvm_executor"]
    model = read(graph, tmp_path)
    attrs = rebuilt(graph["attrs"], chance)
    try:
        edited = model.optimize_for("setGraph", key="attrs", json=json.dumps(attrs))
        edited = edited.optimize_for("bypass", node="relu")
        saved(edited, tmp_path)
    except (FormatError, GraphError, UnsupportedError):
        pass


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    model = read(WRITTEN["nnvm_core"], tmp_path)
    weights = {"w": passlib.nd.ones((2, 3, 3, 3)), "data": passlib.nd.ones((1, 3))}
    made = passlib.Model(model.symbol, weights, dialect="nnvm", template=model._template)
    whole = Path(made.save(tmp_path / "m.json")[1]).read_bytes()
    for cut in range(0, len(whole), 3):
        (tmp_path / "m.params").write_bytes(whole[:cut])
        with pytest.raises((FormatError, UnsupportedError)):
            passlib.model.load(tmp_path / "m.json", dialect="nnvm")
    chance = random.Random(1)
    for _ in range(100):
        (tmp_path / "m.params").write_bytes(damaged(whole, chance))
        try:
            passlib.model.load(tmp_path / "m.json", dialect="nnvm")
        except (FormatError, UnsupportedError):
            continue
