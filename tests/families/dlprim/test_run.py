"""Results of DLPrimitives' operators, compared with the original program and PyTorch."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from dlprim_files import (
    DATA,
    SHARED,
    dialect,
    golden_array,
    load,
    network,
    operator,
    random_inputs,
    run_all,
    with_weights,
)
from passlib.dialects.inference import infer
from passlib.errors import PasslibError, UnsupportedError
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.runtime.session import Session

pytest.importorskip("onnxruntime")

GOLDEN = sorted(DATA.glob("*.golden.json"))
OPCASES = sorted((SHARED / "opcases").glob("test_case_*"))
RTOL, ATOL = 1e-5, 1e-6


def close(found: Any, wanted: Any, name: str) -> None:
    np.testing.assert_allclose(found, wanted, rtol=RTOL, atol=ATOL, err_msg=name)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.split(".")[0])
def test_original_program(path: Path) -> None:
    golden = json.loads(path.read_text())
    model = passlib.load(path.with_name(path.name.replace(".golden", "")))
    weights = {name: golden_array(t) for name, t in golden.get("params", {}).items()}
    for name, array in {**model.args, **model.aux}.items():
        np.testing.assert_array_equal(array, weights[name])
    states = set(model.symbol.list_auxiliary_states())
    args = {name: array for name, array in weights.items() if name not in states}
    aux = {name: array for name, array in weights.items() if name in states}
    model = Model(model.symbol, args, aux, "dlprim", template=model._template)
    after = golden.get("params_after_forward")
    inputs = {name: golden_array(tensor) for name, tensor in golden["inputs"].items()}
    outputs = model.run(inputs, train=after is not None)
    assert sorted(golden["outputs"]) == sorted(outputs)
    for name, tensor in golden["outputs"].items():
        close(outputs[name], golden_array(tensor), name)
    for name, tensor in (after or {}).items():
        close({**model.args, **model.aux}[name], golden_array(tensor), name)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.split(".")[0])
def test_inferred_shapes(path: Path) -> None:
    golden = json.loads(path.read_text())
    model = passlib.load(path.with_name(path.name.replace(".golden", "")))
    outputs = infer(model.symbol, {}).outputs
    for name, entry in zip(model.outputs, model.symbol.entries, strict=True):
        assert list(outputs[entry.node][0].shape) == golden["outputs"][name]["shape"]
    for node, (spec,) in outputs.items():
        if node.is_variable and node.name in golden.get("params", {}):
            assert list(spec.shape) == golden["params"][node.name]["shape"]


def test_all_golden_files_are_there() -> None:
    assert len(GOLDEN) == 21


@pytest.mark.sample(6)
@pytest.mark.parametrize("path", OPCASES, ids=lambda path: path.name.split(".")[0])
def test_pytorch(path: Path, tmp_path: Path) -> None:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        described = json.load(file)
    kind = described["operator"]
    for test in described["tests"]:
        weights = {
            f"op.{i}": np.array(values, np.float32).reshape(spec["shape"])
            for i, (values, spec) in enumerate(
                zip(test.get("param_tensors", []), test.get("param_specs", []), strict=True)
            )
        }
        for case in test["cases"]:
            inputs = {
                f"x{i}": np.array(values, np.float32).reshape(shape)
                for i, (values, shape) in enumerate(
                    zip(case["in_tensors"], case["in_shapes"], strict=True)
                )
            }
            given = [{"name": n, "shape": list(a.shape)} for n, a in inputs.items()]
            layer = operator("op", kind, list(inputs), **test["options"])
            model = load(tmp_path, network(layer, inputs=given))
            model = Model(model.symbol, weights, {}, "dlprim", template=model._template)
            outputs, _ = run_all(model, inputs, train=test.get("train", False))
            assert len(outputs) == len(case["out_tensors"])
            for found, values, shape in zip(
                outputs, case["out_tensors"], case["out_shapes"], strict=True
            ):
                assert list(found.shape) == shape
                message = f"{test['options']} {case['in_shapes']}"
                close(found.ravel(), np.array(values, np.float32), message)


def test_all_opcases_are_there() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared test data are absent")
    assert len(OPCASES) == 19


def test_model_run(tmp_path: Path) -> None:
    layers = [
        operator("h", "InnerProduct", outputs=4, activation="relu"),
        operator("p", "Softmax", "h"),
    ]
    model = with_weights(load(tmp_path, network(*layers, shape=(2, 3))))
    data = np.ones((5, 3), np.float32)
    hidden = np.maximum(data @ model.args["h.0"].T + model.args["h.1"], 0)
    exponential = np.exp(hidden - hidden.max(1, keepdims=True))
    close(model.run({"data": data})["p"], exponential / exponential.sum(1, keepdims=True), "p")


def test_to_onnx_has_the_shapes_of_the_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = passlib.load(DATA / "onnx2dp_lenet.json")
    model.to_onnx(tmp_path / "lenet.onnx")
    graph = onnx.load(tmp_path / "lenet.onnx").graph
    dims = [size.dim_value for size in graph.input[0].type.tensor_type.shape.dim]
    assert dims == list(dialect.input_types(model.data())["data"].shape)


def test_open_batch(tmp_path: Path) -> None:
    """Sizes stated in the file may stay open in ONNX if the operators allow it."""
    onnxruntime = pytest.importorskip("onnxruntime")
    layers = [
        operator("c", "Convolution2D", channels_out=4, kernel=3, pad=1, activation="relu6"),
        operator("b", "BatchNorm", "c", "c", affine=False),
        operator("p", "Pooling2D", "c", kernel=2, stride=2, mode="avg"),
        operator("s", "Slice", "p", begin=1),
        operator("i", "Interpolation", "s", method="bilinear", scale_y=2, scale_x=3),
        operator("g", "GlobalPooling", "i"),
        operator("q", "Squeeze", "g", dims=[2, -1]),
        operator("f", "InnerProduct", "q", outputs=3),
        operator("y", "Softmax", "f", log=True),
    ]
    model = with_weights(load(tmp_path, network(*layers)))
    model.to_onnx(tmp_path / "net.onnx", shapes={"data": (None, 3, 4, 4)})
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    data = np.random.default_rng(0).standard_normal((5, 3, 4, 4)).astype(np.float32)
    (found,) = session.run(None, {"data": data})
    close(found, model.run({"data": data})["y"], "y")


def test_in_place_through_an_alias(tmp_path: Path) -> None:
    """Writing to the output of a Flatten changes its input, and vice versa."""
    layers = [
        operator("flat", "Flatten"),
        operator("first", "Threshold", "data", "first"),
        operator("relu", "Activation", "flat", "flat", activation="relu"),
        operator("sum", "Elementwise", ["data", "first"]),
        operator("more", "Hardtanh", "data", "data", max_val=0.5),
        operator("total", "Reduction", "flat", start_axis=1),
    ]
    description = network(*layers, shape=(2, 3, 2), outputs=["sum", "total", "data", "flat"])
    model = load(tmp_path, description)
    data = random_inputs(model)["data"]
    relu = np.maximum(data, 0)
    outputs, _ = run_all(model, {"data": data})
    final = np.minimum(relu, 0.5)
    close(outputs[0], relu + (data > 0), "sum")
    close(outputs[1], final.reshape(2, -1).sum(1, keepdims=True), "total")
    close(outputs[2], final, "data")
    close(outputs[3], final.reshape(2, -1), "flat")
    model.save(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == (tmp_path / "net.json").read_bytes()


def test_shared_running_statistics_are_updated_twice(tmp_path: Path) -> None:
    names = ["mean", "var"]
    layers = [
        operator("a", "BatchNorm", momentum=0.25, affine=False, params=names),
        operator("b", "BatchNorm", "a", momentum=0.5, affine=False, params=names),
        operator("c", "BatchNorm", "b", affine=False, use_global_stats=True, params=names),
    ]
    model = with_weights(load(tmp_path, network(*layers, outputs=["b", "c"])))
    inputs = random_inputs(model)
    (b, c), updates = run_all(model, inputs, train=True)
    x = inputs["data"]
    mean, var = (np.asarray(model.aux[name], np.float64) for name in names)
    for momentum in (0.25, 0.5):
        batch, spread = x.mean((0, 2, 3)), x.var((0, 2, 3))
        count = x.size // x.shape[1]
        mean = mean * (1 - momentum) + batch * momentum
        var = var * (1 - momentum) + spread * momentum * count / (count - 1)
        x = (x - batch[:, None, None]) / np.sqrt(spread[:, None, None] + 1e-5)
    np.testing.assert_allclose(b, x, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(updates["mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(updates["var"], var, rtol=1e-4, atol=1e-5)
    expected = (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)
    assert not run_all(model, inputs)[1]


@pytest.mark.parametrize("label", [[-1, 0], [0, 3]])
def test_labels_out_of_range(tmp_path: Path, label: list[int]) -> None:
    inputs = [{"name": "x", "shape": [2, 3]}, {"name": "t", "shape": [2], "dtype": "int"}]
    feeds = {"x": np.ones((2, 3), np.float32), "t": np.array(label, np.int32)}
    nll = load(tmp_path, network(operator("l", "NLLLoss", ["x", "t"]), inputs=inputs))
    close(run_all(nll, feeds)[0][0], [-0.5], "one of two labels counts")
    loss = load(tmp_path, network(operator("l", "SoftmaxWithLoss", ["x", "t"]), inputs=inputs))
    with pytest.raises(PasslibError, match=r"node 'l' \(SoftmaxWithLoss\): ONNX Runtime failed"):
        run_all(loss, feeds)


def test_a_kernel_that_overhangs(tmp_path: Path) -> None:
    layer = operator("c", "Convolution2D", channels_out=1, kernel=3, stride=2, bias=False)
    model = with_weights(load(tmp_path, network(layer, shape=(1, 1, 2, 4))))
    data = random_inputs(model)["data"]
    weight = np.asarray(model.args["c.0"])[0, 0]
    close(
        run_all(model, {"data": data})[0][0].ravel(), [(data[0, 0, :, :3] * weight[:2]).sum()], ""
    )


POOLS: list[dict[str, Any]] = [
    {"kernel": 2, "pad": 2},
    {"kernel": [1, 2], "pad": [1, 2], "stride": [2, 1]},
    {"kernel": 3, "stride": 2, "pad": 1, "ceil_mode": True},
    {"kernel": 2, "stride": 3, "ceil_mode": True},
]


@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("mode", ["max", "avg"])
@pytest.mark.parametrize("options", POOLS, ids=str)
def test_pooling_by_hand(
    tmp_path: Path, options: dict[str, Any], mode: str, count_include_pad: bool
) -> None:
    layer = operator("p", "Pooling2D", mode=mode, count_include_pad=count_include_pad, **options)
    model = load(tmp_path, network(layer, shape=(1, 2, 5, 6)))
    data = random_inputs(model)["data"]
    found = run_all(model, {"data": data})[0][0]
    pairs = [
        options.get(key, default) for key, default in (("kernel", 0), ("stride", 1), ("pad", 0))
    ]
    kernel, stride, pad = ([v, v] if isinstance(v, int) else v for v in pairs)
    for row, column in np.ndindex(*found.shape[2:]):
        window, counted = [], 1
        for place, axis in ((row, 0), (column, 1)):
            size = data.shape[2 + axis]
            start = place * stride[axis] - pad[axis]
            stop = start + kernel[axis]
            window.append(slice(max(start, 0), max(min(stop, size), 0)))
            inside = min(stop, size + pad[axis]) - start
            counted *= inside if count_include_pad else len(range(*window[-1].indices(size)))
        cells = data[(slice(None), slice(None), *window)]
        if not cells[0, 0].size:
            wanted = np.full((1, 2), np.finfo(np.float32).min if mode == "max" else 0)
        else:
            wanted = cells.max((2, 3)) if mode == "max" else cells.sum((2, 3)) / counted
        close(found[:, :, row, column], wanted, f"{row}, {column}")


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("pad", "output_pad"), [(0, [2, 3]), (1, [2, 3]), (6, [7, 8])])
def test_output_pad_as_large_as_the_stride(
    tmp_path: Path, pad: int, output_pad: list[int], bias: bool
) -> None:
    options = {"channels_out": 2, "kernel": 2, "stride": 2, "pad": pad, "bias": bias}
    layer = operator("t", "TransposedConvolution2D", output_pad=output_pad, **options)
    model = with_weights(load(tmp_path, network(layer, shape=(1, 1, 3, 3))))
    data = random_inputs(model)["data"]
    found = run_all(model, {"data": data})[0][0]
    weight = np.asarray(model.args["t.0"])
    full = np.zeros((1, 2, 20, 20), np.float32)
    for row, column in np.ndindex(3, 3):
        rows, columns = slice(2 * row, 2 * row + 2), slice(2 * column, 2 * column + 2)
        full[:, :, rows, columns] += data[:, :, row, column, None, None] * weight[0][None]
    if bias:
        full += np.asarray(model.args["t.1"])[None, :, None, None]
    height, width = found.shape[2:]
    assert [height, width] == [6 - 2 * pad + more for more in output_pad]
    close(found, full[:, :, pad : pad + height, pad : pad + width], "")


def test_integers_are_refused(tmp_path: Path) -> None:
    inputs = [{"name": "x", "shape": [2, 3], "dtype": "int"}]
    model = load(tmp_path, network(operator("a", "Abs", "x"), inputs=inputs))
    with pytest.raises(UnsupportedError, match=r"node 'a' \(Abs\): computes on real numbers"):
        run_all(model, {"x": np.ones((2, 3), np.int32)})


def test_updates_leave_the_weights_alone(tmp_path: Path) -> None:
    model = with_weights(load(tmp_path, network(operator("bn", "BatchNorm"))))
    before = {name: np.array(array) for name, array in model.aux.items()}
    inputs = random_inputs(model)
    specs = {name: TypeSpec(a.dtype, a.shape) for name, a in inputs.items()}
    lowered = dialect.lower(model.symbol, specs, {**model.args, **model.aux}, train=True)
    assert set(lowered.updates) == {"bn.0", "bn.1"}
    assert len(lowered.output_names) == 1
    assert len(Session(lowered).run(inputs)) == 1
    for name, array in before.items():
        np.testing.assert_array_equal(model.aux[name], array)


def test_steps_of_training_compile_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def counting(*args: Any, **options: Any) -> Session:
        compiled.append(args)
        return Session(*args, **options)

    monkeypatch.setattr("passlib.runtime.sessions.Session", counting)
    layer = operator("bn", "BatchNorm", momentum=0.5)
    model = with_weights(load(tmp_path, network(layer, shape=(4, 2, 3, 3))))
    start = {name: np.array(array) for name, array in model.aux.items()}
    batches = [random_inputs(model, seed) for seed in (1, 2, 3)]
    for batch in batches:
        model.run(batch, train=True)
    assert len(compiled) == 1
    mean = start["bn.0"]
    for batch in batches:
        mean = 0.5 * mean + 0.5 * batch["data"].mean((0, 2, 3))
    close(model.aux["bn.0"], mean, "the running mean of all steps")
    (first,) = model.run(batches[0]).values()
    (again,) = model.run(batches[0]).values()
    np.testing.assert_array_equal(first, again)
    assert len(compiled) == 2, "inference has the statistics compiled in, once"
