"""Fixture: edit a graph of NNVM or TVM by passes, and save it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import passlib
from nnvm_edits import Edit
from nnvm_files import (
    NNVM,
    text_of,
)
from plugin_build import Builder, library


@pytest.fixture(scope="session")
def passes() -> Iterator[None]:
    builder = Builder({"nnvm": library("nnvm.cc")}, ".so")
    passlib.library.load(builder("nnvm"), verbose=False)
    yield
    builder.close()


@pytest.fixture
def edit(passes: None, tmp_path: Path, handover: str) -> Edit:
    """Save a graph after some passes; the file has no errors, and is read again."""

    def run(graph: Any, *calls: tuple[str, dict[str, object]]) -> dict[str, Any]:
        path = tmp_path / "graph.json"
        path.write_bytes(graph if isinstance(graph, bytes) else text_of(graph))
        model = passlib.model.load(path, dialect="nnvm")
        for name, options in calls:
            model = model.optimize_for(name, **options)
        target = tmp_path / "saved.json"
        model.save(target)
        assert [p for p in NNVM.validate(target) if p.severity == "error"] == []
        again = passlib.model.load(target, dialect="nnvm")
        again.save(path)
        assert path.read_bytes() == target.read_bytes()
        saved: dict[str, Any] = json.loads(target.read_bytes())
        return saved

    return run
