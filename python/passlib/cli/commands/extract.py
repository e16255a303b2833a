"""``passlib extract``: saves a part of a model."""

from __future__ import annotations

import argparse

from passlib.cli.options import add_output
from passlib.cli.outputs import save_edited
from passlib.cli.status import FINE

DESCRIPTION = "Save the part of a model that computes some values from others."
EXAMPLE = "passlib extract model.onnx --inputs features --outputs scores -o head.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument(
        "--inputs", nargs="+", metavar="NAME", help="values that become inputs (default: as needed)"
    )
    parser.add_argument(
        "--outputs", nargs="+", metavar="NAME", help="values to compute (default: all outputs)"
    )
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the part."""
    save_edited(arguments, lambda model: model.extract(arguments.inputs, arguments.outputs))
    return FINE
