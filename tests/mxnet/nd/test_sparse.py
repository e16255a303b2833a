"""Sparse arrays: creation, slices, copies, and arithmetic with MXNet's storage types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passlib import nd
from passlib.context import cpu
from passlib.errors import UnsupportedError

DENSE = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 0, 0]], np.float32)
C, R, D = nd.array(DENSE).tostype("csr"), nd.array(DENSE).tostype("row_sparse"), nd.array(DENSE)
ZEROS = np.zeros((4, 3), np.float32)


@pytest.mark.parametrize(
    ("make", "stype", "wanted"),
    [
        # The storage types are those that MXNet 1.9.1 gives.
        (lambda: C + C, "csr", DENSE * 2),
        (lambda: C - C, "csr", ZEROS),
        (lambda: C * C, "csr", DENSE**2),
        (lambda: C * 2, "csr", DENSE * 2),
        (lambda: 2 * C, "csr", DENSE * 2),
        (lambda: C / 2, "csr", DENSE / 2),
        (lambda: C + 1, "default", DENSE + 1),
        (lambda: 1 - C, "default", 1 - DENSE),
        (lambda: C + D, "default", DENSE * 2),
        (lambda: C * D, "csr", DENSE**2),
        (lambda: D * C, "default", DENSE**2),
        (lambda: C > 0, "csr", (DENSE > 0) * 1.0),
        (lambda: C == C, "default", ZEROS + 1),
        (lambda: -C, "csr", -DENSE),
        (lambda: abs(-C), "csr", DENSE),
        (lambda: R + R, "row_sparse", DENSE * 2),
        (lambda: R * D, "row_sparse", DENSE**2),
        (lambda: R + D, "default", DENSE * 2),
        (lambda: C + R, "default", DENSE * 2),
        (lambda: C[1], "csr", DENSE[1:2]),
        (lambda: C[-1], "csr", DENSE[3:]),
        (lambda: C[1:3], "csr", DENSE[1:3]),
        (lambda: C[2:1], "csr", DENSE[2:1]),
        (lambda: C[:], "csr", DENSE),
        (lambda: R[:], "row_sparse", DENSE),
        (lambda: nd.sqrt(C), "csr", np.sqrt(DENSE)),
        (C.exp, "default", np.exp(DENSE)),
        (lambda: C.clip(0, 1), "csr", np.clip(DENSE, 0, 1)),
        (lambda: C.clip(-1, 0), "csr", np.clip(DENSE, -1, 0)),
        (lambda: C.clip(1, 2), "default", np.clip(DENSE, 1, 2)),
        (lambda: C.sum(axis=0), "default", DENSE.sum(axis=0)),
        (lambda: C.T, "default", DENSE.T),
        (lambda: nd.dot(C, nd.ones((3, 2))), "default", DENSE @ np.ones((3, 2))),
        (lambda: nd.sparse.dot(C, D, transpose_a=True), "row_sparse", DENSE.T @ DENSE),
        (lambda: nd.sparse.dot(C, C, transpose_a=True), "default", DENSE.T @ DENSE),
        (lambda: nd.sparse.add(C, C), "csr", DENSE * 2),
        (lambda: nd.sparse.elemwise_add(R, R), "row_sparse", DENSE * 2),
        (lambda: nd.sparse.add_n(R, R), "row_sparse", DENSE * 2),
        (lambda: nd.concat(C, C, dim=0), "csr", np.concatenate([DENSE, DENSE])),
        (lambda: nd.sparse.retain(R, nd.array([1, 2])), "row_sparse", DENSE * [[0], [1], [1], [0]]),
        (lambda: nd.cast_storage(D, "csr"), "csr", DENSE),
        (lambda: nd.sparse.csr_matrix(DENSE), "csr", DENSE),
        (lambda: nd.sparse.csr_matrix(C), "csr", DENSE),
        (lambda: nd.sparse.csr_matrix([[0, 1], [2, 0]]), "csr", [[0, 1], [2, 0]]),
        (lambda: nd.sparse.csr_matrix((4, 3)), "csr", ZEROS),
        (lambda: nd.sparse.csr_matrix(([1, 2.0], ([1, 0], [1, 2]))), "csr", [[0, 0, 2], [0, 1, 0]]),
        (lambda: nd.sparse.row_sparse_array(DENSE), "row_sparse", DENSE),
        (lambda: nd.sparse.row_sparse_array((4, 3)), "row_sparse", ZEROS),
        (lambda: nd.sparse.zeros("csr", (4, 3)), "csr", ZEROS),
        (lambda: nd.sparse.zeros("default", (4, 3)), "default", ZEROS),
        (lambda: nd.sparse.empty("row_sparse", (4, 3)), "row_sparse", ZEROS),
        (lambda: nd.sparse.array(R), "row_sparse", DENSE),
        (lambda: C.copyto(nd.zeros((4, 3))), "default", DENSE),
        (lambda: C.copyto(nd.sparse.zeros("csr", (4, 3))), "csr", DENSE),
        (lambda: R.copyto(nd.sparse.zeros("csr", (4, 3))), "csr", DENSE),
        (lambda: D.copyto(nd.sparse.zeros("row_sparse", (4, 3))), "row_sparse", DENSE),
        (lambda: C.copyto(cpu(1)), "csr", DENSE),
    ],
)
def test_results(make: Callable[[], Any], stype: str, wanted: Any) -> None:
    found = make()
    assert found.stype == stype
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6)


def test_assignment_sets_all_elements() -> None:
    made = nd.sparse.zeros("csr", (4, 3), dtype="float64")
    made[:] = D
    assert (made.dtype, made.stype) == (np.float64, "csr")
    np.testing.assert_array_equal(made.asnumpy(), DENSE)
    made.check_format()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: C[0:4:2], ValueError, "not by 2"),
        (lambda: C[1, 2], ValueError, "only rows"),
        (lambda: C[4], IndexError, "row 4"),
        (lambda: R[1], ValueError, r"only \[:\]"),
        (lambda: C.__setitem__(1, 5), ValueError, "only all elements"),
        (lambda: C.copyto(nd.zeros((3, 3))), ValueError, r"does not fit into \(3, 3\)"),
        (lambda: nd.sparse.csr_matrix(DENSE, shape=(2, 3)), ValueError, r"not \(2, 3\)"),
        (lambda: nd.sparse.csr_matrix(([1], ([5], [0])), (2, 2)), ValueError, "row indices"),
        (lambda: nd.sparse.array(DENSE), ValueError, r"use passlib\.nd\.array"),
        (lambda: C.reshape((12,)), UnsupportedError, "tostype"),
        (R.asscipy, UnsupportedError, "row_sparse"),
        (lambda: C + "text", TypeError, "unsupported operand"),
    ],
)
def test_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("columns", [1 << 48, 1 << 62])
def test_an_array_too_large_to_be_dense(columns: int) -> None:
    made = nd.sparse.csr_matrix(([1.0], [columns - 1], [0, 0, 1]), shape=(2, columns))
    with pytest.raises(
        UnsupportedError, match=r"too large as a dense one: that takes [\d,]+ bytes"
    ):
        made.asnumpy()
