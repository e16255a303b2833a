"""Writing graphs as ONNX files: unchanged parts as they are in the file that was read."""

from __future__ import annotations

__all__: list[str] = []
