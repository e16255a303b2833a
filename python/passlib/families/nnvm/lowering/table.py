"""The table of NNVM's own operators that can be lowered to ONNX."""

from __future__ import annotations

from passlib.lowering import Lowerings

table = Lowerings("nnvm")
