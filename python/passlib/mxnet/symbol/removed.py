"""Which of the variables that a pass removed were parameters."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import passlib._core as _core
from passlib.graph.node import Node
from passlib.mxnet.symbol.composition.composable import Composable


def removed_parameters(
    symbol: Composable, after: _core.Graph, gone: Sequence[str], lent: Collection[str]
) -> set[str]:
    """Return those of the removed variables that were parameters.

    These are the variables that only parameters can be, by the operators that used them, and those
    that the pass computed with: all their users are gone as well, and depended on arrays alone.

    Parameters
    ----------
    symbol : Composable
        The graph before the pass.
    after : _core.Graph
    gone : sequence of str
        Variables that ``after`` does not have.
    lent : collection of str
        Variables whose arrays the pass could read.
    """
    found = symbol.family.parameters_among(symbol.graph, set(gone))
    rest = {name for name in gone if name in lent and name not in found}
    if not rest:
        return found
    remaining = {node.name for node in after.nodes()}
    constant: dict[Node, bool] = {}
    folded = dict.fromkeys(rest, True)
    for node in symbol.nodes():
        if node.is_variable:
            constant[node] = node.name in lent
            continue
        constant[node] = all(constant[entry.node] for entry in node.inputs)
        for entry in node.inputs:
            if entry.node.is_variable and entry.node.name in folded:
                folded[entry.node.name] &= constant[node] and node.name not in remaining
    return found | {name for name, was in folded.items() if was}
