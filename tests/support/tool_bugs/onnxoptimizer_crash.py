"""Run onnxoptimizer on a model.

Run as ``python onnxoptimizer_crash.py MODEL``. onnxoptimizer 0.4.2 ends the process by SIGSEGV on
test_shape_start_greater_than_end of onnx.backend.test; other errors are 125.
"""

from __future__ import annotations

import sys

import onnx
import onnxoptimizer


def main(path: str) -> int:
    """Optimize a model."""
    try:
        onnxoptimizer.optimize(onnx.load(path))
    except Exception:
        return 125
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
