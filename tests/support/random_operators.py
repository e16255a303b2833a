"""Operators that fit the values of an ONNX graph, drawn at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import helper

from drawn_graph import BOOL, DOUBLE, FLOAT, HALF, INT, INTEGERS, SPECIAL, Drawn

Operator = Callable[[Drawn], None]


def _unary(drawn: Drawn) -> None:
    op = drawn.choice(("Neg", "Abs", "Relu", "Sigmoid", "Exp", "Sqrt", "Identity", "Floor", "Erf"))
    value = drawn.pick()
    drawn.add(op, [value], FLOAT, drawn.shape(value))


def _binary(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    other = drawn.choice([name for name, kind in drawn.values.items() if kind == (FLOAT, shape)])
    if drawn.random.random() < 0.7:
        start = int(drawn.random.integers(len(shape) + 1))
        sizes = tuple(size if drawn.random.random() < 0.5 else 1 for size in shape[start:])
        array = drawn.numbers(FLOAT, sizes)
        if drawn.random.random() < 0.6:
            array = np.full(sizes, drawn.choice(SPECIAL), np.float32)
        other = drawn.constant(array)
    both = [value, other] if drawn.random.random() < 0.6 else [other, value]
    drawn.add(drawn.choice(("Add", "Sub", "Mul", "Div", "Max", "Min")), both, FLOAT, shape)


def _integer(drawn: Drawn) -> None:
    value = drawn.pick(INT)
    other = drawn.constant(drawn.choice(INTEGERS), np.int64)
    drawn.add(drawn.choice(("Add", "Sub", "Mul")), [value, other], INT, drawn.shape(value))


def _cast(drawn: Drawn) -> None:
    code = drawn.choice((FLOAT, FLOAT, BOOL))
    value = drawn.pick(code)
    to = drawn.choice((FLOAT, BOOL) if code == FLOAT else (FLOAT, BOOL, INT))
    drawn.add("Cast", [value], to, drawn.shape(value), to=to)


def _round_trip(drawn: Drawn) -> None:
    """Cast to another type and back, with or without a move between."""
    value = drawn.pick()
    shape = drawn.shape(value)
    code = drawn.choice((DOUBLE, HALF))
    made = drawn.add("Cast", [value], code, shape, to=code)
    if drawn.random.random() < 0.5:
        shape = shape[::-1]
        made = drawn.add("Transpose", [made], code, shape)
    drawn.add("Cast", [made], FLOAT, shape, to=FLOAT)


def _reshape(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = list(drawn.shape(value))
    target, result = list(shape), list(shape)
    if len(shape) > 1 and drawn.random.random() < 0.5:
        place = int(drawn.random.integers(len(shape) - 1))
        result[place : place + 2] = [shape[place] * shape[place + 1]]
        target = [0] * place + [-1] + result[place + 1 :]
    else:
        place = int(drawn.random.integers(len(shape) + 1))
        result.insert(place, 1)
        target = list(result)
        if place < len(result) - 1:
            target[int(drawn.random.integers(place + 1, len(result)))] = -1
    drawn.axes("Reshape", value, target, tuple(result))


def _reshape_by_shape(drawn: Drawn) -> None:
    value = drawn.pick()
    rank = len(drawn.shape(value))
    if not rank:
        return
    list_ = drawn.add("Shape", [value], INT, (rank,))
    sizes = []
    for axis in range(rank):
        index = drawn.constant([axis], np.int64)
        sizes.append(drawn.add("Gather", [list_, index], INT, (1,)))
    order = [int(axis) for axis in drawn.random.permutation(rank)]
    parts = [sizes[axis] for axis in order]
    if drawn.random.random() < 0.5:
        parts[-1] = drawn.constant([-1], np.int64)
    target = drawn.add("Concat", parts, INT, (rank,), axis=0)
    shape = tuple(drawn.shape(value)[axis] for axis in order)
    drawn.add("Reshape", [value, target], FLOAT, shape)


def _squeeze(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    if ones and drawn.random.random() < 0.5:
        axis = drawn.choice(ones)
        drawn.axes("Squeeze", value, [axis], shape[:axis] + shape[axis + 1 :])
    else:
        axis = int(drawn.random.integers(len(shape) + 1))
        drawn.axes("Unsqueeze", value, [axis], (*shape[:axis], 1, *shape[axis:]))


def _transpose(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    order = [int(axis) for axis in drawn.random.permutation(len(shape))]
    drawn.add("Transpose", [value], FLOAT, tuple(shape[axis] for axis in order), perm=order)


def _slice(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    axis = int(drawn.random.integers(len(shape)))
    step = int(drawn.choice((1, 1, 1, 2, -1)))
    bounds = [int(drawn.choice((0, 1, 2, -1, -2, shape[axis], 1 << 62, -(1 << 62)))) for _ in "ab"]
    size = len(range(*slice(bounds[0], bounds[1], step).indices(shape[axis])))
    if step < 0:
        bounds, size = [-1, -(1 << 62)], shape[axis]
    given = [drawn.constant([item], np.int64) for item in (*bounds, axis, step)]
    drawn.add("Slice", [value, *given], FLOAT, (*shape[:axis], size, *shape[axis + 1 :]))


def _slices(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    axis = next((axis for axis, size in enumerate(shape) if size > 1), None)
    if axis is None:
        return
    edge = int(drawn.random.integers(1, shape[axis]))
    where = drawn.constant([axis], np.int64)
    edges = [drawn.constant([item], np.int64) for item in (0, edge, shape[axis])]
    for start, end, size in ((0, 1, edge), (1, 2, shape[axis] - edge)):
        result = (*shape[:axis], size, *shape[axis + 1 :])
        drawn.add("Slice", [value, edges[start], edges[end], where], FLOAT, result)


def _gather(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape or 0 in shape:
        return
    axis = int(drawn.random.integers(len(shape)))
    index = drawn.constant(int(drawn.random.integers(-shape[axis], shape[axis])), np.int64)
    rest = (*shape[:axis], *shape[axis + 1 :])
    made = drawn.add("Gather", [value, index], FLOAT, rest, axis=axis)
    if drawn.random.random() < 0.5:
        drawn.axes("Unsqueeze", made, [axis], (*shape[:axis], 1, *shape[axis + 1 :]))


def _concat(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    axis = int(drawn.random.integers(-len(shape), len(shape)))
    parts = [value] * int(drawn.random.integers(1, 3))
    parts += [name for name, kind in drawn.values.items() if kind == (FLOAT, shape)][:2]
    result = list(shape)
    result[axis] *= len(parts)
    drawn.add("Concat", parts, FLOAT, tuple(result), axis=axis)


def _expand(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    target = [size if size != 1 else int(drawn.random.integers(1, 4)) for size in shape]
    drawn.axes("Expand", value, target, tuple(target))


def _pad(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    pads = [int(item) for item in drawn.random.integers(0, 2, 2 * len(shape))]
    rank = len(shape)
    result = tuple(size + pads[i] + pads[i + rank] for i, size in enumerate(shape))
    drawn.axes("Pad", value, pads, result)


def _reduce(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape or 0 in shape:
        return
    axis, keep = int(drawn.random.integers(len(shape))), int(drawn.random.integers(2))
    result = (*shape[:axis], *([1] if keep else []), *shape[axis + 1 :])
    op = drawn.choice(("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"))
    if op == "ReduceSum" or drawn.opset >= 18:
        drawn.axes(op, value, [axis], result, keepdims=keep)
    else:
        drawn.add(op, [value], FLOAT, result, axes=[axis], keepdims=keep)


def _matmul(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    if drawn.random.random() < 0.2:
        factor = drawn.constant(drawn.random.standard_normal(shape[-1]), np.float32)
        value = drawn.add(drawn.choice(("Add", "Mul")), [value, factor], FLOAT, shape)
    columns = int(drawn.random.integers(1, 4))
    weight = drawn.constant(drawn.random.standard_normal((shape[-1], columns)), np.float32)
    if drawn.random.random() < 0.3:
        data = drawn.random.integers(-128, 128, (shape[-1], columns))
        integers = drawn.constant(data, np.int8)
        scale = drawn.constant(drawn.random.random((1, columns)), np.float32)
        real = drawn.add("Cast", [integers], FLOAT, data.shape, to=FLOAT)
        weight = drawn.add("Mul", [real, scale], FLOAT, data.shape)
    result = (*shape[:-1], columns)
    made = drawn.add("MatMul", [value, weight], FLOAT, result)
    if drawn.random.random() < 0.7:
        bias = drawn.constant(drawn.random.standard_normal(columns), np.float32)
        drawn.add(drawn.choice(("Add", "Mul")), [made, bias], FLOAT, result)


def _conv(drawn: Drawn) -> None:
    value = drawn.pick(rank=4)
    shape = drawn.shape(value)
    if 0 in shape:
        return
    if drawn.random.random() < 0.5:
        value = _by_channel(drawn, value)
    weight = drawn.random.standard_normal((2, shape[1], 1, 1))
    pads = drawn.choice(([0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]))
    result = (shape[0], 2, shape[2] + pads[0] + pads[2], shape[3] + pads[1] + pads[3])
    inputs = [value, drawn.constant(weight, np.float32)]
    made = drawn.add("Conv", inputs, FLOAT, result, pads=pads)
    _by_channel(drawn, made)


def _by_channel(drawn: Drawn, value: str) -> str:
    """Add a normalization, or an operator with a constant, for each channel of images."""
    shape = drawn.shape(value)
    channels = shape[1]
    if drawn.random.random() < 0.5:
        four = [drawn.constant(drawn.random.random(channels) + 0.5, np.float32) for _ in range(4)]
        return drawn.add("BatchNormalization", [value, *four], FLOAT, shape)
    scale = drawn.constant(drawn.random.standard_normal((channels, 1, 1)), np.float32)
    return drawn.add(drawn.choice(("Add", "Mul", "Sub", "Div")), [value, scale], FLOAT, shape)


def _lstm(drawn: Drawn) -> None:
    value = drawn.pick(rank=3)
    length, batch, size = drawn.shape(value)
    if 0 in (length, batch, size):  # ONNX Runtime reads numbers that are not there
        return
    weights = [
        drawn.constant(drawn.random.standard_normal(shape), np.float32)
        for shape in ((1, 8, size), (1, 8, 2))
    ]
    list_ = drawn.add("Shape", [value], INT, (3,))
    number = drawn.add("Gather", [list_, drawn.constant([1], np.int64)], INT, (1,))
    ends = [drawn.constant([item], np.int64) for item in (1, 2)]
    sizes = drawn.add("Concat", [ends[0], number, ends[1]], INT, (3,), axis=0)
    zero = drawn.constant(drawn.choice((0.0, 0.0, -0.0, 1.0)), np.float32)
    state = drawn.add("Expand", [zero, sizes], FLOAT, (1, batch, 2))
    inputs = [value, *weights, "", "", state, state]
    drawn.add("LSTM", inputs, FLOAT, (length, 1, batch, 2), hidden_size=2)


def _condition(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    axis = int(drawn.random.integers(len(shape)))
    if drawn.random.random() < 0.5:
        condition = drawn.constant(bool(drawn.random.integers(2)), np.bool_)
    else:
        list_ = drawn.add("Shape", [value], INT, (len(shape),))
        size = drawn.add("Gather", [list_, drawn.constant(axis, np.int64)], INT, ())
        one = drawn.constant(int(drawn.choice((1, shape[axis]))), np.int64)
        condition = drawn.add("Equal", [size, one], BOOL, ())
    branches = {}
    for name, ops in (("then_branch", ("Neg", "Neg", "Abs")), ("else_branch", ("Identity",) * 3)):
        names = [f"b{len(drawn.nodes)}{name}{number}" for number in range(len(ops))]
        nodes = [
            helper.make_node(op, [before], [after])
            for op, before, after in zip(ops, [value, *names], names, strict=False)
        ]
        end = helper.make_tensor_value_info(names[-1], FLOAT, None)
        branches[name] = helper.make_graph(nodes, name, [], [end])
    drawn.add("If", [condition], FLOAT, shape, **branches)


def _where(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    isnan = drawn.add("IsNaN", [value], BOOL, shape)
    zero = drawn.constant(drawn.choice(SPECIAL), np.float32)
    drawn.add("Where", [isnan, zero, value], FLOAT, shape)


OPERATORS: tuple[Operator, ...] = (
    _unary, _unary, _binary, _binary, _integer, _cast, _round_trip, _reshape, _reshape,
    _reshape_by_shape, _squeeze, _squeeze, _transpose, _transpose, _slice, _slice, _slices, _gather,
    _concat, _expand, _pad, _reduce, _matmul, _conv, _lstm, _condition, _where,
)  # fmt: skip
