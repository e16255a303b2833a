"""Operators of loaded libraries: inference and computation."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays.sparse_array import CSR
from passlib.errors import OperatorError, UnsupportedError
from passlib.library.arrays import DENSE, STORAGE, ArrayType, Lent, take_outputs, type_of
from passlib.library.call import Library
from passlib.library.operator_state import OperatorState
from passlib.library.settings import settings
from passlib.library.types import extents, merge_dtypes, merge_shapes, type_codes
from passlib.lowering import Shape

logger = logging.getLogger(__name__)


class Operator:
    """An operator that a loaded library registered.

    Methods take the attributes of a node, text by name; ``node_name`` is for
    messages. What the library prints to ``std::cout`` goes to `sys.stdout`. Where the environment
    has ``PASSLIB_CHECK_MEMORY=1``, computing fails if the operator writes past the ends of its
    outputs or of memory that it asked for, or to inputs that it does not declare as mutated.

    Parameters
    ----------
    library : Library
    index : int
        Position in ``library.ops``.
    """

    def __init__(self, library: Library, index: int) -> None:
        self.name = library.ops[index]
        self.library = library
        self._core = _core.CustomOp(library.core, index)

    def __repr__(self) -> str:
        return f"<Operator {self.name} of {self.library.path}>"

    @property
    def is_subgraph(self) -> bool:
        """Whether it runs the graph that its node carries (``setIsSubgraphOp``)."""
        return self._core.is_subgraph

    @property
    def is_stateful(self) -> bool:
        """Whether each node has a state; `create_state` makes it."""
        return self._core.is_stateful

    @property
    def has_backward(self) -> bool:
        """Whether gradients may be asked for. A state may still refuse to compute them."""
        return self._core.has_backward_function or self._core.is_stateful

    @property
    def infers(self) -> bool:
        """Whether the operator infers arity, shapes and types itself.

        A subgraph operator takes them from its graph; as in MXNet, its own functions are unused.
        """
        return not self.is_subgraph

    def arity(self, attributes: Mapping[str, str], node_name: str = "") -> tuple[int, int]:
        """Return the numbers of inputs and outputs of a node.

        Raises
        ------
        OperatorError
            The library fails, or returns impossible numbers.
        UnsupportedError
            A subgraph operator.
        """
        self._require_own(node_name)
        return self._core.arity(dict(attributes), node_name, sys.stdout.write)

    def mutated_inputs(self, attributes: Mapping[str, str], node_name: str = "") -> tuple[int, ...]:
        """Return the positions of the inputs that the operator writes to, in ascending order.

        Raises
        ------
        OperatorError
            The library fails, or names inputs that do not exist.
        UnsupportedError
            A subgraph operator.
        """
        number, _ = self.arity(attributes, node_name)
        found = self._core.mutated_inputs(dict(attributes), number, node_name, sys.stdout.write)
        return tuple(found)

    def infer_shapes(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[Shape | None],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[Shape | None], list[Shape | None]]:
        """Infer shapes of inputs and outputs.

        Parameters
        ----------
        attributes : mapping of str to str
        inputs : sequence of Shape or None
            None is an unknown rank.
        num_outputs : int
        node_name : str

        Returns
        -------
        inputs, outputs : list of Shape or None
            An output for which the operator returns no sizes is a scalar if all inputs are known,
            else unknown, because the ABI has one form for both.

        Raises
        ------
        OperatorError
            The library fails, or contradicts what is known.
        UnsupportedError
            A subgraph operator, or a size beyond the ABI's 32 bits.
        """
        self._require_own(node_name)
        given = [extents(shape, self._described("", node_name)) for shape in inputs]
        ins, outs = self._core.infer_shapes(
            dict(attributes), given, num_outputs, node_name, sys.stdout.write
        )
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

        Raises
        ------
        OperatorError
            The library fails, contradicts what is known, or names types that do not exist.
        UnsupportedError
            A subgraph operator, or a type that the ABI does not have.
        """
        self._require_own(node_name)
        ins, outs = self._core.infer_types(
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

        Raises
        ------
        OperatorError
            The library fails, requires inputs stored in another way, or an input is sparse and the
            operator has no function for storage types.
        """
        given = [STORAGE.index(storage) for storage in inputs]
        outs = self._core.infer_storage(
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

        Raises
        ------
        OperatorError
            A part is unknown, or the shape does not fit the storage type.
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

        Parameters
        ----------
        node_name : str
        attributes : mapping of str to str
        inputs : sequence of array
            Dense or sparse. C-contiguous ones are not copied.
        outputs : sequence of ArrayType
            As inferred.
        mutated : sequence of int, optional
            The result of `mutated_inputs`, if it is known already. These arrays are written to in
            place.

        Returns
        -------
        list of NDArray or BaseSparseNDArray

        Raises
        ------
        OperatorError
            The library fails. All inputs keep their content.
        ValueError
            An input that the operator writes to is read-only.
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

        Parameters
        ----------
        node_name : str
        attributes : mapping of str to str
        out_grads : sequence of array
            One for each output.
        inputs, outputs : sequence of array
            Of the forward computation.

        Returns
        -------
        list of NDArray
            Shapes and types are those of the inputs.

        Raises
        ------
        OperatorError
            The library fails, or has no backward function.
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

        Parameters
        ----------
        node_name : str
        attributes : mapping of str to str
            For a subgraph operator with ``subgraph_sym_json``.
        shapes : sequence of Shape or None
            Of the inputs.
        types : sequence of numpy.dtype or None

        Returns
        -------
        OperatorState

        Raises
        ------
        OperatorError
            The library fails, or the operator has no state.
        """
        state = self._core.create_state(
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
        return self._core.described(what, node_name).rstrip()

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
        results = self._core.compute(
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
