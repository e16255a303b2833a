"""Operators of libraries in plain ONNX Runtime, by the library that `passlib.ort_library` names."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import passlib as pl
from custom_graphs import X
from example_build import build_example, extension_libraries
from ort_sessions import options_for
from passlib.files.optional import require

onnxruntime: Any = require("onnxruntime", extra="run")
helper = onnx.helper

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)


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

    def test_relative_path(self, gemm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(gemm.parent)
        options_for(Path(gemm.name))

    def test_c_interface(self, gemm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """ONNX Runtime's shared library is another one than its Python module."""
        monkeypatch.setenv("PASSLIB_LIBRARIES", str(gemm))
        file = tmp_path / "m.onnx"
        file.write_bytes(one_node("my_gemm", PRODUCT, {"y": (FLOAT, None)}))
        (found,) = Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*")
        get_base = ctypes.CDLL(str(found)).OrtGetApiBase
        get_base.restype = ctypes.POINTER(ctypes.c_void_p)
        get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)
        table = get_api(get_base()[0])(17)

        def call(place: int, *arguments: Any) -> None:
            status = ctypes.CFUNCTYPE(ctypes.c_void_p)(table[place])(*arguments)
            if status:
                message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(table[2])(status)
                raise AssertionError(message)

        env, options, session, handle = (ctypes.c_void_p() for _ in range(4))
        call(3, 4, b"test", ctypes.byref(env))  # CreateEnv
        call(10, ctypes.byref(options))  # CreateSessionOptions
        call(29, options, pl.ort_library().encode(), ctypes.byref(handle))
        call(7, env, str(file).encode(), options, ctypes.byref(session))  # CreateSession
        assert session.value


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


def graph_cases() -> dict[str, tuple[str, Any, dict[str, np.ndarray]]]:
    """Return a library, a graph and its inputs for each operator; libraries are loaded later."""
    s, a, b, x = pl.sym, pl.sym.var("a"), pl.sym.var("b"), pl.sym.var("x")
    ab, xs = {"a": A, "b": B}, {"x": X}
    return {
        "my_gemm": ("gemm_lib", lambda: s.my_gemm(s.exp(a), b) * 2, ab),
        "state_gemm": ("gemm_lib", lambda: s.state_gemm(a, b), ab),
        "my_transpose": ("transpose_lib", lambda: s.my_transpose(a) + 1, {"a": A}),
        "plugin_product": ("operators", lambda: s.plugin_product(a, b), ab),
        "plugin_counter": ("operators", lambda: s.plugin_counter(a, start=3), {"a": A}),
        "from_shape": ("operators", lambda: s.plugin_counter(a, from_shape=1), {"a": A}),
        "plugin_alive": ("operators", lambda: s.broadcast_add(a, s.plugin_alive() * 0), {"a": A}),
        "plugin_abs": ("operators", lambda: s.plugin_abs(-a), {"a": A}),
        "_contrib_plugin_abs": ("operators", lambda: s.contrib.plugin_abs(-a), {"a": A}),
        "plugin_reverse": ("operators", lambda: s.plugin_reverse(a), {"a": A}),
        "plugin_sums": (
            "operators",
            lambda: s.Group(list(s.plugin_sums(a, a, inputs=2, outputs=2, note='\u00e4 "b"'))),
            {"a": A},
        ),
        "no_inputs": (
            "operators",
            lambda: s.plugin_sums(inputs=0, outputs=1) * a,
            {"a": A[0, :2].copy()},
        ),
        "tp_scale": ("graph_operators", lambda: s.tp_scale(x, factor=1.5), xs),
        "tp_product": ("graph_operators", lambda: s.tp_product(x, x), xs),
        "tp_halves": ("graph_operators", lambda: s.Group(list(s.tp_halves(s.tanh(x)))), xs),
        "tp_linear": ("graph_operators", lambda: s.tp_linear(x, s.var("w"), num_hidden=4), xs),
        "tp_counter": ("graph_operators", lambda: s.tp_counter(x), xs),
        "tp_living": ("graph_operators", lambda: s.tp_living(x) * 0, xs),
        "tp_negate": ("graph_operators", lambda: s.tp_negate(x), xs),
        "my_relu": ("extension_operators", lambda: s.my_relu(x), xs),
        "chain": ("graph_operators", lambda: s.tp_scale(s.relu(s.tp_scale(x))), xs),
    }


