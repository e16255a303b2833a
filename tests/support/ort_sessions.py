"""Sessions of plain ONNX Runtime with the operators of libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import passlib as pl
from passlib.files.optional import require


def options_for(*libraries: Path) -> Any:
    """Return the options of sessions with the operators of some libraries."""
    onnxruntime: Any = require("onnxruntime", extra="run")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("passlib.libraries", ":".join(map(str, libraries)))
    options.register_custom_ops_library(pl.ort_library())
    return options


def session_of(model: Path | bytes, *libraries: Path) -> Any:
    """Open a model with the operators of some libraries."""
    onnxruntime: Any = require("onnxruntime", extra="run")
    return onnxruntime.InferenceSession(model, options_for(*libraries))
