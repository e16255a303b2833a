"""libpasslib and passlib-opt, built and installed by CMake alone, against the Python package.

``make native`` builds them and sets ``PASSLIB_NATIVE``, the prefix; without it these tests skip.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser
import pytest

import passlib
from commands import passlib_command
from native_command import PREFIX, TOOL, Run, run
from onnx_models import behind_weight
from onnx_mutations import mutated
from onnx_suite import node_cases
from passlib.passes.rule_examples import build
from passlib.passes.rulebook import BOOKS
from passlib.passes.rules import books
from passlib.workbench.authoring import build as build_library
from places import ROOT
from printed_blocks import shell

STEPS = "removeDeadNodes, mergeEqualNodes{parameters=true}, foldBatchNormalization"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="needs make native")

TWICE = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y)
{ a = Relu(x) b = Relu(x) dead = Abs(x) c = Add(a, b) y = Identity(c) }"""

RULES = """
rule reluOfRelu "Relu of Relu is Relu."
  y = Relu(Relu(x))
  => y = Relu(x)
  exact
  lowers nodes
"""
CHAIN = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) b = Relu(a) y = Relu(b) }"""


GELU = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 4] x) => (float[n, 4] y)
<float t = {3}, float a = {0.044715}, float b = {0.7978845608}, float o = {1}, float h = {0.5}>
{ p = Pow(x, t) q = Mul(p, a) r = Add(x, q) s = Mul(r, b) u = Tanh(s) v = Add(u, o)
  w = Mul(x, v) y = Mul(w, h) }"""


def write(text: str, path: Path) -> Path:
    """Write a model."""
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    return write(TWICE, tmp_path / "model.onnx")


class TestCommand:
    def test_table_and_file(self, twice: Path) -> None:
        out = twice.with_name("out.onnx")
        found = run(twice, "-o", out, "--passes", STEPS)
        assert (found.status, found.errors) == (0, "")
        assert found.printed.splitlines()[:5] == [
            "operator  before  after",
            "Abs            1      0  *",
            "Add            1      1",
            "Identity       1      1",
            "Relu           2      1  *",
        ]
        assert "5 -> 3 operators" in found.printed
        assert out.read_bytes() == by_python(twice, STEPS)

    def test_unchanged_is_the_same_bytes(self, twice: Path) -> None:
        out = twice.with_name("out.onnx")
        assert run(twice, "-o", out, "--passes", "foldBatchNormalization", "--quiet").status == 0
        assert out.read_bytes() == twice.read_bytes()

    def test_skip(self, twice: Path) -> None:
        out = twice.with_name("out.onnx")
        found = run(twice, "-o", out, "--passes", STEPS, "--skip", "removeDeadNodes", "--quiet")
        assert found == (0, "", "")
        assert "Abs" in [node.op_type for node in onnx.load(out).graph.node]

    def test_repeat_and_options(self, twice: Path) -> None:
        out = twice.with_name("out.onnx")
        steps = "repeat<3>(mergeEqualNodes{verbose=true}, removeDeadNodes)"
        found = run(twice, "-o", out, "--passes", steps)
        assert found.status == 0
        assert out.read_bytes() == by_python(twice, steps.replace("{verbose=true}", ""))

    def test_rules(self, tmp_path: Path) -> None:
        model = write(CHAIN, tmp_path / "chain.onnx")
        rules = tmp_path / "relu.rules"
        rules.write_text(RULES)
        out = tmp_path / "out.onnx"
        assert run(model, "-o", out, "--rules", rules, "--quiet") == (0, "", "")
        made = passlib.Rules(RULES, registers=False)(passlib.load(model))
        made.save(tmp_path / "python.onnx")
        assert out.read_bytes() == (tmp_path / "python.onnx").read_bytes()
        assert len(onnx.load(out).graph.node) == 1

    def test_simplify(self, twice: Path) -> None:
        """The command runs simplify without --passes, and --skip reaches the passes in it."""
        out = twice.with_name("out.onnx")
        for words in ([], ["--passes", "simplify"]):
            assert run(twice, "-o", out, "--quiet", *words) == (0, "", "")
            assert out.read_bytes() == by_python(twice, "simplify")
            out.unlink()
        for steps in ("clean", 'simplify{skip=["removeNoOps"], max_rounds=1}'):
            assert run(twice, "-o", out, "--quiet", "--passes", steps) == (0, "", "")
            assert out.read_bytes() == by_python(twice, steps)
        words = ["--skip", "removeNoOps", "--skip", "foldConstants"]
        assert run(twice, "-o", out, "--quiet", *words) == (0, "", "")
        assert out.read_bytes() == by_python(twice, "simplify{skip=[removeNoOps]}")
        assert "Identity" in [node.op_type for node in onnx.load(out).graph.node]

    def test_target(self, tmp_path: Path) -> None:
        model = write(GELU, tmp_path / "gelu.onnx")
        out = tmp_path / "out.onnx"
        assert run(model, "-o", out, "--quiet", "--target", "onnxruntime") == (0, "", "")
        assert [node.op_type for node in onnx.load(out).graph.node] == ["FastGelu"]
        assert out.read_bytes() == by_python(model, "simplify{target=onnxruntime}")

    def test_empty_pipeline(self, twice: Path) -> None:
        out = twice.with_name("out.onnx")
        assert run(twice, "-o", out, "--passes", "", "--quiet") == (0, "", "")
        assert out.read_bytes() == twice.read_bytes()

    def test_list(self) -> None:
        found = run("--list-passes")
        assert found.status == 0
        assert "removeDeadNodes: Remove operators that no output depends on" in found.printed
        assert "  verbose: true or false; default false" in found.printed

    def test_names_what_is_in_python(self, twice: Path) -> None:
        """All passes and options that it lacks are known to it."""
        here = run("--list-passes").printed
        for entry in json.loads(shell(twice.parent, ["passlib", "passes", "--json"])):
            name = entry["name"]
            if f"{name}: " in here:
                continue
            found = run(twice, "-o", twice.with_name("out.onnx"), "--passes", name)
            assert f"the pass '{name}' is not in native hosts yet" in found.errors
        help_text = shell(twice.parent, ["passlib", "opt", "--help"])
        for option in re.findall("--[a-z-]+", help_text):
            assert "unrecognized arguments" not in run(option).errors, option

    def test_modes_of_files(self, twice: Path) -> None:
        private, fresh = twice.with_name("private.onnx"), twice.with_name("fresh.onnx")
        private.touch(mode=0o600)
        before = os.umask(0o027)
        try:
            for out in (private, fresh):
                assert run(twice, "-o", out, "--passes", STEPS, "--quiet") == (0, "", "")
        finally:
            os.umask(before)
        assert [out.stat().st_mode & 0o777 for out in (private, fresh)] == [0o600, 0o640]
        assert sorted(twice.parent.iterdir()) == sorted([twice, private, fresh])

    @pytest.mark.parametrize(
        ("arguments", "status", "message"),
        [
            (("--passes", "a,"), 1, "character 3: expected the name of a pass"),
            (("--passes", 'repeat<"">(a)'), 1, "character 8: expected a number of times, not"),
            (("--passes", 'a{x="\\ud800"}'), 1, "character 5: expected a value as a JSON string"),
            (("--passes", "nothing"), 1, "there is no pass or partitioner 'nothing'"),
            (("--passes", "decompose"), 1, "'decompose' is not in native hosts yet"),
            (
                ("--passes", "simplify{skip=[nothing]}"),
                1,
                "there is no pass or partitioner 'nothing'",
            ),
            (("--passes", "clean{max_rounds=0}"), 1, "takes a whole number of at least 1, not '0'"),
            (("--skip", "nothing"), 1, "no pass 'nothing' to skip"),
            (("--target", "tpu"), 1, "takes one of onnx, onnxruntime, not 'tpu'"),
            (("--passes", "removeDeadNodes{level=2}"), 1, "has no option 'level'"),
            (("--passes", "removeDeadNodes{verbose=2}"), 1, "takes true or false, not '2'"),
            (("--passes", "removeDeadNodes", "--skip", "b"), 1, "no pass 'b' to skip"),
            (("--check",), 1, "--check: needs passlib's Python package"),
            (("--rules", "x.txt"), 1, "ends in .rules"),
            (("-l", "/nowhere/x.so", "--passes", "a"), 1, "/nowhere/x.so"),
            (("--rules", "/nowhere/x.rules"), 1, "/nowhere/x.rules"),
            (("--unknown",), 1, "unrecognized arguments: --unknown"),
        ],
    )
    def test_mistakes(
        self, twice: Path, arguments: tuple[str, ...], status: int, message: str
    ) -> None:
        out = twice.with_name("out.onnx")
        found = run(twice, "-o", out, *arguments)
        assert found.status == status
        assert message in found.errors
        assert not out.exists()

    def test_damaged_file(self, tmp_path: Path) -> None:
        path = tmp_path / "damaged.onnx"
        path.write_bytes(b"\xff" * 64)
        found = run(path, "-o", tmp_path / "out.onnx", "--passes", "removeDeadNodes")
        assert found.status == 3
        assert found.errors.startswith(f"passlib-opt: {path}: ")


