"""Parsers of commands, which import a command when it is the one that runs."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from passlib.cli.status import USAGE
from passlib.cli.streams import report

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of examples, and most options with their help on one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class Parser(argparse.ArgumentParser):
    """A parser that keeps the line breaks of examples, and whose errors are wrong usage."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """End the program with one message on stderr."""
        report(self.prog, f"{message}; see {self.prog} --help")
        sys.exit(USAGE)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; argparse would ignore that it cannot be written."""
        (sys.stdout if file is None else file).write(self.format_help())
        sys.stdout.flush()


class CommandParser(Parser):
    """The parser of one command, whose module it imports when it is used.

    The module ``passlib.cli.commands.<name>`` has ``DESCRIPTION`` and ``EXAMPLE`` for the help,
    ``add_arguments(parser)``, and ``run(arguments)``, which returns the exit code.
    """

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Import the command, and let it parse its arguments."""
        self.prepare()
        return super().parse_known_args(args, namespace)

    def prepare(self) -> None:
        """Import the command, and declare its arguments, once."""
        if self.epilog is not None:
            return
        name = self.prog.rpartition(" ")[2]
        command = importlib.import_module(f"passlib.cli.commands.{name}")
        self.description = command.DESCRIPTION
        self.epilog = f"example:\n  {command.EXAMPLE}"
        command.add_arguments(self)
        self.add_argument(
            "--traceback", action="store_true", help="print the traceback of an error"
        )
        self.set_defaults(run=command.run)
