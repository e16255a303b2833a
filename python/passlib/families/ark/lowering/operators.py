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


def box_of(operation: Operation) -> Box:
    """Return the box that an operation reads, writes or computes."""
    shape, strides, offsets = json.loads(operation.string(BOX))
    return Box(tuple(shape), tuple(strides), tuple(offsets))


def type_of(operation: Operation) -> np.dtype:
    """Return the element type of an operation's result."""
    return numpy_type(operation.string(TYPE), blame(operation.node))


def size_of(operation: Operation) -> int:
    """Return the number of elements of the buffer that an operation reads or writes."""
    return operation.int(SIZE)


def reshape(operation: Operation, value: Value, shape: tuple[int, ...]) -> Value:
    """Reshape a value; return the value itself if it has that shape."""
    if value.shape == shape:
        return value
    return operation.emit("Reshape", value, operation.constant(shape, np.int64))


def fit(operation: Operation, value: Value) -> Value:
    """Bring a result to the shape of its destination, which may be larger.

    Expand sizes of 1 and add dimensions in front; only reshape if the number of elements is equal.
    """
    target = box_of(operation).shape
    shape = operation.shape_of(value)
    if math.prod(shape) == math.prod(target):
        return reshape(operation, value, target)
    return operation.emit("Expand", value, operation.constant(target, np.int64))


@TABLE.register("Zeros")
def zeros(operation: Operation) -> Value:
    """Return zeros, the content of memory before any write."""
    shape = operation.constant(box_of(operation).shape, np.int64)
    return operation.emit("Expand", operation.constant(0, type_of(operation)), shape)


@TABLE.register("Read")
def read(operation: Operation) -> Value:
    """Return a box of the dense array at the start of a buffer."""
    box = box_of(operation)
    array = _array(operation, operation.inputs[0], box)
    return _cut(operation, array, box.offsets, _ends(box), range(len(box.shape)))


@TABLE.register("Write")
def write(operation: Operation) -> Value:
    """Return the buffer with a box replaced; a buffer without a value is zero elsewhere."""
    box = box_of(operation)
    value = reshape(operation, operation.inputs[0], box.shape)
    size = size_of(operation)
    if len(operation.inputs) == 1:
        operation.affordable(size)
        before = list(box.offsets)
        after = [t - e for t, e in zip(box.strides, _ends(box), strict=True)]
        array = operation.emit("Pad", value, operation.constant([*before, *after], np.int64))
        flat = reshape(operation, array, (box.extent,))
        if size == box.extent:
            return flat
        return operation.emit("Pad", flat, operation.constant([0, size - box.extent], np.int64))
    old = operation.inputs[1]
    array = _replace(operation, _array(operation, old, box), value, box, 0)
    flat = reshape(operation, array, (box.extent,))
    if size == box.extent:
        return flat
    whole = reshape(operation, old, (math.prod(operation.shape_of(old)),))
    rest = _cut(operation, whole, (box.extent,), (size,), range(1))
    return operation.emit("Concat", flat, rest, axis=0)


def _array(operation: Operation, buffer: Value, box: Box) -> Value:
    """Return the array that contains a box."""
    size = math.prod(operation.shape_of(buffer))
    if size != box.extent:
        flat = reshape(operation, buffer, (size,))
        buffer = _cut(operation, flat, (0,), (box.extent,), range(1))
    return reshape(operation, buffer, box.strides)


def _replace(operation: Operation, array: Value, value: Value, box: Box, axis: int) -> Value:
    """Replace a box of an array that has the box's sizes in the dimensions before ``axis``."""
    while axis < len(box.shape) and box.shape[axis] == box.strides[axis]:
        axis += 1
    if axis == len(box.shape):
        return value
    start, end, extent = box.offsets[axis], _ends(box)[axis], box.strides[axis]
    middle = _cut(operation, array, (start,), (end,), (axis,))
    parts = [_replace(operation, middle, value, box, axis + 1)]
    if start > 0:
        parts.insert(0, _cut(operation, array, (0,), (start,), (axis,)))
    if end < extent:
        parts.append(_cut(operation, array, (end,), (extent,), (axis,)))
    return operation.emit("Concat", *parts, axis=axis)


