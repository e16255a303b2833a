"""`passlib.test_utils` and `passlib.viz`."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import passlib as mx
from passlib import nd, viz
from passlib import test_utils as utils
from passlib.errors import GraphError, PasslibError

A = np.array([1, 2, 3], np.float64)


@pytest.mark.parametrize(
    ("other", "tolerances", "equal"),
    [
        (A, {}, True),
        (A * (1 + 1e-6), {}, True),
        (A * (1 + 1e-4), {}, False),
        ((A * (1 + 5e-5)).astype(np.float32), {}, True),
        ((A + 1e-2).astype(np.float16), {}, True),
        (A + 1e-2, {"atol": 0.1}, True),
        (A + 1e-2, {"rtol": 0.1}, True),
        (nd.array(A), {}, True),
        (np.array([1, 2, np.nan]), {}, False),
    ],
)
def test_tolerances_are_those_of_the_less_exact_type(
    other: np.ndarray, tolerances: dict[str, float], equal: bool
) -> None:
    assert utils.almost_equal(A, other, **tolerances) is equal
    if equal:
        utils.assert_almost_equal(A, other, **tolerances)
    else:
        with pytest.raises(AssertionError, match="times the tolerance"):
            utils.assert_almost_equal(A, other, **tolerances)


def test_message_names_the_place_of_the_largest_difference() -> None:
    with pytest.raises(AssertionError, match=r"mine and theirs differ .* at \(1,\): 2.0.* 5.0"):
        utils.assert_almost_equal(A, [1, 5, 3.5], names=("mine", "theirs"))
    with pytest.raises(AssertionError, match="shape"):
        utils.assert_almost_equal(A, A[:1], rtol=10, use_broadcast=False)


def test_nan() -> None:
    some = np.array([np.nan, 1])
    utils.assert_almost_equal(some, some, equal_nan=True)
    utils.assert_almost_equal_ignore_nan(some, np.array([2.0, 1]))
    assert utils.same(nd.array([1, 2]), np.array([1, 2]))
    assert not utils.same(nd.array([1, 2]), np.array([1, 3]))


@pytest.mark.parametrize("stype", ["default", "csr", "row_sparse"])
def test_random_arrays(stype: str) -> None:
    made = utils.rand_ndarray((20, 30), stype, density=0.5, dtype="float64")
    assert (made.stype, made.shape, made.dtype) == (stype, (20, 30), np.float64)
    if stype != "default":
        assert 0.2 < np.count_nonzero(made.asnumpy()) / 600 < 0.8
    kept, parts = utils.rand_sparse_ndarray((4, 3), "csr", density=1.0)
    assert parts[0].asnumpy().tolist() == [0, 3, 6, 9, 12]
    assert kept.asnumpy().min() > 0
    shuffled = utils.rand_ndarray((5, 40), "csr", 1.0, shuffle_csr_indices=True)
    assert sorted(shuffled.indices.asnumpy()[:40]) != shuffled.indices.asnumpy()[:40].tolist()


def test_random_shapes() -> None:
    assert all(1 <= size <= 4 for size in utils.rand_shape_nd(50, 4))
    assert len(utils.rand_shape_2d()) == 2
    assert len(utils.rand_shape_3d(1, 1, 1)) == 3


def test_forward() -> None:
    double = mx.sym.var("x") * 2
    assert utils.simple_forward(double, x=A).tolist() == [2, 4, 6]
    utils.check_symbolic_forward(double, [A], [A * 2])
    utils.check_symbolic_forward(double, {"x": nd.array(A)}, {double.list_outputs()[0]: A * 2})
    with pytest.raises(AssertionError, match="EXPECTED_"):
        utils.check_symbolic_forward(double, [A], [A * 3])
    assert utils.same_symbol_structure(double, mx.sym.var("y") * 3)
    assert not utils.same_symbol_structure(double, mx.sym.var("y") + 3)


def test_default_context() -> None:
    assert utils.default_context() == mx.cpu()
    utils.set_default_context(mx.cpu(3))
    assert utils.default_context() == nd.ones(1).context == mx.cpu(3)
    utils.set_default_context(mx.cpu())


def network() -> mx.Symbol:
    data = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="conv")
    data = mx.sym.Pooling(mx.sym.BatchNorm(data, name="bn"), kernel=(2, 2), name="pool")
    dense = mx.sym.FullyConnected(data, num_hidden=10, name="fc")
    joined = mx.sym.concat(dense, dense, dim=1, name="both")
    return mx.sym.SoftmaxOutput(joined, name="softmax")


def test_summary(capsys: pytest.CaptureFixture[str]) -> None:
    viz.print_summary(network(), shape={"data": (1, 3, 8, 8)})
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if "(" in line]
    assert rows == [
        ["Layer", "(type)", "Output", "Shape", "Param", "#", "Previous", "Layer"],
        ["data(null)", "3x8x8", "0"],
        ["conv(Convolution)", "4x6x6", "112", "data"],
        ["bn(BatchNorm)", "4x6x6", "8", "conv"],
        ["pool(Pooling)", "4x5x5", "0", "bn"],
        ["fc(FullyConnected)", "10", "1010", "pool"],
        ["both(Concat)", "20", "0", "fc"],
        ["softmax(SoftmaxOutput)", "20", "0", "both"],
    ]
    assert lines[-2] == "Total params: 1130"
    assert {len(line) for line in lines if line[0] in "_="} == {120}


def test_summary_without_shapes(capsys: pytest.CaptureFixture[str]) -> None:
    viz.print_summary(network(), line_length=80)
    assert "Total params: 0" in capsys.readouterr().out
    with pytest.raises(GraphError, match="no variable 'nonsense'"):
        viz.print_summary(network(), shape={"nonsense": (1,)})
    with pytest.raises(TypeError, match="not int"):
        viz.print_summary(3)


class Digraph:
    """Stands for graphviz's class, which is not installed everywhere."""

    def __init__(self, **settings: str) -> None:
        self.settings, self.nodes, self.edges = settings, {}, []

    def node(self, name: str, **look: str) -> None:
        self.nodes[name] = look

    def edge(self, tail: str, head: str, **look: str) -> None:
        self.edges.append((tail, head, look["label"]))


