"""Options that several commands share, and their values."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from passlib.cli.status import UsageError
from passlib.errors import FormatError, did_you_mean

if TYPE_CHECKING:
    from passlib.model import Model
    from passlib.workbench import Tolerance

DRAWN: Final = 3
"""Copy of `passlib.workbench.comparison.DRAWN`, because only some commands import it."""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _tolerance(text: str) -> float:
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a finite number of at least 0, not {text}")
    return value


def whole(text: str) -> int:
    """Return the whole number of an option."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None


def _count(text: str) -> int:
    """Return the number after ``--check``, which may be missing."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, not {text!r}; a bare --check stands behind the models"
        ) from None


def _seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a finite number of seconds > 0, not {text}")
    return value


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the options of comparisons: shapes, inputs and tolerances."""
    add_shapes(parser)
    parser.add_argument("--inputs", metavar="FILE.npz", help="input arrays by input name")
    parser.add_argument(
        "--rtol", type=_tolerance, metavar="X", help="relative tolerance (default: by dtype)"
    )
    parser.add_argument(
        "--atol", type=_tolerance, metavar="X", help="absolute tolerance (default: by dtype)"
    )
    parser.add_argument("--exact", action="store_true", help="all bits must be equal")


def tolerance_of(arguments: argparse.Namespace) -> Tolerance:
    """Return the tolerance of ``--rtol``, ``--atol`` and ``--exact``, or raise a UsageError."""
    from passlib.workbench import Tolerance

    if arguments.exact and (arguments.rtol, arguments.atol) != (None, None):
        raise UsageError("--exact: does not go with --rtol or --atol")
    return Tolerance(0, 0) if arguments.exact else Tolerance(arguments.rtol, arguments.atol)


def add_check(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--check``."""
    parser.add_argument("--check", type=_count, nargs="?", const=DRAWN, metavar="N", help=what)


def require_check(arguments: argparse.Namespace) -> None:
    """Check that ``--check`` has at least one input, or raise a UsageError."""
    if arguments.check is not None and arguments.check < 1:
        raise UsageError("--check: must be at least 1")


def add_failing(parser: argparse.ArgumentParser) -> None:
    """Add the options that define a broken model: ``--check`` or ``--test``, and inputs."""
    add_check(parser, "broken: outputs change on N inputs (default: 3)")
    parser.add_argument(
        "--test", metavar="COMMAND", help="broken: COMMAND fails; {} is the path of a model"
    )
    parser.add_argument(
        "--slower-than",
        type=_seconds,
        metavar="S",
        help="broken: COMMAND takes S seconds in three runs",
    )
    add_inputs(parser)


def add_timeout(
    parser: argparse.ArgumentParser, what: str = "time limit of the passes in seconds"
) -> None:
    """Add ``--timeout`` of a command that runs passes in a separate process."""
    parser.add_argument("--timeout", type=_seconds, metavar="S", help=what)


def require_failing(arguments: argparse.Namespace) -> None:
    """Check that exactly one of ``--check`` and ``--test`` is valid, or raise a UsageError."""
    require_check(arguments)
    if (arguments.check is None) == (arguments.test is None):
        raise UsageError("give --check or --test 'COMMAND {}' to define when a model is broken")
    if arguments.test is not None and "{}" not in arguments.test:
        raise UsageError("--test: the command needs {}, the path of the model")
    if arguments.slower_than is not None and arguments.test is None:
        raise UsageError("--slower-than: give the command with --test 'COMMAND {}'")


def command_of(arguments: argparse.Namespace) -> Callable[[Model], bool]:
    """Return the predicate of ``--test`` and ``--slower-than``."""
    from passlib.workbench import CommandFails, CommandIsSlow

    if arguments.slower_than is None:
        return CommandFails(arguments.test)
    return CommandIsSlow(arguments.test, arguments.slower_than)


def require_no_passes(arguments: argparse.Namespace) -> None:
    """Check that no passes are given beside a second model; the check is the default test.

    Raises
    ------
    UsageError
        There is an option of passes.
    """
    lists = (arguments.rules, arguments.skip, arguments.library)
    if arguments.passes is not None or arguments.timeout is not None or any(lists):
        raise UsageError("give AFTER, or passes: AFTER is what a tool made of MODEL already")
    if arguments.check is None and arguments.test is None:
        arguments.check = DRAWN


def failing_of(arguments: argparse.Namespace, model: Model) -> Callable[[Model], bool]:
    """Return the predicate of broken models for ``--check`` or ``--test``."""
    from passlib.workbench import Differs

    require_failing(arguments)
    if arguments.test is not None:
        return command_of(arguments)
    tolerance = tolerance_of(arguments)
    shapes = shapes_of(arguments.shape)
    return Differs(model, inputs_of(arguments, model), tolerance, shapes, arguments.check)


def add_shapes(
    parser: argparse.ArgumentParser, what: str = "shape of an input; ? is unknown (repeatable)"
) -> None:
    """Add ``--shape``."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME:1,3,224,224",
        help=what,
    )


