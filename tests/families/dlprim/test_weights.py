"""Reading and writing weights of DLPrimitives, .dlp and .h5."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from dlprim_files import (
    DATA,
    load,
    network,
    operator,
    with_weights,
    write,
)
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.model import Model

RELU = operator("relu", "Activation", activation="relu")


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


def test_running_statistics_are_auxiliary(tmp_path: Path) -> None:
    model = with_weights(load(tmp_path, network(operator("bn", "BatchNorm"))))
    assert list(model.args) == ["bn.2", "bn.3"]
    assert list(model.aux) == ["bn.0", "bn.1"]
    files = model.save(tmp_path / "saved")
    again = passlib.load(files[0])
    assert list(again.aux) == ["bn.0", "bn.1"]
    np.testing.assert_array_equal(again.aux["bn.1"], model.aux["bn.1"])


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
    with pytest.raises(
        GraphError, match=r"saved.dlp: 1 of the .* missing \(b.1\); pass allow_missing"
    ):
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
    Model.of_parts(model.symbol, args, {}, model._template).save(tmp_path / "saved")
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
    from passlib.families.dlprim.network import numpy_type

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
    weird = Model.of_parts(model.symbol, {"x": np.ones(2)}, {}, model._template)
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
    weird = Model.of_parts(model.symbol, {"x": sparse}, {}, model._template)
    with pytest.raises(UnsupportedError, match="'x' is sparse"):
        weird.save(tmp_path / "saved")


HEADERS: list[tuple[Any, str]] = [
    ({}, "no object 'tensors'"),
    ({"tensors": {"a": 1}}, "is not an object"),
    (
        {"tensors": {"a": {"dtype": "text", "shape": [1], "start": 0, "size": 8}}},
        "'text', not one of",
    ),
    ({"tensors": {"a": {"dtype": "float", "shape": [-1], "start": 0, "size": 4}}}, "sizes"),
    ({"tensors": {"a": {"dtype": "float", "shape": [1], "start": 2, "size": 4}}}, "ends at byte 6"),
    (
        {"tensors": {"a": {"dtype": "float", "shape": [2], "start": 0, "size": 4}}},
        "8 bytes|4 bytes",
    ),
    ({"tensors": {"a": {"dtype": "float", "shape": [1], "start": "0", "size": 4}}}, "integers"),
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
        "dataset 'r' keeps its elements in other files",
    ),
    (virtual, "dataset 'r' keeps its elements in other files"),
    (lambda file: file.create_dataset("r", dtype="f4"), "dataset 'r' has no elements and no shape"),
]


@pytest.mark.parametrize(("make", "message"), HDF5, ids=lambda value: None)
def test_hostile_hdf5(tmp_path: Path, make: Callable[[Any], Any], message: str) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "net.h5", "w") as file:
        make(file)
    with pytest.raises(FormatError, match=message):
        load(tmp_path, network(RELU))
