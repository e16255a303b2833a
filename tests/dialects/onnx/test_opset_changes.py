"""Model.save(opset=...): operators compute the same in the other set, or are refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import defs, parser

import passlib
from opset_changes import MAKERS, outcome, pairs, steps, trial
from passlib.dialects.onnx.writing import options as meaning
from passlib.errors import UnsupportedError
from rewriting import results

_PAIRS = [(op, a, b) for op in sorted(MAKERS) for a, b in pairs(op)]


def test_every_changed_operator_is_drawn() -> None:
    assert {name for name, _, _ in steps()} <= MAKERS.keys()


def test_all_operator_sets_were_compared() -> None:
    """After an update of onnx: run ``make sweep-opsets``, then raise `COMPARED`."""
    assert defs.onnx_opset_version() <= meaning.COMPARED


@pytest.mark.parametrize(("op", "old", "new"), _PAIRS, ids=["-".join(map(str, p)) for p in _PAIRS])
def test_conversions_keep_numbers(op: str, old: int, new: int) -> None:
    found = []
    for number in range(4):
        rng = np.random.default_rng([7, number, old, new, *op.encode()])
        try:
            tried = trial(op, old, new, rng)
        except (onnx.shape_inference.InferenceError, ValueError, TypeError):
            continue
        text = outcome(tried)
        found += [text] if text.startswith("WRONG") else []
    assert not found


@pytest.mark.parametrize(("channels", "groups"), [(4, 2), (6, 3), (6, 2), (4, 4), (5, 1)])
@pytest.mark.parametrize("weights", ["inputs", "initializers"])
def test_scales_of_groups_become_those_of_channels(
    channels: int, groups: int, weights: str, tmp_path: Path
) -> None:
    numbers = ", ".join(str(number + 1.5) for number in range(groups))
    held = f"<float[{groups}] s = {{{numbers}}}, float[{groups}] b = {{{numbers}}}>"
    fed = f", float[{groups}] s, float[{groups}] b"
    inside = weights == "initializers"
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g (float[N, {channels}, H] x'
        f"{'' if inside else fed}) => (float[N, {channels}, H] y) {held if inside else ''}"
        f"{{ y = GroupNormalization <num_groups = {groups}> (x, s, b) }}"
    )
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((2, channels, 3)).astype(np.float32)}
    if not inside:
        feeds.update({name: rng.random(groups).astype(np.float32) for name in "sb"})
    path = tmp_path / "new.onnx"
    passlib.load(model).save(path, opset=21)
    (before,) = results(model.SerializeToString(), feeds)
    (after,) = results(path.read_bytes(), feeds)
    assert np.allclose(before, after, atol=1e-6)


@pytest.mark.parametrize(("channels", "groups"), [(4, 2), (6, 3), (5, 1)])
def test_scales_of_channels_have_no_group_before(
    channels: int, groups: int, tmp_path: Path
) -> None:
    """GroupNormalization of set 21 becomes operators of set 18."""
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[N, {channels}, H] x, '
        f"float[{channels}] s, float[{channels}] b) => (float[N, {channels}, H] y)"
        f"{{ y = GroupNormalization <num_groups = {groups}> (x, s, b) }}"
    )
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((2, channels, 3)).astype(np.float32)}
    feeds.update({name: rng.random(channels).astype(np.float32) for name in "sb"})
    check_numbers(model, 18, feeds, tmp_path)


def check_numbers(model: onnx.ModelProto, opset: int, feeds: dict, folder: Path) -> None:
    path = folder / "new.onnx"
    passlib.load(model).save(path, opset=opset)
    made = onnx.load(path)
    assert [each.version for each in made.opset_import if not each.domain] == [opset]
    onnx.checker.check_model(made, full_check=True)
    before = results(model.SerializeToString(), feeds)
    after = results(path.read_bytes(), feeds)
    for one, other in zip(before, after, strict=True):
        assert one.dtype == other.dtype
        assert np.allclose(one, other, atol=1e-5)


NEWER = {
    "types only": """17 13 (float[N, 8] y)
        { a = Add(x, x) b = Mul(a, x) c = Relu(b) y = Identity(c) }""",
    "a layer": """20 13 (float[N, 8] y) <float[8] s = {1, 2, 3, 4, 5, 6, 7, 8}>
        { h = Gelu(x) n = LayerNormalization(h, s) y = Sub(n, x) }""",
    "a part of a shape": "18 13 (int64[1] y) { y = Shape<start = -1>(x) }",
    "the shape from its start": "17 13 (int64[2] y) { y = Shape<start = 0>(x) }",
    "unequal parts": """18 13 (float[N, 3] y, float[N, 3] z, float[N, 2] w)
        { y, z, w = Split<axis = 1, num_outputs = 3>(x) }""",
    "equal parts": """18 17 (float[N, 4] y, float[N, 4] z)
        { y, z = Split<axis = -1, num_outputs = 2>(x) }""",
    "a shape without 0": """18 13 (float[2, 4, K] y) <int64[3] s = {2, 4, -1}>
        { y = Reshape<allowzero = 1>(x, s) }""",
    "computed axes": """18 17 (float[N, 1] y) <int64[1] a = {1}>
        { b = Add(a, a) c = Sub(b, a) y = ReduceL2(x, c) }""",
    "types below 13": """17 11 (float[N, 8] y) <int64[2] s = {-1, 8}>
        { a = Flatten(x) b = Pow(a, x) c = Equal(a, a) d = Where(c, x, b) y = Reshape(d, s) }""",
    "axes as attributes": """18 11 (float[N, 1] y, float[1, 1] z) <int64[1] a = {-1}>
        { m = ReduceMean<noop_with_empty_axes = 1>(x, a) y = Abs(m) z = ReduceMax(x) }""",
    "a sum by an attribute": """24 11 (float[N] y)
        { a = Constant<value_ints = [1]>() e = Exp(x)
        y = ReduceSum<keepdims = 0, noop_with_empty_axes = 1>(e, a) }""",
    "some padded axes": """24 13 (float[N, 11] y)
        <int64[2] p = {1, 2}, float v = {3}, int64[1] a = {-1}>
        { e = Exp(x) y = Pad(e, p, v, a) }""",
    "padding for 11": """18 11 (float[N, 11] y) <int64[4] p = {0, 1, 0, 2}>
        { e = Exp(x) y = Pad(e, p) }""",
    "lists and numbers": """13 9 (float[N, 8] y)
        { a = Constant<value_float = 2.0>() b = Constant<value_ints = [-1, 8]>()
        c = Mul(x, a) y = Reshape(c, b) }""",
    "branches below 13": """18 11 (float[N, 1] y) <int64[1] a = {1}, bool c = {1}> { q = Relu(x)
        y = If(c)<then_branch = t () => (float[N, 1] u) { v = Add(x, q) u = ReduceMean(v, a) },
        else_branch = e () => (float[N, 1] b) { k = Constant<value = int64[1] {1}>()
        b = ReduceMax(q, k) }> }""",
    "branches": """18 13 (float[N, 1] y) <int64[1] a = {1}, bool c = {1}> { q = Relu(x)
        y = If(c)<then_branch = t () => (float[N, 1] u) { v = Add(x, q) u = ReduceMean(v, a) },
        else_branch = e () => (float[N, 1] b) { k = Constant<value = int64[1] {1}>()
        b = ReduceMax(q, k) }> }""",
}


@pytest.mark.parametrize("case", NEWER)
def test_older_sets(case: str, tmp_path: Path) -> None:
    old, new, text = NEWER[case].split(maxsplit=2)
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {old}]> g (float[N, 8] x) => {text}'
    )
    rng = np.random.default_rng(0)
    check_numbers(model, int(new), {"x": rng.standard_normal((4, 8)).astype(np.float32)}, tmp_path)


def test_modes_of_samples_have_older_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    feeds = {"x": rng.random((1, 2, 4, 4), np.float32), "g": rng.random((1, 3, 3, 2), np.float32)}
    for mode in ("", '<mode = "linear">', '<mode = "cubic">', '<mode = "nearest">'):
        model = parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 20]> g (float[1, 2, 4, 4] x, float[1, 3, 3, 2] g)'
            f" => (float[1, 2, 3, 3] y) {{ s = GridSample{mode}(x, g) y = Neg(s) }}"
        )
        check_numbers(model, 16, feeds, tmp_path)


def test_branches_become_newer(tmp_path: Path) -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[4, 8] x, bool c) => (float[4, 1] y) { q = Relu(x) y = If(c)<
        then_branch = t () => (float[4, 1] a) { b = Add(x, q) a = ReduceMean<axes = [1]>(b) },
        else_branch = e () => (float[4, 1] b) { b = ReduceMax<axes = [1]>(q) }> }""")
    rng = np.random.default_rng(0)
    for c in (True, False):
        feeds = {"x": rng.standard_normal((4, 8)).astype(np.float32), "c": np.array(c)}
        check_numbers(model, 21, feeds, tmp_path)


