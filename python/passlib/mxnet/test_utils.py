"""MXNet's ``mxnet.test_utils``: comparisons, random arrays and checks of symbols."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from passlib.arrays import random
from passlib.arrays.context import Context, current_context, set_default_context
from passlib.arrays.creation import array
from passlib.arrays.sparse_array import CSRNDArray, from_dense
from passlib.errors import UnsupportedError
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.training import refuse
from passlib.mxnet.util import use_np

_EXACT: Final = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")
_RTOLS: Final = MappingProxyType({"float16": 1e-2, "float32": 1e-4, "float64": 1e-5})
_ATOLS: Final = MappingProxyType({"float16": 1e-1, "float32": 1e-3, "float64": 1e-20})


def default_rtols() -> dict[np.dtype[Any], float]:
    """Return the relative tolerance of each element type, as MXNet has them."""
    return {np.dtype(name): tol for name, tol in {**_RTOLS, **dict.fromkeys(_EXACT, 0)}.items()}


def default_atols() -> dict[np.dtype[Any], float]:
    """Return the absolute tolerance of each element type, as MXNet has them."""
    return {np.dtype(name): tol for name, tol in {**_ATOLS, **dict.fromkeys(_EXACT, 0)}.items()}


def get_rtol(rtol: float | None = None, dtype: Any = np.float64) -> float:
    """Return a relative tolerance, by default that of the element type."""
    return default_rtols().get(np.dtype(dtype), _RTOLS["float32"]) if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = np.float64) -> float:
    """Return an absolute tolerance, by default that of the element type."""
    return default_atols().get(np.dtype(dtype), _ATOLS["float32"]) if atol is None else atol


def default_numeric_eps() -> dict[np.dtype[Any], float]:
    """Return MXNet's step of numeric differentiation for each real element type."""
    bits = {"float16": 6, "float32": 9, "float64": 14}
    return {np.dtype(name): 2.0**-number for name, number in bits.items()}


def get_etol(etol: float | None = None) -> float:
    """Return the share of elements that may differ, by default none."""
    return 0 if etol is None else etol


def get_tolerance(dat: Any, tol: float | None, default_tol: Mapping[np.dtype[Any], float]) -> float:
    """Return a tolerance for an array, by default that of its element type."""
    return default_tol[effective_dtype(dat)] if tol is None else tol


def effective_dtype(dat: Any) -> np.dtype[Any]:
    """Return the element type of an array, whose tolerances apply."""
    found: np.dtype[Any] = np.asarray(dat).dtype if not hasattr(dat, "dtype") else dat.dtype
    return np.dtype(found)


