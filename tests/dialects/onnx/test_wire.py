"""ONNX files as bytes: damage, parts in any order, and reading without the package onnx."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser

import onnx_models
import passlib
from passlib.errors import FormatError, PasslibError

Loader = Callable[[str], passlib.library.Library]

CHAIN = parser.parse_model(onnx_models.CHAIN).SerializeToString()


def field(number: int, body: bytes) -> bytes:
    """A field of bytes, whose number is below 16."""
    size, length = b"", len(body)
    while length >= 0x80:
        size += bytes([length & 0x7F | 0x80])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + body


def nested(depth: int) -> bytes:
    """A model whose graphs are nested as deep; each has a node with a graph."""
    body = b""
    for _ in range(depth):
        attribute = field(1, b"g") + field(6, body) + b"\xa0\x01\x05"
        body = field(1, field(4, b"If") + field(5, attribute))
    return field(7, body)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "a varint of eleven bytes": (b"\x08" + b"\x80" * 10 + b"\x01", "number has no end"),
    "a length beyond the end": (CHAIN + b"\x3a\xff\xff\xff\xff\x0f", "ends beyond its message"),
    "a length of 2**63": (CHAIN + b"\x3a" + b"\xff" * 8 + b"\x7f", "ends beyond its message"),
    "a field of number 0": (CHAIN + b"\x02\x00", "number is out of range"),
    "a tag of six bytes": (CHAIN + b"\x88\x80\x80\x80\x80\x01\x00", "number is out of range"),
    "wire type 6": (CHAIN + b"\x0e", "no wire type 6"),
    "a group that does not end": (CHAIN + b"\xfb\x3f\x08\x01", "group"),
    "a group that ends as another": (CHAIN + b"\xfb\x3f\xf4\x3f", "group"),
    "groups in groups": (CHAIN + b"\x0b" * 5000, "group"),
    "an end without a group": (CHAIN + b"\x0c", "group"),
    "graphs nested 40 deep": (nested(40), "nested more than 100 deep"),
    "graphs nested 3,000 deep": (nested(3000), "nested more than 100 deep"),
    "half a packed number": (
        field(7, field(5, field(4, b"123") + b"\x10\x01" + field(8, b"w"))),
        "end within a number",
    ),
    "many nodes of nothing": (field(7, b"\x0a\x00" * 1_000_000), "operator ''"),
    "many inputs of nothing": (field(7, b"\x5a\x00" * 1_000_000), "has no name"),
    "many attributes of nothing": (
        field(7, field(1, field(4, b"A") + b"\x2a\x00" * 1_000_000)),
        "occurs twice",
    ),
    "no graph": (b"\x08\x08\x42\x02\x10\x11", "has no graph"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_damage_on_the_wire_is_refused(what: str, tmp_path: Path) -> None:
    data, message = HOSTILE[what]
    path = tmp_path / "a.onnx"
    path.write_bytes(data)
    with pytest.raises(PasslibError, match=message):
        passlib.load(path, "onnx")
    if len(data) < 1 << 20:  # of larger ones, validation reports every node
        assert any(p.severity == "error" for p in passlib.dialects.find("onnx").validate(path))


def test_errors_state_the_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(CHAIN + b"\x0e")
    with pytest.raises(FormatError, match=r"a\.onnx: ") as caught:
        passlib.load(path, "onnx")
    assert caught.value.offset == len(CHAIN)


def two_graphs() -> bytes:
    """The chain in two messages that parsers merge, with groups and fields of later versions."""
    model = onnx.ModelProto.FromString(CHAIN)
    second = onnx.GraphProto()
    second.node.append(model.graph.node[-1])
    second.output.append(model.graph.output[-1])
    del model.graph.node[-1], model.graph.output[-1]
    first = model.graph.SerializeToString()
    model.ClearField("graph")
    return b"".join(
        (
            field(7, first),
            b"\xfb\x3f\x08\x01\xfc\x3f",
            model.SerializeToString(),
            b"\xfa\x3f\x03new",
            field(7, second.SerializeToString()),
        )
    )


@pytest.mark.parametrize("make", [two_graphs, lambda: CHAIN])
def test_unchanged_files_come_back_byte_for_byte(
    make: Callable[[], bytes], tmp_path: Path, load_plugin: Loader
) -> None:
    load_plugin("good")
    path = tmp_path / "a.onnx"
    path.write_bytes(make())
    model = passlib.load(path)
    expected = passlib.load(CHAIN)
    assert model.symbol.list_inputs() == expected.symbol.list_inputs()
    assert model.outputs == expected.outputs
    model.optimize_for("identity").save(tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == make()


UNSORTED = [
    helper.make_node("Relu", ["a"], ["b"]),
    helper.make_node(
        "If",
        ["c"],
        ["y"],
        then_branch=helper.make_graph(
            [helper.make_node("Exp", ["d"], ["t"]), helper.make_node("Neg", ["b"], ["d"])],
            "then",
            [],
            [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
        ),
        else_branch=helper.make_graph(
            [helper.make_node("Identity", ["late"], ["e"])],
            "otherwise",
            [],
            [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)],
        ),
    ),
    helper.make_node("Abs", ["x"], ["a"]),
    helper.make_node("Sqrt", ["a"], ["late"]),
]


def test_nodes_out_of_order_are_sorted(tmp_path: Path, load_plugin: Loader) -> None:
    load_plugin("good")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        UNSORTED,
        "g",
        [value("x", TensorProto.FLOAT, [3]), value("c", TensorProto.BOOL, [])],
        [value("y", TensorProto.FLOAT, [3])],
    )
    source = tmp_path / "a.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), source)
    model = passlib.load(source)
    operators = [node.op for node in model.symbol.nodes() if not node.is_variable]
    assert operators == ["Abs", "Relu", "Sqrt", "If"]
    model.optimize_for("identity").save(tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == source.read_bytes()
    x = np.array([1, 4, 9], np.float32)
    for c, expected in ((True, np.exp(-x)), (False, np.sqrt(x))):
        found = model.run({"x": x, "c": np.array(c)})["y"].asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def reals(values: list[float]) -> str:
    """Return the text of an attribute of these numbers."""
    node = helper.make_node("Own", ["x"], ["y"], domain="own")
    node.attribute.append(onnx.AttributeProto(name="r", type=6, floats=values))
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    tensor = numpy_helper.from_array(np.array(values, np.float32))
    node.attribute.append(onnx.AttributeProto(name="t", type=4, t=tensor))
    graph = helper.make_graph([node], "g", [value], [onnx.ValueInfoProto(name="y")])
    model = passlib.load(helper.make_model(graph).SerializeToString())
    attrs = next(node for node in model.symbol.nodes() if not node.is_variable).attrs
    wide = json.loads(attrs["t"])["data"]
    np.testing.assert_array_equal(np.array(wide), np.array(values, np.float32).astype(float))
    return attrs["r"]


@given(st.lists(st.floats(width=32), max_size=20))
def test_numbers_are_spelled_in_as_few_digits_as_numpys(values: list[float]) -> None:
    texts = reals(values)[1:-1].split(", ") if values else []
    expected = [str(np.float32(value)) for value in values]
    # Versions of NumPy differ in what they write with an exponent.
    assert [text if "n" in text else Decimal(text) for text in texts] == [
        text if "n" in text else Decimal(text) for text in expected
    ]


def test_numbers_with_exponents() -> None:
    values = [1e5, 1e6, 1.5e7, 1e-3, 1e-4, 1.5e-4, -0.0, float("nan"), float("-inf")]
    expected = "[100000.0, 1e+06, 1.5e+07, 0.001, 1e-04, 0.00015, -0.0, nan, -inf]"
    assert reals(values) == expected


ALONE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("onnx", "google", "onnxruntime", "ml_dtypes"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import passlib
passlib.library.load(sys.argv[1], verbose=False)
model = passlib.load(sys.argv[2])
model.optimize_for("identity", skip_infer=True).save(sys.argv[3])
"""


def test_numpy_suffices_to_load_pass_and_save(tmp_path: Path, load_plugin: Loader) -> None:
    library: Any = load_plugin("good")
    source = tmp_path / "a.onnx"
    source.write_bytes(onnx_models.every_attribute().SerializeToString())
    target = tmp_path / "b.onnx"
    arguments = [sys.executable, "-c", ALONE, library.path, str(source), str(target)]
    subprocess.run(arguments, check=True)
    assert target.read_bytes() == source.read_bytes()
