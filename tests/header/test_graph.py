"""Reading graphs: what is wrong with a symbol file is said with its place, and nothing is lost."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import passlib
from passlib.errors import FormatError, GraphError, UnsoundFileError

SMALL: dict[str, Any] = {
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "relu", "name": "a", "inputs": [[0, 0, 0]]},
        {"op": "relu", "name": "b", "inputs": [[1, 0, 0]]},
    ],
    "arg_nodes": [0],
    "heads": [[2, 0, 0]],
    "attrs": {"mxnet_version": ["int", 10901]},
}


def changed(path: str, value: object = ...) -> str:
    """The small graph with one place changed, or taken out; one node a line."""
    graph = copy.deepcopy(SMALL)
    *way, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    target: Any = graph
    for key in way:
        target = target[key]
    if value is ...:
        del target[last]
    elif isinstance(last, int) and last == len(target):
        target.append(value)
    else:
        target[last] = value
    return lines(graph)


def lines(graph: dict[str, Any]) -> str:
    members = []
    for key, value in graph.items():
        if key == "nodes" and isinstance(value, list):
            nodes = ",\n".join(json.dumps(node) for node in value)
            members.append(f'"nodes": [\n{nodes}\n]')
        else:
            members.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{" + ",\n".join(members) + "}"


SOUND: list[tuple[str, str]] = [
    ("nothing changed", lines(SMALL)),
    ("entries of two numbers", changed("nodes/1/inputs", [[0, 0]])),
    ("version of an entry", changed("nodes/1/inputs", [[0, 0, 1]])),
    ("forward reference", changed("nodes/3", {"op": "null", "name": "y", "inputs": []})
        .replace('[[1, 0, 0]]', '[[1, 0, 0], [3, 0, 0]]')),
    ("two operators of one name", changed("nodes/2/name", "a")),
    ("operator named like a variable", changed("nodes/2/name", "x")),
    ("control dependency", changed("nodes/2/control_deps", [0])),
    ("row pointers", changed("node_row_ptr", [0, 1, 2, 3])),
    ("one row pointer too few, as from MXNet's lib_api", changed("node_row_ptr", [0, 1, 2])),
    ("unknown key of a node", changed("nodes/1/odd", {"k": [1.50, None]})),
    ("unknown key of the graph", changed("more", [True])),
    ("several heads", changed("heads", [[2, 0, 0], [1, 0, 0], [2, 0, 0]])),
    ("node that no head needs", changed("heads", [[1, 0, 0]])),
    ("control character in a string", lines(SMALL).replace('"a"', '"a\tb"')),
]  # fmt: skip


@pytest.mark.parametrize("text", [text for _, text in SOUND], ids=[name for name, _ in SOUND])
def test_sound(text: str) -> None:
    symbol = passlib.sym.load_json(text)
    once = symbol.tojson()
    assert passlib.sym.load_json(once).tojson() == once
    assert passlib.sym.load_json(text.encode()).tojson() == once


UNSOUND: list[tuple[str, type[FormatError], str, str, int]] = [
    # What, exception, text of the file, words of the message, line.
    ("cycle", UnsoundFileError, changed("nodes/1/inputs", [[2, 0, 0]]),
     "cycle: 'a' -> 'b' -> 'a'", 1),
    ("self edge", UnsoundFileError, changed("nodes/1/inputs", [[1, 0, 0]]),
     "cycle: 'a' -> 'a'", 1),
    ("control cycle", UnsoundFileError, changed("nodes/1/control_deps", [2]),
     "cycle: 'a' -> 'b' -> 'a'", 1),
    ("input from nowhere", UnsoundFileError, changed("nodes/2/inputs", [[3, 0, 0]]),
     "input 0 of node 'b' refers to node 3, but there are 3 nodes", 4),
    ("control from nowhere", UnsoundFileError, changed("nodes/2/control_deps", [9]),
     "control dependency of node 'b' refers to node 9", 4),
    ("head from nowhere", UnsoundFileError, changed("heads", [[7, 0, 0]]),
     "head 0 refers to node 7", 1),
    ("argument from nowhere", UnsoundFileError, changed("arg_nodes", [5]),
     "arg_nodes refers to node 5", 1),
    ("negative node", UnsoundFileError, changed("nodes/2/inputs", [[-1, 0, 0]]),
     "-1 is not within 0", 4),
    ("node number of 64 bits", UnsoundFileError, changed("nodes/2/inputs", [[2**40, 0, 0]]),
     "not within", 4),
    ("node number of 100 bits", UnsoundFileError, changed("nodes/2/inputs", [[2**100, 0, 0]]),
     "out of range", 4),
    ("output that is not there", UnsoundFileError,
     changed("nodes/2/inputs", [[1, 4, 0]]).replace('"arg_nodes"',
                                                    '"node_row_ptr": [0, 1, 2, 3],"arg_nodes"'),
     "output 4 of node 'a', which has 1", 4),
    ("two variables of one name", UnsoundFileError,
     changed("nodes/3", {"op": "null", "name": "x", "inputs": []}),
     "two variables are named 'x'", 5),
    ("row pointers too short", UnsoundFileError, changed("node_row_ptr", [0, 1]),
     "node_row_ptr", 1),
    ("row pointers too long", UnsoundFileError, changed("node_row_ptr", [0, 1, 2, 3, 4]),
     "node_row_ptr", 1),
    ("row pointers that begin with 1", UnsoundFileError, changed("node_row_ptr", [1, 2, 3, 4]),
     "node_row_ptr", 1),
    ("row pointers that decrease", UnsoundFileError, changed("node_row_ptr", [0, 2, 1, 3]),
     "node_row_ptr decreases at node 'a'", 1),
    ("no nodes", FormatError, changed("nodes"), "the graph has no 'nodes'", 1),
    ("no heads", FormatError, changed("heads"), "the graph has no 'heads'", 1),
    ("no arg_nodes", FormatError, changed("arg_nodes"), "the graph has no 'arg_nodes'", 1),
    ("node without op", FormatError, changed("nodes/1/op"), "node 'a' has no 'op'", 3),
    ("node without name", FormatError, changed("nodes/1/name"), "node number 1 has no 'name'", 3),
    ("node without inputs", FormatError, changed("nodes/1/inputs"), "node 'a' has no 'inputs'", 3),
    ("nodes as object", FormatError, changed("nodes", {}), "'{' where a list should stand", 1),
    ("node as list", FormatError, changed("nodes/1", []), "'[' where an object should stand", 3),
    ("op as number", FormatError, changed("nodes/1/op", 5), "'5' where a string should stand", 3),
    ("name as null", FormatError, changed("nodes/1/name", None), "where a string should stand", 3),
    ("inputs as object", FormatError, changed("nodes/1/inputs", {}), "where a list should", 3),
    ("input as number", FormatError, changed("nodes/1/inputs", [0]), "where a list should", 3),
    ("input as text", FormatError, changed("nodes/1/inputs", [["0", 0, 0]]), "an integer", 3),
    ("input as real", FormatError, changed("nodes/1/inputs", [[0.5, 0, 0]]), "an integer", 3),
    ("input of one number", FormatError, changed("nodes/1/inputs", [[0]]), "[node, output]", 3),
    ("input of four numbers", FormatError, changed("nodes/1/inputs", [[0, 0, 0, 0]]),
     "[node, output, version]", 3),
    ("attribute as number", FormatError, changed("nodes/1/attrs", {"k": 3}),
     "attribute 'k' of node 'a' must be a string", 3),
    ("attributes as list", FormatError, changed("nodes/1/attrs", []), "where an object", 3),
    ("operator as argument", FormatError, changed("arg_nodes", [1]),
     "arg_nodes lists node 'a', which is not a variable but 'relu'", 1),
    ("subgraph as number", FormatError, changed("nodes/1/subgraphs", [1]), "where an object", 3),
    ("subgraph without nodes", FormatError,
     changed("nodes/1/subgraphs", [{"heads": [], "arg_nodes": []}]), "no 'nodes'", 3),
    ("key twice", FormatError, lines(SMALL).replace('"arg_nodes"', '"heads": [], "arg_nodes"'),
     "the key 'heads' occurs twice", 7),
    ("name twice", FormatError, lines(SMALL).replace('"name": "a"', '"name": "a", "name": "c"'),
     "the key 'name' occurs twice", 3),
    ("attribute twice", FormatError,
     lines(SMALL).replace('"name": "a"', '"name": "a", "attrs": {"k": "1", "k": "2"}'),
     "attribute 'k' occurs twice in node 'a'", 3),
    ("version as text", FormatError, changed("attrs", {"mxnet_version": "1.9"}),
     "mxnet_version", 0),
    ("text behind the graph", FormatError, lines(SMALL) + "\nx", "something follows the end", 9),
    ("list", FormatError, "[]", "'[' where an object should stand", 1),
    ("empty", FormatError, "", "the text ends", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "words", "line"),
    [row[1:] for row in UNSOUND],
    ids=[row[0] for row in UNSOUND],
)
def test_unsound(kind: type[FormatError], text: str, words: str, line: int) -> None:
    with pytest.raises(FormatError) as caught:
        passlib.sym.load_json(text)
    assert type(caught.value) is kind
    assert isinstance(caught.value, GraphError) == (kind is UnsoundFileError)
    assert words in str(caught.value)
    if line == 0:
        return
    assert caught.value.line == line, str(caught.value)
    offset, column = caught.value.offset, caught.value.column
    assert offset is not None
    assert column == offset - (text.rfind("\n", 0, offset) + 1) + 1
    assert text.count("\n", 0, offset) + 1 == line
    assert str(caught.value).endswith(f"(line {line}, column {column}, offset {offset})")


@pytest.mark.parametrize("key", ["attrs", "control_deps", "subgraphs", "odd"])
def test_member_of_a_node_twice(key: str) -> None:
    value = {"attrs": '{"k": "1"}', "control_deps": "[0]", "subgraphs": "[]", "odd": "1"}[key]
    member = f'"{key}": {value}'
    text = lines(SMALL).replace('"name": "a"', f'"name": "a", {member}, {member}')
    with pytest.raises(FormatError, match="twice"):
        passlib.sym.load_json(text)


def test_truncated_everywhere() -> None:
    text = lines(SMALL).encode()
    for size in range(len(text)):
        with pytest.raises(FormatError) as caught:
            passlib.sym.load_json(text[:size])
        assert "the text ends" in str(caught.value), size
        assert caught.value.offset is not None
        assert caught.value.offset <= size


def test_any_byte_may_be_wrong() -> None:
    """Whatever one byte is turned into: the file is read or refused, nothing else."""
    text = lines(SMALL).encode()
    refused = 0
    for i in range(len(text)):
        for byte in (0x00, 0x22, 0x2D, 0x5B, 0x7D, 0xFF):
            broken = text[:i] + bytes([byte]) + text[i + 1 :]
            try:
                passlib.sym.load_json(broken).tojson()
            except FormatError:
                refused += 1
    assert refused > 3 * len(text)


def test_not_utf8() -> None:
    text = lines(SMALL).encode().replace(b'"a"', b'"caf\xe9"')
    with pytest.raises(FormatError, match="not UTF-8") as caught:
        passlib.sym.load_json(text)
    assert caught.value.line == 3


def test_error_of_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad-symbol.json"
    path.write_text(changed("nodes/1/inputs", [[5, 0, 0]]), "utf-8")
    with pytest.raises(UnsoundFileError, match=r"bad-symbol\.json: input 0 of node 'a'") as caught:
        passlib.sym.load(path)
    assert caught.value.line == 3


def test_three_spellings_of_attributes() -> None:
    """ "param" and "attr" of MXNet 0.8 stand side by side, of which "param" gives way."""
    node = json.dumps(SMALL["nodes"][1])
    for old in (
        '"attrs": {"k": "1", "l": "2"}',
        '"attr": {"k": "1", "l": "2"}',
        '"param": {"k": "0", "l": "2"}, "attr": {"k": "1"}',
        '"attr": {"k": "1"}, "param": {"k": "0", "l": "2"}',
    ):
        text = lines(SMALL).replace(node, node[:-1] + f", {old}}}")
        assert passlib.sym.load_json(text).attr_dict()["a"] == {"k": "1", "l": "2"}, old


def test_nested_graphs_survive() -> None:
    inner = copy.deepcopy(SMALL)
    del inner["attrs"]
    graph = copy.deepcopy(SMALL)
    graph["nodes"][1]["op"] = "_holder"
    graph["nodes"][1]["subgraphs"] = [inner, copy.deepcopy(inner)]
    symbol = passlib.sym.load_json(json.dumps(graph))
    written = json.loads(symbol.tojson())
    for nested in written["nodes"][1]["subgraphs"]:
        assert nested["nodes"] == inner["nodes"]
        assert nested["heads"] == inner["heads"]


def test_unknown_keys_survive() -> None:
    text = changed("nodes/1/odd", {"k": [1.5, None, True]})
    written = json.loads(passlib.sym.load_json(text).tojson())
    assert written["nodes"][1]["odd"] == {"k": [1.5, None, True]}
    written = json.loads(passlib.sym.load_json(changed("more", [True])).tojson())
    assert written["more"] == [True]
