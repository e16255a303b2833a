"""``compare`` and ``diff``: two models, in Python and as commands."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
from commands import passlib_command
from onnx_models import CHAIN, HEAD, LOOP, NESTED, save
from passlib.workbench import Tolerance, compare, diff, draw_inputs, input_shapes
from passlib.workbench.numbers import difference
from places import DATA
from planted_faults import FAULTS, block_model, plant

SQUEEZENET = DATA / "mxnet" / "models" / "squeezenet1.1"
INF, NAN = np.inf, np.nan

EMBEDDING = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64[N, 3] tokens, bool flag) => (float[N, 3, 2] y)
<float[5, 2] table = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0}>
{ wide = Cast <to = 7> (tokens)
  y = Gather(table, wide) }
"""

VALUES = [
    # One value, another one, and what the difference says.
    ([1.0, 2.0], [1.0, 2.0], ("", 0.0, 0, 0)),
    ([1.0, 2.0], [1.0, 2.5], ("values", 0.5, 0, 0)),
    ([1.0, NAN], [1.0, NAN], ("", 0.0, 0, 0)),
    ([1.0, 2.0], [1.0, NAN], ("values", 0.0, 1, 0)),
    ([INF, 2.0], [INF, 2.0], ("", 0.0, 0, 0)),
    ([INF, 2.0], [-INF, 2.0], ("values", 0.0, 0, 1)),
    ([1000.0, 500.0, 0.0], [1000.0, 500.0, 0.004], ("", 0.004, 0, 0)),
    ([1000.0, 0.0, 0.0], [1000.0, 0.0, 0.009], ("values", 0.009, 0, 0)),
    ([1.0, 0.0], [1.0, 0.009], ("values", 0.009, 0, 0)),
]


class TestNumbers:
    @pytest.mark.parametrize(("one", "two", "wanted"), VALUES)
    def test_real_numbers(
        self, one: list[float], two: list[float], wanted: tuple[str, float, int, int]
    ) -> None:
        found = difference("y", np.float32(one), np.float32(two), Tolerance())
        assert (found.what, found.nan, found.inf) == (wanted[0], *wanted[2:])
        assert found.absolute == pytest.approx(wanted[1])

    def test_large_integers_are_exact(self) -> None:
        one, two = np.array([2**60]), np.array([2**60 + 1])
        assert difference("y", one, two, Tolerance()).what == "values"
        assert difference("y", one, one, Tolerance()).equal

    def test_shapes_and_types(self) -> None:
        one = np.zeros((2, 3), np.float32)
        assert difference("y", one, one[:1], Tolerance()).what == "shapes (2, 3) and (1, 3)"
        assert "types" in difference("y", one, one.astype(np.float64), Tolerance()).what

    def test_sequences_and_text(self) -> None:
        one = [np.zeros(2), {"a": np.array(["x"], object)}]
        two = [np.zeros(2), {"a": np.array(["y"], object)}]
        assert difference("y", one, one, Tolerance()).equal
        assert not difference("y", one, two, Tolerance()).equal
        assert difference("y", one, one[:1], Tolerance()).what == "3 values, and 1"


class TestInputs:
    def test_indices_are_in_range(self, tmp_path: Path) -> None:
        model = pl.load(save(EMBEDDING, tmp_path / "m.onnx"))
        specs = next(input_shapes(model))
        seen = np.concatenate([draw_inputs(model, specs, n)["tokens"].ravel() for n in range(20)])
        assert set(seen) == set(range(5))
        assert set(draw_inputs(model, specs)) == {"tokens", "flag"}

    def test_open_sizes_are_chosen(self, tmp_path: Path) -> None:
        model = pl.load(save(EMBEDDING, tmp_path / "m.onnx"))
        found = compare(model, model)
        assert found.equal
        assert found.inputs[0]["tokens"].shape == (2, 3)
        assert len(found.inputs) == 3

    def test_a_missing_shape_is_named(self) -> None:
        model = pl.load(SQUEEZENET)
        with pytest.raises(pl.InputError, match="does not state the shapes of data"):
            compare(model, model)


