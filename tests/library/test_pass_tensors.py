"""Tensors that passes get: a new one each time; what the host cannot see is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import passlib
from passlib.errors import PassError

LARGE = 40_000
"""Elements of a weight whose pages are lent rather than copied."""


@pytest.fixture(autouse=True)
def tensors(load_plugin: Callable[[str], passlib.library.Library]) -> None:
    load_plugin("tensors")


@pytest.fixture(params=["flat", "json"])
def handover(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSLIB_HANDOVER", request.param)


def symbol() -> passlib.Symbol:
    x, w, v = (passlib.sym.var(name) for name in ("x", "w", "v"))
    return passlib.sym.broadcast_add(passlib.sym.dot(x, w), v, name="sum")


def weights() -> dict[str, np.ndarray]:
    return {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "v": np.ones(3, np.float32),
    }


@pytest.mark.usefixtures("handover")
def test_a_second_allocation_keeps_the_first_one() -> None:
    args = weights()
    symbol().optimize_for("doubleTwice", args)
    np.testing.assert_array_equal(args["w"], 4 * weights()["w"])
    np.testing.assert_array_equal(args["v"], 4 * weights()["v"])


@pytest.mark.usefixtures("handover")
def test_a_state_stays_one_however_it_is_allocated(tmp_path: Path) -> None:
    names = ("gamma", "beta", "moving_mean", "moving_var")
    arrays = {f"bn_{name}": np.ones(3, np.float32) for name in names}
    states = {name: arrays.pop(name) for name in ("bn_moving_mean", "bn_moving_var")}
    normalized = passlib.sym.BatchNorm(passlib.sym.var("x"), name="bn")
    model = passlib.Model(normalized, arrays, states).optimize_for("doubleTwice")
    assert (model.args.keys(), model.aux.keys()) == (arrays.keys(), states.keys())
    np.testing.assert_array_equal(model.aux["bn_moving_mean"], [4, 4, 4])
    model.save(tmp_path / "new")
    assert passlib.load(tmp_path / "new-symbol.json").aux.keys() == states.keys()


REFUSED = {
    "shape": r"the shape of the tensor of 'w' was changed.*alloc_arg",
    "rank": "the shape of the tensor of 'w' was changed",
    "dtype": "the dtype of the tensor of 'w' was changed",
    "storage": "the storage type of the tensor of 'w' was changed",
    "pointer": "the data pointer of the tensor of 'w' was changed",
    "whole": "the shape of the tensor of 'w' was changed",
    "view": "the dltensor of the tensor of 'w' was changed",
    "strides": "the dltensor of the tensor of 'w' was changed",
    "foreign": "variable 'w' has a tensor that the host did not lend",
    "other": "variable 'w' has the tensor of 'v'",
    "given away": "variable 'v' has the tensor of 'w'",
    "renamed": "variable 'w2' has the tensor of 'w'",
}


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("what", REFUSED)
def test_a_change_that_the_host_cannot_see_is_refused(what: str, fresh: bool) -> None:
    args = weights()
    given = dict(args)
    with pytest.raises(PassError, match=REFUSED[what]):
        symbol().optimize_for("changeTensor", args, what=what, fresh=fresh)
    assert args == given
    for name, array in weights().items():
        np.testing.assert_array_equal(args[name], array)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("what", ["nothing", "dropped"])
def test_what_changes_nothing_is_allowed(what: str, fresh: bool) -> None:
    args = weights()
    symbol().optimize_for("changeTensor", args, what=what, fresh=fresh)
    np.testing.assert_array_equal(args["w"], np.zeros((2, 3)) if fresh else weights()["w"])


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize("frozen", [False, True])
def test_writes_to_what_was_only_to_be_read(size: int, frozen: bool) -> None:
    args = {"w": np.zeros((2, size), np.float32), "v": np.ones(size, np.float32)}
    for array in args.values():
        array.flags.writeable = not frozen
    for name in ("w", "v"):
        with pytest.raises(PassError, match=f"the pass wrote to the weight '{name}'.*alloc_arg"):
            symbol().optimize_for("writeOnDemand", args, name=name)
    assert not args["w"].any()
    assert (args["v"] == 1).all()


def test_writes_to_weights_of_a_file(tmp_path: Path) -> None:
    sizes = {"w": (4, LARGE), "v": (LARGE,), "b": (3,)}
    arrays = {name: np.ones(size, np.float32) for name, size in sizes.items()}
    graph = helper.make_graph(
        [helper.make_node("Sum", [*arrays], ["y"], name="sum")],
        "weights",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    before = path.read_bytes()
    model = passlib.load(path)
    for name in sizes:
        with pytest.raises(PassError, match=f"the pass wrote to the weight '{name}'"):
            model.optimize_for("writeOnDemand", name=name)
        assert (np.asarray(model.args[name]) == 1).all()
    made = model.optimize_for("sumInThreads")
    found = {node.name: node.attrs["__sum__"] for node in made.symbol.nodes() if node.op == "null"}
    assert found == {name: f"{array.size:.6f}" for name, array in arrays.items()}
    assert path.read_bytes() == before
