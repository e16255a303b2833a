"""``passlib bisect``: finds the rewrites of a pass, or of any tool, that break a model."""

from __future__ import annotations

import argparse
import sys

from passlib import dialects
from passlib.cli.options import (
    add_failing,
    add_json,
    add_passes,
    add_timeout,
    failing_of,
    pipeline_of,
    require_no_passes,
)
from passlib.cli.outputs import require_model
from passlib.cli.status import FINE
from passlib.cli.tables import print_json, print_uncovered
from passlib.model import load
from passlib.workbench import Guilty, NothingFailsError, bisect

DESCRIPTION = "Find the rewrites of a pass, or of any tool, that break a model."
EXAMPLE = 'passlib bisect model.onnx -l libmine.so --passes "fuse, fold" --check'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument(
        "after",
        nargs="?",
        metavar="AFTER",
        help="what any tool made of MODEL, instead of passes",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="save MODEL with only the guilty rewrites"
    )
    add_passes(parser)
    add_failing(parser)
    add_timeout(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the guilty rewrites; fail if nothing is broken."""
    try:
        found = _of_passes(arguments) if arguments.after is None else _between(arguments)
    except NothingFailsError as error:
        print_uncovered(error.not_covered, as_json=arguments.json)
        raise
    if arguments.json:
        print_json(_as_json(found))
    else:
        sys.stdout.write(f"{found}\n")
    return FINE


def _between(arguments: argparse.Namespace) -> Guilty:
    require_no_passes(arguments)
    model, after = load(arguments.model), load(arguments.after)
    if arguments.output is not None:
        require_model("-o", arguments.output, "onnx")
    found = bisect(model, after, failing_of(arguments, model), isolate=True)
    if arguments.output is not None and found.model is not None:
        found.model.save(arguments.output)
    return found


def _of_passes(arguments: argparse.Namespace) -> Guilty:
    pipeline = pipeline_of(arguments)
    model = load(arguments.model)
    if arguments.output is not None:
        require_model("-o", arguments.output, model.dialect)
    pipeline.check(model.dialect)
    failing = failing_of(arguments, model)
    found = bisect(model, pipeline, failing, isolate=True, timeout=arguments.timeout)
    if arguments.output is not None and found.model is not None:
        found.model.save(arguments.output, **dialects.find(model.dialect).part_options)
    return found


def _as_json(found: Guilty) -> dict[str, object]:
    return {
        "step": found.step,
        "number": found.number,
        "library": found.library,
        "rewrites": [
            {
                "removed": each.removed,
                "added": each.added,
                "changed": each.changed,
                "place": each.place,
            }
            for each in found.rewrites
        ],
        "number_of_rewrites": found.number_of_rewrites,
        "runs": found.runs,
        "refusal": found.refusal,
        "others": found.others,
        "unstable": found.unstable,
        "error": None if found.error is None else str(found.error),
    }
