from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passlib
from ark_builder import Builder
from ark_files import FILES, genuine

ARK = passlib.dialects.find("ark")
Root = dict[str, Any]
Ints = tuple[int, ...]


@pytest.mark.parametrize("path", genuine(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_error_on_genuine_files(path: Path) -> None:
    problems = ARK.validate(path)
    assert [str(p) for p in problems if p.severity == "error"] == []
    warnings = [p.place for p in problems]
    if "views_concat" in path.name:
        assert len(warnings) == 1
    else:
        assert set(warnings) <= {"Architecture"}


def changed(name: str, change: Callable[[Root], object], tmp_path: Path) -> list[str]:
    root = json.loads((FILES / f"{name}.json").read_bytes())
    change(root)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(root))
    return [str(problem) for problem in ARK.validate(path)]


def op(root: Root, kind: str) -> dict[str, Any]:
    """The first op of a type."""
    units = root.get("Nodes") or root["TaskInfos"]
    ops = [o for unit in units for o in (unit["Ops"] if "Ops" in unit else [unit["Op"]])]
    found: dict[str, Any] = next(o for o in ops if o["Type"] == kind)
    return found


def everywhere(root: Root, number: int, **changes: Any) -> None:
    """Change a tensor wherever it is mentioned."""
    for node in root["Nodes"]:
        for one in node["Ops"] if "Ops" in node else [node["Op"]]:
            for group in ("ReadTensors", "WriteTensors", "ResultTensors"):
                for tensor in one[group]:
                    if tensor["Id"] == number:
                        tensor.update(changes)


def op_at(root: Root, number: int) -> dict[str, Any]:
    found: dict[str, Any] = root["Nodes"][number]["Op"]
    return found


def written(root: Root, kind: str, **changes: Any) -> None:
    """Change what the first op of a type writes, and the result that comes from it."""
    for group in ("WriteTensors", "ResultTensors"):
        everywhere(root, op(root, kind)[group][0]["Id"], **changes)


def geometry(shape: list[int]) -> dict[str, list[int]]:
    return {"Shape": shape, "Strides": shape, "Offsets": [0] * len(shape), "PaddedShape": shape}


def view_of(root: Root, dtype: str) -> int:
    """The Id of a view of elements of a type as another one."""
    for node in root["Nodes"]:
        one = node["Op"]
        sources = one["ReadTensors"] if one["Type"] == "Tensor" else []
        (result, *_) = one["ResultTensors"]
        if sources and sources[0]["DataType"] == dtype != result["DataType"]:
            return int(result["Id"])
    raise AssertionError(dtype)


DAG = "gen_head-residual_dag.full"
OLD = "gen_seed-matmul_variants.full"
COMPRESSED = "gen_head-allreduce_r2_of4.compressed"
PLAN = "gen_head-residual_dag.plan"
REDUCE = "gen_seed-reduce_all.full"
CASTS = "gen_head-casts.full"
SENDS = "gen_head-sendrecv_rank1.full"
PACKETS = "gen_head-recv_reduce_send_packet_r1_of2.plan"

CASES: list[tuple[str, Callable[[Root], object], str]] = [
    (DAG, lambda r: r.update(Rank=1), "error: Rank: 1 is no rank of a job of 1"),
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
        "error: Nodes[2].ProducerNodeIds: uses tensors of nodes that it does not list: [0]",
    ),
    (
        DAG,
        lambda r: r["Nodes"][4]["ProducerNodeIds"].append(1),
        "error: Nodes[4].ProducerNodeIds: lists nodes whose tensors it does not use: [1]",
    ),
    (
        COMPRESSED,
        lambda r: r["Nodes"][4].update(ProducerNodeIds=[]),
        "uses tensors of nodes that it does not list",
    ),
    (
        DAG,
        lambda r: r["Nodes"][0]["ProducerNodeIds"].append(2),
        "error: Nodes: these need each other in a circle",
    ),
    (
        DAG,
        lambda r: r["Nodes"].insert(0, r["Nodes"].pop(2)),
        "warning: Nodes[0]: stands before its producers",
    ),
    (DAG, lambda r: op(r, "Relu").update(ReadTensors={}), "ReadTensors: an array is wanted"),
    (DAG, lambda r: op(r, "Relu").update(IsVirtual=True), "the operator Relu is virtual here"),
    (DAG, lambda r: op(r, "Relu").update(Type="Fancy"), "'Fancy' is not known"),
    (DAG, lambda r: op(r, "Relu").update(ReadTensors=[]), "ReadTensors: Relu has 1, not 0"),
    (DAG, lambda r: op(r, "Add")["ReadTensors"].pop(), "ReadTensors: Add has 2, not 1"),
    (
        DAG,
        lambda r: everywhere(r, op(r, "Relu")["ResultTensors"][0]["Id"], DataType="FP16"),
        "does not describe the same memory",
    ),
    (
        DAG,
        lambda r: op(r, "Relu").update(ResultTensors=op(r, "Relu")["ReadTensors"]),
        "is also an input of this op",
    ),
    (
        DAG,
        lambda r: op(r, "Relu")["ReadTensors"][0].update(Strides=[9, 9]),
        "is described differently at",
    ),
    (
        DAG,
        lambda r: op(r, "Relu")["ReadTensors"][0]["Buffer"].update(SendTags=[[0, 1]]),
        "warning: ",
    ),
    (
        DAG,
        lambda r: op(r, "Relu")["WriteTensors"][0]["Buffer"].update(Rank=0),
        "is of rank 0 here and of rank -1",
    ),
    (
        DAG,
        lambda r: r["Nodes"][0]["Op"]["ResultTensors"][0].update(Shape=[0, 8]),
        "does not lie within Strides [8,8]",
    ),
    (
        DAG,
        lambda r: r["Nodes"][0]["Op"]["ResultTensors"][0].update(Shape=[8]),
        "differ in length",
    ),
    (
        DAG,
        lambda r: everywhere(r, r["Nodes"][0]["Op"]["ResultTensors"][0]["Id"], PaddedShape=[4, 8]),
        "PaddedShape: [4,8] is smaller than Shape [8,8]",
    ),
    (
        DAG,
        lambda r: everywhere(r, r["Nodes"][0]["Op"]["ResultTensors"][0]["Id"], PaddedShape=[9, 8]),
        "PaddedShape: [9,8] at Offsets [0,0] does not lie within Strides [8,8]",
    ),
    (
        OLD,
        lambda r: everywhere(r, op(r, "Tensor")["ResultTensors"][0]["Id"], Pads=[3, 1]),
        "are no multiples of [3,1]",
    ),
    (
        DAG,
        lambda r: everywhere(r, r["Nodes"][0]["Op"]["ResultTensors"][0]["Id"], DataType="FP8"),
        "warning: Nodes[0].Op.ResultTensors[0].DataType: the element type 'FP8' is not known",
    ),
    (DAG, lambda r: op(r, "Add")["Args"].update(X=3), "Args.X: an object of one type"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"INTS": 3}), "there is no type 'INTS'"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"INT": 1.5}), "a whole number is wanted"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"BOOL": 1}), "true or false is wanted"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"DIMS": [1] * 5}), "up to 4 whole numbers"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"OFFSET": {}}), "BufferId and Value"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"TENSOR": {}}), "is missing"),
    (OLD, lambda r: op(r, "Matmul")["Args"].pop("TransposeOther"), "Matmul needs this argument"),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(TransposeOther={"INT": 1}),
        "the argument is of type BOOL",
    ),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(TransposeOther={"BOOL": True}),
        "inner sizes 7 and 3",
    ),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(StridesACDB={"DIMS": [7, 3, 3, 4]}),
        "Args.StridesACDB: [7, 3, 3, 4], but its tensors say [7, 3, 3, 3]",
    ),
    (
        "gen_head-transpose_all.full",
        lambda r: op(r, "Transpose")["Args"].update(Permutation={"DIMS": [0, 1, 2, 2]}),
        "[0,1,2,2] is no permutation",
    ),
    (
        "gen_head-transpose_all.full",
        lambda r: op(r, "Transpose")["Args"].update(Permutation={"DIMS": [3, 2, 1, 0]}),
        "which does not fit",
    ),
    (
        "gen_seed-reduce_all.full",
        lambda r: op(r, "ReduceSum")["Args"].update(Axis={"INT": 4}),
        "axis 4 is outside",
    ),
    (
        COMPRESSED,
        lambda r: op(r, "Send")["WriteTensors"][0]["Buffer"].update(RecvTags=[[-1, 0, 0]]),
        "a pair of a rank and a tag is wanted",
    ),
    (
        COMPRESSED,
        lambda r: op(r, "Send")["WriteTensors"][0]["Buffer"].update(RecvTags=[[7, 0]]),
        "7 is no rank of a job of 4",
    ),
    (
        COMPRESSED,
        lambda r: op(r, "Copy")["ReadTensors"][0]["Buffer"].update(SendTags=[[2, 0]]),
        "the rank 2 is the buffer's own",
    ),
    (
        DAG,
        lambda r: op(r, "Add")["Args"].update(X={"INT": 1 << 31}),
        "Args.X: 2147483648 is out of range",
    ),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"UINT32": -1}), "Args.X: -1 is out of range"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"FLOAT": 1e39}), "is out of range"),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].pop("ShapeMNK"),
        "Args.ShapeMNK: Matmul needs this argument",
    ),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(ShapeMNK={"INT": 3}),
        "Args.ShapeMNK: the argument is of type DIMS",
    ),
    (
        REDUCE,
        lambda r: op(r, "ReduceSum")["Args"].update(Axis={"INT": -1}),
        "Args.Axis: the axis -1 is negative",
    ),
    (
        REDUCE,
        lambda r: op(r, "ReduceSum").update(WriteTensors=op(r, "ReduceSum")["ReadTensors"]),
        "a reduction has no room there",
    ),
    (
        DAG,
        lambda r: op_at(r, 13)["ReadTensors"][0]["Buffer"].pop("SendTags"),
        "error: Nodes[13].Op.ReadTensors[0].Buffer.SendTags: the key is missing",
    ),
    (
        DAG,
        lambda r: op_at(r, 13)["ReadTensors"][0]["Buffer"].update(RecvTags=[[7, 0]]),
        "error: Nodes[13].Op.ReadTensors[0].Buffer.RecvTags[0]: 7 is no rank of a job of 1",
    ),
    (
        DAG,
        lambda r: op_at(r, 0)["ResultTensors"][0]["Buffer"].update(Rank=0, SendTags=[[-1, 3]]),
        "error: Nodes[0].Op.ResultTensors[0].Buffer.SendTags[0]: the rank -1 is the buffer's own",
    ),
    (
        DAG,
        lambda r: op(r, "Add")["ReadTensors"][0].pop("PaddedShape"),
        "the key 'PaddedShape' is missing",
    ),
    (
        CASTS,
        lambda r: everywhere(r, view_of(r, "FP32"), DataType="INT32"),
        "only from and to BYTE",
    ),
    (
        CASTS,
        lambda r: everywhere(r, view_of(r, "FP32"), **geometry([7])),
        "of the same bytes in the last dimension",
    ),
    (
        "gen_head-padded_public.full",
        lambda r: written(r, "Matmul", PaddedShape=op(r, "Matmul")["WriteTensors"][0]["Shape"]),
        "WriteTensors[0].PaddedShape: [2, 14, 6], but the padding of its operands makes it",
    ),
    (
        "gen_head-recv_reduce_send_r0_of2.full",
        lambda r: op(r, "RecvReduceSend")["Args"].update(NPeers={"UINT32": 2}),
        "WriteTensors: with 2 peers RecvReduceSend has 3, not 2",
    ),
    (
        "gen_head-recv_reduce_send_r0_of2.full",
        lambda r: written(r, "RecvReduceSend", DataType="FP16"),
        "WriteTensors[0]: it adds up FP32 [2, 512], not FP16 [2, 512]",
    ),
    (
        PACKETS,
        lambda r: (
            r["TaskInfos"]
            and op(r, "RecvReduceSendPacket")["ReadTensors"][1].update(DataType="INT8")
        ),
        "ReadTensors[1]: packets are UINT8 [4096], not INT8 [4096]",
    ),
    (
        PACKETS,
        lambda r: op(r, "RecvReduceSendPacket")["WriteTensors"][1].update(**geometry([2048])),
        "WriteTensors[1]: packets are UINT8 [4096], not UINT8 [2048]",
    ),
    (
        SENDS,
        lambda r: op(r, "Send")["WriteTensors"][0]["Buffer"].update(Rank=-1),
        "WriteTensors[0].Buffer.Rank: the memory of another rank is wanted",
    ),
    (
        SENDS,
        lambda r: op(r, "Send")["WriteTensors"][0]["Buffer"].update(RecvTags=[]),
        "WriteTensors[0].Buffer.RecvTags: there is no tag under which it is sent",
    ),
    (
        SENDS,
        lambda r: op(r, "Recv")["WriteTensors"][0]["Buffer"].update(RecvTags=[[0, 99]]),
        "WriteTensors[0].Buffer.RecvTags: there is no tag under which it is received",
    ),
    (
        PLAN,
        lambda r: op(r, "Mul")["Config"].pop("NumTasks"),
        "warning: TaskInfos[3].Ops[0].Config.NumTasks: every plan of ARK",
    ),
    (PLAN, lambda r: r.pop("Architecture"), "warning: Architecture"),
    (PLAN, lambda r: r["TaskInfos"][0].pop("NumWarps"), "TaskInfos[0].NumWarps"),
    (PLAN, lambda r: op(r, "Mul").pop("Config"), "Config: the key is missing"),
    (PLAN, lambda r: r["TaskInfos"][1].update(Id=0), "two tasks have the Id 0"),
    (
        PLAN,
        lambda r: r["ProcessorGroups"][0].update(ProcessorRange=[0, 999]),
        "goes beyond the",
    ),
    (
        PLAN,
        lambda r: r["ProcessorGroups"][0]["ResourceGroups"][0].update(WarpRange=[3]),
        "a beginning, an end",
    ),
    (
        PLAN,
        lambda r: r["ProcessorGroups"][0]["ResourceGroups"][0]["TaskGroups"][0].update(TaskId=77),
        "there is no task 77",
    ),
]


