"""Networks of DLPrimitives written back after passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passlib
from dlprim_files import (
    NETWORKS,
    by_name,
    load,
    network,
    operator,
    relu,
    same_results,
    saved,
    with_weights,
)
from passlib.errors import GraphError, UnsupportedError
from passlib.library import Library
from passlib.model import Model

pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.usefixtures("passes", "handover")


@pytest.fixture
def passes(load_plugin: Callable[[str], Library]) -> None:
    load_plugin("dlprim")
    load_plugin("edits")


def small_net(folder: Path) -> Model:
    layers = [
        operator("c1", "Convolution2D", channels_out=4, kernel=3, pad=1, bias=False),
        operator("b1", "BatchNorm", "c1", "b1"),
        relu("r1", "b1"),
        operator("c2", "Convolution2D", "b1", "c2", channels_out=4, kernel=1),
        operator("b2", "BatchNorm", "c2", "c2", eps=1e-3),
        operator("e", "Elementwise", ["c2", "b1"], "e", activation="relu"),
        operator("g", "GlobalPooling", "e", mode="avg"),
        operator("prob", "InnerProduct", "g", outputs=3),
    ]
    return with_weights(load(folder, network(*layers)))


def test_fold_batch_norm(tmp_path: Path) -> None:
    model = small_net(tmp_path)
    after, description = saved(model.optimize_for("dlprimFold"), tmp_path)
    same_results(model, after)
    layers = by_name(description)
    assert list(layers) == ["c1", "r1", "c2", "e", "g", "prob"]
    assert layers["c1"]["options"] == {
        "channels_out": 4,
        "kernel": 3,
        "pad": 1,
        "bias": True,
    }
    assert layers["c1"]["params"] == ["b1_weight", "b1_bias"]
    assert layers["c2"]["params"] == ["b2_weight", "b2_bias"]
    assert "params" not in layers["prob"]
    # The tensor that the ReLU overwrote is gone, so its output has a name of its own.
    assert layers["r1"]["inputs"] == ["c1"]
    assert layers["r1"]["outputs"] == ["b1"]
    assert sorted({**after.args, **after.aux}) == [
        "b1_bias", "b1_weight", "b2_bias", "b2_weight", "prob.0", "prob.1",
    ]  # fmt: skip


def test_renaming_materialises_parameters(tmp_path: Path) -> None:
    model = small_net(tmp_path)
    renamed = model.optimize_for("renameOperators", prefix="x_")
    after, description = saved(renamed, tmp_path)
    same_results(model, after)
    layers = by_name(description)
    assert layers["x_c2"]["params"] == ["c2.0", "c2.1"]
    assert layers["x_b1"]["params"] == ["b1.0", "b1.1", "b1.2", "b1.3"]
    assert "params" not in layers["x_g"]
    assert layers["x_c2"]["outputs"] == ["c2"]
    assert {**after.args}.keys() == {**model.args}.keys()


@pytest.mark.parametrize("op", ["Activation", "Hardtanh", "Abs"])
def test_appended_operators_take_the_names_of_outputs(tmp_path: Path, op: str) -> None:
    model = small_net(tmp_path)
    options = {"key": "activation", "value": "tanh"} if op == "Activation" else {}
    changed = model.optimize_for("dlprimAppend", op=op, **options)
    assert changed.outputs == ["prob"]
    after, description = saved(changed, tmp_path)
    same_results(changed, after)
    assert description["outputs"] == ["prob"]
    last = description["operators"][-1]
    assert (last["name"], last["type"], last["outputs"]) == ("appended0", op, ["prob"])
    assert last["inputs"] == description["operators"][-2]["outputs"] == ["prob_1"]


def test_appended_behind_an_in_place_chain(tmp_path: Path) -> None:
    layers = [operator("t", "Abs"), relu("r", "t"), operator("h", "Hardtanh", "t", "t")]
    model = load(tmp_path, network(*layers, outputs=[{"name": "t", "loss_weight": 2}]))
    changed = model.optimize_for("dlprimAppend", op="Threshold", key="threshold", value="0.5")
    after, description = saved(changed, tmp_path)
    same_results(changed, after)
    assert description["outputs"] == [{"name": "t", "loss_weight": 2}]
    assert [layer["outputs"][0] for layer in description["operators"]] == ["t_1"] * 3 + ["t"]
    assert description["operators"][-1]["options"] == {"threshold": 0.5}


def test_loss_stays_a_loss(tmp_path: Path) -> None:
    layers = [operator("m", "Elementwise", ["data", "data"]), operator("loss", "Abs", "m")]
    model = load(tmp_path, network(*layers))
    changed = model.optimize_for("removeOperator", op="Abs")
    after, description = saved(changed, tmp_path)
    assert after.outputs == ["loss"]
    assert description["outputs"] == ["loss"]
    assert by_name(description)["m"]["outputs"] == ["loss"]


def test_output_becomes_an_input(tmp_path: Path) -> None:
    model = load(tmp_path, network(operator("y", "Abs"), outputs=["y", "data"]))
    changed = model.optimize_for("removeOperator", op="Abs")
    after, description = saved(changed, tmp_path)
    same_results(changed, after)
    assert description["outputs"] == ["y", "data"]
    (copy,) = description["operators"]
    assert (copy["type"], copy["inputs"], copy["outputs"]) == ("Activation", ["data"], ["y"])
    assert "options" not in copy


def test_merged_outputs_keep_both_names(tmp_path: Path) -> None:
    layers = [operator("a", "Abs"), operator("b", "Abs"), operator("s", "Elementwise", ["a", "b"])]
    model = load(tmp_path, network(*layers, outputs=["a", "b", "s"]))
    changed = model.optimize_for("dlprimMerge")
    after, description = saved(changed, tmp_path)
    same_results(model, after)
    assert description["outputs"] == ["a", "b", "s"]
    layers = by_name(description)
    assert layers["s"]["inputs"] == ["a", "a"]
    assert layers["b"] == {
        "name": "b", "type": "Activation", "inputs": ["a"], "outputs": ["b"],
    }  # fmt: skip


def test_constants_become_parameter_operators(tmp_path: Path) -> None:
    model = small_net(tmp_path)
    changed = model.optimize_for("dlprimShift", op="GlobalPooling")
    after, description = saved(changed, tmp_path)
    same_results(changed, after)
    layers = by_name(description)
    assert list(layers)[-4:] == ["g_shift", "g_sum", "g", "prob"]
    assert layers["g_shift"] == {
        "name": "g_shift",
        "type": "Parameter",
        "inputs": [],
        "outputs": ["g_shift"],
        "options": {"shape": [1]},
        "params": ["g_shift"],
    }


def test_swept_inputs_and_operators(tmp_path: Path) -> None:
    inputs = [{"name": "data", "shape": [2]}, {"name": "unused", "shape": [3]}]
    layers = [operator("a", "Abs"), operator("b", "Abs", "a"), operator("c", "Abs", "a")]
    model = load(tmp_path, network(*layers, inputs=inputs))
    _, description = saved(model.optimize_for("dlprimSweep"), tmp_path)
    assert description["inputs"] == inputs[:1]
    assert list(by_name(description)) == ["a", "c"]


def test_untouched_parts_keep_their_spelling(tmp_path: Path) -> None:
    text = """{
  "inputs" : [ {"shape":[ 2,3 ]} ],
  "operators": [
    {"type": "Abs", "name": "a", "inputs": ["data"], "outputs": ["a"], "note": 1.50},
    {"name": "h", "type": "Hardtanh", "inputs": ["a"],  "outputs": ["h"],
     "options": {"min_val": 0.10, "max_val": 1e0, "odd": [1, {}]}}
  ],
  "outputs": ["h"], "more": {"x": 1.0e1}
}
"""
    model = load(tmp_path, text)
    changed = model.optimize_for("dlprimSet", name="h", key="max_val", value="2.50")
    changed.save(tmp_path / "saved.json")
    written = (tmp_path / "saved.json").read_text()
    assert '"inputs": [ {"shape":[ 2,3 ]} ]' in written
    assert '"note": 1.50}' in written
    assert '"min_val": 0.10' in written
    assert '"max_val": 2.50' in written
    assert '"odd": [1, {}]' in written
    assert '"more": {"x": 1.0e1}' in written
    assert written.startswith("{\n")
    assert written.endswith("}\n")


SETTINGS: list[tuple[str, dict[str, str], str, Any]] = [
    ("bias", {"value": "False"}, "bias", False),
    ("bias", {"value": "0"}, "bias", False),
    ("kernel", {"value": "(1, 1)"}, "kernel", [1, 1]),
    ("kernel", {"value": "1"}, "kernel", 1),
    ("activation", {"value": "tanh"}, "activation", "tanh"),
    ("pad", {}, "pad", None),
    ("note", {"value": "[1, 2]"}, "note", [1, 2]),
    ("note", {"value": "some text"}, "note", "some text"),
    ("note", {"value": "NaN"}, "note", "NaN"),
    ("note", {"value": "[1e3]"}, "note", [1000.0]),
    ("note", {"value": "[" * 300 + "]" * 300}, "note", "[" * 300 + "]" * 300),
    ("__mine__", {"value": "3"}, "__mine__", None),
]


@pytest.mark.parametrize(("key", "value", "field", "wanted"), SETTINGS)
def test_options_that_a_pass_sets(
    tmp_path: Path, key: str, value: dict[str, str], field: str, wanted: Any
) -> None:
    layer = operator("c", "Convolution2D", channels_out=2, kernel=[1, 1], pad=0, bias="no")
    model = load(tmp_path, network(layer))
    changed = model.optimize_for("dlprimSet", name="c", key=key, **value)
    if wanted is False:
        with pytest.raises(GraphError, match="needs 1 inputs that are parameters, has 2"):
            changed.save(tmp_path / "saved")
        return
    _, description = saved(changed, tmp_path)
    options = by_name(description)["c"]["options"]
    assert options.get(field) == wanted
    assert options["bias"] == "no"


def test_frozen(tmp_path: Path) -> None:
    model = small_net(tmp_path)
    changed = model.optimize_for("dlprimSet", name="c1", key="__frozen__", value="true")
    after, description = saved(changed, tmp_path)
    assert by_name(description)["c1"]["frozen"] is True
    back = after.optimize_for("dlprimSet", name="c1", key="__frozen__")
    _, description = saved(back, tmp_path)
    assert by_name(description)["c1"]["frozen"] is False


def test_shape_of_an_input(tmp_path: Path) -> None:
    model = small_net(tmp_path)
    changed = model.optimize_for("dlprimSet", name="data", key="__shape__", value="(7, 3, 5, 5)")
    _, description = saved(changed, tmp_path)
    assert description["inputs"] == [{"name": "data", "shape": [7, 3, 5, 5]}]


REFUSED: list[tuple[dict[str, str], type[Exception], str]] = [
    ({"key": "kernel", "value": "x"}, UnsupportedError, r"node 'c1' \(Convolution2D\).*'kernel'"),
    ({"key": "channels_out"}, UnsupportedError, "'channels_out' is required, but missing"),
    ({"key": "channels_out", "value": "9"}, GraphError, "'c1.0' must be float32 .* but is float32"),
    ({"key": "activation", "value": "gelu"}, UnsupportedError, "must be one of identity"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_what_no_file_can_hold(
    tmp_path: Path, options: dict[str, str], error: type[Exception], message: str
) -> None:
    model = small_net(tmp_path)
    changed = model.optimize_for("dlprimSet", name="c1", **options)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(error, match=message):
        changed.save(tmp_path / "saved")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(("key", "value"), [("start_axis", "0"), ("dims", "[]")])
def test_axes_that_no_reduction_can_have(tmp_path: Path, key: str, value: str) -> None:
    model = load(tmp_path, network(operator("r", "Reduction", dims=[1], method="sum")))
    changed = model.optimize_for("dlprimSet", name="r", key=key, value=value)
    with pytest.raises(UnsupportedError, match=rf"node 'r' \(Reduction\): option '{key}'"):
        changed.save(tmp_path / "saved")


@pytest.mark.parametrize("value", ["1e39", "-inf", "nan"])
def test_numbers_that_no_float_can_hold(tmp_path: Path, value: str) -> None:
    model = load(tmp_path, network(operator("t", "Threshold")))
    changed = model.optimize_for("dlprimSet", name="t", key="threshold", value=value)
    with pytest.raises(UnsupportedError, match=rf"node 't' \(Threshold\).*'threshold' is {value}"):
        changed.save(tmp_path / "saved")


def test_unknown_operators(tmp_path: Path) -> None:
    changed = small_net(tmp_path).optimize_for("dlprimAppend", op="Gelu")
    with pytest.raises(UnsupportedError, match=r"'appended0' \(Gelu\).*no operator 'Gelu'"):
        changed.save(tmp_path / "saved")


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_merging_and_sweeping_genuine_networks(path: Path, tmp_path: Path) -> None:
    """Merging equal operators and dropping dead ones changes no result."""
    model = passlib.load(path)
    changed = model.optimize_for("dlprimMerge").optimize_for("dlprimSweep")
    again = passlib.load(changed.save(tmp_path / "saved")[0])
    assert again.outputs == model.outputs
    if path.stat().st_size > 10_000 or path.parent.name == "repo":
        return  # too large to run with made-up weights
    same_results(with_weights(model), with_weights_of(model, again))


def with_weights_of(model: Model, other: Model) -> Model:
    """Return another model with the weights that `with_weights` returns for this one."""
    weights = with_weights(model)
    return Model(other.symbol, weights.args, weights.aux, "dlprim", template=other._template)


def test_view_that_must_be_written(tmp_path: Path) -> None:
    """The Flatten that shared its memory is gone, so its name needs a Reshape."""
    layers = [
        operator("x", "Abs"),
        operator("f", "Flatten", "x"),
        relu("r", "x"),
        operator("s", "Reduction", "f", start_axis=1),
    ]
    model = load(tmp_path, network(*layers, outputs=["s"]))
    names = [node.name for node in model.symbol.nodes()]
    assert names == ["data", "x", "f", "r", "f_view", "s"]
    model.save(tmp_path / "same.json")
    assert (tmp_path / "same.json").read_bytes() == (tmp_path / "net.json").read_bytes()
    changed = model.optimize_for("dlprimSweep")
    assert [node.name for node in changed.symbol.nodes()] == ["data", "x", "r", "f_view", "s"]
    after, description = saved(changed, tmp_path)
    same_results(changed, after)
    same_results(model, after)
    layers = by_name(description)
    assert layers["f_view"]["type"] == "Reshape"
    assert layers["f_view"]["options"] == {"dims": [2, 48]}
