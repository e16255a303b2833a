"""Operators of libraries: what they are, the arrays that they get, and their calls."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import CSR, ROW_SPARSE, BaseSparseNDArray, Sparse, wrap
from passlib.errors import OperatorError, UnsupportedError
from passlib.library.call import Library
from passlib.lowering import Shape

UNKNOWN_SIZE: Final = 0xFFFFFFFF
"""MXNet 1.9.1's form of an unknown size, in both directions."""

_PROBES: Final = (240, 360)
"""Substitutes for unknown sizes, with many divisors."""

_UNKNOWN_TYPE: Final = -1


def extents(shape: Shape | None, user: str) -> list[int]:
    """Return a shape in the ABI's form; a scalar and an unknown rank have no sizes.

    Raises `UnsupportedError` if a size does not fit into 32 bits. ``user`` begins the message.
    """
    for size in shape or ():
        if size is not None and size >= UNKNOWN_SIZE:
            raise UnsupportedError(f"{user}: the ABI has no size beyond 32 bits, such as {size}")
    return [UNKNOWN_SIZE if size is None else size for size in shape or ()]


def merge_shapes(
    known: Sequence[Shape | None], inputs: Sequence[list[int]], outputs: Sequence[list[int]]
) -> tuple[list[Shape | None], list[Shape | None]]:
    """Join known types of the inputs with an operator's answer.

    Raises `ValueError` if the answer contradicts what is known.
    """
    merged = [
        _merge(position, shape, answer)
        for position, (shape, answer) in enumerate(zip(known, inputs, strict=True))
    ]
    complete = all(shape is not None and None not in shape for shape in merged)
    scalar: Shape | None = () if complete else None
    return merged, [_shape(answer) if answer else scalar for answer in outputs]


def _shape(answer: list[int]) -> Shape:
    return tuple(None if size == UNKNOWN_SIZE else size for size in answer)


def _merge(position: int, known: Shape | None, answer: list[int]) -> Shape | None:
    if not answer:
        return known
    found = _shape(answer)
    if known is None:
        return found
    if len(found) != len(known) or any(
        None not in (old, new) and old != new for old, new in zip(known, found, strict=True)
    ):
        raise ValueError(
            f"infers the shape {_spell(found)} for its input {position}, which has the shape "
            f"{_spell(known)}"
        )
    return tuple(new if old is None else old for old, new in zip(known, found, strict=True))


Answer: TypeAlias = tuple[list[list[int]], list[list[int]]]
"""Shapes of inputs and outputs in the ABI's form."""


def _confirmed(
    given: list[list[int]], answer: Answer, ask: Callable[[list[list[int]]], Answer]
) -> Answer:
    """Return an answer to unknown sizes without those that the operator computed from them.

    It may compute with unknown sizes as if they were numbers. Hence it is asked again with two sets
    of numbers in their place, and what depends on these is unknown.
    """
    for step in (1, 0):  # different numbers; one, which the operator may ask for
        try:
            probes = [ask(_substituted(given, size, step)) for size in _PROBES]
        except OperatorError:
            continue
        return (
            _same_sizes(answer[0], [each[0] for each in probes]),
            _same_sizes(answer[1], [each[1] for each in probes]),
        )
    return given, [[UNKNOWN_SIZE] * len(shape) for shape in answer[1]]


def _substituted(given: list[list[int]], size: int, step: int) -> list[list[int]]:
    """Return shapes with a number for each unknown size: multiples of ``size``."""
    factors = count(1, step)
    return [
        [size * next(factors) if each == UNKNOWN_SIZE else each for each in shape]
        for shape in given
    ]


def _same_sizes(answer: list[list[int]], probes: Sequence[list[list[int]]]) -> list[list[int]]:
    """Return shapes in which a size is unknown unless it is the same in all answers."""
    return [
        [
            size
            if all(each[number][axis : axis + 1] == [size] for each in probes)
            else UNKNOWN_SIZE
            for axis, size in enumerate(shape)
        ]
        for number, shape in enumerate(answer)
    ]


