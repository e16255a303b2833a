"""Functions that write to ``out``, dense or sparse, and small functions of MXNet's own tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passlib as mx
from passlib import nd
from passlib.errors import PasslibError


@pytest.mark.parametrize("stype", ["default", "row_sparse", "csr"])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda out: nd.ones((2, 3), out=out), 1),
        (lambda out: nd.zeros((2, 3), out=out), 0),
        (lambda out: nd.full((2, 3), 7, out=out), 7),
        (lambda out: nd.elemwise_add(nd.ones((2, 3)), nd.ones((2, 3)), out=out), 2),
        (lambda out: nd.random.uniform(4, 5, shape=(2, 3), out=out), None),
        (lambda out: nd.random_normal(shape=(2, 3), out=out), None),
    ],
)
def test_out(function: Any, expected: int | None, stype: str) -> None:
    out = nd.full((2, 3), 9).tostype(stype)
    assert function(out) is out
    assert out.stype == stype
    found = out.asnumpy()
    if expected is None:
        assert not (found == 9).any()
    else:
        assert (found == expected).all()


@pytest.mark.parametrize("function", [nd.ones, nd.zeros, lambda s, out: nd.full(s, 1, out=out)])
def test_out_of_another_shape(function: Any) -> None:
    out = nd.zeros((1, 2))
    with pytest.raises(ValueError, match=r"\(1, 2\).*\(2, 2\)"):
        function((2, 2), out=out)
    with pytest.raises((TypeError, ValueError)):
        function((1, 1), out=out)
    assert (out.asnumpy() == 0).all()


def test_all_of_an_array_without_axes() -> None:
    with mx.np_shape(True):
        x = nd.zeros(())
        for value in (np.ones(()), 3, nd.full((), 4)):
            x[:] = value
            assert x[:].asnumpy() == np.asarray(value)
        with pytest.raises(IndexError):
            x[0]


def test_index_arrays_are_counted() -> None:
    rows, matrix = nd.zeros((2, 3), stype="row_sparse"), nd.zeros((2, 3), stype="csr")
    assert (rows._num_aux, matrix._num_aux) == (1, 2)
    assert matrix._aux_types == [np.int64, np.int64]


def test_fill_element() -> None:
    matrix = nd.array([[0, 1], [2, 3], [4, 5]])
    elements = nd.array([7, 8, 9])
    for columns, expected in (
        ([0, 1, 1.7], [[7, 1], [2, 8], [4, 9]]),
        ([0, -1, 5], [[7, 1], [2, 3], [4, 5]]),
    ):
        filled = nd.fill_element_0index(matrix, elements, nd.array(columns))
        assert filled.asnumpy().tolist() == expected
    assert nd.fill_element_0index(matrix, elements, nd.zeros((3,)), out=matrix) is matrix
    assert matrix.asnumpy()[:, 0].tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match="takes a matrix"):
        nd.fill_element_0index(matrix, nd.array([7, 8]), nd.array([0, 1]))


def test_edges_of_a_graph() -> None:
    graph = nd.sparse.csr_matrix(np.array([[0, 2, 0], [0, 0, 3.0]], np.float32))
    found = mx.contrib.nd.edge_id(graph, nd.array([0, 1, 1]), nd.array([1, 2, 0]))
    assert found.asnumpy().tolist() == [2, 3, -1]
    with pytest.raises(IndexError, match="no row 5"):
        nd.contrib.edge_id(graph, nd.array([5]), nd.array([0]))


def test_operators_of_contrib_under_its_own_name() -> None:
    boxes = nd.array([[0, 0.5, 0.1, 0.1, 0.2, 0.2], [1, 0.4, 0.1, 0.1, 0.2, 0.2]])
    for space in (mx.contrib.nd, mx.contrib.ndarray):
        assert space.box_nms(boxes, force_suppress=True).asnumpy()[1].tolist() == [-1] * 6
    for symbols in (mx.contrib.sym, mx.contrib.symbol):
        assert symbols.box_nms(mx.sym.var("x"), name="y").list_outputs() == ["y_output0"]


def test_no_axes_to_broadcast() -> None:
    with pytest.raises(PasslibError, match="lists no axes"):
        nd.broadcast_like(nd.ones((2, 1)), nd.ones((2, 3)), lhs_axes=(), rhs_axes=())
