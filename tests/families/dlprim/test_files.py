"""Reading and writing networks of DLPrimitives."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from dlprim_files import (
    COPIED,
    DATA,
    NEGATIVE,
    NETWORKS,
    SHARED,
    dialect,
    load,
    network,
    operator,
    with_weights,
    write,
)
from passlib import dialects
from passlib.errors import FormatError, PasslibError, UnsupportedError
from passlib.library import Library
from passlib.model import Model

RELU = operator("relu", "Activation", activation="relu")


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_identity_pass_gives_the_same_bytes(
    path: Path, tmp_path: Path, handover: str, load_plugin: Callable[[str], Library]
) -> None:
    load_plugin("good")
    assert dialects.recognise(path) is dialect
    model = passlib.load(path)
    after = model.optimize_for("identity")
    files = after.save(tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert after.outputs == model.outputs
    for name in files[1:]:
        assert Path(name).read_bytes() == (path.parent / Path(name).name).read_bytes()


def test_all_networks_are_there() -> None:
    assert len(COPIED) == 21
    if not SHARED.is_dir():
        pytest.skip("the shared test data are absent")
    assert len(NETWORKS) == 28


def test_old_operator_is_refused() -> None:
    path = SHARED / "repo" / NEGATIVE
    if not path.is_file():
        pytest.skip("the shared test data are absent")
    with pytest.raises(UnsupportedError, match=r"unknown operator 'BatchNorm2D'.*called BatchNorm"):
        passlib.load(path)


def test_names_of_a_model(tmp_path: Path) -> None:
    for suffix in (".json", ".dlp"):
        shutil.copy(DATA / f"onnx2dp_lenet{suffix}", tmp_path)
    for name in ("onnx2dp_lenet", "onnx2dp_lenet.json", "onnx2dp_lenet.dlp"):
        assert len(passlib.load(tmp_path / name, dialect="dlprim").args) == 8


def test_what_a_pass_sees(tmp_path: Path) -> None:
    layers = [
        operator("c", "Convolution2D", channels_out=2, kernel=[3, 1], bias=False, params=["w"]),
        operator("n", "BatchNorm", "c", "c", eps=1e-3, frozen=True),
        operator("a", "Activation", "c", "c", activation="relu"),
    ]
    model = load(tmp_path, network(*layers))
    nodes = {node.name: node for node in model.symbol.nodes()}
    assert nodes["data"].attrs["__shape__"] == "(2, 3, 4, 4)"
    assert dict(nodes["c"].attrs) == {
        "channels_out": "2",
        "kernel": "[3, 1]",
        "bias": "false",
        "__id__": "operators[0]",
        "__tensor__": "c",
    }
    assert [entry.node.name for entry in nodes["c"].inputs] == ["data", "w"]
    assert nodes["n"].attrs["eps"] == "0.001"
    assert nodes["n"].attrs["__frozen__"] == "true"
    inputs = [entry.node.name for entry in nodes["n"].inputs]
    assert inputs == ["c", "n.0", "n.1", "n.2", "n.3"]
    assert nodes["a"].inputs[0].node is nodes["n"]
    assert model.outputs == ["c"]


def test_what_the_original_passes_over_does_not_count(tmp_path: Path) -> None:
    layer = operator("p", "Pooling2D", kernel=2, mode="avg", count_include_pad=1, ceil_mode="true")
    model = load(tmp_path, network(layer))
    attributes = model.symbol.nodes()[-1].attrs
    assert "count_include_pad" not in attributes
    assert "ceil_mode" not in attributes
    assert model.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == (tmp_path / "net.json").read_bytes()


def test_strict_warns_and_gives_the_same(tmp_path: Path) -> None:
    layer = operator("p", "InnerProduct", outputs=2, bias="false")
    with pytest.warns(UserWarning, match=r"operators\[0\].options.bias: has the wrong type"):
        strict = load(tmp_path, network(layer), strict=True)
    assert strict.symbol.list_inputs() == ["data", "p.0", "p.1"]
    assert load(tmp_path, network(layer)).symbol.list_inputs() == strict.symbol.list_inputs()


def test_comments_and_trailing_commas(tmp_path: Path) -> None:
    text = """// a network
{ "inputs": [ {"shape": [2, 3], }, ],  // of the name data
  "operators": [ {"name": "r", "type": "Activation", "inputs": ["data"], "outputs": ["r",],
    "options": null}, ],
  "outputs": [ {"name": "r"}, ], }
