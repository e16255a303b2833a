"""ONNX models through a pass, against the package onnx and against ONNX Runtime.

Usage: onnx_dialect.py [--nodes N] [--rounds N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime

import passlib
from onnx_files import write_layers, write_resnet
from ratio import HEAD, Ratio, in_own_process, measure_ratio
from run import DATA, build_library

NODES = 100_000


def with_onnx(source: Path, target: Path) -> Callable[[], None]:
    """Parse and serialize by the package onnx."""
    return lambda: onnx.save_model(onnx.load_model(source), target)


def with_inference(source: Path, target: Path) -> Callable[[], None]:
    """Parse, infer shapes and serialize by the package onnx."""

    def run() -> None:
        onnx.save_model(onnx.shape_inference.infer_shapes(onnx.load_model(source)), target)

    return run


def with_runtime(source: Path, target: Path) -> Callable[[], object]:
    """Load, optimize at the basic level and save by ONNX Runtime, on one thread."""

    def run() -> object:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(target)
        options.intra_op_num_threads = 1
        options.log_severity_level = 3  # no warning that the file is for this machine only
        return onnxruntime.InferenceSession(
            str(source), options, providers=["CPUExecutionProvider"]
        )

    return run


def with_passlib(source: Path, target: Path, name: str, *, infer: bool) -> Callable[[], object]:
    """Load, run a pass and save."""

    def run() -> object:
        model = passlib.load(source)
        made = model.optimize_for(name, skip_infer=not infer)
        made.save(target)
        return model, made

    return run


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    passlib.library.load(build_library(), verbose=False)
    passlib.library.load_standard()
    layers, resnet = DATA / f"layers{options.nodes}.onnx", DATA / "resnet152.onnx"
    few = DATA / f"layers{options.nodes // 5}.onnx"
    count = in_own_process(write_layers, layers, options.nodes)
    times = count / in_own_process(write_layers, few, options.nodes // 5)
    in_own_process(write_resnet, resnet)
    chain = f"chain of {count:,} nodes"
    fold = "foldBatchNormalization"
    print(HEAD)
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        # One each: replacing a file costs what writing it made of the system's cache.
        target, other = Path(folder) / "out.onnx", Path(folder) / "other.onnx"
        for label, file, name, infer, what, theirs in (
            (chain, layers, "identity", False, "onnx", with_onnx),
            (
                f"{chain}, shapes inferred",
                layers,
                "identity",
                True,
                "onnx, shapes inferred",
                with_inference,
            ),
            (f"{chain}, folded", layers, fold, False, "onnx", with_onnx),
            ("ResNet-152, folded", resnet, fold, False, "ONNX Runtime", with_runtime),
            (
                "ResNet-152, shapes inferred, folded",
                resnet,
                fold,
                True,
                "ONNX Runtime",
                with_runtime,
            ),
        ):
            ours = with_passlib(file, target, name, infer=infer)
            ratio = measure_ratio(ours, theirs(file, other), rounds=options.rounds)
            print(ratio.row(label, what), flush=True)
        for label, name in (("identity", "identity"), ("folded", fold)):
            ratio = measure_ratio(
                with_passlib(layers, target, name, infer=False),
                with_passlib(few, target, name, infer=False),
                rounds=options.rounds,
            )
            growth = Ratio(ratio.ours / times, ratio.theirs)
            print(
                growth.row(
                    f"{chain}, {label}, a {times:.0f}th of it", f"{count / times:,.0f} nodes"
                )
            )


if __name__ == "__main__":
    main()
