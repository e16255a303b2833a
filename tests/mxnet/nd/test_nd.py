"""Arrays: NumPy's behaviour, MXNet's methods."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passlib import nd
from passlib.context import cpu, gpu
from passlib.errors import PasslibError, UnsupportedError
from passlib.nd import CSRNDArray, NDArray, RowSparseNDArray

F32, I8 = np.dtype("float32"), np.dtype("int8")


@pytest.mark.parametrize(
    ("source", "dtype", "expected"),
    [
        ([1, 2], None, F32),
        ([True], None, F32),
        (3, None, F32),
        (np.float64(3), None, F32),
        (np.array([1.0]), None, F32),
        (np.array([1], np.float16), None, F32),
        (nd.array([1], dtype="int8"), None, I8),
        ([1], "int8", I8),
        (np.zeros((0, 3)), None, F32),
        ([nd.array([1], dtype="int8")], "int8", I8),
    ],
)
def test_array_follows_mxnets_rule_for_types(source: Any, dtype: Any, expected: Any) -> None:
    made = nd.array(source, dtype=dtype)
    assert type(made) is NDArray
    assert made.dtype == expected
    np.testing.assert_array_equal(made.asnumpy(), np.asarray(source))


def test_array_copies() -> None:
    source = np.zeros(2, np.float32)
    nd.array(source)[:] = 1
    assert not source.any()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (nd.zeros((2, 1)), np.zeros((2, 1), F32)),
        (nd.zeros(3, dtype="int8"), np.zeros(3, I8)),
        (nd.ones((2,), dtype="bfloat16").astype("float32"), np.ones(2, F32)),
        (nd.full((2, 2), 7, dtype="int8"), np.full((2, 2), 7, I8)),
        (nd.arange(5), np.arange(5, dtype=F32)),
        (nd.arange(2, 5, 1, 3), np.repeat(np.arange(2, 5, dtype=F32), 3)),
        (nd.arange(0, 1, 0.25), np.arange(0, 1, 0.25, dtype=F32)),
        (nd.arange(3, 0, -1, dtype="int8"), np.array([3, 2, 1], I8)),
        (
            nd.arange(2**60, 2**60 + 2, dtype="int64"),
            np.array([2**60, 2**60 + 1]),
        ),
    ],
)
def test_creation(made: NDArray, expected: np.ndarray[Any, Any]) -> None:
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made.asnumpy(), expected)


X16 = nd.array([[1, 0]], dtype="float16")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: nd.softmax(X16, dtype=None), "float64"),
        (lambda: X16.log_softmax(dtype=None), "float64"),
        (lambda: nd.argsort(X16, dtype=None), "float64"),
        (lambda: nd.topk(X16, dtype=None), "float64"),
        (lambda: nd.one_hot(X16, depth=3, dtype=None), "float64"),
        (lambda: nd.cast(X16, dtype=None), "float64"),
        (lambda: nd.arange(3, dtype=None), "float64"),
        (lambda: nd.linspace(0, 1, 3, dtype=None), "float64"),
        (lambda: nd.zeros((2,), dtype=None), "float32"),
        (lambda: nd.full((2,), 3, dtype=None), "float32"),
        (lambda: nd.eye(2, dtype=None), "float32"),
        (lambda: X16.astype(None), "float32"),
        (lambda: X16.tostype("csr").astype(None), "float32"),
    ],
)
def test_no_type_is_what_mxnet_makes_of_it(make: Callable[[], Any], expected: str) -> None:
    assert make().dtype == np.dtype(expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32", "int64"])
def test_edges_of_a_histogram_have_the_type_of_the_data(dtype: str) -> None:
    """The counts are MXNet's, which truncates the edges of integers first."""
    data = nd.array([0, 1, 2, 3, 3, 5], dtype=dtype)
    counts, edges = nd.histogram(data, bins=3, range=(0, 4))
    real = np.dtype(dtype).kind == "f"
    assert (counts.dtype, counts.asnumpy().tolist()) == (np.int64, [2, 1, 2] if real else [1, 1, 3])
    wanted = np.array([0, 4 / 3, 8 / 3, 4]).astype(dtype)
    assert edges.dtype == dtype
    np.testing.assert_allclose(edges.asnumpy(), wanted, rtol=1e-3)
    counts, edges = nd.histogram(data, bins=nd.array([0, 1, 3, 4], dtype=dtype))
    assert (edges.dtype, counts.asnumpy().tolist()) == (np.dtype(dtype), [1, 2, 2])


