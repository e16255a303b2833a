"""Types that ONNX files state for inputs, against what the package onnx reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, TypeProto, helper

import passlib.dialects.onnx.dialect as onnx_dialect
from passlib.dialects.onnx.reading import read_bytes
from passlib.lowering.types import TypeSpec


def tensor(code: int, shape: list[Any] | None) -> TypeProto:
    return helper.make_tensor_type_proto(code, shape)


FLOATS = tensor(TensorProto.FLOAT, [2])
LATER = TypeProto()
LATER.ParseFromString(FLOATS.SerializeToString() + b"\x9a\x06\x02ab")  # field 99

STATED: dict[str, tuple[TypeProto, TypeSpec]] = {
    "sizes": (tensor(TensorProto.FLOAT, [2, 3]), TypeSpec(np.dtype("float32"), (2, 3))),
    "names": (tensor(TensorProto.INT64, ["N", 4]), TypeSpec(np.dtype("int64"), (None, 4))),
    "an empty dimension": (tensor(TensorProto.BOOL, [None]), TypeSpec(np.dtype("bool"), (None,))),
    "a negative size": (tensor(TensorProto.INT8, [-2]), TypeSpec(np.dtype("int8"), (None,))),
    "size 0": (tensor(TensorProto.DOUBLE, [0]), TypeSpec(np.dtype("float64"), (0,))),
    "no axes": (tensor(TensorProto.FLOAT16, []), TypeSpec(np.dtype("float16"), ())),
    "no shape": (tensor(TensorProto.UINT8, None), TypeSpec(np.dtype("uint8"), None)),
    "strings": (tensor(TensorProto.STRING, [1]), TypeSpec(np.dtype("object"), (1,))),
    "complex": (tensor(TensorProto.COMPLEX64, [1]), TypeSpec(np.dtype("complex64"), (1,))),
    "no element type": (tensor(0, [1]), TypeSpec(None, (1,))),
    "an unknown element type": (tensor(999, [1]), TypeSpec(None, (1,))),
    "nothing": (TypeProto(), TypeSpec(None, None)),
    "a sequence": (helper.make_sequence_type_proto(FLOATS), TypeSpec(None, None)),
    "an optional": (helper.make_optional_type_proto(FLOATS), TypeSpec(None, None)),
    "a field of a later version": (LATER, TypeSpec(np.dtype("float32"), (2,))),
}


def serialized(kind: TypeProto) -> bytes:
    info = onnx.ValueInfoProto(name="x")
    info.type.CopyFrom(kind)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("unused", TensorProto.INT32, [7]), info],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph).SerializeToString()


@pytest.mark.parametrize(("kind", "expected"), STATED.values(), ids=STATED)
def test_stated_types_are_those_of_the_message(kind: TypeProto, expected: TypeSpec) -> None:
    stated = onnx_dialect.dialect.input_types(read_bytes(serialized(kind)))
    assert stated["x"] == expected


def field(number: int, body: bytes) -> bytes:
    """Return a field of bytes as it is in a message."""
    assert len(body) < 128
    return bytes([number << 3 | 2, len(body)]) + body


def test_the_last_of_several_kinds_counts_and_parts_of_one_are_joined() -> None:
    floats, sequence = (
        each.SerializeToString() for each in (FLOATS, helper.make_sequence_type_proto(FLOATS))
    )
    cases = {
        floats + sequence: TypeSpec(None, None),
        sequence + floats: TypeSpec(np.dtype("float32"), (2,)),
        floats + floats: TypeSpec(np.dtype("float32"), (2, 2)),
    }
    for kind, expected in cases.items():
        graph = b"".join(
            (
                field(1, helper.make_node("Identity", ["x"], ["y"]).SerializeToString()),
                field(2, b"g"),
                field(11, field(1, b"x") + field(2, kind)),
                field(12, field(1, b"y")),
            )
        )
        model = b"\x08\x08" + field(8, b"\x10\x11") + field(7, graph)
        assert onnx_dialect.dialect.input_types(read_bytes(model))["x"] == expected


def test_inspecting_a_file_needs_no_package_onnx(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(serialized(FLOATS))
    code = (
        "import sys\nfrom passlib.cli import main\n"
        "main(['inspect', sys.argv[1]])\nprint('onnx' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert "x float32 (2)" in run.stdout
    assert run.stdout.endswith("False\n")
