"""Passes that ask for weights: what they see, and weights that are computed later."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib
from passlib._core import ScaledArray
from passlib.errors import FormatError, PassError

ROWS, COLUMNS = 64, 1024


@pytest.fixture(autouse=True)
def on_demand(load_plugin: Callable[[str], passlib.library.Library]) -> None:
    load_plugin("on_demand")
    passlib.library.load_standard()


@pytest.fixture(params=["flat", "json"])
def handover(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSLIB_HANDOVER", request.param)


def symbol() -> passlib.Symbol:
    x, w, v = (passlib.sym.var(name) for name in ("x", "w", "v"))
    return passlib.sym.broadcast_add(passlib.sym.dot(x, w), v, name="sum")


def found(made: passlib.Symbol, name: str = "w") -> str:
    return made.attr_dict()[name]["__found__"]


def seen(made: passlib.Symbol) -> dict[str, str]:
    attributes = made.attr_dict()
    return {name: attributes[name]["__seen__"] for name in ("x", "w", "v")}


@pytest.mark.usefixtures("handover")
def test_a_pass_sees_the_elements_that_it_asks_for() -> None:
    whole = np.arange(12, dtype=np.float32).reshape(4, 3)
    args = {
        "w": whole[:, ::2],  # has no memory of its own kind: given
        "v": np.frombuffer(b"\0" + whole[0].tobytes(), np.float32, offset=1, count=3),
    }
    assert not args["v"].flags.aligned
    assert seen(symbol().optimize_for("onDemandLook", args)) == {
        "x": "nothing",
        "w": "given parameter aligned 11.000000",
        "v": "asked parameter aligned 2.000000",
    }
    assert seen(symbol().optimize_for("onDemandLook", args, read=False)) == {
        "x": "nothing",
        "w": "given parameter",
        "v": "asked parameter",
    }


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (300, 300)])
def test_arrays_of_all_sizes_can_be_asked_for(shape: tuple[int, ...]) -> None:
    array = np.full(shape, 7, np.float32)
    array.flags.writeable = False
    described = seen(symbol().optimize_for("onDemandLook", {"v": array, "w": array}))["v"]
    assert described == "asked parameter aligned" + (" 7.000000" if array.size else "")


ORDERS: dict[str, Callable[[list[int]], list[int]]] = {
    "of the graph": lambda numbers: numbers,
    "reversed": lambda numbers: numbers[::-1],
    "of two parts": lambda numbers: numbers[::2] + numbers[1::2],
    "of five parts": lambda numbers: [n for part in range(5) for n in numbers[part::5]],
    "random": lambda numbers: list(map(int, np.random.default_rng(3).permutation(numbers))),
    "of a few": lambda numbers: numbers[100:110] + numbers[:5],
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_dictionary_may_have_any_order(order: str) -> None:
    variables = [passlib.sym.var(f"w{number}") for number in range(200)]
    args = {f"w{n}": np.array([n], np.float32) for n in ORDERS[order](list(range(200)))}
    args["of no variable"] = np.zeros(1, np.float32)
    made = passlib.sym.add_n(*variables).optimize_for("onDemandLook", args, skip_infer=True)
    for name, attributes in made.attr_dict().items():
        if name.startswith("w"):
            lent = f"asked parameter aligned {float(name[1:]):.6f}" if name in args else "nothing"
            assert attributes["__seen__"].replace("given", "asked") == lent


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factors", [[3.0], [1e-3, -2.0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.7]])
def test_scaled_weights_are_computed_for_a_dictionary(dtype: type, factors: list[float]) -> None:
    weight = np.random.default_rng(1).standard_normal((6, 5)).astype(dtype)
    args = {"w": weight, "v": np.ones(5, dtype)}
    made = symbol().optimize_for("onDemandScale", args, factors=factors)
    assert found(made) == "scaled"
    runs = weight.astype(np.float64).reshape(len(factors), -1)
    expected = (runs * np.array(factors)[:, None]).astype(dtype).reshape(6, 5)
    np.testing.assert_array_equal(args["w"], expected)
    assert args["w"].flags.writeable
    assert args["w"] is not weight


@pytest.mark.parametrize(
    ("value", "factors", "expected"),
    [
        (1.0, [2.0, 3.0], "scaled"),
        (np.nan, [2.0, 3.0], "not finite"),
        (-np.inf, [2.0, 3.0], "not finite"),
        (3e38, [1.0, 2.0], "not finite"),
        (3e38, [1.0, 1.1], "scaled"),
        (1e-45, [1.0, 1e-300], "scaled"),
        (1.0, [1.0] * 4, "not on demand"),
        (1.0, [], "not on demand"),
    ],
)
def test_results_that_are_not_finite_or_not_possible(
    value: float, factors: list[float], expected: str
) -> None:
    weight = np.ones((2, 3), np.float32)
    weight[1, 2] = value
    args = {"w": weight}
    made = symbol().optimize_for("onDemandScale", args, factors=factors)
    assert found(made) == expected
    assert (args["w"] is weight) == (expected != "scaled")


@pytest.mark.parametrize("dtype", [np.float16, np.int32])
def test_other_types_are_not_scaled(dtype: type) -> None:
    args = {"w": np.ones((2, 3), dtype)}
    assert found(symbol().optimize_for("onDemandScale", args)) == "not on demand"


def test_elements_that_were_asked_for_are_the_pass_s_to_scale() -> None:
    args = {"w": np.ones((2, 3), np.float32)}
    made = symbol().optimize_for("onDemandScale", args, read=True)
    assert found(made) == "not on demand"


def test_a_scaled_weight_needs_a_dictionary() -> None:
    state = passlib.sym.BatchNorm(passlib.sym.var("x"), name="bn")
    aux = {name: np.ones(3, np.float32) for name in ("bn_moving_mean", "bn_moving_var")}
    with pytest.raises(PassError, match="makes arg 'bn_gamma', but optimize_for was given no args"):
        state.optimize_for(
            "onDemandScale", aux=aux, weight="bn_moving_mean", into="bn_gamma", skip_infer=True
        )


def test_a_state_becomes_an_argument() -> None:
    state = passlib.sym.BatchNorm(passlib.sym.var("x"), name="bn")
    aux = {name: np.full(3, 5, np.float32) for name in ("bn_moving_mean", "bn_moving_var")}
    args = {"bn_gamma": np.ones(3, np.float32), "bn_beta": np.ones(3, np.float32)}
    made = state.optimize_for(
        "onDemandScale", args, aux, weight="bn_moving_mean", into="bn_gamma", skip_infer=True
    )
    assert found(made, "bn_gamma") == "scaled"
    np.testing.assert_array_equal(args["bn_gamma"], np.full(3, 10, np.float32))


def write(path: Path, *, external: bool = False) -> np.ndarray:
    """Write a model whose weight lies unaligned in the file."""
    weight = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"], "fc")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, ROWS))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, COLUMNS))],
        [
            numpy_helper.from_array(np.zeros(COLUMNS, np.float32), "b"),
            numpy_helper.from_array(weight, "w"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=external, location="data.bin", size_threshold=0)
    return weight


@pytest.fixture(params=["inside", "external"])
def scaled(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[passlib.Model, np.ndarray]:
    """A model with a weight that is still to be computed, and the values that it will have."""
    weight = write(tmp_path / "m.onnx", external=request.param == "external")
    factors = np.linspace(0.5, 2, ROWS)
    model = passlib.load(tmp_path / "m.onnx")
    made = model.optimize_for("onDemandScale", factors=list(map(float, factors)))
    assert type(made._args["w"]) is ScaledArray
    np.testing.assert_array_equal(model.args["w"], weight)
    return made, (weight.astype(np.float64) * factors[:, None]).astype(np.float32)


def test_weights_in_memory_are_computed_at_once() -> None:
    """The caller may write to the array that a model has a view of."""
    weight = np.ones((ROWS, COLUMNS), np.float32)
    made = passlib.Model(symbol(), {"w": weight, "v": np.ones(COLUMNS, np.float32)}).optimize_for(
        "onDemandScale", factors=[3.0], skip_infer=True
    )
    weight[:] = 7
    np.testing.assert_array_equal(made.args["w"], np.full((ROWS, COLUMNS), 3, np.float32))
    assert not made.args["w"].flags.writeable


def is_computed(model: passlib.Model) -> bool:
    return type(model._args["w"]) is not ScaledArray


def test_what_a_model_says_computes_nothing(scaled: tuple[passlib.Model, np.ndarray]) -> None:
    model, _ = scaled
    assert model.args["b"].shape == (COLUMNS,)
    assert model.args.nbytes == 4 * COLUMNS * (ROWS + 1)
    assert f"'w': float32 ({ROWS}, {COLUMNS})" in repr(model.args)
    assert model.inputs == ["x"]
    assert f"2 weights of {COLUMNS * (ROWS + 1):,} elements" in repr(model)
    graph_only = model.optimize_for("removeDeadNodes")
    assert not is_computed(model)
    assert not is_computed(graph_only)


def saved(model: passlib.Model, folder: Path, **options: bool) -> np.ndarray:
    path = folder / "saved.onnx"
    model.save(path, **options)
    onnx.checker.check_model(path)
    return weight_in(path)


def weight_in(path: Path) -> np.ndarray:
    tensors = onnx.load(path).graph.initializer
    return next(numpy_helper.to_array(tensor) for tensor in tensors if tensor.name == "w")


USES: dict[str, Callable[[passlib.Model, Path], np.ndarray]] = {
    "args": lambda model, _: model.args["w"],
    "dict": lambda model, _: model.args.copy()["w"],
    "data": lambda model, _: model.data().args["w"],
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)).args["w"],
    "deepcopy": lambda model, _: copy.deepcopy(model).args["w"],
    "rename": lambda model, _: model.rename({"w": "other"}).args["other"],
    "pass": lambda model, _: model.optimize_for("foldBatchNormalization").args["w"],
    "simplify": lambda model, _: model.simplify().args["w"],
    "with_weights": lambda model, _: model.with_weights({"b": np.ones(COLUMNS, np.float32)}).args[
        "w"
    ],
    "extract": lambda model, _: model.extract().args["w"],
    "inline": lambda model, folder: saved(model, folder, external_data=False),
    "external": lambda model, folder: saved(model, folder, external_data=True),
    "as before": saved,
    "to_onnx": lambda model, folder: (
        model.to_onnx(folder / "t.onnx"),
        weight_in(folder / "t.onnx"),
    )[1],
}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_model_has_the_values(
    scaled: tuple[passlib.Model, np.ndarray], use: str, tmp_path: Path
) -> None:
    model, expected = scaled
    np.testing.assert_array_equal(USES[use](model, tmp_path), expected)


def test_a_run_has_the_values(scaled: tuple[passlib.Model, np.ndarray]) -> None:
    model, expected = scaled
    x = np.eye(2, ROWS, dtype=np.float32)
    np.testing.assert_array_equal(model.run({"x": x})["y"], expected[:2])


def test_computed_weights_are_one_array_that_is_read_only(
    scaled: tuple[passlib.Model, np.ndarray],
) -> None:
    model, _ = scaled
    first = model.args["w"]
    assert np.shares_memory(first, model.args["w"])
    assert np.shares_memory(first, model.optimize_for("removeDeadNodes").args["w"])
    assert not first.flags.writeable


def test_scaling_twice(scaled: tuple[passlib.Model, np.ndarray]) -> None:
    model, expected = scaled
    made = model.optimize_for("onDemandScale", factors=[2.0])
    assert found(made.symbol) == "not on demand"  # its elements are given
    np.testing.assert_array_equal(made.args["w"], expected)


def test_saving_in_one_file_leaves_the_weights_to_be_computed(tmp_path: Path) -> None:
    write(tmp_path / "m.onnx")
    model = passlib.load(tmp_path / "m.onnx").optimize_for("onDemandScale", factors=[2.0])
    model.save(tmp_path / "saved.onnx")
    assert not is_computed(model)


def test_arrays_of_all_sizes_are_written_whole(tmp_path: Path) -> None:
    """Blocks of the file end inside elements, and inside of what lies between two arrays."""
    random = np.random.default_rng(2)
    sizes = {"a": 3, "bb": 70_000, "ccc": 131_072, "d": 16_400, "eeeee": 1, "f": 300_001, "gg": 9}
    weights = {
        name + kind.__name__: random.standard_normal(size).astype(kind)
        for name, size in sizes.items()
        for kind in (np.float32, np.float64)
    }
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], [f"{name}_out"]) for name in weights],
        "g",
        [],
        [helper.make_tensor_value_info(f"{name}_out", 0, None) for name in weights],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    model = passlib.load(tmp_path / "m.onnx")
    for name in weights:
        model = model.optimize_for("onDemandScale", weight=name, factors=[1.7], skip_infer=True)
    model.save(tmp_path / "saved.onnx")
    tensors = onnx.load(tmp_path / "saved.onnx").graph.initializer
    assert [tensor.name for tensor in tensors] == [*weights]
    for tensor in tensors:
        weight = weights[tensor.name]
        expected = (weight.astype(np.float64) * 1.7).astype(weight.dtype)
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), expected)


def test_a_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "m.onnx", external=True)
    model = passlib.load(tmp_path / "m.onnx").optimize_for("onDemandScale", factors=[2.0])
    target = tmp_path / "target.onnx"
    target.write_bytes(b"before")
    os.truncate(tmp_path / "data.bin", 4 * COLUMNS)
    with pytest.raises(FormatError, match=r"data\.bin: .*load it again"):
        _ = model.args["w"]
    with pytest.raises(FormatError, match=r"data\.bin: .*load it again"):
        model.save(target)
    assert target.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.bin", "m.onnx", "target.onnx"]
