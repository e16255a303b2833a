"""The standard pass mergeEqualNodes on ONNX models: what it merges, and what it must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from onnx_models import save as save_onnx

MERGE = "mergeEqualNodes"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")

ONNX: dict[str, tuple[str, dict[str, Any], int]] = {
    "a function": ("a = Relu(x) b = Relu(x) y = Add(a, b)", {}, 1),
    "down the graph": (
        "a = Relu(x) b = Relu(x) p = Exp(a) q = Exp(b) y = Add(p, q)",
        {},
        2,
    ),
    "attributes": (
        "a = LeakyRelu<alpha = 0.25>(x) b = LeakyRelu<alpha = 0.5>(x) y = Add(a, b)",
        {},
        0,
    ),
    "a second output": (
        "a, i = TopK(x, one) b, j = TopK(x, one) p = Cast<to = 1>(j) y = Add(a, p)",
        {},
        1,
    ),
    "random": (
        "a = RandomNormalLike(x) b = RandomNormalLike(x) y = Add(a, b)",
        {"inference": 1},
        0,
    ),
    "bernoulli": ("a = Bernoulli(x) b = Bernoulli(x) y = Add(a, b)", {}, 0),
    "dropout": ("a = Dropout(x) b = Dropout(x) y = Add(a, b)", {}, 0),
    "another domain": ("a = my.Work(x) b = my.Work(x) y = Add(a, b)", {}, 0),
    "an output": ("y = Relu(x) b = Relu(x) z = Exp(b)", {}, 1),
    "a later output": ("b = Relu(x) z = Exp(b) y = Relu(x)", {}, 1),
    "two outputs": ("y = Relu(x) z = Relu(x)", {}, 0),
    "parameters": ("a = Add(x, v) b = Add(x, w) y = Mul(a, b)", {}, 0),
    "equal parameters": ("a = Add(x, v) b = Add(x, w) y = Mul(a, b)", {"parameters": 1}, 1),
    "inside a body": (
        (
            "y = If(c) <then_branch = t () => (r) { p = Relu(x) q = Relu(x) r = Add(p, q) },"
            " else_branch = e () => (s) { s = Exp(x) }>"
        ),
        {},
        1,
    ),
    "equal bodies": (
        (
            "a = If(c) <then_branch = t () => (r) { r = Relu(x) }, "
            "else_branch = e () => (s) { s = Exp(x) }>"
            "b = If(c) <then_branch = t () => (r) { r = Relu(x) }, "
            "else_branch = e () => (s) { s = Exp(x) }> y = Add(a, b)"
        ),
        {},
        0,
    ),
    "captured by a body": (
        (
            "a = Tanh(x) b = Tanh(x) y = If(c) <then_branch = t () => (r) { r = Add(a, b) },"
            " else_branch = e () => (s) { s = Exp(b) }>"
        ),
        {},
        1,
    ),
}


def all_nodes(graph: onnx.GraphProto) -> int:
    """Count the nodes of a graph and of its bodies."""
    inner = sum(all_nodes(a.g) for node in graph.node for a in node.attribute if a.HasField("g"))
    return len(graph.node) + inner


@pytest.mark.parametrize("case", ONNX)
def test_onnx(case: str, tmp_path: Path) -> None:
    body, options, merged = ONNX[case]
    outputs = "float[N, 4] y" + (", float[N, 4] z" if "z =" in body else "")
    text = (
        '<ir_version: 8, opset_import: ["" : 17, "my" : 1]> '
        f"g (float[N, 4] x, bool c) => ({outputs}) "
        "<float[4] v = {1.0, 2.0, 3.0, 4.0}, float[4] w = {1.0, 2.0, 3.0, 4.0}, "
        "int64[1] one = {4}> { " + body + " }"
    )
    text += (
        ' <domain: "my", opset_import: ["" : 17]> Work (p) => (q) { q = Relu(p) }'
        if "my." in body
        else ""
    )
    path, saved = save_onnx(text, tmp_path / "m.onnx"), tmp_path / "out.onnx"
    model = passlib.load(path)
    result = model.optimize_for(MERGE, **options)
    result.save(saved)
    onnx.checker.check_model(onnx.load(saved), full_check=True)
    assert all_nodes(onnx.load(path).graph) - all_nodes(onnx.load(saved).graph) == merged
    assert result.outputs == model.outputs
    if not merged:
        assert onnx.load(saved) == onnx.load(path)
    if "Random" in body or "Bernoulli" in body:
        return
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        expected, found = model.run(feeds), passlib.load(saved).run(feeds)
        for name, array in expected.items():
            np.testing.assert_allclose(np.asarray(found[name]), np.asarray(array), rtol=1e-6)
