"""``passlib diff``: compares the graphs and weights of two models."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from passlib.cli.outputs import require_file, write_text
from passlib.cli.status import FINE
from passlib.cli.tables import json_text
from passlib.errors import printable
from passlib.model import load
from passlib.workbench import diff

DESCRIPTION = "Compare the nodes and weights of two models by name."
EXAMPLE = "passlib diff model.onnx out.onnx -o diff.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument(
        "--format", choices=("text", "json", "html"), default="text", help="default: text"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="output file; HTML if it ends in .html"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the difference."""
    target = arguments.output
    if target is not None:
        require_file("-o", target)
    found = diff(load(arguments.a), load(arguments.b))
    form = "html" if target is not None and target.endswith(".html") else arguments.format
    if form == "html":
        text = found.to_html(f"{Path(arguments.a).name} - {Path(arguments.b).name}")
    else:
        text = json_text(found.as_dict()) if form == "json" else f"{found}\n"
    if target is None:
        sys.stdout.write(text)
    else:
        sys.stdout.write(f"{printable(write_text(target, text))}\n")
    return FINE
