"""Attributes, metadata and operator sets that a pass adds to ONNX models."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import onnx_models
import passlib
from onnx_models import saved
from passlib.errors import PasslibError, UnsupportedError

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "edits", "onnx_edits"):
        load_plugin(name)


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
    [
        ("whole", "many"),
        ("wholes", "[1, x]"),
        ("wholes", "[1, 2"),
        ("wholes", "(1, 2]"),
        ("reals", "[1, 2"),
        ("texts", "[1]"),
        ("graph", "{}"),
        ("tensor", "{}"),
        ("tensor", "[" * 100_000 + '{"same_as": 1}' + "]" * 100_000),
        ("tensor", '{"dtype": "int8", "shape": [1], "data": [300]}'),
        ("tensor", '{"dtype": "int64", "shape": [1], "data": [1.5]}'),
        ("tensor", '{"dtype": "int64", "shape": [2], "data": [1]}'),
        ("sparse", '{"shape": [2], "values": {}, "indices": {}}'),
        ("type", '{"no": 1}'),
        ("type", "3"),
        ("type", '{"tensorType": {}, "mapType": {}}'),
        ("type", '{"tensorType": {"elemType": 4294967296}}'),
        ("type", '{"tensorType": {"elemType": 1.5}}'),
        ("type", '{"tensorType": {"shape": {"dim": {}}}}'),
        ("type", '{"tensorType": {"shape": {"dim": [{"dimValue": "1 "}]}}}'),
        ("type", '{"denotation": 1}'),
        ("type", '{"sequenceType": {"elemType": ' * 100_000 + "{}" + "}}" * 100_000),
        ("types", '{"tensorType": {}}'),
        ("fresh", "99999999999999999999"),
    ],
)
def test_text_that_is_not_a_value(key: str, text: str, tmp_path: Path) -> None:
    source = tmp_path / "a.onnx"
    source.write_bytes(onnx_models.every_attribute().SerializeToString())
    edited = passlib.load(source).optimize_for(
        "setAttribute", node="Everything_1", key=key, value=text
    )
    with pytest.raises(UnsupportedError, match=f"Everything_1.*{key}"):
        edited.save(tmp_path / "b.onnx")
    assert not (tmp_path / "b.onnx").exists()


SIZES = st.one_of(
    st.none(), st.integers(-(1 << 63), (1 << 63) - 1), st.text(st.characters(codec="utf-8"))
)
TENSORS = st.builds(
    helper.make_tensor_type_proto,
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.none() | st.lists(SIZES, max_size=3),
)
TYPES = st.recursive(
    TENSORS | st.builds(helper.make_sparse_tensor_type_proto, st.just(1), st.just([2, None])),
    lambda inner: st.one_of(
        st.builds(helper.make_sequence_type_proto, inner),
        st.builds(helper.make_optional_type_proto, inner),
        st.builds(helper.make_map_type_proto, st.integers(0, 20), inner),
    ),
    max_leaves=4,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(TYPES, min_size=1, max_size=2), st.text(st.characters(codec="utf-8"), max_size=3))
def test_types_in_the_json_of_protobuf(types: list[onnx.TypeProto], denotation: str) -> None:
    types[0].denotation = denotation

    @passlib.graph_pass(name="setTypes", replace=True)
    def change(graph: passlib.Graph) -> None:
        (node,) = (node for node in graph.nodes if node.name == "Everything_1")
        node.attrs["type"] = json_format.MessageToJson(types[0])
        node.attrs["types"] = json.dumps([json_format.MessageToDict(each) for each in types])

    edited = passlib.load(onnx_models.every_attribute()).optimize_for(change)
    node = edited.to_onnx_proto().graph.node[1]
    written = {attribute.name: attribute for attribute in node.attribute}
    assert written["type"].tp == types[0]
    assert list(written["types"].type_protos) == types


def test_new_attributes_have_the_type_of_the_schema(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("appendOperator", op="LeakyRelu", key="alpha", value="2")
    attribute = saved(edited, tmp_path / "b.onnx").graph.node[-1].attribute[0]
    assert (attribute.type, attribute.f) == (onnx.AttributeProto.FLOAT, 2.0)


TEXTS = {1: "2", 2: "3", 3: "4", 6: "[1, 2.5]", 7: "(1, -2)", 8: '["a"]'}
"""A text for each type of attribute that is no message."""


def versions() -> list[tuple[str, int]]:
    """Return all versions of all operator sets of ONNX."""
    newest: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    return [(domain, v) for domain, last in newest.items() for v in range(1, last + 1)]


@pytest.mark.parametrize(("domain", "version"), versions())
def test_new_attributes_of_all_operators_have_the_type_of_the_schema(
    domain: str, version: int, tmp_path: Path
) -> None:
    history = onnx.defs.get_all_schemas_with_history()
    schemas = [
        onnx.defs.get_schema(name, version, domain)
        for name in sorted({s.name for s in history if s.domain == domain})
        if onnx.defs.has(name, max_inclusive_version=version, domain=domain)
    ]
    nodes = [
        helper.make_node(s.name, ["x"], [f"y{s.name}"], name=s.name, domain=domain) for s in schemas
    ]
    nodes.append(helper.make_node("Neg", ["x"], ["y"]))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1])], [value("y", 1, [1])])
    sets = {"": 17, domain: version}
    imports = [helper.make_opsetid(each, number) for each, number in sets.items()]
    onnx.save(helper.make_model(graph, opset_imports=imports), tmp_path / "a.onnx")
    attributes = {s.name: {k: int(a.type.value) for k, a in s.attributes.items()} for s in schemas}
    wanted = {
        op: {key: kind for key, kind in types.items() if kind in TEXTS}
        for op, types in attributes.items()
    }

    @passlib.graph_pass(name="fillAttributes", replace=True)
    def fill(graph: passlib.Graph) -> None:
        for node in graph.nodes:
            for key, kind in wanted.get(node.op, {}).items():
                node.attrs[key] = TEXTS[kind]

    model = passlib.load(tmp_path / "a.onnx")
    model.optimize_for(fill).save(tmp_path / "b.onnx")
    written = onnx.load(tmp_path / "b.onnx").graph.node
    found = {node.op_type: {a.name: a.type for a in node.attribute} for node in written}
    assert found == {"Neg": {}, **wanted}


def test_marks_of_a_pass_are_metadata(tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    edited = model.optimize_for("setAttribute", node="Relu_0", key="__cost__", value="12")
    edited.save(tmp_path / "b.onnx")
    node = onnx.load(tmp_path / "b.onnx").graph.node[0]
    assert [(entry.key, entry.value) for entry in node.metadata_props] == [("__cost__", "12")]
    again = passlib.load(tmp_path / "b.onnx").symbol.nodes()
    assert next(n for n in again if n.name == "Relu_0").attrs["__cost__"] == "12"


@pytest.mark.parametrize(
    ("op", "domain", "version"),
    [("Normalizer", "ai.onnx.ml", 3), ("Neg", "com.example", 1), ("Neg", "ai.onnx", None)],
)
def test_a_new_domain_is_imported(
    op: str, domain: str, version: int | None, tmp_path: Path
) -> None:
    model = passlib.load(onnx_models.save(onnx_models.CHAIN, tmp_path / "a.onnx"))
    model.optimize_for("appendOperator", op=op, domain=domain).save(tmp_path / "b.onnx")
    imports = {e.domain: e.version for e in onnx.load(tmp_path / "b.onnx").opset_import}
    assert imports == ({"": 17} if version is None else {"": 17, domain: version})


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
    # Checkers before that of onnx 1.22 do not know the other name of ONNX's own domain.
    model = passlib.load(onnx.parser.parse_model(text))
    edited = model.optimize_for("appendOperator", op="Dropout", key="ratio", value="0")
    edited.save(tmp_path / "b.onnx")
    attribute = onnx.load(tmp_path / "b.onnx").graph.node[-1].attribute[0]
    assert attribute.type == onnx.AttributeProto.FLOAT


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


@pytest.mark.parametrize("version", [-5, 1 << 31, (1 << 62) + 1])
def test_a_version_beyond_those_of_onnx_is_no_internal_error(version: int, tmp_path: Path) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    model = onnx.parser.parse_model(onnx_models.CHAIN)
    model.opset_import[0].version = version
    source.write_bytes(model.SerializeToString())
    edited = passlib.load(source).optimize_for("appendOperator", op="Elu", key="alpha", value="1")
    with contextlib.suppress(PasslibError):
        edited.save(target)
        attribute = onnx.load(target).graph.node[-1].attribute[0]
        assert (attribute.name, attribute.i + attribute.f) == ("alpha", 1)
