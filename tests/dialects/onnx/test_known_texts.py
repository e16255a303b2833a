"""Types that native inference knows in full are what passes see, without package onnx."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnx_suite
import passlib as pl
from passlib.dialects import infer
from passlib.dialects.inference import ext_dtype, ext_shape
from passlib.dialects.onnx.lowering.types import known_texts
from passlib.errors import PasslibError

Seen = dict[str, tuple[Any, Any]]
SHAPE = [2, 3]


def model_of(stated: list[Any] | None = SHAPE, **changes: Any) -> onnx.ModelProto:
    """Make x (2, 3) -> relu -> r -> add with a constant and a weight -> y."""
    shape, operator = changes.get("shape", SHAPE), changes.get("operator", "Relu")
    constant = helper.make_tensor("c", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    nodes = [
        helper.make_node(operator, ["x"], ["r"], "first", domain=changes.get("domain", "")),
        helper.make_node("Constant", [], ["k"], "constant", value=constant),
        helper.make_node("Add", ["r", "k"], ["s"], "second"),
        helper.make_node("Mul", ["s", "w"], ["y"], "third"),
    ]
    values = [helper.make_tensor_value_info("s", TensorProto.FLOAT, shape)]
    if stated is not None:
        code = changes.get("code", TensorProto.FLOAT)
        values.append(helper.make_tensor_value_info("r", code, stated))
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])],
        value_info=values,
    )  # fmt: skip
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def loaded(model: onnx.ModelProto, folder: Path) -> pl.Model:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return pl.load(path)


def texts_of(model: pl.Model) -> list[tuple[str, str]] | None:
    return known_texts(model.symbol, arrays_of(model))


def arrays_of(model: pl.Model) -> dict[str, Any]:
    return {name: np.asarray(array) for name, array in {**model.args, **model.aux}.items()}


def inferred_texts(model: pl.Model) -> list[tuple[str, str]]:
    arrays = arrays_of(model)
    shapes = {name: array.shape for name, array in arrays.items()}
    types = {name: array.dtype for name, array in arrays.items()}
    outputs = infer(model.symbol, shapes, types, default_dtype=np.dtype(np.float32)).outputs
    each = (outputs[node] for node in model.symbol.nodes())
    return [(ext_shape(specs), ext_dtype(specs)) for specs in each]


def seen_by_a_pass(model: pl.Model) -> Seen:
    seen: Seen = {}

    @pl.graph_pass(shapes=True, replace=True)
    def look(graph: pl.Graph) -> None:
        """Notes the types of all values."""
        for node in graph.nodes:
            for value in node.outputs:
                seen[node.name] = (value.shape, value.dtype)

    model.optimize_for("look")
    return seen


def test_passes_see_the_same_with_and_without_stated_types(tmp_path: Path) -> None:
    model = loaded(model_of(), tmp_path)
    assert texts_of(model) == inferred_texts(model)
    whole = seen_by_a_pass(model)
    assert whole["first"] == ((2, 3), np.float32)
    assert whole["w"] == ((1,), np.float32)
    assert seen_by_a_pass(loaded(model_of(None), tmp_path)) == whole


DOUBTFUL: list[tuple[str, onnx.ModelProto]] = [
    ("another shape", model_of([3, 2])),
    ("another type", model_of(code=TensorProto.INT64)),
    ("another rank", model_of([2, 3, 1])),
    ("sizes with names", model_of(["N", 3], shape=["N", 3])),
    ("an operator that ONNX does not have", model_of(operator="Rely")),
]


@pytest.mark.parametrize("model", [each[1] for each in DOUBTFUL], ids=[e[0] for e in DOUBTFUL])
def test_doubtful_types_are_inferred(model: onnx.ModelProto, tmp_path: Path) -> None:
    assert texts_of(loaded(model, tmp_path)) is None


@pytest.mark.parametrize("stated", [None, [None, 3]], ids=["no type", "an open size"])
def test_types_need_not_be_stated(stated: list[Any] | None, tmp_path: Path) -> None:
    model = loaded(model_of(stated), tmp_path)
    assert texts_of(model) == inferred_texts(model)


def test_operators_of_others_have_the_types_that_the_file_states(tmp_path: Path) -> None:
    model = loaded(model_of(operator="Own", domain="own"), tmp_path)
    assert texts_of(model) == inferred_texts(model)


def test_changed_models_have_new_types(tmp_path: Path) -> None:
    model = loaded(model_of(), tmp_path)
    with_other = {**model.args, "w": pl.nd.array(np.ones((2, 1), np.float32))}
    changed_weight = pl.Model(model.symbol, with_other, model.aux)
    assert texts_of(changed_weight) == inferred_texts(changed_weight)
    assert seen_by_a_pass(model)["third"] == ((2, 3), np.float32)

    @pl.graph_pass(replace=True)
    def transpose(graph: pl.Graph) -> None:
        """Transposes before the first operator."""
        node = graph.find("first")
        turned = graph.add_node("Transpose", [node.inputs[0]], {"perm": "[1, 0]"}, name="turned")
        graph.set_inputs(node, [turned.outputs[0]])

    changed = model.optimize_for("transpose")
    assert seen_by_a_pass(changed)["turned"] == ((3, 2), np.float32)
    assert seen_by_a_pass(changed)["first"] == ((3, 2), np.float32)


def agrees(known: str, inferred: str) -> bool:
    """Whether a text states what another one does, and perhaps more."""
    left, right = (json.loads(text.replace("None", "null")) for text in (known, inferred))
    return len(left) == len(right) and all(
        want in (None, -1)
        or have == want
        or (
            isinstance(want, list)
            and len(have) == len(want)
            and all(other in (-1, size) for size, other in zip(have, want, strict=True))
        )
        for have, want in zip(left, right, strict=True)
    )


@pytest.mark.sample(1)
def test_the_models_of_the_suite_have_the_types_of_inference(tmp_path: Path) -> None:
    known = 0
    for case in [*onnx_suite.node_cases(), *onnx_suite.file_cases(), *onnx_suite.light_cases()]:
        path = tmp_path / "case.onnx"
        path.write_bytes(case.data)
        try:
            model = pl.load(path)
        except PasslibError:
            continue
        texts = texts_of(model)
        if texts is None:
            continue
        for (shape, dtype), want in zip(texts, inferred_texts(model), strict=True):
            assert agrees(shape, want[0]), (case.name, shape, want[0])
            assert agrees(dtype, want[1]), (case.name, dtype, want[1])
        known += 1
    assert known > 1800
