"""The lowering functions of ARK's operators, and of reads and writes of memory."""

from __future__ import annotations

import json
import math

import numpy as np

from passlib.families.ark.lowering.memory import BOX, SIZE, TYPE
from passlib.families.ark.shapes import broadcast
from passlib.families.ark.tensors import Box, numpy_type
from passlib.graph.attributes import blame
from passlib.lowering import Lowerings, Operation, Value

TABLE = Lowerings("ark")


def box_of(op: Operation) -> Box:
    """Return the box that an op reads, writes or computes."""
    shape, strides, offsets = json.loads(op.string(BOX))
    return Box(tuple(shape), tuple(strides), tuple(offsets))


def type_of(op: Operation) -> np.dtype:
    """Return the element type of an op's result."""
    return numpy_type(op.string(TYPE), blame(op.node))


def size_of(op: Operation) -> int:
    """Return the number of elements of the buffer that an op reads or writes."""
    return op.int(SIZE)


def reshape(op: Operation, value: Value, shape: tuple[int, ...]) -> Value:
    """Reshape a value; return the value itself if it has that shape."""
    if value.shape == shape:
        return value
    return op.emit("Reshape", value, shape)


def fit(op: Operation, value: Value) -> Value:
    """Bring a result to the shape of its destination, which may be larger.

    Expand sizes of 1 and add dimensions in front; only reshape if the number of elements is equal.
    """
    target = box_of(op).shape
    shape = op.shape_of(value)
    if math.prod(shape) == math.prod(target):
        return reshape(op, value, target)
    return op.emit("Expand", value, target)


@TABLE.register("Zeros")
def zeros(op: Operation) -> Value:
    """Return zeros, the content of memory before any write."""
    return op.emit("Expand", op.constant(0, type_of(op)), box_of(op).shape)


@TABLE.register("Read")
def read(op: Operation) -> Value:
    """Return a box of the dense array at the start of a buffer."""
    box = box_of(op)
    array = _array(op, op.inputs[0], box)
    return _cut(op, array, box.offsets, _ends(box), range(len(box.shape)))


@TABLE.register("Write")
def write(op: Operation) -> Value:
    """Return the buffer with a box replaced; a buffer without a value is zero elsewhere."""
    box = box_of(op)
    value = reshape(op, op.inputs[0], box.shape)
    size = size_of(op)
    if len(op.inputs) == 1:
        op.affordable(size)
        before = list(box.offsets)
        after = [t - e for t, e in zip(box.strides, _ends(box), strict=True)]
        array = op.emit("Pad", value, [*before, *after])
        flat = reshape(op, array, (box.extent,))
        if size == box.extent:
            return flat
        return op.emit("Pad", flat, [0, size - box.extent])
    old = op.inputs[1]
    array = _replace(op, _array(op, old, box), value, box, 0)
    flat = reshape(op, array, (box.extent,))
    if size == box.extent:
        return flat
    whole = reshape(op, old, (math.prod(op.shape_of(old)),))
    rest = _cut(op, whole, (box.extent,), (size,), range(1))
    return op.emit("Concat", flat, rest, axis=0)


def _array(op: Operation, buffer: Value, box: Box) -> Value:
    """Return the array that contains a box."""
    size = math.prod(op.shape_of(buffer))
    if size != box.extent:
        flat = reshape(op, buffer, (size,))
        buffer = _cut(op, flat, (0,), (box.extent,), range(1))
    return reshape(op, buffer, box.strides)


def _replace(op: Operation, array: Value, value: Value, box: Box, axis: int) -> Value:
    """Replace a box of an array that has the box's sizes in the dimensions before ``axis``."""
    while axis < len(box.shape) and box.shape[axis] == box.strides[axis]:
        axis += 1
    if axis == len(box.shape):
        return value
    start, end, extent = box.offsets[axis], _ends(box)[axis], box.strides[axis]
    middle = _cut(op, array, (start,), (end,), (axis,))
    parts = [_replace(op, middle, value, box, axis + 1)]
    if start > 0:
        parts.insert(0, _cut(op, array, (0,), (start,), (axis,)))
    if end < extent:
        parts.append(_cut(op, array, (end,), (extent,), (axis,)))
    return op.emit("Concat", *parts, axis=axis)


def _cut(
    op: Operation,
    value: Value,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: range | tuple[int, ...],
) -> Value:
    """Slice along those axes that the slice shortens."""
    shape = op.shape_of(value)
    wanted = [
        (start, end, axis)
        for start, end, axis in zip(starts, ends, axes, strict=True)
        if (start, end) != (0, shape[axis])
    ]
    if not wanted:
        return value
    return op.emit("Slice", value, *zip(*wanted, strict=True))


def _ends(box: Box) -> tuple[int, ...]:
    return tuple(o + s for o, s in zip(box.offsets, box.shape, strict=True))


@TABLE.register("Add", "Sub", "Mul", "Div")
def binary(op: Operation) -> Value:
    """Compute elementwise; operands broadcast as in NumPy, integers divide as in C."""
    return fit(op, op.emit(op.node.op, *op.inputs))


@TABLE.register("ScalarAdd", "ScalarMul")
def scalar(op: Operation) -> Value:
    """Add ``Factor`` to every element, or multiply by it.

    The factor is rounded to a 32-bit float and converted to the element type, as in C.
    """
    value = op.inputs[0]
    factor = np.float32(op.float("Factor"))
    return fit(op, value + factor if op.node.op == "ScalarAdd" else value * factor)


@TABLE.register("ScalarAssign")
def assign(op: Operation) -> Value:
    """Fill with ``Value``."""
    filling = np.float32(op.float("Value"))
    value = op.constant(filling.astype(type_of(op)))
    return op.emit("Expand", value, box_of(op).shape)


