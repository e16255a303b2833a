"""The table of element types that ONNX Runtime computes, compared with a new measurement."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from passlib.lowering import kernels
from passlib.lowering.builder import IR_VERSION, OPSET

ATTRIBUTES = {
    "AveragePool": {"kernel_shape": [2, 2]},
    "CumSum": {},
    "DepthToSpace": {"blocksize": 2},
    "Einsum": {"equation": "ij->ji"},
    "LpPool": {"kernel_shape": [2, 2]},
    "MaxRoiPool": {"pooled_shape": [2, 2]},
    "SpaceToDepth": {"blocksize": 2},
}
MEASURED = [
    ("Conv", "T"),
    ("ConvTranspose", "T"),
    ("Elu", "T"),
    ("Erf", "T"),
    ("AveragePool", "T"),
    ("LpPool", "T"),
    ("MaxRoiPool", "T"),
    ("InstanceNormalization", "T"),
    ("GridSample", "T1"),
    ("Softmax", "T"),
    ("Gemm", "T"),
    ("ReduceSum", "T"),
    ("ReduceMax", "T"),
    ("ArgMax", "T"),
    ("Add", "T"),
    ("Equal", "T"),
    ("Pad", "T"),
    ("DepthToSpace", "T"),
    ("MatMul", "T"),
    ("Max", "T"),
    ("Neg", "T"),
    ("Relu", "T"),
    ("TopK", "T"),
    ("Where", "T"),
]
NAMES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


def accepted(operator: str, parameter: str, name: str) -> bool:
    """Whether ONNX Runtime creates a session of one node with this type and open shapes."""
    schema = onnx.defs.get_schema(operator, OPSET, "")
    types: dict[str, int] = {}
    for constraint in schema.type_constraints:
        allowed = constraint.allowed_type_strs
        first = next(
            (t for t in ("tensor(float)", "tensor(int64)", "tensor(bool)") if t in allowed), None
        )
        if first is not None:
            number = {"tensor(float)": 1, "tensor(int64)": 7, "tensor(bool)": 9}[first]
            types[constraint.type_param_str] = number
    types[parameter] = helper.np_dtype_to_tensor_dtype(np.dtype(name))
    codes = {"tensor(int64)": 7, "tensor(float)": 1, "tensor(bool)": 9}

    def infos(prefix: str, formal: list[onnx.defs.OpSchema.FormalParameter]) -> list[object]:
        kept = [p for p in formal if p.option.name != "Optional"]
        return [
            helper.make_tensor_value_info(
                f"{prefix}{i}", types.get(p.type_str) or codes[p.type_str], None
            )
            for i, p in enumerate(kept)
        ]

    inputs, outputs = infos("in", schema.inputs), infos("out", schema.outputs)
    node = helper.make_node(
        operator,
        [info.name for info in inputs],
        [info.name for info in outputs],
        **ATTRIBUTES.get(operator, {}),
    )
    model = helper.make_model(
        helper.make_graph([node], "one", inputs, outputs),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return False
    return True


@pytest.mark.parametrize(("operator", "parameter"), MEASURED)
def test_what_the_table_promises_is_computed(operator: str, parameter: str) -> None:
    computed = kernels.computed_types(operator, parameter)
    assert computed is not None
    for name in sorted(computed):
        assert accepted(operator, parameter, name), name


@pytest.mark.parametrize("name", [*NAMES, "bfloat16"])
def test_a_substitute_is_among_the_computed_types(name: str) -> None:
    for types in (frozenset({"float32"}), frozenset({"int32", "int64"}), frozenset({"uint8"})):
        chosen = kernels.substitute(name, types)
        assert chosen is None or chosen in types


def test_operators_without_a_gap_are_not_in_the_table() -> None:
    assert kernels.computed_types("Identity", "V") is None
