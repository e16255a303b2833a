"""Shapes of the inputs of operators that join, cut and turn arrays, from the other shapes."""

from __future__ import annotations

from passlib.graph.attributes import Attributes
from passlib.lowering.types import Shape
from passlib.mxnet.inference.parameter_rules import Known, rule

__all__: list[str] = []


@rule("Concat", "concat", "_rnn_param_concat")
def _concat(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    return _joined(at.int("dim", 1), shapes, result)


@rule("_npi_concatenate")
def _concatenate(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    axis = at.optional_int("axis", 0)
    return () if axis is None else _joined(axis, shapes, result)


def _joined(axis: int, shapes: Known, result: Shape | None) -> Known:
    """All but the joined axis agree, among inputs of known rank and with the result."""
    known = [shape for shape in (*shapes, result) if shape is not None]
    if not known or all(shape is None for shape in shapes):
        return ()
    axis %= len(known[0])
    agreed: list[int | None] = [
        None if i == axis else next((shape[i] for shape in known if shape[i] is not None), None)
        for i in range(len(known[0]))
    ]
    wanted: list[Shape | None] = [tuple(agreed)] * len(shapes)
    lengths = [None if shape is None else shape[axis] for shape in shapes]
    whole = None if result is None else result[axis]
    if whole is not None and lengths.count(None) == 1:
        missing = lengths.index(None)
        agreed[axis] = whole - sum(length for length in lengths if length is not None)
        wanted[missing] = tuple(agreed)
    return wanted


@rule("stack", "_npi_stack")
def _stack(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    """All inputs have one shape."""
    del at, result
    known = [shape for shape in shapes if shape is not None]
    if not known or any(len(shape) != len(known[0]) for shape in known):
        return ()
    agreed = tuple(
        next((shape[i] for shape in known if shape[i] is not None), None)
        for i in range(len(known[0]))
    )
    return [agreed] * len(shapes)


@rule("SliceChannel", "split")
def _slice_channel(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    """Each part has a share of the axis, which ``squeeze_axis`` removes."""
    data = shapes[0]
    if data is None or result is None:
        return ()
    axis, parts = at.int("axis", 1) % len(data), at.int("num_outputs")
    if at.bool("squeeze_axis", False):
        return ((*result[:axis], parts, *result[axis:]),)
    share = result[axis]
    return ((*result[:axis], None if share is None else share * parts, *result[axis + 1 :]),)


@rule("transpose")
def _transpose(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    if result is None:
        return ()
    axes = at.ints("axes", ()) if at.attr("axes") not in (None, "None") else ()
    if not axes:
        return (result[::-1],) if shapes[0] is not None else ()
    turned: list[int | None] = [None] * len(result)
    for size, axis in zip(result, axes, strict=True):
        turned[axis] = size
    return (tuple(turned),)


@rule("expand_dims")
def _expand_dims(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    del shapes
    if result is None:
        return ()
    axis = at.int("axis") % len(result)
    return ((*result[:axis], *result[axis + 1 :]),)
