"""Faults that only ties, halves, edges of types and numbers of inputs show; given inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import passlib as pl
import text_models
from commands import passlib_command
from passlib.workbench import Comparison, compare
from text_models import constant

WEIGHTS = {
    "layer": (np.random.default_rng(5).standard_normal((8, 8)) * 2).astype(np.float32),
    "ones": np.ones(8, np.float32),
}
"""Weights of models, by name."""

X = "(float[N, 8] x) => (float[N, 8] y)"
TRUTHS = "(float[N, 8] x) => (bool[N, 8] y)"
PLACES = "(float[N, 8] x) => (int64[N, 1] y)"
INTS = "(int64[N, 8] x) => (int64[N, 8] y)"
ONE_HOT = "(int64[N] x) => (float[N, 6] y)"
BOXES = "(float[1, 6, 4] b, float[1, 1, 6] s) => (int64[K, 3] y)"
COLUMN = "(float[N, 8] x) => (float[N, 1] y)"
X3 = "(float[N, 3] x) => (float[N, 3] y)"
SIZES = "(float[N, M] x) => (float[N, M] y)"
MASKED = "(float[N, 8] x, int64[N, 8] mask) => (float[N, 8] y)"
LAST = "<axis = 1, select_last_index = 1>"

HALVES = constant("k", "100.5") + constant("h", "0.5") + "b = Abs(x) a = Add(b, k) "
BACKWARDS = (
    constant("k", "3", "int64[1]")
    + constant("s", "7", "int64[1]")
    + constant("b", "-1", "int64[1]")
    + constant("e", "-99", "int64[1]")
    + constant("a", "1", "int64[1]")
    + "r = Slice(x, b, e, a, b) v, w = TopK(r, k) y = Sub(s, w)"
)
DEPTH = constant("d", "6", "int64") + constant("v", "0.0, 1.0", "float[2]")
BY_EQUAL = (
    constant("z", "0", "int64")
    + constant("d", "6", "int64")
    + constant("s", "1", "int64")
    + constant("a", "1", "int64[1]")
    + "r = Range(z, d, s) u = Unsqueeze(x, a) q = Equal(u, r) y = Cast <to = 1> (q)"
)
FOUR_ZEROS = constant("z", "0.0, 0.0, 0.0, 0.0", "float[4]")
EITHER = constant("k", "2.0") + constant("l", "-2.0") + "a = Greater(x, k) b = Less(x, l) "
AXIS = constant("a", "1", "int64[1]")
END = constant("e", "99", "int64[1]")
HUNDRED = constant("k", "100", "int64") + "m = Mod(x, k) "
MOST_1 = constant("k", "1", "int64") + "m = Min(n, k)"
SIZE = (
    "o = Constant <value = int64[1] {{{1}}}> () "
    "n = Shape <start = 1> (x) q = {0}(n, o) f = Cast <to = 1> (q)"
)
MOST_6 = constant("m", "6", "int64[1]")

FAULTS: dict[str, tuple[str, str, str, str]] = {
    # The expected outcome, the signature, and the bodies of both models.
    "the last of equal largest elements": (
        "found", PLACES, "y = ArgMax <axis = 1> (x)", f"y = ArgMax {LAST} (x)"),
    "the last of equal smallest elements": (
        "found", PLACES, "y = ArgMin <axis = 1> (x)", f"y = ArgMin {LAST} (x)"),
    "ties behind a layer": (
        "found", PLACES, "h = MatMul(x, layer) y = ArgMax <axis = 1> (h)",
        f"h = MatMul(x, layer) y = ArgMax {LAST} (h)"),
    "ties that do not occur": (
        "named", PLACES, "h = MatMul(x, layer) s = Add(h, apart) y = ArgMax <axis = 1> (s)",
        f"h = MatMul(x, layer) s = Add(h, apart) y = ArgMax {LAST} (s)"),
    "the order of equal elements of TopK": (
        "found", "(float[N, 8] x) => (float[N, 3] v, int64[N, 3] y)",
        constant("k", "3", "int64[1]") + "v, y = TopK(x, k)", BACKWARDS),
    "Hardmax of equal elements": (
        "found", X, "y = Hardmax(x)",
        AXIS + "m = ReduceMax(x, a) q = Equal(x, m) y = Cast <to = 1> (q)"),
    "equality at a constant": (
        "found", TRUTHS, constant("k", "3.5") + "y = GreaterOrEqual(x, k)",
        constant("k", "3.5") + "y = Greater(x, k)"),
    "equality of two inputs": (
        "found", "(float[N, 8] x, float[N, 8] z) => (bool[N, 8] y)",
        "y = Less(x, z)", "y = LessOrEqual(x, z)"),
    "equality behind a layer": (
        "named", TRUTHS, constant("k", "3.5") + "h = MatMul(x, layer) y = GreaterOrEqual(h, k)",
        constant("k", "3.5") + "h = MatMul(x, layer) y = Greater(h, k)"),
    "halves that are rounded": ("found", X, f"{HALVES} y = Round(a)",
                                f"{HALVES} d = Add(a, h) y = Floor(d)"),
    "a Cast behind Mod": (
        "named", "(int64[N, 8] x) => (uint8[N, 8] y)", f"{HUNDRED} y = Cast <to = 2> (m)",
        f"{HUNDRED} a = Abs(m) y = Cast <to = 2> (a)"),
    "a small divisor": (
        "found", X, constant("k", "1e-12") + AXIS + "s = ReduceL2(x, a) e = Add(s, k) "
        "y = Div(x, e)", AXIS + "s = ReduceL2(x, a) y = Div(x, s)"),
    "the epsilon of a norm": (
        "found", X, "y = LayerNormalization <epsilon = 1e-5> (x, ones)",
        "y = LayerNormalization <epsilon = 1e-7> (x, ones)"),
    "lengths above 1": ("found", "(float[4, 3] x, int64[3] n) => (float[4, 3] y)",
                        "y = ReverseSequence(x, n)", "y = Identity(x)"),
    "negative places of OneHot": ("found", ONE_HOT, f"{DEPTH} y = OneHot(x, d, v)", BY_EQUAL),
    "the last place of OneHot": (
        "found", ONE_HOT, f"{DEPTH} y = OneHot(x, d, v)",
        f"{DEPTH} {constant('t', '4', 'int64')} m = Min(x, t) y = OneHot(m, d, v)"),
    "updates of one place": (
        "found", "(int64[N, 1] x, float[N] u) => (float[4] y)",
        f'{FOUR_ZEROS} y = ScatterND <reduction = "add"> (z, x, u)',
        f"{FOUR_ZEROS} y = ScatterND (z, x, u)"),
    "both operands of Or": ("found", "(bool a, bool b) => (bool y)", "y = Or(a, b)",
                            "y = Xor(a, b)"),
    "one condition of two": ("found", TRUTHS, f"{EITHER} y = Or(a, b)",
                             constant("k", "2.0") + "y = Greater(x, k)"),
    "the third operand of Max": (
        "named", X, constant("k", "-300.0") + "n = Neg(x) y = Max(x, n, k)",
        "n = Neg(x) y = Max(x, n)"),
    "minus infinity": ("found", TRUTHS, "y = IsInf(x)", "y = IsInf <detect_negative = 0> (x)"),
    "elements that occur twice": ("found", "(float[M] x) => (float[K] y)",
                                  "y = Unique <sorted = 0> (x)", "y = Identity(x)"),
    "boxes that overlap": (
        "found", BOXES,
        MOST_6 + constant("i", "0.9", "float[1]") + "y = NonMaxSuppression(b, s, m, i)",
        MOST_6 + constant("i", "1.0", "float[1]") + "y = NonMaxSuppression(b, s, m, i)"),
    "repetitions": (
        "found", "(float[N, 8] x, int64[2] n) => (float[K, M] y)", "y = Tile(x, n)",
        constant("k", "1", "int64") + "m = Min(n, k) y = Tile(x, m)"),
    "other sizes of one input": (
        "found", "(float[N, 8] x, float[M, 8] z) => (float[K, 8] y)",
        "s = Shape(x) e = Expand(z, s) y = Add(x, e)",
        "s = Shape(x) r = Reshape(z, s) y = Add(x, r)"),
    "height for width": (
        "found", "(float[N, 1, H, W] x) => (float[N, K] y)",
        constant("s", "0, -1", "int64[2]") + "y = Reshape(x, s)",
        constant("s", "0", "int64[1]") + constant("t", "1", "int64[1]") + "n = Shape(x) "
        "h = Shape <start = 2, end = 3> (x) p = Mul(h, h) b = Slice(n, s, t) "
        "q = Concat <axis = 0> (b, p) y = Reshape(x, q)"),
    "one length for another": (
        "found", "(float[N, Q, 4] x, float[N, K, 4] z) => (float[N, Q, K] y)",
        "t = Transpose <perm = [0, 2, 1]> (z) y = MatMul(x, t)",
        ("t = Transpose <perm = [0, 2, 1]> (z) m = MatMul(x, t) n = Shape <end = 2> (x) "
        "k = Shape <start = 1, end = 2> (x) q = Concat <axis = 0> (n, k) y = Reshape(m, q)")),
    "sums of integers in single precision": (
        "found", INTS, AXIS + "y = CumSum(x, a)",
        AXIS + "f = Cast <to = 1> (x) s = CumSum(f, a) y = Cast <to = 7> (s)"),
    "values near a lower limit": (
        "found", X, constant("e", "1e-7") + "a = Abs(x) m = Max(a, e) y = Log(m)",
        constant("e", "1e-7") + "a = Abs(x) m = Add(a, e) y = Log(m)"),
    "differences near a lower limit": (
        "named", "(float[N, 8] x, float[N, 8] z) => (float[N, 8] y)",
        constant("e", "1e-6") + "d = Sub(x, z) n = Abs(d) m = Max(n, e) y = Div(d, m)",
        "d = Sub(x, z) y = Sign(d)"),
    "a start from the end": (
        "found", "(float[8] x, int64[1] s) => (float[K] y)", f"{END} y = Slice(x, s, e)",
        f"{END} {constant('z', '0', 'int64[1]')} m = Max(s, z) y = Slice(x, m, e)"),
    "a triangle below the diagonal": (
        "found", "(float[8, 8] x, int64 k) => (float[8, 8] y)", "y = Trilu(x, k)",
        constant("z", "0", "int64") + "m = Max(k, z) y = Trilu(x, m)"),
    "fractions that are cast": (
        "found", "(float[N, 8] x) => (int64[N, 8] y)", "y = Cast <to = 7> (x)",
        "f = Floor(x) y = Cast <to = 7> (f)"),
    "a quotient below 0": (
        "found", INTS, constant("k", "4", "int64") + "y = Div(x, k)",
        constant("k", "4", "int64") + "m = Mod(x, k) s = Sub(x, m) y = Div(s, k)"),
    "a remainder of a negative number": (
        "found", X, constant("k", "3.0") + "y = Mod <fmod = 1> (x, k)",
        constant("k", "3.0") + "d = Div(x, k) f = Floor(d) m = Mul(f, k) y = Sub(x, m)"),
    "a quantization at its edge": (
        "found", "(float[N, 8] x) => (int8[N, 8] y)",
        constant("s", "1.0") + constant("z", "0", "int8") + "y = QuantizeLinear(x, s, z)",
        "r = Round(x) y = Cast <to = 3> (r)"),
    "a largest element below 0": (
        "found", COLUMN, AXIS + "y = ReduceMax(x, a)", AXIS + "m = ReduceMax(x, a) y = Relu(m)"),
    "a smallest element above 0": (
        "found", COLUMN, AXIS + "y = ReduceMin(x, a)",
        AXIS + constant("k", "0.0") + "m = ReduceMin(x, a) y = Min(m, k)"),
    "MaxPool padded by zeros": (
        "found", "(float[N, 1, 8, 8] x) => (float[N, 1, 8, 8] y)",
        "y = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (x)",
        constant("p", "0, 0, 2, 2, 0, 0, 2, 2", "int64[8]")
        + "q = Pad(x, p) y = MaxPool <kernel_shape = [5, 5]> (q)"),
    "indices of GatherND above 1": (
        "found", "(float[6, 8] x, int64[3, 1] n) => (float[3, 8] y)", "y = GatherND(x, n)",
        f"{MOST_1} y = GatherND(x, m)"),
    "indices of an input above 1": (
        "found", "(float[6, 8] x, int64[3] n) => (float[3, 8] y)", "y = Gather(x, n)",
        f"{MOST_1} y = Gather(x, m)"),
    "negative indices of GatherElements": (
        "named", "(float[6, 8] x, int64[2, 8] n) => (float[2, 8] y)", "y = GatherElements(x, n)",
        constant("k", "0", "int64") + "m = Max(n, k) y = GatherElements(x, m)"),
    "negative rows of a small table": (
        "named", "(int64[3] n) => (float[3, 8] y)", "y = Gather(layer, n)",
        constant("k", "0", "int64") + "m = Max(n, k) y = Gather(layer, m)"),
    "a row of GatherND": (
        "found", "(int64[3, 1] n) => (float[3, 8] y)", "y = GatherND(layer, n)",
        constant("k", "6", "int64") + "m = Min(n, k) y = GatherND(layer, m)"),
    "an element of a sequence": (
        "found", "(float[2] x, float[2] z, float[2] w, int64 n) => (float[2] y)",
        "s = SequenceConstruct(x, z, w) y = SequenceAt(s, n)",
        f"{MOST_1} s = SequenceConstruct(x, z, w) y = SequenceAt(s, m)"),
    "vectors of zeros": ("found", X, "y = LpNormalization(x)",
                         AXIS + "n = ReduceL2(x, a) y = Div(x, n)"),
    "exponentials above 1e6": ("found", X, "y = Exp(x)",
                               constant("k", "1e6") + "e = Exp(x) y = Min(e, k)"),
    "a size of 1": ("found", SIZES, "y = Identity(x)", f"{SIZE.format('Equal', 1)} y = Add(x, f)"),
    "a size above 20": ("found", SIZES, "y = Identity(x)",
                        f"{SIZE.format('Greater', 20)} y = Add(x, f)"),
    "a mask of zeros": (
        "named", MASKED, "m = Cast <to = 1> (mask) y = Mul(x, m)",
        constant("k", "1.0") + AXIS + "m = Cast <to = 1> (mask) t = ReduceMax(m, a) "
        "u = Sub(k, t) p = Mul(x, m) y = Add(p, u)"),
    "a mask with holes": (
        "named", MASKED, "m = Cast <to = 1> (mask) y = Mul(x, m)",
        constant("t", "1", "int64") + "m = Cast <to = 1> (mask) z = CumSum <reverse = 1> (m, t) "
        "o = Sign(z) y = Mul(x, o)"),
    "a mask of larger numbers": (
        "named", MASKED, "m = Cast <to = 9> (mask) f = Cast <to = 1> (m) y = Mul(x, f)",
        "f = Cast <to = 1> (mask) y = Mul(x, f)"),
    "shifts by more than 1": (
        "found", "(uint8[N, 8] x, uint8[N, 8] z) => (uint8[N, 8] y)",
        'y = BitShift <direction = "LEFT"> (x, z)',
        constant("k", "1", "uint8") + 'm = Min(z, k) y = BitShift <direction = "LEFT"> (x, m)'),
    "the slope of one channel": (
        "found", X3, constant("k", "0.0, 0.0, 400.0", "float[3]")
        + constant("s", "0.1, 0.1, 0.1", "float[3]") + "a = Add(x, k) y = PRelu(a, s)",
        constant("k", "0.0, 0.0, 400.0", "float[3]")
        + constant("s", "0.1, 0.1, 0.9", "float[3]") + "a = Add(x, k) y = PRelu(a, s)"),
    "one threshold of several": (
        "found", "(float[N, 3] x) => (bool[N, 3] y)",
        constant("k", "0.0, 0.0, 400.0", "float[3]") + "y = Greater(x, k)",
        constant("k", "0.0, 0.0, 500.0", "float[3]") + "y = Greater(x, k)"),
    "another threshold": ("found", TRUTHS, constant("k", "400.0") + "y = Less(x, k)",
                          constant("k", "390.0") + "y = Less(x, k)"),
}  # fmt: skip
WEIGHTS["apart"] = (np.arange(8) * 1e9).astype(np.float32)

RIGHT: dict[str, tuple[str, str, str]] = {
    "a largest element of an equal sum": (
        PLACES, "a = MatMul(x, layer) b = Add(a, ones) y = ArgMax <axis = 1> (b)",
        "a = MatMul(x, layer) y = ArgMax <axis = 1> (a)"),
    "a negated comparison": (
        TRUTHS, constant("k", "3.5") + "y = GreaterOrEqual(x, k)",
        constant("k", "3.5") + "l = Less(x, k) y = Not(l)"),
    "a comparison of scaled values": (
        TRUTHS, constant("k", "0.3") + constant("f", "0.7") + "m = Mul(x, f) y = Greater(m, k)",
        constant("k", "0.42857142857") + "y = Greater(x, k)"),
    "a rounded sum in another order": (
        X, constant("k", "0.3") + "a = Add(x, k) b = Add(a, ones) y = Round(b)",
        constant("k", "1.3") + "a = Add(x, k) y = Round(a)"),
    "the largest of a layer by TopK": (
        PLACES, "h = MatMul(x, layer) y = ArgMax <axis = 1> (h)",
        constant("k", "1", "int64[1]") + "h = MatMul(x, layer) v, y = TopK(h, k)"),
    "De Morgan": (TRUTHS, f"{EITHER} y = Or(a, b)",
                  f"{EITHER} c = Not(a) d = Not(b) e = And(c, d) y = Not(e)"),
    "Max of Max": (X, constant("k", "1.0") + "n = Neg(x) y = Max(x, n, k)",
                   constant("k", "1.0") + "n = Abs(x) y = Max(n, k)"),
    "a norm by hand": (
        X, "y = LayerNormalization <epsilon = 1e-5> (x, ones)",
        constant("k", "1e-5") + AXIS + "m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) "
        "v = ReduceMean(q, a) w = Add(v, k) s = Sqrt(w) y = Div(d, s)"),
}  # fmt: skip


def judged(signature: str, before: str, after: str, folder: Path) -> Comparison:
    return compare(
        text_models.load(folder / "before.onnx", signature, before, WEIGHTS),
        text_models.load(folder / "after.onnx", signature, after, WEIGHTS),
    )


def found_wrong(case: Sequence[str], folder: Path) -> Comparison | None:
    """Return the comparison; None if only the first model runs on some inputs."""
    try:
        return judged(case[0], case[1], case[2], folder)
    except pl.PasslibError as error:
        assert "the checked model does not run on" in str(error)  # noqa: PT017 (a verdict)
        return None


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_or_named(name: str, tmp_path: Path) -> None:
    expected, *case = FAULTS[name]
    found = found_wrong(case, tmp_path)
    if expected == "found":
        assert found is None or not found.equal
    else:
        assert found is not None
        assert not found.equal or found.not_covered, "a wrong model was called right"


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rewrite_agrees(name: str, tmp_path: Path) -> None:
    found = judged(*RIGHT[name], tmp_path)
    assert found.equal, str(found)


class TestGivenInputs:
    """Nothing is searched beside given inputs, but what they do not show is said."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        text_models.load(tmp_path / "relu.onnx", X, "y = Relu(x)", WEIGHTS)
        text_models.load(tmp_path / "same.onnx", X, "y = Identity(x)", WEIGHTS)
        np.savez(tmp_path / "above.npz", x=np.arange(1, 17, dtype=np.float32).reshape(2, 8))
        return tmp_path

    @pytest.mark.parametrize(
        ("line", "status"),
        [
            ("compare relu.onnx same.onnx", 0),
            ("opt relu.onnx -o o.onnx --check", 0),
            ("bisect relu.onnx same.onnx", 5),
            ("reduce relu.onnx same.onnx -o small.onnx", 5),
        ],
    )
    def test_gaps_are_printed(self, line: str, status: int, folder: Path) -> None:
        result = passlib_command(*line.split(), "--inputs", "above.npz", folder=folder)
        assert result.returncode == status
        gaps = [each for each in result.stdout.splitlines() if each.startswith("not covered: ")]
        assert gaps == [
            "not covered: values below 0 at Relu 'Relu_0'",
            "not covered: sizes other than (2, 8) of input 'x'",
        ]

    def test_inputs_that_show_all_leave_no_gap(self, folder: Path) -> None:
        x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
        given = [{"x": x}, {"x": -x[:1]}]
        model = pl.load(folder / "relu.onnx")
        assert compare(model, model, given).not_covered == ()
        assert compare(model, model, given[:1]).not_covered == (
            "sizes other than (3, 8) of input 'x'",
        )

    def test_a_branch_that_is_not_taken(self, tmp_path: Path) -> None:
        body = (
            "y = If (flag) <then_branch = t () => (u) { u = Neg(x) }, "
            "else_branch = e () => (v) { v = Relu(x) }>"
        )
        signature = "(float[2, 8] x, bool flag) => (float[2, 8] y)"
        model = text_models.load(tmp_path / "m.onnx", signature, body, WEIGHTS)
        x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
        found = compare(model, model, {"x": x, "flag": np.array(True)})
        assert found.not_covered == ("the else branch of If 'If_0'",)

    def test_functions_are_looked_into(self, tmp_path: Path) -> None:
        text = """
            <ir_version: 9, opset_import: ["" : 18, "f" : 1]>
            g (float[2, 8] x) => (float[2, 8] y) { y = f.layer(x) }
            <opset_import: ["" : 18], domain: "f">
            layer (u) => (v) { a = Cosh(u) v = LeakyRelu(a) }
        """
        onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
        model = pl.load(tmp_path / "m.onnx")
        x = np.ones((2, 8), np.float32)
        for found in (compare(model, model), compare(model, model, {"x": x})):
            assert any("values below 0 at LeakyRelu" in gap for gap in found.not_covered)

    def test_values_for_no_input(self, folder: Path) -> None:
        path = folder / "relu.onnx"
        with pytest.raises(pl.InputError, match="no input 'z'; its inputs are x"):
            compare(path, path, {"x": np.zeros((2, 8), np.float32), "z": np.zeros(2)})


