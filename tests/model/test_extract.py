"""Parts of models, under the names asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onnx_models
import passlib
from dlprim_files import random_inputs
from passlib import sym
from passlib.errors import GraphError
from passlib.model import Model
from places import DATA
from recorded_models import MODELS, recorded

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra run")


def onnx_model(text: str, folder: Path) -> Model:
    return passlib.load(onnx_models.save(text, folder / "m.onnx"))


def computed(model: Model, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = model.run({name: feeds[name] for name in model.inputs})
    return {name: array.asnumpy() for name, array in found.items()}


def squeezenet(folder: Path) -> tuple[Model, dict[str, np.ndarray], str]:
    return (
        passlib.load(MODELS / "squeezenet1.1"),
        recorded("squeezenet1.1")[0],
        "squeezenet0_conv13_fwd_output",
    )


def lenet(folder: Path) -> tuple[Model, dict[str, np.ndarray], str]:
    model = passlib.load(DATA / "dlprim" / "onnx2dp_lenet")
    return model, random_inputs(model), "f"


def chain(folder: Path) -> tuple[Model, dict[str, np.ndarray], str]:
    return onnx_model(onnx_models.CHAIN, folder), onnx_models.FEEDS["chain"][0], "d"


def nested(folder: Path) -> tuple[Model, dict[str, np.ndarray], str]:
    """The values before the cut are captured by nested graphs, two levels deep."""
    model = onnx_model(onnx_models.NESTED, folder)
    return model, onnx_models.FEEDS["nested"][0], "b"


MADE: tuple[Callable[[Path], tuple[Model, dict[str, np.ndarray], str]], ...] = (
    squeezenet,
    lenet,
    chain,
    nested,
)


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("saved", [False, True])
def test_two_parts_compute_what_the_whole_does(
    make: Callable[[Path], tuple[Model, dict[str, np.ndarray], str]], saved: bool, tmp_path: Path
) -> None:
    model, feeds, middle = make(tmp_path)
    others = others_beside(model)
    first = model.extract(outputs=[middle, *others])
    second = model.extract(inputs=[middle, *others, *(["c"] if "c" in model.inputs else [])])
    if saved:
        paths = [part.save(tmp_path / f"part{n}")[0] for n, part in enumerate((first, second))]
        first, second = map(passlib.load, paths)
    assert first.outputs == [middle, *others]
    assert middle in second.inputs
    assert second.outputs == model.outputs
    assert first.args.keys() <= model.args.keys()
    halfway = computed(first, feeds)
    expected = computed(model, feeds)
    for name, array in computed(second, {**feeds, **halfway}).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


def others_beside(model: Model) -> list[str]:
    """Return the other values computed before the cut that the outputs above need."""
    return ["a"] if model.dialect == "onnx" else []


def test_each_value_of_an_onnx_model_keeps_its_name(tmp_path: Path) -> None:
    model = onnx_model(onnx_models.CHAIN, tmp_path)
    for name in ("a", "b", "c", "d", "y", "z"):
        assert model.extract(outputs=name).outputs == [name]
        assert model.symbol.get_internals()[name].list_outputs() == [name]
    assert model.extract(outputs=["z", "b"]).outputs == ["z", "b"]


def test_new_inputs_have_types(tmp_path: Path) -> None:
    model = onnx_model(onnx_models.CHAIN, tmp_path).extract(inputs="c", outputs="d")
    assert repr(model).startswith("<Model onnx: inputs c float32 (?, 4); outputs d; ")
    model.save(tmp_path / "part.onnx")
    onnx.checker.check_model(tmp_path / "part.onnx", full_check=True)
    (value,) = onnx.load(tmp_path / "part.onnx").graph.input
    assert (value.name, value.type.tensor_type.elem_type) == ("c", onnx.TensorProto.FLOAT)


def test_an_inner_value_can_be_input_and_output(tmp_path: Path) -> None:
    text = f"{onnx_models.HEAD}(float[3] x) => (float[3] y) {{ a = Neg(x) y = Exp(a) }}"
    whole = passlib.load(onnx_models.save(text, tmp_path / "whole.onnx"))
    part = whole.extract(inputs=["a"], outputs=["a", "y"])
    part.save(tmp_path / "part.onnx")
    found = passlib.load(tmp_path / "part.onnx").run({"a": np.zeros(3, np.float32)})
    assert [found[name].tolist() for name in ("a", "y")] == [[0, 0, 0], [1, 1, 1]]


def test_weights_that_are_not_needed_are_gone(tmp_path: Path) -> None:
    model = onnx_model(onnx_models.CHAIN, tmp_path)
    assert dict(model.extract(outputs="a").args) == {}
    assert list(model.extract(outputs="b").args) == ["w"]
    assert list(model.args) == ["w", "shape"]


def test_an_ark_model_is_split(tmp_path: Path) -> None:
    model = passlib.load(DATA / "ark" / "gen_head-attention.full.json")
    part = model.extract(outputs=["matmul_3"])
    again = passlib.load(part.save(tmp_path / "part.json")[0])
    assert again.outputs == ["matmul_3"]
    assert sorted(again.inputs) == ["tensor", "tensor_1", "w0", "w1"]


def test_outputs_of_one_node_are_told_apart() -> None:
    split = sym.split(sym.var("x"), num_outputs=2, name="s")
    model = Model(sym.Group([split[1] + 1, split[0] * 2]))
    part = model.extract(inputs=["s_output1"], outputs=[model.outputs[0]])
    assert part.inputs == ["s_output1"]
    assert part(np.ones((2, 2), np.float32)).asnumpy().tolist() == [[2, 2], [2, 2]]
    both = model.extract(inputs=["s_output1", "x"])
    assert sorted(both.inputs) == ["s_output1", "x"]


def test_a_part_without_changes_is_the_whole(small: Model) -> None:
    part = small.extract(inputs="data")
    assert part.symbol.graph.equals(small.symbol.graph)
    assert part.args["fc_weight"] is small.args["fc_weight"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "error", "message"),
    [
        (None, ["fc_outptu"], GraphError, "outputs: .* no value 'fc_outptu'; did you mean 'fc_out"),
        (["zzz"], None, GraphError, "inputs: .* no value 'zzz'; its values are data, fc_weight"),
        ([], None, GraphError, "inputs lacks 'data', which the outputs also need; it has none"),
        (None, [], GraphError, "outputs is empty"),
        (None, [3], TypeError, "outputs has 3, but must be names"),
        (3, None, TypeError, "inputs is 3, but must be a sequence of names"),
        (None, {"fc_output": "y"}, TypeError, "outputs is .*, but must be a sequence of names"),
        (None, {"fc_output"}, TypeError, "outputs is .*, but must be a sequence of names"),
    ],
)
def test_what_cannot_be_extracted(
    inputs: list[str] | None,
    outputs: list[str] | None,
    error: type[Exception],
    message: str,
    small: Model,
) -> None:
    with pytest.raises(error, match=message):
        small.extract(inputs, outputs)


@pytest.mark.parametrize("name", ["e", "t2"])
def test_a_value_inside_a_nested_graph_is_named_as_such(name: str, tmp_path: Path) -> None:
    model = onnx_model(onnx_models.NESTED, tmp_path)
    message = rf"{name!r} is inside a nested graph of node 'If_2' \(If\)"
    with pytest.raises(GraphError, match=message):
        model.extract(outputs=name)


def test_a_chain_of_any_length_is_cut() -> None:
    graph = sym.var("x")
    for number in range(20_000):
        graph = sym.relu(graph, name=f"r{number}")
    part = Model(graph).extract(inputs="r9999_output", outputs="r10001_output")
    assert len(part.symbol.graph) == 3


@passlib.graph_pass
def leave_as_it_is(graph: passlib.Graph) -> None:
    """Change nothing."""


@pytest.mark.parametrize("name", ["leave_as_it_is", "removeDeadNodes"])
def test_models_that_passes_made_give_parts_and_keep_their_weights(name: str) -> None:
    passlib.library.load_standard()
    first = sym.broadcast_add(sym.var("x"), sym.var("w1"), name="first")
    last = sym.broadcast_mul(first, sym.var("w2"), name="last")
    weights = {key: np.ones(2, np.float32) for key in ("w1", "w2")}
    made = Model(last, weights).optimize_for(name, skip_infer=True)
    assert list(made.extract(outputs=["first_output"]).args) == ["w1"]
    assert list(made.args) == ["w1", "w2"]