class TestCompare:
    @pytest.mark.parametrize("text", [CHAIN, LOOP, NESTED], ids=["chain", "loop", "nested"])
    def test_a_model_is_equal_to_itself(self, text: str, tmp_path: Path) -> None:
        model = pl.load(save(text, tmp_path / "m.onnx"))
        assert compare(model, model, per_node=True).equal

    def test_values_that_agree_are_of_the_first_inputs(self, tmp_path: Path) -> None:
        """Squares of the large inputs are infinite, of which there is no cosine."""
        text = f"{HEAD}(float[2, 8] x) => (float[2, 8] y) {{ s = Mul(x, x) y = Tanh(s) }}"
        model = pl.load(save(text, tmp_path / "m.onnx"))
        found = compare(model, model, per_node=True)
        assert [each.cosine for each in found.values] == pytest.approx([1, 1])
        assert all(each.cosine <= 1 for each in found.values)

    def test_another_dialect(self, tmp_path: Path) -> None:
        model = pl.load(SQUEEZENET)
        shape = {"data": (1, 3, 224, 224)}
        model.to_onnx(tmp_path / "m.onnx", shape)
        found = compare(model, pl.load(tmp_path / "m.onnx"), shapes=shape)
        assert found.equal
        assert found.outputs[0].absolute < 1e-4

    @pytest.mark.parametrize(
        ("fault", "node"),
        [
            ("zero_weight", "conv0"),
            ("lost_epsilon", "bn0"),
            ("swapped_inputs", "subtract"),
            ("wrong_axis", "softmax"),
        ],
    )
    def test_the_first_different_node(self, fault: str, node: str, tmp_path: Path) -> None:
        model = block_model(tmp_path / "m.onnx", 3)
        wrong = model.optimize_for(plant(f"compared_{fault}", FAULTS[fault][0]))
        found = compare(model, wrong, per_node=True)
        assert not found.equal
        assert found.node is not None
        assert found.node.name == node
        # The ReLUs have other names, and stand for those of the model.
        assert found.node.compared == 17

    def test_a_node_that_stands_for_others(self) -> None:
        x = pl.sym.var("x", shape=(2,))
        model = pl.Model(pl.sym.exp(pl.sym.relu(pl.sym.negative(x, name="neg3"), name="relu3")))

        @pl.graph_pass
        def fuse_wrongly(graph: pl.Graph) -> None:
            """Makes one node of two."""
            old = [graph.find("neg3"), graph.find("relu3")]
            origin = {"__origin__": '["neg3", "relu3"]'}
            made = graph.add_node("square", [old[0].inputs[0]], origin, name="fused")
            graph.replace(old[1].outputs[0], made.outputs[0])
            for node in reversed(old):
                graph.remove(node)

        found = compare(model, model.optimize_for("fuse_wrongly"), per_node=True).node
        assert found is not None
        assert (found.name, found.compared) == ("fused", 2)

    def test_folded_nodes_have_the_value_of_the_last_one(self, tmp_path: Path) -> None:
        """A convolution into which a normalization was folded keeps its name, not its value."""
        pl.library.load_standard()
        model = block_model(tmp_path / "m.onnx", 2)
        folded = model.optimize_for("foldBatchNormalization")
        origins = {node.name: node.attrs.get("__origin__") for node in folded.symbol.nodes()}
        assert origins["conv1"] == '["conv1","bn1"]'
        assert compare(model, folded, per_node=True).node is None
        wrong = folded.optimize_for(plant("folded_then_wrong", FAULTS["wrong_axis"][0]))
        found = compare(model, wrong, per_node=True).node
        assert found is not None
        assert (found.name, found.compared) == ("softmax", 11)

    def test_different_numbers_of_outputs(self, tmp_path: Path) -> None:
        one, two = (
            pl.load(save(text, tmp_path / f"{i}.onnx")) for i, text in enumerate((CHAIN, EMBEDDING))
        )
        with pytest.raises(pl.GraphError, match="different"):
            compare(one, two)


UNNAMED = """
<ir_version: 8, opset_import: ["" : 17]>
unnamed (float[2, 4] x) => (float[2, 4] y)
{
   a = Relu(x)
   b = Identity(a)
   c = Neg(b)
   d = Relu(c)
   y = Neg(d)
}
"""

CAPTURING = """
<ir_version: 8, opset_import: ["" : 17]>
capturing (float[2] x, bool c) => (float[2] y)
{{
   a = Relu(x)
   {0}
   y = If (c) <
     then_branch = then () => (float[2] u) {{ k = {2}({1})
       u = Relu(k) }},
     else_branch = else () => (float[2] v) {{ v = Relu({1}) }}>
}}
"""


