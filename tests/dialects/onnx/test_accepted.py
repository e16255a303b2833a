"""Saved files pass ONNX's checker and ONNX Runtime, or the save is refused by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import onnx_models
import passlib
from onnx_models import HEAD, X
from passlib.errors import GraphError, PasslibError, UnsupportedError

Loader = Callable[[str], passlib.library.Library]


@pytest.fixture(autouse=True)
def libraries(load_plugin: Loader) -> None:
    for name in ("edits", "onnx_edits"):
        load_plugin(name)


OWN = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g '

MODELS: dict[str, str] = {
    **onnx_models.TEXTS,
    "scan": HEAD
    + """(float[3] x, float[K, 3] xs) => (float[3] last, float[K, 3] all) {
    last, all = Scan<num_scan_inputs = 1,
      body = body (float[3] s, float[3] e) => (float[3] t, float[3] o) {
        t = Add(s, e) o = Relu(t)
      }>(x, xs)
}""",
    "branches of two kinds": HEAD
    + """(float[2, 4] x, bool c) => (float[2, N] y, int64[2] s) {
    a = Relu(x)
    y, s = If(c) <
      then_branch = t () => (u, us) { u = Exp(a) us = Shape(a) },
      else_branch = e () => (v, vs) <int64[2] k = {3, 4}> {
        v = Concat<axis = 1>(a, a) vs = Identity(k)
      }>
}""",
    "a branch in a loop": HEAD
    + """(float[3] x, int64 n, bool c) => (float[3] y, float[K, 3] all) {
    w = Relu(x)
    y, all = Loop(n, c, x) <
      body = body (int64 i, bool go, float[3] before) => (bool on, float[3] after, float[3] scan) {
        on = Identity(go)
        after = If(go) <then_branch = t () => (u) { u = Add(before, w) },
                        else_branch = e () => (v) { v = Identity(before) }>
        scan = Identity(after)
      }>
}""",
    "functions": OWN
    + """(float[2, 4] x) => (float[2, 4] y, float[2, 4] z) {
    a = own.twice(x)
    y = Relu(a)
    z = own.scaled<alpha = 2.0>(y)
}
<domain: "own", opset_import: ["" : 17]>
twice (p) => (q) { q = Add(p, p) }
<domain: "own", opset_import: ["" : 17]>
scaled <alpha> (p) => (q) { k = Constant<value_float: float = @alpha>() q = Mul(p, k) }""",
    "operators without schema": OWN
    + """(float[2, 4] x) => (float[2, 4] y, int64[2] z) <float[2, 4] a> {
    a = own.Thing(x)
    y = Relu(a)
    z = own.Other(y)
}""",
    "sequences": HEAD
    + """(float[2, 4] x) => (seq(float[2, 4]) s, float[2, 4] y) {
    s = SequenceConstruct(x, x)
    i = Constant<value = int64 {0}>()
    y = SequenceAt(s, i)
}""",
    "optional values": HEAD
    + """(float[2, 4] x) => (optional(float[2, 4]) o, float[2, 4] y) {
    o = Optional(x)
    y = OptionalGetElement(o)
}""",
    "a map": """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
g (float[2, 3] x) => (seq(map(int64, float)) y, float[2, 3] z) {
    y = ai.onnx.ml.ZipMap<classlabels_int64s = [1, 2, 3]>(x)
    z = Softmax(x)
}""",
}

EDITS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rebuildOperators", {}),
    ("interpose", {}),
    ("dropIdentities", {}),
    ("reverseOutputs", {}),
    ("appendOperator", {"op": "Neg"}),
    ("addOutput", {"op": "Shape"}),
    ("addOutput", {"op": "NonZero"}),
    ("addConstant", {"size": 1}),
    ("cutAfterFirst", {}),
)


def objection(path: Path) -> str:
    """Return what ONNX's checker or ONNX Runtime says against a file."""
    try:
        onnx.checker.check_model(path, full_check=True)
        if "own" not in {item.domain for item in onnx.load(path).opset_import}:
            onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.parametrize("typed", [False, True], ids=["", "typed"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_after_pairs_of_passes_is_accepted(
    name: str, typed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSLIB_FSYNC", "0")
    onnxruntime.set_default_logger_severity(4)
    model = onnx.parser.parse_model(MODELS[name])
    if typed:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model, source)
    assert objection(source) == ""
    loaded = passlib.load(source)
    saved = 0
    for pair in itertools.combinations(reversed(EDITS) if typed else EDITS, 2):
        edited = loaded
        try:
            for edit, options in pair:
                edited = edited.optimize_for(edit, **options)
            edited.save(target)
        except PasslibError:
            continue
        saved += 1
        assert objection(target) == "", pair
    assert saved > 5


@pytest.mark.parametrize(
    ("name", "edit", "options", "kind", "message"),
    [
        ("chain", "removeNamed", {"node": "w"}, GraphError, "(Add): it has 1 inputs"),
        ("chain", "appendOperator", {"op": "Shapes"}, UnsupportedError, "17 has no operator"),
        ("nested", "putBefore", {"node": "Add_1", "op": "IsNaN"}, GraphError, "tensor(bool)"),
        (
            "chain",
            "setAttribute",
            {"node": "Relu_0", "key": "own", "value": "1"},
            GraphError,
            "Unrecognized attribute: own",
        ),
        ("operators without schema", "copyNode", {"node": "Other_2"}, UnsupportedError, "again'"),
        ("a map", "addOutput", {"op": "Neg"}, GraphError, "added_Neg"),
        ("a map", "addOutput", {"op": "Less"}, GraphError, "'added_Less'"),
    ],
)
def test_what_onnx_would_refuse_is_not_saved(
    name: str, edit: str, options: dict[str, Any], kind: type[PasslibError], message: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(onnx.parser.parse_model(MODELS[name]), source)
    edited = passlib.load(source).optimize_for(edit, **options)
    with pytest.raises(kind) as caught:
        edited.save(target)
    assert message in str(caught.value)
    assert not target.exists()


def test_what_the_checker_has_against_the_file_is_not_held_against_passes(tmp_path: Path) -> None:
    # ONNX Runtime runs it; the checker wants the type of z.
    text = HEAD + "(float[2, 4] x) => (float[2, 4] y, z) { y = Identity(x) z = Transpose(y) }"
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(onnx.parser.parse_model(text), source)
    assert "value_info" in objection(source)
    edited = passlib.load(source).optimize_for("dropIdentities")
    edited.save(target)
    np.testing.assert_array_equal(passlib.load(target).run({"x": X})["z"].asnumpy(), X.T)


def test_large_weights_do_not_take_part_in_the_check(tmp_path: Path) -> None:
    weight = onnx.numpy_helper.from_array(np.ones((4, 3000), np.float32), "w")
    model = onnx.parser.parse_model(
        HEAD + "(float[2, 4] x) => (float[2, 3000] y) { a = MatMul(x, w) y = Relu(a) }"
    )
    model.graph.initializer.append(weight)
    for number, options in enumerate(({}, {"save_as_external_data": True, "location": "w.data"})):
        source = tmp_path / str(number) / "a.onnx"
        source.parent.mkdir()
        onnx.save(onnx.ModelProto.FromString(model.SerializeToString()), source, **options)
        edited = passlib.load(source).optimize_for("removeOperator", op="Relu")
        edited.save(tmp_path / "b.onnx")
        assert objection(tmp_path / "b.onnx") == ""
        bad = edited.optimize_for("appendOperator", op="Not")
        with pytest.raises(GraphError, match="tensor\\(float\\)"):
            bad.save(tmp_path / "c.onnx")
