"""Simplification of local functions: their bodies, and what surrounds their calls."""

from __future__ import annotations

import itertools
import pickle
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx import helper, parser

import passlib
import random_graphs
from passlib.dialects.onnx.nested import graphs_within
from rewriting import results


class Case(NamedTuple):
    """A model: its graph and functions, and the operators that are left of each."""

    graph: str
    functions: dict[str, str]
    left: dict[str, list[str]]
    opset: int = 17


MATRICES = "(float[2, 3] a, float[3, 4] b, float[4] c) => (float[2, 4] y)"
VECTORS = "(float[N] x, float[3] z) => (float[M] y)"

CASES = {
    "nothing need be known": Case(
        f"{VECTORS} {{ y = f.one(x) }}",
        {"one (p) => (o)": "r = Relu(p) i = Identity(r) o = Relu(i)"},
        {"one": ["Relu"]},
    ),
    "a type and a rank that the only call has": Case(
        f"{MATRICES} {{ y = f.one(a, b, c) }}",
        {"one (p, q, r) => (o)": "m = MatMul(p, q) o = Add(m, r)"},
        {"one": ["Gemm"]},
    ),
    "ranks that differ between calls": Case(
        "(float[2, 3] a, float[3, 4] b, float[5, 2, 3] d) => (float[2, 4] y, float[5, 2, 4] z) "
        "<float[4] c = {1, 2, 3, 4}> { y = f.one(a, b, c) z = f.one(d, b, c) }",
        {"one (p, q, r) => (o)": "m = MatMul(p, q) s = Add(m, r) i = Identity(s) o = Relu(i)"},
        {"one": ["MatMul", "Add", "Relu"]},
    ),
    "dimensions that differ between calls": Case(
        "(float[2, 3] a, float[5, 3] b) => (float[2, 3] y, float[5, 3] z) "
        "{ y = f.one(a) z = f.one(b) }",
        {"one (p) => (o)": "s = Shape(p) t = ConstantOfShape(s) i = Identity(t) o = Sub(i, p)"},
        {"one": ["Shape", "ConstantOfShape", "Sub"]},
    ),
    "sizes that only a run tells, of nodes of one name": Case(
        "(float[N] x, float[3] z) => (bool[2] y) { a = NonZero(x) y = f.one(a, z) }",
        {"one (p, q) => (o)": "b = NonZero(q) s = Shape(b) t = Shape(p) o = Equal(s, t)"},
        {"one": ["NonZero", "Shape", "Shape", "Equal"]},
    ),
    "a dimension that all calls have": Case(
        "(float[2, 3] a, float[5, 3] b) => (float[2, 3] y, float[5, 3] z) "
        "{ y = f.one(a) z = f.one(b) }",
        {
            "one (p) => (o)": "k = Constant<value = int64[1] {1}>() s = Shape(p) t = Gather(s, k) "
            "u = ConstantOfShape(t) o = Sub(u, p)"
        },
        {"one": ["Constant", "Sub"]},
    ),
    "attributes of the call": Case(
        f"{VECTORS} {{ h = f.one<alpha = 0.5>(x) y = f.one<alpha = 2.0>(h) }}",
        {
            "one <alpha> (p) => (o)": "i = Identity(p) l = LeakyRelu<alpha: float = @alpha>(i) "
            "j = Identity(l) o = Abs(j)"
        },
        {"one": ["LeakyRelu", "Abs"]},
    ),
    "two operators with one attribute of the call": Case(
        f"{VECTORS} {{ y = f.one<low = 0.5>(x) }}",
        {
            "one <low> (p) => (o)": "k = Constant<value_float: float = @low>() "
            "l = Constant<value_float: float = @low>() i = Add(p, k) j = Identity(i) o = Add(j, l)"
        },
        {"one": ["Constant", "Constant", "Add", "Add"]},
    ),
    "orders of axes by attributes of the call": Case(
        "(float[2, 3, 4] x) => (float[4, 2, 3] y) { y = f.one<q = [1, 0, 2], p = [2, 0, 1]>(x) }",
        {
            "one <q, p> (a) => (o)": "t = Transpose<perm: ints = @q>(a) i = Identity(t) "
            "u = Transpose<perm = [1, 0, 2]>(i) o = Transpose<perm: ints = @p>(u)"
        },
        {"one": ["Transpose"] * 3},
    ),
    "functions in functions": Case(
        f"{MATRICES} {{ y = f.outer(a, b, c) }}",
        {
            "outer (p, q, r) => (o)": "i = Identity(p) t = f.inner(i, q, r) n = Neg(t) o = Neg(n)",
            "inner (p, q, r) => (o)": "m = MatMul(p, q) o = Add(m, r)",
        },
        {"outer": ["inner"], "inner": ["Gemm"]},
    ),
    "an input that a call leaves out": Case(
        f"{VECTORS} <float low = {{0}}> {{ h = f.one(x, low) y = f.one(h) }}",
        {"one (p, q) => (o)": "i = Identity(p) o = Clip(i, q)"},
        {"one": ["Identity", "Clip"]},
    ),
    "branches in a body": Case(
        "(float[N] x, bool c) => (float[N] y) { y = f.one(x, c) }",
        {
            "one (p, c) => (o)": "i = Identity(p) o = If (c) < "
            "then_branch = t () => (float[N] v) { r = Relu(i) s = Relu(r) v = Neg(s) }, "
            "else_branch = e () => (float[N] w) { n = Neg(i) k = Neg(n) w = Abs(k) } >"
        },
        {"one": ["If", "Relu", "Neg", "Abs"]},
    ),
    "a call in a branch": Case(
        "(float[N] x, bool c) => (float[N] y) { y = If (c) < "
        "then_branch = t () => (float[N] v) { r = Relu(x) s = Relu(r) v = f.one(s) }, "
        "else_branch = e () => (float[N] w) { w = f.one(x) } > }",
        {"one (p) => (o)": "i = Identity(p) o = Abs(i)"},
        {"": ["If", "Relu", "one", "one"], "one": ["Abs"]},
    ),
    "a call in a loop": Case(
        "(float[2, 3] x, float[3, 3] w) => (float[2, 3] y) "
        "<int64 n = {3}, bool true = {1}, float[3] b = {1, 2, 3}> { y = Loop (n, true, x) < "
        "body = l (int64 i, bool c, float[2, 3] s) => (bool d, float[2, 3] t) "
        "{ d = Identity(c) t = f.one(s, w, b) } > }",
        {"one (p, q, r) => (o)": "m = MatMul(p, q) a = Add(m, r) i = Relu(a) o = Relu(i)"},
        {"one": ["Gemm", "Relu"]},
    ),
    "constants": Case(
        f"{VECTORS} {{ y = f.one(x) }}",
        {
            "one (p) => (o)": "k = Constant<value = float[1] {2}>() "
            "l = Constant<value = float[1] {3}>() m = Add(k, l) o = Mul(p, m)"
        },
        {"one": ["Constant", "Mul"]},
    ),
    "several results": Case(
        "(float[4, 2] x) => (float[2, 2] y, float[2, 2] z) { y, z = f.one(x) }",
        {
            "one (p) => (o, q)": "i = Identity(p) s, t = Split<axis = 0>(i) "
            "o = Neg(s) u = Neg(t) v = Neg(u) q = Neg(v)"
        },
        {"one": ["Split", "Neg", "Neg"]},
    ),
    "casts there and back around a call": Case(
        "(float[2, 3] x, bool c) => (float[2, 3] y) { d = Cast<to = 11>(x) y = f.one(d, c) }",
        {
            "one (p, c) => (o)": "t = Transpose<perm = [0, 1]>(p) e = Cast<to = 1>(t) "
            "o = If (c) < then_branch = t () => (float[2, 3] v) { v = Abs(e) }, "
            "else_branch = e () => (float[2, 3] w) { w = Neg(e) } >"
        },
        {},
    ),
    "a function that nobody calls": Case(
        f"{VECTORS} {{ y = Neg(x) }}",
        {"one (p) => (o)": "i = Identity(p) o = Abs(i)"},
        {"": ["Neg"], "one": ["Identity", "Abs"]},
    ),
    "shapes of results": Case(
        "(float[2, 3] a, float[3, 4] b) => (float[2, 4] y, int64[k] s) "
        "{ h = f.one(a, b) s = Shape(h) y = f.two(h) }",
        {"one (p, q) => (o)": "o = MatMul(p, q)", "two (p) => (o)": "o = Neg(p)"},
        {"": ["one", "two", "Identity"]},
    ),
}


