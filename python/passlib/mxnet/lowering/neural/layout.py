"""Window attributes and data layouts: MXNet's layouts in ONNX's channels-first form."""

from __future__ import annotations

from passlib.lowering import Operation, Value

_LAYOUTS = {
    "NCW": (1, False),
    "NCHW": (2, False),
    "NCDHW": (3, False),
    "NWC": (1, True),
    "NHWC": (2, True),
    "NDHWC": (3, True),
}


class Spatial:
    """Attributes of a sliding window, one number for each spatial axis.

    Attributes
    ----------
    kernel, stride, dilate, pad : list of int
        Stride and dilation default to 1, padding (equal on both sides) to 0.
    channels_last : bool
        Whether the channel is the last axis of the data.
    """

    def __init__(self, op: Operation, kernel: tuple[int, ...]) -> None:
        rank = len(kernel)
        self.kernel = list(kernel)
        self.stride = _per_axis(op, "stride", rank, 1)
        self.dilate = _per_axis(op, "dilate", rank, 1)
        self.pad = _per_axis(op, "pad", rank, 0)
        self.channels_last = layout(op, rank)

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def extent(self) -> list[int]:
        """Elements that the kernel spans along each axis, dilation included."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilate, strict=True)]


def spatial(op: Operation) -> Spatial:
    """Read kernel, stride, dilate, pad and layout of a node."""
    kernel = op.ints("kernel")
    if not 1 <= len(kernel) <= 3:
        op.invalid("must have one, two or three axes", "kernel")
    if min(kernel) < 1:
        op.invalid("has a size below 1", "kernel")
    if op.rank_of(op.inputs[0]) != len(kernel) + 2:
        op.invalid(
            f"does not fit an input of {op.rank_of(op.inputs[0])} axes, batch and channel included",
            "kernel",
        )
    return Spatial(op, kernel)


def layout(op: Operation, rank: int) -> bool:
    """Read the layout; return whether the channel is the last axis."""
    text = op.string("layout", "None", choices=("None", *_LAYOUTS))
    if text == "None":
        return False
    axes, last = _LAYOUTS[text]
    if axes != rank:
        op.invalid(f"does not fit {rank} spatial axes", "layout")
    return last


def to_channels_first(op: Operation, value: Value, rank: int) -> Value:
    """Move the last axis to the second position."""
    return op.emit("Transpose", value, perm=[0, rank + 1, *range(1, rank + 1)])


def from_channels_first(op: Operation, value: Value, rank: int) -> Value:
    """Move the second axis to the end."""
    return op.emit("Transpose", value, perm=[0, *range(2, rank + 2), 1])


def _per_axis(op: Operation, name: str, rank: int, default: int) -> list[int]:
    values = op.ints(name, ())
    if values and len(values) != rank:
        op.invalid(f"requires one number for each of {rank} spatial axes", name)
    if any(value < (0 if name == "pad" else 1) for value in values):
        op.invalid("has too small a number", name)
    return list(values) or [default] * rank
