"""Cases of integers beyond their type, and of attributes and shapes given in odd ways."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

INF = float("inf")
EDGES = {
    "int8": (100, -100, 5, 127, -128, 3),
    "uint8": (255, 1, 0, 250, 200, 7),
    "int32": (2**31 - 1, 70_000, -(2**31), 16_777_217, -3, 5),
    "int64": (3_000_000_001, 2**62, 2**53 + 1, -(2**62), 7, 16_777_217),
}


def wrapping() -> Iterator[Case]:
    """Sums, products, means and deviations that leave the type of their elements."""
    for dtype, numbers in EDGES.items():
        line = of(*numbers, dtype=dtype)
        square = of(*numbers, *numbers[:3], dtype=dtype).reshape(3, 3)
        for name in ("_np_sum", "_np_prod", "_npi_square", "_np_cumsum", "_npx_relu"):
            yield case(name, line)
        for name in ("_npi_degrees", "_npi_radians"):
            yield case(name, line)
        for name in ("_np_sum", "_np_prod", "_npi_var", "_npi_std"):
            for axis in (0, 1):
                yield case(name, square, axis=axis)
            yield case(name, np.stack([square, square.T]), axis=(0, 2), keepdims=True)
        for name in ("_npi_var", "_npi_std") if dtype != "int64" else ():
            yield case(name, square, axis=1, dtype="float64")
        yield case("_npi_average", line, weighted=False)
        yield case("_npi_average", square, square.T.copy(), axis=1, returned=True)
        yield case("_np_trace", square)
        yield case("_np_prod", line, dtype="int64")
        yield case("_np_prod", line, dtype="int32")
    yield case("_np_prod", of(*range(1, 21), dtype="int64"))
    yield case("_np_prod", whole(5, 7, low=1, high=9, dtype="int64"), axis=1)


def statistics() -> Iterator[Case]:
    """Percentiles next to infinities, norms of each kind, counts of a single number."""
    ends = of(-INF, 1, 2, 3, INF)
    for kind in ("linear", "midpoint", "lower", "higher", "nearest"):
        for q in (0, 10, 25, 60, 75, 99, 100):
            yield case("_npi_percentile", ends, q_scalar=q, interpolation=kind)
    yield case("_npi_bincount", of(3, dtype="int32").reshape(()))
    yield case("_npi_bincount", of(1, 3, dtype="int64"), minlength=-2)
    sparse = of(0, 0, 0, 3, -4, 4).reshape(3, 2)
    for order in (-1, -2, -0.5, 0, 0.5, 1, 3):
        yield case("_npi_norm", sparse, flag=-1, ord=order, axis=1)
        for flag in (1, 3):
            yield case("_npi_norm", real(2, 3, 4), flag=flag, ord=order, axis=(0,))
    for flag in (-2, 1):
        yield case("_npi_norm", real(2, 3, 4), flag=flag)
    yield case("_npi_norm", real(2, 3, 4), flag=1, axis=(0, 2), keepdims=True)


def spelled() -> Iterator[Case]:
    """Counts with a sign, axes left out, places left out, values with more axes."""
    yield case("_np_atleast_2d", real(2), real(3), num_args="+2")
    yield case("_npi_hsplit", real(2, 6), axis=1, indices="()", sections="+3")
    yield case("_npi_flip", real(2, 3), axis="None")
    for dtype in ("float32", "int8"):
        array = whole(6, dtype=dtype)
        yield case("_npi_insert_scalar", array, val=9)
        yield case("_npi_insert_scalar", array, of(8, dtype=dtype))
        values = whole(1, 2, dtype=dtype)
        yield case("_npi_insert_slice", array.reshape(1, 6), values, start=1, stop=4, step=2)
        yield case("_npi_delete", array, axis=0, int_ind=1, step=2)
        yield case("_npi_delete", array, axis=0, int_ind=1, step=2, start=3)
        yield case("_npi_delete", array, axis=0, int_ind=1, start=2)
    matrix = np.array([[2.0, 1.0], [0.5, 3.0]])
    kinds = ("float32", "float64", "int32")
    for first in kinds:
        for second in kinds:
            right = real(2, 3, low=0, high=9, dtype=second)
            yield case("_npi_solve", matrix.astype(first), right)
            yield case("_npi_tensorsolve", matrix.astype(first), right[:, 0].copy())
    yield case("_npi_tensorsolve", matrix, real(2, dtype="float64"), a_axes="None")
    for name in ("softmax", "log_softmax"):
        for axis in (0, -1):
            yield case(f"_npx_{name}", of(2).reshape(()), axis=axis)


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from wrapping()
    yield from statistics()
    yield from spelled()
