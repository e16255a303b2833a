"""Saves that are stopped: at every system call in turn, by an error and as by kill -9."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import passlib
import places
from failing_saves import MAKERS
from passlib.files.regular import durability

SCRIPT = places.TESTS / "support" / "failing_saves.py"


@pytest.mark.parametrize("kind", MAKERS)
def test_files_of_a_model_belong_together_at_every_moment(
    kind: str, plugin: Callable[[str], Path], tmp_path: Path
) -> None:
    shim = plugin("failing_calls")
    folder = tmp_path / "model"
    folder.mkdir()
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {shim}".strip(),
        "PASSLIB_FAIL_BELOW": str(folder),
        "PYTHONPATH": str(places.TESTS / "support"),
    }
    run = subprocess.run(
        [sys.executable, SCRIPT, shim, folder, kind],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(results) > 15
    for result in results:
        if "put together" in result:
            assert result["how"] == "kill", result
            assert "a save was interrupted" in result["content"], result
            assert result["put together"] == ["new", "old"], result
        else:
            assert result["content"] in ("old", "new"), result
            # A data file of a chosen name is renamed once the new model is in place.
            assert result["ended"] != 3 or result["content"] == "old" or "location" in kind, result
        assert result.get("onnx", "old") in ("old", "new"), result
        assert result["left"] == [], result
        if result["ended"] == 0:
            assert result["content"] == "new" or kind == "ark", result


def test_durability_can_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    with durability(False):
        passlib.sym.var("x").save(tmp_path / "a.json")
    assert flushed == []
    passlib.sym.var("x").save(tmp_path / "a.json")
    assert len(flushed) == 2
    monkeypatch.setenv("PASSLIB_FSYNC", "0")
    passlib.sym.var("x").save(tmp_path / "a.json")
    assert len(flushed) == 2