@pytest.mark.parametrize(("name", "change", "expected"), CASES, ids=range(len(CASES)))
def test_each_problem_is_found(
    name: str, change: Callable[[Root], object], expected: str, tmp_path: Path
) -> None:
    problems = changed(name, change, tmp_path)
    assert any(expected in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("kind", "shape", "target", "args"),
    [
        ("Add", (2, 3), (4, 2, 3), {}),
        ("Rope", (2, 4), (3, 2, 4), {}),
        ("ReduceSum", (2, 3), (2, 3), {"Axis": 1, "KeepDim": True}),
        ("ReduceMax", (2, 3), (4, 3), {"Axis": 0, "KeepDim": True}),
        ("Transpose", (1, 3), (3, 4), {"Permutation": [1, 0]}),
        ("Matmul", (3, 3), (2, 3, 3), {"TransposeInput": False, "TransposeOther": False}),
    ],
)
def test_only_operators_of_one_operand_write_to_what_is_larger(
    kind: str, shape: Ints, target: Ints, args: dict[str, Any], tmp_path: Path
) -> None:
    builder = Builder()
    count = 2 if kind in ("Add", "Rope", "Matmul") else 1
    reads = [builder.tensor("FP32", shape) for _ in range(count)]
    builder.op(kind, reads, builder.tensor("FP32", target), **args)
    (problem,) = ARK.validate(builder.write(tmp_path / "x.json"))
    assert problem.severity == "error"
    assert f"which does not fit the FP32 {list(target)} that it writes to" in problem.message


def test_all_problems_are_reported_in_one_go(tmp_path: Path) -> None:
    def change(root: Root) -> None:
        root["Rank"] = 5
        root["Nodes"][2]["ProducerNodeIds"].append(99)
        op(root, "Add")["Args"]["X"] = {"INTS": 3}
        op(root, "Relu")["ReadTensors"][0]["Shape"] = "8"

    problems = changed(DAG, change, tmp_path)
    for place in ("Rank", "Args.X", "ReadTensors[0]"):
        assert any(place in problem for problem in problems), problems


def test_what_is_no_json(tmp_path: Path) -> None:
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
