"""ONNX models that passes changed: the checker accepts them, and the numbers are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_models
import passlib
from passlib.errors import GraphError, PassError, UnsupportedError

Loader = Callable[[str], passlib.library.Library]
X = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
STEP = np.array([1, 2, 3], np.float32)

FEEDS: dict[str, list[dict[str, Any]]] = {
    "nested": [{"x": X, "c": np.array(c)} for c in (True, False)],
    "loop": [{"x": STEP * 2, "n": np.array(n, np.int64), "step": STEP} for n in (1, 3)],
    "chain": [{"x": X}],
}
TEXTS = {"nested": onnx_models.NESTED, "loop": onnx_models.LOOP, "chain": onnx_models.CHAIN}


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


def saved(model: passlib.model.Model, path: Path) -> Any:
    """Save a model, have ONNX check it, and parse it."""
    model.save(path)
    onnx.checker.check_model(path, full_check=True)
    return onnx.load(path)


def sorted_names(graph: Any) -> list[str]:
    return [node.op_type for node in graph.node]


EDITS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "renamed": [("renameOperators", {"prefix": "new_"})],
    "rebuilt": [("rebuildOperators", {})],
    "interposed": [("interpose", {})],
    "without identities": [("dropIdentities", {})],
    "reversed": [("reverseNodes", {})],
    "all of them": [
        ("interpose", {}),
        ("rebuildOperators", {}),
        ("dropIdentities", {}),
        ("reverseNodes", {}),
        ("renameOperators", {"prefix": "new_"}),
    ],
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.usefixtures("handover")
def test_edited_models_compute_the_same(name: str, edit: str, tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(TEXTS[name], tmp_path / "a.onnx"))
    edited = model
    for pass_name, options in EDITS[edit]:
        edited = edited.optimize_for(pass_name, **options)
    written = saved(edited, tmp_path / "b.onnx")
    original = onnx.load(tmp_path / "a.onnx")
    assert [v.name for v in written.graph.output] == [v.name for v in original.graph.output]
    assert [v.name for v in written.graph.input] == [v.name for v in original.graph.input]
    for feeds in FEEDS[name]:
        expected = model.run(feeds)
        for again in (edited, passlib.load(tmp_path / "b.onnx")):
            outputs = again.run(feeds)
            assert list(outputs) == list(expected)
            for key, array in expected.items():
                np.testing.assert_array_equal(outputs[key].asnumpy(), array.asnumpy())


@pytest.mark.parametrize("name", TEXTS)
def test_nodes_are_written_in_the_order_of_the_file(name: str, tmp_path: Path) -> None:
    # Libraries built with MXNet's own lib_api give nodes back in an order of their own.
    source = onnx_models.save(TEXTS[name], tmp_path / "a.onnx")
    passlib.load(source).optimize_for("reverseNodes").save(tmp_path / "b.onnx")
    assert onnx.load(tmp_path / "b.onnx") == onnx.load(source)


def test_new_nodes_follow_what_they_need(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("interpose").optimize_for("reverseNodes")
    operators = sorted_names(saved(edited, tmp_path / "b.onnx").graph)
    assert operators[:4] == ["Relu", "Identity", "Add", "Identity"]


def test_captured_names_follow_a_replaced_producer(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx"))
    graph = saved(model.optimize_for("dropIdentities"), tmp_path / "b.onnx").graph
    assert sorted_names(graph) == ["Add", "If"]
    inner = graph.node[1].attribute[0].g.node[0].attribute[1].g.node[0]
    assert (inner.op_type, list(inner.input)) == ("Mul", ["b", "x"])


def test_outputs_keep_their_names_behind_new_nodes(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("appendOperator", op="Neg")
    assert edited.outputs == ["y", "z"]
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert list(graph.node[-1].output) == ["y"]
    y = edited.run({"x": X})["y"].asnumpy()
    np.testing.assert_array_equal(y, -model.run({"x": X})["y"].asnumpy())


def test_outputs_that_become_one_value_are_copied(tmp_path: Path) -> None:
    text = onnx_models.CHAIN.replace("z = Mul(a, d)", "e = Identity(d)\n z = Identity(e)")
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model.optimize_for("dropIdentities")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert [v.name for v in graph.output] == ["y", "z"]
    assert sorted_names(graph) == ["Relu", "Add", "Clip", "Reshape", "Identity"]
    outputs = edited.run({"x": X})
    np.testing.assert_array_equal(outputs["y"].asnumpy(), outputs["z"].asnumpy())


def test_an_input_that_becomes_an_output_is_copied(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 4] x) => (float[2, 4] y) { y = Identity(x) }
    """
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model.optimize_for("dropIdentities")
    assert len(edited.symbol.nodes()) == 1
    assert sorted_names(saved(edited, tmp_path / "b.onnx").graph) == ["Identity"]
    np.testing.assert_array_equal(edited.run({"x": X})["y"].asnumpy(), X)


