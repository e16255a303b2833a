"""Passes of users that join ``simplify`` and ``clean`` by what they declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import passlib as pl
from passlib.errors import LoadError, PasslibError
from passlib.library import backends
from passlib.passes import Joins


@pytest.fixture(autouse=True)
def own_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers: it would be part of all later simplifications."""
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))


def model() -> pl.Model:
    x = pl.sym.var("x")
    return pl.Model(pl.sym.relu(pl.sym.sigmoid(pl.sym.abs(x, name="a"), name="s"), name="y"))


def operators(model: pl.Model) -> list[str]:
    return [node.op for node in model.symbol.nodes() if not node.is_variable]


def register(op: str, **declared: Any) -> list[dict[str, Any]]:
    """Register a pass that takes an operator out; return the options of its calls."""
    calls: list[dict[str, Any]] = []

    @pl.graph_pass(name=f"drop_{op}", replace=True, **declared)
    def drop(graph: pl.Graph, *, level: int = 0, more: bool = False) -> None:
        calls.append({"level": level, "more": more})
        for node in graph.sorted():
            if node.op == op:
                graph.replace(node.outputs[0], node.inputs[0])
                graph.remove(node)

    return calls


BOTH = ["simplify", "clean"]


@pytest.mark.parametrize(
    ("joins", "exact", "simplified", "cleaned"),
    [
        (BOTH, True, True, True),
        (["simplify"], True, True, False),
        (["simplify"], False, True, False),
        (["clean"], True, False, True),
        (None, True, False, False),
    ],
)
def test_what_joins(joins: Any, exact: bool, simplified: bool, cleaned: bool) -> None:
    register("sigmoid", exact=exact, joins=None if joins is None else Joins(joins))
    whole, left = ["abs", "sigmoid", "relu"], ["abs", "relu"]
    assert operators(model().simplify()) == (left if simplified else whole)
    assert operators(model().optimize_for("simplify")) == (left if simplified else whole)
    assert operators(model().simplify(exact=True)) == (left if cleaned else whole)
    assert operators(model().simplify(skip=["drop_sigmoid"] if joins == BOTH else [])) == (
        whole if joins in (BOTH, ["clean"], None) else left
    )
    result = pl.Pipeline("clean, simplify").run(model())
    assert operators(result.model) == (left if simplified or cleaned else whole)
    assert ("drop_sigmoid" in {step.name for step in result.steps}) == (joins is not None)


def test_options_and_triggers() -> None:
    joins = Joins(BOTH, options={"level": 3}, rounding={"more": True})
    calls = register("sigmoid", exact=True, triggers=["sigmoid", "tanh"], joins=joins)
    model().simplify(exact=True)
    assert calls == [{"level": 3, "more": False}]  # none after the operator is gone
    model().simplify()
    assert calls[1:] == [{"level": 3, "more": True}]
    pl.Model(pl.sym.relu(pl.sym.var("x"))).simplify()
    assert len(calls) == 2


def test_the_order() -> None:
    """Directly behind the pass that one names; at the end for none, or one that is not there."""
    for op, after in {
        "abs": "foldConstants", "relu": "drop_abs", "tanh": "", "exp": "no_such_pass",
        "log": "fuseMatMulAdd",
    }.items():  # fmt: skip
        register(op, joins=Joins(["simplify"], after=after))
    result = pl.Pipeline("simplify{max_rounds=1}").run(model())
    names = [step.name for step in result.steps]
    assert names[:3] == ["foldConstants", "drop_abs", "drop_relu"]
    assert names[-2:] == ["drop_tanh", "drop_exp"]
    assert "drop_log" in names


def test_cheap_passes_at_one_place_run_first() -> None:
    for place in ("", "foldConstants"):
        for op, cost in {"abs": "runs", "relu": "nodes", "tanh": "weights"}.items():
            joins = Joins(["simplify"], after=place, cost=cost)  # type: ignore[arg-type]
            register(op, joins=joins)
        result = pl.Pipeline("simplify{max_rounds=1}").run(model())
        names = [step.name for step in result.steps]
        own = [name for name in names if name.startswith("drop_")]
        assert own == ["drop_relu", "drop_tanh", "drop_abs"]
        assert names.index("drop_relu") == (1 if place else len(names) - 3)


def test_a_circle_has_an_order() -> None:
    register("abs", joins=Joins(["simplify"], after="drop_relu"))
    register("relu", joins=Joins(["simplify"], after="drop_abs"))
    assert operators(model().simplify()) == ["sigmoid"]


@pytest.mark.parametrize("joins", [None, Joins(["simplify"])])
def test_a_pass_with_the_name_of_a_standard_one(joins: Joins | None) -> None:
    """It takes the place of that one if it joins."""
    calls: list[str] = []

    @pl.graph_pass(name="removeNoOps", replace=True, joins=joins)
    def own(graph: pl.Graph) -> None:
        calls.append(graph.dialect)

    x = pl.sym.var("x")
    after = pl.Model(pl.sym.relu(pl.sym.identity(x, name="i"), name="y")).simplify()
    assert operators(after) == (["relu"] if joins is None else ["_copy", "relu"])
    assert bool(calls) == (joins is not None)


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no pipeline": (
        {"joins": Joins(["simplfy"])}, PasslibError,
        "joins 'simplfy', which is no named pipeline; did you mean 'simplify'",
    ),
    "not exact": ({"joins": Joins(["clean"])}, PasslibError, "declare it exact"),
    "no option": (
        {"joins": Joins(["simplify"], options={"depth": 1})}, PasslibError, "has no option 'depth'",
    ),
    "wrong value": (
        {"joins": Joins(["simplify"], rounding={"level": "much"})}, PasslibError,
        "option 'level' takes a whole number",
    ),
    "text of triggers": ({"triggers": "Relu"}, TypeError, r"such as \['Relu'\]"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str) -> None:
    declared, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        register("sigmoid", **declared)
    assert "drop_sigmoid" not in pl.library.passes()


def test_wrong_words() -> None:
    with pytest.raises(TypeError, match=r"such as \['simplify'\]"):
        Joins("simplify")
    with pytest.raises(ValueError, match="cost is one of nodes, weights, runs, not 'time'"):
        Joins(["simplify"], cost="time")  # type: ignore[arg-type]


def test_a_compiled_pass(load_plugin: Callable[[str], pl.library.Library]) -> None:
    library = load_plugin("joins")
    declaration = library.passes["dropSigmoidInC"]
    assert (declaration.exact, declaration.triggers) == (True, ("sigmoid",))
    assert declaration.joins == Joins(
        BOTH, after="removeNoOps", options={"level": 2}, rounding={"more": True}, cost="weights"
    )
    assert operators(model().simplify()) == ["abs", "relu"]
    assert operators(model().simplify(exact=True)) == ["abs", "relu"]
    shown = str(declaration)
    assert "does nothing without one of sigmoid" in shown
    assert "part of the pipelines simplify, clean" in shown


def test_a_library_that_joins_what_is_not_there(
    load_plugin: Callable[[str], pl.library.Library],
) -> None:
    with pytest.raises(LoadError, match="'dropSigmoidInC' joins 'tidy', which is no named pipel"):
        load_plugin("joins_unknown")
