"""Parameters that a pass removes, or allocates in vain: what is left of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib import sym
from passlib.model import Model
from passlib.symbol import Symbol

pytestmark = pytest.mark.usefixtures("passes")

W = np.arange(6, dtype=np.float32).reshape(2, 3)


def dense() -> Symbol:
    return sym.FullyConnected(
        sym.var("x"), sym.var("w") * 0.5, num_hidden=2, no_bias=True, name="fc"
    )


def product() -> Symbol:
    return sym.broadcast_mul(sym.var("x"), sym.var("w") * 0.5, name="product")


@pytest.mark.parametrize("make", [dense, product])
def test_a_parameter_that_was_computed_with_leaves(make: Any, tmp_path: Path) -> None:
    symbol = make()
    args = {"w": W, "other": W}
    folded = symbol.optimize_for("foldScalars", args)
    (name,) = [n for n in folded.list_arguments() if n != "x"]
    assert set(args) == {name, "other"}
    np.testing.assert_array_equal(args[name], W * 0.5)

    model = Model(symbol, {"w": W}).optimize_for("foldScalars")
    assert set(model.args) == {name}
    model.save(tmp_path / "m")
    assert set(passlib.nd.load(str(tmp_path / "m-0000.params"))) == {f"arg:{name}"}


def test_data_stay_where_a_pass_renames_them() -> None:
    args = {"x": np.ones((1, 3), np.float32), "w": W}
    dense().optimize_for("foldScalars", args)
    assert "x" in args


def test_arrays_of_nodes_that_are_removed_again_go() -> None:
    args = {"w": W}
    dense().optimize_for("allocateAndRemove", args, name="fresh")
    assert set(args) == {"w"}
