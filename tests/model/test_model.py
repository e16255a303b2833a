"""Models as they are made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib
from dense_layer import X, Y, layer, weights
from passlib import model, nd, sym
from passlib.errors import UnsupportedError


def test_weights_cannot_be_written_to(small):
    with pytest.raises(ValueError, match="read-only"):
        small.args["fc_bias"][:] = 0
    with pytest.raises(TypeError, match="item assignment"):
        small.args["fc_bias"] = 0


def test_dictionaries_are_the_models_own():
    args = weights()
    made = model.Model(layer(), args)
    del args["fc_bias"]
    np.testing.assert_allclose(made(X), Y)


def test_repr(small):
    assert repr(small) == (
        "<Model mxnet: inputs data; outputs fc_output; 1 operator, 2 weights of 9 elements>"
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((layer(), {"w": [1, 2]}), TypeError, "weight 'w' is not an array, but of type list"),
        ((layer(), {}, {}, "caffe"), UnsupportedError, "no dialect 'caffe'.*mxnet"),
    ],
)
def test_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        model.Model(*arguments)


def test_saving_without_weights_leaves_none_to_be_loaded(tmp_path: Path) -> None:
    x = sym.var("x")
    model.Model(x + sym.var("w"), {"w": nd.ones(2)}).save(tmp_path / "m")
    assert (tmp_path / "m-0000.params").exists()
    model.Model(sym.relu(x)).save(tmp_path / "m")
    assert not (tmp_path / "m-0000.params").exists()
    assert passlib.load(tmp_path / "m").args == {}
    model.Model(x + sym.var("w"), {"w": nd.ones(2)}).save(tmp_path / "m", epoch=3)
    with pytest.warns(UserWarning, match="those of m-0003.params; delete"):
        model.Model(sym.relu(x)).save(tmp_path / "m")


def test_repr_of_weights():
    args = {f"w{i}": nd.ones((i, 2)) for i in range(25)}
    made = model.Model(sym.Group([sym.var(name) for name in args]), args)
    lines = repr(made.args).splitlines()
    assert lines[1] == "    'w0': float32 (0, 2),"
    assert lines[20:] == ["    'w19': float32 (19, 2),", "    ... (25 in all)", "}"]
    assert repr(made.aux) == "{}"
    assert {**made.args} == made.args.copy() == (made.args | {}) == ({} | made.args)
