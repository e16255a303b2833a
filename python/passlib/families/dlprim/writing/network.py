"""From a graph to the text of a network file, in which unchanged parts keep their spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.json_text import Layout, keep, parse, print_json
from passlib.errors import GraphError, UnsupportedError
from passlib.families.dlprim import network as notes
from passlib.families.dlprim import options
from passlib.families.dlprim.network import (
    AUTO,
    FLOAT,
    NAMES,
    Network,
    Operator,
    Output,
    Spec,
    file_name,
    is_loss,
    parameter_names,
)
from passlib.families.dlprim.reading.document import Document, Template
from passlib.families.dlprim.schema import ALIASES, OPERATORS
from passlib.families.dlprim.shapes import infer
from passlib.graph.attributes import parse_int, parse_optional_ints, parse_position
from passlib.graph.names import NameSource
from passlib.graph.node import VARIABLE
from passlib.graph.ordering import depth_first_order
from passlib.lowering.types import Misfit

_ANYWHERE = frozenset(("Activation",))
"""Operators that may be made to work in place: their gradient needs only their output."""

Naming = tuple[dict["Value", str], set["Value"]]
"""The names of tensors, and the views that need no operator."""


def name_tensors(draft: Draft, in_place: frozenset[str]) -> Naming:
    """Choose names for all tensors; ``in_place`` are places of operators that work in place."""
    naming = _Namer(draft, in_place, frozenset()).run()
    wanted = zip(draft.outputs, draft.names, strict=True)
    misnamed = frozenset(value for value, name in wanted if naming[0][value] != name)
    return _Namer(draft, in_place, misnamed).run() if misnamed else naming


class _Memory:
    """Memory with one or more names, and the values that are its present content."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Value] = []


class _Namer:
    """One attempt at naming; the outputs in ``alone`` do not share their names."""

    def __init__(self, draft: Draft, in_place: frozenset[str], alone: frozenset[Value]) -> None:
        self._draft = draft
        self._in_place = in_place
        self._alone = alone
        self._tensors: dict[Value, str] = {}
        self._omitted: set[Value] = set()
        self._memory: dict[str, _Memory] = {}
        self._shapes: dict[str, Spec] = {}
        self._last_use: dict[Value, int] = {}
        self._wishes = {value: value.wish for value in (*draft.inputs, *draft.operators)}
        self._names = NameSource(set(self._wishes.values()))

    def run(self) -> Naming:
        operators = self._draft.operators
        for position, value in enumerate(operators):
            for used in value.inputs:
                self._last_use[used] = position
        for value in self._draft.outputs:
            self._last_use[value] = len(operators)
        self._make_way()
        for value in self._draft.inputs:
            self._place(value, self._free(self._wishes[value]), _Memory())
        for position, value in enumerate(operators):
            self._name(position, value)
        return self._tensors, self._omitted

    def _make_way(self) -> None:
        """Reserve the names of outputs by renaming other tensors of these names."""
        owners = {value.wish: value for value in self._draft.outputs}
        entitled = set(self._draft.outputs)
        for owner in self._draft.outputs:
            entitled.update(self._predecessors(owner))
        renamed: dict[str, str] = {}
        for value in self._draft.operators:
            owner_of_name = owners.get(value.wish)
            if owner_of_name is None or value in entitled:
                continue
            if owner_of_name.view and owner_of_name not in self._alone:
                continue
            if value.wish not in renamed:
                renamed[value.wish] = self._names.fresh(value.wish)
            self._wishes[value] = renamed[value.wish]

    def _predecessors(self, owner: Value) -> list[Value]:
        """List the values that an output successively overwrote in the file."""
        found: list[Value] = []
        if owner in self._alone:
            return found
        value: Value | None = owner
        while value is not None and value.place in self._in_place:
            value = next((used for used in value.inputs if used.wish == owner.wish), None)
            found += [] if value is None else [value]
        return found

    def _name(self, position: int, value: Value) -> None:
        names, wish = self._tensors, self._wishes[value]
        memory = self._memory.get(wish)
        same = any(names[u] == wish and u.spec == value.spec for u in value.inputs)
        if value.op in ALIASES:
            source = self._memory[names[value.inputs[0]]]
            again = memory is source and self._shapes[wish] == value.spec
            if again and value.view:
                self._omitted.add(value)
            fits = again and (value.view or same)
            self._place(value, wish if fits else self._free(wish), source)
        elif memory is not None and same and self._may_overwrite(position, value, memory):
            memory.values.clear()
            self._place(value, wish, memory)
        else:
            self._place(value, self._free(wish), _Memory())

    def _may_overwrite(self, position: int, value: Value, memory: _Memory) -> bool:
        if value.place not in self._in_place and value.op not in _ANYWHERE:
            return False
        return all(self._last_use.get(old, -1) <= position for old in memory.values)

    def _place(self, value: Value, name: str, memory: _Memory) -> None:
        self._tensors[value] = name
        self._memory[name] = memory
        self._shapes[name] = value.spec
        memory.values.append(value)

    def _free(self, wish: str) -> str:
        return wish if wish not in self._memory else self._names.fresh(wish)


