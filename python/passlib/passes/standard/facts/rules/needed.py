"""Sizes that cannot be 0, because an operator would fail."""

from __future__ import annotations

from collections.abc import Iterator

from passlib._core import EditableNode
from passlib.passes.standard.facts.known import Known
from passlib.passes.standard.facts.nodes import given, integer, operator
from passlib.passes.standard.facts.rules.contents import whole
from passlib.passes.standard.facts.sizes import Quantity


def needed_names(node: EditableNode, known: Known) -> Iterator[str]:
    """Iterate over the names of sizes for which a node fails if they are 0.

    These are sizes that a Reshape would have to copy from an axis that is not there, and those of
    which a Gather takes an element.
    """
    name = operator(node)
    if name not in ("Reshape", "Gather"):
        return
    shape = known.shape(node.inputs[0])
    if shape is None:
        return
    if name == "Gather":
        places = whole(node.inputs[1], known)
        if shape and places:
            yield from _named(shape[integer(node, "axis", 0) % len(shape)])
        return
    target = known.content(given(node, 1))
    if target is None or integer(node, "allowzero", 0):
        return
    for size in list(target.flat)[len(shape) :]:
        yield from _named(size)


def _named(size: Quantity) -> tuple[str, ...]:
    """Return the name of a size that is nothing but a name."""
    if isinstance(size, int) or len(size.terms) != 1:
        return ()
    names, factor = size.terms[0]
    return names if factor == 1 and len(names) == 1 else ()
