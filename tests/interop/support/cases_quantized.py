"""Ask a real MXNet 1.9.1 for the results of quantized operators, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_quantized.py tests/data/mxnet

writes ``quantized_cases.jsonl.gz`` and ``quantized_cases.npz``, in the form that cases_tensor.py
describes. A tolerance of 1 stands for one step of integers; reals are compared as always.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import frozen_cases
from cases_tensor_spec import Case, case, of, real

NAMES = {"int8": (-127, 128), "uint8": (0, 256)}


def bits(*shape: int, dtype: str = "int8", most: int = 256) -> np.ndarray:
    """Draw 8-bit numbers of at most ``most``, the same for equal arguments."""
    low, high = NAMES[dtype]
    state = np.random.RandomState(sum(shape) + len(dtype) + most)
    return state.randint(max(low, -most), min(high, most + 1), shape).astype(dtype)


def ends(*numbers: float) -> tuple[np.ndarray, ...]:
    """Return ranges, each bound in an array of its own."""
    return tuple(of(number) for number in numbers)


def cases() -> Iterator[Case]:
    """Yield every case."""
    yield from conversions()
    yield from kept()
    yield from combined()
    yield from sums()


def conversions() -> Iterator[Case]:
    data = real(3, 17, low=-1.3, high=2.6)
    calibrations = ((-1.0, 0.5), (0.0, 2.25), (-3.0, 0.0), (0.5, 2.0))
    for dtype in ("int8", "uint8"):
        for low, high in calibrations:
            yield case("_contrib_quantize", data, *ends(low, high), out_type=dtype)
    yield case("_contrib_quantize", real(1), *ends(-1, 1), out_type="int8")
    for dtype in ("int8", "uint8", "auto"):
        yield case("_contrib_quantize_v2", data, out_type=dtype)
        for low, high in calibrations:
            yield case(
                "_contrib_quantize_v2", data, out_type=dtype, min_calib_range=low,
                max_calib_range=high,
            )  # fmt: skip
    for dtype, (low, high) in NAMES.items():
        everything = np.arange(low, high).astype(dtype)
        for bounds in ((-1.5, 0.5), (0.0, 3.0), (-0.25, 0.75), (2.0, 4.0)):
            yield case("_contrib_dequantize", everything, *ends(*bounds))
    wide = np.random.RandomState(0).randint(-3_000_000, 2_000_000, (4, 31)).astype("int32")
    for dtype in ("int8", "uint8", "auto"):
        for bounds in ((-1000.0, 1000.0), (-700.0, 900.0)):
            yield case("_contrib_requantize", wide, *ends(*bounds), out_type=dtype)
            for low, high in ((-0.5, 0.3), (0.0, 0.6)):
                yield case(
                    "_contrib_requantize", wide, *ends(*bounds), out_type=dtype,
                    min_calib_range=low, max_calib_range=high,
                )  # fmt: skip


def kept() -> Iterator[Case]:
    windows = (
        {"kernel": (2, 2), "stride": (2, 2), "pool_type": "max"},
        {"kernel": (2, 2), "pool_type": "avg"},
        {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg"},
        {"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg", "count_include_pad": False},
        {"kernel": (1, 1), "pool_type": "avg", "global_pool": True},
        {"kernel": (1, 1), "pool_type": "max", "global_pool": True},
        {"kernel": (3, 3), "stride": (2, 2), "pool_type": "max", "pooling_convention": "full"},
        {"kernel": (3, 2), "stride": (1, 2), "pad": (1, 0), "pool_type": "max"},
    )
    for dtype in ("int8", "uint8"):
        for window in windows:
            data = bits(2, 3, 5, 6, dtype=dtype)
            yield case("_contrib_quantized_pooling", data, *ends(-1, 2), **window)
        for shape in ((2, 3, 4), (4, 1), (3, 2, 2, 2), (1, 7)):
            yield case("_contrib_quantized_flatten", bits(*shape, dtype=dtype), *ends(-0.5, 1))
            data = bits(*shape, dtype=dtype)
            yield case("_contrib_quantized_act", data, *ends(-1, 0.75), act_type="relu")
    table = bits(7, 5)
    for rows in (of(0, 3, 6), of([1, 2], [6, 0]), of(5), of([0, 0, 0]), of([9, 6])):
        for bounds in ((-1.0, 1.0), (0.0, 2.0)):
            yield case(
                "_contrib_quantized_embedding", rows, table, *ends(*bounds), input_dim=7,
                output_dim=5, dtype="int8",
            )  # fmt: skip


def combined() -> Iterator[Case]:
    ranges = ends(-1.0, 1.7, -0.6, 0.7)
    for first, second in (("int8", "int8"), ("uint8", "uint8")):
        left, right = bits(3, 8, dtype=first), bits(3, 8, dtype=second, most=200)
        yield case("_contrib_quantized_elemwise_add", left, right, *ranges)
        for low, high in ((-3.1, 2.5), (0.0, 2.3), (-1.1, 1.3)):
            yield case(
                "_contrib_quantized_elemwise_add", left, right, *ranges, min_calib_range=low,
                max_calib_range=high,
            )  # fmt: skip
    left, right = bits(3, 8), bits(3, 8, most=90)
    for more in ({}, {"enable_float_output": True}):
        for bounds in (ranges, ends(-0.5, 0.1, 0, 3), ends(0, 2, -4, 1)):
            yield case("_contrib_quantized_elemwise_mul", left, right, *bounds, **more)
    for low, high in ((-3.1, 1.2), (0.0, 0.7)):
        yield case(
            "_contrib_quantized_elemwise_mul", left, right, *ranges, min_calib_range=low,
            max_calib_range=high, tolerance=1,
        )  # fmt: skip
    for types in (("int8", "int8"), ("uint8", "uint8"), ("uint8", "int8"), ("int8",) * 3):
        arrays = [bits(2, 3, 2, dtype=kind, most=250 - i) for i, kind in enumerate(types)]
        for dim in (1, 2, 0):
            bounds = ends(*[number for i in range(len(types)) for number in (-1 - i / 7, 1.9)])
            yield case(
                "_contrib_quantized_concat", *arrays, *bounds, num_args=len(types), dim=dim
            )  # fmt: skip
    for dtype in ("int8", "uint8"):
        data = bits(2, 3, 4, 4, dtype=dtype)
        parameters = (real(3, low=0.5, high=1.5), real(3), real(3, low=-1), real(3, low=0.5))
        for more in ({}, {"fix_gamma": False}, {"eps": 0.1}, {"axis": 1, "eps": 1e-5}):
            yield case(
                "_contrib_quantized_batch_norm", data, *parameters, *ends(-1.1, 2.3),
                min_calib_range=-3.3, max_calib_range=4.1, tolerance=1, **more,
            )  # fmt: skip


def sums() -> Iterator[Case]:
    bounds = ends(-1.0, 2.0, -0.5, 0.7)
    data, bias = bits(2, 4, 6, 7, dtype="uint8"), bits(6)
    windows = (
        {"kernel": (3, 3)},
        {"kernel": (3, 3), "pad": (1, 1)},
        {"kernel": (1, 1), "stride": (2, 2)},
        {"kernel": (3, 2), "stride": (1, 2), "pad": (0, 1)},
        {"kernel": (2, 2), "dilate": (2, 2)},
    )
    for window in windows:
        weight = bits(6, 4, *window["kernel"], most=60)
        convolution = {"num_filter": 6, **window}
        yield case(
            "_contrib_quantized_conv", data, weight, bias, *bounds, *ends(-3, 2), **convolution
        )
        yield case("_contrib_quantized_conv", data, weight, *bounds, no_bias=True, **convolution)
    for dtype in ("int8", "uint8"):
        for shape, flat in (((3, 8), True), ((2, 2, 4), True), ((1, 8), True)):
            data, weight = bits(*shape, dtype=dtype), bits(5, 8, most=60)
            layer = {"num_hidden": 5, "flatten": flat}
            name = "_contrib_quantized_fully_connected"
            yield case(name, data, weight, bits(5), *bounds, *ends(-3, 2), **layer)
            yield case(name, data, weight, *bounds, no_bias=True, **layer)


if __name__ == "__main__":
    frozen_cases.main(
        __doc__, "quantized_cases", (sys.modules[__name__],), default=2e-5, narrow=max
    )