@dataclass(eq=False)
class Value:
    """A tensor: an input of the network, or the output of an operator."""

    node: str
    """Name of the node, and of the operator to be written."""
    op: str
    wish: str
    """The preferred name of the tensor."""
    spec: Spec
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Options, without passlib's own attributes."""
    inputs: list[Value] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    place: str = ""
    """The place of the original in the file; empty if there is none."""
    frozen: bool = False
    view: bool = False
    """Whether this is only another name for memory that was written to."""


@dataclass(frozen=True)
class Draft:
    """A network before its tensors have names.

    Each operator comes after its inputs; ``names`` are those that the outputs must have.
    """

    inputs: list[Value]
    operators: list[Value]
    outputs: list[Value]
    names: list[str]


class _Drafter:
    """Converts a graph to the draft of a network.

    ``arrays`` are parameters by name; ``known`` has the operators of the file by place.
    """

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
        """Make the draft; its outputs get ``names`` if there are as many as in the file.

        Raises `GraphError` if the graph is not a valid network: a node has too few inputs, inputs
        of the wrong shape, ...; `UnsupportedError` if DLPrimitives lacks an operator or an option.
        """
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
        outputs = [
            self._data(self._source(entry, "an output of the graph"), "an output")
            for entry in self._heads
        ]
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
        needs = [
            [p for p, _, _ in node.inputs if self._nodes[p].op != VARIABLE] for node in self._nodes
        ]
        return depth_first_order(needs, [*first, *operators])

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
            inferred = infer(op, tuple(own.items()), tuple(value.spec for value in data))
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
            dtypes.NAMES.get(parse_int(attributes[notes.DTYPE]))
            if notes.DTYPE in attributes
            else FLOAT
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


_NEW = b'{\n  "": 0}'
"""The layout of new files: two spaces for each level."""


def write_network(
    graph: _core.Graph, arrays: Mapping[str, Any], template: Template | None, names: Sequence[str]
) -> bytes:
    """Write the network file of a graph; outputs keep ``names`` if their number is unchanged.

    Raises `GraphError` if the graph is not a valid network; `UnsupportedError` if DLPrimitives
    lacks something in the graph.
    """
    if template is not None and _unchanged(graph, arrays, template, names):
        return template.document.text
    document = template.document if template is not None else None
    network = document.network if document is not None else Network((), (), ())
    known = {operator.place: operator.type for operator in network.operators}
    known.update({item.place: VARIABLE for item in network.inputs})
    draft = _Drafter(graph, arrays, known).draft(names)
    in_place = frozenset(o.place for o in network.operators if set(o.outputs) & set(o.inputs))
    naming = name_tensors(draft, in_place)
    return _Writer(document, network, draft, naming).write()


def _unchanged(
    graph: _core.Graph, arrays: Mapping[str, Any], template: Template, names: Sequence[str]
) -> bool:
    """Whether the file already describes this graph."""
    document = template.document
    parameters = document.parameters
    fitting = all(
        (tuple(array.shape), array.dtype.name) == (parameters[name].shape, parameters[name].dtype)
        for name, array in arrays.items()
        if name in parameters
    )
    if not fitting or tuple(names) != document.outputs:
        return False
    return template.graph.equals(graph)


