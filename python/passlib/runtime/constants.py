"""Models without inputs, run in this process or in a separate one that they may end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects import find
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.dialects.onnx.tensors import to_bytes
from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.graph.plain import PlainGraph
from passlib.lowering import Lowered
from passlib.runtime.session import Session
from passlib.runtime.settings import Settings

_ANY_SIZE: Final = frozenset(
    ("Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape",
     "Cos", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements",
     "GatherND", "Greater", "GreaterOrEqual", "Identity", "If", "IsInf", "IsNaN", "Less",
     "LessOrEqual", "Log", "Loop", "MatMul", "Max", "Min", "Mul", "Neg", "NonZero", "Not",
     "Or", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin",
     "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "Shape", "Sigmoid", "Sign",
     "Sin", "Size", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh",
     "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor")
)  # fmt: skip
"""Operators of ONNX that take values without elements; ``make sweep-empty`` tries all."""

_SIGNED: Final = frozenset((3, 5, 6, 7))
"""Types of whole numbers below 0."""


def is_harmless(model: Any) -> bool:
    """Whether each operator is known to compute its inputs without ending the process.

    ``model``: sound; its larger initializers may have their elements elsewhere.
    """
    graphs = list(graphs_within(model.graph))
    if all(_takes_any_size(node) for graph in graphs for node in graph.node):
        return not model.functions
    if len(graphs) > 1 or model.functions:
        return False
    graph = inferred(model).graph
    types = {value.name: value.type.tensor_type for value in (*graph.value_info, *graph.output)}
    weights = {tensor.name: tensor for tensor in graph.initializer}
    return all(_is_sure(node, types, weights) for node in graph.node)


def _takes_any_size(node: Any) -> bool:
    return not schema.plain(node.domain) and node.op_type in _ANY_SIZE


def _is_sure(node: Any, types: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    if _takes_any_size(node):
        return True
    if not all(_has_elements(name, types, weights) for name in (*node.input, *node.output) if name):
        return False
    return node.op_type != "Div" or _is_sure_division(node, types, weights)


def _has_elements(name: str, types: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    if name in weights:
        return 0 not in weights[name].dims
    kind = types.get(name)
    return (
        kind is not None
        and kind.HasField("shape")
        and all(dim.dim_value > 0 for dim in kind.shape.dim)
    )


def _is_sure_division(node: Any, types: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    quotient = types.get(node.output[0])
    if quotient is None or quotient.elem_type not in _SIGNED:
        return quotient is not None and quotient.elem_type != 0
    divisor = weights.get(node.input[1])
    if divisor is None or divisor.external_data:
        return False
    return -1 not in require("onnx.numpy_helper", extra="onnx").to_array(divisor)


_PROGRAM: Final = Path(__file__).with_name("constants_child.py")

_LARGEST: Final = 1 << 30
"""Bytes of weights for a separate process: they go into one message."""

_SECONDS: Final = 120


def run_constants(symbol: PlainGraph, params: Mapping[str, np.ndarray[Any, Any]]) -> list[Any]:
    """Compute the outputs of a graph that depend on its weights alone.

    Each operator is run without optimization. What might end the process runs in another one.
    ``params``: weights and auxiliary states. Result: one for each output; of other values than
    tensors, what ONNX Runtime returns. Raises `PasslibError` if ONNX Runtime failed, refused the
    model, or ended its process; the graph has no model.
    """
    lowered = find(symbol.dialect).lower(symbol, {}, params)
    if is_harmless(lowered.model):
        return Session(lowered, Settings(optimization="none")).run({})
    return _run_apart(lowered)


def _run_apart(lowered: Lowered) -> list[Any]:
    if sum(array.nbytes for array in lowered.weights.values()) > _LARGEST:
        raise PasslibError("its weights are too large for a separate process")
    model = type(lowered.model)()
    model.CopyFrom(lowered.model)
    for tensor in model.graph.initializer:
        if tensor.name in lowered.weights:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = to_bytes(lowered.weights[tensor.name])
    paths = [os.fspath(Path(entry).absolute()) for entry in sys.path]
    try:
        done = subprocess.run(
            [sys.executable, "-I", os.fspath(_PROGRAM)],
            input=json.dumps(paths).encode() + b"\n" + model.SerializeToString(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PasslibError(f"the separate process failed: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise PasslibError(f"the separate process ended with {done.returncode}: {reason}")
    head, _, data = done.stdout.partition(b"\n")
    arrays, offset = [], 0
    for name, shape in json.loads(head):
        dtype = dtypes.as_dtype(name)
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(data, dtype, count, offset).reshape(shape))
        offset += arrays[-1].nbytes
    return arrays
