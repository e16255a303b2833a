from __future__ import annotations

from pathlib import Path

import pytest

from ark_builder import Builder
from ark_cases import ARK
from ark_damage import COMPRESSED, DAG, PLAN, Change, Root, changed, expect, op
from ark_files import genuine


@pytest.mark.parametrize("path", genuine(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_error_on_genuine_files(path: Path) -> None:
    problems = ARK.validate(path)
    assert [str(p) for p in problems if p.severity == "error"] == []
    warnings = [p.place for p in problems]
    if "views_concat" in path.name:
        assert len(warnings) == 1
    else:
        assert set(warnings) <= {"Architecture"}


CASES: list[tuple[str, Change, str]] = [
    (DAG, lambda r: r.update(Rank=1), "error: Rank: 1 is not a rank of a job of 1"),
    (DAG, lambda r: r.pop("WorldSize"), "error: WorldSize: the key is missing"),
    (DAG, lambda r: r["Nodes"][3].update(Id=2), "error: Nodes[3].Id: two nodes have the Id 2"),
    (
        DAG,
        lambda r: r["Nodes"][2]["ProducerNodeIds"].append(99),
        "error: Nodes[2].ProducerNodeIds[2]: there is no node 99",
    ),
    (
        DAG,
        lambda r: r["Nodes"][2]["ProducerNodeIds"].append(2),
        "error: Nodes[2].ProducerNodeIds[2]: a node has no edge to itself",
    ),
    (
        DAG,
        lambda r: r["Nodes"][2].update(ProducerNodeIds=r["Nodes"][2]["ProducerNodeIds"] * 2),
        "is listed twice",
    ),
    (
        DAG,
        lambda r: r["Nodes"][0].update(ConsumerNodeIds=[]),
        "error: Nodes[2].ProducerNodeIds[0]: node 0 does not list node 2 as its consumer",
    ),
    (
        DAG,
        lambda r: r["Nodes"][2].update(ProducerNodeIds=[1]),
        "error: Nodes[2].ProducerNodeIds: does not list nodes whose tensors it uses: [0]",
    ),
    (
        DAG,
        lambda r: r["Nodes"][4]["ProducerNodeIds"].append(1),
        "error: Nodes[4].ProducerNodeIds: lists nodes whose tensors it does not use: [1]",
    ),
    (
        COMPRESSED,
        lambda r: r["Nodes"][4].update(ProducerNodeIds=[]),
        "does not list nodes whose tensors it uses",
    ),
    (
        DAG,
        lambda r: r["Nodes"][0]["ProducerNodeIds"].append(2),
        "error: Nodes: these need each other in a circle",
    ),
    (
        DAG,
        lambda r: r["Nodes"].insert(0, r["Nodes"].pop(2)),
        "warning: Nodes[0]: precedes its producers",
    ),
    (
        PLAN,
        lambda r: op(r, "Mul")["Config"].pop("NumTasks"),
        "warning: TaskInfos[3].Ops[0].Config.NumTasks: plans of ARK have",
    ),
    (PLAN, lambda r: r.pop("Architecture"), "warning: Architecture"),
    (PLAN, lambda r: r["TaskInfos"][0].pop("NumWarps"), "TaskInfos[0].NumWarps"),
    (PLAN, lambda r: op(r, "Mul").pop("Config"), "Config: the key is missing"),
    (PLAN, lambda r: r["TaskInfos"][1].update(Id=0), "two tasks have the Id 0"),
    (
        PLAN,
        lambda r: r["ProcessorGroups"][0].update(ProcessorRange=[0, 999]),
        "exceeds the",
    ),
    (
        PLAN,
        lambda r: r["ProcessorGroups"][0]["ResourceGroups"][0].update(WarpRange=[3]),
        "expected a start, an end",
    ),
    (
        PLAN,
        lambda r: r["ProcessorGroups"][0]["ResourceGroups"][0]["TaskGroups"][0].update(TaskId=77),
        "there is no task 77",
    ),
]


@pytest.mark.parametrize(("name", "change", "expected"), CASES, ids=range(len(CASES)))
def test_each_problem_is_found(name: str, change: Change, expected: str, tmp_path: Path) -> None:
    expect(expected, name, change, tmp_path)


def test_all_problems_are_reported_in_one_go(tmp_path: Path) -> None:
    def change(root: Root) -> None:
        root["Rank"] = 5
        root["Nodes"][2]["ProducerNodeIds"].append(99)
        op(root, "Add")["Args"]["X"] = {"INTS": 3}
        op(root, "Relu")["ReadTensors"][0]["Shape"] = "8"

    problems = changed(DAG, change, tmp_path)
    for place in ("Rank", "Args.X", "ReadTensors[0]"):
        assert any(place in problem for problem in problems), problems


def test_text_that_is_not_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"Rank": 0, "Nodes": [')
    (problem,) = ARK.validate(path)
    assert problem.severity == "error"
    path.write_text("[]")
    (problem,) = ARK.validate(path)
    assert "an ARK file is an object" in problem.message


def test_overwritten_before_it_is_read(tmp_path: Path) -> None:
    builder = Builder()
    source = builder.tensor("FP32", (4,))
    first = builder.op("Exp", [source], builder.tensor("FP32", (4,)))
    second = builder.op("Relu", [source], first)
    builder.op("Add", [first, second], builder.tensor("FP32", (4,)))
    problems = [str(p) for p in ARK.validate(builder.write(tmp_path / "x.json"))]
    assert len(problems) == 1
    assert problems[0].startswith("warning: Nodes[5].Op: reads memory of buffer 1 that Nodes[3].Op")


def test_no_access_goes_unchecked(tmp_path: Path) -> None:
    """Memory that thousands of ops read may be overwritten by an op that none of them precedes."""
    builder = Builder()
    weight = builder.op("Exp", [builder.tensor("FP32", (4,))], builder.tensor("FP32", (4,)))
    for _ in range(1500):
        builder.op("Relu", [weight], builder.tensor("FP32", (4,)))
    builder.op("Sqrt", [builder.tensor("FP32", (4,))], weight)
    problems = [str(p) for p in ARK.validate(builder.write(tmp_path / "x.json"))]
    assert len(problems) == 1500
    assert all("uses the same memory of buffer 1" in problem for problem in problems)


def test_a_check_that_stops_says_so(tmp_path: Path) -> None:
    """Memory that is used in a thousand boxes, each within the next."""
    builder = Builder()
    source = builder.tensor("FP32", (1100,))
    for size in range(1, 1100):
        part = builder.view(source, (size,), (1100,))
        builder.op("Relu", [part], builder.tensor("FP32", (size,)))
    (problem,) = ARK.validate(builder.write(tmp_path / "x.json"))
    assert problem.severity == "warning"
    assert "accesses without a defined order are not reported" in problem.message
