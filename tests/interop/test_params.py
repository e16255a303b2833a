"""Parameter files written by one side and read by the other, equal to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mxnet_process import MXNet
from passlib import nd
from places import DATA, SHARED

Arrays = dict[str, Any]

UNREADABLE = {"scalar_v2"}
"""Files that MXNet writes but cannot read: 0-d arrays while NumPy's shapes are off."""
FILES = sorted(
    {
        path.name: path
        for folder in (SHARED / "mxnet/models", DATA / "mxnet/models", DATA / "params")
        for path in folder.glob("*.params")
        if path.stem not in UNREADABLE
    }.values()
)


def arrays() -> dict[str, Arrays]:
    random = np.random.default_rng(7)
    numbers = random.standard_normal((3, 1, 4)) * 50
    dtypes = ("float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool")
    return {
        "every_dtype": {dtype: np.abs(numbers).astype(dtype) for dtype in dtypes},
        "special_values": {
            "floats": np.array([np.nan, -np.inf, np.inf, -0.0, 1e-45, 3.4e38], "float32"),
            "doubles": np.array([np.nan, -np.inf, 5e-324, 1.7e308]),
            "integers": np.array([-(2**63), 2**63 - 1]),
        },
        "shapes": {
            f"rank{rank}": random.random(tuple(range(1, rank + 1))).astype("float32")
            for rank in range(1, 8)
        },
        "names": {
            "arg:fc/weight": np.zeros(2, "float32"),
            "aux:größe λ 模型": np.ones((1, 2), "float32"),
            "with space:and:colons": np.arange(3, dtype="int32"),
        },
        "large": {"weight": random.random((512, 1025)).astype("float32")},
    }


def assert_same(found: Arrays, expected: Arrays) -> None:
    assert list(found) == list(expected)
    for key, array in expected.items():
        assert found[key].dtype == array.dtype
        assert found[key].shape == array.shape
        assert found[key].tobytes() == array.tobytes()


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("case", arrays())
def test_written_alike_and_read_crosswise(
    mxnet: MXNet, tmp_path: Path, case: str, named: bool
) -> None:
    content = arrays()[case]
    source, back = tmp_path / "source.npz", tmp_path / "back.npz"
    ours, theirs = tmp_path / "ours.params", tmp_path / "theirs.params"
    np.savez(source, **content)
    mxnet("save_arrays", source=str(source), target=str(theirs), named=named)
    nd.save(ours, content if named else list(content.values()))
    assert ours.read_bytes() == theirs.read_bytes()

    expected = content if named else {str(i): a for i, a in enumerate(content.values())}
    mxnet("load_arrays", source=str(ours), target=str(back))
    with np.load(back) as read:
        assert_same(dict(read), expected)
    loaded = nd.load(theirs)
    if not isinstance(loaded, dict):
        loaded = {str(i): array for i, array in enumerate(loaded)}
    assert_same({key: array.asnumpy() for key, array in loaded.items()}, expected)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_real_files_saved_again_alike(mxnet: MXNet, tmp_path: Path, file: Path) -> None:
    ours, theirs = tmp_path / "ours.params", tmp_path / "theirs.params"
    mxnet("resave_arrays", source=str(file), target=str(theirs), np_shape=file.stem == "v3")
    nd.save(ours, nd.load(file))
    assert ours.read_bytes() == theirs.read_bytes()
