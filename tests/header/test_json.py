"""The header's JSON against Python's, through a small C++ filter (tests/cpp/json_filter.cc)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from text_filter import Filter, Refusal

SYNTAX, TRUNCATED, TRAILING, UTF8, DEPTH, DUPLICATE = range(1, 7)


@pytest.fixture(scope="module")
def json_filter(program: Callable[[str], Path]) -> Iterator[Filter]:
    running = Filter(program("json_filter"))
    yield running
    running.close()


class Number(str):
    """A number by its text."""


def exact(text: str | bytes) -> Any:
    """Read with numbers as text, so that equal means equally written."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse_constant)


def refuse_constant(text: str) -> Any:
    message = f"{text} is not JSON"
    raise ValueError(message)


text_values = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.one_of(
    st.integers(),
    st.integers(-(2**66), 2**66),
    st.floats(allow_nan=False, allow_infinity=False),
)
documents = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, text_values),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(text_values, inner)),
    max_leaves=40,
)


@settings(max_examples=400, deadline=None)
@given(documents, st.booleans(), st.sampled_from([None, 0, 3]))
def test_round_trip(
    json_filter: Filter, document: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    answer = json_filter(text)
    assert isinstance(answer, str), answer
    assert exact(answer) == exact(text)


@settings(max_examples=300, deadline=None)
@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
)
def test_numbers_keep_their_spelling(json_filter: Filter, text: str) -> None:
    assert json_filter(text) == text
    assert json_filter(f"[{text} ]") == f"[{text}]"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]",:0123456789.eE+- \n\\utrfalsn', max_size=12))
@example("01")
@example('{"a":1,}')
def test_refuses_what_python_refuses(json_filter: Filter, text: str) -> None:
    try:
        exact(text)
        fine = True
    except (ValueError, RecursionError):
        fine = False
    answer = json_filter(text)
    if not fine:
        assert isinstance(answer, Refusal)
        assert 0 <= answer.offset <= len(text)
    elif isinstance(answer, Refusal):
        # Python lets through halves of surrogate pairs and keys that stand twice.
        assert answer.code in (UTF8, DUPLICATE)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=8))
def test_bytes(json_filter: Filter, data: bytes) -> None:
    text = b'"' + data + b'"'
    answer = json_filter(text)
    try:
        wanted = exact(text.decode("utf-8"))
    except (UnicodeDecodeError, ValueError):
        assert isinstance(answer, Refusal)
    else:
        assert isinstance(answer, str)
        assert exact(answer) == wanted


@pytest.mark.parametrize("depth", [1, 1000, 100000])
def test_deep_documents(json_filter: Filter, depth: int) -> None:
    for opening, closing in (("[", "]"), ('{"k" : ', "}")):
        inner = "[]" if opening == "[" else "{}"
        text = opening * depth + inner + closing * depth
        assert json_filter(text) == text


def test_deeper_than_allowed(json_filter: Filter) -> None:
    answer = json_filter("[" * 1000001)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.offset) == (DEPTH, 1000000)


def test_equal_keys_of_different_spelling(json_filter: Filter) -> None:
    answer = json_filter(r'{"a": 1, "\u0061": 2}')
    assert isinstance(answer, Refusal)
    assert answer.code == DUPLICATE
    assert "'a'" in answer.message


ACCEPTED = [
    "0", "-0", "-0.0", "1e0", "1E+2", "1e-2", "0e0", "0.00e10", "1e99999", "-1e-99999", '""',
    '"\\u0000"', '"\\uD834\\udd1e"', '"\\/"', '"\x7f"', '"\u2028"', '"\uffff"', '"\U0010ffff"',
    "[]", "[[]]", "[1 , 2]", " [ ] ", "\t\r\n1\n", "{}", '{"":0}', '{"a":{"a":1}}', "null",
    "true", "false", "123456789012345678901234567890", '"\\b\\f\\n\\r\\t\\"\\\\"',
]  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(json_filter: Filter, text: str) -> None:
    answer = json_filter(text)
    assert isinstance(answer, str), answer
    assert exact(answer) == exact(text)


