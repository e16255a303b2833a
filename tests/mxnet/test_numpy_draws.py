"""Random numbers of NumPy mode: shapes, types, and the distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mxnet_graph import graph_of
from passlib import runtime
from passlib.errors import GraphError
from passlib.lowering import TypeSpec
from passlib.mxnet.lower import lower

COUNT = 40_000
EULER = 0.5772156649


def draw(operator: str, attributes: dict[str, str], *inputs: np.ndarray) -> np.ndarray:
    names = [f"x{index}" for index in range(len(inputs))]
    graph = graph_of(operator, names, attributes)
    return runtime.run(graph, dict(zip(names, inputs, strict=True)), {})[0]


DISTRIBUTIONS = [
    ("uniform", {"low": "-1", "high": "3"}, 1.0, 4 / math.sqrt(12)),
    ("uniform_n", {"low": "-1", "high": "3"}, 1.0, 4 / math.sqrt(12)),
    ("normal", {"loc": "2", "scale": "3"}, 2.0, 3.0),
    ("normal_n", {"loc": "2", "scale": "3"}, 2.0, 3.0),
    ("gumbel", {"loc": "1", "scale": "3"}, 1 + 3 * EULER, 3 * math.pi / math.sqrt(6)),
    ("logistic", {"loc": "1", "scale": "3"}, 1.0, math.sqrt(3) * math.pi),
    ("exponential", {"scale": "3"}, 3.0, 3.0),
    ("rayleigh", {"scale": "3"}, 3 * math.sqrt(math.pi / 2), 3 * math.sqrt(2 - math.pi / 2)),
    ("pareto", {"a": "6"}, 0.2, math.sqrt(6 / (25 * 4))),
    ("powerd", {"a": "3"}, 0.75, math.sqrt(3 / (16 * 5))),
    ("weibull", {"a": "1"}, 1.0, 1.0),
    ("gamma", {"shape": "3", "scale": "2"}, 6.0, 2 * math.sqrt(3)),
    ("gamma", {"shape": "0.5", "scale": "2"}, 1.0, 2 * math.sqrt(0.5)),
    ("bernoulli", {"prob": "0.3", "logit": "None", "is_logit": "False"}, 0.3, math.sqrt(0.21)),
    ("bernoulli", {"logit": "0", "prob": "None", "is_logit": "True"}, 0.5, 0.5),
    ("choice", {"a": "5"}, 2.0, math.sqrt(2)),
]


@pytest.mark.parametrize(("name", "attributes", "mean", "deviation"), DISTRIBUTIONS)
def test_distribution(name: str, attributes: dict[str, str], mean: float, deviation: float) -> None:
    values = draw(f"_npi_{name}", {"size": f"({COUNT // 4}, 4)", **attributes})
    assert values.dtype == ("int64" if name == "choice" else "float32")
    assert values.shape == (COUNT // 4, 4)
    # Six standard errors: a correct generator fails this once in 10**9 runs.
    assert abs(values.mean(dtype=float) - mean) < 6 * deviation / math.sqrt(COUNT) + 1e-3
    assert values.std(dtype=float) == pytest.approx(deviation, rel=0.12)


SHAPES = [
    ("uniform", {"low": "0", "high": "1"}, (), ()),
    ("uniform", {"low": "0", "high": "1", "size": "()"}, (), ()),
    ("uniform", {"low": "0", "high": "1", "size": "(0, 2)"}, (), (0, 2)),
    ("uniform", {"low": "None", "high": "None"}, ((2, 1), (3,)), (2, 3)),
    ("uniform", {"low": "None", "high": "None", "size": "(4, 2)"}, ((2,), (1,)), (4, 2)),
    ("uniform_n", {"low": "None", "high": "None", "size": "(4,)"}, ((2,), (2,)), (4, 2)),
    ("normal_n", {"loc": "None", "scale": "1", "size": "(5, 4)"}, ((2, 3),), (5, 4, 2, 3)),
    ("gamma", {"shape": "None", "scale": "2", "size": "(0, 2)"}, ((2,),), (0, 2)),
    ("gamma", {"shape": "None", "scale": "None"}, ((2,), (2,)), (2,)),
    ("pareto", {"a": "None"}, ((3,),), (3,)),
    ("bernoulli", {"prob": "None", "logit": "None", "is_logit": "False"}, ((3, 1),), (3, 1)),
    ("choice", {"a": "5", "size": "()"}, (), ()),
    ("choice", {"a": "None", "size": "(2, 2)"}, ((4,),), (2, 2)),
    ("choice", {"a": "4", "size": "(0,)"}, (), (0,)),
    ("random_randint", {"low": "0", "high": "5", "shape": "()"}, (), ()),
    ("random_randint", {"low": "0", "high": "5", "shape": "(0, 2)"}, (), (0, 2)),
    ("multinomial", {"n": "3", "pvals": "(0.5, 0.5)"}, (), (2,)),
    ("multinomial", {"n": "0", "size": "(3, 2)"}, ((2,),), (3, 2, 2)),
]


@pytest.mark.parametrize(("name", "attributes", "inputs", "shape"), SHAPES)
def test_shape_of_draws(
    name: str, attributes: dict[str, str], inputs: tuple[tuple[int, ...], ...], shape: object
) -> None:
    arrays = [np.full(size, 0.5, np.float32) for size in inputs]
    assert draw(f"_npi_{name}", attributes, *arrays).shape == shape


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_type_of_draws(dtype: str) -> None:
    for name, names in (("uniform", "low high"), ("normal", "loc scale"), ("gamma", "shape scale")):
        attributes = {**dict.fromkeys(names.split(), "1"), "dtype": dtype, "size": "(3,)"}
        assert draw(f"_npi_{name}", attributes).dtype == dtype
    attributes = {
        "prob": "0.5",
        "logit": "None",
        "is_logit": "False",
        "dtype": "bool",
        "size": "(3,)",
    }
    assert draw("_npi_bernoulli", attributes).dtype == bool


def test_parameters_belong_to_their_columns() -> None:
    low = np.array([0, 100], np.float32)
    values = draw("_npi_uniform", {"low": "None", "high": "200", "size": "(500, 2)"}, low)
    assert values.min(axis=0) == pytest.approx([0, 100], abs=5)


def test_nothing_is_drawn_twice_without_replacement() -> None:
    attributes = {"a": "None", "size": "(50,)", "replace": "False", "weighted": "True"}
    chances = np.linspace(1, 2, 50, dtype=np.float32)
    values = draw("_npi_choice", attributes, np.zeros(50, np.float32), chances / chances.sum())
    assert sorted(values) == list(range(50))
    assert sorted(draw("_npi_choice", {"a": "9", "size": "(9,)", "replace": "False"})) == list(
        range(9)
    )


def test_places_are_drawn_by_their_chances() -> None:
    attributes = {"a": "3", "size": "(20000,)", "weighted": "True"}
    values = draw("_npi_choice", attributes, np.array([0.1, 0.9, 0], np.float32))
    assert np.bincount(values, minlength=3) / 20000 == pytest.approx([0.1, 0.9, 0], abs=0.02)
    counts = draw("_npi_multinomial", {"n": "10", "pvals": "(0.2, 0.8)", "size": "(2000,)"})
    assert (counts.sum(axis=1) == 10).all()
    assert counts.mean(axis=0) == pytest.approx([2, 8], abs=0.2)


def test_parameters_that_do_not_fit_are_refused() -> None:
    graph = graph_of("_npi_normal", ["a"], {"loc": "None", "scale": "None"})
    specs = {"a": TypeSpec(np.dtype(np.float32), (2,))}
    with pytest.raises(GraphError, match=r"takes 2 inputs \(input1, input2\)"):
        lower(graph, specs, {})
    graph = graph_of("_npi_normal", ["a"], {"loc": "None", "scale": "1", "size": "(4,)"})
    with pytest.raises(GraphError, match="do not broadcast to size"):
        lower(graph, specs, {})
