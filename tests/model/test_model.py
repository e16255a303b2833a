from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

import passlib
import places
from passlib import model, nd, sym
from passlib.dialects.mxnet import files
from passlib.errors import FormatError, GraphError, PassError, UnsupportedError
from weight_passes import load_weight_passes

MODELS = places.DATA / "mxnet" / "models"
WITH_WEIGHTS = ("lstm_lm", "resnet_v1_small", "mobilenet0.25", "squeezenet1.1")
SYMBOLS_ONLY = ("inceptionv3", "resnet152_v1", "resnet50_v2")
TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def passes():
    return load_weight_passes()


def recorded(name):
    """Inputs and outputs of a model as MXNet 1.9.1 computed them."""
    with np.load(MODELS / f"{name}-io.npz") as archive:
        content = dict(archive)
    inputs = {key[3:]: value for key, value in content.items() if key.startswith("in/")}
    return inputs, [content[f"out/{i}"] for i in range(len(content) - len(inputs))]


def assert_close(actual, expected):
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE * scale)


def layer(num_hidden=3):
    return sym.FullyConnected(sym.var("data"), num_hidden=num_hidden, name="fc")


def weights():
    return {
        "fc_weight": nd.array([[1, 2], [3, 4], [5, 6]]),
        "fc_bias": nd.array([0.5, -0.5, 1]),
    }


@pytest.fixture
def small():
    return model.Model(layer(), weights())


X = np.array([[1, -1], [2, 0.5]], np.float32)
Y = X @ weights()["fc_weight"].T + weights()["fc_bias"]


class TestCheckpoint:
    @pytest.mark.parametrize("name", WITH_WEIGHTS)
    def test_round_trip(self, name, tmp_path):
        symbol, args, aux = model.load_checkpoint(MODELS / name, 0)
        assert set(aux) == set(symbol.list_auxiliary_states())
        assert set(args) == set(symbol.list_arguments()) - {"data"}
        model.save_checkpoint(tmp_path / "copy", 12, symbol, args, aux)
        text = (MODELS / f"{name}-symbol.json").read_bytes()
        assert (tmp_path / "copy-symbol.json").read_bytes() == text
        again = model.load_params(tmp_path / "copy", 12)
        for before, after in zip((args, aux), again, strict=True):
            assert list(before) == list(after)
            for key, array in before.items():
                np.testing.assert_array_equal(array, after[key])

    def test_prefixes_are_written_arguments_first(self, tmp_path):
        aux = {"m": nd.ones((2,))}
        model.save_checkpoint(str(tmp_path / "x"), 3, layer(), weights(), aux)
        assert list(nd.load(tmp_path / "x-0003.params")) == [
            "arg:fc_weight",
            "arg:fc_bias",
            "aux:m",
        ]

    def test_device_is_not_written(self, tmp_path):
        array = nd.ones((2,), ctx=passlib.cpu(1))
        model.save_checkpoint(tmp_path / "x", 0, None, {"w": array}, {})
        model.save_checkpoint(tmp_path / "y", 0, None, {"w": nd.ones((2,))}, {})
        one, two = (tmp_path / f"{n}-0000.params" for n in "xy")
        assert one.read_bytes() == two.read_bytes()

    def test_without_symbol_its_file_stays(self, tmp_path):
        model.save_checkpoint(tmp_path / "x", 0, None, weights(), {})
        assert [path.name for path in tmp_path.iterdir()] == ["x-0000.params"]

    @pytest.mark.parametrize("symbol", [None, layer()])
    def test_failure_leaves_both_files(self, symbol, tmp_path):
        model.save_checkpoint(tmp_path / "x", 0, layer(), weights(), {})
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        bad = {"w": np.ones(2, np.complex64)}
        with pytest.raises(UnsupportedError, match=r"'arg:w'.*complex64"):
            model.save_checkpoint(tmp_path / "x", 0, symbol, bad, {})
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_name_without_prefix(self, tmp_path):
        nd.save(tmp_path / "x-0000.params", {"fc_weight": nd.ones((1,))})
        with pytest.raises(FormatError, match=r"x-0000\.params: the name 'fc_weight' begins with"):
            model.load_params(tmp_path / "x", 0)

    def test_other_prefix_is_passed_over(self, tmp_path):
        nd.save(tmp_path / "x-0000.params", {"arg:w": nd.ones((1,)), "foo:z": nd.ones((1,))})
        args, aux = model.load_params(tmp_path / "x", 0)
        assert list(args) == ["w"]
        assert aux == {}

    def test_empty_file_is_logged(self, tmp_path, caplog):
        nd.save(tmp_path / "x-0000.params", {})
        with caplog.at_level(logging.WARNING):
            assert model.load_params(tmp_path / "x", 0) == ({}, {})
        assert "x-0000.params is empty" in caplog.text

    def test_missing_file_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"x-0007\.params"):
            model.load_params(tmp_path / "x", 7)

    def test_damaged_file_is_named(self, tmp_path):
        (tmp_path / "x-0000.params").write_bytes(b"nonsense")
        with pytest.raises(FormatError, match=r"x-0000\.params"):
            model.load_params(tmp_path / "x", 0)


