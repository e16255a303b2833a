"""Options that say which passes run, and the libraries that have them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from passlib.cli.status import UsageError
from passlib.errors import FormatError

if TYPE_CHECKING:
    from passlib.library.pipeline import Repeat, Step, Steps
    from passlib.passes import Pipeline


def add_libraries(parser: argparse.ArgumentParser) -> None:
    """Add ``-l``."""
    parser.add_argument(
        "-l",
        "--library",
        action="append",
        default=[],
        metavar="FILE",
        help="library or Python file with passes (repeatable)",
    )


def add_passes(parser: argparse.ArgumentParser) -> None:
    """Add ``--passes``, ``--skip`` and ``-l``."""
    parser.add_argument(
        "--passes",
        metavar="TEXT",
        help='pipeline, such as "a, repeat<4>(b)" (default: simplify)',
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="NAME", help="skip this pass (repeatable)"
    )
    add_libraries(parser)


def load_libraries(paths: Sequence[str]) -> None:
    """Load these files.

    Raises
    ------
    LoadError
        One is no library, or a Python file that cannot be run.
    """
    from passlib.library import load
    from passlib.passes.files import load_file

    for path in paths:
        if Path(path).suffix == ".py":
            load_file(path)
        else:
            load(path, verbose=False)


def pipeline_of(arguments: argparse.Namespace, *, is_loading: bool = True) -> Pipeline:
    """Return the pipeline of ``--passes`` without what ``--skip`` names.

    Parameters
    ----------
    arguments : argparse.Namespace
    is_loading : bool
        Load the libraries, which another process does otherwise.

    Raises
    ------
    UsageError
        The text is no pipeline, or has no such pass to skip.
    """
    from passlib.passes import Pipeline

    if is_loading:
        load_libraries(arguments.library)
    try:
        pipeline = Pipeline("simplify" if arguments.passes is None else arguments.passes)
    except FormatError as error:
        raise UsageError(str(error)) from error
    return Pipeline(_without(pipeline.steps, arguments.skip)) if arguments.skip else pipeline


def _without(steps: Steps, skipped: Sequence[str]) -> Steps:
    from passlib.library import backends, pipeline
    from passlib.passes.simplification import skipping

    found: set[str] = set()
    standard = [name for name in skipped if backends.is_standard(name)]

    def kept(items: Steps) -> Steps:
        left: list[Step | Repeat] = []
        for item in items:
            if isinstance(item, pipeline.Repeat):
                inner = kept(item.steps)
                left += [pipeline.Repeat(item.times, inner)] if inner else []
            elif item.name in skipped:
                found.add(item.name)
            elif backends.find_pipeline(item.name):
                left.append(skipping(item, standard))
                found.update(standard)
            else:
                left.append(item)
        return tuple(left)

    remaining = kept(steps)
    unknown = [name for name in skipped if name not in found]
    if unknown:
        raise UsageError(f"--skip {unknown[0]}: the pipeline has no such pass")
    return remaining
