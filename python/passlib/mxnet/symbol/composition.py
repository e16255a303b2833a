"""Composition: nodes of MXNet's operators, made by functions and by Python's operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from passlib.errors import GraphError, UnsupportedError, did_you_mean, listed
from passlib.graph import names as naming
from passlib.graph import scope
from passlib.graph.node import VARIABLE, Entry, Node, postorder
from passlib.graph.plain import PlainGraph
from passlib.mxnet import schema
from passlib.mxnet.schema import Operator
from passlib.mxnet.schema import calls as namespaces
from passlib.mxnet.schema.calls import check_attributes, read_call
from passlib.mxnet.schema.operator import hidden_on_operator
from passlib.mxnet.schema.registry import LibraryOperator


class Variable(Node):
    """A variable made by composition, which counts how often operators write to it.

    NNVM counts writes on the variable, so a second BatchNorm on one moving mean uses version 2.
    The first operator that uses the variable as an auxiliary state also sets its initializer.
    Both belong to composition; the variable is immutable for everyone else.
    """

    __slots__ = ("_mutations",)

    _mutations: int

    def __init__(self, name: str, attrs: Mapping[str, str]) -> None:
        super().__init__(VARIABLE, name, attrs, num_outputs=1)
        _set_mutations(self, 0)

    @property
    def mutations(self) -> int:
        """How many operators write to the variable."""
        return self._mutations

    def count_write(self) -> int:
        """Count one more operator that writes to the variable, and return the number of them."""
        _set_mutations(self, self._mutations + 1)
        return self._mutations

    def complete(self, key: str, value: str) -> None:
        """Set an attribute that the variable does not have yet."""
        if key not in self.attrs:
            _set_attrs(self, MappingProxyType({**self.attrs, key: value}))


_set_mutations = Variable.__dict__["_mutations"].__set__
_set_attrs = Node.__dict__["attrs"].__set__


_COUNTED = "num_args"
_DIALECT = "mxnet"


def create(
    op: str,
    inputs: Sequence[PlainGraph] | Mapping[str, PlainGraph] = (),
    attrs: Mapping[str, object] | None = None,
    name: str | None = None,
    *,
    hint: str | None = None,
    subgraphs: Sequence[PlainGraph] = (),
) -> tuple[Entry, ...]:
    """Create the node of an operator.

    Raises `UnsupportedError` if MXNet 1.9.1 has no such operator, its number of outputs is unknown,
    or an input belongs to another dialect; `GraphError` if an attribute or input is unknown,
    invalid or missing, or an input has several outputs.

    Parameters
    ----------
    op : str
        Registered name or alias.
    inputs : sequence or mapping of PlainGraph
        By position, or by the operator's names for its inputs. A missing input becomes a
        variable ``<name>_<input>`` with the operator's attributes.
    attrs : mapping, optional
        Values are spelled as text, tuples as Python prints them.
    name : str, optional
        By default the `NameManager` chooses one.
    hint : str, optional
        Stem of an automatic name, by default the operator's name in lower case.
    subgraphs : sequence of PlainGraph, optional
        Nested graphs of an operator that has them.

    Returns
    -------
    tuple of Entry
        The node's visible outputs.
    """
    operator = schema.find(op)
    if operator is None:
        near = did_you_mean(op, schema.names())
        raise UnsupportedError(
            f"neither MXNet 1.9.1 nor a loaded library has operator {op!r}{near}"
        )
    name = naming.current().get(name, hint if hint is not None else op.lower())
    count = len(inputs) + len(subgraphs)
    texts = _attributes(operator, name, attrs or {}, count)
    visible = operator.num_visible_outputs(texts)
    if visible == 0:
        raise UnsupportedError(
            f"node {name!r}: the attributes of operator {operator.name!r} do not determine how "
            f"many outputs it has, so it cannot be composed"
        )
    if isinstance(inputs, Mapping):
        named: Mapping[str, PlainGraph] = inputs
        names = operator.input_names(texts)
    else:
        names = operator.input_names(texts)
        if len(inputs) > len(names):
            raise GraphError(
                f"node {name!r}: operator {operator.name!r} takes {len(names)} inputs "
                f"({', '.join(names)}) with these attributes, not {len(inputs)}"
            )
        named = dict(zip(names, inputs, strict=False))
    entries = _entries(operator, name, names, named, texts)
    _count_writes(operator, name, names, entries, texts)
    node = Node(
        operator.name, name, texts, entries, operator.num_outputs(texts), subgraphs=subgraphs
    )
    return tuple(Entry(node, index) for index in range(visible))


def _attributes(
    operator: Operator, name: str, attrs: Mapping[str, object], count: int
) -> dict[str, str]:
    parameters = operator.parameters
    texts: dict[str, str] = {}
    for given, value in attrs.items():
        key = given if given in parameters else hidden_on_operator(given)
        typed = key == "dtype" and not isinstance(operator, LibraryOperator)
        text = _type_name(value) if typed else scope.text(value)
        texts.setdefault(key, text)
    if operator.variadic == _COUNTED:
        texts.setdefault(_COUNTED, str(count))
    check_attributes(operator, f"node {name!r}", texts)
    return texts


def _type_name(value: Any) -> str:
    try:
        return str(np.dtype(value).name)
    except TypeError:
        # "bfloat16" and unknown names: the declared choices decide.
        return scope.text(value)


def _entries(
    operator: Operator,
    name: str,
    names: tuple[str, ...],
    named: Mapping[str, PlainGraph],
    attrs: Mapping[str, str],
) -> list[Entry]:
    known = set(names)
    for key in named:
        if key not in known:
            raise GraphError(
                f"node {name!r}: operator {operator.name!r} has no input {key!r} with these "
                f"attributes; its inputs are: {', '.join(names) or 'none'}"
            )
    entries: list[Entry] = []
    for key in names:
        symbol = named.get(key)
        if symbol is None:
            if not operator.makes_variables:
                raise GraphError(
                    f"node {name!r}: operator {operator.name!r} needs the input {key!r}"
                )
            entries.append(Entry(Variable(f"{name}_{key}", attrs)))
            continue
        if symbol.dialect != _DIALECT:
            raise UnsupportedError(
                f"node {name!r}: input {key!r} is a graph of the dialect {symbol.dialect!r}, which "
                f"cannot have MXNet's operator {operator.name!r}; such graphs are changed by passes"
            )
        heads = symbol.entries
        if len(heads) != 1:
            raise GraphError(
                f"node {name!r}: input {key!r} of operator {operator.name!r} is a symbol with "
                f"{len(heads)} outputs; choose one with [i]"
            )
        entries.append(heads[0])
    return entries


def _count_writes(
    operator: Operator,
    name: str,
    names: tuple[str, ...],
    entries: list[Entry],
    attrs: Mapping[str, str],
) -> None:
    written = operator.mutable_inputs(attrs)
    for position in written:
        node = entries[position].node
        if not node.is_variable:
            raise GraphError(
                f"node {name!r}: operator {operator.name!r} writes to its input "
                f"{names[position]!r}, which must be a variable and is the output of {node.name!r}"
            )
    for position, entry in enumerate(entries):
        if isinstance(entry.node, Variable) and entry.node.mutations:
            entries[position] = entry._replace(version=entry.node.mutations)
    for position in sorted(written):
        entry = entries[position]
        if isinstance(entry.node, Variable):
            entries[position] = entry._replace(version=entry.node.count_write())
        else:
            entries[position] = entry._replace(version=entry.version + 1)
    for key, value in operator.initial.items():
        if key in names:
            owner = entries[names.index(key)].node
            if isinstance(owner, Variable):
                owner.complete("__init__", value)


def substitute(
    graph: PlainGraph, replacements: Mapping[str, PlainGraph], name: str | None = None
) -> tuple[Entry, ...]:
    """Replace variables by the outputs of other graphs; MXNet's ``symbol(x=other)``.

    Raises `GraphError` if no variable has that name, a replacement has several outputs, or an
    operator would have to write to something that is no variable; `UnsupportedError` if a
    replacement is of another dialect.

    Parameters
    ----------
    graph : PlainGraph
        Stays as it is; the new graph shares the nodes that need no change.
    replacements : mapping of str to PlainGraph
        For a variable's name a symbol of one output.
    name : str, optional
        New name of the node of the first output.

    Returns
    -------
    tuple of Entry
        The outputs of the new graph. Entry versions are kept, where MXNet counts them on.
    """
    for each in replacements.values():
        if isinstance(each, PlainGraph) and each.dialect != graph.dialect:
            raise UnsupportedError(
                f"a graph of the dialect {each.dialect!r} cannot be composed with others; such "
                "graphs are changed by passes"
            )
    order = postorder(entry.node for entry in graph.entries)
    new = _replaced(order, replacements)
    first = graph.entries[0].node
    for node in order:
        if id(node) in new:
            continue
        inputs = tuple(_follow(entry, new, node) for entry in node.inputs)
        # Control dependencies order nodes in time: they move to the replacement of a variable.
        deps = tuple(new[id(dep)].node for dep in node.control_deps)
        title = name if name and node is first else node.name
        same = all(a.node is b.node for a, b in zip(inputs, node.inputs, strict=True))
        same = same and all(a is b for a, b in zip(deps, node.control_deps, strict=True))
        if not same or title != node.name:
            outputs, nested = node.num_outputs, node.subgraphs
            made = Node(node.op, title, node.attrs, inputs, outputs, deps, nested)
            new[id(node)] = Entry(made)
        else:
            new[id(node)] = Entry(node)
    return tuple(_follow(entry, new, None) for entry in graph.entries)


def _replaced(order: list[Node], replacements: Mapping[str, PlainGraph]) -> dict[int, Entry]:
    names = {node.name for node in order if node.is_variable}
    for key, value in replacements.items():
        if not isinstance(value, PlainGraph):
            raise TypeError(f"variable {key!r} can only be replaced by a symbol, not by {value!r}")
        if key not in names:
            hint = did_you_mean(key, names)
            raise GraphError(
                f"no variable is named {key!r}{hint}; there are {listed(sorted(names))}"
            )
        if len(value.entries) != 1:
            raise GraphError(
                f"variable {key!r} cannot be replaced by a symbol with {len(value.entries)} "
                f"outputs; choose one with [i]"
            )
    return {
        id(node): replacements[node.name].entries[0]
        for node in order
        if node.is_variable and node.name in replacements
    }


def _follow(entry: Entry, new: Mapping[int, Entry], user: Node | None) -> Entry:
    target = new[id(entry.node)]
    if not entry.node.is_variable:
        return entry._replace(node=target.node)
    if target.node.is_variable:
        return entry._replace(node=target.node) if user else target
    if entry.version and user is not None:
        raise GraphError(
            f"node {user.name!r} writes to the variable {entry.node.name!r}, which therefore "
            f"cannot be replaced by the output of {target.node.name!r}"
        )
    return target


_G = TypeVar("_G", bound=PlainGraph)
Make: TypeAlias = Callable[[Sequence[Entry]], _G]
"""Returns the graph of these outputs, of the class that the caller composes."""

_IN_PLACE = frozenset(("flatten", "expand_dims", "squeeze"))
_METHODS = {"astype": "cast"}


def operator(name: str, namespace: str, make: Make[_G]) -> Callable[..., _G]:
    """Return the function that applies an operator.

    Raises `AttributeError` if the namespace has no such operator.

    Parameters
    ----------
    name : str
        As MXNet's ``mx.sym`` spells it.
    namespace : str
        ``""`` for ``sym`` itself, or one of `namespaces.NAMESPACES`, or ``"_internal"``.
    make : callable
        Returns the result from the outputs of the new node.

    Returns
    -------
    function
        Takes the inputs, then the declared attributes, by position or keyword; also ``name``,
        ``attr`` (a mapping of further attributes) and attributes with two underscores at each
        end.
    """
    return cast("Callable[..., _G]", _operator(name, namespace, make, schema.generation()))


@cache
def _operator(name: str, namespace: str, make: Make[Any], generation: int) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    registered = namespaces.registered_name(name, namespace)
    found = schema.find(registered) if registered is not None else None
    if registered is None or found is None:
        where = f"sym.{namespace}" if namespace else "sym"
        hint = did_you_mean(name, namespaces.operator_names(namespace))
        raise AttributeError(f"{where} has no operator {name!r}{hint}")

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

    Raises `AttributeError` if there is no operator of this name.
    """
    if name.startswith("_"):
        raise AttributeError(f"Symbol has no attribute {name!r}")
    if name == "split_v2":
        split = operator("_split_v2", namespaces.INTERNAL, make)
        return lambda *args, **kwargs: split(graph, *split_arguments(*args, **kwargs))
    bound = partial(operator(_METHODS.get(name, name), "", make), graph)
    if name == "diag":
        return lambda k=0, **kwargs: bound(k, **kwargs)
    if name not in _IN_PLACE:
        return bound

    def without_in_place(*args: Any, inplace: bool = False, **kwargs: Any) -> _G:
        if name == "squeeze" and not args:
            kwargs.setdefault("axis", None)
        return bound(*args, **kwargs)

    return without_in_place


def split_arguments(
    indices_or_sections: int | tuple[int, ...], axis: int = 0, squeeze_axis: bool = False
) -> tuple[Any, ...]:
    """Return the attributes of ``_split_v2`` for equal parts, or for parts between indices.

    Raises `ValueError` if ``indices_or_sections`` is neither an int nor a tuple of int.
    """
    if isinstance(indices_or_sections, int):
        return [], axis, squeeze_axis, indices_or_sections
    if isinstance(indices_or_sections, tuple):
        return [0, *indices_or_sections], axis, squeeze_axis, 0
    raise ValueError(f"split_v2: expected an int or a tuple of int, not {indices_or_sections!r}")
