"""Damage to genuine ARK files, and the problems that validation reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ark_cases import ARK
from ark_files import FILES

Root = dict[str, Any]
Change = Callable[[Root], object]


def changed(name: str, change: Change, tmp_path: Path) -> list[str]:
    root = json.loads((FILES / f"{name}.json").read_bytes())
    change(root)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(root))
    return [str(problem) for problem in ARK.validate(path)]


def expect(problem: str, name: str, change: Change, tmp_path: Path) -> None:
    """Check that one of the problems of a changed file contains a text."""
    problems = changed(name, change, tmp_path)
    assert any(problem in found for found in problems), problems


def op(root: Root, kind: str) -> dict[str, Any]:
    """Return the first op of a type."""
    units = root.get("Nodes") or root["TaskInfos"]
    ops = [o for unit in units for o in (unit["Ops"] if "Ops" in unit else [unit["Op"]])]
    found: dict[str, Any] = next(o for o in ops if o["Type"] == kind)
    return found


def everywhere(root: Root, number: int, **changes: Any) -> None:
    """Change all mentions of a tensor."""
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
    """Change the tensor that the first op of a type writes, and its result."""
    for group in ("WriteTensors", "ResultTensors"):
        everywhere(root, op(root, kind)[group][0]["Id"], **changes)


def geometry(shape: list[int]) -> dict[str, list[int]]:
    return {"Shape": shape, "Strides": shape, "Offsets": [0] * len(shape), "PaddedShape": shape}


def view_of(root: Root, dtype: str) -> int:
    """Return the Id of a view of one element type as another."""
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
