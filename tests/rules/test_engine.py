"""Rules at work: where they apply, what they must not do, and what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import passlib as pl
from passlib.passes.rule_examples import build, problems
from passlib.passes.rules import Rules

ADDITION = """\
rule addOfMatMul "A product of two matrices and a sum become Gemm."
  onnx 7..
  m = MatMul(a, b)
  y = Add(m, c)
  where rank(a) = 2, rank(b) = 2, type(m) in (float16, float, double), broadcasts(c, m)
  => y = Gemm(a, b, c)
  rounding
"""


def parsed(text: str, opset: int = 17, domains: str = "") -> pl.Model:
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}{domains}]> g {text}'
    )
    return pl.load(proto)


def operators(model: pl.Model) -> list[str]:
    return [node.op for node in model.symbol.nodes() if node.op != "null"]


def applied(rules: str, model: pl.Model, **options: object) -> list[str]:
    return operators(model.optimize_for(pl.Rules(rules), **options))


@pytest.mark.parametrize(
    ("types", "opset", "expected"),
    [
        ("float[2, 3] a, float[3, 4] b, float[4] c", 17, ["Gemm"]),
        ("float[n, 3] a, float[3, m] b, float[1, 1] c", 17, ["Gemm"]),
        ("double[2, 3] a, double[3, 4] b, double[4] c", 9, ["Gemm"]),
        ("float[2, 3] a, float[3, 4] b, float[5, 2, 4] c", 17, ["MatMul", "Add"]),
        ("float[2, 2, 3] a, float[3, 4] b, float[4] c", 17, ["MatMul", "Add"]),
        ("float[2, 3] a, float[3] b, float[2] c", 17, ["MatMul", "Add"]),
        ("float[2, 3] a, float[3, m] b, float[n] c", 17, ["MatMul", "Add"]),
        ("int32[2, 3] a, int32[3, 4] b, int32[4] c", 17, ["MatMul", "Add"]),
        ("float[2, 3] a, float[3, 4] b, float[4] c", 6, ["MatMul", "Add"]),
        ("float a, float b, float[4] c", 17, ["MatMul", "Add"]),
    ],
)
def test_a_rule_applies_where_its_conditions_are_known(
    types: str, opset: int, expected: list[str]
) -> None:
    kind = types.split("[", maxsplit=1)[0].split(maxsplit=1)[0]
    model = parsed(f"({types}) => ({kind} y) {{ m = MatMul(a, b) y = Add(c, m) }}", opset)
    assert applied(ADDITION, model) == expected


RELU = 'rule r "S."\n  y = Relu(Relu(x))\n  => y = Relu(x)\n  exact\n'


@pytest.mark.parametrize(("uses", "reason"), [(999, "not met"), (1100, "used too often")])
def test_values_with_many_users_are_not_counted(uses: int, reason: str) -> None:
    rule = 'rule r "S."\n  y = Neg(x)\n  where users(x) = 1\n  => y = Abs(x)\n  exact\n'
    body = " ".join(f"y{number} = Neg(x)" for number in range(uses))
    model = parsed(f"(float[2] x) => (float[2] y0) {{ {body} }}")
    assert reason in str(pl.why(model, pl.Rules(rule)[0], "Neg_0"))


def test_outputs_that_rules_have_moved_are_known() -> None:
    """Of two results that would be one value, the file needs an operator for the second."""
    rule = 'rule r "S."\n  y = Identity(x)\n  => y = x\n  exact\n'
    model = parsed(
        "(float[2] x) => (float[2] y, float[2] z) { r = Relu(x) y = Identity(r) z = Identity(r) }"
    )
    assert applied(rule, model) == ["Relu", "Identity"]


def test_shapes_that_a_file_states_are_not_used() -> None:
    """Files whose inputs were edited often state shapes that no longer hold."""
    rule = 'rule r "S."\n  y = Slice(x, *_)\n  where shape(y) = shape(x)\n  => y = x\n  exact\n'
    model = parsed(
        "(float[N, 3] x) => (float[M, 3] y) "
        "<int64[1] a = {0}, int64[1] b = {2}, float[N, 3] s> { s = Slice(x, a, b) y = Neg(s) }"
    )
    assert applied(rule, model) == ["Slice", "Neg"]


def test_alternatives_may_differ_in_what_they_bind() -> None:
    rule = """\
rule r "S."
  y = Neg(x) | Neg[axis=$a](x)
  where $a = 1
  => y = Abs(x)
  exact
  enables
"""
    proto = parsed("(float[2] x) => (float[2] y) { a = Neg<axis = 1>(x) y = Neg(a) }")
    assert applied(rule, proto) == ["Abs", "Neg"]


def test_a_value_with_other_users_is_kept() -> None:
    model = parsed(
        "(float[2] x) => (float[2] y, float[2] z) { a = Relu(x) y = Relu(a) z = Neg(a) }"
    )
    assert applied(RELU, model) == ["Relu", "Relu", "Neg"]


def test_an_output_that_would_be_an_input_needs_an_operator() -> None:
    rule = 'rule r "S."\n  y = Identity(x)\n  => y = x\n  exact\n'
    model = parsed("(float[2] x) => (float[2] y) { y = Identity(x) }")
    assert applied(rule, model) == ["Identity"]
    model = parsed("(float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }")
    assert applied(rule, model) == ["Relu"]


def test_rules_apply_in_nested_graphs() -> None:
    model = parsed(
        """(bool c, float[2] x) => (float[2] y) {
             y = If(c) <
               then_branch = g1 () => (float[2] t) { a = Relu(x) t = Relu(a) },
               else_branch = g2 () => (float[2] e) { b = Neg(x) e = Neg(b) }
             >
           }"""
    )
    made = model.optimize_for(pl.Rules(RELU))
    (node,) = [node for node in made.symbol.nodes() if node.op == "If"]
    assert [inner.op for inner in node.subgraphs[0].nodes() if inner.op != "null"] == ["Relu"]
    inputs = {"c": np.array(True), "x": np.array([-1, 2], "float32")}
    assert made.run(inputs)["y"].tolist() == [0, 2]


def test_a_new_constant_in_a_nested_graph_is_a_weight_of_the_model() -> None:
    rule = """rule r "S."
  onnx 7..
  y = Mul(Mul(x, a:param), b:param)
  => y = Mul(x, fold(Mul(a, b)))
  rounding
"""
    model = parsed(
        """(bool c, float[2] x) => (float[2] y) <float[1] a = {2.0}, float[1] b = {3.0}> {
             y = If(c) <
               then_branch = g1 () => (float[2] t) { m = Mul(x, a) t = Mul(m, b) },
               else_branch = g2 () => (float[2] e) { e = Neg(x) }
             >
           }"""
    )
    made = model.optimize_for(pl.Rules(rule))
    assert made.run({"c": np.array(True), "x": np.array([1, 2], "float32")})["y"].tolist() == [
        6,
        12,
    ]
    assert 6 in [float(array[0]) for array in made.args.values()]


def test_rules_that_go_in_a_circle_are_named() -> None:
    rules = """\
rule there "S."
  y = Add(a, b)
  => y = Sum(a, b)
  exact
  enables
rule back "S."
  y = Sum(a, b)
  => y = Add(a, b)
  exact
  enables
"""
    model = parsed("(float[2] a, float[2] b) => (float[2] y) { y = Add(a, b) }")
    with pytest.raises(pl.PassError, match="rules go in a circle: there, back"):
        model.optimize_for(pl.Rules(rules))


def test_a_rule_that_contradicts_a_shape_is_named() -> None:
    rule = 'rule wrong "S."\n  y = Flatten(Relu(x))\n  => y = x\n  exact\n'
    model = parsed(
        "(float[2, 3, 4] x) => (float[2, 12] y) { a = Relu(x) b = Flatten(a) y = Neg(b) }"
    )
    with pytest.raises(
        pl.PassError,
        match=r"rule 'wrong' is wrong at 'Flatten_1' \(Flatten\): the result is "
        r"float\[2, 12\], and what replaces it float\[2, 3, 4\]",
    ):
        model.optimize_for(pl.Rules(rule))


def test_a_rule_applies_only_if_what_it_lowers_falls() -> None:
    split = 'rule r "S."\n  y = Relu(x)\n  => y = Max(x, like(x, 0.0))\n  exact\n'
    model = parsed("(float[2] x) => (float[2] y) { y = Relu(x) }")
    assert applied(split, model) == ["Relu"]
    assert applied(split + "  enables\n", model) == ["Max"]
    grow = """\