class _Writer:
    def __init__(
        self, document: Document | None, network: Network, draft: Draft, naming: Naming
    ) -> None:
        self._document = document
        self._originals = {operator.place: operator for operator in network.operators}
        self._inputs = {item.place: item for item in network.inputs}
        self._outputs = network.outputs
        self._draft = draft
        self._names, self._omitted = naming

    def write(self) -> bytes:
        root: Mapping[str, Any] = self._document.root if self._document is not None else {}
        parts = {
            "inputs": [self._input(value) for value in self._draft.inputs],
            "operators": [
                self._operator(value)
                for value in self._draft.operators
                if value not in self._omitted
            ],
            "outputs": self._output_list(),
        }
        fields = {
            key: keep(parts[key], root.get(key)) for key in ("inputs", "outputs", "operators")
        }
        if self._document is None:
            return print_json(fields, Layout(_NEW, parse(_NEW))) + b"\n"
        text = self._document.text
        if all(fields[key] is root[key] for key in fields):
            return text
        layout = Layout(text, root)
        printed = print_json({key: fields.get(key, root[key]) for key in root}, layout)
        start, end = self._document.root.start, self._document.root.end
        return text[:start] + printed + text[end:]

    def _input(self, value: Value) -> Any:
        original = self._inputs.get(value.place)
        name, spec = self._names[value], value.spec
        if original is not None and (original.name, original.spec) == (name, spec):
            return original.json
        json: dict[str, Any] = dict(original.json) if original is not None else {}
        if original is None or original.spec.shape != spec.shape:
            json["shape"] = list(spec.shape)
        if original is None or original.name != name:
            json["name"] = name
        dtype = original.spec.dtype if original is not None else "float32"
        if dtype != spec.dtype:
            json["dtype"] = file_name(spec.dtype)
        return json

    def _operator(self, value: Value) -> Any:
        original = self._originals.get(value.place)
        inputs = [self._names[used] for used in value.inputs]
        outputs = [self._names[value]]
        if original is None:
            json: dict[str, Any] = {"name": value.node, "type": value.op, "inputs": inputs}
            json["outputs"] = outputs
            if value.frozen:
                json["frozen"] = True
            chosen = _options(value, {}, {})
            if chosen:
                json["options"] = chosen
            if tuple(value.parameters) != parameter_names(value.node, (), len(value.parameters)):
                json["params"] = list(value.parameters)
            return json
        changes: dict[str, Any] = {}
        if original.name != value.node:
            changes["name"] = value.node
        if list(original.inputs) != inputs:
            changes["inputs"] = inputs
        if list(original.outputs) != outputs:
            changes["outputs"] = outputs
        if original.frozen != value.frozen:
            changes["frozen"] = value.frozen
        if dict(value.attributes) != dict(original.attributes):
            own = original.json.get("options")
            given = own if isinstance(own, dict) else {}
            changes["options"] = _options(value, given, original.attributes)
        if not _same_parameters(value, original):
            changes["params"] = list(value.parameters)
        return {**original.json, **changes} if changes else original.json

    def _output_list(self) -> list[Any]:
        if self._document is not None and not self._outputs:
            return []
        names = list(dict.fromkeys(self._names[value] for value in self._draft.outputs))
        if names == [output.name for output in self._outputs] and self._document is not None:
            listed: list[Any] = self._document.root["outputs"]
            return listed
        if len(names) == len(self._outputs):
            pairs = zip(self._outputs, names, strict=True)
            return [_renamed_output(output, name) for output, name in pairs]
        kept = {output.name: output for output in self._outputs}
        return [kept[name].json if name in kept else name for name in names]


def _same_parameters(value: Value, original: Operator) -> bool:
    count = len(value.parameters)
    if len(original.params) > count:
        return False
    return tuple(value.parameters) == parameter_names(value.node, original.params, count)


def _options(value: Value, given: Mapping[str, Any], before: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of an operator, unchanged ones in the file's own spelling.

    Options that the original parser ignores are kept too, unless a pass set them.
    """
    chosen: dict[str, Any] = {}
    for key, json in given.items():
        if key in value.attributes and value.attributes[key] != before.get(key):
            chosen[key] = _json_value(value, key)
        elif key in value.attributes or key not in before:
            chosen[key] = json
    known = [key for key in OPERATORS[value.op].options if key in value.attributes]
    rest = sorted(key for key in value.attributes if key not in known)
    for key in known + rest:
        if key not in chosen:
            chosen[key] = _json_value(value, key)
    return chosen


def _json_value(value: Value, key: str) -> Any:
    try:
        return options.json_value(value.op, key, value.attributes[key])
    except options.OptionError as error:
        raise UnsupportedError(f"node {value.node!r} ({value.op}): {error}") from error


def _renamed_output(output: Output, name: str) -> Any:
    if output.name == name:
        return output.json
    if output.loss_weight is not None:
        return (
            {**output.json, "name": name}
            if isinstance(output.json, dict)
            else {"name": name, "loss_weight": output.loss_weight}
        )
    if is_loss(output.name) and not is_loss(name):
        return {"name": name, "loss_weight": 1.0}
    return {**output.json, "name": name} if isinstance(output.json, dict) else name