INTERFACES = {
    # The signature and the body of a wrong model, and what is said of output y of another one.
    "type": ("(float[N, 8] x) => (int64[N, 8] y)", "y = Cast <to = 7> (x)",
             "types float32 and int64"),
    "declared size": ("(float[N, 8] x) => (float[N, 9] y)", "y = Relu(x)",
                      "declared shape (?, 9), computed (3, 8)"),
    "declared rank": ("(float[N, 8] x) => (float[N, 8, 1] y)", "y = Relu(x)",
                      "declared shape (?, 8, 1), computed (3, 8)"),
}  # fmt: skip


@pytest.mark.parametrize("name", INTERFACES)
def test_an_output_of_another_type_is_named(name: str, tmp_path: Path) -> None:
    text_models.load(tmp_path / "a.onnx", X, "y = Relu(x)", WEIGHTS)
    *case, said = INTERFACES[name]
    text_models.load(tmp_path / "b.onnx", case[0], case[1], WEIGHTS)
    result = passlib_command("compare", "a.onnx", "b.onnx", folder=tmp_path)
    assert result.returncode == 4
    assert f"y       {said} " in result.stdout
    if name != "type":  # the Cast is a guilty rewrite
        for command in (("bisect",), ("reduce", "-o", "o.onnx")):
            result = passlib_command(*command, "a.onnx", "b.onnx", folder=tmp_path)
            assert result.returncode == 3
            assert f"output 'y': {said.split(',')[0]}" in result.stderr


def test_other_outputs_are_named(tmp_path: Path) -> None:
    text_models.load(tmp_path / "a.onnx", X, "y = Relu(x)", WEIGHTS)
    text_models.load(tmp_path / "b.onnx", X.replace(" y)", " z)"), "z = Relu(x)", WEIGHTS)
    for command in (("bisect",), ("reduce", "-o", "o.onnx")):
        result = passlib_command(*command, "a.onnx", "b.onnx", folder=tmp_path)
        assert result.returncode == 5
        assert result.stderr.endswith("; the outputs were y, and are z\n")