def by_python(path: Path, steps: str) -> bytes:
    """Return the file that the Python package writes."""
    made = passlib.Pipeline(steps).run(path).model
    target = path.with_name("by_python.onnx")
    made.save(target)
    return target.read_bytes()


@pytest.mark.sample(150)
@pytest.mark.parametrize("case", list(node_cases()), ids=lambda case: case.name)
def test_same_bytes(case: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(case.data)
    out = tmp_path / "out.onnx"
    found = run(path, "-o", out, "--passes", STEPS, "--quiet")
    if found.status:
        # It names what only the Python package does.
        assert "Python package" in found.errors, found.errors
        return
    made, expected = out.read_bytes(), by_python(path, STEPS)
    if made != expected:
        # Only the Python package infers types that outputs of nested graphs lack, or of sequences.
        assert without_doubtful_types(made) == without_doubtful_types(expected)


CONSTANTS = [
    "float[2, 6] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}",
    "int64[2] s = {3, 4}",
    "int64[2] parts = {2, 4}",
    "int64[1] one = {1}",
    "int64[1] two = {2}",
    "int64[1] last = {-1}",
    "int32[2, 1] rows = {1, -2}",
    "int64[3] i = {5, -7, 9}",
    "int64[3] j = {2, 3, 4}",
    "float[1] f = {2.5}",
    "float[2] inf = {1e38, -0.0}",
    "bool[3] c = {1, 0, 1}",
    "int8[2] i8 = {3, -4}",
    "float f0 = {0.5}",
]
FOLDED = [
    "a = Reshape(w, s)",
    "a = Transpose<perm = [1, 0]>(w)",
    "a = Transpose(w)",
    "a = Unsqueeze(w, one)",
    "b = Unsqueeze(w, last) a = Squeeze(b, last)",
    "a = Slice(w, one, last, one, two)",
    "a = Slice(w, one, two)",
    "a = Gather<axis = 1>(w, rows)",
    "a = Gather(w, last)",
    "a = Concat<axis = 0>(w, w)",
    "b, a = Split<axis = -1>(w, parts)",
    "b, a = Split(w)",
    "b, d, e = Split<axis = 1>(w) a = Concat<axis = 0>(e, b)",
    "a = Cast<to = 11>(w)",
    "a = Cast<to = 7>(w)",
    "a = Cast<to = 7>(f)",
    "a = Cast<to = 9>(i)",
    "a = Cast<to = 1>(c)",
    "a = Add(w, f)",
    "a = Mul(inf, inf)",
    "a = Div(inf, f)",
    "a = Sub(i, j)",
    "a = Mul(i, j)",
    "a = Div(i, j)",
    "a = Neg(w)",
    "a = Sqrt(w)",
    "a = Max(f, f)",
    "a = Expand(f, s)",
    "a = Identity(w)",
    "a = Shape(w)",
    "a = Equal(i, j)",
    "a = Where(c, i, j)",
    "a = ConstantOfShape<value = int64[1] {7}>(s)",
    "b = Shape(w) d = Gather(b, one) a = Concat<axis = 0>(d, s)",
    "b = Transpose(w) d = Neg(b) e = Add(b, f) a = Concat<axis = 0>(e, d)",
]


# ONNX Runtime computes these, not the core.
STAYING = [
    "a = Slice(w, last, one, one, last)",
    "a = Cast<to = 2>(i)",
    "a = Mod(i, j)",
    "a = Exp(w)",
    "a = DequantizeLinear(i8, f0)",
]


def write_constants(text: str, path: Path) -> None:
    """Write a model with an operator on constants."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>\ng (float[x] x) => (y, z) '
        f"<{', '.join(CONSTANTS)}> {{ y = Abs(x) {text} z = Identity(a) }}"
    )
    inferred = onnx.shape_inference.infer_shapes(model).graph.value_info
    types = {value.name: value.type for value in inferred}
    model.graph.output[0].CopyFrom(onnx.helper.make_value_info("y", model.graph.input[0].type))
    model.graph.output[1].CopyFrom(onnx.helper.make_value_info("z", types["a"]))
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("text", FOLDED)
@pytest.mark.parametrize("steps", ["foldConstants", "foldConstants{max_growth=0}"])
def test_same_constants(text: str, steps: str, tmp_path: Path) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    write_constants(text, path)
    assert run(path, "-o", out, "--passes", steps, "--quiet") == (0, "", "")
    assert out.read_bytes() == by_python(path, steps)


@pytest.mark.parametrize("text", STAYING)
def test_constants_that_stay(text: str, tmp_path: Path) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    write_constants(text, path)
    assert run(path, "-o", out, "--passes", "foldConstants", "--quiet") == (0, "", "")
    assert out.read_bytes() == path.read_bytes()


def test_constants_that_are_too_large(tmp_path: Path) -> None:
    """The operator of a large result stays; that of a small one is computed."""
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    path.write_bytes(
        onnx.parser.parse_model(
            """<ir_version: 8, opset_import: ["" : 17]>
            g (float[x] x) => (float[100000, 100000] y, float[2] z)
            <float[1] f = {2.5}, int64[2] s = {100000, 100000}, int64[1] two = {2}>
            { y = Expand(f, s) z = Expand(f, two) }"""
        ).SerializeToString()
    )
    assert run(path, "-o", out, "--passes", "foldConstants", "--quiet") == (0, "", "")
    assert [node.op_type for node in onnx.load(out).graph.node] == ["Expand", "Identity"]


def rule_examples() -> list[Any]:
    """Return rules, each with the pass that applies it, with the options that it needs."""
    passes: dict[str, str] = {}
    for declared in json.loads((BOOKS / "passes.json").read_text())["passes"]:
        for step in declared["steps"]:
            passes.update(dict.fromkeys(step.get("groups", ()), declared["name"]))
            for key, value in (("if", "true"), ("unless", "false")):
                for option, groups in step.get(key, {}).items():
                    setting = option if "=" in option else f"{option}={value}"
                    text = f"{declared['name']}{{{setting}}}"
                    passes.update(dict.fromkeys(groups, text))
    return [
        pytest.param(rule, passes[rule.group], id=rule.name)
        for book in books()
        for rule in book
        if rule.group in passes
    ]


ROUNDED = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[3, 40] x, bool c, int64[2] i) => (float[A, B] y, float[C, D] z, float[E, F] t)
{ a = MatMul(x, w) b = own.act(a) d = Gemm <transB = 1> (b, v) y = Relu(d)
  z = If(c) <then_branch = p () => (q) { q = MatMul(x, w) },
             else_branch = r () => (s) { k = Constant <value_int = 0> () s = MatMul(x, k) }>
  t = Gather(h, i) }
<domain: "own", opset_import: ["" : 21]> act (m) => (n) {
  k = Constant <value_int = 0> () o = MatMul(m, k) n = Tanh(o) }"""
ROUNDINGS = [
    "quantizeWeights{least=1}",
    "quantizeWeights{least=1, bits=4}",
    "quantizeWeights{least=1, bits=4, symmetric=false, block=7}",
    "quantizeWeights{least=1, block=0, symmetric=false}",
    "quantizeWeights{least=1, bits=4, target=onnxruntime, block=16}",
    'quantizeWeights{least=1, target=onnxruntime, symmetric=false, keep_nodes=["It\'s"]}',
    "quantizeWeights{least=1, keep_ops=[Gather, Gemm]}",
    "quantizeWeights{least=500}",
    "quantizeWeights{least=1, bits=4}, simplify, quantizeWeights{least=1}",
    "quantizeWeights{least=1, bits=4}, removeDeadNodes, mergeEqualWeights, nameUniquely",
]


@pytest.mark.parametrize("steps", ROUNDINGS)
def test_same_rounded_weights(steps: str, tmp_path: Path) -> None:
    """Files and printed lines, with weights in nested graphs and local functions."""
    random = np.random.default_rng(3)
    constant = onnx.numpy_helper.from_array
    made = onnx.parser.parse_model(ROUNDED)
    inner = [*made.graph.node[4].attribute[1].g.node[:1], made.functions[0].node[0]]
    for node, size in zip(inner, (40, 24), strict=True):
        array = random.standard_normal((size, 24)).astype(np.float32)
        node.attribute[0].CopyFrom(onnx.helper.make_attribute("value", constant(array)))
    for name, shape, dtype in (
        ("w", (40, 24), np.float32), ("v", (17, 24), np.float32), ("h", (9, 33), np.float16),
    ):  # fmt: skip
        array = random.standard_normal(shape).astype(dtype)
        made.graph.initializer.append(constant(array, name))
    made.graph.output[2].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    made.graph.node[0].name = "It's"
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(made, path)
    found = run(path, "-o", out, "--passes", steps)
    assert (found.status, found.errors) == (0, "")
    assert out.read_bytes() == by_python(path, steps)

    def lines(printed: str) -> list[str]:
        return [line for line in printed.splitlines() if line.startswith("quantizeWeights: ")]

    words = ["passlib", "opt", "model.onnx", "-o", "other.onnx", "--passes", steps]
    assert lines(found.printed) == lines(shell(tmp_path, words)) != []


def test_operator_sets_that_lack_blocks(twice: Path) -> None:
    made = onnx.load(twice)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((3, 64), np.float32), "w"))
    made.graph.node.append(onnx.helper.make_node("MatMul", ["x", "w"], ["z"]))
    onnx.save(made, twice)
    found = run(twice, "-o", twice.with_name("out.onnx"), "--passes", "quantizeWeights{least=1}")
    assert found.status == 2
    assert "operator set 17 has no DequantizeLinear with blocks; raise it first, by opt" in (
        found.errors
    )


