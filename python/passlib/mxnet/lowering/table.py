"""The table of MXNet operators that can be lowered to ONNX."""

from __future__ import annotations

from passlib.lowering import Lowerings
from passlib.mxnet.lowering.refused import reason

table = Lowerings(
    "mxnet",
    hint="if it belongs to a library, load that with passlib.library.load",
    reason=reason,
)
