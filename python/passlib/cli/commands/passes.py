"""``passlib passes``: the passes that are there, and what they declare."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from passlib.cli.options import add_json
from passlib.cli.pipelines import add_libraries, load_libraries
from passlib.cli.status import FINE
from passlib.cli.tables import print_json, print_table

__all__ = ["DESCRIPTION", "EXAMPLE", "add_arguments", "run"]

DESCRIPTION = "List the passes of libraries, the standard ones first, or describe one of them."
EXAMPLE = "passlib passes -l libmypass.so myPass"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="describe this pass")
    add_libraries(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the declarations."""
    from passlib.library import find_backend, passes

    load_libraries(arguments.library)
    if arguments.name is not None:
        declaration = find_backend(arguments.name).declaration
        if arguments.json:
            print_json(dataclasses.asdict(declaration))
        else:
            sys.stdout.write(f"{declaration}\n")
        return FINE
    known = list(passes().values())
    if arguments.json:
        print_json([dataclasses.asdict(declaration) for declaration in known])
        return FINE
    rows = [(each.name, ", ".join(each.dialects) or "all", each.description) for each in known]
    print_table(("pass", "dialects", "description"), rows)
    return FINE
