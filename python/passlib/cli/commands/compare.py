"""``passlib compare``: compares the outputs of two models."""

from __future__ import annotations

import argparse
import sys

from passlib import library
from passlib.cli.options import (
    add_inputs,
    add_json,
    add_library,
    inputs_of,
    shapes_of,
    tolerance_of,
    whole,
)
from passlib.cli.outputs import require_page, write_text
from passlib.cli.status import DIFFERENT, FINE, UsageError
from passlib.cli.tables import print_gaps, print_json, print_table
from passlib.errors import counted, printable
from passlib.model import load
from passlib.workbench import Comparison, compare

DESCRIPTION = "Run models of any dialects on the same inputs and compare with A."
EXAMPLE = "passlib compare model-symbol.json model.onnx --shape data:1,3,224,224"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="reference model")
    parser.add_argument("b", metavar="B", nargs="+", help="models to check")
    parser.add_argument(
        "-n", type=whole, default=3, metavar="N", help="number of random inputs (default: 3)"
    )
    add_library(parser, "library with operators of the models (repeatable)")
    add_inputs(parser)
    parser.add_argument(
        "--per-node", action="store_true", help="compare each value, name the first that differs"
    )
    parser.add_argument(
        "--report", metavar="HTML", help="draw the last model with the differences of --per-node"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the differences; return 4 if there are any."""
    if arguments.n < 1:
        raise UsageError("-n: must be at least 1")
    if arguments.report is not None:
        require_page("--report", arguments.report)
    per_node = arguments.per_node or arguments.report is not None
    tolerance = tolerance_of(arguments)
    for path in arguments.library:
        library.load(path, verbose=False)
    a = load(arguments.a)
    models = {path: load(path) for path in arguments.b}
    inputs = inputs_of(arguments, a, *models.values())
    found = {}
    for path, b in models.items():
        found[path] = compare(
            a,
            b,
            inputs,
            arguments.n,
            rtol=tolerance.rtol,
            atol=tolerance.atol,
            per_node=per_node,
            shapes=shapes_of(arguments.shape),
        )
    if arguments.report is not None:
        page = found[arguments.b[-1]].to_html(b)
        write_text(arguments.report, page)
    if arguments.json:
        facts = {path: _as_json(each) for path, each in found.items()}
        print_json(facts if len(arguments.b) > 1 else facts[arguments.b[0]])
    else:
        for path, each in found.items():
            if len(arguments.b) > 1:
                sys.stdout.write(f"{printable(path)}:\n")
            _print(each, per_node=arguments.per_node)
    return FINE if all(each.equal for each in found.values()) else DIFFERENT


def _print(found: Comparison, *, per_node: bool) -> None:
    titles = ("output", "result", "absolute", "of tolerance", "NaN", "inf")
    rows = [
        (each.name, each.what or "equal", each.absolute, each.share, each.nan, each.inf)
        for each in found.outputs
    ]
    print_table(titles, rows)
    given = found.inputs[0].items()
    shapes = ", ".join(f"{printable(name)} {value.shape}" for name, value in given)
    sys.stdout.write(f"{counted(len(found.inputs), 'input')}: {shapes or 'none'}\n")
    for each in found.paired:
        sys.stdout.write(f"paired by position: {printable(each)}\n")
    print_gaps(found.not_covered)
    if per_node:
        columns = (
            "value",
            "operator",
            "largest",
            "mean",
            "cosine",
            "of tolerance",
            "us",
            "us of A",
        )
        values = [
            (each.name, each.op, each.difference.absolute, each.mean, each.cosine,
             each.difference.share, *map(_microseconds, reversed(each.seconds)))
            for each in found.values
        ]  # fmt: skip
        print_table(columns, values)
        sys.stdout.write(f"{found.node or 'no node that both have differs'}\n")


def _microseconds(seconds: float | None) -> float | str:
    return "" if seconds is None else 1e6 * seconds


def _as_json(found: Comparison) -> dict[str, object]:
    return {
        "equal": found.equal,
        "outputs": [each.as_dict() for each in found.outputs],
        "input_shapes": {name: list(value.shape) for name, value in found.inputs[0].items()},
        "input_sets": len(found.inputs),
        "paired": list(found.paired),
        "not_covered": list(found.not_covered),
        "first_difference": found.node
        and {
            "name": found.node.name,
            "operator": found.node.op,
            "compared": found.node.compared,
            "difference": found.node.difference.as_dict(),
        },
        "values": [each.as_dict() for each in found.values],
    }
