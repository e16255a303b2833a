"""``passlib passes``: passes and named pipelines, with their declarations."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from passlib.cli.options import add_json, add_libraries, complete_by, pass_names
from passlib.cli.status import FINE
from passlib.cli.tables import print_json, print_table

DESCRIPTION = "List named pipelines and passes, or describe one of them."
EXAMPLE = "passlib passes -l libmypass.so myPass"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    name = parser.add_argument(
        "name", nargs="?", metavar="NAME", help="describe this pass or pipeline"
    )
    complete_by(name, pass_names)
    add_libraries(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the declarations."""
    from passlib.library import find_backend, passes
    from passlib.library.backends import find_pipeline, pipelines
    from passlib.passes.rules import load_passes

    for path in arguments.library:
        load_passes(path, replace=arguments.override)
    if arguments.name is not None:
        name = arguments.name
        declaration = (find_pipeline(name) or find_backend(name)).declaration
        if arguments.json:
            print_json(dataclasses.asdict(declaration))
        else:
            sys.stdout.write(f"{declaration}\n")
        return FINE
    found = passes()
    known = [each.declaration for name, each in pipelines().items() if name not in found]
    known += found.values()
    if arguments.json:
        print_json([dataclasses.asdict(declaration) for declaration in known])
        return FINE
    rows = [(each.name, ", ".join(each.dialects) or "all", each.description) for each in known]
    print_table(("pass", "dialects", "description"), rows)
    return FINE
