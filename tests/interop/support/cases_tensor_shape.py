"""Cases of the operators that change shape, join, cut, pad, or make tensors."""

from __future__ import annotations

from collections.abc import Iterator

from cases_tensor_spec import Case, case, of, real, whole

RESHAPES = (
    ((4, -1), False),
    ((-1,), False),
    ((0, -1), False),
    ((-1, 0, 0), False),
    ((-2,), False),
    ((2, -2), False),
    ((-2, 1, 1), False),
    ((-3, 4), False),
    ((0, -3), False),
    ((-3, -2), False),
    ((-4, 1, 2, -2), False),
    ((2, -4, -1, 3, -2), False),
    ((0, -4, 3, -1, 0), False),
    ((-4, -1, 2, -3), False),
    ((0, 0, -4, 2, 2), False),
    ((-4, 2, -1, 3, 4), False),
    ((-1, 0), True),
    ((0, -1), True),
    ((-2, 0), True),
    ((-3, 0), True),
    ((0, -3), True),
    ((0, 0, 2, 2, -4), True),
    ((0, -1, 3, -4, 0), True),
    ((-2, 1, -1, -4), True),
    ((8, 3), True),
    ((-1, 2, 0), True),
    ((6, 1, -1), False),
)


def reshaping() -> Iterator[Case]:
    """Same elements, other shape."""
    for shape, reverse in RESHAPES:
        yield case("Reshape", real(2, 3, 4), shape=shape, reverse=reverse)
    yield case("Reshape", real(10, 5, 4), shape=(-1, 0), reverse=True)
    yield case("Reshape", real(2, 3, 4, 5), shape=(-3, -3))
    yield case("Reshape", real(2, 3, 4, 5), shape=(-3, -3), reverse=True)
    yield case("Reshape", real(8, 3, 3, 3, 4, 4), shape=(-4, 2, -1, -2))
    yield case("Reshape", real(8, 3, 3, 3, 4, 4), shape=(0, -4, 3, -1, -2), reverse=False)
    yield case("Reshape", real(2, 3, 4), target_shape=(2, 0))
    yield case("Reshape", real(2, 3, 4), target_shape=(0, 4), keep_highest=False)
    yield case("Reshape", real(2, 3, 4), target_shape=(0, 0), keep_highest=True)
    yield case("Reshape", real(2, 3, 4), target_shape=(2, 12), keep_highest=True)
    yield case("Reshape", whole(2, 3, dtype="int32"), shape=(3, 2))
    yield case("reshape_like", real(6), real(3, 2))
    yield case(
        "reshape_like", real(30, 7), real(15, 2, 4), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2
    )
    yield case(
        "reshape_like", real(3, 5), real(1, 15, 4), lhs_begin=0, lhs_end=2, rhs_begin=1, rhs_end=2
    )
    yield case(
        "reshape_like",
        real(30, 12),
        real(4, 2, 2, 3),
        lhs_begin=-1,
        lhs_end=None,
        rhs_begin=1,
        rhs_end=None,
    )
    yield case("Flatten", real(2, 3, 4))
    yield case("Flatten", real(3))
    yield case("Flatten", real(2, 3))
    for axis in (0, 1, 2, 3, -1, -2, -4):
        yield case("expand_dims", real(2, 3, 4), axis=axis)
    yield case("squeeze", real(1, 2, 1, 3))
    yield case("squeeze", real(1, 2, 1, 3), axis=0)
    yield case("squeeze", real(1, 2, 1, 3), axis=-2)
    yield case("squeeze", real(1, 2, 1, 3), axis=(0, 2))
    yield case("squeeze", real(1, 1, 1))
    yield case("squeeze", real(1, 1), axis=(0, 1))
    yield case("transpose", real(2, 3, 4))
    yield case("transpose", real(2, 3, 4), axes=(1, 2, 0))
    for axes in ((2, 2, 2), (0, 2, 2), (1, 1, 2), (2, 1, 2), (2, 0, 2)):
        yield case("transpose", real(2, 3, 4), axes=axes)
    for axes in ((3, 3, 2, 1), (0, 3, 3, 1), (2, 2, 3, 3)):
        yield case("transpose", whole(3, 2, 2, 2, dtype="int32"), axes=axes)
    for axes in ((0, 0), (1, 1), (1, 0), (0, 1)):
        yield case("transpose", real(3, 3), axes=axes)
    yield case("SwapAxis", real(2, 3, 4), dim1=0, dim2=2)
    yield case("SwapAxis", real(2, 3, 4), dim1=-1, dim2=1)
    yield case("SwapAxis", real(2, 3, 4), dim1=1, dim2=1)
    yield case("SwapAxis", real(2, 3, 4))
    for block in (1, 2):
        yield case("depth_to_space", real(2, 8, 2, 3), block_size=block)
        yield case("space_to_depth", real(2, 3, 4, 6), block_size=block)
    yield case("depth_to_space", whole(1, 4, 1, 1, dtype="int32"), block_size=2)
    yield case("depth_to_space", real(1, 9, 1, 2), block_size=3)
    yield case("depth_to_space", whole(2, 8, 2, 3, dtype="int64"), block_size=2)
    yield case("space_to_depth", whole(2, 3, 4, 6, dtype="int64"), block_size=2)


