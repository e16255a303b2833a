"""quantizeWeights: which weights are stored in fewer bits, and that the model computes with them.

Expected results are those of the same model with weights that NumPy rounds here, by another way.
"""

from __future__ import annotations

import io
import itertools
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import control_graphs
import passlib
import random_graphs
from rewriting import accepted, after, operators, parsed, results

RANDOM = np.random.default_rng(1)
HEAD = '<ir_version: 10, opset_import: ["" : 21]> '


def model(text: str, weights: dict[str, Any], head: str = HEAD) -> bytes:
    """Return a model with weights that its text does not declare."""
    made = onnx.ModelProto.FromString(parsed(head + text))
    for name, array in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return made.SerializeToString()


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def rounded(group: Any, bits: int, symmetric: bool) -> Any:
    """Round numbers that share a scale."""
    if symmetric:
        scale = np.float32(np.abs(group).max() / (2 ** (bits - 1) - 1))
        return np.rint(group / scale) * scale if scale else group
    low, high = min(group.min(), 0), max(group.max(), 0)
    scale = np.float32((high - low) / (2**bits - 1))
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(group / scale) + zero, 0, 2**bits - 1) - zero) * scale


def by_blocks(array: Any, axis: int, block: int, bits: int, symmetric: bool) -> Any:
    """Round a weight whose elements share scales in blocks of an axis."""
    made = array.copy()
    others = [range(size) for i, size in enumerate(array.shape) if i != axis]
    for place in itertools.product(*others):
        line = [*place[:axis], slice(None), *place[axis:]]
        for start in range(0, array.shape[axis], block):
            line[axis] = slice(start, start + block)
            made[tuple(line)] = rounded(array[tuple(line)], bits, symmetric)
    return made


def by_channels(array: Any, axis: int, bits: int, symmetric: bool) -> Any:
    """Round a weight with one scale for each index of an axis."""
    made = np.moveaxis(array.copy(), axis, 0)
    for part in made:
        part[...] = rounded(part, bits, symmetric)
    return np.moveaxis(made, 0, axis)


CASES = {
    # Text, shape of the weight, axis of blocks and of channels, input.
    "matrix": ("g (float[3, 40] x) => (float[A, B] y) { y = MatMul(x, w) }", (40, 24), 0, 1),
    "first factor": ("g (float[40, 5] x) => (float[A, B] y) { y = MatMul(w, x) }", (24, 40), 1, 0),
    "matrices": (
        "g (float[2, 3, 40] x) => (float[A, B, C] y) { y = MatMul(x, w) }", (2, 40, 24), 1, None,
    ),
    "vector": ("g (float[3, 40] x) => (float[A] y) { y = MatMul(x, w) }", (40,), 0, None),
    "general": ("g (float[3, 40] x) => (float[A, B] y) { y = Gemm(x, w) }", (40, 24), 0, 1),
    "turned": (
        "g (float[3, 40] x) => (float[A, B] y) { y = Gemm<transB = 1>(x, w) }", (24, 40), 1, 0,
    ),
    "turned first factor": (
        "g (float[40, 3] x) => (float[A, B] y) { y = Gemm<transA = 1>(w, x) }", (40, 24), 0, 1,
    ),
    "rows": ("g (int64[3] x) => (float[A, B] y) { y = Gather(w, x) }", (24, 40), 1, 0),
    "columns": ("g (int64[3] x) => (float[A, B] y) { y = Gather<axis = 1>(w, x) }", (24, 40), 1, 0),
    "image": ("g (float[2, 4, 7, 8] x) => (float[A, B, C, D] y) { y = Conv(x, w) }",
              (6, 4, 3, 3), None, 0),
    "sound": ("g (float[2, 4, 9] x) => (float[A, B, C] y) { y = Conv<group = 2>(x, w) }",
              (6, 2, 3), None, 0),
}  # fmt: skip


def feeds_of(data: bytes) -> dict[str, Any]:
    feeds = {}
    for value in onnx.ModelProto.FromString(data).graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        is_float = kind.elem_type == onnx.TensorProto.FLOAT
        feeds[value.name] = normal(*shape) if is_float else RANDOM.integers(-20, 20, shape)
    return feeds


