from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import passlib
from ark_edits import load, nodes_of, ops_of, save
from ark_files import FILES
from ark_layout import DEPTHS, print_file

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def passes(plugin: Callable[[str], Path]) -> None:
    passlib.library.load(plugin("ark_passes"), verbose=False)


def variant_of(name: str, variant: str, tmp_path: Path) -> Path:
    """Convert a file of the oldest variant to another, in ARK's layout."""
    root = json.loads((FILES / f"{name}.json").read_bytes())
    for node in root["Nodes"]:
        for op in node["Ops"]:
            if variant in ("v2", "v3"):
                op["Args"] = {k: v for k, v in op["Args"].items() if v.keys() != {"DIMS"}}
            for group in ("ReadTensors", "WriteTensors", "ResultTensors"):
                for tensor in op[group] if variant != "v1" else ():
                    del tensor["Pads"]
                    tensor["PaddedShape"] = tensor["Shape"]
                    tensor["Buffer"] = tensor.pop("Buffer")
        if variant == "v3":
            (node["Op"],) = node.pop("Ops")
    depth = DEPTHS[{"v1": "Pads", "v3": "Op"}.get(variant, "Ops")]
    path = tmp_path / f"{variant}.json"
    path.write_text(print_file(json.dumps(root), depth))
    return path


PRINTED = ["gen_seed-mlp_softmax.full", "gen_seed-allreduce_r0_of2.full"]


@pytest.mark.parametrize("variant", ["v1", "v1.5", "v2", "v3"])
@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("after", ["Add", "Copy", "Exp", "Matmul"])
def test_new_nodes_are_printed_in_the_original_layout(
    name: str, variant: str, after: str, tmp_path: Path
) -> None:
    path = variant_of(name, variant, tmp_path)
    depth = DEPTHS[{"v1": "Pads", "v3": "Op"}.get(variant, "Ops")]
    assert print_file(path.read_text(), depth) == path.read_text()
    model = passlib.model.load(path)
    edited = model.optimize_for("arkInsert", after=after, op="ScalarMul", arg_Factor="0.5")
    saved = save(edited, tmp_path)
    assert saved.read_text() == print_file(saved.read_text(), depth)
    added = [n for n in nodes_of(saved) if "ScalarMul" in json.dumps(n)]
    assert len(added) >= sum(op["Type"] == after for op in ops_of(path))
    keys = [list(tensor) for op in ops_of(saved) for tensor in op["ResultTensors"]]
    assert all(one == keys[0] for one in keys)


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("gen_head-attention.full", DEPTHS["Op"]),
        ("gen_head-layernorm_scalars.full", DEPTHS["Op"]),
        ("gen_head-views_concat.full", DEPTHS["Op"]),
        ("gen_seed-mlp_softmax.full", DEPTHS["Pads"]),
        ("gen_head-residual_dag.plan", DEPTHS["Ops"]),
        ("gen_head-attention.compressed", 0),
        ("gen_seed-mlp_softmax.compressed", 0),
    ],
)
@pytest.mark.parametrize(
    ("name_of_pass", "options"),
    [
        ("arkRename", {"prefix": "zz_"}),
        ("arkSet", {"op": "Add", "key": "Extra", "value": "[1,2]"}),
        ("arkDead", {}),
    ],
)
def test_changed_files_keep_the_original_layout(
    name: str, depth: int, name_of_pass: str, options: dict[str, str], tmp_path: Path
) -> None:
    path = FILES / f"{name}.json"
    assert print_file(path.read_text(), depth) == path.read_text().rstrip("\n")
    saved = save(load(name).optimize_for(name_of_pass, **options), tmp_path)
    printed = saved.read_text()
    assert printed.rstrip("\n") == print_file(printed, depth)