def joining() -> Iterator[Case]:
    """Join, cut and repeat."""
    a, b = real(2, 3, 4), real(2, 3, 4, high=5)
    for dim in (0, 1, 2, -1, -2):
        yield case("Concat", a, b, num_args=2, dim=dim)
        yield case("stack", a, b, num_args=2, axis=dim)
    yield case("stack", a, b, num_args=2, axis=3)
    yield case("stack", a, num_args=1)
    yield case("Concat", a, num_args=1)
    yield case("Concat", a, real(2, 1, 4), real(2, 2, 4), num_args=3)
    yield case("Concat", real(3), real(2), num_args=2, dim=0)
    yield case("_rnn_param_concat", real(3), real(4), num_args=2, dim=0)
    c = real(4, 6, 2)
    yield case("SliceChannel", c, num_outputs=3)
    yield case("SliceChannel", c, num_outputs=2, axis=0)
    yield case("SliceChannel", c, num_outputs=2, axis=-1, squeeze_axis=True)
    yield case("SliceChannel", c, num_outputs=6, axis=1, squeeze_axis=True)
    yield case("SliceChannel", c, num_outputs=1, axis=2)
    yield case("_split_v2", c, indices=(0, 2, 4), axis=1)
    yield case("_split_v2", c, indices=(0, 1), axis=0)
    yield case("_split_v2", c, indices=(0,), sections=3, axis=1)
    yield case("_split_v2", real(7, 2), indices=(0,), sections=3, axis=0)
    yield case("_split_v2", c, indices=(0,), sections=2, axis=-1, squeeze_axis=True)
    yield case("_split_v2", c, indices=(0, 2, 4), axis=-2)
    yield case("tile", real(2, 3), reps=(2, 1))
    yield case("tile", real(2, 3), reps=(2,))
    yield case("tile", real(2, 3), reps=(2, 1, 3))
    yield case("tile", real(2, 3), reps=(2, 2, 1, 3))
    yield case("tile", real(3), reps=(1,))
    yield case("tile", real(3), reps=None)
    yield case("tile", real(2, 3, 4), reps=(3, 2))
    for axis in (None, 0, 1, -1):
        yield case("repeat", real(2, 3), repeats=2, axis=axis)
    yield case("repeat", real(2, 3), repeats=1)
    yield case("repeat", whole(2, 3, dtype="int32"), repeats=3, axis=0)
    yield case("reverse", real(2, 3, 4), axis=1)
    yield case("reverse", real(2, 3, 4), axis=(0, 2))
    yield case("flip", real(3), axis=0)
    yield case("shape_array", real(2, 3, 4))
    yield case("size_array", real(2, 3, 4))


