"""Element types: MXNet's numbers to NumPy's types and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passlib.arrays import dtypes
from passlib.errors import UnsupportedError


@pytest.mark.parametrize(
    ("number", "name", "size"),
    [
        (0, "float32", 4),
        (1, "float64", 8),
        (2, "float16", 2),
        (3, "uint8", 1),
        (4, "int32", 4),
        (5, "int8", 1),
        (6, "int64", 8),
        (7, "bool", 1),
        (8, "int16", 2),
        (9, "uint16", 2),
        (10, "uint32", 4),
        (11, "uint64", 8),
        (12, "bfloat16", 2),
    ],
)
def test_codes_go_both_ways(number: int, name: str, size: int) -> None:
    dtype = dtypes.from_code(number)
    assert dtype.name == name
    assert dtype.itemsize == size
    assert dtypes.code(dtype) == dtypes.code(name) == number


@pytest.mark.parametrize("number", [-1, 13, 255])
def test_unknown_codes(number: int) -> None:
    with pytest.raises(UnsupportedError, match=f"code {number}"):
        dtypes.from_code(number)


@pytest.mark.parametrize("dtype", ["complex64", "S3", "U1", "O", "datetime64[s]", [("a", "<f4")]])
def test_types_that_mxnet_lacks(dtype: Any) -> None:
    with pytest.raises(UnsupportedError, match="MXNet has no dtype for"):
        dtypes.code(dtype)


@pytest.mark.parametrize(("dtype", "number"), [(">f4", 0), (np.int64, 6), (float, 1), (bool, 7)])
def test_code_takes_what_numpy_takes(dtype: Any, number: int) -> None:
    assert dtypes.code(dtype) == number


def test_bfloat16_as_mxnet_describes_it() -> None:
    assert dtypes.code([("bfloat16", "<u2")]) == dtypes.BFLOAT16_CODE
    one = np.array([0x3F80], np.uint16).view(dtypes.as_dtype("bfloat16"))
    assert float(one[0]) == 1.0