def model_of(case: Case) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {case.opset}, "f": 1]> g {case.graph}'
    for head, body in case.functions.items():
        text += f'\n<domain: "f", opset_import: ["": {case.opset}, "f": 1]>\n{head} {{ {body} }}'
    return parser.parse_model(text)


def bodies(model: onnx.ModelProto) -> dict[str, list[str]]:
    return {
        getattr(body, "name", "") if body is not model.graph else "": sorted(
            node.op_type for graph in graphs_within(body) for node in graph.node
        )
        for body in (model.graph, *model.functions)
    }


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    random = np.random.default_rng(3)
    feeds: dict[str, Any] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value or 5 for dim in kind.shape.dim]
        made = random.standard_normal(shape).astype(np.float32)
        feeds[value.name] = made if kind.elem_type == onnx.TensorProto.FLOAT else np.array(True)
    return feeds


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_bodies_are_simplified(case: str, exact: bool, tmp_path: Any) -> None:
    before = model_of(CASES[case])
    onnx.checker.check_model(before)
    passlib.simplify(before, exact=exact).save(tmp_path / "made.onnx")
    after = onnx.load(tmp_path / "made.onnx")
    onnx.checker.check_model(after)
    expected = {name: sorted(left) for name, left in CASES[case].left.items()}
    found = bodies(after)
    gemms = any("Gemm" in left for left in expected.values())
    if not (exact and gemms):  # which rounds
        assert {name: found[name] for name in expected} == expected
    feeds = feeds_of(before)
    given = [model.SerializeToString() for model in (before, after)]
    inlined = onnx.inliner.inline_local_functions(after).SerializeToString()
    for one in (given[1], inlined):
        for left, right in zip(results(one, feeds), results(given[0], feeds), strict=True):
            np.testing.assert_allclose(left, right, rtol=0 if exact else 1e-5)
    # A second run changes nothing.
    again = passlib.simplify(passlib.load(tmp_path / "made.onnx"), exact=exact)
    again.save(tmp_path / "again.onnx")
    assert list(onnx.load(tmp_path / "again.onnx").functions) == list(after.functions)


