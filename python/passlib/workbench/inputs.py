"""Inputs for a model, drawn at random within what its operators take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from passlib import dialects
from passlib.errors import UnsupportedError
from passlib.graph.node import Entry, Node
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.model.inputs import input_types

Arrays = dict[str, "np.ndarray[Any, Any]"]

_TRIED: Final = ((2, 16), (1, 16), (1, 224), (2, 2), (1, 1))
"""Sizes for open axes, in the order in which they are tried: the first axis, and the others."""

_FEW: Final = 2
"""Integers that index nothing are smaller: flags, and counts of rounds."""

_PASSING: Final = """
    Cast Expand Flatten Identity Reshape Slice Squeeze Transpose Unsqueeze
    _copy cast expand_dims reshape slice_axis transpose
"""
"""Operators whose output has the values of their first input."""

_INDEXING: Final = {
    # The position of the indices, and that of the table.
    "Gather": (1, 0),
    "GatherElements": (1, 0),
    "Embedding": (0, 1),
    "take": (1, 0),
}


def input_specs(
    model: Model, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> dict[str, TypeSpec]:
    """Return the types of those inputs whose shape is given, declared or follows from others.

    They are in the order of `Model.inputs`. ``None`` leaves a size open. Raises `GraphError` if a
    name is no input, or shapes contradict each other.
    """
    family = dialects.find(model.dialect)
    specs = input_types(model.symbol, family, model.data(), shapes, None)
    return {name: specs[name] for name in model.inputs if name in specs}


def input_shapes(
    model: Model, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> Iterator[dict[str, TypeSpec]]:
    """Iterate over complete types of the inputs, from the likeliest sizes for open axes on.

    Inputs whose shape is neither given nor stated nor inferred are left out.

    Parameters
    ----------
    model : Model
    shapes : mapping of str to shape, optional
        Of inputs; ``None`` leaves a size open.

    Raises
    ------
    GraphError
        A name is no input, or shapes contradict the graph.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> next(pl.workbench.input_shapes(model, {"x": (2, 3)}))["x"].shape
    (2, 3)
    """
    specs = input_specs(model, shapes)
    if all(None not in (spec.shape or ()) for spec in specs.values()):
        yield specs
        return
    for first, other in _TRIED:
        yield {
            name: TypeSpec(
                spec.dtype,
                tuple(
                    (other if axis else first) if size is None else size
                    for axis, size in enumerate(spec.shape or ())
                ),
            )
            for name, spec in specs.items()
        }


def draw_inputs(model: Model, specs: Mapping[str, TypeSpec], seed: int = 0) -> Arrays:
    """Draw a value for each input.

    Real numbers are normally distributed with deviation 1. Integers that select rows of a weight
    (Gather, Embedding, take) are below the number of its rows; other integers are 0 or 1.

    Parameters
    ----------
    model : Model
    specs : mapping of str to TypeSpec
        Complete types of the inputs, see `input_shapes`.
    seed : int

    Returns
    -------
    dict of str to numpy.ndarray

    Raises
    ------
    UnsupportedError
        An input takes text, sequences or maps, or has a type that nothing is drawn for.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x", shape=(0, 3))))
    >>> specs = next(pl.workbench.input_shapes(model))
    >>> pl.workbench.draw_inputs(model, specs)["x"].shape
    (..., 3)
    """
    generator = np.random.default_rng(seed)
    others = dialects.find(model.dialect).passed_on(model.symbol) & set(model.inputs)
    if others:
        raise UnsupportedError(
            f"input {sorted(others)[0]!r} takes no array of numbers, so no value is drawn for it: "
            "give the inputs"
        )
    limits = _limits(model)
    drawn: Arrays = {}
    for name, spec in specs.items():
        dtype = np.dtype(np.float32) if spec.dtype is None else spec.dtype
        shape = tuple(size or 0 for size in spec.shape or ())
        if dtype == np.bool_:
            drawn[name] = generator.integers(0, 2, shape).astype(np.bool_)
        elif np.issubdtype(dtype, np.integer):
            drawn[name] = generator.integers(0, limits.get(name, _FEW), shape).astype(dtype)
        elif dtype.kind in "fV" and not dtype.fields:
            drawn[name] = generator.standard_normal(shape).astype(dtype)
        else:
            raise UnsupportedError(f"input {name!r} is of {dtype}: give the inputs")
    return drawn


def _limits(model: Model) -> dict[str, int]:
    """Return, of inputs that select rows of a weight, the number of its rows."""
    source: dict[tuple[Node, int], str] = {}
    limits: dict[str, int] = {}
    for node in model.symbol.nodes():
        if node.is_variable:
            source[node, 0] = node.name
            continue
        names = [source.get((entry.node, entry.index)) for entry in node.inputs]
        if node.op in _PASSING.split() and names and names[0] is not None:
            source[node, 0] = names[0]
        if node.op not in _INDEXING:
            continue
        position, table = _INDEXING[node.op]
        if len(names) <= max(position, table):
            continue
        index, rows = names[position], _rows(model, node, node.inputs[table])
        if index is not None and rows:
            limits[index] = min(limits.get(index, rows), rows)
    return limits


def _rows(model: Model, node: Node, table: Entry) -> int:
    weight = model.args.get(table.node.name) if table.node.is_variable else None
    if weight is None or not weight.shape:
        return 0
    axis = node.attrs.get("axis", "0")
    place = int(axis) if axis.lstrip("-").isdigit() else 0
    return int(weight.shape[place]) if -weight.ndim <= place < weight.ndim else 0