def cutting() -> Iterator[Case]:
    """Slices and padding."""
    a = real(5, 6, 4)
    yield case("slice", a, begin=(1,), end=(4,))
    yield case("slice", a, begin=(1, None, 0), end=(4, 3, None))
    yield case("slice", a, begin=(None, 4), end=(None, 0), step=(2, -1))
    yield case("slice", a, begin=(-3, -4), end=(-1, 6))
    yield case("slice", a, begin=(None, None), end=(None, None), step=(-1, -2))
    yield case("slice", a, begin=(0, 1, 0), end=(5, 6, 4), step=(None, 2, 3))
    yield case("slice", a, begin=(4, None), end=(None, None), step=(-2, None))
    yield case("slice", a, begin=(0,), end=(100,))
    yield case("slice", a, begin=(-1, -1), end=(-6, None), step=(-1, -1))
    yield case("slice", whole(4, 3, dtype="int32"), begin=(1, 0), end=(3, 2))
    yield case("slice_axis", a, axis=0, begin=1, end=3)
    yield case("slice_axis", a, axis=1, begin=-3, end=None)
    yield case("slice_axis", a, axis=-1, begin=0, end=-1)
    yield case("slice_axis", a, axis=2, begin=-4, end=4)
    yield case("slice_like", a, real(3, 2, 1))
    yield case("slice_like", a, real(3, 2), axes=(0, 1))
    yield case("slice_like", a, real(3, 2, 2), axes=(-1,))
    yield case("slice_like", a, real(3, 2), axes=(0,))
    yield case("slice_like", a, real(2, 2, 2, 2), axes=(0, 2))
    yield case("slice", a, begin=(1,), end=(4,), step=None)
    yield case("_slice_assign", a, real(3, 6, 4), begin=(1,), end=(4,))
    yield case("_slice_assign", a, real(2, 2, 4), begin=(0, 1), end=(4, 3), step=(2, 1))
    yield case("_slice_assign", a, real(5, 2, 4), begin=(None, -1), end=(None, -3), step=(1, -1))
    yield case("_slice_assign", a, real(5, 6, 1), begin=(None, None, 2), end=(None, None, 3))
    whole_numbers = whole(4, 3, dtype="int32")
    for rows in ("int32", "int64"):
        data, row = whole_numbers.astype(rows), whole(1, 3, dtype=rows)
        yield case("_slice_assign", data, row, begin=(2,), end=(3,))
    yield case("_slice_assign_scalar", a, scalar=7, begin=(1, 2), end=(3, None))
    yield case("_slice_assign_scalar", a, scalar=-1.5, begin=(None, 5), end=(None, 0), step=(2, -2))
    yield case("_slice_assign_scalar", a, scalar=1, begin=(2, 0), end=(2, 1))
    image, volume = real(1, 2, 3, 4), real(1, 2, 3, 4, 3)
    for mode in ("constant", "edge", "reflect"):
        yield case("Pad", image, mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 3, 1), constant_value=1.5)
        yield case("Pad", image, mode=mode, pad_width=(0, 0, 0, 0, 0, 0, 2, 0))
        yield case("Pad", volume, mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 2, 1, 1, 1))
    yield case("Pad", image.astype("float64"), mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 1, 1))


