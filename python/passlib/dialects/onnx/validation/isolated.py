"""ONNX's checker in a child process, with limits of memory and time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PROGRAM: Final = Path(__file__).with_name("child.py")

_MEMORY: Final = 2 << 30
"""Bytes of address space for the child, besides eight times the file."""

_SECONDS: Final = 120
"""Seconds for the child, besides one for each 10 MB."""

_WAIT: Final = 4
"""Times as long on the clock: the machine may be busy."""


@dataclass
class Findings:
    """The messages of ONNX's checker.

    Attributes
    ----------
    nodes : dict of int to str
        By number of the node; those without a message are sound.
    model : str
        About the whole model.
    types : str
        Of strict type inference, which runs if there is no message about the model.
    failed : str
        Why the child process gave no results at all.
    """

    nodes: dict[int, str] = field(default_factory=dict)
    model: str = ""
    types: str = ""
    failed: str = ""


def check(path: Path, nodes: Sequence[bytes], imports: Mapping[str, int], version: int) -> Findings:
    """Run ONNX's checker over single nodes, and over a model.

    Parameters
    ----------
    path : Path
        Of the model.
    nodes : sequence of bytes
        Serialized.
    imports : mapping of str to int
        Versions of operator sets by domain.
    version : int
        Of the file format.
    """
    size = path.stat().st_size
    seconds = _SECONDS + size // 10_000_000
    order = {
        "path": os.fspath(path.absolute()),
        "sys_path": [os.fspath(Path(entry).absolute()) for entry in sys.path],
        "imports": dict(imports),
        "ir_version": version,
        "sizes": list(map(len, nodes)),
        "memory": _MEMORY + 8 * size,
        "seconds": seconds,
    }
    # Preloaded tools, such as sanitizers, reserve more address space than the limit.
    environment = {key: text for key, text in os.environ.items() if key != "LD_PRELOAD"}
    found = Findings()
    try:
        done = subprocess.run(
            [sys.executable, "-I", os.fspath(_PROGRAM)],
            input=b"".join((json.dumps(order).encode(), b"\n", *nodes)),
            capture_output=True,
            env=environment,
            timeout=_WAIT * seconds,
            check=False,
        )
        output, end = done.stdout, _end_of(done.returncode, seconds)
    except subprocess.TimeoutExpired as error:
        output, end = error.stdout or b"", f"took more than {_WAIT * seconds} s"
    except OSError as error:
        found.failed = f"no process for ONNX's checker can be started: {error}"
        return found
    _collect(output, end, len(nodes), found)
    return found


def _end_of(code: int, seconds: int) -> str:
    """Return how a process ended, if not by itself."""
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return f"was ended, possibly after its {seconds} s of processor time"
    if code < 0:
        return f"crashed ({signal.Signals(-code).name})"
    return f"ended with code {code}" if code else ""


def _collect(output: bytes, end: str, count: int, found: Findings) -> None:
    """Sort the lines of the child; the check after the last line is the one that ended it."""
    lines = [line for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
    results: list[tuple[str, str]] = [tuple(json.loads(line)) for line in lines]
    for name, message in results:
        _put(name, message, found)
    if not end:
        return
    if not results:
        found.failed = f"the process for ONNX's checker {end} before any check"
        return
    done = len(results) - 1
    broken = f"node {done}" if done < count else "model" if done == count else "types"
    _put(broken, f"the process of ONNX's checker {end} here", found)
    if broken == "types":
        found.model = found.types


def _put(name: str, message: str, found: Findings) -> None:
    if not message:
        return
    if name.startswith("node "):
        found.nodes[int(name[5:])] = message
    elif name == "model":
        found.model = message
    elif name == "types":
        found.types = message
