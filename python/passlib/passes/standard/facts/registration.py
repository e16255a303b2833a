"""Tables of rules by operator, which decorators fill."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

R = TypeVar("R", bound=Callable[..., Any])

_UNEXPECTED: Final = (ArithmeticError, LookupError, TypeError, ValueError)


def registering(rules: dict[str, R]) -> Callable[..., Callable[[R], R]]:
    """Return a decorator that takes the names of operators and adds a rule for each of them.

    A rule that meets a node which cannot run, such as a Reshape to another number of elements,
    knows nothing of it: such a node may stand where no run gets to.
    """

    def for_operators(*names: str) -> Callable[[R], R]:
        def register(rule: R) -> R:
            @wraps(rule)
            def cautious(*arguments: Any) -> Any:
                try:
                    return rule(*arguments)
                except _UNEXPECTED:
                    return None

            made: Any = cautious
            rules.update(dict.fromkeys(names, made))
            return rule

        return register

    return for_operators
