from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ark_builder import Builder
from ark_cases import ARK
from ark_damage import (
    CASTS,
    COMPRESSED,
    DAG,
    OLD,
    PACKETS,
    REDUCE,
    SENDS,
    Change,
    everywhere,
    expect,
    geometry,
    op,
    op_at,
    view_of,
    written,
)

Ints = tuple[int, ...]

CASES: list[tuple[str, Change, str]] = [
    (DAG, lambda r: op(r, "Relu").update(ReadTensors={}), "ReadTensors: expected an array"),
    (DAG, lambda r: op(r, "Relu").update(IsVirtual=True), "the operator Relu is marked as virtual"),
    (DAG, lambda r: op(r, "Relu").update(Type="Fancy"), "unknown operator 'Fancy'"),
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
        "belongs to rank 0 here and to rank -1",
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
        "are not multiples of [3,1]",
    ),
    (
        DAG,
        lambda r: everywhere(r, r["Nodes"][0]["Op"]["ResultTensors"][0]["Id"], DataType="FP8"),
        "warning: Nodes[0].Op.ResultTensors[0].DataType: unknown element type 'FP8'",
    ),
    (DAG, lambda r: op(r, "Add")["Args"].update(X=3), "Args.X: expected an object with one type"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"INTS": 3}), "unknown type 'INTS'"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"INT": 1.5}), "expected an integer, not 1.5"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"BOOL": 1}), "expected true or false, not 1"),
    (
        DAG,
        lambda r: op(r, "Add")["Args"].update(X={"DIMS": [1] * 5}),
        "at most 4 integers",
    ),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"OFFSET": {}}), "BufferId and Value"),
    (DAG, lambda r: op(r, "Add")["Args"].update(X={"TENSOR": {}}), "is missing"),
    (OLD, lambda r: op(r, "Matmul")["Args"].pop("TransposeOther"), "Matmul requires this argument"),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(TransposeOther={"INT": 1}),
        "expected the type BOOL",
    ),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(TransposeOther={"BOOL": True}),
        "inner sizes 7 and 3",
    ),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(StridesACDB={"DIMS": [7, 3, 3, 4]}),
        "Args.StridesACDB: [7, 3, 3, 4], but its tensors require [7, 3, 3, 3]",
    ),
    (
        "gen_head-transpose_all.full",
        lambda r: op(r, "Transpose")["Args"].update(Permutation={"DIMS": [0, 1, 2, 2]}),
        "[0,1,2,2] is not a permutation",
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
        "expected a rank and a tag",
    ),
    (
        COMPRESSED,
        lambda r: op(r, "Send")["WriteTensors"][0]["Buffer"].update(RecvTags=[[7, 0]]),
        "7 is not a rank of a job of 4",
    ),
    (
        COMPRESSED,
        lambda r: op(r, "Copy")["ReadTensors"][0]["Buffer"].update(SendTags=[[2, 0]]),
        "2 is the buffer's own rank",
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
        "Args.ShapeMNK: Matmul requires this argument",
    ),
    (
        OLD,
        lambda r: op(r, "Matmul")["Args"].update(ShapeMNK={"INT": 3}),
        "Args.ShapeMNK: expected the type DIMS",
    ),
    (
        REDUCE,
        lambda r: op(r, "ReduceSum")["Args"].update(Axis={"INT": -1}),
        "Args.Axis: the axis -1 is negative",
    ),
    (
        REDUCE,
        lambda r: op(r, "ReduceSum").update(WriteTensors=op(r, "ReduceSum")["ReadTensors"]),
        "a reduction cannot write to tensor",
    ),
    (
        DAG,
        lambda r: op_at(r, 13)["ReadTensors"][0]["Buffer"].pop("SendTags"),
        "error: Nodes[13].Op.ReadTensors[0].Buffer.SendTags: the key is missing",
    ),
    (
        DAG,
        lambda r: op_at(r, 13)["ReadTensors"][0]["Buffer"].update(RecvTags=[[7, 0]]),
        "error: Nodes[13].Op.ReadTensors[0].Buffer.RecvTags[0]: 7 is not a rank of a job of 1",
    ),
    (
        DAG,
        lambda r: op_at(r, 0)["ResultTensors"][0]["Buffer"].update(Rank=0, SendTags=[[-1, 3]]),
        "error: Nodes[0].Op.ResultTensors[0].Buffer.SendTags[0]: -1 is the buffer's own rank",
    ),
    (
        DAG,
        lambda r: op(r, "Add")["ReadTensors"][0].pop("PaddedShape"),
        "the key 'PaddedShape' is missing",
    ),
    (
        CASTS,
        lambda r: everywhere(r, view_of(r, "FP32"), DataType="INT32"),
        "must be from or to BYTE",
    ),
    (
        CASTS,
        lambda r: everywhere(r, view_of(r, "FP32"), **geometry([7])),
        "with as many bytes in the last dimension",
    ),
    (
        "gen_head-padded_public.full",
        lambda r: written(r, "Matmul", PaddedShape=op(r, "Matmul")["WriteTensors"][0]["Shape"]),
        "WriteTensors[0].PaddedShape: [2, 14, 6], but the padding of its operands makes it",
    ),
    (
        "gen_head-recv_reduce_send_r0_of2.full",
        lambda r: op(r, "RecvReduceSend")["Args"].update(NPeers={"UINT32": 2}),
        "WriteTensors: with 2 peers RecvReduceSend takes 3, not 2",
    ),
    (
        "gen_head-recv_reduce_send_r0_of2.full",
        lambda r: written(r, "RecvReduceSend", DataType="FP16"),
        "WriteTensors[0]: the sum is FP32 [2, 512], not FP16 [2, 512]",
    ),
    (
        PACKETS,
        lambda r: (
            r["TaskInfos"]
            and op(r, "RecvReduceSendPacket")["ReadTensors"][1].update(DataType="INT8")
        ),
        "ReadTensors[1]: packets must be UINT8 [4096], not INT8 [4096]",
    ),
    (
        PACKETS,
        lambda r: op(r, "RecvReduceSendPacket")["WriteTensors"][1].update(**geometry([2048])),
        "WriteTensors[1]: packets must be UINT8 [4096], not UINT8 [2048]",
    ),
    (
        SENDS,
        lambda r: op(r, "Send")["WriteTensors"][0]["Buffer"].update(Rank=-1),
        "WriteTensors[0].Buffer.Rank: must be memory of another rank",
    ),
    (
        SENDS,
        lambda r: op(r, "Send")["WriteTensors"][0]["Buffer"].update(RecvTags=[]),
        "WriteTensors[0].Buffer.RecvTags: no tag identifies the message that is sent",
    ),
    (
        SENDS,
        lambda r: op(r, "Recv")["WriteTensors"][0]["Buffer"].update(RecvTags=[[0, 99]]),
        "WriteTensors[0].Buffer.RecvTags: no tag identifies the message that is received",
    ),
]


@pytest.mark.parametrize(("name", "change", "expected"), CASES, ids=range(len(CASES)))
def test_each_problem_is_found(name: str, change: Change, expected: str, tmp_path: Path) -> None:
    expect(expected, name, change, tmp_path)


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
def test_only_unary_operators_write_to_larger_tensors(
    kind: str, shape: Ints, target: Ints, args: dict[str, Any], tmp_path: Path
) -> None:
    builder = Builder()
    count = 2 if kind in ("Add", "Rope", "Matmul") else 1
    reads = [builder.tensor("FP32", shape) for _ in range(count)]
    builder.op(kind, reads, builder.tensor("FP32", target), **args)
    (problem,) = ARK.validate(builder.write(tmp_path / "x.json"))
    assert problem.severity == "error"
    assert f"which does not fit the FP32 {list(target)} that it writes to" in problem.message
