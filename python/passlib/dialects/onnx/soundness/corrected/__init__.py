"""Types that ONNX Runtime computes where ONNX's inference finds others."""

from __future__ import annotations

from passlib.dialects.onnx.soundness.corrected.corrections import (
    Corrections,
    corrections,
    put,
    questionable,
    questionable_calls,
)

__all__ = ["Corrections", "corrections", "put", "questionable", "questionable_calls"]