def test_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "passlib.mxnet.viz.require", lambda *_, **__: SimpleNamespace(Digraph=Digraph)
    )
    drawing = viz.plot_network(network(), title="t", shape={"data": (1, 3, 8, 8)})
    assert drawing.settings == {"name": "t", "format": "pdf"}
    assert drawing.nodes["conv"]["label"] == "Convolution\n3x3/1, 4"
    assert drawing.nodes["fc"]["label"] == "FullyConnected\n10"
    assert drawing.nodes["data"]["shape"] == "oval"
    assert "conv_weight" not in drawing.nodes
    assert ("conv", "data", "3x8x8") in drawing.edges
    assert drawing.edges.count(("both", "fc", "10")) == 2
    everything = viz.plot_network(network(), hide_weights=False, node_attrs={"shape": "circle"})
    assert ("conv", "conv_weight", "") in everything.edges
    assert everything.nodes["conv"]["shape"] == "circle"


def test_names_in_a_drawing_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "passlib.mxnet.viz.require", lambda *_, **__: SimpleNamespace(Digraph=Digraph)
    )
    x = mx.sym.var("x\x1b[2J\n")
    drawing = viz.plot_network(mx.sym.relu(mx.sym.relu(x, name="a\x1b"), name="a\\x1b"))
    assert list(drawing.nodes) == [r"x\x1b[2J\n", r"a\x1b#1", r"a\x1b#2"]
    assert [look["label"] for look in drawing.nodes.values()] == [
        r"x\x1b[2J\n", r"a\x1b", r"a\x1b"
    ]  # fmt: skip


def test_drawing_needs_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(PasslibError, match="graphviz"):
        viz.plot_network(network())


def test_consistent_outputs() -> None:
    x = mx.sym.var("x")
    square, other = mx.sym.square(x, name="y"), x * x
    kinds = [
        {"ctx": mx.cpu(), "x": (2, 3), "type_dict": {"x": k}} for k in (np.float16, np.float64)
    ]
    found = utils.check_consistency(square, kinds)
    assert found["y_output"].dtype == np.float64
    given = {"x": np.full((2, 3), 3.0)}
    truth = {"y_output": np.full((2, 3), 9.0)}
    utils.check_consistency(square, kinds, arg_params=given, ground_truth=truth, grad_req="null")
    same = mx.sym.broadcast_mul(x, x, name="y")
    utils.check_consistency([square, same], [{"x": (4,)}] * 2, use_uniform=True, scale=0.1)
    states = mx.sym.BatchNorm(x, name="y", fix_gamma=False)
    utils.check_consistency([states, states], [{"x": (2, 3)}] * 2, aux_params={
        "y_moving_mean": np.ones(3), "y_moving_var": np.ones(3)
    })  # fmt: skip
    for symbols, contexts, message in (
        ([square, mx.sym.square(x + 1, name="y")], [{"x": (4,)}] * 2, "differ"),
        ([square, other], [{"x": (4,)}] * 2, "different outputs"),
        ([square, square], [{"x": (4,)}, {"x": (3,)}], None),
        (square, [{"x": (4,)}], "two items"),
    ):
        with pytest.raises((AssertionError, ValueError), match=message):
            utils.check_consistency(symbols, contexts)


def test_differences_are_printed_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    x = mx.sym.var("x")
    pair = [mx.sym.square(x, name="y"), mx.sym.abs(x, name="y")]
    utils.check_consistency(pair, [{"x": (4,)}] * 2, raise_on_err=False)
    assert "differ" in capsys.readouterr().err


def test_use_np() -> None:
    with pytest.raises(PasslibError, match=r"mx\.np"):
        utils.use_np(test_nan)
