"""What ``mxnet.base`` has for Python's sake: types of numbers, classes of errors, decorators."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.errors import PasslibError, UnsupportedError

long = int
basestring = str
integer_types: Final = (int, np.int32, np.int64)
numeric_types: Final = (float, int, np.generic)
string_types: Final = (str,)

error_types: dict[str, type[Exception]] = {}
"""The classes that `register_error` registered, by name."""


class _NullType:
    """The type of an argument that is not given.

    Examples
    --------
    >>> from passlib.base import _Null
    >>> _Null
    _Null
    """

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
    """Return the folder in which MXNet keeps data unless told otherwise: ``~/.mxnet``.

    Examples
    --------
    >>> from passlib.base import data_dir_default
    >>> data_dir_default().endswith(".mxnet")
    True
    """
    return str(Path.home() / ".mxnet")


def data_dir() -> str:
    """Return the folder in which MXNet keeps data: ``$MXNET_HOME`` or the default.

    Examples
    --------
    >>> from passlib.base import data_dir
    >>> from passlib.test_utils import environment
    >>> with environment("MXNET_HOME", "/data/mxnet"):
    ...     data_dir()
    '/data/mxnet'
    """
    return os.environ.get("MXNET_HOME") or data_dir_default()


def build_param_doc(
    arg_names: Sequence[str],
    arg_types: Sequence[str],
    arg_descs: Sequence[str],
    remove_dup: bool = True,
) -> str:
    """Return the section of a docstring that describes parameters.

    Examples
    --------
    >>> from passlib.base import build_param_doc
    >>> build_param_doc(["data"], ["Symbol"], ["The input."]).splitlines()[2:]
    ['data : Symbol', '    The input.']
    """
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
    """Do nothing: docstrings have no file and line here.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.base.add_fileline_to_docstring(mx.nd)
    """
    del module, incursive
