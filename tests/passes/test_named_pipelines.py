"""``simplify`` and ``clean`` where the name of a pass may stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import passlib as pl
from commands import passlib_command
from planted_faults import block_model


@pytest.fixture
def model(tmp_path: Path) -> pl.Model:
    """A model with a normalization, which only `simplify` folds, and an Identity."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y)
    <float[3, 2, 1, 1] w = {1, 2, 3, 4, 5, 6}, float[3] s = {1, 2, 3}, float[3] b = {3, 2, 1},
     float[3] m = {0, 1, 0}, float[3] v = {1, 2, 1}> {
      i = Identity (x)
      c = Conv (i, w)
      y = BatchNormalization (c, s, b, m, v)
    }"""
    onnx = pytest.importorskip("onnx")
    return pl.load(onnx.parser.parse_model(text))


def operators(model: pl.Model) -> list[str]:
    return [node.op for node in model.symbol.nodes() if not node.is_variable]


FORMS: dict[str, tuple[Any, list[str]]] = {
    "simplify": ("simplify", ["Conv"]),
    "clean": ("clean", ["Conv", "BatchNormalization"]),
    "in a text": ("removeDeadNodes, repeat<3>(clean)", ["Conv", "BatchNormalization"]),
    "in a list": (["clean", ("simplify", {"max_rounds": 2})], ["Conv"]),
    "with options": (
        "simplify{skip=[foldBatchNormalization, removeNoOps]}",
        ["Identity", "Conv", "BatchNormalization"],
    ),
    "a pipeline": (pl.Pipeline("simplify{cost=bytes}"), ["Conv"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, model: pl.Model) -> None:
    steps, expected = FORMS[form]
    assert operators(model.optimize_for(steps)) == expected
    pipeline = pl.Pipeline(steps if isinstance(steps, (str, list)) else [steps])
    assert operators(pipeline.run(model).model) == expected
    assert operators(pipeline.run(model, isolate=True).model) == expected
    assert pl.Pipeline(str(pipeline)) == pipeline


def test_options_as_keywords(model: pl.Model) -> None:
    skip = ["foldBatchNormalization"]
    by_keyword = model.optimize_for("simplify", skip=skip, skip_infer=True)
    assert operators(by_keyword) == operators(model.simplify(skip=skip))
    assert operators(by_keyword) == operators(pl.simplify(model, skip=skip))
    assert operators(by_keyword) == ["Conv", "BatchNormalization"]


def test_steps_and_instruments_see_the_passes(model: pl.Model) -> None:
    timing = pl.passes.Timing()
    result = pl.Pipeline("simplify, removeDeadNodes").run(model, [timing])
    names = [step.name for step in result.steps]
    assert {"removeNoOps", "foldBatchNormalization"} < set(names)
    assert names[-1] == "removeDeadNodes"
    assert next(step for step in result.steps if step.name == "removeNoOps").modified


MISTAKES = {
    "simplify{skip=[removeNoOp]}": "'skip': there is no standard pass 'removeNoOp'",
    "clean, simplify{level=2}": "character 17: pass 'simplify' has no option 'level'.*max_rounds",
    "simplify{cost=time}": "'cost' takes one of nodes, bytes, flops, traffic, not 'time'",
    "simplify{max_rounds=0}": "'max_rounds'.*at least 1",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_found_before_anything_runs(text: str, model: pl.Model) -> None:
    for run in (model.optimize_for, lambda steps: pl.Pipeline(steps).run(model)):
        with pytest.raises(pl.PasslibError, match=MISTAKES[text]):
            run(text)
    with pytest.raises(pl.PasslibError, match="next to a pipeline"):
        model.optimize_for("clean, simplify", skip=["removeNoOps"])


@pytest.mark.parametrize(
    ("option", "value"), [("max_growth", -1), ("max_growth", 1.5), ("max_rounds", 0)]
)
def test_wrong_numbers_are_named(option: str, value: float, model: pl.Model) -> None:
    with pytest.raises(pl.PasslibError, match=f"'{option}' takes a whole number of at least"):
        pl.simplify(model, **{option: value})


def test_numbers_have_no_limit(model: pl.Model) -> None:
    result = pl.simplify(model, max_growth=1 << 100, max_rounds=1 << 100)
    assert operators(result) == operators(model.simplify())


def test_symbols_have_no_weights_to_fold(model: pl.Model) -> None:
    with pytest.raises(pl.UnsupportedError, match=re.escape("passlib.Model(symbol, args, aux)")):
        model.symbol.optimize_for("simplify")


def test_a_pass_may_have_the_name(model: pl.Model, tmp_path: Path) -> None:
    source = tmp_path / "own.py"
    source.write_text(
        "import passlib as pl\n"
        "@pl.graph_pass\n"
        "def clean(graph: pl.Graph) -> None:\n"
        "    '''Stands for the own pass.'''\n"
        "    del graph\n"
    )
    model.save(tmp_path / "m.onnx")
    done = passlib_command(
        "opt", "m.onnx", "-o", "o.onnx", "-l", "own.py", "--override",
        "--passes", "clean", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert operators(pl.load(tmp_path / "o.onnx"))[0] == "Identity"


def test_the_command_skips_inside(tmp_path: Path) -> None:
    block_model(tmp_path / "m.onnx", 2)
    done = passlib_command(
        "opt", "m.onnx", "-o", "o.onnx", "--passes", "clean, removeDeadNodes",
        "--skip", "removeDeadNodes", "--skip", "foldConstants", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
