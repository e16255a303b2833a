"""Variables: the inputs and parameters of a graph, as they are made one by one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from passlib import attribute, dtypes
from passlib.dialects.mxnet.hidden import hidden_on_variable
from passlib.node import VARIABLE, Entry, Node

if TYPE_CHECKING:
    from passlib.symbol import Symbol

__all__ = ["Variable", "is_dunder", "symbol_class", "var"]

_STORAGE_TYPES = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}


def symbol_class() -> type[Symbol]:
    """Give the class Symbol, whose own operators come from here: hence the late import."""
    from passlib.symbol import Symbol

    return Symbol


def is_dunder(key: str) -> bool:
    """Whether a key is free for anyone's use: ``__mine__``."""
    return key.startswith("__") and key.endswith("__")


class Variable(Node):
    """A variable made by composition; it remembers how often operators write to it.

    NNVM counts writes on the variable, so a second BatchNorm on one moving mean uses version 2.
    The first operator that uses it as an auxiliary state also tells how to initialise it.
    """

    __slots__ = ("mutations",)

    def __init__(self, name: str, attrs: Mapping[str, str]) -> None:
        super().__init__(VARIABLE, name, attrs, num_outputs=1)
        self.mutations = 0

    def complete(self, key: str, value: str) -> None:
        """Set an attribute that the variable does not have yet."""
        if key not in self.attrs:
            self.attrs = MappingProxyType({**self.attrs, key: value})


def var(
    name: str,
    attr: Mapping[str, str] | None = None,
    shape: object = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: object = None,
    init: Any = None,
    stype: str | None = None,
    **kwargs: object,
) -> Symbol:
    """Create a variable: an input or a parameter.

    Parameters
    ----------
    name : str
    attr : mapping of str to str, optional
        Further attributes; they win over those of the `AttrScope`.
    shape : tuple of int, optional
        Stored as ``__shape__``; 0 or -1 stands for an unknown extent.
    lr_mult, wd_mult : float, optional
        Factors on learning rate and weight decay.
    dtype : str or numpy.dtype, optional
        Stored as ``__dtype__``, MXNet's number of the type.
    init : str or object with a method ``dumps``, optional
        Initialiser, stored as ``__init__``.
    stype : {"default", "row_sparse", "csr"}, optional
    **kwargs
        Attributes whose names begin and end with two underscores.

    Raises
    ------
    TypeError
        The name is no string.
    ValueError
        A keyword without the underscores, or an unknown storage type.
    """
    symbol_type = symbol_class()
    if not isinstance(name, str):
        message = f"a variable's name is a string, not {type(name).__name__}"
        raise TypeError(message)
    given: dict[str, str] = dict(attribute.current().get(attr))
    if shape is not None:
        given["__shape__"] = attribute.text(shape)
    if lr_mult is not None:
        given["__lr_mult__"] = attribute.text(lr_mult)
    if wd_mult is not None:
        given["__wd_mult__"] = attribute.text(wd_mult)
    if dtype is not None:
        given["__dtype__"] = str(dtypes.code(dtypes.as_dtype(dtype)))
    if init is not None:
        given["__init__"] = init if isinstance(init, str) else str(init.dumps())
    if stype is not None:
        if stype not in _STORAGE_TYPES:
            message = f"variable {name!r}: stype {stype!r} is none of {', '.join(_STORAGE_TYPES)}"
            raise ValueError(message)
        given["__storage_type__"] = str(_STORAGE_TYPES[stype])
    for key, value in kwargs.items():
        if not is_dunder(key):
            message = (
                f"variable {name!r}: unknown argument {key!r}; attributes of your own begin and "
                f"end with two underscores, e.g. __{key}__"
            )
            raise ValueError(message)
        given[key] = attribute.text(value)
    attrs: dict[str, str] = {}
    for key, value in given.items():
        attrs[hidden_on_variable(key)] = attribute.text(value)
    return symbol_type((Entry(Variable(name, attrs)),))