class TestFind:
    @pytest.fixture
    def folder(self, tmp_path):
        for name in ("m-symbol.json", "m-0000.params", "m-0012.params", "m-10000.params"):
            (tmp_path / name).touch()
        # Files of other models, whose names begin alike.
        for name in ("m-1-symbol.json", "m-1-0099.params", "m2-0099.params", "m-0001.params.bak"):
            (tmp_path / name).touch()
        (tmp_path / "plain.json").touch()
        return tmp_path

    @pytest.mark.parametrize(
        ("path", "epoch", "symbol", "params"),
        [
            ("m", None, "m-symbol.json", "m-10000.params"),
            ("m", 12, "m-symbol.json", "m-0012.params"),
            ("m-symbol.json", None, "m-symbol.json", "m-10000.params"),
            ("m-symbol.json", 0, "m-symbol.json", "m-0000.params"),
            ("m-0012.params", None, "m-symbol.json", "m-0012.params"),
            ("m-1", None, "m-1-symbol.json", "m-1-0099.params"),
            ("plain.json", None, "plain.json", None),
        ],
    )
    def test_found(self, folder, path, epoch, symbol, params):
        found = files.find(folder / path, epoch)
        assert found.symbol == folder / symbol
        assert found.params == (folder / params if params else None)

    @pytest.mark.parametrize(
        ("path", "epoch", "message"),
        [
            ("m", 5, "no weights of epoch 5; those saved are 0, 12, 10000"),
            ("plain.json", 5, "no weights of epoch 5; none was saved"),
            ("other", None, "no such symbol file.*other-symbol.json"),
            ("m2-0099.params", None, "no such symbol file.*m2-symbol.json"),
            ("nowhere/m", None, "no such symbol file"),
        ],
    )
    def test_not_found(self, folder, path, epoch, message):
        with pytest.raises(FileNotFoundError, match=message):
            files.find(folder / path, epoch)


