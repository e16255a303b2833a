from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib
import places
from passlib import gluon, model, nd, nn, sym
from passlib.errors import (
    FormatError,
    GraphError,
    PassError,
    PasslibError,
    UnsupportedError,
)
from weight_passes import load_weight_passes

MODELS = places.DATA / "mxnet" / "models"
WITH_WEIGHTS = ("lstm_lm", "resnet_v1_small", "mobilenet0.25", "squeezenet1.1")
TOLERANCE = 1e-4

X = np.array([[1, -1], [2, 0.5]], np.float32)
WEIGHT = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
BIAS = np.array([0.5, -0.5, 1], np.float32)
Y = X @ WEIGHT.T + BIAS


@pytest.fixture(autouse=True)
def passes():
    return load_weight_passes()


def layer():
    return sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")


@pytest.fixture
def block():
    made = nn.SymbolBlock(layer(), sym.var("data"))
    made.initialize("zeros")
    made(X)
    made.params["fc_weight"].set_data(WEIGHT)
    made.params["fc_bias"].set_data(BIAS)
    return made


def recorded(name):
    with np.load(MODELS / f"{name}-io.npz") as archive:
        return archive["in/data"], archive["out/0"]


def assert_close(actual, expected):
    assert actual.shape == expected.shape
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE * scale)


class TestStructure:
    def test_names_of_gluon(self):
        from passlib.gluon import nn as of_gluon

        assert of_gluon is nn
        assert gluon.SymbolBlock is nn.SymbolBlock

    def test_outputs_nest_as_given(self):
        data = sym.var("data")
        cases = [
            (data * 2, "a"),
            ([data * 2], "a"),
            ([data * 2, data * 3], ["a", "b"]),
            ([data * 2, [data * 3, data * 4]], ["a", ["b", "c"]]),
            (sym.Group([data * 2, data * 3]), ["a", "b"]),
            ([sym.split(data, num_outputs=2, axis=0), data * 2], [["h", "k"], "a"]),
        ]
        values = {"a": 2 * X, "b": 3 * X, "c": 4 * X, "h": X[:1], "k": X[1:]}

        def compare(actual, expected):
            if isinstance(expected, str):
                assert isinstance(actual, nd.NDArray)
                np.testing.assert_array_equal(actual, values[expected])
                return
            assert isinstance(actual, list)
            for part, name in zip(actual, expected, strict=True):
                compare(part, name)

        for outputs, expected in cases:
            compare(nn.SymbolBlock(outputs, data)(X), expected)

    def test_nested_inputs(self):
        a, b, c = (sym.var(name) for name in "abc")
        made = nn.SymbolBlock(a - b * c, [a, [b, c]])
        np.testing.assert_array_equal(made(X, [X + 1, X + 2]), X - (X + 1) * (X + 2))
        with pytest.raises(ValueError, match="given 3 inputs, nested in another way; it has 3"):
            made(X, X, X)

    def test_symbols_give_symbols(self, block):
        out = block(sym.relu(sym.var("x")))
        assert out.list_arguments() == ["x", "fc_weight", "fc_bias"]
        assert nn.SymbolBlock(out, sym.var("x"), block.params)(X).shape == (2, 3)

    def test_unused_input_is_said(self):
        with pytest.warns(UserWarning, match="do not use the input other"):
            made = nn.SymbolBlock(layer(), [sym.var("data"), sym.var("other")])
        made.initialize("ones")
        assert made(X, X).shape == (2, 3)

    @pytest.mark.parametrize(
        ("outputs", "inputs", "error", "message"),
        [
            (layer(), layer(), ValueError, "'fc' is the output of FullyConnected"),
            (
                layer(),
                [sym.var("data")] * 2,
                ValueError,
                "two inputs of the block are named 'data'",
            ),
            (X, sym.var("data"), TypeError, "output must be a Symbol, not ndarray"),
            (layer(), "data", TypeError, "input must be a Symbol, not str"),
            (
                sym.dot(sym.var("data"), sym.var("w", stype="row_sparse")),
                sym.var("data"),
                ValueError,
                "'w' is row_sparse",
            ),
        ],
    )
    def test_refused(self, outputs, inputs, error, message):
        with pytest.raises(error, match=message):
            nn.SymbolBlock(outputs, inputs)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((X, X), ValueError, "given 2 inputs; it has 1: data"),
            ((X.tolist(),), ValueError, "given 4 inputs"),
            ((1.5,), TypeError, "input 'data' is of type float"),
            ((None,), TypeError, "input 'data' is of type NoneType"),
        ],
    )
    def test_arguments_that_do_not_fit(self, block, arguments, error, message):
        with pytest.raises(error, match=message):
            block(*arguments)

    def test_symbols_and_arrays_mixed(self):
        a, b = sym.var("a"), sym.var("b")
        with pytest.raises(TypeError, match="not with both"):
            nn.SymbolBlock(a + b, [a, b])(X, b)

    def test_repr(self, block):
        assert repr(block) == "SymbolBlock(data -> fc_output; 4 nodes, 2 parameters)"


