"""Cases of the NumPy operators that change shapes: reshape, stack, split, insert, delete, pad."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

TYPES = ["int8", "int32", "int64", "float16", "float32", "float64"]


def reshapes() -> Iterator[Case]:
    """Sizes and codes, in both directions."""
    for shape in ("(6, 4)", "(-1,)", "(4, -1)", "(2, 3, 4)", "(1, 24, 1)", "(-1, 2, 2, 2)"):
        yield case("_np_reshape", real(2, 3, 4), newshape=shape)
    yield case("_np_reshape", real(1), newshape="()")
    yield case("_np_reshape", real(), newshape="(1, 1)")
    yield case("_np_reshape", real(0, 3), newshape="(3, 0)")
    yield case("_np_reshape", real(0, 3), newshape="(-1, 3)")
    forward = (
        "(-2, -2, -1)", "(-2, -4)", "(-4,)", "(-5, -2)", "(-6, 1, 2, -4)", "(-2, -6, -1, 3, 4)",
        "(-1, -5)", "(-2, -6, 3, -1, 4)", "(-4, 1)", "(-5, 4)", "(6, -1)",
    )  # fmt: skip
    for codes in forward:
        yield case("_npx_reshape", real(2, 3, 4), newshape=codes)
    for codes in ("(-1, -2)", "(-4, -2)", "(-5, -2)", "(-4, 2, 2, -6)", "(-4, -1, 4)"):
        yield case("_npx_reshape", real(2, 3, 4), newshape=codes, reverse=True)
    yield case("_npx_reshape", real(2, 1, 4), newshape="(-2, -3, -2)")
    yield case("_npx_reshape", real(2, 1, 4), newshape="(-1, -3, -2)")
    yield case("_npx_reshape", real(2, 3, 1), newshape="(-1, -3)", reverse=True)
    yield case("_npx_reshape", real(8, 3, 1, 2), newshape="(-6, -1, 2, -4)")
    yield case("_npx_reshape", real(0, 3), newshape="(-1, -2)")
    yield case("_npx_reshape", real(0, 3), newshape="(3, 0)")
    for options in ({}, {"axis": -1}, {"axis": "(0, 2)"}, {"axis": "()"}, {"axis": 0}):
        yield case("_np_squeeze", real(1, 2, 1), **options)
    for array in (real(1, 1), real(), real(0, 1), real(2, 3)):
        yield case("_np_squeeze", array)


def orders() -> Iterator[Case]:
    """Transposition, rolling, reversal, rotation."""
    for options in ({}, {"axes": "(1, -1, 0)"}, {"axes": "(0, 2, 1)"}, {"axes": None}):
        yield case("_np_transpose", real(2, 3, 4), **options)
    for array in (real(), real(3), real(0, 2), whole(2, 3, dtype="int8")):
        yield case("_np_transpose", array)
    moves = ("(0,)", "(-1,)"), ("(0, 1)", "(2, 0)"), ("()", "()"), ("(-1, 0)", "(0, 1)")
    for source, destination in moves:
        yield case("_np_moveaxis", real(2, 3, 4), source=source, destination=destination)
        yield case("_np_moveaxis", real(2, 0, 4), source=source, destination=destination)
    for options in (
        {"shift": 1},
        {"shift": -1, "axis": 1},
        {"shift": "(1, 2)", "axis": "(0, 1)"},
        {"shift": 1, "axis": "(0, 1)"},
        {"shift": 7},
        {"shift": -8, "axis": -1},
        {"shift": 0, "axis": 0},
    ):
        yield case("_np_roll", real(2, 3), **options)
    for array in (real(0, 3), real(), whole(5, dtype="int64")):
        yield case("_np_roll", array, shift=1)
    for k in (-1, 0, 1, 2, 3, 5):
        yield case("_npi_rot90", real(2, 3), k=k, axes="(0, 1)")
        yield case("_npi_rot90", real(2, 3, 4), k=k, axes="(2, 0)")
    yield case("_npi_rot90", real(2, 3, 4), axes="(-1, 1)")
    yield case("_npi_rot90", real(0, 3), axes="(0, 1)")
    for axis in ("(0,)", "(0, 1)", "()", "(1,)"):
        yield case("_npi_flip", real(2, 3), axis=axis)
        yield case("_npi_flip", whole(0, 3, dtype="int32"), axis=axis)
    yield case("_npi_flip", real(), axis="()")
    for array, shape in (
        (real(3), "(2, 3)"), (real(1, 3), "(0, 3)"), (real(2, 1), "(4, -2, 3)"), (real(), "(2,)"),
        (real(2, 1), "(-2, 3)"), (real(), "()"), (whole(1, dtype="int8"), "(2, 2)"),
        (real(2, 1, 3), "(2, 4, 3)"), (real(0, 1), "(3, 0, 2)"),
    ):  # fmt: skip
        yield case("_npi_broadcast_to", array, shape=shape)


def joined() -> Iterator[Case]:
    """Stacks and splits."""
    for count in (1, 2, 3):
        name = f"_np_atleast_{count}d"
        yield case(name, real(), real(3), real(2, 3), real(1, 2, 3), real(1, 1, 1, 2), num_args=5)
        for array in (real(), real(4), real(0), real(0, 2), real(2, 2), real(1, 2, 1)):
            yield case(name, array, num_args=1)
        yield case(name, whole(2, dtype="int32"), whole(3, dtype="int32"), num_args=2)
    groups = {
        "vstack": [(3,), (2, 3), (), (2, 3, 4), (0, 3)],
        "hstack": [(3,), (2, 3), (), (2, 3, 4), (2, 0)],
        "dstack": [(3,), (2, 3), (), (2, 3, 4), (2, 0)],
        "column_stack": [(3,), (2, 3), (), (2, 3, 4), (2, 0)],
    }
    for name, shapes in groups.items():
        for shape in shapes:
            yield case(f"_npi_{name}", real(*shape), whole(*shape), num_args=2)
        for dtype in ("int32", "float64"):
            yield case(
                f"_npi_{name}", whole(2, 2, dtype=dtype), whole(2, 2, dtype=dtype), num_args=2
            )
        yield case(f"_npi_{name}", real(2, 2), num_args=1)
    yield case("_npi_vstack", real(1, 3), real(2, 3), num_args=2)
    yield case("_npi_hstack", real(2, 1), real(2, 3), real(2, 0), num_args=3)
    yield case("_npi_hstack", real(2), real(3), num_args=2)
    yield case("_npi_dstack", real(2, 3, 1), real(2, 3), num_args=2)
    yield case("_npi_column_stack", real(2), real(2, 3), num_args=2)
    for axis in (0, 1, -1, None):
        yield case("_npi_concatenate", real(2, 3), real(2, 3), num_args=2, axis=axis)
        yield case("_npi_stack", real(2, 3), real(2, 3), num_args=2, axis=axis or 0)
    yield case("_npi_concatenate", real(2, 3), real(2, 0), num_args=2, axis=1)
    yield case("_npi_concatenate", real(2, 3), real(2), num_args=2, axis=None)
    yield case("_npi_concatenate", real(3), real(2), num_args=2)
    for dtype in ("bool", "int8"):
        parts = whole(2, low=0, dtype=dtype), whole(2, low=0, high=2, dtype=dtype)
        yield case("_npi_concatenate", *parts, num_args=2, axis=0)
        yield case("_npi_stack", *parts, num_args=2, axis=0)
    yield case("_npi_stack", real(), real(), num_args=2)
    yield case("_npi_stack", real(2, 0), real(2, 0), real(2, 0), num_args=3, axis=2)
    for name, arrays, axis in (
        ("_npi_hsplit", (real(4, 4), real(6), real(2, 5, 3)), 1),
        ("_npi_dsplit", (real(2, 2, 4), real(1, 2, 5, 2)), 2),
    ):
        for array in arrays:
            for options in (
                {"indices": "()", "sections": 2},
                {"indices": "(0, 1, 3)", "sections": 0},
                {"indices": "(0, 2, 2)", "sections": 0},
                {"indices": "(0,)", "sections": 3},
            ):
                yield case(name, array, axis=axis, **options)


def edited() -> Iterator[Case]:
    """Insertion and deletion."""
    for dtype in TYPES:
        yield case("_npi_insert_scalar", whole(4, dtype=dtype), val=9, int_ind=1)
        yield case("_npi_delete", whole(5, dtype=dtype), int_ind=-2)
        bounds = {"start": 1, "stop": 4, "step": 2}
        yield case("_npi_insert_slice", whole(5, dtype=dtype), whole(2, dtype=dtype), **bounds)
        places = of(1, 3, dtype="int64")
        yield case("_npi_insert_tensor", whole(5, dtype=dtype), whole(2, dtype=dtype), places)
    table = whole(4, 3)
    for shape, options in (
        ((3,), {"int_ind": 2, "axis": 0}),
        ((4,), {"int_ind": 2, "axis": 1}),
        ((4, 1), {"int_ind": 2, "axis": 1}),
        ((2, 3), {"int_ind": -1, "axis": 0}),
        ((2, 4), {"int_ind": 1, "axis": 1}),
        ((), {"int_ind": 3, "axis": 1}),
    ):
        yield case("_npi_insert_scalar", table, real(*shape), **options)
    for shape, values, axis in (
        ((0, 4), (0, 1), 1), ((0, 4), (1, 1), 1), ((3, 0), (1, 1), 0), ((0, 3), (3,), 0),
        ((0, 4), (), 1), ((2, 3), (0, 3), 0), ((2, 0, 3), (1, 3), 0),
    ):  # fmt: skip
        yield case("_npi_insert_scalar", real(*shape), real(*values), axis=axis, int_ind=0)
    yield case("_npi_insert_scalar", table, val=9.5, int_ind=5)
    yield case("_npi_insert_scalar", whole(4, dtype="int32"), of(7.5), int_ind=4)
    yield case("_npi_insert_slice", table, real(2, 3), start=0, stop=2, step=1, axis=0)
    yield case("_npi_insert_slice", table, real(4, 2), start=0, stop=2, step=1, axis=1)
    yield case("_npi_insert_slice", whole(5), real(2), start=None, stop=None, step=3)
    yield case("_npi_insert_slice", table, real(1), start=0, stop=3, step=2, axis=0)
    # MXNet crashes if ``val`` is given for several places.
    yield case("_npi_insert_tensor", whole(5), of(7, 8), of(1, 1, dtype="int64"))
    yield case("_npi_insert_tensor", whole(5), of(7, 8), of(2, dtype="int64"))
    yield case("_npi_insert_tensor", table, real(2, 3), of(3, 1, dtype="int64"), axis=0)
    yield case("_npi_insert_tensor", table, real(4, 2), of(-1, 0, dtype="int64"), axis=1)
    for options in (
        {"int_ind": -1, "axis": 0},
        {"int_ind": 1, "axis": 1},
        {"int_ind": 1},
        {"start": 1, "stop": 5, "step": 2},
        {"start": None, "stop": 2, "step": 1, "axis": 1},
        {"start": 3, "stop": None, "step": -2, "axis": 0},
        {"start": 0, "stop": 4, "step": 1, "axis": 0},
    ):
        yield case("_npi_delete", table, **options)
    yield case("_npi_delete", whole(5), of(1, 3, dtype="int64"))
    yield case("_npi_delete", table, of(1, 1, 3, dtype="int64"), axis=0)
    yield case("_npi_delete", table, of(0, dtype="int32"), axis=1)
    yield case("_npi_delete", whole(5), of(dtype="int64"))


def padded() -> Iterator[Case]:
    """Padding by every mode."""
    for mode in ["constant", "edge", "reflect", "symmetric", "maximum", "minimum"]:
        for width in ("((1, 2), (2, 1))", "((0, 0), (1, 0))"):
            yield case("_npi_pad", whole(3, 4), pad_width=width, mode=mode)
            yield case("_npi_pad", whole(3, 4, dtype="int32"), pad_width=width, mode=mode)
        yield case("_npi_pad", real(2, 3, 2), pad_width="((1, 0), (0, 2), (1, 1))", mode=mode)
        yield case("_npi_pad", real(2, 2), pad_width="((3, 4), (0, 5))", mode=mode)
    for dtype in TYPES:
        data = whole(2, 2, dtype=dtype)
        yield case("_npi_pad", data, pad_width="((1, 0), (0, 1))", constant_value=7.5)
    yield case("_npi_pad", real(0, 2), pad_width="((1, 0), (0, 1))", constant_value=1)


def polynomials() -> Iterator[Case]:
    """Evaluation of polynomials, and the check of constraints."""
    for dtype in TYPES:
        yield case("_npi_polyval", of(2, 1, 3, dtype=dtype), of(0, 1, 2, dtype=dtype))
    yield case("_npi_polyval", of(2, -1, 0.5, 3), real(2, 3))
    yield case("_npi_polyval", of(), real(2))
    yield case("_npi_polyval", of(2, 3), real())
    yield case("_npi_polyval", of(2, 3), real(0, 2))
    for shape in ((2,), (), (2, 0), (1, 3), (2, 2, 2), (1,), (0,), (5,)):
        yield case("_npx_constraint_check", np.ones(shape, "bool"))


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from reshapes()
    yield from orders()
    yield from joined()
    yield from edited()
    yield from padded()
    yield from polynomials()