RULES = """
rule reluOfRelu "Relu of Relu is Relu."
  y = Relu(Relu(x))
  => y = Relu(x)
  exact
rule addOfMatMul "A product of two matrices and a sum become Gemm."
  onnx 7..
  m = MatMul(a, b)
  y = Add(m, c)
  where rank(a) = 2, rank(b) = 2, broadcasts(c, m)
  => y = Gemm(a, b, c)
  rounding
rule negTwice "Relu of a difference is longer."
  y = Relu(x)
  where rank(x) = 1
  => y = Neg(Min(Neg(x), 0.0))
  exact
  enables
rule anyLeakyRelu "An operator of any slope but one."
  y = LeakyRelu[alpha=$a](x)
  where $a != 1
  => y = x
  exact
"""

RULED = Case(
    f"{MATRICES} {{ h = f.one(a, b, c) y = f.two<alpha = 0.5>(h) }}",
    {
        "one (p, q, r) => (o)": "m = MatMul(p, q) s = Add(m, r) t = Relu(s) u = Relu(t) "
        "o = f.three(r, u)",
        "two <alpha> (p) => (o)": "o = LeakyRelu<alpha: float = @alpha>(p)",
        "three (p, q) => (o)": "n = Relu(p) o = Add(n, q)",
    },
    {
        "one": ["Gemm", "Relu", "three"],
        "two": ["LeakyRelu"],
        "three": ["Neg", "Min", "Neg", "Add", "Constant"],
    },
)

APPLIED = {
    "one pass": lambda rules: rules,
    "a list": lambda rules: [rules],
    "after others": lambda rules: ["removeDeadNodes", rules, "nameUniquely"],
}


@pytest.mark.parametrize("way", APPLIED)
def test_rules_of_users_enter_functions(way: str, tmp_path: Any) -> None:
    before = model_of(RULED)
    made = passlib.load(before).optimize_for(APPLIED[way](passlib.Rules(RULES)))
    made.save(tmp_path / "made.onnx")
    after = onnx.load(tmp_path / "made.onnx")
    found = bodies(after)
    assert {name: found[name] for name in RULED.left} == {
        name: sorted(left) for name, left in RULED.left.items()
    }
    feeds = feeds_of(before)
    given = [results(model.SerializeToString(), feeds) for model in (before, after)]
    np.testing.assert_allclose(given[1][0], given[0][0], rtol=1e-5)