class TestParameters:
    def test_uninitialized(self):
        made = nn.SymbolBlock(layer(), sym.var("data"))
        with pytest.raises(PasslibError, match=r"'fc_weight' has no values yet: call initialize"):
            made(X)
        made.initialize()
        with pytest.raises(PasslibError, match="'fc_weight' has no values yet: its shape"):
            made.params["fc_weight"].data()
        with pytest.raises(PasslibError, match="'fc_weight' has no values yet"):
            made.params.list_ctx()

    def test_shapes_follow_from_the_first_call(self):
        made = nn.SymbolBlock(sym.BatchNorm(layer(), name="bn"), sym.var("data"))
        made.initialize()
        assert made.params["fc_weight"].shape is None
        made(X)
        params = made.collect_params()
        assert {name: p.shape for name, p in params.items()} == {
            "fc_weight": (3, 2),
            "fc_bias": (3,),
            "bn_gamma": (3,),
            "bn_beta": (3,),
            "bn_moving_mean": (3,),
            "bn_moving_var": (3,),
        }
        assert {p.dtype for p in params.values()} == {np.dtype(np.float32)}
        assert [name for name, p in params.items() if p.grad_req == "null"] == [
            "bn_moving_mean",
            "bn_moving_var",
        ]

    def test_shape_of_the_variable(self):
        weight = sym.var("w", shape=(3, 2), dtype="float64")
        made = nn.SymbolBlock(sym.dot(sym.var("data"), weight), sym.var("data"))
        made.initialize("ones")
        data = made.params["w"].data()
        assert data.dtype == np.float64
        np.testing.assert_array_equal(data, np.ones((3, 2)))

    def test_shape_that_does_not_follow(self):
        made = nn.SymbolBlock(sym.dot(sym.var("data"), sym.var("w")), sym.var("data"))
        made.initialize()
        with pytest.raises(GraphError, match=r"parameter 'w' cannot be inferred.*data \(2, 2\)"):
            made(X)

    def test_uniform_leaves_the_rest_sane(self):
        made = nn.SymbolBlock(sym.BatchNorm(layer(), name="bn"), sym.var("data"))
        made.initialize(seed=7)
        out = made(X)
        values = {name: np.asarray(p.data()) for name, p in made.params.items()}
        assert 0 < np.abs(values["fc_weight"]).max() <= 0.07
        for name, constant in (
            ("fc_bias", 0),
            ("bn_beta", 0),
            ("bn_moving_mean", 0),
            ("bn_gamma", 1),
            ("bn_moving_var", 1),
        ):
            np.testing.assert_array_equal(values[name], constant)
        assert np.isfinite(out).all()
        again = nn.SymbolBlock(sym.BatchNorm(layer(), name="bn"), sym.var("data"))
        again.initialize(seed=7)
        np.testing.assert_array_equal(again(X), out)

    def test_normal(self):
        made = nn.SymbolBlock(sym.dot(sym.var("x"), sym.var("w", shape=(200, 200))), sym.var("x"))
        made.initialize("normal", seed=1)
        assert np.std(made.params["w"].data()) == pytest.approx(0.01, rel=0.05)

    def test_initializer_of_ones_own(self):
        made = nn.SymbolBlock(layer(), sym.var("data"))
        made.initialize(lambda name, shape, dtype: np.full(shape, len(name)))
        made(X)
        np.testing.assert_array_equal(made.params["fc_weight"].data(), 9)
        made.initialize(lambda name, shape, dtype: np.ones(7))
        np.testing.assert_array_equal(made.params["fc_weight"].data(), 9)
        with pytest.raises(ValueError, match=r"shape \(7,\) for parameter 'fc_weight', not \(3, 2\)"):
            made.initialize(lambda name, shape, dtype: np.ones(7), force_reinit=True)

    @pytest.mark.parametrize(
        ("init", "error", "message"),
        [("xavier", ValueError, "'xavier'; the names are uniform"), (3, TypeError, "not int")],
    )
    def test_unknown_initializer(self, init, error, message):
        with pytest.raises(error, match=message):
            nn.SymbolBlock(layer(), sym.var("data")).initialize(init)

    def test_set_data_counts_at_the_next_call(self, block):
        np.testing.assert_allclose(block(X), Y)
        block.params["fc_bias"].set_data(np.zeros(3))
        np.testing.assert_allclose(block(X), Y - BIAS)

    def test_writing_to_data_counts_at_the_next_call(self, block):
        np.testing.assert_allclose(block(X), Y)
        bias = block.params["fc_bias"].data()
        bias[:] = 0
        np.testing.assert_allclose(block(X), Y - BIAS)
        block.params["fc_bias"].set_data(BIAS)
        np.testing.assert_allclose(bias, BIAS)
        (other,) = block.params["fc_bias"].list_data()
        other[:] = 2 * BIAS
        np.testing.assert_allclose(block(X), Y + BIAS)

    def test_set_data_of_another_shape(self, block):
        with pytest.raises(ValueError, match=r"'fc_bias' has shape \(3,\), not \(4,\)"):
            block.params["fc_bias"].set_data(np.zeros(4))

    def test_arrays_given_are_shared(self):
        weight = nd.array(WEIGHT)
        made = nn.SymbolBlock(layer(), sym.var("data"), {"arg:fc_weight": weight, "fc_bias": BIAS})
        np.testing.assert_allclose(made(X), Y)
        weight[:] = 0
        np.testing.assert_allclose(made(X), np.broadcast_to(BIAS, (2, 3)))

    def test_read_only_arrays_are_replaced(self):
        weights = model.Model(layer(), {"fc_weight": WEIGHT, "fc_bias": BIAS}).args
        made = nn.SymbolBlock(layer(), sym.var("data"), weights)
        made.params["fc_bias"].set_data(0 * BIAS)
        np.testing.assert_allclose(made(X), Y - BIAS)
        np.testing.assert_array_equal(weights["fc_bias"], BIAS)

    def test_parameters_given_are_shared(self, block):
        internals = layer().get_internals()
        other = nn.SymbolBlock(internals["fc_output"] * 2, sym.var("data"), block.collect_params())
        np.testing.assert_allclose(other(X), 2 * Y)
        block.params["fc_bias"].set_data(np.zeros(3))
        np.testing.assert_allclose(other(X), 2 * (Y - BIAS))

    def test_cast(self, block):
        for parameter in block.params.values():
            parameter.cast("float64")
        out = block(X.astype(np.float64))
        assert out.dtype == np.float64
        np.testing.assert_allclose(out, Y)

    def test_select(self, block):
        assert list(block.collect_params(".*bias")) == ["fc_bias"]

    def test_gpu_and_gradients(self, block):
        bias = block.params["fc_bias"]
        assert bias.list_ctx() == block.params.list_ctx() == [passlib.cpu()]
        block.reset_ctx(passlib.cpu(0))
        for refused in (
            lambda: block.reset_ctx(passlib.gpu()),
            lambda: block.reset_ctx([passlib.cpu(), passlib.gpu()]),
            lambda: bias.data(passlib.gpu()),
            lambda: block.initialize(ctx=passlib.gpu()),
            bias.grad,
        ):
            with pytest.raises(UnsupportedError, match=r"fc_weight|fc_bias"):
                refused()

    def test_repr_and_var(self, block):
        bias = block.params["fc_bias"]
        assert repr(bias) == "Parameter fc_bias (shape=(3,), dtype=float32)"
        assert repr(bias) in repr(block.params)
        assert bias.var().attr("__shape__") == "(3,)"

    def test_set_attribute_of_all(self, block):
        block.params.setattr("grad_req", "null")
        assert {p.grad_req for p in block.params.values()} == {"null"}


