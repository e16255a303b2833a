"""Variables and groups, as users make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from passlib.arrays import dtypes
from passlib.graph import scope
from passlib.graph.node import Entry
from passlib.model.graph import ModelGraph
from passlib.model.graph import group as parts_of_one_model
from passlib.mxnet.schema.hidden import hidden_on_variable, is_dunder
from passlib.mxnet.symbol.composition.variable import Variable
from passlib.mxnet.symbol.symbol import Symbol

_STORAGE_TYPES = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}


def group(symbols: Iterable[ModelGraph]) -> Any:
    """Put the outputs of several symbols into one, in order.

    Raises
    ------
    TypeError
        There are no symbols, or something else is among them.
    UnsupportedError
        A symbol is of another dialect, and the others are not parts of the same model.

    Examples
    --------
    >>> import passlib as mx
    >>> x = mx.sym.var("x")
    >>> mx.sym.Group([mx.sym.exp(x, name="a"), mx.sym.sqrt(x, name="b")]).list_outputs()
    ['a_output', 'b_output']
    """
    members = list(symbols) if isinstance(symbols, Iterable) else []
    if not members or not all(isinstance(member, ModelGraph) for member in members):
        message = "Group expects a list of at least one symbol, and nothing but symbols"
        raise TypeError(message)
    if all(isinstance(member, Symbol) for member in members):
        return Symbol([entry for member in members for entry in member.entries])
    return parts_of_one_model(members)


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

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.Variable("weight", lr_mult=2).attr("__lr_mult__")
    '2'
    """
    if not isinstance(name, str):
        message = f"a variable's name is a string, not {type(name).__name__}"
        raise TypeError(message)
    given: dict[str, str] = dict(scope.current().get(attr))
    if shape is not None:
        given["__shape__"] = scope.text(shape)
    if lr_mult is not None:
        given["__lr_mult__"] = scope.text(lr_mult)
    if wd_mult is not None:
        given["__wd_mult__"] = scope.text(wd_mult)
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
        given[key] = scope.text(value)
    attrs: dict[str, str] = {}
    for key, value in given.items():
        attrs[hidden_on_variable(key)] = scope.text(value)
    return Symbol((Entry(Variable(name, attrs)),))
