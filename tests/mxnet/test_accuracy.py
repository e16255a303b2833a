"""Functions of float64 keep their digits over the whole range; whole numbers are exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passlib
from passlib.errors import GraphError, UnsupportedError

SMALL = [0.0, 1e-300, 1e-17, 3e-9, 1e-8, 2e-6, 1e-3, 0.03, 0.4999]
LARGE = [1.0, 1.5, 19.9, 20.1, 88.0, 1e3, 1e8, 3e9, 1e155, 1e300, math.inf]
BOTH = [*SMALL, 0.75, 0.9999999, *LARGE]

Function = Callable[[Any], Any]


def run(symbol: passlib.Symbol, data: Any) -> np.ndarray:
    (result,) = passlib.Model(symbol, {}).run({"a": data}).values()
    return np.asarray(result)


def erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(each) for each in x])


REAL: list[tuple[str, Function, list[float]]] = [
    ("arcsinh", np.arcsinh, BOTH),
    ("arctanh", np.arctanh, [*SMALL, 0.75, 0.9999999, 1.0]),
    ("arccosh", np.arccosh, [1.0, 1 + 1e-12, *LARGE]),
    ("arctan", np.arctan, BOTH),
    ("sinh", np.sinh, [*SMALL, 0.75, *LARGE[:6], 709.9, 710.2, math.inf]),
    ("cosh", np.cosh, [*SMALL, 0.75, *LARGE[:6], 709.9, 710.2, math.inf]),
    ("log1p", np.log1p, BOTH),
    ("expm1", np.expm1, [*SMALL, 0.75, 1.0, 5.0, 700.0, math.inf]),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), [*BOTH[:-3], 36.0, 37.0, 300.0, 700.0]),
    ("erf", erf, [*SMALL, 0.75, 1.03, 2.5, 3.3, 5.9, 6.0, 7.0, math.inf]),
]


@pytest.mark.parametrize(("name", "expected", "points"), REAL, ids=[case[0] for case in REAL])
def test_digits_of_float64(name: str, expected: Function, points: list[float]) -> None:
    data = np.array([*points, *(-p for p in points), math.nan])
    if name == "arccosh":
        data = np.array([*points, math.nan, 0.5, -2.0, -1e155])
    if name == "log1p":
        data = np.array([*points, -1e-17, -1e-3, -0.5, -1.0, -2.0])
    symbol = getattr(passlib.sym, name)(passlib.sym.var("a"))
    with np.errstate(all="ignore"):
        wanted = expected(data)
    result = run(symbol, data)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, wanted, rtol=4e-15, atol=0)


def test_activation_of_float64_is_the_operator() -> None:
    data = np.array([-700.0, -40.0, 0.0, 40.0])
    symbol = passlib.sym.Activation(passlib.sym.var("a"), act_type="sigmoid")
    np.testing.assert_allclose(run(symbol, data), 1 / (1 + np.exp(-data)), rtol=4e-15, atol=0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_gamma_of_whole_numbers(dtype: str) -> None:
    result = run(passlib.sym.gamma(passlib.sym.var("a")), np.arange(1, 6, dtype=dtype))
    np.testing.assert_array_equal(result, [1, 1, 2, 6, 24])
    assert result.dtype == dtype


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_norm_of_whole_numbers(dtype: str) -> None:
    """As MXNet: the L1 norm has their type, in which it wraps; its L2 norm is wrong."""
    a = passlib.sym.var("a")
    data = np.array([[3, 4], [1, 2]], dtype)
    np.testing.assert_array_equal(run(passlib.sym.norm(a, ord=1, axis=1), data), [7, 3])
    whole = run(passlib.sym.norm(a, ord=1), np.array([100, 100, 100], dtype))
    np.testing.assert_array_equal(whole, np.array([300]).astype(dtype))
    assert whole.dtype == dtype
    with pytest.raises(UnsupportedError, match="no L2 norm"):
        run(passlib.sym.norm(a), data)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (2, 1, 3)])
def test_indices_of_several_axes(shape: tuple[int, ...]) -> None:
    data = np.arange(6.0, dtype=np.float32).reshape(shape)
    result = run(passlib.sym.unravel_index(passlib.sym.var("a"), shape=(3, 4)), data)
    np.testing.assert_array_equal(result, np.stack([data // 4, data % 4]))


@pytest.mark.parametrize(
    ("shape", "axis"), [((0,), 0), ((2, 0), 1), ((0, 2), 0), ((0, 2), None), ((0,), None)]
)
def test_no_extremum_of_nothing(shape: tuple[int, ...], axis: int | None) -> None:
    symbol = passlib.sym.argmax(passlib.sym.var("a"), axis=axis, name="place")
    with pytest.raises(GraphError, match=r"'place' \(argmax\): .* of size 0 has no extremum"):
        run(symbol, np.zeros(shape, np.float32))


def test_no_places_in_no_rows() -> None:
    symbol = passlib.sym.argmax(passlib.sym.var("a"), axis=1)
    assert run(symbol, np.zeros((0, 2), np.float32)).shape == (0,)


INTEGERS: list[tuple[str, dict[str, float], list[int], list[int]]] = [
    ("exp", {}, [18, 19, 20], [65659969, 178482300, 485165195]),
    ("expm1", {}, [18, 20], [65659968, 485165194]),
    ("sigmoid", {}, [17, 20, 25, 50, -50], [0, 0, 0, 1, 0]),
    ("tanh", {}, [5, 17, 19, 20, -17, -20], [0, 0, 0, 1, 0, -1]),
    ("sinh", {}, [18, 20], [32829984, 242582597]),
    ("cosh", {}, [18, 20], [32829984, 242582597]),
    ("tan", {}, [2147483645], [-2]),
    ("sqrt", {}, [16777215, 2147483646], [4095, 46340]),
    ("cbrt", {}, [27, 1000, 999999999, 1000000000, -1000], [3, 10, 999, 1000, -10]),
    ("log2", {}, [8, 2**29, 2**29 - 1, 2**30], [3, 29, 28, 30]),
    ("log10", {}, [999, 1000, 999999999, 1000000000], [2, 3, 8, 9]),
    ("softsign", {}, [99999989, 2147483646, -2147483646], [0, 0, 0]),
    ("erf", {}, [5, 6, -6, 2147483647, -2147483648], [0, 1, -1, 1, -1]),
    ("square", {}, [4097], [16785408]),  # in float32, unlike the others
    ("smooth_l1", {"scalar": 0.5}, [0, 1, 9, -9], [0, 0, 0, 0]),
    ("smooth_l1", {"scalar": 2.7}, [0, 1, 2, 9, -9], [0, 0, 1, 8, 8]),
    ("smooth_l1", {"scalar": -1.5}, [2, 9, -4], [1, 8, 3]),
]
"""Functions of integers: MXNet 1.9.1's own results."""


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("name", "attributes", "values", "expected"), INTEGERS)
def test_functions_of_integers_keep_their_digits(
    name: str, attributes: dict[str, float], values: list[int], expected: list[int], dtype: str
) -> None:
    found = getattr(passlib.nd, name)(passlib.nd.array(np.array(values), dtype=dtype), **attributes)
    assert found.dtype == np.dtype(dtype)
    assert found.asnumpy().tolist() == expected


def test_the_type_of_a_function_of_truth_values() -> None:
    with passlib.np_shape(True):
        found = passlib.sym.erf(passlib.sym.var("a")).infer_type(a="bool")
    assert found[1] == [np.bool_]
