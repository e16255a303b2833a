"""Networks of DLPrimitives in and out again."""

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
from passlib.errors import FormatError, GraphError, PasslibError, UnsupportedError
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


@pytest.mark.parametrize("path", sorted(DATA.glob("*.h5")), ids=lambda path: path.name)
def test_h5_weights(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    other = passlib.load(path.with_suffix(".json"))
    model = passlib.load(path.with_suffix(".json"), params=path)
    assert {**model.args}.keys() == {**other.args}.keys()
    assert model.aux.keys() == other.aux.keys()
    for name, array in {**other.args, **other.aux}.items():
        np.testing.assert_array_equal({**model.args, **model.aux}[name], array)
    files = model.save(tmp_path / "copy")
    assert [Path(name).name for name in files] == ["copy.json", "copy.h5"]
    again = passlib.load(tmp_path / "copy.json")
    for name, array in model.args.items():
        np.testing.assert_array_equal(again.args[name], array)


def test_names_of_a_model(tmp_path: Path) -> None:
    for suffix in (".json", ".dlp"):
        shutil.copy(DATA / f"onnx2dp_lenet{suffix}", tmp_path)
    for name in ("onnx2dp_lenet", "onnx2dp_lenet.json", "onnx2dp_lenet.dlp"):
        assert len(passlib.load(tmp_path / name, dialect="dlprim").args) == 8


def test_running_statistics_are_auxiliary(tmp_path: Path) -> None:
    model = with_weights(load(tmp_path, network(operator("bn", "BatchNorm"))))
    assert list(model.args) == ["bn.2", "bn.3"]
    assert list(model.aux) == ["bn.0", "bn.1"]
    files = model.save(tmp_path / "saved")
    again = passlib.load(files[0])
    assert list(again.aux) == ["bn.0", "bn.1"]
    np.testing.assert_array_equal(again.aux["bn.1"], model.aux["bn.1"])


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


def dense(tmp_path: Path) -> Model:
    layers = [
        operator("a", "InnerProduct", outputs=3, params=["shared"]),
        operator("b", "InnerProduct", "a", outputs=3, params=["shared", "auto"]),
    ]
    return with_weights(load(tmp_path, network(*layers, shape=(2, 3))))


def test_shared_and_automatic_parameters(tmp_path: Path) -> None:
    model = dense(tmp_path)
    assert list(model.args) == ["shared", "a.1", "b.1"]
    users = [n.name for n in model.symbol.nodes() if "shared" in [e.node.name for e in n.inputs]]
    assert users == ["a", "b"]


def test_missing_parameters(tmp_path: Path) -> None:
    model = dense(tmp_path)
    args = {name: array for name, array in model.args.items() if name != "b.1"}
    Model(model.symbol, args, {}, "dlprim", template=model._template).save(tmp_path / "saved")
    with pytest.raises(GraphError, match=r"saved.dlp: parameter b.1 .* allow_missing"):
        passlib.load(tmp_path / "saved.json")
    partial = passlib.load(tmp_path / "saved.json", allow_missing=True)
    assert list(partial.args) == ["shared", "a.1"]


def test_parameters_of_another_shape(tmp_path: Path) -> None:
    model = dense(tmp_path)
    model.save(tmp_path / "saved")
    other = network(operator("a", "InnerProduct", outputs=4, params=["shared"]), shape=(2, 3))
    write(tmp_path, other, "saved.json")
    with pytest.raises(GraphError, match=r"'shared' is float32 \(3, 3\), .* needs .*\(4, 3\)"):
        passlib.load(tmp_path / "saved.json")


def test_extra_parameters_stay(tmp_path: Path) -> None:
    model = dense(tmp_path)
    args = {**model.args, "more": np.ones(2, np.float16)}
    Model(model.symbol, args, {}, "dlprim", template=model._template).save(tmp_path / "saved")
    again = passlib.load(tmp_path / "saved.json")
    assert again.args["more"].dtype == np.float16
    again.save(tmp_path / "twice")
    assert (tmp_path / "twice.dlp").read_bytes() == (tmp_path / "saved.dlp").read_bytes()


@pytest.mark.parametrize(("dtype", "size"), [("double", 8), ("uint32", 4)])
def test_extra_parameters_of_types_that_no_network_needs(
    tmp_path: Path, dtype: str, size: int
) -> None:
    table = json.dumps({"x": {"dtype": dtype, "shape": [2], "start": 0, "size": 2 * size}})
    header = f'{{"tensors": {table}}}'.encode()
    content = b"DLPW" + len(header).to_bytes(4, "big") + header + bytes(range(2 * size))
    (tmp_path / "net.dlp").write_bytes(content)
    model = load(tmp_path, network(RELU))
    assert model.args["x"].shape == (2,)
    model.save(tmp_path / "saved")
    assert (tmp_path / "saved.dlp").read_bytes() == content
    (tmp_path / "net.dlp").write_bytes(content.replace(b'"x"', b'"p"'))
    layer = operator("p", "Parameter", [], shape=[2], params=["p"])
    with pytest.raises(GraphError, match=r"'p' is .*\(2\), the network needs float32"):
        load(tmp_path, network(layer, inputs=[]))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint16", "int64", "bfloat16"])
def test_types_in_dlp(tmp_path: Path, dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    layer = operator("p", "Parameter", [], shape=[2, 3], dtype=dtype)
    description = network(layer, inputs=[])
    model = load(tmp_path, description)
    from passlib.dialects.dlprim.types import numpy_type

    array = np.arange(6).reshape(2, 3).astype(numpy_type(dtype))
    Model(model.symbol, {"p.0": array}, {}, "dlprim", template=model._template).save(
        tmp_path / "saved"
    )
    again = passlib.load(tmp_path / "saved.json").args["p.0"]
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_tensors_that_overlap_in_a_file_are_written_apart(tmp_path: Path) -> None:
    entry = {"dtype": "float", "shape": [2], "start": 0, "size": 8}
    header = json.dumps({"tensors": {"p.0": entry, "q.0": entry}}).encode()
    content = np.arange(4, dtype="<f4").tobytes()
    (tmp_path / "net.dlp").write_bytes(b"DLPW" + len(header).to_bytes(4, "big") + header + content)
    layers = [operator(name, "Parameter", [], shape=[2]) for name in ("p", "q")]
    model = load(tmp_path, network(*layers, inputs=[], outputs=["p", "q"]))
    arrays = {"p.0": np.full(2, 5, np.float32), "q.0": np.asarray(model.args["q.0"])}
    changed = Model(model.symbol, arrays, {}, "dlprim", template=model._template)
    again = passlib.load(changed.save(tmp_path / "saved")[0])
    for name, array in arrays.items():
        np.testing.assert_array_equal(again.args[name], array)


def test_types_that_dlp_lacks(tmp_path: Path) -> None:
    model = load(tmp_path, network(RELU))
    weird = Model(model.symbol, {"x": np.ones(2)}, {}, "dlprim", template=model._template)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UnsupportedError, match=r"'x': a .dlp file has no type float64"):
        weird.save(tmp_path / "saved")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("names", [["w", "."], ["/w", "b"], ["w", "w/b"], ["w\0", "b"]])
def test_names_that_hdf5_lacks(tmp_path: Path, names: list[str]) -> None:
    pytest.importorskip("h5py")
    layer = operator("f", "InnerProduct", outputs=2, params=names)
    model = with_weights(load(tmp_path, network(layer, shape=(2, 3))))
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UnsupportedError, match=r"parameter '.*': a .h5 file cannot hold this name"):
        model.save(tmp_path / "saved", weights="h5")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    again = passlib.load(model.save(tmp_path / "saved")[0])
    assert list(again.args) == names


