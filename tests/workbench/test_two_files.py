"""``bisect`` between two files, whichever tool made one from the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import passlib as pl
from commands import passlib_command
from passlib.dialects.onnx.nested import graphs_within
from passlib.errors import GraphError, UnsupportedError
from passlib.workbench import (
    Differs,
    Guilty,
    NothingFailsError,
    Tolerance,
    bisect,
    reduce_both,
)
from passlib.workbench.parts import outputs_of
from tool_faults import FAULTS, LOOSE, TOOLS, judge, plant

SIZE = 4


def network(layers: int) -> Any:
    """Make a network of all operators that `FAULTS` are planted at."""
    generator = np.random.default_rng(1)
    nodes: list[Any] = []
    weights: list[Any] = []

    def weight(*shape: int, shift: float = 0.0) -> str:
        array = generator.standard_normal(shape).astype(np.float32) / 2 + np.float32(shift)
        weights.append(numpy_helper.from_array(array, f"weight{len(weights)}"))
        return str(weights[-1].name)

    def add(operator: str, *inputs: str, **attributes: Any) -> str:
        made = f"{operator.lower()}{len(nodes)}"
        nodes.append(helper.make_node(operator, inputs, [f"{made}_out"], made, **attributes))
        return f"{made}_out"

    value = "x"
    for _ in range(layers):
        given = weight(SIZE, SIZE, 2, 2), weight(SIZE, shift=1)
        layer = add("Conv", value, *given, pads=[0, 1, 1, 0])
        scaled = [weight(SIZE, shift=2), weight(SIZE), weight(SIZE)]
        variance = numpy_helper.from_array(np.full(SIZE, 2.0, np.float32), f"weight{len(weights)}")
        weights.append(variance)
        layer = add("Relu", add("BatchNormalization", layer, *scaled, variance.name))
        gate = add("Sigmoid", add("GlobalAveragePool", add("Tanh", layer)))
        value = add("Add", add("Mul", layer, gate), value)
    pooled = add("MaxPool", value, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    turned = add("Transpose", add("Transpose", pooled, perm=[0, 2, 3, 1]), perm=[0, 2, 1, 3])
    flat = add("MatMul", add("Flatten", turned), weight(SIZE * 25, 2 * SIZE))
    less = add("Sub", add("Add", flat, weight(2 * SIZE, shift=1)), add("Sqrt", add("Abs", flat)))
    ratio = add("Div", less, weight(2 * SIZE, shift=3))
    nodes.append(helper.make_node("Softmax", [ratio], ["y"], "softmax", axis=-1))
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, SIZE, 5, 5])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 2 * SIZE])],
        weights,
    )
    sets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


@pytest.fixture(scope="module")
def before() -> pl.Model:
    return pl.load(network(3))


# Half precision does not have the larger numbers of random inputs.
INPUTS = [
    {"x": np.random.default_rng(seed).standard_normal((3, SIZE, 5, 5)).astype(np.float32)}
    for seed in range(2)
]


def message_of(model: pl.Model, folder: Path) -> Any:
    return onnx.load(model.save(folder / "message.onnx")[0])


def with_other_names(model: Any) -> Any:
    """Number all values, nodes and weights, as tools do that keep no names."""
    names = {value.name: value.name for value in (*model.graph.input, *model.graph.output)}
    for tensor in model.graph.initializer:
        tensor.name = names.setdefault(tensor.name, f"w{len(names)}")
    for number, node in enumerate(model.graph.node):
        node.name = f"node_{number}"
        for field in (node.input, node.output):
            for place, name in enumerate(field):
                field[place] = names.setdefault(name, f"v{len(names)}") if name else ""
    del model.graph.value_info[:]
    return model


def simplified(model: Any) -> Any:
    """Fold and fuse, and keep no names."""
    with tempfile.TemporaryDirectory() as folder:
        return with_other_names(message_of(pl.simplify(model), Path(folder)))


MAKERS: dict[str, Callable[[Any], Any]] = {"simplify, renamed": simplified, **TOOLS}


def made_by(tool: str, model: pl.Model, folder: Path) -> Any:
    try:
        return MAKERS[tool](message_of(model, folder))
    except ModuleNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.sample(12)
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("tool", MAKERS)
def test_faults_in_the_output_of_tools(
    tool: str, kind: str, before: pl.Model, tmp_path: Path
) -> None:
    after = made_by(tool, before, tmp_path)
    differs = Differs(before, INPUTS, LOOSE.get(tool))
    assert differs.what(pl.load(after.SerializeToString())) in ("", "names")
    for made, names in plant(after, kind, 0):
        if differs.what(pl.load(made.SerializeToString())) == "numbers":
            assert judge(before, made, names, differs) == ""
            return
    assert (tool, kind) in ABSENT


ABSENT = {
    *(("onnxoptimizer", kind) for kind in ("turned_weight", "lost_bias")),
    *(("ORT extended", kind) for kind in ("turned_weight", "lost_bias")),
    *(("quantization", kind) for kind in ("turned_weight", "lost_bias")),
}
"""Faults without a place: the weights are computed, or belong to operators of ONNX Runtime."""


@pytest.mark.parametrize("tool", MAKERS)
def test_right_output_of_tools(tool: str, before: pl.Model, tmp_path: Path) -> None:
    after = pl.load(made_by(tool, before, tmp_path).SerializeToString())
    with pytest.raises(NothingFailsError, match="nothing fails: the second model is correct"):
        bisect(before, after, Differs(before, INPUTS, LOOSE.get(tool)))


def loaded(text: str) -> pl.Model:
    """Load a model in ONNX's text format, whose nodes are named after their values."""
    model = onnx.parser.parse_model(text)
    for graph in graphs_within(model.graph):
        for node in graph.node:
            node.name = f"node_{node.output[0]}"
    return pl.load(model.SerializeToString())


HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3, 4] x, bool c)'

PAIRS = {
    "a right merge beside a wrong axis": (
        """=> (float[4, 2, 3] y, float[2, 3, 4] z) { a = Transpose<perm = [1, 2, 0]>(x)
        y = Transpose<perm = [1, 2, 0]>(a) r = Relu(x) z = Softmax<axis = 2>(r) }""",
        """=> (float[4, 2, 3] y, float[2, 3, 4] z) { y = Transpose<perm = [2, 0, 1]>(x)
        r = Relu(x) z = Softmax<axis = 0>(r) }""",
        ["node_z (Softmax): attribute axis: 2 -> 0"],
    ),
    "a node of a nested graph": (
        """=> (float[2, 3, 4] y) { a = Neg(x) b = Abs(a) w = Exp(x) y = If(c)<
        then_branch = t () => (u) { u = Sub(a, w) },
        else_branch = e () => (v) { v = Sub(w, b) }> }""",
        """=> (float[2, 3, 4] y) { n = Neg(x) w = Exp(x) b = Abs(x) y = If(c)<
        then_branch = t () => (u) { u = Sub(w, n) },
        else_branch = e () => (v) { v = Sub(b, w) }> }""",
        [
            *("node_u (Sub): input 0: a -> w", "node_u (Sub): input 1: w -> a"),
            *("node_v (Sub): input 0: w -> b", "node_v (Sub): input 1: b -> w"),
        ],
    ),
    "right rewrites beside it in a branch": (
        """=> (float[2, 3, 4] y) <float[1] k = {2.0}> { a = Neg(x) y = If(c)<
        then_branch = t () => (u) { i = Identity(a) j = Mul(i, k) z = Sin(j) u = Relu(z) },
        else_branch = e () => (v) { v = Neg(a) }> }""",
        """=> (float[2, 3, 4] y) { d = Neg(x) y = If(c)<
        then_branch = t () => (u) { j = Add(d, d) z = Cos(j) u = Relu(z) },
        else_branch = e () => (v) { v = Identity(x) }> }""",
        ["node_z (Sin)", "node_z (Cos)"],
    ),
    "a node of a Loop": (
        """=> (float[2, 3, 4] y) <int64 n = {3}> { y = Loop(n, c, x)<
        body = b (int64 i, bool g, float[2, 3, 4] p) => (bool on, float[2, 3, 4] q) {
        on = Identity(g) e = Sin(p) f = Identity(e) h = Mul(f, f) q = Add(h, x) }> }""",
        """=> (float[2, 3, 4] y) <int64 n = {3}> { y = Loop(n, c, x)<
        body = b (int64 n0, bool n1, float[2, 3, 4] n2) => (bool n3, float[2, 3, 4] n4) {
        n3 = Identity(n1) e = Sin(n2) h = Mul(e, e) n4 = Sub(h, x) }> }""",
        ["node_q (Add)", "node_n4 (Sub)"],
    ),
    "a node of a Scan": (
        """=> (float[2, 4] y, float[3, 2, 4] z) { k = Exp(x)
        q = ReduceMax<axes = [1], keepdims = 0>(x)
        y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        body = b (float[2, 4] p, float[2, 4] e) => (float[2, 4] s, float[2, 4] r) {
        t = Sin(e) i = Identity(t) s = Add(p, i) r = Mul(s, q) }>(q, k) }""",
        """=> (float[2, 4] y, float[3, 2, 4] z) { k = Exp(x)
        q = ReduceMax<axes = [1], keepdims = 0>(x)
        y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        body = b (float[2, 4] n0, float[2, 4] n1) => (float[2, 4] n2, float[2, 4] n3) {
        n4 = Sin(n1) n2 = Add(n4, n0) n3 = Add(q, n2) }>(q, k) }""",
        ["node_r (Mul)", "node_n3 (Add)"],
    ),
    "a branch of a branch": (
        """=> (float[2, 3, 4] y) { d = Not(c) y = If(c)<
        then_branch = t () => (u) { a = Neg(x) u = If(d)<
            then_branch = s () => (m) { m = Exp(a) },
            else_branch = r () => (n) { o = Neg(a) n = Sin(o) }> },
        else_branch = e () => (v) { v = Neg(x) }> }""",
        """=> (float[2, 3, 4] y) { d = Not(c) y = If(c)<
        then_branch = t () => (u) { u = If(d)<
            then_branch = s () => (m) { a = Neg(x) m = Exp(a) },
            else_branch = r () => (n) { n = Cos(x) }> },
        else_branch = e () => (v) { v = Neg(x) }> }""",
        ["node_n (Sin)", "node_n (Cos)"],
    ),
    "a wrong condition beside right branches": (
        """=> (float[2, 3, 4] y) { y = If(c)<
        then_branch = t () => (u) { a = Neg(x) u = Neg(a) },
        else_branch = e () => (v) { v = Neg(x) }> }""",
        """=> (float[2, 3, 4] y) { d = Not(c) y = If(d)<
        then_branch = t () => (u) { u = Identity(x) },
        else_branch = e () => (v) { v = Neg(x) }> }""",
        ["node_y (If)", "node_d (Not)", "node_y (If)"],
    ),
    "outputs of a branch swapped": (
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) { y, z = If(c)<
        then_branch = t () => (u, w) { u = Neg(x) w = Sin(x) },
        else_branch = e () => (v, k) { v = Neg(x) k = Exp(x) }> }""",
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) { y, z = If(c)<
        then_branch = t () => (w, u) { u = Neg(x) w = Sin(x) },
        else_branch = e () => (v, k) { v = Neg(x) k = Exp(x) }> }""",
        ["node_u (Neg)", "node_w (Sin)", "node_w (Sin)", "node_u (Neg)"],
    ),
    "an output that became a constant": (
        """=> (float[2] y, float[2, 3, 4] z) <int64[1] two = {2}> {
        s = Shape<start = 2>(x) f = Cast<to = 1>(s) y = Expand(f, two) z = Neg(x) }""",
        "=> (float[2] y, float[2, 3, 4] z) <float[2] y = {4.0, 5.0}> { z = Neg(x) }",
        ["node_s (Shape)", "node_f (Cast)", "node_y (Expand)"],
    ),
    "two inputs of one operator": (
        "=> (float[2, 3, 4] y) { a = Exp(x) b = Sin(x) y = Sub(a, b) }",
        "=> (float[2, 3, 4] y) { b = Sin(x) a = Exp(x) y = Sub(b, a) }",
        ["node_y (Sub): input 0: a -> b", "node_y (Sub): input 1: b -> a"],
    ),
    "another operator set": (
        "=> (float[2, 3, 4] y) { a = Exp(x) y = Softmax<axis = 1>(a) }",
        "=> (float[2, 3, 4] y) { a = Exp(x) y = Softmax<axis = 2>(a) }",
        ["node_y (Softmax): attribute axis: 1 -> 2"],
    ),
    "a repeated value": (
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) { a = Exp(x) b = Identity(a)
        y = Sin(b) z = Cos(b) }""",
        "=> (float[2, 3, 4] y, float[2, 3, 4] z) { a = Exp(x) y = Sin(a) z = Sin(a) }",
        ["node_z (Cos)", "node_z (Sin)"],
    ),
    "other sizes of a value that two nodes read": (
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) { k = ReduceMax<axes = [2]>(x)
        a = Add(k, x) y = Sub(a, x) z = Mul(x, a) }""",
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) { k = ReduceMax<axes = [2]>(x)
        a = Add(k, k) y = Sub(a, x) z = Mul(x, a) }""",
        ["node_a (Add): input 1: x -> k"],
    ),
    "a fault behind which other numbers agree by chance": (
        """=> (float[2, 3, 4] y) <float one = {1.0}, float half = {0.5}> { e = Erf(x)
        a = Add(e, one) m = Mul(x, a) h = Mul(m, half) y = Sub(h, x) }""",
        """=> (float[2, 3, 4] y) <float one = {1.0}, float half = {0.5}> { n0 = Erf(x)
        n1 = Add(n0, one) n2 = Add(half, n1) n3 = Mul(x, n2) n4 = Neg(x) y = Add(n4, n3) }""",
        [
            "node_m (Mul)",
            "node_h (Mul)",
            "node_y (Sub)",
            "node_n2 (Add)",
            "node_n3 (Mul)",
            "node_n4 (Neg)",
            "node_y (Add)",
        ],
    ),
    "two copies of a wrong value": (
        "=> (float[2, 3, 4] y, float[2, 3, 4] z) { a = Exp(x) y = Sin(a) z = Cos(a) }",
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) { n1 = Neg(x) n2 = Neg(x)
        y = Sin(n1) z = Cos(n2) }""",
        ["node_a (Exp)", "node_n2 (Neg)"],
    ),
    "a fault before a sum with zeros": (
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) <float[4] w = {0.0, 0.0, 0.0, 0.0}> {
        a = Exp(x) b = Add(w, a) y = Add(b, x) z = Mul(b, x) }""",
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) <float[4] w = {0.0, 0.0, 0.0, 0.0}> {
        n0 = Exp(x) n1 = Cast<to = 3>(n0) n2 = CastLike(n1, n0) n3 = Add(n2, w)
        y = Add(x, n3) z = Mul(x, n3) }""",
        ["node_a (Exp)", "node_n0 (Exp)", "node_n1 (Cast)", "node_n2 (CastLike)"],
    ),
    "a fault before fused operators": (
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) { a = Exp(x) y = Sin(a)
        d = Mul(a, a) e = Neg(d) z = Cos(e) }""",
        """=> (float[2, 3, 4] y, float[2, 3, 4] z) <float two = {2.0}> {
        n0 = Exp(x) n1 = Cast<to = 3>(n0) n2 = CastLike(n1, n0) y = Sin(n2)
        n3 = Pow(n2, two) n4 = Neg(n3) z = Cos(n4) }""",
        ["node_a (Exp)", "node_n0 (Exp)", "node_n1 (Cast)", "node_n2 (CastLike)"],
    ),
    "a lost operator behind a fusion": (
        """=> (float[2, 3, 4] y) <float[4] w = {0.0, -0.5, 0.5, -1.0}> {
        a = Sin(x) b = Add(a, w) d = Add(b, w) r = Relu(d) f = Exp(r) y = Mul(f, r) }""",
        """=> (float[2, 3, 4] y) <float[4] v = {0.0, -1.0, 1.0, -2.0}> {
        a = Sin(x) b = Add(a, v) r = Identity(b) f = Exp(r) y = Mul(f, r) }""",
        ["node_r (Relu)", "node_r (Identity)"],
    ),
    "an opposite condition": (
        """=> (float[6, 4] y) <int64[2] fine = {6, 4}, int64[2] bad = {5, 5}> {
        d = Relu(x) e = Sin(d) s = Where(c, fine, bad) r = Where(c, bad, fine) t = Not(c)
        y = If(t)<then_branch = one () => (u) { u = Reshape(e, r) },
        else_branch = two () => (v) { v = Reshape(e, s) }> }""",
        """=> (float[6, 4] y) <int64[2] fine = {6, 4}, int64[2] bad = {5, 5}> {
        d = Abs(x) e = Sin(d) s = Where(c, fine, bad) r = Where(c, bad, fine) t = And(c, c)
        y = If(t)<then_branch = two () => (v) { v = Reshape(e, s) },
        else_branch = one () => (u) { u = Reshape(e, r) }> }""",
        ["node_d (Relu)", "node_d (Abs)"],
    ),
}
"""Graphs before and after, and what is guilty."""


@pytest.mark.parametrize("case", PAIRS)
def test_pairs(case: str) -> None:
    one, two, wanted = PAIRS[case]
    first = loaded(f"{HEAD} {one}")
    newer = HEAD.replace('"" : 17', '"" : 21') if case == "another operator set" else HEAD
    second = loaded(f"{newer} {two}")
    generator = np.random.default_rng(0)
    inputs = [
        {"x": generator.standard_normal((2, 3, 4)).astype(np.float32), "c": np.array(taken)}
        for taken in (True, False)
    ]
    found = bisect(first, second, Differs(first, inputs))
    assert named(found) == wanted
    assert found.others == ""
    assert found.model is not None
    assert Differs(first, inputs)(found.model)


PARTS = {
    "a right merge beside a wrong axis": (["Softmax"], ["Softmax"]),
    "a node of a nested graph": (["Sub"], ["Sub"]),
    "right rewrites beside it in a branch": (["Sin"], ["Cos"]),
    "a node of a Loop": (["Add"], ["Sub"]),
    "a node of a Scan": (["Mul"], ["Add"]),
    "a branch of a branch": (["Sin"], ["Cos"]),
    "a wrong condition beside right branches": (["If"], ["Not", "If"]),
    "an output that became a constant": (None, []),
    "two inputs of one operator": (["Sub"], ["Sub"]),
    "another operator set": (["Softmax"], ["Softmax"]),
    "a repeated value": (["Cos"], ["Sin"]),
    "an opposite condition": (["Relu"], ["Abs"]),
    "other sizes of a value that two nodes read": (["Add"], ["Add"]),
}
"""The operators that are left of the pairs."""


@pytest.mark.parametrize("case", PARTS)
def test_smallest_parts_that_differ(case: str, tmp_path: Path) -> None:
    one, two, _ = PAIRS[case]
    newer = HEAD.replace('"" : 17', '"" : 21') if case == "another operator set" else HEAD
    generator = np.random.default_rng(0)
    inputs = [
        {"x": generator.standard_normal((2, 3, 4)).astype(np.float32), "c": np.array(taken)}
        for taken in (True, False)
    ]
    found = reduce_both(loaded(f"{HEAD} {one}"), loaded(f"{newer} {two}"), inputs=inputs)
    assert found.after is not None
    before, after = PARTS[case]
    assert before is None or operators_of(found.model) == before
    assert operators_of(found.after) == after
    values = []
    for name, model in (("before", found.model), ("after", found.after)):
        path = tmp_path / f"{name}.onnx"
        model.save(path)
        onnx.checker.check_model(str(path), full_check=True)
        values.append(pl.load(path).run({n: found.inputs[n] for n in model.inputs}))
    assert found.model.outputs == found.after.outputs
    assert any(
        left.shape != right.shape or not np.allclose(left.asnumpy(), right.asnumpy())
        for left, right in zip(*(each.values() for each in values), strict=True)
    )


def operators_of(model: pl.Model) -> list[str]:
    """Return the operators without the copies at the end."""
    return [
        node.op for node in model.symbol.nodes() if not node.is_variable and node.op != "Identity"
    ]


def test_parts_of_equal_models() -> None:
    model = loaded(f"{HEAD} {PAIRS['two inputs of one operator'][0]}")
    with pytest.raises(NothingFailsError, match="do not show the fault"):
        pl.workbench.reduce(model, model)


def named(found: Guilty) -> list[str]:
    return [text for each in found.rewrites for text in (*each.removed, *each.added, *each.changed)]


def test_a_nested_rewrite_is_drawn_with_its_place(tmp_path: Path) -> None:
    one, two, _ = PAIRS["right rewrites beside it in a branch"]
    first, second = loaded(f"{HEAD} {one}"), loaded(f"{HEAD} {two}")
    found = bisect(first, second)
    place = "in then_branch of node_y (If)"
    assert str(found).splitlines()[:9] == [
        "guilty rewrites: 1 of 4",
        "  - node_z (Sin)",
        "  + node_z (Cos)",
        f"    {place}",
        "before:",
        f"  {place}:",
        "    z = Sin(j)",
        "after:",
        f"  {place}:",
    ]
    assert found.model is not None
    made = message_of(found.model, tmp_path)
    onnx.checker.check_model(made)
    (branch,) = (each.g for each in made.graph.node[-1].attribute if each.name == "then_branch")
    assert [node.op_type for node in branch.node if node.op_type in ("Sin", "Cos")] == ["Cos"]
    assert "Add" not in [node.op_type for node in branch.node]


def crashing(model: pl.Model, inputs: dict[str, Any]) -> list[Any]:
    """Compute the outputs in a runtime that crashes at a Cos."""
    if any(node.op == "Cos" for node in model.symbol.nodes()):
        os.abort()
    return outputs_of(model, inputs)


@pytest.mark.parametrize("compares", [False, True], ids=["a test", "the values"])
def test_values_that_crash_the_process(compares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    first = loaded(f"{HEAD} => (float[2, 3, 4] y) {{ a = Exp(x) b = Abs(a) y = Sin(b) }}")
    second = loaded(f"{HEAD} => (float[2, 3, 4] y) {{ a = Exp(x) y = Cos(a) }}")
    monkeypatch.setattr("passlib.workbench.equal_values.outputs_of", crashing)
    monkeypatch.setattr("passlib.workbench.comparison.outputs_of", crashing)
    failing = None if compares else lambda m: any(node.op == "Cos" for node in m.symbol.nodes())
    found = bisect(first, second, failing, isolate=True)
    assert "node_y (Cos)" in named(found)


def test_small_numbers_that_agree_with_any_others() -> None:
    """At the tolerance of quantization; a wrong product must not seem to explain what it reads."""
    generator = np.random.default_rng(0)
    weight = generator.standard_normal((8, 8)).astype(np.float32) / 8
    scale = np.abs(weight).max() / 127
    arrays = {"w": weight, "scale": scale, "low": np.round(weight / scale).astype(np.int8)}
    head = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 2, 8] x) => (float[4, 8] y)
    <int64[2] sizes = {4, 8}> { rows = Reshape(x, sizes) t = Tanh(rows)"""
    end = "e = Exp(p) y = Softmax<axis = -1>(e) }"
    quantized = """q, s, zero = DynamicQuantizeLinear(t) sums = MatMulInteger(q, low, zero)
    f = Cast<to = 1>(sums) both = Mul(s, scale)"""
    models = []
    for text in (
        "p = MatMul(t, w)",
        f"{quantized} p = Mul(f, both)",
        f"{quantized} p = Mul(f, f)",
    ):
        made = onnx.parser.parse_model(f"{head} {text} {end}")
        weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
        made.graph.initializer.extend(weights)
        for node in made.graph.node:
            node.name = f"node_{node.output[-1]}"
        models.append(pl.load(made.SerializeToString()))
    before, right, wrong = models
    inputs = [{"x": generator.standard_normal((2, 2, 8)).astype(np.float32) / 10}]
    differs = Differs(before, inputs, Tolerance(0.2, 0.2))
    assert not differs(right)
    found = bisect(before, wrong, differs)
    assert named(found) == [
        "node_p (MatMul)",
        "node_zero (DynamicQuantizeLinear)",
        "node_sums (MatMulInteger)",
        "node_f (Cast)",
        "node_p (Mul)",
    ]
    assert found.others == ""


