"""Every operator as a function: ``passlib.sym.Convolution(data, kernel=(3, 3), num_filter=8)``.

MXNet sorts its operators into namespaces by the prefix of the registered name, and so is it done
here: ``_contrib_box_nms`` is ``sym.contrib.box_nms``, ``_plus_scalar`` is
``sym._internal._plus_scalar``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

from passlib import attribute, compose
from passlib._namespace import Namespace
from passlib.dialects.mxnet import schema
from passlib.dialects.mxnet.schema import Operator

if TYPE_CHECKING:
    from passlib.symbol import Symbol

__all__ = [
    "NAMESPACES",
    "contrib",
    "image",
    "internal",
    "linalg",
    "method",
    "op",
    "operator",
    "operator_names",
    "place",
    "sparse",
]

NAMESPACES = ("contrib", "linalg", "sparse", "image", "random")
_PREFIXES = tuple(f"_{namespace}_" for namespace in NAMESPACES)
_INTERNAL = "_internal"
_IN_PLACE = frozenset(("flatten", "expand_dims", "squeeze"))
_METHODS = {"astype": "cast"}


def place(name: str) -> tuple[str, str]:
    """Give the namespace of a registered name, and its name there; no namespace is ``""``."""
    for namespace, prefix in zip(NAMESPACES, _PREFIXES, strict=True):
        # Random generators without "_like" are reached by functions that choose between them.
        if name.startswith(prefix) and (namespace != "random" or name.endswith("_like")):
            return namespace, name[len(prefix) :]
    return (_INTERNAL if name.startswith("_") else ""), name


def _places() -> dict[str, dict[str, str]]:
    return _places_of(schema.generation())


@lru_cache(maxsize=1)
def _places_of(generation: int) -> dict[str, dict[str, str]]:
    del generation  # made anew for each one
    places: dict[str, dict[str, str]] = {}
    for name in schema.names():
        # Operators of NumPy's manner have other calling rules; they are read, not composed.
        if not name.startswith(("_np_", "_npi_", "_npx_", "_np")):
            namespace, short = place(name)
            places.setdefault(namespace, {})[short] = name
    return places


def operator_names(namespace: str = "") -> Iterator[str]:
    """Name the functions of a namespace: ``""``, ``"contrib"``, ``"_internal"``, ..."""
    yield from _places().get(namespace, {})


def operator(name: str, namespace: str = "") -> Callable[..., Symbol]:
    """Give the function that applies an operator.

    Parameters
    ----------
    name : str
        As MXNet's ``mx.sym`` spells it.
    namespace : str
        ``""`` for ``sym`` itself, or one of `NAMESPACES`, or ``"_internal"``.

    Returns
    -------
    function
        Takes the inputs, then the declared attributes, by position or keyword; besides ``name``,
        ``attr`` (a mapping of further attributes) and attributes with two underscores at each
        end.

    Raises
    ------
    AttributeError
        No such operator there.
    """
    return _operator(name, namespace, schema.generation())


@cache
def _operator(name: str, namespace: str, generation: int) -> Callable[..., Symbol]:
    del generation  # a library may have taken the name over
    if name.startswith("__"):
        raise AttributeError(name)
    registered = _places().get(namespace, {}).get(name)
    found = schema.find(registered) if registered is not None else None
    if registered is None or found is None:
        where = f"sym.{namespace}" if namespace else "sym"
        near = difflib.get_close_matches(name, operator_names(namespace), 3)
        hint = f"; did you mean {' or '.join(repr(word) for word in near)}?" if near else ""
        message = f"{where} has no operator {name!r}{hint}"
        raise AttributeError(message)
    apply = _counted if found.takes_any_number else _fixed

    def function(*args: Any, **kwargs: Any) -> Symbol:
        return apply(found, registered, name.lower(), args, kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "passlib.symbol" + (f".{namespace}" if namespace else "")
    function.__doc__ = _document(found, registered)
    return function


def _is_symbol(value: object) -> bool:
    return isinstance(value, compose.symbol_class())


def _counted(
    found: Operator, op: str, hint: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Symbol:
    for position, value in enumerate(args):
        if not _is_symbol(value):
            message = f"{op}: argument {position} is no symbol but {value!r}"
            raise TypeError(message)
    name = kwargs.pop("name", None)
    kwargs.pop("out", None)
    kwargs.update(attribute.current().get(kwargs.pop("attr", None)))
    named = {key: value for key, value in kwargs.items() if _is_symbol(value)}
    attrs = {key: value for key, value in kwargs.items() if key not in named}
    if args and named:
        message = f"{op}: give the inputs all by position or all by name, not both"
        raise TypeError(message)
    return compose.create(op, named or args, attrs, name, hint=hint)


def _fixed(
    found: Operator, op: str, hint: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Symbol:
    name = kwargs.pop("name", None)
    kwargs.pop("out", None)
    scope = attribute.current().get(kwargs.pop("attr", None))
    inputs, parameters = found.declared_inputs, found.parameters
    order = (*inputs, *parameters)
    if len(args) > len(order):
        message = f"{op} takes at most {len(order)} arguments by position: {', '.join(order)}"
        raise TypeError(message)
    for key, value in zip(order, args, strict=False):
        if key in kwargs:
            message = f"{op}: {key!r} is given by position and by keyword"
            raise TypeError(message)
        kwargs[key] = value
    named: dict[str, Symbol] = {}
    # The scope comes first: where it has an attribute that the call gives too, MXNet keeps it.
    attrs: dict[str, object] = dict(scope)
    for key, value in kwargs.items():
        if _is_symbol(value):
            named[key] = value
        elif key in inputs and key not in parameters:
            if value is not None:
                message = f"{op}: input {key!r} is no symbol but {value!r}"
                raise TypeError(message)
        else:
            attrs.setdefault(key, value)
    return compose.create(op, named, attrs, name, hint=hint)


def _document(found: Operator, registered: str) -> str:
    lines = [f"Apply the operator {registered}.", "", "Parameters", "----------"]
    star = "*" if found.takes_any_number else ""
    lines += [f"{star}{key} : Symbol" for key in found.declared_inputs]
    lines += [f"{p.name} : {p.type_text}" for p in found.parameters.values()]
    lines += [
        "name : str, optional",
        "    Name of the node; by default the name manager gives one.",
        "attr : mapping of str to str, optional",
        "    Further attributes of the node.",
        "",
        "Returns",
        "-------",
        "Symbol",
    ]
    return "\n".join(lines)


def method(symbol: Symbol, name: str) -> Callable[..., Symbol]:
    """Give an operator as a method of ``symbol``, its first input.

    Raises
    ------
    AttributeError
        No operator of this name.
    """
    if name.startswith("_"):
        message = f"Symbol has no attribute {name!r}"
        raise AttributeError(message)
    if name == "split_v2":
        from passlib.creation import split_v2

        return partial(split_v2, symbol)
    bound = partial(operator(_METHODS.get(name, name)), symbol)
    if name == "diag":
        return lambda k=0, **kwargs: bound(k, **kwargs)
    if name not in _IN_PLACE:
        return bound

    def without_in_place(*args: Any, inplace: bool = False, **kwargs: Any) -> Symbol:
        del inplace  # a symbol never changes; MXNet accepts the word for NDArray's sake
        if name == "squeeze" and not args:
            kwargs.setdefault("axis", None)
        return bound(*args, **kwargs)

    return without_in_place


op, contrib, linalg, sparse, image, internal = (
    Namespace("sym", name, operator, operator_names)
    for name in ("", "contrib", "linalg", "sparse", "image", _INTERNAL)
)
