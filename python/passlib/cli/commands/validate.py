"""``passlib validate``: prints the problems of model files."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.options import add_json
from passlib.cli.status import FINE, UNSOUND
from passlib.cli.tables import print_json
from passlib.errors import FormatError, GraphError, UnsupportedError, printable

DESCRIPTION = "Check model files and print every problem with its place."
EXAMPLE = "passlib validate model.onnx other-symbol.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--dialect", metavar="NAME", help="dialect of the file (default: detected)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the problems of all files; return 3 for errors, not for warnings."""
    from passlib.model.validate import validate

    found = []
    for path in arguments.files:
        try:
            problems = [problem._asdict() for problem in validate(path, arguments.dialect)]
        except (FormatError, GraphError, UnsupportedError) as error:
            problems = [{"severity": "error", "place": "", "message": str(error)}]
        found.append({"file": path, "problems": problems})
    if arguments.json:
        print_json(found)
    else:
        for entry in found:
            path, problems = entry["file"], entry["problems"]
            for problem in problems:
                place = f"{problem['place']}: " if problem["place"] else ""
                text = f"{path}: {problem['severity']}: {place}{problem['message']}"
                sys.stdout.write(f"{printable(text)}\n")
            if not problems:
                sys.stdout.write(f"{printable(path)}: fine\n")
    errors = [p for entry in found for p in entry["problems"] if p["severity"] == "error"]
    return UNSOUND if errors else FINE
