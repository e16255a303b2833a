"""Shapes and types of every node, compared with those that MXNet 1.9.1 passes to its passes."""

from __future__ import annotations

import functools
import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import places
from case_files import case_lines, case_tensors
from mxnet_graph import PlainGraph, graph_of, read_graph
from passlib import sym
from passlib.dialects.inference import ext_dtype, ext_shape, infer
from passlib.errors import FormatError, GraphError
from passlib.graph.node import Entry, Node
from passlib.lowering import TypeSpec

DATA = places.DATA / "mxnet"
FLOAT32 = np.dtype(np.float32)
MODEL_DATA = {
    "inceptionv3": (1, 3, 299, 299),
    "lstm_lm": (7, 2),
    "resnet_v1_small": (2, 3, 64, 64),
}
MODELS = sorted(path.name[: -len("-symbol.json")] for path in DATA.glob("models/*-symbol.json"))
FAMILIES = ("op_cases/cases", "nn_cases", "tensor_cases")

PARTLY_KNOWN = "with one input alone MXNet counts the unknown size as 0, passlib leaves it open"
DIFFERENT = {
    ("first", "Concat"): PARTLY_KNOWN,
    ("first", "stack"): PARTLY_KNOWN,
    ("first", "_rnn_param_concat"): PARTLY_KNOWN,
    ("first", "scatter_nd"): PARTLY_KNOWN,
    ("first", "pick"): PARTLY_KNOWN,
    ("first", "_slice_assign"): "a region alone does not determine the shape of its content",
    ("first", "_contrib_allclose"): "unknown until both inputs are known",
    ("first", "Embedding"): "the weight has the type of the attribute dtype",
    ("first", "_contrib_boolean_mask"): "the sizes after the first are known",
    ("all", "_contrib_boolean_mask"): "the sizes after the first are known",
}
"""Where passlib differs from MXNet, and why."""