def optimized(data: bytes) -> Any:
    """Return a session with the default optimization, that does not round the other factor."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("block", [0, 16, 32, 64])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", CASES)
def test_operators_compute_with_rounded_weights(
    name: str, bits: int, block: int, symmetric: bool, tmp_path: Path
) -> None:
    text, shape, axis, channels = CASES[name]
    weight = normal(*shape) + np.float32(0.5)
    data = model(text, {"w": weight})
    options: dict[str, Any] = {"bits": bits, "block": block, "symmetric": symmetric}
    made = after(data, "quantizeWeights", tmp_path, **options, least=1)
    assert operators(made)["DequantizeLinear"] == 1
    if channels is not None and (axis is None or not block):
        expected = by_channels(weight, channels, bits, symmetric)
    else:
        assert axis is not None
        expected = by_blocks(weight, axis, block or weight.shape[axis], bits, symmetric)
    feeds = feeds_of(data)
    wanted = results(model(text, {"w": expected}), feeds)[0]
    np.testing.assert_allclose(results(made, feeds)[0], wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(optimized(made).run(None, feeds)[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("size", [32, 48, 100])
def test_onnx_runtime_gets_its_operator(
    size: int, bits: int, symmetric: bool, tmp_path: Path
) -> None:
    weight = normal(size, 25) + np.float32(0.5)
    text = "g (float[3, {0}] x, float[2, {0}] z) => (float[A, B] y, float[C, D] v) {{ {1} }}"
    text = text.format(size, "y = MatMul(x, w) v = MatMul(z, w)")
    data = model(text, {"w": weight}, '<ir_version: 8, opset_import: ["" : 17]> ')
    options: dict[str, Any] = {"bits": bits, "symmetric": symmetric, "target": "onnxruntime"}
    made = passlib.load(data).optimize_for("quantizeWeights", **options, least=1)
    made.save(tmp_path / "made.onnx")
    new = (tmp_path / "made.onnx").read_bytes()
    assert operators(new) == {"MatMulNBits": 2}
    # The two have one weight.
    assert len(onnx.ModelProto.FromString(new).graph.initializer) == (2 if symmetric else 3)
    feeds = feeds_of(data)
    wanted = results(model(text, {"w": by_blocks(weight, 0, 32, bits, symmetric)}), feeds)
    for run in (accepted(new).run, optimized(new).run):
        for left, right in zip(run(None, feeds), wanted, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_stays(dtype: str, tmp_path: Path) -> None:
    text = "g (float[3, 40] x) => (float[A, B] y) { y = MatMul(x, w) }"
    data = model(text, {"w": normal(40, 24)})
    half = passlib.load(data).optimize_for("toHalf", dtype=dtype)
    made = half.optimize_for("quantizeWeights", bits=4, least=1)
    made.save(tmp_path / "made.onnx")
    onnx.checker.check_model(str(tmp_path / "made.onnx"), full_check=True)
    tensors = onnx.load(tmp_path / "made.onnx").graph.initializer
    code = getattr(onnx.TensorProto, dtype.upper())
    assert [each.data_type for each in tensors] == [onnx.TensorProto.INT4, code]
    if dtype == "float16":
        x = normal(3, 40)
        np.testing.assert_allclose(made(x), passlib.load(data)(x), rtol=0.3, atol=3)


def report(data: bytes, **options: Any) -> tuple[passlib.Model, str]:
    out = io.StringIO()
    with redirect_stdout(out):
        made = passlib.quantize_weights(data, least=1, **options)
    return made, out.getvalue()


PRODUCT = "g (float[3, 40] x) => (float[A, B] y) { y = MatMul(x, w) }"


def by_numpy(rows: Any, bits: int, symmetric: bool) -> tuple[Any, Any, Any]:
    """Return integers, scales and zero points of rows that have one scale each."""
    numbers = rows.astype(np.float64)
    low, high = np.minimum(numbers.min(1), 0), np.maximum(numbers.max(1), 0)
    lowest, highest = (1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1) if symmetric else (0, 2**bits - 1)
    wide = np.maximum(high, -low) / highest if symmetric else (high - low) / highest
    scales = wide.astype(rows.dtype)
    scales[~(scales > 0)] = 1
    factors = scales.astype(np.float64)
    zeros = np.zeros_like(factors) if symmetric else np.clip(np.rint(-low / factors), 0, highest)
    made = np.rint(numbers / factors[:, None]) + zeros[:, None]
    return np.clip(made, lowest, highest), scales, zeros


def hard(shape: tuple[int, int], dtype: Any) -> Any:
    """Return numbers of many sizes, with halves of steps, subnormal numbers and rows of zeros."""
    made = RANDOM.standard_normal(shape) * 10.0 ** RANDOM.integers(-9, 3, (shape[0], 1))
    made[::5] = np.rint(made[::5] * 64) / 2
    made[1::7] = 0
    made[2::11] *= 1e-7
    return made.astype(dtype)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(24, 40), (40, 24), (2100, 520)])
def test_numbers_are_numpys(shape: tuple[int, int], dtype: Any, bits: int, symmetric: bool) -> None:
    """All bits are; arrays of more than a million elements are rounded in parts."""
    for turned in (False, True):
        rows = hard(shape, dtype)
        weight = np.ascontiguousarray(rows.T) if turned else rows
        operator = f"Gemm<transB = {int(not turned)}>"
        text = f"g (float[A, B] x) => (float[C, D] y) {{ y = {operator}(x, w) }}"
        kind = {np.float32: "float", np.float16: "float16"}.get(dtype, "bfloat16")
        data = model(text.replace("float", kind), {"w": weight})
        made, printed = report(data, bits=bits, symmetric=symmetric, block=0)
        integers, scales, zeros = by_numpy(rows, bits, symmetric)
        found = made.args["w_quantized"].astype(np.int16)
        np.testing.assert_array_equal(found.T if turned else found, integers)
        np.testing.assert_array_equal(made.args["w_scale"], scales)
        if not symmetric:
            np.testing.assert_array_equal(made.args["w_zero_point"].astype(np.int16), zeros)
        again = (integers - zeros[:, None]).astype(np.float32) * scales.astype(np.float32)[:, None]
        errors = np.abs(again.astype(dtype).astype(np.float64) - rows.astype(np.float64))
        relative = np.sqrt(np.sum(errors**2) / np.sum(rows.astype(np.float64) ** 2))
        assert f"largest error {errors.max():.3g}, relative {relative:.3g}\n" in printed


def test_later_numbers_are_finite_too() -> None:
    weight = normal(2100, 520)
    weight[2099, 519] = np.nan
    _, text = report(model("g (float[1, 2100] x) => (float[A, B] y) { y = MatMul(x, w) }",
                           {"w": weight}))  # fmt: skip
    assert "0 weights in 8 bits: 0 bytes became 0\n" in text
    assert "1 weight kept: 'w' (2100, 520): has numbers that are not finite" in text


@pytest.mark.parametrize(
    ("rows", "block", "operator", "size"),
    [(20, 32, "MatMulNBits", 2304), (20, 4096, "MatMul", 0), (2, 32, "MatMul", 0),
     (2, 65535, "DequantizeLinear", 384)],
)  # fmt: skip
def test_blocks_may_be_larger_than_the_weight(
    rows: int, block: int, operator: str, size: int, tmp_path: Path
) -> None:
    """MatMulNBits has complete blocks, which must not make the weight larger."""
    text = f"g (float[3, {rows}] x) => (float[A, B] y) {{ y = MatMul(x, w) }}"
    data = model(text, {"w": normal(rows, 64)})
    made, printed = report(data, block=block, target="onnxruntime")
    made.save(tmp_path / "made.onnx")
    assert operator in operators((tmp_path / "made.onnx").read_bytes())
    assert f"{rows * 256:,} bytes became {size:,}\n" in printed or not size
    assert sum(each.nbytes for each in made.args.values()) == (size or rows * 256)


@pytest.mark.parametrize("text", ["y = MatMul(w, w)", "y = Conv(x, w)", "y = Gemm(w, x)"])
def test_weights_that_lack_the_axis_stay(text: str) -> None:
    data = model(f"g (float[3] x) => (float[A] y) {{ {text} }}", {"w": np.float32(1)})
    made, printed = report(data)
    assert "1 weight kept: 'w' (): has too few dimensions" in printed
    assert made.symbol.graph.equals(passlib.load(data).symbol.graph)


def test_report_has_names_as_python_shows_them() -> None:
    names = ["it's", 'a"b', "tab\t", "back\\", "über"]
    text = "g (float[3, 40] x) => (float[A, B] y) { y = MatMul(x, w) }"
    for name in names:
        data = onnx.ModelProto.FromString(model(text, {name: normal(40, 24)}))
        data.graph.node[0].input[1] = name
        data.graph.node[0].name = name
        _, printed = report(data.SerializeToString())
        assert f"\nquantizeWeights: {name!r} (40, 24) of MatMul {name!r}: largest" in printed


INFINITE = np.array([[np.inf] * 24] * 40, np.float32)
KEPT: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "operator": (PRODUCT, {"w": normal(40, 24)}, {"keep_ops": ["MatMul"]}, "listed in keep_ops"),
    "node": (PRODUCT, {"w": normal(40, 24)}, {"keep_nodes": ["MatMul_0"]}, "listed in keep_nodes"),
    "infinity": (PRODUCT, {"w": INFINITE}, {}, "not finite"),
    "another reader": (
        "g (float[3, 40] x) => (float[A, B] y, float[C, D] v) { y = MatMul(x, w) v = Neg(w) }",
        {"w": normal(40, 24)}, {}, "also read by Neg",
    ),
    "output": (
        "g (float[3, 40] x) => (float[A, B] y, float[40, 24] w) { y = MatMul(x, w) }",
        {"w": normal(40, 24)}, {}, "",
    ),
    "no gain": (
        "g (float[3, 1] x) => (float[A, B] y) { y = MatMul(x, w) }", {"w": normal(1, 24)}, {},
        "would not be smaller",
    ),
    "integers": (
        "g (int32[3, 40] x) => (int32[A, B] y) { y = MatMul(x, w) }",
        {"w": np.ones((40, 24), np.int32)}, {}, "",
    ),
    "nothing constant": (
        "g (float[3, 40] x, float[40, 24] w) => (float[A, B] y) { y = MatMul(x, w) }", {}, {}, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_other_weights_stay(name: str) -> None:
    text, weights, options, reason = KEPT[name]
    data = model(text, weights)
    made, text = report(data, **options)
    assert reason in text
    assert made.symbol.graph.equals(passlib.load(data).symbol.graph)


def test_small_weights_stay() -> None:
    made = passlib.quantize_weights(model(PRODUCT, {"w": normal(40, 24)}))
    assert "DequantizeLinear" not in {node.op for node in made.symbol.nodes()}


def test_report_has_the_errors() -> None:
    weight = np.zeros((40, 24), np.float32)
    weight[0] = 7
    weight[1] = 1.25
    _, text = report(model(PRODUCT, {"w": weight}), bits=4)
    relative = np.sqrt(0.25**2 / (7**2 + 1.25**2))
    assert f"largest error 0.25, relative {relative:.3g}" in text
    assert "1 weight in 4 bits: 3,840 bytes became 672" in text


OLD: dict[str, tuple[int, dict[str, Any], str]] = {
    "blocks": (
        17,
        {"bits": 8},
        "has no DequantizeLinear with blocks; .* opt --opset 21 .*, or use block=0$",
    ),
    "four bits": (20, {"bits": 4, "block": 0}, r"4 bits.*with_opset\(21\)$"),
    "no axis": (12, {"bits": 8, "block": 0}, r"an axis; .* opt --opset 13 "),
}


@pytest.mark.parametrize("name", OLD)
def test_older_operator_sets_are_refused(name: str) -> None:
    opset, options, message = OLD[name]
    head = f'<ir_version: 7, opset_import: ["" : {opset}]> '
    data = model(PRODUCT, {"w": normal(40, 24)}, head)
    with pytest.raises(passlib.PassError, match=message):
        report(data, **options)


def test_eight_bits_by_columns_need_no_new_operator_set(tmp_path: Path) -> None:
    head = '<ir_version: 7, opset_import: ["" : 13]> '
    data = model(PRODUCT, {"w": normal(40, 24)}, head)
    made = after(data, "quantizeWeights", tmp_path, block=0, least=1)
    assert operators(made) == {"DequantizeLinear": 1, "MatMul": 1}


def test_size_of_the_file(tmp_path: Path) -> None:
    data = model(PRODUCT.replace("40", "1024"), {"w": normal(1024, 512)})
    for bits, external in itertools.product((8, 4), (False, True)):
        made = passlib.quantize_weights(data, bits=bits)
        path = tmp_path / f"{bits}{external}.onnx"
        made.save(path, **({"external_data": True} if external else {}))
        size = sum(each.stat().st_size for each in tmp_path.glob(f"{bits}{external}*"))
        exact = 1024 * 512 * bits // 8 + 1024 * 512 // 32 * 4
        assert exact <= size < exact + 2000
        x = normal(3, 1024)
        np.testing.assert_allclose(passlib.load(path)(x), made(x), rtol=1e-5, atol=1e-5)


def test_quantized_models_pass_on(tmp_path: Path) -> None:
    made = passlib.quantize_weights(
        model("g (float[3, 40] x) => (float[A, B] y) { a = MatMul(x, w) b = Identity(a) "
              "c = MatMul(x, v) y = Add(b, c) }", {"w": normal(40, 24), "v": normal(40, 24)}),
        bits=4, least=1,
    )  # fmt: skip

    def run(each: passlib.Model) -> Any:
        each.save(tmp_path / "made.onnx")
        return results((tmp_path / "made.onnx").read_bytes(), feeds)[0]

    feeds = {"x": normal(3, 40)}
    wanted = run(made)
    for each in (
        passlib.simplify(made),
        made.optimize_for("mergeEqualNodes"),
        made.optimize_for("quantizeWeights", bits=4, least=1),
    ):
        np.testing.assert_allclose(run(each), wanted, rtol=1e-5, atol=1e-5)
        assert [node.op for node in each.symbol.nodes()].count("DequantizeLinear") == 2


NESTED = """g (float[3, 40] x, bool c, int64 n) => (float[A, B] y, float[D, E] t) {
  y = If(c) <
    then_branch = m () => (float[3, 40] r) { r = MatMul(x, w) },
    else_branch = e () => (float[3, 40] u) <float[40, 40] v = {%s}> { u = MatMul(x, v) }>
  t = Loop(n, c, x) <body = l (int64 i, bool go, float[3, 40] p) =>
    (bool on, float[3, 40] next) { on = Identity(go) q = If(go) <
      then_branch = h () => (float[3, 40] s) { s = MatMul(p, w) },
      else_branch = k () => (float[3, 40] z) { z = Neg(p) }> next = Tanh(q) }>
}"""


@pytest.mark.parametrize("target", ["onnx", "onnxruntime"])
def test_nested_graphs_have_weights_of_the_main_graph(target: str, tmp_path: Path) -> None:
    weight, other = normal(40, 40), normal(40, 40)
    text = ", ".join(map(str, other.ravel()))
    data = model(NESTED % text, {"w": weight})
    made = after(data, "quantizeWeights", tmp_path, bits=8, least=1, target=target)
    assert operators(made)["DequantizeLinear"] == 2
    assert len(onnx.ModelProto.FromString(made).graph.initializer) == 4
    wanted = model(
        NESTED % ", ".join(map(str, by_blocks(other, 0, 32, 8, True).ravel())),
        {"w": by_blocks(weight, 0, 32, 8, True)},
    )
    for condition in (True, False):
        feeds = {"x": normal(3, 40), "c": np.array(condition), "n": np.array(2)}
        for left, right in zip(results(made, feeds), results(wanted, feeds), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-3)


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_are_valid(seed: int, tmp_path: Path) -> None:
    for drawn in (random_graphs.draw(seed).model(), control_graphs.draw(seed)[0]):
        data = drawn.SerializeToString()
        try:
            onnx.checker.check_model(data, full_check=True)
            raised = passlib.load(data).with_opset(21)
        except (onnx.checker.ValidationError, passlib.PasslibError):
            continue  # the model is invalid, or ONNX's converter refuses it
        made = raised.optimize_for("quantizeWeights", bits=8, least=2)
        made.save(tmp_path / "made.onnx")
        onnx.checker.check_model(str(tmp_path / "made.onnx"), full_check=True)
        accepted((tmp_path / "made.onnx").read_bytes())
