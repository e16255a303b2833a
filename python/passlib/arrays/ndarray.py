"""Dense arrays: NumPy arrays with the methods that MXNet scripts call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Number
from typing import Any, Final, Generic, TypeVar, cast

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.arrays.context import Context, cpu, require_host
from passlib.arrays.shape_mode import in_shape_mode
from passlib.errors import UnsupportedError

_A = TypeVar("_A")


class Placed(Generic[_A]):
    """The methods that concern an array's device."""

    _context: Context
    shape: Any

    @property
    def context(self) -> Context:
        """The device that the array is labelled with."""
        return self._context

    ctx = context

    def as_in_context(self, context: Context) -> _A:
        """Return the array on a device: itself if it is there already, else a copy.

        Raises `UnsupportedError` if the device is a GPU.
        """
        return cast("_A", self) if context == self._context else self._copy_to(context)

    as_in_ctx = as_in_context

    def copyto(self, other: Any) -> Any:
        """Copy into another array, dense or sparse, or into a new one on a device; return it.

        Raises `ValueError` if the shapes differ; `UnsupportedError` if the device is a GPU.
        """
        if isinstance(other, Context):
            return self._copy_to(other)
        if other.shape != self.shape:
            raise ValueError(f"an array of shape {self.shape} does not fit into {other.shape}")
        other.replace(self)
        return other

    def _copy_to(self, context: Context) -> _A:
        raise NotImplementedError

    def wait_to_read(self) -> None:
        """Do nothing: passlib computes synchronously."""


_Kernel = Callable[[Any, Any], Any]

