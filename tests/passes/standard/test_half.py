"""toHalf: which operators are in half precision, and that the model stays valid and close."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import control_graphs
import passlib
import random_graphs
from passlib._core import half_types
from passlib.arrays.dtypes import as_dtype
from rewriting import after, operators, parsed, results, weights

X = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
HALF, FLOAT = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT


def types(data: bytes) -> dict[str, int]:
    """Return the element types of the values of a model, those of nested graphs included."""
    made = onnx.shape_inference.infer_shapes(
        onnx.ModelProto.FromString(data), check_type=True, strict_mode=True
    )
    found = {}
    pending = [made.graph]
    while pending:
        graph = pending.pop()
        for value in (*graph.input, *graph.value_info, *graph.output):
            found[value.name] = value.type.tensor_type.elem_type
        found.update({tensor.name: tensor.data_type for tensor in graph.initializer})
        pending += [each.g for node in graph.node for each in node.attribute if each.HasField("g")]
    return found


def computed_in_half(data: bytes) -> set[str]:
    """Return the operators with a result in half precision, without Cast."""
    known = types(data)
    graphs = [onnx.ModelProto.FromString(data).graph]
    found = set()
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            if node.op_type != "Cast" and HALF in [known.get(name) for name in node.output]:
                found.add(node.op_type)
            graphs += [each.g for each in node.attribute if each.HasField("g")]
    return found


def check(data: bytes, made: bytes, feeds: dict[str, Any], tolerance: float = 2e-2) -> None:
    """Check that a model is valid and computes the same in half precision."""
    onnx.checker.check_model(made, full_check=True)
    inputs = onnx.ModelProto.FromString(made).graph.input
    halves = {v.name for v in inputs if v.type.tensor_type.elem_type == HALF}
    given = {name: x.astype(np.float16) if name in halves else x for name, x in feeds.items()}
    for left, right in zip(results(data, feeds), results(made, given), strict=True):
        np.testing.assert_allclose(
            np.asarray(right, np.float64), left, rtol=tolerance, atol=tolerance
        )


W = weights("w", 4, 4)
BY_OPERATOR = {
    # The operators of a row between two MatMul, and those of them in half precision.
    "elementwise": ("s = Relu(a) z = Sigmoid(s)", {"Relu", "Sigmoid"}),
    "movement": ("s = Transpose(a) z = Transpose(s)", {"Transpose"}),
    "reduction": ("s = ReduceMean<axes = [1]>(a) z = Add(a, s)", {"ReduceMean", "Add"}),
    "normalization": ("z = LayerNormalization(a, v, v)", {"LayerNormalization"}),
    "choice": ("k = Greater(a, v) z = Where(k, a, v)", {"Where"}),
    "no such type": ("z = Celu(a)", set()),
    "running sum": ("i = Constant<value_int = 1>() z = CumSum(a, i)", set()),
    "filled": (
        "n = Shape(a) s = ConstantOfShape<value = float[1] {3}>(n) z = Add(a, s)",
        {"ConstantOfShape", "Add"},
    ),
    "from integers": ("i = ArgMax<axis = 1>(a) s = Cast<to = 1>(i) z = Add(a, s)", {"Add"}),
    "random": ("r = RandomUniformLike<high = 0.001>(a) z = Add(a, r)", {"Add"}),
    "diagonal": ("e = EyeLike(a) z = Add(a, e)", {"Add"}),
    "range": (
        ("s = Constant<value_float = 0.0>() e = Constant<value_float = 4.0>() "
        "d = Constant<value_float = 1.0>() r = Range(s, e, d) z = Add(a, r)"),
        {"Add"},
    ),
    "sizes": (
        ("c = Constant<value_floats = [1.0, 1.0, 1.0, 2.0]>() i = Constant<value_ints = [0, 1]>() "
        "u = Unsqueeze(a, i) q = Resize<mode = \"nearest\">(u, , c) "
        "d = Constant<value_ints = [-1]>() g = Constant<value_ints = [0, 0, 0, 0]>() "
        "f = Constant<value_ints = [1, 1, 2, 4]>() h = Slice(q, g, f) z = Squeeze(h, i)"),
        {"Unsqueeze", "Resize", "Slice", "Squeeze"},
    ),
    "whole": ("i = Cast<to = 7>(a) s = Cast<to = 1>(i) z = Add(a, s)", {"Add"}),
    "quantized": (
        ("c = Constant<value = float {0.05}>() o = Constant<value = uint8 {128}>() "
        "q = QuantizeLinear(a, c, o) z = DequantizeLinear(q, c, o)"),
        set(),
    ),
    "batch normalization": ("z = BatchNormalization(a, v, v, v, v)", {"BatchNormalization"}),
    "sequence": (
        "q = SequenceConstruct(a, a) i = Constant<value_int = 1>() z = SequenceAt(q, i)", set(),
    ),
    "untouched": ("z = Dropout(a)", {"Dropout"}),
}  # fmt: skip


@pytest.mark.parametrize("keep_io", [True, False])
@pytest.mark.parametrize("name", BY_OPERATOR)
def test_operators_between_layers(name: str, keep_io: bool, tmp_path: Path) -> None:
    text, expected = BY_OPERATOR[name]
    data = parsed(
        f"g (float[2, 4] x) => (float[A, B] y) <{W}, {weights('v', 4)}> "
        f"{{ a = MatMul(x, w) {text} y = MatMul(z, w) }}"
    )
    made = after(data, "toHalf", tmp_path, keep_io=keep_io)
    assert computed_in_half(made) - {"MatMul"} == expected
    # Rounding decides which integer a number becomes.
    check(data, made, {"x": X}, 1.5 if name in ("whole", "from integers", "quantized") else 3e-2)
    known = types(made)
    assert known["x"] == known["y"] == (FLOAT if keep_io else HALF)
    casts = [n for n in onnx.ModelProto.FromString(made).graph.node if n.op_type == "Cast"]
    made_by_casts = {n.output[0] for n in casts if n.attribute[0].i in (FLOAT, HALF)}
    assert not any(node.input[0] in made_by_casts for node in casts)


NESTED = """g (float[2, 4] x, bool c, int64 n) => (float[A, B] y, float[D, E, F] t) <{w}>
{{
  a = MatMul(x, w)
  b = If(c) <
    then_branch = m () => (float[2, 4] r) {{
      k = Constant <value = float[4] {{1, 2, 3, 4}}> () s = Add(a, k) r = MatMul(s, w) }},
    else_branch = e () => (float[2, 4] u) {{ u = Neg(a) }}>
  q, t = Loop(n, c, b) <body = l (int64 i, bool go, float[2, 4] p) =>
    (bool on, float[2, 4] next, float[2, 4] part) {{
      on = Identity(go) f = MatMul(p, w) next = Tanh(f) part = Add(next, a) }}>
  y = MatMul(q, w)
}}"""


def test_nested_graphs_are_converted(tmp_path: Path) -> None:
    data = parsed(NESTED.format(w=W))
    made = after(data, "toHalf", tmp_path)
    assert {"MatMul", "Add", "Tanh"} <= computed_in_half(made)
    for condition in (True, False):
        feeds = {"x": X, "c": np.array(condition), "n": np.array(3)}
        check(data, made, feeds, 5e-2)
    graph = onnx.ModelProto.FromString(made).graph
    assert all(tensor.data_type == HALF for tensor in graph.initializer)
    assert operators(made)["Cast"] <= 9


def letters(schema: Any, half: str) -> str:
    """Return a letter for each type parameter that can be float32 and the half type."""
    open_types = [
        each.type_param_str
        for each in schema.type_constraints
        if {f"tensor({half})", "tensor(float)"} <= set(each.allowed_type_strs)
    ]
    used: dict[str, str] = {}
    sides = []
    for formal in (schema.inputs, schema.outputs):
        texts = [each.type_str for each in formal]
        side = "".join(
            used.setdefault(text, chr(ord("a") + len(used))) if text in open_types else "."
            for text in texts
        )
        is_repeated = formal and formal[-1].option == type(formal[-1].option).Variadic
        sides.append(side.rstrip(".") + "*" * bool(is_repeated and not side.endswith(".")))
    return ">".join(sides) if used else ""


def test_types_are_those_of_onnx() -> None:
    names = {each.name for each in onnx.defs.get_all_schemas_with_history() if not each.domain}
    for name in names:
        for version in range(onnx.defs.onnx_opset_version() + 1):
            schema = onnx.defs.get_schema(name, version, "") if has(name, version) else None
            for half, code in (("float16", HALF), ("bfloat16", onnx.TensorProto.BFLOAT16)):
                wanted = None if schema is None else letters(schema, half)
                assert half_types(name, version, code) == wanted, (name, version, half)
    assert half_types("Twice", 17, HALF) is None
    assert half_types("Celu", 1 << 40, HALF) == "a>a"


def has(name: str, version: int) -> bool:
    """Whether an operator set has an operator."""
    try:
        return bool(onnx.defs.get_schema(name, version, ""))
    except onnx.defs.SchemaError:
        return False


def test_a_value_has_one_cast_for_all_its_readers(tmp_path: Path) -> None:
    made = after(
        parsed(
            f"g (float[2, 4] x) => (float[A, B] y, float[2, 4] z) <{W}> "
            "{ a = MatMul(x, w) b = MatMul(x, w) c = Celu(a) d = Celu(a) e = Add(c, d) "
            "f = Sub(b, x) "
            "h = Add(e, f) y = MatMul(h, w) z = Celu(x) }"
        ),
        "toHalf",
        tmp_path,
    )
    sources = [
        n.input[0] for n in onnx.ModelProto.FromString(made).graph.node if n.op_type == "Cast"
    ]
    assert len(sources) == len(set(sources)) == 4  # x, a, e, and the output


def test_a_model_that_would_gain_nothing_stays(tmp_path: Path) -> None:
    data = parsed("g (float[2, 4] x) => (float[2, 4] y) { a = Relu(x) y = Exp(a) }")
    assert after(data, "toHalf", tmp_path) == data
    assert computed_in_half(after(data, "toHalf", tmp_path, keep_io=False)) == {"Relu", "Exp"}


def test_kept_operators_and_nodes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = onnx.ModelProto.FromString(
        parsed(
            f"g (float[2, 4] x) => (float[A, B] y) <{W}> "
            "{ a = MatMul(x, w) b = Exp(a) c = MatMul(b, w) d = Softmax(c) y = MatMul(d, w) }"
        )
    )
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    data = model.SerializeToString()
    assert computed_in_half(after(data, "toHalf", tmp_path)) == {"MatMul", "Exp", "Softmax"}
    made = after(data, "toHalf", tmp_path, keep_ops=["Softmax"])
    assert computed_in_half(made) == {"MatMul", "Exp"}
    made = after(data, "toHalf", tmp_path, keep_nodes=["n1", "n0"])
    known = types(made)
    assert [known[node.output[0]] for node in onnx.ModelProto.FromString(made).graph.node
            if node.op_type == "Exp"] == [FLOAT]  # fmt: skip
    assert "in float32: Softmax: listed in keep_ops" in capfd.readouterr().out
    # A weight that both types read is there in both.
    assert sorted(t.data_type for t in onnx.ModelProto.FromString(made).graph.initializer) == [
        FLOAT, HALF,
    ]  # fmt: skip


CONSTANTS = {
    # Operators on a, a constant, and what becomes of it.
    "mask": ("z = Add(a, k)", [0, 0, 0, -3.4e38], [0, 0, 0, -65504]),
    "infinite mask": ("z = Add(a, k)", [0, 0, 0, -np.inf], [0, 0, 0, -np.inf]),
    "bound": ("l = Constant<value_float = -1e5>() z = Max(a, k, l)", [1e5] * 4, [65504] * 4),
    "factor": ("z = Mul(a, k)", [1e5, 1, 1, 1], None),
    "summand": ("z = Add(a, k)", [1e5, 1, 1, 1], None),
    "epsilon": ("z = Add(a, k)", [1e-12], [2.0**-24]),
    "least divisor": ("m = Max(a, k) z = Div(a, m)", [1e-12], [2.0**-24]),
    "lower bound": ("z = Clip(a, k)", [1e-12], [2.0**-24]),
    "added before a logarithm": ("b = Abs(a) m = Add(b, k) z = Log(m)", [1e-10], None),
    "lower bound of a logarithm": ("m = Clip(a, k) z = Log(m)", [1e-10], None),
    "least argument of a logarithm": ("m = Max(k, a) z = Log(m)", [1e-10], None),
    "negligible factor": ("z = Mul(a, k)", [1e-12], None),
    "divisor": ("z = Div(a, k)", [1e-9, 1, 1, 1], None),
    "choice": ("c = Greater(a, w) z = Where(c, a, k)", [-1e9] * 4, [-65504] * 4),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_out_of_range(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, numbers, expected = CONSTANTS[name]
    model = onnx.ModelProto.FromString(
        parsed(
            f"g (float[4, 4] x) => (float[A, B] y, float[4, 4] z) <{W}> "
            f"{{ a = MatMul(x, w) {text} y = MatMul(z, w) }}"
        )
    )
    model.graph.initializer.append(numpy_helper.from_array(np.float32(numbers), "k"))
    made = after(model.SerializeToString(), "toHalf", tmp_path)
    kept = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in onnx.ModelProto.FromString(made).graph.initializer
        if tensor.name != "w"
    }
    (array,) = [kept[key] for key in kept if key.startswith("k")]
    printed = capfd.readouterr().out
    if expected is None:
        assert array.dtype == np.float32
        assert "stays in float32" in printed
    else:
        assert array.dtype == np.float16
        assert array.tolist() == [float(np.float16(each)) for each in expected]
        assert ("becomes" in printed) == (name != "infinite mask")
    off = after(model.SerializeToString(), "toHalf", tmp_path, clamp=False)
    if name in ("mask", "bound", "choice"):
        arrays = {t.name: t.data_type for t in onnx.ModelProto.FromString(off).graph.initializer}
        assert arrays["k"] == FLOAT


@pytest.mark.parametrize("text", ["z = Max(k, a)", "z = Clip(a, k)", "z = Add(a, k)"])
def test_logarithms_of_small_numbers(text: str, tmp_path: Path) -> None:
    data = parsed(
        f"g (float[2, 4] x) => (float[A, B] y) <{W}> {{ k = Constant<value_float = 1e-10>() "
        f"b = MatMul(x, w) a = Sub(b, b) {text} l = Log(z) m = MatMul(l, w) y = Identity(m) }}"
    )
    check(data, after(data, "toHalf", tmp_path), {"x": X}, 2e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_are_rounded_as_by_numpy(dtype: str) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 80000, np.uint32)
    with np.errstate(all="ignore"):
        halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = halves.view(np.uint32) + 0x1000
    array = np.concatenate([bits.view(np.float32), halves, ties.view(np.float32)])
    array = array[~(np.abs(array) > 65504)]
    array = array[: array.size // 4 * 4].reshape(4, -1)
    model = onnx.ModelProto.FromString(
        parsed("g (float[2, 4] x) => (float[A, B] y) { y = MatMul(x, w) }")
    )
    model.graph.initializer.append(numpy_helper.from_array(array, "w"))
    made = passlib.load(model).optimize_for("toHalf", dtype=dtype)
    with np.errstate(all="ignore"):
        wanted = array.astype(as_dtype(dtype))
    assert made.args["w"].dtype == wanted.dtype
    assert made.args["w"].tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "text",
    ["nonsense", '{"dtype": "float32"}', '{"dtype": "float32", "shape": [1], "data": [[2]]}',
     '{"dtype" : "float32", "shape": [1], "data": [2.0]}'],
)  # fmt: skip
def test_fillings_that_cannot_be_read_stay(text: str) -> None:
    data = parsed(
        f"g (float[2, 4] x) => (float[A, B] y) <{W}> {{ a = MatMul(x, w) n = Shape(a) "
        "s = ConstantOfShape<value = float[1] {3}>(n) b = Add(a, s) y = MatMul(b, w) }"
    )

    @passlib.graph_pass(replace=True)
    def fill(graph: passlib.Graph) -> None:
        (node,) = graph.sorted("ConstantOfShape")
        node.attrs["value"] = text

    made = passlib.load(data).optimize_for("fill").optimize_for("toHalf")
    values = [node.attrs["value"] for node in made.symbol.nodes() if node.op == "ConstantOfShape"]
    assert values == [text]


def test_masks_computed_from_integers_are_clamped(tmp_path: Path) -> None:
    data = parsed(
        f"g (float[2, 4] x, int64[4] m) => (float[A, B] y) <{W}> "
        "{ a = MatMul(x, w) f = Cast<to = 1>(m) o = Constant<value_float = 1.0>() "
        "s = Sub(o, f) k = Constant<value_float = -3.4028235e38>() t = Mul(s, k) "
        "z = Add(a, t) p = Softmax(z) y = MatMul(p, w) }"
    )
    made = after(data, "toHalf", tmp_path)
    for mask in ([1, 1, 0, 0], [0, 0, 0, 0]):
        check(data, made, {"x": X, "m": np.array(mask)}, 0.5 if not any(mask) else 2e-2)


def test_bfloat16(tmp_path: Path) -> None:
    data = parsed(NESTED.format(w=W))
    made = after(data, "toHalf", tmp_path, dtype="bfloat16")
    onnx.checker.check_model(made, full_check=True)
    graph = onnx.ModelProto.FromString(made).graph
    assert {t.data_type for t in graph.initializer} == {onnx.TensorProto.BFLOAT16}


def test_doubles_are_cast_once(tmp_path: Path) -> None:
    nodes = "a = Cast<to = 1>(x) b = MatMul(a, w) y = Cast<to = 11>(b)"
    text = f"g (double[4, 4] x) => (double[4, 4] y) <{W}> {{ {nodes} }}"
    passlib.to_half(parsed(text)).save(tmp_path / "half.onnx")
    found = onnx.load(tmp_path / "half.onnx").graph.node
    assert [node.op_type for node in found] == ["Cast", "MatMul", "Cast"]
    assert [found[place].attribute[0].i for place in (0, 2)] == [10, 11]


def test_simplify_does_not_convert(tmp_path: Path) -> None:
    data = parsed(f"g (float[2, 4] x) => (float[A, B] y) <{W}> {{ y = MatMul(x, w) }}")
    assert not computed_in_half(after(data, "simplify", tmp_path))


def test_half_precision_of_the_file_is_not_cast_twice(tmp_path: Path) -> None:
    data = parsed(
        f"g (float16[2, 4] x) => (float16[A, B] y) <{W}> "
        "{ f = Cast<to = 1>(x) a = MatMul(f, w) b = MatMul(a, w) y = Cast<to = 10>(b) }"
    )
    made = after(data, "toHalf", tmp_path)
    assert operators(made)["Cast"] <= 1
    (have,) = results(made, {"x": X.astype(np.float16)})
    (want,) = results(data, {"x": X.astype(np.float16)})
    np.testing.assert_allclose(have, want, rtol=2e-2)


@pytest.mark.parametrize("keep_io", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_stay_valid(seed: int, keep_io: bool, tmp_path: Path) -> None:
    drawn = random_graphs.draw(seed)
    graphs = [(drawn.model(), drawn.feeds), control_graphs.draw(seed)]
    for model, _ in graphs:
        if not model.graph.output:
            continue
        data = model.SerializeToString()
        try:
            onnx.checker.check_model(data, full_check=True)
        except onnx.checker.ValidationError:
            continue
        made = passlib.load(data).optimize_for("toHalf", keep_io=keep_io)
        made.save(tmp_path / "half.onnx")
        onnx.checker.check_model(str(tmp_path / "half.onnx"), full_check=True)


OVERFLOW = (
    f"g (float[2, 4] x) => (float[A, B] y) <{W}> "
    "{ k = Constant<value_float = 300.0>() a = MatMul(x, w) b = Mul(a, k) c = Mul(b, b) "
    "l = Constant<value_float = 0.001>() d = Mul(c, l) e = Tanh(d) y = MatMul(e, w) }"
)


def test_operators_that_overflow_on_examples_stay_in_float32() -> None:
    model = passlib.load(parsed(OVERFLOW))
    feeds = {"x": np.full((2, 4), 2, np.float32)}
    zeros = {"x": np.zeros((2, 4), np.float32)}
    plain = passlib.to_half(model)
    assert passlib.to_half(model, inputs=zeros).symbol.graph.equals(plain.symbol.graph)
    for inputs in (feeds, [zeros, feeds]):
        made = passlib.to_half(model, inputs=inputs)
        known = types(bytes_of(made))
        # One Mul computes a number beyond 65504, and the next one reads it.
        assert [known[name] for name in "abcde"] == [HALF, HALF, FLOAT, FLOAT, HALF]
        np.testing.assert_allclose(made(feeds["x"]), model(feeds["x"]), rtol=2e-2)


def test_inputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(passlib.InputError, match=r"input 'x'.*is missing"):
        passlib.to_half(parsed(OVERFLOW), inputs={"z": np.zeros(1)})


def bytes_of(model: passlib.Model) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "half.onnx")
        return (Path(folder) / "half.onnx").read_bytes()


def test_check_tolerates_the_rounding_of_half_precision() -> None:
    model = passlib.load(
        parsed(f"g (float[2, 4] x) => (float[A, B] y) <{W}> {{ y = MatMul(x, w) }}")
    )
    made = model.optimize_for("toHalf")
    assert passlib.workbench.compare(model, made, {"x": X}).equal
    assert not passlib.workbench.compare(model, made, {"x": X}, rtol=1e-5, atol=1e-6).equal


def test_local_functions_stay_and_are_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = parsed(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> '
        f"g (float[2, 4] x) => (float[2, 4] y) <{W}> "
        "{ a = MatMul(x, w) b = own.twice(a) y = MatMul(b, w) } "
        '<domain: "own", opset_import: ["" : 17]> twice (p) => (q) { q = Add(p, p) }'
    )
    made = after(data, "toHalf", tmp_path)
    assert "in float32: own.twice: a local function" in capfd.readouterr().out
    assert computed_in_half(made) == {"MatMul"}
    for left, right in zip(results(data, {"x": X}), results(made, {"x": X}), strict=True):
        np.testing.assert_allclose(right, left, rtol=2e-2)
