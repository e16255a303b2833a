"""The smoke suite of wheels works with the package as it is today, so that a wheel can be made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from places import DATA
from printed_blocks import shell

CODE = "import sys; sys.path.insert(0, sys.argv.pop()); import smoke; smoke.main(smoke.WORK)"


@pytest.mark.sample(0)
def test_the_smoke_suite_passes_here(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = str(Path(__file__).parent)
    printed = shell(tmp_path, [sys.executable, "-c", CODE, str(DATA), folder])
    assert printed.count("ok: ") == 4