def shapes_of(
    texts: Sequence[str], option: str = "--shape"
) -> dict[str, tuple[int | None, ...]] | None:
    """Return the shapes of ``--shape`` or another option by input, or None.

    Raises
    ------
    UsageError
        A text is malformed.
    """
    from passlib.library.pipeline import shape_of_text

    shapes = {}
    for text in texts:
        try:
            name, shape = shape_of_text(text)
        except ValueError as error:
            raise UsageError(f"{option} {error}") from None
        shapes[name] = shape
    return shapes or None


def texts_for(path: str, texts: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return the texts of ``--shape`` that are for one model of several.

    ``det*.onnx=x:1,3,640,640`` is for the models of this name or path, other texts are for all.
    """
    found = []
    for text in texts:
        pattern, _, shape = text.partition("=")
        models = [path for path in paths if _matches(path, pattern)] if shape else []
        if not models:
            found.append(text)
        elif path in models:
            found.append(shape)
    return found


def _matches(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(Path(path).name, pattern)


def sizes_of(texts: Sequence[str]) -> dict[str, tuple[int | str, ...]]:
    """Return shapes by input, in which names of open sizes are texts; may raise a UsageError."""
    shapes: dict[str, tuple[int | str, ...]] = {}
    for text in texts:
        name, colon, sizes = text.rpartition(":")
        items = [item.strip() for item in sizes.split(",")] if sizes.strip() else []
        if not (colon and name) or "" in items:
            raise UsageError(f"{text}: write name:batch,3,?,?, with names or ? for open sizes")
        shapes[name] = tuple(int(item) if item.isdecimal() else item for item in items)
    return shapes


def pairs_of(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return names and values of texts such as ``name=value``, or raise a UsageError."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            wanted = option if "=" in option else f"{option} NAME=VALUE"
            raise UsageError(f"expected {wanted}, got {text!r}")
        if name in pairs:
            raise UsageError(f"{option}: {name!r} is given twice")
        pairs[name] = value
    return pairs


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``-o`` of a command that saves one model."""
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write")


def inputs_of(arguments: argparse.Namespace, *models: Model) -> dict[str, Any] | None:
    """Return the first model's arrays of ``--inputs``, or None; raises as `load_inputs` does."""
    if arguments.inputs is None:
        return None
    from passlib.workbench.optimizing import load_inputs

    return load_inputs(arguments.inputs, *models)


if TYPE_CHECKING:
    from passlib.library.declared import Declaration
    from passlib.library.pipeline import Repeat, Step, Steps
    from passlib.passes import Pipeline


def add_library(parser: argparse.ArgumentParser, description: str) -> None:
    """Add ``-l``, which may be given several times."""
    parser.add_argument(
        "-l", "--library", action="append", default=[], metavar="FILE", help=description
    )


def add_libraries(parser: argparse.ArgumentParser) -> None:
    """Add ``-l`` and ``--override``."""
    add_library(parser, "library or file with passes (repeatable)")
    parser.add_argument(
        "--override",
        action="store_true",
        help="let these files replace passes of the same name",
    )


def add_passes(parser: argparse.ArgumentParser) -> None:
    """Add ``--passes``, ``--rules``, ``--skip`` and ``-l``."""
    passes = parser.add_argument(
        "--passes", metavar="TEXT", help='pipeline, "a, repeat<4>(b)" (default: simplify)'
    )
    complete_by(passes, _pipeline_words)
    parser.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="FILE",
        help="apply these rules, after --passes (repeatable)",
    )
    skip = parser.add_argument(
        "--skip", action="append", default=[], metavar="NAME", help="skip this pass (repeatable)"
    )
    complete_by(skip, pass_names)
    parser.add_argument(
        "--fix-shape",
        action="append",
        default=[],
        metavar="NAME:1,3,?",
        help="simplify for this shape; ? stays open (repeatable)",
    )
    parser.add_argument(
        "--target",
        metavar="NAME",
        choices=("onnx", "onnxruntime"),
        help="onnxruntime: simplify with its own operators, too",
    )
    add_libraries(parser)


