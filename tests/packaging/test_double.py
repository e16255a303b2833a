"""The password library ``passlib``: refused where it shares the folder of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import passlib

OWN = "graph_passlib-0.1.0.dist-info"


def distribution(folder: Path, name: str) -> None:
    """Write the metadata of an installed distribution."""
    information = folder / name
    information.mkdir(parents=True)
    file = "PKG-INFO" if name.endswith(".egg-info") else "METADATA"
    project, version = name.split("-")[:2]
    text = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version.rpartition('.')[0]}\n"
    (information / file).write_text(text, "utf-8")


def python(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "other", ["passlib-1.7.4.dist-info", "Passlib-1.7.4.dist-info", "passlib-1.7.4.egg-info"]
)
def test_both_in_one_folder_are_refused(other: str, tmp_path: Path) -> None:
    distribution(tmp_path, OWN)
    distribution(tmp_path, other)
    result = python("import passlib", tmp_path)
    assert result.returncode == 1
    message = result.stderr.splitlines()[-1]
    assert message.startswith(f"ImportError: {tmp_path} has two distributions")
    assert "'graph-passlib'" in message
    assert "'passlib'" in message
    assert "pip uninstall passlib graph-passlib" in message


def test_each_in_a_folder_of_its_own_is_accepted(tmp_path: Path) -> None:
    distribution(tmp_path / "own", OWN)
    distribution(tmp_path / "other", "passlib-1.7.4.dist-info")
    result = python("import passlib", tmp_path / "own", tmp_path / "other")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("other", ["passlib_hash-1.0.0.dist-info", "my_passlib-1.0.0.dist-info"])
def test_other_names_are_accepted(other: str, tmp_path: Path) -> None:
    distribution(tmp_path, OWN)
    distribution(tmp_path, other)
    result = python("import passlib; print(passlib.__version__)", tmp_path)
    assert (result.stdout, result.returncode) == ("0.1.0\n", 0), result.stderr


def test_it_takes_two_milliseconds_at_most() -> None:
    code = (
        "import importlib, sys, time\n"
        "import passlib.files.installation as installation\n"
        "times = []\n"
        "for _ in range(20):\n"
        "    importlib.invalidate_caches()\n"
        "    start = time.perf_counter()\n"
        "    installation.checked_version()\n"
        "    times.append(time.perf_counter() - start)\n"
        "print(min(times))\n"
    )
    result = python(code)
    assert float(result.stdout) <= 0.002, result.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    result = python("from importlib.metadata import version; print(version('graph-passlib'))")
    assert result.stdout.strip() == passlib.__version__