def test_broadcasting_of_the_last_axes_is_converted(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 4, opset_import: ["" : 6]> g (float[2, 3, 4] x) => (float[2, 3, 4] y) '
        "<float[4] w = {1, 2, 3, 4}> { y = Mul <broadcast = 1> (x, w) }"
    )
    path = tmp_path / "new.onnx"
    passlib.load(model).save(path, opset=7)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (y,) = results(path.read_bytes(), {"x": x})
    assert np.array_equal(y, x * np.float32([1, 2, 3, 4]))


REFUSED = [
    (13, 11, "Softmax", "y = Softmax <axis = 1> (x)", "float[2, 3, 4]"),
    (13, 11, "LogSoftmax", "y = LogSoftmax <axis = 0> (x)", "float[2, 3, 4]"),
    (13, 12, "Softmax", "f = Flatten (x) s = Softmax (f) y = Identity (s)", "float[2, 12]"),
    (13, 12, "Softmax", "s = Softmax (x) y = Reshape (s, t)", "float[6, 4]"),
    (11, 13, "Hardmax", "y = Hardmax (x)", "float[2, 3, 4]"),
    (10, 11, "Resize", "y = Resize (x, r)", "float[2, 6, 8]"),
    (9, 11, "Upsample", "y = Upsample (x, r)", "float[2, 6, 8]"),
    (10, 12, "Dropout", "z, m = Dropout (x) y = Cast <to = 1> (m)", "float[2, 3, 4]"),
    (6, 7, "Mul", "y = Mul <axis = 1, broadcast = 1> (x, w)", "float[2, 3, 4]"),
    (18, 28, "ReduceLogSum", "c = Cast<to = 7>(x) y = ReduceLogSum(c)", "int64[1, 1, 1]"),
    (18, 28, "ReduceLogSumExp", "y = ReduceLogSumExp(t)", "int64[1]"),
]


