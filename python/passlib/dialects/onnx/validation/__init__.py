"""Checks of ONNX files: passlib's own, and ONNX's checker in a process of its own."""

from __future__ import annotations

__all__: list[str] = []