@pytest.mark.parametrize("error", [IndexError, PasslibError])
@pytest.mark.parametrize("rows", [[0, 2], [0, -3]])
def test_an_index_beyond_the_array_is_also_an_index_error(
    error: type[Exception], rows: list[int]
) -> None:
    with pytest.raises(error, match=r"gather_nd.*invalid index"):
        nd.gather_nd(nd.ones((2, 3)), nd.array([rows, [0, 1]]))


def test_empty_has_shape_and_type() -> None:
    made = nd.empty((2, 3), dtype="float16")
    assert made.shape == (2, 3)
    assert made.dtype == np.float16


@pytest.mark.parametrize(
    "make",
    [
        lambda c: nd.array([1], ctx=c),
        lambda c: nd.zeros(1, ctx=c),
        lambda c: nd.ones(1, ctx=c),
        lambda c: nd.full(1, 2, ctx=c),
        lambda c: nd.empty(1, ctx=c),
        lambda c: nd.arange(1, ctx=c),
        lambda c: nd.ones(1).as_in_context(c),
        lambda c: nd.ones(1).copyto(c),
        lambda c: nd.zeros((1, 1), stype="csr").as_in_context(c),
        lambda c: nd.sparse.csr_matrix(([1], [0], [0, 1]), ctx=c),
        lambda c: nd.sparse.row_sparse_array(([[1]], [0]), ctx=c),
    ],
)
def test_placing(make: Callable[[Any], Any]) -> None:
    assert make(cpu(2)).context == cpu(2)
    with pytest.raises(UnsupportedError, match=r"gpu\(0\).*CPU only"):
        make(gpu())


@pytest.mark.parametrize("dtype", ["complex64", "U2", object])
def test_types_that_mxnet_lacks(dtype: Any) -> None:
    for make in (nd.zeros, nd.empty, nd.ones):
        with pytest.raises(UnsupportedError, match="MXNet has no dtype"):
            make(2, dtype=dtype)


X = nd.array([[1, 2, 3], [4, 5, 6]], ctx=cpu(1))


@pytest.mark.parametrize(
    "apply",
    [
        lambda a: a[0],
        lambda a: a[:, ::2],
        lambda a: a[[1, 0]],
        lambda a: a[None, ..., 0],
        lambda a: a + 1,
        lambda a: 2 - a,
        lambda a: a @ a.T,
        np.exp,
        np.sum,
        np.sort,
        lambda a: np.clip(a, 2, 3),
        lambda a: np.take(a, [0, 3]),
        lambda a: np.round(a / 4),
        lambda a: np.concatenate([a, a]),
        lambda a: np.greater(a, 2),
        lambda a: a[np.asarray(a) > 2],
        lambda a: a.cumsum(),
        lambda a: a.sum(dtype="float64"),
        lambda a: a.mean(axis=1),
        lambda a: a.reshape(-1),
        lambda a: a.astype("float64"),
        lambda a: a.copy(),
        lambda a: a.T,
    ],
)
def test_numpys_functions_keep_their_meaning_and_give_arrays(apply: Callable[[Any], Any]) -> None:
    result = apply(X)
    plain = apply(X.asnumpy())
    assert type(result) is NDArray
    assert result.context == cpu(1)
    assert result.dtype == plain.dtype
    assert result.shape == np.shape(plain)
    np.testing.assert_array_equal(result.asnumpy(), plain)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numpys_conditions_combine_with_comparisons(dtype: str) -> None:
    values = nd.array([1, np.inf, np.nan], dtype=dtype)
    found = np.isnan(values)
    found |= values == np.inf
    assert found.dtype == np.bool_
    assert found.tolist() == [False, True, True]
    assert (np.array([True, True, False]) & (values == 1)).tolist() == [True, False, False]
    np.testing.assert_array_equal(values, values.copy())


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_numpys_conditions_take_comparisons_of_integers(dtype: str) -> None:
    values = nd.array([1, 2, 3], dtype=dtype)
    found = np.isnan(values)
    found |= values == 2
    assert found.dtype == np.bool_
    assert found.tolist() == [False, True, False]
    found ^= values
    assert found.tolist() == [True, False, True]
    np.testing.assert_array_equal(values, values.copy())


