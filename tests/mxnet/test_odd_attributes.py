"""Attributes at the edge of what operators take; the numbers are MXNet 1.9.1's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passlib as pl
from mxnet_graph import graph_of
from passlib import sym, util
from passlib.errors import UnsupportedError

Shape = tuple[int, ...]


def node(op: str, inputs: list[str], attrs: dict[str, str], outputs: int = 1) -> Any:
    """Make the symbol of one operator."""
    return sym.Symbol(graph_of(op, inputs, attrs, outputs).entries)


def run(op: str, array: np.ndarray | None, attrs: dict[str, str]) -> np.ndarray:
    """Compute the first output of one operator."""
    with util.np_shape(op.startswith("_np")):
        given = {} if array is None else {"x": pl.nd.array(array, dtype=array.dtype)}
        bound = node(op, list(given), attrs).bind(pl.cpu(), given, grad_req="null")
        return np.asarray(bound.forward()[0])


IDENTITIES: list[tuple[Shape, list[int]]] = [
    ((3, 3), [0, 4, 8]),
    ((2, 3), [0, 3]),
    ((2, 5), [0, 3]),
    ((3, 2), [0, 4]),
    ((5, 2), [0, 6]),
    ((3,), [0]),
    ((2, 2, 2), [0, 3]),
    ((0, 3), []),
]


@pytest.mark.parametrize(("shape", "places"), IDENTITIES)
def test_identity_counts_rows_by_its_first_size(shape: Shape, places: list[int]) -> None:
    found = run("_npi_identity", None, {"shape": str(shape), "dtype": "int32"})
    assert found.shape == shape
    assert np.flatnonzero(found).tolist() == places
    assert found.sum() == len(places)


NORMALISED: list[tuple[dict[str, str], list[float]]] = [
    ({"beta": "0"}, [1.7640524, 0.4001572, 0.978738, 2.2408931, 1.867558, -0.9772779]),
    ({"beta": "-1"}, [3.528493, 0.8003293, 1.9575367, 4.482163, 3.7355275, -1.9545975]),
    ({"alpha": "0"}, [1.0489118, 0.2379349, 0.5819611, 1.332443, 1.1104566, -0.5810929]),
    (
        {"alpha": "-0.5", "knorm": "2"},
        [1.9090123, 0.25599337, 0.66034454, 2.0058057, 2.0240188, -0.6325583],
    ),
    ({"knorm": "0"}, [976.5884, 840.5385, 1400.4523, 1517.5667, 1032.6396, -1847.0929]),
]


@pytest.mark.parametrize(("attrs", "wanted"), NORMALISED)
def test_local_response_of_any_sign(attrs: dict[str, str], wanted: list[float]) -> None:
    data = np.random.RandomState(0).randn(1, 4, 2, 2).astype(np.float32)
    found = run("LRN", data, {"nsize": "3", **attrs})
    np.testing.assert_allclose(found.ravel()[:6], wanted, rtol=1e-5)


RESIZED: list[tuple[int, int, list[int]]] = [
    (3, 5, [6, 55, 105, 65, 115, 79, 154, 204, 39, 89, 139, 103, 46, 95, 145]),
    (7, 2, [37, 50, 71, 92, 109, 94, 84, 67, 80, 101, 122, 139, 124, 114]),
    (4, 3, [0, 37, 74, 111, 148, 185, 222, 3, 40, 77, 114, 151]),
    (1, 1, [204]),
    (9, 8, [
        0, 6, 23, 39, 55, 72, 88, 105, 111, 9, 15, 32, 48, 65, 81, 91, 101, 104, 65, 71, 87, 104,
        120, 136, 109, 76, 64, 120, 126, 143, 159, 176, 192, 128, 52, 23, 128, 134, 150, 167, 183,
        199, 135, 59, 31, 87, 93, 110, 126, 143, 159, 132, 99, 86, 47, 53, 69, 86, 102, 118, 129,
        138, 142, 40, 46, 63, 79, 95, 112, 128, 145, 151,
    ]),
]  # fmt: skip


@pytest.mark.parametrize("op", ["_image_resize", "_cvimresize"])
@pytest.mark.parametrize(("width", "height", "wanted"), RESIZED)
def test_bytes_are_resized_in_fixed_point(
    op: str, width: int, height: int, wanted: list[int]
) -> None:
    image = (np.arange(12) * 37 % 256).reshape(3, 4, 1).astype(np.uint8)
    sizes = {"w": str(width), "h": str(height)}
    found = run(op, image, sizes if op == "_cvimresize" else {"size": f"({width}, {height})"})
    assert (found.dtype, found.shape) == (np.uint8, (height, width, 1))
    assert found.ravel().tolist() == wanted


def test_batches_of_bytes_are_resized_each() -> None:
    images = np.random.RandomState(3).randint(0, 256, (2, 5, 7, 3)).astype(np.uint8)
    found = run("_image_resize", images, {"size": "(4, 9)"})
    alone = [run("_image_resize", image, {"size": "(4, 9)"}) for image in images]
    np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize(
    ("array", "attrs", "message"),
    [
        (np.array([3, 4], np.int32), {"ord": "2"}, "is defined for floating-point numbers"),
        (np.eye(2, dtype=np.float32), {"flag": "2", "ord": "2"}, "sum of singular values"),
    ],
    ids=["integers", "nuclear"],
)
def test_norms_that_are_refused_have_shapes(
    array: np.ndarray, attrs: dict[str, str], message: str
) -> None:
    with util.np_shape(True):
        symbol = node("_npi_norm", ["x"], {"flag": "-2", **attrs})
        assert symbol.infer_shape(x=array.shape) == ([array.shape], [()], [])
    with pytest.raises(UnsupportedError, match=message):
        run("_npi_norm", array, {"flag": "-2", **attrs})


@pytest.mark.parametrize("op", ["_np_sum", "_np_prod", "_npi_mean", "_np_max", "_np_min"])
@pytest.mark.parametrize(
    ("axis", "shape", "wanted"),
    [("None", (2, 3), ()), ("0", (2, 3), (3,)), ("()", (0, 3), (0, 3)), ("-1", (0, 3), (0,))],
)
def test_reductions_with_an_initial_number_have_shapes(
    op: str, axis: str, shape: Shape, wanted: Shape
) -> None:
    attrs = {"axis": axis, "initial": "2"}
    with util.np_shape(True):
        assert node(op, ["x"], attrs).infer_shape(x=shape) == ([shape], [wanted], [])
    with pytest.raises(UnsupportedError, match="does not implement it"):
        run(op, np.ones(shape, np.float32), attrs)


JOINED: list[tuple[str, Shape, Shape | None, Shape]] = [
    ("_npi_vstack", (2, 3), None, (-1, 3)),
    ("_npi_vstack", (3,), None, (-1, 3)),
    ("_npi_hstack", (2, 3), None, (2, -1)),
    ("_npi_hstack", (3,), None, (-1,)),
    ("_npi_dstack", (2, 3), None, (2, 3, -1)),
    ("_npi_dstack", (3,), None, (1, 3, -1)),
    ("_npi_column_stack", (2, 3, 4), None, (2, -1, 4)),
    ("_npi_column_stack", (3,), None, (3, -1)),
    ("_npi_column_stack", (), None, (1, -1)),
    ("_npi_concatenate", (2, 3), (-1, 3), (-1, 3)),
]


@pytest.mark.parametrize(("op", "first", "second", "wanted"), JOINED)
def test_joins_of_partly_unknown_arrays(
    op: str, first: Shape, second: Shape | None, wanted: Shape
) -> None:
    with util.np_shape(True):
        found = node(op, ["x", "y"], {"num_args": "2"}).infer_shape_partial(x=first)
    assert found == ([first, second], [wanted], [])


@pytest.mark.parametrize(
    ("axes", "wanted"), [(1, (3,)), (2, (1, 3)), (3, (1, 3, 1))], ids=["1d", "2d", "3d"]
)
def test_raised_arrays_of_which_one_is_unknown(axes: int, wanted: Shape) -> None:
    with util.np_shape(True):
        symbol = node(f"_np_atleast_{axes}d", ["x", "y"], {"num_args": "2"}, outputs=2)
        found = symbol.infer_shape_partial(x=(3,))
    assert found == ([(3,), None], [wanted, None], [])


def test_split_along_the_third_axis_whatever_axis_says() -> None:
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for axis in ("0", "1", "2", "-1"):
        found = run("_npi_dsplit", data, {"axis": axis, "indices": "(0, 1)", "sections": "0"})
        np.testing.assert_array_equal(found, data[..., :1])


def test_real_common_multiples_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="is defined for integers"):
        run("_npi_lcm_scalar", np.array([4], np.int32), {"scalar": "6", "is_int": "False"})


@pytest.mark.parametrize("indices", ["(0, 3, 5)", "(2, 1)", "(-1,)"])
def test_places_do_not_matter_along_an_axis_of_no_size(indices: str) -> None:
    attrs = {"axis": "1", "indices": indices, "sections": "0"}
    assert run("_npi_hsplit", np.ones((2, 0, 2), np.float32), attrs).shape == (2, 0, 2)