class TestDiff:
    def test_every_kind_of_change(self, tmp_path: Path) -> None:
        before = block_model(tmp_path / "m.onnx", 1)

        def change(graph: pl.Graph) -> None:
            for name in ("zero_weight", "wrong_axis", "dropped_add", "overflowing_cast"):
                FAULTS[name][0](graph)

        after = before.optimize_for(plant("diffed", change))
        found = diff(before, after)
        assert ("add0", "Add") in found.removed
        assert {name for name, _ in found.added} == {"low", "high", "relu0_new"}
        changed = {each.name: each.changes for each in found.changed}
        assert changed["softmax"] == ("attribute axis: 1 -> 0",)
        assert changed["cast"] == ("input 0: subtract -> high",)
        assert dict(found.weights) == {"w0": "16 of 16 values"}
        assert str(found).endswith("nodes: 2 removed, 3 added, 3 changed; weights: 1 changed")

    def test_nothing_differs(self, tmp_path: Path) -> None:
        model = block_model(tmp_path / "m.onnx", 1)
        assert diff(model, pl.load(tmp_path / "m.onnx")).equal

    def test_nodes_of_files_without_names(self, tmp_path: Path) -> None:
        """They are known by the names of their values, wherever they stand."""
        before = pl.load(save(UNNAMED, tmp_path / "a.onnx"))
        before.optimize_for("removeNoOps").save(tmp_path / "b.onnx")
        after = pl.load(tmp_path / "b.onnx")
        found = diff(before, after)
        assert (found.removed, found.added) == ((("Identity_1", "Identity"),), ())
        assert [(each.name, each.changes) for each in found.changed] == [
            ("Neg_1", ("input 0: Identity_1 -> Relu_0",))
        ]
        nested = [
            pl.load(save(CAPTURING.format(*texts), tmp_path / f"{i}.onnx"))
            for i, texts in enumerate([("b = Identity(a)", "b", "Neg"), ("", "a", "Neg")])
        ]
        (change,) = diff(*nested).changed
        assert change.changes == ("input 1: Identity_1 -> Relu_0",)
        other = pl.load(save(CAPTURING.format("", "a", "Exp"), tmp_path / "other.onnx"))
        (change,) = diff(nested[1], other).changed
        (text,) = change.changes
        assert text == (
            "nested graph 0: removed Neg_1.then_branch.0; added Exp_1.then_branch.0; "
            "changed Relu_1.then_branch.1"
        )
        wrong = save(UNNAMED.replace("Identity", "Exp"), tmp_path / "c.onnx")
        different = compare(after, pl.load(wrong), per_node=True).node
        assert different is not None
        assert (different.name, different.compared) == ("Neg_2", 4)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    model = block_model(tmp_path / "a.onnx", 2)
    model.optimize_for(plant("pair_of_files", FAULTS["zero_weight"][0])).save(tmp_path / "b.onnx")
    return tmp_path / "a.onnx", tmp_path / "b.onnx"


class TestCommands:
    def test_compare(self, pair: tuple[Path, Path]) -> None:
        assert passlib_command("compare", pair[0], pair[0]).returncode == 0
        result = passlib_command("compare", *pair, "--per-node")
        assert result.returncode == 4
        assert "first different node: conv0 (Conv), values" in result.stdout
        found = json.loads(passlib_command("compare", *pair, "--json", "-n", "1").stdout)
        assert (found["equal"], found["input_sets"]) == (False, 1)
        assert passlib_command("compare", *pair, "--atol", "10").returncode == 0
        assert passlib_command("compare", *pair, "-n", "0").returncode == 1

    def test_diff(self, pair: tuple[Path, Path]) -> None:
        result = passlib_command("diff", *pair)
        assert result.returncode == 0
        assert "~ weight w0: 16 of 16 values\n" in result.stdout
        found = json.loads(passlib_command("diff", *pair, "--format", "json").stdout)
        assert found["weights"] == [{"name": "w0", "change": "16 of 16 values"}]


PASSES = """
import numpy as np
import passlib as pl

@pl.graph_pass
def zero_first(graph: pl.Graph) -> None:
    \"\"\"Makes a weight zero.\"\"\"
    if "w0" in graph.args:
        graph.args["w0"] = np.zeros_like(graph.args["w0"])
"""


