"""Fenced blocks of Markdown documents, and commands run as an author of a library would."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes
    ----------
    language, info : str
        First word after the fence, and the rest of that line.
    text : str
    line : int
        Line of the fence, counted from 1.
    """

    language: str
    info: str
    text: str
    line: int


def blocks_of(markdown: Path) -> list[Block]:
    """List the fenced blocks of a document."""
    text = markdown.read_text("utf-8")
    return [
        Block(match[1], match[2].strip(), match[3], text.count("\n", 0, match.start()) + 1)
        for match in re.finditer(r"^```(\S+)(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    ]


def same_output(wanted: str, got: str, options: int = 0) -> bool:
    """Whether output is as printed, but for times; ``...`` stands for any text."""
    wanted, got = (re.sub(r"\bin \d+\.\d s\b", "in T s", text) for text in (wanted, got))
    return doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS | options)


def shell(folder: Path, command: list[str]) -> str:
    """Run a command that must succeed, with this environment's Python, and return its output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout
