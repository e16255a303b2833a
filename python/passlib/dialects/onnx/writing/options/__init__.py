"""What a caller of `Model.save` may choose about an ONNX file."""

from __future__ import annotations

from passlib.dialects.onnx.writing.options.placement import Placement, placement_of
from passlib.dialects.onnx.writing.options.placing import place
from passlib.dialects.onnx.writing.options.version import converted

__all__ = ["Placement", "converted", "place", "placement_of"]
