"""``passlib reduce``: shrinks a model while it shows a fault."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from passlib import dialects
from passlib.cli.options import (
    add_failing,
    add_json,
    add_passes,
    add_timeout,
    command_of,
    inputs_of,
    pipeline_of,
    require_failing,
    require_no_passes,
    shapes_of,
    tolerance_of,
)
from passlib.cli.outputs import require_file, require_model, write_text
from passlib.cli.status import FINE, UsageError
from passlib.cli.tables import print_json, print_uncovered
from passlib.errors import PasslibError, printable
from passlib.model import Model, load
from passlib.workbench import (
    Differs,
    NothingFailsError,
    PipelineFails,
    Reduced,
    drawn,
    reduce,
    reduce_both,
    script,
)
from passlib.workbench.bisection import nothing_fails
from passlib.workbench.failing import BRACES
from passlib.workbench.reduction import fault_of
from passlib.workbench.script import require_onnx
from passlib.workbench.shrinking import Failing
from passlib.workbench.surviving import survived

DESCRIPTION = "Shrink a model that a pass breaks or that a command fails on."
EXAMPLE = "passlib reduce model.onnx --test 'my-tool {}' -o small.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # The list of all options follows.
    parser.usage = "%(prog)s [options] MODEL [AFTER]"
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument(
        "after",
        nargs="?",
        metavar="AFTER",
        help="what any tool made of MODEL: reduce both",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="output file of the small model")
    parser.add_argument(
        "--script", metavar="FILE.py", help="write a script of onnx.helper calls that makes it"
    )
    parser.add_argument("--save-inputs", metavar="FILE.npz", help="save inputs that show the fault")
    add_passes(parser)
    add_failing(parser)
    add_timeout(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the smallest model; fail if nothing is broken."""
    try:
        return _run(arguments)
    except NothingFailsError as error:
        print_uncovered(error.not_covered, as_json=arguments.json)
        raise


def _run(arguments: argparse.Namespace) -> int:
    if arguments.after is not None:
        require_no_passes(arguments)
    require_failing(arguments)
    if arguments.output is None and arguments.script is None:
        raise UsageError("give -o OUT, --script FILE.py or both")
    model = load(arguments.model)
    if arguments.output is not None:
        dialect = model.dialect if arguments.after is None else "onnx"
        require_model("-o", arguments.output, dialect)
    if arguments.script is not None:
        require_file("--script", arguments.script)
        if arguments.after is None:
            require_onnx(model)
    if arguments.save_inputs is not None:
        require_file("--save-inputs", arguments.save_inputs)
    if arguments.after is not None:
        return _reduce_both(arguments, model)
    failing, found = (_of_passes if arguments.test is None else _of_command)(arguments, model)
    files: list[str] = []
    if arguments.output is not None:
        options = dialects.find(model.dialect).part_options
        files += found.model.save(Path(arguments.output), **options)
    if arguments.script is not None:
        text = script(
            {_FILE: found.model},
            found.inputs,
            lambda models, inputs: failing(models[0], inputs),
            _how(arguments),
            isolate=arguments.test is not None,
        )
        files.append(str(write_text(arguments.script, text)))
    return _print(arguments, found, files)


def _of_command(arguments: argparse.Namespace, model: Model) -> tuple[Failing, Reduced]:
    """Reduce a model on which a command fails."""
    command = command_of(arguments)

    def failing(candidate: Model, inputs: Mapping[str, Any]) -> bool:
        return command(candidate)

    return failing, reduce(model, failing, _inputs(arguments, model), isolate=True)


