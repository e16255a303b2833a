"""The standard passes in Python on a part of ONNX's own backend suite.

``python tests/support/onnx_suite.py`` runs all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import onnx_suite
import passlib
from onnx_suite import Case
from passlib.proof.counterexamples import same_bits
from rewriting import results

MODULES = (
    "add", "cast", "clip", "concat", "constantofshape", "conv", "convtranspose", "dropout",
    "expand", "flatten", "gemm", "identity", "if", "loop", "matmul", "mul", "optionalhaselement",
    "pad", "range", "reshape", "scan", "sequence_map", "shape", "slice", "split", "squeeze", "sub",
    "sum", "tile", "transpose", "unsqueeze", "where",
)  # fmt: skip

EXACT = (
    "cancelTransposes", "dropZeroStates", "foldConstants", "foldShapes", "fuseDequantize",
    "fuseSpaceToDepth", "mergeConcats", "mergeReshapes", "mergeSlices", "propagateCasts",
    "rebuildShapes", "removeNoOps", "resolveIf",
)  # fmt: skip


@pytest.fixture(scope="module")
def cases() -> list[tuple[Case, list[Any]]]:
    """Return the models that ONNX Runtime runs, with its results."""
    known = {path.stem for path in (onnx_suite.BACKEND / "case" / "node").iterdir()}
    chosen = onnx_suite.node_cases([name for name in MODULES if name in known])
    found = [(case, before) for case in chosen if (before := _results_of(case)) is not None]
    assert len(found) > 100
    return found


def _results_of(case: Case) -> list[Any] | None:
    """Return the results for all inputs; None if ONNX Runtime does not run the model."""
    try:
        return [_run(case.data, inputs) for inputs, _ in case.data_sets]
    except Exception:
        return None


def _run(data: bytes, inputs: Sequence[Any]) -> list[Any]:
    names = [value.name for value in onnx_suite.session_of(data).get_inputs()]
    return results(data, dict(zip(names, inputs, strict=False)))


def _agree(after: list[Any], before: list[Any]) -> bool:
    return onnx_suite.agree(after, before, 1e-5, 1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [*EXACT, "foldLinear", "fuseMatMulAdd"])
def test_results_stay(cases: list[tuple[Case, list[Any]]], name: str, tmp_path: Path) -> None:
    wrong = []
    for case, before in cases:
        made = tmp_path / "made.onnx"
        passlib.load(case.data).optimize_for(name).save(made, durable=False)
        data = made.read_bytes()
        if data == case.data:
            continue
        after = [_run(data, inputs) for inputs, _ in case.data_sets]
        equal = same_bits if name in EXACT else _agree
        if not all(map(equal, after, before)):
            wrong.append(case.name)
    assert wrong == []
