"""Damaged models through inference, passes, export and ONNX Runtime, in a process of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import onnx_mutations
from fuzzing import run_batch

EXAMPLES = int(os.environ.get("PASSLIB_FUZZ_EXAMPLES", "10"))


@pytest.mark.sample(0)  # a process reads all of ONNX's suite; `make fuzz` checks many more
def test_damaged_models_end_no_process(tmp_path: Path) -> None:
    seed = 0
    while seed < EXAMPLES:
        count, wrong = run_batch([onnx_mutations.__file__], seed, EXAMPLES - seed, tmp_path)
        assert wrong == []
        seed += count
