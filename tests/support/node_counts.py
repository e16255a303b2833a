"""How many nodes of a kind a model has, before and after a pass."""

from __future__ import annotations

from collections import Counter

from passlib.model import Model
from passlib.symbol import Symbol


def operators(model: Model | Symbol) -> Counter[str]:
    """Count the nodes of each operator."""
    symbol = model.symbol if isinstance(model, Model) else model
    return Counter(node.op for node in symbol.nodes() if node.op != "null")


def norms(model: Model | Symbol) -> int:
    """Count the batch normalizations, whatever a dialect calls them."""
    return sum(n for op, n in operators(model).items() if "atch" in op and "orm" in op)
