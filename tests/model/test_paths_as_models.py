"""Functions take paths wherever they take models, and one name wherever they take names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import passlib as pl
from commands import passlib_command
from onnx_models import save
from passlib import workbench as bench
from passlib.errors import PasslibError

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
model (float[2, 3] x) => (float[2, 3] y)
<float[3, 3] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}>
{
   [a] a = Identity(x)
   [b] b = MatMul(a, w)
   [r] r = Relu(b)
   [s] s = Relu(r)
   [y] y = Neg(s)
}
"""

RULES = """
rule reluOfRelu "Relu of Relu is Relu."
  y = Relu(Relu(x))
  => y = Relu(x)
  exact
"""

X = {"x": np.ones((2, 3), np.float32)}


def operators(model: pl.Model) -> list[str]:
    return [node.op for node in model.symbol.nodes() if not node.is_variable]


def rules() -> pl.Rules:
    return pl.Rules(RULES)


def guilty(before: Any, after: Any) -> Any:
    return len(bench.bisect(before, after).rewrites)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "clean": lambda a, _: operators(pl.simplify(a, exact=True)),
    "simplify": lambda a, _: operators(pl.simplify(a)),
    "to_half": lambda a, _: operators(pl.to_half(a)),
    "quantize_weights": lambda a, _: operators(pl.quantize_weights(a)),
    "inline_functions": lambda a, _: operators(pl.inline_functions(a)),
    "outline": lambda a, _: operators(pl.outline(a)),
    "merge": lambda a, b: operators(pl.merge(a, b, {"y": "x"}, prefix="second_")),
    "inspect": lambda a, _: pl.inspect(a),
    "find": lambda a, _: len(pl.find(a, "Relu(Relu(x))")),
    "why": lambda a, _: pl.why(a, "Abs(x)", "s"),
    "Rules": lambda a, _: operators(rules()(a)),
    "Pipeline.run": lambda a, _: operators(pl.Pipeline("removeNoOps").run(a).model),
    "compare": lambda a, b: pl.compare(a, b).equal,
    "diff": lambda a, b: bench.diff(a, b).removed,
    "bisect": guilty,
    "reduce": lambda a, b: bench.reduce(a, b).nodes,
    "reduce_both": lambda a, b: bench.reduce_both(a, b).nodes,
    "drawn": lambda a, _: len(bench.drawn(a, None, 2)),
    "input_shapes": lambda a, _: next(bench.input_shapes(a))["x"].shape,
    "draw_inputs": lambda a, _: bench.draw_inputs(a, next(bench.input_shapes(a)))["x"].shape,
    "Differs": lambda a, b: bench.Differs(a)(pl.load(b) if isinstance(b, Path) else b),
    "PipelineFails": lambda a, _: bench.PipelineFails(pl.Pipeline("removeNoOps"), a, X).what,
    "script": lambda a, _: bench.script({"model": a}, X, lambda models, inputs: True),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_path_is_a_model(call: str, tmp_path: Path) -> None:
    first = save(TEXT, tmp_path / "first.onnx")
    second = save(TEXT.replace("Neg(s)", "Abs(s)"), tmp_path / "second.onnx")
    wanted = CALLS[call](pl.load(first), pl.load(second))
    assert CALLS[call](first, second) == wanted
    if call != "Differs":
        assert CALLS[call](str(first), str(second)) == wanted


NAMES: dict[str, Callable[[pl.Model, Any], pl.Model]] = {
    "simplify": lambda m, name: pl.simplify(m, skip=name("removeNoOps")),
    "Model.simplify": lambda m, name: m.simplify(skip=name("removeNoOps"), exact=True),
    "optimize_for": lambda m, name: m.optimize_for("simplify", skip=name("removeNoOps")),
    "Pipeline": lambda m, name: m.optimize_for([("clean", {"skip": name("removeNoOps")})]),
    "half_ops": lambda m, name: pl.to_half(m, keep_ops=name("MatMul")),
    "half_nodes": lambda m, name: pl.to_half(m, keep_nodes=name("r")),
    "quantize_ops": lambda m, name: pl.quantize_weights(m, keep_ops=name("MatMul"), least=1),
    "quantize_nodes": lambda m, name: pl.quantize_weights(m, keep_nodes=name("b"), least=1),
    "only": lambda m, name: rules()(m, only=name("reluOfRelu")),
    "without": lambda m, name: rules()(m, skip=name("reluOfRelu")),
    "extract": lambda m, name: m.extract(outputs=name("r")),
}  # fmt: skip


@pytest.mark.parametrize("call", NAMES)
def test_one_name_is_a_list_of_one(call: str) -> None:
    model = pl.load(onnx.parser.parse_model(TEXT))
    one = NAMES[call](model, lambda name: name)
    assert operators(one) == operators(NAMES[call](model, lambda name: [name]))


WRONG: dict[str, tuple[Callable[[pl.Model], Any], type[Exception], str]] = {
    "skip": (
        lambda m: m.simplify(skip="removeNoOp"),
        PasslibError,
        "^option 'skip': there is no standard pass 'removeNoOp'; did you mean 'removeNoOps'",
    ),
    "number": (
        lambda m: m.simplify(skip=3),  # type: ignore[arg-type]
        TypeError,
        r"^skip has 3, but must be names, such as \['first', 'second'\]$",
    ),
    "numbers": (lambda m: pl.to_half(m, keep_ops=[3]), TypeError, "^keep_ops has 3"),  # type: ignore[list-item]
    "bytes": (lambda m: pl.quantize_weights(m, keep_nodes=b"a"), TypeError, "^keep_nodes has 97"),  # type: ignore[arg-type]
    "functions": (
        lambda m: pl.inline_functions(m, names="layer"),
        PasslibError,
        "there is no function 'layer'; the model has none",
    ),
    "fixed": (
        lambda m: m.simplify(fixed="x:2,3"),  # type: ignore[arg-type]
        TypeError,
        r"^fixed is of type str, but must be a dictionary by name, such as \{'data': \(1, 3",
    ),
    "rules": (lambda m: rules()(m, only="reluOf"), PasslibError, "no rule or group of rules 'relu"),
    "a symbol": (
        lambda m: pl.Pipeline("clean").run(m.symbol),
        TypeError,
        r"a pipeline runs on a Model, not ModelGraph: make one with .*passlib.load\(path\)",
    ),
    "a number": (lambda _: pl.inspect(3), TypeError, "a model is read from a path.*not from int"),
    "a missing file": (
        lambda _: bench.diff("no.onnx", "no.onnx"),
        FileNotFoundError,
        "no.onnx",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes(case: str) -> None:
    call, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        call(pl.load(onnx.parser.parse_model(TEXT)))


def test_inspect_is_the_json_of_the_command(tmp_path: Path) -> None:
    path = save(TEXT, tmp_path / "model.onnx")
    facts = pl.inspect(path)
    assert facts["operators"] == {"Relu": 2, "Identity": 1, "MatMul": 1, "Neg": 1}
    assert facts["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 3]}]
    assert json.loads(passlib_command("inspect", path, "--json").stdout) == facts
    assert pl.inspect(path.read_bytes()) == facts
