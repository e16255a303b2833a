"""Operators as functions: how ``Convolution(data, kernel=(3, 3), num_filter=8)`` is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias, TypeVar, cast

from passlib.errors import did_you_mean
from passlib.graph import scope
from passlib.graph.node import Entry
from passlib.graph.plain import PlainGraph
from passlib.mxnet import schema
from passlib.mxnet.schema import Operator, namespaces
from passlib.mxnet.schema.calls import read_call
from passlib.mxnet.symbol.composition.create import create

_G = TypeVar("_G", bound=PlainGraph)
Make: TypeAlias = Callable[[Sequence[Entry]], _G]
"""Makes the graph of these outputs: the class that the caller composes."""

_IN_PLACE = frozenset(("flatten", "expand_dims", "squeeze"))
_METHODS = {"astype": "cast"}


def operator(name: str, namespace: str, make: Make[_G]) -> Callable[..., _G]:
    """Return the function that applies an operator.

    Parameters
    ----------
    name : str
        As MXNet's ``mx.sym`` spells it.
    namespace : str
        ``""`` for ``sym`` itself, or one of `namespaces.NAMESPACES`, or ``"_internal"``.
    make : callable
        Makes the result from the outputs of the new node.

    Returns
    -------
    function
        Takes the inputs, then the declared attributes, by position or keyword; also ``name``,
        ``attr`` (a mapping of further attributes) and attributes with two underscores at each
        end.

    Raises
    ------
    AttributeError
        The namespace has no such operator.
    """
    return cast("Callable[..., _G]", _operator(name, namespace, make, schema.generation()))


@cache
def _operator(name: str, namespace: str, make: Make[Any], generation: int) -> Callable[..., Any]:
    del generation  # a library may have taken the name over
    if name.startswith("__"):
        raise AttributeError(name)
    registered = namespaces.registered_name(name, namespace)
    found = schema.find(registered) if registered is not None else None
    if registered is None or found is None:
        where = f"sym.{namespace}" if namespace else "sym"
        hint = did_you_mean(name, namespaces.operator_names(namespace))
        message = f"{where} has no operator {name!r}{hint}"
        raise AttributeError(message)

    def function(*args: Any, **kwargs: Any) -> Any:
        return make(_apply(found, registered, name.lower(), args, kwargs))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "passlib.symbol" + (f".{namespace}" if namespace else "")
    function.__doc__ = _document(found, registered)
    return function


def _apply(
    found: Operator, op: str, hint: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Entry, ...]:
    scoped = scope.current().get(kwargs.get("attr"))
    call = read_call(found, op, args, kwargs, PlainGraph, "symbol")
    # Where the scope has an attribute that the call gives too, MXNet keeps the scope's.
    attrs = (
        {**call.attributes, **scoped}
        if found.takes_any_number
        else {**scoped, **call.attributes, **scoped}
    )
    return create(op, call.inputs, attrs, kwargs.get("name"), hint=hint)


def _document(found: Operator, registered: str) -> str:
    lines = [f"Apply the operator {registered}.", "", "Parameters", "----------"]
    star = "*" if found.takes_any_number else ""
    lines += [f"{star}{key} : Symbol" for key in found.declared_inputs]
    lines += [f"{p.name} : {p.type_text}" for p in found.parameters.values()]
    lines += [
        "name : str, optional",
        "    Name of the node; by default the name manager chooses one.",
        "attr : mapping of str to str, optional",
        "    Further attributes of the node.",
        "",
        "Returns",
        "-------",
        "Symbol",
    ]
    return "\n".join(lines)


def method(graph: _G, name: str, make: Make[_G]) -> Callable[..., _G]:
    """Return an operator as a method of ``graph``, which becomes its first input.

    Raises
    ------
    AttributeError
        There is no operator of this name.
    """
    if name.startswith("_"):
        message = f"Symbol has no attribute {name!r}"
        raise AttributeError(message)
    if name == "split_v2":
        split = operator("_split_v2", namespaces.INTERNAL, make)
        return lambda *args, **kwargs: split(graph, *split_arguments(*args, **kwargs))
    bound = partial(operator(_METHODS.get(name, name), "", make), graph)
    if name == "diag":
        return lambda k=0, **kwargs: bound(k, **kwargs)
    if name not in _IN_PLACE:
        return bound

    def without_in_place(*args: Any, inplace: bool = False, **kwargs: Any) -> _G:
        del inplace  # a symbol never changes; MXNet accepts the argument for symmetry with NDArray
        if name == "squeeze" and not args:
            kwargs.setdefault("axis", None)
        return bound(*args, **kwargs)

    return without_in_place


def split_arguments(
    indices_or_sections: int | tuple[int, ...], axis: int = 0, squeeze_axis: bool = False
) -> tuple[Any, ...]:
    """Return the attributes of ``_split_v2`` for equal parts, or for parts between indices.

    Raises
    ------
    ValueError
        ``indices_or_sections`` is neither an int nor a tuple of int.
    """
    if isinstance(indices_or_sections, int):
        return [], axis, squeeze_axis, indices_or_sections
    if isinstance(indices_or_sections, tuple):
        return [0, *indices_or_sections], axis, squeeze_axis, 0
    message = f"split_v2: expected an int or a tuple of int, not {indices_or_sections!r}"
    raise ValueError(message)
