"""Lowering of ARK models to ONNX: memory becomes values, then each operator its ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from passlib.dialects.ark.functional import Functional, functionalise
from passlib.dialects.ark.lowering import load_table
from passlib.dialects.ark.tensors import numpy_type
from passlib.errors import GraphError
from passlib.graph.node import Node
from passlib.lowering import Graph, Lowered, TypeSpec, lower_graph
from passlib.lowering.types import Value

__all__ = ["Ranked", "lower", "lower_ranks"]


class Ranked(Graph, Protocol):
    """A graph that says which rank it is for: a symbol of an ARK file."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """The graph's own attributes, ``Rank`` and ``WorldSize`` among them."""


def lower(
    symbol: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower the model of one rank.

    Parameters
    ----------
    symbol : Graph
    inputs : mapping of str to TypeSpec
        Variables that are fed at run time.
    params : mapping of str to numpy.ndarray
        Variables that are built in.
    train : bool
        ARK has no other mode for training.

    Returns
    -------
    Lowered

    Raises
    ------
    GraphError
        An input is not of the type and shape that the model declares, or nodes do not fit.
    UnsupportedError
        An operator has no faithful translation, as those that communicate with other ranks.
    """
    return _lower(functionalise([symbol]), inputs, params, train=train)


def lower_ranks(
    symbols: Sequence[Ranked],
    inputs: Mapping[str, TypeSpec] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> Lowered:
    """Lower the models of all ranks of a job into one graph, messages between them included.

    Parameters
    ----------
    symbols : sequence of Ranked
        One for each rank, in any order.
    inputs : mapping of str to TypeSpec, optional
        Variables that are fed at run time, by names such as ``rank0/tensor``; by default all that
        are not in ``params``.
    params : mapping of str to numpy.ndarray, optional
        Variables that are built in.

    Returns
    -------
    Lowered
        Its outputs are those of the first symbol, then those of the second, and so on.

    Raises
    ------
    GraphError
        As for `lower`; or a rank is missing or there twice, or they wait for each other.
    UnsupportedError
        As for `lower`.
    """
    ranks, worlds = [], set()
    for symbol in symbols:
        ranks.append(int(symbol.attributes.get("Rank", "0")))
        worlds.add(int(symbol.attributes.get("WorldSize", "1")))
    if len(worlds) != 1 or sorted(ranks) != list(range(max(worlds))):
        raise GraphError(
            f"these are the ranks {sorted(ranks)} of jobs of {sorted(worlds)} ranks; the models of "
            "all ranks of one job are wanted"
        )
    made = functionalise(symbols, ranks)
    given = params or {}
    specs = inputs
    if specs is None:
        specs = {n: TypeSpec(None, None) for n in made.variables if n not in given}
    return _lower(made, specs, given, train=False)


def _lower(
    made: Functional,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool,
) -> Lowered:
    specs = {name: _declared(made, name, spec) for name, spec in inputs.items()}
    for name, array in params.items():
        if name in made.variables and name not in inputs:
            _declared(made, name, TypeSpec(array.dtype, array.shape))
    lowered = lower_graph(made, load_table(), specs, params, train=train)
    values: dict[tuple[Node, int], Value] = {
        key: lowered.value_of[entry.node, entry.index]
        for key, entry in made.entry_of.items()
        if (entry.node, entry.index) in lowered.value_of
    }
    sources = {name: made.source_of.get(node, node) for name, node in lowered.source_of.items()}
    return replace(lowered, value_of=values, source_of=sources)


def _declared(made: Functional, name: str, spec: TypeSpec) -> TypeSpec:
    """Give type and shape of an input, which the model fixes."""
    tensor = made.variables.get(name)
    if tensor is None:
        return spec  # an unknown name; lower_graph lists those that there are
    dtype = numpy_type(tensor.dtype, f"input {name!r}")
    if spec.dtype is not None and spec.dtype != dtype:
        raise GraphError(
            f"input {name!r} is {spec.dtype}, and the model declares {tensor.dtype} ({dtype})"
        )
    shape = spec.shape
    if shape is not None and (
        len(shape) != len(tensor.shape)
        or any(s not in (None, t) for s, t in zip(shape, tensor.shape, strict=True))
    ):
        raise GraphError(f"input {name!r} has shape {shape}, and the model declares {tensor.shape}")
    return TypeSpec(dtype, tensor.shape)
