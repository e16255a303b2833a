"""The lowering functions of a dialect, by operator."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from passlib.lowering.operation import Operation
from passlib.lowering.types import Value

LoweringFunction = Callable[[Operation], "Value | Sequence[Value]"]
_F = TypeVar("_F", bound=LoweringFunction)


class Lowerings:
    """The lowering functions of one dialect, by operator name.

    Of an operator without one, messages state the result of ``reason``, or ``hint`` if it is None.
    """

    def __init__(
        self, dialect: str, hint: str = "", reason: Callable[[str], str | None] | None = None
    ) -> None:
        self.dialect = dialect
        self.hint = hint
        self.reason = reason
        self._functions: dict[str, LoweringFunction] = {}

    def register(self, *operators: str) -> Callable[[_F], _F]:
        """Register the decorated function for operators; raise `ValueError` if one is taken."""

        def decorate(function: _F) -> _F:
            for operator in operators:
                if operator in self._functions:
                    raise ValueError(f"{operator} is registered twice in {self.dialect}")
                self._functions[operator] = function
            return function

        return decorate

    def alias(self, name: str, operator: str) -> None:
        """Register the function of an operator under another name, which must be free."""
        self.register(name)(self._functions[operator])

    def fill(self, package: str, paths: Iterable[str]) -> None:
        """Import all modules of a package, which register their functions."""
        for module in pkgutil.walk_packages(paths, f"{package}."):
            importlib.import_module(module.name)

    def find(self, operator: str) -> LoweringFunction | None:
        """Return the function of an operator, or None."""
        return self._functions.get(operator)

    def why_missing(self, operator: str) -> str:
        """Return a sentence about an operator that has no function."""
        text = f"no lowering to ONNX is known for the {self.dialect} operator {operator!r}"
        why = self.reason(operator) if self.reason else None
        addition = why or self.hint
        return f"{text}{':' if why else ';'} {addition}" if addition else text

    def without(self, operators: Collection[str]) -> Lowerings:
        """Return the table without some operators: itself if it has none of them."""
        if self._functions.keys().isdisjoint(operators):
            return self
        rest = self.copy()
        for operator in operators:
            rest._functions.pop(operator, None)
        return rest

    def copy(self) -> Lowerings:
        """Return a table with the same functions."""
        made = Lowerings(self.dialect, self.hint, self.reason)
        made._functions = dict(self._functions)
        return made

    def operators(self) -> list[str]:
        """Return the names of all operators that can be lowered, sorted."""
        return sorted(self._functions)
