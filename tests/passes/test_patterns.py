"""The language of patterns: what matches, what does not and why, and what is not well-formed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from fusion_models import fusion_model, random

PARAMETERS = {
    "w": random(3, 3),
    "v": random(3),
    "half": np.array(0.5, np.float32),
    "half16": np.array([0.1], np.float16),
    "ints": np.array([1, 2]),
}

NODES = """
a = MatMul(x, w)
b = Add(v, a)
c = Relu(b)
d = Clip(c)
e = Clip(d, half)
f = Conv<group = 1, strides = [2, 2], auto_pad = "SAME_UPPER">(x, w, v)
g = Conv<strides = [1, 1]>(x, w)
h = Sub(c, x)
i = Mul(half, h)
j, k = TopK(x, ints)
l = Relu(k)
m = Concat<axis = 0>(a, i, h)
n = my.Relu(x)
o = Add(x, x)
y = Sum(m, l, o, n, e, f, g, j)
"""


@pytest.fixture(scope="module")
def model() -> passlib.Model:
    text = (
        '<ir_version: 9, opset_import: ["" : 20, "my" : 1]>'
        "g (float[3, 3] x) => (float[3, 3] y) {" + NODES + "}"
    )
    message = onnx.parser.parse_model(text)
    for made in message.graph.node:
        made.name = made.output[0]
    message.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in PARAMETERS.items()
    )
    return passlib.load(message)


def places(model: passlib.Model, pattern: str | list[str], **options: Any) -> list[str]:
    """The operations of each match, as text."""
    return [" ".join(found.nodes) for found in passlib.find(model, pattern, **options)]


MATCHES: dict[str, list[str]] = {
    # operators
    "Relu(x)": ["c", "l"],
    "y = Relu|Clip(x)": ["c", "d", "l"],
    "y = _(Relu(x))": [],
    "_(shared Relu(x))": ["c d"],
    "my::Relu(x)": ["n"],
    "Relu|my::Relu(x)": ["c", "l", "n"],
    "MatMul(x, _)": ["a"],
    "Gemm(*_)": [],
    # inputs in any order, where the operator allows it
    "Add(MatMul(*_), v)": [],
    "Add(shared MatMul(*_), v)": ["a b"],
    "Add(v, shared MatMul(*_))": ["a b"],
    "Sub(shared Relu(_), x)": ["c h"],
    "Sub(x, shared Relu(_))": [],
    # the same value twice
    "Add(x, x)": ["o"],
    "Add(x, z)": ["b", "o"],
    # parameters and numbers
    "MatMul(x, w:param)": ["a"],
    "MatMul(x:param, w)": [],
    "MatMul(x:input, w)": ["a"],
    "MatMul(x, w:input)": [],
    "MatMul(x, w:param[rank=2])": ["a"],
    "MatMul(x, w:param[rank=1|2, type=float32])": ["a"],
    "MatMul(x, w:param[rank=1])": [],
    "MatMul(x, w:param[type=float16|int8])": [],
    "MatMul(x, w:param[shape=[3, _]])": ["a"],
    "MatMul(x, w:param[shape=[_, 4]])": [],
    "Mul(x, 0.5)": ["i"],
    "Mul(x:input, 0.5)": [],
    "Mul(shared Sub(*_), 0.5)": ["h i"],
    "Mul(0.5, _)": ["i"],
    "Mul(_, 0.50001)": [],
    "Mul(_, s:param[value=0.25|0.5])": ["i"],
    "MatMul(_, 1)": [],
    # optional and variadic inputs
    "Clip(x)": ["d"],
    "Clip(x, low?)": ["d", "e"],
    "Clip(x, low?, high?)": ["d", "e"],
    "Clip(x, low:param)": ["e"],
    "Clip(x, low?:param[rank=0])": ["d", "e"],
    "Conv(x, w)": ["g"],
    "Conv(x, w, b)": ["f"],
    "Concat(*xs)": ["m"],
    "Concat(first, *rest)": ["m"],
    "Concat(first, *rest, last)": ["m"],
    "Concat(a, b, c, *rest)": ["m"],
    "Concat(a, b, c, d, *rest)": [],
    "Concat(first, *rest, shared Sub(*_))": ["h m"],
    # attributes
    "Conv[group=1](*_)": ["f"],
    "Conv[group?=1](*_)": ["f", "g"],
    "Conv[!group](*_)": ["g"],
    "Conv[strides=[2, 2]](*_)": ["f"],
    "Conv[strides=(2,2)](*_)": ["f"],
    "Conv[strides=[2, 2]|[1, 1]](*_)": ["f", "g"],
    "Conv[strides!=[2, 2]](*_)": ["g"],
    "Conv[group!=2](*_)": ["f", "g"],
    "Conv[auto_pad=SAME_UPPER](*_)": ["f"],
    "Conv[auto_pad='SAME_UPPER', group=1.0](*_)": ["f"],
    "Conv[strides=$s](*_)": ["f", "g"],
    "Conv[group?=$g](*_)": ["f", "g"],
    # outputs
    "Relu(shared TopK(*_):1)": ["j l"],
    "Relu(TopK(*_):0)": [],
    "v, i = TopK(*_)": ["j"],
    "t = shared TopK(*_)\n r = Relu(t:1)": ["j l"],
    # results
    "p = MatMul(x, w)\n q = Conv(x, w, b)": ["a f"],
    "p = MatMul(x, w)\n q = Sub(_, x)": [],  # the Sub depends on the MatMul
    "q = Sub(_, x)\n p = Conv(x, w, b)": ["h f"],
    # comments and line ends
    "# first\n y = Add(\n  x,  # twice\n  x)\n": ["o"],
    "r = shared Relu(x); s = Sub(r, _)": ["c h"],
}


@pytest.mark.parametrize("pattern", MATCHES)
def test_what_matches(model: passlib.Model, pattern: str) -> None:
    assert places(model, pattern) == MATCHES[pattern]


def test_a_match_has_its_parts(model: passlib.Model) -> None:
    pattern = "y = Conv[strides=$s, group?=$g](x, w, b?)"
    both = passlib.find(model, pattern)
    assert [found.attrs for found in both] == [{"s": "[2, 2]", "g": "1"}, {"s": "[1, 1]"}]
    assert both[0].values == {
        "y": (("f", 0),), "x": (("x", 0),), "w": (("w", 0),), "b": (("v", 0),)
    }  # fmt: skip
    assert both[1].values["b"] == ()
    (found,) = passlib.find(model, "y = Concat(first, *rest)")
    assert found.values["rest"] == (("i", 0), ("h", 0))
    assert found.pattern == "y = Concat(first, *rest)"


def test_several_patterns_are_searched_together(model: passlib.Model) -> None:
    found = passlib.find(model, ["Sub(*_)", "Relu(x)", "_(x, w, b)"])
    assert [(place.pattern, place.nodes[-1]) for place in found if place.nodes[-1] != "m"] == [
        ("Relu(x)", "c"), ("_(x, w, b)", "f"), ("Sub(*_)", "h"), ("Relu(x)", "l")
    ]  # fmt: skip


def test_inferred_shapes(model: passlib.Model) -> None:
    assert places(model, "Relu(b:value[rank=2])") == []
    assert places(model, "Relu(b:value[rank=2, type=float32])", shapes=True) == ["c"]
    assert places(model, "Relu(b:value[shape=[3, 4]])", shapes=True) == []


REASONS = {
    ("Add(MatMul(*_), v)", "b"): "the result of 'a' (MatMul) has other users, such as 'm' (Concat)",
    ("Relu(x)", "b"): "Relu is needed, and this is 'b' (Add)",
    ("Relu(x)", "n"): "Relu is needed, and this is 'n' (Relu)",
    ("Clip(Conv(*_))", "d"): "Conv is needed, and this is 'c' (Relu)",
    ("MatMul(x, w:param[rank=1])", "a"): "the variable 'w' has rank 2, not that of 'w'",
    ("MatMul(x, w:input)", "a"): "'w' must be an input of the graph, and is the variable 'w'",
    ("MatMul(x:param, w)", "a"): "'x' must be a parameter with known values, and is the variable",
    ("Mul(_, 2)", "i"): "must be the number 2, and the variable 'half' is 0.5",
    ("Conv(x, w)", "f"): "'f' (Conv) has 3 inputs, and Conv of the pattern 2",
    ("Conv[group=2](*_)", "f"): "'f' (Conv) has group=1, which the pattern does not allow",
    ("Conv[group=2](*_)", "g"): "'g' (Conv) has no attribute 'group'",
    ("Sub(x, x)", "h"): "'x' is 'c' (Relu) at one place and the variable 'x' at another",
    ("Relu(TopK(*_))", "l"): "output 0 of TopK is needed, and this is output 1 of 'j' (TopK)",
    ("v, i, z = TopK(*_)", "j"): "'j' (TopK) has no output 2",
    ("p = MatMul(x, w)\n q = Gemm(x, *_)", "a"): "Gemm is needed as user of the variable 'x'",
    ("Relu(b:value[rank=2])", "c"): "the shape of 'b' (Add) is unknown",
}


@pytest.mark.parametrize(("pattern", "node"), REASONS)
def test_why(model: passlib.Model, pattern: str, node: str) -> None:
    reason = passlib.why(model, pattern, node)
    assert reason is not None
    assert REASONS[pattern, node] in reason


def test_why_a_match_does_match(model: passlib.Model) -> None:
    assert passlib.why(model, "Relu(x)", "c") is None
    with pytest.raises(passlib.GraphError, match="no node 'nowhere'"):
        passlib.why(model, "Relu(x)", "nowhere")


FAULTS = {
    "": (1, 1, "expected an operation such as Relu(x), not the end"),
    "y = x": (1, 5, "expected an operation"),
    "y = Add(x": (1, 10, "expected ) or ,, not the end"),
    "y = Add(x y)": (1, 11, "expected ) or ,, not 'y'"),
    "y = Add(x,\n  )": (2, 3, "expected an input: an operation, a name, a number, or *name"),
    "Relu(x))": (1, 8, "expected an operator or the end of the statement"),
    "y = Relu(x)\ny = Clip(x)": (2, 1, "'y' has a meaning already"),
    "y = Relu(c)\nc = Clip(x)": (2, 1, "'c' has a meaning already"),
    "a, b = x": (1, 8, "expected an operation"),
    "a, b = Split(x):1": (1, 8, "outputs of an operation in order"),
    "a b": (1, 1, "expected an operation"),
    "a = Relu(x)\nb = Relu(z)": (2, 12, "shares no value with the results before it"),
    "Add(x:weight)": (1, 7, "expected param, input or value, not 'weight'"),
    "Add(x:param[ranks=2])": (1, 13, "expected rank, type, shape or value, not 'ranks'"),
    "Add(x:param[rank=1.5])": (1, 18, "a rank is a whole number"),
    "Add(x:param[type=float])": (1, 18, "expected a type such as float32, not 'float'"),
    "Add(x:param[shape=[a]])": (1, 20, "expected a number"),
    "Add(x:value[value=1])": (1, 13, "only a param has a known value"),
    "Add(x, x:param)": (1, 8, "say at the first use of 'x'"),
    "r = Relu(x)\nAdd(r?, x)": (2, 5, "is the result of an operation"),
    "Add(*x, *z)": (1, 9, "one variadic input"),
    "Add(*x, x)": (1, 9, "both one value and several"),
    "Conv[group](x)": (1, 11, "expected = and a value"),
    "Conv[group=](x)": (1, 12, "expected a value"),
    "Conv[group=$](x)": (1, 13, "expected a name after $"),
    "Conv[group!=$g](x)": (1, 13, "expected a value"),
    "Conv[pads=[1, 1](x)": (1, 17, "expected ] or ,"),
    "Conv[name='x](x)": (1, 11, "the quotation mark is not closed"),
    "Conv[pads=[1(x)": (1, 11, "the list is not closed"),
    "Conv[*c](x)": (1, 6, "a pattern cannot spread attributes"),
    "_|Relu(x)": (1, 2, "_ stands for any operator"),
    "Add(x:1, z)": (1, 5, "'x' is no operation"),
    "Relu" + "(Relu" * 300 + "(x)" + ")" * 300: (1, 1000, "nested more than 200 deep"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_of_patterns(text: str) -> None:
    line, column, message = FAULTS[text]
    with pytest.raises(passlib.PatternError) as caught:
        passlib.rewrite(text)
    if column < 1000:
        assert message in str(caught.value)
        assert (caught.value.line, caught.value.column) == (line, column)
        assert f"line {line}, column {column} of the pattern: " in str(caught.value)
    assert message in str(caught.value)


def test_one_model_each_way() -> None:
    """Weights that the caller did not lend are no parameters."""
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")]
    model = passlib.load(fusion_model(nodes, ([2, 3], [2, 3]), {"w": random(3, 3)}))
    assert places(model, "MatMul(x, w:param)") == ["mm"]
    assert places(model.symbol, "MatMul(x, w:param)") == []
    assert places(model.symbol, "MatMul(x, w)") == ["mm"]


def test_libraries_with_malformed_patterns_are_refused(plugin: Callable[[str], Path]) -> None:
    path = plugin("bad_patterns")
    with pytest.raises(passlib.LoadError) as caught:
        passlib.library.load(path)
    first, second = str(caught.value).splitlines()
    assert "pass 'unclosed': line 2, column 11 of the pattern: expected )" in first
    assert second.startswith("  pass 'unknownName': line 1, column 10 of the replacement: ")
    assert "the pattern has no value 'z'" in second
    assert str(path) in first
    assert "sound" not in passlib.library.passes()


def test_patterns_in_another_source_than_the_entry_points(plugin: Callable[[str], Path]) -> None:
    library = passlib.library.load(plugin("patterns_beside"), verbose=False)
    assert sorted(library.passes) == ["besideEntry", "besideSound"]
    relu = passlib.load(fusion_model([onnx.helper.make_node("Relu", ["x"], ["y"])], ([2], [2]), {}))
    made = relu.optimize_for("besideSound").symbol.nodes()
    assert [node.op for node in made if not node.is_variable] == ["Tanh"]
    with pytest.raises(passlib.LoadError, match="pass 'besideUnclosed': line 1, column 11 of"):
        passlib.library.load(plugin("patterns_beside_unclosed"))
