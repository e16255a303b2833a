"""``passlib abi``: what a compiled library exports and needs, and where it loads."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING

from passlib.cli.options import add_json
from passlib.cli.status import FINE, UNSOUND
from passlib.cli.tables import print_json, print_table
from passlib.errors import printable

if TYPE_CHECKING:
    from passlib.library import Abi

DESCRIPTION = (
    "Show what a compiled library exports and needs, and where it loads.\n"
    "The library is loaded, which runs its code."
)
EXAMPLE = "passlib abi libmypass.so"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("library", metavar="FILE", help="a shared library")
    parser.add_argument(
        "--no-load", action="store_true", help="only read the file: run no code of it"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the report; return 3 for a library that does not load."""
    from passlib.library import abi

    found = abi(arguments.library, load=not arguments.no_load)
    if arguments.json:
        print_json(dataclasses.asdict(found))
    else:
        print_table(("", ""), [row for row in _rows(found) if row[1]])
        if found.problem:
            sys.stdout.write(f"\n{printable(found.problem)}\n")
    return UNSOUND if found.problem else FINE


def _rows(found: Abi) -> list[tuple[str, str]]:
    unknown = "unknown: the library was not loaded"
    header = f"passlib's, plain arrays of version {found.flat_version}"
    others = [name for name in found.entry_points if not name.startswith("_passlib")]
    named = {
        "passes": found.passes,
        "partitioners": found.partitioners,
        "operators": found.ops,
    }
    return [
        ("built for", found.machine),
        ("compiled by", ", ".join(found.compilers)),
        ("C++ library", found.standard_library or "none linked"),
        ("std::string", found.string_abi),
        ("ABI", unknown if found.abi_version is None else f"version {found.abi_version}"),
        ("header", header if found.flat_version else "another one" if found.abi_version else ""),
        ("entry points", f"{len(others)}, and {len(found.entry_points) - len(others)} of passlib"),
        *((key, ", ".join(names or ())) for key, names in named.items()),
        ("needs", ", ".join(found.libraries)),
        ("versions", ", ".join(found.versions)),
        ("loads here", {None: "not tried", True: "yes", False: "no"}[found.loads]),
        ("in MXNet", unknown if found.mxnet is None else ", ".join(found.mxnet) or _refused(found)),
        ("elsewhere", _elsewhere(found)),
    ]


def _refused(found: Abi) -> str:
    if found.missing:
        return f"no: it lacks {', '.join(found.missing)}"
    return "no release has this version"


def _elsewhere(found: Abi) -> str:
    demands = []
    if found.libc:
        demands.append(f"{found.libc} or later" if found.libc.startswith("glibc") else found.libc)
    if found.gcc:
        demands.append(f"libstdc++ of GCC {found.gcc}" + ("" if " " in found.gcc else " or later"))
    if found.standard_library == "libc++":
        demands.append("libc++")
    return f"{found.machine} with {', '.join(demands)}" if demands else f"any {found.machine}"