def _cut(
    operation: Operation,
    value: Value,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: range | tuple[int, ...],
) -> Value:
    """Slice along those axes that the slice shortens."""
    shape = operation.shape_of(value)
    wanted = [
        (start, end, axis)
        for start, end, axis in zip(starts, ends, axes, strict=True)
        if (start, end) != (0, shape[axis])
    ]
    if not wanted:
        return value
    rows = (operation.constant(row, np.int64) for row in zip(*wanted, strict=True))
    return operation.emit("Slice", value, *rows)


def _ends(box: Box) -> tuple[int, ...]:
    return tuple(o + s for o, s in zip(box.offsets, box.shape, strict=True))


@TABLE.register("Add", "Sub", "Mul", "Div")
def binary(operation: Operation) -> Value:
    """Compute elementwise; operands broadcast as in NumPy, integers divide as in C."""
    return fit(operation, operation.emit(operation.node.op, *operation.inputs))


@TABLE.register("ScalarAdd", "ScalarMul")
def scalar(operation: Operation) -> Value:
    """Add ``Factor`` to every element, or multiply by it.

    The factor is rounded to a 32-bit float and converted to the element type, as in C.
    """
    value = operation.inputs[0]
    factor = operation.constant_like(np.float32(operation.float("Factor")), value)
    onnx = "Add" if operation.node.op == "ScalarAdd" else "Mul"
    return fit(operation, operation.emit(onnx, value, factor))


@TABLE.register("ScalarAssign")
def assign(operation: Operation) -> Value:
    """Fill with ``Value``."""
    filling = np.float32(operation.float("Value"))
    value = operation.constant(filling.astype(type_of(operation)))
    shape = operation.constant(box_of(operation).shape, np.int64)
    return operation.emit("Expand", value, shape)


@TABLE.register("Relu")
def relu(operation: Operation) -> Value:
    """Compute max(x, 0)."""
    value = operation.inputs[0]
    unsigned = operation.dtype_of(value).kind == "u"
    return fit(operation, operation.emit("Identity" if unsigned else "Relu", value))


@TABLE.register("Exp", "Sqrt", "Sigmoid")
def unary(operation: Operation) -> Value:
    """Compute elementwise; Sigmoid is 1 / (1 + exp(-x))."""
    return _like_operand(operation, operation.emit(operation.node.op, _real(operation)))


@TABLE.register("Rsqrt")
def reciprocal_root(operation: Operation) -> Value:
    """Compute 1 / sqrt(x), without an epsilon."""
    root = operation.emit("Sqrt", _real(operation))
    return _like_operand(operation, operation.emit("Reciprocal", root))


@TABLE.register("Gelu")
def gelu(operation: Operation) -> Value:
    """Compute 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the tanh form of GELU."""
    x = _real(operation)
    if operation.dtype_of(x).itemsize == 2:
        x = operation.cast(x, np.float32)  # the cube of a half overflows beyond 40
    cube = operation.emit("Mul", operation.emit("Mul", x, x), x)
    scaled = operation.emit("Mul", cube, operation.constant_like(0.044715, x))
    inner = operation.emit(
        "Mul", operation.emit("Add", x, scaled), operation.constant_like(math.sqrt(2 / math.pi), x)
    )
    one = operation.constant_like(1.0, x)
    gate = operation.emit("Add", operation.emit("Tanh", inner), one)
    half = operation.emit("Mul", x, operation.constant_like(0.5, x))
    return _like_operand(operation, operation.emit("Mul", half, gate))


def _real(operation: Operation) -> Value:
    """Return the operand of a real function; integers are converted to floats, as in C."""
    value = operation.inputs[0]
    is_whole = operation.dtype_of(value).kind in "iu"
    return operation.cast(value, np.float32) if is_whole else value


def _like_operand(operation: Operation, value: Value) -> Value:
    """Convert the result of a real function to the operand's type, and fit its shape."""
    return fit(operation, operation.cast(value, operation.dtype_of(operation.inputs[0])))


@TABLE.register("Copy")
def copy(operation: Operation) -> Value:
    """Copy, stretching sizes of 1."""
    return fit(operation, operation.emit("Identity", operation.inputs[0]))


