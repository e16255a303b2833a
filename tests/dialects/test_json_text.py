from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passlib.dialects.json_text import (
    JsonArray,
    JsonNumber,
    JsonObject,
    Layout,
    parse,
    print_json,
)
from passlib.errors import FormatError

VALUES: dict[str, Any] = {
    "literals": [True, False, None],
    "integers": [0, -1, 2**63 - 1, -(2**63)],
    "texts": ["", "a", "a", "é", "\N{GRINNING FACE}", 'quo"te', "back\\slash", "\u0001", "x" * 99],
    "repeated": [{"op": "null", "name": "op"}] * 50,
    "nested": {"a": {"b": [[], {}, [[1]], {"a": {"a": 1}}]}, "c": [{"d": [2, {"e": 3}]}]},
    "scalar": "alone",
}
"""Texts that Python's json and passlib must read alike."""


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("indent", [None, 2])
def test_values_are_those_of_python(name: str, indent: int | None) -> None:
    text = json.dumps(VALUES[name], indent=indent, ensure_ascii=indent is None)
    assert parse(text.encode()) == VALUES[name]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_is_that_of_python(value: Any) -> None:
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


def spans(value: Any) -> list[tuple[int, int]]:
    found = []
    if isinstance(value, (JsonObject, JsonArray)):
        found.append((value.start, value.end))
        for item in value.values() if isinstance(value, dict) else value:
            found += spans(item)
    return found


def test_containers_remember_where_they_stood() -> None:
    text = b' {"a": [1, {"b": []}], "\xc3\xa9": {}} '
    expected = [b'{"a": [1, {"b": []}], "\xc3\xa9": {}}', b'[1, {"b": []}]', b'{"b": []}']
    assert [text[start:end] for start, end in spans(parse(text))] == [*expected, b"[]", b"{}"]


@pytest.mark.parametrize("spelling", ["1.0", "1e5", "-0", "0.10", "18446744073709551615", "1E+2"])
def test_numbers_keep_their_spelling(spelling: str) -> None:
    first, again = parse(f"[{spelling}, {spelling}]".encode())
    assert isinstance(first, JsonNumber)
    assert (first.text, first) == (spelling, float(spelling))
    assert again.text == spelling


REFUSED = {
    '{"a": 1, "b": 2, "a": 3}': "occurs twice",
    '{"a": {"a": 1, "a": {}}}': "occurs twice",
    '[{"x": [], "x": []}]': "occurs twice",
    '{"a": 1': "the text ends",
    "[1, ]": "where a value should stand",
    "[01]": "must not begin with 0",
    '["\\ud800"]': "surrogate",
    "[nul]": "where null should stand",
    "[1] 2": "something follows",
    "": "the text ends",
    "[" * 300: "nested deeper",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:12])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match=REFUSED[text]):
        parse(text.encode())


def test_the_collector_does_not_look_at_what_was_read() -> None:
    root = parse(b'{"a": [{"b": []}]}')
    assert not any(map(gc.is_tracked, (root, root["a"], root["a"][0], root["a"][0]["b"])))


def test_untouched_parts_are_copied_from_the_text() -> None:
    text = b'{ "kept" :[1.50,  2],\n"other": {"x":1} }'
    root = parse(text)
    printed = print_json({"kept": root["kept"], "new": [1]}, Layout(text, root))
    assert b"[1.50,  2]" in printed
    assert json.loads(printed) == {"kept": [1.5, 2], "new": [1]}
