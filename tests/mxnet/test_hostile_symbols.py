"""Symbol and weight files that exhaust parsers: errors of passlib with their place."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib import nd
from passlib.errors import FormatError, GraphError

VARIABLE: dict[str, Any] = {"op": "null", "name": "x", "inputs": []}


def symbol(attributes: str, name: str = '"x"') -> str:
    return (
        f'{{"nodes":[{{"op":"null","name":{name},"inputs":[]}}],"arg_nodes":[0],'
        f'"node_row_ptr":[0,1],"heads":[[0,0,0]],"attrs":{attributes}}}'
    )


ATTRIBUTES = {
    "nested": ("[" * 2000 + "]" * 2000, "top-level 'attrs': nested deeper than 200"),
    "nested objects": ('{"a":' * 2000 + "1" + "}" * 2000, "top-level 'attrs': nested deeper"),
    "digits": ('{"mxnet_version":["int",' + "1" * 5000 + "]}", '"mxnet_version" must be'),
    "beyond 64 bits": ('{"mxnet_version":["int",' + "1" * 25 + "]}", '"mxnet_version" must be'),
    "fraction": ('{"mxnet_version":["int",10900.5]}', '"mxnet_version" must be'),
    "boolean": ('{"mxnet_version":["int",true]}', '"mxnet_version" must be'),
    "long": ('{"mxnet_version":["' + "x" * 5000 + '",1]}', r"must be .{1,100}\.\.\.$"),
    "no object": ("[]", "top-level 'attrs' must be an object"),
}


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_attributes_of_the_graph(case: str, tmp_path: Path) -> None:
    text, message = ATTRIBUTES[case]
    with pytest.raises(FormatError, match=message):
        passlib.sym.load_json(symbol(text))
    path = tmp_path / "x-symbol.json"
    path.write_text(symbol(text))
    with pytest.raises(FormatError, match=rf"x-symbol\.json: .*{message}"):
        passlib.load(path)
    assert [problem.severity for problem in passlib.validate(path)] == ["error"]


@pytest.mark.parametrize("name", ['"\ud800"', '"\\ud800"', '"\\udc00x"'])
def test_half_of_a_surrogate_pair(name: str) -> None:
    with pytest.raises(FormatError, match="half of a surrogate pair"):
        passlib.sym.load_json(symbol("{}", name))


@pytest.mark.parametrize("value", ["1" * 5000, "-" + "9" * 5000, "(1, " + "2" * 5000 + ")"])
def test_long_numbers_in_attributes_of_nodes(value: str) -> None:
    data = passlib.sym.Variable("x")
    pooled = passlib.sym.Pooling(data, kernel=(2, 2), name="pool")
    changed = pooled.tojson().replace('"(2, 2)"', json.dumps(value))
    assert value in changed
    with pytest.raises(GraphError, match=r"'pool'.*'kernel'.* cannot be .*\.\.\.") as caught:
        passlib.sym.load_json(changed).infer_shape(x=(1, 1, 4, 4))
    assert len(str(caught.value)) < 300


def nested(depth: int) -> str:
    """Return a symbol of graphs nested ``depth`` levels deep, as text without recursion."""
    head = '"arg_nodes":[0],"node_row_ptr":[0,1],"heads":[[0,0,0]]}'
    inner = '{"nodes":[' + json.dumps(VARIABLE) + "]," + head
    outer = '{"nodes":[{"op":"_cond","name":"n","inputs":[],"subgraphs":['
    inside = head.replace("[0],", "[],", 1)
    versioned = inside[:-1] + ',"attrs":{"mxnet_version":["int",10901]}}'
    return outer * depth + inner + ("]}]," + inside) * (depth - 1) + "]}]," + versioned


@pytest.mark.parametrize(("depth", "accepted"), [(1, True), (100, True), (101, False)])
def test_depth_of_nested_graphs(depth: int, accepted: bool) -> None:
    if accepted:
        assert len(passlib.sym.load_json(nested(depth)).nodes()) == 1
        return
    with pytest.raises(FormatError, match=r"100 levels deep.*limits\(graph_depth="):
        passlib.sym.load_json(nested(depth))
    with passlib.limits(graph_depth=depth):
        passlib.sym.load_json(nested(depth).encode())


@pytest.mark.parametrize("spelling", ["subgraphs", "subgr\\u0061phs"])
def test_deeply_nested_graphs_in_files(tmp_path: Path, spelling: str) -> None:
    path = tmp_path / "x-symbol.json"
    path.write_text(nested(sys.getrecursionlimit() * 4).replace("subgraphs", spelling))
    with pytest.raises(FormatError, match=r"x-symbol\.json: graphs are nested"):
        passlib.load(path)
    with pytest.raises(FormatError, match=r"x-symbol\.json: .*deeper than 200 levels"):
        passlib.load(path, dialect="nnvm")


def test_nul_in_names_of_weights(tmp_path: Path) -> None:
    path = tmp_path / "w.params"
    nd.save(path, {"arg:a_b": nd.array(np.ones(2, "f4"))})
    content = path.read_bytes().replace(b"a_b", b"a\0b")
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"w\.params: at byte \d+: name 0 has a NUL") as raised:
        nd.load(path)
    assert raised.value.offset == content.index(b"a\0b") + 1
    passlib.sym.Variable("x").save(tmp_path / "x-symbol.json")
    with pytest.raises(FormatError, match="NUL"):
        passlib.load(tmp_path / "x-symbol.json", params=path)


def test_nul_in_names_of_tvm_weights(tmp_path: Path) -> None:
    passlib.sym.Variable("x").save(tmp_path / "x-symbol.json")
    model = passlib.load(tmp_path / "x-symbol.json", dialect="nnvm")
    weights = {"x": nd.array(np.ones(2, "f4"))}
    passlib.Model(model.symbol, weights, {}, "nnvm").save(tmp_path / "y.json")
    path = tmp_path / "y.params"
    content = path.read_bytes()
    assert content.count(struct.pack("<Q", 1) + b"x") == 1
    path.write_bytes(content.replace(struct.pack("<Q", 1) + b"x", struct.pack("<Q", 1) + b"\0"))
    with pytest.raises(FormatError, match=r"y\.params: at byte \d+: name 0 has a NUL"):
        passlib.load(tmp_path / "y.json", dialect="nnvm")


def test_epochs_beyond_all_numbers(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        passlib.load(tmp_path / ("x-" + "1" * 5000 + ".params"), dialect="mxnet")


def test_a_cast_of_mixed_precision_without_the_input_of_its_output() -> None:
    nodes = [
        VARIABLE,
        {
            "op": "amp_multicast",
            "name": "cast",
            "attrs": {"num_outputs": "2"},
            "inputs": [[0, 0, 0]],
        },
        {"op": "relu", "name": "y", "inputs": [[1, 1, 0]]},
    ]
    own = {"mxnet_version": ["int", 10901]}
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[2, 0, 0]], "attrs": own})
    read = passlib.sym.load_json(text)
    written = json.loads(read.tojson())
    assert [node["op"] for node in written["nodes"]] == ["null", "amp_multicast", "relu"]


def test_an_upsampled_input_of_unknown_rank() -> None:
    x, y = passlib.sym.var("x"), passlib.sym.var("y")
    both = passlib.sym.UpSampling(x, y, scale=2, sample_type="nearest", num_args=2)
    arguments, outputs, _ = both.infer_shape_partial(x=(1, 3, 32, 32))
    assert arguments[0] == (1, 3, 32, 32)
    assert outputs[0] in (None, (), (1, 0, 64, 64))


def test_a_split_into_nothing() -> None:
    node = {
        "op": "_split_v2",
        "name": "y",
        "attrs": {"indices": "[]", "axis": "0"},
        "inputs": [[0, 0, 0]],
    }
    own = {"mxnet_version": ["int", 10901]}
    text = json.dumps(
        {"nodes": [VARIABLE, node], "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": own}
    )
    with pytest.raises(GraphError, match=r"'indices' .*has no beginning of a piece"):
        passlib.sym.load_json(text).infer_shape(x=(2, 3))


def test_further_outputs_of_an_unknown_operator() -> None:
    nodes = [
        VARIABLE,
        {"op": "no_such", "name": "a", "inputs": [[0, 0, 0]]},
        {"op": "elemwise_add", "name": "y", "inputs": [[1, 0, 0], [1, 1, 0]]},
    ]
    own = {"mxnet_version": ["int", 10901]}
    heads = [[2, 0, 0], [1, 2, 0]]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": heads, "attrs": own})
    read = passlib.sym.load_json(text)
    assert read.infer_shape_partial(x=(2, 3))[0] == [(2, 3)]
    arguments, outputs, _ = read.infer_type_partial(x="float32")
    assert (arguments, len(outputs)) == ([np.float32], 2)