def making() -> Iterator[Case]:
    """Tensors from nothing, or from the shape of another."""
    for name in ("_zeros", "_ones"):
        yield case(name, shape=(2, 3))
        yield case(name, shape=(2,), dtype="int32")
        yield case(name, shape=(1, 2), dtype="float64")
        yield case(name, shape=(3,), dtype="float16", ctx="cpu(0)")
        yield case(name, shape=3, dtype="uint8")
        yield case(name, shape=(2,), dtype="bool")
    for code in range(8):
        yield case("_zeros_without_dtype", shape=(2, 3), dtype=code)
    yield case("_zeros_without_dtype", shape=5, dtype=4, ctx="cpu(0)")
    yield case("_full", shape=(2, 3), value=2.5)
    yield case("_full", shape=(2, 3), value=-2.5, dtype="int32")
    yield case("_full", shape=(2,), value=0.1, dtype="float64")
    yield case("_arange", start=5, infer_range=False, stop=None)
    yield case("_arange", start=2, stop=7)
    yield case("_arange", start=0, stop=1, step=0.3)
    yield case("_arange", start=7, stop=0, step=-2)
    yield case("_arange", start=1, stop=4, repeat=3)
    yield case("_arange", start=1, stop=9, step=2, dtype="int32")
    yield case("_arange", start=0.5, stop=4, dtype="float64")
    yield case("_arange", start=0, stop=5, dtype="float16")
    yield case("_arange", start=0, stop=5, dtype="uint8")
    yield case("_linspace", start=0, stop=1, num=5)
    yield case("_linspace", start=-1, stop=2, num=4, endpoint=False, dtype="float64")
    yield case("_eye", N=3)
    yield case("_eye", N=2, M=4, k=1)
    yield case("_eye", N=4, M=3, k=-2, dtype="int32")
    yield case("_eye", N=3, k=2, dtype="float64")
    for options in (
        {},
        {"axis": 1},
        {"axis": -1, "start": 2.5, "step": 0.5},
        {"axis": 0},
        {"start": 1, "step": -2},
        {"repeat": 2},
        {"axis": 2, "repeat": 2},
    ):
        yield case("_contrib_arange_like", real(2, 3, 4), **options)
    yield case("_contrib_arange_like", real(3, dtype="float64"), axis=0)
    yield case("_contrib_index_array", real(3, 2))
    yield case("_contrib_index_array", real(3, 2, 2), axes=(1, 0))
    yield case("_contrib_index_array", real(3, 2, 2), axes=(-1,))
    for k in (0, 1, -1, 2):
        yield case("diag", real(3, 4), k=k)
        yield case("diag", of(1, 2, 3), k=k)
        yield case("diag", real(3, 3, 4), k=k, axis1=0, axis2=2)
        yield case("diag", real(2, 3, 4), k=k, axis1=-2, axis2=-1)
        yield case("diag", real(3, 3, 4), k=k, axis1=1, axis2=0)
    yield case("diag", whole(3, 3, dtype="int32"))
    yield case("diag", real(2, 1), k=1)


def patches() -> Iterator[Case]:
    """Blocks of images as columns and back."""
    yield case("im2col", real(2, 3, 5, 6), kernel=(2, 3))
    yield case("im2col", real(2, 3, 5, 6), kernel=(3, 2), stride=(2, 1), pad=(1, 2))
    yield case("im2col", real(1, 2, 7, 7), kernel=(2, 2), dilate=(2, 3))
    for dtype in ("float16", "float64"):
        yield case("im2col", real(1, 2, 4, 3, dtype=dtype), kernel=(2, 2), pad=(1, 1))
        yield case("col2im", real(1, 8, 6, dtype=dtype), output_size=(4, 3), kernel=(2, 2))
    yield case("im2col", real(2, 1, 3, 5), kernel=(3, 5), stride=(4, 4))
    yield case("im2col", real(2, 1, 3, 3), kernel=(1, 1))
    yield case("col2im", real(2, 30, 1), output_size=(3, 5), kernel=(3, 5), stride=(4, 4))
    yield case("col2im", real(1, 8, 36), output_size=(7, 7), kernel=(2, 2), dilate=(1, 1))
    yield case("col2im", real(1, 8, 24), output_size=(7, 7), kernel=(2, 2), dilate=(3, 1))
    yield case("col2im", real(2, 3, 9), output_size=(3, 3), kernel=(1, 1))
    yield case("col2im", real(2, 18, 16), output_size=(5, 6), kernel=(2, 3))
    yield case(
        "col2im", real(1, 12, 27), output_size=(5, 6), kernel=(3, 2), stride=(2, 1), pad=(1, 2)
    )


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    yield from reshaping()
    yield from joining()
    yield from cutting()
    yield from making()
    yield from patches()
