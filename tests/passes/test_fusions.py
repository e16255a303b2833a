"""Eight fusions by patterns, in C++ and in Python: equal results, checked with ONNX Runtime."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fusion_rules
import passlib
from fusion_models import FUSIONS
from fusion_rules import RULES
from places import TESTS


@pytest.fixture(scope="module")
def fusions(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("fusions"), verbose=False)


def operators(model: passlib.Model) -> list[str]:
    return [node.op for node in model.symbol.nodes() if node.op != "null"]


def described(model: passlib.Model) -> list[tuple[Any, ...]]:
    """Everything about the operators of a model that two passes must agree on."""
    return [
        (
            node.op,
            node.name,
            {k: v for k, v in node.attrs.items() if k != "epsilon"},
            [entry.node.name for entry in node.inputs],
        )
        for node in model.symbol.nodes()
        if node.op != "null"
    ]


def outputs(model: passlib.Model, message: onnx.ModelProto) -> np.ndarray[Any, Any]:
    sizes = [size.dim_value for size in message.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(7).standard_normal(sizes).astype(np.float32)
    return model.run({"x": x})["y"].asnumpy()


@pytest.mark.usefixtures("fusions", "handover")
@pytest.mark.parametrize("title", FUSIONS)
def test_fusion_in_c(title: str) -> None:
    name, message, expected = FUSIONS[title]
    model = passlib.load(message)
    fused = model.optimize_for(name)
    assert operators(fused) == expected
    np.testing.assert_allclose(outputs(fused, message), outputs(model, message), atol=2e-6)


@pytest.mark.usefixtures("fusions")
@pytest.mark.parametrize("title", FUSIONS)
def test_fusion_in_python(title: str) -> None:
    name, message, expected = FUSIONS[title]
    model = passlib.load(message)
    fused = model.optimize_for(RULES[title])
    assert operators(fused) == expected
    in_c = model.optimize_for(name)
    assert described(fused) == described(in_c)
    assert fused.args.keys() == in_c.args.keys()
    for key, array in fused.args.items():
        np.testing.assert_allclose(array, in_c.args[key], rtol=1e-6)
    np.testing.assert_allclose(outputs(fused, message), outputs(model, message), atol=2e-6)


@pytest.mark.parametrize("title", FUSIONS)
def test_origins_are_written_only_on_demand(title: str, tmp_path: Path) -> None:
    _, message, _ = FUSIONS[title]
    fused = passlib.load(message).optimize_for(RULES[title])
    old = {node.name for node in message.graph.node}
    origins = [
        json.loads(n.attrs["__origin__"]) for n in fused.symbol.nodes() if "__origin__" in n.attrs
    ]
    assert all(set(names) <= old and len(names) > 1 for names in origins)
    assert len(origins) == (0 if title == "Transpose and its inverse" else 1)
    for asked, path in ((False, tmp_path / "plain.onnx"), (True, tmp_path / "origins.onnx")):
        fused.save(path, origins=asked)
        marks = [entry.key for node in onnx.load(path).graph.node for entry in node.metadata_props]
        assert marks.count("__origin__") == (len(origins) if asked else 0)


def test_fusions_take_ten_lines() -> None:
    """Each beside its registration: the block in C++, the body of the function in Python."""
    text = (TESTS / "plugins" / "fusions.cc").read_text()
    blocks = re.findall(r"^PATTERN_PASS.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    lines = {block: len(block.splitlines()) for block in blocks}
    for name in set(RULES.values()):
        source = inspect.getsource(getattr(fusion_rules, name))
        body = source.partition(") -> Any:\n")[2]
        lines[body] = len(body.splitlines())
    assert len(blocks) == 8
    assert len(lines) == 8 + len(set(RULES.values()))
    assert max(lines.values()) <= 10, lines
