from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import passlib
from ark_cases import ARK
from ark_edits import feeds, nodes_of, ops_of, run, save
from ark_files import FILES, genuine

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def passes(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("ark_passes"), verbose=False)


@pytest.mark.parametrize("path", genuine(plans=False), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_renaming_changes_only_names(path: Path, tmp_path: Path) -> None:
    saved = save(passlib.model.load(path).optimize_for("arkRename", prefix="my_"), tmp_path)
    before, after = ops_of(path), ops_of(saved)
    assert all(op["Name"].startswith("my_") for op in after)
    assert [{**op, "Name": ""} for op in before] == [{**op, "Name": ""} for op in after]
    assert [n["ProducerNodeIds"] for n in nodes_of(path)] == [
        n["ProducerNodeIds"] for n in nodes_of(saved)
    ]


@pytest.mark.parametrize("path", genuine(plans=False), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_reversed_lists_are_put_in_order(path: Path, tmp_path: Path) -> None:
    model = passlib.model.load(path).optimize_for("arkReverse")
    model.save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", genuine(plans=False), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_dead_nodes_go_and_side_effects_stay(path: Path, tmp_path: Path) -> None:
    saved = save(passlib.model.load(path).optimize_for("arkDead"), tmp_path)
    before = [op["Type"] for op in ops_of(path) if op["Type"] != "Tensor"]
    assert [op["Type"] for op in ops_of(saved) if op["Type"] != "Tensor"] == before


def test_dead_view_goes(tmp_path: Path) -> None:
    path = FILES / "gen_head-allreduce_r2_of4.full.json"
    saved = save(passlib.model.load(path).optimize_for("arkDead"), tmp_path)
    assert len(ops_of(path)) - len(ops_of(saved)) == 3
    assert [n["Id"] for n in nodes_of(saved)] == list(range(len(ops_of(saved))))


EDITED = [
    "gen_head-attention.full",
    "gen_head-attention.compressed",
    "gen_head-residual_dag.full",
    "gen_head-residual_dag.compressed",
    "gen_seed-mlp_softmax.full",
    "gen_seed-mlp_softmax.compressed",
    "gen_seed-rmsnorm_swiglu_fp16.full",
    "gen_seed-rmsnorm_swiglu_fp16.compressed",
    "gen_py-llama_tiny_1layer_fp32.full",
    "gen_py-llama_tiny_1layer_fp32.compressed",
]


@pytest.mark.parametrize("name", EDITED)
@pytest.mark.parametrize("after", ["Add", "Mul", "Exp", "Matmul"])
def test_inserted_nodes_compute(name: str, after: str, tmp_path: Path) -> None:
    """A factor of 1 after every operator of one type changes the file but no value."""
    path = FILES / f"{name}.json"
    count = sum(op["Type"] == after for op in ops_of(path))
    model = passlib.model.load(path).optimize_for(
        "arkInsert", after=after, op="ScalarMul", arg_Factor="1.0"
    )
    saved = save(model, tmp_path)
    added = [op for op in ops_of(saved) if op["Name"].startswith("added_")]
    assert len(added) == count
    assert all(op["Args"] == {"Factor": {"FLOAT": 1.0}} for op in added)
    if "rmsnorm" in name:
        return  # halves overflow with these inputs
    for one, other in zip(run(path), run(saved), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("form", ["full", "compressed"])
def test_removed_operator_leaves_no_trace(form: str, tmp_path: Path) -> None:
    path = FILES / f"gen_head-residual_dag.{form}.json"
    saved = save(passlib.model.load(path).optimize_for("arkRemove", op="Sqrt"), tmp_path)
    gone = len(ops_of(path)) - len(ops_of(saved))
    assert gone == (2 if form == "full" else 1)  # together with the declaration of its memory
    assert "Sqrt" not in {op["Type"] for op in ops_of(saved)}
    nodes = nodes_of(saved)
    assert [node["Id"] for node in nodes] == list(range(len(nodes)))


def test_removed_node_in_a_chain(tmp_path: Path) -> None:
    path = FILES / "gen_py-llama_ffn_fp32.full.json"
    saved = save(passlib.model.load(path).optimize_for("arkRemove", op="Sigmoid"), tmp_path)
    x, w1, w3, w2 = feeds(saved)
    names = passlib.model.load(saved).inputs
    named = dict(zip(names, (x, w1, w3, w2), strict=True))
    by_op = [op for op in ops_of(saved) if op["Type"] == "Mul"]
    assert len(by_op) == 2
    assert np.isfinite(run(saved)[0]).all()
    assert set(named) == set(names)


@pytest.mark.parametrize("form", ["full", "compressed"])
def test_new_variable(form: str, tmp_path: Path) -> None:
    path = FILES / f"gen_head-attention.{form}.json"
    saved = save(passlib.model.load(path).optimize_for("arkBias", shape="(32,)"), tmp_path)
    model, bias = passlib.model.load(saved), np.arange(32, dtype=np.float32)
    given = feeds(path)
    assert len(model.inputs) == len(given) + 1
    np.testing.assert_allclose(np.asarray(model(*given, bias)), run(path)[0] + bias, rtol=1e-6)


@pytest.mark.parametrize("name", EDITED[:2])
def test_unsaved_edits_run_alike(name: str, tmp_path: Path) -> None:
    path = FILES / f"{name}.json"
    model = passlib.model.load(path).optimize_for(
        "arkInsert", after="Matmul", op="ScalarMul", arg_Factor="0.5"
    )
    direct = model(*feeds(path))
    np.testing.assert_allclose(np.asarray(direct), run(save(model, tmp_path))[0], rtol=1e-6)


def test_equal_operators_are_merged(tmp_path: Path) -> None:
    path = FILES / "gen_head-residual_dag.full.json"
    root = json.loads(path.read_bytes())
    model = passlib.model.load(path)
    merged = model.optimize_for("arkMerge")
    saved = save(merged, tmp_path)
    before = [op["Type"] for op in ops_of(path)]
    after = [op["Type"] for op in ops_of(saved)]
    assert root["Rank"] == 0
    assert len(before) >= len(after)
    np.testing.assert_allclose(run(path)[0], run(saved)[0], rtol=1e-6)


def test_merging_on_a_file_with_repetitions(tmp_path: Path) -> None:
    """Two equal operators become one; an operator whose result is overwritten stays."""
    root = json.loads((FILES / "gen_py-quickstart_add_fp16.full.json").read_bytes())
    declared, add = root["Nodes"][-2]["Op"], root["Nodes"][-1]["Op"]
    twin_declared, twin = json.loads(json.dumps(declared)), json.loads(json.dumps(add))
    for op in (twin_declared, twin):
        for group in ("WriteTensors", "ResultTensors"):
            for tensor in op[group]:
                tensor["Id"] += 1000
                tensor["Buffer"]["Id"] += 1000
    first = root["Nodes"]
    ids = [node["Id"] for node in first]
    first.append({"Id": 4, "ProducerNodeIds": [], "ConsumerNodeIds": [5], "Op": twin_declared})
    first.append({"Id": 5, "ProducerNodeIds": [0, 1, 4], "ConsumerNodeIds": [], "Op": twin})
    for number in (0, 1):
        first[number]["ConsumerNodeIds"].append(5)
    path = tmp_path / "twice.json"
    path.write_text(json.dumps(root))
    assert ids == [0, 1, 2, 3]
    assert [p for p in ARK.validate(path) if p.severity == "error"] == []
    saved = save(passlib.model.load(path).optimize_for("arkMerge"), tmp_path)
    assert [op["Type"] for op in ops_of(saved)].count("Add") == 1
    assert len(ops_of(saved)) == 4
    assert nodes_of(saved)[0]["ConsumerNodeIds"] == [3]