@pytest.mark.parametrize(("old", "new", "op", "nodes", "shape"), REFUSED)
def test_other_meanings_are_refused(
    old: int, new: int, op: str, nodes: str, shape: str, tmp_path: Path
) -> None:
    data = f"""<ir_version: {4 if old < 11 else 8}, opset_import: ["" : {old}]>
        g (float[2, 3, 4] x) => ({shape} y)
        <int64[2] t = {{6, 4}}, float[3] w = {{1, 2, 3}}, float[3] r = {{1, 2, 2}}> {{ {nodes} }}"""
    model = passlib.load(parser.parse_model(data))
    with pytest.raises(UnsupportedError, match=op):
        model.save(tmp_path / "new.onnx", opset=new)
    assert not list(tmp_path.iterdir())


def test_sets_that_nobody_compared_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "COMPARED", 18)
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) {{ y = {} (x) }}'
    )
    passlib.load(parser.parse_model(text.format("Relu"))).save(tmp_path / "a.onnx", opset=20)
    with pytest.raises(UnsupportedError, match=r"Identity.* set 19"):
        passlib.load(parser.parse_model(text.format("Identity"))).save(tmp_path / "b", opset=20)


@pytest.mark.parametrize("opset", [9, 17])
def test_old_files_may_have_initializers_that_are_no_inputs(opset: int, tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 7]> g (float[2, 2] x) => (float[4] y) '
        "<int64[1] s = {-1}> { y = Reshape(x, s) }"
    )
    feeds = {"x": np.arange(4, dtype=np.float32).reshape(2, 2)}
    passlib.load(model).save(tmp_path / "made.onnx", opset=opset)
    made = (tmp_path / "made.onnx").read_bytes()
    assert np.array_equal(results(made, feeds)[0], results(model.SerializeToString(), feeds)[0])


