from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passlib
from ark_builder import Builder
from ark_cases import ARK
from ark_edits import feeds, load, ops_of, save
from ark_files import FILES
from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark.reading import read
from passlib.families.ark.writing.file import write
from passlib.graph.node import Entry, Node
from passlib.graph.plain import freeze
from passlib.model.graph import graph_of

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def passes(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("ark_passes"), verbose=False)


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("gen_head-allreduce_r2_of4.full", "SendDone"),
        ("gen_head-sendrecv_rank1.full", "Send"),
        ("gen_head-residual_dag.compressed", "Noop"),
    ],
)
def test_removed_side_effects_are_refused(name: str, op: str, tmp_path: Path) -> None:
    model = load(name).optimize_for("arkRemove", op=op)
    with pytest.raises(GraphError, match=rf"side effects.*\({op}\)"):
        model.save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()
    if op == "Noop":
        saved = save(model, tmp_path, allow_removed=True)
        assert "Noop" not in {one["Type"] for one in ops_of(saved)}


def test_removed_writer_of_a_part_is_refused(tmp_path: Path) -> None:
    """A write to a part of a buffer cannot be replaced by a value in other memory."""
    model = load("gen_head-views_concat.full").optimize_for("arkRemove", op="Add")
    with pytest.raises(GraphError, match="views one buffer"):
        model.save(tmp_path / "x.json")
    feeds_of = feeds(FILES / "gen_head-views_concat.full.json")
    with pytest.raises(GraphError, match="views one buffer"):
        model(*feeds_of)


@pytest.mark.parametrize("name", ["gen_head-residual_dag.plan", "gen_py-llama_rmsnorm_fp16.plan"])
def test_plans(name: str, tmp_path: Path) -> None:
    path = FILES / f"{name}.json"
    model = passlib.model.load(path)
    with pytest.raises(UnsupportedError, match="places every op on processors"):
        model.optimize_for("arkInsert", after="Mul", op="Relu").save(tmp_path / "x.json")
    saved = save(
        model.optimize_for("arkSet", op="Mul", key="__config__", value='{"NumTasks":1}'), tmp_path
    )
    tasks = json.loads(saved.read_bytes())["TaskInfos"]
    configs = [op["Config"] for t in tasks for op in t["Ops"] if op["Type"] == "Mul"]
    assert configs
    assert all(config == {"NumTasks": 1} for config in configs)


def test_removed_op_of_a_plan(tmp_path: Path) -> None:
    path = FILES / "gen_head-residual_dag.plan.json"
    before = json.loads(path.read_bytes())
    saved = save(passlib.model.load(path).optimize_for("arkRemove", op="Sqrt"), tmp_path)
    after = json.loads(saved.read_bytes())
    gone = {t["Id"] for t in before["TaskInfos"]} - {t["Id"] for t in after["TaskInfos"]}
    assert len(gone) == 1
    placed = {
        task["TaskId"]
        for group in after["ProcessorGroups"]
        for resources in group["ResourceGroups"]
        for task in resources["TaskGroups"]
    }
    assert placed == {t["Id"] for t in after["TaskInfos"]}


SEEN = [{"Rank": 1, "RecvTags": [[-1, 3]]}, {"Rank": 1}, {"SendTags": [[1, 3]]}]


@pytest.mark.parametrize("buffer", SEEN)
def test_memory_that_other_ranks_see_is_not_dead(buffer: dict[str, Any], tmp_path: Path) -> None:
    builder = Builder(0, 2)
    source = builder.tensor("FP32", (4,), name="x")
    seen = builder.op("Copy", [source], builder.tensor("FP32", (4,), **buffer))
    builder.view(seen, (2,), (4,))
    builder.op("Exp", [source], builder.tensor("FP32", (4,)))
    model = passlib.model.load(builder.write(tmp_path / "model.json"))
    saved = save(model.optimize_for("arkDead"), tmp_path)
    assert "Copy" in [op["Type"] for op in ops_of(saved)]
    with pytest.raises(GraphError, match=r"side effects.*\(Copy\)"):
        model.optimize_for("arkRemove", op="Copy").save(tmp_path / "x.json")


def test_message_from_memory_without_its_tag_is_refused(tmp_path: Path) -> None:
    builder = Builder(0, 2)
    sent = builder.tensor("FP32", (4,), SendTags=[[1, 3]])
    made = builder.op("Exp", [builder.tensor("FP32", (4,))], sent)
    builder.raw("Send", [made], [builder.tensor("FP32", (4,), Rank=1, RecvTags=[[-1, 3]])], 1)
    path = builder.write(tmp_path / "model.json")
    assert ARK.validate(path) == []
    model = passlib.model.load(path).optimize_for("arkInsert", after="Exp", op="Relu")
    with pytest.raises(GraphError, match=r"'send' \(Send\): .*no tag identifies the message"):
        model.save(tmp_path / "x.json")


def test_padding_of_a_new_product() -> None:
    """A product reaches into the padding of its operands, from which its own follows."""
    graph, template = read((FILES / "gen_head-padded_public.full.json").read_bytes())
    symbol = graph_of(graph, {}, "ark")
    product = next(node for node in symbol.nodes() if node.op == "Matmul")
    flags = {"TransposeInput": "True", "TransposeOther": "False"}
    added = Node("Matmul", "added", flags, [Entry(product), product.inputs[0]], 1)
    edited = freeze([Entry(added)], lambda nested: nested, [*symbol.nodes(), added])
    nodes = json.loads(write(template, edited))["Nodes"]
    (written,) = next(n["Op"] for n in nodes if n["Op"]["Name"] == "added")["WriteTensors"]
    assert (written["Shape"], written["PaddedShape"]) == ([2, 6, 20], [2, 8, 24])
    assert written["Strides"] == [2, 8, 24]


def test_lost_padding_of_an_operand_is_refused(tmp_path: Path) -> None:
    builder = Builder()
    padded = {"strides": (4, 8), "padded": (4, 8)}
    first = builder.op(
        "Exp", [builder.tensor("FP32", (3, 5), **padded)], builder.tensor("FP32", (3, 5), **padded)
    )
    second = builder.tensor("FP32", (5, 2), (8, 4), padded=(8, 4))
    flags = {"TransposeInput": False, "TransposeOther": False}
    builder.op(
        "Matmul", [first, second], builder.tensor("FP32", (3, 2), (4, 4), padded=(4, 4)), **flags
    )
    path = builder.write(tmp_path / "model.json")
    assert ARK.validate(path) == []
    model = passlib.model.load(path).optimize_for("arkInsert", after="Exp", op="Relu")
    with pytest.raises(GraphError, match=r"'matmul' \(Matmul\): PaddedShape: .*do not fit"):
        model.save(tmp_path / "x.json")
