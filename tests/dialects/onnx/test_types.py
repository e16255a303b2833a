"""Types in ONNX files stay true, whatever a pass changes before the value."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_models
import passlib
from onnx_models import HEAD, X

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("good", "onnx_edits"):
        load_plugin(name)


TWO_KINDS = (
    HEAD
    + """(float[N, 4] x) => (float[N, 4] y, int64[N] z) {
    a = Relu(x)
    y = Identity(a)
    z = ArgMax<axis = 1, keepdims = 0>(a)
}"""
)
STEPS = (
    HEAD
    + """(float[2, 4] x) => (float[4, 2] y) {
    a = Relu(x)
    b = Transpose(a)
    c = Exp(b)
    y = Neg(c)
}"""
)
PLAIN_STEPS = STEPS.replace("Exp", "Identity").replace("Neg", "Identity")

TYPES_AFTER: dict[str, tuple[str, str, dict[str, str], dict[str, tuple[int, list[Any]]]]] = {
    "another operator gives the output": (
        TWO_KINDS, "appendOperator", {"op": "Shape"}, {"y": (7, [2]), "z": (7, ["N"])},
    ),
    "outputs change places": (
        TWO_KINDS, "reverseOutputs", {}, {"y": (7, ["N"]), "z": (1, ["N", 4])},
    ),
    "inputs of a node have another shape": (
        STEPS,
        "putBefore",
        {"node": "Exp_2", "op": "Transpose"},
        {"y": (1, [2, 4]), "a": (1, [2, 4]), "b": (1, [4, 2]), "c": (1, [2, 4])},
    ),
    "inputs of a node have another type": (
        PLAIN_STEPS,
        "putBefore",
        {"node": "Transpose_1", "op": "IsNaN"},
        {"y": (9, [4, 2]), "a": (1, [2, 4]), "b": (9, [4, 2])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TYPES_AFTER)
def test_types_are_those_of_the_values(what: str, tmp_path: Path) -> None:
    text, edit, options, expected = TYPES_AFTER[what]
    source = onnx_models.save(text, tmp_path / "a.onnx")
    onnx.save(onnx.shape_inference.infer_shapes(onnx.load(source)), source)
    edited = passlib.load(source).optimize_for(edit, **options)
    edited.save(tmp_path / "b.onnx")
    graph = onnx.load(tmp_path / "b.onnx").graph
    onnx.checker.check_model(tmp_path / "b.onnx", full_check=True)
    edited.run({"x": X})
    found = {}
    for value in (*graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        sizes = [dim.dim_param or dim.dim_value for dim in tensor.shape.dim]
        found[value.name] = (tensor.elem_type, sizes)
    assert {name: found[name] for name in expected} == expected


RENEWED = {
    "a name of the file": (
        """(float[n, 4] x) => (float[n, 4] y) <float[n, 4] a>
        { a = Relu(x) y = Neg(a) }""",
        "float32 (n, 4)",
    ),
    "a size without a name in the file": (
        """(float[n, 4] x) => (float[k, 4] y)
        <float[k, 4] a, int64[1] zero = {0}, int64[1] one = {1}>
        { a = Slice(x, zero, one) y = Neg(a) }""",
        "float32 (?, 4)",
    ),
    "a sequence": (
        """(float[n, 4] x) => (float[n, 4] y) <seq(float[n, 4]) a, int64 zero = {0}>
        { a = SequenceConstruct(x, x) y = SequenceAt(a, zero) }""",
        "seq(float32 (n, 4))",
    ),
    "an optional value": (
        """(float[n, 4] x) => (float[n, 4] y) <optional(float[n, 4]) a>
        { a = Optional(x) y = OptionalGetElement(a) }""",
        "optional(float32 (n, 4))",
    ),
    "a map": (
        """(float[n, 4] x) => (float[n, 4] y, seq(map(int64, float)) a)
        { a = ai.onnx.ml.ZipMap<classlabels_int64s = [1, 2, 3, 4]>(x) y = Neg(x) }""",
        "seq(map(int64, float32 ()))",
    ),
}


@pytest.mark.parametrize("what", RENEWED)
def test_types_behind_a_new_node(what: str, tmp_path: Path) -> None:
    text, expected = RENEWED[what]
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g ' + text
    )
    (tmp_path / "a.onnx").write_bytes(made.SerializeToString())
    first = f"{made.graph.node[0].op_type}_0"
    passlib.load(tmp_path / "a.onnx").optimize_for("putBefore", node=first, op="Abs").save(
        tmp_path / "b.onnx"
    )
    graph = onnx.load(tmp_path / "b.onnx").graph
    (kind,) = [v.type for v in (*graph.value_info, *graph.output) if v.name == "a"]
    assert shown(kind) == expected


@pytest.mark.parametrize("name", ["batch/2", "floor(n)", '"n"', "a b"])
def test_names_of_sizes_stay(name: str, tmp_path: Path) -> None:
    text = HEAD + "(float[n, 4] x) => (float[n, 4] y) <float[n, 4] a> { a = Relu(x) y = Neg(a) }"
    made = onnx.parser.parse_model(text)
    for value in (*made.graph.input, *made.graph.value_info, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = name
    model = passlib.load(made)
    for changed in (
        model.optimize_for("putBefore", node="Relu_0", op="Abs"),
        model.with_shapes({"x": (None, 4)}),
    ):
        changed.save(tmp_path / "b.onnx")
        graph = onnx.load(tmp_path / "b.onnx").graph
        for value in (*graph.input, *graph.value_info, *graph.output):
            assert shown(value.type) == f"float32 ({name}, 4)"


def test_names_that_a_pass_states_for_a_new_input(tmp_path: Path) -> None:
    @passlib.graph_pass(name="feed_another")
    def feed_another(graph: passlib.Graph) -> None:
        """Read a new input."""
        types = {"__shape__": "(0, 4)", "__dtype__": "0", "__dim_params__": "rows/2,"}
        new = graph.add_variable("fresh", types)
        graph.connect(new.outputs[0], graph.find("Relu_0"), 0)

    text = HEAD + "(float[n, 4] x) => (float[n, 4] y) <float[n, 4] a> { a = Relu(x) y = Neg(a) }"
    passlib.load(onnx.parser.parse_model(text)).optimize_for("feed_another").save(
        tmp_path / "b.onnx"
    )
    graph = onnx.load(tmp_path / "b.onnx").graph
    found = {v.name: shown(v.type) for v in (*graph.input, *graph.value_info, *graph.output)}
    expected = "float32 (rows/2, 4)"
    assert {name: found[name] for name in ("fresh", "a")} == {"fresh": expected, "a": expected}


def shown(kind: onnx.TypeProto) -> str:
    """Return a type as text, such as ``seq(float32 (n, ?))``."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        name = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).name
        sizes = [dim.dim_param or dim.dim_value or "?" for dim in kind.tensor_type.shape.dim]
        return f"{name} ({', '.join(map(str, sizes))})"
    if which == "map_type":
        key = onnx.helper.tensor_dtype_to_np_dtype(kind.map_type.key_type).name
        return f"map({key}, {shown(kind.map_type.value_type)})"
    short = which.removesuffix("_type").replace("sequence", "seq")
    return f"{short}({shown(getattr(kind, which).elem_type)})"


