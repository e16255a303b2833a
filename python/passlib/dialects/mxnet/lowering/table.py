"""The one table of MXNet operators that can be lowered to ONNX."""

from __future__ import annotations

from passlib.lowering import Lowerings

__all__ = ["table"]

table = Lowerings("mxnet")
