"""Outputs keep their names over several passes, as they would if the model were saved between."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_models
import passlib
from onnx_models import CHAIN, HEAD, X, saved
from passlib.model import Model

THREE = (
    HEAD
    + """(float[N, 4] x) => (float[N, 4] neg, float[N, 4] sq, float[N, 4] rel) {
   neg = Neg(x)
   sq = Mul(x, x)
   i = Identity(x)
   rel = Relu(i)
}"""
)

JOINED = (
    HEAD
    + """(float[N, 4] x) => (float[N, 4] neg, float[N, 4] twice, float[N, 4] same) {
   neg = Neg(x)
   twice = Add(x, x)
   same = Identity(twice)
}"""
)

EDITS: dict[str, tuple[str, dict[str, Any]]] = {
    "renamed": ("renameOperators", {"prefix": "new_"}),
    "rebuilt": ("rebuildOperators", {}),
    "interposed": ("interpose", {}),
    "without identities": ("dropIdentities", {}),
    "reversed": ("reverseNodes", {}),
    "outputs reversed": ("reverseOutputs", {}),
    "first replaced": ("appendOperator", {"op": "Tanh"}),
    "first dropped": ("dropOutput", {"number": 0}),
    "second dropped": ("dropOutput", {"number": 1}),
    "added": ("addOutput", {"op": "Exp"}),
    "other added": ("addOutput", {"op": "Abs"}),
}


@pytest.fixture(autouse=True)
def libraries(load_plugin: Callable[[str], passlib.library.Library]) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


def edited(model: Model, edit: str) -> Model:
    name, options = EDITS[edit]
    return model.optimize_for(name, **options)


def reloaded(model: Model, folder: Path) -> Model:
    saved(model, folder / "between.onnx")
    return passlib.load(folder / "between.onnx")


def stated(model: Any) -> list[tuple[str, int, list[int]]]:
    """Return name, element type and sizes of each output; 0 for all open sizes."""
    return [
        (
            value.name,
            value.type.tensor_type.elem_type,
            [dim.dim_value for dim in value.type.tensor_type.shape.dim],
        )
        for value in model.graph.output
    ]


PAIRS = [
    pair
    for pair in itertools.product(EDITS, repeat=2)
    # Two nodes of one name, or no output left: not what is tested here.
    if pair not in {("added", "added"), ("other added", "other added")}
]


@pytest.mark.parametrize("first", EDITS)
@pytest.mark.parametrize("text", [THREE, CHAIN], ids=["three", "chain"])
def test_names_do_not_depend_on_saving_between(text: str, first: str, tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    once = edited(model, first)
    between = reloaded(once, tmp_path)
    assert between.outputs == once.outputs
    for second in (pair[1] for pair in PAIRS if pair[0] == first):
        if len(once.outputs) < 2 and second in ("first dropped", "second dropped"):
            continue
        direct, expected = edited(once, second), edited(between, second)
        assert direct.outputs == expected.outputs, second
        written = saved(direct, tmp_path / "direct.onnx")
        again = saved(expected, tmp_path / "again.onnx")
        assert stated(written) == stated(again), second
        results = expected.run({"x": X})
        for key, array in direct.run({"x": X}).items():
            np.testing.assert_array_equal(array, results[key], err_msg=f"{second}: {key}")


def test_remaining_outputs_are_not_renamed(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(THREE, tmp_path / "a.onnx"))
    dropped = edited(model, "first dropped")
    assert dropped.outputs == ["sq", "rel"]
    both = edited(dropped, "added")
    assert both.outputs == ["sq", "rel", "added_Exp"]
    results = both.run({"x": X})
    for key, expected in (("sq", X * X), ("rel", np.maximum(X, 0)), ("added_Exp", np.exp(X * X))):
        np.testing.assert_allclose(results[key], expected, rtol=1e-6)
    graph = saved(both, tmp_path / "b.onnx").graph
    assert [value.name for value in graph.output] == both.outputs


@pytest.mark.parametrize(
    ("second", "names"),
    [("first dropped", ["twice", "same"]), ("added", ["neg", "twice", "same", "added_Exp"])],
)
def test_two_outputs_that_became_one_value(second: str, names: list[str], tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(JOINED, tmp_path / "a.onnx"))
    joined = edited(model, "without identities")
    assert joined.outputs == ["neg", "twice", "same"]
    after = edited(joined, second)
    assert after.outputs == names
    assert edited(reloaded(joined, tmp_path), second).outputs == names
    np.testing.assert_array_equal(after.run({"x": X})["same"], 2 * X)


def test_chosen_outputs_have_the_names_of_their_values(tmp_path: Path) -> None:
    text = HEAD + "(float[2, 4] x) => (float[2, 4] y) { c1 = Relu(x)\n y = Neg(c1) }"
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    inside = model.symbol.get_internals()
    assert inside.list_outputs() == ["x", "c1", "y"]
    assert [part.list_outputs() for part in inside] == [["x"], ["c1"], ["y"]]
    chosen = Model(inside["c1"], {})
    assert chosen.outputs == ["c1"]
    np.testing.assert_array_equal(chosen.run({"x": X})["c1"], np.maximum(X, 0))
    assert [v.name for v in saved(chosen, tmp_path / "b.onnx").graph.output] == ["c1"]
    after = edited(chosen, "first replaced")
    assert after.outputs == ["c1"]
    np.testing.assert_allclose(after.run({"x": X})["c1"], np.tanh(np.maximum(X, 0)), rtol=1e-6)
