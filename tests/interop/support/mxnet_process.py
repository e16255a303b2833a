"""The tests' connection to the process that runs MXNet."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environment import Environment

SIDE = Path(__file__).parent / "mxnet_side.py"


class MXNetError(Exception):
    """A call failed in that process.

    Attributes
    ----------
    kind : str
        Name of the exception class.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class DiedError(Exception):
    """The process ended during a call; the next call gets a new one."""


@dataclass(frozen=True)
class Answer:
    """Value of a call, and its output to standard output."""

    value: Any
    printed: str


class MXNet:
    """A process that runs MXNet, started on first use and again after it died.

    Parameters
    ----------
    environment : Environment
    libraries : list of Path
        Libraries to load in each process.
    """

    def __init__(self, environment: Environment, libraries: list[Path]) -> None:
        self._environment = environment
        self._libraries = libraries
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, call: str, **arguments: Any) -> Any:
        """Call a function of mxnet_side.py and return its value."""
        return self.observe(call, **arguments).value

    def observe(self, call: str, **arguments: Any) -> Answer:
        """Call a function of mxnet_side.py, and return its value and output."""
        if self._process is None:
            self._start()
        answer = self._ask(call, arguments)
        if "error" in answer:
            raise MXNetError(answer["error"], answer["message"])
        return Answer(answer["value"], answer["printed"])

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate(timeout=60)

    def _start(self) -> None:
        variables = {
            **os.environ,
            "PYTHONUTF8": "1",
            "PYTHONPATH": "",
            "OMP_NUM_THREADS": "2",
            "DMLC_LOG_STACK_TRACE_DEPTH": "0",
        }
        self._process = subprocess.Popen(
            [self._environment.python, SIDE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            env=variables,
        )
        for library in self._libraries:
            self("load_library", path=str(library))

    def _ask(self, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process = None
            process.communicate()
            raise DiedError(f"MXNet's process ended with {process.returncode} during {call}")
        answer: dict[str, Any] = json.loads(line)
        return answer
