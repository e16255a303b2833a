"""Validation of MXNet and NNVM models: operators, and the weights next to the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from passlib import nd
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
    assert [place for _, place, _ in checked(path, "mxnet")] == ["first and 1 more"]


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
