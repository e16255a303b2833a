"""Small ONNX models written as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper, parser

import passlib as pl
from passlib.dialects.onnx.nested import used_by


def constant(name: str, text: str, kind: str = "float") -> str:
    """Return the text of a Constant."""
    return f"{name} = Constant <value = {kind} {{{text}}}> () "


def load(path: Path, signature: str, body: str, weights: Mapping[str, Any]) -> pl.Model:
    """Save a model with the weights that it reads, and load it."""
    header = '<ir_version: 8, opset_import: ["" : 18]>'
    model = parser.parse_model(f"{header} g {signature} {{ {body} }}")
    used = {name for node in model.graph.node for name in used_by(node)}
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in weights.items() if name in used
    )
    onnx.save(model, path)
    return pl.load(path)