def test_types_of_values_that_are_gone_go(tmp_path: Path) -> None:
    source = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    onnx.save(onnx.shape_inference.infer_shapes(onnx.load(source)), source)
    before = {value.name for value in onnx.load(source).graph.value_info}
    assert before == {"a", "b", "c", "d"}
    edited = passlib.load(source).optimize_for("removeOperator", op="Clip")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert {value.name for value in graph.value_info} == {"a", "b", "d"}
    edited = passlib.load(source).optimize_for(
        "setAttribute", node="Reshape_3", key="allowzero", value="1"
    )
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert {value.name for value in graph.value_info} == {"a", "b", "c"}


def test_only_what_changed_is_written_anew(tmp_path: Path) -> None:
    source = tmp_path / "a.onnx"
    before = onnx_models.every_attribute()
    source.write_bytes(before.SerializeToString())
    edited = passlib.load(source).optimize_for(
        "setAttribute", node="Everything_1", key="wholes", value="(4, 5)"
    )
    edited.save(tmp_path / "b.onnx")
    after = onnx.load(tmp_path / "b.onnx")
    changed = next(a for a in after.graph.node[1].attribute if a.name == "wholes")
    assert list(changed.ints) == [4, 5]
    was = next(a for a in before.graph.node[1].attribute if a.name == "wholes")
    changed.CopyFrom(was)
    assert after.SerializeToString(deterministic=True) == before.SerializeToString(
        deterministic=True
    )


NEW_VALUES = [
    ("whole", "4", lambda a: a.i == 4),
    ("real", "2.5", lambda a: a.f == 2.5),
    ("text", "other", lambda a: a.s == b"other"),
    ("raw", "now text", lambda a: a.s == b"now text"),
    ("reals", "[1, 2.5]", lambda a: list(a.floats) == [1, 2.5]),
    ("texts", '["c"]', lambda a: list(a.strings) == [b"c"]),
    (
        "tensor",
        '{"dtype": "float16", "shape": [1, 2], "data": [1, 2]}',
        lambda a: numpy_helper.to_array(a.t).tolist() == [[1, 2]] and a.t.data_type == 10,
    ),
    ("sparse", None, None),
    ("type", '{"tensorType": {"elemType": 7}}', lambda a: a.tp.tensor_type.elem_type == 7),
    ("fresh", "3", lambda a: (a.type, a.i) == (2, 3)),
    ("fresh", "0.5", lambda a: (a.type, a.f) == (1, 0.5)),
    ("fresh", "[1, 2]", lambda a: (a.type, list(a.ints)) == (7, [1, 2])),
    ("fresh", "[1, 0.5]", lambda a: (a.type, list(a.floats)) == (6, [1, 0.5])),
    ("fresh", '["a"]', lambda a: (a.type, list(a.strings)) == (8, [b"a"])),
    ("fresh", "word", lambda a: (a.type, a.s) == (3, b"word")),
    ("fresh", "2024_01", lambda a: (a.type, a.s) == (3, b"2024_01")),
    ("fresh", "\u0663", lambda a: (a.type, a.s) == (3, "\u0663".encode())),
    ("fresh", "subgraph[0:0]", lambda a: (a.type, len(a.graphs)) == (10, 0)),
]