class TestLoadAndSave:
    @pytest.mark.parametrize("name", WITH_WEIGHTS)
    @pytest.mark.parametrize("ending", ["", "-symbol.json", "-0000.params"])
    def test_files_come_back_byte_for_byte(self, name, ending, tmp_path):
        loaded = model.load(f"{MODELS / name}{ending}")
        assert loaded.dialect == "mxnet"
        written = loaded.save(tmp_path / "copy")
        originals = (f"{name}-symbol.json", f"{name}-0000.params")
        for path, original in zip(written, originals, strict=True):
            assert Path(path).read_bytes() == (MODELS / original).read_bytes()

    @pytest.mark.parametrize("name", SYMBOLS_ONLY)
    def test_without_weights(self, name, tmp_path):
        loaded = model.load(MODELS / name)
        assert dict(loaded.args) == {}
        assert dict(loaded.aux) == {}
        assert loaded.inputs == loaded.symbol.list_inputs()
        (symbol_file,) = loaded.save(tmp_path / "copy-symbol.json")
        assert [path.name for path in tmp_path.iterdir()] == ["copy-symbol.json"]
        assert Path(symbol_file).read_bytes() == (MODELS / f"{name}-symbol.json").read_bytes()

    def test_epoch_is_kept(self, small, tmp_path):
        small.save(tmp_path / "x", epoch=4)
        small.save(tmp_path / "x", epoch=2)
        loaded = model.load(tmp_path / "x")
        assert Path(loaded.save(tmp_path / "y")[1]).name == "y-0004.params"
        loaded = model.load(tmp_path / "x", epoch=2)
        assert Path(loaded.save(tmp_path / "y")[1]).name == "y-0002.params"

    def test_archive_of_mxnet_2_is_kept(self, small, tmp_path):
        small.symbol.save(tmp_path / "x-symbol.json")
        with (tmp_path / "x-0000.params").open("wb") as file:
            np.savez(file, **{f"arg:{name}": array for name, array in weights().items()})
        loaded = model.load(tmp_path / "x")
        np.testing.assert_allclose(loaded(X), Y)
        with np.load(loaded.save(tmp_path / "y")[1]) as archive:
            assert sorted(archive) == ["arg:fc_bias", "arg:fc_weight"]

    def test_names_without_prefix_are_sorted_by_the_symbol(self, tmp_path):
        symbol = sym.BatchNorm(sym.var("data"), name="bn")
        symbol.save(tmp_path / "x-symbol.json")
        names = symbol.list_inputs()[1:]
        nd.save(tmp_path / "x-0000.params", {name: nd.ones((3,)) for name in names})
        loaded = model.load(tmp_path / "x")
        assert list(loaded.args) == ["bn_gamma", "bn_beta"]
        assert list(loaded.aux) == ["bn_moving_mean", "bn_moving_var"]

    def test_name_with_and_without_prefix(self, small, tmp_path):
        small.symbol.save(tmp_path / "x-symbol.json")
        nd.save(tmp_path / "x-0000.params", {"arg:w": nd.ones((1,)), "w": nd.ones((1,))})
        with pytest.raises(FormatError, match=r"x-0000\.params: 'w' is in the file twice"):
            model.load(tmp_path / "x")

    @pytest.mark.parametrize("suffix", ["params", "npz", "safetensors"])
    def test_weights_of_another_file(self, suffix, small, tmp_path):
        if suffix == "safetensors":
            pytest.importorskip("safetensors", reason="needs the package safetensors")
        from passlib.nd.weights import save_weights

        small.symbol.save(tmp_path / "x-symbol.json")
        save_weights(tmp_path / f"other.{suffix}", weights())
        loaded = model.load(tmp_path / "x", params=tmp_path / f"other.{suffix}")
        np.testing.assert_allclose(loaded(X), Y)

    def test_saved_over_itself(self, small, tmp_path):
        small.save(tmp_path / "x")
        loaded = model.load(tmp_path / "x")
        loaded.save(tmp_path / "x")
        np.testing.assert_allclose(model.load(tmp_path / "x")(X), Y)

    def test_failure_leaves_both_files(self, small, tmp_path):
        small.save(tmp_path / "x")
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        bad = model.Model(layer(4), {"fc_weight": np.ones((4, 2), np.complex64)})
        with pytest.raises(UnsupportedError, match="complex64"):
            bad.save(tmp_path / "x")
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_damaged_symbol_is_named(self, tmp_path):
        shutil.copy(MODELS / "lstm_lm-0000.params", tmp_path / "x-0000.params")
        (tmp_path / "x-symbol.json").write_text("{")
        with pytest.raises(FormatError, match=r"x-symbol\.json"):
            model.load(tmp_path / "x")


