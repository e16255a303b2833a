"""Whether onnxslim fails on a model that does not import the default domain.

Run as ``python onnxslim_domains.py MODEL``. The exit status is 1 if so, 0 if not, and 125 if the
model cannot be tested. Seen with onnxslim 0.1.98 on test_ai_onnx_ml_binarizer of onnx.backend.test
and 34 more models there.
"""

from __future__ import annotations

import sys

import onnx
import onnxslim


def main(path: str) -> int:
    """Simplify a model."""
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return 125
    try:
        onnxslim.slim(model)
    except AttributeError as error:
        return int("opset_import" in str(error))
    except Exception:
        return 125
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
