"""``bisect`` and ``reduce`` find planted faults without help."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
from onnx_models import NESTED, save
from passlib.workbench import (
    Differs,
    Guilty,
    NothingFailsError,
    PipelineFails,
    bisect,
    drawn,
    reduce,
)
from places import DATA
from planted_faults import FAULTS, RAISING, RANDOM, block_model, plant

MODELS = DATA / "mxnet" / "models"
SHAPES = {"data": (1, 3, 224, 224)}


@pytest.fixture(autouse=True, scope="module")
def standard_passes() -> None:
    pl.library.load_standard()


def named(found: Guilty) -> set[str]:
    """Return everything that the guilty rewrites name."""
    return {text for each in found.rewrites for text in (*each.removed, *each.added, *each.changed)}


def most_runs(found: Guilty) -> float:
    return 2 * math.log2(max(found.number_of_rewrites, 1)) + 10


@pytest.mark.sample(6)
@pytest.mark.parametrize("blocks", [1, 30])
@pytest.mark.parametrize("fault", FAULTS)
def test_bisect_names_the_rewrite(fault: str, blocks: int, tmp_path: Path) -> None:
    plantation, guilty = FAULTS[fault]
    model = block_model(tmp_path / "model.onnx", blocks)
    step = plant(fault, plantation)
    pipeline = pl.Pipeline(["removeDeadNodes", step, "mergeEqualNodes"])
    found = bisect(model, pipeline, Differs(model))
    assert found.step == step
    assert found.number == 2
    assert guilty in named(found)
    assert len(found.rewrites) == 1
    assert found.runs <= most_runs(found)
    # Beside it there is a rewrite for each block, unless the fault touches one of these.
    assert found.number_of_rewrites >= blocks
    assert found.model is not None
    assert guilty in str(found)
    if blocks > 1:
        names = {node.name for node in found.model.symbol.nodes()}
        assert "relu20" in names, "a right rewrite was applied as well"


@pytest.mark.sample(0)
def test_bisect_among_200_rewrites(tmp_path: Path) -> None:
    model = block_model(tmp_path / "model.onnx", 200)
    step = plant("swapped_of_200", FAULTS["swapped_inputs"][0])
    found = bisect(model, pl.Pipeline([step]), Differs(model))
    assert FAULTS["swapped_inputs"][1] in named(found)
    assert found.number_of_rewrites >= 200
    assert found.runs <= most_runs(found)


@pytest.mark.sample(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_reduce_leaves_few_nodes(fault: str, tmp_path: Path) -> None:
    model = block_model(tmp_path / "model.onnx", 20)
    pipeline = pl.Pipeline([plant(fault, FAULTS[fault][0])])
    inputs = drawn(model, None, 1)[0]
    failing = PipelineFails(pipeline, model, inputs)
    found = reduce(model, failing, inputs)
    assert found.nodes <= 5
    assert found.nodes_before == 85
    files = found.model.save(tmp_path / "small.onnx")
    onnx.checker.check_model(files[0], full_check=True)
    assert failing(pl.load(files[0]), found.inputs)


def test_a_pass_that_raises(tmp_path: Path) -> None:
    model = block_model(tmp_path / "model.onnx", 5)
    step = plant("raising", RAISING)
    pipeline = pl.Pipeline(["removeDeadNodes", step])
    found = bisect(model, pipeline, Differs(model))
    assert (found.step, found.number, found.rewrites) == (step, 2, ())
    assert "ZeroDivisionError" in str(found)
    inputs = drawn(model, None, 1)[0]
    small = reduce(model, PipelineFails(pipeline, model, inputs), inputs)
    assert [n.name for n in small.model.symbol.nodes() if not n.is_variable] == ["subtract"]


def test_merged_random_numbers(tmp_path: Path) -> None:
    model = pl.load(save(RANDOM, tmp_path / "random.onnx"))

    @pl.graph_pass(replace=True)
    def merge_random(graph: pl.Graph) -> None:
        """Merges equal nodes, those that draw random numbers too."""
        first, second = (node for node in graph.sorted() if node.op == "RandomUniform")
        graph.replace(second.outputs[0], first.outputs[0])
        graph.remove(second)

    def failing(candidate: pl.Model) -> bool:
        return not np.any(candidate.run({})["y"].asnumpy())

    step = plant("right", None)
    found = bisect(model, pl.Pipeline([step, merge_random]), failing)
    assert found.step == "merge_random"
    assert len(found.rewrites) == 1
    assert "RandomUniform_1 (RandomUniform)" in found.rewrites[0].removed


def test_a_renamed_output(tmp_path: Path) -> None:
    model = pl.load(MODELS / "resnet_v1_small")

    def rename(graph: pl.Graph) -> None:
        graph.outputs[0].node.name = "another"

    shapes = dict(np.load(MODELS / "resnet_v1_small-io.npz"))
    inputs = {name: shapes[name] for name in model.inputs if name in shapes}
    step = plant("rename", rename, "Activation")
    found = bisect(model, pl.Pipeline([step]), Differs(model, inputs or None, None, SHAPES))
    assert any(text.startswith("another ") for text in named(found))
    assert found.runs <= most_runs(found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["squeezenet1.1", "mobilenet0.25"])
def test_networks_of_mxnet(name: str) -> None:
    model = pl.load(MODELS / name)
    weight = [key for key in model.args if key.endswith("weight")][7]

    def zero(graph: pl.Graph) -> None:
        graph.args[weight] = np.zeros_like(graph.args[weight])

    step = plant(f"zero_{name}", zero, "Activation")
    failing = Differs(model, None, None, SHAPES)
    found = bisect(model, pl.Pipeline([step]), failing)
    assert f"weight {weight}" in named(found)
    assert found.number_of_rewrites > 20
    assert found.runs <= most_runs(found)
    inputs = failing.inputs[0]
    small = reduce(model, PipelineFails(pl.Pipeline([step]), model, inputs), inputs)
    assert small.nodes <= 5


def test_a_nested_graph(tmp_path: Path) -> None:
    model = pl.load(save(NESTED, tmp_path / "nested.onnx"))

    def swap(graph: pl.Graph) -> None:
        for node in graph.sorted():
            for nested in node.subgraphs:
                for inner in nested.sorted():
                    if inner.op == "Sub":
                        nested.set_inputs(inner, list(reversed(inner.inputs)))

    step = plant("nested", swap, "Add")
    inputs = {"x": np.ones((2, 4), np.float32), "c": np.array(False)}
    found = bisect(model, pl.Pipeline([step]), Differs(model, inputs))
    (rewrite,) = found.rewrites
    assert rewrite.place == "else_branch of y (If)"
    assert len(rewrite.changed) == 2
    assert all("(Sub): input" in text for text in rewrite.changed)
    small = reduce(model, PipelineFails(pl.Pipeline([step]), model, inputs), inputs)
    # If, and a node in each branch.
    assert (small.nodes_before, small.nodes) == (8, 3)


class TestNothingFails:
    def test_a_right_pipeline(self, tmp_path: Path) -> None:
        model = block_model(tmp_path / "model.onnx", 2)
        pipeline = pl.Pipeline([plant("nothing", None)])
        inputs = drawn(model, None, 1)[0]
        with pytest.raises(NothingFailsError, match="the pipeline's result is correct"):
            bisect(model, pipeline, Differs(model))
        with pytest.raises(NothingFailsError, match="does not show the fault"):
            reduce(model, PipelineFails(pipeline, model, inputs), inputs)

    def test_a_model_that_is_wrong_itself(self, tmp_path: Path) -> None:
        model = block_model(tmp_path / "model.onnx", 2)
        with pytest.raises(NothingFailsError, match="broken before any pass"):
            bisect(model, pl.Pipeline([plant("always", None)]), lambda candidate: True)


def test_two_rewrites_that_are_wrong_together(tmp_path: Path) -> None:
    model = block_model(tmp_path / "model.onnx", 6)
    step = plant("pair", None)

    def failing(candidate: pl.Model) -> bool:
        names = {node.name for node in candidate.symbol.nodes()}
        return {"relu1_new", "relu4_new"} <= names

    found = bisect(model, pl.Pipeline([step]), failing)
    assert {text for each in found.rewrites for text in each.added} == {
        "relu1_new (LeakyRelu)",
        "relu4_new (LeakyRelu)",
    }


def test_candidates_are_sound(tmp_path: Path) -> None:
    """Every candidate of a reduction can be saved, and the checker accepts it."""
    model = block_model(tmp_path / "model.onnx", 6)
    pipeline = pl.Pipeline([plant("sound", FAULTS["dropped_add"][0])])
    inputs = drawn(model, None, 1)[0]
    right = PipelineFails(pipeline, model, inputs)

    def failing(candidate: pl.Model, recorded: Mapping[str, Any]) -> bool:
        onnx.checker.check_model(candidate.save(tmp_path / "candidate.onnx")[0], full_check=True)
        return right(candidate, recorded)

    assert reduce(model, failing, inputs).nodes <= 5


def test_a_reduction_keeps_to_the_fault_that_it_began_with() -> None:
    """The pass renames outputs of parts of the model, which is not what is looked for."""
    model = pl.load(MODELS / "squeezenet1.1")

    def average(graph: pl.Graph) -> None:
        node = graph.find("squeezenet0_pool2_fwd")
        if node is not None:
            node.attrs["pool_type"] = "avg"

    pipeline = pl.Pipeline([plant("average", average, "Activation")])
    inputs = drawn(model, None, 1, SHAPES)[0]
    failing = PipelineFails(pipeline, model, inputs)
    assert failing.what == "numbers"
    small = reduce(model, failing, inputs).model
    assert [n.op for n in small.symbol.nodes() if not n.is_variable] == ["Pooling"]


def test_a_model_without_inputs_to_run_on_is_cut_by_inferred_types(tmp_path: Path) -> None:
    model = block_model(tmp_path / "model.onnx", 6)

    def failing(candidate: pl.Model, recorded: Mapping[str, Any]) -> bool:
        assert recorded == {}
        onnx.checker.check_model(candidate.save(tmp_path / "candidate.onnx")[0], full_check=True)
        return any(node.op == "Sub" for node in candidate.symbol.nodes())

    found = reduce(model, failing, {})
    assert found.nodes == 1
    assert [tuple(found.model.inputs)] == [("product_value",)]
