"""Lowering of ARK models: from graphs on memory to one graph of values, then to ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark import schema
from passlib.families.ark.document import ordered
from passlib.families.ark.lowering.memory import Mail, Memory, Program, geometry
from passlib.families.ark.lowering.operators import TABLE
from passlib.families.ark.resolve import Resolved, Resolver
from passlib.families.ark.tensors import Tensor, numpy_type
from passlib.graph.attributes import blame, parse_position
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import Graph, Lowered, TypeSpec, lower_graph
from passlib.lowering.types import Value


@dataclass
class Functional:
    """A graph of values, with the tensors of its inputs.

    ``source_of`` has the original node of each node that computes, ``entry_of`` the values of the
    outputs of original nodes.
    """

    entries: tuple[Entry, ...] = ()
    variables: dict[str, Tensor] = field(default_factory=dict)
    source_of: dict[Node, Node] = field(default_factory=dict)
    entry_of: dict[tuple[Node, int], Entry] = field(default_factory=dict)
    _nodes: list[Node] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        """Return all nodes, each after its inputs."""
        return list(self._nodes)


def resolve_all(graph: Graph) -> list[Resolved]:
    """Resolve the nodes of a graph, each after its inputs."""
    nodes = _listed(graph)
    position = {id(node): i for i, node in enumerate(nodes)}
    needs = [
        [position[id(n)] for n in (*(e.node for e in node.inputs), *node.control_deps)]
        for node in nodes
    ]
    order = ordered(needs, lambda i: blame(nodes[i]))
    resolver = Resolver()
    return [resolver.resolve(nodes[i]) for i in order]


def _listed(graph: Graph) -> list[Node]:
    """Return the nodes, including those reached only through control dependencies."""
    nodes = graph.nodes()
    known = {id(node) for node in nodes}
    for node in nodes:  # grows during the loop
        for source in (*(entry.node for entry in node.inputs), *node.control_deps):
            if id(source) not in known:
                known.add(id(source))
                nodes.append(source)
    return nodes


def functionalise(graphs: Sequence[Graph], ranks: Sequence[int] | None = None) -> Functional:
    """Convert graphs on memory to one graph of values.

    There is one graph, or those of all ``ranks`` of a job; then names of variables have prefixes
    such as ``rank0/``. Raises `GraphError` if nodes do not fit together, or ranks wait for each
    other forever; `UnsupportedError` if an operator communicates and ``ranks`` is not given, or
    memory is used as another type.
    """
    made = Functional()
    programs = []
    for number, graph in enumerate(graphs):
        resolved = resolve_all(graph)
        tensors = [t for one in resolved for t in (*one.reads, *one.writes, *one.results)]
        memory = Memory(tensors)
        memory.nodes = made._nodes
        heads = {(entry.node, entry.index) for entry in graph.entries}
        rank = _rank(graph) if ranks is None else ranks[number]
        prefix = "" if ranks is None else f"rank{rank}/"
        programs.append(Program(rank, resolved, memory, heads, prefix))
    mail = None if ranks is None else Mail(programs)
    for program in programs:
        _variables(made, program)
    if mail is None:
        for one in programs[0].resolved:
            _step(made, programs[0], one, None)
    else:
        mail.run(lambda program, one: _step(made, program, one, mail))
    made.entries = tuple(
        made.entry_of[entry.node, entry.index]
        if (entry.node, entry.index) in made.entry_of
        else _late(made, program, entry)
        for graph, program in zip(graphs, programs, strict=True)
        for entry in graph.entries
    )
    return made


def _rank(graph: Graph) -> int:
    """Return the rank that a graph is for; -1 if unknown."""
    text = str(getattr(graph, "attributes", {}).get("Rank", ""))
    rank = parse_position(text)
    return -1 if rank is None else rank


def _variables(made: Functional, program: Program) -> None:
    for one in program.resolved:
        if not one.node.is_variable:
            continue
        name = program.prefix + one.node.name
        variable = Node(VARIABLE, name, one.node.attrs, (), 1)
        made._nodes.append(variable)
        made.source_of[variable] = one.node
        made.variables[name] = one.results[0]
        made.entry_of[one.node, 0] = Entry(variable)
        program.memory.write(one.results[0], Entry(variable), one.node)


def _step(made: Functional, program: Program, one: Resolved, mail: Mail | None) -> None:
    """Convert one op."""
    node, memory = one.node, program.memory
    if node.is_variable or node.op == "Noop":
        return
    if one.virtual:
        if (node, 0) in program.heads:
            made.entry_of[node, 0] = memory.read(one.results[0], node)
        return
    operator = schema.find(node.op)
    if operator is not None and operator.effects:
        if mail is None:
            raise UnsupportedError(
                f"{blame(node)}: communicates with other ranks; lower the files of all ranks "
                "together with passlib.families.ark.lower_ranks"
            )
        if node.op == "SendDone":
            sent = node.inputs[0]
            made.entry_of[node, 0] = made.entry_of[sent.node, sent.index]
            return
        for index, entry in enumerate(mail.perform(program, one)):
            made.entry_of[node, index] = entry
        return
    for tensor in (*one.reads, *one.writes):
        if tensor.rank not in (-1, program.rank) and program.rank >= 0:
            raise UnsupportedError(
                f"{blame(node)}: uses memory of rank {tensor.rank}, which can be lowered only in "
                "operators that communicate"
            )
    inputs = [memory.read(tensor, node) for tensor in one.reads]
    if len(one.writes) != 1 or len(one.results) != 1:
        raise UnsupportedError(
            f"{blame(node)}: no lowering to ONNX is known for the ark operator {node.op!r}"
        )
    attrs = {**node.attrs, **geometry(one.writes[0])}
    computed = Node(node.op, program.prefix + node.name, attrs, inputs, 1)
    made._nodes.append(computed)
    made.source_of[computed] = node
    made.entry_of[node, 0] = Entry(computed)
    memory.write(one.writes[0], Entry(computed), node)


def _late(made: Functional, program: Program, entry: Entry) -> Entry:
    for one in program.resolved:
        if one.node is entry.node and entry.index < len(one.results):
            return program.memory.read(one.results[entry.index], entry.node)
    raise GraphError(f"output {entry.index} of {blame(entry.node)} is not computed")


def lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower the model of one rank; ARK has no training mode.

    Raises `GraphError` if an input differs from its declared type and shape, or nodes do not fit
    together; `UnsupportedError` if an operator has no faithful translation, for example because it
    communicates with other ranks.
    """
    return _lower(functionalise([graph]), inputs, params, train=train)


