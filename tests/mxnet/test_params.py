"""Parameter files of MXNet 1.9.1 are read correctly and written again byte for byte."""

from __future__ import annotations

import os
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import places
from passlib import context, nd
from passlib.arrays import dtypes
from passlib.errors import FormatError, UnsupportedError
from passlib.files.source import MAP_FROM

DATA = places.DATA / "params"
MODELS = places.SHARED / "mxnet" / "models"
FILES = sorted(DATA.glob("*.params"))
PLAIN_DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")


def ramp(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    count = np.arange(np.prod(shape)).reshape(shape)
    return (count % 2 if dtype == "bool" else count).astype(dtypes.as_dtype(dtype))


ROWS = np.zeros((6, 3))
ROWS[0], ROWS[4] = [0, 1, 2], [3, 4, 5]
MATRIX = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]], np.float16)

EXPECTED: dict[str, Any] = {
    **{
        dtype: {"arg:x": ramp(dtype, 5, 1), "aux:y": ramp("float32", 2, 3)}
        for dtype in PLAIN_DTYPES
    },
    "bfloat16": {"x": ramp("bfloat16", 1, 3)},
    "list": [ramp("float32", 2), ramp("int32", 1, 2)],
    "single": [ramp("float32", 3)],
    "empty": [],
    "names": {"": ramp("float32", 1), "größe/λ": ramp("float32", 2)},
    "cpu3": {"x": np.zeros(2, np.float32)},
    "zero_size": {"x": np.zeros((0, 3), np.float32), "y": ramp("float32", 2)},
    "many_dimensions": {"x": ramp("float32", 1, 2, 1, 1, 2, 1, 1, 1)},
    "scalar_v2": {"x": np.array(3, np.float32), "y": ramp("float32", 2)},
    "sparse": {"rows": ROWS, "matrix": MATRIX, "dense": ramp("float32", 2)},
    "sparse_empty": {"rows": np.zeros((6, 3), np.float32), "matrix": np.zeros((3, 4), np.float32)},
    "v3": {
        "x": np.array(1, np.float32),
        "y": np.zeros((2, 0), np.float32),
        "z": ramp("float64", 2, 2),
    },
    "v0": {"x": ramp("float32", 1, 3)},
    "v1": {"x": ramp("float32", 1, 3)},
    "gpu": {"x": ramp("float32", 1, 3)},
}
# Forms that are no longer written, and a device that readers ignore.
REWRITTEN_OTHERWISE = {"v0", "v1", "gpu", "cpu3", "scalar_v2"}


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.context == context.cpu()
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_every_file_has_its_expectation() -> None:
    assert {file.stem for file in FILES} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_load_gives_what_mxnet_saved(name: str) -> None:
    assert_same(nd.load(DATA / f"{name}.params"), EXPECTED[name])
    assert_same(nd.load_frombuffer((DATA / f"{name}.params").read_bytes()), EXPECTED[name])


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - REWRITTEN_OTHERWISE))
def test_save_writes_the_bytes_of_mxnet(name: str, tmp_path: Path) -> None:
    original = DATA / f"{name}.params"
    nd.save(tmp_path / "again", nd.load(original))
    assert (tmp_path / "again").read_bytes() == original.read_bytes()


def test_save_notes_the_device(tmp_path: Path) -> None:
    nd.save(tmp_path / "again", {"x": nd.zeros((2,), ctx=context.cpu(3))})
    assert (tmp_path / "again").read_bytes() == (DATA / "cpu3.params").read_bytes()


@pytest.mark.parametrize("name", ["v0", "v1", "gpu", "scalar_v2"])
def test_old_forms_become_the_current_one(name: str, tmp_path: Path) -> None:
    nd.save(tmp_path / "again", nd.load(DATA / f"{name}.params"))
    assert_same(nd.load(tmp_path / "again"), EXPECTED[name])


