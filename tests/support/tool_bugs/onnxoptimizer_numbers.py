"""Whether a model computes other numbers after onnxoptimizer.

Run as ``python onnxoptimizer_numbers.py MODEL``. The exit status is 1 if so, 0 if not, and 125 if
the model cannot be tested. Seen with onnxoptimizer 0.4.2 on
test_group_normalization_example_expanded of onnx.backend.test.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime


def outputs(model: onnx.ModelProto) -> list[Any]:
    """Run a model on numbers drawn by a seed, without optimizations of ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    generator = np.random.default_rng(0)
    feeds = {
        value.name: generator.standard_normal(value.shape).astype(np.float32)
        for value in session.get_inputs()
    }
    return list(session.run(None, feeds))


def main(path: str) -> int:
    """Optimize a model and compare."""
    model = onnx.load(path)
    try:
        wanted = outputs(model)
        found = outputs(onnxoptimizer.optimize(model))
    except Exception:
        return 125
    pairs = zip(wanted, found, strict=True)
    return int(not all(np.allclose(a, b, 1e-3, 1e-5, equal_nan=True) for a, b in pairs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
