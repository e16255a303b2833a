"""Rewrites on values of every element type: ONNX Runtime runs the result as it ran the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import passlib
from element_types import OPSETS, PATTERNS, TYPES, cases, difference, invalid, model_of
from passlib._core import has_kernel, kernels
from rewriting import after, operators

_ALL = sorted({(pattern, kind) for pattern, kind, _, _ in cases()})


@pytest.mark.parametrize(("pattern", "kind"), _ALL, ids=[" ".join(each) for each in _ALL])
def test_rewrites_introduce_no_operator_that_the_runtime_lacks(pattern: str, kind: str) -> None:
    found = []
    for _, _, opset, ends in cases(f"{pattern} {kind} "):
        if opset in (13, 21, 25) and not invalid(pattern, kind, opset, ends):
            model = model_of(pattern, kind, opset, ends=ends)
            text = difference(model, "simplify", kind)
            found += [f"{opset}, {ends}: {text}"] if text else []
    assert not found


@pytest.mark.parametrize("kind", [each for each in TYPES if each.startswith("FLOAT8E")])
def test_a_constant_of_float8_keeps_its_type(kind: str, tmp_path: Path) -> None:
    model = model_of("constant", kind, 25, ends=False)
    made = onnx.load_from_string(after(model.SerializeToString(), "simplify", tmp_path))
    assert [v.type.tensor_type.elem_type for v in made.graph.output] == [TYPES[kind]]


@pytest.mark.parametrize(("kind", "wanted"), [("FLOAT8E5M2", "Reshape"), ("BFLOAT16", "Unsqueeze")])
def test_two_reshapes_become_what_the_runtime_has(kind: str, wanted: str, tmp_path: Path) -> None:
    model = model_of("Reshape to one axis more", kind, 21)
    made = after(model.SerializeToString(), "mergeReshapes", tmp_path)
    assert operators(made) == {"Cast": 2, wanted: 1}


def test_kernels_are_those_of_the_runtime() -> None:
    state: Any = onnxruntime.capi.onnxruntime_pybind11_state
    if not hasattr(state, "get_all_opkernel_def"):
        pytest.skip("this build of ONNX Runtime does not list its kernels")
    known: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain in ("", "ai.onnx"):
            kinds = {kind for each in kernel.type_constraints.values() for kind in each}
            for kind in kinds:
                known.setdefault((kernel.op_name, kind), []).append(tuple(kernel.version_range))
    missing = [
        (op, kind, opset)
        for op in kernels()
        for kind, code in TYPES.items()
        for opset in OPSETS
        # Where a kernel for float16 is missing, the runtime casts to float32.
        if has_kernel(op, code, opset) and kind != "FLOAT16"
        and not any(a <= opset <= b for a, b in known.get((op, _text(kind)), []))
    ]  # fmt: skip
    assert not missing


def _text(kind: str) -> str:
    return f"tensor({kind.lower()})"


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
        (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
        (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
        (TensorProto.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu),
    ],
)
def test_run_returns_types_that_numpy_lacks(code: int, dtype: Any) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=code)]
    ends = [
        helper.make_tensor_value_info(name, kind, [3]) for name, kind in (("x", 1), ("y", code))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    imports = [helper.make_opsetid("", 24)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=11)
    made = passlib.load(model).run({"x": np.array([1, 2, 0.5], np.float32)})["y"].asnumpy()
    assert made.dtype == np.dtype(dtype)
    assert made.astype(np.float32).tolist() == [1, 2, 0.5]


def test_every_pattern_is_a_model_of_some_type() -> None:
    for pattern in PATTERNS:
        assert any(not invalid(pattern, kind, 21, True) for kind in ("FLOAT", "UINT8", "BOOL"))
