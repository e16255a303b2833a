"""Shapes and element types of nodes whose operators belong to a library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

import passlib._core as _core
from passlib.errors import GraphError, OperatorError, UnsupportedError
from passlib.graph.attributes import Attributes, blame
from passlib.graph.node import Node
from passlib.lowering.types import Shape, TypeSpec, Value, merged, type_of


class Rules(Protocol):
    """Arity, shapes and types of an operator that a library registered.

    Methods raise `OperatorError` where the library's own functions fail.
    """

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def core(self) -> _core.CustomOp:
        """The operator in the core."""

    @property
    def is_subgraph(self) -> bool:
        """Whether inputs and outputs are those of the graph that a node carries."""

    @property
    def infers(self) -> bool:
        """Whether the operator itself infers arity, shapes and types."""

    def arity(self, attributes: Mapping[str, str], node_name: str = "") -> tuple[int, int]:
        """Return the numbers of inputs and outputs."""

    def mutated_inputs(self, attributes: Mapping[str, str], node_name: str = "") -> tuple[int, ...]:
        """Return the positions of the inputs that the operator writes to."""

    def infer_shapes(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[Shape | None],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[Shape | None], list[Shape | None]]:
        """Infer the shapes of inputs and outputs."""

    def infer_types(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[np.dtype | None],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[np.dtype | None], list[np.dtype | None]]:
        """Infer the element types of inputs and outputs."""


SUBGRAPH = "subgraph_sym_json"
"""The attribute that passes the subgraph of a node to its operator."""

EXTRA_INPUTS = "__ext_extra_inputs__"
"""The attribute that counts the inputs beyond those of the subgraph."""

_DEEPEST = 8
"""Nested subgraphs are inferred again whenever more is known about the surrounding graph."""

InferGraph: TypeAlias = (
    "Callable[[Any, Mapping[str, Shape], Mapping[str, np.dtype]], "
    "Mapping[Node, tuple[TypeSpec, ...]]]"
)
"""Infers a subgraph from partial types of its variables, like `passlib.dialects.infer`."""

Types: TypeAlias = "tuple[list[TypeSpec], list[TypeSpec]]"


def handed_attributes(node: Node) -> dict[str, str]:
    """Return the attributes that a node's operator gets, including the node's subgraph."""
    attributes = dict(node.attrs)
    if node.subgraphs:
        subgraph: Any = node.subgraphs[0]
        attributes[SUBGRAPH] = subgraph.graph.print(pretty=True, attributes={})
    return attributes


def written_inputs(node: Node, operator: Rules, attributes: Mapping[str, str]) -> tuple[int, ...]:
    """Return the inputs that a node may write to: those of a subgraph are its auxiliary states.

    ``attributes``: see `handed_attributes`.
    """
    if operator.infers:
        return tuple(operator.mutated_inputs(attributes, node.name))
    if not node.subgraphs:
        return ()
    subgraph: Any = node.subgraphs[0]
    states = frozenset(subgraph.list_auxiliary_states())
    return tuple(i for i, name in enumerate(subgraph.list_inputs()) if name in states)


def infer_node(
    node: Node,
    operator: Rules,
    attributes: Mapping[str, str],
    inputs: Sequence[TypeSpec],
    infer: InferGraph,
) -> Types:
    """Infer the types of a node's inputs and outputs.

    An operator that runs a subgraph and has no functions of its own has the types of the subgraph.
    ``attributes``: see `handed_attributes`. ``inputs``: known types of the inputs; the operator may
    add to them. ``infer``: for subgraphs. Raises `GraphError` if the operator contradicts what is
    known of its inputs; `OperatorError` if the operator refuses its inputs although all of them are
    known.
    """
    if not operator.infers:
        return _of_subgraph(node, inputs, infer)
    num_inputs, count = operator.arity(attributes, node.name)
    if num_inputs != len(inputs):
        raise GraphError(
            f"{blame(node)}: has {len(inputs)} inputs, the operator takes {num_inputs}"
        )
    known_shapes = [spec.shape for spec in inputs]
    known_types = [spec.dtype for spec in inputs]
    shapes: tuple[list[Shape | None], list[Shape | None]] = (known_shapes, [None] * count)
    if not inputs or any(shape is not None for shape in known_shapes):
        complete = all(shape is not None and None not in shape for shape in known_shapes)
        try:
            shapes = operator.infer_shapes(attributes, known_shapes, count, node.name)
        except OperatorError:
            # An operator may refuse unknown inputs.
            if complete:
                raise
    types: tuple[list[np.dtype | None], list[np.dtype | None]] = (known_types, [None] * count)
    try:
        types = operator.infer_types(attributes, known_types, count, node.name)
    except OperatorError:
        if all(spec.dtype is not None for spec in inputs):
            raise
    outputs = [TypeSpec(*pair) for pair in zip(types[1], shapes[1], strict=True)]
    return _joined(node, inputs, shapes[0], types[0]), outputs


def refusals(
    operators: Mapping[str, Rules], outputs: Mapping[Node, Sequence[TypeSpec]]
) -> Iterator[str]:
    """Yield the errors of operators for inputs of which some are unknown.

    Inference goes on after an operator that refuses unknown inputs; this asks again for the reason.
    ``outputs``: the result of inference.
    """
    for node, specs in outputs.items():
        operator = operators.get(node.op)
        if operator is None or not operator.infers or all(spec.shape is not None for spec in specs):
            continue
        inputs = [type_of(entry, outputs) for entry in node.inputs]
        shapes, types = [spec.shape for spec in inputs], [spec.dtype for spec in inputs]
        if inputs and all(shape is None for shape in shapes):
            continue
        attributes = handed_attributes(node)
        try:
            operator.infer_shapes(attributes, shapes, len(specs), node.name)
            operator.infer_types(attributes, types, len(specs), node.name)
        except OperatorError as error:
            yield str(error)


def _joined(
    node: Node,
    known: Sequence[TypeSpec],
    shapes: Sequence[Shape | None],
    types: Sequence[np.dtype | None],
) -> list[TypeSpec]:
    """Join known types of the inputs with the operator's."""
    joined = []
    for index, (spec, shape, dtype) in enumerate(zip(known, shapes, types, strict=True)):
        if spec.dtype is not None and dtype is not None and spec.dtype != dtype:
            raise GraphError(
                f"{blame(node)}: input {index} ({node.inputs[index].node.name!r}) is {spec.dtype}, "
                f"the operator asks for {dtype}"
            )
        joined.append(TypeSpec(spec.dtype or dtype, merged(node, index, spec.shape, shape)))
    return joined