class TestFiles:
    def test_save_and_load(self, block, tmp_path):
        block.params.save(tmp_path / "x.params")
        assert list(nd.load(tmp_path / "x.params")) == ["fc_weight", "fc_bias"]
        other = nn.SymbolBlock(layer(), sym.var("data"))
        other.params.load(tmp_path / "x.params")
        np.testing.assert_allclose(other(X), Y)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ({"fc_weight": WEIGHT}, "'fc_bias' is missing; the file has 'fc_weight'"),
            ({"fc_weight": WEIGHT, "fc_bias": BIAS, "b": BIAS}, "'b' is not a parameter"),
            ({"fc_weight": WEIGHT.T, "fc_bias": BIAS}, r"'fc_weight' has shape \(3, 2\)"),
            ({"fc_weight": WEIGHT, "fc_bias": BIAS[:, None]}, r"'fc_bias' has shape \(3,\)"),
            ({"fc_weight": WEIGHT, "fc_bias": BIAS.astype(int)}, "'fc_bias' is float32, not int64"),
            ({"fc_bias": BIAS, "arg:fc_bias": BIAS}, "'fc_bias' is in the file twice"),
        ],
    )
    def test_files_that_do_not_fit_change_nothing(self, block, content, message, tmp_path):
        nd.save(tmp_path / "x.params", {name: 0 * array for name, array in content.items()})
        with pytest.raises(FormatError, match=rf"x\.params: .*{message}"):
            block.params.load(tmp_path / "x.params")
        np.testing.assert_allclose(block(X), Y)

    def test_missing_and_extra_allowed(self, block, tmp_path):
        nd.save(tmp_path / "x.params", {"arg:fc_bias": 0 * BIAS, "b": BIAS})
        block.params.load(tmp_path / "x.params", allow_missing=True, ignore_extra=True)
        np.testing.assert_allclose(block(X), Y - BIAS)

    @pytest.mark.parametrize(("source", "dtype"), [("current", "float32"), ("saved", "float64")])
    def test_cast_while_loading(self, block, source, dtype, tmp_path):
        content = {"fc_weight": WEIGHT.astype("float64"), "fc_bias": BIAS.astype("float64")}
        nd.save(tmp_path / "x.params", content)
        block.params.load(tmp_path / "x.params", cast_dtype=True, dtype_source=source)
        assert {p.dtype.name for p in block.params.values()} == {dtype}

    def test_save_without_values(self, tmp_path):
        with pytest.raises(PasslibError, match="'fc_weight' has no values"):
            nn.SymbolBlock(layer(), sym.var("data")).params.save(tmp_path / "x.params")

    @pytest.mark.parametrize("name", WITH_WEIGHTS)
    def test_imports_agrees_with_mxnet(self, name, tmp_path):
        symbol_file, param_file = f"{name}-symbol.json", f"{name}-0000.params"
        made = nn.SymbolBlock.imports(MODELS / symbol_file, ["data"], MODELS / param_file)
        data, expected = recorded(name)
        assert_close(made(data), expected)
        made.hybridize(static_alloc=True, static_shape=True)
        written = made.export(tmp_path / "copy", epoch=3)
        assert [Path(path).name for path in written] == ["copy-symbol.json", "copy-0003.params"]
        for path, original in zip(written, (symbol_file, param_file), strict=True):
            assert Path(path).read_bytes() == (MODELS / original).read_bytes()

    def test_imports_without_parameters(self):
        made = nn.SymbolBlock.imports(MODELS / "resnet_v1_small-symbol.json", "data")
        made.initialize(seed=0)
        data, expected = recorded("resnet_v1_small")
        assert made(data).shape == expected.shape

    @pytest.mark.parametrize(
        ("inputs", "error", "message"),
        [
            ("dota", GraphError, r"lstm_lm-symbol\.json: the symbol has no variable 'dota'.*data"),
            ([], FormatError, r"'data' is missing.*or name it as an input if it is one"),
        ],
    )
    def test_imports_with_wrong_inputs(self, inputs, error, message):
        with pytest.raises(error, match=message):
            nn.SymbolBlock.imports(
                MODELS / "lstm_lm-symbol.json", inputs, MODELS / "lstm_lm-0000.params"
            )

    def test_imports_allowing_missing(self, tmp_path):
        layer().save(tmp_path / "x-symbol.json")
        nd.save(tmp_path / "x.params", {"arg:fc_weight": WEIGHT})
        files = (tmp_path / "x-symbol.json", "data", tmp_path / "x.params")
        made = nn.SymbolBlock.imports(*files, allow_missing=True)
        with pytest.raises(PasslibError, match="'fc_bias' has no values"):
            made(X)
        made.initialize("zeros")
        np.testing.assert_allclose(made(X), Y - BIAS)

    def test_imports_on_a_gpu(self):
        with pytest.raises(UnsupportedError, match="gpu"):
            nn.SymbolBlock.imports(MODELS / "lstm_lm-symbol.json", "data", ctx=passlib.gpu())

    def test_export_without_parameters(self, tmp_path):
        data = sym.var("data")
        written = nn.SymbolBlock(data * 2, data).export(str(tmp_path / "x"))
        assert written == (str(tmp_path / "x-symbol.json"), None)
        assert [path.name for path in tmp_path.iterdir()] == ["x-symbol.json"]

    def test_export_without_values(self, tmp_path):
        with pytest.raises(PasslibError, match="'fc_weight' has no values"):
            nn.SymbolBlock(layer(), sym.var("data")).export(tmp_path / "x")
        assert list(tmp_path.iterdir()) == []


