"""The processor time of the command passlib, above that of Python's start.

Usage: command.py [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys

from onnx_files import write_resnet
from run import DATA

LIMITS = {"--help": 0.15, "inspect": 0.3}
"""Seconds of processor time that each may take, `--help` above Python's start."""


def seconds(*command: str, rounds: int) -> float:
    """Return the processor time of a process in its best round."""
    # Without the compiled files, most of the time is that of Python's compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *command], stdout=subprocess.DEVNULL, check=True, env=environment
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    DATA.mkdir(exist_ok=True)
    model = DATA / "resnet152.onnx"
    if not model.exists():
        write_resnet(model)
    start = seconds("-c", "pass", rounds=rounds)
    taken = {
        "--help": seconds("-m", "passlib", "--help", rounds=rounds) - start,
        "inspect": seconds("-m", "passlib", "inspect", str(model), rounds=rounds),
    }
    size = model.stat().st_size / 1e6
    print("| command | s | at most |\n|---|---|---|")
    print(f"| passlib --help, above Python's start | {taken['--help']:.3f} | {LIMITS['--help']} |")
    print(f"| passlib inspect, {size:.0f} MB | {taken['inspect']:.3f} | {LIMITS['inspect']} |")


if __name__ == "__main__":
    main()