NOT_ARRAYS = {
    "strings": "string[2]",
    "sequences": "seq(float[2])",
    "optionals": "optional(float[2])",
}


@pytest.mark.parametrize("what", NOT_ARRAYS)
def test_passes_work_on_inputs_that_are_not_tensors(what: str, tmp_path: Path) -> None:
    kind = NOT_ARRAYS[what]
    text = (
        HEAD
        + f"""({kind} s, float[2, 4] x) => (float[2, 4] y, {kind} t)
        <float[4] w = {{1.0, 2.0, 3.0, 4.0}}>
        {{ y = Add(x, w) t = Identity(s) }}"""
    )
    model = passlib.load(onnx_models.save(text, tmp_path / "a.onnx"))
    model.optimize_for("interpose").save(tmp_path / "b.onnx")
    onnx.checker.check_model(tmp_path / "b.onnx", full_check=True)


def test_an_initializer_that_becomes_an_output_of_a_nested_graph(tmp_path: Path) -> None:
    # The output needs a new name: that in the file is now the name of a value outside.
    text = (
        HEAD
        + """(float[3] x, bool c) => (float[3] g) {
        g = If(c) <
          then_branch = then () => (g) <float[3] f = {1.0, 2.0, 3.0}> { g = Identity(f) },
          else_branch = otherwise () => (e) { e = Identity(x) }>
    }"""
    )
    source = tmp_path / "a.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    edited = passlib.load(source)
    for edit in ("interpose", "dropIdentities", "interpose"):
        edited = edited.optimize_for(edit)
    edited.save(tmp_path / "b.onnx")
    onnx.checker.check_model(tmp_path / "b.onnx", full_check=True)
    value = np.ones(3, np.float32)
    for c, expected in ((True, [1, 2, 3]), (False, [1, 1, 1])):
        y = edited.run({"x": value, "c": np.array(c)})["g"]
        assert y.asnumpy().tolist() == expected