class TestSearches:
    def given(self, pair: tuple[Path, Path]) -> list[str]:
        path = pair[0].with_name("passes.py")
        path.write_text(PASSES, "utf-8")
        return [str(pair[0]), "-l", str(path), "--passes", "removeDeadNodes, zero_first"]

    def test_bisect(self, pair: tuple[Path, Path]) -> None:
        out = pair[0].with_name("guilty.onnx")
        result = passlib_command("bisect", *self.given(pair), "--check", "-o", out)
        assert result.returncode == 0, result.stderr
        assert "guilty: step 2, zero_first" in result.stdout
        assert "~ weight w0" in result.stdout
        assert not np.any(pl.load(out).args["w0"])

    def test_bisect_by_a_command(self, pair: tuple[Path, Path]) -> None:
        command = f"{sys.executable} -m passlib compare {pair[0]} {{}}"
        given = [*self.given(pair), "--test", command, "--json"]
        result = passlib_command("bisect", *given)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["step"] == "zero_first"

    def test_reduce(self, pair: tuple[Path, Path]) -> None:
        out = pair[0].with_name("small.onnx")
        saved = out.with_suffix(".npz")
        result = passlib_command(
            "reduce", *self.given(pair), "--check", "-o", out, "--save-inputs", saved
        )
        assert result.returncode == 0, result.stderr
        assert [node.op_type for node in onnx.load(out).graph.node] == ["Conv"]
        given = [str(out), *self.given(pair)[1:], "-o", str(out.with_name("o.onnx"))]
        assert passlib_command("opt", *given, "--check", "--inputs", saved).returncode == 4

    def test_reduce_by_a_command(self, pair: tuple[Path, Path]) -> None:
        out = pair[0].with_name("small.onnx")
        command = f"! {sys.executable} -m passlib inspect {{}} --ops | grep -q MatMul"
        result = passlib_command("reduce", pair[0], "--test", command, "-o", out)
        assert result.returncode == 0, result.stderr
        assert [node.op_type for node in onnx.load(out).graph.node] == ["MatMul"]

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["--check"], 5, "nothing fails"),
            ([], 1, "give --check or --test"),
            (["--check", "--test", "true {}"], 1, "give --check or --test"),
            (["--test", "true"], 1, "the command needs {}"),
        ],
    )
    @pytest.mark.parametrize("command", ["bisect", "reduce"])
    def test_nothing_fails(
        self,
        command: str,
        arguments: list[str],
        code: int,
        message: str,
        pair: tuple[Path, Path],
    ) -> None:
        given = [command, str(pair[0]), "--passes", "removeDeadNodes", *arguments]
        result = passlib_command(*given, "-o", pair[0].with_name("out.onnx"))
        assert result.returncode == code
        assert message in result.stderr


def test_several_models(tmp_path: Path) -> None:
    x = pl.sym.var("x", shape=(2, 3))
    for name, made in {"a": pl.sym.exp(x), "b": pl.sym.exp(x), "c": pl.sym.sin(x)}.items():
        pl.Model(made).save(tmp_path / f"{name}-symbol.json")
    files = [f"{name}-symbol.json" for name in "abc"]
    result = passlib_command("compare", *files, "--json", folder=tmp_path)
    assert result.returncode == 4
    found = json.loads(result.stdout)
    assert {path: each["equal"] for path, each in found.items()} == {
        "b-symbol.json": True, "c-symbol.json": False
    }  # fmt: skip
    shown = passlib_command("compare", *files, "--per-node", folder=tmp_path).stdout
    _, second, third = shown.partition("c-symbol.json:\n")
    assert second
    assert "values" in third


RENAMED = (
    HEAD
    + """(float[N, 4] x) => (float[N, 4] y) <float[4] w = {1, 2, 3, 4}, float[4] v = {1, 1, 1, 1}> {
    a = Mul(x, w) b = Relu(a) c = Add(b, v) d = Abs(c) y = Neg(d) }"""
)


OTHERWISE = (
    HEAD
    + """(float[N, 4] x) => (float[N, 4] y)
    <float[4] w = {-1, -2, -3, -4}, float[4] v = {-1, -1, -1, -3}, float[1] o = {-1},
     float[1] z = {0}> {
    s = Mul(x, o) t1 = Mul(s, w) t2 = Max(t1, z) t3 = Sub(t2, v) k = Mul(t3, t3) t4 = Sqrt(k)
    y = Mul(t4, o) }"""
)
"""The same by other operators, but for the last element of the sum."""


