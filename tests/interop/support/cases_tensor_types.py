"""Cases of conversions, of integers beyond their type, and of attributes given in odd ways."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from cases_numpy_wrapping import EDGES
from cases_tensor_spec import Case, case, of, real, whole

TYPES = ("float16", "float32", "float64", "int32", "uint8")


def conversions() -> Iterator[Case]:
    """Mixed precision of every pair of types, kinds of storage, bytes that are quantized."""
    for source, target in product(TYPES, TYPES):
        yield case("amp_cast", whole(5, low=0, dtype=source), dtype=target)
        pair = whole(3, dtype=source), whole(4, dtype=target)
        for narrow in (False, True):
            yield case("amp_multicast", *pair, num_outputs=2, cast_narrow=narrow)
    three = [whole(2, dtype=dtype) for dtype in ("float64", "float32", "float16")]
    yield case("amp_multicast", *three, num_outputs="+3")
    for stype in ("default", "row_sparse", "csr"):
        yield case("cast_storage", whole(3, 4), stype=stype)
    for source, target in product(("int8", "uint8"), ("int8", "uint8", "auto")):
        everything = np.arange(256).astype(source)
        yield case("_contrib_quantize_v2", everything, out_type=target)
        for low, high in ((-1.0, 2.0), (0.0, 2.0)):
            ends = {"min_calib_range": low, "max_calib_range": high}
            yield case("_contrib_quantize_v2", everything, out_type=target, **ends)


def wrapping() -> Iterator[Case]:
    """Sums, products, means and squares of integers that leave their type."""
    for dtype, numbers in EDGES.items():
        square = of(*numbers, *numbers[:3], dtype=dtype).reshape(3, 3)
        for name in ("sum", "prod", "mean", "nansum", "nanprod"):
            yield case(name, square)
            yield case(name, square, axis=1)
        yield case("square", square)
        for axes in ((1,), (0, 1), (0,)):
            yield case("moments", square, axes=axes)
        for rtol in (1e-5, 0.5):
            yield case("_contrib_allclose", square, square.T.copy(), rtol=rtol)


def spelled() -> Iterator[Case]:
    """Axes listed twice or for one side only, vectors that would be transposed, lengths."""
    for axis in ((1, 1), (0, 0, 1), (0, 1), ()):
        yield case("reverse", real(3, 4), axis=axis)
    for side in ("lhs_axes", "rhs_axes"):
        yield case("broadcast_like", real(1, 1, 3), real(4, 5, 3), **{side: (1,)})
    for dtype in ("float32", "float64"):
        vector, matrix = real(3, dtype=dtype), real(3, 4, dtype=dtype)
        yield case("dot", vector, matrix, transpose_a=True)
        yield case("dot", vector, matrix.T.copy(), transpose_b=True, transpose_a=True)
        yield case("dot", matrix, vector, transpose_a=True, transpose_b=True)
    yield case("Dropout", real(2, 3), axes="None")
    yield case("batch_take", real(6, 4), whole(2, 3, low=0, high=4, dtype="int32"))
    for size in ("None", (), (3, 1, 1), (2,), (2, 3)):
        yield case("_contrib_AdaptiveAvgPooling2D", real(1, 2, 5, 6), output_size=size)
    yield case("_contrib_BilinearResize2D", real(1, 2, 3, 4), height=2, width=3, scale_width=0.5)


def histograms() -> Iterator[Case]:
    """Integers in intervals that integers do not separate."""
    for dtype in ("int8", "int32", "int64"):
        data = whole(30, low=-2, high=5, dtype=dtype)
        for bins, ends in product((1, 2, 3, 8), ((0, 3), (-1, 4), (-2, 2))):
            yield case("_histogram", data, bin_cnt=bins, range=ends)


def images() -> Iterator[Case]:
    """Images of integers, and regions in which each cell has channels of its own."""
    image = np.arange(0, 240, 10).reshape(3, 2, 4)
    for dtype in ("uint8", "int8", "int32", "float16", "float64"):
        one, three = {"mean": 0.5, "std": 0.2}, {"mean": (10, 20, 30), "std": (2, 3, 4)}
        for numbers in (one, three):
            yield case("_image_normalize", image.astype(dtype), **numbers)
    colours = image.transpose(1, 2, 0).astype("uint8")
    for alpha in ((-1, 2, 0.5), (0.01, 0.02, 0.03), (0.7, -0.6, 1)):
        yield case("_image_adjust_lighting", colours, alpha=alpha)
    regions = of([0, 0, 0, 4, 4], [1, 1, 1, 3, 2.5], [0, 2, 0.5, 5, 3])
    for size, aligned in product(((2, 2), (1, 4), (1, 1)), (False, True)):
        yield case(
            "_contrib_ROIAlign", real(2, 8, 5, 6), regions, pooled_size=size, spatial_scale=1.0,
            sample_ratio=2, position_sensitive=True, aligned=aligned,
        )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from conversions()
    yield from wrapping()
    yield from spelled()
    yield from histograms()
    yield from images()
