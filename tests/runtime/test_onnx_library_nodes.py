"""Operators of libraries in ONNX models: they run, and files with them run in ONNX Runtime."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import passlib as pl
from commands import passlib_command
from ort_sessions import session_of

Load = Callable[[str], pl.library.Library]

HEADER = '<ir_version: 8, opset_import: ["" : 18]> '


@pl.graph_pass
def use_operator(graph: pl.Graph, *, of: str, op: str, attributes: str = "{}") -> None:
    """Give nodes of an operator another one, in nested graphs too.

    Parameters
    ----------
    of, op : str
        The operator, and the new one.
    attributes : str
        The new attributes, as JSON.
    """
    pending = [graph]
    while pending:
        level = pending.pop()
        for node in level.nodes:
            pending.extend(node.subgraphs)
            if node.op == of:
                node.op = op
                for key, text in json.loads(attributes).items():
                    node.attrs[key] = text


@pytest.fixture(autouse=True, scope="module")
def libraries(load_plugin: Load) -> Mapping[str, Path]:
    names = ("graph_operators", "onnx_subgraphs")
    return {name: Path(load_plugin(name).path) for name in names}


def model_of(text: str) -> pl.Model:
    return pl.load(onnx.parser.parse_model(HEADER + text).SerializeToString())


def x_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def assert_runs(
    model: pl.Model, feeds: Mapping[str, Any], expected: np.ndarray, path: Path, *libraries: Path
) -> onnx.ModelProto:
    """Check the results of a model, of its file, and of the file in plain ONNX Runtime."""
    model.save(path)
    onnx.checker.check_model(path, full_check=True)
    loaded = pl.load(path)
    results = [
        next(iter(model.run(feeds).values())),
        next(iter(loaded.run(feeds).values())),
        session_of(path, *libraries).run(None, dict(feeds))[0],
    ]
    for each in results:
        np.testing.assert_allclose(each, expected, rtol=1e-6)
    loaded.save(path.with_name("again.onnx"))
    assert path.with_name("again.onnx").read_bytes() == path.read_bytes()
    return onnx.load(path)


OPERATORS = {
    "one": (
        """g (float[N, 3] x) => (float[N, 3] y) { a = Exp(x) b = Relu(a) y = Neg(b) }""",
        {"of": "Relu", "op": "tp_scale", "attributes": '{"factor": "3"}'},
        lambda x: -3 * np.exp(x),
    ),
    "an output": (
        """g (float[N, 3] x) => (float[N, 3] y) { a = Exp(x) y = Relu(a) }""",
        {"of": "Relu", "op": "tp_scale"},
        lambda x: 2 * np.exp(x),
    ),
    "in a row": (
        """g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x) b = Relu(a) y = Relu(b) }""",
        {"of": "Relu", "op": "tp_scale"},
        lambda x: 8 * x,
    ),
    "two outputs": (
        """g (float[N, 3] x) => (float[N, 3] y) {
            a = Abs(x) b, c = Split<axis = 0, num_outputs = 2>(a) d = Concat<axis = 0>(b, c)
            y = Sub(b, c) }""",
        {"of": "Split", "op": "tp_halves", "attributes": "{}"},
        np.abs,
    ),
    "with a weight": (
        """g (float[2, 3] x) => (float[2, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> {
            a = Neg(x) b = Mul(a, w) y = Neg(b) }""",
        {"of": "Mul", "op": "tp_product"},
        lambda x: x * np.arange(1, 7, dtype=np.float32).reshape(2, 3),
    ),
    "with a state": (
        """g (float[N, 3] x) => (float[N, 3] y) { a = Neg(x) b = Relu(a) y = Neg(b) }""",
        {"of": "Relu", "op": "tp_negate"},
        lambda x: -x,
    ),
    "in a nested graph": (
        """g (float[N, 3] x) => (float[N, 3] y) {
            s = ReduceMax<keepdims = 0>(x) z = Sub(s, s) c = Equal(s, s)
            y = If(c) <then_branch = t () => (float[N, 3] p) { q = Relu(x) r = Neg(q) p = Neg(r) },
                       else_branch = e () => (float[N, 3] p) { p = Neg(x) }> }""",
        {"of": "Relu", "op": "tp_scale"},
        lambda x: 2 * x,
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_that_a_pass_inserts(
    name: str, tmp_path: Path, libraries: Mapping[str, Path]
) -> None:
    text, options, expected = OPERATORS[name]
    model = model_of(text).optimize_for("use_operator", **options)
    x = x_of(2, 3)
    file = assert_runs(
        model, {"x": x}, expected(x), tmp_path / "m.onnx", libraries["graph_operators"]
    )
    assert {each.domain: each.version for each in file.opset_import} == {"": 18, "passlib": 1}


def test_attributes_and_types_in_the_file(tmp_path: Path) -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) { a = Exp(x) b = Relu(a) y = Neg(b) }"""
    options = {"of": "Relu", "op": "tp_scale", "attributes": '{"factor": "3", "note": "\\"é"}'}
    model = model_of(text).optimize_for("use_operator", **options)
    model.save(tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    node = graph.node[1]
    assert (node.domain, node.op_type) == ("passlib", "tp_scale")
    (attribute,) = node.attribute
    assert attribute.name == "attributes"
    assert json.loads(attribute.s) == {"factor": "3", "note": '"é'}
    (value,) = graph.value_info
    assert value.name == "b"
    assert onnx.helper.printable_value_info(value) == "%b[FLOAT, ?x3]"


def test_the_next_pass_sees_operator_and_attributes() -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x) y = Neg(a) }"""
    options = {"of": "Relu", "op": "tp_scale", "attributes": '{"factor": "3"}'}
    model = model_of(text).optimize_for("use_operator", **options)
    model = model.optimize_for("use_operator", of="tp_scale", op="tp_negate")
    np.testing.assert_array_equal(model.run({"x": x_of(2, 3)})["y"], x_of(2, 3))


def test_a_pass_gives_a_node_an_operator_of_onnx_again() -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x) y = Neg(a) }"""
    model = model_of(text).optimize_for("use_operator", of="Relu", op="tp_scale")
    assert model.symbol.nodes()[1].attrs["__domain__"] == "passlib"
    model = model.optimize_for("use_operator", of="tp_scale", op="Abs")
    assert "__domain__" not in model.symbol.nodes()[1].attrs
    np.testing.assert_array_equal(model.run({"x": x_of(2, 3)})["y"], -np.abs(x_of(2, 3)))


def test_a_stated_domain() -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }"""
    named = {"of": "Relu", "op": "tp_scale", "attributes": '{"__domain__": "passlib"}'}
    model = model_of(text).optimize_for("use_operator", **named)
    np.testing.assert_array_equal(model.run({"x": x_of(2, 3)})["y"], 2 * x_of(2, 3))


def test_equal_nodes_are_not_merged(tmp_path: Path) -> None:
    """Each has a state, before and after it was saved."""
    text = """g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x) b = Relu(x) y = Sub(a, b) }"""
    model = model_of(text).optimize_for("use_operator", of="Relu", op="tp_counter")
    model.save(tmp_path / "m.onnx")
    for each in (model, pl.load(tmp_path / "m.onnx")):
        simple = each.simplify()
        assert sum(node.op == "tp_counter" for node in simple.symbol.nodes()) == 2


def test_simplify_keeps_them(tmp_path: Path, libraries: Mapping[str, Path]) -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) {
        a = Identity(x) b = Relu(a) c = Identity(b) d = Neg(c) y = Neg(d) }"""
    model = model_of(text).optimize_for("use_operator", of="Relu", op="tp_counter").simplify()
    assert [node.op for node in model.symbol.nodes()] == ["null", "tp_counter"]
    assert_runs(
        model, {"x": x_of(2, 3)}, x_of(2, 3) + 1, tmp_path / "m.onnx", libraries["graph_operators"]
    )


