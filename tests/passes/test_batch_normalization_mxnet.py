"""The standard pass foldBatchNormalization on MXNet's graphs: what it folds, and what it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passlib
import places
from fold_cases import CASES, SQUARE, assert_close, conv, data, make_model, norm, outputs
from node_counts import norms
from passlib.model import Model

MODELS = places.DATA / "mxnet" / "models"
FOLD = "foldBatchNormalization"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")


@pytest.mark.parametrize(
    ("name", "count"),
    [("mobilenet0.25", 27), ("resnet_v1_small", 9), ("squeezenet1.1", 0), ("lstm_lm", 0)],
)
def test_mxnet_models(name: str, count: int) -> None:
    model = passlib.load(MODELS / name)
    folded = model.optimize_for(FOLD)
    assert (norms(model), norms(folded)) == (count, 0)
    assert len(folded.symbol.nodes()) == len(model.symbol.nodes()) - 4 * count
    assert len(folded.aux) == 0
    with np.load(MODELS / f"{name}-io.npz") as recorded:
        assert_close(folded(recorded["in/data"]), recorded["out/0"], 1e-5)


SHARED = {"shared weight": 2, "shared bias": 2, "weight is an output": 1}
"""Cases that the tutorial's example leaves; this pass gives the layers separate parameters."""


@pytest.mark.parametrize("case", CASES)
def test_mxnet_cases(case: str) -> None:
    build, shape, folded, left = CASES[case]
    total, folded = folded + left, SHARED.get(case, folded)
    model = make_model(build(), shape)
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    result = model.optimize_for(FOLD, shape_dict={"data": shape})
    assert norms(model) == total
    assert norms(result) == total - folded
    for before, after in zip(outputs(model, x), outputs(result, x), strict=True):
        assert_close(after, before, 1e-5)
    assert result.symbol.list_outputs() == model.symbol.list_outputs()
    assert {*result.args, *result.aux} == {*result.symbol.list_inputs()} - {"data"}
    if not folded:
        assert result.symbol.tojson() == model.symbol.tojson()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_what_is_stored_is_the_exact_result_rounded(dtype: str) -> None:
    model = make_model(norm(conv(data()), eps=1e-3), SQUARE, dtype)
    folded = model.optimize_for(FOLD)
    old = {k: np.asarray(v, np.float64) for k, v in {**model.args, **model.aux}.items()}
    scale = old["norm_gamma"] / np.sqrt(old["norm_moving_var"] + 1e-3)
    expected = {
        "conv_weight": old["conv_weight"] * scale[:, None, None, None],
        "conv_bias": old["conv_bias"] * scale + old["norm_beta"] - old["norm_moving_mean"] * scale,
    }
    assert folded.args.keys() == expected.keys()
    for name, array in folded.args.items():
        assert array.dtype == dtype
        np.testing.assert_allclose(
            np.asarray(array, np.float64),
            expected[name],
            rtol=float(np.finfo(dtype).eps),
            atol=1e-7,
        )


@pytest.mark.parametrize("value", [6e-8, -6.1e-5, 1e-7, 1.0, 0.33325, 2047.5, 65504.0, -3e-6])
def test_halves_are_rounded_as_numpy_rounds(value: float) -> None:
    """Normalize by ones, which must leave each weight unchanged."""
    model = make_model(norm(conv(data(), no_bias=True), eps=0.0), SQUARE, "float16")
    args = {name: np.ones_like(array) for name, array in model.args.items()}
    args["conv_weight"] = np.full(args["conv_weight"].shape, value, np.float16)
    args["norm_beta"] = np.linspace(-2, 2, 6).astype(np.float16)
    aux = {"norm_moving_mean": np.zeros(6, np.float16), "norm_moving_var": np.ones(6, np.float16)}
    folded = Model(model.symbol, args, aux).optimize_for(FOLD)
    np.testing.assert_array_equal(folded.args["conv_weight"], args["conv_weight"])
    np.testing.assert_array_equal(folded.args["conv_bias"], args["norm_beta"])


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        ("norm_moving_var", np.full(6, -1, np.float32), "the new weights would not be finite"),
        ("norm_gamma", np.full(6, np.nan, np.float32), "the new weights would not be finite"),
        ("norm_beta", np.ones(7, np.float32), "'norm_beta' is not one number a channel"),
        ("conv_weight", None, "no data were given for 'conv_weight'"),
        ("norm_moving_mean", None, "no data were given for 'norm_moving_mean'"),
    ],
)
def test_reasons(
    parameter: str, value: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model(norm(conv(data())), SQUARE)
    args, aux = dict(model.args), dict(model.aux)
    chosen = args if parameter in args else aux
    if value is None:
        del chosen[parameter]
    else:
        chosen[parameter] = value
    result = model.symbol.optimize_for(FOLD, args, aux, skip_infer=True, verbose=True)
    assert capsys.readouterr().out == f"left norm: {reason}\n{FOLD}: 0 folded, 1 left\n"
    assert result.tojson() == model.symbol.tojson()


def test_unknown_options_are_refused() -> None:
    model = make_model(norm(conv(data())), SQUARE)
    unknown = "no option 'verbosity'; did you mean 'verbose'"
    with pytest.raises(passlib.PasslibError, match=unknown):
        model.optimize_for(FOLD, verbosity=1)
    wrong = "option 'verbose' takes true or false, not 'much'"
    with pytest.raises(passlib.PasslibError, match=wrong):
        model.optimize_for(FOLD, verbose="much")
