"""Random arrays and shapes to try functions with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passlib.arrays import random
from passlib.arrays.context import Context, current_context
from passlib.arrays.creation import array
from passlib.arrays.sparse_array import CSRNDArray, from_dense


def default_context() -> Context:
    """Return the device that tests run on: the current one.

    Examples
    --------
    >>> from passlib.test_utils import default_context
    >>> default_context()
    cpu(0)
    """
    return current_context()


def default_dtype() -> type[np.float32]:
    """Return the element type that tests use: float32.

    Examples
    --------
    >>> from passlib.test_utils import default_dtype
    >>> default_dtype().__name__
    'float32'
    """
    return np.float32


def rand_ndarray(
    shape: Sequence[int],
    stype: str = "default",
    density: float | None = None,
    dtype: Any = None,
    modifier_func: Callable[[float], float] | None = None,
    shuffle_csr_indices: bool = False,
    distribution: str | None = None,
    ctx: Context | None = None,
) -> Any:
    """Make an array of random numbers between -1 and 1; between 0 and 1 in sparse ones.

    Parameters
    ----------
    density : float, optional
        Share of the elements or rows that are stored, by default random.
    dtype : dtype-like, optional
        float32 by default.
    modifier_func : callable, optional
        Applied to each number that a sparse array stores.
    shuffle_csr_indices : bool
        Store the columns of each row in random order.
    distribution : {"uniform"}, optional
        Ignored; accepted for compatibility with MXNet.

    Examples
    --------
    >>> from passlib.test_utils import rand_ndarray
    >>> rand_ndarray((2, 3)).shape, rand_ndarray((2, 3), "csr", density=0.5).stype
    ((2, 3), 'csr')
    """
    if stype == "default":
        drawn = random.draw(lambda generator: generator.uniform(-1, 1, tuple(shape)))
        return array(drawn, ctx, dtype)
    made, _ = rand_sparse_ndarray(
        shape, stype, density, dtype, distribution, modifier_func=modifier_func, ctx=ctx
    )
    if shuffle_csr_indices and isinstance(made, CSRNDArray):
        shuffle_csr_column_indices(made)
    return made


def rand_sparse_ndarray(
    shape: Sequence[int],
    stype: str,
    density: float | None = None,
    dtype: Any = None,
    distribution: str | None = None,
    *,
    modifier_func: Callable[[float], float] | None = None,
    ctx: Context | None = None,
) -> tuple[Any, tuple[Any, ...]]:
    """Make a sparse array of random numbers; see `rand_ndarray`.

    Returns
    -------
    parts : tuple of NDArray
        ``(indptr, indices, data)`` or ``(data, indices)``.

    Raises
    ------
    ValueError
        The storage type is unknown or does not support the shape.

    Examples
    --------
    >>> from passlib.test_utils import rand_sparse_ndarray
    >>> array, (data, indices) = rand_sparse_ndarray((4, 3), "row_sparse", density=1)
    >>> data.shape, indices.shape
    ((4, 3), (4,))
    """
    del distribution
    sizes = tuple(shape)

    def draw(generator: np.random.Generator) -> np.ndarray[Any, Any]:
        share = generator.random() if density is None else density
        kept = sizes if stype == "csr" else (*sizes[:1], *(1 for _ in sizes[1:]))
        numbers = 1 - generator.random(sizes)  # never 0, which would not be stored
        return numbers * (generator.random(kept) < share)

    dense = random.draw(draw)
    if modifier_func is not None:
        stored = dense != 0
        dense[stored] = [modifier_func(number) for number in dense[stored]]
    made = from_dense(np.asarray(array(dense, ctx, dtype)), stype).as_in_context(
        ctx or current_context()
    )
    if isinstance(made, CSRNDArray):
        return made, (made.indptr, made.indices, made.data)
    return made, (made.data, made.indices)


def create_sparse_array(
    shape: Sequence[int],
    stype: str,
    data_init: float | None = None,
    rsp_indices: Sequence[int] | None = None,
    dtype: Any = None,
    modifier_func: Callable[[float], float] | None = None,
    density: float = 0.5,
    shuffle_csr_indices: bool = False,
) -> Any:
    """Make a sparse array of one number, by default random ones.

    Parameters
    ----------
    rsp_indices : sequence of int, optional
        The rows that a row_sparse array stores.
    shape, stype, dtype, modifier_func, density, shuffle_csr_indices
        See `rand_ndarray`.

    Examples
    --------
    >>> from passlib.test_utils import create_sparse_array
    >>> create_sparse_array((3, 2), "row_sparse", data_init=2, rsp_indices=[1]).asnumpy()
    array([[0., 0.],
           [2., 2.],
           [0., 0.]], dtype=float32)
    """
    change = modifier_func if data_init is None else lambda _: data_init
    if stype == "row_sparse" and rsp_indices is not None:
        dense = np.zeros(tuple(shape))
        rows = list(rsp_indices)
        dense[rows] = random.draw(lambda g: 1 - g.random((len(rows), *tuple(shape)[1:])))
        if change is not None:
            dense[rows] = np.vectorize(change)(dense[rows])
        return from_dense(np.asarray(array(dense, None, dtype)), stype)
    return rand_ndarray(shape, stype, density, dtype, change, shuffle_csr_indices)


def shuffle_csr_column_indices(csr: CSRNDArray) -> None:
    """Store the elements of each row of a matrix in random order, in place.

    Examples
    --------
    >>> import passlib as mx
    >>> matrix = mx.nd.array([[1, 2, 3]]).tostype("csr")
    >>> mx.test_utils.shuffle_csr_column_indices(matrix)
    >>> sorted(matrix.indices.asnumpy().tolist())
    [0, 1, 2]
    """
    parts = csr.parts
    assert parts.indptr is not None  # Sparse.check() requires it
    for start, end in zip(parts.indptr[:-1], parts.indptr[1:], strict=True):
        order = start + _permutation(int(end - start))
        for stored in (parts.data, parts.indices):
            stored[start:end] = stored[order]


def _permutation(size: int) -> np.ndarray[Any, Any]:
    return random.draw(lambda generator: generator.permutation(size))


def random_arrays(*shapes: Sequence[int]) -> Any:
    """Return arrays of NumPy of normally distributed numbers; a single one as it is.

    Examples
    --------
    >>> from passlib.test_utils import random_arrays
    >>> [array.shape for array in random_arrays((2, 3), (4,))]
    [(2, 3), (4,)]
    """
    made = [_drawn("standard_normal", tuple(shape)).astype(np.float32) for shape in shapes]
    return made[0] if len(made) == 1 else made


def random_uniform_arrays(
    *shapes: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: Any = np.float32
) -> list[np.ndarray[Any, Any]]:
    """Return arrays of NumPy of numbers from ``low`` to ``high``.

    Examples
    --------
    >>> from passlib.test_utils import random_uniform_arrays
    >>> (array,) = random_uniform_arrays((2, 3), low=1, high=2)
    >>> array.dtype, bool(array.min() >= 1)
    (dtype('float32'), True)
    """
    return [(low + (high - low) * _drawn("random", tuple(s))).astype(dtype) for s in shapes]


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> Any:
    """Return a random shape of two sizes up to these.

    Examples
    --------
    >>> from passlib.test_utils import rand_shape_2d
    >>> all(1 <= size <= 4 for size in rand_shape_2d(4, 4))
    True
    """
    return _shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> Any:
    """Return a random shape of three sizes up to these.

    Examples
    --------
    >>> from passlib.test_utils import rand_shape_3d
    >>> len(rand_shape_3d())
    3
    """
    return _shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> Any:
    """Return a random shape of ``num_dim`` sizes up to ``dim``.

    Examples
    --------
    >>> from passlib.test_utils import rand_shape_nd
    >>> len(rand_shape_nd(5, dim=2))
    5
    """
    return _shape((dim,) * num_dim, allow_zero_size)


def _drawn(kind: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return random.draw(lambda generator: np.asarray(getattr(generator, kind)(shape)))


def _shape(most: tuple[int, ...], allow_zero_size: bool) -> tuple[int, ...]:
    least = 0 if allow_zero_size else 1
    sizes = random.draw(lambda generator: generator.integers(least, np.array(most) + 1))
    return tuple(int(size) for size in sizes)
