"""Standard passes on the models of MXNet, NNVM and DLPrimitives."""

from __future__ import annotations

__all__: list[str] = []
