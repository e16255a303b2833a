"""inlineFunctions and outline: the model computes the same, and layers are found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx import numpy_helper, parser

import control_graphs
import passlib
import random_graphs
from passlib.dialects.onnx.nested import graphs_within
from passlib.proof.counterexamples import same_bits
from rewriting import accepted, results

X = np.linspace(-2, 2, 6).astype(np.float32).reshape(2, 3)


class Case(NamedTuple):
    """A graph, functions, and the operators after all are inlined."""

    graph: str
    functions: tuple[str, ...]
    operators: dict[str, int]
    opset: int = 17


UNARY = "g (float[2, 3] x) => (float[2, 3] y) "

CASES = {
    "twice": Case(
        UNARY + "{ h = f.one(x) y = f.one(h) }",
        ("one (p) => (q) { a = Neg(p) q = Exp(a) }",),
        {"Neg": 2, "Exp": 2},
    ),
    "names of the caller": Case(
        UNARY + "{ a = Neg(x) b = f.one(a) y = Add(a, b) }",
        ("one (x) => (y) { a = Abs(x) b = Exp(a) y = Sub(b, x) }",),
        {"Neg": 1, "Abs": 1, "Exp": 1, "Sub": 1, "Add": 1},
    ),
    "in functions": Case(
        UNARY + "{ y = f.outer(x) }",
        (
            "outer (p) => (q) { a = f.inner(p) b = f.inner(a) q = Neg(b) }",
            "inner (p) => (q) { a = Abs(p) q = Exp(a) }",
        ),
        {"Abs": 2, "Exp": 2, "Neg": 1},
    ),
    "attributes": Case(
        UNARY + "{ h = f.one<alpha = 0.5>(x) k = f.one(h) y = f.two(k) }",
        (
            "one <alpha: float = 0.25> (p) => (q) { q = LeakyRelu<alpha: float = @alpha>(p) }",
            # The attribute is not there, so that the default of the operator holds.
            "two <alpha> (p) => (q) { q = LeakyRelu<alpha: float = @alpha>(p) }",
        ),
        {"LeakyRelu": 3},
    ),
    "a default behind an absent attribute": Case(
        UNARY + "{ h = f.outer<beta = 0.5>(x) k = f.outer(h) y = f.most(k) }",
        (
            "most <beta> (p) => (q) { q = f.outer<beta: float = @beta>(p) }",
            "outer <beta> (p) => (q) { q = f.inner<alpha: float = @beta>(p) }",
            "inner <alpha: float = 0.25> (p) => (q) { q = LeakyRelu<alpha: float = @alpha>(p) }",
        ),
        {"LeakyRelu": 3},
    ),
    "attributes in functions": Case(
        UNARY + "{ y = f.outer<beta = 0.5>(x) }",
        (
            "outer <beta> (p) => (q) { q = f.inner<alpha: float = @beta>(p) }",
            "inner <alpha> (p) => (q) { q = LeakyRelu<alpha: float = @alpha>(p) }",
        ),
        {"LeakyRelu": 1},
    ),
    "attributes in branches": Case(
        "g (float[2, 3] x, bool c) => (float[2, 3] y) { y = f.one<alpha = 0.5>(x, c) }",
        (
            (
                "one <alpha> (p, c) => (q) { k = Exp(p) q = If(c) <then_branch = "
                "t () => (float[2, 3] v) { v = LeakyRelu<alpha: float = @alpha>(k) }, "
                "else_branch = e () => (float[2, 3] v) <float z = {2}> { v = Add(p, z) }> }"
            ),
        ),
        {"Exp": 1, "If": 1, "LeakyRelu": 1, "Add": 1},
    ),
    "calls in branches": Case(
        "g (float[2, 3] x, bool c) => (float[2, 3] y) { k = Exp(x) y = If(c) <"
        "then_branch = t () => (float[2, 3] v) { v = f.one(k) }, "
        "else_branch = e () => (float[2, 3] w) { a = f.one(x) w = If(c) <"
        "then_branch = t () => (float[2, 3] v) { v = f.one(a) }, "
        "else_branch = e () => (float[2, 3] u) { u = f.one(k) }> }> }",
        ("one (k) => (q) { a = Neg(k) q = Abs(a) }",),
        {"Exp": 1, "If": 2, "Neg": 4, "Abs": 4},
    ),
    "a loop": Case(
        "g (float[2, 3] x, int64 n) => (float[2, 3] y) <bool t = {1}> { y = f.one(x, n, t) }",
        (
            (
                "one (p, n, t) => (q) { a = Neg(p) q = Loop(n, t, a) <body = l (int64 i, bool go, "
                "float[2, 3] s) => (bool on, float[2, 3] r) { on = Identity(go) b = Mul(s, p) "
                "r = f.two(b) }> }"
            ),
            "two (s) => (r) { b = Abs(s) r = Sqrt(b) }",
        ),
        {"Neg": 1, "Loop": 1, "Identity": 1, "Mul": 1, "Abs": 1, "Sqrt": 1},
    ),
    "an input that is left out": Case(
        UNARY + "<float low = {0}> { h = f.one(x, low) k = f.one(h) y = f.one(k, , low) }",
        ("one (p, q, r) => (o) { i = Neg(p) o = Clip(i, q, r) }",),
        {"Neg": 3, "Clip": 3},
    ),
    "an output that is left out": Case(
        UNARY + "{ , y = f.one(x) }",
        ("one (p) => (q, r) { q = Neg(p) r = Exp(q) }",),
        {"Neg": 1, "Exp": 1},
    ),
    "another operator set": Case(
        UNARY + "{ y = f.one(x) }",
        ("13: one (p) => (q) { a = Neg(p) q = Exp(a) }",),
        {"Neg": 1, "Exp": 1},
    ),
    "not called": Case(UNARY + "{ y = Abs(x) }", ("one (p) => (q) { q = Neg(p) }",), {"Abs": 1}),
}


def model(case: Case) -> bytes:
    """Return the model of a case."""
    head = f'<ir_version: 10, opset_import: ["" : {case.opset}, "f" : 1]> '
    text = head + case.graph
    for each in case.functions:
        opset, _, body = each.rpartition(": ") if each[0].isdigit() else ("", "", each)
        imports = f'"" : {opset or case.opset}, "f" : 1'
        text += f' <domain: "f", opset_import: [{imports}]> {body}'
    return bytes(parser.parse_model(text).SerializeToString())


def saved(made: passlib.Model, folder: Path) -> Any:
    """Return the message of a model, which the checker accepts."""
    made.save(folder / "made.onnx")
    onnx.checker.check_model(str(folder / "made.onnx"), full_check=True)
    return onnx.load(folder / "made.onnx")


def counts(*bodies: Any) -> Counter[str]:
    """Count the operators of graphs and functions, without Constant."""
    nodes = (node.op_type for graph in graphs_within(*bodies) for node in graph.node)
    return Counter(op for op in nodes if op != "Constant")


def feeds_of(data: bytes) -> list[dict[str, Any]]:
    names = {value.name for value in onnx.ModelProto.FromString(data).graph.input}
    found = []
    for condition in (True, False):
        given = {"x": X, "c": np.array(condition), "n": np.array(2)}
        found.append({name: given[name] for name in names})
    return found


@pytest.mark.parametrize("name", CASES)
def test_calls_become_bodies(name: str, tmp_path: Path) -> None:
    data = model(CASES[name])
    made = saved(passlib.inline_functions(data), tmp_path)
    assert not made.functions
    assert counts(made.graph) == CASES[name].operators
    assert [each.domain for each in made.opset_import] == [""]
    for feeds in feeds_of(data):
        for left, right in zip(
            results(data, feeds), results(made.SerializeToString(), feeds), strict=True
        ):
            np.testing.assert_array_equal(left, right)


NAMED = Case(
    UNARY + "{ h = f.one(x) y = f.two(h) }",
    (
        "one (p) => (q) { a = Neg(p) q = f.three(a) }",
        "two (p) => (q) { a = Abs(p) q = f.three(a) }",
        "three (p) => (q) { a = Exp(p) q = Sqrt(a) }",
    ),
    {},
)


def test_outputs_that_are_inputs_are_copied(tmp_path: Path) -> None:
    case = Case(
        "g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z, float[2, 3] w) { y, z, w = f.one(x) }",
        ("one (p) => (q, p, q) { q = Neg(p) }",),
        {},
    )
    made = saved(passlib.inline_functions(model(case)), tmp_path)
    # ONNX Runtime refuses the function.
    for left, right in zip(results(made.SerializeToString(), {"x": X}), (-X, X, -X), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("names", "left", "operators"),
    [
        (["one"], {"two", "three"}, {"Neg": 1, "three": 1, "two": 1}),
        (["f.two", "one"], {"three"}, {"Neg": 1, "Abs": 1, "three": 2}),
        (["three"], {"one", "two"}, {"one": 1, "two": 1}),
        (["two", "three"], {"one"}, {"one": 1, "Abs": 1, "Exp": 1, "Sqrt": 1}),
    ],
)
def test_functions_are_chosen_by_name(
    names: list[str], left: set[str], operators: dict[str, int], tmp_path: Path
) -> None:
    data = model(NAMED)
    made = saved(passlib.load(data).optimize_for("inlineFunctions", names=names), tmp_path)
    assert {each.name for each in made.functions} == left
    assert counts(made.graph) == operators
    (want,), (have,) = results(data, {"x": X}), results(made.SerializeToString(), {"x": X})
    np.testing.assert_array_equal(have, want)


def test_overloads_are_kept_apart(tmp_path: Path) -> None:
    proto = onnx.ModelProto.FromString(
        model(Case(
            UNARY + "{ h = f.one(x) y = f.one(h) }",
            ("one (p) => (q) { q = Neg(p) }", "one (p) => (q) { q = Exp(p) }"), {},
        ))
    )  # fmt: skip
    proto.functions[1].overload = "two"
    proto.graph.node[1].overload = "two"
    made = saved(passlib.inline_functions(proto.SerializeToString()), tmp_path)
    assert [node.op_type for node in made.graph.node] == ["Neg", "Exp"]


def test_functions_and_passes_in_one_pipeline(tmp_path: Path) -> None:
    data = model(CASES["in functions"])
    made = passlib.Pipeline("inlineFunctions, removeNoOps, clean").run(passlib.load(data)).model
    assert counts(saved(made, tmp_path).graph) == {"Abs": 1, "Exp": 2, "Neg": 1}
    again = passlib.load(data)
    flat = passlib.inline_functions(again)
    assert passlib.inline_functions(flat).symbol.graph.equals(flat.symbol.graph)


ERRORS = {
    "unknown name": (CASES["twice"], ["on"], r"no function 'on'; the functions are f\.one$"),
    "circle": (
        Case(UNARY + "{ y = f.one(x) }", (
            "one (p) => (q) { q = f.two(p) }", "two (p) => (q) { q = f.one(p) }"), {}),
        [], r"f\.\w+ calls itself",
    ),
    "operator sets": (
        Case(UNARY + "{ y = f.one(x) }", ("12: one (p) => (q) { q = Softmax(p) }",), {}),
        [], r"f\.one is of operator set 12 of ONNX, and Softmax differs in 17",
    ),
    "result that is left out": (
        Case(UNARY + "{ h, y = f.one(x) k = Neg(h) }",
             ("one (p, s) => (s, q) { q = Neg(p) }",), {}),
        [], "leaves out an input that is an output",
    ),
    "empty name": (
        Case(UNARY + "{ y = f.one(x, x) }", ("one (p, e) => (q) { q = Neg(p) }",), {}),
        [], r"f\.one has an input without a name",
    ),
    "more outputs": (
        Case(UNARY + "{ y, z = f.one(x) }", ("one (p) => (q) { q = Neg(p) }",), {}),
        [], "has 2 outputs, and the function has 1",
    ),
    "too many": (
        Case(UNARY + "{ y = f.f20(x) }", (
            "f0 (p) => (q) { q = Neg(p) }",
            *(f"f{i + 1} (p) => (q) {{ a = f.f{i}(p) q = f.f{i}(a) }}" for i in range(20))), {}),
        [], "more than 1000000 nodes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_function(name: str) -> None:
    case, names, message = ERRORS[name]
    made = onnx.ModelProto.FromString(model(case))
    for function in made.functions:
        function.input[:] = ["" if each == "e" else each for each in function.input]
    with pytest.raises(passlib.PasslibError, match=message):
        passlib.inline_functions(made, names=names)


def test_bodies_that_would_not_fit_in_a_message() -> None:
    case = Case(
        UNARY + "{ y = f.f12(x) }",
        (
            "f0 (p) => (q) { k = Constant<value = float[1] {0}>() q = Add(p, k) }",
            *(f"f{i + 1} (p) => (q) {{ a = f.f{i}(p) q = f.f{i}(a) }}" for i in range(12)),
        ),
        {},
    )
    made = onnx.ModelProto.FromString(model(case))
    large = numpy_helper.from_array(np.zeros((1, 1 << 18), np.float32))
    made.functions[0].node[0].attribute[0].t.CopyFrom(large)
    with pytest.raises(passlib.UnsupportedError, match=r"more than 2 GiB, at function f\.f1\d"):
        passlib.inline_functions(made)


def test_functions_whose_titles_are_equal_get_their_operator_sets() -> None:
    sets = {"": 17, "ai.onnx.ml": 3, "d": 1, "a.b": 1, "a": 1}
    made = onnx.ModelProto(ir_version=10)
    made.opset_import.extend(onnx.helper.make_opsetid(*each) for each in sets.items())
    inner = onnx.helper.make_node("Binarizer", ["p"], ["q"], domain="ai.onnx.ml")
    call = onnx.helper.make_node("F", ["p"], ["q"], domain="d")

    def function(domain: str, name: str, node: Any, *domains: str) -> Any:
        imports = [onnx.helper.make_opsetid(each, sets[each]) for each in domains]
        return onnx.helper.make_function(domain, name, ["p"], ["q"], [node], imports)

    made.functions.append(function("d", "F", inner, "ai.onnx.ml"))
    made.functions.append(function("a.b", "c", call, "", "d"))
    made.functions.append(function("a", "b.c", call, "", "d"))
    graph = parser.parse_graph(UNARY + "{ h = Neg(x) y = Neg(h) }")
    for node, (domain, name) in zip(graph.node, (("a.b", "c"), ("a", "b.c")), strict=True):
        node.domain, node.op_type = domain, name
    made.graph.CopyFrom(graph)
    found = passlib.inline_functions(made, names=["F"]).to_onnx_proto()
    for each in found.functions:
        assert "ai.onnx.ml" in {entry.domain for entry in each.opset_import}, each.name


def test_nodes_get_the_metadata_of_the_call(tmp_path: Path) -> None:
    made = onnx.ModelProto.FromString(model(CASES["twice"]))
    made.functions[0].node[0].metadata_props.add(key="own", value="inner")
    for number, node in enumerate(made.graph.node):
        node.metadata_props.add(key="own", value="outer")
        node.metadata_props.add(key="layer", value=str(number))
    proto = saved(passlib.inline_functions(made), tmp_path)
    texts = [{each.key: each.value for each in node.metadata_props} for node in proto.graph.node]
    assert texts == [{"own": own, "layer": str(layer)}
                     for layer in range(2) for own in ("inner", "outer")]  # fmt: skip


def test_other_dialects_have_no_functions() -> None:
    mxnet = passlib.Model(passlib.sym.relu(passlib.sym.var("x")))
    for name in ("inlineFunctions", "outline"):
        with pytest.raises(passlib.PasslibError, match="is for models of onnx"):
            mxnet.optimize_for(name)


def layers(count: int, layer: str, weights: dict[str, tuple[int, ...]], head: str = "") -> bytes:
    """Return a model of equal layers, each with weights of its own, from h0 to the last one."""
    body = " ".join(
        layer.format(i=i, j=i + 1, **{name: f"{name}{i}" for name in weights}) for i in range(count)
    )
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 4] x) => (float[2, 4] y) '
        f"{{ {head} h0 = Neg(x) {body} y = Tanh(h{count}) }}"
    )
    random = np.random.default_rng(count)
    for i in range(count):
        for name, shape in weights.items():
            array = random.standard_normal(shape).astype(np.float32)
            made.graph.initializer.append(numpy_helper.from_array(array, f"{name}{i}"))
    return bytes(made.SerializeToString())


BLOCK = (
    "a{i} = MatMul(h{i}, {w}) b{i} = Add(a{i}, {v}) c{i} = Relu(b{i}) d{i} = Mul(c{i}, c{i}) "
    "h{j} = Add(h{i}, d{i}) "
)
WEIGHTS = {"w": (4, 4), "v": (4,)}


class Layered(NamedTuple):
    """A model, the operators of its main graph after outline, and the inputs of its functions."""

    data: bytes
    operators: dict[str, int]
    inputs: list[int]


LAYERED = {
    "layers": Layered(layers(6, BLOCK, WEIGHTS), {"Neg": 1, "Layer": 6, "Tanh": 1}, [3]),
    "two layers": Layered(layers(2, BLOCK, WEIGHTS), {"Neg": 1, "Layer": 2, "Tanh": 1}, [3]),
    "a value of all": Layered(
        layers(4, BLOCK.replace("h{j} =", "e{i} =") + "h{j} = Sub(e{i}, m) ", WEIGHTS,
               "m = Exp(x)"),
        {"Exp": 1, "Neg": 1, "Layer": 4, "Tanh": 1}, [4],
    ),
    "equal constants": Layered(
        layers(4, BLOCK.replace("h{j} =", "e{i} =") + "k{i} = Constant<value_float = 2.0>() "
               "l{i} = Constant<value = float {{3}}>() n{i} = Mul(e{i}, k{i}) "
               "h{j} = Mul(n{i}, l{i}) ", WEIGHTS),
        {"Neg": 1, "Layer": 4, "Tanh": 1}, [3],
    ),
    "other constants": Layered(
        layers(4, BLOCK.replace("h{j} =", "e{i} =") + "k{i} = Constant<value_float = {i}.5>() "
               "h{j} = Mul(e{i}, k{i}) ", WEIGHTS),
        {"Neg": 1, "Layer": 4, "Tanh": 1}, [4],
    ),
    "branches": Layered(
        layers(4, BLOCK, WEIGHTS, "t = Constant<value = bool {1}>() z = If(t) <"
               "then_branch = p () => (float[2, 4] r) { r = Neg(x) }, "
               "else_branch = q () => (float[2, 4] s) { s = Abs(x) }>"),
        {"If": 1, "Neg": 2, "Abs": 1, "Layer": 4, "Tanh": 1}, [3],
    ),
    "no layers": Layered(layers(1, BLOCK, WEIGHTS), {
        "Neg": 1, "MatMul": 1, "Add": 2, "Relu": 1, "Mul": 1, "Tanh": 1}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERED)
def test_layers_become_calls(name: str, tmp_path: Path) -> None:
    data, operators, inputs = LAYERED[name]
    made = passlib.outline(data)
    proto = saved(made, tmp_path)
    assert counts(proto.graph) == operators
    assert [len(each.input) for each in proto.functions] == inputs
    back = saved(passlib.inline_functions(made), tmp_path)
    assert counts(back.graph) == counts(onnx.ModelProto.FromString(data).graph)
    feeds = {"x": np.linspace(-1, 1, 8).astype(np.float32).reshape(2, 4)}
    for each in (proto, back):
        left, right = results(data, feeds), results(each.SerializeToString(), feeds)
        np.testing.assert_array_equal(left, right)


def test_layers_that_are_connected_in_another_way_are_others(tmp_path: Path) -> None:
    # In the last layer, Add reads the result of Neg, not that of the layer before.
    text = "".join(
        f"a{i} = Relu(h{i}) b{i} = Exp(a{i}) c{i} = Sqrt(b{i}) h{i + 1} = Sub(c{i}, a{i}) "
        for i in range(3)
    )
    text += "a3 = Relu(h3) b3 = Exp(a3) c3 = Sqrt(b3) h4 = Sub(a3, c3) "
    data = bytes(parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y) '
        f"{{ h0 = Neg(x) {text} y = Tanh(h4) }}").SerializeToString())  # fmt: skip
    proto = saved(passlib.outline(data), tmp_path)
    assert counts(proto.graph)["Layer"] == 3
    assert counts(proto.graph)["Sub"] == 1
    assert len(saved(passlib.outline(data, least=5), tmp_path).functions) == 0


def test_results_that_others_read_are_outputs(tmp_path: Path) -> None:
    data = onnx.ModelProto.FromString(layers(4, BLOCK, WEIGHTS))
    data.graph.output.add().CopyFrom(onnx.helper.make_tensor_value_info("c1", 1, [2, 4]))
    proto = saved(passlib.outline(data.SerializeToString()), tmp_path)
    assert [len(each.output) for each in proto.functions] == [2]
    feeds = {"x": np.ones((2, 4), np.float32)}
    for left, right in zip(
        results(data.SerializeToString(), feeds),
        results(proto.SerializeToString(), feeds),
        strict=True,
    ):
        np.testing.assert_array_equal(left, right)


def test_simplify_reads_into_layers(tmp_path: Path) -> None:
    data = layers(
        4,
        BLOCK.replace("h{j} =", "e{i} =") + "n{i} = Transpose(e{i}) h{j} = Transpose(n{i}) ",
        WEIGHTS,
    )
    proto = saved(passlib.simplify(passlib.outline(data)), tmp_path)
    (function,) = proto.functions
    assert counts(function)["Transpose"] == 0


@pytest.mark.sample(15)
@pytest.mark.parametrize("seed", range(100))
def test_random_graphs_there_and_back(seed: int, tmp_path: Path) -> None:
    for drawn, feeds in (
        (random_graphs.draw(seed).model(), random_graphs.draw(seed).feeds),
        control_graphs.draw(seed),
    ):
        data = drawn.SerializeToString()
        try:
            onnx.checker.check_model(data, full_check=True)
            want = accepted(data).run(None, feeds)
        except Exception:
            continue  # the model is invalid, or does not run
        flat = passlib.inline_functions(data)
        lines = passlib.outline(flat, least=2)
        back = passlib.inline_functions(lines)
        assert counts(saved(back, tmp_path).graph) == counts(saved(flat, tmp_path).graph)
        for each in (flat, lines, back):
            have = accepted(saved(each, tmp_path).SerializeToString()).run(None, feeds)
            for left, right in zip(have, want, strict=True):
                assert same_bits(left, right)
