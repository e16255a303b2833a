"""Files repeat themselves: what the reader and the writer know from before must change nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

import passlib as mx
from passlib import _core
from passlib.errors import FormatError

Layout = Callable[[dict[str, str]], str]

ATTRIBUTES: list[dict[str, str]] = [
    {},
    {"a": "1"},
    {"a": "2"},
    {"kernel": "(3, 3)", "stride": "(1, 1)"},
    {"kernel": "(3, 3)", "stride": "(2, 2)"},
    {"brace": "}", "other": "{"},
    {"quote": '"', "accent": "é", "line": "\n"},
    {f"key{number:02}": "x" * number for number in range(70)},
    {"long": "y" * 5000},
]
LAYOUTS: list[Layout] = [
    lambda parts: "{" + ", ".join(f'"{key}": {value}' for key, value in parts.items()) + "}",
    lambda parts: "{" + ",".join(f'"{key}":{value}' for key, value in parts.items()) + "}",
    lambda parts: "{\n " + ", \n ".join(f'"{k}": {v}' for k, v in parts.items()) + "\n}",
    lambda parts: "{\t" + " ,\t".join(f'"{k}" : {v}' for k, v in parts.items()) + " }",
]


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file whose nodes are written in several layouts and orders of members."""
    texts = []
    for number in range(draw(st.integers(1, 12))):
        attributes = draw(st.sampled_from(ATTRIBUTES))
        dumped = json.dumps(attributes, ensure_ascii=draw(st.booleans()))
        producers = draw(st.lists(st.integers(0, number - 1), max_size=14)) if number else []
        entries = [[producer, 0, 0][: draw(st.sampled_from([2, 3]))] for producer in producers]
        members = {
            "op": json.dumps("null" if not producers else draw(st.sampled_from(["Op", "Other"]))),
            "name": json.dumps(f"node{number}"),
            "inputs": draw(st.sampled_from([" ", ""])) + json.dumps(entries),
        }
        if attributes or draw(st.booleans()):
            members[draw(st.sampled_from(["attrs", "attr", "param"]))] = dumped
        if draw(st.booleans()):
            members["backward_source_id"] = str(number - 1)
        if draw(st.booleans()):
            members["extra"] = json.dumps([number])
        shuffled = draw(st.permutations(sorted(members))) if draw(st.booleans()) else members
        layout = draw(st.sampled_from(LAYOUTS))
        texts.append(layout({key: members[key] for key in shuffled}))
    between = draw(st.sampled_from([", ", ",", " ,\n  "]))
    last = len(texts) - 1
    return (
        f'{{"nodes": [{between.join(texts)}], "arg_nodes": [], "heads": [[{last}, 0, 0]], '
        f'"node_row_ptr": {json.dumps(list(range(len(texts) + 1)))}}}'
    )


def written(text: str, *, pretty: bool) -> str:
    return _core.Graph.parse(text, lenient=False, ordered=False).print(pretty, {})


@given(files(), st.booleans())
def test_a_file_is_read_like_one_without_repetition(text: str, pretty: bool) -> None:
    found = json.loads(written(text, pretty=pretty), strict=False)
    wanted = json.loads(text)
    for node, original in zip(found["nodes"], wanted["nodes"], strict=True):
        spelled = {key: original[key] for key in ("attrs", "attr", "param") if original.get(key)}
        assert [node.get("attrs")] == (list(spelled.values()) or [None])
        assert node["op"] == original["op"]
        assert node["name"] == original["name"]
        assert node.get("extra") == original.get("extra")
        assert node["inputs"] == [[*entry, 0][:3] for entry in original["inputs"]]
    assert written(written(text, pretty=pretty), pretty=pretty) == written(text, pretty=pretty)


def chain(*nodes: str) -> str:
    return '{"nodes": [' + ", ".join(nodes) + '], "arg_nodes": [], "heads": [[0, 0, 0]]}'


def node(number: int, members: str = "") -> str:
    return f'{{"op": "Op", "name": "n{number}", "attrs": {{"k": "v"}}, "inputs": []{members}}}'