@pytest.mark.sample(100)
@pytest.mark.parametrize(("rule", "steps"), rule_examples())
def test_same_bytes_of_rules(rule: Any, steps: str, tmp_path: Path) -> None:
    """The standard passes that apply rules, on the examples of these."""
    (first,) = [low for domain, low, _ in rule.sets if not domain] or [17]
    for example in rule.examples:
        path = tmp_path / "model.onnx"
        build(example.before, max(first, 17)).model.save(path)
        out = tmp_path / "out.onnx"
        assert run(path, "-o", out, "--passes", steps, "--quiet") == (0, "", "")
        assert out.read_bytes() == by_python(path, steps)


FOCUS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 1, H, W] x) => (float[N, 1, P, Q] y) <float[1, 4, 1, 1] w = {1, 2, 3, 4},
  int64[2] a = {0, 0}, int64[2] b = {0, 1}, int64[2] c = {1, 0}, int64[2] d = {1, 1},
  int64[2] end = {2147483647, 2147483647}, int64[2] axes = {2, 3}, int64[2] two = {2, 2}>
{ p = Slice(x, a, end, axes, two) q = Slice(x, b, end, axes, two)
  r = Slice(x, c, end, axes, two) s = Slice(x, d, end, axes, two)
  t = Concat <axis = 1> (p, r, q, s) y = Conv(t, w) }"""


SIZES = """<ir_version: 8, opset_import: ["" : 14]>
g (float[3, N, M] x) => (float[P, Q, R] y)
<int64[1] a = {1}, int64[1] b = {2}, int64[1] c = {-1}>
{ s = Shape(x) m = Gather <axis = 0> (s, a) n = Gather <axis = 0> (s, b)
  t = Concat <axis = 0> (m, n, c) y = Reshape(x, t) }"""


COURSE = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 3] x) => (float[N, 3] y, float[P, N, 3] z) <int64 one = {1}, bool c = {1}>
{ y, z = Loop(one, , x) <body = b (int64 i, bool go, float[N, 3] v) => (go2, w, u) {
    go2 = Identity(go) k = Constant <value_floats = [1.5, 2.5, 3.5]> () u = Add(v, k)
    w = If(c) <then_branch = t () => (p) <float[3] f = {1, 2, 3}> { p = Mul(u, f) },
               else_branch = e () => (q) { q = Neg(u) }> }> }"""


WEIGHTS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 2] x, bool c) => (float[N, 2] y)
<float[2] f = {0.1, -0.0}, double[0] none = {}, int64[2, 1] i = {9223372036854775807, -1},
 bool[2] b = {1, 0}, float16[1] h = {1}, uint8[3] u = {0, 7, 255}> {
  k = Constant <value_float = 2.0> () p = Cast <to = 1> (i) q = Cast <to = 1> (b)
  r = Cast <to = 1> (h) s = Cast <to = 1> (u) t = Cast <to = 1> (none)
  v = Sum(f, k, q, r) w = Concat <axis = 0> (s, t) o = ReduceMax <keepdims = 0> (w)
  a = Mul(x, v) d = Add(a, o) e = ReduceMax <keepdims = 0> (p) g = Add(d, e)
  y = If(c) <
    then_branch = t1 () => (float[N, 2] r1) <float[2] n = {1, 2}> {
      m = Constant <value = float[2] {3, 4}> () z = Add(g, m) l = Mul(z, n)
      r1 = If(c) <
        then_branch = t2 () => (float[N, 2] r2) {
          b2 = Constant <value_floats = [5.5, 6.5]> () j = Constant <value_ints = [1, 0]> ()
          z2 = Gather <axis = 1> (l, j) r2 = Mul(z2, b2) },
        else_branch = e2 () => (float[N, 2] s2) { s2 = Neg(z) }> },
    else_branch = e1 () => (float[N, 2] s1) <float[2] n = {5, 6}> { s1 = Mul(g, n) }> }"""


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (WEIGHTS, "constantsToWeights"),
        (WEIGHTS, "constantsToWeights{nested=false}"),
        (WEIGHTS, "constantsToWeights, nameUniquely"),
        (WEIGHTS, "nameUniquely"),
        (WEIGHTS, "weightsToConstants"),
        (WEIGHTS, "weightsToConstants{largest=1}"),
        (WEIGHTS, "constantsToWeights, weightsToConstants, nameUniquely"),
        (FOCUS, "fuseSpaceToDepth"),
        (FOCUS, "fuseSpaceToDepth{reorder_weights=true}"),
        (SIZES, "rebuildShapes"),
        (COURSE, "resolveIf"),
    ],
)
def test_same_bytes_of_algorithms(text: str, steps: str, tmp_path: Path) -> None:
    path, out = write(text, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    assert run(path, "-o", out, "--passes", steps, "--quiet") == (0, "", "")
    assert out.read_bytes() == by_python(path, steps) != path.read_bytes()


HALVED = {
    "masked": """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 4] x, bool c, int64[4] m) => (float[2, 4] y, float[2, 4] z)
<float[4] k = {-3.4e38, 0, 1, 2}, float tiny = {1e-12}, float[4] j = {1e5, 1, 1e-9, 0},
 float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}> {
  a = MatMul(x, w) f = Cast<to = 1>(m) p = Mul(f, k) b = Add(a, p) s = Abs(b) t = Add(s, tiny)
  l = Log(t) d = Div(l, j)
  e = If(c) <
    then_branch = t () => (float[2, 4] r) {
      n = Constant <value = float[4] {1, 2, 3, 1e6}> () q = Add(a, n) r = MatMul(q, w) },
    else_branch = e () => (float[2, 4] o) { o = Neg(d) }>
  v = Celu(e) y = MatMul(v, w) u = Max(d, tiny) z = Identity(u) }""",
    "in a function": """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[2, 2] x) => (float[2, 2] y) { a = MatMul(x, x) b = local.f(a) y = MatMul(b, x) }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r) { n = Neg(a) g = MatMul(a, n) r = Exp(g) }""",
    "filled": """<ir_version: 10, opset_import: ["" : 21]>
g (float[4, 4] x, float[0] none) => (float[4, 4] y, float[0] z)
<float[0] empty = {}, float infinite = {1e9}> {
  n = Shape(x) a = ConstantOfShape<value = float[1] {3}>(n) b = ConstantOfShape(n)
  c = MatMul(a, x) d = MatMul(c, b) e = Min(d, infinite) z = Add(none, empty)
  f = Cast<to = 11>(e) h = Cast<to = 1>(f) y = Sub(h, d) }""",
}


@pytest.mark.parametrize(
    "options",
    ["", "{keep_io=false}", "{dtype=bfloat16, clamp=false}",
     "{keep_ops=[Log, Exp], keep_nodes=[nothing]}"],
)  # fmt: skip
@pytest.mark.parametrize("name", HALVED)
def test_half_precision(
    name: str, options: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files and lines are those of the Python package."""
    path, out = write(HALVED[name], tmp_path / "model.onnx"), tmp_path / "out.onnx"
    steps = f"toHalf{options}"
    found = run(path, "-o", out, "--passes", steps)
    assert (found.status, found.errors) == (0, "")
    assert out.read_bytes() == by_python(path, steps) != path.read_bytes()
    printed = capfd.readouterr().out
    assert printed.startswith("toHalf: ")
    assert found.printed.startswith(printed)


@pytest.mark.parametrize(
    "name",
    ["bfloat16", "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64",
     "uint8", "uint16", "uint32", "uint64"],
)  # fmt: skip
def test_same_bytes_of_tensors_that_passes_write(name: str, tmp_path: Path) -> None:
    code = onnx.TensorProto.DataType.Value(
        {"float32": "FLOAT", "float64": "DOUBLE"}.get(name, name.upper())
    )
    dtype = onnx.helper.tensor_dtype_to_np_dtype(code)
    array = np.zeros((2, 3), dtype)
    if name == "bool":
        array[0, 1] = True
    elif "float" in name:
        array[:] = [[np.inf, np.nan, -np.inf], [-0.0, 0.1, 3e-5]]
    else:
        array[0] = np.iinfo(dtype).min, np.iinfo(dtype).max, np.iinfo(dtype).max - 1
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(behind_weight(array), path)
    assert run(path, "-o", out, "--passes", "weightsToConstants", "--quiet") == (0, "", "")
    assert out.read_bytes() == by_python(path, "weightsToConstants")
    (node, _) = onnx.load(out).graph.node
    written = onnx.numpy_helper.to_array(node.attribute[0].t)
    assert written.dtype == array.dtype
    assert written.tobytes() == array.tobytes()


