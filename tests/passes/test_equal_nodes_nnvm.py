"""The standard pass mergeEqualNodes on graphs of NNVM and TVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import passlib
from nnvm_files import OWN, TVM_EXECUTOR, text_of

MERGE = "mergeEqualNodes"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nnvm_files(path: Path, tmp_path: Path) -> None:
    model = passlib.load(path, dialect="nnvm")
    result = model.optimize_for(MERGE)
    result.save(tmp_path / "out.json")
    again = passlib.load(tmp_path / "out.json", dialect="nnvm")
    assert again.outputs == model.outputs
    if len(result.symbol.nodes()) == len(model.symbol.nodes()):
        assert (tmp_path / "out.json").read_bytes() == path.read_bytes()


def test_calls_of_compiled_functions_are_not_merged(tmp_path: Path) -> None:
    graph = json.loads(json.dumps(TVM_EXECUTOR))
    graph["nodes"][4] = {**graph["nodes"][3], "name": "relu2"}
    path = tmp_path / "m.json"
    path.write_bytes(text_of(graph))
    model = passlib.load(path, dialect="nnvm")
    model.optimize_for(MERGE).save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()