def _of_passes(arguments: argparse.Namespace, model: Model) -> tuple[Failing, Reduced]:
    """Reduce a model that passes break."""
    pipeline = pipeline_of(arguments)
    pipeline.check(model.dialect)
    given, shapes = inputs_of(arguments, model), shapes_of(arguments.shape)
    tolerance = tolerance_of(arguments)
    differs = Differs(model, given, tolerance, shapes, arguments.check)
    for inputs in differs.inputs:
        failing = PipelineFails(
            pipeline, model, inputs, tolerance, isolate=True, timeout=arguments.timeout
        )
        if failing.what:
            break
    try:
        return failing, reduce(model, failing, inputs)
    except NothingFailsError as error:
        after = pipeline.run(model, isolate=True, timeout=arguments.timeout).model
        raise nothing_fails(pipeline, model, after, differs) from error


def _print(arguments: argparse.Namespace, found: Reduced, files: Sequence[str]) -> int:
    """Save the inputs, and print what was found."""
    if arguments.save_inputs is not None:
        import numpy as np

        arrays: dict[str, Any] = {name: np.asarray(each) for name, each in found.inputs.items()}
        # Without pickle, NumPy writes strings only as arrays of str.
        arrays = {n: a.astype(str) if a.dtype == object else a for n, a in arrays.items()}
        np.savez(arguments.save_inputs, **arrays)
    if arguments.json:
        nodes = {"before": found.nodes_before, "after": found.nodes}
        print_json({"nodes": nodes, "runs": found.runs, "files": files})
    else:
        # Weights may be in more files.
        number = 1 if found.after is None else len(files)
        shown = dict.fromkeys((*files[:number], *([arguments.script] if arguments.script else ())))
        sys.stdout.write("".join(f"{each}\n" for each in (found, *map(printable, shown))))
    return FINE


def _reduce_both(arguments: argparse.Namespace, before: Model) -> int:
    """Reduce two models to the parts that differ."""
    after = load(arguments.after)
    failing: Callable[[Model, Model, Mapping[str, Any]], bool] | None = None
    if arguments.test is not None:
        command = command_of(arguments)

        failing = lambda one, two, inputs: command(two) and not command(one)  # noqa: E731
    tolerance = tolerance_of(arguments)
    found = reduce_both(
        before,
        after,
        failing,
        inputs_of(arguments, before),
        tolerance=tolerance,
        shapes=shapes_of(arguments.shape),
        isolate=True,
    )
    assert found.after is not None
    parts = {"before": found.model, "after": found.after}
    files: list[str] = []
    if arguments.output is not None:
        path = Path(arguments.output)
        for word, model in parts.items():
            files += model.save(path.with_name(f"{path.stem}-{word}{path.suffix}"))
    if arguments.script is not None:
        fails = failing or (lambda one, two, inputs: bool(fault_of(one, two, inputs, tolerance)))
        how = ""
        if arguments.test is not None:
            how = re.sub(BRACES, "after.onnx", arguments.test)
        text = script(
            {f"{word}.onnx": model for word, model in parts.items()},
            found.inputs,
            lambda models, inputs: fails(models[0], models[1], inputs),
            how,
            isolate=True,
        )
        files.append(str(write_text(arguments.script, text)))
    return _print(arguments, found, files)


_FILE: Final = "model.onnx"


def _how(arguments: argparse.Namespace) -> str:
    """Return the command that shows the fault on the file that a script makes."""
    if arguments.test is not None:
        return re.sub(BRACES, _FILE, arguments.test)
    words = ["passlib", "opt", _FILE, "-o", "out.onnx", "--check"]
    for option, values in (
        ("--passes", [] if arguments.passes is None else [arguments.passes]),
        ("--rules", arguments.rules),
        ("--skip", arguments.skip),
        ("--target", [] if arguments.target is None else [arguments.target]),
        ("-l", arguments.library),
    ):
        words += [word for value in values for word in (option, value)]
    words += ["--override"] if arguments.override else []
    return shlex.join(words)


def _inputs(arguments: argparse.Namespace, model: Model) -> Mapping[str, Any]:
    """Return inputs of the model; none if it does not run."""
    given = inputs_of(arguments, model)
    try:
        return survived(lambda: drawn(model, given, 1, shapes_of(arguments.shape))[0])
    except PasslibError:
        return {}