rule r "S."
  onnx 7..
  y = Mul(Mul(x, a:param), b:param)
  => y = Mul(x, fold(Mul(a, b)))
  rounding
  lowers nodes, bytes
"""
    weights = "float[1, 2] a = {1.0, 2.0}, float[2, 1] b = {1.0, 2.0}"
    model = parsed(
        f"(float[2, 2] x) => (float[2, 2] y) <{weights}> {{ m = Mul(x, a) y = Mul(m, b) }}"
    )
    assert applied(grow, model) == ["Mul"]
    weights = "float[1, 8] a = {1, 2, 3, 4, 5, 6, 7, 8}, float[8, 1] b = {1, 2, 3, 4, 5, 6, 7, 8}"
    model = parsed(
        f"(float[8, 8] x) => (float[8, 8] y) <{weights}> {{ m = Mul(x, a) y = Mul(m, b) }}"
    )
    assert applied(grow, model) == ["Mul", "Mul"]


def test_attributes_are_inputs_in_later_sets() -> None:
    rule = """\
rule r "S."
  y = ReduceSum[axes=$a, keepdims=0](Neg(x))
  => y = Neg(ReduceSum[axes=$a, keepdims=0](x))
  rounding
  enables
"""
    attribute = parsed(
        "(float[2, 3] x) => (float[2] y) { a = Neg(x) y = ReduceSum<axes = [1], keepdims = 0>(a) }",
        11,
    )
    made = attribute.optimize_for(pl.Rules(rule))
    assert operators(made) == ["ReduceSum", "Neg"]
    assert made.symbol.nodes()[-2].attrs["axes"] == "[1]"
    as_input = parsed(
        "(float[2, 3] x) => (float[2] y) <int64[1] k = {1}> "
        "{ a = Neg(x) y = ReduceSum<keepdims = 0>(a, k) }",
        13,
    )
    made = as_input.optimize_for(pl.Rules(rule))
    assert operators(made) == ["ReduceSum", "Neg"]
    assert [array.tolist() for array in made.args.values()] == [[1]]
    x = np.arange(6, dtype="float32").reshape(2, 3)
    assert made.run({"x": x})["y"].tolist() == [-3, -12]


def test_results_keep_names_and_new_nodes_say_what_they_stand_for() -> None:
    model = parsed("(float[2, 3] a, float[3, 4] b, float[4] c) => (float[2, 4] y) "
                   "{ m = MatMul(a, b) s = Add(m, c) y = Relu(s) }")  # fmt: skip
    gemm = model.optimize_for(pl.Rules(ADDITION)).symbol.nodes()[-2]
    assert gemm.op == "Gemm"
    assert json.loads(gemm.attrs["__origin__"]) == ["MatMul_0", "Add_1"]
    assert gemm.name == "Add_1"


def test_several_results_are_replaced_together() -> None:
    rule = """\
rule r "S."
  onnx 2..12
  a, b = Split[axis=0](Neg(x))
  => p, q = Split[axis=0](x)
     a = Neg(p)
     b = Neg(q)
  exact
  enables
