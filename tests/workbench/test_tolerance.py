"""The tolerance of comparisons tells rounding and faults apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib as pl
from commands import passlib_command
from passlib.workbench import Comparison, Tolerance, compare
from passlib.workbench.numbers import difference

GENERATOR = np.random.default_rng(3)
WEIGHTS = {
    "w": GENERATOR.standard_normal((64, 64)).astype(np.float32),
    "b": GENERATOR.standard_normal(64).astype(np.float32),
    "kernel": GENERATOR.standard_normal((8, 3, 3, 3)).astype(np.float32),
    "scale": GENERATOR.uniform(0.5, 2, 8).astype(np.float32),
    "bias": GENERATOR.standard_normal(8).astype(np.float32),
    "mean": GENERATOR.standard_normal(8).astype(np.float32),
    "var": GENERATOR.uniform(0.5, 2, 8).astype(np.float32),
    "causal": np.triu(np.full((16, 16), -1e9, np.float32), 1),
    "padding": np.where(np.arange(16) < 5, 0, -1e9).astype(np.float32),
    "column": np.where(np.arange(16) == 3, 1e6, 1).astype(np.float32),
    "large": np.float32(1e6),
    "large_again": np.float32(1e6),
    "two": np.float32(2),
}
WEIGHTS["wide"] = np.concatenate([WEIGHTS["w"]] * 8)
WEIGHTS["reversed"] = WEIGHTS["wide"][::-1].copy()
WEIGHTS["backwards"] = np.arange(511, -1, -1, dtype=np.int64)
FACTOR = WEIGHTS["scale"] / np.sqrt(WEIGHTS["var"] + 1e-5)
WEIGHTS["fused"] = WEIGHTS["kernel"] * FACTOR[:, None, None, None]
WEIGHTS["fused_bias"] = WEIGHTS["bias"] - WEIGHTS["mean"] * FACTOR
WEIGHTS["w_half"] = WEIGHTS["w"].astype(np.float16)
WEIGHTS["w_half_tail"], WEIGHTS["w_half_head"] = WEIGHTS["w_half"][32:], WEIGHTS["w_half"][:32]

Nodes = list[onnx.NodeProto]
ROW, IMAGE = [4, 64], [2, 3, 9, 9]


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def load(folder: Path, nodes: Nodes, shape: list[int], kind: int = TensorProto.FLOAT) -> pl.Model:
    used = {name for each in nodes for name in each.input}
    weights = [numpy_helper.from_array(v, n) for n, v in WEIGHTS.items() if n in used]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / f"{len(list(folder.iterdir()))}.onnx"
    onnx.save(model, path)
    return pl.load(path)


def compared(
    folder: Path, before: Nodes, after: Nodes, shape: list[int], kind: int = TensorProto.FLOAT
) -> Comparison:
    return compare(load(folder, before, shape, kind), load(folder, after, shape, kind))


RIGHT: dict[str, tuple[list[int], Nodes, Nodes]] = {
    "a reversed sum": (
        [4, 512],
        [node("MatMul", "x wide", "y")],
        [node("Gather", "x backwards", "r", axis=1), node("MatMul", "r reversed", "y")],
    ),
    "a reversed sum of large values": (
        [4, 512],
        [node("Mul", "x large", "l"), node("MatMul", "l wide", "y")],
        [node("Gather", "x backwards", "r", axis=1), node("MatMul", "r reversed", "l"),
         node("Mul", "l large", "y")],
    ),
    "a convolution with its normalization": (
        IMAGE,
        [node("Conv", "x kernel", "c"),
         node("BatchNormalization", "c scale bias mean var", "y")],
        [node("Conv", "x fused fused_bias", "y")],
    ),
    "cancelled large values": (
        ROW,
        [node("Add", "x large", "l"), node("Sub", "l large_again", "y")],
        [node("Identity", "x", "y")],
    ),
    "a softmax over a mask": (
        [16, 16],
        [node("Add", "x causal", "m"), node("Softmax", "m", "y")],
        [node("Add", "causal x", "m"), node("LogSoftmax", "m", "l"), node("Exp", "l", "y")],
    ),
    "variance by moments": (
        ROW,
        [node("Add", "x b", "s"), node("ReduceMean", "s", "m", axes=[1]),
         node("Sub", "s m", "d"), node("Mul", "d d", "q"), node("ReduceMean", "q", "y", axes=[1])],
        [node("Add", "x b", "s"), node("Mul", "s s", "q"),
         node("ReduceMean", "q", "qm", axes=[1]), node("ReduceMean", "s", "m", axes=[1]),
         node("Mul", "m m", "mm"), node("Sub", "qm mm", "y")],
    ),
    "a sine of large values": (
        ROW,
        [node("Add", "b b", "c"), node("Mul", "x large", "l"), node("Add", "l c", "k"),
         node("Sin", "k", "y")],
        [node("Mul", "x large", "l"), node("Add", "l b", "k"), node("Add", "k b", "j"),
         node("Sin", "j", "y")],
    ),
    "a mask added later": (
        [16, 16],
        [node("Add", "x causal", "m"), node("Add", "m x", "y")],
        [node("Add", "x x", "m"), node("Add", "m causal", "y")],
    ),
}  # fmt: skip
WRONG: dict[str, tuple[list[int], Nodes, Nodes]] = {
    "a root of squares": (
        ROW,
        [
            node("Pow", "x two", "a"),
            node("Pow", "b two", "c"),
            node("Add", "a c", "d"),
            node("IsNaN", "d", "n"),
            node("Where", "n two d", "e"),
            node("Sqrt", "e", "f"),
            node("MatMul", "f w", "y"),
        ],
        [
            node("Pow", "x two", "a"),
            node("Pow", "b two", "c"),
            node("IsNaN", "a", "n"),
            node("Where", "n two a", "d"),
            node("Sqrt", "d", "e"),
            node("Sqrt", "c", "f"),
            node("Add", "e f", "g"),
            node("MatMul", "g w", "y"),
        ],
    ),
    "values beside a causal mask": (
        [4, 16, 16],
        [node("Add", "x causal", "y")],
        [node("Abs", "x", "a"), node("Add", "a causal", "y")],
    ),
    "values beside padding": (
        [16, 16],
        [node("Add", "x padding", "y")],
        [node("Neg", "x", "a"), node("Add", "a padding", "y")],
    ),
    "values beside a large column": (
        [8, 16],
        [node("Mul", "x column", "y")],
        [node("Mul", "x column", "m"), node("Clip", "m zeros_low", "y")],
    ),
    "one element of a large matrix": (
        [64, 64],
        [node("Add", "x w", "y")],
        [node("Add", "x w_one", "y")],
    ),
    "a small row among large ones": (
        [16, 16],
        [node("Mul", "x rows", "y")],
        [node("Mul", "x rows_wrong", "y")],
    ),
    "an epsilon": (
        ROW,
        [node("LayerNormalization", "x ones", "y", epsilon=0.1)],
        [node("LayerNormalization", "x ones", "y", epsilon=0.11)],
    ),
}  # fmt: skip
WEIGHTS["zeros_low"] = np.float32(-1e-3)
WEIGHTS["w_one"] = WEIGHTS["w"].copy()
WEIGHTS["w_one"][5, 7] += 0.01
WEIGHTS["rows"] = np.full((16, 1), 1e6, np.float32)
WEIGHTS["rows"][2] = 1e-2
WEIGHTS["rows_wrong"] = WEIGHTS["rows"].copy()
WEIGHTS["rows_wrong"][2] = 2e-2
WEIGHTS["ones"] = np.ones(64, np.float32)


@pytest.mark.parametrize("name", RIGHT)
def test_right_rewrites_agree(name: str, tmp_path: Path) -> None:
    shape, before, after = RIGHT[name]
    found = compared(tmp_path, before, after, shape)
    assert found.equal, str(found)
    assert found.outputs[0].share <= 1


@pytest.mark.parametrize("name", WRONG)
def test_faults_beside_large_values_are_found(name: str, tmp_path: Path) -> None:
    shape, before, after = WRONG[name]
    found = compared(tmp_path, before, after, shape)
    assert found.outputs[0].what == "values"
    assert found.outputs[0].share > 1


def test_half_precision(tmp_path: Path) -> None:
    kind = TensorProto.FLOAT16
    before = [node("MatMul", "x w_half", "y")]
    after = [
        helper.make_node("Split", ["x"], ["h", "t"], axis=1),
        node("MatMul", "h w_half_head", "p"),
        node("MatMul", "t w_half_tail", "q"),
        node("Add", "p q", "y"),
    ]
    assert compared(tmp_path, before, after, ROW, kind).equal
    after[3] = node("Sub", "p q", "y")
    assert not compared(tmp_path, before, after, ROW, kind).equal


def test_a_given_tolerance_is_the_tolerance(tmp_path: Path) -> None:
    shape, before, after = RIGHT["cancelled large values"]
    models = load(tmp_path, before, shape), load(tmp_path, after, shape)
    assert not compare(*models, atol=1e-5).equal
    assert compare(*models, atol=0.05).equal


def test_all_bits(tmp_path: Path) -> None:
    shape, before, after = RIGHT["a reversed sum"]
    models = load(tmp_path, before, shape), load(tmp_path, after, shape)
    found = compare(*models, rtol=0, atol=0)
    assert not found.equal
    assert compare(models[0], models[0], rtol=0, atol=0).equal
    exact = Tolerance(0, 0)
    zeros = np.float32([0.0, np.nan])
    assert difference("y", zeros, zeros.copy(), exact).equal
    assert not difference("y", zeros, np.float32([-0.0, np.nan]), exact).equal
    assert difference("y", zeros, np.float32([-0.0, np.nan]), Tolerance()).equal


def test_the_command(tmp_path: Path) -> None:
    shape, before, after = RIGHT["a reversed sum"]
    for name, nodes in (("a", before), ("b", after)):
        load(tmp_path, nodes, shape).save(tmp_path / f"{name}.onnx")
    given = ("compare", tmp_path / "a.onnx", tmp_path / "b.onnx")
    found = passlib_command(*given)
    assert found.returncode == 0
    assert "of tolerance" in found.stdout
    assert passlib_command(*given, "--exact").returncode == 4
    refused = passlib_command(*given, "--exact", "--atol", "1")
    assert refused.returncode == 1
    assert "--exact: does not go with --rtol or --atol" in refused.stderr