def _spell(shape: Shape) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def type_codes(types: Sequence[np.dtype[Any] | None]) -> list[int]:
    """Return element types in the ABI's form.

    Raises `UnsupportedError` if the ABI has no such type.
    """
    return [_UNKNOWN_TYPE if dtype is None else dtypes.code(dtype) for dtype in types]


def merge_dtypes(
    known: Sequence[np.dtype[Any] | None], inputs: Sequence[int], outputs: Sequence[int]
) -> tuple[list[np.dtype[Any] | None], list[np.dtype[Any] | None]]:
    """Join known types of the inputs with an operator's answer.

    Raises `ValueError` if the answer contradicts what is known, or names a type that does not
    exist.
    """
    merged = []
    for position, (old, number) in enumerate(zip(known, inputs, strict=True)):
        new = _dtype(number, f"input {position}")
        if old is not None and new is not None and dtypes.code(old) != number:
            raise ValueError(f"infers {new} for its input {position}, which is {old}")
        merged.append(new if old is None else old)
    return merged, [_dtype(number, f"output {i}") for i, number in enumerate(outputs)]


def _dtype(number: int, what: str) -> np.dtype[Any] | None:
    if number == _UNKNOWN_TYPE:
        return None
    if number not in dtypes.NAMES:
        raise ValueError(f"infers the type code {number} for its {what}; the codes are 0 to 12")
    return dtypes.from_code(number)


DENSE: Final = "default"
STORAGE: Final = (DENSE, ROW_SPARSE, CSR)
"""Storage types, each at the position that is its number in the ABI."""

_INDEX = np.dtype(np.int64)


class ArrayType(NamedTuple):
    """Element type, shape and storage type of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    stype: str = DENSE

    def dense(self) -> ArrayType:
        """Return the type of a dense array of the same shape and element type."""
        return self._replace(stype=DENSE)

    def column(self) -> tuple[int, int, tuple[int, ...]]:
        """Return it in the host's form: dtype code, storage type, shape."""
        return dtypes.code(self.dtype), STORAGE.index(self.stype), self.shape


def type_of(array: Any) -> ArrayType:
    """Return the type of a dense or sparse array."""
    return ArrayType(array.dtype, tuple(array.shape), getattr(array, "stype", DENSE))


class Lent:
    """Arrays lent to an operator for one call.

    The operator gets the memory of every array itself, so nothing is copied. An array that is not
    C-contiguous or not in native byte order is lent as a copy; `take_back` copies the operator's
    writes back. ``mutated``: positions of the arrays that the operator writes to. Raises
    `TypeError` if an argument is no array; `ValueError` if an array that is written to is
    read-only; `UnsupportedError` if the ABI has no code for an element type.
    """

    def __init__(self, arrays: Sequence[Any], mutated: Sequence[int]) -> None:
        self._copies: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.columns: list[tuple[Any, ...]] = []
        written = frozenset(mutated)
        for position, array in enumerate(arrays):
            self.columns.append(self._lend(position, array, position in written))

    def take_back(self) -> None:
        """Copy what the operator wrote to copies back into the arrays themselves."""
        for given, copy in self._copies:
            np.copyto(given, copy)

    def _lend(self, position: int, array: Any, mutated: bool) -> tuple[Any, ...]:
        if isinstance(array, BaseSparseNDArray):
            parts = array.parts
            data, indices, pointers = parts.data, parts.indices, parts.indptr
        elif isinstance(array, np.ndarray):
            data, indices, pointers = array, None, None
        else:
            raise TypeError(
                f"input {position} is of type {type(array).__name__}, not an array; make one with "
                "passlib.nd.array"
            )
        what = type_of(array)

        def lend(
            part: np.ndarray[Any, Any] | None, dtype: np.dtype[Any]
        ) -> np.ndarray[Any, Any] | None:
            if part is None:
                return None
            if mutated and not part.flags.writeable:
                raise ValueError(f"the operator writes to its input {position}, which is read-only")
            used = np.asarray(part, dtype, order="C")
            if mutated and not np.shares_memory(used, part):
                self._copies.append((part, used))
            return used

        return (
            dtypes.code(what.dtype),
            STORAGE.index(what.stype),
            what.shape,
            lend(data, data.dtype.newbyteorder("=")),
            lend(indices, _INDEX),
            lend(pointers, _INDEX),
            mutated,
        )