// the end
"""
    model = load(tmp_path, text)
    assert model.inputs == ["data"]
    model.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_text() == text


SYNTAX = [
    "",
    "[1, 2",
    '{"inputs": [], "inputs": [], "operators": [], "outputs": []}',
    '{"inputs": [], /* no */ "operators": [], "outputs": []}',
    "{" * 300,
]


@pytest.mark.parametrize("text", SYNTAX)
def test_syntax_errors(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"net\.json"):
        load(tmp_path, text, dialect="dlprim")


def test_tensor_and_parameter_of_one_name(tmp_path: Path) -> None:
    layer = operator("f", "InnerProduct", outputs=2, params=["data", "f"])
    model = with_weights(load(tmp_path, network(layer, shape=(2, 3))))
    assert model.inputs == ["data_input"]
    assert list(model.args) == ["data", "f"]
    model.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == (tmp_path / "net.json").read_bytes()


def test_network_without_outputs(tmp_path: Path) -> None:
    model = load(tmp_path, network(RELU, outputs=[]))
    assert model.outputs == ["relu"]
    model.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == (tmp_path / "net.json").read_bytes()


def test_empty_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="without tensors"):
        load(tmp_path, network(inputs=[]))


def test_folded_outputs(tmp_path: Path) -> None:
    outputs = ["relu", {"name": "relu", "loss_weight": 0.5}, "data", "relu"]
    model = load(tmp_path, network(RELU, outputs=outputs))
    assert model.outputs == ["relu", "data"]
    model.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == (tmp_path / "net.json").read_bytes()


WHOLE = json.dumps(network(RELU))
DAMAGED = [
    (json.dumps({k: v for k, v in network(RELU).items() if k != "inputs"}), "inputs: is required"),
    (json.dumps({k: v for k, v in network(RELU).items() if k != "outputs"}), "outputs: is requ"),
    (json.dumps({**network(RELU), "outputs": "relu"}), "outputs: is required, and must be a list"),
    (WHOLE[:-1], "the text ends"),
    (WHOLE.replace("{", "{/* a network */", 1), "line 1, column 2"),
    ("/* a network */" + WHOLE, "line 1, column 1"),
    ("\ufeff" + WHOLE, "line 1, column 1"),
    (WHOLE.replace('"shape"', '"shape": [1], "shape"'), "'shape' occurs twice"),
]


@pytest.mark.parametrize(("text", "message"), DAMAGED, ids=lambda value: None)
def test_damaged_networks_are_recognised_and_told_so(
    tmp_path: Path, text: str, message: str
) -> None:
    path = write(tmp_path, text)
    assert dialects.recognise(path) is dialect
    with pytest.raises(FormatError, match=re.escape(message)):
        passlib.load(path)
    first, *_ = passlib.validate(path)
    assert first.severity == "error"
    assert message in str(first)


OTHERS: list[Any] = [
    {"inputs": [], "operators": {}, "outputs": []},
    {"inputs": [], "outputs": []},
    {"operators": []},
    {"nodes": {"inputs": [], "operators": [], "outputs": []}},
    '{"nodes": [{"inputs": []}], "operators": ',
]


@pytest.mark.parametrize("content", OTHERS, ids=lambda value: None)
def test_other_files_are_not_recognised(tmp_path: Path, content: Any) -> None:
    assert not dialect.recognises(write(tmp_path, content))
    assert not dialect.recognises(tmp_path / "absent.json")
    assert not dialect.recognises(tmp_path)


def test_options_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="'epoch'"):
        load(tmp_path, network(RELU), epoch=3)


def test_a_new_network(tmp_path: Path) -> None:
    """A model that was not read from a file is written from the schema alone."""
    from passlib.graph.node import Entry, Node
    from passlib.model import ModelGraph

    data = Node("null", "data", {"__shape__": "(2, 3)"}, num_outputs=1)
    weight = Node("null", "w", num_outputs=1)
    dense = Node(
        "InnerProduct",
        "fc",
        {"outputs": "4", "bias": "False"},
        [Entry(data), Entry(weight)],
        num_outputs=1,
    )
    symbol = ModelGraph([Entry(dense)], "dlprim")
    model = Model(symbol, {"w": np.ones((4, 3), np.float32)}, dialect="dlprim")
    files = model.save(tmp_path / "new")
    assert json.loads(Path(files[0]).read_text()) == {
        "inputs": [{"shape": [2, 3], "name": "data"}],
        "outputs": ["fc"],
        "operators": [
            {
                "name": "fc",
                "type": "InnerProduct",
                "inputs": ["data"],
                "outputs": ["fc"],
                "options": {"outputs": 4, "bias": False},
                "params": ["w"],
            }
        ],
    }
    again = passlib.load(files[0])
    result = again.run({"data": np.ones((2, 3), np.float32)})["fc"]
    np.testing.assert_array_equal(result, np.full((2, 4), 3, np.float32))


def test_errors_are_passlibs_own(tmp_path: Path) -> None:
    with pytest.raises(PasslibError, match=r"operators\[0\].inputs\[0\].*'nowhere'"):
        load(tmp_path, network(operator("r", "Activation", "nowhere")))
