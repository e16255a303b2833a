"""``passlib lint``: prints the nodes of a model that a runtime refuses."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from passlib.cli.options import add_json
from passlib.cli.status import FINE, UNSOUND
from passlib.cli.tables import print_json
from passlib.errors import counted, printable

DESCRIPTION = "Show which nodes of an ONNX model a runtime or operator set refuses, and why."
EXAMPLE = "passlib lint model.onnx --target onnxruntime-cpu"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument(
        "--target",
        metavar="NAME",
        required=True,
        help="onnxruntime-cpu, onnxruntime-cuda, tensorrt, opset=N, or the file of a table",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the refused nodes; return 3 if there are any."""
    from passlib.model.lint import lint_with_notes

    found, notes = lint_with_notes(arguments.model, arguments.target)
    if arguments.json:
        facts = map(asdict, found)
        print_json([{"operator" if k == "op" else k: v for k, v in each.items()} for each in facts])
        return UNSOUND if found else FINE
    for each in found:
        sys.stdout.write(f"{printable(str(each))}\n")
    for (op, note), count in notes.items():
        sys.stdout.write(printable(f"note: {op} ({counted(count, 'node')}): {note}") + "\n")
    what = counted(len(found), "node") if found else "nothing"
    sys.stdout.write(f"{arguments.target} refuses {what} of {printable(arguments.model)}\n")
    return UNSOUND if found else FINE