def take_outputs(types: Sequence[ArrayType], results: Sequence[Any]) -> list[Any]:
    """Make arrays of the memory that an operator filled.

    Raises `ValueError` if a sparse one is not sound.
    """
    arrays: list[Any] = []
    for position, (wanted, (stored, data, indices, pointers)) in enumerate(
        zip(types, results, strict=True)
    ):
        values = data.view(wanted.dtype).reshape(stored)
        if indices is None:
            arrays.append(values.view(NDArray))
            continue
        parts = Sparse(
            wanted.stype,
            wanted.shape,
            values,
            indices.view(_INDEX),
            None if pointers is None else pointers.view(_INDEX),
        )
        try:
            arrays.append(wrap(parts))
        except ValueError as error:
            raise ValueError(
                f"gave a {wanted.stype} array that is not sound as its output {position}: {error}"
            ) from None
    return arrays


def settings(node_name: str, *, is_forward: bool) -> _core.ComputeSettings:
    """Return the settings of a computation, including those of the environment."""
    check = os.environ.get("PASSLIB_CHECK_MEMORY", "") not in ("", "0")
    return _core.ComputeSettings(node=node_name, is_forward=is_forward, check_memory=check)


Finish: TypeAlias = Callable[[Lent, Sequence[ArrayType], Sequence[Any], str], list[Any]]
"""Makes arrays of the results of a computation; the last argument is the node's name."""


