"""Models and types for running ONNX graphs: both come from writing them, so writing is below."""

from __future__ import annotations

__all__: list[str] = []