@pytest.mark.parametrize(("key", "text", "holds"), NEW_VALUES)
def test_attributes_that_a_pass_writes(
    key: str, text: str | None, holds: Callable[[Any], bool] | None, tmp_path: Path
) -> None:
    source = tmp_path / "a.onnx"
    source.write_bytes(onnx_models.every_attribute().SerializeToString())
    model = passlib.load(source)
    if text is None:
        node = next(node for node in model.symbol.nodes() if node.name == "Everything_1")
        text = node.attrs["sparse"].replace("[5]", "[6]")
        holds = lambda a: list(a.sparse_tensor.dims) == [6]  # noqa: E731
    assert holds is not None
    edited = model.optimize_for("setAttribute", node="Everything_1", key=key, value=text)
    edited.save(tmp_path / "b.onnx")
    written = onnx.load(tmp_path / "b.onnx").graph.node[1]
    assert holds(next(a for a in written.attribute if a.name == key))


@pytest.mark.parametrize(
    ("key", "text"),
    [("whole", "many"), ("wholes", "[1, x]"), ("tensor", "{}"), ("type", '{"no": 1}')],
)
def test_attributes_that_are_none(key: str, text: str, tmp_path: Path) -> None:
    source = tmp_path / "a.onnx"
    source.write_bytes(onnx_models.every_attribute().SerializeToString())
    edited = passlib.load(source).optimize_for(
        "setAttribute", node="Everything_1", key=key, value=text
    )
    with pytest.raises(UnsupportedError, match=f"Everything_1.*{key}"):
        edited.save(tmp_path / "b.onnx")
    assert not (tmp_path / "b.onnx").exists()