def test_models_of_other_dialects() -> None:
    x = pl.sym.var("x", shape=(2, 3))
    before = pl.Model(pl.sym.exp(pl.sym.sin(x, name="s"), name="y"))
    after = pl.Model(pl.sym.exp(pl.sym.cos(x, name="s"), name="y"))
    found = bisect(before, after)
    assert named(found) == ["s_sin (Sin)", "s_cos (Cos)"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(float[2, 8] z) => (float[2, 8] y) { a = Cos(z) y = Exp(a) }",
         ["node_a (Sin)", "node_a (Cos)"]),
        ("(float[2, 8] x) => (float[2, 8] z) { a = Cos(x) z = Exp(a) }",
         ["node_a (Sin)", "node_a (Cos)"]),
        ("""(float[2, 8] x) => (float[5, 7] z) <int64[2] s = {5, 7}> {
         a = Sin(x) r = Reshape(a, s) z = Exp(r) }""",
         ["node_y (Exp)", "node_r (Reshape)", "node_z (Exp)"]),
    ],
    ids=["input", "output", "output of a model that does not run"],
)  # fmt: skip
def test_faults_beside_other_names(text: str, wanted: list[str]) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g'
    before = loaded(f"{head} (float[2, 8] x) => (float[2, 8] y) {{ a = Sin(x) y = Exp(a) }}")
    found = bisect(before, loaded(f"{head} {text}"))
    assert named(found) == wanted


