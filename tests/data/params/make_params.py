"""Write the files of this folder with MXNet 1.9.1 (numpy < 1.24); run by hand, not by tests.

Usage: python make_params.py FOLDER. Files named v0, v1, gpu and bfloat16 are packed here, because
MXNet cannot be made to write them; each is loaded by MXNet before it counts, and the bfloat16
one is saved by it again.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import nd

FOLDER = Path(sys.argv[1])
DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")


def save(name: str, data: object, *, np_shape: bool = False) -> None:
    """Save with MXNet."""
    with mx.util.np_shape(np_shape):
        nd.save(str(FOLDER / f"{name}.params"), data)


def ramp(dtype: str, *shape: int) -> nd.NDArray:
    """Count from 0, modulo 2 for bool."""
    count = np.arange(np.prod(shape)).reshape(shape)
    return nd.array(count % 2 if dtype == "bool" else count, dtype=dtype)


def pack(name: str, record: bytes) -> str:
    """Write one record under the name x; make sure that MXNet reads 0, 1, 2 from it."""
    path = str(FOLDER / f"{name}.params")
    content = struct.pack("<QQQ", 0x112, 0, 1) + record + struct.pack("<QQ", 1, 1) + b"x"
    Path(path).write_bytes(content)
    loaded = nd.load(path)["x"]
    assert loaded.shape == (1, 3), loaded.shape
    return path


for dtype in DTYPES:
    save(dtype, {"arg:x": ramp(dtype, 5, 1), "aux:y": ramp("float32", 2, 3)})
save("list", [ramp("float32", 2), ramp("int32", 1, 2)])
save("single", ramp("float32", 3))
save("empty", {})
save("names", {"": ramp("float32", 1), "größe/λ": ramp("float32", 2)})
save("cpu3", {"x": nd.zeros((2,), ctx=mx.cpu(3))})
save("zero_size", {"x": nd.array(np.zeros((0, 3))), "y": ramp("float32", 2)})
save("many_dimensions", {"x": ramp("float32", 1, 2, 1, 1, 2, 1, 1, 1)})
save("scalar_v2", {"x": nd.array(3.0), "y": ramp("float32", 2)})
rows = nd.sparse.row_sparse_array((np.arange(6.0).reshape(2, 3), [0, 4]), shape=(6, 3))
matrix = nd.sparse.csr_matrix(
    (np.array([1.0, 2.0, 3.0]), [0, 2, 1], [0, 2, 2, 3]), shape=(3, 4), dtype="float16"
)
save("sparse", {"rows": rows, "matrix": matrix, "dense": ramp("float32", 2)})
save(
    "sparse_empty",
    {"rows": nd.sparse.zeros("row_sparse", (6, 3)), "matrix": nd.sparse.zeros("csr", (3, 4))},
)
with mx.util.np_shape(True):
    v3 = {"x": nd.ones(()), "y": nd.ones((2, 0)), "z": ramp("float64", 2, 2)}
save("v3", v3, np_shape=True)

floats = np.arange(3, dtype="<f4").tobytes()
pack("v0", struct.pack("<3I3i", 2, 1, 3, 1, 0, 0) + floats)
pack("v1", struct.pack("<Ii2q3i", 0xF993FAC8, 2, 1, 3, 1, 0, 0) + floats)
pack("gpu", struct.pack("<Iii2q3i", 0xF993FAC9, 0, 2, 1, 3, 2, 1, 0) + floats)
upper = struct.pack("<3H", 0, 0x3F80, 0x4000)
path = pack("bfloat16", struct.pack("<Iii2q3i", 0xF993FAC9, 0, 2, 1, 3, 1, 0, 12) + upper)
nd.save(path, nd.load(path))
