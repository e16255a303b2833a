"""Tables of rules by operator, which decorators fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["registering"]

R = TypeVar("R")


def registering(rules: dict[str, R]) -> Callable[..., Callable[[R], R]]:
    """Return a decorator that takes the names of operators and adds a rule for each of them."""

    def for_operators(*names: str) -> Callable[[R], R]:
        def register(rule: R) -> R:
            rules.update(dict.fromkeys(names, rule))
            return rule

        return register

    return for_operators
