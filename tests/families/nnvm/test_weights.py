"""Weight files next to graphs of NNVM and TVM."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from nnvm_files import NNVM_CORE, text_of
from passlib.errors import FormatError, UnsupportedError
from passlib.families.nnvm.reading.weights import read_params
from passlib.families.nnvm.writing.file import write

BFLOAT16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
TYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", BFLOAT16),
]
ONE = (
    struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, 1)
    + struct.pack("<Q", 1)
    + b"w"
    + struct.pack("<Q", 1)
    + struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, 1, 2, 32, 1)
    + struct.pack("<qq", 2, 8)
    + struct.pack("<ff", 1.5, -2)
)
"""One array of two numbers, as written by TVM."""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    path.write_bytes(text_of(NNVM_CORE))
    return path


def weights() -> dict[str, Any]:
    generator = np.random.default_rng(2)
    return {"w": generator.standard_normal((2, 3, 3, 3)).astype(np.float32)}


def test_the_format_is_tvms(tmp_path: Path) -> None:
    path = tmp_path / "one.params"
    path.write_bytes(ONE)
    np.testing.assert_array_equal(read_params(path)["w"], np.array([1.5, -2], np.float32))
    write(tmp_path / "again.params", read_params(path))
    assert (tmp_path / "again.params").read_bytes() == ONE


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_element_type(dtype: Any, tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    arrays = {"ä": array, "scalar": array[0, 1:2].reshape(()), "none": array[:0]}
    write(tmp_path / "p", arrays)
    content = read_params(tmp_path / "p")
    assert [(n, a.dtype, a.shape) for n, a in content.items()] == [
        ("ä", array.dtype, (2, 3)),
        ("scalar", array.dtype, ()),
        ("none", array.dtype, (0, 3)),
    ]
    np.testing.assert_array_equal(content["ä"], array)


def test_weights_beside_a_graph_are_read_used_and_written(graph: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    write(tmp_path / "m.params", weights())
    model = passlib.load(graph)
    assert model.inputs == ["data"]
    data = np.ones((1, 3, 5, 5), np.float32)
    plain = passlib.Model(model.symbol, dialect="nnvm")
    for ours, theirs in zip(model(data), plain(data, weights()["w"]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    (tmp_path / "out").mkdir()
    written = model.save(tmp_path / "out" / "n.json")
    assert [Path(name).name for name in written] == ["n.json", "n.params"]
    assert Path(written[1]).read_bytes() == (tmp_path / "m.params").read_bytes()


def test_weights_of_mxnet_stay_mxnets(graph: Path, tmp_path: Path) -> None:
    arrays = {"arg:w": passlib.nd.array(weights()["w"]), "aux:s": passlib.nd.ones((1,))}
    passlib.nd.save(graph.with_suffix(".params"), arrays)
    model = passlib.load(graph)
    assert list(model.args) == ["w"]
    assert list(model.aux) == ["s"]
    written = model.save(tmp_path / "again.json")
    assert Path(written[1]).read_bytes() == graph.with_suffix(".params").read_bytes()


def test_sparse_weights_and_foreign_types_are_refused(graph: Path, tmp_path: Path) -> None:
    for array in (np.ones(2, np.complex64), np.array(["x"])):
        with pytest.raises(UnsupportedError, match="'w'"):
            write(tmp_path / "p", {"w": array})
    model = passlib.load(graph)
    sparse = passlib.nd.sparse.row_sparse_array(
        (np.ones((1, 3), np.float32), np.array([1])), shape=(4, 3)
    )
    made = passlib.Model(model.symbol, {"w": sparse}, dialect="nnvm")
    with pytest.raises(UnsupportedError, match="sparse"):
        made.save(tmp_path / "n.json")
    assert not (tmp_path / "n.json").exists()


BROKEN = {
    "magic": (0, struct.pack("<Q", 5)),
    "names": (16, struct.pack("<Q", 2**60)),
    "name length": (24, struct.pack("<Q", 2**60)),
    "name": (32, b"\xff"),
    "arrays": (33, struct.pack("<Q", 2)),
    "array magic": (41, b"\0"),
    "dimensions": (65, struct.pack("<i", -1)),
    "many dimensions": (65, struct.pack("<i", 1000)),
    "lanes": (71, struct.pack("<H", 4)),
    "kind": (69, b"\x09"),
    "shape": (73, struct.pack("<q", -2)),
    "large shape": (73, struct.pack("<q", 2**61)),
    "size": (81, struct.pack("<q", 9)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_damaged_weights(what: str, graph: Path, tmp_path: Path) -> None:
    at, content = BROKEN[what]
    data = bytearray(ONE)
    data[at : at + len(content)] = content
    (tmp_path / "m.params").write_bytes(data)
    with pytest.raises((FormatError, UnsupportedError)):
        passlib.load(graph)


def test_graph_that_has_the_name_of_its_weights(graph: Path, tmp_path: Path) -> None:
    model = passlib.Model(passlib.load(graph).symbol, weights(), dialect="nnvm")
    with pytest.raises(UnsupportedError, match="weight file"):
        model.save(tmp_path / "x.params")
    model.save(tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_bytes())["heads"] == [[5, 0, 0], [3, 0, 0]]


def test_bytes_after_the_last_array(graph: Path) -> None:
    path = graph.with_suffix(".params")
    write(path, weights())
    before = passlib.validate(graph)
    with path.open("ab") as file:
        file.write(bytes(5))
    (found,) = [problem for problem in passlib.validate(graph) if problem not in before]
    message = "the last 5 bytes belong to no array and are ignored"
    assert found == ("warning", str(path), message)
