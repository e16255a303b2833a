"""Lowering of ARK models to ONNX: from memory to values, then operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from passlib.errors import GraphError
from passlib.families.ark.lowering import load_table
from passlib.families.ark.lowering.functional import Functional, functionalise
from passlib.families.ark.tensors import numpy_type
from passlib.graph.node import Node
from passlib.lowering import Graph, Lowered, TypeSpec, lower_graph
from passlib.lowering.types import Value


class Ranked(Graph, Protocol):
    """A graph with the rank it is for, such as the symbol of an ARK file."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """The graph's own attributes, ``Rank`` and ``WorldSize`` among them."""


def lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower the model of one rank.

    Raises `GraphError` if an input differs from its declared type and shape, or nodes do not fit
    together; `UnsupportedError` if an operator has no faithful translation, for example because it
    communicates with other ranks.

    Parameters
    ----------
    inputs : mapping of str to TypeSpec
        Variables that are fed at run time.
    params : mapping of str to numpy.ndarray
        Variables that become constants.
    train : bool
        No effect: ARK has no training mode.
    """
    return _lower(functionalise([graph]), inputs, params, train=train)


def lower_ranks(
    symbols: Sequence[Ranked],
    inputs: Mapping[str, TypeSpec] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> Lowered:
    """Lower the models of all ranks of a job to one graph, including their messages.

    Raises the errors of `lower`, and `GraphError` if a rank is missing or given twice, or ranks
    wait for each other.

    Parameters
    ----------
    symbols : sequence of Ranked
        One for each rank, in any order.
    inputs : mapping of str to TypeSpec, optional
        Variables that are fed at run time, with names such as ``rank0/tensor``; by default all
        that are not in ``params``.
    params : mapping of str to numpy.ndarray, optional
        Variables that become constants.

    Returns
    -------
    Lowered
        Has the outputs of the first symbol, then those of the second, and so on.
    """
    ranks, worlds = [], set()
    for symbol in symbols:
        ranks.append(int(symbol.attributes.get("Rank", "0")))
        worlds.add(int(symbol.attributes.get("WorldSize", "1")))
    if len(worlds) != 1 or sorted(ranks) != list(range(max(worlds))):
        raise GraphError(
            f"expected the models of all ranks of one job, not of ranks {sorted(ranks)} in jobs of "
            f"{sorted(worlds)} ranks"
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
    """Return the declared type and shape of an input, with which a given one must agree."""
    tensor = made.variables.get(name)
    if tensor is None:
        return spec  # an unknown name, which lower_graph reports
    dtype = numpy_type(tensor.dtype, f"input {name!r}")
    if spec.dtype is not None and spec.dtype != dtype:
        raise GraphError(
            f"input {name!r} is {spec.dtype}, but the model declares {tensor.dtype} ({dtype})"
        )
    shape = spec.shape
    if shape is not None and (
        len(shape) != len(tensor.shape)
        or any(s not in (None, t) for s, t in zip(shape, tensor.shape, strict=True))
    ):
        raise GraphError(f"input {name!r} has shape {shape}, but the model declares {tensor.shape}")
    return TypeSpec(dtype, tensor.shape)
