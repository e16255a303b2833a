"""Cases of the operators that reduce, sort and search along axes."""

from __future__ import annotations

from collections.abc import Iterator

from cases_tensor_spec import Case, case, of, real, whole

NAN, INF = float("nan"), float("inf")
REDUCTIONS = "sum mean prod max min nansum nanprod"
AXES = (
    {},
    {"axis": 1},
    {"axis": -1, "keepdims": True},
    {"axis": (0, 2)},
    {"axis": (2, 0), "keepdims": True},
    {"axis": (-1, 0)},
    {"axis": (1,), "exclude": True},
    {"axis": (0, -1), "exclude": True, "keepdims": True},
    {"axis": (), "keepdims": True},
    {"axis": (), "exclude": True},
    {"axis": (0, 1, 2)},
    {"keepdims": True},
)


def reduction() -> Iterator[Case]:
    """Sums and their kin, over axes given in every way."""
    holes = of(1.5, NAN, -2, 0.5, NAN, NAN).reshape(3, 2)
    for name in REDUCTIONS.split():
        for axes in AXES:
            yield case(name, real(2, 3, 4), **axes)
        yield case(name, holes, axis=1)
        yield case(name, of(INF, -INF, 1, 2).reshape(2, 2), axis=1)
        yield case(name, real(3, 4, dtype="float64"), axis=0)
        yield case(name, real(3, 4, low=0.5, dtype="float16"), axis=1)
        for dtype in ("int32", "int64", "int8", "uint8"):
            if name not in ("nansum", "nanprod"):
                yield case(name, whole(3, 4, low=1, high=5).astype(dtype), axis=1)
    yield case("sum_axis", real(2, 3), axis=1)
    yield case("max_axis", real(2, 3), axis=0)
    yield case("min_axis", real(2, 3), axis=0)
    for order in (1, 2):
        for axes in (
            {},
            {"axis": 1},
            {"axis": (0, 2)},
            {"axis": -1, "keepdims": True},
            {"axis": (), "keepdims": True},
        ):
            yield case("norm", real(2, 3, 4), ord=order, **axes)
        yield case("norm", real(3, 4, dtype="float64"), ord=order, axis=1)
        yield case("norm", real(3, 4, dtype="float16"), ord=order, axis=1)
    for axes in (
        {"axes": (1,)},
        {"axes": (0, 2)},
        {"axes": (-1, 0), "keepdims": True},
        {"axes": (0, 1, 2)},
    ):
        yield case("moments", real(2, 3, 4), **axes)
    yield case("sum", real(1), axis=0)
    yield case("all_finite", real(2, 3))
    yield case("all_finite", of(1, NAN))
    yield case("multi_all_finite", real(2), of(1, INF), num_arrays=2)
    yield case("multi_all_finite", real(2), real(3), num_arrays=2)
    yield case("multi_sum_sq", real(2, 3), real(4), num_arrays=2)


def position() -> Iterator[Case]:
    """Positions of extremes, with ties and with NaN."""
    ties = of(1, 3, 3, 2, 2, 1).reshape(2, 3)
    holes = of(1, NAN, 3, NAN, 5, -INF).reshape(2, 3)
    for name in ("argmax", "argmin"):
        for array in (ties, holes, real(4, 5)):
            for axes in ({"axis": 0}, {"axis": 1}, {"axis": -1, "keepdims": True}, {}):
                yield case(name, array, **axes)
        yield case(name, real(2, 3, 4), axis=1, keepdims=True)
        yield case(name, real(2, 3, 4), axis=-3)
        yield case(name, real(5))
        yield case(name, real(2, 3, 4), keepdims=True)
        for dtype in ("float64", "int32", "float16", "int64", "uint8"):
            yield case(name, whole(3, 4, low=0, dtype=dtype), axis=1)
    yield case("argmax_channel", ties)
    yield case("argmax_channel", real(2, 3, 4))


def ordering() -> Iterator[Case]:
    """Sorting and the first k, stable where values are equal."""
    for dtype in ("float32", "float64", "int32", "int64", "uint8", "float16"):
        array = whole(3, 5, low=0, high=50, dtype=dtype)
        yield case("topk", array, k=2, ret_typ="value")
        yield case("topk", array, k=2, ret_typ="mask")
        yield case("topk", array, k=2, ret_typ="both")
        if dtype != "float16":
            yield case("argsort", array, axis=1)
            yield case("sort", array, axis=1)
            yield case("sort", array, axis=0, is_ascend=False)
    array = real(2, 3, 4)
    for axis in (0, 1, 2, -1, -3, None):
        yield case("sort", array, axis=axis)
        yield case("argsort", array, axis=axis)
        yield case("argsort", array, axis=axis, is_ascend=False)
        for kind in ("indices", "value", "mask", "both"):
            yield case("topk", array, axis=axis, k=2, ret_typ=kind)
            yield case("topk", array, axis=axis, k=1, ret_typ=kind, is_ascend=True)
            yield case("topk", array, axis=axis, k=0, ret_typ=kind)
    for dtype in ("int32", "int64", "float64", "float16", "uint8", "float32"):
        yield case("topk", array, k=2, dtype=dtype)
        yield case("topk", array, k=2, dtype=dtype, ret_typ="both")
        yield case("argsort", array, dtype=dtype)
    ties = of(1, 3, 3, 2, 2, 1, 3, 2).reshape(2, 4)
    for ascending in (True, False):
        yield case("argsort", ties, is_ascend=ascending)
        yield case("sort", ties, is_ascend=ascending)
        yield case("topk", ties, k=3, is_ascend=ascending)
        yield case("topk", ties, k=3, is_ascend=ascending, ret_typ="mask")
    yield case("topk", real(2, 3))
    yield case("topk", real(7), k=3, ret_typ="both")


def accumulation() -> Iterator[Case]:
    """Running sums."""
    yield case("_np_cumsum", real(2, 3))
    yield case("_np_cumsum", real(2, 3), axis=0)
    yield case("_np_cumsum", of(1, 0, 1, dtype="bool"), axis=0)
    yield case("sum", of(1, 0, 1, dtype="bool"))
    yield case("max", of(1, 0, 1, dtype="bool"))
    yield case("_np_cumsum", real(2, 3), axis=1, dtype="float64")
    yield case("_np_cumsum", whole(2, 3, dtype="int32"), axis=1)
    yield case("_np_cumsum", whole(2, 3, dtype="int8"), axis=1)
    yield case("_np_cumsum", whole(2, 3, dtype="int32"), axis=1, dtype="float32")


def squares() -> Iterator[Case]:
    """Sums of squares of sparse rows, of which some are empty."""
    rows = real(4, 3)
    rows[[0, 2]] = 0
    for array in (rows, rows.astype("float64")):
        for axis in (0, 1):
            yield case("_square_sum", array, axis=axis)
            yield case("_square_sum", array, axis=axis, keepdims=True)
    yield case("_square_sum", rows[1:2], axis=(0,))
    yield case("_square_sum", real(5, 1), axis=(1,), keepdims=1)


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    yield from reduction()
    yield from squares()
    yield from position()
    yield from ordering()
    yield from accumulation()
