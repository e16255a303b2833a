"""Meanings of operators, on arrays: what ONNX's evaluator, or ONNX Runtime, computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import passlib.proof.meanings as meanings
from element_values import chained, results
from passlib.proof.conditions import lossless
from passlib.proof.tensors import REALS, WHOLE

X = ("float32", (2, 3, 4))
_SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (0, 3), (1,), ())


def _i(*items: int) -> Any:
    return np.array(items, np.int64)


CASES: list[tuple[Any, ...]] = [
    *((op, {}, [("float32", shape)]) for op in meanings._UNARY
      if op not in ("Not", "Gelu", "IsNaN", "BitwiseNot", "Mish", "Swish", "Shrink", "Tan", "Asin",
                    "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Celu", "Selu",
                    "ThresholdedRelu") for shape in _SHAPES),
    *(("Gelu", {"approximate": each}, [("float32", (2, 3))]) for each in ("none", "tanh")),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, [X]), ("LeakyRelu", {"alpha": 0.3}, [X]),
    ("Not", {}, [("bool", (2, 3))]), ("BitwiseNot", {}, [("int32", (2, 3))]),
    *((op, {}, [("float32", one), ("float32", other)])
      for op in ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "Less", "GreaterOrEqual",
                 "LessOrEqual", "Max", "Min", "Sum", "Mean")
      for one, other in (((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 0)), ((1, 2, 1), (3, 1, 1)))),
    *((op, {}, [("bool", (2, 3)), ("bool", (2, 1))]) for op in ("And", "Or", "Xor")),
    *((op, {}, [("int32", (2, 3)), ("int32", (3,))])
      for op in ("Add", "Sub", "Mul", "BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    ("Max", {}, [("float32", (2, 3)), ("float32", (1,)), ("float32", (2, 1))]),
    ("Where", {}, [("bool", (2, 1)), ("float32", (3,)), ("float32", (2, 3))]),
    ("Clip", {}, [X, np.array(-0.5, np.float32), np.array(0.5, np.float32)]),
    ("Clip", {}, [X, None, np.array(0.5, np.float32)]),
    ("Cast", {"to": 7}, [X]), ("Cast", {"to": 1}, [("int64", (2, 2, 2))]), ("Identity", {}, [X]),
    *(("Transpose", {"perm": perm}, [X]) for perm in ([0, 1, 2], [2, 0, 1], [1, 2, 0])),
    ("Transpose", {}, [X]), ("Transpose", {}, [("float32", ())]),
    *(("Reshape", {}, [X, _i(*shape)])
      for shape in ((4, 6), (24,), (2, -1), (0, -1, 2), (1, 2, 12, 1))),
    ("Reshape", {"allowzero": 1}, [("float32", (0, 3)), _i(3, 0)]),
    *(("Flatten", {"axis": axis}, [X]) for axis in (0, 1, 2, 3, -1, -3)),
    ("Squeeze", {}, [("float32", (1, 3, 1)), _i(-1, 0)]), ("Squeeze", {}, [("float32", (1, 3, 1))]),
    ("Unsqueeze", {}, [X, _i(0, -1)]), ("Unsqueeze", {}, [("float32", ()), _i(0)]),
    *(("Expand", {}, [("float32", (3, 1)), _i(*shape)])
      for shape in ((3, 4), (2, 1, 1), (1,), (2, 3, 0))),
    *(("Slice", {}, [X, *map(np.array, cut)]) for cut in (
        ([1], [3], [2], [1]), ([-1], [-9], [1], [-1]), ([0, 1], [9, 3], [0, -1], [1, 2]),
        ([9], [-9], [2], [-2]), ([2], [1], [1], [1]))),
    ("Slice", {}, [X, _i(0, 1), _i(1, 9)]),
    *(("Concat", {"axis": axis}, [X, X, X]) for axis in (0, 1, -1)),
    ("Concat", {"axis": 0}, [("float32", (0, 2)), ("float32", (3, 2))]),
    ("Split", {"axis": 1}, [X, _i(1, 0, 2)], 3), ("Split", {"axis": -1}, [X, _i(1, 3)], 2),
    ("Split", {"axis": 1, "num_outputs": 2}, [X], 2),
    ("Pad", {}, [X, _i(0, 1, 2, 0, 0, 1)]),
    ("Pad", {}, [X, _i(0, -1, 1, 0, 0, -2), np.array(2.5, np.float32)]),
    ("Pad", {}, [X, _i(1, 2), np.array(2.5, np.float32), _i(-1)]),
    ("Tile", {}, [X, _i(1, 2, 3)]), ("Tile", {}, [X, _i(1, 0, 1)]),
    *(("Gather", {"axis": axis}, [X, places])
      for axis in (0, -1) for places in (_i(1, 0, -1), np.array(1), np.array([[0, 1]]))),
    ("Shape", {}, [X]), ("Size", {}, [X]), ("Size", {}, [("float32", (0, 2))]),
    *((op, {"keepdims": keep}, [("float32", (2, 3, 4)), axes])
      for op in meanings._REDUCTIONS for keep in (0, 1) for axes in (_i(1), _i(-1, 0))
      if op != "ReduceLogSum"),
    *((op, {"axis": axis, "keepdims": keep}, [X])
      for op in ("ArgMax", "ArgMin") for axis in (0, -1) for keep in (0, 1)),
    *((op, {"axis": axis}, [X]) for op in ("Softmax", "LogSoftmax") for axis in (0, -1)),
    *(("MatMul", {}, [("float32", one), ("float32", other)]) for one, other in (
        ((2, 3), (3, 4)), ((3,), (3,)), ((2, 1, 2, 3), (5, 3, 1)), ((2, 3), (3,)),
        ((2, 0), (0, 2)))),
    ("Gemm", {"transA": 1, "alpha": 0.5, "beta": 2.0},
     [("float32", (3, 2)), ("float32", (3, 4)), ("float32", (4,))]),
    *(("Conv", attributes, [("float32", (1, 4, 5, 6)), ("float32", w), *rest])
      for attributes, w, rest in (
        ({}, (2, 4, 3, 2), []), ({"pads": [1, 0, 2, 1]}, (2, 4, 3, 2), [("float32", (2,))]),
        ({"strides": [2, 1], "dilations": [1, 2]}, (2, 4, 3, 2), []),
        ({"group": 2, "pads": [0, 1, 0, 1]}, (4, 2, 3, 3), [("float32", (4,))]))),
    *(("ConvTranspose", attributes, [("float32", (1, 4, 3, 4)), ("float32", w), *rest])
      for attributes, w, rest in (
        ({}, (4, 2, 3, 2), []), ({"pads": [1, 0, 2, 1]}, (4, 2, 3, 2), [("float32", (2,))]),
        ({"strides": [2, 3], "dilations": [1, 2], "output_padding": [1, 0]}, (4, 2, 3, 2), []),
        ({"group": 2, "strides": [2, 1]}, (4, 3, 2, 2), [("float32", (6,))]))),
    ("BatchNormalization", {"epsilon": 0.1},
     [("float32", (2, 3, 4)), *[np.array([0.5, 1.5, 2.5], np.float32)] * 4]),
    ("PRelu", {}, [X, ("float32", (4,))]), ("PRelu", {}, [X, ("float32", (3, 1))]),
    ("Mish", {}, [X]), ("Swish", {"alpha": 1.5}, [X]), ("Swish", {}, [X]),
    ("com.microsoft::Gelu", {}, [X]), ("com.microsoft::FastGelu", {}, [X]),
    ("com.microsoft::FastGelu", {}, [X, ("float32", (4,))]),
    ("com.microsoft::BiasGelu", {}, [X, ("float32", (4,))]),
    ("com.microsoft::QuickGelu", {}, [X]), ("com.microsoft::QuickGelu", {"alpha": 1.5}, [X]),
    *(("com.microsoft::FusedMatMul", attributes, [("float32", one), ("float32", other)])
      for attributes, one, other in (
        ({}, (2, 3, 4), (2, 4, 5)), ({"alpha": 0.5, "transB": 1}, (2, 1, 3, 4), (3, 5, 4)),
        ({"alpha": 1.5, "transA": 1}, (4, 3), (4, 5)))),
    *((f"com.microsoft::{op}", {"epsilon": 0.1},
       [("float32", shape), ("float32", skip), *[("float32", (4,))] * vectors])
      for op, vectors in (("SkipLayerNormalization", 3), ("SkipSimplifiedLayerNormalization", 2))
      for shape, skip in (((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (1, 3, 4)), ((2, 3, 4), (3, 4)),
                          ((3, 4), (3, 4)))),
    # With a past and one result, ONNX Runtime 1.32.0 reads memory that nobody wrote.
    *(("com.microsoft::MultiHeadAttention", {"num_heads": 2, **attributes},
       [None if shape is None else ("float32", shape) for shape in shapes],
       3 if len(shapes) > 6 else 1)
      for attributes, shapes in (
        ({}, ((2, 3, 8), (2, 5, 8), (2, 5, 8))),
        ({"scale": 0.3}, ((2, 3, 8), (2, 2, 5, 4), (2, 2, 5, 4))),
        ({}, ((2, 3, 8), (2, 5, 8), (2, 5, 8), None, None, (1, 2, 3, 5))),
        ({}, (*[(2, 3, 8)] * 3, None, None, None, *[(2, 2, 4, 4)] * 2)))),
    *(("DepthToSpace", {"blocksize": 2, "mode": mode}, [("float32", (2, 8, 2, 3))])
      for mode in ("DCR", "CRD")),
    ("DepthToSpace", {"blocksize": 2}, [("float32", (1, 4, 2, 1))]),
    ("SpaceToDepth", {"blocksize": 2}, [("float32", (2, 3, 4, 6))]),
    *(("Range", {}, [np.array(item) for item in ends])
      for ends in ((0, 5, 1), (3, -4, -2), (1, 8, 3), (2, 2, 1), (4, 1, 1))),
    *(("Trilu", {"upper": upper}, [X, *diagonal])
      for upper in (0, 1) for diagonal in ([], *([np.array(each)] for each in (-1, 0, 2, 9)))),
    ("InstanceNormalization", {"epsilon": 0.1},
     [("float32", (2, 3, 4, 2)), ("float32", (3,)), ("float32", (3,))]),
    *(("GroupNormalization", {"num_groups": groups},
       [("float32", (2, 6, 3, 2)), ("float32", (6,)), ("float32", (6,))]) for groups in (1, 2, 6)),
    ("LayerNormalization", {"axis": -2}, [X, ("float32", (3, 4)), ("float32", (3, 4))]),
    *(("RotaryEmbedding", attributes, [("float32", shape), *[("float32", (2, 3, 2))] * 2])
      for attributes, shape in (
        ({}, (2, 5, 3, 4)), ({"interleaved": 1}, (2, 5, 3, 4)), ({"num_heads": 2}, (2, 3, 8)),
        ({"rotary_embedding_dim": 4}, (2, 5, 3, 6)),
        ({"rotary_embedding_dim": 4, "interleaved": 1, "num_heads": 2}, (2, 3, 12)))),
    *(("Attention", attributes, [("float32", shape) for shape in shapes], *count)
      for attributes, shapes, *count in (
        ({}, ((2, 4, 3, 2), (2, 4, 5, 2), (2, 4, 5, 3))),
        ({"scale": 0.5}, ((2, 4, 3, 2), (2, 2, 5, 2), (2, 2, 5, 3))),
        ({"scale": 0.5}, ((2, 4, 3, 2), (2, 4, 5, 2), (2, 4, 5, 3), (3, 5))),
        ({"q_num_heads": 4, "kv_num_heads": 2}, ((2, 3, 8), (2, 5, 4), (2, 5, 6))),
        ({}, ((1, 2, 3, 2), (1, 2, 2, 2), (1, 2, 2, 3), (3, 4), (1, 2, 2, 2), (1, 2, 2, 3)), 3))),
    *(("Resize", {"mode": "nearest", "coordinate_transformation_mode": system, **more},
       [("float32", (1, 2, 3, 1)), None, None, _i(1, 2, 3, 1)])
      for system in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
      for more in ({}, {"nearest_mode": "ceil"})),
    ("GlobalAveragePool", {}, [("float32", (2, 3, 4, 2))]),
    ("GlobalMaxPool", {}, [("float32", (2, 3, 4, 2))]),
    ("MaxPool", {"kernel_shape": [2, 3], "pads": [1, 1, 0, 2], "strides": [1, 2]},
     [("float32", (1, 2, 4, 5))]),
    *(("MaxPool", {"kernel_shape": [3], "strides": [stride], "pads": pads, "ceil_mode": 1},
       [("float32", (1, 2, size))])
      for stride, pads, size in ((2, [0, 0], 6), (2, [1, 1], 7), (3, [0, 2], 6), (3, [2, 2], 7))),
    ("AveragePool", {"kernel_shape": [2, 3], "pads": [1, 1, 0, 2], "count_include_pad": 1},
     [("float32", (1, 2, 4, 5))]),
    ("Gemm", {"transB": 1}, [("float32", (2, 3)), ("float32", (4, 3))]),
    *((op, {}, [array, np.array(0.5, np.float32), *zero])
      for zero in ([], [np.array(3, np.uint8)]) for op, array in (
        ("DequantizeLinear", np.array([[0, 3, 255]], np.uint8)),
        ("QuantizeLinear", np.array([[0.25, 0.75, -9, 1000, 1.2]], np.float32)))),
    *((op, {"axis": axis}, [array, scales, np.arange(len(scales)).astype(np.int8)])
      for axis, scales in ((0, np.array([0.5, 0.25], np.float32)),
                           (-1, np.array([0.5, 0.25, 2], np.float32)))
      for op, array in (
        ("DequantizeLinear", np.array([[0, 3, 127], [-128, 1, 5]], np.int8)),
        ("QuantizeLinear", np.array([[0.3, 0.7, -90], [999, -1.3, 4]], np.float32)))),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_meaning_is_that_of_the_reference(number: int) -> None:
    op, attributes, inputs, *rest = CASES[number]
    count = rest[0] if rest else 1
    generator = np.random.default_rng(number)
    arrays: list[Any] = []
    for each in inputs:
        if not isinstance(each, tuple):
            arrays.append(each)
            continue
        dtype, shape = each
        drawn = generator.uniform(-2, 2, shape)
        if op in ("Log", "Sqrt"):
            drawn = np.abs(drawn) + 0.1
        arrays.append(np.asarray(drawn > 0 if dtype == "bool" else drawn).astype(dtype))
    names = ["" if each is None else f"x{place}" for place, each in enumerate(arrays)]
    outputs = [f"y{place}" for place in range(count)]
    domain, _, name = op.rpartition("::")
    graph = helper.make_graph(
        [helper.make_node(name, names, outputs, domain=domain, **attributes)],
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape
            )
            for name, each in zip(names, arrays, strict=True)
            if each is not None
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )
    opset = 20 if domain else max(20, onnx.defs.get_schema(op, 24).since_version)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(domain, 1)]
        if domain else [helper.make_opsetid("", opset)],
    )  # fmt: skip
    feeds = {name: each for name, each in zip(names, arrays, strict=True) if each is not None}
    try:
        expected = ReferenceEvaluator(model).run(None, feeds)
    except Exception:  # of cases that it does not bear
        model.ir_version = 10
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        expected = session.run(None, feeds)
    found = results(op, opset, arrays, attributes, count)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(
            one.astype(float), np.asarray(other).astype(float), rtol=1e-4, atol=1e-5
        )


CHAINS: list[tuple[Any, ...]] = [
    *(([("SplitToSequence", {"axis": axis, "keepdims": keep}, []), ("SequenceAt", {}, [place])],
       [X])
      for axis in (0, -1) for keep in (0, 1) for place in (np.array(1), np.array(-2))),
    *(([("SplitToSequence", {"axis": 2}, [np.array(3)]), ("SequenceAt", {}, [place])], [X])
      for place in (np.array(0), np.array(1))),
    *(([("SplitToSequence", {"axis": 1, "keepdims": keep}, []),
        ("ConcatFromSequence", {"axis": axis, "new_axis": 1 - keep}, [])], [X])
      for keep, axis in ((1, 1), (1, -2), (0, 1), (0, 0), (0, -1))),
    *(([("SequenceConstruct", {}, []), ("SequenceAt", {}, [place])], [X, X, X])
      for place in (np.array(2), np.array(-3))),
    ([("SequenceConstruct", {}, []), ("SequenceLength", {}, [])], [X, X]),
    ([("SequenceConstruct", {}, []), ("ConcatFromSequence", {"axis": -1}, [])], [X, X]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CHAINS)))
def test_a_meaning_of_a_sequence_is_that_of_the_reference(number: int) -> None:
    steps, inputs = CHAINS[number]
    generator = np.random.default_rng(number)
    arrays = [generator.uniform(-2, 2, shape).astype(dtype) for dtype, shape in inputs]
    nodes, feeds = [], {}
    names = [f"x{place}" for place in range(len(arrays))]
    feeds.update(zip(names, arrays, strict=True))
    for place, (op, attributes, more) in enumerate(steps):
        for item, array in enumerate(more):
            feeds[f"m{place}{item}"] = array
            names.append(f"m{place}{item}")
        nodes.append(helper.make_node(op, names, [f"y{place}"], **attributes))
        names = [f"y{place}"]
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in feeds.items()
    ]
    graph = helper.make_graph(nodes, "g", declared, [helper.make_empty_tensor_value_info(names[0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    found = chained(steps, 20, arrays)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-6)


def test_numbers_that_are_quantized_again_are_what_they_were() -> None:
    """The law that the proofs of exact rules use, for scales of every exponent."""
    generator = np.random.default_rng(3)
    exponents = generator.uniform(-149, np.log2(1e30), 400_000)
    scales = np.exp2(exponents).astype(np.float32)
    scales = np.maximum(scales, np.float32(1e-45))
    numbers = generator.integers(-65535, 65536, len(scales)).astype(np.float32)
    assert np.array_equal(np.round((numbers * scales) / scales), numbers)


@pytest.mark.parametrize("source", sorted((REALS | WHOLE) - {"bfloat16"}))
def test_a_cast_that_is_called_lossless_loses_nothing(source: str) -> None:
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(source, source))
    if dtype.kind == "f":
        bits = np.random.default_rng(1).bytes(8000)
        numbers = np.frombuffer(bits, dtype)
        numbers = numbers[~np.isnan(numbers)]
    else:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        some = np.random.default_rng(1).integers(low, high, 999, dtype, endpoint=True)
        numbers = np.concatenate([some, np.array([low, high, 0, 1], dtype)])
    for target in REALS | WHOLE:
        other = {"float": "float32", "double": "float64"}.get(target, target)
        if other != "bfloat16" and lossless(source, target):
            assert np.array_equal(numbers.astype(other).astype(dtype), numbers)


def test_every_meaning_is_of_an_operator() -> None:
    others = meanings._DOMAINS
    assert [op for op in meanings.MEANINGS if not onnx.defs.has(op) and op not in others] == []
