"""Operators of a file whose names have one std::hash: bench/growth.py measures the time."""

from __future__ import annotations

import passlib
from colliding_names import colliding, named_operators


def test_operators_that_collide() -> None:
    text = named_operators(colliding(8))
    symbol = passlib.sym.load_json(text)
    assert symbol.list_arguments() == ["x"]
    assert len(symbol.graph.operators()) == 257
    assert passlib.sym.load_json(symbol.tojson()).tojson() == symbol.tojson()
