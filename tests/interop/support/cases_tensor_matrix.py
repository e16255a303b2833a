"""Cases of matrix products and linear algebra."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real


def square(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Matrices that are well conditioned: uniform entries on a heavy diagonal."""
    return (real(*shape) + 4 * np.eye(shape[-1])).astype(dtype)


def definite(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Symmetric positive definite matrices."""
    root = real(*shape).astype("float64")
    matrix: np.ndarray = root @ root.swapaxes(-1, -2) + np.eye(shape[-1])
    return matrix.astype(dtype)


def products() -> Iterator[Case]:
    """Dot products of any rank, and in batches."""
    yield case("dot", real(4), real(4))
    yield case("dot", real(2, 3), real(3, 4))
    yield case("dot", real(3, 2), real(3, 4), transpose_a=True)
    yield case("dot", real(2, 3), real(4, 3), transpose_b=True)
    yield case("dot", real(3, 2), real(4, 3), transpose_a=True, transpose_b=True)
    yield case("dot", real(2, 3, 4), real(4, 5))
    yield case("dot", real(2, 3, 4), real(4, 5, 2))
    yield case("dot", real(4, 2, 3), real(4, 5, 2), transpose_a=True)
    yield case("dot", real(2, 3, 4), real(5, 2, 4), transpose_b=True)
    yield case("dot", real(4, 2, 3), real(5, 2, 4), transpose_a=True, transpose_b=True)
    yield case("dot", real(2, 3), real(3))
    yield case("dot", real(3), real(3, 4))
    yield case("dot", real(2, 3), real(2), transpose_a=True)
    yield case("dot", real(3), real(4, 3), transpose_b=True)
    yield case("dot", real(3), real(3, 4, 2))
    yield case("dot", real(2, 3, 4), real(2), transpose_a=True)
    yield case("dot", real(2, 3, dtype="float64"), real(3, 4, dtype="float64"))
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        left = real(2, 4, 3) if a else real(2, 3, 4)
        right = real(2, 5, 4) if b else real(2, 4, 5)
        yield case("batch_dot", left, right, transpose_a=a, transpose_b=b)
        yield case("_linalg_gemm2", left, right, transpose_a=a, transpose_b=b, alpha=1.5)
        yield case(
            "_linalg_gemm",
            left,
            right,
            real(2, 3, 5),
            transpose_a=a,
            transpose_b=b,
            alpha=0.5,
            beta=-2,
        )
    yield case("_linalg_gemm2", real(3, 4), real(4, 2))
    yield case("_linalg_gemm2", real(3, 4, dtype="float64"), real(4, 2, dtype="float64"))
    yield case("_linalg_gemm2", real(3, 2, 4), real(4, 2, 5), axis=0)
    yield case("_linalg_gemm2", real(2, 3, 5, 4), real(2, 4, 5, 6), axis=1)
    yield case("_linalg_gemm2", real(2, 4, 5, 3), real(2, 4, 5, 6), axis=-3, transpose_a=True)
    yield case("_linalg_gemm", real(3, 4), real(4, 2), real(3, 2))
    yield case("_linalg_gemm", real(3, 2, 4), real(4, 2, 5), real(3, 2, 5), axis=0)
    yield case("khatri_rao", real(2, 3), real(4, 3), num_args=2)
    yield case("khatri_rao", real(2, 3), real(4, 3), real(2, 3, high=5), num_args=3)
    yield case("khatri_rao", real(2, 3), num_args=1)


def algebra() -> Iterator[Case]:
    """Triangular products, diagonals, triangles, determinants, inverses."""
    for dtype in ("float32", "float64"):
        yield case("_linalg_sumlogdiag", definite(2, 3, 3, dtype=dtype))
        yield case("_linalg_syrk", real(2, 3, 4, dtype=dtype), alpha=1.5)
        yield case("_linalg_syrk", real(2, 3, 4, dtype=dtype), transpose=True)
    for right in (False, True):
        for turned in (False, True):
            for lower in (False, True):
                options = {"rightside": right, "transpose": turned, "lower": lower, "alpha": 0.5}
                other = real(2, 5, 3) if right else real(2, 3, 5)
                yield case("_linalg_trmm", square(2, 3, 3), other, **options)
    yield case("_linalg_trmm", square(3, 3), real(3, 2))
    yield case("_linalg_sumlogdiag", definite(3, 3))
    for offset in (0, 1, -1, 2):
        yield case("_linalg_extractdiag", real(2, 4, 4), offset=offset)
        yield case("_linalg_extractdiag", real(4, 4), offset=offset)
        yield case("_linalg_makediag", real(2, 3), offset=offset)
        yield case("_linalg_makediag", real(3), offset=offset)
        yield case("_linalg_extracttrian", real(2, 4, 4), offset=offset)
        yield case("_linalg_maketrian", real(2, 6), offset=offset)
    yield case("_linalg_extracttrian", real(4, 4), lower=False)
    yield case("_linalg_maketrian", real(6), lower=False)
    yield case("_linalg_maketrian", real(6, dtype="float64"))
    yield case("_linalg_det", square(2, 3, 3))
    yield case("_linalg_det", real(3, 3))
    yield case("_linalg_det", of([1, 2], [2, 4]).reshape(2, 2))


def triangular(*shape: int, lower: bool = True, dtype: str = "float32") -> np.ndarray:
    """Triangular matrices with a heavy diagonal."""
    matrix = square(*shape, dtype=dtype)
    return np.tril(matrix) if lower else np.triu(matrix)


def factors() -> Iterator[Case]:
    """Triangular systems, Cholesky factors, inverses, determinants."""
    for dtype in ("float32", "float64"):
        yield case("_linalg_potrf", definite(2, 4, 4, dtype=dtype), tolerance=1e-4)
        yield case("_linalg_potri", triangular(2, 4, 4, dtype=dtype), tolerance=1e-4)
        yield case("_linalg_inverse", square(2, 3, 3, dtype=dtype), tolerance=1e-4)
        yield case("_linalg_det", square(2, 3, 3, dtype=dtype), tolerance=1e-4)
        yield case("_linalg_slogdet", square(2, 3, 3, dtype=dtype), tolerance=1e-4)
        yield case("_linalg_slogdet", -real(2, 2, 3, 3).astype(dtype), tolerance=1e-4)
    yield case("_linalg_potrf", definite(3, 3), tolerance=1e-4)
    yield case("_linalg_potrf", definite(1, 1))
    yield case("_linalg_potri", triangular(3, 3), tolerance=1e-4)
    yield case("_linalg_inverse", real(5, 5), tolerance=1e-3)
    yield case("_linalg_inverse", of([0, 1, 0], [0, 0, 2], [4, 0, 0]).reshape(3, 3))
    yield case("_linalg_slogdet", of([0, 1, 0], [0, 0, 2], [4, 0, 0]).reshape(3, 3))
    yield case("_linalg_slogdet", real(4, 4), tolerance=1e-4)
    yield case("_linalg_slogdet", of([1, 2], [2, 4]).reshape(2, 2))
    yield case("_linalg_det", of([1, 2], [2, 4], dtype="float64").reshape(2, 2))
    for right in (False, True):
        for turned in (False, True):
            for lower in (False, True):
                options = {"rightside": right, "transpose": turned, "lower": lower, "alpha": 0.5}
                other = real(2, 5, 3) if right else real(2, 3, 5)
                yield case("_linalg_trsm", square(2, 3, 3), other, tolerance=1e-4, **options)
    yield case("_linalg_trsm", square(3, 3), real(3, 2), tolerance=1e-4)


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    yield from products()
    yield from algebra()
    yield from factors()
