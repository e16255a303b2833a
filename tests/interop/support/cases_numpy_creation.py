"""Cases of the NumPy operators that create arrays, and of diagonals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

INTEGERS = ["int8", "uint8", "int32", "int64"]
REALS = ["float16", "float32", "float64"]


def filled() -> Iterator[Case]:
    """Arrays of one number."""
    for name in ("_npi_zeros", "_npi_ones"):
        for dtype in ("bool", *INTEGERS, *REALS):
            yield case(name, shape=(2, 3), dtype=dtype)
        for shape in ("()", "(0, 2)", "(3,)", "4", "(2, 1, 0)"):
            yield case(name, shape=shape)
        yield case(name)
    for dtype in ("bool", *INTEGERS, *REALS):
        yield case("_npi_full_like", whole(2, 3, low=0, dtype=dtype), fill_value=3.7)
    yield case("_npi_full_like", real(2), fill_value=-2.5, dtype="int32")
    yield case("_npi_full_like", real(0, 2), fill_value=1)
    yield case("_npi_full_like", real(), fill_value=1e10)
    yield case("_npi_full_like", whole(2, dtype="int8"), fill_value=0.1, dtype="float64")


def matrices() -> Iterator[Case]:
    """Identities and diagonals."""
    for options in (
        {"N": 3},
        {"N": 2, "M": 3, "k": 1},
        {"N": 3, "M": None, "k": -2, "dtype": "int64"},
        {"N": 0},
        {"N": 3, "k": 5},
        {"N": 2, "M": 0},
        {"N": 4, "M": 2, "k": -1, "dtype": "float16"},
        {"N": 1, "M": 5, "k": 4, "dtype": "uint8"},
    ):
        yield case("_npi_eye", **options)
    for dtype in ("bool", *INTEGERS, *REALS):
        yield case("_npi_identity", shape=(3, 3), dtype=dtype)
    yield case("_npi_identity", shape=(0, 0))
    for dtype in (*INTEGERS, *REALS):
        yield case("_npi_tril", whole(3, 4, dtype=dtype))
        yield case("_np_diag", whole(2, 3, dtype=dtype))
        yield case("_np_diagflat", whole(2, 2, dtype=dtype))
        yield case("_np_diagonal", whole(3, 3, dtype=dtype))
        yield case("_np_trace", whole(3, 3, dtype=dtype))
        yield case("_npi_diag_indices_from", whole(2, 2, dtype=dtype))
    for k in (-5, -1, 0, 1, 2, 7):
        yield case("_npi_tril", real(2, 3, 4), k=k)
        yield case("_npi_tril", real(3), k=k)
        yield case("_np_diag", real(3), k=k)
        yield case("_np_diag", real(3, 4), k=k)
        yield case("_np_diagflat", real(2, 2), k=k)
        yield case("_np_diagonal", real(3, 4), offset=k)
        yield case("_np_trace", real(3, 4), offset=k)
    for axes in ({"axis1": 0, "axis2": 2}, {"axis1": -1, "axis2": 1}, {"axis1": 1, "axis2": 0}):
        yield case("_np_diagonal", real(2, 3, 4), offset=1, **axes)
        yield case("_np_trace", real(2, 3, 4), offset=-1, **axes)
    yield case("_npi_tril", real(0, 3))
    yield case("_np_diag", real(0))
    yield case("_np_diagflat", real(0))
    yield case("_np_diagflat", real(3), k=1)
    yield case("_np_trace", real(0, 3))
    yield case("_npi_diag_indices_from", real(2, 2, 2))
    yield case("_npi_diag_indices_from", real(5, 5))


def ranges() -> Iterator[Case]:
    """Ranges, powers, windows, positions."""
    for options in (
        {"start": 5},
        {"start": 1, "stop": 2, "step": 0.3},
        {"start": 1.3, "stop": 20.6, "step": 1.3, "dtype": "int32"},
        {"start": 5, "stop": 1},
        {"start": 5, "stop": 1, "step": -2, "dtype": "int8"},
        {"start": 0},
        {"start": 0, "stop": 1, "step": 0.1, "dtype": "float64"},
        {"start": 0, "stop": 3, "step": 0.5, "dtype": "int32"},
        {"start": -3, "stop": None, "dtype": "int64"},
        {"start": 2, "stop": 9, "dtype": "float16"},
    ):
        yield case("_npi_arange", **options)
    for dtype in ("int8", "int32", "int64", *REALS):
        yield case("_npi_linspace", start=0, stop=10, num=5, dtype=dtype)
        yield case("_npi_logspace", start=0, stop=2, num=5, dtype=dtype)
    for options in (
        {"num": 0},
        {"num": 1},
        {"num": 4, "endpoint": False},
        {"num": 1, "endpoint": False},
    ):
        yield case("_npi_linspace", start=0.5, stop=-3, **options)
        yield case("_npi_linspace", start=0.5, stop=10, dtype="int32", **options)
        yield case("_npi_logspace", start=0.5, stop=3, base=2, **options)
    for dtype in (*INTEGERS, *REALS):
        yield case("_npi_indices", dimensions=(2, 3), dtype=dtype)
    for sizes in ("(2,)", "(0, 2)", "()", "(1, 2, 3)"):
        yield case("_npi_indices", dimensions=sizes)
    for name in ("_npi_hanning", "_npi_hamming", "_npi_blackman"):
        for count in (0, 1, 2, 5, 12):
            yield case(name, M=count)
        yield case(name, M=7, dtype="float64", tolerance=1e-6)
        yield case(name, M=7, dtype="float16")
        yield case(name, M=4, dtype="int32")


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from filled()
    yield from matrices()
    yield from ranges()
    yield case("_npi_full", shape=(2, 3), value=2.5)
    yield case("_npi_full", shape=(2,), value=3.7, dtype="int32")
    yield case("_npi_diff", of(1, 4))
    yield case("_npi_tril", np.ones((3, 3), "int32"))
