"""``passlib prove``: whether rules are right for all sizes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from passlib.cli.options import add_json, whole
from passlib.cli.status import DIFFERENT, FINE, UsageError
from passlib.cli.tables import print_json
from passlib.errors import PasslibError, counted, printable

DESCRIPTION = "Prove rules for all sizes, or show a model that one changes wrongly."
EXAMPLE = "passlib prove my.rules --save found"

_SAID = {
    "exact": "proven, bit for bit",
    "real": "proven in real arithmetic",
    "refuted": "refuted",
    "undecided": "undecided",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="file of rules (default: passlib's own)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="rule or group (repeatable)",
    )
    parser.add_argument(
        "--limit", type=_seconds, default=30.0, metavar="S", help="seconds for a rule (default: 30)"
    )
    parser.add_argument(
        "--jobs", type=whole, default=1, metavar="N", help="prove N rules in parallel"
    )
    parser.add_argument("--fresh", action="store_true", help="ignore kept results")
    parser.add_argument(
        "--save", metavar="FOLDER", help="write counterexamples as ONNX models to this folder"
    )
    add_json(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of seconds > 0, not {text}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Prove rules."""
    from passlib.passes.rules import Rules, books
    from passlib.proof import prove

    if arguments.jobs < 1:
        raise UsageError("--jobs: must be at least 1")
    known = [Rules.load(path) for path in arguments.files] if arguments.files else books()
    rules = [
        rule
        for book in known
        for rule in book
        if not arguments.only or {rule.name, rule.group} & set(arguments.only)
    ]
    if not rules:
        raise PasslibError(f"there is no rule or group {', '.join(map(repr, arguments.only))}")
    outcomes = []
    counts = dict.fromkeys(_SAID, 0)
    for outcome in prove(rules, limit=arguments.limit, fresh=arguments.fresh, jobs=arguments.jobs):
        outcomes.append(outcome)
        counts[outcome.state] += 1
        saved = ""
        if outcome.counterexample is not None and arguments.save:
            saved = str(outcome.counterexample.save(Path(arguments.save), outcome.rule))
        if not arguments.json:
            more = f": {outcome.reason}" if outcome.reason else ""
            if outcome.bounds and not outcome.reason:
                more = f", for {', '.join(outcome.bounds)}"
            text = f"{outcome.rule}: {_SAID[outcome.state]}{more}"
            sys.stdout.write(printable(f"{text}; see {saved}" if saved else text) + "\n")
            sys.stdout.flush()
    if arguments.json:
        print_json(
            [
                {
                    "rule": each.rule,
                    "state": each.state,
                    "reason": each.reason,
                    "cases": each.cases,
                    "tried": each.tried,
                    "seconds": each.seconds,
                    "bounds": list(each.bounds),
                }
                for each in outcomes
            ]
        )
    else:
        parts = [f"{count} {_SAID[state]}" for state, count in counts.items() if count]
        sys.stdout.write(f"{counted(len(rules), 'rule')}: {'; '.join(parts)}\n")
    return DIFFERENT if counts["refuted"] else FINE
