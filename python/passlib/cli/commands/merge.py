"""``passlib merge``: makes one ONNX model of two."""

from __future__ import annotations

import argparse

from passlib.cli.options import add_output, pairs_of
from passlib.cli.outputs import require_model
from passlib.cli.status import FINE

DESCRIPTION = "Make one ONNX model of two: outputs of A are inputs of B."
EXAMPLE = "passlib merge backbone.onnx head.onnx --connect features=x -o whole.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A")
    parser.add_argument("second", metavar="B")
    parser.add_argument(
        "--connect",
        action="append",
        metavar="OUTPUT=INPUT",
        help="output of A and input of B (repeatable; default: equal names)",
    )
    parser.add_argument("--prefix", default="", help="put before the names of B")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the merged model."""
    from passlib.model.merging import merge

    require_model("-o", arguments.output, "onnx")
    connect = arguments.connect and pairs_of("--connect", arguments.connect)
    made = merge(arguments.first, arguments.second, connect, prefix=arguments.prefix)
    made.save(arguments.output)
    return FINE