def test_concatenation_stays_an_array() -> None:
    assert type(np.concatenate([X.asnumpy(), X])) is NDArray


def test_integer_index_shares_memory() -> None:
    array = nd.array([1, 2, 3])
    array[1][...] = 7
    assert array.asnumpy().tolist() == [1, 7, 3]
    assert array[1].asscalar() == 7
    assert f"{array[1]:.1f}" == "7.0"


def test_asnumpy_is_a_plain_copy() -> None:
    array = nd.ones((2,))
    plain = array.asnumpy()
    assert type(plain) is np.ndarray
    plain[:] = 0
    assert array.sum().asscalar() == 2


def test_asscalar() -> None:
    assert nd.array([3]).asscalar() == 3
    assert isinstance(nd.array([[3]]).asscalar(), np.float32)
    with pytest.raises(ValueError, match=r"\(2, 3\) is not a scalar"):
        X.asscalar()


def test_context_and_copies() -> None:
    assert X.ctx == X.context == cpu(1)
    assert X.as_in_context(cpu(1)) is X
    moved = X.as_in_ctx(cpu(0))
    assert moved.context == cpu(0)
    assert not np.shares_memory(moved, X)
    target = nd.zeros((2, 3), dtype="int8")
    assert X.copyto(target) is target
    assert target.asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(ValueError, match=r"\(2, 3\) does not fit into \(3,\)"):
        X.copyto(nd.zeros(3))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(protocol: int) -> None:
    again = pickle.loads(pickle.dumps(X, protocol))
    assert type(again) is NDArray
    assert again.context == cpu(1)
    np.testing.assert_array_equal(again.asnumpy(), X.asnumpy())


def test_deepcopy() -> None:
    again = copy.deepcopy(X)
    assert (type(again), again.context) == (NDArray, cpu(1))
    assert not np.shares_memory(again, X)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (nd.array([1, 2]), "\n[1. 2.]\n<NDArray 2 @cpu(0)>"),
        (X, "\n[[1. 2. 3.]\n [4. 5. 6.]]\n<NDArray 2x3 @cpu(1)>"),
        (nd.zeros((2, 3), stype="csr"), "\n<CSRNDArray 2x3 @cpu(0)>"),
        (nd.zeros((2, 3), stype="row_sparse"), "\n<RowSparseNDArray 2x3 @cpu(0)>"),
    ],
)
def test_repr_is_mxnets(array: Any, text: str) -> None:
    assert repr(array) == str(array) == text


def test_waiting_returns() -> None:
    X.wait_to_read()
    X.wait_to_write()
    nd.waitall()


DENSE = np.array([[0, 5, 0], [0, 0, 0], [7, 0, np.nan]], np.float32)


