"""Shapes and types are inferred when a pass first reads one, and kept for the next pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import passlib as pl
from passlib import dialects
from passlib.errors import GraphError

READS = ["at", "index", "find", "after", "map", "copy", "walk", "helpers", "printed", "threads"]
OTHERS = ["nothing", "others", "edits"]
ARGS = {"fc_weight": np.ones((2, 3), np.float32)}
Plugin = Callable[[str], pl.library.Library]


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note each inference of a whole graph."""
    calls: list[str] = []
    mxnet = type(dialects.find("mxnet"))
    infer = mxnet.infer

    def noted(*args: Any, **options: Any) -> Any:
        calls.append("infer")
        return infer(*args, **options)

    monkeypatch.setattr(mxnet, "infer", staticmethod(noted))
    return calls


def symbol() -> pl.Symbol:
    x = pl.sym.var("x", shape=(4, 3))
    y: pl.Symbol = pl.sym.FullyConnected(x, num_hidden=2, no_bias=True, name="fc")
    made: pl.Symbol = pl.sym.relu(y, name="y")
    return made


def found(made: Any) -> str:
    return str(made.attr_dict()["y"]["__found__"])


@pytest.mark.parametrize("how", [*READS, *OTHERS])
def test_a_compiled_pass(load_plugin: Plugin, inferred: list[str], how: str) -> None:
    load_plugin("reads_types")
    made = symbol().optimize_for("readTypes", dict(ARGS), how=how)
    assert len(inferred) == (how in READS)
    if how != "printed":
        assert "__ext_" not in made.tojson()
    # Where the graph crosses as text, all is inferred before.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PASSLIB_HANDOVER", "json")
        early = symbol().optimize_for("readTypes", dict(ARGS), how=how)
    if how != "printed":
        assert early.tojson() == made.tojson()
    assert found(early) == found(made)
    assert len(inferred) == 1 + (how in READS)


@pytest.mark.parametrize("way", ["flat", "json"])
def test_the_result_is_kept(
    load_plugin: Plugin, inferred: list[str], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_plugin("reads_types")
    monkeypatch.setenv("PASSLIB_HANDOVER", way)
    model = pl.Model(symbol(), ARGS)
    inferred.clear()
    texts = [found(model.optimize_for("readTypes", how="at").symbol) for _ in range(3)]
    assert len(inferred) == 1
    assert texts == texts[:1] * 3
    other = model.symbol.optimize_for("readTypes", {"fc_weight": np.ones((2, 3))}, how="at")
    assert len(inferred) == 2
    assert found(other) != texts[0]


def test_a_pass_in_python(inferred: list[str]) -> None:
    seen: dict[str, Any] = {}
    reads: dict[str, Callable[[Any], Any]] = {
        "operator": lambda node: node.op,
        "attribute": lambda node: node.attrs.get("other"),
        "shape": lambda node: node.outputs[0].shape,
        "dtype": lambda node: node.outputs[0].dtype,
        "key": lambda node: node.attrs["__ext_shape__"],
        "items": lambda node: dict(node.attrs)["__ext_dtype__"],
        "length": lambda node: len(node.attrs),
    }

    @pl.graph_pass(shapes=True, replace=True)
    def look_at_types(graph: pl.Graph, *, how: str) -> None:
        seen[how] = reads[how](graph.find("y"))

    for how in reads:
        made = symbol().optimize_for(look_at_types, dict(ARGS), how=how)
        assert "__ext_" not in made.tojson()
    assert len(inferred) == 5
    assert seen == {
        "operator": "relu", "attribute": None, "shape": (4, 2), "dtype": np.float32,
        "key": "[[4,2]]", "items": "[0]", "length": 2,
    }  # fmt: skip


@pytest.mark.parametrize("how", ["at", "helpers", "nothing"])
def test_what_contradicts(load_plugin: Plugin, how: str) -> None:
    load_plugin("reads_types")
    wrong = {"fc_weight": np.ones((2, 5), np.float32)}
    if how == "nothing":
        symbol().optimize_for("readTypes", wrong, how=how)
        return
    with pytest.raises(GraphError, match="fc"):
        symbol().optimize_for("readTypes", wrong, how=how)
