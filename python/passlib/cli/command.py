"""The command line ``passlib``."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from passlib.cli import streams
from passlib.cli.status import USAGE, status_of
from passlib.cli.streams import report
from passlib.errors import PasslibError, PipelineError, did_you_mean
from passlib.files.installation import checked_version, get_cmake_dir, get_include

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps line breaks of examples, and puts most options on one line with their help."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class Parser(argparse.ArgumentParser):
    """A parser that keeps line breaks of examples and exits with status `USAGE` on errors."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Print a message to stderr and exit."""
        report(self.prog, f"{message}; see {self.prog} --help")
        sys.exit(USAGE)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; unlike argparse, raise write errors."""
        (sys.stdout if file is None else file).write(self.format_help())
        sys.stdout.flush()


class CommandParser(Parser):
    """The parser of a command; it imports the command's module on first use.

    The module ``passlib.cli.commands.<name>``, with ``_`` for ``-``, has ``DESCRIPTION`` and
    ``EXAMPLE`` for the help, ``add_arguments(parser)``, and ``run(arguments)``, which returns the
    exit code.
    """

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Import the command and parse its arguments."""
        self.prepare()
        known, others = super().parse_known_args(args, namespace)
        options = [text for text in others if text.startswith("-") and text != "-"]
        if options:
            option = options[0].partition("=")[0]
            near = did_you_mean(option, self._option_string_actions, most=1)
            if option in ("-o", "--output") and "OUT" in self.format_usage().split():
                near = ": the file to write is the argument OUT"
            self.error(f"there is no option {option}{near}")
        return known, others

    def prepare(self) -> None:
        """Import the command and declare its arguments, once."""
        if self.epilog is not None:
            return
        _import_numpy()
        name = self.prog.rpartition(" ")[2]
        command = importlib.import_module(f"passlib.cli.commands.{name.replace('-', '_')}")
        self.description = command.DESCRIPTION
        self.epilog = f"example:\n  {command.EXAMPLE}"
        command.add_arguments(self)
        self.add_argument(
            "--traceback", action="store_true", help="print the traceback of an error"
        )
        self.set_defaults(run=command.run)


def _import_numpy() -> None:
    """Import NumPy with one thread for its linear algebra.

    It starts one a core on import otherwise, which takes more processor time than most commands
    (0.11 s on two cores). Models run in ONNX Runtime, which has threads of its own.
    """
    if "OPENBLAS_NUM_THREADS" in os.environ:
        return
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]


_INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the number of the signal."""


def _include_flags() -> str:
    return shlex.quote(f"-I{get_include()}")


ANSWERS: dict[str, tuple[Callable[[], str], str]] = {
    "include": (get_include, "the folder of the header lib_api.h"),
    "include-flags": (_include_flags, "the compiler's options that find the header"),
    "cmakedir": (get_cmake_dir, "the folder of the CMake package, for cmake -Dpasslib_DIR="),
    "version": (checked_version, "the version"),
}
"""Options that print a text: function and help."""

COMMANDS = {
    "opt": "run passes on models",
    "inspect": "show inputs, outputs, operators and weights",
    "validate": "check model files",
    "lint": "show which nodes a runtime refuses",
    "convert": "convert a model to ONNX",
    "extract": "save a part of a model",
    "merge": "make one ONNX model of two",
    "rename": "rename inputs, outputs, weights and nodes",
    "set-shape": "set or open the sizes of inputs",
    "set-attr": "set attributes of a node",
    "set-weight": "replace weights by arrays",
    "compare": "compare the numbers of two models",
    "bisect": "find the pass and the rewrites that break a model",
    "reduce": "shrink a model that shows a fault",
    "diff": "compare the nodes and weights of two models",
    "view": "draw a model as an HTML page",
    "run": "run the reproducer of a failed pass",
    "new": "create a project for a pass",
    "build": "compile a library of passes",
    "passes": "list the passes, or describe one",
    "abi": "show what a compiled library needs, and where it loads",
    "rules": "list the rules, show or check them",
    "prove": "prove rules for all sizes",
    "check-certificate": "check the certificate of a simplified model",
}
"""Commands and their help."""

_EPILOG = """\
exit codes: 0 success, 1 wrong usage, 2 a pass failed, 3 invalid graph or file, or a node that
  lint refuses, 4 results differ, 5 nothing fails that bisect or reduce could look for

example:
  passlib opt model.onnx -o out.onnx
"""


_OTHER_WORDS = {
    "check": "validate",
    "draw": "view",
    "export": "convert",
    "info": "inspect",
    "optimise": "opt",
    "optimize": "opt",
    "plot": "view",
    "print": "inspect",
    "show": "inspect",
    "simplify": "opt",
    "summary": "inspect",
    "verify": "validate",
    "visualize": "view",
}
"""Commands by the words that other tools have for them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``arguments`` excludes the program's name."""
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
        _check_words(parser, sys.argv[1:] if arguments is None else arguments)
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
            _report_crashes(prog)
            status = given.run(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        streams.report(prog, "interrupted")
        return _INTERRUPTED
    except (PasslibError, OSError) as error:
        failure = streams.failure_behind(error)
        if isinstance(failure, BrokenPipeError) and streams.is_abandoned():
            return 0  # the reader, such as head, has exited
        if with_traceback:
            raise
        if isinstance(error, PipelineError) and isinstance(error.__cause__, OSError):
            failure = failure or error.__cause__  # of an instrument, such as a full disk
        error = failure or error
        # Drop the number in front of an operating system's message.
        message = str(error)
        if isinstance(error, OSError) and error.strerror:
            place = f"{error.filename}: " if error.filename else ""
            message = f"{place}{error.strerror}"
        streams.report(prog, message)
        return status_of(error)
    return status


def _report_crashes(prog: str) -> None:
    """Have crashes and interrupts of libraries reported, which end the process at once."""
    import passlib._core as _core

    shows_cursor = "\033[?25h" if sys.stderr.isatty() else ""  # a progress bar hides it
    _core.report_as_command(shows_cursor + prog)


def _check_words(parser: Parser, words: Sequence[str]) -> None:
    """Exit with a message for an unknown command, and for ``-`` as the name of a file."""
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        other = _OTHER_WORDS.get(command)
        near = f"; did you mean {other!r}?" if other else did_you_mean(command, COMMANDS)
        if os.path.exists(command):  # noqa: PTH110  # not worth an import
            near = f"; it is a file: passlib opt {shlex.quote(command)} -o OUT simplifies a model"
        parser.error(f"there is no command {command!r}{near}")
    if "-" in words:
        parser.error("'-', standard input or output, is not supported: give the path of a file")


def _complete(parser: argparse.ArgumentParser, commands: Mapping[str, CommandParser]) -> None:
    """Print the completions for the shell and exit."""
    from passlib.files.optional import require

    words = os.environ.get("COMP_LINE", "").split()
    if words[1:] and words[1] in commands:
        commands[words[1]].prepare()
    require("argcomplete", extra="completion").autocomplete(parser)


def _parser() -> tuple[Parser, dict[str, CommandParser]]:
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