@TABLE.register("Cast", "Recast")
def cast(operation: Operation) -> Value:
    """Convert as C does, truncating fractions.

    ``Recast`` reads a buffer of integers as signed or unsigned ones of the same size.
    """
    value = operation.cast(operation.inputs[0], type_of(operation))
    return value if operation.node.op == "Recast" else fit(operation, value)


@TABLE.register("Arrange")
def arrange(operation: Operation) -> Value:
    """Store a message in a tensor of another shape."""
    return fit(operation, operation.inputs[0])


@TABLE.register("Transpose")
def transpose(operation: Operation) -> Value:
    """Permute dimensions: dimension i of the result is ``Permutation[i]`` of the operand."""
    order = operation.ints("Permutation")
    rank = operation.rank_of(operation.inputs[0])
    if sorted(order) != list(range(rank)):
        operation.unsupported(f"is not a permutation of {rank} dimensions", "Permutation")
    return fit(operation, operation.emit("Transpose", operation.inputs[0], perm=list(order)))


@TABLE.register("ReduceSum", "ReduceMean", "ReduceMax")
def reduce(operation: Operation) -> Value:
    """Reduce ``Axis``, which stays as a dimension of size 1 if ``KeepDim`` is true."""
    value = operation.inputs[0]
    axis = operation.axis(value, operation.int("Axis"))
    keep = operation.bool("KeepDim")
    axes = operation.constant([axis], np.int64)
    return fit(operation, operation.emit(operation.node.op, value, axes, keepdims=int(keep)))


@TABLE.register("Matmul")
def matmul(operation: Operation) -> Value:
    """Multiply matrices in the last two dimensions; leading dimensions broadcast.

    A vector on the left is a row, one on the right a column; vectors cannot be transposed.
    """
    left = _operand(operation, 0, "TransposeInput")
    right = _operand(operation, 1, "TransposeOther")
    return fit(operation, operation.emit("MatMul", left, right))


def _operand(operation: Operation, index: int, attribute: str) -> Value:
    value = operation.inputs[index]
    shape = operation.shape_of(value)
    flipped = operation.bool(attribute)
    if len(shape) == 1:
        if flipped:
            operation.unsupported("a vector cannot be transposed", attribute)
        return reshape(operation, value, (1, *shape) if index == 0 else (*shape, 1))
    if not flipped:
        return value
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return operation.emit("Transpose", value, perm=order)


@TABLE.register("Rope")
def rope(operation: Operation) -> Value:
    """Multiply as complex numbers whose parts are neighbours in the last dimension.

    ``out[2k] = a[2k] b[2k] - a[2k+1] b[2k+1]``, ``out[2k+1] = a[2k] b[2k+1] + a[2k+1] b[2k]``.
    """
    shapes = [operation.shape_of(value) for value in operation.inputs]
    shape = broadcast(*shapes)
    if shape[-1] % 2:
        operation.unsupported(f"the last dimension of {shape} is not even")
    parts = []
    for value, own in zip(operation.inputs, shapes, strict=True):
        full = operation.constant((*(1 for _ in own[:-1]), shape[-1]), np.int64)
        even = value if own[-1] == shape[-1] else operation.emit("Expand", value, full)
        pairs = reshape(operation, even, (*own[:-1], shape[-1] // 2, 2))
        index = (operation.constant([i], np.int64) for i in (0, 1))
        parts.append([operation.emit("Gather", pairs, i, axis=-1) for i in index])
    (real, imaginary), (cosine, sine) = parts
    out = (
        operation.emit(
            "Sub", operation.emit("Mul", real, cosine), operation.emit("Mul", imaginary, sine)
        ),
        operation.emit(
            "Add", operation.emit("Mul", real, sine), operation.emit("Mul", imaginary, cosine)
        ),
    )
    return fit(operation, reshape(operation, operation.emit("Concat", *out, axis=-1), shape))


@TABLE.register("Embedding")
def embedding(operation: Operation) -> Value:
    """Choose rows of the weight; a negative index counts from the end."""
    indices, weight = operation.inputs
    if operation.rank_of(weight) != 2:
        operation.unsupported("the weight must have two dimensions")
    rows = operation.emit("Gather", weight, indices, axis=0)
    return reshape(operation, rows, box_of(operation).shape)