@pytest.mark.parametrize("ir_version", [3, 8])
def test_weights_of_another_shape(
    ir_version: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = onnx.helper.make_tensor_value_info
    weight = onnx.numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    inputs = [value("x", 1, [2, 4]), value("w", 1, [4])][: 2 if ir_version < 4 else 1]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Shape", ["w"], ["s"]), onnx.helper.make_node("Add", "xw", "y")],
        "g",
        inputs,
        [value("y", 1, [2, 4])],
        [weight],
    )
    imports = [onnx.helper.make_opsetid("", 8)]
    onnx.save(
        onnx.helper.make_model(graph, ir_version=ir_version, opset_imports=imports),
        tmp_path / "a.onnx",
    )
    model = passlib.load(tmp_path / "a.onnx")
    edited = model.optimize_for("addAxis", name="w").optimize_for("addAxis", name="w")
    edited.optimize_for("showJson")
    shown = capsys.readouterr().out
    assert "[[1,1,4]]" in shown
    assert "[[1,2,4]]" in shown
    edited.to_onnx(tmp_path / "b.onnx")
    y = edited.run({"x": X})["y"].asnumpy()
    np.testing.assert_array_equal(y, (X + np.arange(4, dtype=np.float32))[None])


LAYERS = """<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
g (float[N, 2, 4, 4] x) => (float[N, 5] y)
<float[3, 2, 1, 1] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, BIAS
 float[3] scale = {1.0, 2.0, 3.0}, float[3] shift = {1.0, 0.0, 1.0},
 float[3] mean = {0.5, 0.5, 0.5}, float[3] variance = {1.0, 4.0, 9.0},
 float[N, 3, 4, 4] a, float[N, 3, 4, 4] NORMALIZED, float[N, 7] c>
{
    a = Conv(CONV)
    b = BatchNormalization(a, scale, shift, mean, variance)
    c = mine.Unknown(b)
    y = mine.Other(c)
}"""


@pytest.mark.parametrize("normalized", ["b", "other"])
@pytest.mark.parametrize("bias", [True, False])
def test_folding_leaves_types_that_no_inference_knows(
    bias: bool, normalized: str, tmp_path: Path
) -> None:
    passlib.library.load_standard()
    text = LAYERS.replace("CONV", "x, w, bias" if bias else "x, w")
    text = text.replace("BIAS", "float[3] bias = {1.0, 1.0, 1.0}," if bias else "")
    source = tmp_path / "a.onnx"
    onnx.save(onnx.parser.parse_model(text.replace("NORMALIZED", normalized)), source)
    edited = passlib.load(source).optimize_for("foldBatchNormalization", skip_infer=True)
    edited.save(tmp_path / "b.onnx")
    graph = onnx.load(tmp_path / "b.onnx").graph
    assert [node.op_type for node in graph.node] == ["Conv", "Unknown", "Other"]
    # The result of BatchNormalization has the type of Conv's, whether or not the file states it.
    found = {value.name: len(value.type.tensor_type.shape.dim) for value in graph.value_info}
    assert {name: found[name] for name in found if name in "abc"} == {"a": 4, "c": 2}


