"""Shapes and element types of the results of ARK's operators, from those of their operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from passlib.lowering.types import Misfit

Shape = tuple[int, ...]


class Operand(NamedTuple):
    """Element type and shape of a tensor."""

    dtype: str
    shape: Shape


def broadcast(*shapes: Shape) -> Shape:
    """Broadcast shapes, aligned at the right: sizes must be equal or 1.

    Raises `Misfit` if they do not broadcast.
    """
    rank = max(map(len, shapes), default=0)
    joined = []
    for sizes in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        largest = max(sizes)
        if any(size not in (1, largest) for size in sizes):
            raise Misfit(f"shapes {' and '.join(map(_text, shapes))} do not broadcast")
        joined.append(largest)
    return tuple(joined)


def matmul_sizes(
    left: Shape, right: Shape, *, transpose_left: bool, transpose_right: bool
) -> tuple[Shape, int, int, int]:
    """Return the leading dimensions of a matrix product, and its M, N and K.

    A vector on the left is a row, one on the right a column. Raises `Misfit` if the inner sizes
    differ, or the leading dimensions do not broadcast.
    """
    a = left if len(left) > 1 else (1, *left)
    b = right if len(right) > 1 else (*right, 1)
    m, k = (a[-1], a[-2]) if transpose_left and len(left) > 1 else (a[-2], a[-1])
    inner, n = (b[-1], b[-2]) if transpose_right and len(right) > 1 else (b[-2], b[-1])
    if inner != k:
        raise Misfit(f"inner sizes {k} and {inner} of {_text(left)} and {_text(right)} differ")
    return broadcast(a[:-2], b[:-2]), m, n, k


def infer_result(op: str, arguments: Mapping[str, Any], reads: Sequence[Operand]) -> Operand | None:
    """Compute the element type and shape of the smallest result of an operator from its arguments.

    None if the operands do not determine it. Unary operators may write to a larger tensor, to which
    they broadcast. The element type of a Cast is that of its destination. Raises `Misfit` if the
    operator cannot take these operands.
    """
    rule = _RULES.get(op)
    return None if rule is None else rule(arguments, reads)


def _elementwise(arguments: Mapping[str, Any], reads: Sequence[Operand]) -> Operand:
    types = {read.dtype for read in reads}
    if len(types) > 1:
        raise Misfit(f"element types {' and '.join(sorted(types))} differ")
    return Operand(reads[0].dtype, broadcast(*(read.shape for read in reads)))


def _rope(arguments: Mapping[str, Any], reads: Sequence[Operand]) -> Operand:
    result = _elementwise(arguments, reads)
    if result.shape[-1] % 2:
        raise Misfit(f"the last dimension of {_text(result.shape)} is not even")
    return result


def _reduction(arguments: Mapping[str, Any], reads: Sequence[Operand]) -> Operand:
    dtype, shape = reads[0]
    axis = arguments["Axis"]
    if not -len(shape) <= axis < len(shape):
        raise Misfit(f"axis {axis} is outside {_text(shape)}")
    axis %= len(shape)
    kept = (1,) if arguments["KeepDim"] else ()
    return Operand(dtype, (*shape[:axis], *kept, *shape[axis + 1 :]) or (1,))


def _transpose(arguments: Mapping[str, Any], reads: Sequence[Operand]) -> Operand:
    dtype, shape = reads[0]
    order = arguments["Permutation"]
    if sorted(order) != list(range(len(shape))):
        raise Misfit(f"{_text(order)} is not a permutation of the dimensions of {_text(shape)}")
    return Operand(dtype, tuple(shape[i] for i in order))


def _matmul(arguments: Mapping[str, Any], reads: Sequence[Operand]) -> Operand:
    left, right = reads
    if left.dtype != right.dtype:
        raise Misfit(f"element types {left.dtype} and {right.dtype} differ")
    leading, m, n, _ = matmul_sizes(
        left.shape,
        right.shape,
        transpose_left=arguments["TransposeInput"],
        transpose_right=arguments["TransposeOther"],
    )
    return Operand(left.dtype, (*leading, m, n))


def _embedding(arguments: Mapping[str, Any], reads: Sequence[Operand]) -> Operand:
    indices, weight = reads
    if len(weight.shape) != 2:
        raise Misfit(f"the weight must have two dimensions, not shape {_text(weight.shape)}")
    if len(indices.shape) > 3:
        raise Misfit(
            f"indices must have at most three dimensions, not shape {_text(indices.shape)}"
        )
    if indices.dtype != "INT32":
        raise Misfit(f"indices must be INT32, not {indices.dtype}")
    leading = (1,) * (3 - len(indices.shape)) + indices.shape
    return Operand(weight.dtype, (*leading, weight.shape[1]))


_Rule = Callable[[Mapping[str, Any], Sequence[Operand]], Operand]

_UNARY = (
    *("ScalarAdd", "ScalarMul", "Exp", "Sqrt", "Rsqrt", "Relu", "Sigmoid", "Gelu", "Copy"),
    *("Cast", "DeviceSync", "Send", "SendDone"),
)

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _elementwise),
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMean"), _reduction),
    **dict.fromkeys(_UNARY, lambda arguments, reads: reads[0]),
    "Rope": _rope,
    "Transpose": _transpose,
    "Matmul": _matmul,
    "Embedding": _embedding,
}


_STRETCHING = frozenset(_UNARY) - {"DeviceSync", "Send", "SendDone"}
"""Unary operators that may write to a larger tensor, to which the operand broadcasts."""

_RESHAPING = ("Embedding", "DeviceSync", "Send")
"""Operators that may write their elements, in order, to a tensor of another shape."""


def fits(op: str, result: Operand, written: Operand) -> bool:
    """Whether an operator can write its result to a tensor.

    Unary operators stretch sizes of 1, some operators write elements in order to any shape, and
    all others need exactly the shape of their result.
    """
    if op == "Cast":
        result = Operand(written.dtype, result.shape)
    if result.dtype != written.dtype:
        return False
    if op in _RESHAPING:
        return math.prod(result.shape) == math.prod(written.shape)
    if op not in _STRETCHING:
        return result.shape == written.shape
    try:
        return broadcast(result.shape, written.shape) == written.shape
    except Misfit:
        return False


def _text(shape: Sequence[int]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"
