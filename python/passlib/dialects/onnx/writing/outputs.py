"""The outputs of a graph that passes have changed, under the names that they have at present."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import passlib._core as _core
from passlib.dialects.onnx.keys import ID

OUTPUTS = "__outputs__"
"""The attribute of a graph that has them; graphs without it have the outputs of the file."""


class PresentOutput(NamedTuple):
    """One output: its name, and the node that computes it."""

    name: str
    key: str
    """The `ID` of the node; empty for a new one."""
    node: str
    output: int


class Present(NamedTuple):
    """The outputs that a graph is compared with.

    Attributes
    ----------
    by_place : bool
        Whether outputs of the same number keep their names whatever computes them, as after a
        pass. Outputs that a user chose have the names of their values.
    outputs : tuple of PresentOutput or None
        None stands for those of the file.
    """

    by_place: bool
    outputs: tuple[PresentOutput, ...] | None

    @classmethod
    def of(cls, graph: _core.Graph, names: Sequence[str]) -> Present:
        """Return the outputs of a graph under the names that it has now."""
        heads = graph.heads_with(ID)
        return cls(True, tuple(PresentOutput(n, *h) for n, h in zip(names, heads, strict=True)))

    def text(self) -> str:
        """Return the value of the attribute `OUTPUTS`."""
        return json.dumps([self.by_place, self.outputs])


def present_outputs(attributes: Mapping[str, str]) -> Present:
    """Return the outputs that the attributes of a graph state."""
    text = attributes.get(OUTPUTS)
    if text is None:
        return Present(True, None)
    by_place, outputs = json.loads(text)
    return Present(
        by_place, None if outputs is None else tuple(PresentOutput(*item) for item in outputs)
    )


def selection(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a graph whose outputs a user chose among those of another."""
    chosen = present_outputs(attributes)._replace(by_place=False)
    return {**attributes, OUTPUTS: chosen.text()}
