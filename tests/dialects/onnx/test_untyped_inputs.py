"""Nodes whose inputs have no type, at which ONNX's own inference may end the process.

``make sweep-untyped`` tries every operator in more forms.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import passlib
import untyped_inputs
from fuzzing import run_batch
from passlib.errors import PasslibError

_PARTS = 8


@pytest.mark.sample(2)
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_operator(part: int, tmp_path: Path) -> None:
    """Each version of each operator of the installed onnx, in processes that may end."""
    total = len(untyped_inputs.one_each())
    number, end = (total * each // _PARTS for each in (part, part + 1))
    wrong: list[str] = []
    while number < end:
        count, found = run_batch([untyped_inputs.__file__], number, end - number, tmp_path)
        number += count
        wrong += found
    assert wrong == []


NODES = {
    "EyeLike": "y = EyeLike<dtype = 1>(a)",
    "RegexFullMatch": 'y = RegexFullMatch<pattern = "a">(a)',
    "DictVectorizer": "y = ai.onnx.ml.DictVectorizer<int64_vocabulary = [1]>(a)",
    "LabelEncoder": "y = ai.onnx.ml.LabelEncoder<keys_int64s = [1], values_int64s = [2]>(a)",
    "TreeEnsemble": """y = ai.onnx.ml.TreeEnsemble<nodes_splits = float[1] {1.0},
        nodes_modes = uint8[1] {0}, nodes_featureids = [0], nodes_truenodeids = [0],
        nodes_trueleafs = [1], nodes_falsenodeids = [0], nodes_falseleafs = [1],
        leaf_targetids = [0], leaf_weights = float[1] {1.0}, tree_roots = [0]>(a)""",
}

PLACES = {
    "graph": "a = own.f(x) NODE",
    "behind an operator of ONNX Runtime": "a = com.microsoft.Gelu(x) NODE",
    "branch": """a = own.f(x) y = If(c)<then_branch = t () => (z) { NODE z = Identity(y) },
        else_branch = e () => (w) { w = Identity(x) }>""",
    "beside a typed value of the same name": """b = own.f(x)
        z = If(c)<then_branch = t () => (float[2] v) { a = Neg(x) v = Abs(a) },
        else_branch = e () => (w) { a = Identity(b) NODE w = Identity(y) }> y = Identity(z)""",
    "loop": "b = own.f(x) y = Loop(n, , b)<body = l (i, d, a) => (e, y) { e = Identity(d) NODE }>",
    "function": "a = own.f(x) y = own.g(a)",
    "function of a function": "a = own.f(x) y = own.h(a)",
}

FUNCTIONS = """
<domain: "own", opset_import: ["" : 20, "ai.onnx.ml" : 5]> g (a) => (y) { NODE }
<domain: "own", opset_import: ["" : 20, "own" : 1]> h (a) => (y) { y = own.g(a) }"""

USES: dict[str, Callable[[passlib.Model, Path], Any]] = {
    "infer": lambda model, path: model.symbol.infer_shape_partial(),
    "simplify": lambda model, path: model.simplify(),
    "pass": lambda model, path: model.optimize_for("removeDeadNodes").save(path),
    "convert": lambda model, path: model.save(path, opset=21),
    "to_onnx": lambda model, path: model.to_onnx(path, {}),
    "run": lambda model, path: model.run({}),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NODES)
def test_places(name: str, place: str, tmp_path: Path) -> None:
    data = model_of(PLACES[place], NODES[name], FUNCTIONS if "function" in place else "")
    passlib.library.load_standard()
    model = passlib.load(data)
    for use in USES.values():
        with contextlib.suppress(PasslibError):
            use(model, tmp_path / "made.onnx")


def model_of(body: str, node: str, functions: str) -> bytes:
    sets = '"" : 20, "ai.onnx.ml" : 5, "com.microsoft" : 1, "own" : 1'
    head = f"<ir_version: 9, opset_import: [{sets}]>"
    graph = f"g (float[2] x, bool c, int64 n) => (float[A] y) {{ {body} }}"
    text = f"{head} {graph} {functions}".replace("NODE", node)
    return bytes(onnx.parser.parse_model(text).SerializeToString())


def test_old_files_whose_weights_are_no_inputs(tmp_path: Path) -> None:
    """Before version 4 of the file format, inference takes the types of weights from inputs."""
    model = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 9]> g () => (float[A, B] y) '
        "<float[2, 2] w = {1, 2, 3, 4}> { y = EyeLike<dtype = 1>(w) }"
    )
    passlib.load(model.SerializeToString()).optimize_for("removeDeadNodes").save(
        tmp_path / "a.onnx"
    )


def test_types_that_inference_finds_are_used() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> g (float[2, 3] x) => (float[A, B] y) '
        "{ a = Neg(x) b = Transpose(a) y = EyeLike(b) }"
    )
    assert passlib.load(model).symbol.infer_shape_partial()[1] == [(3, 2)]


@pytest.mark.parametrize("place", ["graph", "behind an operator of ONNX Runtime"])
def test_a_converter_that_needs_the_type_says_so(place: str, tmp_path: Path) -> None:
    model = passlib.load(model_of(PLACES[place], NODES["EyeLike"], ""))
    with pytest.raises(passlib.errors.UnsupportedError, match=r"EyeLike.*types of its inputs"):
        model.save(tmp_path / "made.onnx", opset=21)