# Text, code, offset, line, column.
REFUSED: list[tuple[str | bytes, int, int, int, int]] = [
    ("", TRUNCATED, 0, 1, 1),
    (" ", TRUNCATED, 1, 1, 2),
    ("\n\n", TRUNCATED, 2, 3, 1),
    ("[", TRUNCATED, 1, 1, 2),
    ("[1", TRUNCATED, 2, 1, 3),
    ("[1,", TRUNCATED, 3, 1, 4),
    ("[1,\n", TRUNCATED, 4, 2, 1),
    ("{", TRUNCATED, 1, 1, 2),
    ('{"a"', TRUNCATED, 4, 1, 5),
    ('{"a":', TRUNCATED, 5, 1, 6),
    ('{"a":1', TRUNCATED, 6, 1, 7),
    ('{"a":1,', TRUNCATED, 7, 1, 8),
    ('"', TRUNCATED, 1, 1, 2),
    ('"abc', TRUNCATED, 4, 1, 5),
    ('"abcdefghijklmnopq', TRUNCATED, 18, 1, 19),
    ('"\\', TRUNCATED, 1, 1, 2),
    ('"\\u12', TRUNCATED, 3, 1, 4),
    ("-", TRUNCATED, 1, 1, 2),
    ("1.", TRUNCATED, 2, 1, 3),
    ("1e", TRUNCATED, 2, 1, 3),
    ("1e+", TRUNCATED, 3, 1, 4),
    ("t", TRUNCATED, 1, 1, 2),
    ("nul", TRUNCATED, 3, 1, 4),
    ("1 2", TRAILING, 2, 1, 3),
    ("[] []", TRAILING, 3, 1, 4),
    ("{}\nx", TRAILING, 3, 2, 1),
    ("1\x00", TRAILING, 1, 1, 2),
    ("truefalse", TRAILING, 4, 1, 5),
    ('""""', TRAILING, 2, 1, 3),
    ("]", SYNTAX, 0, 1, 1),
    ("}", SYNTAX, 0, 1, 1),
    (",", SYNTAX, 0, 1, 1),
    ("[,]", SYNTAX, 1, 1, 2),
    ("[1,]", SYNTAX, 3, 1, 4),
    ("[1,,2]", SYNTAX, 3, 1, 4),
    ("[1 2]", SYNTAX, 3, 1, 4),
    ("[1\n\n  2]", SYNTAX, 6, 3, 3),
    ("[1}", SYNTAX, 2, 1, 3),
    ("[1:2]", SYNTAX, 2, 1, 3),
    ("{1:2}", SYNTAX, 1, 1, 2),
    ("{a:1}", SYNTAX, 1, 1, 2),
    ("{'a':1}", SYNTAX, 1, 1, 2),
    ('{"a" 1}', SYNTAX, 5, 1, 6),
    ('{"a":}', SYNTAX, 5, 1, 6),
    ('{"a"::1}', SYNTAX, 5, 1, 6),
    ('{"a":1,}', SYNTAX, 7, 1, 8),
    ('{"a":1 "b":2}', SYNTAX, 7, 1, 8),
    ('{"a":1]', SYNTAX, 6, 1, 7),
    ("{,}", SYNTAX, 1, 1, 2),
    ("01", SYNTAX, 0, 1, 1),
    ("-01", SYNTAX, 0, 1, 1),
    ("[00]", SYNTAX, 1, 1, 2),
    ("+1", SYNTAX, 0, 1, 1),
    (".5", SYNTAX, 0, 1, 1),
    ("1.e5", SYNTAX, 2, 1, 3),
    ("[1.]", SYNTAX, 3, 1, 4),
    ("[1e]", SYNTAX, 3, 1, 4),
    ("[-]", SYNTAX, 2, 1, 3),
    ("--1", SYNTAX, 1, 1, 2),
    ("-x", SYNTAX, 1, 1, 2),
    ("NaN", SYNTAX, 0, 1, 1),
    ("Infinity", SYNTAX, 0, 1, 1),
    ("-Infinity", SYNTAX, 1, 1, 2),
    ("[-NaN]", SYNTAX, 2, 1, 3),
    ("True", SYNTAX, 0, 1, 1),
    ("tru ", SYNTAX, 3, 1, 4),
    ("nulL", SYNTAX, 3, 1, 4),
    ("0x10", TRAILING, 1, 1, 2),
    ("1_000", TRAILING, 1, 1, 2),
    ('"\n"', SYNTAX, 1, 1, 2),
    ('"\t"', SYNTAX, 1, 1, 2),
    ('"a\x00b"', SYNTAX, 2, 1, 3),
    ('"\\x41"', SYNTAX, 1, 1, 2),
    ('"\\ "', SYNTAX, 1, 1, 2),
    ('"\\\x00"', SYNTAX, 1, 1, 2),
    ('"\\u12g4"', SYNTAX, 3, 1, 4),
    ('"\\U0041"', SYNTAX, 1, 1, 2),
    ("// x\n1", SYNTAX, 0, 1, 1),
    ("/* */1", SYNTAX, 0, 1, 1),
    ("\ufeff1", SYNTAX, 0, 1, 1),
    ("\u00a01", SYNTAX, 0, 1, 1),
    ("\x0b1", SYNTAX, 0, 1, 1),
    ('"\\ud800"', UTF8, 1, 1, 2),
    ('"\\udc00"', UTF8, 1, 1, 2),
    ('"\\ud800\\u0041"', UTF8, 1, 1, 2),
    ('"\\ud800x"', UTF8, 1, 1, 2),
    (b'"\xff"', UTF8, 1, 1, 2),
    (b'"\xc3"', UTF8, 1, 1, 2),
    (b'"\xc0\xaf"', UTF8, 1, 1, 2),
    (b'"\xed\xa0\x80"', UTF8, 1, 1, 2),
    (b'"\xf4\x90\x80\x80"', UTF8, 1, 1, 2),
    (b'["a",\n"b\xe4"]', UTF8, 8, 2, 3),
    (b'"abcdefgh\x80"', UTF8, 9, 1, 10),
    ('{"a":1,"a":2}', DUPLICATE, 11, 1, 12),
]


@pytest.mark.parametrize(
    ("text", "code", "offset", "line", "column"), REFUSED, ids=[repr(row[0]) for row in REFUSED]
)
def test_refused(
    json_filter: Filter, text: str | bytes, code: int, offset: int, line: int, column: int
) -> None:
    answer = json_filter(text)
    assert isinstance(answer, Refusal)
    assert answer[:4] == (code, offset, line, column), answer.message
    assert answer.message.endswith(f"(line {line}, column {column}, offset {offset})")


def test_doubles_agree_with_python(json_filter: Filter) -> None:
    for value in (0.1, 1e22, 5e-324, 2.2250738585072014e-308, math.pi):
        answer = json_filter(json.dumps(value))
        assert isinstance(answer, str)
        assert json.loads(answer) == value
