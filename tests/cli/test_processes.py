"""Commands that tests fork from one server are processes like any other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commands import passlib_command
from waiting import within_seconds

TELLS = """
import atexit, os, random, sys

import numpy as np

print(os.getcwd(), os.environ.get("TOLD"), sys.path[0], *sys.argv[1:3], sep="\\n")
print(sys.stdin.read() == "", os.getsid(0) == os.getpid(), random.random(), np.random.random())
print(sys.modules["__main__"].__spec__.name, "onnxruntime" in sys.modules, file=sys.stderr)
os.environ["TOLD"] = "to nobody else"
atexit.register(print, "the end")
"""

STAYS = """
import subprocess

with open("{pipe}", "w") as pipe:
    subprocess.run(["sleep", "1000"], stdout=pipe)
"""


def test_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tells.py").write_text(TELLS, "utf-8")
    drawn = set()
    for told in ("one", "two"):
        monkeypatch.setenv("TOLD", told)
        found = passlib_command("passes", "-l", "tells.py", folder=tmp_path)
        assert (found.returncode, found.stderr) == (0, "passlib.__main__ False\n")
        folder, *rest, drawing = found.stdout.splitlines()[:6]
        assert [folder, *rest] == [str(tmp_path), told, str(tmp_path), "passes", "-l"]
        stdin, session, *numbers = drawing.split()
        assert (stdin, session) == ("True", "True")
        assert found.stdout.endswith("\nthe end\n")
        drawn.update(numbers)
    assert len(drawn) == 4
    assert Path.cwd() != tmp_path


def test_what_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "stays.py").write_text(STAYS.format(pipe=pipe), "utf-8")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    with pytest.raises(subprocess.TimeoutExpired):
        passlib_command("passes", "-l", tmp_path / "stays.py", timeout=2)
    assert within_seconds(lambda: os.read(reader, 1)) == b""
    os.close(reader)
    assert passlib_command("--version").returncode == 0


def test_the_status_of_a_signal(tmp_path: Path) -> None:
    (tmp_path / "aborts.py").write_text("import os\nos.abort()\n", "utf-8")
    assert passlib_command("passes", "-l", tmp_path / "aborts.py").returncode == -6
