"""Files of NNVM and TVM: recognised, read, and written back as they were."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passlib
from nnvm_files import (
    BACKWARDS,
    LEGACY,
    NESTED,
    NNVM,
    NNVM_CORE,
    OWN,
    SHARED,
    SHARED_NAMES,
    TVM_EXECUTOR,
    WRITTEN,
    load,
    saved,
    text_of,
)
from passlib import dialects
from passlib.errors import UnsupportedError

FILES = [*OWN, *(SHARED / name for name in SHARED_NAMES)]


@pytest.fixture
def genuine(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    if not path.exists():
        pytest.skip("the shared test data are not here")
    return path


def each_file(function: Callable[..., None]) -> Callable[..., None]:
    names = [path.name for path in FILES]
    return pytest.mark.parametrize("genuine", FILES, ids=names, indirect=True)(function)


@each_file
def test_genuine_file_is_written_back_as_it_was(
    genuine: Path,
    tmp_path: Path,
    handover: str,
    load_plugin: Callable[[str], passlib.library.Library],
) -> None:
    load_plugin("good")
    model = load(genuine)
    text = genuine.read_bytes()
    assert saved(model, tmp_path) == text
    passed = model.optimize_for("identity")
    assert saved(passed, tmp_path) == text
    assert passed.symbol.attributes == model.symbol.attributes, "the text of each, too"


@each_file
def test_genuine_file_has_no_problem(genuine: Path) -> None:
    assert NNVM.validate(genuine) == []


@pytest.mark.parametrize("indent", [None, 1, 2])
@pytest.mark.parametrize("name", WRITTEN)
def test_any_layout_is_written_back_as_it_was(
    name: str,
    indent: int | None,
    tmp_path: Path,
    handover: str,
    load_plugin: Callable[[str], passlib.library.Library],
) -> None:
    load_plugin("good")
    text = b" \n" + text_of(WRITTEN[name], indent) + b"\n\n"
    path = tmp_path / "graph.json"
    path.write_bytes(text)
    assert saved(load(path).optimize_for("identity"), tmp_path) == text


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"metadata": {"a": [1, 2.0, True, None, -3]}}, b'"metadata": {"a": [1, 2.0, true, null'),
        ({"version": 1.50}, b'"version": 1.5'),
        ({"dialect": "another"}, b'"dialect": "another"'),
    ],
)
def test_unknown_keys_stay(
    change: dict[str, Any],
    kept: bytes,
    tmp_path: Path,
    handover: str,
    load_plugin: Callable[[str], passlib.library.Library],
) -> None:
    load_plugin("good")
    path = tmp_path / "graph.json"
    path.write_bytes(text_of({**NNVM_CORE, **change}))
    text = saved(load(path).optimize_for("identity"), tmp_path)
    assert kept in text
    assert text == path.read_bytes()


def test_operators_of_one_name_are_told_apart_and_written_back(
    tmp_path: Path, handover: str, load_plugin: Callable[[str], passlib.library.Library]
) -> None:
    load_plugin("good")
    graph = copy.deepcopy(TVM_EXECUTOR)
    for node, name in zip(graph["nodes"], ("A", "B", "same", "same", ""), strict=True):
        node["name"] = name
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(graph))
    model = load(path)
    names = [node.name for node in model.symbol.nodes()]
    assert len(set(names)) == 5
    assert names[2] == "same"
    assert saved(model.optimize_for("identity"), tmp_path) == path.read_bytes()


def test_uses_before_makers_are_put_in_order_for_passes(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(BACKWARDS))
    model = load(path)
    assert [node.name for node in model.symbol.nodes()] == ["x", "middle", "last"]
    assert saved(model, tmp_path) == path.read_bytes()
    assert [p.severity for p in NNVM.validate(path)] == ["warning", "warning"]


def test_nodes_that_no_output_needs_stay(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(NESTED))
    assert "dead" in [node.name for node in load(path).symbol.nodes()]


def test_a_pass_sees_attributes_of_the_graph(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    load_plugin: Callable[[str], passlib.library.Library],
) -> None:
    load_plugin("good")
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(TVM_EXECUTOR))
    load(path).optimize_for("showJson")
    shown = json.loads(capsys.readouterr().out)
    assert shown["dialect"] == "nnvm"
    assert shown["attrs"] == TVM_EXECUTOR["attrs"]
    assert [node["attrs"]["__id__"] for node in shown["nodes"]] == ["0", "1", "2", "3", "4"]


def test_legacy_attributes_are_seen_together(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(LEGACY))
    layer = {node.name: node for node in load(path).symbol.nodes()}["fc"]
    own = {"ctx_group": "stage1", "lr_mult": "0.1", "no_bias": "True", "num_hidden": "4"}
    assert {k: v for k, v in layer.attrs.items() if k != "__id__"} == own


def test_which_files_are_recognised(tmp_path: Path) -> None:
    cases = {
        "graph.json": (text_of(NNVM_CORE), "nnvm"),
        "legacy.json": (text_of(LEGACY), "nnvm"),
        "m-symbol.json": (text_of(NNVM_CORE), "mxnet"),
        "version.json": (
            text_of({**NNVM_CORE, "attrs": {"mxnet_version": ["int", 10901]}}),
            "mxnet",
        ),
    }
    for name, (text, expected) in cases.items():
        (tmp_path / name).write_bytes(text)
        assert dialects.recognise(tmp_path / name).name == expected
    for name, text in {"empty": b"", "list.json": b"[]", "other.json": b'{"nodes": []}'}.items():
        (tmp_path / name).write_bytes(text)
        assert not NNVM.recognises(tmp_path / name)
    assert not NNVM.recognises(tmp_path)
    assert not NNVM.recognises(tmp_path / "absent.json")


def test_options_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(NNVM_CORE))
    with pytest.raises(UnsupportedError, match="epoch"):
        passlib.model.load(path, dialect="nnvm", epoch=3)
    with pytest.raises(UnsupportedError, match="epoch"):
        load(path).save(path, epoch=3)
