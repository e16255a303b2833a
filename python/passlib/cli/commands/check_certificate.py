"""``passlib check-certificate``: whether a model computes what it was made of computes."""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from passlib.cli.options import add_json, add_shapes, add_timeout, shapes_of
from passlib.cli.status import DIFFERENT, FINE
from passlib.cli.streams import report
from passlib.cli.tables import print_json
from passlib.errors import counted, printable
from passlib.files.optional import require

DESCRIPTION = "Check the certificate of passlib opt --certify, without the code that made it."
EXAMPLE = "passlib check-certificate model.onnx out.onnx out.cert.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("before", metavar="BEFORE")
    parser.add_argument("after", metavar="AFTER")
    parser.add_argument("certificate", metavar="CERTIFICATE")
    add_shapes(parser)
    parser.add_argument("--inputs", metavar="FILE.npz", help="input arrays by input name")
    add_timeout(parser, "time limit of the runs in seconds (default: 300)")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 4 if a step must be believed"
    )
    add_json(parser)


def _order_hint(arguments: argparse.Namespace) -> str:
    """Say which file is which, if the arguments are in another order than the help states."""
    given = (arguments.before, arguments.after, arguments.certificate)
    contents = [Path(path).read_bytes() for path in given]
    places: dict[str, int] = {}
    for place, content in enumerate(contents):
        if content[:1] == b"{":
            places["CERTIFICATE"] = place
    if len(places) != 1:
        return ""
    stated = contents[places["CERTIFICATE"]]
    for place, content in enumerate(contents):
        digest = hashlib.sha256(content).hexdigest()
        for word in ("before", "after"):
            if re.search(rf'"{word}"\s*:\s*"{digest}"'.encode(), stated):
                places[word.upper()] = place
    order = ("BEFORE", "AFTER", "CERTIFICATE")
    if all(places.get(word, place) == place for place, word in enumerate(order)):
        return ""
    said = [f"{word} is {given[places[word]]}" for word in order if word in places]
    return f"; the order is BEFORE AFTER CERTIFICATE, and {', '.join(said)}"


def run(arguments: argparse.Namespace) -> int:
    """Check a certificate and print what is known of each step."""
    require("onnx", extra="onnx")
    from passlib.workbench.certificate_checker import CertificateError, check
    from passlib.workbench.certificate_rules import Reader
    from passlib.workbench.certifying import known_rules

    try:
        verdicts = check(
            arguments.before,
            arguments.after,
            arguments.certificate,
            reader=Reader(known_rules()),
            shapes=shapes_of(arguments.shape),
            inputs=arguments.inputs,
            seconds=arguments.timeout or 300.0,
        )
    except CertificateError as error:
        report("passlib check-certificate", f"{error}{_order_hint(arguments)}")
        return DIFFERENT
    rows: list[dict[str, Any]] = [
        {
            "step": each.step.number,
            "state": each.state,
            "claim": each.step.claim,
            "by": list(each.step.rules) or [each.step.label],
            "reason": each.reason,
        }
        for each in verdicts
    ]
    if arguments.json:
        print_json(rows)
    else:
        for row in rows:
            reason = f": {row['reason']}" if row["reason"] else ""
            by = ", ".join(row["by"])
            text = f"{row['step']:5}  {row['state']:10}  {row['claim']:7}  {by}{reason}"
            sys.stdout.write(printable(text) + "\n")
        counts = Counter(each.state for each in verdicts)
        parts = [f"{counts[state]} {state}" for state in ("proven", "recomputed", "believed")]
        sys.stdout.write(f"{counted(len(rows), 'step')}: {', '.join(parts)}\n")
    is_short = arguments.strict and any(each.state == "believed" for each in verdicts)
    return DIFFERENT if is_short else FINE
