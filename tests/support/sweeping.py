"""Checks of many cases of operators (`operator_cases`) in child processes, since some end them."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import onnxruntime

from operator_case import Case
from operator_cases import draw
from sanitized import limit_address_space

Check = Callable[[Case, np.random.Generator], Iterator[tuple[str, Any, Any]]]
"""Iterates over what differs: whose result, that result, and ONNX Runtime's."""

_BATCH: Final = 500
_SECONDS: Final = 20
_MEMORY: Final = 8 << 30

_OTHERS: Final = ("onnx", "basic", "text")
"""Packages that may differ: ONNX's inference, ONNX Runtime's own folding, ONNX's reference."""


def swept(check: Check, first: int, count: int) -> Iterator[dict[str, Any]]:
    """Iterate over what comes of cases: a record each, with ``state`` and ``number``."""
    number, end = first, first + count
    while number < end:
        last = min(number + _BATCH, end)
        for record in _in_child(check, number, last):
            number = record["number"] + 1
            yield record
        if number < last:
            yield {"number": number, "state": "crash", "case": draw(number).text()}
            number += 1


def _in_child(check: Check, first: int, last: int) -> Iterator[dict[str, Any]]:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        status = 1
        try:
            _child(check, first, last, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)
    os.waitpid(pid, 0)


def _child(check: Check, first: int, last: int, writing: int) -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    limit_address_space(_MEMORY)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    onnxruntime.set_default_logger_severity(4)
    with os.fdopen(writing, "w", buffering=1) as lines:
        for number in range(first, last):
            signal.setitimer(signal.ITIMER_PROF, _SECONDS)
            lines.write(json.dumps(_record(check, number)) + "\n")


def _record(check: Check, number: int) -> dict[str, Any]:
    case = draw(number)
    record: dict[str, Any] = {"number": number, "state": "equal"}
    try:
        found = list(check(case, np.random.default_rng(number)))
    except Exception as error:
        kind = type(error)
        record["state"] = "refused"
        if not kind.__module__.startswith(("onnx", "passlib")):
            record["error"] = f"{kind.__name__}: {error}"[:300]
        return record
    found = list(dict.fromkeys(json.dumps(each) for each in found))
    if found:
        record |= {
            "state": "differs",
            "found": [json.loads(each) for each in found],
            "case": case.text(),
        }
    return record


def main(check: Check) -> None:
    """Check as many cases as the command line says, and print what differs, and counts."""
    count = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    states: Counter[str] = Counter()
    wrong = 0
    for record in swept(check, first, count):
        states[record["state"]] += 1
        if record["state"] in ("differs", "crash") or "error" in record:
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()
            wrong += any(each[0] not in _OTHERS for each in record.get("found", ()))
    sys.stdout.write(f"{count} cases: {dict(states)}; passlib is wrong about {wrong}\n")
    sys.exit(wrong > 0)
