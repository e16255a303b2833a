from __future__ import annotations

import numpy as np
import pytest

import passlib
import places
from passlib import executor, model, nd, sym
from passlib.errors import GraphError, UnsupportedError

MODELS = places.DATA / "mxnet" / "models"
WITH_WEIGHTS = ("lstm_lm", "resnet_v1_small", "mobilenet0.25", "squeezenet1.1")
TOLERANCE = 1e-4

X = np.array([[1, -1], [2, 0.5]], np.float32)
WEIGHT = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
BIAS = np.array([0.5, -0.5, 1], np.float32)
Y = X @ WEIGHT.T + BIAS


def layer():
    return sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")


def arrays():
    return {"data": nd.array(X), "fc_weight": nd.array(WEIGHT), "fc_bias": nd.array(BIAS)}


def normalized():
    """BatchNorm of two channels: with its moving statistics, X becomes (X - 1) / 2."""
    symbol = sym.BatchNorm(sym.var("data"), name="bn", fix_gamma=False, eps=0)
    args = {"data": nd.array(X), "bn_gamma": nd.ones(2), "bn_beta": nd.zeros(2)}
    return symbol, args, {"bn_moving_mean": nd.ones(2), "bn_moving_var": nd.full(2, 4)}


@pytest.fixture
def bound():
    return executor.bind(layer(), passlib.cpu(), arrays())


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_agrees_with_mxnet(name):
    symbol, args, aux = model.load_checkpoint(MODELS / name, 0)
    with np.load(MODELS / f"{name}-io.npz") as archive:
        data, expected = archive["in/data"], archive["out/0"]
    made = executor.bind(symbol, passlib.cpu(), {**args, "data": data}, aux_states=aux)
    (actual,) = made.forward()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE * scale)


class TestBind:
    @pytest.mark.parametrize(
        "args",
        [
            arrays(),
            list(arrays().values()),
            {**arrays(), "unused": nd.ones(1)},
            [X, WEIGHT, BIAS],
            {**arrays(), "fc_weight": nd.array(WEIGHT).tostype("row_sparse")},
        ],
    )
    def test_ways_to_give_arguments(self, args):
        made = executor.bind(layer(), None, args)
        (out,) = made.forward()
        assert isinstance(out, nd.NDArray)
        np.testing.assert_allclose(out, Y)
        assert list(made.arg_dict) == ["data", "fc_weight", "fc_bias"]
        assert len(made.arg_arrays) == 3

    @pytest.mark.parametrize("as_list", [False, True])
    def test_auxiliary_states(self, as_list):
        symbol, args, aux = normalized()
        made = executor.bind(
            symbol, passlib.cpu(), args, aux_states=list(aux.values()) if as_list else aux
        )
        np.testing.assert_allclose(made.forward()[0], (X - 1) / 2)
        assert list(made.aux_dict) == list(aux)
        assert [a.shape for a in made.aux_arrays] == [(2,), (2,)]

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"args": {"data": X}}, ValueError, "args has no array for 'fc_weight', 'fc_bias'"),
            ({"args": [X]}, ValueError, "args has 1 arrays, but the symbol wants 3: data, fc_we"),
            ({"args": X}, TypeError, "args is of type ndarray"),
            ({"args": [X, WEIGHT, [1, 2, 3]]}, TypeError, "'fc_bias' is of type list"),
            ({"grad_req": "always"}, ValueError, "'always' is none of null, write, add"),
            ({"grad_req": {"data": "no"}}, ValueError, "'no' is none of"),
            ({"ctx": passlib.gpu()}, UnsupportedError, "gpu"),
            ({"group2ctx": {"a": passlib.gpu(1)}}, UnsupportedError, "gpu"),
        ],
    )
    def test_refused(self, given, error, message):
        with pytest.raises(error, match=message):
            executor.bind(layer(), **{"ctx": passlib.cpu(), "args": arrays(), **given})

    def test_missing_state(self):
        symbol, args, aux = normalized()
        del aux["bn_moving_var"]
        with pytest.raises(ValueError, match="aux_states has no array for 'bn_moving_var'"):
            executor.bind(symbol, passlib.cpu(), args, aux_states=aux)

    def test_gradients_left_out(self):
        made = executor.bind(layer(), passlib.cpu(), arrays(), args_grad={}, grad_req="null")
        assert made.grad_arrays == [None] * 3
        assert made.grad_dict == dict.fromkeys(("data", "fc_weight", "fc_bias"))
        with pytest.raises(UnsupportedError, match="backward: gradients are not computed"):
            made.backward()


