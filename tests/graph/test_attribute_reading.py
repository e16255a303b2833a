"""Attributes of nodes as a file has them: texts with escapes among plain ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passlib import _core
from passlib.errors import FormatError

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def _file(attributes: str) -> str:
    node = f'{{"op": "Op", "name": "n", "attrs": {attributes}, "inputs": []}}'
    return f'{{"nodes": [{node}], "arg_nodes": [], "heads": [[0, 0, 0]]}}'


def _read(attributes: str) -> _core.Graph:
    return _core.Graph.parse(_file(attributes), lenient=False, ordered=True)


@given(st.dictionaries(TEXTS, TEXTS, max_size=8), st.booleans())
def test_any_texts_come_back(attributes: dict[str, str], escaped: bool) -> None:
    graph = _read(json.dumps(attributes, ensure_ascii=escaped))
    for pretty in (False, True):
        written = json.loads(graph.print(pretty, {}), strict=False)["nodes"][0]
        assert written.get("attrs", {}) == attributes
        assert list(written.get("attrs", {})) == sorted(attributes, key=lambda key: key.encode())


def test_escapes_and_plain_texts_alternate() -> None:
    graph = _read(r'{"\u0062": "\n1", "a": "plain", "\u0061b": "x\ty", "c": "\"", "d": ""}')
    written = json.loads(graph.print(pretty=False, attributes={}))["nodes"][0]["attrs"]
    assert written == {"a": "plain", "ab": "x\ty", "b": "\n1", "c": '"', "d": ""}


@pytest.mark.parametrize("key", ["a", r"\u0061"])
def test_a_key_that_an_escape_repeats(key: str) -> None:
    with pytest.raises(FormatError, match="attribute 'a' occurs twice in node 'n'"):
        _read(rf'{{"{key}": "1", "b": "\n", "\u0061": "2"}}')


@pytest.mark.parametrize("count", [64, 65, 300])
def test_many_attributes(count: int) -> None:
    attributes = {f"key{number}": f"text {number}" for number in range(count)}
    graph = _read(json.dumps(attributes))
    assert json.loads(graph.print(pretty=False, attributes={}))["nodes"][0]["attrs"] == attributes


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000, 3_000_000])
@pytest.mark.parametrize("character", ["x", "\u00e9", "\U0001f600"])
def test_texts_of_any_length_are_written(size: int, character: str) -> None:
    text = "a" + size * character
    graph = _read(json.dumps({"key": text}, ensure_ascii=False))
    assert json.loads(graph.print(pretty=True, attributes={}))["nodes"][0]["attrs"] == {"key": text}
