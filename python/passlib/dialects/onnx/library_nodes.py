"""The operators of loaded libraries that nodes of ONNX graphs may have; see docs/onnxruntime.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import passlib._core as _core
from passlib.dialects.operator_types import Rules

OPERATORS: Final[dict[str, Rules]] = {}
"""The known operators by name; `add` adds one."""


def add(rules: Rules) -> None:
    """Make an operator known; it replaces any other of its name."""
    OPERATORS[rules.name] = rules


def known() -> Mapping[str, _core.CustomOp]:
    """Return the operators by name."""
    return {name: rules.core for name, rules in OPERATORS.items()}
