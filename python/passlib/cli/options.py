"""Options that several commands have, and their values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from passlib.cli.status import UsageError

if TYPE_CHECKING:
    from passlib.model import Model

_DRAWN = 3
"""As `passlib.workbench.comparison.DRAWN`, which is imported by the commands that compare."""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _tolerance(text: str) -> float:
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a finite number ≥ 0, not {text}")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a finite number of seconds > 0, not {text}")
    return value


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add what comparisons of numbers need: ``--shape``, ``--inputs``, ``--rtol``, ``--atol``."""
    add_shapes(parser)
    parser.add_argument("--inputs", metavar="FILE.npz", help="input arrays by input name")
    parser.add_argument(
        "--rtol", type=_tolerance, metavar="X", help="relative tolerance (default: by dtype)"
    )
    parser.add_argument(
        "--atol", type=_tolerance, metavar="X", help="absolute tolerance (default: by dtype)"
    )


def add_check(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--check``, on as many random inputs for every command."""
    parser.add_argument("--check", type=int, nargs="?", const=_DRAWN, metavar="N", help=what)


def require_check(arguments: argparse.Namespace) -> None:
    """Check that ``--check`` has inputs to run on.

    Raises
    ------
    UsageError
        It has none.
    """
    if arguments.check is not None and arguments.check < 1:
        raise UsageError("--check: at least 1 input is needed")


def add_failing(parser: argparse.ArgumentParser) -> None:
    """Add what says that a model is wrong: ``--check`` or ``--test``, with inputs."""
    add_check(parser, "a model is broken if its outputs change on N inputs")
    parser.add_argument(
        "--test", metavar="COMMAND", help="a model is broken if COMMAND fails; {} is its path"
    )
    add_inputs(parser)


def add_timeout(
    parser: argparse.ArgumentParser, what: str = "time limit of the passes in seconds"
) -> None:
    """Add ``--timeout`` of commands that run passes in a process of their own."""
    parser.add_argument("--timeout", type=_seconds, metavar="S", help=what)


def require_failing(arguments: argparse.Namespace) -> None:
    """Check that there is either ``--check`` or ``--test``.

    Raises
    ------
    UsageError
        There are both or neither, or the command has no place for the file.
    """
    require_check(arguments)
    if (arguments.check is None) == (arguments.test is None):
        raise UsageError("give --check or --test 'COMMAND {}' to define when a model is broken")
    if arguments.test is not None and "{}" not in arguments.test:
        raise UsageError("--test: the command needs {}, which stands for the model's file")


def failing_of(arguments: argparse.Namespace, model: Model) -> Callable[[Model], bool]:
    """Return whether a model is wrong, compared with the one given, or by the command."""
    from passlib.workbench import CommandFails, Differs, Tolerance

    require_failing(arguments)
    if arguments.test is not None:
        return CommandFails(arguments.test)
    tolerance = Tolerance(arguments.rtol, arguments.atol)
    shapes = shapes_of(arguments.shape)
    return Differs(model, inputs_of(arguments, model), tolerance, shapes, arguments.check)


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Add ``--shape``."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME:1,3,224,224",
        help="shape of an input; ? is unknown (repeatable)",
    )


def shapes_of(texts: Sequence[str]) -> dict[str, tuple[int | None, ...]] | None:
    """Return the shapes that ``--shape`` gives, by input; None if there are none.

    Raises
    ------
    UsageError
        A text is not of the form ``name:1,3,224,224``.
    """
    from passlib.library.pipeline import shape_of_text

    shapes = {}
    for text in texts:
        try:
            name, shape = shape_of_text(text)
        except ValueError as error:
            raise UsageError(f"--shape {error}") from None
        shapes[name] = shape
    return shapes or None


def inputs_of(arguments: argparse.Namespace, model: Model) -> dict[str, Any] | None:
    """Return the arrays of ``--inputs`` that a model takes; None without it.

    Raises
    ------
    PasslibError
        The file has no arrays by name, or none for an input, and others instead.
    """
    if arguments.inputs is None:
        return None
    from passlib.workbench.batch import load_inputs

    return load_inputs(arguments.inputs, model)
