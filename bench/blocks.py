"""Blocks of transformers: operators that tools leave, and the time in ONNX Runtime.

Run as ``PYTHONPATH=tests/support python bench/blocks.py [--rounds N] [--target T] [--blocks B]``.
Operators are counted for two blocks, with operators of ONNX only. Times are of one thread, the best
of alternate rounds, with 256 features, 128 rows and four heads, before and after ``simplify`` for
the target.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Literal

import onnx
import onnxruntime

import passlib
import transformers
from ratio import HEAD, measure_ratio
from simplify import TOOLS, count

OPSETS = (17, 20, 23)


def operators(tool: str, model: bytes) -> str:
    """Return how many operators a tool leaves."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.onnx", Path(folder) / "out.onnx"
        source.write_bytes(model)
        try:
            TOOLS[tool][1](str(source), str(target))
            return str(count(onnx.load(target).graph))
        except Exception as error:
            return f"fails: {type(error).__name__}"


def simplified(model: bytes, target: Literal["onnx", "onnxruntime"]) -> bytes:
    """Return a model as passlib simplifies it."""
    made = passlib.load(model).simplify(target=target)
    return bytes(made.to_onnx_proto().SerializeToString())  # with large weights in it


def session(model: bytes) -> onnxruntime.InferenceSession:
    """Return a session of one thread with default settings."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--target", choices=("onnx", "onnxruntime"), default="onnx")
    parser.add_argument("--blocks", nargs="*", default=list(transformers.BLOCKS))
    given = parser.parse_args()
    blocks = {name: transformers.BLOCKS[name] for name in given.blocks}
    titles = ("blocks", "operator set", "exported", *TOOLS)
    sys.stdout.write(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n")
    for name, block in blocks.items():
        for opset in OPSETS:
            model = block(opset)
            counts = [operators(tool, model) for tool in TOOLS]
            exported = str(count(onnx.load_from_string(model).graph))
            sys.stdout.write(f"| {' | '.join((name, str(opset), exported, *counts))} |\n")
    transformers.WIDTH, transformers.HEADS, transformers.SIZE = 256, 4, 64
    sys.stdout.write(f"\n{HEAD}\n")
    for name, block in blocks.items():
        for opset in OPSETS:
            before = block(opset)
            first, second = session(before), session(simplified(before, given.target))
            for batch in (1, 8):
                feeds = transformers.feeds(before, batch, 6 if name == "gpt" else 128, 100)
                ours, theirs = (partial(each.run, None, feeds) for each in (second, first))
                ratio = measure_ratio(ours, theirs, rounds=given.rounds)
                sys.stdout.write(f"{ratio.row(f'{name}, {opset}, batch {batch}', 'exported')}\n")


if __name__ == "__main__":
    main()
