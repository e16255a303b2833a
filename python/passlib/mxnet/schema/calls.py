"""How the arguments of a call are read: which are inputs of the operator, and which attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from passlib.errors import GraphError, did_you_mean
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.mxnet.schema import registry
from passlib.mxnet.schema.operator import Operator, is_dunder
from passlib.mxnet.schema.registry import LibraryOperator

NAMESPACES = ("contrib", "linalg", "sparse", "image", "random")
INTERNAL = "_internal"
"""The namespace of operators whose names begin with an underscore."""

_PREFIXES = tuple(f"_{namespace}_" for namespace in NAMESPACES)


def place(name: str) -> tuple[str, str]:
    """Return the namespace of a registered name, ``""`` for none, and its name there."""
    for namespace, prefix in zip(NAMESPACES, _PREFIXES, strict=True):
        # Random generators without "_like" are called through functions that choose between them.
        if name.startswith(prefix) and (namespace != "random" or name.endswith("_like")):
            return namespace, name[len(prefix) :]
    return (INTERNAL if name.startswith("_") else ""), name


def operator_names(namespace: str = "") -> Iterator[str]:
    """Iterate over the names in a namespace: ``""``, ``"contrib"``, ``"_internal"``, ..."""
    yield from _places(registry.generation()).get(namespace, {})


def registered_name(name: str, namespace: str = "") -> str | None:
    """Return the registered name of an operator, or None if the namespace has none."""
    return _places(registry.generation()).get(namespace, {}).get(name)


@lru_cache(maxsize=1)
def _places(generation: int) -> dict[str, dict[str, str]]:
    places: dict[str, dict[str, str]] = {}
    for name in registry.names():
        # Operators of the NumPy interface have other calling rules; they are read, not composed.
        if not name.startswith(("_np_", "_npi_", "_npx_", "_np")):
            namespace, short = place(name)
            places.setdefault(namespace, {})[short] = name
    return places


class Namespace:
    """The operators of one prefix and additional functions, as attributes.

    Parameters
    ----------
    module : str
        The module of the namespace as users write it: ``"sym"``, ``"nd"``.
    name : str
        ``""`` for the operators without prefix.
    find : callable
        Returns the function of an operator, from its name and that of the namespace; raises
        AttributeError for an unknown name.
    names : callable
        Returns the names of the operators of a namespace.
    functions : mapping of str to callable, optional
        Functions that take precedence over operators of the same name.
    """

    def __init__(
        self,
        module: str,
        name: str,
        find: Callable[[str, str], Callable[..., Any]],
        names: Callable[[str], Iterable[str]],
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._module = module
        self._name = name
        self._find = find
        self._names = names
        self._functions = functions or {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._functions.get(name) or self._find(name, self._name)

    def __dir__(self) -> list[str]:
        return sorted({*self._names(self._name), *self._functions})

    def __repr__(self) -> str:
        return f"<operators {self._module}.{self._name or 'op'}>"


_SHOWN: Final = 80
"""How many characters of a value a message shows."""


def check_attributes(operator: Operator, where: str, attrs: Mapping[str, str]) -> None:
    """Check the attributes of a node as MXNet does when it reads or makes the node.

    Parameters
    ----------
    where : str
        The node, for messages.

    Raises
    ------
    GraphError
        An attribute that the operator does not have, whose value does not have the declared type,
        or that is missing. The message names node, operator and attribute, and what is declared.
    """
    parameters = operator.parameters
    for key, text in attrs.items():
        parameter = parameters.get(key)
        if parameter is not None:
            if not parameter.accepts(text):
                shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
                raise GraphError(
                    f"{where}: attribute {key!r} of operator {operator.name!r} cannot be "
                    f"{shown!r}; it is declared as {parameter.description}"
                )
        elif not (operator.open or is_dunder(key) or key == operator.variadic):
            hint = did_you_mean(key, parameters)
            raise GraphError(
                f"{where}: operator {operator.name!r} has no attribute {key!r}"
                f"{hint}; it has: {', '.join(parameters) or 'none'}"
            )
    for parameter in parameters.values():
        if parameter.required and parameter.name not in attrs:
            raise GraphError(
                f"{where}: operator {operator.name!r} needs the attribute "
                f"{parameter.name!r} ({parameter.type_text})"
            )


def check_nodes(nodes: Iterable[Node]) -> None:
    """Check attributes and numbers of inputs of all nodes whose operators are known.

    Raises `GraphError` like `check_attributes`, and if a node has more or fewer inputs than its
    operator takes with these attributes.
    """
    for node in nodes:
        operator = None if node.is_variable else registry.find(node.op)
        if operator is None:
            continue
        check_attributes(operator, blame(node), node.attrs)
        names = () if isinstance(operator, LibraryOperator) else operator.input_names(node.attrs)
        if names and len(names) != len(node.inputs):
            raise GraphError(
                f"{blame(node)}: operator {operator.name!r} takes {len(names)} inputs "
                f"({', '.join(names)}) with these attributes, not {len(node.inputs)}"
            )


_IGNORED = ("name", "out", "attr")


class Call(NamedTuple):
    """The arguments of a call of an operator.

    Attributes
    ----------
    inputs : sequence or dict of str to object
        By position for operators with any number of inputs, else by name.
    attributes : dict of str to object
        As given, not yet spelled as text.
    """

    inputs: Sequence[Any] | Mapping[str, Any]
    attributes: dict[str, Any]


def read_call(
    operator: Operator,
    op: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    kind: type | tuple[type, ...],
    noun: str,
) -> Call:
    """Sort the arguments of a call.

    Raises `TypeError` if there are too many arguments, one is given twice, or an input is of
    another kind.

    Parameters
    ----------
    op : str
        The name that it was called by, for messages.
    args, kwargs : sequence, mapping
        Inputs come first, then the declared attributes. ``name``, ``out`` and ``attr`` are no
        attributes and left out.
    kind : type or tuple of type
        What the inputs are.
    noun : str
        The word for it.
    """
    given = {key: value for key, value in kwargs.items() if key not in _IGNORED}
    if operator.takes_any_number:
        return _counted(op, args, given, kind, noun)
    return _fixed(operator, op, args, given, kind, noun)


def _counted(op: str, args: Sequence[Any], given: dict[str, Any], kind: Any, noun: str) -> Call:
    for position, value in enumerate(args):
        if not isinstance(value, kind):
            raise TypeError(f"{op}: argument {position} is no {noun} but {value!r}")
    named = {key: value for key, value in given.items() if isinstance(value, kind)}
    attributes = {key: value for key, value in given.items() if key not in named}
    if args and named:
        raise TypeError(f"{op}: give the inputs all by position or all by name, not both")
    return Call(named or args, attributes)


def _fixed(
    operator: Operator, op: str, args: Sequence[Any], given: dict[str, Any], kind: Any, noun: str
) -> Call:
    inputs, parameters = operator.declared_inputs, operator.parameters
    order = (*inputs, *parameters)
    if len(args) > len(order):
        raise TypeError(
            f"{op} takes at most {len(order)} arguments by position: {', '.join(order)}"
        )
    for key, value in zip(order, args, strict=False):
        if key in given:
            raise TypeError(f"{op}: {key!r} is given by position and by keyword")
        given[key] = value
    named: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, kind):
            named[key] = value
        elif key in inputs and key not in parameters:
            if value is not None:
                raise TypeError(f"{op}: input {key!r} is no {noun} but {value!r}")
        else:
            attributes[key] = value
    return Call(named, attributes)
