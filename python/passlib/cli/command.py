"""Options that print where things are, for compilers and build tools."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence

from passlib.errors import PasslibError
from passlib.files.installation import checked_version, get_cmake_dir, get_include

__all__ = ["main"]


def _include_flags() -> str:
    return shlex.quote(f"-I{get_include()}")


ANSWERS: dict[str, tuple[Callable[[], str], str]] = {
    "include": (get_include, "the folder of the header lib_api.h"),
    "include-flags": (_include_flags, "the compiler's options that find the header"),
    "cmakedir": (get_cmake_dir, "the folder of the CMake package, for cmake -Dpasslib_DIR="),
    "version": (checked_version, "the version"),
}
"""The options: what each prints, and its help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments without the program's name; those of the process by default.
    """
    parser = argparse.ArgumentParser(
        prog="python -m passlib",
        description="Print where passlib's header and CMake package are, one line an option.",
    )
    for name, (_, description) in ANSWERS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"print {description}")
    given = vars(parser.parse_args(arguments))
    wanted = [name for name in ANSWERS if given[name.replace("-", "_")]]
    if not wanted:
        parser.print_help()
        return 0
    try:
        lines = [ANSWERS[name][0]() for name in wanted]
    except PasslibError as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0
