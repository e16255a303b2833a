"""A table of a symbol's operators: shapes, numbers of parameters, inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from passlib.errors import printable
from passlib.graph.node import Node
from passlib.lowering import Shape
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.viz.shapes import known_shapes, require_symbol, text_of

_LABEL = "label"
"""How the names of inputs end that only training needs."""

_TITLES = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")


def print_summary(
    symbol: Symbol,
    shape: Mapping[str, Sequence[int]] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print a table of the operators of a symbol.

    Parameters
    ----------
    symbol : Symbol
    shape : mapping of str to shape, optional
        Of the inputs. Without it shapes and numbers of parameters stay unknown.
    line_length : int
        Number of characters of a line.
    positions : sequence of float
        Where the four columns end; numbers up to 1 are shares of the line.

    Raises
    ------
    TypeError
        ``symbol`` is none.
    GraphError
        A shape is given for a variable that does not exist, or shapes contradict each other.

    Examples
    --------
    >>> import passlib as mx
    >>> y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    >>> mx.viz.print_summary(y, shape={"x": (1, 3)}, line_length=80)
    ____...
    Layer (type) ...
    Total params: 8
    ...
    """
    nodes = require_symbol(symbol).nodes()
    shapes = known_shapes(symbol, shape)
    ends = [int(p * line_length) if max(positions) <= 1 else int(p) for p in positions]
    data = set(shape or ()) or _data(symbol)
    states = set(symbol.list_auxiliary_states())
    total = 0
    counted: set[Node] = set()
    print("_" * line_length)  # noqa: T201, the function prints
    _print_row(_TITLES, ends)
    print("=" * line_length)  # noqa: T201
    for node in nodes:
        if node.is_variable and node.name not in data:
            continue
        parameters = [
            entry.node
            for entry in node.inputs
            if entry.node.is_variable
            and entry.node.name not in data | states
            and not entry.node.name.endswith(_LABEL)
        ]
        number = sum(_size(shapes.get(p)) for p in parameters if p not in counted)
        counted.update(parameters)
        total += number
        before = [e.node.name for e in node.inputs if not e.node.is_variable or e.node.name in data]
        kind = "null" if node.is_variable else node.op
        first = (
            f"{node.name}({kind})",
            text_of(shapes.get(node)),
            str(number),
            *(before or [""])[:1],
        )
        _print_row(first, ends)
        for name in before[1:]:
            _print_row(("", "", "", name), ends)
        print(("=" if node is nodes[-1] else "_") * line_length)  # noqa: T201
    print(f"Total params: {total}")  # noqa: T201
    print("_" * line_length)  # noqa: T201


def _data(symbol: Symbol) -> set[str]:
    """Guess which variables are inputs: those that no operator made as its parameter."""
    made = {
        entry.node.name
        for node in symbol.nodes()
        for entry in node.inputs
        if entry.node.is_variable and entry.node.name.startswith(f"{node.name}_")
    }
    return set(symbol.list_arguments()) - made


def _size(shape: Shape | None) -> int:
    sizes = [size for size in shape or () if size is not None]
    return math.prod(sizes) if shape is not None and len(sizes) == len(shape) else 0


def _print_row(fields: Sequence[Any], ends: Sequence[int]) -> None:
    line = ""
    for field, end in zip(fields, ends, strict=False):
        line = (line + str(field))[:end].ljust(end)
    print(printable(line))  # noqa: T201