def complete_by(action: argparse.Action, words: Callable[[str, argparse.Namespace], Any]) -> None:
    """Set the function that completes the value of an option in the shell."""

    def completer(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        return [word for word in words(prefix, parsed_args) if word.startswith(prefix)]

    cast("Any", action).completer = completer


def pass_names(prefix: str, arguments: argparse.Namespace) -> list[str]:
    """Return the names of passes and pipelines, those of ``-l`` included."""
    return list(_declarations(arguments))


def _declarations(arguments: argparse.Namespace) -> dict[str, Declaration]:
    from passlib.library import passes
    from passlib.library.backends import pipelines
    from passlib.passes.rules import load_passes

    for path in getattr(arguments, "library", None) or ():
        load_passes(path, replace=True)
    return {name: each.declaration for name, each in pipelines().items()} | passes()


_IN_OPTIONS = re.compile(r"(.*?([\w.:+-]+)\{(?:[^{}]*[,\s])?)(\w*)$", re.DOTALL)
"""The text of a pipeline that ends in the name of an option."""

_IN_NAME = re.compile(r"(|.*[\s,(])([\w.:+-]*)$", re.DOTALL)


def _pipeline_words(prefix: str, arguments: argparse.Namespace) -> list[str]:
    """Complete the name of a pass, or of its option, at the end of a pipeline."""
    known = _declarations(arguments)
    place = _IN_OPTIONS.match(prefix)
    if place is not None and prefix.count("{") > prefix.count("}"):
        declared = known.get(place.group(2))
        options = (declared.options if declared is not None else None) or ()
        return [f"{place.group(1)}{option.name}=" for option in options]
    place = _IN_NAME.match(prefix)
    return [] if place is None else [place.group(1) + name for name in known]


def pipeline_of(
    arguments: argparse.Namespace, *, is_loading: bool = True, is_fixed: bool = True
) -> Pipeline:
    """Return the pipeline of ``--passes`` and ``--rules`` without the passes of ``--skip``.

    Parameters
    ----------
    is_loading : bool
        Load the libraries in this process. Files of rules are loaded in any case.
    is_fixed : bool
        Apply ``--fix-shape``.

    Raises
    ------
    UsageError
        The text is malformed, or ``--skip`` names a pass that it does not have.
    """
    from passlib.library.pipeline import Step
    from passlib.passes import Pipeline
    from passlib.passes.rules import load_passes

    for path in arguments.rules:
        if Path(path).suffix != ".rules":
            raise UsageError(
                f"--rules {path}: the name of a file of rules ends in .rules; -l loads libraries "
                "and Python files"
            )
    for path in [*(arguments.library if is_loading else ()), *arguments.rules]:
        load_passes(path, replace=arguments.override)
    rules = [Step(Path(path).stem) for path in arguments.rules]
    preset = "" if rules else "simplify"
    try:
        pipeline = Pipeline(preset if arguments.passes is None else arguments.passes)
    except FormatError as error:
        raise UsageError(str(error)) from error
    pipeline = Pipeline([*pipeline.steps, *rules])
    if arguments.skip:
        pipeline = Pipeline(_without(pipeline.steps, arguments.skip))
    if arguments.target is not None:
        from passlib.passes.simplification import targeting

        change = partial(targeting, name=arguments.target)
        pipeline = Pipeline(_changed(pipeline.steps, change, "--target", "fuseLayers{target=...}"))
    return fixed_for(pipeline, arguments.fix_shape) if is_fixed else pipeline


def fixed_for(pipeline: Pipeline, texts: Sequence[str]) -> Pipeline:
    """Return a pipeline for the shapes of ``--fix-shape``, or raise a UsageError."""
    from passlib.passes import Pipeline

    shapes = shapes_of(texts, "--fix-shape")
    if not shapes:
        return pipeline
    from passlib.passes.simplification import fixing

    change = partial(fixing, shapes=shapes)
    return Pipeline(_changed(pipeline.steps, change, "--fix-shape", "passlib set-shape"))


def _runs_passes(name: str) -> bool:
    """Whether a name is that of a pipeline of other passes, which has their options."""
    from passlib.library import backends

    named = backends.find_pipeline(name)
    options = () if named is None else named.declaration.options or ()
    return any(option.name == "skip" for option in options)


def _changed(steps: Steps, change: Callable[[Step], Step], option: str, other: str) -> Steps:
    """Return steps of which the first named pipeline is changed, or raise a UsageError."""
    from passlib.library import pipeline

    for place, step in enumerate(steps):
        if isinstance(step, pipeline.Step) and _runs_passes(step.name):
            return (*steps[:place], change(step), *steps[place + 1 :])
    raise UsageError(f"{option}: simplify and clean use it, and --passes has neither; use {other}")


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
            elif _runs_passes(item.name):
                left.append(skipping(item, standard))
                found.update(standard)
            else:
                left.append(item)
        return tuple(left)

    remaining = kept(steps)
    unknown = [name for name in skipped if name not in found]
    if unknown:
        near = did_you_mean(unknown[0], [*backends.STANDARD_NAMES, *backends.passes()], 1)
        raise UsageError(f"--skip {unknown[0]}: the pipeline has no such pass{near}")
    return remaining
