"""``passlib rename``: renames what has a name in a model."""

from __future__ import annotations

import argparse

from passlib.cli.options import add_output, pairs_of
from passlib.cli.outputs import save_edited
from passlib.cli.status import FINE

DESCRIPTION = "Rename inputs, outputs, weights and nodes of a model."
EXAMPLE = "passlib rename model.onnx input.1=image 637=scores -o out.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("names", nargs="+", metavar="OLD=NEW")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the model with other names."""
    names = pairs_of("OLD=NEW", arguments.names)
    save_edited(arguments, lambda model: model.rename(names))
    return FINE
