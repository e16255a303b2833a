"""Attribute texts as MXNet spells them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passlib.graph import attributes as attribute_text

PARSERS = (
    attribute_text.parse_int,
    attribute_text.parse_bool,
    attribute_text.parse_float,
    attribute_text.parse_floats,
    attribute_text.parse_optional_ints,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("()", ()),
        ("[]", ()),
        ("(3,)", (3,)),
        ("3", (3,)),
        ("(1, 2)", (1, 2)),
        ("[1,2,3]", (1, 2, 3)),
        (" ( 1 , -2 ) ", (1, -2)),
        ("(2L, 3L)", (2, 3)),
        ("(None, 4)", (None, 4)),
    ],
)
def test_tuples(text: str, value: tuple[int | None, ...]) -> None:
    assert attribute_text.parse_optional_ints(text) == value


@pytest.mark.parametrize("text", ["", "(", ")", "(1", "1)", "(1]", "(1,,2)", "1.5", "(a)", "(1;2)"])
def test_broken_tuples(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text of the message is Python's own
        attribute_text.parse_optional_ints(text)


@pytest.mark.parametrize(
    ("text", "value"), [("True", True), ("true", True), ("1", True), ("False", False), ("0", False)]
)
def test_flags(text: str, value: bool) -> None:
    assert attribute_text.parse_bool(text) is value


@pytest.mark.parametrize("text", ["", "yes", "2", "None"])
def test_broken_flags(text: str) -> None:
    with pytest.raises(ValueError, match="neither True nor False"):
        attribute_text.parse_bool(text)


def test_reals() -> None:
    assert attribute_text.parse_float("1e-3") == 0.001
    assert attribute_text.parse_float("0.1f") == 0.1
    assert attribute_text.parse_float("-inf") == -math.inf
    assert attribute_text.parse_float("inf") == math.inf
    assert math.isnan(attribute_text.parse_float("nan"))
    assert attribute_text.parse_floats("(0.5, 2)") == (0.5, 2.0)


@given(st.lists(st.integers()))
def test_python_tuples_come_back(values: list[int]) -> None:
    assert attribute_text.parse_optional_ints(str(tuple(values))) == tuple(values)


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_python_reals_come_back(values: list[float]) -> None:
    assert attribute_text.parse_floats(str(tuple(values))) == tuple(values)


@given(st.text())
@pytest.mark.parametrize("parse", PARSERS)
def test_any_text_is_read_or_refused(parse: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(ValueError):
        parse(text)