class TestRun:
    @pytest.mark.parametrize("name", WITH_WEIGHTS)
    def test_agrees_with_mxnet(self, name):
        loaded = model.load(MODELS / name)
        inputs, outputs = recorded(name)
        results = loaded.run(inputs)
        assert list(results) == loaded.outputs
        for actual, expected in zip(results.values(), outputs, strict=True):
            assert isinstance(actual, nd.NDArray)
            assert_close(actual, expected)
        assert_close(loaded(*inputs.values()), outputs[0])

    def test_batch_of_another_size(self, small):
        for size in (1, 5, 1):
            assert small(np.ones((size, 2), np.float32)).shape == (size, 3)

    def test_sessions_are_reused(self, small, monkeypatch):
        from passlib.runtime import sessions

        made = []
        original = sessions.Session
        monkeypatch.setattr(
            sessions, "Session", lambda *a, **k: made.append(1) or original(*a, **k)
        )
        for size in (2, 3, 2, 3, 2):
            small(np.ones((size, 2), np.float32))
        assert len(made) == 2

    def test_lists_become_float32(self, small):
        np.testing.assert_allclose(small.run({"data": X.tolist()})["fc_output"], Y)

    def test_weight_in_place_of_the_models(self, small):
        result = small.run({"data": X, "fc_bias": np.zeros(3, np.float32)})["fc_output"]
        np.testing.assert_allclose(result, X @ weights()["fc_weight"].T)
        np.testing.assert_allclose(small(X), Y)

    def test_several_outputs(self):
        first = layer()
        data = first.get_internals()["data"]
        both = model.Model(sym.Group([first, data * 2]), weights())
        first, second = both(X)
        np.testing.assert_allclose(first, Y)
        np.testing.assert_allclose(second, 2 * X)
        assert list(both.run({"data": X})) == both.outputs

    def test_outputs_of_one_name(self):
        data = sym.var("data")
        pair = [sym.relu(data, name="same"), sym.negative(data, name="same")]
        twice = model.Model(sym.Group(pair))
        np.testing.assert_array_equal(twice(X)[1], -X)
        with pytest.raises(GraphError, match="several outputs are named same_output"):
            twice.run({"data": X})

    def test_label_may_be_left_out(self):
        output = sym.SoftmaxOutput(layer(), name="softmax")
        classifier = model.Model(output, weights())
        assert classifier.inputs == ["data", "softmax_label"]
        expected = np.exp(Y) / np.exp(Y).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(classifier(X), expected, rtol=1e-5)

    def test_sparse_weight(self):
        dense = weights()
        sparse = {**dense, "fc_weight": dense["fc_weight"].tostype("row_sparse")}
        np.testing.assert_allclose(model.Model(layer(), sparse)(X), Y)

    @pytest.mark.parametrize(
        ("inputs", "error", "message"),
        [
            ({}, GraphError, "no value was given for data"),
            ({"data": X, "dota": X}, GraphError, "no variable 'dota'"),
            ({"data": X.astype(np.float64)}, GraphError, r"float64, and no weight is.*astype"),
            ({"data": np.ones((2, 5), np.float32)}, GraphError, "'fc'"),
        ],
    )
    def test_inputs_that_do_not_fit(self, small, inputs, error, message):
        with pytest.raises(error, match=message):
            small.run(inputs)

    def test_too_many_inputs(self, small):
        with pytest.raises(TypeError, match="given 2 inputs, but has 1: data"):
            small(X, X)


class TestOptimize:
    def test_original_stays(self, small):
        args = {name: np.array(array) for name, array in small.args.items()}
        twice = small.optimize_for("scaleInPlace", name="fc_weight", factor=2)
        np.testing.assert_allclose(twice(X), 2 * Y - weights()["fc_bias"])
        np.testing.assert_allclose(small(X), Y)
        for name, array in args.items():
            np.testing.assert_array_equal(small.args[name], array)
        assert np.shares_memory(twice.args["fc_bias"], small.args["fc_bias"])
        assert not np.shares_memory(twice.args["fc_weight"], small.args["fc_weight"])

    def test_callers_array_stays(self):
        args = weights()
        before = np.array(args["fc_weight"])
        model.Model(layer(), args).optimize_for("scaleInPlace", name="fc_weight", factor=2)
        np.testing.assert_array_equal(args["fc_weight"], before)
        assert args["fc_weight"].flags.writeable

    def test_failure_changes_nothing(self, small):
        with pytest.raises(PassError, match="failed on purpose"):
            small.optimize_for("scaleAndFail", name="fc_weight", factor=2)
        np.testing.assert_allclose(small(X), Y)

    def test_added_and_removed_weights(self, small, tmp_path):
        changed = small.optimize_for("appendScale", name="by", value=3)
        changed = changed.optimize_for("dropBias", name="fc")
        assert set(changed.args) == {"fc_weight", "by"}
        assert changed.inputs == ["data"]
        expected = 3 * (X @ weights()["fc_weight"].T)
        np.testing.assert_allclose(changed(X), expected)
        changed.save(tmp_path / "x")
        np.testing.assert_allclose(model.load(tmp_path / "x")(X), expected)

    def test_added_states(self, small):
        changed = small.optimize_for("appendBatchNorm", channels=3)
        assert set(changed.aux) == {"added_bn_moving_mean", "added_bn_moving_var"}
        np.testing.assert_allclose(changed(X), (Y - 1) / 2, rtol=1e-5)

    def test_shapes_reach_the_pass(self, small):
        seen = small.optimize_for("tellWhatISee", shape_dict={"data": (7, 2)}, other=1)
        attrs = seen.symbol.list_attr()
        assert attrs["__options__"] == "other=1;"
        assert attrs["__values__"] == "fc_weight;fc_bias;"
        assert attrs["__shapes__"] == "data[[7,2]];fc_weight[[3,2]];fc_bias[[3]];"

    @pytest.mark.parametrize("name", WITH_WEIGHTS)
    def test_whole_model_runs_as_before(self, name, tmp_path):
        loaded = model.load(MODELS / name)
        inputs, outputs = recorded(name)
        changed = loaded.optimize_for("appendScale", name="by", value=2)
        changed.save(tmp_path / "x")
        again = model.load(tmp_path / "x")
        for candidate in (changed, again):
            assert_close(candidate(*inputs.values()), 2 * outputs[0])


