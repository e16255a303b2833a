"""Plans that were split by hand: one tensor is described by several boxes of its buffer."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import passlib
from ark_cases import ARK
from ark_damage import PLAN, Root
from ark_files import FILES
from passlib.errors import UnsoundFileError

pytestmark = pytest.mark.usefixtures("handover")

Box = tuple[list[int], list[int]]
WHOLE: Box = ([8, 8], [0, 0])
TOP: Box = ([3, 8], [0, 0])
BOTTOM: Box = ([5, 8], [3, 0])


@pytest.fixture(scope="module", autouse=True)
def passes(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("ark_passes"), verbose=False)


def split(boxes: Sequence[Box], path: Path, **changes: Any) -> Path:
    """Replace the task of a Mul by one for each box; all of them mention the same tensors."""
    root: Root = json.loads((FILES / f"{PLAN}.json").read_bytes())
    tasks = root["TaskInfos"]
    position, task = next((i, t) for i, t in enumerate(tasks) if t["Ops"][0]["Type"] == "Mul")
    parts = []
    for number, (shape, offsets) in enumerate(boxes):
        part = copy.deepcopy(task)
        part["Id"] = task["Id"] + 100 * number
        (op,) = part["Ops"]
        for tensor in (*op["ReadTensors"], *op["WriteTensors"], *op["ResultTensors"]):
            tensor.update(Shape=shape, Offsets=offsets, PaddedShape=shape, **changes)
        parts.append(part)
    tasks[position : position + 1] = parts
    path.write_text(json.dumps(root))
    return path


def sources(symbol: passlib.Symbol, op: str) -> list[set[str]]:
    """Return the ops from which each input of the first op of a type comes, through views."""
    found = []
    for entry in next(node for node in symbol.nodes() if node.op == op).inputs:
        pending, names = [entry.node], set()
        while pending:
            node = pending.pop()
            if node.op == "Tensor":
                pending += [source.node for source in node.inputs]
            else:
                names.add(node.name)
        found.append(names)
    return found


@pytest.mark.parametrize("boxes", [(TOP, BOTTOM), (WHOLE, BOTTOM)], ids=["halves", "overlap"])
def test_dependencies_follow_from_the_buffer(boxes: Sequence[Box], tmp_path: Path) -> None:
    path = split(boxes, tmp_path / "plan.json")
    model = passlib.load(path)
    first, second = [node.name for node in model.symbol.nodes() if node.op == "Mul"]
    assert sources(model.symbol, "Sub")[0] == {first, second}
    assert model.symbol.list_outputs() == passlib.load(FILES / f"{PLAN}.json").symbol.list_outputs()
    model.save(tmp_path / "same.json")
    assert (tmp_path / "same.json").read_bytes() == path.read_bytes()


def test_passes_change_one_part(tmp_path: Path) -> None:
    path = split((WHOLE, BOTTOM), tmp_path / "plan.json")
    changed = passlib.load(path).optimize_for(
        "arkSet", op="Mul", key="__config__", value='{"NumTasks":1}'
    )
    changed.save(tmp_path / "changed.json")
    before, after = (json.loads((tmp_path / n).read_bytes()) for n in ("plan.json", "changed.json"))
    for root in (before, after):
        for task in root["TaskInfos"]:
            for op in task["Ops"]:
                if op["Type"] == "Mul":
                    op["Config"] = {"NumTasks": 1}
    assert after == before


def test_warnings(tmp_path: Path) -> None:
    problems = [str(p) for p in ARK.validate(split((WHOLE, BOTTOM), tmp_path / "plan.json"))]
    assert not [p for p in problems if p.startswith("error")]
    warned = [p for p in problems if "is another box of buffer" in p]
    # 317 and 321 are read, 322 is written and 323 returned: once each.
    assert [p.split("tensor ")[1].split()[0] for p in warned] == ["317", "321", "322", "323"]


def test_same_result_of_two_ops_is_a_warning(tmp_path: Path) -> None:
    problems = [str(p) for p in ARK.validate(split((WHOLE, WHOLE), tmp_path / "plan.json"))]
    assert [p for p in problems if "already a result" in p and p.startswith("warning: ")]
    assert passlib.load(tmp_path / "plan.json").symbol.list_outputs()


def test_another_element_type_is_an_error(tmp_path: Path) -> None:
    path = split((WHOLE, BOTTOM), tmp_path / "plan.json", DataType="INT32")
    with pytest.raises(UnsoundFileError, match="is described differently"):
        passlib.load(path)
    assert any("is described differently" in str(p) for p in ARK.validate(path))
