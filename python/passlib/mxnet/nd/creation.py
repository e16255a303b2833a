"""Functions of MXNet's ``nd`` that create arrays: matrices, ranges, counts, views."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from passlib.arrays.context import Context, current_context
from passlib.arrays.creation import array, written
from passlib.arrays.ndarray import NDArray
from passlib.errors import UnsupportedError
from passlib.mxnet.nd.operators import invoke


def eye(
    N: int,  # noqa: N803, the names are MXNet's
    M: int = 0,  # noqa: N803
    k: int = 0,
    ctx: Context | None = None,
    dtype: Any = None,
) -> NDArray:
    """Return an N x M matrix (N x N if M is 0) with ones on the ``k``-th diagonal.

    Parameters
    ----------
    N, M : int
        Numbers of rows and columns.
    k : int
        0 is the main diagonal, positive ones are above.
    ctx : Context, optional
        The current one by default.
    dtype : dtype-like, optional
        float32 by default.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.eye(2, 3, k=1).asnumpy()
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    made: NDArray = array(np.eye(N, M or N, k), ctx, dtype)
    return made


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: Context | None = None,
    dtype: Any = np.float32,
) -> NDArray:
    """Return ``num`` evenly spaced numbers; integers are truncated.

    Parameters
    ----------
    start, stop : float
        First and last number; the last one is excluded unless ``endpoint``.
    ctx, dtype
        As of `eye`, but None means float64, as in MXNet.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.linspace(0, 1, 3).asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    kind = np.float64 if dtype is None else dtype
    made: NDArray = array(np.linspace(start, stop, num, endpoint), ctx, kind)
    return made


def histogram(a: Any, bins: Any = 10, range: tuple[float, float] | None = None) -> Any:
    """Count the elements of an array in each bin.

    Parameters
    ----------
    bins : int or array
        Number of bins, or their edges.
    range : (float, float), optional
        The lowest and the highest edge, by default those of the elements.

    Returns
    -------
    list of NDArray
        Counts, int64, and edges in the type of ``a``. A tuple of float32 arrays, as in MXNet, if
        the range is that of the elements.

    Raises
    ------
    ValueError
        ``bins`` is neither.

    Examples
    --------
    >>> import passlib as mx
    >>> counts, edges = mx.nd.histogram(mx.nd.array([0, 1, 3]), bins=2, range=(0, 4))
    >>> counts.asnumpy().tolist(), edges.asnumpy().tolist()
    ([2, 1], [0.0, 2.0, 4.0])
    """
    if isinstance(bins, np.ndarray):
        return invoke("_histogram", a, bins)
    if not isinstance(bins, (int, np.integer)):
        raise ValueError(f"histogram: bins is a number or an array, not {bins!r}")
    if range is not None:
        return invoke("_histogram", a, bin_cnt=bins, range=range)
    context = getattr(a, "context", None)
    counts, edges = np.histogram(np.asarray(a), bins)
    return array(counts, context), array(edges, context)


def fill_element_0index(lhs: NDArray, mhs: Any, rhs: Any, out: NDArray | None = None) -> Any:
    """Return a matrix with one element of each row replaced.

    Parameters
    ----------
    lhs : NDArray
        The matrix.
    mhs : array
        The new element of each row.
    rhs : array
        Its column; columns outside the matrix are ignored.
    out : NDArray, optional
        The array to write to and return.

    Raises
    ------
    ValueError
        The matrix, the elements and the columns do not fit together.

    Examples
    --------
    >>> import passlib as mx
    >>> matrix, columns = mx.nd.zeros((2, 3)), mx.nd.array([2, 0])
    >>> mx.nd.fill_element_0index(matrix, mx.nd.array([5, 7]), columns).asnumpy()
    array([[0., 0., 5.],
           [7., 0., 0.]], dtype=float32)
    """
    elements, columns = np.asarray(mhs), np.asarray(rhs).astype(np.int64)
    if lhs.ndim != 2 or not elements.shape == columns.shape == lhs.shape[:1]:
        raise ValueError(
            f"fill_element_0index takes a matrix, and an element and a column for each row, not "
            f"the shapes {lhs.shape}, {elements.shape} and {columns.shape}"
        )
    made = lhs.copy()
    rows = np.flatnonzero((columns >= 0) & (columns < lhs.shape[1]))
    np.asarray(made)[rows, columns[rows]] = elements[rows]
    return made if out is None else written(out, made)


def onehot_encode(indices: Any, out: NDArray) -> NDArray:
    """Write a row for each index to a matrix: 1 in the column of the index, else 0.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.onehot_encode(mx.nd.array([2, 0]), mx.nd.empty((2, 3))).asnumpy()
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    rows = np.asarray(indices).astype(np.int64)
    columns = np.arange(out.shape[1])
    np.copyto(out, (rows[:, None] == columns).astype(out.dtype))
    return out


def from_numpy(ndarray: np.ndarray[Any, Any], zero_copy: bool = True) -> NDArray:
    """Return a NumPy array as an NDArray.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Must be contiguous unless copied.
    zero_copy : bool
        Share its memory and make the original read-only.

    Raises
    ------
    ValueError
        The array is not contiguous.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> source = np.ones(2)
    >>> array = mx.nd.from_numpy(source)
    >>> source.flags.writeable, np.shares_memory(array, source)
    (False, True)
    """
    if not zero_copy:
        copied: NDArray = array(ndarray, None, ndarray.dtype)
        return copied
    if not ndarray.flags.c_contiguous:
        raise ValueError("only a contiguous array can be used in place; pass zero_copy=False")
    made = ndarray.view(NDArray)
    made._context = current_context()
    ndarray.flags.writeable = False
    return made


class _Capsule:
    """An object that returns a given capsule, as NumPy requires."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the host


def from_dlpack(dlpack: Any) -> NDArray:
    """Return an array on the memory of a DLPack capsule, or of an object that exports one.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> source = np.zeros(2, "float32")
    >>> array = mx.nd.from_dlpack(source)
    >>> source[0] = 5
    >>> array.asnumpy()
    array([5., 0.], dtype=float32)
    """
    source = dlpack if hasattr(dlpack, "__dlpack__") else _Capsule(dlpack)
    return np.from_dlpack(source).view(NDArray)


def to_dlpack_for_read(data: NDArray) -> Any:
    """Return a DLPack capsule on the memory of an array, for reading.

    Examples
    --------
    >>> import passlib as mx
    >>> capsule = mx.nd.to_dlpack_for_read(mx.nd.ones((2,)))
    >>> mx.nd.from_dlpack(capsule).asnumpy()
    array([1., 1.], dtype=float32)
    """
    return np.asarray(data).__dlpack__()


def to_dlpack_for_write(data: NDArray) -> Any:
    """Return a DLPack capsule on the memory of an array, for writing.

    Examples
    --------
    >>> import passlib as mx
    >>> array = mx.nd.ones((2,))
    >>> view = mx.nd.from_dlpack(mx.nd.to_dlpack_for_write(array))
    >>> array[0] = 3
    >>> view.asnumpy()
    array([3., 1.], dtype=float32)
    """
    return np.asarray(data).__dlpack__()


def imdecode(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: passlib does not decode images."""
    raise UnsupportedError(
        "nd.imdecode: passlib does not decode images; read them with a package for images and "
        "pass numpy.asarray(image) to passlib.nd.array"
    )
