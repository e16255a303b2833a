"""Nodes of a graph as Python sees them, and the walk over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from typing import Any

from passlib.errors import printable, short_repr

VARIABLE = "null"
"""The operator name of a variable, in NNVM and MXNet."""

MOST_OUTPUTS = 1 << 16
"""Outputs that a file may state for a node, since each costs time and memory."""


class Entry(NamedTuple):
    """One output of a node, as another node or the graph uses it.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.Node("null", "x")
    >>> split = pl.Node("split", "parts", {"num_outputs": "2"}, [pl.Entry(x)], num_outputs=2)
    >>> pl.Symbol([pl.Entry(split, 1)]).list_outputs()
    ['parts_output1']
    """

    node: Node
    """The node whose output it is."""
    index: int = 0  # type: ignore[assignment]
    """Number of the output, from 0."""
    version: int = 0
    """How often the variable was mutated in place before this use (NNVM's third number)."""


@short_repr
class Node:
    """An operator or a variable. Immutable; shared by all symbols that reach it.

    Parameters
    ----------
    op : str
        Operator name, ``"null"`` for a variable.
    inputs : iterable of Entry
        In the operator's order.
    num_outputs : int
        Number of outputs, hidden ones included; 0 if unknown.
    control_deps : iterable of Node
        Nodes that must run before this one without giving it data.
    subgraphs : iterable
        Nested graphs (loop bodies, partitions).

    Raises
    ------
    AttributeError
        An attribute is set or deleted.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.Node("null", "x")
    >>> relu = pl.Node("relu", "y", inputs=[pl.Entry(x)])
    >>> pl.Symbol([pl.Entry(relu)]).eval(x=pl.nd.array([-1, 2]))[0].asnumpy()
    array([0., 2.], dtype=float32)
    """

    __slots__ = ("attrs", "control_deps", "inputs", "name", "num_outputs", "op", "subgraphs")

    op: str
    name: str
    attrs: Mapping[str, str]
    inputs: tuple[Entry, ...]
    num_outputs: int
    control_deps: tuple[Node, ...]
    subgraphs: tuple[Any, ...]

    def __init__(
        self,
        op: str,
        name: str,
        attrs: Mapping[str, str] | None = None,
        inputs: Iterable[Entry] = (),
        num_outputs: int = 0,
        control_deps: Iterable[Node] = (),
        subgraphs: Iterable[object] = (),
    ) -> None:
        _set_op(self, op)
        _set_name(self, name)
        _set_attrs(self, MappingProxyType(dict(attrs) if attrs else {}))
        _set_inputs(self, tuple(inputs))
        _set_num_outputs(self, num_outputs)
        _set_control_deps(self, tuple(control_deps))
        _set_subgraphs(self, tuple(subgraphs))

    @property
    def is_variable(self) -> bool:
        """Whether this node is an input or a parameter of the graph."""
        return self.op == VARIABLE

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"node {self.name!r} is immutable: {name!r} cannot be set; change graphs with a pass, "
            "or compose a new symbol"
        )

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __repr__(self) -> str:
        return f"<Node {self.name!r}: {printable(self.op)}, {len(self.inputs)} inputs>"


# The slots' own setters: a node is written once, while it is made.
_set_op = Node.__dict__["op"].__set__
_set_name = Node.__dict__["name"].__set__
_set_attrs = Node.__dict__["attrs"].__set__
_set_inputs = Node.__dict__["inputs"].__set__
_set_num_outputs = Node.__dict__["num_outputs"].__set__
_set_control_deps = Node.__dict__["control_deps"].__set__
_set_subgraphs = Node.__dict__["subgraphs"].__set__


def postorder(heads: Iterable[Node]) -> list[Node]:
    """List every node that the heads need, each after its inputs, in NNVM's order.

    Heads are taken in order; of a node, first the inputs in order, then the control
    dependencies. Linear and iterative, so a chain of a million nodes is no deep recursion.
    """
    done: set[int] = set()
    order: list[Node] = []
    for head in heads:
        stack = [head]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            waiting = [e.node for e in node.inputs if id(e.node) not in done]
            waiting += [d for d in node.control_deps if id(d) not in done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            done.add(id(node))
            order.append(node)
            stack.pop()
    return order