SIZES = (
    HEAD
    + """(float[2, 4] x) => (float[4, 2] y)
<float[2] half = {2.0, 1.0}, float[2] two = {2.0, 2.0}, int64[2] sizes, float[4, 2] z>
{
    product = Mul(half, two)
    sizes = Cast<to = 7>(product)
    z = Reshape(x, sizes)
    y = Identity(z)
}"""
)


def test_elements_that_determine_a_shape_later(tmp_path: Path) -> None:
    source = onnx_models.save(SIZES, tmp_path / "a.onnx")
    # The sizes that are computed from it change.
    edited = passlib.load(source).optimize_for("fillParameter", name="half", value="-0.5")
    edited.save(tmp_path / "b.onnx")
    graph = onnx.load(tmp_path / "b.onnx").graph
    stated = {value.name: value.type.tensor_type.shape.dim for value in graph.value_info}
    assert not any(dim.dim_value for dim in stated.get("z", ()))


@pytest.mark.parametrize("text", ["\u00b2", "9" * 5000, "-1", ""])
@pytest.mark.parametrize("key", ["__id__", "__outer__", "to"])
def test_bookkeeping_that_is_not_a_number(key: str, text: str, tmp_path: Path) -> None:
    model = passlib.load(onnx_models.save(STEPS, tmp_path / "a.onnx"))
    name, value = ("Exp_2", f"subgraph[{text}]") if key == "to" else ("x", f"input.{text}")
    edited = model.optimize_for("setAttribute", node=name, key=key, value=value)
    with contextlib.suppress(passlib.errors.PasslibError):
        edited.save(tmp_path / "b.onnx")
    assert len(edited.inputs) == 1


def test_an_output_without_a_known_type_is_refused_by_name(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    g (float[2] x) => (float[2] y)
    {
       [first] t = own.Unknown(x)
       [second] u = Identity(t)
       [third] y = Relu(u)
    }
    """
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    model = passlib.load(path)
    inner = passlib.Model(model.symbol.get_internals()["u"], model.args, {})
    with pytest.raises(passlib.errors.UnsupportedError, match="its type is not known"):
        inner.save(tmp_path / "b.onnx")
    assert not (tmp_path / "b.onnx").exists()


def test_a_negative_size_is_unknown() -> None:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, -1, 3])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    relu = onnx.helper.make_node("Relu", ["x"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([relu], "g", [x], [y]))
    assert "x float32 (2, ?, 3)" in str(passlib.load(model).summary())


@pytest.mark.parametrize("node", ["BiasGelu(x, b)", "FastGelu(x)", "Gelu(x)", "QuickGelu(x)"])
def test_operators_of_onnx_runtime_are_inferred(node: str) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft": 1]> '
        "g (float[2, 3] x, float[3] b, float[N] z) => (float[A, B] y) "
        f"{{ a = com.microsoft.{node} s = Shape(a) y = Reshape(z, s) }}"
    )
    folded = passlib.load(model).optimize_for("foldShapes").symbol
    assert [each.op for each in folded.nodes() if not each.is_variable] == ["Reshape"]


def test_a_wrong_description_of_an_output_behind_large_weights_is_replaced(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 8] x) => (float[1, m] y) '
        "<int64 zero = {0}, int64[1] axis = {0}, int64[2] rest = {1, 400}> "
        "{ p = MatMul(x, w) s = Shape(x) a = Gather(s, zero) b = Unsqueeze(a, axis) "
        "c = Concat<axis = 0>(b, rest) y = Reshape(p, c) }"
    )
    model = onnx.parser.parse_model(text)
    weight = np.ones((8, 400), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    passlib.simplify(model).save(tmp_path / "a.onnx")
    (output,) = onnx.load(tmp_path / "a.onnx").graph.output
    sizes = output.type.tensor_type.shape.dim
    assert [dim.dim_value or dim.dim_param for dim in sizes] == ["n", 1, 400]


def test_stated_elements_of_sequences_stay(tmp_path: Path) -> None:
    """Inference of package onnx knows less of them."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, seq(float[n]) s) => '
        "(seq(float[n]) y) { a = Neg(x) b = Neg(a) y = SequenceInsert(s, b) }"
    )
    made = tmp_path / "made.onnx"
    passlib.simplify(model).save(made)
    assert onnx.load(made).graph.output[0].type == model.graph.output[0].type
