"""The .npz and .npy files of MXNet 2.0, NumPy's own, and damaged ones."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passlib
from passlib import nd
from passlib.arrays import dtypes
from passlib.dialects.weights.npz import write_npz
from passlib.errors import FormatError, UnsupportedError
from passlib.files.source import MAP_FROM

EXAMPLES = int(os.environ.get("PASSLIB_FUZZ_EXAMPLES", "300"))


def npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def header(text: str, data: bytes = b"", version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


def archive(
    members: dict[str, bytes], compression: int = zipfile.ZIP_STORED, comment: bytes = b""
) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as writer:
        for name, content in members.items():
            writer.writestr(name, content)
        writer.comment = comment
    return file.getvalue()


def mxnet_format_member(stype: str) -> bytes:
    """Return the header that MXNet 2.0 writes: a dictionary that begins inside another."""
    text = f"{{'descr': '|s{len(stype)}{{'descr': '<i8', 'fortran_order': False, 'shape': (), }}"
    return header(text.ljust(117) + "\n", stype.encode())


def sparse_members(prefix: str, stype: str, **changes: bytes) -> dict[str, bytes]:
    if stype == "csr":
        parts = {"data": np.array([5, 6], "f4"), "indptr": np.array([0, 1, 2])}
        parts |= {"indices": np.array([2, 0]), "shape": np.array([2, 3])}
    else:
        parts = {"data": np.array([[5, 6]], "f4"), "indices": np.array([1])}
        parts |= {"shape": np.array([3, 2])}
    members = {name: npy(part) for name, part in parts.items()}
    members["format"] = mxnet_format_member(stype)
    return {f"{prefix}{name}.npy": content for name, content in (members | changes).items()}


def load(content: bytes) -> dict[str, Any]:
    loaded = nd.load_frombuffer(content)
    assert isinstance(loaded, dict)
    return loaded


def load_list(content: bytes) -> list[Any]:
    loaded = nd.load_frombuffer(content)
    assert isinstance(loaded, list)
    return loaded


def test_dense_members_keep_their_names() -> None:
    weights = {"arg:a/b": np.arange(6.0).reshape(2, 3), "aux:c": np.array(7, np.int8)}
    loaded = load(archive({f"{name}.npy": npy(array) for name, array in weights.items()}))
    assert list(loaded) == list(weights)
    for name, array in weights.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)


def test_an_empty_archive_is_an_empty_dict() -> None:
    assert load(archive({})) == {}


@pytest.mark.parametrize(
    ("stype", "dense"),
    [("csr", [[0, 0, 5], [6, 0, 0]]), ("row_sparse", [[0, 0], [5, 6], [0, 0]])],
)
@pytest.mark.parametrize("prefix", ["arg:w/", ""])
def test_sparse_members(stype: str, dense: list[list[float]], prefix: str) -> None:
    members = {"arg:d.npy": npy(np.ones(2))} if prefix else {}
    loaded = load(archive(members | sparse_members(prefix, stype)))
    array = loaded[prefix[:-1]]
    assert array.stype == stype
    np.testing.assert_array_equal(array.asnumpy(), dense)


@pytest.mark.parametrize("kind", ["S", "U"])
def test_sparse_label_as_numpy_writes_it(kind: str) -> None:
    label = npy(np.array("csr", kind))
    assert load(archive(sparse_members("w/", "csr", format=label)))["w"].stype == "csr"


def test_a_single_array_of_mxnet_2_is_a_list_of_one() -> None:
    (array,) = load_list(npy(np.arange(3)))
    np.testing.assert_array_equal(np.asarray(array), [0, 1, 2])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_bfloat16_fortran_order_and_header_versions(version: int) -> None:
    text = "{'descr': [('bfloat16', '<u2')], 'fortran_order': True, 'shape': (2, 2), }"
    data = np.array([1, 2, 3, 4], dtypes.as_dtype("bfloat16")).tobytes()
    (array,) = load_list(header(text, data, version))
    assert array.dtype == dtypes.as_dtype("bfloat16")
    np.testing.assert_array_equal(array.astype("float32").asnumpy(), [[1, 3], [2, 4]])


def test_big_endian_numbers_become_native() -> None:
    (array,) = load_list(npy(np.arange(3, dtype=">i4")))
    assert array.dtype.isnative
    np.testing.assert_array_equal(np.asarray(array), [0, 1, 2])


@pytest.mark.parametrize("descr", [",f4", "(2,", ",,,", "\\x00f4"])
def test_element_types_that_are_none(descr: str) -> None:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': (1,), }}"
    with pytest.raises(
        FormatError, match=r"header of .* is invalid: (NumPy|MXNet) has no|not under"
    ):
        nd.load_frombuffer(header(text, bytes(4)))


def test_compressed_members() -> None:
    content = archive({"a.npy": npy(np.zeros(1000))}, zipfile.ZIP_DEFLATED)
    assert len(content) < 1000
    np.testing.assert_array_equal(load(content)["a"], np.zeros(1000))


def test_large_stored_members_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "weights.params"
    members = {"small.npy": npy(np.ones(3)), "large.npy": npy(np.zeros(2 * MAP_FROM, np.uint8))}
    path.write_bytes(archive(members))
    before = path.read_bytes()
    tracemalloc.start()
    loaded = nd.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MAP_FROM // 4
    assert isinstance(loaded, dict)
    large = loaded["large"]
    assert isinstance(large, nd.NDArray)
    large[:] = 1
    np.testing.assert_array_equal(np.asarray(loaded["small"]), np.ones(3))
    assert path.read_bytes() == before


def with_flag(content: bytes, flag: int) -> bytes:
    changed = bytearray(content)
    at = changed.index(b"PK\x01\x02")
    changed[at + 8] |= flag
    return bytes(changed)


def with_directory_size(content: bytes, *, stored: int, unpacked: int) -> bytes:
    changed = bytearray(content)
    at = changed.index(b"PK\x01\x02")
    struct.pack_into("<II", changed, at + 20, stored, unpacked)
    return bytes(changed)


def twice(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as writer:
        writer.writestr(name, npy(np.ones(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            writer.writestr(name, npy(np.ones(1)))
    return file.getvalue()


ONE = archive({"a.npy": npy(np.ones(1))})
DEFLATED = archive({"a.npy": npy(np.ones(1))}, zipfile.ZIP_DEFLATED)
GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
DAMAGED = {
    "checksum": (ONE[:165] + b"\xee" + ONE[166:], "checksum"),
    "no directory": (ONE[:100], "damaged"),
    "encrypted": (with_flag(ONE, 1), "encrypted"),
    "more than the file": (
        with_directory_size(ONE, stored=1 << 31, unpacked=1 << 31),
        "claims 2147483648 bytes",
    ),
    "impossible ratio": (
        with_directory_size(DEFLATED, stored=50, unpacked=60_000_000),
        "claims to unpack 50 bytes to 60000000",
    ),
    "too much": (
        with_directory_size(DEFLATED, stored=50, unpacked=1 << 31),
        "which with the members before it is more than 67108864",
    ),
    "unpacks to less": (
        with_directory_size(DEFLATED, stored=len(DEFLATED), unpacked=200),
        "unpacks to|claims|damaged",
    ),
    "other compression": (archive({"a.npy": npy(np.ones(1))}, zipfile.ZIP_BZIP2), "method 12"),
    "twice": (twice("a.npy"), "occurs twice"),
    "pickle": (archive({"a.npy": npy(np.array([{}], object))}), "element type '|O'|is invalid"),
    "complex": (npy(np.zeros(1, "c8")), "complex64"),
    "text": (npy(np.array(["a"])), "is invalid"),
    "not npy": (archive({"a.npy": b"hello, this is text"}), "not in .npy form"),
    "data missing": (header(GOOD, b""), "needs 4 bytes"),
    "data beyond": (archive({"a.npy": header(GOOD, bytes(8))}), "describes .* bytes, but has"),
    "huge shape": (header(GOOD.replace("(1,)", "(1 << 9,)")), "is invalid"),
    "negative": (header(GOOD.replace("(1,)", "(-1,)")), "negative dimension"),
    "overflow": (header(GOOD.replace("(1,)", f"({1 << 62}, {1 << 62})")), "beyond 64 bits"),
    "bool as size": (header(GOOD.replace("(1,)", "(True,)")), "not a tuple of integers"),
    "too deep": (header("(" * 5000), "is invalid"),
    "9,000 digits": (archive({"a.npy": header(GOOD.replace("1,", "9" * 9000))}), "9000 digits"),
    "many digits": (header(GOOD.replace("1,", "9" * 4000)), "4000 digits, beyond 64 bits"),
    "long type": (header(GOOD.replace("<f4", "f" * 9000)), "has no element type 'ff"),
    "long order": (header(GOOD.replace("False", "'" + "f" * 9000 + "'")), "fortran_order is 'ff"),
    "code": (header("__import__('os').system('true')"), "is invalid"),
    "key missing": (header("{'descr': '<f4'}"), "its keys"),
    "order no bool": (header(GOOD.replace("False", "0")), "fortran_order"),
    "long header": (header(GOOD, version=2)[:8] + b"\xff" * 4 + bytes(64), "claims a header of"),
    "unknown version": (header(GOOD, bytes(4), version=4), "version 4"),
    "one name for two": (
        archive({"w.npy": npy(np.ones(1))} | sparse_members("w/", "csr")),
        "two arrays have the name 'w'",
    ),
    "label": (archive(sparse_members("w/", "csr", format=npy(np.array(b"csc")))), "holds b'csc'"),
    "indices": (
        archive(sparse_members("w/", "csr", indices=npy(np.array([0, 9])))),
        "'w' is not a valid csr array",
    ),
    "shape": (archive(sparse_members("w/", "csr", shape=npy(np.ones(2)))), "does not hold a shape"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused(case: str) -> None:
    content, words = DAMAGED[case]
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=words) as caught:
            nd.load_frombuffer(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 250
    assert peak < 4 << 20


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = archive({"a.npy": npy(np.zeros(100 << 20, np.uint8))}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="unpacks to 104857728 bytes"):
            nd.load_frombuffer(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def shared_header(count: int, size: int, compression: int = zipfile.ZIP_STORED) -> bytes:
    """Make an archive whose directory lists its one member under many names."""
    name = "m000.npy"
    content = archive({name: npy(np.zeros(size, np.uint8))}, compression)
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entries = [
        content[start:end].replace(name.encode(), f"m{i:03}.npy".encode()) for i in range(count)
    ]
    directory = b"".join(entries)
    tail = bytearray(content[end:])
    struct.pack_into("<HHII", tail, 8, count, count, len(directory), start)
    return content[:start] + directory + bytes(tail)


def partly_overlapping() -> bytes:
    """Make an archive with a member inside the data of another."""
    inner = archive({"b.npy": npy(np.ones(2))})
    inner = inner[: inner.index(b"PK\x01\x02")]
    content = bytearray(archive({"a.npy": inner, "b.npy": npy(np.ones(2))}))
    last = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, last + 42, content.index(b"PK\x03\x04", 1))
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        shared_header(700, 4 << 10),
        shared_header(2, 100, zipfile.ZIP_DEFLATED),
        shared_header(3, 0),
        partly_overlapping(),
    ],
    ids=["shared", "shared and compressed", "shared and empty", "nested"],
)
def test_overlapping_members_are_refused(content: bytes) -> None:
    with pytest.raises(FormatError, match=r"member '[mb]\w*\.npy' overlaps another member"):
        nd.load_frombuffer(content)


def test_the_limit_of_compressed_members_can_be_set() -> None:
    content = archive({"a.npy": npy(np.zeros(70 << 20, np.uint8))}, zipfile.ZIP_DEFLATED)
    with passlib.limits(expanded_bytes=71 << 20):
        assert load(content)["a"].shape == (70 << 20,)
    # Each fits, and both together do not.
    two = {name: npy(np.zeros(40 << 20, np.uint8)) for name in ("a.npy", "b.npy")}
    with pytest.raises(FormatError, match=r"'b\.npy' unpacks to 41943168 bytes"):
        load(archive(two, zipfile.ZIP_DEFLATED))


def test_nul_in_a_name() -> None:
    content = archive({"a_b.npy": npy(np.ones(2))}).replace(b"a_b", b"a\0b")
    with pytest.raises(FormatError, match="NUL character"):
        load(content)


SAMPLES = [
    shared_header(2, 100),
    archive({"a.npy": npy(np.arange(4.0)), "b/c.npy": npy(np.ones((2, 2), np.int8))}),
    archive(sparse_members("w/", "csr") | sparse_members("v/", "row_sparse")),
    DEFLATED,
    npy(np.arange(4.0)),
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_mutated_files_are_read_or_refused_within_bounds(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=4) | st.just(b"\xff" * 4))
        content[at : at + len(patch)] = patch
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    tracemalloc.start()
    try:
        with suppress(FormatError):
            nd.load_frombuffer(content)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 8 << 20


def test_write_npz_is_read_by_numpy_and_by_us(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    weights = {
        "arg:t": np.arange(6.0).reshape(2, 3).T,
        "scalar": np.array(3, np.int16),
        "big": np.arange(3, dtype=">f4"),
        "empty": np.zeros((0, 2)),
        "half": np.array([1, 2], dtypes.as_dtype("bfloat16")),
    }
    matrix = nd.array([[0, 1], [2, 0]]).tostype("csr")
    assert isinstance(matrix, nd.CSRNDArray)
    write_npz(path, {**weights, "matrix": matrix.parts})
    first = path.read_bytes()
    write_npz(path, {**weights, "matrix": matrix.parts})
    assert path.read_bytes() == first
    by_numpy = np.load(path)
    np.testing.assert_array_equal(by_numpy["arg:t"], weights["arg:t"])
    assert by_numpy["matrix/format"] == b"csr"
    loaded = load(first)
    assert list(loaded) == [*weights, "matrix"]
    for name, array in weights.items():
        assert loaded[name].shape == array.shape
        np.testing.assert_array_equal(np.asarray(loaded[name]), array)
    np.testing.assert_array_equal(loaded["matrix"].asnumpy(), [[0, 1], [2, 0]])


def test_write_npz_refuses_what_cannot_be_read_back(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"'x'.*complex64"):
        write_npz(tmp_path / "x", {"x": np.zeros(1, np.complex64)})
    matrix = nd.zeros((2, 2), stype="csr")
    with pytest.raises(ValueError, match="'m/data'"):
        write_npz(tmp_path / "x", {"m": matrix.parts, "m/data": np.zeros(1)})
    assert list(tmp_path.iterdir()) == []
