"""Cases of the NumPy operators that select elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

NAN = float("nan")
INTEGERS = ["int8", "uint8", "int32", "int64"]
REALS = ["float16", "float32", "float64"]


def conditions() -> Iterator[Case]:
    """Selection between arrays and numbers."""
    for dtype in ("bool", *INTEGERS, *REALS):
        x, y = whole(2, 3, low=0, dtype=dtype), whole(3, low=0, high=2, dtype=dtype)
        yield case("_npi_where", of(1, 0, 1, dtype="bool"), x, y)
        yield case("_npi_where", of(0, 2, dtype=dtype).reshape(2, 1), x, y)
        yield case("_npi_where_lscalar", of(0, 2, 1, dtype=dtype), x, scalar=9.5)
        yield case("_npi_where_rscalar", of(0, 2, 1, dtype=dtype), x, scalar=9.5)
        yield case("_npi_where_scalar2", of(0, 2, 1, dtype=dtype), x=1.5, y=2)
    yield case("_npi_where", of(NAN, 0, 0.3), of(1, 2, 3), of(4, 5, 6))
    yield case("_npi_where", np.ones((), "bool"), real(2), real())
    yield case("_npi_where_lscalar", real(0), real(2, 0), scalar=1)
    yield case("_npi_where_rscalar", np.zeros((), "float32"), real(2), scalar=-1)
    yield case("_npi_where_scalar2", real(0, 2), x=1, y=2)
    yield case("_npi_where_scalar2", np.zeros((), "float32"), x=1, y=2)


def found() -> Iterator[Case]:
    """Positions of what is not 0, and distinct elements."""
    for dtype in ("bool", *INTEGERS, *REALS):
        yield case("_npx_nonzero", whole(3, 4, low=0, high=2, dtype=dtype))
    for array in (of(0, 0), real(0, 3), real(), np.zeros((), "float32"), whole(2, 2, 2, low=0)):
        yield case("_npx_nonzero", array)
    everything = {f"return_{name}": True for name in ("index", "inverse", "counts")}
    for dtype in (*INTEGERS, *REALS):
        yield case("_npi_unique", whole(8, low=0, high=4, dtype=dtype), **everything)
    rows = whole(5, 2, low=0, high=2)
    yield case("_npi_unique", rows, axis=0, **everything)
    yield case("_npi_unique", rows.T.copy(), axis=-1, return_inverse=True)
    yield case("_npi_unique", rows, return_index=True)
    yield case("_npi_unique", rows, return_counts=True)
    yield case("_npi_unique", real())
    yield case("_npi_unique", real(0))


def assigned() -> Iterator[Case]:
    """Assignment to what a mask selects."""
    scalar, tensor = (f"_npi_boolean_mask_assign_{kind}" for kind in ("scalar", "tensor"))
    columns, rows = of(1, 0, 1, dtype="bool"), of(0, 1, dtype="bool")
    plane = of([1, 0, 1], [0, 0, 1], dtype="bool")
    for dtype in ("int32", "int64", "float16", "float32", "float64"):
        data = whole(2, 3, low=0, dtype=dtype)
        yield case(scalar, data, data > 3, value=7.5, start_axis=0)
        yield case(tensor, data, plane, of(7, 8, 9, dtype=dtype), start_axis=0)
    data = whole(2, 3)
    yield case(scalar, data, columns, value=-1, start_axis=1)
    yield case(scalar, data, rows, value=2, start_axis=0)
    yield case(scalar, whole(2, 3, 2), plane, value=2, start_axis=0)
    yield case(scalar, whole(2, 2, 3), plane, value=2, start_axis=1)
    yield case(tensor, data, plane, of(7), start_axis=0)
    yield case(tensor, data, columns, of([7, 8], [5, 6]), start_axis=1)
    yield case(tensor, data, rows, of(7, 8, 9).reshape(1, 3), start_axis=0)
    yield case(tensor, whole(2, 3, 4), plane, real(3, 4), start_axis=0)
    yield case(tensor, whole(2, 2, 3), plane, real(2, 3), start_axis=1)


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from conditions()
    yield from found()
    yield from assigned()
