"""Executors: symbols bound to the arrays that they compute with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from passlib.arrays.context import Context
from passlib.arrays.creation import zeros
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.dialects import find, infer
from passlib.errors import GraphError, PasslibError, UnsupportedError
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import type_of
from passlib.runtime.custom_node import Done, library_operators
from passlib.runtime.runner import Runner
from passlib.runtime.sessions import as_dense

_Array: TypeAlias = "np.ndarray[Any, Any]"


class Gradients:
    """The arrays that an executor writes gradients to.

    Parameters
    ----------
    arrays : mapping of str to NDArray or None
        One for each argument, None for unwanted gradients.
    requests : mapping of str to {"write", "add", "null"}
        Whether to overwrite the array of an argument, to add to it, or to leave it;
        ``"null"`` for missing ones.
    """

    def __init__(
        self, symbol: PlainGraph, arrays: Mapping[str, NDArray | None], requests: Mapping[str, str]
    ) -> None:
        self._symbol = symbol
        self.arrays = dict(arrays)
        self.requests = dict(requests)
        self._targets = {
            name: array
            for name, array in arrays.items()
            if array is not None and requests.get(name, "null") != "null"
        }
        self._between, self._obstacle = _between(symbol, frozenset(self._targets))

    @property
    def can_be_computed(self) -> bool:
        """Whether all operators between the arguments and the outputs have a backward function."""
        return not self._obstacle

    def backward(self, record: Sequence[Done], outputs: Sequence[Any], out_grads: Any) -> None:
        """Compute the gradients and store them. If that fails, no array has changed.

        ``record``: the record of the last run. ``outputs``: its outputs. ``out_grads``: the
        gradient of each output, of its shape. Raises `UnsupportedError` if an operator on the way
        from an argument to the outputs has no gradient: a built-in one, or one whose library gives
        no backward function; `ValueError` if the gradient of an output is missing, or has another
        shape than the output; `TypeError` if a gradient is no array; `GraphError` if an operator
        gave a gradient of another shape than its input has; `OperatorError` if a backward function
        failed.
        """
        if self._obstacle:
            raise UnsupportedError(f"backward: {self._obstacle}")
        given = self._in_order(out_grads, outputs)
        if not self._targets:
            return
        found = self._compute(record, given)
        for name, target in self._targets.items():
            gradient = found.get(name)
            if self.requests[name] == "write":
                np.copyto(target, 0 if gradient is None else gradient, casting="unsafe")
            elif gradient is not None:
                np.copyto(target, target + gradient, casting="unsafe")

    def _in_order(self, out_grads: Any, outputs: Sequence[Any]) -> list[_Array]:
        names = self._symbol.list_outputs()
        if isinstance(out_grads, Mapping):
            out_grads = [out_grads.get(name) for name in names]
        elif isinstance(out_grads, (np.ndarray, BaseSparseNDArray)):
            out_grads = [out_grads]
        given = list(out_grads or ())
        if len(given) != len(names) or any(gradient is None for gradient in given):
            raise ValueError(
                f"backward needs the gradient of each output ({', '.join(names)}): no operator of "
                "a library is a loss that would start with one of its own"
            )
        for name, gradient, output in zip(names, given, outputs, strict=True):
            if not isinstance(gradient, (np.ndarray, BaseSparseNDArray)):
                raise TypeError(
                    f"the gradient of output {name!r} is of type {type(gradient).__name__}, not an "
                    "array; make one with passlib.nd.array"
                )
            if gradient.shape != output.shape:
                raise ValueError(
                    f"the gradient of output {name!r} has shape {gradient.shape}, the output "
                    f"{output.shape}"
                )
        return [
            as_dense(gradient).astype(output.dtype)
            for gradient, output in zip(given, outputs, strict=True)
        ]

    def _compute(self, record: Sequence[Done], out_grads: Sequence[_Array]) -> dict[str, _Array]:
        sums: dict[tuple[Node, int], _Array] = {}

        def add(node: Node, index: int, gradient: _Array) -> None:
            if node in self._between:
                known = sums.get((node, index))
                sums[node, index] = gradient if known is None else known + gradient

        for entry, gradient in zip(self._symbol.entries, out_grads, strict=True):
            add(entry.node, entry.index, gradient)
        for done in reversed(record):
            node = done.custom.node
            if node not in self._between:
                continue
            given = []
            for index, output in enumerate(done.outputs):
                total = sums.pop((node, index), None)
                # An unused output has a zero gradient.
                given.append(np.zeros(output.shape, output.dtype) if total is None else total)
            gradients = [as_dense(array) for array in done.backward(given)]
            for entry, gradient, value in zip(node.inputs, gradients, done.inputs, strict=True):
                if gradient.shape != value.shape:
                    raise GraphError(
                        f"{blame(node)}: the gradient of an input has shape {gradient.shape}, "
                        f"the input {value.shape}"
                    )
                add(entry.node, entry.index, gradient)
        return {node.name: gradient for (node, _), gradient in sums.items()}


def _between(symbol: PlainGraph, wanted: frozenset[str]) -> tuple[frozenset[Node], str]:
    """Find the wanted variables and all nodes between them and the outputs.

    If one of them has no gradient, the second result describes it.
    """
    nodes = symbol.nodes()
    used = {entry.node for entry in symbol.entries}
    for node in reversed(nodes):
        if node in used:
            used.update(entry.node for entry in node.inputs)
    operators = library_operators(symbol, find(symbol.dialect))
    between: set[Node] = set()
    for node in nodes:
        if node.is_variable and node.name in wanted:
            between.add(node)
        elif node in used and any(entry.node in between for entry in node.inputs):
            operator = operators.get(node.op)
            if operator is None:
                return frozenset(), (
                    "gradients are not computed for built-in operators, and "
                    f"{blame(node)} stands between an argument and the outputs; bind args_grad "
                    "only for arguments from which libraries' operators lead to the outputs"
                )
            if not operator.has_backward:
                return frozenset(), (
                    f"{blame(node)} stands between an argument and the outputs, and its "
                    f"library ({operator.library.path}) gives it no backward function"
                )
            between.add(node)
    return frozenset(between), ""


class Executor:
    """A symbol and the arrays of all its variables. Made by `passlib.executor.bind`.

    The arrays are read anew at each `forward`, so writes to them count.

    Parameters
    ----------
    args, aux : mapping of str to array
        One for each argument and each auxiliary state.
    gradients : Gradients, optional
        The arrays that `backward` writes to.

    Examples
    --------
    >>> import passlib as mx
    >>> executor = mx.sym.relu(mx.sym.var("x")).bind(mx.cpu(), {"x": mx.nd.array([-1, 2])})
    >>> executor.forward()[0].asnumpy()
    array([0., 2.], dtype=float32)
    """

    def __init__(
        self,
        symbol: PlainGraph,
        ctx: Context,
        args: Mapping[str, Any],
        aux: Mapping[str, Any],
        gradients: Gradients | None = None,
    ) -> None:
        self._symbol = symbol
        self._ctx = ctx
        self._args = dict(args)
        self._aux = dict(aux)
        self._gradients = gradients
        self._record: list[Done] = []
        self._outputs: list[NDArray] | None = None
        self._runner = Runner(symbol, find(symbol.dialect))

    @property
    def arg_dict(self) -> dict[str, Any]:
        """Arrays of the arguments by name."""
        return dict(self._args)

    @property
    def aux_dict(self) -> dict[str, Any]:
        """Arrays of the auxiliary states by name."""
        return dict(self._aux)

    @property
    def arg_arrays(self) -> list[Any]:
        """Arrays of the arguments, in the order of `Symbol.list_arguments`."""
        return list(self._args.values())

    @property
    def aux_arrays(self) -> list[Any]:
        """Arrays of the auxiliary states, in the order of `Symbol.list_auxiliary_states`."""
        return list(self._aux.values())

    @property
    def grad_arrays(self) -> list[NDArray | None]:
        """Gradients in the order of `Symbol.list_arguments`; None where no array was bound."""
        return list(self.grad_dict.values())

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Gradients by name of the argument; None where no array was bound."""
        bound = self._gradients.arrays if self._gradients is not None else {}
        return {name: bound.get(name) for name in self._args}

    @property
    def outputs(self) -> list[NDArray]:
        """Results of the last `forward`; before the first, zeros of their shapes and types.

        Raises
        ------
        PasslibError
            There was none yet, and the shapes and types do not follow from the inputs.
        """
        return self._blank() if self._outputs is None else self._outputs

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Results of the last `forward`, by the names of `Symbol.list_outputs`.

        Raises
        ------
        GraphError
            Two outputs have one name.
        PasslibError
            Nothing was computed yet.
        """
        names = self._symbol.list_outputs()
        if len(set(names)) < len(names):
            raise GraphError(f"some outputs have the same name ({', '.join(names)}); use outputs")
        return dict(zip(names, self.outputs, strict=True))

    def _blank(self) -> list[NDArray]:
        both = {**self._args, **self._aux}
        shapes = {name: array.shape for name, array in both.items()}
        types = {name: array.dtype for name, array in both.items()}
        found = infer(self._symbol, shapes, types).outputs
        arrays = []
        for entry in self._symbol.entries:
            spec = type_of(entry, found)
            sizes = [size for size in spec.shape or () if size is not None]
            if spec.dtype is None or spec.shape is None or len(sizes) < len(spec.shape):
                raise PasslibError("there are no outputs yet; call forward() first")
            arrays.append(zeros(tuple(sizes), self._ctx, spec.dtype))
        return arrays

    def forward(self, is_train: bool = False, **inputs: Any) -> list[NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Run as in training: batch statistics instead of the moving ones, active dropout.
            The moving statistics stay as they are; MXNet changes them in ``backward``. Auxiliary
            states that operators of libraries write to do change, in training or not.
        **inputs : array
            Copied into the arrays of these arguments first, and converted to their type.

        Returns
        -------
        list of NDArray
            New arrays at each call.

        Raises
        ------
        TypeError
            The argument does not exist, or a value is no array.
        ValueError
            A shape differs from that of the array that was bound.
        UnsupportedError
            Something in the graph has no faithful lowering, in training if that is asked for.
        OperatorError
            An operator of a library failed. Auxiliary states are as they were.
        PasslibError
            ONNX Runtime is absent, or failed.
        """
        for name, value in inputs.items():
            self._check(name, value)
        for name, value in inputs.items():
            self._assign(self._args, name, value)
        outcome = self._runner.run(
            {**self._args, **self._aux},
            {},
            train=bool(is_train),
            record=self._gradients is not None and self._gradients.can_be_computed,
        )
        for name, array in outcome.mutated.items():
            self._assign(self._aux if name in self._aux else self._args, name, array)
        self._outputs, self._record = outcome.outputs, outcome.record
        return self._outputs

    def _check(self, name: str, value: Any) -> None:
        if name not in self._args:
            known = ", ".join(self._args) or "none"
            raise TypeError(f"there is no argument {name!r}; the arguments are {known}")
        if not isinstance(value, (np.ndarray, BaseSparseNDArray)):
            raise TypeError(
                f"argument {name!r} is of type {type(value).__name__}, not an array; make one "
                "with passlib.nd.array"
            )
        want = self._args[name].shape
        if value.shape != want:
            raise ValueError(
                f"argument {name!r} has shape {value.shape}, but an array of shape {want} was "
                f"bound; use reshape({name}={value.shape}) or bind anew"
            )

    def _assign(self, arrays: dict[str, Any], name: str, value: Any) -> None:
        target = arrays[name]
        if isinstance(target, np.ndarray):
            dense = value.asnumpy() if isinstance(value, BaseSparseNDArray) else value
            np.copyto(target, dense, casting="unsafe")
        elif isinstance(value, BaseSparseNDArray):
            arrays[name] = value.tostype(target.stype).astype(target.dtype)
        else:
            arrays[name] = value.view(NDArray).tostype(target.stype).astype(target.dtype)

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copy weights into the arrays that are bound, and convert them to their type.

        Parameters
        ----------
        allow_extra_params : bool
            Ignore weights that the symbol does not have.

        Raises
        ------
        ValueError
            A weight that the symbol does not have, or a shape that differs. Nothing was copied
            then.
        """
        chosen = []
        for kind, target, given in (
            ("argument", self._args, arg_params),
            ("auxiliary state", self._aux, aux_params or {}),
        ):
            for name, value in given.items():
                if name not in target:
                    if allow_extra_params:
                        continue
                    raise ValueError(
                        f"the symbol has no {kind} {name!r}; allow_extra_params=True ignores it"
                    )
                if value.shape != target[name].shape:
                    raise ValueError(
                        f"{kind} {name!r} has shape {value.shape}, but an array of shape "
                        f"{target[name].shape} was bound"
                    )
                chosen.append((target, name, value))
        for target, name, value in chosen:
            self._assign(target, name, value)

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **shapes: Sequence[int]
    ) -> Executor:
        """Return an executor for inputs of other shapes, which shares all other arrays.

        Parameters
        ----------
        partial_shaping : bool
            Also let the shapes of arguments change that are not named.
        allow_up_sizing : bool
            Accepted for compatibility with MXNet: arrays may always grow.
        **shapes : tuple of int
            New shapes by name of the argument.

        Returns
        -------
        Executor
            A smaller array is the beginning of the old one, in the same memory; a larger one is
            new and zero.

        Raises
        ------
        TypeError
            An argument does not exist.
        ValueError
            The shape of another argument would change as well.
        GraphError
            The shapes contradict each other.
        """
        unknown = sorted(shapes.keys() - self._args.keys())
        if unknown:
            raise TypeError(f"there is no argument {', '.join(unknown)} to reshape")
        both = {**self._args, **self._aux}
        types = {name: array.dtype for name, array in both.items()}
        found = variable_types(self._symbol, shapes, types)
        new = {}
        for name, array in both.items():
            shape, _ = found[name]
            if shape is None or shape == array.shape:
                new[name] = array
                continue
            if name not in shapes and not partial_shaping:
                raise ValueError(
                    f"{name!r} would change its shape from {array.shape} to {shape} as well; "
                    "give partial_shaping=True to allow that"
                )
            new[name] = _resized(array, shape, self._ctx)
        args = {name: new[name] for name in self._args}
        aux = {name: new[name] for name in self._aux}
        gradients = None
        if self._gradients is not None:
            arrays = {
                name: array
                if array is None or array.shape == args[name].shape
                else _resized(array, args[name].shape, self._ctx)
                for name, array in self._gradients.arrays.items()
            }
            gradients = Gradients(self._symbol, arrays, self._gradients.requests)
        return Executor(self._symbol, self._ctx, args, aux, gradients)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute gradients of the arguments, as the last `forward` saw them.

        They are written to the arrays that were bound as ``args_grad``, or added to them if
        ``grad_req`` says so.

        Parameters
        ----------
        out_grads : array, list of arrays, or dict of str to array
            The gradient of each output, of its shape.
        is_train : bool
            Accepted for compatibility with MXNet.

        Raises
        ------
        UnsupportedError
            No arrays were bound for gradients, or an operator between an argument and the outputs
            is a built-in one, or its library gives it no backward function.
        PasslibError
            `forward` was not called.
        ValueError
            The gradient of an output is missing or has another shape.
        OperatorError
            A backward function failed. No gradient has changed then.
        """
        if self._gradients is None:
            raise UnsupportedError(
                "backward: gradients are not computed, because no arrays were bound for them. Pass "
                "args_grad to bind; all operators between these arguments and the outputs must be "
                "a library's, passlib does not train models"
            )
        if self._outputs is None:
            raise PasslibError("backward: nothing was computed yet; call forward() first")
        self._gradients.backward(self._record, self.outputs, out_grads)


