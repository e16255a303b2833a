"""How models look: one line, a table of their operators, a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.dialects.protocol import Described
from passlib.errors import counted, listed, short_repr, sized
from passlib.graph.node import VARIABLE
from passlib.graph.tables import Table
from passlib.lowering import TypeSpec
from passlib.lowering.types import shape_text

_SHOWN = 4
"""Inputs and outputs in a line."""


def described(
    dialect: str,
    inputs: Sequence[Described],
    outputs: Sequence[str],
    operators: int,
    weights: Sequence[Any],
) -> str:
    """Describe a model in one line.

    ``inputs``: as the model states them. ``operators``: the number of nodes that compute, those
    of nested graphs included.
    """
    stated = [" ".join(filter(None, (each.name, *_texts(each)))) for each in inputs]
    count = sum(int(np.prod(array.shape)) for array in weights)
    return (
        f"<Model {dialect}: inputs {listed(stated, _SHOWN)}; outputs {listed(outputs, _SHOWN)}; "
        f"{counted(operators, 'operator')}, {counted(len(weights), 'weight')} of "
        f"{count:,} element{'s' * (count != 1)}>"
    )


def page(title: str, inputs: Sequence[Described], outputs: Sequence[str], table: Table) -> str:
    """Return a title, a table of inputs and outputs, and another table, as HTML."""
    rows = [("input", each.name, *_texts(each)) for each in inputs]
    rows += [("output", name, "", "") for name in outputs]
    values = Table(("", "name", "type", "shape"), rows)
    return f"<p>{escape(title)}</p>{values._repr_html_()}{table._repr_html_()}"


def described_type(spec: TypeSpec | Described) -> str:
    """Spell element type and shape: ``float32 (1, 3)``; what is unknown is left out."""
    return " ".join(filter(None, _texts(spec)))


def _texts(spec: TypeSpec | Described) -> tuple[str, str]:
    """Spell element type and shape; empty where they are unknown."""
    dtype = spec.dtype
    if isinstance(dtype, np.dtype):
        dtype = "str" if dtype.kind in "OU" else dtype.name
    return dtype or "", "" if spec.shape is None else shape_text(spec.shape)


_UNUSED = "(no operator)"
_TITLES = ("operator", "count", "parameters", "size")


@dataclass(frozen=True)
class OperatorRow:
    """One operator.

    Attributes
    ----------
    operator : str
        Its name; ``(no operator)`` for weights that none uses.
    count : int
        Number of nodes, those of nested graphs included.
    parameters : int
        Elements of the weights that its nodes use; a weight counts for the first node that does.
    nbytes : int
        Bytes of these weights, sparse ones as if they were dense.
    """

    operator: str
    count: int
    parameters: int
    nbytes: int


@short_repr
@dataclass(frozen=True)
class Summary:
    """A table of a model's operators, which prints as text and is HTML in a notebook.

    Attributes
    ----------
    title : str
        What the model is, in one line.
    rows : tuple of OperatorRow
        The operators with the most bytes of weights first.
    """

    title: str
    rows: tuple[OperatorRow, ...]

    @property
    def total(self) -> OperatorRow:
        """The sums over all operators."""
        return OperatorRow(
            "total",
            sum(row.count for row in self.rows),
            sum(row.parameters for row in self.rows),
            sum(row.nbytes for row in self.rows),
        )

    @property
    def table(self) -> Table:
        """The rows as text, and the total."""
        rows = (*self.rows, self.total)
        return Table(
            _TITLES,
            [(r.operator, f"{r.count:,}", f"{r.parameters:,}", sized(r.nbytes)) for r in rows],
        )

    def __str__(self) -> str:
        return f"{self.title}\n\n{self.table}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.title)}</p>{self.table._repr_html_()}"


def summarized(title: str, graph: _core.Graph, weights: Mapping[str, Any]) -> Summary:
    """Count the operators of a graph and the weights that they use.

    ``weights``: by name of their variable.
    """
    count: Counter[str] = Counter()
    parameters: Counter[str] = Counter()
    size: Counter[str] = Counter()
    left = dict(weights)

    def use(name: str, operator: str) -> None:
        array = left.pop(name, None)
        if array is not None:
            elements = math.prod(array.shape)
            parameters[operator] += elements
            size[operator] += elements * np.dtype(array.dtype).itemsize

    nodes = graph.nodes()
    for node in nodes:
        if node.op != VARIABLE:
            for position, _, _ in node.inputs:
                use(nodes[position].name, node.op)
    for name in list(left):
        use(name, _UNUSED)
    pending = [graph]
    while pending:
        for operator, number in pending[-1].operators().items():
            if operator != VARIABLE:
                count[operator] += number
        pending += [nested for node in pending.pop().nodes() for nested in node.subgraphs]
    names = count.keys() | parameters.keys()
    rows = (OperatorRow(name, count[name], parameters[name], size[name]) for name in names)
    order = sorted(rows, key=lambda row: (-row.nbytes, -row.count, row.operator))
    return Summary(title, tuple(order))