def test_sparse_parameters(tmp_path: Path) -> None:
    model = load(tmp_path, network(RELU))
    parts = (np.ones((1, 3), np.float32), np.array([1]))
    sparse = passlib.nd.sparse.row_sparse_array(parts, shape=(4, 3))
    weird = Model(model.symbol, {"x": sparse}, {}, "dlprim", template=model._template)
    with pytest.raises(UnsupportedError, match="'x' is sparse"):
        weird.save(tmp_path / "saved")


HEADERS: list[tuple[Any, str]] = [
    ({}, "no object 'tensors'"),
    ({"tensors": {"a": 1}}, "is no object"),
    ({"tensors": {"a": {"dtype": "text", "shape": [1], "start": 0, "size": 8}}}, "'text', none"),
    ({"tensors": {"a": {"dtype": "float", "shape": [-1], "start": 0, "size": 4}}}, "sizes"),
    ({"tensors": {"a": {"dtype": "float", "shape": [1], "start": 2, "size": 4}}}, "ends at byte 6"),
    (
        {"tensors": {"a": {"dtype": "float", "shape": [2], "start": 0, "size": 4}}},
        "8 bytes|4 bytes",
    ),
    ({"tensors": {"a": {"dtype": "float", "shape": [1], "start": "0", "size": 4}}}, "whole"),
    (
        {
            "tensors": {
                n: {"dtype": "float", "shape": [1], "start": 0, "size": 4} for n in ("a", "b")
            }
        },
        "more bytes than the file",
    ),
]


