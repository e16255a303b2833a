"""Passes on models."""

from __future__ import annotations

import numpy as np
import pytest

import passlib
from dense_layer import X, Y, layer, weights
from passlib import model
from passlib.errors import PassError
from recorded_models import MODELS, WITH_WEIGHTS, assert_close, recorded

pytestmark = pytest.mark.usefixtures("passes")


def test_original_stays(small):
    args = {name: np.array(array) for name, array in small.args.items()}
    twice = small.optimize_for("scaleInPlace", name="fc_weight", factor=2)
    np.testing.assert_allclose(twice(X), 2 * Y - weights()["fc_bias"])
    np.testing.assert_allclose(small(X), Y)
    for name, array in args.items():
        np.testing.assert_array_equal(small.args[name], array)
    assert np.shares_memory(twice.args["fc_bias"], small.args["fc_bias"])
    assert not np.shares_memory(twice.args["fc_weight"], small.args["fc_weight"])


def test_callers_array_stays():
    args = weights()
    before = np.array(args["fc_weight"])
    model.Model(layer(), args).optimize_for("scaleInPlace", name="fc_weight", factor=2)
    np.testing.assert_array_equal(args["fc_weight"], before)
    assert args["fc_weight"].flags.writeable


def test_failure_changes_nothing(small):
    with pytest.raises(PassError, match="failed on purpose"):
        small.optimize_for("scaleAndFail", name="fc_weight", factor=2)
    np.testing.assert_allclose(small(X), Y)


def test_added_and_removed_weights(small, tmp_path):
    changed = small.optimize_for("appendScale", name="by", value=3)
    changed = changed.optimize_for("dropBias", name="fc")
    assert set(changed.args) == {"fc_weight", "by"}
    assert changed.inputs == ["data"]
    expected = 3 * (X @ weights()["fc_weight"].T)
    np.testing.assert_allclose(changed(X), expected)
    changed.save(tmp_path / "x")
    np.testing.assert_allclose(model.load(tmp_path / "x")(X), expected)


def test_nobody_can_write_to_weights_that_a_pass_made(small):
    changed = small.optimize_for("appendScale", name="by", value=3)
    changed = changed.optimize_for("scaleInPlace", name="fc_weight", factor=2)
    for name in ("by", "fc_weight"):
        assert isinstance(changed.args[name], passlib.nd.NDArray)
        with pytest.raises(ValueError, match="read-only"):
            changed.args[name][:] = 0


def test_added_states(small):
    changed = small.optimize_for("appendBatchNorm", channels=3)
    assert set(changed.aux) == {"added_bn_moving_mean", "added_bn_moving_var"}
    np.testing.assert_allclose(changed(X), (Y - 1) / 2, rtol=1e-5)


def test_shapes_reach_the_pass(small):
    seen = small.optimize_for("tellWhatISee", shape_dict={"data": (7, 2)}, other=1)
    attrs = seen.symbol.list_attr()
    assert attrs["__options__"] == "other=1;"
    assert attrs["__values__"] == "fc_weight;fc_bias;"
    assert attrs["__shapes__"] == "data[[7,2]];fc_weight[[3,2]];fc_bias[[3]];"


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_whole_model_runs_as_before(name, tmp_path):
    loaded = model.load(MODELS / name)
    inputs, outputs = recorded(name)
    changed = loaded.optimize_for("appendScale", name="by", value=2)
    changed.save(tmp_path / "x")
    again = model.load(tmp_path / "x")
    for candidate in (changed, again):
        assert_close(candidate(*inputs.values()), 2 * outputs[0])