class TestImmutable:
    def test_weights_cannot_be_written_to(self, small):
        with pytest.raises(ValueError, match="read-only"):
            small.args["fc_bias"][:] = 0
        with pytest.raises(TypeError, match="item assignment"):
            small.args["fc_bias"] = 0

    def test_dictionaries_are_the_models_own(self):
        args = weights()
        made = model.Model(layer(), args)
        del args["fc_bias"]
        np.testing.assert_allclose(made(X), Y)

    def test_repr(self, small):
        assert repr(small) == (
            "<Model mxnet: inputs data; outputs fc_output; 4 nodes, 2 weights of 9 elements>"
        )

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((layer(), {"w": [1, 2]}), TypeError, "weight 'w' is not an array, but of type list"),
            ((layer(), {}, {}, "caffe"), UnsupportedError, "no dialect 'caffe'.*mxnet"),
        ],
    )
    def test_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            model.Model(*arguments)


class TestToOnnx:
    @pytest.mark.parametrize("name", WITH_WEIGHTS)
    def test_runs_elsewhere(self, name, tmp_path):
        runtime = pytest.importorskip("onnxruntime", reason="needs the extra run")
        checker = pytest.importorskip("onnx.checker", reason="needs the extra run")
        inputs, outputs = recorded(name)
        path = tmp_path / "model.onnx"
        shapes = {key: value.shape for key, value in inputs.items()}
        model.load(MODELS / name).to_onnx(path, shapes)
        checker.check_model(str(path), full_check=True)
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        assert_close(session.run(None, inputs)[0], outputs[0])

    def test_open_size(self, small, tmp_path):
        runtime = pytest.importorskip("onnxruntime", reason="needs the extra run")
        small.to_onnx(tmp_path / "m.onnx", {"data": (None, 2)})
        session = runtime.InferenceSession(
            str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"]
        )
        for size in (1, 4):
            data = np.ones((size, 2), np.float32)
            np.testing.assert_allclose(session.run(None, {"data": data})[0], small(data))

    def test_shape_of_the_variable(self, tmp_path):
        data = sym.var("data", shape=(2, 2))
        made = model.Model(sym.FullyConnected(data, num_hidden=3, name="fc"), weights())
        made.to_onnx(tmp_path / "m.onnx")
        assert (tmp_path / "m.onnx").stat().st_size > 0

    def test_shape_is_missing(self, tmp_path):
        loaded = model.load(MODELS / "resnet_v1_small")
        with pytest.raises(GraphError, match=r"give the shapes of data as to_onnx\(path"):
            loaded.to_onnx(tmp_path / "m.onnx")
        assert list(tmp_path.iterdir()) == []

    def test_unknown_input(self, small, tmp_path):
        with pytest.raises(GraphError, match="no input 'dota'; its inputs are data"):
            small.to_onnx(tmp_path / "m.onnx", {"dota": (1, 2)})