DEFAULTS = {
    "ReduceSum": "13 11 (float[2, 1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }",
    "Squeeze": "13 11 (float[2] y) <int64[1] a = {1}> { y = Squeeze(x, a) }",
    "Unsqueeze": "13 11 (float[2, 1, 1] y) <int64[1] a = {1}> { y = Unsqueeze(x, a) }",
    "ReduceMean": "18 13 (float[2, 1] y) <int64[1] a = {1}> { y = ReduceMean(x, a) }",
    "Reshape": "14 13 (float[2] y) <int64[1] a = {2}> { y = Reshape<allowzero = 1>(x, a) }",
    "If": """18 13 (float[2, 1] y) <int64[1] a = {1}, bool c = {1}> { y = If(c)<
        then_branch = t () => (float[2, 1] u) { u = ReduceMean(x, a) },
        else_branch = e () => (float[2, 1] v) { v = Neg(x) }> }""",
}


@pytest.mark.parametrize("operator", DEFAULTS)
def test_a_default_of_an_input_is_no_constant(operator: str, tmp_path: Path) -> None:
    """Callers may give another value, which an attribute would not follow."""
    old, new, text = DEFAULTS[operator].split(maxsplit=2)
    model = parser.parse_model(
        f'<ir_version: 7, opset_import: ["" : {old}]> g (float[2, 1] x, int64[1] a) => {text}'
    )
    with pytest.raises(UnsupportedError, match=operator):
        passlib.load(model).save(tmp_path / "older.onnx", opset=int(new))
    assert passlib.load(model).with_opset(19).inputs == passlib.load(model).inputs


NEGATIVE = {
    "Unsqueeze": (11, "float[1, 2, 1, 3, 1]", "y = Unsqueeze <axes = [0, -1]> (x)", [0, 4]),
    "axes as an input": (
        13, "float[1, 2, 1, 3, 1]",
        "a = Constant <value = int64[2] {0, -1}> () y = Unsqueeze (x, a)", [0, 4],
    ),
    "ReduceSum": (13, "float[2, 1]", "y = ReduceSum <keepdims = 0> (x, last)", [2]),
    "ArgMax": (12, "int64[2, 1, 1]", "y = ArgMax <axis = -1> (x)", [2]),
    "Concat": (11, "float[2, 1, 6]", "y = Concat <axis = -1> (x, x)", [2]),
    "Flatten": (11, "float[2, 3]", "y = Flatten <axis = -1> (x)", [2]),
    "an old default": (11, "float[2, 1, 3]", "y = LpNormalization <axis = -1> (x)", [-1]),
}  # fmt: skip


@pytest.mark.parametrize("case", NEGATIVE)
def test_older_axes_are_counted_from_the_front(case: str, tmp_path: Path) -> None:
    old, kind, body, expected = NEGATIVE[case]
    model = parser.parse_model(
        f'<ir_version: 5, opset_import: ["" : {old}]> g (float[2, 1, 3] x) => ({kind} y) '
        f"<int64[1] last = {{-1}}> {{ {body} }}"
    )
    path = tmp_path / "older.onnx"
    passlib.load(model).save(path, opset=10)
    made = onnx.load(path)
    onnx.checker.check_model(made, full_check=True)
    stated = [each for node in made.graph.node for each in node.attribute]
    (axes,) = (
        [each.i] if each.name == "axis" else each.ints for each in stated if "ax" in each.name
    )
    assert list(axes) == expected
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 1, 3)}
    (before,), (after,) = (results(each.SerializeToString(), feeds) for each in (model, made))
    assert np.array_equal(before, after)


def test_failures_of_the_converter_are_errors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(model: onnx.ModelProto, opset: int) -> None:
        raise onnx.version_converter.ConvertError("Input s is undefined!")

    monkeypatch.setattr(onnx.version_converter, "convert_version", fail)
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 15]> g (float[2] x) => (float[2] y) { y = Abs(x) }'
    )
    with pytest.raises(UnsupportedError, match="Input s is undefined!"):
        passlib.load(model).save(tmp_path / "made.onnx", opset=17)


