"""Cases of the NumPy operators of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, real, whole

REALS = ("float32", "float64")
DOTS = (
    ((), ()), ((3,), (3,)), ((), (2, 3)), ((2, 3), ()), ((2, 3), (3,)), ((2, 3, 4), (4,)),
    ((2, 3), (4, 3, 2)), ((3,), (2, 3, 4)), ((2, 3, 4), (5, 4, 2)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)), ((0,), (0,)), ((3,), (3, 2)), ((1,), (1,)),
)  # fmt: skip
PRODUCTS = (
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)),
    ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 0, 3), (3, 2)),
    ((2, 2, 3), (2, 3, 1)),
)  # fmt: skip
SUMS = (
    ("ii", (3, 3)), ("ii->i", (3, 3)), ("ij->ji", (2, 3)), ("ij", (2, 3)), ("ba", (2, 3)),
    ("ij->", (2, 3)), ("ij,jk", (2, 3), (3, 2)), ("i,i", (3,), (3,)), ("i,j->ij", (3,), (2,)),
    ("...ij,...jk->...ik", (2, 2, 3), (2, 3, 2)), ("...ij,jk", (2, 2, 3), (3, 2)),
    ("i...->...", (2, 3)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)), ("iij->j", (2, 2, 3)),
    (" i j , j k -> i k ", (2, 3), (3, 2)), ("...", (2,)), ("i,i->i", (3,), (3,)),
    ("ij,ij->i", (2, 3), (2, 3)), (",ij->ij", (), (2, 3)), ("ii,ii->i", (2, 2), (2, 2)),
    ("aB,Bc->ca", (2, 3), (3, 2)), ("ij,j", (2, 3), (3,)), ("...i->i...", (2, 3)),
    ("ij...,jk...->ik...", (2, 3, 4), (3, 2, 1)), ("i,ij->j", (1,), (3, 2)), ("ij->ij", (0, 2)),
    ("ij->j", (0, 2)), ("ij,jk->ik", (2, 0), (0, 2)), ("aa->", (2, 2)), ("ba,ab->", (2, 3), (3, 2)),
    ("a...a->...", (2, 3, 2)), ("...a,...a->...", (3, 1, 2), (4, 2)), ("ijk,ilm,njm,nlk,abc->",
    (2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2), (1, 2, 1)), ("bhqd,bhkd->bhqk", (1, 2, 3, 2),
    (1, 2, 4, 2)),
)  # fmt: skip


def products() -> Iterator[Case]:
    """Products of arrays of any rank."""
    for left, right in DOTS:
        yield case("_np_dot", real(*left), real(*right))
    for left, right in PRODUCTS:
        yield case("_npi_matmul", real(*left), real(*right))
    square = {"a_axes_summed": "(1, 0)", "b_axes_summed": "(0, 1)"}
    for dtype in REALS:
        yield case("_np_dot", whole(2, 3, dtype=dtype), whole(3, 2, dtype=dtype))
        yield case("_npi_matmul", whole(2, 3, dtype=dtype), whole(3, 2, dtype=dtype))
        yield case("_npi_tensordot", whole(2, 2, dtype=dtype), whole(2, 2, dtype=dtype), **square)
        data = whole(2, 3, dtype=dtype), whole(3, 2, dtype=dtype)
        yield case("_npi_tensordot_int_axes", *data, axes=1)
    for left, right, a_axes, b_axes in (
        ((2, 3, 4), (4, 3, 2), "(1, 2)", "(1, 0)"),
        ((2, 3), (2, 3), "()", "()"),
        ((2, 3), (2, 3), "(-1,)", "(-1,)"),
        ((2, 3), (2, 3), "(0, 1)", "(0, 1)"),
        ((2, 0), (0, 3), "(1,)", "(0,)"),
        ((2, 3, 4), (3, 5), "(1,)", "(0,)"),
    ):
        options = {"a_axes_summed": a_axes, "b_axes_summed": b_axes}
        yield case("_npi_tensordot", real(*left), real(*right), **options)
    for left, right, axes in (
        ((2, 3, 4), (3, 4, 2), 2), ((2,), (3,), 0), ((2, 3), (2, 3), 2), ((), (2,), 0),
        ((0, 3), (3, 2), 1), ((2, 3, 4), (4,), 1),
    ):  # fmt: skip
        yield case("_npi_tensordot_int_axes", real(*left), real(*right), axes=axes)


def sums() -> Iterator[Case]:
    """Einstein summations."""
    for subscripts, *shapes in SUMS:
        arrays = [real(*shape) for shape in shapes]
        yield case("_npi_einsum", *arrays, num_args=len(arrays), subscripts=subscripts)
    for dtype in ["bool", "int8", "uint8", "int32", "int64", "float16", "float64"]:
        low = 0 if dtype in ("bool", "uint8") else -3
        arrays = [whole(*shape, low=low, high=4, dtype=dtype) for shape in ((2, 3), (3, 2))]
        yield case("_npi_einsum", *arrays, num_args=2, subscripts="ij,jk->ik")
        if dtype != "bool":
            yield case("_npi_einsum", arrays[0], num_args=1, subscripts="ij->i", optimize=1)


def positive(*shape: int, dtype: str) -> np.ndarray:
    """Make symmetric, positive definite matrices."""
    root = real(*shape, dtype="float64")
    return (root @ root.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def systems() -> Iterator[Case]:
    """Factors, solutions, inverses."""
    for dtype in REALS:
        for shape in ((1, 1), (3, 3), (2, 4, 4), (5, 5)):
            yield case("_npi_cholesky", positive(*shape, dtype=dtype), tolerance=1e-5)
            yield case("_npi_solve", positive(*shape, dtype=dtype), real(*shape[:-1], dtype=dtype))
            right = real(*shape[:-1], 2, dtype=dtype)
            yield case("_npi_solve", positive(*shape, dtype=dtype), right)
        general = np.eye(6).reshape(2, 3, 6) + 0.1
        yield case("_npi_tensorsolve", general.astype(dtype), real(2, 3, dtype=dtype))
        general = np.eye(24).reshape(6, 4, 2, 3, 4) + 0.1
        yield case("_npi_tensorsolve", general.astype(dtype), real(6, 4, dtype=dtype))
        yield case("_npi_tensorsolve", positive(4, 4, dtype=dtype), real(4, dtype=dtype))
        moved = np.moveaxis(np.eye(6).reshape(2, 3, 6) + 0.2, 2, 0).copy()
        options = {"a_axes": "(0,)"}
        yield case("_npi_tensorsolve", moved.astype(dtype), real(2, 3, dtype=dtype), **options)
        for shape, ind in (((4, 6, 8, 3), 2), ((24, 8, 3), 1), ((2, 2, 4), 2), ((3, 3), 1)):
            side = int(np.prod(shape[:ind]))
            inverted = (np.eye(side) + 0.01).reshape(shape)
            yield case("_npi_tensorinv", inverted.astype(dtype), ind=ind)
        yield case("_npi_inv", positive(3, 3, dtype=dtype))
    yield case("_npi_cholesky", real(0, 3, 3))
    upper = np.triu(positive(3, 3, dtype="float64"))
    for name in ("_npi_cholesky", "_linalg_potrf", "_linalg_potri"):
        yield case(name, upper, lower=False)
        yield case(name, upper.T.copy(), lower=True)
    yield case("_npi_solve", real(2, 0, 0), real(2, 0, 1))
    yield case("_npi_solve", whole(2, 2, low=1, dtype="int32"), whole(2, dtype="int32"))


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from products()
    yield from sums()
    yield from systems()
