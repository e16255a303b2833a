"""The data of lowering to ONNX: types and shapes, values, the finished model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from passlib.errors import GraphError, InternalError, UnsupportedError, short_repr
from passlib.files.limits import current_limits
from passlib.graph.attributes import blame
from passlib.graph.node import Entry, Node

if TYPE_CHECKING:
    import onnx


class Misfit(Exception):  # noqa: N818 (never reaches a user)
    """Shapes, types or numbers of inputs that do not fit an operator.

    Raised by rules and lowering functions; caught by their callers and reported with its place.
    """


DType = np.dtype
Shape = tuple[int | None, ...]
"""Dimensions; an unknown one is ``None``."""


class TypeSpec(NamedTuple):
    """Element type and shape of a model input; ``None`` where unknown."""

    dtype: np.dtype | None
    shape: Shape | None

    def __eq__(self, other: object) -> bool:
        # In a comparison with an element type NumPy takes None for float64.
        if not isinstance(other, tuple) or len(other) != 2:
            return False
        return (self.dtype is None) == (other[0] is None) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class Emitter(Protocol):
    """The part of `Operation` that arithmetic with values uses."""

    def emit(self, op_type: str, /, *inputs: Any) -> Any:
        """Add an ONNX node with one output."""

    def constant_like(self, array: Any, like: Value, /) -> Value:
        """Add a constant with the element type of ``like``."""


class Scope:
    """The operation that is being lowered, to which the nodes of arithmetic belong."""

    operation: Emitter | None = None


Arithmetic = Callable[["Value", "Operand"], "Value"]


def _binary(op_type: str) -> tuple[Arithmetic, Arithmetic]:
    """Return the methods that emit an operator with the value on the left, and on the right."""

    def left(value: Value, other: Operand) -> Value:
        return value._emit(op_type, value, other)

    def right(value: Value, other: Operand) -> Value:
        return value._emit(op_type, other, value)

    return left, right


@short_repr
@dataclass(eq=False)
class Value:
    """One ONNX value under construction.

    Arithmetic, comparisons and logic with other values or numbers add one ONNX node each. A number
    becomes a constant of the value's element type. ``==`` is identity, as elsewhere in Python.
    """

    name: str
    """Its name in the ONNX graph."""
    dtype: np.dtype | None = None
    """Element type, ``ml_dtypes.bfloat16`` for brain floats; ``None`` if unknown."""
    shape: Shape | None = None
    """``None`` for an unknown rank; an unknown dimension is ``None`` inside."""
    constant: np.ndarray | None = None
    """The value itself, if it is known during lowering."""
    unavailable: str = ""
    """Why nothing computes this value, though its type may be known (a variable without data, an
    output that no ONNX operator provides); empty for a value that is computed."""
    absent: bool = False
    """Whether it is unavailable because the caller passed no data."""
    scope: Scope | None = field(default=None, repr=False)
    """That of the graph; arithmetic needs it."""

    __array_ufunc__: ClassVar[None] = None
    """Leaves arithmetic with NumPy's numbers and arrays to the methods below."""

    def require(self, user: str) -> None:
        """Check that the value is computed, because ``user`` needs it.

        Raises `GraphError` if the caller passed no data for it; `UnsupportedError` if nothing
        computes it.
        """
        if self.unavailable:
            error = GraphError if self.absent else UnsupportedError
            raise error(f"{user}: {self.unavailable}")

    @property
    def known(self) -> bool:
        """Whether element type and every dimension are known."""
        return self.dtype is not None and self.shape is not None and None not in self.shape

    __add__, __radd__ = _binary("Add")
    __sub__, __rsub__ = _binary("Sub")
    __mul__, __rmul__ = _binary("Mul")
    __truediv__, __rtruediv__ = _binary("Div")
    __pow__, __rpow__ = _binary("Pow")
    __matmul__ = _binary("MatMul")[0]
    __lt__ = _binary("Less")[0]
    __gt__ = _binary("Greater")[0]
    __le__ = _binary("LessOrEqual")[0]
    __ge__ = _binary("GreaterOrEqual")[0]
    __and__ = _binary("And")[0]
    __or__ = _binary("Or")[0]
    __xor__ = _binary("Xor")[0]

    def equals(self, other: Operand) -> Value:
        """Compare each element."""
        return self._emit("Equal", self, other)

    def __neg__(self) -> Value:
        return self._emit("Neg", self)

    def __invert__(self) -> Value:
        return self._emit("Not", self)

    def _emit(self, op_type: str, *operands: Operand) -> Value:
        operation = None if self.scope is None else self.scope.operation
        if operation is None:
            raise InternalError(f"arithmetic with {self.name!r} outside of a lowering function")
        values = (
            operand if isinstance(operand, Value) else operation.constant_like(operand, self)
            for operand in operands
        )
        made: Value = operation.emit(op_type, *values)
        return made


