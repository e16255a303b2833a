"""Axis orders with a letter for each axis: NNVM's layouts, converted to that of ONNX."""

from __future__ import annotations

from passlib.errors import GraphError
from passlib.graph.attributes import blame
from passlib.lowering import Operation, Value

DATA = "NCHW"
"""Batch, channel, height, width: ONNX's order of axes."""

KERNEL = "OIHW"
"""Output and input channel, height, width."""


def axis_order(op: Operation, name: str, default: str, wanted: str) -> str:
    """Return a layout, which must be an order of the axes of ``wanted``.

    Raises
    ------
    UnsupportedError
        The layout has other axes, or split ones as in ``NCHW16c``.
    """
    layout = op.string(name, default)
    if layout == "__undef__":
        return default
    if sorted(layout) != sorted(wanted):
        op.unsupported(f"is not an order of the axes {wanted}", name)
    return layout


def transposed(op: Operation, value: Value, source: str, target: str) -> Value:
    """Transpose the axes of a value from one order to another."""
    if source == target:
        return value
    if op.rank_of(value) != len(source):
        op.unsupported(f"has {op.rank_of(value)} axes, but the layout {source} has {len(source)}")
    return op.emit("Transpose", value, perm=[source.index(axis) for axis in target])


def uses_order(op: Operation, value: Value, layout: str) -> Value:
    """Transpose data from their layout to ONNX's order of axes."""
    if op.rank_of(value) != len(DATA):
        op.unsupported(f"needs data with four axes, not {op.rank_of(value)}")
    return transposed(op, value, layout, DATA)


def pair(op: Operation, name: str, default: int | None = None) -> list[int]:
    """Return the numbers for height and width; a single one is for both.

    Raises
    ------
    UnsupportedError
        The attribute is absent without ``default``, or has more numbers.
    """
    given = op.ints(name) if default is None else op.ints(name, (default, default))
    if len(given) == 1:
        given *= 2
    if len(given) != 2:
        op.unsupported("needs one or two numbers", name)
    return list(given)


def pads(op: Operation) -> list[int]:
    """Return ``padding`` as top, left, bottom, right, from one, two or four numbers."""
    given = op.ints("padding", (0, 0))
    if len(given) == 1:
        return list(given) * 4
    if len(given) == 2:
        return list(given) * 2
    if len(given) != 4:
        op.unsupported("needs one, two or four numbers", "padding")
    return list(given)


def require_shape(op: Operation, value: Value, *wanted: int | None) -> None:
    """Check the known sizes of an input; None stands for any size.

    Raises
    ------
    GraphError
        The attributes of the node require another shape.
    """
    if value.shape is None:
        return
    sizes = zip(value.shape, wanted, strict=False)
    if len(value.shape) != len(wanted) or any(
        known != size for known, size in sizes if known is not None and size is not None
    ):
        asked = ", ".join("any" if size is None else str(size) for size in wanted)
        raise GraphError(
            f"{blame(op.node)}: {value.name!r} has the shape {value.shape}, but attributes "
            f"and other inputs require ({asked})"
        )


def require_room(
    op: Operation, data: Value, kernel: list[int], dilation: list[int], padding: list[int]
) -> None:
    """Check that a window fits in data in ONNX's order of axes, where their sizes are known.

    Raises
    ------
    UnsupportedError
        The window does not fit: the result would have no elements.
    """
    for i, size in enumerate((data.shape or ())[2:]):
        span = dilation[i] * (kernel[i] - 1) + 1
        if size is not None and size + padding[i] + padding[i + 2] < span:
            op.unsupported(f"a window of {span} is larger than the padded input of {size}")
