"""Whether onnxslim makes a model whose nodes stand before what they read.

Run as ``python onnxslim_unsorted.py MODEL``. The exit status is 1 if so, 0 if not, and 125 if the
model cannot be tested. Seen with onnxslim 0.1.98 on test_affine_grid_2d_expanded and
test_affine_grid_3d_expanded of onnx.backend.test.
"""

from __future__ import annotations

import sys

import onnx
import onnxslim


def main(path: str) -> int:
    """Simplify a model and check the result."""
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model)
        result = onnxslim.slim(model)
    except Exception:
        return 125
    try:
        onnx.checker.check_model(result)
    except onnx.checker.ValidationError as error:
        return int("topologically sorted" in str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