def _of_subgraph(node: Node, inputs: Sequence[TypeSpec], infer: InferGraph) -> Types:
    if not node.subgraphs:
        raise GraphError(
            f"{blame(node)}: the operator runs a subgraph, and the node has none; partitioners "
            "make nodes that have one"
        )
    _require_shallow(node)
    subgraph: Any = node.subgraphs[0]
    names = subgraph.list_inputs()
    extra = Attributes(node).int(EXTRA_INPUTS, 0)
    if extra < 0 or len(inputs) != len(names) + extra:
        raise GraphError(
            f"{blame(node)}: has {len(inputs)} inputs, but its subgraph has {len(names)} and "
            f"attribute {EXTRA_INPUTS!r} adds {extra}"
        )
    pairs = list(zip(names, inputs, strict=False))
    try:
        found = infer(
            subgraph,
            {name: spec.shape for name, spec in pairs if spec.shape is not None},
            {name: spec.dtype for name, spec in pairs if spec.dtype is not None},
        )
    except GraphError as error:
        raise GraphError(f"{blame(node)}: in its subgraph: {error}") from error
    variables = {inner.name: specs[0] for inner, specs in found.items() if inner.is_variable}
    completed = [variables[name] for name in names] + list(inputs[len(names) :])
    return completed, [type_of(entry, found) for entry in subgraph.entries]


def _require_shallow(node: Node) -> None:
    """Refuse deeply nested subgraphs, because inference recurses into them."""
    level = [node]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            for subgraph in outer.subgraphs
            for inner in subgraph.nodes()
            if inner.subgraphs
        ]
        if not level:
            return
    raise UnsupportedError(f"{blame(node)}: subgraphs lie more than {_DEEPEST} deep in each other")


class CustomTypes:
    """Completes the types around nodes of libraries' operators, with a cache of their answers.

    ``operators``: those that occur in the graph. ``infer``: for subgraphs.
    """

    def __init__(self, operators: Mapping[str, Rules], infer: InferGraph) -> None:
        self._operators = operators
        self._infer = infer
        self._attributes: dict[Node, dict[str, str]] = {}
        self._told: dict[Node, tuple[list[TypeSpec], Types]] = {}

    def complete(self, node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Fill in types of inputs and outputs, in place.

        ``node``: of one of the operators. ``inputs``, ``outputs``: ``outputs`` may be fewer than
        the node has. Errors are those of `infer_node`.
        """
        if not outputs:
            return
        known = [TypeSpec(value.dtype, value.shape) for value in inputs]
        told = self._told.get(node)
        if told is None or told[0] != known:
            told = self._told[node] = known, self._ask(node, known)
        completed, found = told[1]
        for value, spec in zip(inputs, completed, strict=True):
            value.dtype, value.shape = spec
        for value, spec in zip(outputs, found, strict=False):
            value.dtype = value.dtype if spec.dtype is None else spec.dtype
            value.shape = value.shape if spec.shape is None else spec.shape

    def _ask(self, node: Node, known: Sequence[TypeSpec]) -> Types:
        if node not in self._attributes:
            self._attributes[node] = handed_attributes(node)
        operator, attributes = self._operators[node.op], self._attributes[node]
        try:
            return infer_node(node, operator, attributes, known, self._infer)
        except UnsupportedError:
            # As with built-in operators, types that cannot be translated stay unknown.
            return list(known), []
