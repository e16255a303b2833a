"""From a graph to the draft of a network.

A graph may contain what a file cannot express directly: an unused Reshape that stands for memory
written to under another name, a parameter used as data, an output that is an input or occurs
twice. Here all of these become operators, so that only the tensors remain to be named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import passlib._core as _core
from passlib.errors import GraphError, UnsupportedError
from passlib.families.dlprim import notes, options
from passlib.families.dlprim.network import AUTO
from passlib.families.dlprim.schema import OPERATORS
from passlib.families.dlprim.shapes import infer_cached
from passlib.families.dlprim.types import FLOAT, NAMES, Spec, file_name, from_code
from passlib.families.dlprim.writing.draft import Draft, Value
from passlib.graph.attribute_text import parse_int, parse_optional_ints, parse_position
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE
from passlib.lowering.misfit import Misfit


def draft_network(
    graph: _core.Graph, arrays: Mapping[str, Any], known: Mapping[str, str], names: Sequence[str]
) -> Draft:
    """Convert a graph to the draft of a network.

    Parameters
    ----------
    graph : _core.Graph
    arrays : mapping of str to array
        Parameters by name.
    known : mapping of str to str
        Operators of the file, by place.
    names : sequence of str
        Names of the outputs in the file; used if the number of outputs is unchanged.

    Returns
    -------
    Draft

    Raises
    ------
    GraphError
        The graph is not a valid network: a node has too few inputs, inputs of the wrong shape, ...
    UnsupportedError
        DLPrimitives does not have an operator or an option.
    """
    return _Drafter(graph, arrays, known).draft(names)


class _Drafter:
    def __init__(
        self, graph: _core.Graph, arrays: Mapping[str, Any], known: Mapping[str, str]
    ) -> None:
        self._nodes = graph.nodes()
        self._heads = graph.heads()
        self._arrays = arrays
        self._known = dict(known)
        self._values: dict[int, Value] = {}
        self._inputs: list[Value] = []
        self._operators: list[Value] = []
        self._constants: dict[str, Value] = {}
        self._names = NameSource(set())
        self._specs: dict[str, Spec] = {}
        self._slots, self._used = _uses(self._nodes, self._heads)

    def draft(self, names: Sequence[str]) -> Draft:
        places = self._claims()
        for position, node in enumerate(self._nodes):
            if node.op != VARIABLE:
                self._names.used.add(node.name)
            elif self._is_tensor(position, node):
                self._inputs.append(self._input(position, places.get(position, "")))
        self._inputs.sort(key=lambda value: _order(value.place))
        used: set[str] = set()
        for position in self._ordered(places):
            self._operator(position, places.get(position, ""), used)
        outputs = [self._data(self._head(entry), "an output") for entry in self._heads]
        if len(names) != len(outputs):
            unique = list(dict.fromkeys(outputs))
            return Draft(self._inputs, self._operators, unique, [v.wish for v in unique])
        return self._named(outputs, names)

    def _claims(self) -> dict[int, str]:
        """Assign each place of the file to the first node that states it and has its operator."""
        places: dict[int, str] = {}
        free = dict(self._known)
        for position, node in enumerate(self._nodes):
            place = node.attrs.get(notes.ID, "")
            if free.get(place) == node.op:
                places[position] = place
                del free[place]
        return places

    def _is_tensor(self, position: int, node: _core.NodeTuple) -> bool:
        """Whether a variable is an input; unused ones are dropped unless the file has them."""
        if notes.is_input(node.op, node.attrs):
            return True
        fed = node.name not in self._arrays and node.name not in self._slots
        return fed and position in self._used

    def _input(self, position: int, place: str) -> Value:
        node = self._nodes[position]
        wish = notes.tensor_name(node.name, node.attrs)
        spec = _input_spec(node.name, node.attrs)
        value = Value(node.name, VARIABLE, wish, spec, place=place)
        self._values[position] = value
        return value

    def _ordered(self, places: Mapping[int, str]) -> list[int]:
        """Order the operators as in the file, new ones directly before their first user."""
        operators = [p for p, node in enumerate(self._nodes) if node.op != VARIABLE]
        first = sorted((p for p in operators if p in places), key=lambda p: _order(places[p]))
        order: list[int] = []
        done: set[int] = set()
        for start in [*first, *operators]:
            stack = [start]
            while stack:
                position = stack[-1]
                needed = [
                    p
                    for p, _, _ in self._nodes[position].inputs
                    if p not in done and self._nodes[p].op != VARIABLE
                ]
                if position not in done and needed:
                    stack.extend(reversed(needed))
                    continue
                stack.pop()
                if position not in done:
                    done.add(position)
                    order.append(position)
        return order

    def _operator(self, position: int, place: str, used: set[str]) -> None:
        node = self._nodes[position]
        op, name, attributes = node.op, node.name, node.attrs
        who = f"node {name!r} ({op})"
        if op not in OPERATORS:
            raise UnsupportedError(f"{who}: DLPrimitives has no operator {op!r}")
        if node.subgraphs:
            raise UnsupportedError(f"{who}: DLPrimitives has no nested graphs")
        count = OPERATORS[op].inputs
        own = {k: v for k, v in attributes.items() if not options.is_hidden(k)}
        sources = [self._source(entry, who) for entry in node.inputs]
        split = len(sources) if count is None else count
        data = [self._data(source, who) for source in sources[:split]]
        parameters = [self._parameter(source, who) for source in sources[split:]]
        try:
            inferred = infer_cached(op, tuple(own.items()), tuple(value.spec for value in data))
        except options.OptionError as error:
            raise UnsupportedError(f"{who}: {error}") from error
        except Misfit as error:
            raise GraphError(f"{who}: {error}") from error
        if len(parameters) != len(inferred.parameters):
            raise GraphError(
                f"{who}: needs {len(inferred.parameters)} inputs that are parameters, has "
                f"{len(parameters)}"
            )
        for parameter, spec in zip(parameters, inferred.parameters, strict=True):
            self._check_parameter(who, parameter, spec)
        value = Value(
            node=name,
            op=op,
            wish=notes.tensor_name(name, attributes),
            spec=inferred.output,
            attributes=own,
            inputs=data,
            parameters=parameters,
            place=place,
            frozen=attributes.get(notes.FROZEN) == "true",
            view=attributes.get(notes.ID) == notes.VIEW and op == "Reshape",
        )
        if name in used:
            value.node = self._names.fresh(name)
        used.add(value.node)
        self._values[position] = value
        self._operators.append(value)

    def _source(self, entry: tuple[int, int, int], who: str) -> Value | str:
        position, index, _ = entry
        node = self._nodes[position]
        if index != 0:
            message = f"uses output {index} of node {node.name!r}, which has only one"
            raise GraphError(f"{who}: {message}")
        if node.op == VARIABLE and position not in self._values:
            return node.name
        return self._values[position]

    def _head(self, entry: tuple[int, int, int]) -> Value | str:
        return self._source(entry, "an output of the graph")

    def _parameter(self, source: Value | str, who: str) -> str:
        if isinstance(source, str):
            return source
        raise GraphError(f"{who}: {source.node!r} is not a parameter, but used as one")

    def _check_parameter(self, who: str, name: str, spec: Spec) -> None:
        if name in AUTO:
            raise UnsupportedError(
                f"{who}: parameter {name!r} has a name that means an automatic one in files"
            )
        array = self._arrays.get(name)
        found = Spec(array.dtype.name, tuple(array.shape)) if array is not None else spec
        found = self._specs.setdefault(name, found)
        if found != spec:
            raise GraphError(f"{who}: parameter {name!r} must be {spec}, but is {found}")

    def _data(self, source: Value | str, who: str) -> Value:
        """Return a tensor; a parameter becomes one through an operator Parameter."""
        if isinstance(source, Value):
            return source
        if source not in self._constants:
            array = self._arrays.get(source)
            if array is None:
                raise GraphError(
                    f"{who}: parameter {source!r} is used as data, but its shape is unknown"
                )
            spec = Spec(array.dtype.name, tuple(array.shape))
            dtype = file_name(spec.dtype)
            if dtype is None:
                raise UnsupportedError(
                    f"parameter {source!r}: DLPrimitives has no type {spec.dtype}"
                )
            attributes = {"shape": str(list(spec.shape))}
            if dtype != "float":
                attributes["dtype"] = dtype
            name = self._names.fresh(source)
            value = Value(name, "Parameter", name, spec, attributes, parameters=[source])
            self._check_parameter(who, source, spec)
            self._constants[source] = value
            self._operators.append(value)
        return self._constants[source]

    def _named(self, outputs: Sequence[Value], names: Sequence[str]) -> Draft:
        """Keep the names of the outputs, with a copy for each further name of one tensor."""
        pairs = list(zip(outputs, names, strict=True))
        taken = {value for value, name in pairs if value.wish == name}
        final = []
        for value, name in pairs:
            if value.wish == name:
                final.append(value)
            elif value.op != VARIABLE and value not in taken and not value.view:
                value.wish = name
                taken.add(value)
                final.append(value)
            else:
                copy = Value(self._names.fresh(name), "Activation", name, value.spec, {}, [value])
                self._operators.append(copy)
                final.append(copy)
        return Draft(self._inputs, self._operators, final, list(names))


def _uses(
    nodes: Sequence[_core.NodeTuple], heads: Sequence[tuple[int, int, int]]
) -> tuple[set[str], set[int]]:
    """Return the names of variables in parameter positions, and the nodes that are used."""
    slots: set[str] = set()
    used = {position for position, _, _ in heads}
    for node in nodes:
        used.update(position for position, _, _ in node.inputs)
        count = OPERATORS[node.op].inputs if node.op in OPERATORS else None
        if count is not None:
            sources = (nodes[position] for position, _, _ in node.inputs[count:])
            slots.update(source.name for source in sources if source.op == VARIABLE)
    return slots, used


def _order(place: str) -> tuple[int, int]:
    """Return a sort key: places by number, then those without one."""
    number = parse_position(place.rpartition("[")[2].rstrip("]"))
    return (1, 0) if number is None else (0, number)


def _input_spec(name: str, attributes: Mapping[str, str]) -> Spec:
    try:
        sizes = parse_optional_ints(attributes[notes.SHAPE])
        shape = tuple(size for size in sizes if size is not None)
        dtype = (
            from_code(parse_int(attributes[notes.DTYPE])) if notes.DTYPE in attributes else FLOAT
        )
    except KeyError:
        raise GraphError(
            f"variable {name!r} has neither data nor the attribute {notes.SHAPE}, which inputs of "
            "DLPrimitives require"
        ) from None
    except ValueError as error:
        raise GraphError(f"variable {name!r}: {error}") from error
    if len(shape) != len(sizes) or not shape or min(shape) < 1:
        raise GraphError(
            f"variable {name!r}: {attributes[notes.SHAPE]!r} is not a valid shape of an input"
        )
    if dtype is None or dtype not in NAMES.values():
        raise UnsupportedError(f"variable {name!r}: DLPrimitives has no type {dtype}")
    return Spec(dtype, shape)
