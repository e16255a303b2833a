"""Running lowered models on ONNX Runtime, and writing them as ONNX files."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

import places
from mxnet_graph import PlainGraph, graph_of, read_graph
from passlib import runtime
from passlib.errors import GraphError, PasslibError
from passlib.graph.node import Entry, Node
from passlib.lowering import Lowered, TypeSpec
from passlib.mxnet.lower import lower
from passlib.mxnet.nd.files import load_weights

DATA = places.DATA / "mxnet" / "models"
MODELS = sorted(path.name[: -len("-io.npz")] for path in DATA.glob("*-io.npz"))
FLOAT32 = np.dtype(np.float32)
DENSE = {"num_hidden": "2", "no_bias": "True"}


def model(name: str) -> tuple[PlainGraph, dict[str, np.ndarray], dict[str, np.ndarray]]:
    graph = read_graph((DATA / f"{name}-symbol.json").read_text(encoding="utf-8"))
    weights = load_weights(DATA / f"{name}-0000.params")
    params: dict[str, Any] = {key.split(":", 1)[1]: value for key, value in weights.items()}
    with np.load(DATA / f"{name}-io.npz") as file:
        return graph, params, dict(file)


def lowered_model(name: str) -> tuple[Lowered, dict[str, np.ndarray], list[np.ndarray]]:
    graph, params, io = model(name)
    feeds = {key[3:]: array for key, array in io.items() if key.startswith("in/")}
    outputs = [io[f"out/{i}"] for i in range(len(io) - len(feeds))]
    specs = {key: TypeSpec(array.dtype, array.shape) for key, array in feeds.items()}
    return lower(graph, specs, params), feeds, outputs


def dense(weight: np.ndarray, *, batch: int | None = 1) -> Lowered:
    graph = graph_of("FullyConnected", ["x", "w"], DENSE)
    return lower(graph, {"x": TypeSpec(weight.dtype, (batch, 3))}, {"w": weight})


def test_there_are_four_models() -> None:
    assert len(MODELS) == 4


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimization", ["all", "none"])
def test_models_compute_what_mxnet_computed(name: str, optimization: str) -> None:
    lowered, feeds, wanted = lowered_model(name)
    outputs = runtime.Session(lowered, optimization=optimization).run(feeds)
    assert len(outputs) == len(wanted)
    for output, want in zip(outputs, wanted, strict=True):
        assert output.dtype == want.dtype
        np.testing.assert_allclose(output, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("external", [False, True])
def test_saved_models_run_elsewhere(
    name: str, external: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if external:
        monkeypatch.setattr("passlib.runtime.export._INLINE_LIMIT", 0)
    lowered, feeds, wanted = lowered_model(name)
    path = tmp_path / "model.onnx"
    runtime.save_onnx(lowered, path)
    assert (tmp_path / "model.onnx.data").exists() == external
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == list(feeds)
    for output, want in zip(session.run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(output, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_saving_leaves_the_lowered_model_as_it_is(tmp_path: Path) -> None:
    lowered = dense(np.ones((2, 3), np.float32))
    before = lowered.model.SerializeToString()
    runtime.save_onnx(lowered, tmp_path / "model.onnx")
    assert lowered.model.SerializeToString() == before


def test_weights_are_used_where_they_lie() -> None:
    weight = np.ones((2, 3), np.float32)
    session = runtime.Session(dense(weight))
    (wrapped,) = session._weights.values()
    assert wrapped.data_ptr() == weight.ctypes.data


def test_weights_stay_alive_with_the_session() -> None:
    weights = [np.full((500, 500), 2, np.float32) for _ in range(8)]
    entry = Entry(Node("null", "x"))
    for index in range(len(weights)):
        inputs = [entry, Entry(Node("null", f"w{index}"))]
        entry = Entry(Node("broadcast_mul", f"n{index}", {}, inputs, 1))
    params = {f"w{index}": weight for index, weight in enumerate(weights)}
    spec = TypeSpec(FLOAT32, (500, 500))
    session = runtime.Session(lower(PlainGraph((entry,)), {"x": spec}, params))
    weights.clear()
    params.clear()
    gc.collect()
    junk = [np.zeros((500, 500), np.float32) for _ in range(16)]
    (result,) = session.run({"x": np.ones((500, 500), np.float32)})
    assert (result == 2**8).all()
    assert len(junk) == 16


def test_strided_and_foreign_arrays_are_taken() -> None:
    weight = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::2]
    data = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::-1]
    graph = graph_of("FullyConnected", ["x", "w"], DENSE)
    (result,) = runtime.run(graph, {"x": data}, {"w": weight})
    np.testing.assert_allclose(result, data @ weight.T)
    (result,) = runtime.run(graph, {"x": data}, {"w": weight.astype(">f4")})
    np.testing.assert_allclose(result, data @ weight.T)


def test_brain_floats() -> None:
    data = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    weight = np.full((2, 3), 0.5).astype(ml_dtypes.bfloat16)
    graph = graph_of("FullyConnected", ["x", "w"], DENSE)
    (result,) = runtime.run(graph, {"x": data}, {"w": weight})
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.astype(np.float32), [[1.5, 1.5], [6, 6]])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "float16", "float64"])
def test_sums_of_every_type(dtype: str) -> None:
    data = np.array([1, 2, 3], dtype)
    (result,) = runtime.run(graph_of("elemwise_add", ["a", "b"]), {"a": data, "b": data}, {})
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, [2, 4, 6])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    (result,) = runtime.run(graph_of("relu", ["x"]), {"x": np.ones(shape, np.float32)}, {})
    assert result.shape == shape


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, r"input 'x' \(float32 \(1, 3\)\) is missing"),
        ({"x": np.ones((1, 3))}, r"element type float64, the model wants float32.*astype"),
        ({"x": np.ones((1, 4), np.float32)}, r"shape \(1, 4\), the model wants float32 \(1, 3\)"),
        ({"x": np.ones(3, np.float32)}, r"shape \(3,\)"),
        ({"x": np.ones((1, 3), np.float32), "y": 1}, "no input 'y'; its inputs are x"),
    ],
)
def test_wrong_feeds(feeds: dict[str, np.ndarray], message: str) -> None:
    session = runtime.Session(dense(np.ones((2, 3), np.float32)))
    with pytest.raises(GraphError, match=message):
        session.run(feeds)
    assert session.run({"x": np.ones((1, 3), np.float32)})[0].tolist() == [[3, 3]]


def test_a_failure_at_run_time_names_the_source_node() -> None:
    rows = [Entry(Node("null", "x")), Entry(Node("null", "index"))]
    graph = PlainGraph((Entry(Node("gather_nd", "pickrows", {}, rows, 1)),))
    specs = {"x": TypeSpec(FLOAT32, (2, 3)), "index": TypeSpec(np.dtype(np.int64), (1, 2))}
    session = runtime.Session(lower(graph, specs, {}), optimization="none")
    feeds = {"x": np.ones((2, 3), np.float32), "index": np.int64([[0, 99]])}
    with pytest.raises(PasslibError, match=r"node 'pickrows' \(gather_nd\): ONNX Runtime failed"):
        session.run(feeds)


def test_unknown_optimization() -> None:
    with pytest.raises(PasslibError, match="none, basic, extended, all, not 'most'"):
        runtime.Session(dense(np.ones((2, 3), np.float32)), optimization="most")


def test_threads() -> None:
    session = runtime.Session(dense(np.ones((2, 3), np.float32)), threads=1)
    assert session.run({"x": np.ones((1, 3), np.float32)})[0].tolist() == [[3, 3]]


def test_importing_needs_numpy_alone() -> None:
    program = (
        "import sys\n"
        "for name in ('onnx', 'onnxruntime', 'ml_dtypes', 'safetensors'):\n"
        "    sys.modules[name] = None\n"
        "import passlib.runtime.session, passlib.dialects.inference\n"
        "from passlib.mxnet.lowering import load_table\n"
        "assert load_table().find('Convolution')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