def get_tols(x: Any, y: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """Return the tolerances for two arrays: given ones, or those of the less exact type."""
    types = [effective_dtype(x), effective_dtype(y)]
    return (
        max(get_rtol(rtol, dtype) for dtype in types),
        max(get_atol(atol, dtype) for dtype in types),
    )


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have equal shapes and elements."""
    return bool(np.array_equal(_plain(a), _plain(b)))


def same_array(array1: Any, array2: Any) -> bool:
    """Whether two arrays are equal and share memory."""
    return same(array1, array2) and bool(np.shares_memory(array1, array2))


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether two arrays are equal within the tolerances.

    Parameters
    ----------
    rtol, atol : float, optional
        By default those of `get_tols`.
    equal_nan : bool
        Whether NaN equals NaN.
    use_broadcast : bool
        Whether shapes may differ by broadcasting.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import almost_equal
    >>> almost_equal(np.ones(2), np.ones(2) + 1e-3), almost_equal(np.ones(2), np.zeros(2), atol=2)
    (False, True)
    """
    left, right = _plain(a), _plain(b)
    if not use_broadcast and left.shape != right.shape:
        return False
    rtol, atol = get_tols(left, right, rtol, atol)
    return bool(np.allclose(left, right, rtol, atol, equal_nan))


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Check that two arrays are equal within the tolerances; see `almost_equal`.

    Parameters
    ----------
    names : (str, str)
        For the message.
    mismatches : (int, int)
        Ignored; accepted for compatibility with MXNet, which prints that many.

    Raises
    ------
    AssertionError
        They are not; the message has the largest difference, relative to the tolerances, and its
        place.
    ValueError
        The shapes cannot be broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assert_almost_equal
    >>> try:
    ...     assert_almost_equal(np.zeros(2), np.array([0, 1]), names=("ours", "theirs"))
    ... except AssertionError as error:
    ...     print("theirs" in str(error))
    True
    """
    left, right = _plain(a), _plain(b)
    if not use_broadcast and left.shape != right.shape:
        raise AssertionError(f"{names[0]} has shape {left.shape}, {names[1]} {right.shape}")
    assert_almost_equal_with_err(left, right, rtol, atol, 0, names, equal_nan)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    etol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Like `assert_almost_equal`, but a share ``etol`` of the elements may differ.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assert_almost_equal_with_err
    >>> assert_almost_equal_with_err(np.zeros(4), np.array([0, 0, 0, 1]), etol=0.3)
    """
    left, right = _plain(a), _plain(b)
    if almost_equal(left, right, rtol, atol, equal_nan):
        return
    rtol, atol = get_tols(left, right, rtol, atol)
    one, other = np.broadcast_arrays(left.astype(np.float64), right.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(one - other) / (atol + rtol * np.abs(other))
    unlike = np.isnan(one) ^ np.isnan(other) if equal_nan else np.isnan(one) | np.isnan(other)
    error = np.where(unlike, np.inf, np.nan_to_num(error, nan=0.0, posinf=np.inf))
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    share = float(np.mean(error > 1))
    if share <= get_etol(etol) and share < 1:
        return
    raise AssertionError(
        f"{names[0]} and {names[1]} differ by {error[place]:f} times the tolerance "
        f"(rtol={rtol:e}, atol={atol:e}) at {place}: {one[place]:.8f} and {other[place]:.8f}; "
        f"{share:.2%} of the elements differ by more than it"
    )


def checkShapes(a: Any, b: Any) -> None:  # noqa: N802 (MXNet's name)
    """Check that two arrays have one shape.

    Raises
    ------
    AssertionError
        They do not.
    """
    if a.shape != b.shape:
        raise AssertionError(f"the shapes {a.shape} and {b.shape} differ")


def locationError(  # noqa: N802 (MXNet's name)
    a: Any,
    b: Any,
    index: tuple[int, ...],
    names: tuple[str, str],
    maxError: bool = False,  # noqa: N803 (MXNet's name)
) -> str:
    """Describe the elements at a place of two arrays, for messages."""
    largest = "maximum " if maxError else ""
    one, other = (f"{name}={_plain(x)[index]:.8f}" for name, x in zip(names, (a, b), strict=True))
    return f"Location of {largest}error: {index}, {one}, {other}"


def assert_allclose(
    a: Any, b: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True
) -> None:
    """Check that two arrays are equal within these tolerances, as `assert_almost_equal`."""
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_almost_equal_ignore_nan(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> None:
    """Like `assert_almost_equal`, but ignore elements that are NaN in either array.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assert_almost_equal_ignore_nan
    >>> assert_almost_equal_ignore_nan(np.array([1, np.nan]), np.array([1, 2]))
    """
    left, right = _plain(a).copy(), _plain(b).copy()
    unknown = np.isnan(left) | np.isnan(right)
    left[unknown] = right[unknown] = 0
    assert_almost_equal(left, right, rtol, atol, names)


def compare_ndarray_tuple(
    t1: Any, t2: Any, rtol: float | None = None, atol: float | None = None
) -> None:
    """Like `assert_almost_equal`, for all arrays of nested tuples; None matches anything.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import compare_ndarray_tuple
    >>> compare_ndarray_tuple((np.ones(2), None), (np.ones(2), np.zeros(3)))
    """
    if t1 is None or t2 is None:
        return
    if isinstance(t1, Sequence):
        for one, other in zip(t1, t2, strict=True):
            compare_ndarray_tuple(one, other, rtol, atol)
        return
    assert_almost_equal(t1, t2, rtol, atol)


def _plain(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)


def default_context() -> Context:
    """Return the device that tests run on: the current one."""
    return current_context()


def default_dtype() -> type[np.float32]:
    """Return the element type that tests use: float32."""
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
    """Return an array of random numbers between -1 and 1, or between 0 and 1 if sparse.

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
    """Return a sparse array of random numbers; see `rand_ndarray`.

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
    """Return a sparse array filled with one number, by default random numbers.

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
    """Return NumPy arrays of normally distributed numbers; for one shape, the array itself."""
    made = [_drawn("standard_normal", tuple(shape)).astype(np.float32) for shape in shapes]
    return made[0] if len(made) == 1 else made


def random_uniform_arrays(
    *shapes: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: Any = np.float32
) -> list[np.ndarray[Any, Any]]:
    """Return NumPy arrays of uniform numbers from ``low`` to ``high``."""
    return [(low + (high - low) * _drawn("random", tuple(s))).astype(dtype) for s in shapes]


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> Any:
    """Return a random shape of two sizes up to these."""
    return _shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(
    dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False
) -> Any:
    """Return a random shape of three sizes up to these."""
    return _shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> Any:
    """Return a random shape of ``num_dim`` sizes up to ``dim``."""
    return _shape((dim,) * num_dim, allow_zero_size)


def _drawn(kind: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return random.draw(lambda generator: np.asarray(getattr(generator, kind)(shape)))


def _shape(most: tuple[int, ...], allow_zero_size: bool) -> tuple[int, ...]:
    least = 0 if allow_zero_size else 1
    sizes = random.draw(lambda generator: generator.integers(least, np.array(most) + 1))
    return tuple(int(size) for size in sizes)


check_numeric_gradient = refuse("test_utils.check_numeric_gradient")
check_symbolic_backward = refuse("test_utils.check_symbolic_backward")
compare_optimizer = refuse("test_utils.compare_optimizer")
numeric_grad = refuse("test_utils.numeric_grad")


def simple_forward(
    sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any
) -> Any:
    """Compute the outputs of a symbol.

    Parameters
    ----------
    **inputs : array-like
        One for each argument.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> mx.test_utils.simple_forward(mx.sym.square(mx.sym.var("x")), x=np.array([3.0]))
    array([9.]...)
    """
    arrays = {name: array(value) for name, value in inputs.items()}
    outputs = sym.bind(ctx, arrays).forward(is_train)
    found = [output.asnumpy() for output in outputs]
    return found[0] if len(found) == 1 else found


def check_symbolic_forward(
    sym: Symbol,
    location: Sequence[Any] | Mapping[str, Any],
    expected: Sequence[Any] | Mapping[str, Any],
    rtol: float | None = None,
    atol: float | None = None,
    aux_states: Sequence[Any] | Mapping[str, Any] | None = None,
    ctx: Context | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[Any]:
    """Check the outputs of a symbol.

    Parameters
    ----------
    location, aux_states : sequence or mapping of array-like
        Arguments and auxiliary states, in their order or by name.
    expected : sequence or mapping of array-like
        Outputs, in their order or by name.
    rtol, atol, equal_nan
        As of `assert_almost_equal`.
    dtype : dtype-like
        Element type of the arguments that are no arrays of passlib.

    Returns
    -------
    list of NDArray
        The outputs.

    Raises
    ------
    AssertionError
        An output differs.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> (output,) = mx.test_utils.check_symbolic_forward(
    ...     mx.sym.square(mx.sym.var("x")), [np.array([1, 2])], [np.array([1, 4])]
    ... )
    >>> output.asnumpy()
    array([1., 4.], dtype=float32)
    """
    arguments = _named(sym.list_arguments(), location, dtype)
    states = _named(sym.list_auxiliary_states(), aux_states or {}, dtype)
    outputs = sym.bind(ctx, arguments, aux_states=states).forward()
    names = sym.list_outputs()
    wanted = expected if isinstance(expected, Mapping) else dict(zip(names, expected, strict=True))
    for name, output in zip(names, outputs, strict=True):
        assert_almost_equal(
            wanted[name], output, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan
        )
    return outputs


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Whether two symbols have the same operators in the same order, whatever their names.

    Examples
    --------
    >>> import passlib as mx
    >>> first, second = mx.sym.relu(mx.sym.var("x")), mx.sym.relu(mx.sym.var("y"))
    >>> mx.test_utils.same_symbol_structure(first, second)
    True
    """
    first, second = (symbol.get_internals() for symbol in (sym1, sym2))
    ops = [[(e.node.op, len(e.node.inputs)) for e in symbol.entries] for symbol in (first, second)]
    return ops[0] == ops[1]


def assert_exception(
    f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any
) -> None:
    """Check that a call raises an exception of this type.

    Raises
    ------
    AssertionError
        It does not.

    Examples
    --------
    >>> from passlib.test_utils import assert_exception
    >>> assert_exception(int, ValueError, "three")
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f!r} raised no {exception_type.__name__}")


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Set environment variables in a ``with`` block: a name and a value, or a mapping.

    A value of None removes the variable.

    Examples
    --------
    >>> import os
    >>> from passlib.test_utils import environment
    >>> with environment("MXNET_EXAMPLE", "1"):
    ...     os.environ["MXNET_EXAMPLE"]
    '1'
    """
    changes = args[0] if len(args) == 1 else {args[0]: args[1]}
    before = {name: os.environ.get(name) for name in changes}

    def change(values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = str(value)

    change(changes)
    try:
        yield
    finally:
        change(before)


def list_gpus() -> range:
    """Return an empty range: passlib runs on no GPU."""
    return range(0)


def np_reduce(
    dat: np.ndarray[Any, Any], axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]
) -> np.ndarray[Any, Any]:
    """Reduce axes of a NumPy array one by one, the last one first.

    Parameters
    ----------
    axis : int, sequence of int or None
        None is all axes.
    numpy_reduce_func : callable
        Takes an array and ``axis``.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import np_reduce
    >>> np_reduce(np.ones((2, 3)), (0, 1), True, np.sum)
    array([[6.]])
    """
    chosen = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = sorted(a % dat.ndim for a in chosen)
    result = dat
    for each in reversed(axes):
        result = numpy_reduce_func(result, axis=each)
    if keepdims:
        result = result.reshape([1 if i in axes else size for i, size in enumerate(dat.shape)])
    return np.asarray(result)


def _named(names: Sequence[str], given: Any, dtype: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        given = dict(zip(names, given, strict=True))
    return {
        name: value if hasattr(value, "context") else array(value, None, dtype)
        for name, value in given.items()
    }


def check_consistency(
    sym: Symbol | Sequence[Symbol],
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "write",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    rtol: float | Mapping[Any, float] | None = None,
    atol: float | Mapping[Any, float] | None = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, Any]:
    """Check that several executors compute the same outputs from the same inputs.

    Gradients are not compared, since executors do not compute them.

    Parameters
    ----------
    sym : Symbol or sequence of Symbol
        One, or one for each item of ``ctx_list``.
    ctx_list : sequence of mapping
        Arguments of `Symbol.simple_bind`; at least two.
    scale : float
        Standard deviation of random inputs.
    grad_req
        Ignored.
    arg_params, aux_params : mapping of str to array-like, optional
        Arguments and auxiliary states; by default arguments are random and states zeros.
    rtol, atol : float or mapping of dtype to float, optional
        As of `assert_almost_equal`.
    raise_on_err : bool
        Whether a difference is an error; otherwise it is printed.
    ground_truth : mapping of str to array-like, optional
        Outputs by name; by default those of the executor with the widest element type.
    use_uniform : bool
        Draw inputs from a uniform distribution.
    rand_type : dtype-like
        Element type that random inputs are rounded to.

    Returns
    -------
    dict of str to NDArray
        The outputs that the others were compared with.

    Raises
    ------
    AssertionError
        An output differs, symbols have different arguments or outputs, or ``ctx_list`` has fewer
        than two items.

    Examples
    --------
    >>> import passlib as mx
    >>> y = mx.sym.square(mx.sym.var("x"), name="y")
    >>> kinds = [{"x": (2, 3), "type_dict": {"x": kind}} for kind in ("float64", "float16")]
    >>> found = mx.test_utils.check_consistency(y, kinds)
    >>> found["y_output"].dtype
    dtype('float64')
    """
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    assert len(ctx_list) > 1, "ctx_list needs at least two items"
    assert len(symbols) == len(ctx_list), "one symbol for each item of ctx_list is needed"
    names = symbols[0].list_outputs()
    for other in symbols[1:]:
        assert other.list_arguments() == symbols[0].list_arguments(), "different arguments"
        assert other.list_outputs() == names, "different outputs"
    executors = [
        each.simple_bind(**{"grad_req": "null", **context})
        for each, context in zip(symbols, ctx_list, strict=True)
    ]
    given = dict(arg_params or {})
    for name, argument in executors[0].arg_dict.items():
        if name not in given:
            given[name] = _scaled(argument.shape, scale, uniform=use_uniform).astype(rand_type)
    results = []
    for executor in executors:
        for name, argument in executor.arg_dict.items():
            argument[:] = given[name]
        for name, state in executor.aux_dict.items():
            state[:] = 0 if aux_params is None else aux_params[name]
        results.append(executor.forward(is_train=False))
    widths = [np.dtype(outputs[0].dtype).itemsize for outputs in results]
    best = widths.index(max(widths))
    truth = dict(zip(names, results[best], strict=True)) if ground_truth is None else ground_truth
    for number, outputs in enumerate(results):
        if number == best and ground_truth is None:
            continue
        for name, output in zip(names, outputs, strict=True):
            expected = np.asarray(truth[name]).astype(output.dtype)
            dtype = np.dtype(output.dtype)
            try:
                assert_almost_equal(
                    output,
                    expected,
                    _bound(rtol, dtype),
                    _bound(atol, dtype),
                    (f"{name}_{number}", name),
                    equal_nan,
                )
            except AssertionError:
                if raise_on_err:
                    raise
                traceback.print_exc()
    return dict(truth)


def _bound(given: float | Mapping[Any, float] | None, dtype: np.dtype[Any]) -> float | None:
    return given.get(dtype) if isinstance(given, Mapping) else given


def _scaled(shape: tuple[int, ...], scale: float, *, uniform: bool) -> np.ndarray[Any, Any]:
    def draw(generator: np.random.Generator) -> np.ndarray[Any, Any]:
        if uniform:
            return generator.uniform(-0.92 * scale, 0.92 * scale, shape)
        return generator.normal(0, scale, shape)

    return random.draw(draw)


_F = TypeVar("_F", bound=Callable[..., Any])


def download(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: passlib downloads nothing."""
    raise UnsupportedError(
        "test_utils.download: passlib downloads nothing; fetch the files with another program and "
        "load them from a path"
    )


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """Discard the standard error of the process in a ``with`` block."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def retry(n: int) -> Callable[[_F], _F]:
    """Return a decorator that retries a function after an AssertionError, up to ``n`` calls.

    Raises
    ------
    ValueError
        ``n`` is not positive.

    Examples
    --------
    >>> import itertools
    >>> from passlib.test_utils import retry
    >>> attempts = itertools.count(1)
    >>> @retry(3)
    ... def test_that_succeeds_in_the_end() -> None:
    ...     assert next(attempts) == 3
    >>> test_that_succeeds_in_the_end()
    """
    if n < 1:
        raise ValueError(f"retry({n}): the number of attempts must be positive")

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def attempts(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                with contextlib.suppress(AssertionError):
                    return function(*args, **kwargs)
            return function(*args, **kwargs)

        return attempts  # type: ignore[return-value]

    return decorate


def is_cd_run() -> bool:
    """Whether the environment says that MXNet's continuous delivery runs."""
    return os.environ.get("CD_JOB", "0") == "1"


__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "checkShapes",
    "check_consistency",
    "check_numeric_gradient",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "compare_ndarray_tuple",
    "compare_optimizer",
    "create_sparse_array",
    "default_atols",
    "default_context",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "discard_stderr",
    "download",
    "effective_dtype",
    "environment",
    "get_atol",
    "get_etol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "is_cd_run",
    "list_gpus",
    "locationError",
    "np_reduce",
    "numeric_grad",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "rand_sparse_ndarray",
    "random_arrays",
    "random_uniform_arrays",
    "retry",
    "same",
    "same_array",
    "same_symbol_structure",
    "set_default_context",
    "shuffle_csr_column_indices",
    "simple_forward",
    "use_np",
]
