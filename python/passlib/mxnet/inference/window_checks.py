"""Checks of convolutions and poolings that MXNet makes when it infers their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from passlib.errors import GraphError, UnsupportedError
from passlib.graph.attributes import Attributes, blame
from passlib.graph.node import Node
from passlib.lowering.types import Shape
from passlib.mxnet.inference.parameter_rules import channels_last

_CONVOLUTIONS: Final = frozenset(("Convolution", "Convolution_v1", "_npx_convolution"))
_TRANSPOSED: Final = frozenset(("Deconvolution", "_npx_deconvolution"))
_POOLINGS: Final = frozenset(("Pooling", "Pooling_v1", "_npx_pooling"))


def check_window(node: Node, data: Shape | None) -> None:
    """Check the groups of a convolution, and that its window or a pooling's is within the input.

    Parameters
    ----------
    node : Node
        Of any operator.
    data : Shape or None
        The shape of its first input.

    Raises
    ------
    GraphError
        The channels or filters are not a multiple of the groups, a size of the kernel, stride or
        dilation is not positive, or the kernel exceeds the padded input.
    """
    convolves = node.op in _CONVOLUTIONS or node.op in _TRANSPOSED
    if data is None or not (convolves or node.op in _POOLINGS):
        return
    at = Attributes(node)
    try:
        kernel, stride, dilate, pad = (
            at.ints(name, ()) for name in ("kernel", "stride", "dilate", "pad")
        )
        filters, groups = at.int("num_filter", 0), at.int("num_group", 1)
        everywhere = at.bool("global_pool", False)
    except UnsupportedError:
        return  # the lowering reports attributes that cannot be read
    if convolves:
        _check_groups(node, at, data, filters, groups)
    if everywhere or len(data) != len(kernel) + 2:
        return
    for name, sizes in (("kernel", kernel), ("stride", stride), ("dilate", dilate)):
        if any(size < 1 for size in sizes):
            raise GraphError(f"{blame(node)}: {name} {tuple(sizes)} has a size below 1")
    if node.op not in _TRANSPOSED:
        _check_extent(node, _spatial(at, data), kernel, dilate, pad)


def _check_groups(node: Node, at: Attributes, data: Shape, filters: int, groups: int) -> None:
    channels = data[-1 if channels_last(at) else 1] if len(data) > 1 else None
    for what, count in (("num_filter", filters), ("the number of channels", channels)):
        if count is not None and (groups < 1 or count % groups):
            raise GraphError(
                f"{blame(node)}: num_group {groups} does not divide {what}, which is {count}"
            )


def _check_extent(
    node: Node,
    sizes: Shape,
    kernel: Sequence[int],
    dilate: Sequence[int],
    pad: Sequence[int],
) -> None:
    rank = len(kernel)
    dilate, pad = dilate or (1,) * rank, pad or (0,) * rank
    if not len(dilate) == len(pad) == rank:
        return  # the lowering reports it
    for size, count, step, border in zip(sizes, kernel, dilate, pad, strict=True):
        extent = step * (count - 1) + 1
        if size is not None and 0 < size + 2 * border < extent:
            raise GraphError(
                f"{blame(node)}: the kernel spans {extent} elements of an axis, which exceeds the "
                f"input of {size}, padded to {size + 2 * border}"
            )


def _spatial(at: Attributes, data: Shape) -> Shape:
    return data[1:-1] if channels_last(at) else data[2:]
