"""Workflows, the hook of pre-commit and pages call targets that the Makefile has."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from places import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CALLERS = [
    *WORKFLOWS,
    ROOT / ".github" / "pull_request_template.md",
    ROOT / ".pre-commit-config.yaml",
    ROOT / ".ci" / "run",
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
]
CALL = re.compile(r"(?:^|^clean |run: |entry: |`)make (?!for )([^`#|$=\n]+)", re.MULTILINE)
"""The rest of the command's line; "make for a high one" in CONTRIBUTING.md is prose."""


@functools.cache
def targets() -> set[str]:
    """Return the targets that make knows, without those that are files."""
    command = ["make", "-pnr", "-f", str(ROOT / "Makefile"), "--always-make", "no-such-target"]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    declared = re.search(r"^\.PHONY: (.*)$", known, re.MULTILINE)
    assert declared
    rules = set(re.findall(r"^([a-z][a-z0-9-]*):", known, re.MULTILINE))
    assert set(declared[1].split()) <= rules
    return set(declared[1].split())


def called(path: Path) -> list[str]:
    """Return the targets that a file calls."""
    words = [word for call in CALL.findall(path.read_text("utf-8")) for word in call.split()]
    return [word for word in words if re.fullmatch(r"[a-z][a-z0-9-]*", word)]


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: path.name)
def test_called_targets_exist(path: Path) -> None:
    wanted = called(path)
    assert wanted
    assert [target for target in wanted if target not in targets()] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_nothing_but_targets(path: Path) -> None:
    """So that a person runs the same."""
    commands = re.findall(r"^\s*(?:- )?run: (.*)$", path.read_text("utf-8"), re.MULTILINE)
    assert commands
    assert [command for command in commands if not command.startswith("make ")] == []
