"""Running graphs: ONNX Runtime for built-in operators, loaded libraries for their own."""

from __future__ import annotations

from passlib.runtime.export import save_onnx
from passlib.runtime.session import Session, run
from passlib.runtime.settings import Settings

__all__ = ["Session", "Settings", "run", "save_onnx"]
