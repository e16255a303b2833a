"""HDF5 files that are made to take memory or time: refused before either is spent."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from dlprim_files import network, operator, write
from passlib.dialects import ModelData, find
from passlib.errors import FormatError
from steps import counted_steps

h5py: Any = pytest.importorskip("h5py")

MB = 1 << 20
NETWORK = network(operator("relu", "Activation", activation="relu"))


def read(tmp_path: Path, fill: Callable[[Any], None]) -> ModelData:
    """Read a network without parameters with the .h5 file that ``fill`` writes."""
    with h5py.File(tmp_path / "w.h5", "w") as file:
        fill(file)
    return find("dlprim").load(write(tmp_path, NETWORK), params=tmp_path / "w.h5")


def circle(file: Any) -> None:
    group = file.create_group("g")
    group["w"] = np.ones(3)
    group["a"] = group
    group["b"] = group


def six_linked_groups(file: Any) -> None:
    groups = [file.create_group(f"g{i}") for i in range(6)]
    for group in groups:
        for number, other in enumerate(groups):
            group[f"to{number}"] = other
    groups[0]["w"] = np.ones(3)


def root_in_itself(file: Any) -> None:
    file["w"] = np.ones(3)
    file.create_group("inner")["root"] = file["/"]


@pytest.mark.parametrize(
    ("fill", "name"), [(circle, "g/w"), (six_linked_groups, "g0/w"), (root_in_itself, "w")]
)
def test_circles_of_groups(tmp_path: Path, fill: Callable[[Any], None], name: str) -> None:
    found, steps = counted_steps(lambda: read(tmp_path, fill))
    assert list(found.args) == [name]
    assert steps < 20_000


def test_links_are_followed_without_opening_what_is_known(tmp_path: Path) -> None:
    path, network = tmp_path / "w.h5", write(tmp_path, NETWORK)
    with h5py.File(path, "w") as file:
        file["w"] = np.ones(3)
        for number in range(2_000):
            file[f"w{number}"] = file["w"]

    def open_each() -> None:
        with h5py.File(path) as file:
            for name in file:
                assert file[name].shape == (3,)

    found, steps = counted_steps(lambda: find("dlprim").load(network, params=path))
    assert len(found.args) == 2_001
    assert 2 * steps < counted_steps(open_each)[1]


def test_deep_groups_are_refused_not_left_out(tmp_path: Path) -> None:
    def fill(levels: int) -> Callable[[Any], None]:
        return lambda file: file.create_dataset("/".join(["g"] * levels + ["w"]), data=np.ones(3))

    assert len(read(tmp_path, fill(16)).args) == 1
    with pytest.raises(FormatError, match="nested more than 16 levels"):
        read(tmp_path, fill(17))


def test_a_dataset_of_two_names_is_two_parameters(tmp_path: Path) -> None:
    def fill(file: Any) -> None:
        file["a"] = np.ones(3)
        file["b"] = file["a"]

    model = read(tmp_path, fill)
    assert not np.shares_memory(model.args["a"], model.args["b"])
    np.testing.assert_array_equal(model.args["b"], [1, 1, 1])


def linked(file: Any) -> None:
    file["w"] = np.zeros(MB // 4, "f4")
    for i in range(1000):
        file[f"w{i}"] = file["w"]


def unallocated(file: Any) -> None:
    file.create_dataset("w", (1 << 28,), "f4", chunks=(1024,))


def unallocated_in_pieces(file: Any) -> None:
    for i in range(100):
        file.create_dataset(f"w{i}", (MB,), "f4", chunks=(1024,))


def tiny_chunks(file: Any) -> None:
    """4 MB, for whose chunks HDF5 takes 4 GB and half a minute."""
    file.create_dataset("w", (MB,), "f4", chunks=(1,))


def zeros(file: Any) -> None:
    file.create_dataset("w", data=np.zeros(50 * MB, "f4"), chunks=(MB,), compression="gzip")


def large_chunk(file: Any) -> None:
    file.create_dataset("w", (1,), "f4", chunks=(1 << 25,), maxshape=(None,), compression="gzip")
    file["w"][0] = 1


def bursting_chunk(file: Any) -> None:
    """A chunk of 4 KB whose stream unpacks to 128 MB: HDF5 unpacks all of it."""
    made = file.create_dataset("w", (1024,), "f4", chunks=(1024,), compression="gzip")
    made.id.write_direct_chunk((0,), zlib.compress(bytes(128 * MB), 9))


def compressed_twice(file: Any) -> None:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1024,))
    plist.set_deflate(9)
    plist.set_filter(h5py.h5z.FILTER_LZF, 0, ())
    space = h5py.h5s.create_simple((1024,))
    h5py.h5d.create(file.id, b"w", h5py.h5t.IEEE_F32LE, space, plist)
    file["w"][:] = 1


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (linked, r"w\d+' takes 1048576 bytes .*\.limits\(expanded_bytes"),
        (unallocated, r"'w' takes 1073741824 bytes that are not in the file"),
        (unallocated_in_pieces, r"'w\d+' takes 4194304 bytes"),
        (tiny_chunks, r"'w' takes 4294967296 bytes"),
        (zeros, r"'w' takes \d+ bytes"),
        (large_chunk, r"'w' takes 134217728 bytes"),
        (bursting_chunk, r"'w' has a chunk that does not unpack to its 4096 bytes"),
        (compressed_twice, r"'w' is compressed more than once"),
    ],
)
def test_memory_is_not_allocated(tmp_path: Path, fill: Callable[[Any], None], message: str) -> None:
    with h5py.File(tmp_path / "w.h5", "w") as file:
        fill(file)
    path = write(tmp_path, NETWORK)
    passlib.load(path)  # imports what is needed, which takes memory too
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=rf"w\.h5: dataset .*{message}"):
            passlib.load(path, params=tmp_path / "w.h5")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All that was read before the limit was reached is within it.
    assert peak < 110 * MB


def test_the_limit_can_be_raised(tmp_path: Path) -> None:
    with passlib.limits(expanded_bytes=200 * MB):
        model = read(tmp_path, zeros)
    assert model.args["w"].shape == (50 * MB,)
    with passlib.limits(expanded_bytes=0), pytest.raises(FormatError, match="more than 0"):
        read(tmp_path, lambda file: file.create_dataset("w", (5,), "f4", chunks=(5,)))


def test_genuine_forms_of_storage(tmp_path: Path) -> None:
    """Contiguous, converted, gzip with shuffle and checksum, and LZF: none is an expansion."""
    noise = np.random.default_rng(0).standard_normal(MB).astype("f4")

    def fill(file: Any) -> None:
        file["plain"] = noise
        file["double"] = noise[:1000].astype("f8")
        file["bytes"] = np.arange(200, dtype="u1")
        file.create_dataset("gzip", data=noise, compression="gzip", shuffle=True, fletcher32=True)
        file.create_dataset("lzf", data=noise[:1000], compression="lzf")

    model = read(tmp_path, fill)
    for name in ("plain", "gzip"):
        np.testing.assert_array_equal(model.args[name], noise)
    for name in ("double", "lzf"):
        np.testing.assert_array_equal(model.args[name], noise[:1000])
    np.testing.assert_array_equal(model.args["bytes"], np.arange(200))
