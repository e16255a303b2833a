"""Verify names what a pass made wrong as soon as it appears, in models of every dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib as pl
from nnvm_files import load as load_nnvm
from nnvm_files import text_of
from passlib.errors import PassResultError
from passlib.passes import Pipeline, PipelineError, Verify
from places import DATA
from planted_faults import block_model

NNVM = {
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "relu", "name": "r", "inputs": [[0, 0, 0]]},
        {"op": "block_grad", "name": "y", "inputs": [[1, 0, 0]]},
    ],
    "arg_nodes": [0],
    "node_row_ptr": [0, 1, 2, 3],
    "heads": [[2, 0, 0]],
}


def nnvm_model(folder: Path) -> pl.Model:
    path = folder / "model.json"
    path.write_bytes(text_of(NNVM))
    return load_nnvm(path)


MODELS: dict[str, tuple[Callable[[Path], pl.Model], str, str]] = {
    "onnx": (lambda folder: block_model(folder / "model.onnx", 1), "relu0", "w0"),
    "mxnet": (
        lambda folder: pl.load(DATA / "mxnet" / "models" / "resnet_v1_small"),
        "resnetv10_relu0_fwd",
        "resnetv10_conv0_weight",
    ),
    "dlprim": (lambda folder: pl.load(DATA / "dlprim" / "onnxcpp_resblock.json"), "rl1", "w1"),
    "nnvm": (nnvm_model, "r", ""),
    "ark": (lambda folder: pl.load(DATA / "ark" / "gen_seed-mlp_softmax.full.json"), "gelu", ""),
}
"""The loader of a model, one of its nodes with an input, and one of its weights with four axes."""


def misspell(graph: pl.Graph, node: Any, weight: str) -> None:
    node.op = "Misspelled"


def lose_inputs(graph: pl.Graph, node: Any, weight: str) -> None:
    graph.set_inputs(node, [])


def reshape(graph: pl.Graph, node: Any, weight: str) -> None:
    graph.args[weight] = np.zeros((1, 2, 3, 3), np.float32)


def named(node: str, weight: str) -> Iterator[tuple[Callable[..., None], list[str]]]:
    """Iterate over the faults, each with the words that its message must have."""
    yield misspell, [node, "Misspelled"]
    yield lose_inputs, [node]
    if weight:
        yield reshape, [weight, "(1, 2, 3, 3)"]


# ARK names the place in the file.
CASES = [
    (dialect, change, [word for word in words if word != "gelu"])
    for dialect, (_, node, weight) in MODELS.items()
    for change, words in named(node, weight)
]


@pytest.mark.parametrize(
    ("dialect", "change", "words"), CASES, ids=[f"{d}-{c.__name__}" for d, c, _ in CASES]
)
def test_faults_are_named(
    dialect: str, change: Callable[..., None], words: list[str], tmp_path: Path
) -> None:
    make, name, weight = MODELS[dialect]
    model = make(tmp_path)
    pl.library.load_standard()

    @pl.graph_pass(name="verified_fault", replace=True)
    def fault(graph: pl.Graph) -> None:
        """Makes one thing wrong."""
        change(graph, graph.find(name), weight)

    with pytest.raises((PipelineError, PassResultError)) as caught:
        Pipeline("removeDeadNodes, verified_fault").run(model, [Verify()])
    text = str(caught.value)
    assert all(word in text for word in ["verified_fault", *words]), text


@pytest.mark.parametrize("dialect", MODELS)
def test_right_passes_are_sound(dialect: str, tmp_path: Path) -> None:
    pl.library.load_standard()
    model = MODELS[dialect][0](tmp_path)
    assert Pipeline("simplify").run(model, [Verify()]).steps


def test_what_was_wrong_before_is_no_fault_of_a_pass(tmp_path: Path) -> None:
    """An operator that is not known, in the first model, and a weight that is no longer read."""
    model = MODELS["mxnet"][0](tmp_path)

    @pl.graph_pass(name="verified_first", replace=True)
    def first(graph: pl.Graph) -> None:
        """Makes an operator of another library."""
        graph.find("resnetv10_relu0_fwd").op = "of_another_library"

    @pl.graph_pass(name="verified_second", replace=True)
    def second(graph: pl.Graph) -> None:
        """Takes the last layer out."""
        node = graph.find("resnetv10_dense0_fwd")
        graph.replace(node.outputs[0], node.inputs[0])
        graph.remove(node)

    model = model.optimize_for("verified_first")
    assert Pipeline("verified_second").run(model, [Verify()]).modified