class TestForward:
    def test_inputs_are_copied_into_what_was_bound(self):
        args = arrays()
        made = executor.bind(layer(), passlib.cpu(), args)
        np.testing.assert_allclose(made.forward(data=2 * X)[0], 2 * (Y - BIAS) + BIAS)
        np.testing.assert_array_equal(args["data"], 2 * X)
        assert made.forward(data=X.astype(np.float64))[0].dtype == np.float32

    def test_arrays_are_read_anew(self, bound):
        np.testing.assert_allclose(bound.forward()[0], Y)
        bound.arg_dict["fc_bias"][:] = 0
        np.testing.assert_allclose(bound.forward()[0], Y - BIAS)
        bound.arg_arrays[0][:] = 0
        np.testing.assert_allclose(bound.forward()[0], np.zeros((2, 3)))

    def test_outputs(self, bound):
        out = bound.forward()
        assert bound.outputs is out
        assert bound.output_dict == {"fc_output": out[0]}
        bound.forward(data=0 * X)
        np.testing.assert_allclose(out[0], Y)

    def test_outputs_of_one_name(self):
        data = sym.var("data")
        pair = sym.Group([sym.relu(data, name="same"), sym.negative(data, name="same")])
        made = executor.bind(pair, passlib.cpu(), [X])
        np.testing.assert_array_equal(made.forward()[1], -X)
        with pytest.raises(GraphError, match="same_output, same_output"):
            _ = made.output_dict

    @pytest.mark.parametrize("target", ["row_sparse", "default"])
    @pytest.mark.parametrize("source", ["row_sparse", "default"])
    def test_storage_types(self, target, source):
        args = {**arrays(), "fc_weight": nd.array(0 * WEIGHT).tostype(target)}
        made = executor.bind(layer(), passlib.cpu(), args)
        np.testing.assert_allclose(made.forward(fc_weight=nd.array(WEIGHT).tostype(source))[0], Y)
        assert made.arg_dict["fc_weight"].stype == target

    def test_training_takes_the_statistics_of_the_batch(self):
        symbol, args, aux = normalized()
        made = executor.bind(symbol, passlib.cpu(), args, aux_states=aux)
        expected = (X - X.mean(0)) / X.std(0)
        np.testing.assert_allclose(made.forward(is_train=True)[0], expected, rtol=1e-5)
        np.testing.assert_allclose(made.forward()[0], (X - 1) / 2)
        np.testing.assert_array_equal(made.aux_dict["bn_moving_mean"], 1)

    def test_training_that_has_no_lowering(self):
        symbol = sym.LeakyReLU(sym.var("data"), act_type="rrelu", name="random")[0]
        made = executor.bind(symbol, passlib.cpu(), [X])
        assert made.forward()[0].shape == X.shape
        with pytest.raises(UnsupportedError, match=r"'random' \(LeakyReLU\)"):
            made.forward(is_train=True)

    @pytest.mark.parametrize(
        ("inputs", "error", "message"),
        [
            ({"dota": X}, TypeError, "no argument 'dota'; the arguments are data, fc_weight"),
            ({"data": [1, 2]}, TypeError, "'data' is of type list"),
            ({"data": X[:1]}, ValueError, r"shape \(1, 2\), but an array of shape \(2, 2\)"),
        ],
    )
    def test_refused_before_anything_is_written(self, bound, inputs, error, message):
        with pytest.raises(error, match=message):
            bound.forward(**{"fc_bias": 0 * BIAS, **inputs})
        np.testing.assert_allclose(bound.forward()[0], Y)


class TestCopyParams:
    def test_copied(self):
        symbol, args, aux = normalized()
        made = executor.bind(symbol, passlib.cpu(), args, aux_states=aux)
        made.copy_params_from({"bn_beta": np.full(2, 3.0)}, {"bn_moving_mean": nd.zeros(2)})
        np.testing.assert_allclose(made.forward()[0], X / 2 + 3)
        np.testing.assert_array_equal(args["bn_beta"], 3)

    @pytest.mark.parametrize(
        ("args", "aux", "message"),
        [
            ({"b": BIAS}, None, "no argument 'b'; allow_extra_params=True"),
            ({}, {"m": BIAS}, "no auxiliary state 'm'"),
            ({"fc_weight": WEIGHT.T}, None, r"'fc_weight' has shape \(2, 3\)"),
        ],
    )
    def test_refused_before_anything_is_written(self, bound, args, aux, message):
        with pytest.raises(ValueError, match=message):
            bound.copy_params_from({"fc_bias": 0 * BIAS, **args}, aux)
        np.testing.assert_allclose(bound.forward()[0], Y)

    def test_extra_allowed(self, bound):
        bound.copy_params_from({"fc_bias": 0 * BIAS, "b": BIAS}, {"m": BIAS}, True)
        np.testing.assert_allclose(bound.forward()[0], Y - BIAS)


