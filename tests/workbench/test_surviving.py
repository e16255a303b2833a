"""Work in a forked process."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

import passlib as pl
from passlib.workbench.surviving import CrashError, survived


def test_results_and_errors_come_back() -> None:
    assert survived(os.getpid) != os.getpid()

    def fails() -> None:
        raise pl.GraphError("a node is missing")

    with pytest.raises(pl.GraphError, match="a node is missing"):
        survived(fails)
    with pytest.raises(CrashError, match="SIGABRT"):
        survived(os.abort)
    with pytest.raises(CrashError, match="exit status 3"):
        survived(lambda: os._exit(3))


def test_garbage_of_the_caller_stays(tmp_path: Path) -> None:
    """A session of ONNX Runtime in a cycle would wait for threads that only the caller has."""

    class Session:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            (tmp_path / str(os.getpid())).touch()

    gc.disable()
    try:
        Session()
        survived(gc.collect)
        assert list(tmp_path.iterdir()) == []
    finally:
        gc.enable()
    gc.collect()
    assert list(tmp_path.iterdir()) == [tmp_path / str(os.getpid())]
