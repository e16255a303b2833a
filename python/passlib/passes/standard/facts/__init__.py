"""What the standard passes know of ONNX graphs: nodes, constants, symbolic shapes and values."""

from __future__ import annotations

__all__: list[str] = []