def test_a_wrong_rule_is_an_error_in_a_function() -> None:
    wrong = """rule wrong "A sum of fewer axes."
  y = Relu(x)
  => y = ReduceSum[keepdims=0](x)
  exact
  enables
"""
    model = passlib.load(model_of(RULED))
    with pytest.raises(passlib.PassError, match="rule 'wrong' is wrong at"):
        model.optimize_for(passlib.Rules(wrong))


@pytest.mark.parametrize("external", [False, True])
def test_the_rest_of_the_model_stays(external: bool, tmp_path: Any) -> None:
    """Unknown fields, data in other files and origins, which are written on request."""
    proto = model_of(
        Case(
            "(float[2, 3] a, float[4] c) => (float[2, 4] y) <float[3, 4] b = {0, 1, 2, 3, 4, 5, "
            "6, 7, 8, 9, 10, 11}> { m = MatMul(a, b) h = Add(m, c) y = f.one(h) }",
            {"one (p) => (o)": "r = Relu(p) i = Identity(r) o = Relu(i)"},
            {},
        )
    )
    proto.metadata_props.add(key="k", value="v")
    given = {"location": "data", "size_threshold": 0} if external else {}
    onnx.save(proto, tmp_path / "given.onnx", save_as_external_data=external, **given)
    field = b"\xba\x3e\x05other"  # of number 999
    with (tmp_path / "given.onnx").open("ab") as file:
        file.write(field)
    model = passlib.load(tmp_path / "given.onnx")
    want = results((tmp_path / "given.onnx").read_bytes(), feeds_of(proto)) if not external else []
    made = model.simplify()
    (tmp_path / "out").mkdir()
    for origins in (True, False):
        made.save(tmp_path / "out" / "made.onnx", origins=origins)
        after = onnx.load(tmp_path / "out" / "made.onnx")
        assert bodies(after) == {"": ["Gemm", "one"], "one": ["Relu"]}
        marks = {entry.key for node in after.graph.node for entry in node.metadata_props}
        assert marks == ({"__origin__", "__rules__"} if origins else set())
    assert field in (tmp_path / "out" / "made.onnx").read_bytes()
    assert [(entry.key, entry.value) for entry in after.metadata_props] == [("k", "v")]
    feeds = feeds_of(proto)
    have = made.run(feeds)["y"].asnumpy()
    np.testing.assert_allclose(have, want[0] if want else model.run(feeds)["y"].asnumpy(), 1e-5)
    again = pickle.loads(pickle.dumps(made))
    assert bodies(again.data().template.model)["one"] == ["Relu"]


def test_types_stated_in_bodies_stay_true(tmp_path: Any) -> None:
    """The Casts go, and the nodes between them keep their names and get another type."""
    body = "i = Constant<value = int64[2] {1, 0}>() c = Cast<to = 11>(p) "
    body += "t = Transpose<perm = [1, 0]>(c) g = Gather(t, i) d = Cast<to = 1>(g) o = Neg(d)"
    case = Case("(float[2, 2] a) => (float[2, 2] y) { y = f.one(a) }", {"one (p) => (o)": body}, {})
    model = model_of(case)
    for name in "tgd":
        code = onnx.TensorProto.FLOAT if name == "d" else onnx.TensorProto.DOUBLE
        stated = helper.make_tensor_value_info(name, code, [2, 2])
        model.functions[0].value_info.append(stated)
    passlib.simplify(model).save(tmp_path / "made.onnx")
    (after,) = onnx.load(tmp_path / "made.onnx").functions
    assert [node.op_type for node in after.node] == ["Constant", "Transpose", "Gather", "Neg"]
    assert [value.name for value in after.value_info] == []