REFUSED = {
    "inputs": (
        "g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }",
        {"of": "Mul", "op": "tp_scale"},
        pl.GraphError,
        r"node '\w*' \(tp_scale\): has 2 inputs, the operator takes 1",
    ),
    "outputs": (
        "g (float[2] x) => (float[1] y) { y, z = Split<num_outputs = 2>(x) w = Neg(z) }",
        {"of": "Split", "op": "tp_scale"},
        pl.GraphError,
        "has 2 outputs, the operator makes 1",
    ),
    "states": (
        "g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }",
        {"of": "Mul", "op": "tp_accumulate"},
        pl.UnsupportedError,
        "writes to its inputs, and a model of ONNX has no states",
    ),
    "shapes": (
        "g (float[2] x, float[3] w) => (float[3] y) { y = Mul(x, w) }",
        {"of": "Mul", "op": "tp_product"},
        pl.OperatorError,
        r"(?s)operator 'tp_product' of library .* failed to infer shapes.*different shapes",
    ),
    "a sequence": (
        """g (float[2] x) => (float[2] y) {
            s = SequenceConstruct(x) y = ConcatFromSequence<axis = 0>(s) }""",
        {"of": "ConcatFromSequence", "op": "tp_scale"},
        pl.UnsupportedError,
        r"its input 0 is seq\(float\[2\]\), and operators of libraries take tensors",
    ),
    "text": (
        "g (string[2] x) => (string[2] y) { y = Identity(x) }",
        {"of": "Identity", "op": "tp_scale"},
        pl.UnsupportedError,
        r"takes string\[2\], whose element type operators of libraries do not have",
    ),
    "no library": (
        "g (float[2] x) => (float[2] y) { y = Relu(x) }",
        {"of": "Relu", "op": "nobody_has_it"},
        pl.UnsupportedError,
        r"the node of 'y': .* 18 has no operator 'nobody_has_it'; load the library that has it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    text, options, error, message = REFUSED[name]
    model = model_of(text).optimize_for("use_operator", **options)
    with pytest.raises(error, match=message):
        model.save(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_a_library_that_is_not_loaded(tmp_path: Path) -> None:
    text = """g (float[2] x) => (float[2] y) { y = Relu(x) }"""
    named = {"of": "Relu", "op": "nobody", "attributes": '{"__domain__": "passlib"}'}
    model = model_of(text).optimize_for("use_operator", **named)
    with pytest.raises(pl.PasslibError, match="no loaded library has the operator 'nobody'"):
        model.run({"x": x_of(2)})


def test_an_error_of_the_library() -> None:
    text = """g (float[2] x) => (float[2] y) { y = Exp(x) }"""
    model = model_of(text).optimize_for("cutOut", ops="Exp")
    with pytest.raises(pl.PasslibError, match="there is no kernel of Exp"):
        model.run({"x": x_of(2)})


SUBGRAPHS = {
    "open sizes": (
        """g (float[N, 3] x, float[M, 3] w) => (float[K, 3] y) {
            a = Relu(x) b = Concat<axis = 0>(a, w) y = Relu(b) }""",
        [["d0", 3], ["d1", 3]],
        [["d0 + d1", 3]],
    ),
    "one size": (
        """g (float[N, 3] x, float[N, 3] w) => (float[K, 3] y) {
            a = Relu(x) b = Concat<axis = 0>(a, w) y = Relu(b) }""",
        [["d0", 3], ["d0", 3]],
        [["2*d0", 3]],
    ),
    "numbers": (
        """g (float[2, 3] x, float[2, 3] w) => (float[4, 3] y) {
            a = Relu(x) b = Concat<axis = 0>(a, w) y = Relu(b) }""",
        [[2, 3], [2, 3]],
        [[4, 3]],
    ),
}


@pytest.mark.parametrize("name", SUBGRAPHS)
def test_partitioned_models(name: str, tmp_path: Path, libraries: Mapping[str, Path]) -> None:
    text, inputs, outputs = SUBGRAPHS[name]
    model = model_of(text).optimize_for("cutOut", ops="Relu,Concat")
    feeds = {"x": x_of(2, 3), "w": -x_of(2, 3)}
    expected = np.maximum(np.concatenate([np.maximum(feeds["x"], 0), feeds["w"]]), 0)
    file = assert_runs(model, feeds, expected, tmp_path / "m.onnx", libraries["onnx_subgraphs"])
    (node,) = file.graph.node
    attributes = {each.name: json.loads(each.s) for each in node.attribute}
    types = attributes["subgraph_types"]
    assert [each["shape"] for each in types["inputs"]] == inputs
    assert [each["shape"] for each in types["outputs"]] == outputs
    nodes = json.loads(attributes["attributes"]["subgraph_sym_json"])["nodes"]
    assert [each["op"] for each in nodes if each["op"] != "null"] == ["Relu", "Concat", "Relu"]
    assert not re.search("__id__", json.dumps(nodes))


def test_several_subgraphs(tmp_path: Path, libraries: Mapping[str, Path]) -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) {
        a = Relu(x) b = Neg(a) c = Relu(b) d = Neg(c) e = Relu(x) y = Add(d, e) }"""
    model = model_of(text).optimize_for("cutOut", ops="Relu")
    x = x_of(4, 3)
    file = assert_runs(
        model, {"x": x}, np.maximum(x, 0), tmp_path / "m.onnx", libraries["onnx_subgraphs"]
    )
    assert sum(node.op_type == "_cut_out" for node in file.graph.node) >= 2


SIZES_OF_DATA = """g (float[N] x) => (int64[1, K] y) { a = Relu(x) b = NonZero(a) y = Neg(b) }"""


def test_sizes_that_depend_on_data(tmp_path: Path) -> None:
    model = model_of(SIZES_OF_DATA).optimize_for("cutOut", ops="Relu,NonZero")
    with pytest.raises(
        pl.UnsupportedError,
        match=r"\(_cut_out\): the type of the output '\w*' of its subgraph, .*does not follow",
    ):
        model.save(tmp_path / "m.onnx")


def test_conversion_to_another_operator_set(tmp_path: Path, libraries: Mapping[str, Path]) -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x) b = Exp(a) y = Neg(b) }"""
    model = model_of(text).optimize_for("use_operator", of="Exp", op="tp_scale").with_opset(21)
    x = x_of(2, 3)
    file = assert_runs(
        model, {"x": x}, -2 * np.maximum(x, 0), tmp_path / "m.onnx", libraries["graph_operators"]
    )
    assert {each.domain: each.version for each in file.opset_import} == {"": 21, "passlib": 1}


def test_comparison_by_the_command(tmp_path: Path, libraries: Mapping[str, Path]) -> None:
    text = """g (float[2, 3] x) => (float[2, 3] y) { a = Abs(x) y = Neg(a) }"""
    path = tmp_path / "m.onnx"
    model_of(text).optimize_for("use_operator", of="Neg", op="tp_scale").save(path)
    alone = passlib_command("compare", path, path)
    assert (alone.returncode, alone.stdout) == (3, "")
    assert "no loaded library has the operator 'tp_scale'; load it" in alone.stderr
    found = passlib_command("compare", path, path, "-l", libraries["graph_operators"])
    assert (found.returncode, found.stderr) == (0, "")


def test_message_of_a_model() -> None:
    text = """g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x) y = Neg(a) }"""
    model = model_of(text).optimize_for("use_operator", of="Relu", op="tp_scale")
    message = model.to_onnx_proto()
    assert [node.domain for node in message.graph.node] == ["passlib", ""]
    x = x_of(2, 3)
    np.testing.assert_array_equal(pl.load(message).run({"x": x})["y"], -2 * x)


class TestChanges:
    """Models with such nodes that are changed before and after they were saved."""

    TEXT = """g (float[N, 3] x) => (float[N, 3] y) {
        i = Identity(x) a = Abs(i) b = Relu(a) y = Neg(b) }"""

    @pytest.fixture(params=["in memory", "saved"])
    def model(self, request: pytest.FixtureRequest, tmp_path: Path) -> pl.Model:
        made = model_of(self.TEXT).optimize_for("use_operator", of="Relu", op="tp_scale")
        if request.param == "in memory":
            return made
        made.save(tmp_path / "before.onnx")
        return pl.load(tmp_path / "before.onnx")

    @pytest.mark.parametrize(
        "change",
        [
            lambda model: model.simplify(),
            lambda model: model.with_shapes({"x": ("B", 3)}),
            lambda model: model.with_shapes({"x": (2, 3)}).simplify(),
            lambda model: model.with_opset(21),
            lambda model: model.extract(outputs=["y"]),
            lambda model: model.rename({"x": "x"}),
        ],
    )
    def test_they_run(
        self,
        model: pl.Model,
        change: Callable[[pl.Model], pl.Model],
        tmp_path: Path,
        libraries: Mapping[str, Path],
    ) -> None:
        x = x_of(2, 3)
        path = tmp_path / "m.onnx"
        file = assert_runs(
            change(model), {"x": x}, -2 * np.abs(x), path, libraries["graph_operators"]
        )
        assert any(value.name == "b" for value in file.graph.value_info)

    def test_another_attribute(self, model: pl.Model) -> None:
        changed = model.optimize_for(
            "use_operator", of="tp_scale", op="tp_scale", attributes='{"factor": "5"}'
        )
        np.testing.assert_array_equal(changed.run({"x": x_of(2, 3)})["y"], -5 * np.abs(x_of(2, 3)))

    def test_without_the_library(self, tmp_path: Path) -> None:
        """The element type of a result stays."""
        model = model_of(self.TEXT).optimize_for("use_operator", of="Relu", op="tp_scale")
        model.save(tmp_path / "m.onnx")
        script = "import sys, passlib as pl; pl.load(sys.argv[1]).simplify().save(sys.argv[2])"
        command = [sys.executable, "-c", script, tmp_path / "m.onnx", tmp_path / "s.onnx"]
        subprocess.run(command, check=True)
        (value,) = onnx.load(tmp_path / "s.onnx").graph.value_info
        assert (value.name, value.type.tensor_type.elem_type) == ("b", onnx.TensorProto.FLOAT)
        np.testing.assert_array_equal(
            pl.load(tmp_path / "s.onnx").run({"x": x_of(2, 3)})["y"], -2 * np.abs(x_of(2, 3))
        )

    def test_other_types_of_outputs(self, tmp_path: Path, libraries: Mapping[str, Path]) -> None:
        """The file's type of an output is not that of the library's result."""
        text = """g (float[2, 3] x, float[4, 3] w) => (float[2, 3] y) { y = Mul(x, w) }"""
        made = model_of(text).optimize_for("use_operator", of="Mul", op="tp_linear")
        with pytest.raises(pl.GraphError, match=r"has the shape \[4, 3\], the operator asks for"):
            made.save(tmp_path / "m.onnx")
        text = """g (float[2, 3] x, float[1, 3] w) => (float[2, 3] y) { y = Mul(x, w) }"""
        made = model_of(text).optimize_for("use_operator", of="Mul", op="tp_linear")
        feeds = {"x": x_of(2, 3), "w": x_of(1, 3)}
        expected = feeds["x"] @ feeds["w"].T
        library = libraries["graph_operators"]
        file = assert_runs(made, feeds, expected, tmp_path / "m.onnx", library)
        assert onnx.helper.printable_value_info(file.graph.output[0]) == "%y[FLOAT, 2x1]"

    def test_shapes_by_the_old_operator_are_forgotten(self) -> None:
        text = """g (float[2, 3] x, float[1, 3] w) => (int64[2] y) <float[2, 3] b> {
            b = Mul(x, w) y = Shape(b) }"""
        made = model_of(text).optimize_for("use_operator", of="Mul", op="tp_linear")
        feeds = {"x": x_of(2, 3), "w": x_of(1, 3)}
        for each in (made, made.simplify()):
            assert each.run(feeds)["y"].tolist() == [2, 1]


def test_open_sizes_of_one_name() -> None:
    """Operators compute with sizes; they are asked with numbers."""
    text = """g (float[N, 3] x, float[4, 3] w) => (float[N, 4] y, int64[2] s) {
        a = Mul(x, w) y = Neg(a) s = Shape(a) }"""
    options = {"of": "Mul", "op": "tp_linear", "attributes": '{"num_hidden": "4"}'}
    model = model_of(text).optimize_for("use_operator", **options)
    (value,) = model.to_onnx_proto().graph.value_info
    assert onnx.helper.printable_value_info(value) == "%a[FLOAT, ?x4]"
    assert model.run({"x": x_of(5, 3), "w": x_of(4, 3)})["s"].tolist() == [5, 4]


@pytest.mark.parametrize(
    ("first", "second", "least", "size"),
    [(0, 0, 0, 0), (1, 0, 0, "?"), (0, 1, 0, "?"), (1, 1, 0, "?"), (1, -1, 0, "?"), (2, 0, 0, "?"),
     (0, 2, 0, "?"), (3, 0, 0, "?"), (2, -1, 0, "?"), (3, -1, 0, "?"), (-2, 2, 0, "?"),
     (0, 0, 1, "?"), (1, 1, -1, "?")],
)  # fmt: skip
def test_computed_open_sizes_are_unknown(first: int, second: int, least: int, size: object) -> None:
    text = """g (float[N] x, float[M] w) => (float[Q] y, int64[1] s) {
        a = Max(x, w) y = Add(a, a) s = Shape(a) }"""
    numbers = {"first": first, "second": second, "least": least}
    attributes = json.dumps({name: str(number) for name, number in numbers.items()})
    options = {"of": "Max", "op": "tp_ones", "attributes": attributes}
    model = model_of(text).optimize_for("use_operator", **options)
    (value,) = model.to_onnx_proto().graph.value_info
    assert onnx.helper.printable_value_info(value) == f"%a[FLOAT, {size}]"
    for n, m in ((4, 4), (4, 5), (5, 4)):
        expected = abs(first * n + second * m + least * min(n, m))
        feeds = {"x": x_of(n), "w": x_of(m)}
        for each in (model, model.simplify()):
            assert each.run(feeds)["s"].tolist() == [expected]


def test_a_function_in_the_domain() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18, "passlib" : 1]>
        g (float[2] x) => (float[2] y) { y = passlib.tp_scale(x) }
        <opset_import: ["" : 18], domain: "passlib">
        tp_scale (p) => (q) { q = Exp(p) }"""
    model = pl.load(onnx.parser.parse_model(text).SerializeToString())
    np.testing.assert_allclose(model.run({"x": x_of(2)})["y"], np.exp(x_of(2)), rtol=1e-6)


LOST = {
    "a size that must fit": (
        "g (float[N, 3] x) => (float[4, K] y) <int64[2] s = {4, -1}> { y = Reshape(x, s) }",
        "Reshape",
        "does not follow from the sizes of its inputs",
    ),
    "a nested weight": (
        """g (float[2] x, bool c) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] p) <float low = {0.5}> { p = Max(x, low) },
                       else_branch = e () => (float[2] p) { p = Neg(x) }> }""",
        "If",
        "a graph nested in its subgraph has the weight 'low'; run constantsToWeights before",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_subgraphs_that_have_no_form(name: str, tmp_path: Path) -> None:
    text, ops, message = LOST[name]
    model = model_of(text).optimize_for("cutOut", ops=ops)
    with pytest.raises(pl.UnsupportedError, match=message):
        model.save(tmp_path / "m.onnx")


def test_sizes_without_a_name_are_not_equal(tmp_path: Path, libraries: Mapping[str, Path]) -> None:
    """Some exporters call all open sizes "?"."""
    text = """g (float["?", "?"] x) => (float["?", "?"] y) { a = Relu(x) y = Neg(a) }"""
    proto = onnx.parser.parse_model(HEADER + text.replace('"?"', "Q"))
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = "?"
    model = pl.load(proto.SerializeToString()).optimize_for("cutOut", ops="Relu")
    x = x_of(2, 3)
    library = libraries["onnx_subgraphs"]
    assert_runs(model, {"x": x}, -np.maximum(x, 0), tmp_path / "m.onnx", library)
