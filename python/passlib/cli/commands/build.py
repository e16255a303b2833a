"""``passlib build``: compiles a library of passes."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.status import FINE
from passlib.workbench.authoring import Mode, build

DESCRIPTION = "Compile a library of passes with $CXX and $CXXFLAGS (default: g++)."
EXAMPLE = "passlib build mypass.cc -o libmypass.so"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("-o", "--output", metavar="OUT", help="output file (default: lib<name>.so)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--debug", action="store_true", help="compile with symbols, without optimisation"
    )
    which.add_argument("--asan", action="store_true", help="compile with AddressSanitizer")


def run(arguments: argparse.Namespace) -> int:
    """Compile; the compiler's messages go to stderr."""
    mode: Mode = "debug" if arguments.debug else "asan" if arguments.asan else "release"
    sys.stdout.write(f"{build(arguments.sources, arguments.output, mode)}\n")
    return FINE