NESTED = {
    "constants in both branches": """(bool c, float[2, 3] x) => (float[2, 3] y)
<float[3] w = {1, 2, 3}, int64[2] s = {2, 3}> {
  y = If(c) <
    then_branch = t () => (float[2, 3] p) <float[3] w2 = {4, 5, 6}>
      { i = Identity(w) a = Add(i, w2) b = Reshape(x, s) p = Mul(b, a) },
    else_branch = e () => (float[2, 3] q) { d = Neg(x) f = Neg(d) g = Abs(f)
      q = Identity(g) }> }""",
    "an output that is a constant": """(bool c, float[2] x) => (float[2] y)
<float[2] w = {1, 2}> {
  y = If(c) <
    then_branch = t () => (float[2] p) { a = Add(w, w) p = Mul(a, w) },
    else_branch = e () => (float[2] q) { b = Identity(x) q = Identity(b) }> }""",
    "an output that is a used constant": """(bool c, float[2] x) => (float[2] y, float[2] z)
<float[2] w = {1, 2}> {
  y, z = If(c) <
    then_branch = t () => (float[2] p, float[2] k) <float[2] k = {3, 4}, float[2] u = {1, 2}>
      { s = Add(u, u) a = Sub(x, s) p = Mul(a, k) },
    else_branch = e () => (float[2] q, float[2] o)
      { b = Identity(x) q = Mul(b, w) o = Abs(b) }> }""",
    "a body of Loop": """(int64 m, float[2, 3] x) => (float[2, 3] y, float[r, 2, 3] z)
<bool on = {1}, float[3] w = {1, 2, 3}, float[3] v = {0.5, 2, 4}> {
  u = Relu(x)
  y, z = Loop(m, on, x) <body = b (int64 i, bool go, float[2, 3] state)
    => (bool go2, float[2, 3] next, float[2, 3] each) {
    go2 = Identity(go) k = Mul(w, v) a = Mul(state, k) d = Transpose <perm = [1, 0]> (a)
    f = Transpose <perm = [1, 0]> (d) next = Add(f, u) g = Neg(next) each = Neg(g) }> }""",
    "a body of Scan": """(float[2, 3] x, float[4, 2, 3] parts) => (float[2, 3] y, float[4, 6] z) {
  y, z = Scan(x, parts) <num_scan_inputs = 1, body = b (float[2, 3] state, float[2, 3] part)
    => (float[2, 3] next, float[6] each) {
    next = Add(state, part) s = Shape(part) n = ReduceProd <keepdims = 1> (s)
    each = Reshape(next, n) }> }""",
    "nested in nested": """(bool c, int64 m, float[3] x) => (float[3] y)
<bool on = {1}, float[3] w = {1, 2, 3}> {
  y = If(c) <
    then_branch = t () => (float[3] p) {
      a = Relu(x)
      b = Identity(a)
      p = Loop(m, on, b) <body = l (int64 i, bool go, float[3] state) => (bool go2, float[3] next) {
        go2 = Identity(go) k = Add(w, w) j = Identity(a) h = Mul(state, k)
        next = If(go) <
          then_branch = t2 () => (float[3] p2) { f = Neg(h) g = Neg(f) p2 = Add(g, j) },
          else_branch = e2 () => (float[3] q2) { d = Identity(h) q2 = Abs(d) }> }> },
    else_branch = e () => (float[3] q) { r = Identity(x) q = Exp(r) }> }""",
    "names of the graph around": """(bool c, float[4, 4] x) => (float[2, 4] y, float[4, 4] z)
<int64[1] o = {0}, int64[1] l = {2}, int64[1] e4 = {4}, int64[1] ax = {0}> {
  p_split_sizes = Abs(x)
  a_value = Neg(x)
  z = Add(a_value, p_split_sizes)
  y = If(c) <
    then_branch = t () => (float[2, 4] p) <float[1] w = {2}, float[1] v = {3}>
      { a = Add(w, v) b = Mul(x, a) d = Slice(b, o, l, ax) f = Slice(b, l, e4, ax) p = Add(d, f) },
    else_branch = e () => (float[2, 4] q) { g = Slice(x, o, l, ax) q = Identity(g) }> }""",
    "a value of an unknown type": """(bool c, seq(float[2]) x) => (float[2] y) <int64 o = {0}> {
  y = If(c) <
    then_branch = t () => (float[2] p) { a = SequenceAt(x, o) b = Neg(a) p = Neg(b) },
    else_branch = e () => (float[2] q) <float[2] w = {1, 2}> { d = Neg(w) q = Neg(d) }> }""",
    "outputs of unstated types": """(bool c, float[n, 3] x) => (float[n, 3] y, z) {
  y, z = If(c) <
    then_branch = t () => (p, float[a] u) { s = Neg(x) b = Neg(s) p = Mul(b, x) u = Relu(x) },
    else_branch = e () => (q, v) { d = Abs(x) f = Abs(d) q = Exp(f) v = Identity(d) }> }""",
    "described values": """(bool c, float[n, 3] x) => (float[n, 3] y) {
  y = If(c) <
    then_branch = t () => (float[n, 3] p) <float[n, 3] s, float[k, 3] b, float[n, 3] f>
      { s = Neg(x) b = Neg(s) f = Abs(b) g = Abs(f) p = Mul(g, x) },
    else_branch = e () => (float[n, 3] q) { d = Abs(x) q = Exp(d) }> }""",
    "an output of another rank than stated": """(float[n, 6] x) => (float[n, m] y)
<int64 i = {0}, int64[2] r = {2, 3}> {
  s = Shape(x) k = Gather(s, i) ax = Constant <value_ints = [0]> () u = Unsqueeze(k, ax)
  t = Concat <axis = 0> (u, r) h = Neg(x) a = Neg(h) y = Reshape(a, t) }""",
    "an initializer that the branch also names": """(bool c, float[2] x) => (float[2] y)
<float[2] w = {1, 2}, float[2] one = {1, 1}> {
  y = If(c) <
    then_branch = t () => (float[2] p) { a = Mul(x, one) b = Add(a, w) p = Sub(b, w) },
    else_branch = e () => (float[2] q) <float[2] k = {1, 2}> { d = Add(k, w) q = Div(x, d) }> }""",
}


