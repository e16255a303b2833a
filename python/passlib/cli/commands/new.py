"""``passlib new``: a folder for a new pass, partitioner or operator."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.status import FINE
from passlib.workbench.authoring import new_project

DESCRIPTION = "Make a folder with a pass in C++ that works, its build and its test; or another."
EXAMPLE = "passlib new dropIdentity && make -C dropIdentity test"

_KINDS = {
    "pattern": "a pass in C++ that is a pattern and its replacement",
    "partitioner": "a partitioner in C++, with the operator that runs the parts",
    "operator": "an operator in C++",
    "python": "a pass in Python",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="of the pass and its folder")
    kinds = parser.add_mutually_exclusive_group()
    for kind, what in _KINDS.items():
        kinds.add_argument(
            f"--{kind}", dest="kind", action="store_const", const=kind, default="pass", help=what
        )


def run(arguments: argparse.Namespace) -> int:
    """Make the folder in the current one."""
    made = new_project(arguments.name, kind=arguments.kind)
    sys.stdout.write("".join(f"{path}\n" for path in sorted(made.iterdir())))
    return FINE