class OperatorState:
    """The state of one node with a stateful operator. Destroyed with this object.

    Attributes
    ----------
    operator : str
        Name of the operator.
    node_name : str
    """

    def __init__(
        self,
        operator: str,
        node_name: str,
        mutated: Sequence[int],
        core: _core.OperatorState,
        finish: Finish,
    ) -> None:
        self.operator = operator
        self.node_name = node_name
        self._mutated = tuple(mutated)
        self._core = core
        self._finish = finish

    def forward(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[ArrayType],
        *,
        mutated: Sequence[int] | None = None,
    ) -> list[Any]:
        """Compute the outputs; see `Operator.forward`.

        ``mutated``: inputs that may be written to; by default those that the operator declares.
        Subgraph operators declare none.
        """
        lent = Lent(inputs, self._mutated if mutated is None else mutated)
        return self._compute(lent, outputs, is_forward=True)

    def backward(
        self, out_grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> list[Any]:
        """Compute the gradients of the inputs; see `Operator.backward`."""
        types = [type_of(array).dense() for array in inputs]
        return self._compute(Lent([*out_grads, *inputs, *outputs], ()), types, is_forward=False)

    def _compute(self, lent: Lent, types: Sequence[ArrayType], *, is_forward: bool) -> list[Any]:
        results = self._core.compute(
            settings(self.node_name, is_forward=is_forward),
            lent.columns,
            [output.column() for output in types],
            sys.stdout.write,
        )
        return self._finish(lent, types, results, self.node_name)


logger = logging.getLogger(__name__)


class Operator:
    """An operator that a loaded library registered.

    Methods take the attributes of a node, text by name; ``node_name`` is for messages. What the
    library prints to ``std::cout`` goes to `sys.stdout`. Where the environment has
    ``PASSLIB_CHECK_MEMORY=1``, computing fails if the operator writes past the ends of its outputs
    or of memory that it asked for, or to inputs that it does not declare as mutated. ``index``:
    position in ``library.ops``.
    """

    def __init__(self, library: Library, index: int) -> None:
        self.name = library.ops[index]
        self.library = library
        self.core = _core.CustomOp(library.core, index)

    def __repr__(self) -> str:
        return f"<Operator {self.name} of {self.library.path}>"

    @property
    def is_subgraph(self) -> bool:
        """Whether it runs the graph that its node carries (``setIsSubgraphOp``)."""
        return self.core.is_subgraph

    @property
    def is_stateful(self) -> bool:
        """Whether each node has a state; `create_state` makes it."""
        return self.core.is_stateful

    @property
    def has_backward(self) -> bool:
        """Whether gradients may be asked for. A state may still refuse to compute them."""
        return self.core.has_backward_function or self.core.is_stateful

    @property
    def infers(self) -> bool:
        """Whether the operator infers arity, shapes and types itself.

        A subgraph operator takes them from its graph; as in MXNet, its own functions are unused.
        """
        return not self.is_subgraph

    def arity(self, attributes: Mapping[str, str], node_name: str = "") -> tuple[int, int]:
        """Return the numbers of inputs and outputs of a node.

        Raises `OperatorError` if the library fails, or returns impossible numbers;
        `UnsupportedError` for a subgraph operator.
        """
        self._require_own(node_name)
        return self.core.arity(dict(attributes), node_name, sys.stdout.write)

    def mutated_inputs(self, attributes: Mapping[str, str], node_name: str = "") -> tuple[int, ...]:
        """Return the positions of the inputs that the operator writes to, in ascending order.

        Raises `OperatorError` if the library fails, or names inputs that do not exist;
        `UnsupportedError` for a subgraph operator.
        """
        number, _ = self.arity(attributes, node_name)
        found = self.core.mutated_inputs(dict(attributes), number, node_name, sys.stdout.write)
        return tuple(found)

    def infer_shapes(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[Shape | None],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[Shape | None], list[Shape | None]]:
        """Infer shapes of inputs and outputs.

        ``inputs``: None is an unknown rank. Raises `OperatorError` if the library fails, or
        contradicts what is known; `UnsupportedError` for a subgraph operator, or a size beyond the
        ABI's 32 bits.

        Returns
        -------
        inputs, outputs : list of Shape or None
            An output for which the operator returns no sizes is a scalar if all inputs are known,
            else unknown, because the ABI has one form for both.
        """
        self._require_own(node_name)
        user = self._described("", node_name)
        given = [extents(shape, user) for shape in inputs]

        def ask(shapes: list[list[int]], write: Callable[[str], object] = lambda _: None) -> Answer:
            return self.core.infer_shapes(dict(attributes), shapes, num_outputs, node_name, write)

        ins, outs = ask(given, sys.stdout.write)
        if any(UNKNOWN_SIZE in shape for shape in given):
            ins, outs = _confirmed(given, (ins, outs), ask)
        try:
            return merge_shapes(inputs, ins, outs)
        except ValueError as error:
            raise self._error(str(error), node_name) from None

    def infer_types(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[np.dtype[Any] | None],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[np.dtype[Any] | None], list[np.dtype[Any] | None]]:
        """Infer element types of inputs and outputs; None is unknown.

        Raises `OperatorError` if the library fails, contradicts what is known, or names types that
        do not exist; `UnsupportedError` for a subgraph operator, or a type that the ABI does not
        have.
        """
        self._require_own(node_name)
        ins, outs = self.core.infer_types(
            dict(attributes), type_codes(inputs), num_outputs, node_name, sys.stdout.write
        )
        try:
            return merge_dtypes(inputs, ins, outs)
        except ValueError as error:
            raise self._error(str(error), node_name) from None

    def infer_storage(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[str],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[str], list[str]]:
        """Infer storage types: ``"default"``, ``"row_sparse"``, ``"csr"``.

        Raises `OperatorError` if the library fails, requires inputs stored in another way, or an
        input is sparse and the operator has no function for storage types.
        """
        given = [STORAGE.index(storage) for storage in inputs]
        outs = self.core.infer_storage(
            dict(attributes), given, num_outputs, node_name, sys.stdout.write
        )
        return list(inputs), [STORAGE[number] for number in outs]

    def output_type(
        self,
        position: int,
        shape: Shape | None,
        dtype: np.dtype[Any] | None,
        stype: str = DENSE,
        node_name: str = "",
    ) -> ArrayType:
        """Return the type of an output from its inferred parts.

        Raises `OperatorError` if a part is unknown, or the shape does not fit the storage type.
        """
        what = f"for its output {position}"
        if dtype is None:
            raise self._error(f"infers no element type {what}", node_name)
        sizes = tuple(size for size in shape or () if size is not None)
        if shape is None or len(sizes) != len(shape):
            raise self._error(f"infers no complete shape {what}", node_name)
        if stype != DENSE and len(sizes) != 2 and (stype == CSR or not sizes):
            raise self._error(
                f"infers the storage type {stype} {what}, which the shape {sizes} does not allow",
                node_name,
            )
        return ArrayType(dtype, sizes, stype)

    def forward(
        self,
        node_name: str,
        attributes: Mapping[str, str],
        inputs: Sequence[Any],
        outputs: Sequence[ArrayType],
        *,
        mutated: Sequence[int] | None = None,
    ) -> list[Any]:
        """Compute the outputs, of an operator without state.

        Raises `OperatorError` if the library fails. All inputs keep their content; `ValueError` if
        an input that the operator writes to is read-only.

        Parameters
        ----------
        inputs : sequence of array
            Dense or sparse. C-contiguous ones are not copied.
        outputs : sequence of ArrayType
            As inferred.
        mutated : sequence of int, optional
            The result of `mutated_inputs`, if it is known already. These arrays are written to in
            place.
        """
        if mutated is None and not self.is_subgraph:
            mutated = self.mutated_inputs(attributes, node_name)
        lent = Lent(inputs, mutated or ())
        return self._compute(node_name, attributes, lent, outputs, is_forward=True)

    def backward(
        self,
        node_name: str,
        attributes: Mapping[str, str],
        out_grads: Sequence[Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> list[Any]:
        """Compute the gradients of the inputs, of an operator without state.

        Shapes and types are those of the inputs. ``out_grads``: one for each output. ``inputs``,
        ``outputs``: of the forward computation. Raises `OperatorError` if the library fails, or has
        no backward function.
        """
        lent = Lent([*out_grads, *inputs, *outputs], ())
        types = [type_of(array).dense() for array in inputs]
        return self._compute(node_name, attributes, lent, types, is_forward=False)

    def create_state(
        self,
        node_name: str,
        attributes: Mapping[str, str],
        shapes: Sequence[Shape | None],
        types: Sequence[np.dtype[Any] | None],
    ) -> OperatorState:
        """Make the state of one node.

        ``attributes``: for a subgraph operator with ``subgraph_sym_json``. ``shapes``: of the
        inputs. Raises `OperatorError` if the library fails, or the operator has no state.
        """
        state = self.core.create_state(
            dict(attributes),
            [extents(shape, self._described("", node_name)) for shape in shapes],
            type_codes(types),
            node_name,
            sys.stdout.write,
        )
        if not state.made_by_create:
            logger.warning(
                "%s made its state without CustomStatefulOp::create; the library will delete it, "
                "so it must have been allocated with new. Set ignore_warn to confirm that it was",
                self._described("", node_name),
            )
        mutated = () if self.is_subgraph else self.mutated_inputs(attributes, node_name)
        return OperatorState(self.name, node_name, mutated, state, self._finish)

    def _require_own(self, node_name: str) -> None:
        if self.infers:
            return
        message = self._described(
            "is a subgraph operator: inputs, outputs, shapes and types are those of the graph "
            "that its node carries",
            node_name,
        )
        raise UnsupportedError(message)

    def _described(self, what: str, node_name: str) -> str:
        return self.core.described(what, node_name).rstrip()

    def _error(self, what: str, node_name: str) -> OperatorError:
        return OperatorError(
            self._described(what, node_name),
            operator=self.name,
            library=self.library.path,
            node=node_name,
        )

    def _compute(
        self,
        node_name: str,
        attributes: Mapping[str, str],
        lent: Lent,
        types: Sequence[ArrayType],
        *,
        is_forward: bool,
    ) -> list[Any]:
        results = self.core.compute(
            dict(attributes),
            settings(node_name, is_forward=is_forward),
            lent.columns,
            [output.column() for output in types],
            sys.stdout.write,
        )
        return self._finish(lent, types, results, node_name)

    def _finish(
        self, lent: Lent, types: Sequence[ArrayType], results: Sequence[Any], node_name: str
    ) -> list[Any]:
        try:
            arrays = take_outputs(types, results)
        except ValueError as error:
            raise self._error(str(error), node_name) from None
        lent.take_back()
        return arrays
