"""``passlib run``: what a reproducer holds, once more."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from passlib.cli.options import add_timeout
from passlib.cli.status import FINE
from passlib.passes.isolation import play

__all__ = ["DESCRIPTION", "EXAMPLE", "add_arguments", "run"]

DESCRIPTION = "Run the pipeline of a reproducer, the folder that an isolated pass leaves."
EXAMPLE = "passlib run /tmp/passlib-reproducer-x1y2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("folder", metavar="REPRODUCER", help="it runs the libraries named there")
    add_timeout(parser, "end it after so many seconds")


def run(arguments: argparse.Namespace) -> int:
    """Run the pipeline; 2 if it fails again."""
    result = play(Path(arguments.folder), arguments.timeout)
    sys.stdout.write(f"{result}\n")
    return FINE
