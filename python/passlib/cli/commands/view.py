"""``passlib view``: draws a model as an HTML page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from passlib.cli.outputs import require_page, write_text
from passlib.cli.status import FINE
from passlib.errors import printable
from passlib.model import load

DESCRIPTION = "Draw a model as one HTML page that needs no network."
EXAMPLE = "passlib view model.onnx -o view.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("-o", "--output", metavar="FILE", help="output file (default: MODEL.html)")


def run(arguments: argparse.Namespace) -> int:
    """Write the page, and print its path."""
    name = Path(arguments.model).name
    target = f"{name}.html" if arguments.output is None else arguments.output
    require_page("-o", target)
    page = load(arguments.model).to_html(name)
    sys.stdout.write(f"{printable(write_text(target, page))}\n")
    return FINE