def test_a_refused_result_is_not_blamed_on_passes(tmp_path: Path) -> None:
    """Split is already in the form of set 13 when ONNX's checker refuses Sub of int8."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        "g (float[2, 4] x, int8[2] b) => (float[2, 2] z, int8[2] y)"
        "{ z, w = Split <num_outputs = 2, axis = 1> (x) y = Sub (b, b) }"
    )
    with pytest.raises(UnsupportedError, match=r"cannot take version 18 .*Sub.*tensor\(int8\)"):
        passlib.load(model).save(tmp_path / "made.onnx", opset=13)


@pytest.mark.parametrize(
    ("operator", "size", "is_right"),
    [("AveragePool", 2, False), ("MaxPool", 2, False), ("AveragePool", 4, True),
     ("AveragePool", "N", True)],
)  # fmt: skip
def test_a_window_that_begins_in_the_padding(
    operator: str, size: object, is_right: bool, tmp_path: Path
) -> None:
    attributes = "ceil_mode = 1, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [3, 3]"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 22]> g (float[1, 1, {size}, {size}] x)'
        f" => (float[1, 1, A, B] y) {{ y = {operator} <{attributes}> (x) }}"
    )
    path = tmp_path / "made.onnx"
    if not is_right:
        with pytest.raises(UnsupportedError, match=r"node 'y' .*a last window that begins in the"):
            passlib.load(model).save(path, opset=21)
        return
    passlib.load(model).save(path, opset=21)
    feeds = {"x": np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)}
    (before,), (after,) = (
        results(data, feeds) for data in (model.SerializeToString(), path.read_bytes())
    )
    np.testing.assert_array_equal(before, after)
    onnx.checker.check_model(path, full_check=True)


@pytest.mark.parametrize("command", ["opt", "convert"])
def test_outputs_that_newer_inference_contradicts(command: str, tmp_path: Path) -> None:
    """A file of set 12 states a rank that nobody checks there, and that no runtime needs."""
    model = parser.parse_model(
        '<ir_version: 7, opset_import: ["" : 12]> g (float[N, 6] x) => (float[N, M] y)'
        "<int64 i = {0}, int64[2] r = {2, 3}> { s = Shape(x) n = Gather(s, i)"
        "u = Unsqueeze<axes = [0]>(n) t = Concat<axis = 0>(u, r) y = Reshape(x, t) }"
    )
    source, made = tmp_path / "model.onnx", tmp_path / "made.onnx"
    onnx.save(model, source)
    if command == "opt":
        passlib.load(source).save(made, opset=17)
    else:
        passlib.convert(source, made, opset=17)
    onnx.checker.check_model(made, full_check=True)
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(4, 6)}
    (before,), (after,) = (results(path.read_bytes(), feeds) for path in (source, made))
    assert before.shape == (4, 2, 3)
    np.testing.assert_array_equal(before, after)
    assert len(onnx.load(made).graph.output[0].type.tensor_type.shape.dim) == 3


def test_convert_takes_models_to_old_sets(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[N, 8] x) => (float[N, 1] y)'
        "<int64[1] a = {1}> { y = ReduceSum(x, a) }"
    )
    made = tmp_path / "made.onnx"
    onnx.save(model, tmp_path / "model.onnx")
    passlib.convert(tmp_path / "model.onnx", made, opset=9)
    assert onnx.load(made).opset_import[0].version == 9
    feeds = {"x": np.arange(16, dtype=np.float32).reshape(2, 8)}
    (before,), (after,) = (
        results(data, feeds) for data in (model.SerializeToString(), made.read_bytes())
    )
    np.testing.assert_array_equal(before, after)


def test_a_mask_that_nothing_uses_may_mean_something_else(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 10]> g (float[2, 3] x) => (float[2, 3] y)'
        "{ z, m = Dropout (x) y = Abs (z) }"
    )
    passlib.load(model).save(tmp_path / "made.onnx", opset=13)
    made = onnx.load(tmp_path / "made.onnx")
    onnx.checker.check_model(made, full_check=True)
    x = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
    (found,) = results(made.SerializeToString(), {"x": x})
    np.testing.assert_array_equal(found, abs(x))


def test_models_of_the_suite_compute_the_same() -> None:
    """A sample; tests/support/suite_opsets.py converts all of them."""
    script = Path(__file__).parents[2] / "support" / "suite_opsets.py"
    # Not in this process: ONNX makes other models of its tests the second time.
    command = [sys.executable, "-W", "ignore", str(script), "--every", "60"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.rpartition(" same")[0].split()[-1]) > 80
    assert "not run" not in done.stdout
