"""MXNet's operators: inputs, outputs, parameters, and the inputs that they write to."""

from __future__ import annotations

from passlib.mxnet.schema.operator import Operator
from passlib.mxnet.schema.registry import find, generation, names, register

__all__ = ["Operator", "find", "generation", "names", "register"]