"""
    body = "{ n = Neg(x) a, b = Split<axis = 0>(n) y = Relu(a) z = Abs(b) }"
    model = parsed(f"(float[4] x) => (float[2] y, float[2] z) {body}", 11)
    assert sorted(applied(rule, model)) == ["Abs", "Neg", "Neg", "Relu", "Split"]


TWO = RELU + 'rule n "S."\n  group g\n  y = Neg(Neg(x))\n  => y = x\n  exact\n'
BOTH = "(float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) c = Neg(b) d = Neg(c) y = Abs(d) }"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["Relu", "Abs"]),
        ({"only": ["r"]}, ["Relu", "Neg", "Neg", "Abs"]),
        ({"only": ["g"]}, ["Relu", "Relu", "Abs"]),
        ({"skip": ["g"]}, ["Relu", "Neg", "Neg", "Abs"]),
        ({"skip": ["r", "n"]}, ["Relu", "Relu", "Neg", "Neg", "Abs"]),
    ],
)
def test_rules_can_be_chosen(options: dict[str, list[str]], expected: list[str]) -> None:
    assert applied(TWO, parsed(BOTH), **options) == expected
    assert operators(pl.Rules(TWO)(parsed(BOTH), **options)) == expected


def test_an_unknown_rule_cannot_be_chosen() -> None:
    with pytest.raises(pl.PassError, match="there is no rule or group of rules 'q'"):
        pl.Rules(TWO)(parsed(BOTH), only=["q"])


def test_rules_are_a_step_of_a_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "ownRules.rules"
    path.write_text(TWO)
    rules = Rules.load(path)
    for steps in (rules, [rules], ["removeDeadNodes", (rules, {"only": ["r", "n"]})], "ownRules"):
        result = pl.Pipeline(steps).run(parsed(BOTH))
        assert operators(result.model) == ["Relu", "Abs"]
    assert operators(pl.Pipeline([rules]).run(parsed(BOTH), isolate=True).model) == ["Relu", "Abs"]


def test_an_example_that_does_not_show_the_rule_is_named() -> None:
    example = "  example\n    y = Relu(Relu(x: float[2]))\n    => y = Relu(Relu(x))\n"
    (rule,) = pl.Rules(RELU + example)
    assert list(problems(rule)) == ["rule r, example 1, operator set 21: null ('x'), expected Relu"]
    wrong = 'rule w "S."\n  y = Relu(x)\n  => y = Neg(x)\n  exact\n  enables\n'
    (rule,) = pl.Rules(wrong + "  example\n    y = Relu(x: float[2])\n    => y = Neg(x)\n")
    assert list(problems(rule)) == ["rule w, example 1, operator set 21: y has other bits"]
    (rule,) = pl.Rules(RELU)
    assert list(problems(rule)) == ["rule r: no example"]


@pytest.mark.parametrize(
    ("text", "node", "expected"),
    [
        ("(float[2, 3] a, float[3, 4] b, float[4] c)", "Add_1", None),
        ("(float[2, 3] a, float[3] b, float[2] c)", "Add_1", "condition 'rank(b) = 2' is not met"),
        ("(float[2, 3] a, float[3, 4] b, float[4] c)", "MatMul_0", "Add is needed"),
    ],
)
def test_why_names_the_first_condition(text: str, node: str, expected: str | None) -> None:
    model = parsed(f"{text} => (float y) {{ m = MatMul(a, b) y = Add(m, c) }}")
    reason = pl.why(model, pl.Rules(ADDITION)["addOfMatMul"], node)
    assert reason is None if expected is None else expected in str(reason)


def test_why_names_the_fact_that_is_missing() -> None:
    model = parsed("(float[6] x, int64[n] s, float[3, 4] b, float[4] c) => (float y) "
                   "{ a = Reshape(x, s) m = MatMul(a, b) y = Add(m, c) }")  # fmt: skip
    assert pl.why(model, pl.Rules(ADDITION)[0], "Add_2") == (
        "condition 'rank(a) = 2' is not known to be true: the rank of 'a' is unknown"
    )


def test_why_names_the_operator_set() -> None:
    model = parsed("(float[2, 3] a, float[3, 4] b, float[4] c) => (float y) "
                   "{ m = MatMul(a, b) y = Add(m, c) }", 6)  # fmt: skip
    assert "of ONNX 6" in str(pl.why(model, pl.Rules(ADDITION)[0], "Add_1"))


def test_models_of_other_dialects_are_refused() -> None:
    with pytest.raises(pl.UnsupportedError, match="onnx"):
        pl.Model(pl.sym.relu(pl.sym.var("x"))).optimize_for(pl.Rules(RELU))


def test_a_fold_that_the_core_does_not_compute_is_computed_by_the_runtime() -> None:
    rule = """\