class TestSimpleBind:
    def test_shapes_follow(self):
        made = executor.simple_bind(layer(), passlib.cpu(), data=(4, 2))
        shapes = {name: array.shape for name, array in made.arg_dict.items()}
        assert shapes == {"data": (4, 2), "fc_weight": (3, 2), "fc_bias": (3,)}
        assert {array.dtype.name for array in made.arg_arrays} == {"float32"}
        made.copy_params_from({"fc_bias": BIAS})
        np.testing.assert_allclose(made.forward()[0], np.broadcast_to(BIAS, (4, 3)))

    def test_states(self):
        made = executor.simple_bind(normalized()[0], None, "null", data=(4, 2))
        assert {name: a.shape for name, a in made.aux_dict.items()} == {
            "bn_moving_mean": (2,),
            "bn_moving_var": (2,),
        }

    def test_types(self):
        data = sym.var("data")
        made = executor.simple_bind(data * 2, passlib.cpu(), "write", {"data": "int32"}, data=(2,))
        (out,) = made.forward(data=np.array([1, 2]))
        assert out.dtype == np.int32
        np.testing.assert_array_equal(out, [2, 4])

    @pytest.mark.parametrize(
        ("shapes", "message"),
        [
            ({}, "shape of 'data' does not follow from those of nothing"),
            ({"data": (4, 2), "fc_weight": (3, 5)}, "fc"),
        ],
    )
    def test_refused(self, shapes, message):
        with pytest.raises(GraphError, match=message):
            executor.simple_bind(layer(), passlib.cpu(), **shapes)


class TestReshape:
    def test_weights_are_shared(self, bound):
        other = bound.reshape(data=(5, 2))
        assert other.arg_dict["data"].shape == (5, 2)
        other.arg_dict["fc_bias"][:] = 7
        np.testing.assert_allclose(other.forward()[0], np.full((5, 3), 7))
        np.testing.assert_allclose(bound.forward()[0], Y - BIAS + 7)

    def test_weights_that_would_change(self, bound):
        with pytest.raises(ValueError, match=r"'fc_weight' would change.*partial_shaping=True"):
            bound.reshape(data=(5, 4))
        other = bound.reshape(data=(5, 4), partial_shaping=True)
        assert other.arg_dict["fc_weight"].shape == (3, 4)
        assert other.arg_dict["fc_bias"] is bound.arg_dict["fc_bias"]

    def test_unknown_argument(self, bound):
        with pytest.raises(TypeError, match="no argument dota"):
            bound.reshape(dota=(1,))


class TestEvaluate:
    def test_values(self):
        a, b = sym.var("a"), sym.var("b")
        (out,) = executor.evaluate(a + b, passlib.cpu(), a=X, b=nd.array(X))
        np.testing.assert_array_equal(out, 2 * X)

    def test_states_are_found_by_name(self):
        symbol, args, aux = normalized()
        np.testing.assert_allclose(executor.evaluate(symbol, **args, **aux)[0], (X - 1) / 2)

    def test_variable_named_like_a_parameter(self):
        out = executor.evaluate(sym.var("ctx") * 3, None, ctx=X)
        np.testing.assert_array_equal(out[0], 3 * X)

    def test_missing(self):
        with pytest.raises(ValueError, match="args has no array for 'a'"):
            executor.evaluate(sym.var("a") * 2)


def test_simple_bind_heeds_what_variables_declare():
    data = sym.var("data", dtype="float16")
    bound = sym.exp(data).simple_bind(passlib.cpu(), data=(2,))
    assert bound.arg_dict["data"].dtype == np.float16
    bound = sym.exp(data).simple_bind(passlib.cpu(), type_dict={"data": "float64"}, data=(2,))
    assert bound.arg_dict["data"].dtype == np.float64


def test_simple_bind_ignores_keywords_that_name_no_variable():
    given = {"foo": "bar", "more": (1, 2), "stype_dict": {}, "shared_exec": None, "fc_bias": None}
    bound = layer().simple_bind(passlib.cpu(), data=(2, 2), **given)
    assert list(bound.arg_dict) == ["data", "fc_weight", "fc_bias"]


def test_outputs_before_forward_have_their_shapes():
    bound = layer().simple_bind(passlib.cpu(), data=(4, 2))
    assert [(array.shape, array.dtype) for array in bound.outputs] == [((4, 3), np.float32)]
    assert list(bound.output_dict) == ["fc_output"]


def test_smaller_arrays_are_the_beginning_of_the_old_ones(bound):
    smaller = bound.reshape(data=(1, 2))
    np.testing.assert_allclose(smaller.forward()[0], Y[:1])
    smaller.arg_dict["data"][:] = 7
    np.testing.assert_array_equal(bound.arg_dict["data"], [[7, 7], X[1]])