@pytest.mark.parametrize("model", ["lstm_lm", "mobilenet0.25", "resnet_v1_small", "squeezenet1.1"])
def test_whole_models_come_back_byte_for_byte(model: str, tmp_path: Path) -> None:
    original = MODELS / f"{model}-0000.params"
    if not original.exists():
        pytest.skip(f"shared test data {original.name} is not here")
    nd.save(tmp_path / "again", nd.load(original))
    assert (tmp_path / "again").read_bytes() == original.read_bytes()


def test_a_single_array_is_a_list_of_one(tmp_path: Path) -> None:
    nd.save(tmp_path / "one", nd.array([0, 1, 2]))
    assert (tmp_path / "one").read_bytes() == (DATA / "single.params").read_bytes()


def test_strided_and_big_endian_arrays_are_written_in_order(tmp_path: Path) -> None:
    values = np.arange(6, dtype=">f4").reshape(3, 2)
    nd.save(tmp_path / "x", {"t": nd.array(values).T, "b": values})
    loaded = nd.load(tmp_path / "x")
    assert isinstance(loaded, dict)
    np.testing.assert_array_equal(loaded["t"].asnumpy(), values.T)
    np.testing.assert_array_equal(loaded["b"].asnumpy(), values)
    assert loaded["b"].dtype == np.dtype("float32")


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64"])
def test_types_of_mxnet_2(dtype: str, tmp_path: Path) -> None:
    nd.save(tmp_path / "x", [nd.array([1, 2, 3], dtype=dtype)])
    assert_same(nd.load(tmp_path / "x"), [np.array([1, 2, 3], dtype)])


def test_np_shape_writes_version_3(tmp_path: Path) -> None:
    nd.save(tmp_path / "x", [nd.ones((2,))], np_shape=True)
    assert (tmp_path / "x").read_bytes()[24:28] == struct.pack("<I", 0xF993FACA)


def test_sparse_data_counted_before_they_were_computed(tmp_path: Path) -> None:
    content = bytearray((DATA / "sparse.params").read_bytes())
    assert struct.unpack_from("<q", content, 36) == (2,)
    struct.pack_into("<q", content, 36, 0)
    assert_same(nd.load_frombuffer(content), EXPECTED["sparse"])


def test_bytes_after_the_names_are_ignored() -> None:
    content = (DATA / "float32.params").read_bytes() + b"rest"
    assert_same(nd.load_frombuffer(content), EXPECTED["float32"])


