"""The two readers of graphs, of hosts and of libraries, agree (tests/cpp/graph_text.cc)."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from file_mutations import VALUES, damaged, places, rearranged
from text_filter import Filter

Both = Callable[[bytes], str]

COLLIDING = 65
"""One more key than a bucket of a table of attributes may have."""


@pytest.fixture(scope="module")
def both(program: Callable[[str], Path]) -> Iterator[Both]:
    readers = [Filter(program(name)) for name in ("graph_text", "graph_text_library")]

    def ask(text: bytes) -> str:
        host, library = (reader(text) for reader in readers)
        assert host == library, text
        return "+" + host if isinstance(host, str) else f"error {host.code}"

    yield ask
    for reader in readers:
        reader.close()


def node(name: str, *inputs: list[int], op: str = "relu", **members: Any) -> dict[str, Any]:
    return {"op": op, "name": name, "inputs": list(inputs), **members}


def graph(*nodes: dict[str, Any], heads: list[list[int]], **members: Any) -> dict[str, Any]:
    variables = [i for i, each in enumerate(nodes) if each["op"] == "null"]
    return {"nodes": list(nodes), "arg_nodes": variables, "heads": heads, **members}


INNER = graph(
    node("i", op="null"),
    node("j", [0, 0, 0], subgraphs=[graph(node("deep", op="null"), heads=[[0, 0]])]),
    heads=[[1, 0, 0]],
    node_row_ptr=[0, 1, 3],
    attrs={"k": ["int", 1]},
)
RICH = graph(
    node("x", op="null", attrs={"__shape__": "(1, 2)", "a\n": "\u00e9\u4e2d", "": ""}),
    node("w", op="null", attr={"k": "1", "z": "2"}, param={"z": "3", "y": "4"}),
    node("a", [0, 0, 0], [1, 0, 1], attrs={f"key{i}": str(i) for i in range(9)}),
    node("b", [2, 1, 0], control_deps=[0, 2], odd={"n": [1.50, None, "t"]}, other=False),
    node("c", [3, 0], [2, 0], subgraphs=[INNER, INNER], backward_source_id=-1, more=[[]]),
    node("many", [4, 0], attrs={f"key{i}": str(i) for i in range(70)}),
    node("again", [5, 0], **{f"extra{i}": i for i in range(20)}),
    heads=[[6, 0, 0], [2, 1, 0]],
    node_row_ptr=[0, 1, 2, 4, 5, 6, 7, 8],
    attrs={"mxnet_version": ["int", 10901]},
    more={"deep": {"b": [1, 2], "a": {}}},
)
SMALL = graph(
    node("x", op="null"),
    node("a", [0, 0, 0], control_deps=[0]),
    node("b", [1, 0, 0], subgraphs=[graph(node("y", op="null"), heads=[[0, 0]])]),
    heads=[[2, 0, 0]],
    node_row_ptr=[0, 1, 2, 3],
    attrs={"mxnet_version": ["int", 10901]},
)
TEXTS = [
    json.dumps(RICH).encode(),
    json.dumps(RICH, ensure_ascii=False, indent=1).encode(),
    json.dumps(INNER).encode(),
    json.dumps(SMALL).encode(),
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_sound_texts(both: Both, text: bytes) -> None:
    assert both(text).startswith('+{"nodes": [')
    both(text + b" ")  # of the other parity, by which the program chooses options


def test_every_value_at_every_place(both: Both) -> None:
    answers = Counter[str]()
    more = ("x", "a", [[2, 0, 0]], [[1, 0]], [2], [0, 2, 1, 3], [0, 1], {"k": "1"}, {"k": 1})
    for number in range(len(list(places(SMALL)))):
        for value in (..., *VALUES, *more):
            tree = copy.deepcopy(SMALL)
            holder, key = list(places(tree))[number]
            if value is ...:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(value)
            answers[both(json.dumps(tree).encode()).split("{")[0]] += 1
    assert answers["+"] > 100
    assert len(answers) > 5, answers  # kinds of failures


@pytest.mark.parametrize("change", [damaged, rearranged])
def test_changed_texts(both: Both, change: Callable[[bytes, random.Random], bytes]) -> None:
    answers = Counter[bool]()
    for seed in range(3000):
        source = random.Random(seed)
        answers[both(change(source.choice(TEXTS), source)).startswith("+")] += 1
    assert min(answers[True], answers[False]) > 100, answers


@pytest.mark.parametrize(
    "members",
    [
        '"attrs": {' + ", ".join(f'"k{i}": ""' for i in range(70)) + ', "k3": "x"}',
        '"attrs": {' + ", ".join(['"k": ""'] * COLLIDING) + "}",
        '"attrs": {' + ", ".join(['"k": ""'] * (COLLIDING - 1)) + "}",
        '"attrs": {"k": "1"}, "attr": {"k": "2", "l": "3"}, "param": {"l": "4", "m": "5"}',
        '"param": {"k": "1"}, "attr": {"k": "2"}',
        '"attr": {"k": "1"}, "attr": {"k": "2"}',
        '"attr": {"k": "1", "k": "2"}',
        '"attrs": {"j": "1"}, "attr": {"k": "1", "k": "2"}',
        '"backward_source_id": 1, "backward_source_id": 2',
        '"backward_source_id": -2',
        '"e": 1, "f": 2, "e": 3',
        ", ".join(f'"e{i}": {i}' for i in range(20)) + ', "e7": 1',
        '"control_deps": [], "control_deps": []',
        '"subgraphs": [], "subgraphs": []',
        '"subgraphs": [1]',
        '"\\u006fp": "x"',
    ],
)
def test_members(both: Both, members: str) -> None:
    head = '{"nodes": [{"op": "null", "name": "x", "inputs": [], '
    tail = '}], "arg_nodes": [0], "heads": [[0, 0, 0]]}'
    both((head + members + tail).encode())


@pytest.mark.parametrize("depth", [1, 300, 5000])
def test_nested_graphs(both: Both, depth: int) -> None:
    text = b'{"nodes": [{"op": "relu", "name": "n", "inputs": [], "subgraphs": ['
    end = b']}], "arg_nodes": [], "heads": [[0, 0, 0]]}'
    both(text * depth + end * depth)
    both(text * depth + end * (depth - 1))
