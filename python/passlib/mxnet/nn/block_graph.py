"""The graph of a block between two passes, with the parameters that it runs with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from passlib.arrays.views import read_only
from passlib.dialects.inference import declared, infer
from passlib.errors import GraphError
from passlib.lowering import TypeSpec
from passlib.model.graph import ModelGraph
from passlib.mxnet.nd import NDArray
from passlib.mxnet.nn.parameter import Parameter
from passlib.mxnet.symbol.symbol import Symbol
from passlib.runtime.runner import Runner


class PassCall(NamedTuple):
    """The name of a pass and its options."""

    backend: str
    options: Mapping[str, Any]


class BlockGraph:
    """A graph, the names of its inputs, and its parameters. A pass makes a new one.

    Parameters
    ----------
    graph : Symbol
    inputs : sequence of str
        In the order of the block's arguments. The graph may use only some of them.
    parameters : mapping of str to Parameter
        One for each other variable.
    """

    def __init__(
        self, graph: Symbol, inputs: Sequence[str], parameters: Mapping[str, Parameter]
    ) -> None:
        self.graph = graph
        self.inputs = tuple(inputs)
        self.parameters = dict(parameters)
        self._variables = frozenset(graph.list_inputs())
        self._runner = Runner(graph, graph.family)

    def run(self, arrays: Mapping[str, Any]) -> list[NDArray]:
        """Compute the outputs.

        Parameters
        ----------
        arrays : mapping of str to array
            One for each input.

        Returns
        -------
        list of NDArray

        Raises
        ------
        GraphError
            The arrays do not fit the graph.
        PasslibError
            A parameter has no values, or ONNX Runtime failed.
        """
        self.initialize(arrays)
        feeds = {name: array for name, array in arrays.items() if name in self._variables}
        constants: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if parameter.array is None:
                raise parameter.missing()
            (feeds if parameter.shared else constants)[name] = parameter.array
        outcome = self._runner.run(feeds, constants)
        for name, array in outcome.mutated.items():
            if name in self.parameters:
                self.parameters[name].set_data(array)
        return outcome.outputs

    def initialize(self, values: Mapping[str, Any]) -> None:
        """Set initial values of the parameters that were deferred until their shapes are known.

        Parameters
        ----------
        values : mapping of str to array or Symbol
            Inputs, of which only shapes and types are used.

        Raises
        ------
        GraphError
            The shape of a parameter cannot be inferred; then none is initialized.
        """
        waiting = [p for p in self.parameters.values() if p.deferred]
        if not waiting:
            return
        specs = {name: _spec(value) for name, value in values.items() if name in self._variables}
        for name, parameter in self.parameters.items():
            specs[name] = TypeSpec(parameter.dtype, parameter.shape)
        shapes = {name: spec.shape for name, spec in specs.items() if spec.shape is not None}
        types = {name: spec.dtype for name, spec in specs.items() if spec.dtype is not None}
        found = infer(self.graph, shapes, types, default_dtype=np.dtype(np.float32)).by_name()
        known = []
        for parameter in waiting:
            dtype, shape = found[parameter.name][0]
            sizes = tuple(size for size in shape or () if size is not None)
            if shape is None or dtype is None or len(sizes) < len(shape):
                given = ", ".join(f"{name} {_spec(value).shape}" for name, value in values.items())
                raise GraphError(
                    f"the shape of parameter {parameter.name!r} cannot be inferred from the "
                    f"inputs ({given or 'none'}); set it with set_data()"
                )
            known.append((parameter, sizes, dtype))
        for parameter, sizes, dtype in known:
            parameter.finish(sizes, dtype)

    def optimized(self, call: PassCall, values: Mapping[str, Any]) -> BlockGraph:
        """Run a pass.

        Parameters
        ----------
        call : PassCall
        values : mapping of str to array or Symbol
            Inputs: arrays that the pass can read, or variables that declare shapes.

        Returns
        -------
        BlockGraph
            Shares the parameters that the pass did not modify. This one stays unchanged.

        Raises
        ------
        GraphError
            The pass added a variable and allocated no array for it.
        PassError
            The pass failed.
        """
        self.initialize(values)
        lent = {name: p.array for name, p in self.parameters.items() if p.array is not None}
        lent |= {n: v for n, v in values.items() if not isinstance(v, ModelGraph)}
        lent = {name: read_only(array) for name, array in lent.items()}
        specs = {n: _spec(v) for n, v in values.items() if isinstance(v, ModelGraph)}
        shapes = {n: [size or 0 for size in s.shape] for n, s in specs.items() if s.shape}
        types = {n: s.dtype for n, s in specs.items() if s.dtype is not None}
        auxiliary = frozenset(self.graph.list_auxiliary_states())
        args = {name: array for name, array in lent.items() if name not in auxiliary}
        aux = {name: array for name, array in lent.items() if name in auxiliary}
        graph = self.graph.optimize_for(
            call.backend,
            args,
            aux,
            shape_dict=shapes or None,
            type_dict=types or None,
            **call.options,
        )
        states = frozenset(graph.list_auxiliary_states())
        parameters = {}
        for name in graph.list_inputs():
            if name not in self.inputs:
                array = args.get(name, aux.get(name))
                known = self.parameters.get(name)
                parameters[name] = _after(name, array, lent.get(name), known, name in states)
        return BlockGraph(graph, self.inputs, parameters)


def _after(name: str, array: Any, lent: Any, known: Parameter | None, is_state: bool) -> Parameter:
    """Return the parameter of a variable after a pass."""
    if known is not None and array is lent:
        return known
    if array is None:
        raise GraphError(
            f"the pass added the variable {name!r} without allocating an array for it; it must "
            "call alloc_arg or alloc_aux on the node"
        )
    default = "null" if is_state else "write"
    grad_req = default if known is None else known.grad_req
    return Parameter.of_array(name, array, grad_req, shared=False)


def _spec(value: Any) -> TypeSpec:
    """Return the type of an array, or the type that a variable declares."""
    if not isinstance(value, ModelGraph):
        return TypeSpec(value.dtype, tuple(value.shape))
    return declared(value.list_attr())
