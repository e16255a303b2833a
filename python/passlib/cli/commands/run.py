"""``passlib run``: runs a reproducer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from passlib.cli.options import add_timeout
from passlib.cli.status import FINE, UsageError
from passlib.errors import printable
from passlib.passes.isolation import Reproducer, play

DESCRIPTION = """\
Run the pipeline of a reproducer, the folder that an isolated pass leaves.
Its libraries and Python files run with all your rights."""
EXAMPLE = "passlib run /tmp/passlib-reproducer-x1y2 --trust"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="REPRODUCER", help="folder with reproducer.json")
    parser.add_argument("--trust", action="store_true", help="run its code without asking")
    add_timeout(parser, "time limit in seconds")


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline; fail if it fails again."""
    folder = Path(arguments.folder)
    if not arguments.trust:
        _ask(folder)
    result = play(folder, arguments.timeout)
    sys.stdout.write(f"{result}\n")
    return FINE


def _ask(folder: Path) -> None:
    """Ask on a terminal for permission to run the code.

    Raises
    ------
    UsageError
        Permission is denied, or there is no terminal.
    """
    reproducer = Reproducer.read(folder)
    reproducer.checked_place(folder)
    files = [path for path, _ in reproducer.sources] + reproducer.path
    sys.stderr.write(
        f"{printable(folder)} runs code of these files, and of Python modules in these folders:\n"
        + "".join(f"  {printable(path)}\n" for path in files)
    )
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write("Would you run them as programs? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise UsageError(f"{folder} was not run; add --trust if you trust its code")
