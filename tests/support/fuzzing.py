"""Damaged files in child processes with limits, until the time is over.

Each file has a number, which makes the same file again. What ends a process, takes more than its
time or memory, or raises an exception that is not of passlib's tree is printed with that number.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import passlib
from sanitized import limit_address_space, sanitizers

SECONDS: Final = 30
"""Processor time for one file."""

GROWTH: Final = 1 << 30
"""Bytes by which one file may let the process grow."""

MEMORY: Final = 6 << 30
"""Address space of the process."""

BATCH: Final = 200
"""Files that one process checks."""

Check = Callable[[int, Path], Iterator[str]]
"""Checks the file of a number in a folder, and iterates over what was wrong."""


def attempt(what: str, action: Callable[[], object]) -> Iterator[str]:
    """Do something with a file; iterate over wrong exceptions."""
    sys.stdout.write(f"{what} ")
    sys.stdout.flush()
    try:
        action()
    except passlib.errors.InternalError as error:
        yield f"{what}: {error!r}"
    except passlib.errors.PasslibError:
        pass
    except Exception as error:
        yield f"{what}: {error!r}"


def fuzz(script: str, prepare: Callable[[], Check], arguments: list[str]) -> None:
    """Check files until the time is over.

    Parameters
    ----------
    script : str
        What a child process runs: the caller's file.
    prepare : callable
        Makes the check, in the child.
    arguments : list of str
        What follows the script on the command line: further words, seconds and perhaps a first
        number.

    Raises
    ------
    SystemExit
        When the time is over, with status 1 if something was wrong.
    """
    if "--child" in arguments:
        place = arguments.index("--child")
        seed, count, folder = arguments[place + 1 :]
        _child(prepare(), int(seed), int(count), Path(folder))
        return
    numbers = [word for word in arguments if word.isdecimal()]
    words = [word for word in arguments if not word.isdecimal()]
    first = seed = int(numbers[1]) if len(numbers) > 1 else 0
    end = time.monotonic() + int(numbers[0])
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            count, wrong = run_batch([script, *words], seed, BATCH, Path(folder))
            seed += count
            found += len(wrong)
            sys.stdout.write("".join(f"{line}\n" for line in wrong))
            sys.stdout.flush()
    name = " ".join([Path(script).name, *words])
    sys.stdout.write(f"{name}: {seed - first} files, {found} wrong\n")
    sys.exit(found > 0)


def sweep(script: str, prepare: Callable[[], Check], total: int, arguments: list[str]) -> None:
    """Check a number of cases, whatever the time.

    Parameters
    ----------
    script, prepare
        As of `fuzz`.
    total : int
        All cases.
    arguments : list of str
        What follows the script on the command line: perhaps the first case, and how many.

    Raises
    ------
    SystemExit
        At the end, with status 1 if something was wrong.
    """
    if "--child" in arguments:
        seed, count, folder = arguments[1:]
        _child(prepare(), int(seed), int(count), Path(folder))
        return
    first = int(arguments[0]) if arguments else 0
    end = min(first + int(arguments[1]), total) if len(arguments) > 1 else total
    number, found = first, 0
    with tempfile.TemporaryDirectory() as folder:
        while number < end:
            count, wrong = run_batch([script], number, min(BATCH, end - number), Path(folder))
            number += count
            found += len(wrong)
            sys.stdout.write("".join(f"{line}\n" for line in wrong))
            sys.stdout.flush()
    sys.stdout.write(f"{Path(script).name}: {end - first} cases, {found} wrong\n")
    sys.exit(found > 0)


def _child(check: Check, seed: int, count: int, folder: Path) -> None:
    limit_address_space(MEMORY)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(seed, seed + count):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        sys.stdout.write(f"{number}: ")
        sys.stdout.flush()
        with passlib.limits(tensor_bytes=256 << 20):
            wrong = list(check(number, folder))
        signal.setitimer(signal.ITIMER_PROF, 0)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > GROWTH:
            wrong.append(f"grew by {grown:,} bytes")
        sys.stdout.write("".join(f"\nWRONG {number} {text[:300]}" for text in wrong) + "\n")
        sys.stdout.flush()


def run_batch(command: list[str], seed: int, count: int, folder: Path) -> tuple[int, list[str]]:
    """Check files in a child process.

    Parameters
    ----------
    command : list of str
        A script that calls `fuzz`, and its words.
    seed, count : int
        The number of the first file, and how many to check.
    folder : Path
        For the files.

    Returns
    -------
    tuple of int and list of str
        How many were checked, and what was wrong. After one that ended the process there are more.
    """
    environment = {"PYTHONPATH": ":".join(sys.path), "PASSLIB_FSYNC": "0", "PATH": "/usr/bin:/bin"}
    environment |= sanitizers()
    done = subprocess.run(
        [sys.executable, *command, "--child", str(seed), str(count), str(folder)],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("WRONG")]
    started = [line for line in lines if line.partition(":")[0].isdecimal()]
    if done.returncode:
        last = started[-1] if started else "before any file"
        wrong.append(f"the process ended with {done.returncode} in {last}: {done.stderr[-300:]!r}")
    return max(len(started), 1), wrong
