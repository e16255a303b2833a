"""Sliding blocks of images as columns, and columns as images."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.table import table


class _Window(NamedTuple):
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    pad: tuple[int, ...]


def _window(op: Operation) -> _Window:
    kernel = op.ints("kernel")
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    window = _Window(
        kernel,
        op.ints("stride", ()) or ones,
        op.ints("dilate", ()) or ones,
        op.ints("pad", ()) or zeros,
    )
    if len({len(numbers) for numbers in window}) != 1:
        op.invalid("differs in length from stride, dilate or pad", "kernel")
    if not kernel or min(*kernel, *window.stride, *window.dilate) < 1 or min(window.pad) < 0:
        op.invalid("or stride, dilate or pad has too small a number", "kernel")
    return window


@table.register("im2col")
def im2col(op: Operation) -> Value:
    """Extract the blocks of a sliding window as columns: (n, c, space...) to (n, c k, blocks).

    k is the size of the ``kernel``. This is a convolution whose filters copy one element each.
    """
    data, window = op.inputs[0], _window(op)
    channels, count = op.size_of(data, 1), math.prod(window.kernel)
    op.affordable(channels, count, count)
    filters = np.tile(np.eye(count), (channels, 1)).reshape(-1, 1, *window.kernel)
    blocks = op.emit(
        "Conv",
        data,
        op.constant_like(filters, data),
        kernel_shape=window.kernel,
        strides=window.stride,
        dilations=window.dilate,
        pads=(*window.pad, *window.pad),
        group=channels,
    )
    return op.emit("Reshape", blocks, vector(op, 0, channels * count, -1))


@table.register("col2im")
def col2im(op: Operation) -> Value:
    """Sum blocks (n, c k, blocks) at their positions in images (n, c, ``output_size``...)."""
    data, window = op.inputs[0], _window(op)
    return op.emit(
        "Col2Im",
        data,
        vector(op, *op.ints("output_size")),
        vector(op, *window.kernel),
        strides=window.stride,
        dilations=window.dilate,
        pads=(*window.pad, *window.pad),
    )
