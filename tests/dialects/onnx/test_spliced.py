"""Bytes of ONNX files that passes left alone come back as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import passlib
from weight_passes import load_weight_passes

Loader = Callable[[str], passlib.library.Library]

BIG = np.arange(40_000, dtype=np.float32).reshape(200, 200)
OTHER = BIG[::-1].copy()


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    load_plugin("edits")
    load_plugin("onnx_edits")
    load_weight_passes()


def field(number: int, body: bytes, *, overlong: bool = False) -> bytes:
    """Encode a field of bytes; overlong lengths are valid, though no serializer writes them."""
    assert len(body) < 1 << 14
    low, high = len(body) & 0x7F, len(body) >> 7
    length = bytes([low | 0x80, high]) if overlong or high else bytes([low])
    tag = number << 3 | 2
    head = bytes([tag]) if tag < 0x80 else bytes([tag & 0x7F | 0x80, tag >> 7])
    return head + length + body


UNKNOWN = field(300, b"of a later version")

ODD_NODE = b"".join(
    (
        field(4, b"Abs", overlong=True),
        UNKNOWN,
        field(2, b"b"),
        field(3, b"odd"),
        field(1, b"a", overlong=True),
        field(6, b"a note"),
    )
)
"""A node with its fields in no usual order."""


def chain() -> bytes:
    """Encode x -> Neg -> Abs, the odd node -> Relu -> y."""

    def info(name: str) -> bytes:
        text = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2])
        return text.SerializeToString() + UNKNOWN

    def node(op: str, given: str, made: str) -> bytes:
        return onnx.helper.make_node(op, [given], [made], name=op).SerializeToString()

    graph = b"".join(
        (
            field(13, info("b")),
            field(12, info("y")),
            field(1, node("Neg", "x", "a")),
            field(2, b"g"),
            field(1, ODD_NODE, overlong=True),
            UNKNOWN,
            field(11, info("x")),
            field(1, node("Relu", "b", "y")),
        )
    )
    version = onnx.helper.make_opsetid("", 17).SerializeToString()
    return field(8, version) + field(7, graph, overlong=True) + b"\x08\x08" + UNKNOWN


def test_a_changed_graph_keeps_the_bytes_of_all_else(tmp_path: Path) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    source.write_bytes(chain())
    passlib.load(source).optimize_for("removeOperator", op="Neg").save(target)
    written = target.read_bytes()
    assert b"Neg" not in written
    assert written.count(UNKNOWN) == chain().count(UNKNOWN)
    made = onnx.ModelProto.FromString(written)
    assert [(n.op_type, *n.input, *n.output) for n in made.graph.node] == [
        ("Abs", "x", "b"),
        ("Relu", "b", "y"),
    ]
    assert made.graph.node[0].doc_string == "a note"
    relu = chain()[chain().index(b"\x0a\x01b\x12\x01y") :][: len(b"\x0a\x01b\x12\x01y\x1a\x04Relu")]
    assert relu in written


def test_a_node_that_stays_is_copied_byte_for_byte(tmp_path: Path) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    source.write_bytes(chain())
    passlib.load(source).optimize_for("appendOperator", op="Neg").save(target)
    written = target.read_bytes()
    assert written != chain()
    assert ODD_NODE in written
    onnx.checker.check_model(target)


@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
def test_weights_that_stay_are_lent_and_written_from_the_file(
    external: bool, tmp_path: Path
) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 200] x) => (float[2, 200] y) '
        "{ a = MatMul(x, w) y = MatMul(a, v) }"
    )
    for name, array in (("w", BIG), ("v", OTHER)):
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    source, target = tmp_path / "a.onnx", tmp_path / "new" / "b.onnx"
    target.parent.mkdir()
    onnx.save(model, source, save_as_external_data=external, location="w.data")
    files = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    loaded = passlib.load(source)
    scaled = loaded.optimize_for("scaleInPlace", name="w", factor=2)
    np.testing.assert_array_equal(np.asarray(loaded.args["w"]), BIG)
    np.testing.assert_array_equal(np.asarray(scaled.args["w"]), BIG * 2)
    assert np.shares_memory(scaled.args["v"], loaded.args["v"])
    assert not np.shares_memory(scaled.args["w"], loaded.args["w"])
    scaled.save(target)
    again = passlib.load(target)
    np.testing.assert_array_equal(np.asarray(again.args["w"]), BIG * 2)
    np.testing.assert_array_equal(np.asarray(again.args["v"]), OTHER)
    assert {path: path.read_bytes() for path in files} == files


def test_a_pass_that_writes_what_was_there_changes_nothing(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 200] x) => (float[2, 200] y) '
        "{ y = MatMul(x, w) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(BIG, "w"))
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model, source)
    loaded = passlib.load(source)
    same = loaded.optimize_for("scaleInPlace", name="w", factor=1)
    assert np.shares_memory(same.args["w"], loaded.args["w"])
    same.save(target)
    assert target.read_bytes() == source.read_bytes()
