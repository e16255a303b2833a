"""Simplification runs to its end: a second one changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import passlib
from passlib.graph.plain import operators_of
from real_models import SIZES, find
from rewriting import parsed, weights


def test_sizes_that_a_step_reveals_are_used_in_the_same_run() -> None:
    """The states of the second layer are zeros once the first one has no states."""
    random = np.random.default_rng(0)
    nodes, init = [], []

    def constant(name: str, array: Any, dtype: str = "i8") -> str:
        init.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        nodes.append(onnx.helper.make_node(op, inputs, outputs, **attributes))

    for name, size in (("a", 4), ("b", 6)):
        for part, shape in (("W", (2, 9, size)), ("R", (2, 9, 3)), ("B", (2, 18))):
            constant(part + name, random.standard_normal(shape), "f4")
    for name, items in (("first", [0]), ("two", [2]), ("four", [4]), ("three", [3])):
        constant(name, items)
    constant("w", random.standard_normal((4, 2, 1)), "f4")
    constant("flat", [0, 0, -1])
    constant("batch", 0)
    add("Conv", ["x", "w"], ["c"])
    add("Transpose", ["c"], ["t"], perm=[0, 2, 1])
    add("Shape", ["t"], ["s"])
    add("Gather", ["s", "batch"], ["g"])
    add("Unsqueeze", ["g"], ["u"], axes=[0])
    add("Concat", ["four", "u", "three"], ["h"], axis=0)
    zero = numpy_helper.from_array(np.zeros(1, "f4"))
    add("ConstantOfShape", ["h"], ["z"], value=zero)
    add("Transpose", ["t"], ["d"], perm=[1, 0, 2])
    layer: dict[str, Any] = {"hidden_size": 3, "direction": "bidirectional"}
    add("Slice", ["z", "first", "two", "first"], ["h0"])
    add("GRU", ["d", "Wa", "Ra", "Ba", "", "h0"], ["o", "n0"], **layer)
    add("Transpose", ["o"], ["p"], perm=[0, 2, 1, 3])
    add("Reshape", ["p", "flat"], ["q"])
    add("Slice", ["z", "two", "four", "first"], ["h1"])
    add("GRU", ["q", "Wb", "Rb", "Bb", "", "h1"], ["", "n1"], **layer)
    add("Concat", ["n0", "n1"], ["y"], axis=0)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", 1, ["n", 2, "m"])], [value("y", 1, [4, "n", 3])], init
    )
    opset = [onnx.helper.make_opsetid("", 11)]
    once = passlib.simplify(onnx.helper.make_model(graph, opset_imports=opset, ir_version=6))
    assert once.simplify() is once
    assert "Shape" not in operators_of(once.symbol.graph)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", SIZES)
def test_a_second_run_changes_no_real_model(name: str, exact: bool) -> None:
    once = passlib.simplify(find(name), exact=exact)
    assert once.simplify(exact=exact) is once


@pytest.mark.parametrize("size", [2, 16, 64])
def test_a_known_branch_with_weights_is_taken(size: int) -> None:
    """The file shrinks by the other branch, whose weights go."""
    shape = f"float[N, {size}]"
    then = f"<{weights('p', size, size)}, {weights('q', size, size)}>"
    data = parsed(
        f"""g ({shape} x) => ({shape} y) <int64 two = {{2}}> {{
            s = Shape(x) r = Size(s) c = Equal(r, two)
            y = If(c) <then_branch = t () => ({shape} o) {then} {{
                           a = MatMul(x, p) b = Relu(a) o = MatMul(b, q) }},
                       else_branch = e () => ({shape} o) <{weights("u", size, size)}> {{
                           o = MatMul(x, u) }}> }}"""
    )
    made = passlib.simplify(data)
    assert operators_of(made.symbol.graph) == {"MatMul": 2, "Relu": 1}
    assert made.args.nbytes == 4 * size * size  # the two of the branch are equal


def test_what_would_make_the_file_much_larger_stays() -> None:
    data = parsed(
        """g (float[1000, 1000] x, bool c) => (float[A, B] y) <int64[2] s = {1000, 1000}> {
            y = If(c) <then_branch = t () => (o) {
                           z = ConstantOfShape(s) e = Cos(z) o = Add(x, e) },
                       else_branch = e () => (o) { o = Neg(x) }> }"""
    )
    made = passlib.simplify(data)
    assert operators_of(made.symbol.graph)["ConstantOfShape"] == 1


@pytest.mark.parametrize("exact", [True, False])
def test_constant_outputs_keep_their_names(exact: bool, tmp_path: Path) -> None:
    text = (
        "g (float[2] x) => (float[2] y, float[2] z, float[2] v, int64[1] s) "
        "<float[2] w = {1, -2}> { v = Identity(w) y = Abs(w) z = Identity(x) s = Shape(x) }"
    )
    once, twice = tmp_path / "once.onnx", tmp_path / "twice.onnx"
    passlib.simplify(parsed(text), exact=exact).save(once)
    passlib.simplify(once, exact=exact).save(twice)
    assert twice.read_bytes() == once.read_bytes()
