"""Cases of the operators that gather, scatter and choose by index."""

from __future__ import annotations

from collections.abc import Iterator

from cases_tensor_spec import Case, case, of, real, whole


def taking() -> Iterator[Case]:
    """Gather along one axis; indices are reals by default and may lie outside."""
    a = real(4, 3, 5)
    wild = of(0, 3, -1, 9, -7, 2, 4, -4).reshape(2, 4)
    for mode in ("clip", "wrap"):
        for axis in (0, 1, -1, 2):
            yield case("take", a, wild, axis=axis, mode=mode)
        yield case("take", a, wild.astype("int32"), mode=mode)
        yield case("take", a, of(1.9, 0.2, -0.5, -1.5, 3.99), mode=mode)
        yield case("take", a, of(0, 2, dtype="int64"), axis=1, mode=mode)
        yield case("take", whole(4, 3, dtype="int32"), of(2, 0), mode=mode)
    yield case("take", a, of(0, 3), mode="raise")
    yield case("batch_take", real(3, 2), of(0, 1, 0, dtype="int32"))
    yield case("batch_take", real(3, 2), of(1, 5, -2, dtype="int32"))
    yield case("batch_take", real(3, 2), of(1, 0, 1, dtype="int32").reshape(3, 1))
    b = real(3, 4)
    for mode in ("clip", "wrap"):
        yield case("pick", b, of(0, 5, -1), axis=1, mode=mode)
        yield case("pick", b, of(0, 5, -1, 2), axis=0, mode=mode, keepdims=True)
        yield case("pick", b, of(1, 0, 3).reshape(3, 1), axis=1, keepdims=True, mode=mode)
        yield case("pick", b, of(1, 0, 3, dtype="int32"), mode=mode)
        yield case("pick", b, of(-5, -4, 7), mode=mode)
        yield case("pick", b, of(-0.5, 1.9, 3.2), mode=mode)
    yield case("pick", b, of(1, 0, 3).reshape(3, 1), axis=1)
    yield case("pick", a, whole(4, 5, low=0, high=3), axis=1)
    yield case("pick", a, whole(4, 3, low=0, high=5), axis=-1, keepdims=True)
    yield case("pick", real(6), of(2), axis=0)
    yield case("choose_element_0index", b, of(1, 0, 3))


def scattering() -> Iterator[Case]:
    """Gather and scatter by tuples of indices, the tuple along the first axis."""
    a = real(3, 4, 2)
    pair = of([2, 0, 1], [3, 1, 0])
    pair = pair.reshape(2, 3)
    yield case("gather_nd", a, pair)
    yield case("gather_nd", a, pair.astype("int32"))
    yield case("gather_nd", a, pair.astype("int64"))
    yield case("gather_nd", a, of(0, 2).reshape(1, 2))
    yield case("gather_nd", a, of([0, 1], [1, 2], [1, 0]).reshape(3, 2))
    yield case("gather_nd", a, whole(2, 2, 3, low=0, high=3))
    yield case("gather_nd", a, of([-1, 0], [-2, 1]).reshape(2, 2))
    yield case("gather_nd", whole(3, 4, dtype="int32"), pair)
    yield case("scatter_nd", of(2, 3, 0), of([1, 1, 0], [0, 1, 0]).reshape(2, 3), shape=(2, 2))
    yield case("scatter_nd", real(3, 2), pair, shape=(3, 4, 2))
    yield case("scatter_nd", real(2, 4), of(2, 0).reshape(1, 2), shape=(4, 4))
    yield case("scatter_nd", whole(3, dtype="int32"), pair.astype("int32"), shape=(3, 4))
    shape = (3, 4, 5)
    yield case("_ravel_multi_index", of([0, 1, 2], [3, 0, 1], [4, 2, 0]).reshape(3, 3), shape=shape)
    yield case("_ravel_multi_index", of([2, 1], [3, 0], dtype="int32").reshape(2, 2), shape=(-1, 4))
    yield case("_unravel_index", of(0, 59, 17, 33), shape=shape)
    yield case("_unravel_index", of(0, 59, 17, 33, dtype="int32"), shape=shape)
    yield case("_unravel_index", of(0, 7, 11), shape=(-1, 4))
    yield case("_contrib_index_copy", real(5, 3), of(0, 4, 2, dtype="int64"), real(3, 3, high=8))
    yield case("_contrib_index_copy", real(5, 3), of(1, 3, dtype="int32"), real(2, 3, high=8))
    yield case("_contrib_index_copy", real(5, 3), of(1, 3), real(2, 3, high=8))


def choosing() -> Iterator[Case]:
    """One-hot codes and masks."""
    yield case("one_hot", of(1, 0, 2, 0), depth=3)
    yield case("one_hot", of(1, -1, 3, 5), depth=3, on_value=8, off_value=1)
    yield case("one_hot", of([1, 0], [1, 0], [2, 0]).reshape(3, 2), depth=3, dtype="int32")
    yield case("one_hot", of(1, 2, dtype="int32"), depth=4, on_value=2.5, dtype="float64")
    yield case("one_hot", of(0.9, 1.5, -0.5), depth=3)
    yield case("one_hot", of(1, 0), depth=2, dtype="uint8", on_value=2.5, off_value=-1)
    for dtype in ("float16", "int8", "uint8", "int64"):
        yield case("one_hot", of(1, 0), depth=2, dtype=dtype, on_value=3)
    x, y = real(2, 3), real(2, 3, high=9)
    yield case("where", of([1, 0, -1], [0, 0.5, 0]).reshape(2, 3), x, y)
    yield case("where", of(0, 2), x, y)
    yield case("where", of([1, 0, -1], [0, 5, 0], dtype="int32").reshape(2, 3), x, y)
    yield case("where", of(1, 0), whole(2, 3, dtype="int32"), whole(2, 3, high=99, dtype="int32"))
    yield case("where", of(float("nan"), 0, 1), real(3), real(3, high=9))
    for shape in ((3, 1), (2, 3), (1, 3), (12, 1), (2, 3, 1), (4, 3, 1), (1, 2)):
        yield case("where", whole(*shape, low=0, high=2), real(4, 3), real(4, 3, high=9))
    for shape in ((2, 2), (4, 3), (4,), (3, 1, 1), (1, 1, 1)):
        yield case("where", whole(*shape, low=0, high=2), real(4, 3, 2), real(4, 3, 2, high=9))
    yield case("_contrib_boolean_mask", real(4, 3), of(0, 1, 0, 1))
    yield case("_contrib_boolean_mask", real(4, 3), of(0, 1, 1, 1, dtype="int32"))
    yield case("_contrib_boolean_mask", real(4), of(1, 1, 0, 1))


def boxes() -> Iterator[Case]:
    """Bounding boxes from offsets to anchors."""
    offsets = real(2, 3, 4)
    centers = real(1, 3, 4, low=0.1, high=1)
    for kind in ("center", "corner"):
        yield case("_contrib_box_decode", offsets, centers, format=kind)
        yield case(
            "_contrib_box_decode",
            offsets,
            centers,
            format=kind,
            clip=0.5,
            std0=0.1,
            std1=0.2,
            std2=0.3,
            std3=0.4,
        )


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    yield from taking()
    yield from scattering()
    yield from choosing()
    yield from boxes()
