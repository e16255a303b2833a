"""Validation of MXNet and NNVM models: operators, and the weights next to the graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib import nd
from passlib.errors import FormatError, PasslibError
from passlib.symbol import Symbol

SHAPES = {
    "conv_weight": (4, 3, 3, 3),
    "conv_bias": (4,),
    "bn_gamma": (4,),
    "bn_beta": (4,),
    "fc_weight": (2, 16),
    "fc_bias": (2,),
}
STATES = {"bn_moving_mean": (4,), "bn_moving_var": (4,)}


def network() -> Symbol:
    sym = passlib.sym
    conv = sym.Convolution(sym.Variable("data"), num_filter=4, kernel=(3, 3), name="conv")
    norm = sym.BatchNorm(conv, name="bn")
    dense = sym.FullyConnected(sym.Flatten(norm, name="flat"), num_hidden=2, name="fc")
    return sym.SoftmaxOutput(dense, name="softmax")


def save(folder: Path, symbol: Symbol, changes: dict[str, Any] | None = None) -> Path:
    """Write a model whose weights have some other shapes; None leaves a weight out."""
    changed = {**SHAPES, **STATES, **(changes or {})}
    arrays = {n: nd.array(np.ones(s, "f4")) for n, s in changed.items() if s is not None}
    path = folder / "x-symbol.json"
    symbol.save(path)
    prefixed = {("aux:" if n in STATES else "arg:") + n: array for n, array in arrays.items()}
    nd.save(folder / "x-0000.params", prefixed)
    return path


def respelled(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(f'"{old}"') >= 1
    path.write_text(text.replace(f'"{old}"', f'"{new}"'))


def checked(path: Path, dialect: str) -> list[tuple[str, str, str]]:
    return [
        (problem.severity, Path(problem.place).name, problem.message)
        for problem in passlib.validate(path, dialect)
    ]


dialects = pytest.mark.parametrize("dialect", ["mxnet", "nnvm"])


@dialects
def test_a_sound_model_has_no_problems(tmp_path: Path, dialect: str) -> None:
    path = save(tmp_path, network())
    if dialect == "nnvm":
        path = path.rename(tmp_path / "x.json")
        (tmp_path / "x-0000.params").rename(tmp_path / "x.params")
    assert checked(path, dialect) == []


WEIGHTS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": (
        {"conv_weight": None, "bn_moving_var": None},
        "2 of the 8 parameters are missing: conv_weight, bn_moving_var",
    ),
    "unused": (
        {"other": (2,), "more": (1,)},
        "2 of the 10 arrays belong to no variable: other, more",
    ),
}


@dialects
@pytest.mark.parametrize("case", WEIGHTS)
def test_names_of_weights(tmp_path: Path, case: str, dialect: str) -> None:
    changes, message = WEIGHTS[case]
    path = save(tmp_path, network(), changes)
    weights = "x-0000.params"
    if dialect == "nnvm":
        weights = "x-symbol.params"
        (tmp_path / "x-0000.params").rename(tmp_path / weights)
    assert checked(path, dialect) == [("warning", weights, message)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"conv_weight": (5, 3, 3, 3)}, ["'conv'", "'conv_weight'", "(5, 3, 3, 3)", "(4, "]),
        ({"fc_bias": (3,)}, ["'fc'", "'fc_bias'", "(3)", "(2)"]),
    ],
)
def test_shapes_that_contradict_their_operator(
    tmp_path: Path, changes: dict[str, Any], words: list[str]
) -> None:
    ((severity, place, message),) = checked(save(tmp_path, network(), changes), "mxnet")
    assert (severity, place) == ("warning", "x-0000.params")
    assert [word for word in words if word not in message] == []


def test_shapes_that_contradict_the_variable(tmp_path: Path) -> None:
    weight = passlib.sym.Variable("w", shape=(0, 3))
    symbol = passlib.sym.FullyConnected(passlib.sym.Variable("x"), weight, name="fc", num_hidden=2)
    symbol.save(tmp_path / "x-symbol.json")
    weights = {"arg:w": nd.array(np.ones((2, 4), "f4")), "arg:fc_bias": nd.array(np.ones(2, "f4"))}
    nd.save(tmp_path / "x-0000.params", weights)
    assert checked(tmp_path / "x-symbol.json", "mxnet") == [
        ("warning", "x-0000.params", "'w' has the shape (2, 4), the graph states (?, 3)")
    ]


@pytest.mark.parametrize(
    ("wrong", "dialect", "expected"),
    [
        ("Convoluton", "mxnet", "MXNet has no operator 'Convoluton'; did you mean 'Convolution'?"),
        ("Convoluton", "nnvm", "'Convoluton' is no known operator; did you mean 'Convolution'?"),
        ("my_special_op", "mxnet", "MXNet has no operator 'my_special_op'; if a library"),
        ("my_special_op", "nnvm", "'my_special_op' is no known operator"),
        ("yolo_reorg", "nnvm", None),
        ("x" * 5000, "mxnet", "MXNet has no operator 'xxxx"),
    ],
)
def test_operators(tmp_path: Path, wrong: str, dialect: str, expected: str | None) -> None:
    path = tmp_path / "x-symbol.json"
    network().save(path)
    respelled(path, "Convolution", wrong)
    found = checked(path, dialect)
    if expected is None:
        assert found == []
        return
    ((severity, place, message),) = found
    assert severity == ("error" if "did you" in expected and dialect == "mxnet" else "warning")
    assert place == "conv"
    assert message.startswith(expected)


def test_operators_are_reported_once_and_in_nested_graphs(tmp_path: Path) -> None:
    path = tmp_path / "x-symbol.json"
    data = passlib.sym.Variable("data")
    first = passlib.sym.Convolution(data, num_filter=4, kernel=(3, 3), name="first")
    passlib.sym.Convolution(first, num_filter=4, kernel=(3, 3), name="second").save(path)
    respelled(path, "Convolution", "Convoluton")
    inner = path.read_text()
    assert [place for _, place, _ in checked(path, "mxnet")] == ["first and 1 more"]
    outer = (
        '{"nodes":[{"op":"_cond","name":"n","inputs":[],"subgraphs":[' + inner + "]}],"
        '"arg_nodes":[],"node_row_ptr":[0,1],"heads":[[0,0,0]],'
        '"attrs":{"mxnet_version":["int",10901]}}'
    )
    path.write_text(outer)
    found = [place for _, place, message in checked(path, "mxnet") if "no operator" in message]
    assert found == ["first and 1 more"]


ATTRIBUTES = {
    "a misspelled name": ({"num_hiden": "2"}, "has no attribute 'num_hiden'; did you mean"),
    "a number of 6,000 digits": ({"num_hidden": "9" * 6000}, "'num_hidden' of operator"),
    "a word": ({"no_bias": "maybe"}, "cannot be 'maybe'"),
    "a missing one": ({"num_hidden": None}, "needs the attribute 'num_hidden'"),
}


@pytest.mark.parametrize("what", ATTRIBUTES)
@pytest.mark.parametrize("weights", [True, False])
def test_attributes(what: str, weights: bool, tmp_path: Path) -> None:
    changes, expected = ATTRIBUTES[what]
    path = save(tmp_path, network())
    if not weights:
        (tmp_path / "x-0000.params").unlink()
    content = json.loads(path.read_text())
    (node,) = [node for node in content["nodes"] if node["op"] == "FullyConnected"]
    for key, text in changes.items():
        node["attrs"] = {k: v for k, v in node["attrs"].items() if k != key}
        if text is not None:
            node["attrs"][key] = text
    path.write_text(json.dumps(content))
    ((severity, place, message),) = checked(path, "mxnet")
    assert (severity, place) == ("error", "fc")
    assert expected in message
    assert len(message) < 400


@pytest.mark.parametrize("text", ["(" * 5000, "(2, x)", "9" * 5000])
def test_a_stated_shape_that_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x-symbol.json"
    variable = passlib.sym.Variable("x", attr={"__shape__": "(2, 3)"})
    passlib.sym.relu(variable, name="y").save(path)
    assert checked(path, "mxnet") == []
    path.write_text(path.read_text().replace("(2, 3)", text))
    ((severity, place, message),) = checked(path, "mxnet")
    assert (severity, place) == ("warning", "x")
    assert message.startswith("__shape__ is no shape: ")
    assert len(message) < 200


def test_weights_of_the_other_kind(tmp_path: Path) -> None:
    path = save(tmp_path, network())
    file = tmp_path / "x-0000.params"
    weights = nd.load(str(file))
    weights["aux:fc_bias"] = weights.pop("arg:fc_bias")
    nd.save(str(file), weights)
    ((severity, place, message),) = checked(path, "mxnet")
    assert (severity, place) == ("warning", file.name)
    assert message.startswith("1 of the ")
    assert message.endswith("fc_bias")
    weights["arg:fc_bias"] = weights["aux:fc_bias"]
    nd.save(str(file), weights)
    ((severity, place, message),) = checked(path, "mxnet")
    assert (severity, place) == ("error", file.name)
    assert "fc_bias is in the file twice, as an argument and as an auxiliary state" in message
    with pytest.raises(FormatError, match="twice, as an argument"):
        passlib.load(path)


@pytest.mark.parametrize("heads", ["[-1, 0, 0]", "[NaN, 0, 0]", "[0, 0, 9999999999]"])
def test_a_damaged_symbol_is_not_taken_for_another_format(heads: str, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    passlib.sym.Variable("x").save(path)
    content = json.loads(path.read_text())
    content["heads"] = ["HEAD"]
    path.write_text(json.dumps(content).replace('"HEAD"', heads))
    with pytest.raises(PasslibError, match=r"net\.json: number of an entry"):
        passlib.sym.load(path)


@dialects
def test_damaged_weights(tmp_path: Path, dialect: str) -> None:
    path = save(tmp_path, network())
    weights = tmp_path / "x-0000.params"
    weights.write_bytes(weights.read_bytes()[:100])
    if dialect == "nnvm":
        weights = weights.rename(tmp_path / "x-symbol.params")
    ((severity, place, message),) = checked(path, dialect)
    assert (severity, place) == ("error", weights.name)
    assert message.startswith("at byte ")


@dialects
def test_bytes_after_the_last_array(tmp_path: Path, dialect: str) -> None:
    path = save(tmp_path, network())
    weights = tmp_path / "x-0000.params"
    if dialect == "nnvm":
        weights = weights.rename(tmp_path / "x-symbol.params")
    before = {name: array.asnumpy() for name, array in passlib.load(path, dialect).args.items()}
    with weights.open("ab") as file:
        file.write(b"left over")
    message = "the last 9 bytes belong to no array and are ignored"
    assert checked(path, dialect) == [("warning", weights.name, message)]
    for name, array in passlib.load(path, dialect).args.items():
        np.testing.assert_array_equal(array.asnumpy(), before[name])


def dense(**attributes: str) -> Any:
    """Return the graph of one operator, with some attributes changed, as JSON."""
    x = passlib.sym.Variable("x")
    content = json.loads(passlib.sym.FullyConnected(x, num_hidden=2, name="fc").tojson())
    content["nodes"][-1]["attrs"].update(attributes)
    return content


def around(op: str, name: str, *graphs: Any) -> Any:
    """Return the graph of one operator with graphs nested in it."""
    return {
        "nodes": [{"op": op, "name": name, "inputs": [], "subgraphs": list(graphs)}],
        "arg_nodes": [],
        "node_row_ptr": [0, 1],
        "heads": [[0, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }


WRONG = {"num_hiden": "2"}
NESTED: dict[str, tuple[Any, list[str]]] = {
    "a call": (around("_CachedOp", "call", dense(**WRONG)), ["fc in call"]),
    "a partition": (around("_sg_mkldnn_fully_connected", "p", dense(**WRONG)), ["fc in p"]),
    "the second of two": (
        around("_CachedOp", "call", dense(), dense(num_hidden="two")),
        ["fc in call"],
    ),
    "two levels": (
        around("_CachedOp", "a", around("_CachedOp", "b", dense(**WRONG))),
        ["fc in b in a"],
    ),
    "both": (
        around("_CachedOp", "a", dense(**WRONG), dense(no_bias="maybe")),
        ["fc in a", "fc in a"],
    ),
    "none": (around("_CachedOp", "call", dense()), []),
}


@pytest.mark.parametrize("what", NESTED)
def test_attributes_in_nested_graphs(what: str, tmp_path: Path) -> None:
    content, expected = NESTED[what]
    path = tmp_path / "x-symbol.json"
    path.write_text(json.dumps(content))
    found = [p for p in passlib.validate(path, "mxnet") if "attribute '" in p.message]
    assert [problem.place for problem in found] == expected
    assert all(problem.severity == "error" for problem in found)


def foreach() -> Symbol:
    def step(data: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        return passlib.sym.FullyConnected(data, num_hidden=2, name="fc"), [states[0] + 1]

    result, _ = passlib.sym.contrib.foreach(step, passlib.sym.var("x"), [passlib.sym.var("s")])
    return result


def while_loop() -> Symbol:
    def body(value: Symbol) -> tuple[list[Symbol], list[Symbol]]:
        made = passlib.sym.FullyConnected(value, num_hidden=2, name="fc")
        return [made], [value + 1]

    x = passlib.sym.var("x")
    made = passlib.sym.contrib.while_loop(lambda v: passlib.sym.sum(v) < 9, body, [x], 3)
    return made[0][0]


def cond() -> Symbol:
    x = passlib.sym.var("x")

    def branch() -> Symbol:
        return passlib.sym.FullyConnected(x, num_hidden=2, name="fc")

    return passlib.sym.contrib.cond(passlib.sym.sum(x) < 9, branch, lambda: x)


@pytest.mark.parametrize("make", [foreach, while_loop, cond], ids=lambda make: make.__name__)
@pytest.mark.parametrize("wrong", [WRONG, {"num_hidden": "two"}], ids=str)
def test_attributes_in_loops_and_branches(make: Any, wrong: dict[str, str], tmp_path: Path) -> None:
    """MXNet refuses to read them."""
    path = tmp_path / "x-symbol.json"
    make().save(path)
    assert not [p for p in passlib.validate(path) if p.severity == "error"]
    content = json.loads(path.read_text())
    (outer,) = [node for node in content["nodes"] if "subgraphs" in node]
    inner = [node for graph in outer["subgraphs"] for node in graph["nodes"]]
    (node,) = [node for node in inner if node["op"] == "FullyConnected"]
    node["attrs"].update(wrong)
    path.write_text(json.dumps(content))
    found = [p.place for p in passlib.validate(path, "mxnet") if p.severity == "error"]
    assert found == [f"fc in {outer['name']}"]
