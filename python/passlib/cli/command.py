"""The command line ``passlib``: options that print where things are, and commands on models."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence

from passlib.cli import streams
from passlib.cli.parser import CommandParser, Parser
from passlib.cli.status import status_of
from passlib.errors import PasslibError, PipelineError
from passlib.files.installation import checked_version, get_cmake_dir, get_include

_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ends: 128 and the number of the signal."""


def _include_flags() -> str:
    return shlex.quote(f"-I{get_include()}")


ANSWERS: dict[str, tuple[Callable[[], str], str]] = {
    "include": (get_include, "the folder of the header lib_api.h"),
    "include-flags": (_include_flags, "the compiler's options that find the header"),
    "cmakedir": (get_cmake_dir, "the folder of the CMake package, for cmake -Dpasslib_DIR="),
    "version": (checked_version, "the version"),
}
"""The options: what each prints, and its help."""

COMMANDS = {
    "opt": "run passes on models",
    "inspect": "show inputs, outputs, operators and weights",
    "validate": "check model files",
    "convert": "convert a model to ONNX",
    "compare": "compare the numbers of two models",
    "bisect": "find the pass and the rewrites that break a model",
    "reduce": "shrink a model that shows a fault",
    "diff": "compare the nodes and weights of two models",
    "view": "draw a model as an HTML page",
    "run": "run the reproducer of a failed pass",
    "new": "create a project for a pass",
    "build": "compile a library of passes",
    "passes": "list the passes, or describe one",
}
"""What each command does."""

_EPILOG = """\
exit codes: 0 success, 1 wrong usage, 2 a pass failed, 3 invalid graph or file, 4 results differ

example:
  passlib opt model.onnx -o out.onnx
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments without the program's name; those of the process by default.
    """
    streams.prepare()
    try:
        return _run(arguments)
    finally:
        streams.settle()


def _run(arguments: Sequence[str] | None) -> int:
    parser, known = _parser()
    if "_ARGCOMPLETE" in os.environ:
        _complete(parser, known)
    prog, with_traceback = parser.prog, False
    try:
        given = parser.parse_args(arguments)
        with_traceback = getattr(given, "traceback", False)
        wanted = [name for name in ANSWERS if getattr(given, name.replace("-", "_"))]
        status = 0
        if wanted:
            sys.stdout.write("".join(f"{ANSWERS[name][0]()}\n" for name in wanted))
        elif given.command is None:
            parser.print_help()
        else:
            prog = f"{prog} {given.command}"
            status = given.run(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        streams.report(prog, "interrupted")
        return _INTERRUPTED
    except (PasslibError, OSError) as error:
        failure = streams.failure_behind(error)
        if isinstance(failure, BrokenPipeError) and streams.is_abandoned():
            return 0  # the reader of the output, such as head, has seen enough
        if with_traceback:
            raise
        if isinstance(error, PipelineError) and isinstance(error.__cause__, OSError):
            failure = failure or error.__cause__  # of an instrument, such as a full disk's
        error = failure or error
        # The operating system's errors have their number before their text.
        message = str(error)
        if isinstance(error, OSError) and error.strerror:
            place = f"{error.filename}: " if error.filename else ""
            message = f"{place}{error.strerror}"
        streams.report(prog, message)
        return status_of(error)
    return status


def _complete(parser: argparse.ArgumentParser, commands: Mapping[str, CommandParser]) -> None:
    """Answer the shell, which asks how an argument may go on, and end the program."""
    from passlib.files.optional import require

    # A command declares its arguments when it is used.
    words = os.environ.get("COMP_LINE", "").split()
    if words[1:] and words[1] in commands:
        commands[words[1]].prepare()
    require("argcomplete", extra="completion").autocomplete(parser)


def _parser() -> tuple[argparse.ArgumentParser, dict[str, CommandParser]]:
    parser = Parser(
        prog="passlib",
        description="Simplify, rewrite, check and compare models of ONNX, MXNet, NNVM, ARK and "
        "DLPrimitives.",
        epilog=_EPILOG,
    )
    for name, (_, description) in ANSWERS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"print {description}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=CommandParser
    )
    known = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    return parser, known