def in_functions(model: onnx.ModelProto, random: np.random.Generator) -> onnx.ModelProto:
    """Move the nodes of a graph into two or three functions, some attributes into the calls."""
    count = len(model.graph.node)
    cuts = sorted({0, count, *random.integers(0, count + 1, 2).tolist()})
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    wanted = [value.name for value in model.graph.output]
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.opset_import.add(domain="f", version=1)
    del made.graph.node[:]
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):
        nodes = list(model.graph.node)[first:last]
        own = {name for node in nodes for name in node.output if name}
        used = [name for name in used_by(nodes) if name not in own]
        later = {*used_by(list(model.graph.node)[last:]), *wanted}
        function = made.functions.add(name=f"part{number}", domain="f")
        function.opset_import.extend(model.opset_import)
        constants = [name for name in used if name in initializers and random.random() < 0.5]
        for name in constants:
            constant = helper.make_node("Constant", [], [name], value=initializers[name])
            function.node.append(constant)
        function.input.extend(name for name in used if name not in constants)
        function.output.extend(name for node in nodes for name in node.output if name in later)
        function.node.extend(nodes)
        call = made.graph.node.add(op_type=function.name, domain="f")
        call.input.extend(function.input)
        call.output.extend(function.output)
        for node in function.node:
            for attribute in node.attribute:
                if attribute.type in (1, 2, 6, 7) and random.random() < 0.2:
                    given = call.attribute.add()
                    given.CopyFrom(attribute)
                    given.name = f"a{len(call.attribute)}"
                    function.attribute.append(given.name)
                    kind = attribute.type
                    name = attribute.name
                    attribute.Clear()
                    attribute.name, attribute.type, attribute.ref_attr_name = name, kind, given.name
    return made


def used_by(nodes: list[onnx.NodeProto]) -> list[str]:
    """Return the values that nodes use, those that nested graphs capture included."""
    found: dict[str, None] = {}
    for node in nodes:
        nested = list(graphs_within(*(a.g for a in node.attribute if a.HasField("g"))))
        inner = {name for graph in nested for each in graph.node for name in each.output}
        inner.update(v.name for graph in nested for v in (*graph.input, *graph.initializer))
        names = [name for graph in nested for each in graph.node for name in each.input]
        names += [value.name for graph in nested for value in graph.output]
        found.update((name, None) for name in (*node.input, *names) if name and name not in inner)
    return list(found)


@pytest.mark.sample(2)
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("part", range(4))
def test_random_graphs_in_functions(part: int, exact: bool) -> None:
    found = []
    for seed in range(part * 10, part * 10 + 10):
        drawn = random_graphs.draw(seed)
        model = drawn.model()
        if model.graph.node:
            wrapped = in_functions(model, np.random.default_rng(seed))
            simplify = passlib.Model.simplify
            found.append(random_graphs.compared(wrapped, drawn.feeds, simplify, exact=exact))
    assert [text for text in found if text not in random_graphs.FINE] == []
    assert found.count("equal") > 4


ALONE = {
    "removeNoOps": ("r = Relu(p) i = Identity(r) o = Neg(i)", ["Relu", "Neg"]),
    "cancelTransposes": (
        "t = Transpose<perm = [1, 0]>(p) u = Neg(t) o = Transpose<perm = [1, 0]>(u)", ["Neg"],
    ),
    "foldConstants": (
        "k = Constant<value_floats = [4.0]>() l = Sqrt(k) o = Add(p, l)", ["Constant", "Add"],
    ),
    "mergeEqualNodes": ("r = Neg(p) s = Neg(p) o = Add(r, s)", ["Neg", "Add"]),
    "fuseMatMulAdd": ("m = MatMul(p, p) o = Add(m, p)", ["Gemm"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_single_passes_enter_bodies(name: str, tmp_path: Any) -> None:
    body, left = ALONE[name]
    graph = "(float[3, 3] x) => (float[3, 3] y) { h = f.one(x) y = f.one(h) }"
    data = model_of(Case(graph, {"one (p) => (o)": body}, {})).SerializeToString()
    for passes in (name, [name, "removeDeadNodes"]):
        made = passlib.load(data).optimize_for(passes)
        made.save(tmp_path / "made.onnx")
        proto = onnx.load(tmp_path / "made.onnx")
        onnx.checker.check_model(proto, full_check=True)
        assert [node.op_type for node in proto.functions[0].node] == left
        x = np.linspace(-2, 2, 9).astype(np.float32).reshape(3, 3)
        (want,) = results(data, {"x": x})
        (have,) = results(proto.SerializeToString(), {"x": x})
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
