"""Cases of the operators that NumPy mode shares with the others: without axes, without elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

INTEGERS = ["int8", "uint8", "int32", "int64"]
REALS = ["float16", "float32", "float64"]


def indexing() -> Iterator[Case]:
    """Gathering, slicing, picking, sorting."""
    for mode in ("clip", "wrap"):
        yield case("_npi_take", real(3, 2), of(0, -1, 5, dtype="int32"), axis=0, mode=mode)
        yield case("_npi_take", real(3, 2), of([0, 4], [-2, 1], dtype="int64"), axis=-1, mode=mode)
    yield case("_npi_take", real(3, 2), np.array(1), axis=0)
    yield case("_npi_take", real(3), np.array(1.7, "float32"), axis=0)
    yield case("_npi_take", real(0, 2), of(dtype="int32"), axis=0)
    yield case("_npi_take", real(3, 2), of(dtype="int32"), axis=1)
    for options in (
        {"begin": "(1,)", "end": "(None,)", "step": "(2,)"},
        {"begin": "(3,)", "end": "(1,)"},
        {"begin": "(None,)", "end": "(None,)", "step": "(-1,)"},
        {"begin": "(-2,)", "end": "(9,)"},
        {"begin": "(3,)", "end": "(3,)"},
    ):
        yield case("_npi_slice", real(5), **options)
        yield case("_npi_slice", real(5, 2), **options)
    yield case("_npi_slice", real(0, 2), begin="(0, 1)", end="(0, 2)")
    yield case("_npi_gather_nd", real(3, 2), of([0, 2], dtype="int64"))
    yield case("_npi_gather_nd", real(3, 2), of([0, 2], [1, 0], dtype="int64"))
    yield case("_npi_gather_nd", real(3, 2, 2), of([0, -1], [1, -2], dtype="int32"))
    for axis in (0, 1, -1, None):
        yield case("_npi_sort", real(3, 2), axis=axis)
        yield case("_npi_argsort", real(3, 2), axis=axis, dtype="int64")
        yield case("_npx_topk", real(3, 2), axis=axis, k=1, ret_typ="both")
    for dtype in INTEGERS:
        yield case("_npi_sort", whole(3, 2, low=0, dtype=dtype))
    for dtype in REALS:
        yield case("_npx_pick", real(2, 3, dtype=dtype), of(0, 2), axis=1)
        yield case("_npx_one_hot", of(0, 2, 1, dtype=dtype), depth=3)
    yield case("_npx_pick", real(2, 3), of(0, 2, 1), axis=0, keepdims=True)
    yield case("_npx_pick", real(3, 4, 2), whole(3, 2, low=0, high=4), axis=1)
    yield case("_npx_one_hot", np.array(1.0, "float32"), depth=3)
    yield case("_npx_one_hot", real(0), depth=3)
    yield case("_npx_one_hot", of(1, 3, -1), depth=3, on_value=2, off_value=-1, dtype="int32")
    data = whole(4, 3)
    yield case("_npi_boolean_mask", data, of(1, 0, 1, 0), axis=0)
    yield case("_npi_boolean_mask", data, of(0, 0, 0, 1, dtype="bool"), axis=0)
    bounds = {"begin": "(1,)", "end": "(3,)"}
    yield case("_npi_slice_assign", data, real(2, 3), **bounds)
    yield case("_npi_slice_assign_scalar", data, scalar=2.5, **bounds)
    yield case("_npx_slice", data, begin="(1, None)", end="(None, 2)")


def shapes() -> Iterator[Case]:
    """Repetition, splitting, axes."""
    for array, reps in (
        (real(2), "(2, 2)"), (real(), "(2,)"), (real(2), "(0,)"), (real(2), "()"),
        (real(2, 3), "(2,)"), (real(), "()"), (real(0, 2), "(2, 1)"), (real(2, 1), "(1, 0, 2)"),
    ):  # fmt: skip
        yield case("_npi_tile", array, reps=reps)
    for array, options in (
        (real(2, 2), {"repeats": 0}), (real(), {"repeats": 2}), (real(2, 2), {"repeats": 2}),
        (real(2, 2), {"repeats": 2, "axis": 1}), (real(0, 2), {"repeats": 3, "axis": 1}),
        (real(2, 2), {"repeats": 0, "axis": 0}),
    ):  # fmt: skip
        yield case("_np_repeat", array, **options)
    for options in (
        {"indices": "(0, 2)", "axis": 0},
        {"indices": "()", "axis": 0, "sections": 5},
        {"indices": "(0,)", "axis": 0, "sections": 3},
        {"indices": "(0, 2, 2)", "axis": 0},
        {"indices": "(0, 1)", "axis": -1},
    ):
        yield case("_npi_split", real(5), **options)
        yield case("_npi_split", real(5, 2), **{**options, "axis": 0})
    for array in (real(), real(3), real(2, 0)):
        yield case("_npi_expand_dims", array, axis=0)
        yield case("_npi_expand_dims", array, axis=-1)
    yield case("_npi_swapaxes", real(2, 3, 4), dim1=0, dim2=-1)
    yield case("_npi_swapaxes", real(2, 0), dim1=0, dim2=1)
    for dtype in ("bool", *INTEGERS, *REALS):
        yield case("_npi_cast", of(-1.7, 0, 2.9, 1).astype("float32"), dtype=dtype)
        yield case("_npi_full", shape=(2,), value=3.7, dtype=dtype)
    yield case("_npi_cast", real(), dtype="int32")
    yield case("_npi_cast", real(0, 2), dtype="int32")
    yield case("_npx_reshape_like", real(2, 3), real(3, 2))
    yield case("_npx_shape_array", real(2, 0, 3))
    yield case("_npx_shape_array", real())
    yield case("_npx_arange_like", real(2, 3), axis=1)
    yield case("_npx_arange_like", real(2, 3), start=1.5, step=0.5)


def numeric() -> Iterator[Case]:
    """Limits, and functions of neural networks."""
    for dtype in (*INTEGERS, *REALS):
        yield case("_npi_clip", whole(5, low=0, dtype=dtype), a_min=1, a_max=3)
    for array in (real(), real(0)):
        yield case("_npi_clip", array, a_min=-0.5, a_max=0.5)
    for axis in (-1, 0):
        for array in (real(2, 3), real(0, 3), real(2, 3, dtype="float64"), real(1)):
            yield case("_npx_softmax", array, axis=axis)
            yield case("_npx_log_softmax", array, axis=axis)
    yield case("_npx_softmax", real(2, 3), axis=-1, temperature=2.0)
    yield case("_npx_softmax", real(2, 3), of(1, 3, dtype="int32"), axis=-1, use_length=True)
    yield case("_npx_layer_norm", real(2, 3), real(3), real(3))
    yield case("_npx_layer_norm", real(2, 3, 4), real(3), real(3), axis=1, eps=1e-3)
    yield case("_npx_batch_dot", real(2, 2, 3), real(2, 3, 2))
    yield case("_npx_batch_dot", real(0, 2, 3), real(0, 3, 2))
    yield case("_npx_batch_dot", real(2, 2, 3), real(2, 4, 3), transpose_b=True)
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        yield case("_npx_activation", real(2, 3), act_type=kind)
    for kind in ("leaky", "elu", "selu", "gelu"):
        yield case("_npx_leaky_relu", real(2, 3), act_type=kind, slope=0.1)
    yield case("_npx_leaky_relu", real(2, 3), real(3), act_type="prelu")
    for name in ("_npx_erf", "_npx_gammaln", "_npx_gamma"):
        yield case(name, real(2, 3, low=0.2))
        yield case(name, real(low=0.2))
    yield case("_npx_erfinv", real(2, 3, low=-0.9, high=0.9))
    yield case("_npx_fully_connected", real(2, 3), real(4, 3), real(4), num_hidden=4)
    options = {"num_hidden": 4, "flatten": False, "no_bias": True}
    yield case("_npx_fully_connected", real(2, 2, 3), real(4, 3), **options)
    yield case("_npx_embedding", whole(2, 3, low=0, high=5), real(5, 2), input_dim=5, output_dim=2)
    convolution = {"kernel": "(3,)", "num_filter": 2, "pad": "(1,)"}
    yield case("_npx_convolution", real(1, 3, 5), real(2, 3, 3), real(2), **convolution)
    pooling = {"kernel": "(2, 2)", "stride": "(2, 2)", "pool_type": "max"}
    yield case("_npx_pooling", real(1, 2, 4, 4), **pooling)
    yield case("_npx_batch_flatten", real(2, 3, 4))
    data, lengths = real(3, 2, 2), of(1, 3)
    yield case("_npx_sequence_mask", data, lengths, use_sequence_length=True, value=-1)
    yield case("_npx_smooth_l1", real(2, 3), scalar=2.0)
    for array in (real(2, 2), real(3, 2, 2, dtype="float64"), real(1, 1), real(2, 1, 3, 3)):
        yield case("_npi_det", array)
        yield case("_npi_slogdet", array)
        yield case("_npi_inv", array, tolerance=2e-4)
    yield case("_npi_hypot_scalar", of(3, 0, -4), scalar=4)
    yield case("_npi_det", real(0, 2, 2))


def reductions_of_nothing() -> Iterator[Case]:
    """Sums, means and norms over no elements; arrays without elements repeated and multiplied."""
    for name in ("mean", "sum", "prod", "nansum", "nanprod", "norm"):
        yield case(name, real(0, 3), axis=0)
        yield case(name, real(0, 3), axis=0, keepdims=True)
        yield case(name, real(0))
    yield case("moments", real(0, 3), axes="(0,)")
    yield case("moments", real(2, 0, 3), axes="(1,)")
    yield case("repeat", real(0, 3), repeats=2, axis=1)
    yield case("dot", real(0, 3), real(3, 2))


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from indexing()
    yield from shapes()
    yield from numeric()
    yield from reductions_of_nothing()