rule r "S."
  onnx 7..
  y = Mul(x, Exp(c:param))
  => y = Mul(x, fold(Exp(c)))
  rounding
"""
    model = parsed("(float[2] x) => (float[2] y) <float[1] c = {1.0}> { e = Exp(c) y = Mul(x, e) }")
    made = model.optimize_for(pl.Rules(rule))
    assert operators(made) == ["Mul"]
    assert [float(array[0]) for array in made.args.values()] == [pytest.approx(np.e, 1e-5)]


@pytest.mark.parametrize("kind", ["float", "double", "float16", "int8"])
@pytest.mark.parametrize(
    "value", ["Expand(c, i64(shape(x)))", "Reshape(Expand(c, i64[1, 2, 3]), i64[2, -1])"]
)
def test_a_constant_is_moved_to_a_shape(kind: str, value: str) -> None:
    """The core computes it, in the nested graph too, where the runtime computes nothing."""
    rule = f"""\
rule r "S."
  onnx 8..
  y = Mul(x, c:param)
  where shape(c) != shape(x)
  => y = Mul(x, fold({value}))
  exact
  enables
"""
    model = parsed(f"""({kind}[2, 3] x, bool b) => ({kind}[2, 3] y) <{kind}[2, 1] c = {{2, 3}}> {{
        y = If (b) <
          then_branch = g1 () => ({kind}[2, 3] t) {{ t = Mul(x, c) }},
          else_branch = g2 () => ({kind}[2, 3] e) {{ e = Neg(x) }}
        > }}""")
    made = model.optimize_for(pl.Rules(rule))
    (found,) = [np.asarray(array) for array in made.args.values() if array.size == 6]
    expected = np.broadcast_to(np.asarray(model.args["c"]), (2, 3))
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_the_model_of_an_example_has_the_inputs_that_it_states() -> None:
    (rule,) = pl.Rules(
        RELU + "  example\n    y = Relu(Relu(x: float16[2, n]))\n    => y = Relu(x)\n"
    )
    built = build(rule.examples[0].before, 17)
    assert built.inputs == {"x": (10, [2, "n"])}


@pytest.mark.parametrize(
    ("constant", "expected"),
    [
        ("float one = {1}", ["Softplus"]),
        ("float[1] one = {1}", ["Softplus"]),
        ("float[1, 1] one = {1}", ["Softplus"]),
        ("float[1, 1, 1] one = {1}", ["Exp", "Add", "Log"]),
        ("float one = {0.9}", ["Exp", "Add", "Log"]),
        ("float one = {inf}", ["Exp", "Add", "Log"]),
        ("float one = {nan}", ["Exp", "Add", "Log"]),
    ],
)
def test_a_number_is_finite_and_adds_no_axes(constant: str, expected: list[str]) -> None:
    rule = 'rule r "S."\n  y = Log(Add(Exp(x), 1))\n  => y = Softplus(x)\n  rounding\n'
    model = parsed(
        f"(float[2, 3] x) => (float y) <{constant}> {{ e = Exp(x) a = Add(e, one) y = Log(a) }}"
    )
    assert applied(rule, model) == expected


def test_numbers_of_half_precision_are_those_that_are_said() -> None:
    numbers = (0, -0.0, 6e-8, 6.1e-5, 1, -1.5, 65504, 70000)
    rule = "".join(
        f'rule r{place} "S."\n  y = Elu[alpha={place}.0](x)\n  => y = Add(x, {number})\n'
        "  rounding\n  enables\n"
        for place, number in enumerate(numbers)
    )
    body = " ".join(f"y{place} = Elu<alpha = {place}.0>(x)" for place in range(len(numbers)))
    outputs = ", ".join(f"float16[2] y{place}" for place in range(len(numbers)))
    made = parsed(f"(float16[2] x) => ({outputs}) {{ {body} }}").optimize_for(pl.Rules(rule))
    found = [
        made.args[node.inputs[1].node.name] for node in made.symbol.nodes() if node.op == "Add"
    ]
    with np.errstate(over="ignore"):
        expected = np.array(numbers, np.float16)
    assert np.array(found).tobytes() == expected.tobytes()


def test_attributes_are_finite() -> None:
    rule = 'rule r "S."\n  y = Min(x, c:param)\n  => y = Elu[alpha=value(c)](x)\n  rounding\n'
    rule += "  enables\n"
    for number, expected in (("2", ["Elu"]), ("inf", ["Min"]), ("nan", ["Min"])):
        model = parsed(f"(float[2] x) => (float y) <float c = {{{number}}}> {{ y = Min(x, c) }}")
        assert applied(rule, model) == expected


def test_a_fold_stays_finite() -> None:
    rule = """\
