"""``passlib new``: a folder for a new pass."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.status import FINE
from passlib.workbench.authoring import new_project

__all__ = ["DESCRIPTION", "EXAMPLE", "add_arguments", "run"]

DESCRIPTION = "Make a folder with a pass that works, its build and its test."
EXAMPLE = "passlib new dropIdentity && make -C dropIdentity test"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="of the pass and its folder")
    parser.add_argument("--python", action="store_true", help="a pass in Python, not in C++")


def run(arguments: argparse.Namespace) -> int:
    """Make the folder in the current one."""
    made = new_project(arguments.name, kind="python" if arguments.python else "pass")
    sys.stdout.write("".join(f"{path}\n" for path in sorted(made.iterdir())))
    return FINE
