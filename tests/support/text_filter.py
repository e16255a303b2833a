"""A running program that reads texts and answers each on one line (tests/cpp/json_filter.cc)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Refusal(NamedTuple):
    code: int
    offset: int
    line: int
    column: int
    message: str


class Filter:
    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, text: bytes | str) -> str | Refusal:
        """Give what the C++ side dumps, or why it refuses."""
        data = text if isinstance(text, bytes) else text.encode()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(len(data).to_bytes(4, "little") + data)
        self._process.stdin.flush()
        answer = self._process.stdout.readline().decode("utf-8", "replace").rstrip("\n")
        assert answer, f"the filter died of {data!r}"
        if answer[0] == "+":
            return answer[1:]
        code, offset, line, column, message = answer[1:].split(" ", 4)
        return Refusal(int(code), int(offset), int(line), int(column), message)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(10) == 0
        self._process.stdout.close()
