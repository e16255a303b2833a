"""Operators of libraries in plain ONNX Runtime, by the library that `passlib.ort_library` names."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import passlib as pl
from example_build import build_example
from passlib.files.optional import require

onnxruntime: Any = require("onnxruntime", extra="run")
helper = onnx.helper

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)


def options_for(*libraries: Path) -> Any:
    """Return the options of sessions with the operators of some libraries."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("passlib.libraries", ":".join(map(str, libraries)))
    options.register_custom_ops_library(pl.ort_library())
    return options


def one_node(
    op: str,
    inputs: Mapping[str, tuple[int, Sequence[int | None] | None]],
    outputs: Mapping[str, tuple[int, Sequence[int | None] | None]],
    attributes: str | None = None,
) -> bytes:
    """Return a model of one node in the domain of libraries."""
    given = {} if attributes is None else {"attributes": attributes}
    node = helper.make_node(op, list(inputs), list(outputs), "here", domain="passlib", **given)
    ends = [
        [helper.make_tensor_value_info(name, *spec) for name, spec in some.items()]
        for some in (inputs, outputs)
    ]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("passlib", 1)]
    graph = helper.make_graph([node], "g", *ends)
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return model


FLOAT = TensorProto.FLOAT
PRODUCT = {"a": (FLOAT, (None, None)), "b": (FLOAT, (None, 4))}


@pytest.fixture(scope="module")
def gemm() -> Path:
    """Return the path of the example's library."""
    return build_example("lib_custom_op", "gemm_lib.cc")


class TestLibraries:
    def test_by_the_environment(self, gemm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PASSLIB_LIBRARIES", f"{gemm}::{gemm}")
        options = onnxruntime.SessionOptions()
        options.register_custom_ops_library(pl.ort_library())
        model = one_node("my_gemm", PRODUCT, {"y": (FLOAT, None)})
        (y,) = onnxruntime.InferenceSession(model, options).run(None, {"a": A, "b": B})
        np.testing.assert_array_equal(y, A @ B)

    def test_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PASSLIB_LIBRARIES", raising=False)
        with pytest.raises(Exception, match="no libraries to load: name them in the environment"):
            onnxruntime.SessionOptions().register_custom_ops_library(pl.ort_library())

    def test_absent(self, tmp_path: Path) -> None:
        with pytest.raises(Exception, match=r"cannot load library '.*nowhere\.so'"):
            options_for(tmp_path / "nowhere.so")

    def test_two_with_one_name(self, gemm: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.so"
        other.write_bytes(gemm.read_bytes())
        with pytest.raises(Exception, match=r"'my_gemm' is already registered by '.*gemm_lib\.so"):
            options_for(gemm, other)

    def test_old_runtime(self) -> None:
        """A table of version 1 alone, as an ONNX Runtime before 1.17 has it."""
        said: list[bytes] = []
        create_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
        create = create_type(lambda _, text: said.append(text) or 1)
        table = (ctypes.c_void_p * 102)(ctypes.cast(create, ctypes.c_void_p))

        def find(version: int) -> int | None:
            return ctypes.addressof(table) if version <= 16 else None

        get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(find)
        text = ctypes.create_string_buffer(b"1.16.3")
        get_text = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(text))
        base = (ctypes.c_void_p * 2)(
            *(ctypes.cast(f, ctypes.c_void_p) for f in (get_api, get_text))
        )
        register = ctypes.CDLL(pl.ort_library()).RegisterCustomOps
        register.restype = ctypes.c_void_p
        assert register(None, base) == 1
        assert said == [b"libpasslib_ort needs ONNX Runtime 1.17 or later, and this is 1.16.3"]


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "attributes", "message"),
    [
        (
            "my_gemm",
            {"a": PRODUCT["a"]},
            {"y": (FLOAT, None)},
            None,
            "takes 2 inputs, and its node",
        ),
        ("my_gemm", PRODUCT, {"y": (FLOAT, None), "z": (FLOAT, None)}, None, "has 1 output, and"),
        ("my_gemm", PRODUCT, {"y": (FLOAT, None)}, "{", "no JSON object of texts: .*line 1"),
        ("my_gemm", PRODUCT, {"y": (FLOAT, None)}, "[]", "no JSON object of texts$"),
        ("my_gemm", PRODUCT, {"y": (FLOAT, None)}, '{"k": 1}', "the value of 'k' is no text"),
        ("my_gemm", PRODUCT, {"y": (FLOAT, None)}, '{"k": "\\u0000"}', "NUL byte"),
        ("my_gemm", PRODUCT, {"y": (TensorProto.INT64, None)}, None, "infers the element type 1"),
        (
            "my_gemm",
            PRODUCT | {"b": (TensorProto.STRING, (3, 4))},
            {"y": (FLOAT, None)},
            None,
            "its input 1: it is no tensor of an element type that the ABI has .type 8",
        ),
        ("no_such", PRODUCT, {"y": (FLOAT, None)}, None, "passlib:no_such"),
    ],
)
def test_models_that_do_not_fit(
    gemm: Path,
    op: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    attributes: str | None,
    message: str,
) -> None:
    model = one_node(op, inputs, outputs, attributes)
    with pytest.raises(Exception, match=message):
        onnxruntime.InferenceSession(model, options_for(gemm)).run(None, {"a": A, "b": B})


def test_error_of_the_library(gemm: Path) -> None:
    model = one_node("my_gemm", PRODUCT, {"y": (FLOAT, None)})
    session = onnxruntime.InferenceSession(model, options_for(gemm))
    with pytest.raises(Exception, match=r"'my_gemm' .*\n.*gemm: 3 x 2 does not fit 3 x 4"):
        session.run(None, {"a": A.T.copy(), "b": B})
    np.testing.assert_array_equal(session.run(None, {"a": A, "b": B})[0], A @ B)


def test_shapes_are_inferred(gemm: Path, tmp_path: Path) -> None:
    """ONNX Runtime folds `Shape` of what the operator computes, if its inputs have known sizes."""
    for rows, kept in ((2, []), (None, ["Shape"])):
        inputs = PRODUCT | {"a": (FLOAT, (rows, 3)), "b": (FLOAT, (3, 4))}
        model = onnx.load_from_string(one_node("my_gemm", inputs, {"y": (FLOAT, None)}))
        model.graph.node.append(helper.make_node("Shape", ["y"], ["z"]))
        model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.INT64, None))
        options = options_for(gemm)
        options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        assert session.run(["z"], {"a": A, "b": B})[0].tolist() == [2, 4]
        nodes = onnx.load(tmp_path / "optimized.onnx").graph.node
        assert [node.op_type for node in nodes if node.domain == ""] == kept
