"""Models are validated by their content, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from onnx import TensorProto, parser

import onnx_models
import passlib


def sound() -> Any:
    return parser.parse_model(onnx_models.CHAIN)


def with_data_elsewhere() -> Any:
    model = sound()
    name = model.graph.initializer[0].name
    tensor = TensorProto(name=name, data_type=1, dims=[4], data_location=1)
    tensor.external_data.add(key="location", value="w.bin")
    model.graph.initializer[0].CopyFrom(tensor)
    return model


GRAPH = passlib.sym.relu(passlib.sym.var("x")).tojson().encode()
CASES: dict[str, tuple[Callable[[], Any], str | None, list[tuple[str, str]]]] = {
    "bytes": (lambda: sound().SerializeToString(), None, []),
    "bytearray": (lambda: bytearray(sound().SerializeToString()), None, []),
    "memoryview": (lambda: memoryview(sound().SerializeToString()), "onnx", []),
    "message": (sound, None, []),
    "data in another file": (
        with_data_elsewhere,
        None,
        [("graph.initializer[0]", "there is no file 'w.bin' next to the model")],
    ),
    "truncated": (
        lambda: sound().SerializeToString()[:50],
        None,
        [("the given bytes", "a protobuf field ends beyond its message")],
    ),
    "empty": (lambda: b"", None, [("the given bytes", "the file is empty")]),
    "a graph of MXNet": (lambda: GRAPH, "mxnet", []),
    "another dialect": (lambda: b"{}", "mxnet", [("the given bytes", "the graph has no 'nodes'")]),
}


@pytest.mark.parametrize("what", CASES)
def test_content(what: str) -> None:
    make, dialect, expected = CASES[what]
    problems = passlib.validate(make(), dialect)
    assert [(p.severity, p.place) for p in problems] == [("error", place) for place, _ in expected]
    for problem, (_, text) in zip(problems, expected, strict=True):
        assert text in problem.message
        assert "/tmp" not in problem.message


@pytest.mark.parametrize("given", [5, None, ["a.onnx"]])
def test_what_is_no_model(given: Any) -> None:
    for read in (passlib.load, passlib.validate):
        with pytest.raises(TypeError, match=r"from a path, from bytes or from an onnx\.ModelProto"):
            read(given)
