"""Declarations of passes in Python by their signatures, and the checks of their options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pytest

import passlib
from passlib import Graph, graph_pass
from passlib.errors import PasslibError, UnsupportedError


@pytest.fixture
def symbol() -> passlib.Symbol:
    return passlib.sym.relu(passlib.sym.var("x"))


def test_what_a_signature_declares() -> None:
    @graph_pass(dialects=["onnx"], replace=True)
    def declared(
        graph: Graph,
        *,
        flag: bool = False,
        level: Annotated[int, range(1, 4)] = 1,
        factor: float | None = None,
        mode: Literal["fast", "exact"] = "fast",
        axes: Sequence[int] = (0, 1),
        name: str,
    ) -> None:
        """Folds something.

        Parameters
        ----------
        flag : bool
            Whether it is set.
        level : int
            How far it goes,
            on two lines.
        """

    assert str(passlib.library.passes()["declared"]).splitlines() == [
        "declared: Folds something.",
        "  dialects: onnx",
        "  flag: true or false; default false",
        "      Whether it is set.",
        "  level: a whole number from 1 to 3; default 1",
        "      How far it goes, on two lines.",
        "  factor: a number; default None",
        "  mode: one of fast, exact; default fast",
        "  axes: a list, each item a whole number; default [0, 1]",
        "  name: text; required",
        f"  from {declared.__module__}.{declared.__qualname__}",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lvel": 1}, "has no option 'lvel'; did you mean 'level'"),
        ({"level": 4}, "option 'level' takes a whole number from 1 to 3, not 4"),
        ({"level": "high"}, "option 'level' takes a whole number from 1 to 3, not 'high'"),
        ({"flag": "maybe"}, "option 'flag' takes true or false, not 'maybe'"),
        ({"mode": "slow"}, "option 'mode' takes one of fast, exact, not 'slow'"),
        ({"axes": [1.5]}, "option 'axes' takes a list, each item a whole number, not 1.5"),
        ({}, "needs the option 'level'"),
    ],
)
def test_options_are_checked_first(
    symbol: passlib.Symbol, options: dict[str, Any], message: str
) -> None:
    @graph_pass(replace=True)
    def strict(
        graph: Graph,
        *,
        level: Annotated[int, range(1, 4)],
        flag: bool = False,
        mode: Literal["fast", "exact"] = "fast",
        axes: Sequence[int] = (),
    ) -> None:
        """Does nothing."""
        raise AssertionError

    with pytest.raises(PasslibError, match=message):
        symbol.optimize_for("strict", **options)


def test_text_is_converted(symbol: passlib.Symbol) -> None:
    seen: list[Any] = []

    @graph_pass(replace=True)
    def typed(graph: Graph, *, a: int = 0, b: float = 0.0, c: bool = True, d: list[str]) -> None:
        seen.append((a, b, c, d))

    symbol.optimize_for("typed", a="-3", b="1e-3", c="false", d='[x, "y, z"]')
    assert seen == [(-3, 1e-3, False, ("x", "y, z"))]


def test_only_for_its_dialects(symbol: passlib.Symbol) -> None:
    @graph_pass(dialects=["onnx", "ark"], replace=True)
    def others(graph: Graph) -> None:
        """Does nothing."""

    with pytest.raises(UnsupportedError, match="for models of onnx, ark, and this"):
        symbol.optimize_for("others")


def test_names_are_not_taken_by_mistake() -> None:
    def first(graph: Graph) -> None:
        """Does nothing."""

    graph_pass(name="mine")(first)
    graph_pass(name="mine")(first)
    with pytest.raises(PasslibError, match=r"cannot register .*second: the pass 'mine' is alr"):

        @graph_pass(name="mine")
        def second(graph: Graph) -> None:
            """Does nothing."""


def annotated(hint: Any, default: Any = ()) -> Any:
    """A pass with an option of this annotation and default."""

    def body(graph: Graph, *, level: Any = default) -> None:
        """Does nothing."""

    body.__annotations__["level"] = hint
    return body


@pytest.mark.parametrize(
    ("hint", "default", "text"),
    [
        (list[Annotated[int, range(4)]], (), "a list, each item a whole number from 0 to 3"),
        (Annotated[int, range(1, 4)] | None, None, "a whole number from 1 to 3"),
        (Annotated[int | None, range(1, 4)], None, "a whole number from 1 to 3"),
        (list[Literal["x", "y"]] | None, None, "a list, each item one of x, y"),
        (Sequence, (1,), "a list, each item a whole number"),
    ],
)
def test_annotations_inside_of_others(hint: Any, default: Any, text: str) -> None:
    function = annotated(hint, default)
    graph_pass(name="annotated", replace=True)(function)
    (option,) = function.declaration.options
    assert (option.type_text, option.default) == (text, default)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: None, "must take the graph as its first parameter"),
        (lambda graph, level=1: None, "must follow a \\*"),
        (lambda graph, *, level=None: None, "cannot be an option: annotate it"),
        (lambda graph, *, args=1: None, "'args' of .* needs another name, because optimize_for"),
        (lambda graph, *, skip_infer=True: None, "'skip_infer' of .* needs another name"),
        (annotated(Sequence), "cannot be an option"),
        (annotated(int | str, 1), "cannot be an option"),
        (annotated(Literal["a", 1], "a"), "cannot be an option"),
        (annotated(int, "x"), "invalid default: option 'level' takes a whole number"),
        (annotated(Annotated[int, range(4, 0, -1)], 2), "its range must have step 1"),
    ],
)
def test_functions_that_are_no_passes(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        graph_pass(function)