def lower_ranks(
    symbols: Sequence[PlainGraph],
    inputs: Mapping[str, TypeSpec] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> Lowered:
    """Lower the models of all ranks of a job, in any order, to one graph, including their messages.

    The outputs of the first symbol come first, then those of the second, and so on. Raises the
    errors of `lower`, and `GraphError` if a rank is missing or given twice, or ranks wait for each
    other.

    Parameters
    ----------
    inputs : mapping of str to TypeSpec, optional
        Variables that are fed at run time, with names such as ``rank0/tensor``; by default all
        that are not in ``params``.
    params : mapping of str to numpy.ndarray, optional
        Variables that become constants.
    """
    ranks, worlds = [], set()
    for symbol in symbols:
        ranks.append(int(symbol.attributes.get("Rank", "0")))
        worlds.add(int(symbol.attributes.get("WorldSize", "1")))
    if len(worlds) != 1 or sorted(ranks) != list(range(max(worlds))):
        raise GraphError(
            f"expected the models of all ranks of one job, not of ranks {sorted(ranks)} in jobs of "
            f"{sorted(worlds)} ranks"
        )
    made = functionalise(symbols, ranks)
    given = params or {}
    specs = inputs
    if specs is None:
        specs = {n: TypeSpec(None, None) for n in made.variables if n not in given}
    return _lower(made, specs, given, train=False)


def _lower(
    made: Functional,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool,
) -> Lowered:
    specs = {name: _declared(made, name, spec) for name, spec in inputs.items()}
    for name, array in params.items():
        if name in made.variables and name not in inputs:
            _declared(made, name, TypeSpec(array.dtype, array.shape))
    lowered = lower_graph(made, TABLE, specs, params, train=train)
    values: dict[tuple[Node, int], Value] = {
        key: lowered.value_of[entry.node, entry.index]
        for key, entry in made.entry_of.items()
        if (entry.node, entry.index) in lowered.value_of
    }
    sources = {name: made.source_of.get(node, node) for name, node in lowered.source_of.items()}
    return replace(lowered, value_of=values, source_of=sources)


def _declared(made: Functional, name: str, spec: TypeSpec) -> TypeSpec:
    """Return the declared type and shape of an input, with which a given one must agree."""
    tensor = made.variables.get(name)
    if tensor is None:
        return spec  # an unknown name, which lower_graph reports
    dtype = numpy_type(tensor.dtype, f"input {name!r}")
    if spec.dtype is not None and spec.dtype != dtype:
        raise GraphError(
            f"input {name!r} is {spec.dtype}, but the model declares {tensor.dtype} ({dtype})"
        )
    shape = spec.shape
    if shape is not None and (
        len(shape) != len(tensor.shape)
        or any(s not in (None, t) for s, t in zip(shape, tensor.shape, strict=True))
    ):
        raise GraphError(f"input {name!r} has shape {shape}, but the model declares {tensor.shape}")
    return TypeSpec(dtype, tensor.shape)
