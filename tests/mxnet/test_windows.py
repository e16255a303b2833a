"""Windows and groups that MXNet refuses when it infers shapes: refused in inference and running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passlib import sym, util
from passlib.errors import GraphError

X = sym.var("x")
PICTURE = (1, 3, 8, 8)


def convolution(**given: Any) -> Any:
    return sym.Convolution(X, num_filter=given.pop("num_filter", 2), name="n", **given)


def transposed(**given: Any) -> Any:
    return sym.Deconvolution(X, num_filter=given.pop("num_filter", 2), name="n", **given)


def pooling(**given: Any) -> Any:
    return sym.Pooling(X, pool_type="max", name="n", **given)


@pytest.mark.parametrize(
    ("make", "given", "shape", "text"),
    [
        (convolution, {"kernel": (9, 9)}, PICTURE, "spans 9 .* input of 8, padded to 8"),
        (convolution, {"kernel": (9,)}, (1, 3, 8), "spans 9"),
        (convolution, {"kernel": (9, 9), "layout": "NHWC"}, (1, 8, 8, 3), "spans 9"),
        (convolution, {"kernel": (3, 3), "dilate": (4, 4)}, PICTURE, "spans 9"),
        (convolution, {"kernel": (3, 3), "dilate": (0, 1)}, PICTURE, "dilate .*below 1"),
        (convolution, {"kernel": (3, 3), "stride": (0, 1)}, PICTURE, "stride .*below 1"),
        (convolution, {"kernel": (0, 3)}, PICTURE, "kernel .*below 1"),
        (convolution, {"kernel": (-1, 3)}, PICTURE, "kernel .*below 1"),
        (convolution, {"kernel": (3, 3), "num_group": 2}, PICTURE, "channels, which is 3"),
        (convolution, {"kernel": (3, 3), "num_group": 0}, PICTURE, "does not divide"),
        (
            convolution,
            {"kernel": (3, 3), "num_group": 2, "num_filter": 3},
            (1, 4, 8, 8),
            "num_group 2 does not divide num_filter, which is 3",
        ),
        (transposed, {"kernel": (3, 3), "num_group": 2}, PICTURE, "channels, which is 3"),
        (transposed, {"kernel": (0, 0)}, PICTURE, "kernel .*below 1"),
        (transposed, {"kernel": (3, 3), "stride": (0, 1)}, PICTURE, "stride .*below 1"),
        (pooling, {"kernel": (9, 9)}, PICTURE, "spans 9"),
        (pooling, {"kernel": (9, 9), "pooling_convention": "full"}, PICTURE, "spans 9"),
    ],
)
def test_refused(make: Any, given: dict[str, Any], shape: tuple[int, ...], text: str) -> None:
    symbol = make(**given)
    with pytest.raises(GraphError, match=rf"node 'n' \(\w+\): .*{text}"):
        symbol.infer_shape(x=shape)
    arrays = {name: np.ones((1,), np.float32) for name in symbol.list_arguments()}
    arrays["x"] = np.ones(shape, np.float32)
    with pytest.raises(GraphError, match="node 'n'"):
        symbol.eval(**arrays)


@pytest.mark.parametrize("given", [{"kernel": (0, 0)}, {"kernel": (2, 2), "stride": (0, 2)}])
def test_poolings_without_extent_are_no_nodes(given: dict[str, Any]) -> None:
    with pytest.raises(GraphError, match="at least 1"):
        pooling(**given)


@pytest.mark.parametrize(
    ("make", "given", "shape", "expected"),
    [
        (pooling, {"kernel": (9, 9), "pad": (1, 1)}, PICTURE, (1, 3, 2, 2)),
        (pooling, {"kernel": (9, 9), "global_pool": True}, PICTURE, (1, 3, 1, 1)),
        (pooling, {"global_pool": True}, PICTURE, (1, 3, 1, 1)),
        (convolution, {"kernel": (8, 8)}, PICTURE, (1, 2, 1, 1)),
        (convolution, {"kernel": (3, 3), "num_group": 2}, (1, 4, 8, 8), (1, 2, 6, 6)),
        (transposed, {"kernel": (9, 9)}, PICTURE, (1, 2, 16, 16)),
    ],
)
def test_accepted(
    make: Any, given: dict[str, Any], shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert make(**given).infer_shape(x=shape)[1] == [expected]


def test_open_sizes_are_not_checked() -> None:
    with util.np_shape():
        found = convolution(kernel=(9, 9)).infer_shape_partial(x=(-1, 3, -1, 8 + 1))[1]
    assert found == [(-1, 2, -1, 1)]