WEIGHTS = {"w": np.arange(12, dtype=np.float32).reshape(4, 3) / 10}
CASES = graph_cases()


@pytest.fixture
def library(plugin: Callable[[str], Path]) -> Callable[[str], Path]:
    """Load a library of the tests or of the examples, and return its path."""

    def load(name: str) -> Path:
        if name == "extension_operators":
            path = extension_libraries()[-1]
        elif name in ("gemm_lib", "transpose_lib"):
            path = build_example("lib_custom_op", f"{name}.cc")
        else:
            path = plugin(name)
        pl.library.load(path, verbose=False)
        return path

    return load


def exported(
    symbol: Any, weights: Mapping[str, Any], feeds: Mapping[str, Any], path: Path, **how: Any
) -> pl.Model:
    """Write a model as an ONNX file, with open sizes unless ``shapes`` are given."""
    used = {name: array for name, array in weights.items() if name in symbol.list_inputs()}
    model = pl.Model(symbol, used)
    given = {"shapes": {name: array.shape for name, array in feeds.items()}, **how}
    model.to_onnx(path, **given)
    return model


@pytest.mark.parametrize("name", CASES)
def test_equals_model_run(name: str, library: Callable[[str], Path], tmp_path: Path) -> None:
    source, make, feeds = CASES[name]
    path = library(source)
    model = exported(make(), WEIGHTS, feeds, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    for scale in (1, 2):  # a state counts its runs
        given = {key: array * scale for key, array in feeds.items()}
        expected = list(model.run(given).values())
        found = session.run(None, given)
        assert [array.dtype for array in found] == [array.dtype for array in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_open_sizes(library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("graph_operators")
    symbol = pl.sym.tp_linear(pl.sym.relu(pl.sym.var("x")), pl.sym.var("w"), num_hidden=4)
    model = exported(symbol, WEIGHTS, {"x": X}, tmp_path / "m.onnx", shapes={"x": (None, 3)})
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    for rows in (1, 2, 5):
        x = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], model(x))


@pytest.mark.parametrize("opset", [13, 18, 22])
def test_operator_sets(opset: int, library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("graph_operators")
    symbol = pl.sym.sum(pl.sym.tp_scale(pl.sym.var("x")), axis=1)
    model = exported(symbol, {}, {"x": X}, tmp_path / "m.onnx", opset=opset)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], model(X))


def test_written_inputs(library: Callable[[str], Path], tmp_path: Path) -> None:
    """Later nodes read the new content, which is an output; the model's own stays."""
    path = library("graph_operators")
    x, total = pl.sym.var("x"), pl.sym.var("total")
    first = pl.sym.tp_accumulate(x, total, name="one")
    symbol = pl.sym.Group([first, pl.sym.tp_scale(total), pl.sym.tp_accumulate(x, total)])
    model = pl.Model(symbol, {}, {"total": np.ones_like(X)})
    model.to_onnx(tmp_path / "m.onnx", shapes={"x": X.shape})
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    expected = list(model.run({"x": X}).values())
    for _ in range(2):
        *found, written = session.run(None, {"x": X})
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(written, 2 * X + 1)


def test_written_result_of_another_node(library: Callable[[str], Path], tmp_path: Path) -> None:
    """A file may have an operator that writes to what another node computes."""
    path = library("graph_operators")
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "relu", "name": "inner", "inputs": [[0, 0, 0]]},
        {"op": "tp_accumulate", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]]},
        {"op": "tp_scale", "name": "after", "inputs": [[1, 0, 0]]},
    ]
    heads = [[2, 0, 0], [3, 0, 0]]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": heads})
    model = exported(pl.sym.load_json(text), {}, {"x": X}, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    found, expected = session.run(None, {"x": X}), list(model.run({"x": X}).values())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found[1], 2 * (X + np.maximum(X, 0)))


