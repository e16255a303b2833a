"""``passlib new``: creates a project for a pass, partitioner or operator."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.status import FINE
from passlib.workbench.authoring import new_project

DESCRIPTION = "Create a project: a working C++ pass with its build and test."
EXAMPLE = "passlib new dropIdentity && make -C dropIdentity test"

_KINDS = {
    "pattern": "a C++ pass made of a pattern",
    "partitioner": "a C++ partitioner with the operator that runs its parts",
    "operator": "a C++ operator",
    "python": "a Python pass",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the pass and of its folder")
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