@pytest.mark.parametrize(
    ("data", "options", "error", "words"),
    [
        ({"x": np.zeros(2, np.complex64)}, {}, UnsupportedError, "'x'.*complex64"),
        ([np.zeros(2, "U3")], {}, UnsupportedError, "number 0.*<U3"),
        ([np.array(1.0)], {"np_shape": False}, UnsupportedError, "0-d"),
        (
            {"s": np.array(1.0), "r": nd.zeros((2, 2), stype="csr")},
            {},
            UnsupportedError,
            "'r'.*sparse",
        ),
        ({"a\0b": np.zeros(1)}, {}, ValueError, "zero byte"),
        ({1: np.zeros(1)}, {}, TypeError, "name 1"),
        ({"x": [1.0]}, {}, TypeError, "list is not an array"),
        (3, {}, TypeError, "int"),
    ],
)
def test_what_cannot_be_saved(
    data: Any, options: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    target = tmp_path / "x.params"
    target.write_bytes(b"old")
    with pytest.raises(error, match=words):
        nd.save(target, data, **options)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def listing(record: bytes, names: bytes = struct.pack("<Q", 0), count: int = 1) -> bytes:
    return struct.pack("<QQQ", 0x112, 0, count) + record + names


def dense(*shape: int, magic: int = 0xF993FAC9, dtype: int = 0, data: bytes = b"") -> bytes:
    return struct.pack(f"<Iii{len(shape)}q3i", magic, 0, len(shape), *shape, 1, 0, dtype) + data


def csr(indptr: list[int], indices: list[int], columns: int = 3, index_dtype: int = 6) -> bytes:
    values, pointers = len(indices), len(indptr)
    kind = "<i8" if index_dtype == 6 else "<f4"
    return (
        struct.pack("<Iiiqi2q3i", 0xF993FAC9, 2, 1, values, 2, 2, columns, 1, 0, 0)
        + struct.pack("<iiqiiq", 6, 1, pointers, index_dtype, 1, values)
        + np.zeros(values, "<f4").tobytes()
        + np.array(indptr, "<i8").tobytes()
        + np.array(indices, kind).tobytes()
    )


ONE = dense(1, data=bytes(4))
HOSTILE = {
    "nothing": (b"", 0, "nothing"),
    "another format": (b"\x7fELF" + bytes(100), 0, "no parameter file of MXNet"),
    "header only": (struct.pack("<Q", 0x112), 8, "truncated"),
    "more arrays than bytes": (listing(ONE, count=1 << 40), 16, "claims 1099511627776 arrays"),
    "more arrays than there are": (listing(ONE, count=2), 60, "array 1 has no shape"),
    "unknown version": (listing(struct.pack("<I", 0xF993FACB)), 24, "0xF993FACB"),
    "unknown storage": (listing(struct.pack("<Ii", 0xF993FAC9, 3)), 28, "storage type 3"),
    "version 3 sparse": (listing(struct.pack("<Ii", 0xF993FACA, 1)), 28, "dense only"),
    "too many dimensions": (
        listing(struct.pack("<Iii", 0xF993FAC9, 0, 2**31 - 1)),
        32,
        "2147483647 dimensions",
    ),
    "negative dimensions": (listing(struct.pack("<Iii", 0xF993FAC9, 0, -1)), 32, "-1 dimensions"),
    "negative dimension": (listing(dense(2, -2)), 64, "negative dimension"),
    "data beyond the file": (listing(dense(1 << 50)), 56, "needs 4503599627370496 bytes"),
    "overflow": (listing(dense(1 << 62, 1 << 62)), 64, "beyond 64 bits"),
    "overflow beside 0": (listing(dense(1 << 62, 0, 4)), 72, "beyond 64 bits"),
    "unknown dtype": (listing(dense(1, dtype=13)), 52, "dtype 13"),
    "no shape": (listing(struct.pack("<Iii", 0xF993FAC9, -1, 0), bytes(8)), 32, "no shape"),
    "no shape in version 1": (listing(struct.pack("<Ii", 0xF993FAC8, 0)), 24, "no shape"),
    "no shape in version 0": (listing(struct.pack("<I", 0), bytes(8)), 24, "no shape"),
    "no shape in version 3": (listing(struct.pack("<Iii", 0xF993FACA, 0, -1)), 32, "no shape"),
    "version 0 beyond the file": (listing(struct.pack("<I", 32)), 28, "truncated"),
    "too few names": (listing(ONE + ONE, struct.pack("<QQ", 1, 0), count=2), 96, "1 names for 2"),
    "long name": (listing(ONE, struct.pack("<QQ", 1, 1 << 63)), 68, "claims 9223372036854775808"),
    "name not UTF-8": (listing(ONE, struct.pack("<QQ", 1, 2) + b"a\xff"), 77, "not UTF-8"),
    "name twice": (
        listing(ONE + ONE, struct.pack("<Q", 2) + (struct.pack("<Q", 1) + b"a") * 2, count=2),
        96,
        "two arrays have the name 'a'",
    ),
    "csr column outside": (listing(csr([0, 1, 2], [0, 3])), 44, "column indices run from 0 to 3"),
    "csr negative column": (listing(csr([0, 1, 2], [0, -1])), 44, "from -1"),
    "csr falling": (listing(csr([0, 2, 1], [0])), 44, "does not rise"),
    "csr not from 0": (listing(csr([1, 1, 1], [0])), 44, "does not rise"),
    "csr too few rows": (listing(csr([0, 1], [0])), 44, "must hold 3 integers"),
    "csr real indices": (listing(csr([0, 1, 1], [0], index_dtype=0)), 44, "float32"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_damaged_files_say_where(case: str) -> None:
    content, offset, words = HOSTILE[case]
    with pytest.raises(FormatError, match=words) as caught:
        nd.load_frombuffer(content)
    assert caught.value.offset == offset


@pytest.mark.parametrize("name", ["float64", "sparse", "v3", "v0", "v1", "names", "int8"])
def test_every_truncation_is_an_error(name: str) -> None:
    content = (DATA / f"{name}.params").read_bytes()
    for length in range(len(content)):
        with pytest.raises(FormatError) as caught:
            nd.load_frombuffer(content[:length])
        assert caught.value.offset is not None
        assert caught.value.offset <= length


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_mutated_files_are_read_or_refused_within_bounds(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(FILES)).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        patch = data.draw(
            st.binary(min_size=1, max_size=8)
            | st.sampled_from([b"\xff" * 8, b"\x7f" * 4, bytes(8), struct.pack("<q", 1 << 40)])
        )
        content[at : at + len(patch)] = patch
    tracemalloc.start()
    try:
        with suppress(FormatError):
            nd.load_frombuffer(content)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1 << 20


names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)
arrays = hnp.arrays(
    st.sampled_from(["f4", "f8", "f2", "u1", "i4", "i1", "i8", "?", "i2", "u2", "u4", "u8"]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)


@settings(max_examples=150, deadline=None)
@given(weights=st.dictionaries(names, arrays, min_size=1, max_size=5))
def test_what_is_saved_is_loaded(
    weights: dict[str, np.ndarray[Any, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("round") / "x.params"
    nd.save(path, weights)
    loaded = nd.load(path)
    assert isinstance(loaded, dict)
    assert list(loaded) == list(weights)
    for name, array in weights.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert loaded[name].asnumpy().tobytes() == array.tobytes()


def test_large_files_are_mapped_and_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "large.params"
    # An odd number of bytes before "unaligned" puts it at an odd offset.
    weights = {
        "large": np.arange(MAP_FROM, dtype=np.float32),
        "odd": np.array([1], np.int8),
        "unaligned": np.arange(5.0),
    }
    nd.save(path, weights)
    before = path.read_bytes()
    tracemalloc.start()
    loaded = nd.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MAP_FROM // 4
    assert isinstance(loaded, dict)
    for name, array in loaded.items():
        assert isinstance(array, nd.NDArray)
        assert array.flags.aligned
        assert array.flags.writeable
        np.testing.assert_array_equal(array.asnumpy(), weights[name])
        array[...] = 1
    assert path.read_bytes() == before

    nd.save(path, loaded)
    again = nd.load(path)
    assert isinstance(again, dict)
    assert again["large"].asnumpy().min() == 1
    assert loaded["large"].asnumpy().min() == 1
    assert list(tmp_path.iterdir()) == [path]


def test_saving_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        nd.save(tmp_path, [])
    with pytest.raises(FileNotFoundError, match=r"folder does not exist.*missing"):
        nd.save(tmp_path / "missing" / "x", [])
    assert list(tmp_path.iterdir()) == []


def test_saving_to_what_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        nd.save(pipe, [])
        assert os.read(reader, 100) == (DATA / "empty.params").read_bytes()
    finally:
        os.close(reader)
    assert list(tmp_path.iterdir()) == [pipe]


def test_saving_follows_links_and_keeps_permissions(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"")
    target.chmod(0o640)
    link.symlink_to(target)
    nd.save(link, [])
    assert link.is_symlink()
    assert target.read_bytes() == (DATA / "empty.params").read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640