def test_in_a_branch(library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("graph_operators")
    x, sign = pl.sym.var("x"), pl.sym.var("sign")
    symbol = pl.sym.contrib.cond(
        sign, lambda: pl.sym.relu(pl.sym.tp_scale(x)), lambda: pl.sym.tp_halves(x)[1] * 1
    )
    feeds = {"x": X, "sign": np.ones(1, np.float32)}
    exported(symbol, {}, feeds, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    for sign_value, expected in ((1, np.maximum(2 * X, 0)), (0, np.minimum(X, 0))):
        found = session.run(None, {"x": X, "sign": np.full(1, sign_value, np.float32)})
        np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"]
)
def test_element_types(dtype: str, library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("graph_operators")
    symbol = pl.sym.Group(list(pl.sym.tp_halves(pl.sym.var("x"))))
    pl.Model(symbol, {}).to_onnx(tmp_path / "m.onnx", {"x": (0,)}, {"x": dtype})
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    found = session.run(None, {"x": np.zeros(0, dtype)})
    assert [array.dtype for array in found] == [np.dtype(dtype)] * 2


def test_failure_of_forward(library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("graph_operators")
    symbol = pl.sym.tp_accumulate(pl.sym.var("x"), pl.sym.var("total"), fail=1, name="sum")
    pl.Model(symbol, {}, {"total": np.ones_like(X)}).to_onnx(tmp_path / "m.onnx", {"x": X.shape})
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))
    for _ in range(2):
        with pytest.raises(Exception, match=r"'tp_accumulate' .*'sum.*in forward\n.*told to"):
            session.run(None, {"x": X})


def test_eight_threads(library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("graph_operators")
    x = pl.sym.var("x")
    symbol = pl.sym.Group([pl.sym.tp_scale(x, factor=3), pl.sym.tp_counter(x)])
    exported(symbol, {}, {"x": X}, tmp_path / "m.onnx", shapes={"x": (None, 3)})
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", options_for(path))

    def run(number: int) -> np.ndarray:
        given = np.full((1 + number % 12, 3), number, np.float32)
        scaled, _ = session.run(None, {"x": given})
        np.testing.assert_array_equal(scaled, 3 * given)
        return session.run(None, {"x": np.zeros_like(X)})[1][0, 0]

    with ThreadPoolExecutor(8) as pool:
        counts = sorted(pool.map(run, range(400)))
    # One state at a time for each of the shapes; those in between may have been dropped.
    assert counts[0] >= 1
    assert counts[-1] <= 800


DRAW = """
import sys, numpy as np, passlib as pl, onnxruntime
library, file = sys.argv[1:]
pl.library.load(library, verbose=False)
model = pl.Model(pl.sym.plugin_draw(pl.sym.var("x")), {})
x = np.zeros(4, np.float32)
model.to_onnx(file, {"x": (4,)})
options = onnxruntime.SessionOptions()
options.add_session_config_entry("passlib.libraries", library)
options.register_custom_ops_library(pl.ort_library())
(found,) = onnxruntime.InferenceSession(file, options).run(None, {"x": x})
assert found.tolist() == model(x).tolist(), (found, model(x))
"""


def test_random_numbers(plugin: Callable[[str], Path], tmp_path: Path) -> None:
    """Draw in a new process: the generators of this one have moved on."""
    command = [sys.executable, "-c", DRAW, str(plugin("operators")), str(tmp_path / "m.onnx")]
    subprocess.run(command, check=True)


PLAIN = """
import sys, numpy as np, onnxruntime
library, file, shim = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.register_custom_ops_library(shim)
session = onnxruntime.InferenceSession(file, options)
print(session.run(None, {"x": np.array([[1, -1, 2]], np.float32)})[0].tolist())
assert "passlib" not in sys.modules
del session, options
"""


def test_without_passlib(
    library: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = library("graph_operators")
    exported(pl.sym.tp_counter(pl.sym.var("x")), {}, {"x": X[:1]}, tmp_path / "m.onnx")
    monkeypatch.setenv("PASSLIB_LIBRARIES", str(path))
    command = [sys.executable, "-c", PLAIN, str(path), str(tmp_path / "m.onnx"), pl.ort_library()]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "[[2.0, 0.0, 3.0]]\n"