def ending_in(entries: str) -> str:
    return node(2).replace("[]", f"[[0, 0, 0], {entries}]")


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (node(2, ', "name": "n2"'), "the key 'name' occurs twice in one object"),
        (node(2, ', "attrs": {"k": "v"}'), "the key 'attrs' occurs twice in one object"),
        (node(2, ', "attr": {"k": "v"}, "more": }'), "where a value should stand"),
        ('{"op": "Op", "name": "n2", "attrs": {"k": "v"}}', "node 'n2' has no 'inputs'"),
        ('{"op": "Op", "attrs": {"k": "v"}, "inputs": []}', "node number 2 has no 'name'"),
        ('{"op": "Op", "name": "n2", "attrs": {"k": "v"', "where ',' or '}' should stand"),
        ('{"op": "Op", "name": "n2", "attrs": {"k": "v"}, "inputs": [[0, 0, 0]', "should stand"),
        ('{"op": "Op", "name": 2, "attrs": {"k": "v"}, "inputs": []}', "a string should stand"),
        (ending_in("[1, 0, 00]"), "a number must not begin with 0"),
        (ending_in("[1, 0, 0.5]"), "number of an entry must be an integer"),
        (ending_in("[1, 0, 4294967296]"), "is not within 0 to 2147483647"),
        (ending_in("[1, 0, -1]"), "is not within 0 to 2147483647"),
        (ending_in("[99999999, 0, 0]"), "refers to node 99999999, but there are 3"),
        (ending_in("[1, 0, 0],"), "should stand"),
    ],
)
def test_errors_behind_repetitions(last: str, message: str) -> None:
    text = chain(node(0), node(1), last)
    with pytest.raises(FormatError, match=message) as caught:
        _core.Graph.parse(text, lenient=False, ordered=True)
    place = re.search(r"offset (\d+)", str(caught.value))
    assert place is not None
    assert int(place[1]) >= text.index(last)


@mx.graph_pass
def tanh_at_act1(graph: mx.Graph) -> None:
    """Make the activation act1 a tanh."""
    next(each for each in graph.sorted() if each.name == "act1").attrs["act_type"] = "tanh"


def test_nodes_with_shared_attributes_change_alone() -> None:
    data = mx.sym.var("data")
    for number in range(4):
        data = mx.sym.Activation(data, act_type="relu", name=f"act{number}")
    symbol = mx.sym.load_json(data.tojson())

    changed = symbol.optimize_for(tanh_at_act1)
    found = {n.name: n.attrs.get("act_type") for n in changed.nodes() if n.op == "Activation"}
    assert found == {"act0": "relu", "act1": "tanh", "act2": "relu", "act3": "relu"}
    assert mx.sym.load_json(changed.tojson()).tojson() == changed.tojson()


def test_threads_share_attributes() -> None:
    text = chain(*(node(number) for number in range(200)))
    graph = _core.Graph.parse(text, lenient=False, ordered=False)
    wanted = graph.print(True, {})
    with ThreadPoolExecutor(4) as pool:
        copies = list(pool.map(lambda _: graph.copy(), range(40)))
        assert set(pool.map(lambda copy: copy.print(True, {}), copies)) == {wanted}


@pytest.mark.parametrize("pretty", [False, True])
def test_an_attribute_is_left_out(pretty: bool) -> None:
    plain = [
        '{"op": "Op", "name": "a", "attrs": {"__origin__": "[]", "k": "v"}, "inputs": []}',
        '{"op": "Op", "name": "b", "attrs": {"__origin__": "[]"}, "inputs": []}',
        '{"op": "Op", "name": "c", "attrs": {"k": "v"}, "inputs": []}',
    ]
    nested = '{"op": "Op", "name": "d", "inputs": [], "subgraphs": [' + chain(*plain) + "]}"
    graph = _core.Graph.parse(chain(*plain, nested), lenient=False, ordered=False)
    nodes = json.loads(graph.print(pretty, {}, "__origin__"))["nodes"]
    for found in (nodes, nodes[3]["subgraphs"][0]["nodes"]):
        assert [each.get("attrs") for each in found[:3]] == [{"k": "v"}, None, {"k": "v"}]
    assert "__origin__" in graph.print(pretty, {})
