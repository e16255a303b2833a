"""Lowering of MXNet symbols to ONNX: the resulting model, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

import places
from mxnet_graph import PlainGraph, graph_of
from passlib import runtime, sym
from passlib.errors import GraphError, UnsupportedError
from passlib.graph.node import Entry, Node
from passlib.lowering import Lowerings, Operation, TypeSpec, Value, lower_graph
from passlib.mxnet.lower import lower
from passlib.mxnet.lowering import load_table

FLOAT32 = np.dtype(np.float32)
EXPORTED = places.DATA / "mxnet" / "exporter_operators.json"


def of(*shape: int) -> TypeSpec:
    return TypeSpec(FLOAT32, shape)


def chain(*operators: tuple[str, dict[str, str]], name: str = "n") -> PlainGraph:
    entry = Entry(Node("null", "data"))
    for index, (operator, attrs) in enumerate(operators):
        entry = Entry(Node(operator, f"{name}{index}", attrs, [entry], 1))
    return PlainGraph((entry,))


def test_every_operator_of_mxnets_own_exporter_can_be_lowered() -> None:
    names = json.loads(EXPORTED.read_text(encoding="utf-8"))
    assert len(names) > 140
    assert [name for name in names if load_table().find(name) is None] == []


def test_names_come_from_the_symbol() -> None:
    graph = chain(("relu", {}), ("softmax", {}))
    lowered = lower(graph, {"data": of(2, 3)}, {})
    assert lowered.input_names == ("data",)
    assert lowered.output_names == ("n1_output",)
    assert [node.name for node in lowered.model.graph.node] == ["n0_relu", "n1_softmax"]
    assert {name: node.name for name, node in lowered.source_of.items()} == {
        "n0_relu": "n0",
        "n1_softmax": "n1",
    }
    assert lowered.value_of[graph.entries[0].node, 0].shape == (2, 3)


def test_two_operators_may_share_a_name() -> None:
    data = Entry(Node("null", "data"))
    twins = [Node("relu", "same", {}, [data], 1), Node("tanh", "same", {}, [data], 1)]
    graph = PlainGraph(tuple(Entry(node) for node in twins))
    lowered = lower(graph, {"data": of(2)}, {})
    assert len(set(lowered.output_names)) == 2
    values = runtime.Session(lowered).run({"data": np.float32([-1, 1])})
    np.testing.assert_allclose(values[0], [0, 1])
    np.testing.assert_allclose(values[1], np.tanh([-1, 1]), rtol=1e-6)


def test_two_variables_may_not() -> None:
    total = Node("elemwise_add", "sum", {}, [Entry(Node("null", "x")), Entry(Node("null", "x"))], 1)
    with pytest.raises(GraphError, match="two variables are named 'x'"):
        lower(PlainGraph((Entry(total),)), {"x": of(2)}, {})


def test_inputs_weights_and_repeats_may_be_outputs() -> None:
    data, weight = Node("null", "data"), Node("null", "weight")
    positive = Node("relu", "positive", {}, [Entry(data)], 1)
    heads = (data, weight, positive, positive)
    graph = PlainGraph(tuple(Entry(node) for node in heads))
    lowered = lower(graph, {"data": of(2)}, {"weight": np.float32([5])})
    values = runtime.Session(lowered).run({"data": np.float32([-1, 1])})
    assert [value.tolist() for value in values] == [[-1, 1], [5], [0, 1], [0, 1]]


def test_no_weight_is_copied_into_the_model() -> None:
    weight = np.ones((1000, 1000), np.float32)
    graph = graph_of("FullyConnected", ["x", "w"], {"num_hidden": "1000", "no_bias": "True"})
    lowered = lower(graph, {"x": of(1, 1000)}, {"w": weight})
    assert lowered.model.ByteSize() < 2000
    assert np.shares_memory(lowered.weights["w"], weight)


def test_weights_that_nothing_uses_are_left_out() -> None:
    graph = graph_of("SoftmaxOutput", ["x", "label"])
    lowered = lower(graph, {"x": of(1, 3)}, {"label": np.zeros(1, np.float32), "other": np.ones(3)})
    assert lowered.weights == {}


def test_a_label_need_not_be_given() -> None:
    lowered = lower(graph_of("SoftmaxOutput", ["x", "label"]), {"x": of(1, 3)}, {})
    assert lowered.input_names == ("x",)


@pytest.mark.parametrize("operator", ["elemwise_add", "FullyConnected", "dot"])
def test_an_operand_must_be_given(operator: str) -> None:
    attrs = {"num_hidden": "2", "no_bias": "True"} if operator == "FullyConnected" else {}
    graph = graph_of(operator, ["x", "y"], attrs)
    message = rf"node 'op' \({operator}\): variable 'y' is neither among the inputs nor"
    with pytest.raises(GraphError, match=message):
        lower(graph, {"x": of(2, 2)}, {})


def test_an_input_must_be_a_variable() -> None:
    with pytest.raises(GraphError, match="no variable 'y'; it has x"):
        lower(graph_of("relu", ["x"]), {"x": of(2), "y": of(2)}, {})


@pytest.mark.parametrize(
    ("operator", "inputs", "attrs", "message"),
    [
        ("no_such_op", ["x"], {}, "for the mxnet operator.*passlib.library.load"),
        ("Pooling", ["x"], {"kernel": "(2,)", "pooling_convention": "same"}, "pooling_convention"),
        ("Pooling", ["x"], {"kernel": "(2,)", "pool_type": "lp", "p_value": "4"}, "p_value"),
        ("GridGenerator", ["x"], {"transform_type": "affine", "target_shape": "(1, 4)"}, "target"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    operator: str, inputs: list[str], attrs: dict[str, str], message: str
) -> None:
    with pytest.raises(UnsupportedError, match=rf"node 'op' \({operator}\).*{message}"):
        lower(graph_of(operator, inputs, attrs), dict.fromkeys(inputs, of(2, 3, 4)), {})


@pytest.mark.parametrize(
    ("operator", "inputs", "attrs", "message"),
    [
        ("Activation", ["x"], {"act_type": "swish"}, "'act_type'.* cannot be 'swish'.*'softrelu'"),
        ("Activation", ["x"], {}, "needs the attribute 'act_type'"),
        ("softmax", ["x"], {"axis": "one"}, "'axis'.* cannot be 'one'; it is declared as int"),
        ("Dropout", ["x"], {"p": "half"}, "'p'.* cannot be 'half'"),
        ("Dropout", ["x"], {"q": "0.5"}, "has no attribute 'q'; it has: p, mode"),
        ("LeakyReLU", ["x"], {"act_type": "nope"}, "'act_type'"),
        ("FullyConnected", ["x", "w", "b"], {"num_hidden": "many"}, "'num_hidden'.*int, required"),
        ("FullyConnected", ["x"], {"num_hidden": "2"}, r"3 inputs \(data, weight, bias\).* not 1"),
        ("BatchNorm", ["x", "y"], {}, "takes 5 inputs"),
        ("dot", ["x"], {}, r"takes 2 inputs \(lhs, rhs\)"),
        ("relu", ["x", "y"], {}, r"takes 1 inputs \(data\)"),
        ("softmax", ["x"], {"axis": "4"}, "axis 4 is outside"),
        ("Pooling", ["x"], {"kernel": "(2, 2)"}, "does not fit an input of 3 axes"),
        ("Pooling", ["x"], {"kernel": "(2,)", "layout": "NHWC"}, "layout"),
        ("Pooling", ["x"], {"kernel": "(2,)", "stride": "(2, 2)"}, "'stride'"),
        ("SequenceReverse", ["x"], {"axis": "1"}, "time axis"),
    ],
)
def test_malformed_nodes_are_named(
    operator: str, inputs: list[str], attrs: dict[str, str], message: str
) -> None:
    graph = graph_of(operator, inputs, attrs)
    shapes = dict.fromkeys(inputs, (2, 3, 4))
    with pytest.raises(GraphError, match=rf"node 'op' \({operator}\).*{message}"):
        lower(graph, {name: of(*shape) for name, shape in shapes.items()}, {})
    with pytest.raises(GraphError, match=rf"node 'op' \({operator}\).*{message}"):
        sym.Symbol(graph.entries).infer_shape_partial(**shapes)


def test_hidden_outputs_cannot_be_used() -> None:
    dropout = Node("Dropout", "drop", {}, [Entry(Node("null", "x"))], 2)
    graph = PlainGraph((Entry(Node("relu", "use", {}, [Entry(dropout, 1)], 1)),))
    with pytest.raises(UnsupportedError, match=r"node 'use' \(relu\).*node 'drop' \(Dropout\)"):
        lower(graph, {"x": of(2, 3)}, {})
    with pytest.raises(UnsupportedError, match="mask of dropout"):
        lower(PlainGraph((Entry(dropout, 1),)), {"x": of(2, 3)}, {})


def test_an_output_that_the_operator_does_not_have() -> None:
    graph = PlainGraph((Entry(Node("relu", "r", {}, [Entry(Node("null", "x"))], 1), 3),))
    with pytest.raises(UnsupportedError, match=r"output 3 of node 'r' \(relu\) is not computed"):
        lower(graph, {"x": of(2, 3)}, {})


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("operator", ["Convolution", "Deconvolution"])
def test_channels_last_is_channels_first_transposed(operator: str, rank: int) -> None:
    random = np.random.default_rng(rank)
    sizes = (5, 4, 3)[:rank]
    data = random.normal(size=(2, 4, *sizes)).astype(np.float32)
    weight = random.normal(size=(4, 2, *(2,) * rank)).astype(np.float32)
    bias = random.normal(size=4).astype(np.float32)
    layout = {2: "NCHW", 3: "NCDHW"}[rank]
    attrs = {"kernel": str((2,) * rank), "num_filter": "4", "num_group": "2", "no_bias": "False"}

    def computed(layout: str, *arrays: np.ndarray) -> np.ndarray:
        inputs = dict(zip("xwb", arrays, strict=True))
        graph = graph_of(operator, list(inputs), {**attrs, "layout": layout})
        return runtime.run(graph, inputs, {})[0]

    first = computed(layout, data, weight, bias)
    moved = [np.ascontiguousarray(np.moveaxis(array, 1, -1)) for array in (data, weight)]
    last = computed("N" + layout[2:] + "C", *moved, bias)
    np.testing.assert_allclose(np.moveaxis(last, -1, 1), first, rtol=1e-5, atol=1e-5)


def test_dropout_in_training_drops_and_scales() -> None:
    data = np.ones((200, 100), np.float32)
    graph = graph_of("Dropout", ["x"], {"p": "0.25"}, outputs=1)
    (result,) = runtime.run(graph, {"x": data}, {}, train=True)
    assert set(np.unique(result)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((result == 0).mean() - 0.25) < 0.02
    (result,) = runtime.run(graph, {"x": data}, {})
    np.testing.assert_array_equal(result, data)


def test_dropout_shares_draws_along_axes() -> None:
    graph = graph_of("Dropout", ["x"], {"p": "0.5", "axes": "(1,)", "mode": "always"}, outputs=1)
    (result,) = runtime.run(graph, {"x": np.ones((50, 20), np.float32)}, {})
    assert (result == result[:, :1]).all()
    assert 0 < (result == 0).mean() < 1


def test_a_recurrent_layer_honours_lengths() -> None:
    """MXNet computes this only on GPUs; each sequence must be as if it were run alone."""
    random = np.random.default_rng(3)
    time, batch, width, state = 5, 3, 2, 4
    data = random.normal(size=(time, batch, width)).astype(np.float32)
    packed = random.normal(size=4 * state * (width + state + 2)).astype(np.float32)
    zeros = np.zeros((1, batch, state), np.float32)
    lengths = np.float32([2, 5, 3])
    attrs = {"mode": "lstm", "state_size": "4", "num_layers": "1", "state_outputs": "True"}
    names = ["x", "w", "h", "c"]
    graph = graph_of("RNN", [*names, "l"], {**attrs, "use_sequence_length": "True"}, outputs=3)
    arrays = dict(zip(names, (data, packed, zeros, zeros), strict=True))
    results = runtime.run(graph, {**arrays, "l": lengths}, {})
    for index, length in enumerate(lengths.astype(int)):
        one = slice(index, index + 1)
        alone = {"x": data[:length, one], "w": packed, "h": zeros[:, one], "c": zeros[:, one]}
        wanted = runtime.run(graph_of("RNN", names, attrs, outputs=3), alone, {})
        np.testing.assert_allclose(results[0][:length, one], wanted[0], rtol=1e-5, atol=1e-6)
        assert not results[0][length:, one].any()
        for got, want in zip(results[1:], wanted[1:], strict=True):
            np.testing.assert_allclose(got[:, one], want, rtol=1e-5, atol=1e-6)


def test_a_dialect_registers_each_operator_once() -> None:
    table = Lowerings("test")

    @table.register("twice", "also")
    def double(op: Operation) -> Value:
        return op.emit("Add", op.inputs[0], op.inputs[0])

    with pytest.raises(ValueError, match="also is registered twice in test"):
        table.register("also")(double)
    lowered = lower_graph(graph_of("twice", ["x"]), table, {"x": of(2)}, {})
    assert runtime.Session(lowered).run({"x": np.float32([1, 2])})[0].tolist() == [2, 4]


def test_equal_constants_are_shared() -> None:
    graph = chain(*[("_plus_scalar", {"scalar": "2"})] * 5)
    assert len(lower(graph, {"data": of(3)}, {}).model.graph.initializer) == 1


def test_types_without_a_kernel_are_computed_in_another() -> None:
    graph = graph_of("Activation", ["x"], {"act_type": "softrelu"})
    data = np.linspace(-3, 3, 7)
    (result,) = runtime.run(graph, {"x": data}, {})
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, np.log1p(np.exp(data)), rtol=1e-6)


def test_unknown_sizes_stay_open() -> None:
    graph = graph_of("FullyConnected", ["x", "w"], {"num_hidden": "3", "no_bias": "True"})
    spec = TypeSpec(FLOAT32, (None, 4))
    lowered = lower(graph, {"x": spec}, {"w": np.ones((3, 4), np.float32)})
    session = runtime.Session(lowered)
    for batch in (1, 5):
        assert session.run({"x": np.ones((batch, 4), np.float32)})[0].shape == (batch, 3)