Operand = Value | float | np.ndarray
"""An operand of arithmetic with values."""


@short_repr
@dataclass(frozen=True, eq=False)
class Lowered:
    """A symbol as an ONNX model, with its weights next to it."""

    model: onnx.ModelProto
    """Weights are initializers whose data is declared external: the model stays small, and weights
    are not copied into it."""
    weights: dict[str, np.ndarray]
    """The arrays of these initializers; contiguous, without a copy if the caller's were."""
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    """ONNX names, in the order of the variables and of the symbol's outputs."""
    value_of: Mapping[tuple[Node, int], Value] = field(repr=False)
    """The ONNX value of each output of each node."""
    source_of: Mapping[str, Node] = field(repr=False)
    """The source node of each ONNX node, by the ONNX node's name."""
    updates: Mapping[str, str] = field(default_factory=dict)
    """The ONNX output that holds the new content of each variable that operators write to, such as
    running statistics in training, by the variable's name. In the model these outputs follow those
    of the symbol."""
    unread: frozenset[str] = frozenset()
    """The inputs that no ONNX node reads, such as a label in inference. An exported file omits
    them."""


def type_of(entry: Entry, outputs: Mapping[Node, Sequence[TypeSpec]]) -> TypeSpec:
    """Return the inferred type of an output; an unknown one if inference knows fewer outputs.

    Damaged files use any output of an operator that no registry has.
    """
    known = outputs[entry.node]
    return known[entry.index] if entry.index < len(known) else TypeSpec(None, None)


def describe(value: Value | None) -> str:
    """Spell the element type and shape of a value, e.g. ``float32 (1, 3, ?)``."""
    if value is None:
        return "nothing"
    dtype = "unknown type" if value.dtype is None else value.dtype.name
    if value.shape is None:
        return f"{dtype} of unknown rank"
    return f"{dtype} {shape_text(value.shape)}"


def shape_text(shape: Sequence[int | str | None]) -> str:
    """Spell a shape with ``?`` for unknown dimensions, e.g. ``(1, 3, ?)``."""
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def merged(node: Node, index: int, known: Shape | None, wanted: Shape | None) -> Shape | None:
    """Merge the known shape of an input with the shape that its operator requires.

    None is an unknown rank; ``index`` is the position of the input, for the message. Raises
    `GraphError` if the shapes contradict each other.
    """
    if known is None or wanted is None:
        return known if wanted is None else wanted
    if len(known) != len(wanted) or any(
        a is not None and b is not None and a != b for a, b in zip(known, wanted, strict=True)
    ):
        name = node.inputs[index].node.name
        raise GraphError(
            f"{blame(node)}: input {index} ({name!r}) has shape {shape_text(known)}, "
            f"the operator and its other inputs require {shape_text(wanted)}"
        )
    return tuple(b if a is None else a for a, b in zip(known, wanted, strict=True))


def partial_shape(sizes: Iterable[int | None]) -> Shape:
    """Return a shape as users and attributes state it: a size of 0, -1 or None is unknown."""
    return tuple(None if size is None or size <= 0 else int(size) for size in sizes)


def check_extent(what: str, dtype: np.dtype | None, shape: Shape | None) -> None:
    """Refuse a value whose known sizes take more memory than `passlib.limits` permits.

    An unknown type counts as one byte, and unknown sizes as 1. Raises `GraphError`, which names
    ``what``.
    """
    if shape is None or 0 in shape:
        return
    size = math.prod(n for n in shape if n is not None) * (1 if dtype is None else dtype.itemsize)
    most = current_limits().largest_tensor()
    if size > most:
        raise GraphError(
            f"{what} has the shape {shape_text(shape)}, which takes {size:,} bytes; the limit is "
            f"{most:,}, see passlib.limits(tensor_bytes=...)"
        )
