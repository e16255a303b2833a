"""``passlib new``: creates a project for a pass, partitioner, operator or rule."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.status import FINE
from passlib.workbench.authoring import new_project

DESCRIPTION = "Create a project: an example of a C++ pass, with its build and test."
EXAMPLE = "passlib new dropIdentity && make -C dropIdentity test"

_KINDS = {
    "pattern": "a C++ pass made of a pattern",
    "partitioner": "a C++ partitioner with the operator that runs its parts",
    "operator": "a C++ operator",
    "python": "a Python pass",
    "rule": "a file of rules in text",
}

_EXAMPLES = {
    "pass": "removes Identity",
    "pattern": "makes one Relu of two",
    "partitioner": "cuts out chains of exp and relu (MXNet)",
    "operator": "multiplies by an attribute (MXNet)",
    "python": "removes Identity",
    "rule": "makes one Relu of two",
}
"""The effect of the files of each kind, until the author changes them."""

_TESTS = {
    "python": "(cd {name} && python3 -m unittest)",
    "rule": "passlib rules --check {name}/{name}.rules",
}
"""The command that tests a kind, if it is not that of `_TEST`."""

_TEST = "make -C {name} test"


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
    test = _TESTS.get(arguments.kind, _TEST).format(name=arguments.name)
    does = _EXAMPLES[arguments.kind]
    sys.stdout.write(f"as an example, {arguments.name} {does}; test it: {test}\n")
    return FINE
