"""Random inputs of a model, within the ranges that its operators accept."""

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
"""Values of open dimensions, in order of trial: of the first axis, and of the others."""

_FEW: Final = 2
"""Integers that select no rows are smaller: flags and trip counts."""

_PASSING: Final = """
    Cast Expand Flatten Identity Reshape Slice Squeeze Transpose Unsqueeze
    _copy cast expand_dims reshape slice_axis transpose
"""
"""Operators that pass on the values of their first input."""

_INDEXING: Final = {
    # Positions of the indices and of the table.
    "Gather": (1, 0),
    "GatherElements": (1, 0),
    "Embedding": (0, 1),
    "take": (1, 0),
}


def input_specs(
    model: Model, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> dict[str, TypeSpec]:
    """Return the types of inputs with given, declared or inferred shapes, in the model's order.

    ``None`` leaves a dimension open. Raises `GraphError` for unknown inputs and wrong shapes.
    """
    family = dialects.find(model.dialect)
    specs = input_types(model.symbol, family, model.data(), shapes, None)
    return {name: specs[name] for name in model.inputs if name in specs}


def input_shapes(
    model: Model, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> Iterator[dict[str, TypeSpec]]:
    """Iterate over complete types of the inputs, with likely values for open dimensions first.

    Inputs of unknown shape are omitted.

    Parameters
    ----------
    shapes : mapping of str to shape, optional
        ``None`` leaves a dimension open.

    Raises
    ------
    GraphError
        An input is unknown, or a shape contradicts the graph.

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
    """Return random inputs of complete types, see `input_shapes`.

    Real numbers have a standard normal distribution. Integers that select rows of a weight (Gather,
    Embedding, take) are less than the number of rows; other integers are 0 or 1.

    Raises
    ------
    UnsupportedError
        An input takes strings, sequences or maps, or has an unsupported dtype.

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
            f"input {sorted(others)[0]!r} takes no numeric array: random inputs are impossible, "
            "give inputs"
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
            raise UnsupportedError(
                f"input {name!r} has dtype {dtype}: random inputs are impossible, give inputs"
            )
    return drawn


def _limits(model: Model) -> dict[str, int]:
    """Return the number of rows of the weight that each selecting input indexes."""
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
