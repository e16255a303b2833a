"""Prints the models of ONNX's tests on which ONNX Runtime and its table disagree."""

from __future__ import annotations

import sys

import onnx
import onnxruntime

from onnx_suite import node_cases
from passlib.dialects.onnx.targets import Target, refusals


def main() -> None:
    """Make a session of each model, without optimization."""
    table = Target.load("onnxruntime-cpu")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for case in node_cases():
        found = refusals(onnx.load_from_string(case.data), table)
        try:
            onnxruntime.InferenceSession(case.data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            is_wrong = type(error).__name__ == "NotImplemented" and not found
        else:
            is_wrong = bool(found)
        if is_wrong:
            sys.stdout.write(f"{case.name}: {found}\n")


if __name__ == "__main__":
    main()
