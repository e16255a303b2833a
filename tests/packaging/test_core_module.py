"""The native module beside libraries that other packages load for the whole process."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import passlib._core


def test_nothing_but_pythons_entry_is_exported() -> None:
    """An exported template of the standard library is replaced by another library's."""
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    command = ["nm", "-D", "--defined-only", passlib._core.__file__]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["PyInit__core"]
