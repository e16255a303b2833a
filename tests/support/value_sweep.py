"""Values of operators on constants: what simplification makes of them, against ONNX Runtime.

``python tests/support/value_sweep.py COUNT [FIRST]`` draws nodes (`operator_cases`) with constants
alone and compares with ONNX Runtime without optimization: ``passlib`` for results of the
simplified model, which must never differ, ``basic`` for ONNX Runtime's own folding, and ``text``
for ONNX's reference implementation, which differs where ONNX's text leaves values open.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

import passlib
from operator_case import Case, model_of
from passlib.proof.counterexamples import same_bits
from sweeping import main

_DRAWING = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike")
)  # fmt: skip
"""Operators that draw numbers."""

_FLOAT8 = (
    onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT8E4M3FNUZ, onnx.TensorProto.FLOAT8E5M2,
    onnx.TensorProto.FLOAT8E5M2FNUZ, onnx.TensorProto.FLOAT8E8M0,
)  # fmt: skip

_SHOWN = 12


def differences(case: Case, random: np.random.Generator) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over what differs, its results, and those of ONNX Runtime.

    Raises
    ------
    Exception
        ONNX Runtime refuses the case.
    """
    levels = onnxruntime.GraphOptimizationLevel
    constant = [array is not None for array in case.inputs]
    model = model_of(replace(case, constant=constant))
    if case.op in _DRAWING or _leaves_memory(case):
        made = passlib.simplify(model.SerializeToString())
        if all(node.op != case.op for node in made.symbol.nodes()):
            yield "passlib", "folded", "results that no two runs have in common"
        return
    want = _run(model, levels.ORT_DISABLE_ALL)
    if not same_bits(_run(model, levels.ORT_DISABLE_ALL), want):
        return  # memory that ONNX Runtime did not write to
    for value, result in zip(model.graph.output, want, strict=True):
        if isinstance(result, np.ndarray) and result.dtype.kind in "biufU":
            value.CopyFrom(
                helper.make_tensor_value_info(
                    value.name, helper.np_dtype_to_tensor_dtype(result.dtype), None
                )
            )
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        passlib.simplify(model.SerializeToString()).save(file.name, durable=False)
        made = onnx.load(file.name)
    have = _run(made, levels.ORT_DISABLE_ALL)
    # The rounding of LRN depends on the number of threads.
    same = all(map(_close, have, want)) if case.op == "LRN" else same_bits(have, want)
    if not same:
        yield "passlib", _shown(have), _shown(want)
    basic = _run(model, levels.ORT_ENABLE_BASIC)
    if not same_bits(basic, want):
        yield "basic", _shown(basic), _shown(want)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = ReferenceEvaluator(model).run(None, {})
    except Exception:
        return
    if not all(map(_close, text, want)):
        yield "text", _shown(text), _shown(want)


def _leaves_memory(case: Case) -> bool:
    """Whether ONNX Runtime 1.32 leaves elements of the result as the memory was."""
    if case.op not in ("Cast", "CastLike") or case.inputs[0] is None:
        return False
    if case.inputs[0].dtype.kind in "OU":
        return True
    like = case.inputs[1] if case.op == "CastLike" else None
    same = like is not None and like.dtype == case.inputs[0].dtype
    narrow = case.attributes["to"] in _FLOAT8 if "to" in case.attributes else not same
    return narrow and case.attributes.get("saturate", 1) not in (0, 1)


def _run(model: Any, level: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    # Results are views of memory that goes with the session.
    results = session.run(None, {})
    return [np.array(each) if isinstance(each, np.ndarray) else each for each in results]


def _close(left: Any, right: Any) -> bool:
    left = np.asarray(left)
    if not isinstance(right, np.ndarray) or left.dtype.kind not in "biuf":
        return True
    if left.shape != right.shape:
        return False
    if left.dtype.kind != "f":
        return np.array_equal(left, right)
    return np.allclose(left, right, rtol=1e-2, atol=1e-3, equal_nan=True)


def _shown(results: list[Any]) -> list[Any]:
    return [
        [str(array.dtype), list(array.shape), [str(item) for item in array.reshape(-1)[:_SHOWN]]]
        for array in map(np.asarray, results)
    ]


if __name__ == "__main__":
    main(differences)
