"""Arrays of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passlib
from passlib import nd
from passlib.errors import UnsupportedError


@pytest.mark.parametrize(
    ("draw", "shape", "dtype", "low", "high"),
    [
        (nd.random.uniform, (1,), np.float32, 0, 1),
        (lambda: nd.random.uniform(-10, 10, 500), (500,), np.float32, -10, 10),
        (lambda: nd.random.uniform(2, 3, (5, 6), "float64"), (5, 6), np.float64, 2, 3),
        (lambda: nd.random.uniform(dtype=np.dtype("float64")), (1,), np.float64, 0, 1),
        (lambda: nd.random.uniform(shape=(2, 0)), (2, 0), np.float32, 0, 1),
        (lambda: nd.random.uniform(shape=()), (), np.float32, 0, 1),
        (lambda: nd.random.randint(-2, 3, shape=(40, 5)), (40, 5), np.int32, -2, 2),
        (lambda: nd.random.randint(0, 2, dtype="int64"), (1,), np.int64, 0, 1),
        (lambda: nd.random.randn(3, 4, loc=100), (3, 4), np.float32, 80, 120),
        (
            lambda: nd.random.uniform(nd.array([4, 4]), nd.array([5, 5]), shape=(3,)),
            (2, 3),
            np.float32,
            4,
            5,
        ),
        (lambda: nd.random.normal(nd.array([50, 50]), 1), (2,), np.float32, 30, 70),
    ],
)
def test_shape_type_and_range(
    draw: Callable[[], Any], shape: tuple[int, ...], dtype: Any, low: float, high: float
) -> None:
    drawn = draw()
    assert isinstance(drawn, nd.NDArray)
    assert (drawn.shape, drawn.dtype) == (shape, dtype)
    assert ((drawn >= low) & (drawn <= high)).all()
    assert len(np.unique(drawn)) >= min(drawn.size, 2 if drawn.size > 100 else 1)


def test_bounds_go_by_element() -> None:
    drawn = nd.random.uniform(nd.array([0, 10]), nd.array([1, 11]), shape=(100,))
    np.testing.assert_array_equal(np.floor(drawn), [[0] * 100, [10] * 100])


def test_moments_of_the_normal_distribution() -> None:
    passlib.random.seed(1)
    drawn = nd.random.normal(3, 2, shape=20_000)
    assert drawn.mean() == pytest.approx(3, abs=0.1)
    assert drawn.std() == pytest.approx(2, abs=0.1)


def test_seed_brings_the_same_numbers() -> None:
    def draw() -> list[Any]:
        return [nd.random.uniform(shape=5).tolist(), nd.random.randint(0, 9, shape=5).tolist()]

    passlib.random.seed(7)
    first, second = draw(), draw()
    assert first != second
    passlib.random.seed(7)
    assert draw() == first
    passlib.random.seed(8)
    assert draw() != first


def test_out_is_written_and_given_back() -> None:
    target = nd.zeros((2, 3))
    assert nd.random.uniform(5, 6, shape=(2, 3), out=target) is target
    assert (target >= 5).all()
    with pytest.raises(ValueError, match=r"out has the shape \(2, 3\), but the result has \(4,\)"):
        nd.random.uniform(shape=(4,), out=target)


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="gpu"):
        nd.random.uniform(ctx=passlib.gpu())
    with pytest.raises(AttributeError, match=r"nd\.random has no 'uniforn'"):
        _ = nd.random.uniforn


def test_names_are_listed() -> None:
    assert {"normal", "randint", "randn", "uniform"} <= set(dir(nd.random))
