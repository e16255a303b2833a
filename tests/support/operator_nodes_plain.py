"""Random nodes of operators on elements, windows and axes: part of opset_changes.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from operator_draws import NUMBERS, B, D, Draw, F, H, J, L, Node, maker_of


@maker_of("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh",
          "Elu", "Erf", "Exp", "Floor", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid",
          "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "LpNormalization",
          "MeanVarianceNormalization", "Mish", "Neg", "NonZero", "Reciprocal", "Relu", "Round",
          "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Softplus", "Softsign", "Sqrt",
          "Tan", "Tanh", "ThresholdedRelu")  # fmt: skip
def _unary(d: Draw) -> Node:
    shape = d.shape(1, 3)
    if d.op.startswith(("Global", "Mean")):
        shape = (2, 3, 4, 5)
    x = d.array(*shape, dtype=d.dtype(*NUMBERS, np.bool_))
    if d.op in ("IsInf", "IsNaN"):
        x = np.where(x > 1, np.inf, np.where(x < -1, np.nan, x)).astype(x.dtype)
    alpha = {"alpha": 0.3} if d.op != "Elu" or d.opset > 1 else {}
    more = d.some(**alpha, beta=0.4, gamma=1.2, detect_negative=0, detect_positive=0)
    axis = d.some(axis=lambda: int(d.rng.integers(len(shape))), p=lambda: d.pick(1, 2))
    return Node([x], {**more, **axis, **d.some(consumed_inputs=[0])})


@maker_of("Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Mod", "Equal", "Greater", "Less",
     "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor", "BitShift")  # fmt: skip
def _binary(d: Draw) -> Node:
    shape = d.shape(1, 4)
    dtype = d.dtype(*NUMBERS, B, np.uint32)
    if d.op == "Mod" and np.dtype(dtype).kind == "f":
        dtype = np.dtype(L)
    x = d.array(*shape, dtype=dtype, low=1 if d.op == "Pow" else -3)
    if d.op == "BitShift":
        dtype = np.dtype(np.uint8)
        x = d.array(*shape, dtype=dtype, low=1)
    attributes = {}
    if d.op == "BitShift":
        attributes["direction"] = d.pick("LEFT", "RIGHT")
    if d.op == "Mod":
        attributes = d.some(fmod=1)
    if d.has("broadcast"):
        other = shape
        if d.chance(0.7):
            attributes["broadcast"] = 1
            start = int(d.rng.integers(len(shape)))
            end = int(d.rng.integers(start, len(shape) + 1))
            other = shape[start:end]
            attributes["axis"] = start
            if d.chance():
                other = shape[start:]
                if d.chance():
                    del attributes["axis"]
    elif d.op == "PRelu" and d.opset < 7:
        other = d.pick((1,), shape[1:2] if len(shape) > 1 else (1,))
    else:
        other = shape[int(d.rng.integers(len(shape))) :]
        other = tuple(1 if d.chance(0.3) else size for size in other)
    y = d.array(*other, dtype=dtype, low=1, high=3)
    both = [x, y] if d.has("broadcast") or d.op == "PRelu" or d.chance() else [y, x]
    return Node(both, {**attributes, **d.some(consumed_inputs=[0, 0])})


@maker_of("Max", "Min", "Sum", "Mean")
def _several(d: Draw) -> Node:
    shape = d.shape(1, 3)
    dtype = d.dtype(F, F, D, L, H)
    broad = d.opset >= 8 and d.chance()
    shapes = [
        tuple(1 if broad and d.chance(0.4) else n for n in shape) for _ in range(d.pick(1, 2, 3))
    ]
    return Node([d.array(*each, dtype=dtype) for each in shapes], d.some(consumed_inputs=[0]))


@maker_of("ArgMax", "ArgMin")
def _arg(d: Draw) -> Node:
    shape = d.shape(1, 3)
    x = d.whole(*shape, low=0, high=2).astype(d.dtype(F, J, D))
    last = d.some(select_last_index=lambda: d.pick(0, 1))
    return Node([x], {**d.some(axis=d.axis(len(shape)), keepdims=d.pick(0, 1)), **last})


@maker_of("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
     "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare")  # fmt: skip
def _reduce(d: Draw) -> Node:
    shape = d.shape(1, 3)
    x = d.array(*shape, dtype=d.dtype(F, F, D, J, L, np.uint8, np.bool_), low=1)
    attributes = d.some(keepdims=d.pick(0, 1), noop_with_empty_axes=lambda: d.pick(0, 1))
    if d.has("axes"):
        return Node([x], {**attributes, **d.some(axes=d.axes(len(shape)))})
    if d.chance(0.25):
        return Node([x], attributes)
    if d.chance(0.15):
        return Node([x, np.zeros(0, L)], attributes)
    return Node([x, np.array(d.axes(len(shape)), L)], attributes)


@maker_of("Softmax", "LogSoftmax", "Hardmax")
def _softmax(d: Draw) -> Node:
    shape = d.shape(1, 4)
    least = -len(shape) if d.opset >= 11 else 0
    axis = {"axis": int(d.rng.integers(least, len(shape)))} if d.chance(0.7) else {}
    if not axis and d.opset < 13 and len(shape) < 2:
        axis = {"axis": 0}
    return Node([d.real(*shape)], axis)


def _window(d: Draw, kernel: list[int], *, dilated: bool = True) -> dict[str, Any]:
    made: dict[str, Any] = d.some(
        strides=[d.pick(1, 2, 3) for _ in kernel],
        dilations=lambda: [d.pick(1, 2) for _ in kernel],
    )
    if d.chance():
        made.update(d.some(pads=[d.pick(0, 1) for _ in range(2 * len(kernel))]))
    elif d.chance():
        made["auto_pad"] = d.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        made.pop("dilations", None)
    return made


@maker_of("AveragePool", "MaxPool", "LpPool")
def _pool(d: Draw) -> Node:
    rank = d.pick(1, 2, 3)
    kernel = [d.pick(2, 3) for _ in range(rank)]
    attributes = {"kernel_shape": kernel, **_window(d, kernel)}
    if d.op == "AveragePool" and d.opset < 7:
        # ONNX's reference counts padding there.
        attributes = {"kernel_shape": kernel}
    if str(attributes.get("auto_pad", "")).startswith("SAME"):
        attributes.pop("strides", None)  # which may exceed the kernel: old kernels then fail
    attributes.update(
        d.some(ceil_mode=lambda: d.pick(0, 1), count_include_pad=lambda: d.pick(0, 1))
    )
    if d.op == "LpPool" and d.opset > 1:
        attributes.update(d.some(p=lambda: d.pick(1, 2)))
    outputs = 2 if d.op == "MaxPool" and d.opset >= 8 and d.chance(0.3) else 1
    attributes.update(d.some(storage_order=lambda: d.pick(0, 1)) if outputs == 2 else {})
    x = d.real(2, 3, *(int(n) for n in d.rng.integers(6, 10, rank)))
    return Node([x], attributes, outputs)


@maker_of("GlobalLpPool")
def _global_lp(d: Draw) -> Node:
    return Node([d.real(2, 3, 4, 5)], d.some(p=d.pick(1, 2)) if d.opset > 1 else {})


@maker_of("Conv", "ConvTranspose")
def _conv(d: Draw) -> Node:
    rank, groups = d.pick(1, 2), d.pick(1, 2)
    kernel = [d.pick(1, 2, 3) for _ in range(rank)]
    attributes = {"group": groups, **_window(d, kernel)}
    if d.op == "ConvTranspose":
        attributes.update(d.some(output_padding=[0] * rank))
    inputs = [d.real(2, 4, *(int(n) for n in d.rng.integers(6, 9, rank)))]
    channels = 4 // groups if d.op == "Conv" else 4
    other = 6 if d.op == "Conv" else 6 // groups
    first, second = (other, channels) if d.op == "Conv" else (channels, other)
    inputs.append(d.real(first, second, *kernel))
    if d.chance():
        inputs.append(d.real(6))
    return Node(inputs, attributes)


@maker_of("DeformConv")
def _deform(d: Draw) -> Node:
    return Node([d.real(1, 2, 5, 5), d.real(3, 2, 2, 2), d.real(1, 8, 4, 4)], {})


@maker_of("BatchNormalization")
def _batch(d: Draw) -> Node:
    x = d.real(2, 3, 4, 2)
    inputs = [x, d.real(3), d.real(3), d.real(3), d.real(3, low=0.5)]
    attributes = d.some(epsilon=0.01)
    if d.opset < 7:
        attributes["is_test"] = d.pick(1, 1, 0)
    attributes.update(d.all(consumed_inputs=[0, 0, 0, 1, 1]))
    attributes.update(d.some(spatial=lambda: d.pick(1, 1, 0)))
    attributes.update(d.some(training_mode=lambda: d.pick(0, 1), momentum=0.7))
    outputs = 1
    if attributes.get("training_mode"):
        outputs = d.pick(1, 3)
    elif d.opset < 14 and d.chance(0.2):
        outputs = 5
    return Node(inputs, attributes, outputs)


@maker_of("InstanceNormalization")
def _instance(d: Draw) -> Node:
    more = d.some(epsilon=0.02, consumed_inputs=[0, 0, 0])
    return Node([d.real(2, 3, 4), d.real(3), d.real(3)], more)


@maker_of("GroupNormalization")
def _group(d: Draw) -> Node:
    channels, groups = d.pick((4, 2), (6, 3), (6, 2), (4, 4), (4, 1))
    size = groups if d.opset < 21 else channels
    x = d.real(2, channels, *d.shape(1, 2))
    return Node([x, d.real(size), d.real(size)], {"num_groups": groups, **d.some(epsilon=0.01)})


@maker_of("LRN")
def _lrn(d: Draw) -> Node:
    return Node(
        [d.real(2, 5, 3, 3)], {"size": d.pick(1, 3), **d.some(alpha=0.1, beta=0.5, bias=2.0)}
    )


@maker_of("Cast")
def _cast(d: Draw) -> Node:
    x = d.array(*d.shape(1, 2), dtype=d.dtype(F, D, H, L, J, B, np.uint8), low=0)
    to = d.pick(F, D, H, L, J, B, np.uint8)
    if d.opset < 6:
        names = {F: "FLOAT", D: "DOUBLE", H: "FLOAT16", L: "INT64", J: "INT32", B: "BOOL"}
        return Node([x], {"to": names.get(to, "UINT8")})
    code = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    if d.opset >= 9 and d.chance(0.1):
        code = TensorProto.STRING
    return Node([x], {"to": code, **d.some(saturate=lambda: d.pick(0, 1))})


@maker_of("CastLike")
def _cast_like(d: Draw) -> Node:
    x = d.array(*d.shape(1, 2), dtype=d.dtype(F, D, L), low=0)
    return Node([x, d.array(1, dtype=d.pick(F, D, H, L, B), low=0)], d.some(saturate=1))


@maker_of("Clip")
def _clip(d: Draw) -> Node:
    x = d.array(*d.shape(1, 2), dtype=d.dtype(F, F, D, J, L, np.uint8))
    if d.has("min"):
        return Node([x.astype(F)], d.some(min=-0.5, max=1.0, consumed_inputs=[0]))
    bounds: list[Any] = [np.array(bound, x.dtype) if d.chance(0.7) else None for bound in (0, 1)]
    return Node([x, *bounds], {})


@maker_of("Compress")
def _compress(d: Draw) -> Node:
    x = d.array(3, 4, dtype=d.dtype(*NUMBERS))
    return Node([x, np.array([True, False, True])], d.some(axis=d.axis(2)))


@maker_of("Concat")
def _concat(d: Draw) -> Node:
    shape = d.shape(2, 3)
    dtype = d.dtype(F, F, D, L, J, B)
    parts = [d.array(*shape, dtype=dtype) for _ in range(d.pick(1, 2, 3))]
    axis = {} if d.opset < 4 and d.chance() else {"axis": d.axis(len(shape))}
    return Node(parts, axis)


@maker_of("Constant")
def _constant(d: Draw) -> Node:
    choice = d.pick(
        "value", "value", "value_ints", "value_float", "value_string", "value_floats", "value_int"
    )
    if not d.has(choice):
        choice = "value"
    made = {
        "value": lambda: numpy_helper.from_array(
            d.array(2, 2, dtype=d.pick(F, D, L, B, np.uint8, H), low=0)
        ),
        "value_ints": lambda: [1, 2, 3],
        "value_int": lambda: 4,
        "value_float": lambda: 1.5,
        "value_floats": lambda: [1.5, 2.5],
        "value_string": lambda: "text",
    }[choice]()
    return Node([], {choice: made})
