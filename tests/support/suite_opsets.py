"""Converts the models of ONNX's backend suite to other operator sets, and compares their results.

Prints each model that is invalid or computes something else, and how many are the same::

    python -W ignore tests/support/suite_opsets.py [--every N] [--match TEXT] [--refusals]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import defs
from onnx.reference import ReferenceEvaluator

import passlib
from onnx_suite import Case, RefusedError, agree, all_cases, run
from passlib.errors import PasslibError

TARGETS = (13, 17, 21)
OLDEST = 7
"""The oldest set whose operators ONNX Runtime knows."""

DRAWN = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike",
                   "RandomUniform", "RandomUniformLike"))  # fmt: skip


def outcomes(case: Case) -> Iterator[tuple[int, str]]:
    """Convert a model to other sets, and tell what became of it, such as "same"."""
    model = onnx.load_from_string(case.data)
    own = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    targets = {own - 1, own + 1, *TARGETS} - {own}
    is_drawn = any(
        node.op_type in DRAWN or (node.op_type == "Dropout" and len(node.input) > 2)
        for node in model.graph.node
    )
    before: list[Any] | None = None
    for target in sorted(targets):
        if not own or not OLDEST <= target <= defs.onnx_opset_version():
            continue
        if before is None:
            try:
                before = [_results(case.data, inputs) for inputs, _ in case.data_sets]
            except RefusedError as error:
                yield target, f"not run before: {error}"
                return
        try:
            made = _converted(case.data, target)
        except PasslibError as error:
            yield target, f"refused: {error}"
            continue
        invalid = _complaint(made)
        if invalid and not _complaint(case.data):
            yield target, f"WRONG, invalid: {invalid}"
            continue
        if is_drawn:
            yield target, "drawn"
            continue
        try:
            after = [_results(made, inputs) for inputs, _ in case.data_sets]
        except RefusedError as error:
            yield target, f"not run after: {error}"
            continue
        # ONNX Runtime itself differs from what the suite expects of a few models.
        wanted = [(old, outputs) for old, (_, outputs) in zip(before, case.data_sets, strict=True)]
        is_same = all(
            any(_agree(new, each, case) for each in either)
            for new, either in zip(after, wanted, strict=True)
        )
        yield target, "same" if is_same else "WRONG"


def _agree(have: list[Any], wanted: list[Any], case: Case) -> bool:
    rough = any(str(getattr(each, "dtype", "")) == "bfloat16" for each in wanted)
    return agree(have, wanted, 1e-2 if rough else case.rtol, max(case.atol, 1e-6))


def _complaint(data: bytes) -> str:
    try:
        onnx.checker.check_model(data, full_check=True)
    except Exception as error:
        return str(error)
    return ""


def _converted(data: bytes, target: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "converted.onnx")
        passlib.load(data).save(path, opset=target, durable=False)
        return path.read_bytes()


def _results(data: bytes, inputs: list[Any]) -> list[Any]:
    """Run a model in ONNX Runtime, or by ONNX's reference where that has no kernel."""
    inputs = [*map(_array, inputs)]
    try:
        return run(data, inputs)
    except RefusedError as error:
        text = str(error)
    try:
        model = onnx.load_from_string(data)
        names = [each.name for each in model.graph.input]
        feeds = dict(zip(names, inputs, strict=False))
        found: list[Any] = ReferenceEvaluator(model).run(None, feeds)
        # It adds an axis to numbers that a Loop collects.
        found = [_of_rank(each, end) for each, end in zip(found, model.graph.output, strict=True)]
    except Exception as error:
        raise RefusedError(f"{text[:200]} / {str(error)[:100]}") from error
    return found


def _array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.generic) else value


def _of_rank(value: Any, end: Any) -> Any:
    rank = len(end.type.tensor_type.shape.dim)
    has_rank = end.type.tensor_type.HasField("shape") and isinstance(value, np.ndarray)
    return value.reshape(-1) if has_rank and rank == 1 and value.ndim == 2 else value


def check(cases: Iterable[Case]) -> tuple[Counter[str], list[str]]:
    """Return how many conversions had which outcome, and those that are wrong."""
    count: Counter[str] = Counter()
    wrong = []
    for case in cases:
        for target, text in outcomes(case):
            count[text.split(":")[0]] += 1
            if not text.startswith(("same", "drawn")):
                wrong.append(f"{case.name} to {target}: {text}")
    return count, wrong


def main() -> int:
    """Check the suite; return whether anything is wrong."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--every", type=int, default=1)
    arguments.add_argument("--match", default="")
    arguments.add_argument("--refusals", action="store_true", help="print what is refused, too")
    options = arguments.parse_args()
    onnxruntime.set_default_logger_severity(4)
    total: Counter[str] = Counter()
    for case in list(all_cases())[:: options.every]:
        if options.match not in case.name:
            continue
        count, others = check([case])
        total += count
        for text in others:
            if options.refusals or " refused: " not in text:
                sys.stdout.write(f"{text[:400]!r}\n")
                sys.stdout.flush()
    for key, number in total.most_common():
        sys.stdout.write(f"{number:6} {key}\n")
    return any("WRONG" in key for key in total)


if __name__ == "__main__":
    sys.exit(main())
