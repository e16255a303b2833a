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
from passlib.errors import FormatError
from passlib.files.journal import Journal, settle
from passlib.files.unit import Unit, durability

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
        assert result["content"] in ("old", "new"), result
        assert result.get("onnx", "old") in ("old", "new"), result
        assert result["left"] == [], result
        if result["ended"] == 0:
            assert result["content"] == "new" or kind == "ark", result


def test_an_exception_leaves_the_old_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")

    def save() -> None:
        with Unit(tmp_path / "a") as unit:
            unit.replace(tmp_path / "b").write_text("new")
            unit.replace(tmp_path / "a").write_text("new")
            raise KeyError

    with pytest.raises(KeyError):
        save()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old", "b": "old"}


def test_new_files_of_killed_saves_are_deleted(tmp_path: Path) -> None:
    killed = tmp_path / ".passlib-0123456789abcdef.tmp"
    killed.write_text("half")
    other = tmp_path / ".passlib-notes.tmp"
    other.write_text("of the user")
    with Unit(tmp_path / "a") as unit:
        living = unit.replace(tmp_path / "a")
        with Unit(tmp_path / "b") as second:
            second.replace(tmp_path / "b").write_text("new")
        assert living.exists()
        living.write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "a", "b"]


def test_an_interrupted_save_is_finished_by_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    main, weights = tmp_path / "net.json", tmp_path / "net.params"
    new = [tmp_path / f".passlib-{digit * 16}.tmp" for digit in "12"]
    for path in (main, weights):
        path.write_text("old")
    for path in new:
        path.write_text("new")
    (tmp_path / "stale").write_text("")
    text = {"renames": [[new[0].name, weights.name], [new[1].name, main.name]], "gone": ["stale"]}
    Journal.path_of(main).write_text(json.dumps(text))
    assert settle(main)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "net.json": "new",
        "net.params": "new",
    }
    assert "finished a save" in caplog.text
    assert not settle(main)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"renames": [[".passlib-0123456789abcdef.tmp", "../elsewhere"]], "gone": []}',
        '{"renames": [["victim", "net.json"]], "gone": []}',
        '{"renames": [], "gone": ["../victim"]}',
        '{"renames": [], "gone": ["/etc/passwd"]}',
        '{"renames": [[1]], "gone": []}',
        "[" * 100_000,
    ],
)
def test_damaged_journals_are_refused(text: str, tmp_path: Path) -> None:
    main = tmp_path / "net.json"
    main.write_text("{}")
    (tmp_path / "victim").write_text("")
    Journal.path_of(main).write_text(text)
    with pytest.raises(FormatError, match=r"net\.json\.journal.* damaged; delete it"):
        settle(main)
    assert (tmp_path / "victim").exists()


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
