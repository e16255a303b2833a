"""Notebooks and terminals show every public object in short."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import passlib as pl
from passlib import workbench
from passlib.errors import LONGEST_REPR

MODULES = (
    "passlib",
    "passlib.dialects",
    "passlib.library",
    "passlib.lowering",
    "passlib.model",
    "passlib.passes",
    "passlib.proof",
    "passlib.runtime",
    "passlib.workbench",
)
LONG = "a_name_" * 1_000
MANY = tuple(f"{i}_{LONG}" for i in range(40))

SMALL = {"Context", "Joins", "Settings", "Tolerance", "TypeSpec"}
"""Classes of numbers, flags and shapes."""

BY_HAND = {"Entry", "Graph", "Model", "ModelGraph", "Node", "Pipeline", "Rules", "Symbol"}
"""Classes of which `objects` makes one."""


def classes() -> Iterator[type]:
    """Find the public classes with a repr of their own."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for each in getattr(module, "__all__", dir(module)):
            kind = getattr(module, each, None)
            if inspect.isclass(kind) and kind.__module__.startswith("passlib."):
                found[kind] = None
    for kind in found:
        if kind.__repr__ is not object.__repr__ and not issubclass(kind, BaseException):
            yield kind


def filled(kind: type) -> Any:
    """Return an object with a long text in each field."""
    if issubclass(kind, tuple):
        return kind(*[LONG] * len(kind._fields))  # type: ignore[attr-defined]
    abstract = getattr(kind, "__abstractmethods__", ())
    made = object.__new__(type(kind.__name__, (kind,), dict.fromkeys(abstract)))
    assert dataclasses.is_dataclass(kind), f"{kind.__name__}: make a large one in `objects`"
    for field in dataclasses.fields(kind):
        object.__setattr__(made, field.name, LONG)
    return made


def objects() -> Iterator[Any]:
    """Make large objects, as users do."""
    x = pl.sym.var("x", shape=(2, 3), dtype="float32")
    outputs = [pl.sym.relu(x, name=name) for name in MANY]
    model = pl.Model(pl.sym.Group(outputs))
    yield from (model, model.symbol, model.symbol.nodes()[1], model.symbol.entries[0])
    yield model.summary()
    yield pl.Pipeline(["mergeEqualNodes"] * 60).run(model)
    yield pl.Pipeline(["mergeEqualNodes"] * 200)
    compared = workbench.compare(model, model, {"x": np.ones((2, 3), np.float32)}, per_node=True)
    yield from (compared, compared.values[0], compared.outputs[0])
    yield workbench.diff(model, pl.Model(pl.sym.exp(x)))
    rules = pl.Rules(
        f'rule {LONG} "S."\n  onnx 6..\n  y = Relu(Relu(x))\n  => y = Relu(x)\n  exact\n'
        "  example\n    y = Relu(Relu(x: float[2]))\n    => y = Relu(x)\n"
    )
    yield from (rules, rules[0])
    seen = []

    @pl.graph_pass
    def look_at_a_large_graph(graph: pl.Graph) -> None:
        """Keeps the repr of the graph."""
        seen.append(repr(graph))

    model.optimize_for("look_at_a_large_graph")
    assert len(seen[0]) <= LONGEST_REPR


def test_large_objects() -> None:
    for each in objects():
        assert len(repr(each)) <= LONGEST_REPR, type(each)


@pytest.mark.parametrize(
    "kind",
    [each for each in classes() if each.__name__ not in SMALL | BY_HAND],
    ids=lambda kind: kind.__name__,
)
def test_every_public_class(kind: type) -> None:
    assert len(repr(filled(kind))) <= LONGEST_REPR


def test_a_short_repr_is_whole() -> None:
    x = pl.sym.var("x", shape=(2, 3))
    found = workbench.compare(pl.Model(pl.sym.exp(x)), pl.Model(pl.sym.exp(x)))
    assert repr(found.outputs[0]) in repr(found.outputs)
    assert repr(pl.Pipeline("simplify")) == "Pipeline('simplify')"
    step = pl.Pipeline(["mergeEqualNodes"]).run(pl.Model(x)).steps[0]
    assert repr(step).startswith("StepResult(name='mergeEqualNodes', ")


def test_notebooks_show_summaries_and_comparisons_as_tables() -> None:
    name = "<b>y</b>"
    one = pl.Model(pl.sym.exp(pl.sym.var("x", shape=(2, 3)), name=name))
    summary = one.summary()._repr_html_()
    assert '<td style="text-align: left">exp</td>' in summary
    other = pl.Model(pl.sym.exp(one.symbol.get_internals()["x"], name=name) + 1)
    page = workbench.compare(one, other)._repr_html_()
    assert "<th>of tolerance</th>" in page
    assert ">values</td>" in page
    assert "&lt;b&gt;y" in page
    assert "<b>" not in page + summary
