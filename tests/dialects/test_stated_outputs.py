"""Numbers of outputs that a file merely states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import passlib
from passlib.errors import PasslibError

MOST = 1 << 16


def write(path: Path, dialect: str, count: int, *, by_attribute: bool) -> Path:
    op = {"mxnet": "SliceChannel", "nnvm": "tvm_op"}[dialect]
    node = {"op": op, "name": "many", "inputs": [[0, 0, 0]]}
    if by_attribute:
        node["attrs"] = {"num_outputs": str(count), "func_name": "f", "num_inputs": "1"}
    root = {
        "nodes": [{"op": "null", "name": "x", "inputs": []}, node],
        "arg_nodes": [0],
        "heads": [[1, 0, 0]],
    }
    if not by_attribute:
        root["node_row_ptr"] = [0, 1, 1 + count]
    path.write_text(json.dumps(root), "utf-8")
    return path


@pytest.mark.parametrize("count", [MOST + 1000, 1_000_000, 2_000_000_000])
@pytest.mark.parametrize(("dialect", "by_attribute"), [("mxnet", True), ("nnvm", False)])
def test_more_than_a_node_can_have(
    dialect: str, by_attribute: bool, count: int, tmp_path: Path
) -> None:
    path = write(tmp_path / "model.json", dialect, count, by_attribute=by_attribute)
    with pytest.raises(PasslibError, match=r"at most 65536|node_row_ptr\[2\]"):
        passlib.load(path, dialect=dialect)


@pytest.mark.parametrize(("dialect", "by_attribute"), [("mxnet", True), ("nnvm", False)])
def test_many_outputs(dialect: str, by_attribute: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "model.json", dialect, 1000, by_attribute=by_attribute)
    (node,) = (n for n in passlib.load(path, dialect=dialect).symbol.nodes() if n.op != "null")
    assert node.num_outputs == 1000