@pytest.mark.parametrize(("stype", "kind"), [("csr", CSRNDArray), ("row_sparse", RowSparseNDArray)])
def test_sparse_there_and_back(stype: str, kind: type[Any]) -> None:
    made = nd.array(DENSE, ctx=cpu(1)).tostype(stype)
    assert type(made) is kind
    assert (made.stype, made.shape, made.ndim, len(made)) == (stype, (3, 3), 2, 3)
    assert (made.dtype, made.context) == (F32, cpu(1))
    np.testing.assert_array_equal(made.asnumpy(), DENSE)
    np.testing.assert_array_equal(np.asarray(made, np.float64), DENSE)
    assert made.tostype(stype) is made
    back = made.tostype("default")
    assert type(back) is NDArray
    assert (back.stype, back.context) == ("default", cpu(1))
    np.testing.assert_array_equal(back, DENSE)
    other = made.tostype("csr" if stype == "row_sparse" else "row_sparse")
    np.testing.assert_array_equal(other.asnumpy(), DENSE)
    half = made.astype("float16")
    assert (type(half), half.dtype) == (kind, np.float16)
    copied = nd.array(made)
    assert (type(copied), copied.context) == (kind, cpu(0))
    assert not np.shares_memory(copied.data, made.data)
    made.copy().wait_to_read()


def test_sparse_parts() -> None:
    matrix = nd.array(DENSE).tostype("csr")
    assert isinstance(matrix, CSRNDArray)
    assert matrix.indptr.asnumpy().tolist() == [0, 1, 1, 3]
    assert matrix.indices.asnumpy().tolist() == [1, 0, 2]
    assert matrix.data[:2].asnumpy().tolist() == [5, 7]
    rows = nd.array(DENSE).tostype("row_sparse")
    assert isinstance(rows, RowSparseNDArray)
    assert rows.indices.asnumpy().tolist() == [0, 2]
    np.testing.assert_array_equal(rows.data.asnumpy(), DENSE[[0, 2]])


def test_sparse_from_parts() -> None:
    matrix = nd.sparse.csr_matrix(([5, 6], [2, 0], [0, 1, 2]))
    assert (matrix.shape, matrix.dtype) == ((2, 3), F32)
    assert matrix.asnumpy().tolist() == [[0, 0, 5], [6, 0, 0]]
    rows = nd.sparse.row_sparse_array((np.array([[1], [2]]), [3, 0]))
    assert rows.shape == (4, 1)
    assert rows.dtype == np.int64
    assert rows.asnumpy().tolist() == [[2], [0], [0], [1]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nd.sparse.csr_matrix(([5], [2], [0, 1]), shape=(1, 2)), "column indices.*2 col"),
        (lambda: nd.sparse.csr_matrix(([5], [0], [0, 2])), "does not rise from 0 to 1"),
        (lambda: nd.sparse.row_sparse_array(([[5]], [2]), shape=(2, 1)), "row indices"),
        (lambda: nd.sparse.row_sparse_array(([[5]], [0]), shape=(2, 2)), "rows have the shape"),
        (lambda: nd.sparse.row_sparse_array(([[5]], [0, 1])), "indices are"),
        (lambda: nd.zeros((2, 2, 2), stype="csr"), "cannot be stored as csr"),
        (lambda: nd.zeros((), stype="row_sparse"), "cannot be stored as row_sparse"),
        (lambda: nd.zeros((2, 2), stype="coo"), "unknown storage type 'coo'"),
    ],
)
def test_unsound_sparse_arrays(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_numpys_operators_refuse_sparse_arrays() -> None:
    with pytest.raises(TypeError, match="CSRNDArray"):
        np.ones((2, 2)) * nd.zeros((2, 2), stype="csr")


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (True, [3.0, 4.0]),
        (False, [1.0, 2.0]),
        ((True, 0), [3.0]),
        ((0, True), [2.0]),
        ([True, False], [[3.0, 4.0], [1.0, 2.0]]),
    ],
    ids=str,
)
def test_truth_values_are_whole_numbers_as_indices(key: Any, wanted: list[Any]) -> None:
    assert nd.array([[1, 2], [3, 4]])[key].asnumpy().tolist() == wanted


def test_an_array_may_be_a_key_of_a_dict() -> None:
    array, equal = nd.array([1, 2]), nd.array([1, 2])
    names = {array: "first", equal: "second"}
    assert (names[array], names[equal]) == ("first", "second")
