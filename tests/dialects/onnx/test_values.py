"""Inputs and outputs that are not arrays of numbers: strings, sequences, maps, optional values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from onnx_models import HEAD
from passlib.errors import GraphError

X = np.array([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]], np.float32)
WORDS = np.array(["a", "bc"], object)

ML = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g '

CLASSIFIER = (
    ML
    + """(float[N, 3] x) => (int64[N] label, seq(map(int64, float)) probabilities)
<float[3, 3] w = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}> {
    scores = MatMul(x, w)
    label = ArgMax<axis = 1, keepdims = 0>(scores)
    probabilities = ai.onnx.ml.ZipMap<classlabels_int64s = [5, 6, 7]>(scores)
}"""
)
"""As scikit-learn's models are exported."""

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a classifier": (
        CLASSIFIER,
        {"x": X},
        {
            "label": np.array([1, 0]),
            "probabilities": [dict(zip((5, 6, 7), row, strict=True)) for row in X],
        },
    ),
    "strings": (
        HEAD + "(string[2] s) => (string[2] t) { t = Identity(s) }", {"s": WORDS}, {"t": WORDS},
    ),
    "strings of NumPy's own type": (
        HEAD + "(string[2] s) => (string[2] t) { t = Identity(s) }",
        {"s": np.array(["a", "bc"])},
        {"t": WORDS},
    ),
    "a list of strings": (
        HEAD + "(string[N] s) => (string[N] t) { t = Identity(s) }",
        {"s": ["a", "bc", "d"]},
        {"t": np.array(["a", "bc", "d"], object)},
    ),
    "strings to numbers": (
        ML
        + """(string[N] s) => (int64[N] t) {
        t = ai.onnx.ml.LabelEncoder<keys_strings = ["a", "bc"], values_int64s = [3, 4]>(s)
    }""".replace("LabelEncoder<", "LabelEncoder<default_int64 = -1, "),
        {"s": WORDS},
        {"t": np.array([3, 4])},
    ),
    "a sequence": (
        HEAD
        + """(seq(float[N, 3]) s, float[N, 3] x) => (seq(float[N, 3]) t, float[N, 3] first) {
        t = SequenceInsert(s, x)
        i = Constant<value = int64 {0}>()
        first = SequenceAt(t, i)
    }""",
        {"s": [X + 1, passlib.nd.array(X)], "x": X},
        {"t": [X + 1, X, X], "first": X + 1},
    ),
    "a sequence of strings": (
        HEAD
        + """(string[2] s) => (seq(string[2]) t) { t = SequenceConstruct(s, s) }""",
        {"s": WORDS},
        {"t": [WORDS, WORDS]},
    ),
    "a map": (
        ML
        + """(map(string, float) m) => (float[1, 3] y) {
        y = ai.onnx.ml.DictVectorizer<string_vocabulary = ["a", "b", "c"]>(m)
    }""",
        {"m": {"c": 2.0, "a": 1.0}},
        {"y": np.array([[1, 0, 2]], np.float32)},
    ),
    "an optional value": (
        HEAD
        + """(optional(float[2]) o) => (bool there) { there = OptionalHasElement(o) }""",
        {"o": np.ones(2, np.float32)},
        {"there": np.array(True)},
    ),
    "an optional value that is None": (
        HEAD
        + """(optional(float[2]) o) => (bool there) { there = OptionalHasElement(o) }""",
        {"o": None},
        {"there": np.array(False)},
    ),
    "an optional value that is not given": (
        HEAD
        + """(optional(float[2]) o) => (bool there) { there = OptionalHasElement(o) }""",
        {},
        {"there": np.array(False)},
    ),
}  # fmt: skip


def plain(value: Any) -> Any:
    """Return a value with lists in place of arrays."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def load(text: str, path: Path) -> passlib.model.Model:
    onnx.save(onnx.parser.parse_model(text), path)
    return passlib.load(path)


@pytest.mark.parametrize("what", CASES)
def test_values_of_every_kind(
    what: str, tmp_path: Path, load_plugin: Callable[[str], passlib.library.Library]
) -> None:
    load_plugin("good")
    text, feeds, expected = CASES[what]
    model = load(text, tmp_path / "a.onnx")
    for each in (model, model.optimize_for("identity")):
        assert plain(each.run(feeds)) == plain(expected)


def test_an_exported_model_keeps_its_values(tmp_path: Path) -> None:
    load(CLASSIFIER, tmp_path / "a.onnx").to_onnx(tmp_path / "b.onnx", shapes={"x": (None, 3)})
    _, feeds, expected = CASES["a classifier"]
    assert plain(passlib.load(tmp_path / "b.onnx").run(feeds)) == plain(expected)


@pytest.mark.parametrize(
    ("what", "feeds", "message"),
    [
        ("strings", {"s": np.ones(2, np.float32)}, "wants strings"),
        ("strings", {"s": np.array([1, "a"], object)}, "wants strings"),
        ("strings", {"s": np.array(["a", "b", "c"], object)}, r"shape \(3,\)"),
        ("strings", {}, "'s'"),
        ("a sequence", {"x": X}, "'s'"),
    ],
)
def test_values_that_do_not_fit(
    what: str, feeds: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model = load(CASES[what][0], tmp_path / "a.onnx")
    with pytest.raises(GraphError, match=message):
        model.run(feeds)


@pytest.mark.parametrize("given", [X, [1.0, 2.0], "text", {"a": X}])
def test_other_things_than_a_sequence(given: Any, tmp_path: Path) -> None:
    model = load(CASES["a sequence"][0], tmp_path / "a.onnx")
    with pytest.raises(passlib.errors.PasslibError):
        model.run({"s": given, "x": X})
