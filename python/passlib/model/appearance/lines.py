"""A model in one line, and as a page of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from passlib.errors import listed
from passlib.graph.tables import Table
from passlib.lowering import TypeSpec
from passlib.lowering.types import shape_text

_SHOWN = 4
"""Inputs and outputs in a line."""


def described(
    dialect: str,
    inputs: Mapping[str, TypeSpec],
    outputs: Sequence[str],
    nodes: int,
    weights: Sequence[Any],
) -> str:
    """Describe a model in one line.

    Parameters
    ----------
    dialect : str
    inputs : mapping of str to TypeSpec
        The types that the model states, by name of the input.
    outputs : sequence of str
    nodes : int
        Their number.
    weights : sequence of array
    """
    stated = [f"{name} {described_type(spec)}".rstrip() for name, spec in inputs.items()]
    count = sum(int(np.prod(array.shape)) for array in weights)
    return (
        f"<Model {dialect}: inputs {listed(stated, _SHOWN)}; outputs {listed(outputs, _SHOWN)}; "
        f"{nodes} node{'s' * (nodes != 1)}, {len(weights)} weight{'s' * (len(weights) != 1)} of "
        f"{count:,} element{'s' * (count != 1)}>"
    )


def page(title: str, inputs: Mapping[str, TypeSpec], outputs: Sequence[str], table: Table) -> str:
    """Return a title, a table of inputs and outputs, and another table, as HTML."""
    rows = [("input", name, *_texts(spec)) for name, spec in inputs.items()]
    rows += [("output", name, "", "") for name in outputs]
    values = Table(("", "name", "type", "shape"), rows)
    return f"<p>{escape(title)}</p>{values._repr_html_()}{table._repr_html_()}"


def described_type(spec: TypeSpec) -> str:
    """Spell element type and shape: ``float32 (1, 3)``; what is unknown is left out."""
    return " ".join(filter(None, _texts(spec)))


def _texts(spec: TypeSpec) -> tuple[str, str]:
    """Spell element type and shape; empty where they are unknown."""
    dtype = "" if spec.dtype is None else "str" if spec.dtype.kind in "OU" else spec.dtype.name
    return dtype, "" if spec.shape is None else shape_text(spec.shape)