def test_other_names_are_said() -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 8] x) => (float[2, 8] '
    before, after = (loaded(f"{head} {name}) {{ {name} = Sin(x) }}") for name in "yz")
    with pytest.raises(NothingFailsError, match="correct; the outputs were y, and are z"):
        bisect(before, after)


def test_different_domains() -> None:
    before, after = (
        loaded(f"{HEAD} => (float[2, 3, 4] y) {{ y = {operator}(x) }}".replace("17", sets))
        for operator, sets in (
            ("Neg", '17, "com.microsoft" : 1'),
            ("Abs", '17, "com.microsoft" : 2'),
        )
    )
    with pytest.raises(UnsupportedError, match=r"different versions of 'com\.microsoft'"):
        bisect(before, after)


def test_a_fault_that_no_value_shows() -> None:
    before = loaded(f"{HEAD} => (float[2, 3, 4] y) {{ y = Exp(x) }}")
    after = loaded(f"{HEAD} => (float[2, 3, 4] z) {{ z = Exp(x) }}")
    with pytest.raises(GraphError, match="in what no value shows"):
        bisect(before, after, lambda model: model.outputs == ["z"])


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        one, two, _ = PAIRS["a right merge beside a wrong axis"]
        loaded(f"{HEAD} {one}").save(tmp_path / "before.onnx")
        loaded(f"{HEAD} {two}").save(tmp_path / "after.onnx")
        return tmp_path

    def test_output(self, folder: Path) -> None:
        found = passlib_command(
            "bisect", "before.onnx", "after.onnx", "-o", "guilty.onnx", folder=folder
        )
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout == (
            "guilty rewrites: 1 of 2\n"
            "  ~ node_z (Softmax): attribute axis: 2 -> 0\n"
            "before:\n"
            "  z = Softmax(r)\n"
            "after:\n"
            "  z = Softmax(r)\n"
            "4 runs\n"
        )
        ops = [node.op_type for node in onnx.load(folder / "guilty.onnx").graph.node]
        assert ops.count("Transpose") == 2

    def test_json_of_a_command(self, folder: Path) -> None:
        wrong = 'any(n.op_type == "Softmax" and n.attribute[0].i == 0 for n in m.graph.node)'
        script = f"import onnx, sys; m = onnx.load(sys.argv[1]); sys.exit({wrong})"
        test = f"{sys.executable} -c '{script}' {{}}"
        found = passlib_command(
            "bisect", "before.onnx", "after.onnx", "--json", "--test", test, folder=folder
        )
        assert json.loads(found.stdout)["rewrites"] == [
            {
                "removed": [],
                "added": [],
                "changed": ["node_z (Softmax): attribute axis: 2 -> 0"],
                "place": "",
            }
        ]

    def test_reduce(self, folder: Path) -> None:
        given = ("before.onnx", "after.onnx", "-o", "small.onnx", "--script", "issue.py")
        found = passlib_command("reduce", *given, folder=folder)
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout.splitlines()[1:] == [
            "small-before.onnx", "small-after.onnx", "issue.py"
        ]  # fmt: skip
        (folder / "made").mkdir()
        run = subprocess.run(
            [sys.executable, "-I", "../issue.py"],
            cwd=folder / "made",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, "")
        assert "before.onnx: y0 differs by at most 0.0\n" in run.stdout
        assert "after.onnx: y0 differs by at most 0.0\n" not in run.stdout
        again = passlib_command("compare", "made/before.onnx", "made/after.onnx", folder=folder)
        assert again.returncode == 4

    def test_reduce_of_a_command(self, tmp_path: Path) -> None:
        one, two, _ = PAIRS["a repeated value"]
        loaded(f"{HEAD} {one}").save(tmp_path / "before.onnx")
        loaded(f"{HEAD} {two}").save(tmp_path / "after.onnx")
        test = "grep -aq Cos {}"
        given = ("before.onnx", "after.onnx", "-o", "small.onnx", "--json", "--test", test)
        found = passlib_command("reduce", *given, folder=tmp_path)
        assert json.loads(found.stdout)["files"] == ["small-before.onnx", "small-after.onnx"]
        ops = [
            [node.op_type for node in onnx.load(tmp_path / f"small-{name}.onnx").graph.node]
            for name in ("before", "after")
        ]
        assert ops == [["Cos"], ["Sin", "Identity"]]

    @pytest.mark.parametrize(
        ("given", "code", "message"),
        [
            ("before.onnx before.onnx", 5, "nothing fails: the second model is correct"),
            ("before.onnx after.onnx --passes simplify", 1, "give AFTER, or passes"),
            ("before.onnx after.onnx -l some.so", 1, "give AFTER, or passes"),
            ("before.onnx none.onnx", 1, "none.onnx"),
            ("before.onnx after.onnx -o made.json", 1, ".json"),
        ],
    )
    def test_messages(self, given: str, code: int, message: str, folder: Path) -> None:
        found = passlib_command("bisect", *given.split(), folder=folder)
        assert found.returncode == code
        assert message in found.stderr
