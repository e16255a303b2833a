"""Options that several commands have, and their values."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passlib.cli.status import UsageError
from passlib.errors import FormatError, PasslibError

if TYPE_CHECKING:
    from passlib.library.pipeline import Repeat, Step, Steps
    from passlib.passes import Pipeline

__all__ = [
    "add_inputs",
    "add_json",
    "add_libraries",
    "add_passes",
    "inputs_of",
    "load_libraries",
    "pipeline_of",
    "shapes_of",
]


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_libraries(parser: argparse.ArgumentParser) -> None:
    """Add ``-l``."""
    parser.add_argument(
        "-l",
        "--library",
        action="append",
        default=[],
        metavar="FILE",
        help="load a library, or a Python file with passes (repeat for more); they run code",
    )


def add_passes(parser: argparse.ArgumentParser) -> None:
    """Add ``--passes``, ``--skip`` and ``-l``."""
    parser.add_argument(
        "--passes",
        metavar="TEXT",
        help='such as "a, repeat<4>(b{level=2})"; else the standard ones',
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="NAME", help="leave this pass out (repeat)"
    )
    add_libraries(parser)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add what comparisons of numbers need: ``--shape``, ``--inputs``, ``--rtol``, ``--atol``."""
    add_shapes(parser)
    parser.add_argument("--inputs", metavar="FILE.npz", help="run on these arrays, by input name")
    parser.add_argument("--rtol", type=float, metavar="X", help="relative tolerance")
    parser.add_argument("--atol", type=float, metavar="X", help="absolute tolerance")


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Add ``--shape``."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME:1,3,224,224",
        help="shape of an input; ? leaves a size open (repeat for more)",
    )


def load_libraries(paths: Sequence[str]) -> None:
    """Load the standard passes and then these files.

    Raises
    ------
    LoadError
        One is no library.
    UsageError
        A Python file cannot be run.
    """
    from passlib.library import load, load_standard

    load_standard()
    for path in paths:
        if Path(path).suffix == ".py":
            _run_file(Path(path))
        else:
            load(path, verbose=False)


def _run_file(path: Path) -> None:
    name = f"passlib_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (PasslibError, OSError):
        raise
    except Exception as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error


def shapes_of(texts: Sequence[str]) -> dict[str, tuple[int | None, ...]] | None:
    """Return the shapes that ``--shape`` gives, by input; None if there are none.

    Raises
    ------
    UsageError
        A text is not of the form ``name:1,3,224,224``.
    """
    shapes = {}
    for text in texts:
        name, colon, sizes = text.rpartition(":")
        try:
            shape = tuple(None if size.strip() == "?" else int(size) for size in sizes.split(","))
        except ValueError:
            shape = (-1,)
        if not (colon and name) or any(size is not None and size < 0 for size in shape):
            raise UsageError(f"--shape {text}: write name:1,3,224,224, with ? for an open size")
        shapes[name] = shape
    return shapes or None


def pipeline_of(arguments: argparse.Namespace) -> Pipeline:
    """Return the pipeline of ``--passes`` without what ``--skip`` names; loads the libraries.

    Raises
    ------
    UsageError
        The text is no pipeline, or has no such pass to skip.
    """
    from passlib.library import load_standard
    from passlib.passes import Pipeline

    load_libraries(arguments.library)
    text = arguments.passes
    if text is None:
        text = ", ".join(load_standard().passes)
    try:
        pipeline = Pipeline(text)
    except FormatError as error:
        raise UsageError(str(error)) from error
    return Pipeline(_without(pipeline.steps, arguments.skip)) if arguments.skip else pipeline


def _without(steps: Steps, skipped: Sequence[str]) -> Steps:
    from passlib.library import pipeline

    found: set[str] = set()

    def kept(items: Steps) -> Steps:
        left: list[Step | Repeat] = []
        for item in items:
            if isinstance(item, pipeline.Repeat):
                inner = kept(item.steps)
                left += [pipeline.Repeat(item.times, inner)] if inner else []
            elif item.name in skipped:
                found.add(item.name)
            else:
                left.append(item)
        return tuple(left)

    remaining = kept(steps)
    unknown = [name for name in skipped if name not in found]
    if unknown:
        raise UsageError(f"--skip {unknown[0]}: the pipeline has no such pass")
    return remaining


def inputs_of(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the arrays of ``--inputs``; None without it.

    Raises
    ------
    UsageError
        The file has no arrays by name.
    """
    if arguments.inputs is None:
        return None
    import numpy as np

    try:
        with np.load(arguments.inputs) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, AttributeError, EOFError) as error:
        raise UsageError(f"--inputs {arguments.inputs}: not a file that np.savez wrote") from error
