"""Nodes that run a subgraph in plain ONNX Runtime, by the library `passlib.ort_library` names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib as pl
from custom_graphs import X, inner_graph, partitioned
from example_build import build_example
from ort_sessions import session_of
from places import DATA

MODELS = DATA / "mxnet" / "models"
s = pl.sym
A, B = s.var("a"), s.var("b")

Shapes = Mapping[str, Sequence[int | None]]


@pytest.fixture
def library(plugin: Callable[[str], Path]) -> Callable[[str], Path]:
    """Load a library of the tests or of the example, and return its path."""

    def load(name: str) -> Path:
        own = name == "subgraph_lib"
        path = build_example("lib_subgraph", "subgraph_lib.cc") if own else plugin(name)
        pl.library.load(path, verbose=False)
        return path

    return load


def types_in(path: Path) -> list[dict[str, Any]]:
    """Return the stated types of the nodes of a file that run a subgraph."""
    attributes = [a for node in onnx.load(path).graph.node for a in node.attribute]
    return [json.loads(a.s) for a in attributes if a.name == "subgraph_types"]


def assert_equal(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    assert [array.dtype for array in found] == [array.dtype for array in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def by_example(backend: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        inner = s.log(s.exp(A, name="e") + B, name="l")
        return s.Group([s.sin(inner), s.relu(inner * 2)]).optimize_for(backend, **options)

    return make


def twice() -> Any:
    inner = partitioned(s.exp(s.var("a0")), ["x0"])
    return partitioned(inner, ["a"], op="_plugin_subgraph")


Case = tuple[Sequence[str], Callable[[], Any]]
CASES: dict[str, Case] = {
    "myProp": (["subgraph_lib"], by_example("myProp")),
    "myProp_dedup": (["subgraph_lib"], by_example("myProp", dedup_subgraph=True)),
    "mySelect": (["subgraph_lib"], by_example("mySelect", min_length=2)),
    "extra_input": (
        ["subgraph_lib"],
        lambda: by_example("myProp")().optimize_for("addInputPass", {}),
    ),
    "tp_subgraph": (["graph_operators"], lambda: partitioned(inner_graph(), ["a", "b"])),
    "tp_subgraph_extra": (
        ["graph_operators"],
        lambda: partitioned(inner_graph(), ["a", "b", "c"], 1),
    ),
    "between": (
        ["graph_operators"],
        lambda: s.tp_scale(partitioned(inner_graph(), ["a", "b"])[0] * 2),
    ),
    "chain": (
        ["graph_operators"],
        lambda: partitioned(s.log(s.var("a0")), ["a"])(a=partitioned(s.exp(s.var("a0")), ["a"])),
    ),
    "run_exp": (["all_kinds_0"], lambda: s.sqrt(s.exp(A)).optimize_for("expTo0")),
    "nested": (["graph_operators", "operators"], twice),
    "_plugin_subgraph": (
        ["operators"],
        lambda: partitioned(
            s.dot(s.var("a0"), s.var("b0"), transpose_b=True), ["a", "b"], op="_plugin_subgraph"
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", [2, None])
def test_equals_model_run(
    name: str, rows: int | None, library: Callable[[str], Path], tmp_path: Path
) -> None:
    sources, make = CASES[name]
    paths = [library(source) for source in sources]
    symbol = make()
    arrays = {"a": X, "b": X + 3, "c": np.ones(1, np.float32)}
    names = symbol.list_inputs()
    weights = {n: np.ones((1,), np.float32) for n in names if n not in arrays}
    feeds = {n: array for n, array in arrays.items() if n in names}
    model = pl.Model(symbol, weights)
    shapes = {n: (rows, 3) if array.ndim == 2 else array.shape for n, array in feeds.items()}
    if name == "nested" and rows is None:
        with pytest.raises(pl.UnsupportedError, match=r"'_op0'.*output '_op0_output' of its"):
            model.to_onnx(tmp_path / "m.onnx", shapes)
        return
    model.to_onnx(tmp_path / "m.onnx", shapes)
    session = session_of(tmp_path / "m.onnx", *paths)
    for repeats in (1, 2) if rows is None else (1, 1):
        given = {n: np.repeat(v, repeats, 0) if v.ndim == 2 else v for n, v in feeds.items()}
        assert_equal(session.run(None, given), list(model.run(given).values()))


@pytest.mark.sample(2)
@pytest.mark.parametrize("opened", [(), (0,), (0, 2, 3)])
@pytest.mark.parametrize("name", ["resnet_v1_small", "squeezenet1.1", "mobilenet0.25"])
def test_partitioned_models(
    name: str, opened: Sequence[int], library: Callable[[str], Path], tmp_path: Path
) -> None:
    path = library("subgraph_lib")
    model = pl.load(MODELS / name).optimize_for("myProp")
    with np.load(MODELS / f"{name}-io.npz") as recorded:
        inputs = {key[3:]: recorded[key] for key in recorded if key.startswith("in/")}
    shapes = {
        key: [None if axis in opened else size for axis, size in enumerate(array.shape)]
        for key, array in inputs.items()
    }
    model.to_onnx(tmp_path / "m.onnx", shapes)
    (found,) = session_of(tmp_path / "m.onnx", path).run(None, inputs)
    (expected,) = model.run(inputs).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


W = s.var("w")
FILTER = (4, 3, 3, 3)
# A graph, shapes of its inputs, and stated sizes of its outputs.
OPEN: dict[str, tuple[Any, Shapes, list[list[int | str]]]] = {
    "convolution": (
        s.Convolution(A, W, num_filter=4, kernel=(3, 3), stride=(2, 2), no_bias=True),
        {"a": (None, 3, None, None), "w": FILTER},
        [["d0", 4, "floor((d1 - 3)/2) + 1", "floor((d2 - 3)/2) + 1"]],
    ),
    "deconvolution": (
        s.Deconvolution(A, W, num_filter=3, kernel=(3, 3), stride=(2, 2), no_bias=True),
        {"a": (None, 4, 5, None), "w": FILTER},
        [["d0", 3, 11, "2*d1 + 1"]],
    ),
    "dense": (
        s.FullyConnected(A, W, num_hidden=4, no_bias=True),
        {"a": (None, 2, 3), "w": (4, 6)},
        [["d0", 4]],
    ),
    "concat": (
        s.concat(A, B * 2, s.exp(A), dim=1),
        {"a": (None, None), "b": (None, None)},
        [["d0", "2*d1 + d2"]],
    ),
    "dot": (s.dot(A, B), {"a": (None, None), "b": (None, None)}, [["d0", "d2"]]),
    "flatten": (s.Flatten(A), {"a": (None, None, 3)}, [["d0", "3*d1"]]),
    "slice_like": (
        s.slice_like(A, B),
        {"a": (None, 3), "b": (None, None)},
        [["min(d0, d1)", "min(3, d2)"]],
    ),
    "shape": (s.shape_array(A), {"a": (None, None)}, [[2]]),
    "sum": (s.sum(A + B), {"a": (None, None), "b": (None, None)}, [[1]]),
    "two": (s.Group([s.transpose(A), B]), {"a": (None, 3), "b": (None,)}, [[3, "d0"], ["d1"]]),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name: str, library: Callable[[str], Path], tmp_path: Path) -> None:
    """The operator does nothing, so that only the shapes matter."""
    path = library("operators")
    inner, shapes, stated = OPEN[name]
    model = pl.Model(partitioned(inner, list(shapes), op="_plugin_subgraph"))
    model.to_onnx(tmp_path / "m.onnx", shapes)
    (types,) = types_in(tmp_path / "m.onnx")
    assert [output["shape"] for output in types["outputs"]] == stated
    session = session_of(tmp_path / "m.onnx", path)
    places = [
        (key, axis) for key, shape in shapes.items() for axis, n in enumerate(shape) if n is None
    ]
    fitting = 0
    for sizes in product((1, 3, 4, 7), repeat=len(places)):
        chosen = dict(zip(places, sizes, strict=True))
        feeds = {
            key: np.zeros([chosen.get((key, axis), n) for axis, n in enumerate(shape)], np.float32)
            for key, shape in shapes.items()
        }
        try:
            expected = list(model.run(feeds).values())
        except pl.PasslibError:
            with pytest.raises(Exception, match="'_op0"):
                session.run(None, feeds)
            continue
        assert_equal(session.run(None, feeds), expected)
        fitting += 1
    assert fitting >= 4


REFUSED: dict[str, tuple[Any, Shapes, str]] = {
    "data": (
        s.contrib.boolean_mask(A, B, name="m"),
        {"a": (4, 3), "b": (4,)},
        r"output 'm_output'",
    ),
    "data_open": (
        s.contrib.boolean_mask(A, B, name="m"),
        {"a": (None, 3), "b": (None,)},
        r"output 'm_output' .*give all sizes of the model's inputs",
    ),
    "even_only": (
        s.Group(list(s.split(A, num_outputs=2, axis=0, name="m"))),
        {"a": (None, 3)},
        r"'m'.*does not divide axis 0.*stand-ins for its open sizes",
    ),
    "one_size_only": (
        s.broadcast_add(A, B, name="m"),
        {"a": (None, 3), "b": (4, 3)},
        r"'m'.*stand-ins for its open sizes",
    ),
    "contradiction": (s.elemwise_add(A, B, name="m"), {"a": (2, 3), "b": (4, 3)}, "'m'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_exports(name: str, library: Callable[[str], Path], tmp_path: Path) -> None:
    library("operators")
    inner, shapes, message = REFUSED[name]
    model = pl.Model(partitioned(inner, list(shapes), op="_plugin_subgraph"))
    with pytest.raises((pl.UnsupportedError, pl.GraphError), match=f"node '_op0'.*{message}"):
        model.to_onnx(tmp_path / "m.onnx", shapes)


def test_sizes_that_must_be_equal(library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("subgraph_lib")
    model = pl.Model((A + B).optimize_for("myProp"))
    model.to_onnx(tmp_path / "m.onnx", {"a": (None, 3), "b": (None, 3)})
    session = session_of(tmp_path / "m.onnx", path)
    message = r"node '_op0.*the shape \(d0, 3\) as its input 1 with d0 = 2, which has \(4, 3\)"
    with pytest.raises(Exception, match=message):
        session.run(None, {"a": X, "b": np.concatenate([X, X])})
    assert_equal(session.run(None, {"a": X, "b": X}), [X + X])


def test_many_inputs(library: Callable[[str], Path], tmp_path: Path) -> None:
    """Sizes that inference passes on are not tried pair by pair."""
    library("operators")
    names = [f"x{number}" for number in range(60)]
    inner = s.Group([s.add_n(*map(s.var, names)), s.exp(s.var("y"))])
    model = pl.Model(partitioned(inner, [*names, "y"], op="_plugin_subgraph"))
    model.to_onnx(tmp_path / "m.onnx", dict.fromkeys([*names, "y"], (None, 3, None)))
    (types,) = types_in(tmp_path / "m.onnx")
    assert [one["shape"] for one in types["inputs"]] == [["d0", 3, "d1"]] * 60 + [["d2", 3, "d3"]]


def test_auxiliary_states(library: Callable[[str], Path], tmp_path: Path) -> None:
    """The library may write to states of a subgraph; their new content is an output."""
    path = library("operators")
    inner = s.BatchNorm(A, s.var("g"), s.var("h"), s.var("mean"), s.var("var"))
    symbol = partitioned(inner, ["a", "g", "h", "mean", "var"], op="_plugin_subgraph")
    aux = {name: np.arange(3, dtype=np.float32) for name in symbol.list_auxiliary_states()}
    assert sorted(aux) == ["mean", "var"]
    ones = {name: np.ones(3, np.float32) for name in "gh"}
    model = pl.Model(symbol, ones, aux)
    model.to_onnx(tmp_path / "m.onnx", {"a": (None, 3)})
    session = session_of(tmp_path / "m.onnx", path)
    names = [value.name for value in session.get_outputs()]
    assert names[1:] == ["mean_written", "var_written"]
    out, *written = session.run(None, {"a": X})
    assert_equal([out], list(model.run({"a": X}).values()))
    assert_equal(written, list(aux.values()))


def test_failure_of_forward(library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("graph_operators")
    pl.Model(partitioned(s.sin(s.var("a0")), ["a"])).to_onnx(tmp_path / "m.onnx", {"a": (None, 3)})
    session = session_of(tmp_path / "m.onnx", path)
    for _ in range(2):
        with pytest.raises(Exception, match=r"node '_op0.*in forward\n.*no such operator: sin"):
            session.run(None, {"a": X})


def test_eight_threads(library: Callable[[str], Path], tmp_path: Path) -> None:
    path = library("subgraph_lib")
    pl.Model((A + B).optimize_for("myProp")).to_onnx(
        tmp_path / "m.onnx", {"a": (None, 3), "b": (None, 3)}
    )
    session = session_of(tmp_path / "m.onnx", path)

    def run(number: int) -> None:
        given = np.full((1 + number % 12, 3), number, np.float32)
        assert_equal(session.run(None, {"a": given, "b": given}), [2 * given])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(400)))


def stated(shape: list[Any] | None = None, **changed: Any) -> str:
    """Return types of a node with one input and one output, whose shape is given."""
    types = {
        "inputs": [{"element": 1, "shape": ["n", 3]}],
        "outputs": [{"element": 1, "shape": shape or ["n", 3]}],
        "written": [],
    }
    return json.dumps(types | changed)


LARGE = 2**62
HOSTILE = {
    "absent": (None, "its node has none with types"),
    "no_json": ("{", "'subgraph_types' that is wrong.*line 1"),
    "a_list": ("[]", "it is no JSON object"),
    "no_inputs": ('{"outputs": []}', "it has no 'inputs'"),
    "inputs_no_list": (stated(inputs={}), "'inputs' is no list"),
    "input_no_object": (stated(inputs=[1]), "'inputs' has an item that is no JSON object"),
    "no_outputs": (stated(outputs=[]), "it has no outputs"),
    "more_inputs": (
        stated(inputs=[{"element": 1, "shape": ["n", 3]}] * 2),
        "takes 2 inputs, and its node has 1",
    ),
    "text": (stated(outputs=[{"element": 8, "shape": []}]), "no element type 8"),
    "no_element": (stated(outputs=[{"shape": []}]), "it has no 'element'"),
    "large_element": (stated(outputs=[{"element": LARGE, "shape": []}]), "no element type 4611"),
    "real_size": (stated([1.5]), "'shape' has an item that is no integer"),
    "other_element": (stated(inputs=[{"element": 7, "shape": ["n", 3]}]), "takes the type code 6"),
    "other_rank": (stated(inputs=[{"element": 1, "shape": ["n"]}]), r"takes the shape \(n\)"),
    "other_size": (stated(inputs=[{"element": 1, "shape": ["n", 4]}]), r"takes the shape \(n, 4\)"),
    "expression_as_input": (
        stated(inputs=[{"element": 1, "shape": ["n + 1", 3]}]),
        r"the size 'n \+ 1' of an input is no name",
    ),
    "written_outside": (stated(written=[1]), "'written' has the position 1"),
    "written_below": (stated(written=[-1]), "'written' has the position -1"),
    "written_twice": (stated(written=[0, 0]), "'written' has the position 0"),
    "unknown_name": (stated(["m"]), "'m', which no input has"),
    "empty": (stated([""]), "cannot be read"),
    "two_operands": (stated(["n n"]), "cannot be read at character 2"),
    "open_bracket": (stated(["(n"]), "cannot be read"),
    "closed_bracket": (stated(["n)"]), "cannot be read at character 1"),
    "comma": (stated(["n, n"]), "cannot be read"),
    "min_of_one": (stated(["min(n)"]), "cannot be read"),
    "floor_of_two": (stated(["floor(n, n)"]), "cannot be read"),
    "function": (stated(["abs(n)"]), "an unknown function 'abs'"),
    "large_number": (stated(["9" * 30]), "a number beyond 64 bits"),
    "long": (stated(["n+" * 40000 + "n"]), "is too long"),
    "deep": (stated(["(" * 30000 + "n" + ")" * 30000 + "/0"]), "divides by 0"),
    "overflow": (stated([f"{LARGE}*4*n"]), "exceeds 64 bits"),
    "sum_overflow": (stated([f"{LARGE} + {LARGE} + n"]), "exceeds 64 bits"),
    "no_quotient": (stated(["n/3"]), "is no whole number for these inputs"),
    "division": (stated(["n/(n - 2)"]), "divides by 0"),
    "below_zero": (stated(["n - 3"]), "computes -1 as the size 'n - 3' of its output 0"),
    "round_below_zero": (stated(["floor((n - 3)/2) + 1"]), "rounds a number below 0"),
    "negative": (stated([-1]), "cannot be read|computes -1"),
    "no_memory": (stated([f"{LARGE}", 4]), "which no memory holds"),
    "other_output": (
        stated(outputs=[{"element": 7, "shape": ["n"]}]),
        "infers the element type 7 of ONNX for its output 0",
    ),
}


def one_node(types: str | None, attributes: Mapping[str, str]) -> bytes:
    """Return a model with a node of `_plugin_subgraph`."""
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    given = {} if types is None else {"subgraph_types": types}
    node = helper.make_node(
        "_plugin_subgraph", ["x"], ["y"], "here", domain="passlib",
        attributes=json.dumps(attributes), **given,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", number, (None, None))],
        [helper.make_tensor_value_info("y", number, None)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("passlib", 1)]
    message: bytes = helper.make_model(
        graph, opset_imports=opsets, ir_version=10
    ).SerializeToString()
    return message


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_attributes(name: str, library: Callable[[str], Path]) -> None:
    path = library("operators")
    types, message = HOSTILE[name]
    model = one_node(types, {"subgraph_sym_json": "{}"})
    with pytest.raises(Exception, match=rf"node 'here'\).*({message})"):
        session_of(model, path).run(None, {"x": X})


def test_without_a_subgraph(library: Callable[[str], Path]) -> None:
    path = library("operators")
    with pytest.raises(Exception, match=r"node 'here'.*its node has none with types"):
        session_of(one_node(stated(), {}), path)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2*n + 3", 13),
        ("-n + 2*n*n - 3*(1 + n)", 27),
        ("floor((n - 1)/3)*4", 4),
        ("ceil((n + 2)/3)", 3),
        ("max(min(n, 4), 2) - -1", None),
        ("max(min(n, 4), 2)", 4),
        ("2*(n - 1)/(4)*n", 10),
        ("(n*n)/(n) + min((n + 1)/2, 7)", 8),
        ("floor((floor((n - 1)/2) + 1)/2)", 1),
    ],
)
def test_size_texts(text: str, size: int | None, library: Callable[[str], Path]) -> None:
    session = (one_node(stated([text]), {"subgraph_sym_json": "{}"}), library("operators"))
    x = np.zeros((5, 3), np.float32)
    if size is None:
        with pytest.raises(Exception, match="cannot be read at character 20"):
            session_of(*session)
    else:
        assert session_of(*session).run(None, {"x": x})[0].shape == (size,)
