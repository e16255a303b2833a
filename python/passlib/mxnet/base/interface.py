"""The names of MXNet's C interface as scripts import them: types, conversions, refused calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from passlib.errors import PasslibError, UnsupportedError

mx_int = ctypes.c_int
mx_uint = ctypes.c_uint
mx_int64 = ctypes.c_int64
mx_float = ctypes.c_float
mx_float_p = ctypes.POINTER(ctypes.c_float)
mx_real_t = np.float32

CachedOpHandle = ctypes.c_void_p
CudaKernelHandle = ctypes.c_void_p
CudaModuleHandle = ctypes.c_void_p
DLPackHandle = ctypes.c_void_p
DataIterCreatorHandle = ctypes.c_void_p
DataIterHandle = ctypes.c_void_p
ExecutorHandle = ctypes.c_void_p
FunctionHandle = ctypes.c_void_p
KVStoreHandle = ctypes.c_void_p
NDArrayHandle = ctypes.c_void_p
OpHandle = ctypes.c_void_p
ProfileHandle = ctypes.c_void_p
RecordIOHandle = ctypes.c_void_p
RtcHandle = ctypes.c_void_p
SymbolHandle = ctypes.c_void_p


class MXCallbackList(ctypes.Structure):
    """A list of callbacks, as MXNet's custom operators in Python pass it.

    Examples
    --------
    >>> from passlib.base import MXCallbackList
    >>> MXCallbackList().num_callbacks
    0
    """

    _fields_ = (
        ("num_callbacks", ctypes.c_int),
        ("callbacks", ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_int))),
        ("contexts", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Library:
    """Stands for MXNet's C library: its functions exist, and say that there is none."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if not name.startswith(("MX", "NN")):
            raise AttributeError(f"MXNet's C interface has no {name!r}")

        def refused(*args: Any) -> NoReturn:
            del args
            raise UnsupportedError(
                f"{name}: passlib is not built on MXNet's C library; use the functions of passlib, "
                "such as passlib.library.load, Symbol.optimize_for and Symbol.tojson"
            )

        refused.__name__ = refused.__qualname__ = name
        return refused

    def __repr__(self) -> str:
        return "<no C library of MXNet>"


_LIB: Final = _Library()


def check_call(ret: int) -> None:
    """Raise the error of a call of the C interface that did not return 0.

    Raises
    ------
    PasslibError
        ``ret`` is not 0.

    Examples
    --------
    >>> from passlib.base import check_call
    >>> check_call(0)
    """
    if ret != 0:
        raise PasslibError(get_last_ffi_error())


def get_last_ffi_error() -> str:
    """Return the message of the last call that failed: that there are no such calls.

    Examples
    --------
    >>> from passlib.base import get_last_ffi_error
    >>> isinstance(get_last_ffi_error(), str)
    True
    """
    return "a call of MXNet's C interface failed, which passlib does not have"


def c_str(string: str) -> ctypes.c_char_p:
    """Return a string in UTF-8 for C.

    Examples
    --------
    >>> from passlib.base import c_str
    >>> c_str("relu").value
    b'relu'
    """
    return ctypes.c_char_p(string.encode("utf-8"))


def py_str(x: bytes) -> str:
    """Return a string of C in UTF-8.

    Examples
    --------
    >>> from passlib.base import py_str
    >>> py_str(b"relu")
    'relu'
    """
    return x.decode("utf-8")


def c_str_array(strings: Iterable[str]) -> Any:
    """Return strings in UTF-8 as an array of C.

    Examples
    --------
    >>> from passlib.base import c_str_array
    >>> list(c_str_array(["a", "b"]))
    [b'a', b'b']
    """
    texts = [string.encode("utf-8") for string in strings]
    return (ctypes.c_char_p * len(texts))(*texts)


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """Return values as an array of a type of C.

    Examples
    --------
    >>> from passlib.base import c_array, mx_uint
    >>> list(c_array(mx_uint, [1, 2]))
    [1, 2]
    """
    return (ctype * len(values))(*values)


def c_array_buf(ctype: Any, buf: Any) -> Any:
    """Return the memory of an ``array.array`` as an array of a type of C, without a copy.

    Examples
    --------
    >>> import array
    >>> from passlib.base import c_array_buf, mx_int
    >>> list(c_array_buf(mx_int, array.array("i", [1, 2])))
    [1, 2]
    """
    return (ctype * len(buf)).from_buffer(buf)


def c_handle_array(objs: Iterable[Any]) -> Any:
    """Return the handles of objects as an array of C.

    Examples
    --------
    >>> from passlib.base import c_handle_array
    >>> len(c_handle_array([]))
    0
    """
    handles = [ctypes.c_void_p(obj.handle) for obj in objs]
    return (ctypes.c_void_p * len(handles))(*(handle.value for handle in handles))


def ctypes2buffer(cptr: Any, length: int) -> bytearray:
    """Copy bytes from a pointer to char.

    Raises
    ------
    TypeError
        The pointer is another one.

    Examples
    --------
    >>> import ctypes
    >>> from passlib.base import ctypes2buffer
    >>> ctypes2buffer(ctypes.cast(b"abc", ctypes.POINTER(ctypes.c_char)), 2)
    bytearray(b'ab')
    """
    if not isinstance(cptr, ctypes.POINTER(ctypes.c_char)):
        raise TypeError("expected a pointer to char")
    return bytearray(ctypes.string_at(cptr, length))


def ctypes2numpy_shared(cptr: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return an array on the memory of a pointer to float.

    Raises
    ------
    RuntimeError
        The pointer is another one.

    Examples
    --------
    >>> import ctypes
    >>> from passlib.base import ctypes2numpy_shared, mx_float
    >>> memory = (mx_float * 2)(1, 2)
    >>> ctypes2numpy_shared(ctypes.cast(memory, ctypes.POINTER(mx_float)), (2, 1))
    array([[1.],
           [2.]], dtype=float32)
    """
    if not isinstance(cptr, mx_float_p):
        raise RuntimeError("expected a pointer to float")
    return np.ctypeslib.as_array(cptr, tuple(shape))