@functools.cache
def frozen() -> list[dict[str, Any]]:
    text = gzip.decompress((DATA / "inferred_types.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


@functools.cache
def cases(family: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    path = DATA / f"{family}.jsonl"
    tensors = case_tensors(path)
    known = {}
    for line in case_lines(path):
        case = json.loads(line)
        digest = zlib.crc32(line.encode())
        for key in sorted({*case["args"], *case["aux"]}):
            digest = zlib.crc32(tensors[f"{case['name']}/in/{key}"].tobytes(), digest)
        known[case["name"]] = {**case, "digest": digest}
    return known, tensors


def comparable(family: str, how: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the frozen lines of a family, each with its case unless that has changed since."""
    known, _ = cases(family)
    for line in frozen():
        where, name, given_how = line["name"].rsplit("/", 2)
        if where != f"{family}.jsonl" or given_how != how or name not in known:
            continue
        if known[name]["digest"] == line["digest"]:
            yield line, known[name]


def differences(
    graph: PlainGraph, given: dict[str, tuple[Any, np.dtype]], nodes: list[list[str]]
) -> list[tuple[str, ...]]:
    inferred = infer(
        graph,
        {name: shape for name, (shape, _) in given.items()},
        {name: dtype for name, (_, dtype) in given.items()},
        default_dtype=FLOAT32,
    ).by_name()
    return [
        (name, shapes, types, ext_shape(inferred[name]), ext_dtype(inferred[name]))
        for name, shapes, types in nodes
        if (shapes, types) != (ext_shape(inferred[name]), ext_dtype(inferred[name]))
    ]


@pytest.mark.parametrize("model", MODELS)
def test_models_as_mxnet_shows_them_to_passes(model: str) -> None:
    (line,) = (each for each in frozen() if each["name"] == f"models/{model}/first")
    graph = read_graph((DATA / "models" / f"{model}-symbol.json").read_text(encoding="utf-8"))
    given = {"data": (MODEL_DATA.get(model, (1, 3, 224, 224)), FLOAT32)}
    assert len(line["nodes"]) == len(graph.nodes())
    assert differences(graph, given, line["nodes"]) == []


@pytest.mark.parametrize("how", ["all", "first"])
@pytest.mark.parametrize("family", FAMILIES)
def test_operators_as_mxnet_shows_them_to_passes(family: str, how: str) -> None:
    tensors = cases(family)[1]
    compared, unexpected = 0, []
    for line, case in comparable(family, how):
        graph = read_graph(case["symbol"])
        given = {key: tensors[f"{case['name']}/in/{key}"] for key in line["given"]}
        found = differences(
            graph, {key: (a.shape, a.dtype) for key, a in given.items()}, line["nodes"]
        )
        compared += 1
        if found and not any((how, node.op) in DIFFERENT for node in graph.nodes()):
            unexpected.append((case["name"], found))
    assert unexpected == []
    assert compared > (40 if family == "op_cases/cases" else 150)


@pytest.mark.parametrize("key", DIFFERENT)
def test_every_listed_difference_exists(key: tuple[str, str]) -> None:
    how, operator = key
    for family in FAMILIES:
        tensors = cases(family)[1]
        for line, case in comparable(family, how):
            graph = read_graph(case["symbol"])
            if operator in {node.op for node in graph.nodes()}:
                given = {k: tensors[f"{case['name']}/in/{k}"] for k in line["given"]}
                specs = {k: (a.shape, a.dtype) for k, a in given.items()}
                if differences(graph, specs, line["nodes"]):
                    return
    pytest.fail(f"MXNet and passlib agree on {key} now: take it off the list")


@pytest.mark.parametrize(
    ("operator", "attrs", "shapes", "wrong"),
    [
        ("FullyConnected", {"num_hidden": "4"}, {"a": (2, 3), "b": (4, 5), "c": (4,)}, "b"),
        (
            "Convolution",
            {"num_filter": "4", "kernel": "(3, 3)"},
            {"a": (1, 3, 8, 8), "b": (4, 2, 3, 3)},
            "b",
        ),
        ("elemwise_add", {}, {"a": (2, 3), "b": (3, 2)}, "b"),
        ("BatchNorm", {}, {"a": (2, 3, 4), "b": (4,)}, "b"),
        (
            "RNN",
            {"mode": "gru", "state_size": "4", "num_layers": "1"},
            {"a": (5, 2, 3), "b": (7,)},
            "b",
        ),
    ],
)
def test_contradictions_name_node_and_input(
    operator: str, attrs: dict[str, str], shapes: dict[str, tuple[int, ...]], wrong: str
) -> None:
    names = list("abcde")[: {"BatchNorm": 5, "elemwise_add": 2}.get(operator, 3)]
    with pytest.raises(GraphError, match=rf"node 'op' \({operator}\): input \d \('{wrong}'\)"):
        infer(graph_of(operator, names, attrs), shapes)


def test_types_that_contradict_each_other_name_the_node() -> None:
    graph = graph_of("dot", ["a", "b"])
    types = {"a": FLOAT32, "b": np.dtype(np.float64)}
    with pytest.raises(GraphError, match=r"node 'op' \(dot\)"):
        infer(graph, {"a": (2, 2), "b": (2, 2)}, types)


def test_an_unknown_operator_stops_nothing() -> None:
    data = Entry(Node("null", "data"))
    strange = Node("of_no_library", "strange", {}, [data], 2)
    last = Node("relu", "last", {}, [data], 1)
    graph = PlainGraph((Entry(strange, 1), Entry(last)))
    found = infer(graph, {"data": (2, 3)}, {"data": FLOAT32}).by_name()
    assert found["strange"] == (TypeSpec(None, None),) * 2
    assert found["last"] == (TypeSpec(FLOAT32, (2, 3)),)


def test_what_follows_an_unknown_operator_may_still_be_known() -> None:
    strange = Node("of_no_library", "strange", {}, [Entry(Node("null", "data"))], 1)
    dense = Node("FullyConnected", "dense", {"num_hidden": "3", "no_bias": "True"},
                 [Entry(strange), Entry(Node("null", "weight"))], 1)  # fmt: skip
    total = Node("elemwise_add", "total", {}, [Entry(dense), Entry(Node("null", "other"))], 1)
    found = infer(PlainGraph((Entry(total),)), {"data": (2, 5), "other": (2, 3)}, {},
                  default_dtype=FLOAT32).by_name()  # fmt: skip
    assert found["total"] == (TypeSpec(FLOAT32, (2, 3)),)
    assert found["weight"] == (TypeSpec(FLOAT32, (3, None)),)


def test_open_sizes_are_found_through_layers() -> None:
    """A hand-written cell, whose batch size in the initial state follows only from its last sum."""
    state = Entry(Node("_zeros", "begin", {"shape": "(0, 4)"}, (), 1))
    hidden = Node("FullyConnected", "h2h", {"num_hidden": "4"},
                  [state, Entry(Node("null", "hw")), Entry(Node("null", "hb"))], 1)  # fmt: skip
    inner = Node("FullyConnected", "i2h", {"num_hidden": "4"},
                 [Entry(Node("null", name)) for name in ("data", "iw", "ib")], 1)  # fmt: skip
    total = Node("elemwise_add", "sum", {}, [Entry(inner), Entry(hidden)], 1)
    found = infer(PlainGraph((Entry(total),)), {"data": (2, 5)}, {}, default_dtype=FLOAT32)
    assert found.by_name()["begin"] == (TypeSpec(FLOAT32, (2, 4)),)
    assert found.by_name()["h2h"] == (TypeSpec(FLOAT32, (2, 4)),)
    assert found.by_name()["hw"] == (TypeSpec(FLOAT32, (4, 4)),)


def test_attributes_of_variables_count() -> None:
    variable = Node("null", "x", {"__shape__": "(2, 0)", "__dtype__": "2"})
    graph = PlainGraph((Entry(Node("relu", "y", {}, [Entry(variable)], 1)),))
    half = np.dtype(np.float16)
    assert infer(graph, {}).by_name()["y"] == (TypeSpec(half, (2, None)),)
    assert infer(graph, {"x": (2, 3)}).by_name()["y"] == (TypeSpec(half, (2, 3)),)
    as_mxnet = infer(graph, {}, default_dtype=FLOAT32).by_name()["y"]
    assert as_mxnet == (TypeSpec(FLOAT32, (2, None)),)


@pytest.mark.parametrize("attrs", [{"__shape__": "(2"}, {"__dtype__": "x"}, {"__dtype__": "99"}])
def test_broken_attributes_of_variables_are_named(attrs: dict[str, str]) -> None:
    graph = PlainGraph((Entry(Node("null", "x", attrs)),))
    with pytest.raises(FormatError, match=rf"variable 'x': attribute {next(iter(attrs))}"):
        infer(graph, {})


def test_text_forms() -> None:
    half = np.dtype(np.float16)
    specs = [TypeSpec(FLOAT32, (2, 4)), TypeSpec(half, (None, 3)), TypeSpec(None, None)]
    assert ext_shape(specs) == "[[2,4],[-1,3],None]"
    assert ext_dtype(specs) == "[0,2,-1]"
    assert ext_dtype([TypeSpec(np.dtype(ml_dtypes.bfloat16), ())]) == "[12]"


def test_a_long_chain_is_linear() -> None:
    entry = Entry(Node("null", "data"))
    for index in range(5000):
        entry = Entry(Node("relu", f"relu{index}", {}, [entry], 1))
    found = infer(PlainGraph((entry,)), {"data": (2, 3)}, {"data": FLOAT32})
    assert found.outputs[entry.node] == (TypeSpec(FLOAT32, (2, 3)),)


X, Y, Z = sym.var("x"), sym.var("y"), sym.var("z")


@pytest.mark.parametrize(
    ("symbol", "given", "expected"),
    [
        (
            sym.Convolution(X, kernel=(3, 3), pad=(1, 1), num_filter=4, name="c") + Z,
            {"x": (0, 3, 0, 0), "z": (2, 4, 5, 6)},
            {"x": (2, 3, 5, 6)},
        ),
        (
            sym.Convolution(X, kernel=(3, 3), stride=(2, 1), num_filter=4, name="c") + Z,
            {"x": (0, 3, 0, 0), "z": (2, 4, 5, 6)},
            {"x": (2, 3, 0, 8)},
        ),
        (sym.Concat(X, Y, dim=1), {"x": (2, 3), "y": (0, 4)}, {"y": (2, 4)}),
        (sym.Concat(X, Y, dim=1), {"x": (2, 3)}, {"y": (2, 0)}),
        (
            sym.SliceChannel(X, num_outputs=2, axis=1)[0] + Z,
            {"x": (0, 6), "z": (2, 3)},
            {"x": (2, 6)},
        ),
        (sym.transpose(X, axes=(1, 0, 2)) + Z, {"z": (2, 3, 4)}, {"x": (3, 2, 4)}),
        (sym.transpose(X) + Z, {"x": (0, 0), "z": (2, 3)}, {"x": (3, 2)}),
        (sym.ones((2, 3)) + sym.transpose(sym.ones((-1, -1))), {}, {}),
        (sym.expand_dims(X, axis=1) + Z, {"z": (2, 1, 3)}, {"x": (2, 3)}),
        (sym.sin(sym.cos(X)) + Z, {"z": (2, 3)}, {"x": (2, 3)}),
        (sym.zeros_like(X) + Z, {"z": (2, 3)}, {"x": (2, 3)}),
    ],
)
def test_shapes_are_inferred_backward(
    symbol: sym.Symbol, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The expected shapes are MXNet's answers."""
    shapes, outputs, _ = symbol.infer_shape_partial(**given)
    found = dict(zip(symbol.list_arguments(), shapes, strict=True))
    assert {name: found[name] for name in expected} == expected
    assert 0 not in outputs[0] or expected == {"y": (2, 0)}


@pytest.mark.parametrize(
    ("symbol", "given", "expected"),
    [
        (sym.CTCLoss(X, Y), {"x": "float32"}, {"output": np.float32}),
        (sym.CTCLoss(X, Y), {"x": "float64", "y": "int32"}, {"output": np.float64}),
        (sym.Correlation(X, Y), {"x": "float32"}, {"y": np.float32, "output": np.float32}),
        (sym.argmax(X, axis=0), {"x": "float16"}, {"output": np.float16}),
        (sym.sin(X) + Z, {"z": "float64"}, {"x": np.float64}),
        (sym.Concat(X, Y), {"y": "float64"}, {"x": np.float64, "output": np.float64}),
        (
            sym.FullyConnected(X, num_hidden=3, name="f") + Z,
            {"z": "float16"},
            {"x": np.float16, "f_weight": np.float16, "f_bias": np.float16},
        ),
        (sym.broadcast_equal(X, Y), {"x": "int32"}, {"y": np.int32, "output": np.int32}),
    ],
)
def test_types_are_inferred_backward(
    symbol: sym.Symbol, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The expected types are MXNet's answers."""
    types, outputs, _ = symbol.infer_type_partial(**given)
    found = {**dict(zip(symbol.list_arguments(), types, strict=True)), "output": outputs[0]}
    assert {name: found[name] for name in expected} == expected
