"""All tools judge alike: the same inputs, tolerances and names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from commands import passlib_command
from passlib.workbench import (
    Check,
    Differs,
    PipelineFails,
    bisect,
    compare,
    drawn,
)

PASSES = '''
import passlib as pl

@pl.graph_pass(replace=True)
def judged_clip(graph: pl.Graph) -> None:
    """Clips what relu does not, which few inputs show."""
    node = graph.find("r")
    node.op, node.attrs["a_min"], node.attrs["a_max"] = "clip", "0", "{limit}"

@pl.graph_pass(replace=True)
def judged_swap(graph: pl.Graph) -> None:
    """Exchanges two outputs."""
    graph.outputs = graph.outputs[::-1]

@pl.graph_pass(replace=True)
def judged_rename(graph: pl.Graph) -> None:
    """Gives a node, and so the output, another name."""
    graph.find("e").name = "other"

@pl.graph_pass(replace=True)
def judged_input(graph: pl.Graph) -> None:
    """Renames an input."""
    graph.find("x").name = "z"

@pl.graph_pass(replace=True)
def judged_fewer(graph: pl.Graph) -> None:
    """Drops an output."""
    graph.outputs = graph.outputs[:1]
'''

FAULTS = ["judged_clip", "judged_swap", "judged_rename", "judged_input", "judged_fewer"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model and passes; of the inputs that are drawn the third alone
    has an element that judged_clip changes."""
    folder = tmp_path_factory.mktemp("judged")
    for size in range(1, 100):
        x = pl.sym.var("x", shape=(size,))
        model = pl.Model(pl.sym.Group([pl.sym.relu(x, name="r"), pl.sym.exp(x, name="e")]))
        largest = [float(np.max(each["x"])) for each in drawn(model, None)]
        if largest[2] > max(0.1, *largest[:2]) + 0.1:
            break
    model.save(folder / "m")
    limit = max(0.05, *largest[:2])
    (folder / "passes.py").write_text(PASSES.format(limit=limit), "utf-8")
    pl.passes.rules.load_passes(folder / "passes.py")
    return folder


@pytest.mark.parametrize(
    ("name", "fails"), [*((name, True) for name in FAULTS), ("removeDeadNodes", False)]
)
def test_all_tools_agree(name: str, fails: bool, folder: Path) -> None:
    given = ("-l", "passes.py", "--passes", name, "--check")
    opt = passlib_command("opt", "m", "-o", "o", *given, folder=folder)
    each = passlib_command("opt", "m", "-o", "o", *given, "--check-each", folder=folder)
    found = passlib_command("bisect", "m", *given, folder=folder)
    small = passlib_command("reduce", "m", "-o", "s", *given, folder=folder)
    assert (opt.returncode, each.returncode) == ((4, 4) if fails else (0, 0)), opt.stderr
    assert found.returncode == small.returncode == (0 if fails else 5), found.stderr + small.stderr


@pytest.mark.parametrize("name", FAULTS)
def test_all_classes_agree(name: str, folder: Path) -> None:
    model, pipeline = pl.load(folder / "m"), pl.Pipeline(name)
    after = pipeline.run(model).model
    assert Differs(model)(after)
    if name == "judged_clip":
        assert not compare(model, after).equal
        assert compare(model, after, n=2).equal
        assert not Differs(model, n=2)(after)
    assert PipelineFails(pipeline, model, drawn(model, None)[2]).what
    bisect(model, pipeline, Differs(model))
    with pytest.raises(pl.PipelineError):
        pipeline.run(model, [Check()])


def test_the_number_of_inputs(folder: Path) -> None:
    given = ("-l", "passes.py", "--passes", "judged_clip", "--check")
    for line in (("opt", "m", "-o", "o"), ("bisect", "m"), ("reduce", "m", "-o", "s")):
        assert passlib_command(*line, *given, "0", folder=folder).returncode == 1
    assert passlib_command("bisect", "m", *given, "2", folder=folder).returncode == 5
    assert passlib_command("bisect", "m", *given, "3", folder=folder).returncode == 0
