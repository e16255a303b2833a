"""Commands in which a library's code crashes, or is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from onnx_models import CHAIN, save
from sanitized import unless_sanitized

COMMAND = (sys.executable, "-m", "passlib", "opt")

# Programs in the background of a shell may ignore the signal.
MAIN = """
import signal, sys
from passlib.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""

pytestmark = unless_sanitized("sanitizers report crashes themselves")


@pytest.mark.parametrize(
    ("name", "ended_by"),
    [
        ("readsNowhere", signal.SIGSEGV),
        ("aborts", signal.SIGABRT),
        ("raisesSigfpe", signal.SIGFPE),
        ("recurses", signal.SIGSEGV),
    ],
)
def test_a_crash_is_named(
    name: str, ended_by: signal.Signals, plugin: Callable[[str], Path], tmp_path: Path
) -> None:
    library, target = plugin("crashes"), tmp_path / "out.onnx"
    model = save(CHAIN, tmp_path / "chain.onnx")
    result = subprocess.run(
        [*COMMAND, model, "-o", target, "-l", library, "--passes", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == -ended_by
    assert result.stderr == (
        f"passlib opt: pass '{name}' of library '{library}' crashed ({ended_by.name}); passlib opt "
        "--isolate runs it in a separate process and keeps a reproducer\n"
    )
    assert not target.exists()


def test_an_interrupt_ends_the_command(plugin: Callable[[str], Path], tmp_path: Path) -> None:
    library, mark, target = plugin("slow"), tmp_path / "mark", tmp_path / "out.onnx"
    model = save(CHAIN, tmp_path / "chain.onnx")
    slow = f"slowPass{{mark={mark}, seconds=600}}"
    child = subprocess.Popen(
        [sys.executable, "-c", MAIN, "opt", model, "-o", target, "-l", library, "--passes", slow],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not mark.exists() and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        err = child.communicate(timeout=60)[1]
    finally:
        child.kill()
        child.wait()
    assert err == f"passlib opt: interrupted in pass 'slowPass' of library '{library}'\n"
    assert (child.returncode, target.exists()) == (130, False)
