"""Symbols as functions of arrays, and what scripts ask of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passlib import nd, sym
from passlib.errors import GraphError

X = sym.var("x")


def test_outputs_in_the_order_of_the_inputs() -> None:
    y = sym.var("y")
    one = nd.CachedOp(X - 2 * y, [("static_alloc", "true")])
    assert one(nd.array([5, 7]), nd.array([1, 2])).asnumpy().tolist() == [3, 3]
    several = nd.op.CachedOp(sym.Group([X * 2, X + 1]))
    assert [a.asnumpy().tolist() for a in several(nd.ones((2,)))] == [[2, 2], [2, 2]]
    target = nd.zeros((2,))
    assert nd.CachedOp(X * 2)(nd.ones((2,)), out=target) is target
    assert target.asnumpy().tolist() == [2, 2]


def test_wrong_numbers_of_arrays() -> None:
    with pytest.raises(GraphError, match=r"has 1 inputs \(x\), not 2"):
        nd.CachedOp(X * 2)(nd.ones((2,)), nd.ones((2,)))


ALL = slice(None)


@pytest.mark.parametrize(
    ("key", "shape", "expected"),
    [
        ((0, ..., 1), (3, 4, 5), (0, ALL, 1)),
        (0, (3, 4, 5), (0, ALL, ALL)),
        ((None, 0), (3, 4), (None, 0, ALL)),
        (..., (3,), (ALL,)),
    ],
)
def test_indices_written_out(key: Any, shape: tuple[int, ...], expected: tuple[Any, ...]) -> None:
    assert nd.indexing_key_expand_implicit_axes(key, shape) == (expected, -1)


def test_indices_that_do_not_fit() -> None:
    mask = np.array([[True, False]])
    assert nd.indexing_key_expand_implicit_axes((mask, 0), (1, 2, 3)) == ((mask, 0), 0)
    for key in ((0, 0), (..., ...)):
        with pytest.raises(IndexError, match="does not fit an array of 1 axes"):
            nd.indexing_key_expand_implicit_axes(key, (3,))
    assert nd.get_indexing_dispatch_code((0, ALL)) == 0
    assert nd.get_indexing_dispatch_code((nd.array([0]), 0)) == 1
    assert nd.get_indexing_dispatch_code((object(),)) == -1


def test_shape_of_gathered_elements() -> None:
    data, indices = nd.ones((3, 4, 5)), nd.zeros((2, 7))
    shape = nd.get_oshape_of_gather_nd_op(data.shape, indices.shape)
    assert shape == (7, 5) == nd.gather_nd(data, indices).shape
    with pytest.raises(ValueError, match="do not fit"):
        nd.get_oshape_of_gather_nd_op((3,), (2, 7))


def test_log_uniform_classes() -> None:
    samples, true, drawn = sym.contrib.rand_zipfian(sym.var("t"), 2000, 50)
    outputs = sym.Group([samples, true, drawn]).eval(t=np.array([0, 9], np.float32))
    classes, counts, own = (output.asnumpy() for output in outputs)
    assert classes.dtype == np.int64
    assert 0 <= classes.min() <= classes.max() < 50
    expected = np.log([2, 11 / 10]) / np.log(51) * 2000
    np.testing.assert_allclose(counts, expected, rtol=1e-6)
    assert abs((classes == 0).sum() - expected[0]) < 100
    np.testing.assert_allclose(own, np.log((classes + 2) / (classes + 1)) / np.log(51) * 2000)
