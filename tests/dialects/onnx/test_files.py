"""ONNX files through the identity pass and back, and their graphs as passes see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_models
import passlib
from onnx_models import TEXTS
from passlib.dialects.onnx.writing import assembly
from passlib.errors import FormatError, GraphError, UnsupportedError

Loader = Callable[[str], passlib.library.Library]


def canonical(path: Path) -> bytes:
    model = onnx.ModelProto.FromString(path.read_bytes())
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def attributes_of(model: passlib.model.Model, name: str) -> dict[str, str]:
    return dict(next(node.attrs for node in model.symbol.nodes() if node.name == name))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.usefixtures("handover")
def test_identity_returns_an_equal_file(name: str, tmp_path: Path, load_plugin: Loader) -> None:
    load_plugin("good")
    source = onnx_models.save(TEXTS[name], tmp_path / "a.onnx")
    written = passlib.load(source).optimize_for("identity").save(tmp_path / "b.onnx")
    assert written == (str(tmp_path / "b.onnx"),)
    assert (tmp_path / "b.onnx").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.usefixtures("handover")
def test_all_kinds_of_attributes_come_back(
    anew: bool, tmp_path: Path, load_plugin: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_plugin("good")
    source = tmp_path / "a.onnx"
    source.write_bytes(onnx_models.every_attribute().SerializeToString())
    assert b"later" in source.read_bytes()
    if anew:
        monkeypatch.setattr(assembly, "is_unchanged", lambda *_: False)
    passlib.load(source).optimize_for("identity").save(tmp_path / "b.onnx")
    assert canonical(tmp_path / "b.onnx") == canonical(source)


def test_a_weight_that_changed_is_written(tmp_path: Path, load_plugin: Loader) -> None:
    load_plugin("good")
    source = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    model = passlib.load(source).optimize_for("identity")
    weights = {name: np.array(array) for name, array in model.args.items()}
    weights["w"][2] = -0.0
    weights["w"][3] = np.nan
    changed = passlib.Model(model.symbol, weights, dialect="onnx")
    for number in range(2):  # the first save must not consume anything
        changed.save(tmp_path / "b.onnx")
        model.save(tmp_path / "c.onnx")
        again = passlib.load(tmp_path / "b.onnx")
        assert again.args["w"].tobytes() == weights["w"].tobytes(), number
        assert canonical(tmp_path / "c.onnx") == canonical(source), number


def test_a_pass_in_mxnets_style_returns_an_equal_file(tmp_path: Path, load_plugin: Loader) -> None:
    load_plugin("mxnet_style")
    source = onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx")
    passlib.load(source).optimize_for("styledPrint").save(tmp_path / "b.onnx")
    assert canonical(tmp_path / "b.onnx") == canonical(source)


def test_attributes_are_text(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx_models.every_attribute().SerializeToString())
    attrs = attributes_of(passlib.load(path), "Everything_1")
    assert attrs["whole"] == "3"
    assert attrs["real"] == "0.1"
    assert attrs["text"] == "sömething"
    assert attrs["raw"] == "\\xff\\xfe not UTF-8"
    assert attrs["reals"] == "[0.1, inf, 1e-30]"
    assert attrs["wholes"] == "[1, -2, 1152921504606846976]"
    assert json.loads(attrs["texts"]) == ["a", "b\u00fc"]
    assert json.loads(attrs["tensor"]) == {"dtype": "int32", "shape": [4], "data": [0, 1, 2, 3]}
    assert json.loads(attrs["large"]) == {
        "dtype": "float32",
        "shape": [300],
        "same_as": "1/large",
    }
    assert json.loads(attrs["sparse"])["shape"] == [5]
    assert json.loads(attrs["type"])["tensorType"]["elemType"] == 1
    assert (attrs["graph"], attrs["graphs"]) == ("subgraph[0]", "subgraph[1:3]")
    assert (attrs["__domain__"], attrs["__overload__"]) == ("com.example", "first")
    assert attrs["__mark__"] == "shown"
    assert (attrs["__formal_inputs__"], attrs["__captured_inputs__"]) == ("3", "1")


def test_constants_are_parameters(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx_models.every_attribute().SerializeToString())
    model = passlib.load(path)
    assert model.inputs == ["x"]
    assert {name: array.tolist() for name, array in model.args.items()} == {"seven": 7}
    opaque = {
        node.name: node.attrs["__opaque__"]
        for node in model.symbol.nodes()
        if "__opaque__" in node.attrs
    }
    assert opaque == {"text": "string", "q": "int4", "s": "sparse"}


def test_operators_of_one_name_are_distinguished(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx_models.every_attribute().SerializeToString())
    names = [node.name for node in passlib.load(path).symbol.nodes() if not node.is_variable]
    assert names == ["same", "Everything_1", "same_4"]


def test_a_pass_sees_family_and_operator_sets(
    tmp_path: Path, load_plugin: Loader, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin("good")
    source = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    passlib.load(source).optimize_for("showJson")
    shown = json.loads(capsys.readouterr().out)
    assert shown["dialect"] == "onnx"
    assert shown["opset_import"] == {"": 17}
    assert shown["ir_version"] == 8
    assert "__document__" not in shown


@pytest.mark.parametrize("code", sorted(set(TensorProto.DataType.values()) - {0}))
@pytest.mark.parametrize("raw", [False, True])
def test_initializers_of_all_types(code: int, raw: bool, tmp_path: Path) -> None:
    if code == TensorProto.STRING:
        tensor = helper.make_tensor("w", code, [2], [b"a", b"b"])
    else:
        dtype = helper.tensor_dtype_to_np_dtype(code)
        tensor = numpy_helper.from_array(np.array([0, 1, 1, 0]).astype(dtype), "w")
        if not raw:
            tensor = helper.make_tensor("w", code, [4], np.array([0, 1, 1, 0]).astype(dtype))
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", code, list(tensor.dims))],
        [tensor],
    )
    source = tmp_path / "a.onnx"
    source.write_bytes(helper.make_model(graph).SerializeToString())
    model = passlib.load(source)
    if "w" in model.args:
        expected = numpy_helper.to_array(tensor)
        assert model.args["w"].dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(model.args["w"]), expected)
    else:
        assert next(iter(model.symbol.nodes())).attrs["__opaque__"] == (
            TensorProto.DataType.Name(code).lower()
        )
    model.save(tmp_path / "b.onnx")
    assert canonical(tmp_path / "b.onnx") == canonical(source)


def test_large_weights_are_views_of_the_file(tmp_path: Path) -> None:
    weights = np.arange(1 << 16, dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1 << 16])],
        [numpy_helper.from_array(weights, "w")],
    )
    source = tmp_path / "a.onnx"
    source.write_bytes(helper.make_model(graph).SerializeToString())
    array = passlib.load(source).args["w"]
    owner = array
    while isinstance(getattr(owner, "base", None), np.ndarray):
        owner = owner.base
    assert not owner.flags.owndata
    np.testing.assert_array_equal(np.asarray(array), weights)
    model = passlib.load(source)
    model.save(source)  # over the file that the weights are views of
    np.testing.assert_array_equal(np.asarray(model.args["w"]), weights)
    np.testing.assert_array_equal(np.asarray(passlib.load(source).args["w"]), weights)


UNSOUND = {
    "an input that nothing computes": (
        [helper.make_node("Relu", ["nowhere"], ["y"])],
        GraphError,
        "'nowhere', which nothing before it computes",
    ),
    "nodes that wait for each other": (
        [helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Exp", ["y"], ["a"])],
        GraphError,
        r"'Relu_0' \(Relu\) needs a value that is computed from its own outputs",
    ),
    "a value defined twice": (
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["y"])],
        GraphError,
        "'y' is defined twice",
    ),
    "a value of passlib's own name": (
        [helper.make_node("Relu", ["x"], ["__absent__"]), helper.make_node("Exp", ["x"], ["y"])],
        UnsupportedError,
        "'__absent__'",
    ),
    "an attribute of passlib's own name": (
        [helper.make_node("Relu", ["x"], ["y"], __id__=1)],
        UnsupportedError,
        r"'Relu_0' \(Relu\): attribute '__id__'",
    ),
    "a nested graph without outputs": (
        [
            helper.make_node(
                "Own", ["x"], ["y"], domain="own", body=helper.make_graph([], "body", [], [])
            )
        ],
        GraphError,
        "'0.body' has no outputs",
    ),
    "no operator": ([helper.make_node("", ["x"], ["y"])], FormatError, "operator ''"),
    "no outputs": ([helper.make_node("Relu", ["x"], ["z"])], GraphError, "'y', which nothing"),
}


@pytest.mark.parametrize("what", UNSOUND)
def test_unsound_graphs_are_refused(what: str, tmp_path: Path) -> None:
    nodes, error, message = UNSOUND[what]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])]
    )
    path = tmp_path / "a.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(error, match=message):
        passlib.load(path)
    assert any(p.severity == "error" for p in passlib.dialects.find("onnx").validate(path))


def test_other_files_are_not_recognised(tmp_path: Path) -> None:
    dialect = passlib.dialects.find("onnx")
    for content in (b"", b"{}", b'{"nodes": []}', b"\x89HDF\r\n\x1a\n", b"\x08\x07", b"\x00" * 50):
        path = tmp_path / "file.onnx"
        path.write_bytes(content)
        assert not dialect.recognises(path)
        with pytest.raises(FormatError):
            dialect.load(path)
    assert not dialect.recognises(tmp_path)
    assert not dialect.recognises(tmp_path / "absent")


def test_options_are_refused(tmp_path: Path) -> None:
    source = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    with pytest.raises(UnsupportedError, match="epoch"):
        passlib.load(source, epoch=3)
