"""The registry of MXNet operators: those of MXNet 1.9.1, and those of loaded libraries.

The table is MXNet 1.9.1's registry as the running program reports it (operators.json, written by
tests/interop/support/make_operators.py), without gradient nodes and operators that hold pointers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from passlib.mxnet.schema.operator import Operator


@cache
def _table() -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    text = Path(__file__).with_name("operators.json").read_text("utf-8")
    table: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for name, facts in json.loads(text).items():
        for alias in (name, *facts.get("aliases", ())):
            table[alias] = (name, facts)
    return table


_found: dict[str, Operator] = {}
_registered: dict[str, Operator] = {}
_generation = 0


def find(op: str) -> Operator | None:
    """Return the operator of a name or an alias; None if none is registered."""
    operator = _found.get(op)
    if operator is None:
        entry = _table().get(op)
        if entry is None:
            return None
        name, facts = entry
        operator = _found.get(name) or Operator(name, facts)
        _found[name] = _found[op] = operator
    return operator


def names() -> Iterator[str]:
    """Iterate over the names of all operators, aliases included."""
    yield from _table()
    yield from (name for name in _registered if name not in _table())


def register(operator: Operator) -> None:
    """Add an operator of a library; it replaces any other of its name."""
    global _generation  # noqa: PLW0603 (one registry a process, as there is one set of libraries)
    _registered[operator.name] = _found[operator.name] = operator
    _generation += 1


def generation() -> int:
    """Return the number of registrations so far; a table of all operators holds for one."""
    return _generation