rule r "S."
  y = Mul(Mul(x, a:param), b:param)
  => y = Mul(x, fold(Mul(a, b)))
  rounding
"""
    for numbers, expected in (("2", 1), ("inf", 2), ("1e38", 2)):
        model = parsed(
            f"(float[2] x) => (float y) <float a = {{{numbers}}}, float b = {{100}}> "
            "{ m = Mul(x, a) y = Mul(m, b) }"
        )
        assert len(applied(rule, model)) == expected


def test_folds_in_nested_graphs_are_left_to_simplification() -> None:
    rule = """\
rule r "S."
  y = Mul(Mul(x, Exp(a:param)), b:param)
  => y = Mul(x, fold(Mul(Exp(a), b)))
  rounding
"""
    model = parsed("""(float[2] x, bool c) => (float[2] y) <float a = {1}, float b = {2}> {
        y = If (c) <
          then_branch = one () => (float[2] p) { e = Exp(a) m = Mul(x, e) p = Mul(m, b) },
          else_branch = two () => (float[2] q) { q = Neg(x) }>
    }""")
    made = model.optimize_for(pl.Rules(rule))
    feeds = {"x": np.ones(2, "float32"), "c": np.array(True)}
    assert made.run(feeds)["y"].tolist() == pytest.approx(model.run(feeds)["y"].tolist())
    assert made.simplify().run(feeds)["y"].tolist() == pytest.approx(model.run(feeds)["y"].tolist())


def test_a_constant_that_removed_nodes_used_twice_stays_for_others() -> None:
    """Each removed node used it as two inputs; the last one still uses it."""
    count = 20
    body = " ".join(f"m{i} = Pow(k, k) a{i} = Mul(m{i}, x)" for i in range(count))
    total = ", ".join(f"a{i}" for i in range(count))
    model = parsed(f"(float[3] x) => (float[3] y) <float k = {{2}}> {{ {body} "
                   f"s = Sum({total}) y = Add(s, k) }}")  # fmt: skip
    rule = 'rule r "S."\n  y = Mul(Pow(c:param, c), x)\n  => y = Relu(x)\n  rounding\n'
    made = model.optimize_for(pl.Rules(rule))
    assert operators(made) == ["Relu"] * count + ["Sum", "Add"]
    assert list(made.args) == ["k"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = Relu(x) b = Identity(a) y = Neg(b)", {"Relu": ["a", "b"]}),
        ("a = Relu(x) b = Identity(a) c = Identity(b) y = Neg(c)", {"Relu": ["a", "b", "c"]}),
        ("a = Identity(x) y = Neg(a)", {}),
        ("a = Relu(x) b = Relu(a) c = Identity(b) y = Neg(c)", {"Relu": ["a", "b", "c"]}),
        ("a = Relu(x) b = Identity(a) c = Relu(b) y = Neg(c)", {"Relu": ["a", "b", "c"]}),
    ],
)
@pytest.mark.parametrize("stated", ["", "no list"])
def test_operators_stand_for_what_they_replace(
    body: str, expected: dict[str, list[str]], stated: str
) -> None:
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[3] x) => (float[3] y) {{ {body} }}""")
    for node in proto.graph.node:
        node.name = node.output[0]
        if stated:
            node.metadata_props.add(key="__origin__", value=stated)
    rules = RELU + 'rule i "S."\n  y = Identity(x)\n  => y = x\n  exact\n'
    made = pl.load(proto).optimize_for(pl.Rules(rules))
    marks = {node.op: node.attrs.get("__origin__", stated) for node in made.symbol.nodes()}
    found = {op: sorted(json.loads(mark)) for op, mark in marks.items() if mark != stated}
    assert found == ({} if stated else expected)


