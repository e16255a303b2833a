"""Composition: the text that MXNet 1.9.1 writes for the same programs, and errors."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest

import passlib
import places
from compose_programs import PROGRAMS
from passlib import attribute
from passlib import symbol as sym
from passlib.errors import GraphError, PasslibError, UnsupportedError
from passlib.graph import names as naming
from passlib.mxnet.schema import calls as namespaces
from passlib.mxnet.symbol.composition import create as create_entries
from passlib.mxnet.symbol.namespaces import operator
from symbol_graphs import as_graph

GOLDEN = places.DATA / "compose"


def create(*args: Any, **kwargs: Any) -> sym.Symbol:
    return sym.Symbol(create_entries(*args, **kwargs))


def substitute(symbol: sym.Symbol, replacements: Any, name: str | None = None) -> sym.Symbol:
    return symbol(name=name, **replacements)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program_builds_what_mxnet_builds(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text("utf-8")
    golden = json.loads(text)
    assert golden.pop("attrs") == {"mxnet_version": ["int", 10901]}
    with naming.NameManager():
        built = PROGRAMS[name](passlib)
    assert as_graph(built) == golden
    assert built.tojson(remove_amp_cast=False) == text


def test_every_golden_has_a_program() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(PROGRAMS)


DATA = "data"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda x: sym.Convolution(x, kernal=(3, 3), num_filter=1, name="c"),
            "'c' 'kernal' 'kernel'",
        ),
        (lambda x: sym.Convolution(x, kernel="abc", num_filter=1), "convolution0 'kernel' 'abc'"),
        (lambda x: sym.Convolution(x, num_filter=1, name="c"), "'c' needs 'kernel'"),
        (lambda x: sym.FullyConnected(x, num_hidden="many"), "'num_hidden' 'many' int"),
        (lambda x: sym.FullyConnected(x, num_hidden=None), "'num_hidden' 'None'"),
        (lambda x: sym.FullyConnected(x, num_hidden=1, no_bias="maybe"), "'no_bias' 'maybe'"),
        (lambda x: sym.Activation(x, act_type="rleu"), "'act_type' 'rleu' 'relu'"),
        (lambda x: sym.FullyConnected(x, weight_lr_mult=2, num_hidden=1), "'weight' lr_mult var("),
        (lambda x: sym.FullyConnected(x, x, x, num_hidden=1, no_bias=True), "'bias' data, weight"),
        (lambda x: sym.FullyConnected(x, wieght=x, num_hidden=1), "'wieght' weight"),
        (lambda x: sym.relu(sym.split(x, num_outputs=2), name="r"), "'r' 'data' 2 outputs [i]"),
        (
            lambda x: sym.BatchNorm(x, moving_mean=sym.relu(x, name="r"), name="b"),
            "'moving_mean' 'r'",
        ),
        (lambda x: x + True, "'scalar' 'True'"),
        (lambda x: sym.sgd_mom_update(x, lr=1, name="s"), "'s' 'grad'"),
        (lambda x: sym.var("v", attr={"weight_wd_mult": "1"}), "'weight' wd_mult"),
    ],
)
def test_error_names_node_and_fault(build: Any, words: str) -> None:
    with naming.NameManager(), pytest.raises(GraphError) as caught:
        build(sym.var(DATA))
    for word in words.split():
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda x: sym.FullyConnected(3, num_hidden=1), TypeError, "'data' 3"),
        (lambda x: sym.Concat(x, 3), TypeError, "argument 1"),
        (lambda x: sym.Concat(x, arg1=x), TypeError, "position name"),
        (
            lambda x: sym.FullyConnected(x, data=x, num_hidden=1),
            TypeError,
            "'data' position keyword",
        ),
        (lambda x: sym.relu(x, 1, 2, 3), TypeError, "most data"),
        (lambda x: x + "a", TypeError, "'str' number"),
        (lambda x: sym.Group([]), TypeError, "Group"),
        (lambda x: sym.Group([x, 1]), TypeError, "Group"),
        (lambda x: sym.var(3), TypeError, "int"),
        (lambda x: sym.var("v", shap=(1,)), ValueError, "'shap' __shap__"),
        (lambda x: sym.var("v", stype="coo"), ValueError, "'coo' csr"),
        (lambda x: sym.histogram(x, 3), ValueError, "range"),
        (lambda x: sym.split_v2(x, [1]), ValueError, "tuple"),
        (lambda x: sym.random.uniform(x, 1), TypeError, "uniform"),
        (lambda x: sym.Convolutoin, AttributeError, "'Convolution'"),
        (lambda x: sym.contrib.box_mns, AttributeError, "sym.contrib 'box_nms'"),
        (lambda x: x.reshpe, AttributeError, "'reshape'"),
        (lambda x: x._nothing, AttributeError, "_nothing"),
        (lambda x: create("Convolutoin", [x]), UnsupportedError, "'Convolution'"),
        (lambda x: sym.Custom(x, op_type="mine", name="c"), UnsupportedError, "'c' 'Custom'"),
        (lambda x: attribute.AttrScope(a=1), ValueError, "'a' string"),
    ],
)
def test_misuse_is_told(build: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        build(sym.var(DATA))
    for word in words.split():
        assert word in str(caught.value)


def test_attributes_with_two_underscores_are_free() -> None:
    node = sym.relu(sym.var("x"), __mine__=(1, 2)).entries[0].node
    assert node.attrs == {"__mine__": "(1, 2)"}


def test_numpy_numbers_are_spelled_plainly() -> None:
    two = np.int64(2)
    node = sym.Convolution(sym.var("x"), kernel=(two, two), num_filter=two).entries[0].node
    assert node.attrs == {"kernel": "(2, 2)", "num_filter": "2"}
    half = (sym.var("x") * np.float32(0.5)).entries[0].node
    assert half.attrs == {"scalar": "0.5"}


def test_failure_leaves_the_inputs_alone() -> None:
    mean = sym.var("mean")
    before = (mean.entries, dict(mean.entries[0].node.attrs))
    with pytest.raises(PasslibError):
        sym.BatchNorm(sym.var("x"), moving_mean=mean, moving_var=sym.relu(mean))
    assert before == (mean.entries, dict(mean.entries[0].node.attrs))
    net = sym.BatchNorm(sym.var("x"), moving_mean=mean)
    assert net.entries[0].node.inputs[3].version == 1


def test_names_are_counted_by_thread() -> None:
    names: list[str] = []

    def work() -> None:
        names.append(sym.relu(sym.var("x")).entries[0].node.name)

    with naming.NameManager():
        sym.relu(sym.var("x"))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert names == ["relu0"]


def test_own_name_manager_decides() -> None:
    class Shouting(naming.NameManager):
        def get(self, name: str | None, hint: str) -> str:
            return super().get(name, hint).upper()

    with Shouting():
        assert sym.relu(sym.var("x")).entries[0].node.name == "RELU0"
        assert sym.relu(sym.var("x"), name="a").entries[0].node.name == "A"


def test_scope_ends_when_the_block_fails() -> None:
    with pytest.raises(RuntimeError), attribute.AttrScope(a="1"), naming.Prefix("p_"):
        raise RuntimeError
    with naming.NameManager():
        node = sym.relu(sym.var("x")).entries[0].node
    assert (node.name, dict(node.attrs)) == ("relu0", {})


def test_one_scope_may_be_entered_again_inside_itself() -> None:
    scope, manager = attribute.AttrScope(a="1"), naming.NameManager()
    with scope, manager:
        with scope, manager:
            assert sym.var("x").entries[0].node.attrs == {"a": "1"}
        assert sym.relu(sym.var("x")).entries[0].node.name == "relu0"
    assert sym.var("x").entries[0].node.attrs == {}


def test_functions_tell_about_themselves() -> None:
    function = sym.Convolution
    assert function.__name__ == "Convolution"
    assert "kernel : Shape(tuple), required" in (function.__doc__ or "")
    assert "box_nms" in dir(sym.contrib)
    assert sym.contrib.box_nms.__module__ == "passlib.symbol.contrib"


def test_every_operator_has_a_function() -> None:
    total = 0
    for namespace in ("", "_internal", *namespaces.NAMESPACES):
        for name in namespaces.operator_names(namespace):
            assert operator(name, namespace).__name__ == name
            total += 1
    assert total > 600


def test_nested_graphs_are_kept() -> None:
    body = sym.relu(sym.var("item"), name="body")
    loop = create(
        "_foreach",
        [sym.var("items")],
        {
            "num_args": 2,
            "num_outputs": 1,
            "num_out_data": 1,
            "in_state_locs": "()",
            "in_data_locs": "(0,)",
            "remain_locs": "()",
        },
        "loop",
        subgraphs=[body],
    )
    node = loop.entries[0].node
    assert node.subgraphs == (body,)
    assert [entry.node.name for entry in node.inputs] == ["items"]


def test_building_is_linear() -> None:
    x = sym.var("x")
    for _ in range(20_000):
        x = sym.relu(x, name="r")
    assert len(x.nodes()) == 20_001


def names(symbol: Any) -> list[str]:
    return [node.name for node in symbol.nodes()]


def test_graphs_are_put_together_by_variable_name() -> None:
    lower = sym.FullyConnected(sym.var("data"), num_hidden=3, name="lower")
    upper = sym.FullyConnected(num_hidden=3, name="upper")
    both = substitute(upper, {"upper_data": lower}, "joined")
    # MXNet 1.9.1 gives this order for upper(upper_data=lower, name="joined").
    assert names(both) == [
        *("data", "lower_weight", "lower_bias", "lower"),
        *("upper_weight", "upper_bias", "joined"),
    ]
    assert names(upper) == ["upper_data", "upper_weight", "upper_bias", "upper"]


def test_nodes_that_need_no_change_are_shared() -> None:
    x, y = sym.var("x"), sym.var("y")
    left, right = sym.relu(x, name="left"), sym.relu(y, name="right")
    both = sym.Group([left, left + right, y])
    new = substitute(both, {"y": sym.tanh(sym.var("z"), name="t")})
    assert new.entries[0].node is left.entries[0].node
    assert new.entries[1].node.inputs[1].node.inputs[0].node.name == "t"
    assert new.entries[2].node.name == "t"


def test_written_variables_are_replaced_by_variables_only() -> None:
    norm = sym.BatchNorm(sym.var("x"), name="bn")
    other = substitute(norm, {"bn_moving_mean": sym.var("mean")})
    assert [tuple(e)[2] for e in other.entries[0].node.inputs] == [0, 0, 0, 1, 1]
    with pytest.raises(GraphError, match=r"'bn'.*'bn_moving_mean'.*'r'"):
        substitute(norm, {"bn_moving_mean": sym.relu(sym.var("m"), name="r")})


@pytest.mark.parametrize(
    ("replacements", "error", "words"),
    [
        ({"dat": sym.var("y")}, GraphError, "'dat' data"),
        ({"data": 3}, TypeError, "'data' 3"),
        ({"data": sym.Group([sym.var("y"), sym.var("z")])}, GraphError, "'data' 2 outputs"),
    ],
)
def test_wrong_replacement_is_told(
    replacements: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        substitute(sym.relu(sym.var("data")), replacements)
    for word in words.split():
        assert word in str(caught.value)


def test_substitution_is_no_deep_recursion() -> None:
    x = sym.var("x")
    for _ in range(5_000):
        x = sym.relu(x, name="r")
    assert names(substitute(x, {"x": sym.var("y")}))[0] == "y"