class TestPasses:
    @pytest.mark.parametrize("x", [X, nd.array(X), sym.var("anything", shape=(2, 2))])
    def test_shapes_and_values_reach_the_pass(self, block, x, tmp_path):
        block.optimize_for(x, backend="tellWhatISee")
        attrs = sym.load(block.export(tmp_path / "x")[0]).list_attr()
        values = "data;fc_weight;fc_bias;" if isinstance(x, np.ndarray) else "fc_weight;fc_bias;"
        assert attrs["__values__"] == values
        assert attrs["__shapes__"] == "data[[2,2]];fc_weight[[3,2]];fc_bias[[3]];"

    @pytest.mark.parametrize("way", ["optimize_for", "hybridize"])
    def test_options_reach_the_pass_and_are_forgotten(self, block, way, tmp_path):
        def apply(**options):
            if way == "optimize_for":
                block.optimize_for(X, backend="tellWhatISee", static_alloc=True, **options)
            else:
                block.hybridize(backend="tellWhatISee", static_alloc=True, **options)
                block(X)
            return sym.load(block.export(tmp_path / "x")[0]).list_attr()["__options__"]

        assert apply(backend_opts={"a": 1, "b": True}, c=[1, 2]) == "a=1;b=True;c=[1, 2];"
        assert apply() == ""

    def test_passes_add_up(self, block, tmp_path):
        block.hybridize(static_alloc=True, static_shape=True)
        block.optimize_for(X, backend="scaleInPlace", name="fc_weight", factor=2)
        block.optimize_for(X, backend="appendScale", name="by", value=3)
        block.optimize_for(X, backend="dropBias", name="fc")
        expected = 6 * (Y - BIAS)
        np.testing.assert_allclose(block(X), expected, rtol=1e-6)
        assert sorted(block.collect_params()) == ["by", "fc_weight"]
        files = block.export(tmp_path / "x")
        assert sorted(nd.load(files[1])) == ["arg:by", "arg:fc_weight"]
        np.testing.assert_allclose(
            nn.SymbolBlock.imports(files[0], ["data"], files[1])(X), expected, rtol=1e-6
        )

    def test_clear_starts_from_the_original(self, block):
        block.optimize_for(X, backend="scaleInPlace", name="fc_weight", factor=2)
        block.optimize_for(X, backend="appendScale", name="by", value=3, clear=True)
        np.testing.assert_allclose(block(X), 3 * Y, rtol=1e-6)
        block.hybridize(clear=True)
        np.testing.assert_allclose(block(X), Y)
        assert sorted(block.collect_params()) == ["fc_bias", "fc_weight"]

    def test_hybridize_keeps_what_passes_did(self, block):
        block.optimize_for(X, backend="appendScale", name="by", value=3)
        block.hybridize(static_alloc=True)
        np.testing.assert_allclose(block(X), 3 * Y, rtol=1e-6)

    def test_hybridize_runs_the_pass_once_at_the_first_call(self, block, tmp_path):
        block.hybridize(backend="scaleInPlace", name="fc_weight", factor=2)
        with pytest.raises(PasslibError, match="'scaleInPlace' was scheduled with hybridize"):
            block.export(tmp_path / "x")
        for _ in range(2):
            np.testing.assert_allclose(block(X), 2 * (Y - BIAS) + BIAS, rtol=1e-6)
        block.export(tmp_path / "x")

    def test_hybridize_taken_back(self, block):
        block.hybridize(backend="scaleInPlace", name="fc_weight", factor=2)
        block.hybridize(active=False)
        np.testing.assert_allclose(block(X), Y)

    def test_added_state(self, block, tmp_path):
        block.optimize_for(X, backend="appendBatchNorm", channels=3)
        np.testing.assert_allclose(block(X), (Y - 1) / 2, rtol=1e-5)
        mean = block.params["added_bn_moving_mean"]
        assert mean.grad_req == "null"
        assert mean.shape == (3,)
        block.reset_ctx(passlib.cpu())
        names = list(nd.load(block.export(tmp_path / "x")[1]))
        assert [name for name in names if name.startswith("aux:")] == [
            "aux:added_bn_moving_mean",
            "aux:added_bn_moving_var",
        ]

    def test_input_stays_as_it_is(self, block):
        data = nd.array(X)
        block.optimize_for(data, backend="scaleInPlace", name="data", factor=2)
        np.testing.assert_array_equal(data, X)
        assert data.flags.writeable
        np.testing.assert_allclose(block(data), Y)

    @pytest.mark.parametrize("way", ["optimize_for", "hybridize"])
    @pytest.mark.parametrize(
        ("backend", "options", "error", "message"),
        [
            ("scaleAndFail", {"name": "fc_weight", "factor": 2}, PassError, "failed on purpose"),
            ("noSuchPass", {}, PasslibError, "no pass or partitioner 'noSuchPass'"),
            ("addOrphan", {}, GraphError, "added the variable 'orphan'.*alloc_arg"),
        ],
    )
    def test_failure_changes_nothing(self, block, way, backend, options, error, message):
        def apply():
            if way == "optimize_for":
                block.optimize_for(X, backend=backend, **options)
            else:
                block.hybridize(backend=backend, **options)
                block(X)

        for _ in range(2):
            with pytest.raises(error, match=message):
                apply()
            block.hybridize(active=False)
            np.testing.assert_allclose(block(X), Y)

    def test_waiting_pass_runs_before_the_next(self, block):
        block.hybridize(backend="appendScale", name="by", value=3)
        block.optimize_for(X, backend="scaleInPlace", name="by", factor=2)
        np.testing.assert_allclose(block(X), 6 * Y, rtol=1e-6)

    def test_parameters_that_wait_get_their_values(self):
        made = nn.SymbolBlock(layer(), sym.var("data"))
        made.initialize("ones")
        made.optimize_for(sym.var("x", shape=(4, 2)), backend="dropBias", name="fc")
        np.testing.assert_allclose(made(X), np.broadcast_to(X.sum(1, keepdims=True), (2, 3)))

    def test_without_values_as_the_tutorial_has_it(self):
        made = nn.SymbolBlock(layer(), sym.var("data"))
        made.optimize_for(X, backend="tellWhatISee")
        made.initialize("ones")
        assert made(X).shape == (2, 3)

    def test_values_set_after_a_pass(self, block):
        block.optimize_for(X, backend="scaleInPlace", name="fc_weight", factor=2)
        block.params["fc_weight"].set_data(0 * WEIGHT)
        np.testing.assert_allclose(block(X), np.broadcast_to(BIAS, (2, 3)))
        block.hybridize(clear=True)
        np.testing.assert_allclose(block(X), Y)

    def test_no_backend(self, block):
        with pytest.raises(ValueError, match="backend="):
            block.optimize_for(X)
        with pytest.raises(ValueError, match="options level need a pass"):
            block.hybridize(level=3)

    @pytest.mark.parametrize("name", WITH_WEIGHTS)
    def test_whole_model(self, name, tmp_path):
        made = nn.SymbolBlock.imports(
            MODELS / f"{name}-symbol.json", "data", MODELS / f"{name}-0000.params"
        )
        data, expected = recorded(name)
        made.optimize_for(nd.array(data), backend="appendScale", name="by", value=2)
        assert_close(made(data), 2 * expected)
        files = made.export(tmp_path / "x")
        again = nn.SymbolBlock.imports(files[0], "data", files[1])
        assert_close(again(data), 2 * expected)
