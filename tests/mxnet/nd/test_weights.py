"""Weights in .params, .npz and .safetensors files."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passlib import nd
from passlib.arrays import dtypes
from passlib.errors import FormatError, UnsupportedError
from passlib.files.source import MAP_FROM
from passlib.mxnet.nd.files import load_weights, save_weights

WEIGHTS: dict[str, np.ndarray[Any, Any]] = {
    "arg:t": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "scalar": np.array(3, np.int8),
    "half": np.array([1, 2], dtypes.as_dtype("bfloat16")),
    "none": np.zeros((0, 2)),
    "big": np.arange(3, dtype=">i4"),
}
SUFFIXES = [".params", ".npz", ".safetensors"]


@pytest.fixture(autouse=True)
def _needs_safetensors(request: pytest.FixtureRequest) -> None:
    if "safetensors" in request.node.name:
        pytest.importorskip("safetensors")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_content_decides_when_reading(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"w{suffix}"
    save_weights(path, WEIGHTS)
    path = path.rename(tmp_path / "renamed")
    loaded = load_weights(path)
    assert set(loaded) == set(WEIGHTS)
    for name, array in WEIGHTS.items():
        assert isinstance(loaded[name], nd.NDArray)
        assert loaded[name].dtype == array.dtype.newbyteorder("=")
        assert loaded[name].shape == array.shape
        np.testing.assert_array_equal(loaded[name].asnumpy(), array)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_dict(suffix: str, tmp_path: Path) -> None:
    save_weights(tmp_path / f"w{suffix}", {})
    assert load_weights(tmp_path / f"w{suffix}") == {}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_large_files_are_mapped_and_can_be_saved_over(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"w{suffix}"
    save_weights(path, {"x": np.zeros(2 * MAP_FROM, np.uint8)})
    before = path.read_bytes()
    load_weights(path)  # the package is imported once
    tracemalloc.start()
    loaded = load_weights(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MAP_FROM // 4
    array = loaded["x"]
    assert isinstance(array, nd.NDArray)
    array[:] = 1
    assert path.read_bytes() == before
    save_weights(path, loaded)
    assert load_weights(path)["x"].asnumpy().min() == 1
    assert array.min() == 1


@pytest.mark.parametrize("suffix", [".params", ".npz"])
def test_sparse_arrays(suffix: str, tmp_path: Path) -> None:
    dense = np.array([[0, 1], [2, 0]], np.float32)
    weights = {kind: nd.array(dense).tostype(kind) for kind in ("csr", "row_sparse")}
    save_weights(tmp_path / f"w{suffix}", weights)
    loaded = load_weights(tmp_path / f"w{suffix}")
    for kind in weights:
        assert loaded[kind].stype == kind
        np.testing.assert_array_equal(loaded[kind].asnumpy(), dense)


@pytest.mark.parametrize(
    ("name", "weights", "error", "words"),
    [
        ("w.safetensors", {"x": nd.zeros((2, 2), stype="csr")}, UnsupportedError, "'x' is csr"),
        ("w.safetensors", {"x": np.zeros(1, np.complex64)}, UnsupportedError, "'x'.*complex64"),
        ("w.npz", {"x": np.zeros(1, np.complex64)}, UnsupportedError, "'x'.*complex64"),
        ("w.bin", {}, ValueError, ".params, .npz or .safetensors"),
        ("w.npz", {"x": 3}, TypeError, "int is not an array"),
    ],
)
def test_what_cannot_be_saved_leaves_the_old_file(
    name: str, weights: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(error, match=words):
        save_weights(path, weights)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_list_without_names_is_refused(tmp_path: Path) -> None:
    nd.save(tmp_path / "x", [nd.ones(1)])
    with pytest.raises(FormatError, match=r"1 arrays in it have no names.*nd\.load"):
        load_weights(tmp_path / "x")


def safetensors(header: Any, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> Any:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (safetensors(entry()), FormatError, "header is damaged"),
        (safetensors(entry(), bytes(9)), FormatError, "header is damaged"),
        (safetensors(entry(shape=(1 << 40,)), bytes(4)), FormatError, "header is damaged"),
        (safetensors(entry(offsets=(4, 0)), bytes(4)), FormatError, "header is damaged"),
        (safetensors(entry("Q7"), bytes(4)), FormatError, "header is damaged"),
        (safetensors(entry("C64", offsets=(0, 8)), bytes(8)), UnsupportedError, "'x'.*C64"),
        (safetensors({})[:9], FormatError, "no parameter file of MXNet"),
    ],
)
def test_damaged_safetensors(
    content: bytes, error: type[Exception], words: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(error, match=words):
        load_weights(tmp_path / "x")


def test_safetensors_metadata_is_no_array(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "np"}} | entry()
    (tmp_path / "x").write_bytes(safetensors(header, bytes(4)))
    assert list(load_weights(tmp_path / "x")) == ["x"]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_mutated_safetensors_are_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    header = entry() | {"y": {"dtype": "I8", "shape": [2, 2], "data_offsets": [4, 8]}}
    content = bytearray(safetensors(header, bytes(8)))
    at = data.draw(st.integers(0, len(content) - 1))
    patch = data.draw(st.binary(min_size=1, max_size=4) | st.sampled_from([b"9999", b"]}", b'"']))
    content[at : at + len(patch)] = patch
    path = tmp_path_factory.mktemp("mutated") / "x"
    path.write_bytes(content)
    with suppress(FormatError, UnsupportedError):
        loaded = load_weights(path)
        assert all(array.asnumpy().nbytes <= 8 for array in loaded.values())