_INT64: Final = np.dtype(np.int64)
_COMPARISONS: Final = frozenset(
    (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
)


def _divide(left: Any, right: Any) -> Any:
    if left.dtype.kind not in "iu" or right.dtype.kind not in "iu":
        return np.divide(left, right)
    if not np.all(right):
        raise UnsupportedError(
            "integers are divided by 0, which terminates the process in MXNet; divide "
            "array.astype('float32') for infinities"
        )
    quotient = np.floor_divide(left, right)
    # C rounds towards zero.
    inexact = (quotient < 0) & (quotient * right != left)
    return quotient + inexact.astype(quotient.dtype)


def _remainder(left: Any, right: Any) -> Any:
    zero = right == 0
    return np.where(zero, left.dtype.type(0), np.mod(left, np.where(zero, 1, right)))


def _power(left: Any, right: Any) -> Any:
    if left.dtype.kind not in "iu" or right.dtype.kind not in "iu":
        return np.power(left, right)
    # Through real numbers, as in MXNet: a result out of range becomes the smallest number of the
    # processor's conversion, of which small types keep the lowest bits.
    exact = np.power(left.astype(np.float64), right)
    limit = 2.0 ** (63 if left.dtype.itemsize == 8 else 31)
    return np.where(np.abs(exact) < limit, exact, -limit).astype(np.int64).astype(left.dtype)


def _truths(kernel: _Kernel, logical: _Kernel) -> _Kernel:
    """Combine bits of integers, and the truth of real numbers, so that comparisons combine."""

    def combined(left: Any, right: Any) -> Any:
        if left.dtype.kind in "iub" and right.dtype.kind in "iub":
            return kernel(left, right)
        return logical(left, right).astype(left.dtype)

    return combined


KERNELS: Final[dict[str, _Kernel]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": _divide,
    "mod": _remainder,
    "pow": _power,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": _truths(np.bitwise_and, np.logical_and),
    "or": _truths(np.bitwise_or, np.logical_or),
    "xor": _truths(np.bitwise_xor, np.logical_xor),
}
"""The kernel of each operator, by the name of Python's method."""

_REFLECTED: Final = ("add", "sub", "mul", "truediv", "mod", "pow", "and", "or", "xor")
_IN_PLACE: Final = ("add", "sub", "mul", "truediv", "mod")


def combine(kernel: _Kernel, left: Any, right: Any) -> Any:
    """Combine two operands element by element with a function of two arrays.

    At least one is an array. Arrays of different element types are combined in NumPy's common type.
    The result has the element type of the arrays; int64 for an array of bool and a number.
    """
    if not isinstance(left, np.ndarray):
        right = _number_side(right)
        left = _as_element(left, right.dtype)
    elif not isinstance(right, np.ndarray):
        left = _number_side(left)
        right = _as_element(right, left.dtype)
    elif left.dtype != right.dtype:
        common = np.result_type(left.dtype, right.dtype)
        left, right = left.astype(common), right.astype(common)
    with np.errstate(all="ignore"):
        result = kernel(left, right)
    return result.astype(left.dtype) if kernel in _COMPARISONS else result


def _number_side(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(_INT64) if array.dtype == np.bool_ else array


def _as_element(number: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert a number as C does: without its fraction, integers wrap."""
    value = np.asarray(number)
    if dtype.kind not in "iu":
        return value.astype(dtype)
    with np.errstate(invalid="ignore"):
        whole = value if value.dtype.kind in "iu" else np.trunc(value).astype(np.int64)
    return whole.astype(dtype)


def elements(array: Any) -> np.ndarray[Any, Any]:
    """Return an array as a plain one on the same memory, to be read now.

    Raises `FormatError` if it lies in a file that was changed after it was mapped.
    """
    _core.check_files((array,))
    return np.asarray(array)


class Arithmetic:
    """Python's operators; the other operand is an array, a number, a list or a tuple."""

    def __neg__(self: Any) -> Any:
        return self.as_numpys(combine(np.multiply, elements(self), -1))

    def __abs__(self: Any) -> Any:
        return self.as_numpys(np.abs(elements(self)))

    def __ipow__(self: Any, other: Any) -> Any:
        return self**other  # as in MXNet, a new array

    def as_numpys(self: Any, result: np.ndarray[Any, Any]) -> Any:
        """Return a plain result as an array on the device of this one."""
        raise NotImplementedError


def _operand(other: Any) -> Any:
    """Return the other operand as a plain array or a number; None if it is neither."""
    if isinstance(other, np.ndarray):
        return elements(other)
    if isinstance(other, (Number, np.generic)):
        return other
    if isinstance(other, (list, tuple)):
        return np.asarray(other)
    return None


def _forward(kernel: _Kernel) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        return self.as_numpys(combine(kernel, elements(self), operand))

    return method


def _backward(kernel: _Kernel) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        return self.as_numpys(combine(kernel, operand, elements(self)))

    return method


def _in_place(kernel: _Kernel) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        np.copyto(np.asarray(self), combine(kernel, elements(self), operand), casting="unsafe")
        return self

    return method


for _name, _kernel in KERNELS.items():
    setattr(Arithmetic, f"__{_name}__", _forward(_kernel))
for _name in _REFLECTED:
    setattr(Arithmetic, f"__r{_name}__", _backward(KERNELS[_name]))
for _name in _IN_PLACE:
    setattr(Arithmetic, f"__i{_name}__", _in_place(KERNELS[_name]))


_HOST: Final = cpu()
_OPERANDS: Final = (np.ndarray, Number, list, tuple)
_BITWISE: Final = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)

_compress: list[Callable[[np.ndarray[Any, Any], str], Any]] = []


def register_compression(function: Callable[[np.ndarray[Any, Any], str], Any]) -> None:
    """Set the function that `NDArray.tostype` calls to make sparse arrays.

    Their module imports this one.
    """
    _compress[:] = [function]


class NDArray(Arithmetic, Placed["NDArray"], np.ndarray[Any, np.dtype[Any]]):
    """An array with MXNet's methods, in the memory of a NumPy array.

    Methods, Python's operators and indexing have the meaning that MXNet gives them: results of
    one element have the shape ``(1,)``, comparisons give 0 and 1 in the type of the array.
    Methods that MXNet does not have, and the functions of NumPy (``np.sort(x)``), have NumPy's
    meaning; their results are arrays of this class.

    Notes
    -----
    Made by the functions of `passlib.nd`, or from any array by ``array.view(NDArray)``. The
    module `passlib.nd.methods` adds the methods that apply an operator.

    Examples
    --------
    >>> import passlib as mx
    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> x.sum(axis=1).asnumpy(), (x > 2).asnumpy()
    (array([3., 7.], dtype=float32), array([[0., 0.],
           [1., 1.]], dtype=float32))
    """

    # Higher than ndarray's, for libraries that neither of the protocols below concerns.
    __array_priority__ = 1.0

    _context: Context

    def __array_finalize__(self, source: Any) -> None:
        self._context = getattr(source, "_context", _HOST)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if not all(isinstance(value, _OPERANDS) or np.isscalar(value) for value in inputs):
            return NotImplemented
        results = kwargs.get("out")
        if results is not None:
            kwargs["out"] = tuple(_plain(result) for result in results)
        # MXNet's numbers have no type of their own, unlike NumPy's.
        given = [
            value.item() if isinstance(value, (np.floating, np.integer)) else _plain(value)
            for value in inputs
        ]
        if ufunc in _BITWISE:
            # Comparisons are numbers here, and functions such as those of np.testing expect bool.
            truth = results is not None and kwargs["out"][0].dtype == bool
            given = [np.not_equal(each, 0) if truth or _is_real(each) else each for each in given]
        computed = getattr(ufunc, method)(*given, **kwargs)
        if results is not None:
            return results[0] if len(results) == 1 else results
        return self._wrapped(computed)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # NumPy's functions call methods of arrays by name, and here these are MXNet's.
        del types
        given = {key: _plain(value) for key, value in kwargs.items()}
        return self._wrapped(func(*(_plain(value) for value in args), **given))

    def as_numpys(self, result: np.ndarray[Any, Any]) -> NDArray:
        """Return an array of NumPy as one of this class, on the same memory and this device."""
        wrapped = np.asarray(result).view(NDArray)
        wrapped._context = self._context
        return wrapped

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            wrapped = [self._wrapped(each) for each in result]
            fields = hasattr(result, "_fields")
            return type(result)(*wrapped) if fields else type(result)(wrapped)
        if isinstance(result, (np.ndarray, np.generic)):
            return self.as_numpys(np.asarray(result))
        return result

    def __getitem__(self, key: Any) -> Any:
        key = _with_whole_numbers(self._all_of_none(key))
        plain = elements(self)
        result = plain[_as_key(key)]
        if not isinstance(result, np.ndarray):
            result = plain[(*key, ...) if isinstance(key, tuple) else (key, ...)]
        return self.as_numpys(in_shape_mode(result))

    def __setitem__(self, key: Any, value: Any) -> None:
        given = value.asnumpy() if hasattr(value, "asnumpy") else value
        if isinstance(given, np.ndarray) and given.size == 1:
            given = given.reshape(())  # a single element of the array may be meant
        np.asarray(self)[_as_key(self._all_of_none(key))] = given

    def _all_of_none(self, key: Any) -> Any:
        """Return the key, where ``[:]`` of an array of shape () means its element, as in MXNet."""
        return () if self.ndim == 0 and isinstance(key, slice) and key == slice(None) else key

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("an array of shape () has no elements to iterate over")
        return (self[position] for position in range(len(self)))

    __hash__ = object.__hash__  # type: ignore[assignment]  # NumPy's arrays have none

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(f"the truth value of an array of shape {self.shape} is ambiguous")
        return bool(elements(self).any())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __format__(self, spec: str) -> str:
        return format(self.asscalar(), spec) if spec else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        _core.check_files((self,))
        rebuild, arguments, state = cast("tuple[Any, ...]", super().__reduce__())
        return rebuild, arguments, (state, self._context)

    def __setstate__(self, state: Any) -> None:
        own, self._context = state
        super().__setstate__(own)

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        return f"\n{elements(self)}\n<{type(self).__name__} {shape} @{self._context}>"

    __str__ = __repr__

    @property
    def stype(self) -> str:
        """MXNet's storage type."""
        return "default"

    def asnumpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Copy into a plain NumPy array."""
        return np.array(elements(self))

    def asscalar(self) -> Any:
        """Return the only element.

        Raises
        ------
        ValueError
            There is not exactly one element.
        """
        if self.size != 1:
            raise ValueError(f"an array of shape {self.shape} is not a scalar")
        return elements(self).reshape(-1)[0]

    def copy(self, order: Any = "C") -> NDArray:
        """Copy into a new array on the same device.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}
            As in NumPy.
        """
        return self.as_numpys(elements(self).copy(order))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> NDArray:
        """Do what `numpy.ndarray.astype` does, ``"bfloat16"`` included.

        Parameters
        ----------
        dtype : dtype
            None means float32, as in MXNet.
        *args, **kwargs
            As in NumPy.
        """
        plain = elements(self)
        kind = np.float32 if dtype is None else dtype
        converted = plain.astype(dtypes.as_dtype(kind), *args, **kwargs)
        return self if converted is plain else self.as_numpys(converted)

    def _copy_to(self, context: Context) -> NDArray:
        target = require_host(context, "an array")
        result: NDArray = self.copy()
        result._context = target
        return result

    def tostype(self, stype: str) -> Any:
        """Return this array in another storage type.

        Raises
        ------
        ValueError
            The storage type is unknown, or does not support this shape.
        """
        if stype == "default":
            return self
        return _compress[0](self, stype)

    def replace(self, source: Any) -> None:
        """Take over the elements of an array of the same shape, in this array's element type."""
        np.copyto(self, elements(source), casting="unsafe")

    def wait_to_write(self) -> None:
        """Do nothing: passlib computes synchronously."""


def _is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _plain(value: Any) -> Any:
    """Return a value without this class, in lists and tuples too."""
    if isinstance(value, NDArray):
        return elements(value)
    if type(value) in (list, tuple):
        return type(value)(_plain(each) for each in value)
    return value


def _with_whole_numbers(key: Any) -> Any:
    """Return a key whose truth values, arrays excepted, are 0 and 1, as in MXNet."""
    if isinstance(key, tuple):
        return tuple(_with_whole_numbers(part) for part in key)
    if isinstance(key, bool):
        return int(key)
    if isinstance(key, list) and key and all(isinstance(part, bool) for part in key):
        return [int(part) for part in key]
    return key


def _as_key(key: Any) -> Any:
    """Return a key as NumPy takes it: as in MXNet, real numbers are indices without fractions."""
    if isinstance(key, tuple):
        return tuple(_part_of_key(part) for part in key)
    return _part_of_key(key)


def _part_of_key(part: Any) -> Any:
    if not isinstance(part, np.ndarray):
        return part
    plain = np.asarray(part)
    return plain if plain.dtype.kind in "iub" else plain.astype(np.int64)
