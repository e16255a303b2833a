"""Models before and after passes: their operators, and their results without optimization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser

import passlib

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '


def parsed(text: str) -> bytes:
    """Return the model of a text; one that does not begin with a head gets `HEAD`."""
    whole = text if text.lstrip().startswith("<") else HEAD + text
    data: bytes = parser.parse_model(whole).SerializeToString()
    return data


def weights(name: str, *shape: int) -> str:
    """Return the declaration of a weight with numbers between 0.5 and 2."""
    count = int(np.prod(shape))
    values = np.random.default_rng(count).uniform(0.5, 2, count)
    numbers = ", ".join(f"{item:.3f}" for item in values)
    return f"float[{', '.join(map(str, shape))}] {name} = {{{numbers}}}"


def after(data: bytes, passes: str, folder: Path, **options: Any) -> bytes:
    """Return a model after a pass or a pipeline, as a file that ONNX's checker accepts."""
    made = folder / "after.onnx"
    passlib.load(data).optimize_for(passes, **options).save(made)
    onnx.checker.check_model(str(made))
    return made.read_bytes()


def operators(data: bytes) -> Counter[str]:
    """Count the operators of a model by name, nested graphs included, without Constant."""
    count: Counter[str] = Counter()
    pending = [onnx.ModelProto.FromString(data).graph]
    while pending:
        graph = pending.pop()
        for node in graph.node:
            count[node.op_type] += node.op_type != "Constant"
            for attribute in node.attribute:
                pending += [attribute.g] if attribute.HasField("g") else []
                pending += attribute.graphs
    return +count


def results(data: bytes, feeds: Mapping[str, Any]) -> list[Any]:
    """Run a model on ONNX Runtime without optimization."""
    outputs: list[Any] = accepted(data).run(None, dict(feeds))
    return outputs


def accepted(data: bytes) -> Any:
    """Return ONNX Runtime's session of a model, without optimization."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
