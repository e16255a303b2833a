"""The time of each node in ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.errors import PasslibError
from passlib.files.optional import require

_ROUNDS: Final = 3
_KERNEL: Final = "_kernel_time"


def profile(model: bytes, inputs: Mapping[str, Any], folder: Path) -> list[tuple[str, float]]:
    """Run a model three times without optimizations.

    ``folder``: for the file that ONNX Runtime writes. Result: for each run of a node its name and
    the time in seconds. Raises `PasslibError` if ONNX Runtime does not run the model.
    """
    runtime: Any = require("onnxruntime", extra="run")
    options = runtime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        known = {value.name for value in session.get_inputs()}
        feeds = {name: np.asarray(value) for name, value in inputs.items() if name in known}
        for _ in range(_ROUNDS):
            session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    except Exception as error:  # ONNX Runtime has no common base of its exceptions
        raise PasslibError(f"ONNX Runtime does not run the model: {error}") from error
    return [
        (event["name"].removesuffix(_KERNEL), event["dur"] / 1e6)
        for event in events
        if event.get("cat") == "Node" and event["name"].endswith(_KERNEL)
    ]