@TABLE.register("Relu")
def relu(op: Operation) -> Value:
    """Compute max(x, 0)."""
    value = op.inputs[0]
    unsigned = op.dtype_of(value).kind == "u"
    return fit(op, op.emit("Identity" if unsigned else "Relu", value))


@TABLE.register("Exp", "Sqrt", "Sigmoid")
def unary(op: Operation) -> Value:
    """Compute elementwise; Sigmoid is 1 / (1 + exp(-x))."""
    return _like_operand(op, op.emit(op.node.op, _real(op)))


@TABLE.register("Rsqrt")
def reciprocal_root(op: Operation) -> Value:
    """Compute 1 / sqrt(x), without an epsilon."""
    root = op.emit("Sqrt", _real(op))
    return _like_operand(op, op.emit("Reciprocal", root))


@TABLE.register("Gelu")
def gelu(op: Operation) -> Value:
    """Compute 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the tanh form of GELU."""
    x = _real(op)
    if op.dtype_of(x).itemsize == 2:
        x = op.cast(x, np.float32)  # the cube of a half overflows beyond 40
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return _like_operand(op, x * 0.5 * (op.emit("Tanh", inner) + 1.0))


def _real(op: Operation) -> Value:
    """Return the operand of a real function; integers are converted to floats, as in C."""
    value = op.inputs[0]
    is_whole = op.dtype_of(value).kind in "iu"
    return op.cast(value, np.float32) if is_whole else value


def _like_operand(op: Operation, value: Value) -> Value:
    """Convert the result of a real function to the operand's type, and fit its shape."""
    return fit(op, op.cast(value, op.dtype_of(op.inputs[0])))


@TABLE.register("Copy")
def copy(op: Operation) -> Value:
    """Copy, stretching sizes of 1."""
    return fit(op, op.emit("Identity", op.inputs[0]))


@TABLE.register("Cast", "Recast")
def cast(op: Operation) -> Value:
    """Convert as C does, truncating fractions.

    ``Recast`` reads a buffer of integers as signed or unsigned ones of the same size.
    """
    value = op.cast(op.inputs[0], type_of(op))
    return value if op.node.op == "Recast" else fit(op, value)


@TABLE.register("Arrange")
def arrange(op: Operation) -> Value:
    """Store a message in a tensor of another shape."""
    return fit(op, op.inputs[0])


@TABLE.register("Transpose")
def transpose(op: Operation) -> Value:
    """Permute dimensions: dimension i of the result is ``Permutation[i]`` of the operand."""
    order = op.ints("Permutation")
    rank = op.rank_of(op.inputs[0])
    if sorted(order) != list(range(rank)):
        op.unsupported(f"is not a permutation of {rank} dimensions", "Permutation")
    return fit(op, op.emit("Transpose", op.inputs[0], perm=list(order)))


@TABLE.register("ReduceSum", "ReduceMean", "ReduceMax")
def reduce(op: Operation) -> Value:
    """Reduce ``Axis``, which stays as a dimension of size 1 if ``KeepDim`` is true."""
    value = op.inputs[0]
    axis = op.axis(value, op.int("Axis"))
    keep = op.bool("KeepDim")
    return fit(op, op.emit(op.node.op, value, [axis], keepdims=int(keep)))


@TABLE.register("Matmul")
def matmul(op: Operation) -> Value:
    """Multiply matrices in the last two dimensions; leading dimensions broadcast.

    A vector on the left is a row, one on the right a column; vectors cannot be transposed.
    """
    left = _operand(op, 0, "TransposeInput")
    right = _operand(op, 1, "TransposeOther")
    return fit(op, left @ right)


def _operand(op: Operation, index: int, attribute: str) -> Value:
    value = op.inputs[index]
    shape = op.shape_of(value)
    flipped = op.bool(attribute)
    if len(shape) == 1:
        if flipped:
            op.unsupported("a vector cannot be transposed", attribute)
        return reshape(op, value, (1, *shape) if index == 0 else (*shape, 1))
    if not flipped:
        return value
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return op.emit("Transpose", value, perm=order)


@TABLE.register("Rope")
def rope(op: Operation) -> Value:
    """Multiply as complex numbers whose parts are neighbours in the last dimension.

    ``out[2k] = a[2k] b[2k] - a[2k+1] b[2k+1]``, ``out[2k+1] = a[2k] b[2k+1] + a[2k+1] b[2k]``.
    """
    shapes = [op.shape_of(value) for value in op.inputs]
    shape = broadcast(*shapes)
    if shape[-1] % 2:
        op.unsupported(f"the last dimension of {shape} is not even")
    parts = []
    for value, own in zip(op.inputs, shapes, strict=True):
        full = (*(1 for _ in own[:-1]), shape[-1])
        even = value if own[-1] == shape[-1] else op.emit("Expand", value, full)
        pairs = reshape(op, even, (*own[:-1], shape[-1] // 2, 2))
        parts.append([op.emit("Gather", pairs, [i], axis=-1) for i in (0, 1)])
    (real, imaginary), (cosine, sine) = parts
    out = real * cosine - imaginary * sine, real * sine + imaginary * cosine
    return fit(op, reshape(op, op.emit("Concat", *out, axis=-1), shape))


@TABLE.register("Embedding")
def embedding(op: Operation) -> Value:
    """Choose rows of the weight; a negative index counts from the end."""
    indices, weight = op.inputs
    if op.rank_of(weight) != 2:
        op.unsupported("the weight must have two dimensions")
    rows = op.emit("Gather", weight, indices, axis=0)
    return reshape(op, rows, box_of(op).shape)