@pytest.mark.parametrize(("header", "message"), HEADERS)
def test_damaged_dlp(tmp_path: Path, header: Any, message: str) -> None:
    text = json.dumps(header).encode()
    path = tmp_path / "net.dlp"
    path.write_bytes(b"DLPW" + len(text).to_bytes(4, "big") + text + b"\0\0\0\0")
    with pytest.raises(FormatError, match=message):
        load(tmp_path, network(RELU))


@pytest.mark.parametrize(
    "content", [b"", b"DLP", b"DLPW\0\0", b"DLPW\xff\xff\xff\xff", b"\x89HDF\r\n\x1a\n" + b"x" * 90]
)
def test_truncated_weights(tmp_path: Path, content: bytes) -> None:
    if content.startswith(b"\x89"):
        pytest.importorskip("h5py")
    (tmp_path / "net.dlp").write_bytes(content)
    with pytest.raises(FormatError, match=r"net\.dlp"):
        load(tmp_path, network(RELU))


def virtual(file: Any) -> None:
    h5py = pytest.importorskip("h5py")
    layout = h5py.VirtualLayout((1,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (1,))
    file.create_virtual_dataset("r", layout)


HDF5: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda file: file.create_dataset("r", (1,), "f4", external=[("net.json", 0, 4)]),
        "dataset 'r' has its elements in other files",
    ),
    (virtual, "dataset 'r' has its elements in other files"),
    (lambda file: file.create_dataset("r", dtype="f4"), "dataset 'r' has no elements and no shape"),
]


@pytest.mark.parametrize(("make", "message"), HDF5, ids=lambda value: None)
def test_hostile_hdf5(tmp_path: Path, make: Callable[[Any], Any], message: str) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "net.h5", "w") as file:
        make(file)
    with pytest.raises(FormatError, match=message):
        load(tmp_path, network(RELU))


WHOLE = json.dumps(network(RELU))
DAMAGED = [
    (json.dumps({k: v for k, v in network(RELU).items() if k != "inputs"}), "inputs: is required"),
    (json.dumps({k: v for k, v in network(RELU).items() if k != "outputs"}), "outputs: is requ"),
    (json.dumps({**network(RELU), "outputs": "relu"}), "outputs: is required, and must be a list"),
    (WHOLE[:-1], "the text ends"),
    (WHOLE.replace("{", "{/* a network */", 1), "line 1, column 2"),
    ("/* a network */" + WHOLE, "line 1, column 1"),
    ("\ufeff" + WHOLE, "line 1, column 1"),
    (WHOLE.replace('"shape"', '"shape": [1], "shape"'), "'shape' stands twice"),
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
    """A model that was read from no file is written from the schema alone."""
    from passlib.graph.node import Entry, Node
    from passlib.symbol import Symbol

    data = Node("null", "data", {"__shape__": "(2, 3)"}, num_outputs=1)
    weight = Node("null", "w", num_outputs=1)
    dense = Node(
        "InnerProduct",
        "fc",
        {"outputs": "4", "bias": "False"},
        [Entry(data), Entry(weight)],
        num_outputs=1,
    )
    symbol = Symbol([Entry(dense)], "dlprim")
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
