"""Cases of the NumPy operators that reduce axes, and of statistics."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

NAN, INF = float("nan"), float("inf")
INTEGERS = ["int8", "uint8", "int32", "int64"]
REALS = ["float16", "float32", "float64"]
AXES = (
    {},
    {"axis": 1},
    {"axis": -1, "keepdims": True},
    {"axis": (2, 0)},
    {"axis": ()},
    {"axis": "(0, -1)", "keepdims": True},
    {"keepdims": True},
)


def reductions() -> Iterator[Case]:
    """Sums and their kin over axes given in every way, of every type, and of nothing."""
    for name in [
        "_np_sum",
        "_np_prod",
        "_np_max",
        "_np_min",
        "_np_all",
        "_np_any",
        "_npi_mean",
        "_npi_std",
        "_npi_var",
    ]:
        for axes in AXES:
            yield case(name, whole(2, 3, 4, low=-1, high=3), **axes)
        for dtype in (*INTEGERS, *REALS):
            yield case(name, whole(3, 4, low=1, high=5, dtype=dtype), axis=0)
            yield case(name, whole(3, low=1, high=9, dtype=dtype))
        first = -1 if name in ("_np_max", "_np_min") else 0
        for axes in ({}, {"axis": first}, {"axis": -1, "keepdims": True}):
            yield case(name, real(), **axes)
        if name[:6] != "_np_su" and name not in ("_np_prod", "_npi_mean", "_npi_std", "_npi_var"):
            yield case(name, real(0, 3), axis=1)
        if name not in ("_np_max", "_np_min"):
            yield case(name, real(0, 3), axis=0)
            yield case(name, real(2, 0, 3), axis=(1,), keepdims=True)
        if name not in ("_npi_std", "_npi_var"):
            yield case(name, whole(2, 3, low=0, high=2, dtype="bool"), axis=1)
            yield case(name, whole(4, low=0, high=2, dtype="bool"))
    for name in ["_np_max", "_np_min", "_np_any", "_np_all"]:
        yield case(name, of(1, NAN, 0, -INF).reshape(2, 2), axis=1)
    for name in ["_np_sum", "_np_prod", "_npi_mean", "_npi_std", "_npi_var"]:
        for dtype in ("int8", "int32", "int64", "float32", "float64"):
            yield case(name, whole(2, 3, low=1, high=4, dtype="int32"), dtype=dtype, axis=1)
            yield case(name, of(1.9, 1.9, 1.25, 7.5).reshape(2, 2), dtype=dtype, axis=1)
    yield case("_np_sum", of(100, 100, dtype="int8"))
    yield case("_np_sum", of(100, 100, dtype="int8"), dtype="int32")
    yield case("_np_sum", whole(3, low=0, high=2, dtype="bool"), dtype="float64")
    yield case("_npi_mean", of(100, 100, 100, dtype="int8"), dtype="int8")
    for name in ("_npi_std", "_npi_var"):
        for ddof in (1, 2, 5):
            yield case(name, real(2, 4), ddof=ddof, axis=1)
        yield case(name, real(0, 3), ddof=1, axis=0)
        yield case(name, of(1, 7, 30, dtype="int32"))


def places() -> Iterator[Case]:
    """Positions of extrema."""
    for name in ("_npi_argmax", "_npi_argmin"):
        for axes in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True}):
            yield case(name, real(2, 3, 4), **axes)
        for dtype in (*INTEGERS, *REALS):
            yield case(name, whole(3, 4, low=0, dtype=dtype), axis=0)
        yield case(name, of(1, NAN, 3))
        yield case(name, real())
        yield case(name, real(0, 3), axis=1)
        yield case(name, whole(2, 2, low=1, high=2))


def averages() -> Iterator[Case]:
    """Averages with and without weights, norms."""
    for dtype in (*REALS, "int32", "int64"):
        data, weights = whole(2, 3, low=0, dtype=dtype), whole(2, 3, low=1, dtype=dtype)
        yield case("_npi_average", data, weights, axis=1, returned=True)
        yield case("_npi_average", data, weights)
        yield case("_npi_average", data, weights[0], axis=1, returned=True)
        yield case("_npi_average", data, weighted=False, axis=0, returned=True)
    yield case("_npi_average", real(2, 3, 4), real(2, 3, 4, low=1), axis=(0, 2), returned=True)
    yield case("_npi_average", real(2, 3, 4), real(3, low=1), axis=-2)
    yield case("_npi_average", real(2, 3, 4), weighted=False)
    yield case("_npi_average", real(0, 3), weighted=False, axis=0)
    yield case("_npi_average", real(0), weighted=False)
    for axes in ({"axis": 1}, {"axis": (0,)}, {"axis": (-1,), "keepdims": True}):
        for order in (1, 2, 3, 0, -1, 2.5):
            yield case("_npi_norm", real(2, 3, 4, low=0.5), ord=order, flag=-1, **axes)
    for dtype in ("float32", "float64"):
        yield case("_npi_norm", real(2, 3, 4, dtype=dtype), ord=2, axis=None, flag=-2)
        yield case("_npi_norm", real(2, 3, dtype=dtype), ord=2, axis=None, keepdims=True, flag=-2)
        yield case("_npi_norm", real(2, 3, 4, dtype=dtype), ord=2, axis=(0, 2), flag=1)
        yield case("_npi_norm", real(3, dtype=dtype), ord=2, axis=(0,), flag=-1)
    yield case("_npi_norm", real(), ord=2, axis=None, flag=-2)


def percentiles() -> Iterator[Case]:
    """Percentiles by every interpolation, for numbers and arrays."""
    q = of(0, 16.6, 40, 50, 60, 83.3, 100)
    for kind in ["linear", "lower", "higher", "midpoint", "nearest"]:
        yield case("_npi_percentile", of(8, 1, 4, 2), q, interpolation=kind)
        yield case("_npi_percentile", real(3, 4, 2), q, axis=(0, 2), interpolation=kind)
        yield case("_npi_percentile", real(5), q_scalar=37.5, interpolation=kind)
        for shape, axis in (((0, 3), 1), ((2, 0, 3), (0, 2)), ((1, 0), 0)):
            yield case("_npi_percentile", real(*shape), q, axis=axis, interpolation=kind)
    for dtype in (*INTEGERS, *REALS):
        near = 2e-3 if dtype == "float16" else None
        data, q = whole(5, low=0, dtype=dtype), of(10, 90, dtype="float64")
        yield case("_npi_percentile", data, q, tolerance=near)
        data = whole(3, 4, low=0, dtype=dtype)
        yield case("_npi_percentile", data, q_scalar=40, axis=0, tolerance=near)
    yield case("_npi_percentile", real(3, 4), of(0, 40, 100), axis=1, keepdims=True)
    yield case("_npi_percentile", real(3, 4), q_scalar=75, keepdims=True)
    yield case("_npi_percentile", real(3, 4, 2), q_scalar=75, axis=(2, 0), keepdims=True)
    yield case("_npi_percentile", real(3, 4), np.full((), 25, "float32"), axis=-1)
    yield case("_npi_percentile", real(1), of(30))


def differences() -> Iterator[Case]:
    """Differences of neighbours, and counts."""
    for dtype in (*INTEGERS, *REALS):
        yield case("_npi_diff", whole(3, 4, low=0, dtype=dtype))
        yield case("_npi_ediff1d", whole(3, 2, low=0, dtype=dtype))
    for options in ({"n": 2}, {"n": 0}, {"n": 5}, {"axis": 0}, {"axis": -2, "n": 2}):
        yield case("_npi_diff", whole(3, 4), **options)
    yield case("_npi_diff", real(3, 0))
    yield case("_npi_ediff1d", real(4), to_begin_scalar=7.5, to_end_scalar=1)
    yield case("_npi_ediff1d", whole(2, 3, dtype="int32"), to_end_scalar=2.5)
    given = {"to_begin_arr_given": True, "to_end_arr_given": True}
    yield case("_npi_ediff1d", real(4), real(2), real(1), **given)
    yield case("_npi_ediff1d", real(4), real(2, 2), to_end_arr_given=True, to_begin_scalar=3)
    yield case("_npi_ediff1d", real(4), real(0), to_begin_arr_given=True)
    for size in (0, 1):
        yield case("_npi_ediff1d", real(size))
    yield case("_npi_ediff1d", real(1), to_end_scalar=3)
    for dtype in INTEGERS:
        yield case("_npi_bincount", whole(6, low=0, high=5, dtype=dtype))
        yield case("_npi_bincount", whole(6, low=0, high=5, dtype=dtype), minlength=9)
    for dtype in ("int32", "int64", "float32", "float64"):
        weights = whole(6, low=1, dtype=dtype)
        yield case(
            "_npi_bincount", whole(6, low=0, high=5, dtype="int32"), weights, has_weights=True
        )
    yield case("_npi_bincount", of(dtype="int32"))
    yield case("_npi_bincount", of(dtype="int32"), minlength=3)
    for dtype in ("bool", *INTEGERS, *REALS):
        yield case("_np_cumsum", whole(2, 3, low=0, high=2, dtype=dtype), axis=1)
        yield case("_np_cumsum", whole(2, 3, low=0, high=2, dtype=dtype))
    yield case("_np_cumsum", real())
    yield case("_np_cumsum", real(0, 2), axis=0)
    yield case("_np_cumsum", whole(4, dtype="int8"), dtype="float64")
    yield case("_np_cumsum", real(4), dtype="int32")


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from reductions()
    yield from places()
    yield from averages()
    yield from percentiles()
    yield from differences()
