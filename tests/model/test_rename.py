"""Models under other names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnx_models
import passlib
from dense_layer import X, Y
from passlib.errors import GraphError
from passlib.model import Model
from places import DATA

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra run")


def test_inputs_weights_and_nodes_of_mxnet(small: Model, tmp_path: Path) -> None:
    names = {"data": "image", "fc_weight": "w", "fc": "dense"}
    model = small.rename(names)
    model.save(tmp_path / "m")
    for found in (model, passlib.load(tmp_path / "m")):
        assert found.inputs == ["image"]
        assert found.outputs == ["dense_output"]
        assert sorted(found.args) == ["fc_bias", "w"]
        np.testing.assert_allclose(found.run({"image": X})["dense_output"].asnumpy(), Y)
    assert model.args["w"] is small.args["fc_weight"]
    assert small.inputs == ["data"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("chain", {"inputs", "args", "outputs"}),
        ("nested", {"inputs", "args", "outputs"}),
        ("loop", {"inputs", "args"}),
        ("loop", {"outputs"}),
    ],
)
def test_inputs_weights_and_outputs_of_onnx(name: str, kinds: set[str], tmp_path: Path) -> None:
    source = passlib.load(onnx_models.save(onnx_models.TEXTS[name], tmp_path / "m.onnx"))
    every = [n for kind in ("inputs", "args", "outputs") for n in getattr(source, kind)]
    names = {n: n for n in every}
    names |= {n: f"new_{n}" for kind in kinds for n in getattr(source, kind)}
    model = source.rename(names)
    model.save(tmp_path / "new.onnx")
    onnx.checker.check_model(tmp_path / "new.onnx", full_check=True)
    for found in (model, passlib.load(tmp_path / "new.onnx")):
        assert found.inputs == [names[n] for n in source.inputs]
        assert found.outputs == [names[n] for n in source.outputs]
        assert sorted(found.args) == sorted(names[n] for n in source.args)
        for feeds in onnx_models.FEEDS[name]:
            results = found.run({names[key]: value for key, value in feeds.items()})
            for key, array in source.run(feeds).items():
                np.testing.assert_array_equal(results[names[key]].asnumpy(), array.asnumpy())


def test_names_are_exchanged(tmp_path: Path) -> None:
    source = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "m.onnx"))
    feeds = onnx_models.FEEDS["chain"][0]
    before = source.run(feeds)
    after = source.rename({"y": "z", "z": "y"}).run(feeds)
    assert list(after) == ["z", "y"]
    np.testing.assert_array_equal(after["z"].asnumpy(), before["y"].asnumpy())


def test_an_output_may_take_the_name_of_an_inner_value(tmp_path: Path) -> None:
    source = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "m.onnx"))
    model = source.rename({"y": "c"})
    model.save(tmp_path / "new.onnx")
    onnx.checker.check_model(tmp_path / "new.onnx", full_check=True)
    feeds = onnx_models.FEEDS["chain"][0]
    found = passlib.load(tmp_path / "new.onnx").run(feeds)["c"]
    np.testing.assert_array_equal(found.asnumpy(), source.run(feeds)["y"].asnumpy())


def test_names_stay_after_a_pass(tmp_path: Path) -> None:
    passlib.library.load_standard()
    source = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "m.onnx"))
    model = source.rename({"x": "image", "y": "probabilities"}).optimize_for("removeDeadNodes")
    assert (model.inputs, model.outputs) == (["image"], ["probabilities", "z"])


def test_nodes_that_no_output_needs_stay(tmp_path: Path) -> None:
    text = onnx_models.CHAIN.replace("z = Mul(a, d)", "z = Mul(a, d)\n dead = Relu(a)")
    source = passlib.load(onnx_models.save(text, tmp_path / "m.onnx"))
    assert len(source.rename({"x": "image"}).symbol.graph) == len(source.symbol.graph)


@pytest.mark.parametrize(
    ("file", "names", "inputs", "outputs"),
    [
        ("dlprim/onnx2dp_lenet", {"data": "image", "prob": "p"}, ["image"], ["p"]),
        (
            "ark/gen_head-attention.full.json",
            {"tensor_1": "mask", "add_1": "sum"},
            ["tensor", "mask", "tensor_2", "w0", "w1", "w2", "w3"],
            ["sum"],
        ),
    ],
)
def test_other_dialects(
    file: str, names: dict[str, str], inputs: list[str], outputs: list[str], tmp_path: Path
) -> None:
    model = passlib.load(DATA / file).rename(names)
    again = passlib.load(model.save(tmp_path / "m.json")[0])
    for found in (model, again):
        assert (found.inputs, found.outputs) == (inputs, outputs)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({"date": "x"}, GraphError, "no input, weight, node or output 'date'; did you mean 'data'"),
        ({"fc_output": "y"}, GraphError, "'fc_output' has its name from .*rename the node 'fc'"),
        ({"data": "fc_bias"}, GraphError, "'data' cannot be renamed to 'fc_bias': .* taken"),
        ({"fc_bias": "b", "fc_weight": "b"}, GraphError, "renamed to 'b': that name is taken"),
        ({"data": ""}, TypeError, "names has 'data': ''"),
        ({"data": 3}, TypeError, "names has 'data': 3"),
        ({"data": "\ud800"}, TypeError, "names has 'data'"),
        (["data"], TypeError, "names is of type list, but must be a dictionary"),
        (None, TypeError, "names is None, but must be a dictionary"),
    ],
)
def test_what_cannot_be_renamed(
    names: dict[str, str], error: type[Exception], message: str, small: Model
) -> None:
    with pytest.raises(error, match=message):
        small.rename(names)


@pytest.mark.parametrize("names", [{"y": "z"}, {"y": "x"}, {"y": "w"}])
def test_outputs_do_not_take_names_of_others(names: dict[str, str], tmp_path: Path) -> None:
    source = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "m.onnx"))
    with pytest.raises(GraphError, match="that name is taken"):
        source.rename(names)