@pytest.mark.parametrize("steps", ["simplify", "clean", "simplify{max_rounds=1}"])
@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_nested_graphs(text: str, steps: str, tmp_path: Path) -> None:
    """Simplify enters nested graphs and writes what the Python package does."""
    head = '<ir_version: 8, opset_import: ["" : 17]>\ng '
    path, out = write(head + text, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    assert run(path, "-o", out, "--passes", steps, "--quiet") == (0, "", "")
    assert out.read_bytes() == by_python(path, steps) != path.read_bytes()
    onnx.checker.check_model(str(out))


FUNCTIONS = {
    "a body": """g (float[2, 3] x) => (float[2, 3] y) { y = local.f(x) }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r) { b = Identity(a) c = Neg(b) d = Neg(c) k = Constant <value = float[3] {1, 2, 3}> ()
  m = Mul(k, k) r = Add(d, m) }""",
    "a function in a function": """g (float[2, 3] x, float[2, 3] z) => (float[2, 3] y)
{ u = Neg(x) v = Neg(u) w = local.f(v, z) y = Identity(w) }
<domain: "local", opset_import: ["" : 17, "local" : 1]>
f (a, b) => (r) { c = local.h(a) d = Abs(b) e = Abs(d) i = local.h(e) r = Add(c, i) }
<domain: "local", opset_import: ["" : 17]>
h (a) => (r) { t = Transpose <perm = [1, 0]> (a) s = Transpose <perm = [1, 0]> (t) r = Exp(s) }""",
    "attributes of the call": """g (float[2, 3] x) => (float[2, 3] y, float[3, 2] z)
{ y = local.f <slope = 0.5, p = [0, 1]> (x) z = local.f <slope = 0.25, p = [1, 0]> (x) }
<domain: "local", opset_import: ["" : 17]>
f <slope, p> (a) => (r) { b = LeakyRelu <alpha : float = @slope> (a) c = Identity(b)
  d = Transpose <perm : ints = @p> (c) e = Neg(d) h = Neg(e) r = Identity(h) }""",
    "sizes that all calls state": """g (float[2, 3] x, float[2, 3] z) => (float[6] y, float[6] w)
{ y = local.f(x) w = local.f(z) }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r) { s = Shape(a) n = ReduceProd <keepdims = 1> (s) r = Reshape(a, n) }""",
    "results that are inputs or equal": """g (float[2] x) => (float[2] y, float[2] z, float[2] w)
{ y, z, w = local.f(x) }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r, s, t) { r = Identity(a) b = Neg(a) s = Identity(b) c = Neg(a) t = Identity(c) }""",
    "nested in a function": """g (bool c, float[3] x) => (float[3] y) { y = local.f(c, x) }
<domain: "local", opset_import: ["" : 17]>
f (c, a) => (r) { k = Constant <value = float[3] {1, 2, 3}> () b = Relu(a)
  r = If(c) <then_branch = t () => (float[3] p) { d = Mul(k, k) e = Add(b, d) p = Identity(e) },
             else_branch = e () => (float[3] q) { h = Neg(b) i = Neg(h) q = Abs(i) }> }""",
    "called in a nested graph": """g (bool c, float[3] x) => (float[3] y) {
  y = If(c) <then_branch = t () => (float[3] p) { a = local.f(x) b = Neg(a) d = Neg(b) p = Exp(d) },
             else_branch = e () => (float[3] q) { q = local.f(x) }> }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r) { b = Abs(a) c = Abs(b) r = Identity(c) }""",
    "a stated type that changes": """g (float[2, 3] x) => (float[2, 3] y) { y = local.f(x) }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r) <double[3, 2] t, double[3, 2] g, float[3, 2] n> {
  i = Constant <value = int64[3] {2, 0, 1}> () c = Cast <to = 11> (a)
  t = Transpose <perm = [1, 0]> (c) g = Gather (t, i) d = Cast <to = 1> (g) n = Neg(d)
  r = Transpose <perm = [1, 0]> (n) }""",
    "an input left out": """g (float[3] x) => (float[3] y, float[3] z)
{ y = local.f(x, x) z = local.f(x) }
<domain: "local", opset_import: ["" : 17]>
f (a, b) => (r) { c = Identity(a) d = Clip(c, b) r = Identity(d) }""",
    "not called": """g (float[3] x) => (float[3] y) { y = Abs(x) }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r) { b = Identity(a) r = Identity(b) }""",
}


@pytest.mark.parametrize(
    "steps",
    ["simplify", "clean", "removeNoOps, mergeSigns", "foldConstants", "inlineFunctions",
     "inlineFunctions{names=[local.f]}", "inlineFunctions, outline{least=2}, simplify"],
)  # fmt: skip
@pytest.mark.parametrize("text", FUNCTIONS.values(), ids=FUNCTIONS)
def test_local_functions(text: str, steps: str, tmp_path: Path) -> None:
    """Passes that join simplify enter local functions and write what the Python package does."""
    head = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n'
    path, out = write(head + text, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    assert run(path, "-o", out, "--passes", steps, "--quiet") == (0, "", "")
    made = out.read_bytes()
    assert made == by_python(path, steps)
    if steps in ("simplify", "clean"):
        entered = text not in (FUNCTIONS["an input left out"], FUNCTIONS["not called"])
        assert (made != path.read_bytes()) == entered
    if steps.startswith("inlineFunctions"):
        assert {function.name for function in onnx.load(out).functions} <= {"h", "Layer"}


LAYERS = "".join(
    f"a{i} = Relu(h{i}) b{i} = MatMul(a{i}, w{i}) c{i} = Constant<value_float = 2.0>() "
    f"d{i} = Mul(b{i}, c{i}) h{i + 1} = Tanh(d{i}) "
    for i in range(4)
)


@pytest.mark.parametrize(
    "steps", ["outline", "outline{least=2, domain=x}", "outline, inlineFunctions"]
)
def test_layers(steps: str, tmp_path: Path) -> None:
    weights = ", ".join(f"float[2, 2] w{i} = {{{i}, 1, 2, 3}}" for i in range(4))
    text = f"""<ir_version: 7, opset_import: ["" : 17]>
g (float[2, 2] h0) => (float[2, 2] y) <{weights}> {{ {LAYERS} y = Neg(h4) }}"""
    path, out = write(text, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    assert run(path, "-o", out, "--passes", steps, "--quiet") == (0, "", "")
    assert out.read_bytes() == by_python(path, steps) != path.read_bytes()
    onnx.checker.check_model(str(out), full_check=True)


@pytest.mark.parametrize("steps", ["inlineFunctions{names=[g]}", "outline{least=1}"])
def test_mistakes_of_whole_models(steps: str, tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n'
    path = write(head + FUNCTIONS["a body"], tmp_path / "model.onnx")
    found = run(path, "-o", tmp_path / "out.onnx", "--passes", steps)
    assert found.status in (1, 2)
    wanted = {
        "inlineFunctions{names=[g]}": "there is no function 'g'; the functions are local.f",
        "outline{least=1}": "option 'least' takes a whole number from 2 to 4096, not '1'",
    }
    assert wanted[steps] in found.errors
    if steps.startswith("inlineFunctions"):
        errors = passlib_command("opt", path, "-o", tmp_path / "out.onnx", "--passes", steps).stderr
        assert found.errors.partition(": ")[2] == errors.partition(": ")[2]


def model_of_set(inner: int, outer: int, domain: str, names: list[str]) -> onnx.ModelProto:
    """Return a model of a set, with a function of operators of another version of it."""
    sets = {domain: outer, "local": 1}
    model = onnx.ModelProto(ir_version=10)
    model.opset_import.extend(onnx.helper.make_opsetid(*each) for each in sets.items())
    nodes = [onnx.NodeProto(op_type=name, domain=domain, input=["a"], output=[f"r{number}"])
             for number, name in enumerate(names)]  # fmt: skip
    model.functions.append(onnx.helper.make_function(
        "local", "f", ["a"], ["r0"], nodes, [onnx.helper.make_opsetid(domain, inner)]
    ))  # fmt: skip
    model.graph.name = "g"
    model.graph.node.add(op_type="f", domain="local", input=["x"], output=["y"])
    for field, name in ((model.graph.input, "x"), (model.graph.output, "y")):
        field.add().CopyFrom(onnx.helper.make_tensor_value_info(name, 1, [2]))
    return model


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml"])
def test_operator_sets_of_functions(domain: str, tmp_path: Path) -> None:
    """The table of the core has the versions of all operators that package onnx has."""
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    since: dict[str, set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            since.setdefault(schema.name, set()).add(schema.since_version)
    newest = max(map(max, since.values()))
    same: dict[tuple[int, int], list[str]] = {}
    for name, versions in since.items():
        for first, after in itertools.pairwise([*sorted(versions), newest + 1]):
            if first < after - 1:
                same.setdefault((first, after - 1), []).append(name)
            if after > newest:
                continue
            path.write_bytes(model_of_set(first, after, domain, [name]).SerializeToString())
            found = run(path, "-o", out, "--passes", "inlineFunctions", "--quiet")
            assert f"and {name} differs in {after}" in found.errors
    for (first, last), names in same.items():
        path.write_bytes(model_of_set(first, last, domain, names).SerializeToString())
        found = run(path, "-o", out, "--passes", "inlineFunctions", "--quiet")
        assert found == (0, "", ""), names
        assert [node.op_type for node in onnx.load(out).graph.node] == names


def test_constants_that_an_old_operator_set_lacks(tmp_path: Path) -> None:
    """Before operator set 9, a body has no constant of integers."""
    text = """<ir_version: 8, opset_import: ["" : 8, "local" : 1]>
g (float[2, 3] x) => (int64[2] y, float[2, 3] z) { y, z = local.f(x) }
<domain: "local", opset_import: ["" : 8]>
f (a) => (r, s) { b = Relu(a) r = Shape(b) s = Exp(b) }"""
    path, out = write(text, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    assert run(path, "-o", out, "--quiet") == (0, "", "")
    assert out.read_bytes() == by_python(path, "simplify")
    (function,) = onnx.load(out).functions
    assert [node.op_type for node in function.node] == ["Relu", "Shape", "Exp"]


def test_rules_enter_functions(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y) { y = local.f(x) }
<domain: "local", opset_import: ["" : 17]>
f (a) => (r) { b = Relu(a) r = Relu(b) }"""
    model, rules, out = tmp_path / "model.onnx", tmp_path / "relu.rules", tmp_path / "out.onnx"
    write(text, model)
    rules.write_text(RULES)
    assert run(model, "-o", out, "--rules", rules, "--quiet") == (0, "", "")
    made = passlib.Rules(RULES, registers=False)(passlib.load(model))
    made.save(tmp_path / "python.onnx")
    assert out.read_bytes() == (tmp_path / "python.onnx").read_bytes()
    assert [len(function.node) for function in onnx.load(out).functions] == [1]


IN_FUNCTIONS = """<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
g (float[N, 4] x) => (float[N, 4] y) { y = local.Outer<slope = 0.5>(x) }
<domain: "local", opset_import: ["" : 17, "local" : 1]>
Outer <slope> (a) => (b) { c = LeakyRelu<alpha : float = @slope>(a) d = Tanh(c) b = local.Layer(d) }
<domain: "local", opset_import: ["" : 17]>
Layer (a) => (b) { s = Sigmoid(a) c = Mul(a, s) d = Tanh(c) b = Neg(d) }"""


RENEWED = {
    "names of sizes": """(float[n, 4] x) => (float[k, 4] y)
        <float[k, 4] a, int64[1] zero = {0}, int64[1] one = {1}>
        { a = Slice(x, zero, one) y = Neg(a) }""",
    "a sequence": """(float[n, 4] x) => (float[n, 4] y) <seq(float[n, 4]) a, int64 zero = {0}>
        { a = SequenceConstruct(x, x) y = SequenceAt(a, zero) }""",
    "an output without a shape": """(float[n, 4] x) => (float y)
        { a = Neg(x) y = Neg(a) }""",
    "nested graphs": """(float[n, 4] x, bool c) => (float[n, 4] y)
        { a = Relu(x) y = If(c) <
          then_branch = then () => (float t) <float[n, 4] s> { s = Exp(a) t = Neg(s) },
          else_branch = otherwise () => (float[n, 4] e) { e = Identity(a) }> }""",
}


@pytest.mark.parametrize("what", RENEWED)
def test_types_behind_a_new_node(
    what: str, tmp_path: Path, load_plugin: Callable[[str], Any]
) -> None:
    library = load_plugin("onnx_edits")
    text = '<ir_version: 8, opset_import: ["" : 17]> g ' + RENEWED[what]
    first = f"{onnx.parser.parse_model(text).graph.node[0].op_type}_0"
    steps = f"putBefore{{node={first}, op=Abs}}"
    path, out = write(text, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    assert run(path, "-o", out, "-l", library.path, "--passes", steps, "--quiet") == (0, "", "")
    assert out.read_bytes() == by_python(path, steps)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("putBefore{node=F_1, op=Abs}", ""),
        ("reverseOutputs", "passlib-opt: output 'y' cannot be written: its type is not known; "),
    ],
)
def test_outputs_without_a_known_type(
    steps: str, message: str, tmp_path: Path, load_plugin: Callable[[str], Any]
) -> None:
    library = load_plugin("onnx_edits")
    text = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[2] x) => (float[2] y, z) { y = Relu(x) z = own.F(x) }"""
    path, out = write(text, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    found = run(path, "-o", out, "-l", library.path, "--passes", steps, "--quiet")
    assert found.errors.startswith(message)
    assert out.exists() == (not message)


@pytest.mark.parametrize("steps", ["swishInFunctions", "dropTanhInFunctions", "dropTanhOutside"])
def test_passes_of_libraries_enter_functions(
    steps: str, tmp_path: Path, load_plugin: Callable[[str], Any]
) -> None:
    library = load_plugin("in_functions")
    path, out = write(IN_FUNCTIONS, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    found = run(path, "-o", out, "-l", library.path, "--passes", steps, "--quiet")
    assert found == (0, "", "")
    made = out.read_bytes()
    assert made == by_python(path, steps)
    assert (made != path.read_bytes()) == (steps != "dropTanhOutside")
    found = run("--list-passes", "-l", library.path)
    about = found.printed[found.printed.index(f"\n{steps}") :].partition("  from ")[0]
    assert ("  also changes the bodies of local functions\n" in about) == (
        steps != "dropTanhOutside"
    )


@pytest.mark.parametrize(
    ("how", "message"),
    [("fail", "it always fails"), ("output", "a pass removed the output 'b'")],
)
def test_errors_of_passes_in_functions(
    how: str, message: str, tmp_path: Path, load_plugin: Callable[[str], Any]
) -> None:
    library = load_plugin("in_functions")
    path, out = write(IN_FUNCTIONS, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    steps = f"breakBody{{how={how}}}"
    found = run(path, "-o", out, "-l", library.path, "--passes", steps, "--quiet")
    assert found.status == 2
    assert "local function 'Outer': " in found.errors
    assert message in found.errors
    assert not out.exists()


FAILING = """#include "lib_api.h"
using namespace mxnet::ext;
MXReturnValue failOnSigmoid(Graph* graph, const OptionValues&) {
  for (const Node* node : graph->nodes) {
    if (node->op == "Sigmoid") throw std::runtime_error("it fails on it");
  }
  return MX_SUCCESS;
}
REGISTER_PASS(failOnSigmoid).setBody(failOnSigmoid).dialects({"onnx"}).joins("simplify");
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""


LIMITED = """#include "lib_api.h"
using namespace mxnet::ext;
MXReturnValue limited(Graph*, const OptionValues&) { return MX_SUCCESS; }
REGISTER_PASS(limited).setBody(limited).dialects({"onnx"})
    .option("size", int64_t(0), "A size.", int64_t(-9007199254740993), int64_t(9007199254740993));
MXReturnValue initialize(int) { return MX_SUCCESS; }
"""


def test_ranges_beyond_what_doubles_have(tmp_path: Path, twice: Path) -> None:
    source, library = tmp_path / "limited.cc", tmp_path / "limited.so"
    source.write_text(LIMITED)
    build_library([str(source)], str(library), "debug")
    for size in ("9007199254740993", "-9007199254740993", "+007", "-0"):
        steps = f"limited{{size={size}}}"
        found = run(twice, "-o", tmp_path / "out.onnx", "-l", library, "--passes", steps, "--quiet")
        assert found == (0, "", ""), size
    for size in ("9007199254740994", "-9007199254740994", "1" + "0" * 29, "-1" + "0" * 29):
        steps = f"limited{{size={size}}}"
        found = run(twice, "-o", tmp_path / "out.onnx", "-l", library, "--passes", steps)
        assert found.status == 1
        assert "takes a whole number from -9007199254740993 to 9007199254740993" in found.errors


def test_a_pass_that_joins_simplify_and_fails_in_a_function(tmp_path: Path) -> None:
    source, library = tmp_path / "failing.cc", tmp_path / "failing.so"
    source.write_text(FAILING)
    build_library([str(source)], str(library), "debug")
    path, out = write(IN_FUNCTIONS, tmp_path / "model.onnx"), tmp_path / "out.onnx"
    words = (path, "-o", out, "-l", library)
    done = passlib_command("opt", *words)
    for found in (run(*words), Run(done.returncode, done.stdout, done.stderr)):
        assert found.status == 2
        assert "local function 'Layer': " in found.errors
        assert "it fails on it" in found.errors
        assert not out.exists()


def without_doubtful_types(data: bytes) -> bytes:
    """Return a model with nested graphs without what these state of values, and of sequences."""
    model = onnx.ModelProto.FromString(data)
    for value in model.graph.output:
        if value.type.HasField("sequence_type"):
            value.ClearField("type")
    pending = [a.g for node in model.graph.node for a in node.attribute if a.HasField("g")]
    assert pending
    while pending:
        graph = pending.pop()
        pending += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
        del graph.value_info[:]
        for value in graph.output:
            value.ClearField("type")
    bare: bytes = model.SerializeToString(deterministic=True)
    return bare


EXTERNAL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 8, 9, 9] x, bool c) => (float[1, 8, 7, 7] z)
<float[8, 8, 3, 3] w, float[8] s, float[8] o, float[8] m, float[8] v, float[20001] spare>
{ a = Conv(x, w) b = BatchNormalization(a, s, o, m, v)
  z = If(c) <then_branch = t () => (float[1, 8, 7, 7] d) <float[1, 8, 7, 7] n>
               { k = Mul(n, n) d = Add(b, k) },
             else_branch = e () => (float[1, 8, 7, 7] f) { f = Neg(b) }> }"""


def write_external(folder: Path, *, several: bool, nested: bool) -> Path:
    """Write a model with its weights in one file or several next to it."""
    import numpy as np

    source = np.random.default_rng(1)
    model = onnx.parser.parse_model(EXTERNAL)
    branch = next(
        attribute.g
        for node in model.graph.node
        for attribute in node.attribute
        if attribute.name == "then_branch"
    )
    for graph, external in ((model.graph, True), (branch, nested)):
        for value in graph.value_info:
            sizes = [size.dim_value for size in value.type.tensor_type.shape.dim]
            values = source.random(sizes, np.float32) + 1
            tensor = graph.initializer.add()
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, value.name))
            if external:
                name = f"data/{tensor.name}.bin" if several else "weights.bin"
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with (folder / name).open("ab") as file:
                    onnx.external_data_helper.set_external_data(
                        tensor, name, offset=file.tell(), length=len(tensor.raw_data)
                    )
                    file.write(tensor.raw_data)
                tensor.ClearField("raw_data")
        del graph.value_info[:]
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def files_in(folder: Path) -> dict[str, bytes | onnx.ModelProto]:
    """Return the content of files by path; models as messages."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            is_model = path.suffix == ".onnx"
            found[str(path.relative_to(folder))] = (
                onnx.ModelProto.FromString(data) if is_model else data
            )
    return found


class TestDataInOtherFiles:
    @pytest.mark.parametrize("nested", [False, True])
    @pytest.mark.parametrize("several", [False, True])
    @pytest.mark.parametrize("out", ["out.onnx", "model.onnx", "other/out.onnx"])
    @pytest.mark.parametrize(
        "steps",
        [
            "removeDeadNodes",
            "foldBatchNormalization",
            "mergeEqualNodes",
            "simplify",
            "constantsToWeights",
        ],
    )
    def test_same_files(
        self, tmp_path: Path, steps: str, out: str, several: bool, nested: bool
    ) -> None:
        """The files are those that the Python package writes."""
        native, python = tmp_path / "native", tmp_path / "python"
        for folder in (native, python):
            path = write_external(folder, several=several, nested=nested)
            (folder / out).parent.mkdir(exist_ok=True)
        assert run(native / path.name, "-o", native / out, "--passes", steps, "--quiet") == (
            0,
            "",
            "",
        )
        passlib.Pipeline(steps).run(python / path.name).model.save(python / out)
        assert files_in(native) == files_in(python)
        onnx.checker.check_model(native / out)

    def test_unchanged_is_the_same_bytes(self, tmp_path: Path) -> None:
        path = write_external(tmp_path / "a", several=False, nested=True)
        out = tmp_path / "b" / "out.onnx"
        out.parent.mkdir()
        assert run(path, "-o", out, "--passes", "mergeEqualNodes", "--quiet") == (0, "", "")
        assert out.read_bytes() == path.read_bytes()
        weights = (path.parent / "weights.bin").read_bytes()
        assert (out.parent / "weights.bin").read_bytes() == weights

    @pytest.mark.parametrize(
        "stated",
        [
            {"location": "/etc/passwd"},
            {"location": "../weights.bin"},
            {"location": "a\\b"},
            {"location": "link.bin"},
            {"location": "none.bin"},
            {"location": "."},
            {"location": "weights.bin/x"},
            {"location": "x" * 300},
            {"location": ""},
            {"offset": "-1"},
            {"offset": "9" * 19},
            {"offset": "9" * 19, "length": "9" * 19},
            {"offset": "1" * 20},
            {"length": "9" * 19},
            {"length": "4"},
            {"length": "x"},
        ],
        ids=str,
    )
    def test_hostile_places(self, tmp_path: Path, stated: dict[str, str]) -> None:
        """They are refused in the words of the Python package."""
        path = write_external(tmp_path / "model", several=False, nested=False)
        (tmp_path / "outside.bin").write_bytes(bytes(10000))
        (path.parent / "link.bin").symlink_to(tmp_path / "outside.bin")
        model = onnx.ModelProto.FromString(path.read_bytes())
        for entry in model.graph.initializer[0].external_data:
            entry.value = stated.get(entry.key, entry.value)
        path.write_bytes(model.SerializeToString())
        with pytest.raises(passlib.FormatError) as refusal:
            passlib.load(path)
        found = run(path, "-o", tmp_path / "out.onnx", "--passes", "removeDeadNodes")
        assert found.status == 3
        assert str(refusal.value).endswith(found.errors.removeprefix("passlib-opt: ").strip())
        assert "initializer 'w': " in found.errors
        assert not (tmp_path / "out.onnx").exists()

    def test_data_that_nested_graphs_need(self, tmp_path: Path) -> None:
        """Data that no pass sees as an array must be there when the model is saved."""
        path = write_external(tmp_path, several=True, nested=True)
        (tmp_path / "data" / "n.bin").unlink()
        out = tmp_path / "out.onnx"
        found = run(path, "-o", out, "--passes", "foldBatchNormalization")
        assert found.status == 3
        assert "there is no file 'data/n.bin' next to the model" in found.errors
        assert not out.exists()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "model.onnx"]


class TestLibrary:
    def test_example(self, tmp_path: Path, twice: Path) -> None:
        """Built by CMake alone, against the prefix."""
        project = tmp_path / "project"
        shutil.copytree(ROOT / "example" / "native", project)
        shell(project, ["cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={PREFIX}"])
        shell(project, ["cmake", "--build", "build"])
        out = tmp_path / "out.onnx"
        printed = shell(project, ["build/optimize", str(twice), str(out), STEPS])
        assert "foldBatchNormalization: " in printed
        assert out.read_bytes() == by_python(twice, STEPS)

    @pytest.mark.parametrize("standard", ["-std=c99", "-std=c11"])
    def test_pkg_config(self, tmp_path: Path, standard: str) -> None:
        source = ROOT / "example" / "native" / "optimize.c"
        made = tmp_path / "optimize"
        shell(tmp_path, ["cc", standard, *STRICT, str(source), "-o", str(made), *flags()])
        assert made.exists()

    def test_cpp(self, tmp_path: Path, twice: Path) -> None:
        out = tmp_path / "out.onnx"
        printed = shell(tmp_path, [str(compiled(EDIT, tmp_path)), str(twice), str(out)])
        assert printed.splitlines() == [
            "usage: there is no pass or partitioner 'nothing' ",
            "graph: the edit left a graph that is not sound",
            "5 operators, output y of node Identity_4",
        ]
        nodes = onnx.load(out).graph.node
        assert [node.op_type for node in nodes if node.op_type == "Neg"] == ["Neg"]
        onnx.checker.check_model(onnx.load(out))

    def test_edits(self, tmp_path: Path) -> None:
        """Weights follow variables that are renamed; edits that do not fit are refused."""
        model = write(WEIGHTS, tmp_path / "model.onnx")
        out = tmp_path / "out.onnx"
        printed = shell(tmp_path, [str(compiled(WEIGHTS_EDIT, tmp_path)), str(model), str(out)])
        assert printed.splitlines() == [
            "1: there is no value 4294967296",
            "1: there is no value 4294967296",
            "1: there is no value 4294967296",
            "1: the model was changed since the edit began; begin another one",
            "the same in memory",
        ]
        graph = onnx.load(out).graph
        weights = {w.name: onnx.numpy_helper.to_array(w).tolist() for w in graph.initializer}
        assert weights == {"v": [1, 2], "w": [3, 4]}
        assert [list(node.input)[1] for node in graph.node] == ["v", "w"]

    def test_threads(self, tmp_path: Path) -> None:
        """One session runs and one model is read in several threads."""
        model = write(CHAIN, tmp_path / "model.onnx")
        rules = tmp_path / "relu.rules"
        rules.write_text(RULES)
        steps = f"relu, {STEPS}"
        out = tmp_path / "out.onnx"
        program = compiled(THREADS, tmp_path)
        printed = shell(tmp_path, [str(program), str(model), str(rules), steps])
        words = ("-l", rules, "--passes", steps, "--quiet")
        assert run(model, "-o", out, *words) == (0, "", "")
        assert int(printed) == len(out.read_bytes()) < len(model.read_bytes())

    def test_other_locale(self, tmp_path: Path) -> None:
        """Numbers of rules and attributes have a point where the program's locale has a comma."""
        if shutil.which("localedef") is None or not DEFINITION.exists():
            pytest.skip("the definition of the locale is not installed (package locales)")
        command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
        subprocess.run(command, check=False, capture_output=True)
        model = write(HALVES, tmp_path / "model.onnx")
        rules = tmp_path / "halves.rules"
        rules.write_text(HALVES_RULES)
        out = tmp_path / "out.onnx"
        program = compiled(LOCALE_PROGRAM, tmp_path)
        subprocess.run(
            [program, model, out, rules],
            env={**os.environ, "LC_ALL": "de_DE.UTF-8", "LOCPATH": str(tmp_path)},
            check=True,
        )
        (node,) = onnx.load(out).graph.node
        assert (node.op_type, node.attribute[0].f) == ("LeakyRelu", 0.125)

    def test_domain_that_is_no_text(self, tmp_path: Path, library: Any) -> None:
        data = onnx.parser.parse_model(TWICE.replace('["" : 17]', '["" : 17, "own" : 1]'))
        path = tmp_path / "model.onnx"
        path.write_bytes(data.SerializeToString().replace(b"own", b"o\xffn"))
        assert outcome(library, path.read_bytes()) == python_outcome(path.read_bytes()) == ""
        out = tmp_path / "out.onnx"
        assert run(path, "-o", out, "--passes", STEPS, "--quiet") == (0, "", "")
        assert out.read_bytes() == by_python(path, STEPS)

    @pytest.mark.sample(2)
    @pytest.mark.parametrize("start", range(0, 4000, 200))
    def test_damaged_models(self, start: int, library: Any) -> None:
        """Each is refused or read as by the Python package."""
        originals = [case.data for case in node_cases() if len(case.data) < 20_000]
        for seed in range(start, start + 200):
            data = mutated(originals, seed)
            assert outcome(library, data) == python_outcome(data), seed

    @pytest.mark.sample(2)
    @pytest.mark.parametrize("start", range(0, 4000, 200))
    def test_damaged_bytes(self, start: int, library: Any) -> None:
        import random

        originals = [case.data for case in node_cases() if len(case.data) < 5_000]
        for seed in range(start, start + 200):
            source = random.Random(seed)
            data = bytearray(source.choice(originals))
            for _ in range(source.choice((1, 2, 8))):
                place = source.randrange(len(data))
                if source.random() < 0.5:
                    data[place] = source.randrange(256)
                else:
                    del data[place : place + source.choice((1, 4, 64))]
                data = data or bytearray(1)
            assert outcome(library, bytes(data)) == python_outcome(bytes(data)), seed


STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]

EDIT = """
#include <cstdio>
#include <cstring>
#include <passlib.hpp>

namespace api = passlib::api;

template <typename Body>
void tried(const char* kind, passlib_error_kind expected, Body body) {
  try {
    body();
  } catch (const api::Error& error) {
    if (error.kind != expected) std::puts("another kind");
    std::string text = error.what();
    const std::size_t start = text.find("there is");
    if (start != std::string::npos) text.erase(0, start);
    std::printf("%s: %s\\n", kind, text.substr(0, text.find_first_of("(:")).c_str());
  }
}

int main(int, char** arguments) {
  api::Session session;
  api::Model model(arguments[1]);
  tried("usage", PASSLIB_USAGE, [&] { model.run(session, "nothing"); });
  tried("graph", PASSLIB_GRAPH, [&] {  // a cycle
    passlib_edit* edit = api::call(passlib_edit_begin, model.get());
    passlib_node* a = passlib_edit_find(edit, "Relu_0");
    passlib_node* c = passlib_edit_find(edit, "Add_3");
    api::call(passlib_edit_connect, edit, c, std::size_t{0}, a, std::size_t{0});
    api::call(passlib_edit_finish, edit);
  });
  passlib_edit* edit = api::call(passlib_edit_begin, model.get());
  passlib_node* b = passlib_edit_find(edit, "Relu_1");
  passlib_node* x = passlib_edit_find(edit, "x");
  const std::size_t first = 0;
  const std::size_t one = 1;
  passlib_node* made = api::call(passlib_edit_add, edit, "Neg", "minus", &x, &first, one);
  api::call(passlib_edit_replace, edit, b, first, made, first);
  api::call(passlib_edit_remove, edit, b);
  api::call(passlib_edit_finish, edit);
  std::size_t count = 0;
  for (std::size_t i = 0; i < passlib_model_node_count(model.get()); ++i) {
    passlib_node_info info{};
    info.size = sizeof info;
    api::call(passlib_model_node, model.get(), i, &info);
    if (std::strcmp(info.op, "null") != 0) ++count;
  }
  passlib_value value;
  char* name = nullptr;
  api::call(passlib_model_output, model.get(), std::size_t{0}, &value, &name);
  const api::Text owned(name);
  passlib_node_info info{};
  info.size = sizeof info;
  api::call(passlib_model_node, model.get(), value.node, &info);
  std::printf("%zu operators, output %s of node %s\\n", count, name, info.name);
  model.save(arguments[2]);
}
"""


WEIGHTS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {3, 4}>
{ a = Add(x, w) y = Mul(a, v) }"""

WEIGHTS_EDIT = """
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <passlib.hpp>

namespace api = passlib::api;

template <typename Body>
void tried(Body body) {
  try {
    body();
  } catch (const api::Error& error) {
    std::printf("%d: %s\\n", error.kind, error.what());
  }
}

int main(int, char** arguments) {
  api::Model model(arguments[1]);
  passlib_edit* late = api::call(passlib_edit_begin, model.get());
  passlib_edit* edit = api::call(passlib_edit_begin, model.get());
  passlib_node* w = passlib_edit_find(edit, "w");
  passlib_node* v = passlib_edit_find(edit, "v");
  passlib_node* a = passlib_edit_find(edit, "Add_0");
  const std::size_t none = 0;
  const std::size_t many = std::size_t{1} << 32;
  tried([&] { api::call(passlib_edit_connect, edit, w, many, a, none); });
  tried([&] { api::call(passlib_edit_connect, edit, w, none, a, many); });
  tried([&] { api::call(passlib_edit_replace, edit, w, none, v, many); });
  api::call(passlib_edit_rename, edit, w, "t");
  api::call(passlib_edit_rename, edit, v, "w");
  api::call(passlib_edit_rename, edit, w, "v");
  api::call(passlib_edit_finish, edit);
  tried([&] { api::call(passlib_edit_finish, late); });
  model.save(arguments[2]);
  void* data = nullptr;
  std::size_t size = 0;
  api::call(passlib_model_serialize, static_cast<const passlib_model*>(model.get()), &data, &size);
  std::ifstream file(arguments[2], std::ios::binary);
  const std::string saved((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const bool same = saved.size() == size && std::memcmp(saved.data(), data, size) == 0;
  if (same) std::puts("the same in memory");
  passlib_free(data);
}
"""

THREADS = """
#include <passlib.hpp>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace api = passlib::api;

std::string bytesOf(const passlib_model* model) {
  void* data = nullptr;
  std::size_t size = 0;
  api::call(passlib_model_serialize, model, &data, &size);
  const std::string bytes(static_cast<const char*>(data), size);
  passlib_free(data);
  return bytes;
}

void read(const passlib_model* model) {
  for (std::size_t i = 0; i < passlib_model_node_count(model); ++i) {
    passlib_node_info info{};
    info.size = sizeof info;
    api::call(passlib_model_node, model, i, &info);
    for (std::size_t k = 0; k < info.input_count; ++k) {
      passlib_value value;
      api::call(passlib_model_node_input, model, i, k, &value);
    }
  }
  for (std::size_t i = 0; i < passlib_model_output_count(model); ++i) {
    char* name = nullptr;
    api::call(passlib_model_output, model, i, static_cast<passlib_value*>(nullptr), &name);
    passlib_free(name);
  }
}

int main(int, char** arguments) {
  api::Session session;
  session.load(arguments[2]);
  const api::Model model(arguments[1]);
  std::vector<std::string> made(8);
  std::vector<std::thread> threads;
  for (std::string& result : made) {
    threads.emplace_back([&] {
      read(model.get());
      passlib_model* copy = api::call(passlib_model_copy, model.get());
      api::call(passlib_model_run, copy, session.get(), arguments[3],
                static_cast<const passlib_run_options*>(nullptr));
      read(copy);
      result = bytesOf(copy);
      passlib_model_free(copy);
      read(model.get());
      bytesOf(model.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : made) {
    if (result != made[0]) return 1;
  }
  std::printf("%zu\\n", made[0].size());
}
"""

DEFINITION = Path("/usr/share/i18n/locales/de_DE")

HALVES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) <float half = {0.5}> { a = Mul(x, half) y = Neg(a) }"""

HALVES_RULES = """
rule half "Half of a value is something else."
  y = Neg(Mul(x, 0.5))
  => y = LeakyRelu[alpha=0.125](x)
  rounding
"""

LOCALE_PROGRAM = """
#include <clocale>
#include <cstdio>
#include <passlib.hpp>

namespace api = passlib::api;

int main(int, char** arguments) {
  if (std::setlocale(LC_ALL, "") == nullptr) return 3;
  try {
    api::Session session;
    session.load(arguments[3]);
    api::Model model(arguments[1]);
    model.run(session, "halves");
    model.save(arguments[2]);
  } catch (const api::Error& error) {
    std::puts(error.what());
    return 1;
  }
}
"""


def compiled(text: str, folder: Path) -> Path:
    """Compile a program in C++."""
    source = folder / "program.cc"
    source.write_text(text)
    made = folder / "program"
    shell(
        folder, ["c++", "-std=c++17", "-pthread", *STRICT, str(source), "-o", str(made), *flags()]
    )
    return made


def flags() -> list[str]:
    """Return what pkg-config says, with the place of the library for the run."""
    folder = next(PREFIX.glob("lib*/**/pkgconfig"))
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "passlib"],
        env={**os.environ, "PKG_CONFIG_PATH": str(folder)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [*done.stdout.split(), f"-Wl,-rpath,{folder.parent}"]


@pytest.fixture(scope="module")
def library() -> Any:
    """Return libpasslib."""
    found = ctypes.CDLL(str(next(PREFIX.glob("lib*/**/libpasslib.so"))))
    found.passlib_model_read.restype = ctypes.c_void_p
    found.passlib_model_read.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    found.passlib_model_free.argtypes = [ctypes.c_void_p]
    found.passlib_error_get_kind.argtypes = [ctypes.c_void_p]
    found.passlib_error_free.argtypes = [ctypes.c_void_p]
    return found


KINDS = {4: "FormatError", 5: "GraphError", 7: "UnsupportedError"}


def outcome(library: Any, data: bytes) -> str:
    """Return the class of the error of libpasslib; empty if it reads the model."""
    error = ctypes.c_void_p()
    model = library.passlib_model_read(data, len(data), ctypes.byref(error))
    if model:
        library.passlib_model_free(model)
        return ""
    kind = KINDS[library.passlib_error_get_kind(error)]
    library.passlib_error_free(error)
    return kind


def python_outcome(data: bytes) -> str:
    """Return the same of the Python package."""
    try:
        passlib.load(data)
    except passlib.PasslibError as error:
        return type(error).__name__
    return ""
