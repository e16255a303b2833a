"""Random nodes of operators that cast, move and multiply: part of opset_changes.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from operator_draws import NUMBERS, D, Draw, F, H, J, L, Node, maker_of


@maker_of("ConstantOfShape")
def _constant_of_shape(d: Draw) -> Node:
    value = numpy_helper.from_array(np.array([2], d.pick(F, D, L, J, np.uint8, H)))
    return Node([np.array(d.shape(1, 3), L)], d.some(value=value))


@maker_of("CumSum")
def _cumsum(d: Draw) -> Node:
    x = d.array(2, 3, dtype=d.dtype(F, D, J, L))
    return Node([x, np.array(d.axis(2), d.pick(L, J))], d.some(exclusive=1, reverse=1))


@maker_of("DFT")
def _dft(d: Draw) -> Node:
    x = d.real(2, 4, 6, d.pick(1, 2))
    axis = int(d.rng.integers(-3, 3)) if d.chance(0.8) else None
    attributes = d.some(inverse=1) if x.shape[-1] == 2 else d.some(onesided=1)
    length = np.array(d.pick(3, 4, 6, 8), L) if d.chance(0.3) else None
    if axis is not None and axis in (-1,):
        axis = 1
    if d.has("axis"):
        stated = {} if axis is None else {"axis": axis}
        return Node([x, length], {**attributes, **stated})
    return Node([x, length, *([] if axis is None else [np.array(axis, L)])], attributes)


@maker_of("DepthToSpace")
def _depth(d: Draw) -> Node:
    more = d.some(mode=lambda: d.pick("DCR", "CRD"))
    return Node([d.real(1, 8, 2, 3)], {"blocksize": 2, **more})


@maker_of("SpaceToDepth")
def _space(d: Draw) -> Node:
    more = d.some(mode=lambda: d.pick("DCR", "CRD"))
    return Node([d.real(1, 2, 4, 6)], {"blocksize": 2, **more})


@maker_of("QuantizeLinear")
def _quantize(d: Draw) -> Node:
    x = d.real(3, 4, low=-20, high=20)
    if d.has("axis") and d.chance(0.4):
        axis = d.axis(2)
        scale, zero = (
            d.real(x.shape[axis], low=0.1, high=1),
            d.whole(x.shape[axis]).astype(np.uint8),
        )
        return Node([x, scale, zero], {"axis": axis})
    kind = d.pick(np.uint8, np.int8)
    zero = [] if d.chance(0.3) else [np.array(3, kind)]
    if d.opset >= 21 and d.chance(0.3):
        zero = [np.array(3, np.uint16)]
    more = {} if zero else d.some(output_dtype=TensorProto.INT8)
    return Node([x, np.array(0.3, F), *zero], {**more, **d.some(saturate=1)})


@maker_of("DequantizeLinear")
def _dequantize(d: Draw) -> Node:
    kind = d.pick(np.uint8, np.int8, np.int32)
    x = d.whole(4, 4, low=0, high=100).astype(kind)
    if d.has("block_size") and d.chance(0.3):
        return Node(
            [x, d.real(2, 4, low=0.1), d.whole(2, 4).astype(kind)], {"axis": 0, "block_size": 2}
        )
    if d.has("axis") and d.chance(0.4):
        zero = [] if kind is np.int32 else [d.whole(4).astype(kind)]
        return Node([x, d.real(4, low=0.1), *zero], {"axis": d.axis(2)})
    zero = [] if kind is np.int32 or d.chance(0.3) else [np.array(3, kind)]
    return Node([x, np.array(0.3, F), *zero], {})


@maker_of("QLinearMatMul")
def _qlinear(d: Draw) -> Node:
    a, b = d.whole(2, 3).astype(np.uint8), d.whole(3, 4).astype(np.uint8)
    scale, zero = np.array(0.3, F), np.array(2, np.uint8)
    return Node([a, scale, zero, b, scale, zero, scale, zero], {})


@maker_of("Det")
def _det(d: Draw) -> Node:
    return Node([d.real(2, 3, 3)], {})


@maker_of("Dropout")
def _dropout(d: Draw) -> Node:
    x = d.real(2, 3)
    if d.opset < 12:
        attributes = d.some(ratio=0.4)
        if d.has("is_test"):
            attributes["is_test"] = d.pick(1, 1, 0)
        return Node([x], attributes, d.pick(1, 2) if d.opset >= 10 else 1)
    return Node([x, *([np.array(0.4, F)] if d.chance() else [])], d.some(seed=3), d.pick(1, 2))


@maker_of("Einsum")
def _einsum(d: Draw) -> Node:
    return Node([d.real(2, 3), d.real(3, 4)], {"equation": d.pick("ij,jk->ik", "ij,jk->ki")})


@maker_of("Expand")
def _expand(d: Draw) -> Node:
    x = d.array(d.pick(1, 3), 4, dtype=d.dtype(*NUMBERS))
    return Node([x, np.array(d.pick([3, 4], [2, 3, 4], [1, 1]), L)], {})


@maker_of("EyeLike")
def _eye(d: Draw) -> Node:
    return Node([d.real(3, 4)], d.some(k=d.pick(-1, 0, 1), dtype=TensorProto.DOUBLE))


@maker_of("Flatten")
def _flatten(d: Draw) -> Node:
    shape = d.shape(2, 4)
    least = -len(shape) if d.opset >= 11 else 0
    more = d.some(axis=int(d.rng.integers(least, len(shape) + 1)))
    return Node([d.array(*shape, dtype=d.dtype(F, F, D, L, np.uint8))], more)


@maker_of("Gather")
def _gather(d: Draw) -> Node:
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    size = shape[axis]
    at = d.whole(*d.shape(1, 2), low=-size if d.opset >= 11 else 0, high=size)
    return Node([d.array(*shape, dtype=d.dtype(*NUMBERS)), at.astype(d.pick(L, J))], {"axis": axis})


@maker_of("GatherElements")
def _gather_elements(d: Draw) -> Node:
    axis = d.axis(2)
    return Node([d.real(3, 4), d.whole(3, 4, low=-3, high=3)], {"axis": axis})


@maker_of("GatherND")
def _gather_nd(d: Draw) -> Node:
    if d.has("batch_dims") and d.chance():
        return Node([d.real(2, 3, 4), d.whole(2, 1, high=3)], {"batch_dims": 1})
    return Node([d.real(2, 3, 4), d.whole(2, 2, high=2)], {})


@maker_of("Gemm")
def _gemm(d: Draw) -> Node:
    turned = d.pick(0, 1), d.pick(0, 1)
    a = d.real(*((2, 3)[:: -1 if turned[0] else 1]))
    b = d.real(*((3, 4)[:: -1 if turned[1] else 1]))
    attributes = {"transA": turned[0], "transB": turned[1], **d.some(alpha=0.5, beta=0.7)}
    if d.has("broadcast"):
        wide = d.chance()
        attributes["broadcast"] = 1  # without it ONNX's reference leaves C out
        return Node([a, b, d.real(4) if wide else d.real(2, 4)], attributes)
    if d.opset >= 11 and d.chance(0.3):
        return Node([a, b], attributes)
    return Node([a, b, d.real(*d.pick((4,), (2, 4), (1, 4), (2, 1), (1,)))], attributes)


@maker_of("MatMul")
def _matmul(d: Draw) -> Node:
    dtype = d.dtype(F, F, D, J, L)
    shapes = d.pick(((2, 3), (3, 4)), ((2, 2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)))
    return Node([d.array(*shape, dtype=dtype) for shape in shapes], {})


@maker_of("GridSample")
def _grid(d: Draw) -> Node:
    names = ("bilinear", "nearest", "bicubic") if d.opset < 20 else ("linear", "nearest", "cubic")
    more = d.some(
        mode=d.pick(*names),
        padding_mode=d.pick("zeros", "border", "reflection"),
        align_corners=d.pick(0, 1),
    )
    return Node([d.real(1, 2, 4, 5), d.real(1, 3, 3, 2, low=-1, high=1)], more)


@maker_of("RNN", "GRU", "LSTM")
def _recurrent(d: Draw) -> Node:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.op]
    both = d.chance()
    directions, hidden, batch, size, length = (2 if both else 1), 3, 2, 2, 4
    layout = d.some(layout=lambda: d.pick(0, 1))
    x = d.real(*((batch, length, size) if layout.get("layout") else (length, batch, size)), high=1)
    w, r = d.real(directions, gates * hidden, size), d.real(directions, gates * hidden, hidden)
    inputs: list[Any] = [x, w, r]
    if d.chance():
        inputs.append(d.real(directions, 2 * gates * hidden))
        if d.chance():
            inputs.append(np.array([4, 2], J))
            if d.chance():
                state = (
                    (batch, directions, hidden)
                    if layout.get("layout")
                    else (directions, batch, hidden)
                )
                inputs.append(d.real(*state))
    attributes = {
        "hidden_size": hidden,
        "direction": "bidirectional" if both else d.pick("forward", "reverse"),
        **layout,
        **d.some(clip=2.0, linear_before_reset=lambda: d.pick(0, 1)),
        **d.some(output_sequence=lambda: d.pick(0, 1)),
    }
    return Node(inputs, attributes, d.pick(1, 2))


@maker_of("If")
def _if(d: Draw) -> Node:
    graphs = [
        helper.make_graph(
            [helper.make_node("Constant", [], [f"r{n}"], value=numpy_helper.from_array(d.real(2)))],
            f"g{n}", [], [helper.make_tensor_value_info(f"r{n}", 1, [2])])
        for n in range(2)
    ]  # fmt: skip
    return Node([np.array(d.chance())], {"then_branch": graphs[0], "else_branch": graphs[1]})


@maker_of("Loop")
def _loop(d: Draw) -> Node:
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Neg", ["w"], ["s"]),
         helper.make_node("Identity", ["go"], ["on"])], "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, []),
         helper.make_tensor_value_info("v", 1, [2])],
        [helper.make_tensor_value_info("on", 9, []), helper.make_tensor_value_info("w", 1, [2]),
         helper.make_tensor_value_info("s", 1, [2])],
    )  # fmt: skip
    return Node([np.array(3, L), np.array(True), d.real(2)], {"body": body}, 2)


@maker_of("Scan")
def _scan(d: Draw) -> Node:
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Neg", ["c"], ["e"])], "body",
        [helper.make_tensor_value_info("a", 1, [2]), helper.make_tensor_value_info("b", 1, [2])],
        [helper.make_tensor_value_info("c", 1, [2]), helper.make_tensor_value_info("e", 1, [2])],
    )  # fmt: skip
    if d.opset < 9:
        return Node([None, d.real(1, 2), d.real(1, 3, 2)], {"body": body, "num_scan_inputs": 1}, 2)
    more = d.some(scan_input_axes=[0], scan_input_directions=[d.pick(0, 1)])
    return Node([d.real(2), d.real(3, 2)], {"body": body, "num_scan_inputs": 1, **more}, 2)


@maker_of("MaxRoiPool")
def _roi_pool(d: Draw) -> Node:
    return Node([d.real(1, 2, 6, 6), np.array([[0, 0, 0, 4, 4]], F)], {"pooled_shape": [2, 2]})


@maker_of("RoiAlign")
def _roi_align(d: Draw) -> Node:
    more = d.some(
        output_height=2,
        output_width=3,
        sampling_ratio=2,
        mode=d.pick("avg", "max"),
        coordinate_transformation_mode=lambda: d.pick("half_pixel", "output_half_pixel"),
    )
    rois = np.array([[0.6, 1, 4, 5], [0, 0.2, 3, 3]], F)
    return Node([d.real(1, 2, 8, 8), rois, np.zeros(2, L)], more)
