"""Faults that ordinary random inputs do not show are found, or named as not covered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib as pl
import text_models
from commands import passlib_command
from passlib.workbench import Comparison, compare, drawn
from text_models import constant

GENERATOR = np.random.default_rng(5)
TABLE = GENERATOR.standard_normal((1000, 4)).astype(np.float32)
LARGE = GENERATOR.standard_normal((50_000, 2)).astype(np.float32)


def with_row(table: Any, row: int) -> Any:
    wrong = table.copy()
    wrong[row] += 1
    return wrong


WEIGHTS = {
    "table": TABLE,
    "table_wrong": with_row(TABLE, -1),
    "large": LARGE,
    "large_wrong": with_row(LARGE, 49_000),
    "layer": (GENERATOR.standard_normal((8, 8)) * 2).astype(np.float32),
    "up": np.full(8, 500, np.float32),
    "causal": np.triu(np.full((8, 8), -1e9, np.float32), 1),
    "column": np.where(np.arange(8) == 3, 1e6, 1).astype(np.float32),
    "upto": np.arange(8, dtype=np.int64),
}
"""Weights of models, by name."""

X = "(float[N, 8] x) => (float[N, 8] y)"
FLAG = "(float[N, 8] x, bool flag) => (float[N, 8] y)"
MODE = "(float[N, 8] x, int64 mode) => (float[N, 8] y)"
IDS = "(int64[N, 5] ids) => (float[N, 5, C] y)"
INTS = "(int64[N, 8] x) => (int64[N, 8] y)"


def branches(condition: str, then: str, otherwise: str = "Identity") -> str:
    return (
        f"{condition} y = If (c) <then_branch = t () => (float[N, 8] u) {{ u = {then}(x) }}, "
        f"else_branch = e () => (float[N, 8] v) {{ v = {otherwise}(x) }}>"
    )


def inside(then: str, otherwise: str = "v = Neg(x)") -> str:
    return (
        f"y = If (flag) <then_branch = t () => (u) {{ {then} }}, "
        f"else_branch = e () => (v) {{ {otherwise} }}>"
    )


SUM_ABOVE = constant("hundred", "100.0") + (
    "s = ReduceSum <keepdims = 0> (x) c = Greater(s, hundred)"
)
MODE_IS_7 = constant("seven", "7", "int64") + "c = Equal(mode, seven)"
SEVERAL = (
    constant("zero", "0", "int64")
    + constant("one", "1", "int64")
    + ("shape = Shape(x) n = Gather(shape, zero) c = Greater(n, one)")
)
MLP = (
    " ".join(
        f"h{i} = MatMul({'x' if i == 0 else f'a{i - 1}'}, layer) a{i} = Tanh(h{i})"
        for i in range(40)
    )
    + " b = Add(a39, up)"
)

LOOP = (
    "go = Constant <value = bool {{1}}> () {0} y = Loop({1}, go, x) <body = b (int64 i, bool g, "
    "float[N, 8] before) => (bool on, float[N, 8] after) {{ on = Identity(g) "
    "after = {2}(before) }}>"
)


def scan(body: str) -> str:
    return (
        constant("start", "0.0")
        + "last, y = Scan <num_scan_inputs = 1, body = b (float before, float[8] row) => "
        + f"(float after, float[8] made) {{ {body} }}> (start, x)"
    )


ROWS_FROM_2 = (
    constant("s", "0", "int64[1]")
    + constant("m", "2", "int64[1]")
    + constant("e", "9999", "int64[1]")
    + "h = Slice(x, s, m, s) t = Slice(x, m, e, s) w = Neg(t) y = Concat <axis = 0> (h, w)"
)
BATCH_EMPTY = (
    constant("z", "0", "int64[1]")
    + constant("axes", "0", "int64[1]")
    + "n = Shape <end = 1> (x) q = Equal(n, z) f = Cast <to = 1> (q) "
    "r = ReduceSum <keepdims = 1> (x, axes) y = Add(r, f)"
)
LAST_DROPPED = (
    constant("two", "2", "int64[1]")
    + constant("z", "0", "int64[1]")
    + constant("axes", "1", "int64[1]")
    + "n = Shape <start = 1> (x) h = Div(n, two) m = Mul(h, two) k = Slice(x, z, m, axes) "
    "y = ReduceSum(k, axes)"
)
SOFTMAX_BY_HAND = constant("axes", "1", "int64[1]") + (
    "e = Exp(x) s = ReduceSum(e, axes) y = Div(e, s)"
)

TRAINING = constant("t", "1", "bool") + constant("k", "0.5")

FAULTS: dict[str, tuple[str, str, str]] = {
    "below -50": (X, constant("k", "-50.0") + "c = Less(x, k) n = Neg(x) y = Where(c, n, x)",
                  "y = Identity(x)"),
    "above 60000": (X, "y = Identity(x)", constant("k", "60000.0") + "y = Min(x, k)"),
    "half precision inside": (X, "y = Identity(x)", "h = Cast <to = 10> (x) y = Cast <to = 1> (h)"),
    "above 1e20": (X, "y = Identity(x)", constant("k", "1e20") + "y = Min(x, k)"),
    "below -1e6": (X, "y = Identity(x)", constant("k", "-1e6") + "y = Max(x, k)"),
    "above the limit of a Clip": (X, constant("a", "-1.0") + constant("b", "500.0")
                                  + "y = Clip(x, a, b)", constant("a", "-1.0") + "y = Max(x, a)"),
    "the other branch, by a sum": (X, branches(SUM_ABOVE, "Neg"), "y = Identity(x)"),
    "the other branch, by a flag": (FLAG, branches("c = Identity(flag)", "Neg"),
                                    branches("c = Identity(flag)", "Neg", "Exp")),
    "the other branch, by a number": (MODE, branches(MODE_IS_7, "Neg"),
                                      branches(MODE_IS_7, "Exp")),
    "the other branch, by the batch": (X, branches(SEVERAL, "Identity"),
                                       branches(SEVERAL, "Identity", "Neg")),
    "a batch above 2": (X, "y = Identity(x)", ROWS_FROM_2),
    "a batch of 2 alone": (X, "y = Identity(x)", constant("k", "2, 8", "int64[2]")
                           + "y = Reshape(x, k)"),
    "batches joined": ("(float[N, 8] x) => (float[N, 1] y)",
                       constant("axes", "1", "int64[1]") + "y = ReduceSum(x, axes)",
                       constant("axes", "1", "int64[1]") + constant("k", "2, 1", "int64[2]")
                       + "r = ReduceSum(x, axes) y = Reshape(r, k)"),
    "an odd size": ("(float[N, 1, H, W] x) => (float[N, 1, P, Q] y)",
                    "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)",
                    "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)"),
    "the last of an odd number": ("(float[N, M] x) => (float[N, 1] y)",
                                  constant("axes", "1", "int64[1]") + "y = ReduceSum(x, axes)",
                                  LAST_DROPPED),
    "the second output": ("(float[N, 8] x) => (float[N, 8] y, float[N, 8] z)",
                          "y = Neg(x) z = Exp(x)", "y = Neg(x) z = Sin(x)"),
    "the second output above 30": (
        "(float[N, 8] x) => (float[N, 8] y, float[N, 8] z)",
        constant("k", "30.0") + "y = Neg(x) d = Sub(x, k) z = Relu(d)",
        constant("k", "0.0") + "y = Neg(x) z = Mul(x, k)"),
    "NaN that is replaced": (X, constant("k", "0.0") + "c = IsNaN(x) y = Where(c, k, x)",
                             "y = Identity(x)"),
    "infinity that is replaced": (X, constant("k", "5.0") + "c = IsInf(x) y = Where(c, k, x)",
                                  "y = Identity(x)"),
    "NaN that is lost": (X, "y = Identity(x)", constant("k", "0.0")
                         + "c = Equal(x, x) y = Where(c, x, k)"),
    "an empty batch": ("(float[N, 8] x) => (float[1, 8] y)",
                       constant("axes", "0", "int64[1]") + "y = ReduceSum(x, axes)", BATCH_EMPTY),
    "integers of 64 bits": (INTS, "y = Identity(x)", "n = Cast <to = 6> (x) y = Cast <to = 7> (n)"),
    "integers of 32 bits": ("(int32[N, 8] x) => (int32[N, 8] y)", "y = Identity(x)",
                            "n = Cast <to = 5> (x) y = Cast <to = 6> (n)"),
    "bytes above 200": ("(uint8[N, 8] x) => (uint8[N, 8] y)", "y = Identity(x)",
                        constant("k", "200", "uint8") + "y = Min(x, k)"),
    "negative integers": (INTS, constant("k", "3", "int64") + "y = Mod(x, k)",
                          constant("k", "3", "int64") + "y = Mod <fmod = 1> (x, k)"),
    "the last row of a table": (IDS, "y = Gather(table, ids)", "y = Gather(table_wrong, ids)"),
    "a row of a large table": (IDS, "y = Gather(large, ids)", "y = Gather(large_wrong, ids)"),
    "a row of a computed table": (IDS, "t = Neg(table) y = Gather(t, ids)",
                                  "t = Neg(table_wrong) y = Gather(t, ids)"),
    "a row behind a sum": (IDS, constant("k", "0", "int64") + "i = Add(ids, k) "
                           "j = Identity(i) y = Gather(table, j)", "y = Gather(table_wrong, ids)"),
    "a Loop without iterations": (
        "(float[N, 8] x, int64 n) => (float[N, 8] y)", LOOP.format("", "n", "Neg"),
        LOOP.format(constant("k", "1", "int64") + "m = Max(n, k)", "m", "Neg")),
    "the second iteration of a Loop": (
        "(float[N, 8] x, int64 n) => (float[N, 8] y)", LOOP.format("", "n", "Neg"),
        LOOP.format(constant("k", "1", "int64") + "m = Min(n, k)", "m", "Neg")),
    "a saturated network": (X, MLP + " y = LeakyRelu <alpha = 0.3> (b)", MLP + " y = Relu(b)"),
    "a saturated sigmoid": (X, constant("k", "1e4") + "a = Add(x, k) y = Sigmoid(a)",
                            constant("k", "0.0") + "m = Mul(x, k) y = Exp(m)"),
    "an output of NaN": (X, "a = Abs(x) n = Neg(a) k = Exp(a) d = Sub(n, k) y = Log(d)",
                         "a = Abs(x) n = Neg(a) k = Exp(a) d = Sub(n, k) y = Sqrt(d)"),
    "an output of zeros": (X, constant("k", "1e7") + "c = Greater(x, k) f = Cast <to = 1> (c) "
                           "y = Mul(f, x)", constant("k", "0.0") + "y = Mul(x, k)"),
    "a Relu far from 0": (X, constant("k", "1000.0") + "a = Add(x, k) y = Relu(a)",
                          constant("k", "1000.0") + "y = Add(x, k)"),
    "the slope of a PRelu": (X, constant("k", "50.0") + constant("s", "0.1")
                             + "a = Add(x, k) y = PRelu(a, s)",
                             constant("k", "50.0") + constant("s", "0.2")
                             + "a = Add(x, k) y = PRelu(a, s)"),
    "Max below its constant": (X, constant("k", "-300.0") + "y = Max(x, k)", "y = Identity(x)"),
    "a zero": (X, constant("k", "0.0") + constant("v", "5.0")
               + "c = Equal(x, k) y = Where(c, v, x)", "y = Identity(x)"),
    "the sign of zero": (X, "y = Sign(x)", constant("k", "0.0") + constant("a", "1.0")
                         + constant("b", "-1.0") + "c = Less(x, k) y = Where(c, b, a)"),
    "halves": (X, "y = Round(x)", constant("k", "0.5") + "a = Add(x, k) y = Floor(a)"),
    "a softmax that overflows": (X, "y = Softmax(x)", SOFTMAX_BY_HAND),
    "values beside a mask": ("(float[8, 8] x) => (float[8, 8] y)", "y = Add(x, causal)",
                             "a = Abs(x) y = Add(a, causal)"),
    "values beside a column": (X, "y = Mul(x, column)", constant("k", "-1e-3")
                               + "m = Mul(x, column) y = Max(m, k)"),
    "a mask of lengths": (
        "(float[N, 8] x, int64[N, 1] lengths) => (float[N, 8] y)",
        constant("k", "-1e9") + "c = Less(upto, lengths) y = Where(c, x, k)",
        constant("k", "-1e9") + "c = LessOrEqual(upto, lengths) y = Where(c, x, k)"),
    "another type": (INTS, "y = Identity(x)", "y = Cast <to = 6> (x)"),
    "a wrong size declared": (X, "y = Identity(x)", "y = Identity(x)"),
    "a fixed batch declared": (X, "y = Identity(x)", "y = Identity(x)"),
    "a fixed input": (X, "y = Identity(x)", "y = Identity(x)"),
    "a wrong rank declared": (X, "y = Identity(x)", "y = Identity(x)"),
}  # fmt: skip
SIGNATURES = {
    "another type": "(int64[N, 8] x) => (int32[N, 8] y)",
    "a wrong size declared": "(float[N, 8] x) => (float[N, 9] y)",
    "a fixed batch declared": "(float[N, 8] x) => (float[2, 8] y)",
    "a fixed input": "(float[2, 8] x) => (float[2, 8] y)",
    "a wrong rank declared": "(float[N, 8] x) => (float[N, 8, 1] y)",
}
"""Of models after the fault, where it is another one."""

CLIPPED = constant("k", "30.0") + "after = Min(before, k)"
LONG = "(float[N, M] x, bool flag) => (float[N, P] y)"


def longer(operator: str, condition: str = "") -> str:
    """Return a model with a branch that refuses inputs of few elements."""
    negated = "n = Not(flag) " if condition else ""
    padded = f'w = Pad <mode = "reflect"> (x, p) u = {operator}(w)'
    return (
        constant("p", "0, 300, 0, 300", "int64[4]")
        + negated
        + inside(padded).replace("(flag)", f"({condition or 'flag'})")
    )


FAULTS |= {
    "a branch, above 100": (
        FLAG, inside(constant("k", "100.0") + "a = Sub(x, k) u = Relu(a)"),
        inside(constant("k", "0.0") + "u = Mul(x, k)")),
    "a branch of a branch, by a sum": (
        FLAG, inside(SUM_ABOVE + "u = If (c) <then_branch = s () => (m) { m = Exp(x) }, "
                     "else_branch = r () => (n) { n = Identity(x) }>"), inside("u = Identity(x)")),
    "a branch for longer inputs": (LONG, longer("Exp"), longer("Sin")),
    "another branch for longer inputs": (LONG, longer("Exp", "n"), longer("Sin", "n")),
    "a branch that is saturated": (
        FLAG, inside(constant("k", "1e3") + "t = Tanh(x) a = Add(t, k) u = LeakyRelu(a)"),
        inside(constant("k", "1e3") + "t = Tanh(x) a = Add(t, k) u = Relu(a)")),
    "a row of a table in a branch": (
        "(int64[N, 5] ids, bool flag) => (float[N, 5, C] y)",
        inside("u = Gather(table, ids)", "v = Gather(table, ids)"),
        inside("u = Gather(table_wrong, ids)", "v = Gather(table, ids)")),
    "the body of a Scan, above 30": (
        X, scan("after = ReduceMax <keepdims = 0> (row) made = Neg(row)"),
        scan("after = ReduceMax <keepdims = 0> (row) n = Neg(row) "
             + constant("k", "-30.0") + "made = Max(n, k)")),
    "the body of a Scan, later": (
        X, scan(constant("k", "1.0") + constant("most", "4.0")
                + "m = Add(before, k) after = Min(m, most) made = Add(row, after)"),
        scan(constant("k", "1.0") + "after = Add(before, k) made = Add(row, after)")),
    "the body of a Loop, above 30": (X, LOOP.format(constant("m", "3", "int64"), "m", "Neg")
                                     .replace("after = Neg(before)", CLIPPED),
                                     LOOP.format(constant("m", "3", "int64"), "m", "Identity")),
    "the body of a Loop, later": (
        X, LOOP.format(constant("m", "3", "int64"), "m", "Neg").replace(
            "after = Neg(before)", constant("k", "1.0") + constant("h", "-500.0")
            + "j = Cast <to = 1> (i) a = Add(before, j) after = Max(a, h)"),
        LOOP.format(constant("m", "3", "int64"), "m", "Neg").replace(
            "after = Neg(before)", "j = Cast <to = 1> (i) after = Add(before, j)")),
}  # fmt: skip

RIGHT: dict[str, tuple[str, str, str]] = {
    "max for relu": (X, "y = Relu(x)", constant("k", "0.0") + "y = Max(x, k)"),
    "clip for relu": (X, "y = Relu(x)", constant("k", "0.0") + "y = Clip(x, k)"),
    "a sum in another order": (X, constant("k", "3.0") + "a = Add(x, k) y = Add(a, up)",
                               constant("k", "3.0") + "a = Add(x, up) y = Add(a, k)"),
    "products in another order": (X, constant("k", "0.3") + "a = Mul(x, k) y = Mul(a, up)",
                                  constant("k", "0.3") + "a = Mul(k, up) y = Mul(x, a)"),
    "a softmax over a mask": ("(float[8, 8] x) => (float[8, 8] y)",
                              "a = Add(x, causal) y = Softmax(a)",
                              "a = Add(causal, x) l = LogSoftmax(a) y = Exp(l)"),
    "matrices joined": (X, "a = MatMul(x, layer) y = MatMul(a, layer)",
                        "k = MatMul(layer, layer) y = MatMul(x, k)"),
    "a saturated network": (X, MLP + " y = Relu(b)", MLP + " c = Identity(b) y = Relu(c)"),
    "a fold of identities": (INTS, "a = Identity(x) y = Neg(a)", "y = Neg(x)"),
    "gathered first": (IDS, "t = Neg(table) y = Gather(t, ids)",
                       "g = Gather(table, ids) y = Neg(g)"),
    "rows of an input": ("(float[6, 8] x, int64[3] ids) => (float[3, 8] y)",
                         "g = Gather(x, ids) y = Neg(g)", "t = Neg(x) y = Gather(t, ids)"),
    "a branch inverted": (FLAG, branches("c = Identity(flag)", "Neg"),
                          branches("c = Not(flag)", "Identity", "Neg")),
    "a square root of a square": (X, "a = Mul(x, x) y = Sqrt(a)", "y = Abs(x)"),
    "random numbers": (X, "r = RandomNormalLike(x) y = Add(r, x)",
                       "r = RandomNormalLike(x) y = Add(x, r)"),
    "dropout in training": (X, TRAINING + "d = Dropout(x, k, t) y = Neg(d)",
                            TRAINING + "i = Identity(x) d = Dropout(i, k, t) y = Neg(d)"),
}  # fmt: skip


def load(path: Path, signature: str, body: str) -> pl.Model:
    return text_models.load(path, signature, body, WEIGHTS)


def judged(name: str, case: tuple[str, str, str], folder: Path) -> Comparison | None:
    """Return the comparison; None if the model after the rewrite does not run."""
    signature, before, after = case
    one = load(folder / "before.onnx", signature, before)
    two = load(folder / "after.onnx", SIGNATURES.get(name, signature), after)
    try:
        return compare(one, two)
    except pl.PasslibError as error:
        assert "does not run" in str(error)  # noqa: PT017 (a verdict, not the expected error)
        return None


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_or_named(name: str, tmp_path: Path) -> None:
    found = judged(name, FAULTS[name], tmp_path)
    if found is not None and found.equal:
        assert found.not_covered, "a wrong model was called right"


@pytest.mark.parametrize("name", [n for n in FAULTS if "branch" in n and "saturated" not in n])
def test_branches_are_reached(name: str, tmp_path: Path) -> None:
    found = judged(name, FAULTS[name], tmp_path)
    assert found is None or not found.equal


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rewrite_agrees(name: str, tmp_path: Path) -> None:
    found = judged(name, RIGHT[name], tmp_path)
    assert found is not None
    assert found.equal, str(found)


WRONG_CHANCE = {
    "one draw for two": (X, "a = RandomUniformLike(x) b = RandomUniformLike(x) y = Sub(a, b)",
                         "a = RandomUniformLike(x) y = Sub(a, a)"),
    "a wrong sum": (X, "r = RandomNormalLike(x) y = Add(r, x)",
                    "r = RandomNormalLike(x) y = Sub(r, x)"),
    "a mask that is kept": (X, TRAINING + "d = Dropout(x, k, t) y = Neg(d)", "y = Neg(x)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CHANCE)
def test_random_numbers_hide_no_fault(name: str, tmp_path: Path) -> None:
    found = judged(name, WRONG_CHANCE[name], tmp_path)
    assert found is not None
    assert not found.equal


def test_inputs_vary(tmp_path: Path) -> None:
    model = load(tmp_path / "m.onnx", X, "y = Neg(x)")
    inputs = drawn(model, None)
    assert [each["x"].shape[0] for each in inputs] == [2, 1, 3]
    assert np.any(inputs[1]["x"] == 0)
    assert np.max(np.abs(inputs[2]["x"])) > 1e20
    again = drawn(model, None)
    for one, two in zip(inputs, again, strict=True):
        assert np.array_equal(one["x"], two["x"])


def test_large_inputs_keep_the_outputs_finite(tmp_path: Path) -> None:
    model = load(tmp_path / "m.onnx", X, "a = Exp(x) y = Mul(a, a)")
    for each in drawn(model, None):
        assert np.all(np.isfinite(np.asarray(model(each["x"]))))


def test_names_choose_ranges(tmp_path: Path) -> None:
    signature = "(int64[N, 8] attention_mask, int64[N, 1] lengths) => (int64[N, 8] y)"
    model = load(tmp_path / "m.onnx", signature, "y = Mul(attention_mask, lengths)")
    for each in drawn(model, None):
        mask = each["attention_mask"]
        assert np.array_equal(mask, -np.sort(-mask, axis=1)), "zeros follow ones"
        assert set(np.unique(mask)) <= {0, 1}
        assert np.all((each["lengths"] >= 1) & (each["lengths"] <= 9))


def test_sizes_are_found(tmp_path: Path) -> None:
    """A Pad refuses shorter inputs; silero_vad has such a one."""
    body = constant("p", "0, 64, 0, 64", "int64[4]") + 'y = Pad <mode = "reflect"> (x, p)'
    model = load(tmp_path / "m.onnx", "(float[N, M] x) => (float[N, P] y)", body)
    assert all(each["x"].shape[1] > 64 for each in drawn(model, None))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("x", "z, float[N, 8] w"), "only the first has x; only the second has z, w"),
        (("x", "x, float[N, 8] w"), ""),
    ],
)
def test_other_names_are_said(names: tuple[str, str], message: str, tmp_path: Path) -> None:
    one, two = (
        load(
            tmp_path / f"{number}.onnx",
            f"(float[N, 8] {name}) => (float[N, 8] y)",
            f"y = Neg({name.split(',', 1)[0]})",
        )
        for number, name in enumerate(names)
    )
    if not message:
        assert compare(one, two).equal
        return
    with pytest.raises(pl.InputError, match=message):
        compare(one, two)


def test_equal_names_belong_together(tmp_path: Path) -> None:
    signature = "(float[2, 8] {}, float[2, 8] {}) => (float[2, 8] y)"
    one = load(tmp_path / "1.onnx", signature.format("x", "a"), "y = Sub(x, a)")
    two = load(tmp_path / "2.onnx", signature.format("b", "x"), "y = Sub(x, b)")
    found = compare(one, two)
    assert found.equal
    assert found.paired == ("input a with b",)
    assert "paired by position: input a with b" in str(found)


def test_the_commands_print_what_is_missing(tmp_path: Path) -> None:
    load(tmp_path / "m.onnx", X, FAULTS["an output of NaN"][1])
    line = "not covered: output 'y' is NaN for all inputs\n"
    result = passlib_command("compare", "m.onnx", "m.onnx", folder=tmp_path)
    assert result.returncode == 0
    assert line in result.stdout
    found = passlib_command("compare", "m.onnx", "m.onnx", "--json", folder=tmp_path)
    assert json.loads(found.stdout)["not_covered"] == ["output 'y' is NaN for all inputs"]
    given = ("opt", "m.onnx", "-o", "o.onnx", "--passes", "removeDeadNodes", "--check")
    assert line in passlib_command(*given, folder=tmp_path).stdout
    found = passlib_command(*given, "--json", folder=tmp_path)
    assert json.loads(found.stdout)[0]["not_covered"] == ["output 'y' is NaN for all inputs"]


UNSTABLE = '''
import passlib as pl

calls = []

@pl.graph_pass(replace=True)
def unstable(graph: pl.Graph) -> None:
    """Is wrong every second time."""
    calls.append(1)
    if len(calls) % 2:
        for node in graph.sorted():
            if node.op == "Neg":
                node.op = "Abs"


@pl.graph_pass
def talking(graph: pl.Graph) -> None:
    """Is wrong, and says so."""
    print("wrong")
    for node in graph.sorted():
        if node.op == "Neg":
            node.op = "Abs"
'''


def test_a_wrong_pass_is_heard_once(tmp_path: Path) -> None:
    load(tmp_path / "m.onnx", X, "y = Neg(x)")
    (tmp_path / "passes.py").write_text(UNSTABLE, "utf-8")
    given = ("opt", "m.onnx", "-o", "o.onnx", "-l", "passes.py", "--passes", "talking", "--check")
    result = passlib_command(*given, folder=tmp_path)
    assert result.returncode == 4
    assert result.stdout.count("wrong") == 1


def test_an_unstable_pass_is_named(tmp_path: Path) -> None:
    load(tmp_path / "m.onnx", X, "y = Neg(x)")
    (tmp_path / "passes.py").write_text(UNSTABLE, "utf-8")
    given = ("opt", "m.onnx", "-o", "o.onnx", "-l", "passes.py", "--passes", "unstable", "--check")
    result = passlib_command(*given, folder=tmp_path)
    assert result.returncode == 4
    assert "unstable is unstable: it makes another model in each run" in result.stderr


def test_searches_name_an_unstable_pass(tmp_path: Path) -> None:
    load(tmp_path / "m.onnx", X, "y = Neg(x)")
    (tmp_path / "passes.py").write_text(UNSTABLE, "utf-8")
    (tmp_path / "right.py").write_text(UNSTABLE.replace("% 2", "% 2 == 0"), "utf-8")
    named = "unstable is unstable: it makes another model in each run\n"
    given = ("m.onnx", "--passes", "unstable", "--check", "-l")
    found = passlib_command("bisect", *given, "passes.py", folder=tmp_path)
    assert found.returncode == 0
    assert f"\n{named}" in found.stdout
    for command in (("bisect",), ("reduce", "-o", "small.onnx")):
        result = passlib_command(*command, *given, "right.py", folder=tmp_path)
        assert result.returncode == 5
        assert result.stderr.endswith(f"the pipeline's result is correct; but {named}")


def test_searches_that_find_nothing_print_what_is_missing(tmp_path: Path) -> None:
    load(tmp_path / "m.onnx", X, FAULTS["an output of NaN"][1])
    load(tmp_path / "o.onnx", X, FAULTS["an output of NaN"][2])
    gap = "output 'y' is NaN for all inputs"
    for given in (
        ("bisect", "m.onnx", "--passes", "removeDeadNodes", "--check"),
        ("bisect", "m.onnx", "o.onnx"),
        ("reduce", "m.onnx", "o.onnx", "-o", "small.onnx"),
    ):
        found = passlib_command(*given, folder=tmp_path)
        assert found.returncode == 5
        assert found.stdout == f"not covered: {gap}\n"
    found = passlib_command("bisect", "m.onnx", "o.onnx", "--json", folder=tmp_path)
    assert json.loads(found.stdout) == {"not_covered": [gap]}


@pytest.mark.parametrize("operator", ["RandomNormalLike", "Dropout"])
def test_renamed_nodes_draw_the_same_numbers(operator: str, tmp_path: Path) -> None:
    call, head = ("Dropout(x, k, t)", TRAINING) if operator == "Dropout" else (f"{operator}(x)", "")
    one, same, wrong = (
        load(tmp_path / f"{number}.onnx", X, head + body)
        for number, body in enumerate(
            (
                f"r = {call} s = {call} y = Sub(r, s)",
                f"a = {call} b = {call} y = Sub(a, b)",
                f"a = {call} b = {call} y = Sub(b, a)",
            )
        )
    )
    assert compare(one, same).equal
    assert not compare(one, wrong).equal
