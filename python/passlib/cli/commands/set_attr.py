"""``passlib set-attr``: sets attributes of a node."""

from __future__ import annotations

import argparse

from passlib.cli.options import add_output
from passlib.cli.outputs import save_edited
from passlib.cli.status import FINE

DESCRIPTION = "Set attributes of a node; a name without = removes the attribute."
EXAMPLE = "passlib set-attr model.onnx conv_1 strides='(2, 2)' auto_pad -o out.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("node", metavar="NODE")
    parser.add_argument("attributes", nargs="+", metavar="NAME[=TEXT]")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Save the model with other attributes."""
    split = [text.partition("=") for text in arguments.attributes]
    texts = {name: value if equals else None for name, equals, value in split}
    save_edited(arguments, lambda model: model.with_attributes(arguments.node, texts))
    return FINE