def test_each_value_of_files_of_other_operators(tmp_path: Path) -> None:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, text in zip(paths, (RENAMED, OTHERWISE), strict=True):
        onnx.save(onnx.parser.parse_model(text), path)
    found = pl.compare(*paths, per_node=True)
    assert not found.equal
    shown = [(each.first, each.name, each.difference.equal) for each in found.values]
    assert shown == [("a", "t1", True), ("b", "t2", True), ("y", "y", False)]
    last = found.values[-1]
    assert (last.difference.absolute, last.mean) == (2.0, 0.5)
    assert 0 < last.cosine < 1
    assert found.node is not None
    assert (found.node.name, found.node.op) == ("y", "Mul")
    assert all(seconds is not None for each in found.values for seconds in each.seconds)
    page = found.to_html(pl.load(paths[1]))
    assert "largest 2, " in page
    lines = [node.get("line", "") for node in _content_of(page)["graphs"][0]["nodes"]]
    assert any(re.fullmatch(r"off by 2, [\d.]+ → [\d.]+ us", line) for line in lines)


INSIDE = (
    HEAD
    + """(float[2, 4] x, bool c) => (float[2, 4] y) {{ a = Neg(x) y = If(c)<
    then_branch = t () => (u) {{ i = Exp(a) z = {0}(i) u = Relu(z) }},
    else_branch = e () => (v) {{ v = {1}(a) }}> }}"""
)


def test_each_value_of_nested_graphs() -> None:
    one, two = (
        pl.load(onnx.parser.parse_model(INSIDE.format(*operators)))
        for operators in (("Softmax <axis = 0> ", "Neg"), ("Softmax <axis = 1> ", "Abs"))
    )
    inputs = {"x": np.ones((2, 4), np.float32), "c": np.array(True)}
    found = pl.compare(one, two, inputs, per_node=True)
    inside = [each for each in found.values if each.place]
    assert [(each.op, each.difference.equal) for each in inside] == [
        ("Exp", True), ("Softmax", False), ("Relu", False)
    ]  # fmt: skip
    assert {each.place[1] for each in inside} == {"then_branch"}
    assert found.node is not None
    assert (found.node.name, found.node.op) == (inside[1].name, "Softmax")
    content = _content_of(found.to_html(two))
    assert [graph["name"].rpartition(" ")[2] for graph in content["graphs"]] == ["graph", "0", "1"]
    lines = {node["op"]: node.get("line", "") for node in content["graphs"][1]["nodes"]}
    assert lines["Exp"] == "off by 0"
    assert lines["Softmax"] == f"off by {inside[1].difference.absolute:.3g}"


def test_each_value_of_a_body_of_loop() -> None:
    model = pl.load(onnx.parser.parse_model(LOOP))
    found = pl.compare(model, model, per_node=True)
    inside = [each.op for each in found.values if each.place]
    assert inside
    assert found.node is None


def _content_of(page: str) -> Any:
    text = page.partition('<script type="application/json" id="data">')[2]
    return json.loads(text.partition("</script>")[0])


def test_each_value_of_models_with_the_same_names() -> None:
    model = pl.load(onnx.parser.parse_model(RENAMED))
    found = pl.compare(model, model, per_node=True)
    assert [each.op for each in found.values] == ["Mul", "Relu", "Add", "Abs", "Neg"]
    assert found.node is None
    assert {each.difference.absolute for each in found.values} == {0.0}


def test_rounding_of_a_value_is_no_difference() -> None:
    """A sum that cancels, in another order."""
    random = np.random.default_rng(0)
    half = random.standard_normal((64, 1)).astype(np.float32) * 1000
    weights = np.concatenate([half, -half])
    order = random.permutation(128)
    x = onnx.helper.make_tensor_value_info("x", 1, (1, 128))
    y = onnx.helper.make_tensor_value_info("y", 1, (1, 1))
    models = []
    for columns in (np.arange(128), order):
        nodes = [
            onnx.helper.make_node("Gather", ["x", "i"], ["g"], axis=1),
            onnx.helper.make_node("MatMul", ["g", "w"], ["m"], "product"),
            onnx.helper.make_node("Identity", ["m"], ["y"]),
        ]
        arrays = {"i": columns, "w": weights[columns]}
        tensors = [onnx.numpy_helper.from_array(a, name) for name, a in arrays.items()]
        graph = onnx.helper.make_graph(nodes, "g", [x], [y], tensors)
        sets = [onnx.helper.make_opsetid("", 17)]
        models.append(pl.load(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8)))
    inputs = {"x": np.tile(random.standard_normal((1, 64)).astype(np.float32), 2)}
    found = pl.compare(*models, inputs, per_node=True)
    (product,) = [each for each in found.values if each.name == "product"]
    assert product.difference.absolute > 0
    assert product.difference.equal
    assert found.equal
