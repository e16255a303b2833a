"""Shapes and attributes that users set, and models that are merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import passlib as pl
from onnx_models import HEAD, NESTED
from passlib.model.edits import content_of

FLAT = (
    HEAD
    + """(float[N, 3, M] x) => (float[N, ?] y, float[N, 3, M] z) <int64[1] rest = {-1}> {
    z = Relu(x) n = Shape<start = 0, end = 1>(z) t = Concat<axis = 0>(n, rest) y = Reshape(z, t)
}"""
)


def loaded(text: str) -> pl.Model:
    return pl.load(parser.parse_model(text))


def message(model: pl.Model) -> Any:
    return onnx.ModelProto.FromString(content_of(model))


def sizes(values: Any) -> dict[str, list[Any]]:
    return {
        value.name: [d.dim_value or d.dim_param or "?" for d in value.type.tensor_type.shape.dim]
        for value in values
    }


SHAPES: dict[str, tuple[Any, list[Any], list[Any], list[Any]]] = {
    "sizes": ((2, 3, 5), [2, 3, 5], [2, 15], [2, 3, 5]),
    "names": (("batch", 3, "width"), ["batch", 3, "width"], ["batch", "?"], ["batch", 3, "width"]),
    "the present one": ((None, None, 4), ["N", 3, 4], ["N", 12], ["N", 3, 4]),
    "an opened one": ((1, "?", 4), [1, "?", 4], [1, "?"], [1, "?", 4]),
}


@pytest.mark.parametrize("what", SHAPES)
def test_shapes_of_inputs_and_what_follows_from_them(what: str) -> None:
    given, x, y, z = SHAPES[what]
    model = loaded(FLAT)
    before = content_of(model)
    graph = message(model.with_shapes({"x": given})).graph
    assert sizes(graph.input) == {"x": x}
    found = sizes(graph.output)
    assert found["z"] == z
    assert [a if isinstance(a, int) else "?" for a in found["y"]] == [
        a if isinstance(a, int) else "?" for a in y
    ]
    assert content_of(model) == before


def test_sizes_stay_when_only_an_element_type_is_stated() -> None:
    model = loaded(FLAT).with_shapes({"x": ("batch", 3, 4)})
    assert model.input_types["x"].shape == (None, 3, 4)
    again = pl.load(message(model)).with_shapes({"x": (None, None, "width")})
    assert sizes(message(again).graph.input) == {"x": ["batch", 3, "width"]}


def test_shapes_serve_simplification() -> None:
    model = loaded(FLAT).with_shapes({"x": (2, 3, 5)}).simplify()
    assert {n.op for n in model.symbol.nodes() if not n.is_variable} == {"Relu", "Reshape"}


def test_shapes_of_another_dialect() -> None:
    model = pl.Model(pl.sym.relu(pl.sym.var("x", shape=(0, 3)), name="y"))
    assert model.with_shapes({"x": (2, None)}).input_types["x"].shape == (2, 3)
    with pytest.raises(pl.UnsupportedError, match="mxnet cannot name open sizes"):
        model.with_shapes({"x": ("batch", 3)})


BAD_SHAPES: dict[str, tuple[Any, str]] = {
    "no input": ({"q": (1,)}, "no input 'q'; its inputs are"),
    "no size": ({"x": (0, 3, 4)}, "0 is no size"),
    "a flag": ({"x": (True, 3, 4)}, "True is no size"),
    "negative": ({"x": ("-2", 3, 4)}, "'-2' is no size"),
    "a fraction": ({"x": ("1.5", 3, 4)}, "'1.5' is no size"),
    "more than 64 bits": ({"x": (1 << 63, 3, 4)}, f"{1 << 63} is no size"),
    "another rank": ({"x": (None, 3)}, "'x' has 3 sizes, not 2"),
    "fewer sizes": ({"x": (2, 3)}, "'x' has 3 sizes, not 2"),
    "more sizes": ({"x": (2, 3, 4, 5)}, "'x' has 3 sizes, not 4"),
    "a comma": ({"x": ("a,b", 3, 4)}, "has a comma"),
}


@pytest.mark.parametrize("what", BAD_SHAPES)
def test_shapes_that_cannot_be_set(what: str) -> None:
    given, text = BAD_SHAPES[what]
    with pytest.raises(pl.GraphError, match=text):
        loaded(FLAT).with_shapes(given)


def test_inputs_that_are_no_tensors_have_no_shape() -> None:
    model = loaded(HEAD + "(seq(float[N]) s) => (float[N] y) { y = ConcatFromSequence<axis=0>(s) }")
    with pytest.raises(pl.GraphError, match="'s' is no tensor"):
        model.with_shapes({"s": (2,)})


def test_attributes_of_a_node() -> None:
    model = loaded(HEAD + "(float[2, 3] x) => (float[2, 3] y) { y = LeakyRelu<alpha=0.5>(x) }")
    name = model.symbol.nodes()[-1].name
    x = -np.ones((2, 3), np.float32)
    assert model.with_attributes(name, {"alpha": "0.25"})(x).asnumpy().max() == -0.25
    plain = model.with_attributes(name, {"alpha": None})
    assert not message(plain).graph.node[0].attribute
    assert model(x).asnumpy().max() == -0.5
    with pytest.raises(pl.GraphError, match="no node 'LeakyRelu_1'; did you mean"):
        model.with_attributes("LeakyRelu_1", {"alpha": "1"})
    with pytest.raises(TypeError, match=r"attribute 'alpha' is 0\.5, but must be a text or None"):
        model.with_attributes(name, {"alpha": 0.5})  # type: ignore[dict-item]
    with pytest.raises(pl.PasslibError, match="alpa"):
        content_of(model.with_attributes(name, {"alpa": "1"}))


FIRST = HEAD + "(float[N, 4] x) => (float[N, 4] a, float[N, 4] b) { a = Relu(x) b = Neg(x) }"
SECOND = (
    HEAD
    + """(float[M, 4] a, float[M, 4] c) => (float[M, 4] y) <float[4] w = {1, 2, 3, 4}> {
    p = Mul(a, w) y = Add(p, c)
}"""
)


def test_merged_by_equal_names() -> None:
    merged = pl.merge(loaded(FIRST), parser.parse_model(SECOND))
    assert (merged.inputs, merged.outputs) == (["x", "c"], ["b", "y"])
    x, c = np.float32([[-1, 2, 3, 4]]), np.ones((1, 4), np.float32)
    found = merged.run({"x": x, "c": c})
    np.testing.assert_array_equal(found["b"], -x)
    np.testing.assert_array_equal(found["y"], np.maximum(x, 0) * [1, 2, 3, 4] + 1)
    onnx.checker.check_model(message(merged), full_check=True)


def test_open_sizes_of_one_name_are_those_of_two_models() -> None:
    first = (
        HEAD
        + """(float[N] x) => (float[M] y, int64[1] k)
        { y = Concat<axis = 0>(x, x) k = Shape(x) }"""
    )
    second = (
        HEAD
        + """(float[N] y, float[N] o, float[Q] p, int64[1] k)
        => (float[N] z, int64[1] d, float[Q] q, float[M] r)
        { z = Add(y, o) s = Shape(o) d = Sub(s, k) q = Neg(p) r = Concat<axis = 0>(p, p) }"""
    )
    merged = pl.merge(loaded(first), loaded(second))
    graph = message(merged).graph
    assert sizes(graph.input) == {"x": ["N"], "o": ["M"], "p": ["Q"]}
    assert sizes(graph.output) == {"z": ["M"], "d": [1], "q": ["Q"], "r": ["M_1"]}
    feeds = {name: np.ones(size, np.float32) for name, size in (("x", 3), ("o", 6), ("p", 2))}
    for made in (merged, merged.simplify(exact=True)):
        assert made.run(feeds)["d"].tolist() == [3]
    known = loaded(HEAD + "(float[2] x) => (float[2] a) { a = Neg(x) }")
    other = loaded(HEAD + "(float[N] a, float[N] b) => (float[N] y) { y = Add(a, b) }")
    assert sizes(message(pl.merge(known, other)).graph.input) == {"x": [2], "b": [2]}


def test_merged_with_itself_by_a_prefix_nested_graphs_included() -> None:
    model = loaded(NESTED)
    with pytest.raises(pl.GraphError, match="both models have values named 'a', 'b'"):
        pl.merge(model, model, {"y": "x"})
    merged = pl.merge(model, model, {"y": "x"}, prefix="second/")
    assert (merged.inputs, merged.outputs) == (["x", "c", "second/c"], ["second/y"])
    onnx.checker.check_model(message(merged), full_check=True)
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    for first in (True, False):
        for second in (True, False):
            c, d = np.array(first), np.array(second)
            expected = model.run({"x": model.run({"x": x, "c": c})["y"], "c": d})["y"]
            found = merged.run({"x": x, "c": c, "second/c": d})["second/y"]
            np.testing.assert_array_equal(found, expected)


def test_merged_parts_are_the_whole() -> None:
    whole = loaded(FLAT)
    merged = pl.merge(whole.extract(outputs="z"), whole.extract(inputs="z", outputs="y"))
    x = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)
    np.testing.assert_array_equal(merged.run({"x": x})["y"], whole.run({"x": x})["y"])


ODD = FIRST.replace("N, 4]", "N, 5]")
NOT_MERGED: dict[str, tuple[str, str, dict[str, str] | None, str]] = {
    "no output": (FIRST, SECOND, {"q": "a"}, "the first model has no output 'q'"),
    "no input": (FIRST, SECOND, {"a": "w"}, "the second model has no input 'w'"),
    "twice": (FIRST, SECOND, {"a": "c", "b": "c"}, "more than once"),
    "nothing in common": (
        FIRST,
        SECOND.replace("[M, 4] a", "[M, 4] k").replace("(a", "(k"),
        None,
        "connect some of the outputs",
    ),
    "shapes": (ODD, SECOND, None, r"'a' is float32 \(\?, 5\), and input 'a' float32 \(\?, 4\)"),
    "types": (FIRST, SECOND.replace("float", "double"), None, "float32 .* float64"),
    "versions": (FIRST, SECOND.replace(": 17]", ": 18]"), None, "versions 17 and 18"),
}


@pytest.mark.parametrize("what", NOT_MERGED)
def test_models_that_cannot_be_merged(what: str) -> None:
    first, second, connect, text = NOT_MERGED[what]
    with pytest.raises(pl.GraphError, match=text):
        pl.merge(loaded(first), loaded(second), connect)


def test_only_onnx_models_are_merged() -> None:
    model = pl.Model(pl.sym.relu(pl.sym.var("x"), name="y"))
    with pytest.raises(pl.UnsupportedError, match="one is of mxnet"):
        pl.merge(model, model)


FUNCTION = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (float[2] {x}) => (float[2] {y}) {{ {y} = f.act({x}) }}
<domain: "f", opset_import: ["": 17]> act (p) => (o) {{ o = {op}(p) }}"""


