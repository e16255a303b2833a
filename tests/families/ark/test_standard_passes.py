"""The standard passes removeDeadNodes and mergeEqualNodes on ARK: memory, views, side effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from ark_builder import Builder
from ark_cases import SMALL, agree, given_small, positive, small
from ark_files import FILES, genuine
from passlib.model import Model

MERGE = "mergeEqualNodes"
ARK = passlib.dialects.find("ark")

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def libraries(plugin: Callable[[str], Path]) -> None:
    passlib.library.load_standard()
    passlib.library.load(plugin("ark_passes"), verbose=False)


def work(model: Model) -> Counter[str]:
    """Count the operators that compute."""
    return Counter(n.op for n in model.symbol.nodes() if n.op not in ("Tensor", "null"))


def saved(model: Model, tmp_path: Path) -> Path:
    path = tmp_path / "out.json"
    model.save(path)
    assert [p for p in ARK.validate(path) if p.severity == "error"] == []
    return path


@pytest.mark.parametrize("path", genuine(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_genuine_ark_files(path: Path, tmp_path: Path) -> None:
    model = passlib.load(path)
    result = model.optimize_for("removeDeadNodes").optimize_for(MERGE)
    again = passlib.load(saved(result, tmp_path))
    assert again.outputs == model.outputs
    assert again.inputs == model.inputs

    assert work(again) == work(model), "these files compute nothing twice"
    if path not in SMALL:
        return
    make = positive if "layernorm" in path.name or "broadcasts" in path.name else small
    agree(tmp_path / "out.json", make)


Value = Any
ArkCase = tuple[Callable[[Builder, Value, Value], Value], int]


def add_twice(b: Builder, x: Value, y: Value) -> Value:
    one = b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="one")
    two = b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="two")
    return b.op("Mul", [one, two], b.tensor("FP32", (2, 4)))


def chains(b: Builder, x: Value, y: Value) -> Value:
    ends = []
    for name in ("one", "two"):
        total = b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name=f"add_{name}")
        part = b.view(total, (2, 2), (2, 4), (0, 1))
        ends.append(b.op("Exp", [part], b.tensor("FP32", (2, 2)), name=f"exp_{name}"))
    return b.op("Mul", ends, b.tensor("FP32", (2, 2)))


def other_layout(b: Builder, x: Value, y: Value) -> Value:
    one = b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="one")
    two = b.op("Add", [x, y], b.tensor("FP32", (2, 4), (4, 8)), name="two")
    return b.op("Mul", [one, two], b.tensor("FP32", (2, 4)))


def other_type(b: Builder, x: Value, y: Value) -> Value:
    one = b.op("Cast", [x], b.tensor("INT32", (2, 4)), name="one")
    two = b.op("Cast", [x], b.tensor("FP16", (2, 4)), name="two")
    casts = [
        b.op("Cast", [half], b.tensor("FP32", (2, 4)), name=f"back_{i}")
        for i, half in enumerate((one, two))
    ]
    return b.op("Mul", [b.op("Add", [casts[0], y], b.tensor("FP32", (2, 4))), casts[1]],
                b.tensor("FP32", (2, 4)))  # fmt: skip


def overwritten_between(b: Builder, x: Value, y: Value) -> Value:
    copy = b.op("Copy", [x], b.tensor("FP32", (2, 4)))
    one = b.op("Exp", [copy], b.tensor("FP32", (2, 4)), name="one")
    changed = b.op("Add", [copy, one], copy)
    again = b.view(changed, (2, 4))
    two = b.op("Exp", [again], b.tensor("FP32", (2, 4)), name="two")
    return b.op("Mul", [one, two], b.tensor("FP32", (2, 4)))


def written_again(b: Builder, x: Value, y: Value) -> Value:
    one = b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="one")
    two = b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="two")
    changed = b.op("Mul", [two, y], two)
    return b.op("Sub", [one, changed], b.tensor("FP32", (2, 4)))


def parts_of_one(b: Builder, x: Value, y: Value) -> Value:
    whole = b.tensor("FP32", (4, 4))
    top = b.view(whole, (2, 4), (4, 4), (0, 0))
    bottom = b.view(whole, (2, 4), (4, 4), (2, 0))
    one = b.op("Add", [x, y], top, name="one")
    two = b.op("Add", [x, y], bottom, name="two")
    joined = b.view(whole, (4, 4), after=[one, two])
    return b.op("Exp", [joined], b.tensor("FP32", (4, 4)))


def both_are_outputs(b: Builder, x: Value, y: Value) -> Value:
    b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="one")
    return b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="two")


def input_written(b: Builder, x: Value, y: Value) -> Value:
    one = b.op("Add", [x, y], b.tensor("FP32", (2, 4)), name="one")
    y2 = b.op("Mul", [y, one], y)
    two = b.op("Add", [x, b.view(y2, (2, 4))], b.tensor("FP32", (2, 4)), name="two")
    return b.op("Sub", [one, two], b.tensor("FP32", (2, 4)))


def with_arguments(b: Builder, x: Value, y: Value) -> Value:
    factors = [
        b.op("ScalarMul", [x], b.tensor("FP32", (2, 4)), name=f"s{i}", Factor=factor)
        for i, factor in enumerate((2.0, 2.0, 3.0))
    ]
    total = b.op("Add", factors[:2], b.tensor("FP32", (2, 4)))
    return b.op("Sub", [total, factors[2]], b.tensor("FP32", (2, 4)))


ARK_CASES: dict[str, ArkCase] = {
    "memory of their own": (add_twice, 1),
    "chains with views": (chains, 2),
    "another layout": (other_layout, 0),
    "another type": (other_type, 0),
    "overwritten between": (overwritten_between, 0),
    "written again": (written_again, 0),
    "parts of one buffer": (parts_of_one, 0),
    "both are outputs": (both_are_outputs, 0),
    "an input is written": (input_written, 0),
    "arguments": (with_arguments, 1),
}


@pytest.mark.parametrize("case", ARK_CASES)
def test_ark(case: str, tmp_path: Path) -> None:
    build, merged = ARK_CASES[case]
    b = Builder()
    x, y = (b.tensor("FP32", (2, 4), name=name) for name in "xy")
    build(b, x, y)
    path = b.write(tmp_path / "in.json")
    assert [p for p in ARK.validate(path) if p.severity == "error"] == []
    model = passlib.load(path)
    result = model.optimize_for(MERGE)
    out = saved(result, tmp_path)
    again = passlib.load(out)
    assert work(model).total() - work(again).total() == merged
    assert again.outputs == model.outputs
    agree(out, small)
    feeds = given_small(model, path)
    for left, right in zip(outputs(model, feeds), outputs(again, feeds), strict=True):
        np.testing.assert_allclose(right, left, rtol=1e-6)
    if not merged:
        assert out.read_bytes() == path.read_bytes()


def outputs(model: Model, feeds: list[np.ndarray]) -> list[np.ndarray]:
    given = model(*feeds)
    return [np.asarray(o) for o in (given if isinstance(given, list) else [given])]


def test_communication_is_not_merged(tmp_path: Path) -> None:
    path = FILES / "gen_head-allreduce_r2_of4.full.json"
    model = passlib.load(path)
    result = model.optimize_for(MERGE)
    assert work(result) == work(model)


def dead_branch(b: Builder, x: Value, y: Value) -> None:
    """Build a Sub whose second operand is unused after the Sub is removed."""
    other = b.op("Sigmoid", [y], b.tensor("FP32", (2, 4)))
    b.op("Sub", [x, b.op("Exp", [other], b.tensor("FP32", (2, 4)))], b.tensor("FP32", (2, 4)))


def dead_branch_in_an_input(b: Builder, x: Value, y: Value) -> None:
    """Do the same in the memory of an input, whose content users see."""
    other = b.op("Sigmoid", [y], y)
    b.op("Sub", [x, other], b.tensor("FP32", (2, 4)))


def dead_branch_in_used_memory(b: Builder, x: Value, y: Value) -> None:
    """Do the same in memory that an output views in part."""
    whole = b.tensor("FP32", (4, 4))
    top = b.op("Exp", [y], b.view(whole, (2, 4), (4, 4), (0, 0)))
    bottom = b.op("Sigmoid", [y], b.view(whole, (2, 4), (4, 4), (2, 0)))
    b.op("Sub", [x, bottom], b.tensor("FP32", (2, 4)))
    b.op("Relu", [b.view(whole, (4, 4), after=[top])], b.tensor("FP32", (4, 4)))


@pytest.mark.parametrize(
    ("build", "gone"),
    [
        (dead_branch, {"Sigmoid": 1, "Exp": 1}),
        (dead_branch_in_an_input, {}),
        (dead_branch_in_used_memory, {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_dead_nodes(
    build: Callable[[Builder, Value, Value], None], gone: dict[str, int], tmp_path: Path
) -> None:
    b = Builder()
    x, y = (b.tensor("FP32", (2, 4), name=name) for name in "xy")
    # The value that replaces the Sub must have memory of its own.
    start = b.op("Copy", [x], b.tensor("FP32", (2, 4)))
    build(b, start, y)
    model = passlib.load(b.write(tmp_path / "in.json")).optimize_for("arkRemove", op="Sub")
    result = model.optimize_for("removeDeadNodes")
    assert work(model) - work(result) == Counter(gone)
    agree(saved(result, tmp_path), small)
