"""``passlib diff``: what differs between the graphs and weights of two models."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.status import FINE
from passlib.cli.tables import print_json
from passlib.model import load
from passlib.workbench import diff

__all__ = ["DESCRIPTION", "EXAMPLE", "add_arguments", "run"]

DESCRIPTION = "Show what differs between the nodes and weights of two models, by their names."
EXAMPLE = "passlib diff model.onnx out.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace) -> int:
    """Print the difference."""
    found = diff(load(arguments.a), load(arguments.b))
    if arguments.format == "json":
        print_json(found.as_dict())
    else:
        sys.stdout.write(f"{found}\n")
    return FINE
