"""How long ONNX Runtime takes for models of what it fuses, simplified against as they were.

Run as ``PYTHONPATH=tests/support python bench/fused.py [--rounds N]``. Each model has six times a
layer and what is fused behind it; one thread. The ratio should be at most 1.03 where ONNX Runtime
runs other operators; where it runs the same ones, the ratio is the error of the measurement.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from fusion_drawing import FUSIONS, IMAGE, SEQUENCE, Drawing
from ratio import HEAD, measure_ratio
from runtime_fusions import NEIGHBOURS, simplified

NAMES = (
    "Gelu, Div, half last", "Gelu, Div, half first", "Gelu, Div, half last of images",
    "Gelu, Mul, half last", "BiasGelu", "FastGelu, cube", "FastGelu, products", "QuickGelu",
    "QuickGelu of images", "SiLU", "SiLU of Conv", "LayerNormalization",
    "SimplifiedLayerNormalization", "SkipLayerNormalization", "MatMul and Add", "Conv and Relu",
    "Conv and Mul", "Conv and BatchNormalization", "hard swish of Conv", "Pad and Conv",
    "DynamicQuantizeMatMul", "Attention",
)  # fmt: skip
"""Those of `FUSIONS` that work for all sizes."""

SIZES = {SEQUENCE: (16, 128, 16), IMAGE: (4, 16, 32, 32)}


def model(name: str) -> bytes:
    """Return the model of a fusion, of larger values."""
    fusion = FUSIONS[name]
    sizes = SIZES[fusion.shape]
    drawing = Drawing(fusion.opset, fusion.shape)
    value = drawing.feed(("N", "S", 16) if len(sizes) == 3 else ("N", 16, "H", "W"))
    for _ in range(6):
        value = fusion.part(drawing, NEIGHBOURS["layer"](drawing, value))
    return drawing.model(value)


def operators(data: bytes) -> Counter[str]:
    """Count the operators that ONNX Runtime runs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        graph = onnx.load(options.optimized_model_filepath).graph
    return Counter(f"{node.domain} {node.op_type}" for node in graph.node)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    print(HEAD)
    worst = 0.0
    for name in NAMES:
        before = model(name)
        after = simplified(before)
        ours, theirs = (
            onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            for data in (after, before)
        )
        sizes = SIZES[FUSIONS[name].shape]
        feeds = {
            each.name: np.random.default_rng(1).standard_normal(sizes).astype(np.float32)
            if each.type == "tensor(float)"
            else np.ones(sizes[:2], np.int64)
            for each in theirs.get_inputs()
        }
        ratio = measure_ratio(
            lambda session=ours, feeds=feeds: session.run(None, feeds),  # type: ignore[misc]
            lambda session=theirs, feeds=feeds: session.run(None, feeds),  # type: ignore[misc]
            rounds=rounds,
        )
        same = operators(after) == operators(before)
        worst = worst if same else max(worst, ratio.value)
        print(ratio.row(name, "the same operators" if same else "as it was"))
    if worst:
        print(f"\nThe slowest with other operators takes {worst:.2f} times as long.")
    sys.exit(worst > 1.03)


if __name__ == "__main__":
    main()