def _resized(array: Any, shape: tuple[int, ...], ctx: Context) -> Any:
    size = math.prod(shape)
    if isinstance(array, np.ndarray) and array.flags.c_contiguous and size <= array.size:
        return array.reshape(-1)[:size].reshape(shape)
    return zeros(shape, ctx, array.dtype)


def declared_types(symbol: PlainGraph) -> dict[str, Any]:
    """Return the element types of the variables that declare one, by name."""
    found = infer(symbol, {}, {}).outputs.items()
    return {
        node.name: specs[0].dtype
        for node, specs in found
        if node.is_variable and "__dtype__" in node.attrs and specs[0].dtype is not None
    }


def variable_types(
    symbol: PlainGraph, shapes: Mapping[str, Sequence[int | None]], types: Mapping[str, Any]
) -> dict[str, tuple[tuple[int, ...] | None, Any]]:
    """Infer shape and element type of each variable; None for a shape not known completely."""
    known = {name: tuple(shape) for name, shape in shapes.items()}
    inferred = infer(symbol, known, types, default_dtype=np.dtype(np.float32))
    found: dict[str, tuple[tuple[int, ...] | None, Any]] = {}
    for node, (spec, *_) in inferred.outputs.items():
        if node.is_variable:
            sizes = [size for size in spec.shape or () if size is not None]
            complete = spec.shape is not None and len(sizes) == len(spec.shape)
            found[node.name] = (tuple(sizes) if complete else None, spec.dtype)
    return found