def test_functions_of_both_models(tmp_path: Path) -> None:
    first = FUNCTION.format(x="x", y="y", op="Relu")
    merged = pl.merge(loaded(first), loaded(FUNCTION.format(x="y", y="z", op="Relu")))
    assert len(message(merged).functions) == 1
    merged.save(tmp_path / "m.onnx")
    other = loaded(FUNCTION.format(x="y", y="z", op="Neg"))
    with pytest.raises(pl.GraphError, match=r"differ in function \'f\.act\'"):
        pl.merge(loaded(first), other)


def test_opset_and_merge_of_models_with_data_in_other_files(tmp_path: Path) -> None:
    """PyTorch's exporter puts weights into a file of their own."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x) => (float[n, 4] y) <float[4] w = {1, 2, 3, 4}> { y = Mul (x, w) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
    pl.load(tmp_path / "a.onnx").save(tmp_path / "b.onnx", external_data=True, size_threshold=0)
    model = pl.load(tmp_path / "b.onnx")
    x = {"x": np.ones((2, 4), np.float32)}
    raised = model.with_opset(18)
    raised.save(tmp_path / "c.onnx")
    assert onnx.load(tmp_path / "c.onnx").opset_import[0].version == 18
    (result,) = model.run(x).values()
    np.testing.assert_array_equal(*raised.run(x).values(), result)
    np.testing.assert_array_equal(*pl.merge(model, model, prefix="b_").run(x).values(), result**2)
