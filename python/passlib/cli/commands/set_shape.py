"""``passlib set-shape``: sets the shapes of inputs."""

from __future__ import annotations

import argparse

from passlib.cli.options import add_output, sizes_of
from passlib.cli.outputs import save_edited
from passlib.cli.status import FINE

DESCRIPTION = "Set sizes of inputs: numbers, names of open sizes, or ? for open ones."
EXAMPLE = "passlib set-shape model.onnx x:batch,3,224,224 -o out.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("shapes", nargs="+", metavar="NAME:batch,3,?,?")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the model with other shapes."""
    shapes = sizes_of(arguments.shapes)
    save_edited(arguments, lambda model: model.with_shapes(shapes))
    return FINE
