"""The argument of a lowering function: one source node, its inputs, and the graph to write to."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from passlib.graph.attributes import Attributes, blame
from passlib.graph.node import Node
from passlib.lowering.builder import Body, GraphBuilder, NodeSpec
from passlib.lowering.types import Misfit, Operand, Shape, TypeSpec, Value, describe

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike  # which take 5 ms to import

LowerNested = Callable[[int, Sequence[Value]], list[Value]]
"""Lowers a nested graph of a node, by its position, for values of its variables in order."""

_CONSTANT_LIMIT = 1 << 26


class _Inputs(list[Value]):
    """The inputs of a node, of which a lowering function may want more than there are."""

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Value: ...

    @overload
    def __getitem__(self, key: slice, /) -> list[Value]: ...

    def __getitem__(self, key: SupportsIndex | slice, /) -> Value | list[Value]:
        try:
            found = super().__getitem__(key)
            return found if isinstance(found, Value) else _Inputs(found)
        except IndexError:
            raise Misfit(f"it has {len(self)} inputs, too few for the operator") from None


class Operation(Attributes):
    """One source node being lowered; ``overriding`` replaces attributes of the node.

    With ``train``, lower as for training: batch statistics, active dropout. A node without nested
    graphs needs no ``nested``, see `subgraph`.
    """

    def __init__(
        self,
        node: Node,
        inputs: Sequence[Value],
        builder: GraphBuilder,
        *,
        train: builtins.bool = False,
        overriding: Mapping[str, str] | None = None,
        nested: LowerNested | None = None,
    ) -> None:
        super().__init__(node, overriding)
        self._nested = nested
        self.inputs: list[Value] = _Inputs(inputs)
        self.train = train
        self._builder = builder

    @overload
    def emit(
        self,
        op_type: str,
        *inputs: Value | builtins.float | Sequence[builtins.int] | None,
        outputs: builtins.int,
        types: Sequence[TypeSpec] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> list[Value]: ...

    @overload
    def emit(
        self,
        op_type: str,
        *inputs: Value | builtins.float | Sequence[builtins.int] | None,
        outputs: None = None,
        types: Sequence[TypeSpec] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Value: ...

    def emit(
        self,
        op_type: str,
        *inputs: Value | builtins.float | Sequence[builtins.int] | None,
        outputs: builtins.int | None = None,
        types: Sequence[TypeSpec] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Value | list[Value]:
        """Add an ONNX node.

        Raises `GraphError` if the inputs do not fit together; `UnsupportedError` if nothing
        computes an input, or no kernel supports its element type.

        Parameters
        ----------
        *inputs : Value, number, sequence of int or None
            A number is a constant of the first input's element type, a sequence an int64 vector,
            such as axes; ``None`` is an omitted optional input.
        outputs : int, optional
            Number of outputs; if given, the result is a list, even of a single output.
        types : sequence of TypeSpec, optional
            Types of the outputs, if inference cannot find them (nested graphs).
        **attributes
            ONNX attributes; ``None`` omits one, a NumPy type becomes its code.
        """
        given = {
            key: self._builder.tensor_type(value) if isinstance(value, np.dtype) else value
            for key, value in attributes.items()
            if value is not None
        }
        # A trailing empty name is equivalent to none, but ONNX Runtime fuses only the latter form.
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        values = [self._as_value(value, inputs[0]) for value in inputs]
        stem = f"{self.node.name}_{op_type.lower()}"
        node_name = self._builder.unique(stem)
        names = [self._builder.unique(f"{node_name}_out") for _ in range(outputs or 1)]
        made = self._builder.add(NodeSpec(op_type, names, node_name, domain, given, types), values)
        return made if outputs is not None else made[0]

    def _as_value(
        self, given: Value | builtins.float | Sequence[builtins.int] | None, first: object
    ) -> Value | None:
        if given is None or isinstance(given, Value):
            return given
        if not isinstance(given, (builtins.int, builtins.float, np.number)):
            return self.vector(*given)
        assert isinstance(first, Value)
        return self.constant_like(given, first)

    @contextmanager
    def body(self) -> Iterator[Body]:
        """Begin a nested ONNX graph, to which everything emitted in the ``with`` block belongs."""
        with self._builder.nested() as nodes:
            yield Body(self._builder, self.node.name, nodes)

    def subgraph(self, position: builtins.int, values: Sequence[Value]) -> list[Value]:
        """Lower a nested graph of the node into the ONNX graph that is being written.

        The values are those of the graph's variables, in its order; the result is its outputs.
        Raises `Misfit` if there is no graph at this position, or it has another number of
        variables.
        """
        if self._nested is None or position >= len(self.node.subgraphs):
            raise Misfit(f"it has {len(self.node.subgraphs)} nested graphs, too few")
        return self._nested(position, values)

    def operands(self, count: builtins.int, *, more: builtins.bool = False) -> list[Value]:
        """Return the inputs of an operator that takes ``count``; with ``more``, the first ones.

        Raises `Misfit` if there are fewer, or more without ``more``.
        """
        if len(self.inputs) < count or (len(self.inputs) > count and not more):
            wanted = f"at least {count}" if more else str(count)
            raise Misfit(f"the operator takes {wanted} inputs, not {len(self.inputs)}")
        return self.inputs[:count]

    def counted(
        self, name: str, count: builtins.int, *, default: tuple[builtins.int, ...] | None = None
    ) -> tuple[builtins.int, ...]:
        """Return an attribute of ``count`` whole numbers.

        Raises `UnsupportedError` if it is absent, cannot be read or has another length.
        """
        numbers = self.ints(name) if default is None else self.ints(name, default)
        if len(numbers) != count:
            self.invalid(f"needs {count} numbers", name)
        return numbers

    def cast(self, value: Value, dtype: DTypeLike) -> Value:
        """Convert the element type; a value that has it already is returned as it is."""
        return self._builder.cast(value, np.dtype(dtype))

    def constant(self, array: ArrayLike, dtype: DTypeLike | None = None) -> Value:
        """Add a constant; equal ones are shared."""
        return self._builder.constant(np.asarray(array, dtype))

    def constant_like(self, array: ArrayLike, like: Value) -> Value:
        """Add a constant with the element type of ``like``."""
        return self.constant(np.asarray(array).astype(self.dtype_of(like)))

    def vector(self, *numbers: builtins.int) -> Value:
        """Add an int64 constant of shape (n,): axes, starts, shapes.

        Raises `Misfit` if a number exceeds 64 bits.
        """
        most = max(numbers, key=abs, default=0)
        if not -(2**63) <= most < 2**63:
            raise Misfit(f"{most} elements exceed what 64 bits count")
        return self.constant(numbers, np.int64)

    def where(self, condition: Value, chosen: Operand, other: Operand) -> Value:
        """Select ``chosen`` where the condition holds, else ``other``; one of them is a value."""
        if not isinstance(chosen, Value):
            assert isinstance(other, Value)
            chosen = self.constant_like(chosen, other)
        elif not isinstance(other, Value):
            other = self.constant_like(other, chosen)
        return self.emit("Where", condition, chosen, other)

    def variable(self, name: str) -> Value:
        """Return the value of a variable of the graph; raise `UnsupportedError` if it has none."""
        value = self._builder.variables.get(name)
        if value is None:
            self.unsupported(f"the graph has no variable {name!r}")
        return value

    def update(self, index: builtins.int, value: Value) -> None:
        """Write ``value`` to the variable that is input ``index``, for the nodes that follow."""
        self._builder.updates[self.inputs[index].name] = value

    def affordable(self, *sizes: builtins.int) -> None:
        """Raise `UnsupportedError` if a constant of these sizes has more than 2 ** 26 elements."""
        if math.prod(sizes) > _CONSTANT_LIMIT:
            self.unsupported(f"would need a constant of {math.prod(sizes)} elements")

    def declare(self, dtype: np.dtype | None, shape: Shape | None, why: str) -> Value:
        """Declare the type and shape of an output that nothing computes.

        Shape inference sees such a hidden output; a graph that uses it is refused.
        """
        name = self._builder.unique(f"{self.node.name}_hidden")
        why = f"{blame(self.node)}: {why}"
        return Value(name, dtype, shape, unavailable=why, scope=self._builder.scope)

    def shape_of(
        self, value: Value, rank: builtins.int | None = None, *, least: builtins.int = 0
    ) -> tuple[builtins.int, ...]:
        """Return all dimensions of a value; ``rank`` of them if that is given.

        Raises `Misfit` if there are more or fewer, or fewer than ``least``; `UnsupportedError` if
        one is unknown.
        """
        self.require_rank(value, rank, least=least)
        return tuple(self.size_of(value, axis) for axis in range(self.rank_of(value)))

    def size_of(self, value: Value, axis: builtins.int) -> builtins.int:
        """Return the size of one axis.

        Raises `UnsupportedError` if it is unknown, or there is no such axis.
        """
        place = self.axis(value, axis)
        size = None if value.shape is None else value.shape[place]
        if size is None:
            self.unsupported(
                f"requires a known size of axis {place} of {self._name_of(value)}, which is "
                f"{describe(value)}; state it in the shapes of the inputs"
            )
        return size

    def require_rank(
        self, value: Value, rank: builtins.int | None = None, *, least: builtins.int = 0
    ) -> None:
        """Check the rank of a value, if it is known.

        Raises `Misfit` if it differs from ``rank``, or is less than ``least``.
        """
        found = least if value.shape is None else len(value.shape)
        if found < least or (rank is not None and value.shape is not None and found != rank):
            wanted = f"at least {least}" if rank is None else str(rank)
            raise Misfit(f"{self._name_of(value)} must have {wanted} dimensions")

    def rank_of(self, value: Value) -> builtins.int:
        """Return the rank of a value; raise `UnsupportedError` if it is unknown."""
        return len(self.sizes_of(value))

    def sizes_of(self, value: Value) -> Shape:
        """Return the dimensions of a value, None for an open one.

        Raises `UnsupportedError` if the rank is unknown.
        """
        if value.shape is None:
            if value.absent:
                value.require(blame(self.node))
            self.unsupported(f"requires a known rank of {self._name_of(value)}")
        return value.shape

    def dtype_of(self, value: Value) -> np.dtype:
        """Return the element type of a value; raise `UnsupportedError` if it is unknown."""
        if value.dtype is None:
            if value.absent:
                value.require(blame(self.node))
            self.unsupported(f"requires a known element type of {self._name_of(value)}")
        return value.dtype

    def axis(self, value: Value, axis: builtins.int, *, extra: builtins.int = 0) -> builtins.int:
        """Return the axis counted from the front; ``extra`` axes beyond the rank are allowed.

        Raises `GraphError` if the axis does not exist; `UnsupportedError` if the rank is unknown.
        """
        rank = self.rank_of(value) + extra
        if not -rank <= axis < rank:
            self.invalid(f"axis {axis} is outside {describe(value)}")
        return axis % rank if rank else 0

    def _name_of(self, value: Value) -> str:
        for index, candidate in enumerate(self.inputs):
            if candidate is value:
                return f"input {index} ({value.name!r})"
        open_inputs = [
            f"input {index} ({candidate.name!r})"
            for index, candidate in enumerate(self.inputs)
            if candidate.shape is None or None in candidate.shape
        ]
        source = f" (made from {', '.join(open_inputs)})" if open_inputs else ""
        return f"{value.name!r}{source}"