def test_the_schema_gives_new_attributes_their_type(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("appendOperator", op="LeakyRelu", key="alpha", value="2")
    attribute = saved(edited, tmp_path / "b.onnx").graph.node[-1].attribute[0]
    assert (attribute.type, attribute.f) == (onnx.AttributeProto.FLOAT, 2.0)


def test_marks_of_a_pass_are_metadata(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("setAttribute", node="Relu_0", key="__cost__", value="12")
    edited.save(tmp_path / "b.onnx")
    node = onnx.load(tmp_path / "b.onnx").graph.node[0]
    assert [(entry.key, entry.value) for entry in node.metadata_props] == [("__cost__", "12")]
    again = passlib.load(tmp_path / "b.onnx").symbol.nodes()
    assert next(n for n in again if n.name == "Relu_0").attrs["__cost__"] == "12"


@pytest.mark.parametrize(
    ("domain", "version"), [("ai.onnx.ml", 3), ("com.example", 1), ("ai.onnx", None)]
)
def test_a_new_domain_is_imported(domain: str, version: int | None, tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    model.optimize_for("appendOperator", op="Neg", domain=domain).save(tmp_path / "b.onnx")
    imports = {e.domain: e.version for e in onnx.load(tmp_path / "b.onnx").opset_import}
    assert imports == ({"": 17} if version is None else {"": 17, domain: version})


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("ir_version", [3, 8])
def test_new_parameters_become_initializers(size: int, ir_version: int, tmp_path: Path) -> None:
    source = onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx")
    stored = onnx.load(source)
    if ir_version < 4:
        for tensor in stored.graph.initializer:
            stored.graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    stored.ir_version = ir_version
    onnx.save(stored, source)
    model = passlib.load(source)
    edited = model.optimize_for("addConstant", size=size)
    assert edited.args["added_constant"].shape == (size,)
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert ("added_constant" in [v.name for v in graph.input]) == (ir_version < 4)
    y = edited.run({"x": X})["y"].asnumpy()
    np.testing.assert_array_equal(y, model.run({"x": X})["y"].asnumpy() + 1)


def before_imports(path: Path, ir_version: int) -> Path:
    """A model of the first versions of the format: its weight is an input as well."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Add", ["a", "w"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [2, 4]), value("w", TensorProto.FLOAT, [2, 4])],
        [value("y", TensorProto.FLOAT, [2, 4])],
        [numpy_helper.from_array(X, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)])
    model.ir_version = ir_version
    if ir_version < 3:
        model.ClearField("opset_import")
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("ir_version", [1, 2, 3])
def test_the_first_versions_stay_what_they_are(ir_version: int, tmp_path: Path) -> None:
    source = before_imports(tmp_path / "a.onnx", ir_version)
    edited = passlib.load(source).optimize_for("appendOperator", op="Dropout", key="ratio", value=0)
    edited.optimize_for("rebuildOperators", parameters=True).save(tmp_path / "b.onnx")
    onnx.checker.check_model(tmp_path / "b.onnx")
    written = onnx.load(tmp_path / "b.onnx")
    assert len(written.opset_import) == (ir_version == 3)
    assert [value.name for value in written.graph.input] == ["x", "w"]
    assert written.graph.node[-1].attribute[0].type == onnx.AttributeProto.FLOAT


def test_the_first_versions_have_no_other_domains(tmp_path: Path) -> None:
    model = passlib.load(before_imports(tmp_path / "a.onnx", 2))
    edited = model.optimize_for("appendOperator", op="Own", domain="own")
    with pytest.raises(UnsupportedError, match=r"IR version 2.*'own'"):
        edited.save(tmp_path / "b.onnx")


def test_changed_parameters_are_written(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("fillParameter", name="w", value=7)
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert numpy_helper.to_array(graph.initializer[0]).tolist() == [7, 7, 7, 7]
    assert model.args["w"].asnumpy().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("value", ["value", "value_floats"])
def test_changed_constants_are_written(value: str, tmp_path: Path) -> None:
    literal = "float[4] {1.0, 2.0, 3.0, 4.0}" if value == "value" else "[1.0, 2.0, 3.0, 4.0]"
    text = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 4] x) => (float[2, 4] y) {{
        k = Constant <{value} = {literal}> ()
        y = Add(x, k)
    }}
    """
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model.optimize_for("fillParameter", name="k", value=7)
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert sorted_names(graph) == ["Constant", "Add"]
    np.testing.assert_array_equal(edited.run({"x": X})["y"].asnumpy(), X + 7)


def test_parameters_that_are_gone_are_not_written(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("removeNamed", node="w")
    assert list(edited.args) == ["shape"]
    edited.save(tmp_path / "b.onnx")
    graph = onnx.load(tmp_path / "b.onnx").graph
    assert [tensor.name for tensor in graph.initializer] == ["shape"]


def test_an_output_that_is_gone_leaves_the_others(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("removeNamed", node="Identity_4")
    assert edited.outputs == ["z"]
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert [value.name for value in graph.output] == ["z"]


def test_a_node_and_its_copy_are_two(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx"))
    edited = model.optimize_for("copyNode", node="If_2")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert sorted_names(graph) == ["Identity", "Add", "If", "If"]
    assert [value.name for value in graph.output] == ["y", "If_2_again"]
    for feeds in FEEDS["nested"]:
        y, again = edited.run(feeds).values()
        np.testing.assert_array_equal(y.asnumpy(), again.asnumpy())


def test_outputs_in_another_order_keep_their_places(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    before, after = model.run({"x": X}), model.optimize_for("reverseOutputs").run({"x": X})
    assert list(after) == ["y", "z"]
    np.testing.assert_array_equal(after["y"].asnumpy(), before["z"].asnumpy())
    np.testing.assert_array_equal(after["z"].asnumpy(), before["y"].asnumpy())


def test_an_input_taken_from_a_node_with_a_nested_graph(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx"))
    edited = model.optimize_for("removeNamed", node="w")
    with pytest.raises(GraphError, match=r"'If_2' \(If\) has 4 inputs.*are 1 and 4"):
        edited.save(tmp_path / "b.onnx")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    source = onnx_models.save(onnx_models.NESTED, tmp_path / "a.onnx")
    before = source.read_bytes()
    edited = passlib.load(source).optimize_for("removeNamed", node="w")
    with pytest.raises(GraphError):
        edited.save(source)
    assert source.read_bytes() == before


def test_weights_without_values_cannot_be_filled(tmp_path: Path) -> None:
    source = tmp_path / "a.onnx"
    source.write_bytes(onnx_models.every_attribute().SerializeToString())
    with pytest.raises(PassError, match="no values for q"):
        passlib.load(source).optimize_for("fillParameter", name="q", value=1)


HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
SHADOWED = (
    HEAD
    + """(float[3] x, int64 n, float[3] step) => (float[3] last) {
    go = Constant <value = bool {1}> ()
    a = Identity(x)
    last = Loop(n, go, step) <
      body = body (int64 i, bool go, float[3] x) => (bool go, float[3] after) {
        after = Add(x, a)
      }>
}"""
)
BRANCHES = (
    HEAD
    + """(float[3] x, int64 n, float[3] step) => (float[3] y) {
    a = Identity(x)
    one = Constant <value = int64 {1}> ()
    c = Greater(n, one)
    y = If(c) <
      then_branch = then () => (t) { t = Identity(a) },
      else_branch = otherwise () => (e) { e = Sub(step, a) }>
}"""
)


@pytest.mark.parametrize("text", [SHADOWED, BRANCHES])
@pytest.mark.parametrize(
    "edits", [["dropIdentities"], ["interpose", "rebuildOperators", "dropIdentities"]]
)
def test_names_of_nested_graphs_do_not_hide_others(
    text: str, edits: list[str], tmp_path: Path
) -> None:
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model
    for edit in edits:
        edited = edited.optimize_for(edit)
    saved(edited, tmp_path / "b.onnx")
    for feeds in FEEDS["loop"]:
        expected = next(iter(model.run(feeds).values())).asnumpy()
        np.testing.assert_array_equal(next(iter(edited.run(feeds).values())).asnumpy(), expected)


def test_new_operators_are_told_apart(tmp_path: Path) -> None:
    # ONNX Runtime refuses two nodes of one name.
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("appendOperator", op="Neg").optimize_for("appendOperator", op="Neg")
    names = [node.name for node in saved(edited, tmp_path / "b.onnx").graph.node]
    assert names[-2:] == ["appended", "appended_1"]
    y = edited.run({"x": X})["y"].asnumpy()
    np.testing.assert_array_equal(y, model.run({"x": X})["y"].asnumpy())


def test_an_output_that_stood_twice_becomes_two(tmp_path: Path) -> None:
    text = HEAD + "(float[2, 4] x) => (float[2, 4] y, float[2, 4] y) { y = Exp(x) }"
    source = tmp_path / "a.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    edited = passlib.load(source).optimize_for("appendOperator", op="Neg")
    graph = saved(edited, tmp_path / "b.onnx").graph
    assert [value.name for value in graph.output] == ["y", "Exp_0"]


def test_inputs_stand_as_in_the_file(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.LOOP, tmp_path / "a.onnx"))
    edited = model.optimize_for("reverseNodes")
    assert edited.inputs == model.inputs == ["x", "n", "step"]


def test_new_attributes_with_one_graph_or_a_list_of_it(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"])], "b", [], [value("r", TensorProto.FLOAT, None)]
    )
    node = helper.make_node("Many", ["x"], ["y"], domain="own", one=body, several=[body])
    graph = helper.make_graph(
        [node], "g", [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])]
    )
    onnx.save(helper.make_model(graph), tmp_path / "a.onnx")
    passlib.load(tmp_path / "a.onnx").optimize_for("rebuildOperators").save(tmp_path / "b.onnx")
    attributes = onnx.load(tmp_path / "b.onnx").graph.node[0].attribute
    kinds = {attribute.name: attribute.type for attribute in attributes}
    assert kinds == {"one": onnx.AttributeProto.GRAPH, "several": onnx.AttributeProto.GRAPHS}


def test_the_schema_is_that_of_the_version_whatever_the_domain_is_called(tmp_path: Path) -> None:
    text = """<ir_version: 3, opset_import: ["ai.onnx" : 7]>
    g (float[2, 4] x) => (float[2, 4] y) { y = Neg(x) }"""
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    edited = model.optimize_for("appendOperator", op="Dropout", key="ratio", value="0")
    attribute = saved(edited, tmp_path / "b.onnx").graph.node[-1].attribute[0]
    assert attribute.type == onnx.AttributeProto.FLOAT


def test_constants_that_no_array_holds_are_exported(tmp_path: Path) -> None:
    text = (
        HEAD
        + """(float[2, 4] x) => (float[2, 4] y) {
        s = Constant <value_strings = ["a", "b"]> ()
        n = StringNormalizer <case_change_action = "UPPER"> (s)
        y = Relu(x)
    }"""
    )
    source = onnx_models.save(text, tmp_path / "a.onnx")
    passlib.convert(source, tmp_path / "b.onnx")
    assert [value.name for value in onnx.load(tmp_path / "b.onnx").graph.input] == ["x"]


def test_symbolic_sizes_stay(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    graph = saved(model.optimize_for("interpose"), tmp_path / "b.onnx").graph
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT


REFUSED = {
    "sequences": (
        "g (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x) }",
        "output 'y' of the model is a sequence",
    ),
    "strings": (
        "g (string[2] x) => (string[2] y) { y = Identity(x) }",
        "input 'x' of the model has elements of ONNX's type 8",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_models_that_are_not_run(what: str, tmp_path: Path) -> None:
    text, message = REFUSED[what]
    source = onnx_models.save(f'<ir_version: 8, opset_import: ["" : 17]> {text}', tmp_path / "a")
    with pytest.raises(UnsupportedError, match=message):
        passlib.load(source).run({"x": np.zeros(2, np.float32)})


def test_training_is_refused(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    lower = passlib.dialects.find("onnx").lower
    with pytest.raises(UnsupportedError, match="for training"):
        lower(model.symbol, {}, model.args, train=True)


def test_sizes_that_contradict_the_file(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    with pytest.raises(GraphError, match=r"'x' was given shape \(2, 5\)"):
        model.run({"x": np.zeros((2, 5), np.float32)})


def test_weights_that_are_fed_take_the_place_of_the_files(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    weights = np.full(4, 2, np.float32)
    outputs = model.run({"x": X, "w": weights})
    np.testing.assert_array_equal(outputs["y"].asnumpy(), np.maximum(X, 0) + weights)


def test_to_onnx_fixes_open_sizes(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    model.to_onnx(tmp_path / "b.onnx", shapes={"x": (5, 4)})
    dims = onnx.load(tmp_path / "b.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [5, 4]
    model.to_onnx(tmp_path / "c.onnx")
    assert onnx.load(tmp_path / "c.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_param


@pytest.mark.parametrize("name", TEXTS)
def test_passes_see_shapes(
    name: str, tmp_path: Path, load_plugin: Loader, capsys: pytest.CaptureFixture[str]
) -> None:
    model = passlib.load(onnx_models.save(TEXTS[name], tmp_path / "a.onnx"))
    model.optimize_for("showJson", shape_dict={"x": X.shape if name != "loop" else (3,)})
    shown = capsys.readouterr().out
    assert '"__ext_shape__":' in shown
    assert ("[[2,4]]" if name != "loop" else "[[3]]") in shown.replace(" ", "")
    assert "__ext_shape__" not in model.symbol.tojson()
