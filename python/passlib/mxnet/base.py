"""MXNet's ``mxnet.base``: its error, the types of its C interface, and small helpers.

There is no C library: a function of ``_LIB`` raises UnsupportedError when it is called.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from passlib.errors import PasslibError, UnsupportedError
from passlib.errors import PasslibError as MXNetError
from passlib.mxnet.symbol.symbol import NotImplementedForSymbol

mx_int = ctypes.c_int
mx_uint = ctypes.c_uint
mx_int64 = ctypes.c_int64
mx_float = ctypes.c_float
mx_float_p = ctypes.POINTER(ctypes.c_float)
mx_real_t = np.float32

CachedOpHandle = CudaKernelHandle = CudaModuleHandle = DLPackHandle = DataIterCreatorHandle = (
    ctypes.c_void_p
)
DataIterHandle = ExecutorHandle = FunctionHandle = KVStoreHandle = NDArrayHandle = ctypes.c_void_p
OpHandle = ProfileHandle = RecordIOHandle = RtcHandle = SymbolHandle = ctypes.c_void_p


class MXCallbackList(ctypes.Structure):
    """A list of callbacks, as MXNet's custom operators in Python pass it."""

    _fields_ = (
        ("num_callbacks", ctypes.c_int),
        ("callbacks", ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_int))),
        ("contexts", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Library:
    """A stand-in for MXNet's C library, whose functions raise UnsupportedError."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if not name.startswith(("MX", "NN")):
            raise AttributeError(f"MXNet's C interface has no {name!r}")

        def refused(*args: Any) -> NoReturn:
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
    """
    if ret != 0:
        raise PasslibError(get_last_ffi_error())


def get_last_ffi_error() -> str:
    """Return a message that passlib has no C interface of MXNet."""
    return "a call of MXNet's C interface failed, which passlib does not have"


def c_str(string: str) -> ctypes.c_char_p:
    """Return a string in UTF-8 for C."""
    return ctypes.c_char_p(string.encode("utf-8"))


def py_str(x: bytes) -> str:
    """Return a string of C in UTF-8."""
    return x.decode("utf-8")


def c_str_array(strings: Iterable[str]) -> Any:
    """Return strings in UTF-8 as an array of C."""
    texts = [string.encode("utf-8") for string in strings]
    return (ctypes.c_char_p * len(texts))(*texts)


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """Return values as an array of a type of C."""
    return (ctype * len(values))(*values)


def c_array_buf(ctype: Any, buf: Any) -> Any:
    """Return the memory of an ``array.array`` as an array of a type of C, without a copy."""
    return (ctype * len(buf)).from_buffer(buf)


def c_handle_array(objs: Iterable[Any]) -> Any:
    """Return the handles of objects as an array of C."""
    handles = [ctypes.c_void_p(obj.handle) for obj in objs]
    return (ctypes.c_void_p * len(handles))(*(handle.value for handle in handles))


def ctypes2buffer(cptr: Any, length: int) -> bytearray:
    """Copy bytes from a pointer to char.

    Raises
    ------
    TypeError
        The pointer is another one.
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


long = int
basestring = str
integer_types: Final = (int, np.int32, np.int64)
numeric_types: Final = (float, int, np.generic)
string_types: Final = (str,)

error_types: dict[str, type[Exception]] = {}
"""The classes that `register_error` registered, by name."""


class _NullType:
    """The type of an argument that is not given."""

    def __repr__(self) -> str:
        return "_Null"


_Null: Final = _NullType()


class NotSupportedForSparseNDArray(UnsupportedError):  # noqa: N818, MXNet's name
    """A method that dense arrays have and sparse ones do not.

    Examples
    --------
    >>> import passlib as mx
    >>> str(mx.base.NotSupportedForSparseNDArray(mx.nd.NDArray.reshape, None))
    'reshape is not for sparse arrays '
    """

    def __init__(self, function: Any, alias: str | None, *args: Any) -> None:
        name = getattr(function, "__name__", str(function))
        super().__init__(f"{name}{_also(alias)} is not for sparse arrays {args or ''}")


def _also(alias: str | None) -> str:
    return f" (operator {alias})" if alias else ""


def register_error(func_name: Any = None, cls: type[Exception] | None = None) -> Any:
    """Register a class of errors by its name; as a decorator or a function.

    Examples
    --------
    >>> from passlib.base import c2pyerror, register_error
    >>> @register_error
    ... class ShapeMismatch(ValueError):
    ...     pass
    >>> c2pyerror("ShapeMismatch: (2,) and (3,)")[1].__name__
    'ShapeMismatch'
    """
    if isinstance(func_name, type):
        error_types[func_name.__name__] = func_name
        return func_name

    def register(found: type[Exception]) -> type[Exception]:
        error_types[func_name or found.__name__] = found
        return found

    return register if cls is None else register(cls)


def c2pyerror(err_msg: str) -> tuple[str, type[Exception]]:
    """Return a message and the class of the error that its beginning names.

    Examples
    --------
    >>> from passlib.base import c2pyerror, register_error
    >>> _ = register_error("ValueError", ValueError)
    >>> c2pyerror("ValueError: too large")
    ('ValueError: too large', <class 'ValueError'>)
    """
    name, found, _ = err_msg.partition(":")
    known = error_types.get(name.strip()) if found else None
    return err_msg, known or PasslibError


class classproperty:  # noqa: N801, MXNet's name
    """A property of a class, computed at each access.

    Examples
    --------
    >>> from passlib.base import classproperty
    >>> class Layer:
    ...     @classproperty
    ...     def kind(cls):
    ...         return cls.__name__.lower()
    >>> Layer.kind
    'layer'
    """

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.fget = func

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.fget(owner)


def with_metaclass(meta: type, *bases: type) -> type:
    """Return a class to derive from, whose derived classes have this metaclass.

    Examples
    --------
    >>> import abc
    >>> from passlib.base import with_metaclass
    >>> class Layer(with_metaclass(abc.ABCMeta, object)):
    ...     pass
    >>> type(Layer).__name__
    'ABCMeta'
    """
    made: type = meta("_Base", bases, {})
    return made


def data_dir_default() -> str:
    """Return MXNet's default data folder: ``~/.mxnet``."""
    return str(Path.home() / ".mxnet")


def data_dir() -> str:
    """Return MXNet's data folder: ``$MXNET_HOME`` or the default."""
    return os.environ.get("MXNET_HOME") or data_dir_default()


def build_param_doc(
    arg_names: Sequence[str],
    arg_types: Sequence[str],
    arg_descs: Sequence[str],
    remove_dup: bool = True,
) -> str:
    """Return the section of a docstring that describes parameters."""
    lines = ["Parameters", "----------"]
    seen: set[str] = set()
    for name, kind, text in zip(arg_names, arg_types, arg_descs, strict=True):
        if name in seen and remove_dup:
            continue
        seen.add(name)
        lines.append(f"{name} : {kind}")
        lines += [f"    {text}"] if text else []
    return "\n".join([*lines, ""])


def add_fileline_to_docstring(module: Any, incursive: bool = True) -> None:
    """Do nothing: docstrings have no file and line here."""


__all__ = [
    "_LIB",
    "CachedOpHandle",
    "CudaKernelHandle",
    "CudaModuleHandle",
    "DLPackHandle",
    "DataIterCreatorHandle",
    "DataIterHandle",
    "ExecutorHandle",
    "FunctionHandle",
    "KVStoreHandle",
    "MXCallbackList",
    "MXNetError",
    "NDArrayHandle",
    "NotImplementedForSymbol",
    "NotSupportedForSparseNDArray",
    "OpHandle",
    "ProfileHandle",
    "RecordIOHandle",
    "RtcHandle",
    "SymbolHandle",
    "_Null",
    "_NullType",
    "add_fileline_to_docstring",
    "basestring",
    "build_param_doc",
    "c2pyerror",
    "c_array",
    "c_array_buf",
    "c_handle_array",
    "c_str",
    "c_str_array",
    "check_call",
    "classproperty",
    "ctypes2buffer",
    "ctypes2numpy_shared",
    "data_dir",
    "data_dir_default",
    "error_types",
    "get_last_ffi_error",
    "integer_types",
    "long",
    "mx_float",
    "mx_float_p",
    "mx_int",
    "mx_int64",
    "mx_real_t",
    "mx_uint",
    "numeric_types",
    "py_str",
    "register_error",
    "string_types",
    "with_metaclass",
]
