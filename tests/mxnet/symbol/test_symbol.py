"""Symbols of real models, against facts from MXNet 1.9.1 (tests/data/mxnet/symbols.json)."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import passlib
import places
from passlib.symbol import Symbol
from symbol_facts import facts

DATA = places.DATA / "mxnet"
FACTS: dict[str, dict[str, Any]] = json.loads((DATA / "symbols.json").read_text("utf-8"))


def model_path(name: str) -> Path:
    return DATA / "models" / f"{name}-symbol.json"


@pytest.fixture(params=sorted(FACTS))
def model(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_all_seven_models_are_tested() -> None:
    assert len(FACTS) == 7
    assert {model_path(name) for name in FACTS} == set((DATA / "models").glob("*-symbol.json"))


def test_tojson_is_byte_for_byte(model: str, tmp_path: Path) -> None:
    symbol = passlib.sym.load(model_path(model))
    text = symbol.tojson()
    assert text == model_path(model).read_text("utf-8")
    assert hashlib.sha256(text.encode()).hexdigest() == FACTS[model]["tojson_digest"]
    symbol.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == model_path(model).read_bytes()


def test_tojson_of_python_nodes_is_the_same(model: str) -> None:
    symbol = passlib.sym.load(model_path(model))
    rebuilt = Symbol(symbol.entries)
    assert rebuilt.tojson() == symbol.tojson()


def test_facts(model: str) -> None:
    assert facts(passlib.sym.load(model_path(model))) == FACTS[model]


def test_edges_are_those_of_the_file(model: str) -> None:
    symbol = passlib.sym.load(model_path(model))
    graph = json.loads(model_path(model).read_text("utf-8"))
    names = [node["name"] for node in graph["nodes"]]
    wanted = [
        (names[entry[0]], entry[1], node["name"], slot)
        for node in graph["nodes"]
        for slot, entry in enumerate(node["inputs"])
    ]
    assert [(a.name, i, b.name, k) for a, i, b, k in symbol.edges()] == wanted


def test_pickle_and_copies(model: str) -> None:
    symbol = passlib.sym.load(model_path(model))
    for other in (pickle.loads(pickle.dumps(symbol)), copy.copy(symbol), copy.deepcopy(symbol)):
        assert other.tojson() == symbol.tojson()


def test_choosing_outputs(resnet: Symbol) -> None:
    internals = resnet.get_internals()
    relu = internals["resnetv10_relu0_fwd_output"]
    assert relu.list_outputs() == ["resnetv10_relu0_fwd_output"]
    position = internals.list_outputs().index("resnetv10_relu0_fwd_output")
    assert internals[position].tojson() == relu.tojson()
    assert internals[-1].tojson() == resnet.tojson()
    assert [one.name for one in internals[:2]] == [one.name for one in internals][:2]
    assert len(internals[3:7]) == 4
    with pytest.raises(ValueError, match="no output is named 'relu'; there are: data"):
        internals["relu"]
    with pytest.raises(IndexError, match=r"no output 1, the symbol has 1"):
        resnet[1]


def test_group(resnet: Symbol) -> None:
    internals = resnet.get_internals()
    group = passlib.sym.Group([resnet, internals["resnetv10_relu0_fwd_output"]])
    assert group.list_outputs() == ["resnetv10_dense0_fwd_output", "resnetv10_relu0_fwd_output"]
    assert group.name is None
    assert len(group) == 2
    assert json.loads(group.tojson())["heads"][0] == [78, 0, 0]
    assert passlib.sym.load_json(group.tojson()).tojson() == group.tojson()
    twice = passlib.sym.Group([resnet, resnet])
    assert twice.name == resnet.name
    assert twice.list_outputs() == resnet.list_outputs() * 2


def test_name_that_stands_twice() -> None:
    x = passlib.sym.var("x")
    group = passlib.sym.Group([passlib.sym.relu(x, name="r"), passlib.sym.exp(x, name="r")])
    with pytest.raises(ValueError, match="several outputs are named 'r_output'"):
        group["r_output"]


def test_repr(resnet: Symbol) -> None:
    assert repr(resnet) == "<Symbol resnetv10_dense0_fwd: 79 nodes, 1 output>"
    assert repr(passlib.sym.var("x")) == "<Symbol x: 1 node, 1 output>"
    group = repr(resnet.get_internals())
    assert group.startswith("<Symbol group [data, ")
    assert len(group) < 400


def test_no_truth_value(resnet: Symbol) -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(resnet)
    with pytest.raises(passlib.base.NotImplementedForSymbol, match="no truth value"):
        bool(resnet)


def test_never_changes(resnet: Symbol) -> None:
    before = resnet.tojson()
    node = resnet.nodes()[1]
    with pytest.raises(TypeError):
        node.attrs["k"] = "v"  # type: ignore[index]
    resnet.attr_dict()["resnetv10_conv0_fwd"]["k"] = "v"
    resnet.list_attr()["k"] = "v"
    resnet.list_arguments().clear()
    resnet.nodes().clear()
    assert resnet.tojson() == before


def mixed_precision() -> Symbol:
    x = passlib.sym.var("x")
    half = passlib.sym.amp_cast(x, dtype="float16", name="cast")
    both = passlib.sym.amp_multicast(
        passlib.sym.relu(half, name="a"), passlib.sym.var("y"), num_outputs=2, name="multi"
    )
    total: Symbol = passlib.sym.elemwise_add(both[0], both[1], name="sum")
    return total


def test_casts_of_mixed_precision_are_left_out() -> None:
    symbol = mixed_precision()
    kept = symbol.tojson(remove_amp_cast=False)
    assert '"amp_cast"' in kept
    written = json.loads(symbol.tojson())
    assert [node["name"] for node in written["nodes"]] == ["x", "a", "y", "sum"]
    assert written["nodes"][3]["inputs"] == [[1, 0, 0], [2, 0, 0]]
    assert symbol.tojson(remove_amp_cast=False) == kept
    assert pickle.loads(pickle.dumps(symbol)).tojson(remove_amp_cast=False) == kept


def test_head_that_is_a_cast() -> None:
    x = passlib.sym.var("x")
    cast = passlib.sym.amp_cast(passlib.sym.relu(x, name="r"), dtype="float16", name="cast")
    written = json.loads(cast.tojson())
    assert [node["name"] for node in written["nodes"]] == ["x", "r", "cast"]  # as in MXNet
    assert written["heads"] == [[2, 0, 0]]


def test_failed_save_leaves_the_old_file(
    resnet: Symbol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.json"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        message = "disk full"
        raise OSError(message)

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="disk full"):
        resnet.save(path)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"]  # noqa: PTH208 (hidden files too)


def test_save_into_nowhere(resnet: Symbol, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resnet.save(tmp_path / "absent" / "model.json")


def test_load_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        passlib.sym.load(tmp_path / "absent.json")


def test_long_chain() -> None:
    symbol = passlib.sym.var("x")
    for i in range(20000):
        symbol = passlib.sym.relu(symbol, name=f"r{i}")
    again = passlib.sym.load_json(symbol.tojson())
    assert len(again.nodes()) == 20001
    assert again.list_outputs() == ["r19999_output"]
    assert pickle.loads(pickle.dumps(symbol)).tojson() == symbol.tojson()


def test_text_beyond_ascii_survives() -> None:
    named = passlib.sym.var("é中\U0001f600") + 1
    text = named.tojson()
    assert '"é中\U0001f600"' in text
    assert passlib.sym.load_json(text).tojson() == text
    assert passlib.sym.load_json(text.encode()).list_arguments() == ["é中\U0001f600"]
