"""The first node at which two models differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from passlib import dialects
from passlib.errors import PasslibError, printable
from passlib.graph.node import Entry
from passlib.model import Model
from passlib.pages import origin_of, pair_nodes
from passlib.workbench.numbers import Difference, Tolerance, difference
from passlib.workbench.parts import outputs_of, with_outputs

Fed = tuple[Model, Mapping[str, Any]]


@dataclass(frozen=True)
class NodeDifference:
    """A node whose value differs, while the values before it agree.

    Attributes
    ----------
    name, op : str
        Of the node, in the second model.
    difference : Difference
    compared : int
        Number of values that both models have and that were compared.
    """

    name: str
    op: str
    difference: Difference
    compared: int

    def __str__(self) -> str:
        return printable(
            f"first different node: {self.name} ({self.op}), {self.difference.what}, "
            f"absolute {self.difference.absolute:.3g}; {self.compared} values compared"
        )


def first_difference(first: Fed, second: Fed, tolerance: Tolerance) -> NodeDifference | None:
    """Find the first node, in the second model's order, whose value differs.

    Values belong together as their nodes do, see `diff`, or where a rule made the node of others,
    as what it stands for; a value that one model alone has is not compared. All values before the
    first different one agree, so that node, or what stands between it and the values before it, is
    what computes something else.

    Parameters
    ----------
    first, second : (Model, mapping of str to array)
        Each model with its inputs.
    tolerance : Tolerance

    Returns
    -------
    NodeDifference or None
        None if no value that both have differs.
    """
    left, right = values_of(*first), values_of(*second)
    nodes = {node.name: node for node in second[0].symbol.nodes()}
    old = pair_nodes(first[0].symbol, second[0].symbol).old
    common = {}
    for name, index in right:
        node = nodes[name]
        # A node that others were folded into has its name from before, and their value.
        stands_for = origin_of(node)[-1:] or ([old[node].name] if node in old else [])
        if stands_for and (stands_for[0], index) in left:
            common[name, index] = stands_for[0], index
    for (name, index), other in common.items():
        label = f"{name}:{index}" if index else name
        found = difference(label, left[other], right[name, index], tolerance)
        if not found.equal:
            return NodeDifference(name, nodes[name].op, found, len(common))
    return None


def values_of(model: Model, inputs: Mapping[str, Any]) -> dict[tuple[str, int], Any]:
    """Compute the values of all nodes.

    Parameters
    ----------
    model : Model
    inputs : mapping of str to array

    Returns
    -------
    dict of (str, int) to array
        By name of the node and number of the output, in the order of the graph. Values that cannot
        be outputs of a model are left out.
    """
    visible = dialects.find(model.dialect).visible_outputs
    entries = [
        Entry(node, index)
        for node in model.symbol.nodes()
        if not node.is_variable
        for index in range(visible(node))
    ]
    found: dict[tuple[str, int], Any] = {}
    pending = [entries]
    while pending:
        part = pending.pop()
        if not part:
            continue
        try:
            values = outputs_of(with_outputs(model, part), inputs)
        except PasslibError:
            # Some value is of a kind that no output has: the parts tell which.
            if len(part) > 1:
                middle = len(part) // 2
                pending += [part[middle:], part[:middle]]
            continue
        found.update({(e.node.name, e.index): v for e, v in zip(part, values, strict=True)})
    order = {(e.node.name, e.index): number for number, e in enumerate(entries)}
    return dict(sorted(found.items(), key=lambda item: order[item[0]]))