CHAINS = {
    "one rule": (
        pl.Rules(ADDITION),
        "m = MatMul(a, b) y = Add(m, c)",
        {"Gemm": ["addOfMatMul"]},
    ),
    "a rule on what another made": (
        "simplify",
        "bt = Transpose<perm = [1, 0]>(t) m = MatMul(a, bt) y = Add(m, c)",
        {"Gemm": ["addOfMatMul", "transposedSecondOfGemm"]},
    ),
    "a group": (
        "fuseTransposes",
        "bt = Transpose<perm = [1, 0]>(t) y = Gemm(a, bt, c)",
        {"Gemm": ["transposedSecondOfGemm"]},
    ),
    "nothing made": ("simplify", "m = MatMul(a, b) i = Identity(m) y = Relu(i)", {}),
}


@pytest.mark.parametrize("case", CHAINS)
def test_files_name_the_rules_that_made_a_node(case: str, tmp_path: Path) -> None:
    step, body, expected = CHAINS[case]
    model = parsed(
        f"(float[2, 3] a, float[3, 4] b, float[4, 3] t, float[4] c) => (float[2, 4] y) {{ {body} }}"
    )
    made = model.optimize_for(step)
    for origins in (True, False):
        made.save(tmp_path / "m.onnx", origins=origins)
        found = {
            node.op_type: json.loads(entry.value)
            for node in onnx.load(tmp_path / "m.onnx").graph.node
            for entry in node.metadata_props
            if entry.key == "__rules__"
        }
        assert found == (expected if origins else {})
    graph = json.loads(made.symbol.tojson())
    assert not [node for node in graph["nodes"] if not node.get("attrs", {"some": ""})]
    # A later rule goes on with the list of a file; a later pass leaves it.
    made.save(tmp_path / "m.onnx", origins=True)
    again = pl.load(tmp_path / "m.onnx").optimize_for("clean")
    rules = {node.op: node.attrs.get("__rules__") for node in again.symbol.nodes()}
    assert {op: json.loads(text) for op, text in rules.items() if text} == expected


@pytest.mark.parametrize("results", [["y"], ["y", "h"], ["y", "h", "c"]])
def test_a_replacement_lacks_the_results_that_the_operation_lacks(
    results: list[str], tmp_path: Path
) -> None:
    rules = pl.Rules("""
rule noBias "The bias is left out."
  y, h?, c? = LSTM(x, w, r, b)
  => y, h, c = @y(x, w, r)
  rounding
  enables
""")
    shapes = {"y": "float[3, 1, 1, 2] y", "h": "float[1, 1, 2] h", "c": "float[1, 1, 2] c"}
    outputs = ", ".join(shapes[name] for name in results)
    model = parsed(
        f"""(float[3, 1, 4] x, float[1, 8, 4] w, float[1, 8, 2] r, float[1, 16] b) => ({outputs})
        {{ {", ".join(results)} = LSTM <hidden_size = 2> (x, w, r, b) }}"""
    )
    model.optimize_for(rules).save(tmp_path / "made.onnx")
    (node,) = onnx.load(tmp_path / "made.onnx").graph.node
    assert list(node.input) == ["x", "w", "r"]
    assert list(node.output) == results


def test_what_only_a_replaced_operation_used_goes_with_it() -> None:
    rule = 'rule first "The first."\n  y = Relu(Sum(a, d))\n  => y = Relu(a)\n  rounding'
    model = parsed(
        """(float[2] a, float[2] x) => (float[2] y, float[2] z)
        { e = Exp(x) d = Mul(e, x) s = Sum(a, d) y = Relu(s) z = Neg(x) }"""
    )
    assert sorted(applied(rule, model)) == ["Neg", "Relu"]
