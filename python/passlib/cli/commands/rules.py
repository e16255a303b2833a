"""``passlib rules``: the rules that there are, and whether they do what their examples show."""

from __future__ import annotations

import argparse
import sys

from passlib.cli.options import add_json, complete_by
from passlib.cli.status import DIFFERENT, FINE
from passlib.cli.tables import print_json, print_table
from passlib.errors import PasslibError, counted, did_you_mean, printable

DESCRIPTION = "List rules, show one, or check rules by their examples."
EXAMPLE = "passlib rules --check my.rules"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    name = parser.add_argument("name", nargs="?", metavar="NAME", help="show this rule, or a group")
    complete_by(name, _names)
    parser.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="FILE",
        help="file of rules (repeatable; default: passlib's own)",
    )
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="FILE",
        help="check the rules of this file by their examples (repeatable)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """List, show or check rules."""
    from passlib.passes.rules import Rules, books

    if arguments.check:
        return _check(arguments.check)
    known = [Rules.load(path) for path in arguments.rules] if arguments.rules else books()
    rules = [(book, rule) for book in known for rule in book]
    if arguments.name is not None:
        rules = [each for each in rules if arguments.name in (each[1].name, each[1].group)]
        if not rules:
            near = did_you_mean(arguments.name, _names("", arguments))
            raise PasslibError(f"there is no rule or group {arguments.name!r}{near}")
    if arguments.json:
        print_json(
            [
                {
                    "name": rule.name,
                    "sentence": rule.sentence,
                    "group": rule.group,
                    "exact": rule.exact,
                    "lowers": list(rule.lowers),
                    "file": book.file,
                    "line": rule.line,
                    "text": rule.text,
                }
                for book, rule in rules
            ]
        )
    elif arguments.name is not None:
        sys.stdout.write("\n\n".join(printable(rule.text, "\n") for _, rule in rules) + "\n")
    else:
        rows = [
            (rule.name, "exact" if rule.exact else "rounding", rule.group, rule.sentence)
            for _, rule in rules
        ]
        print_table(("rule", "keeps", "group", "what it does"), rows)
    return FINE


def _names(prefix: str, arguments: argparse.Namespace) -> list[str]:
    """Return the names of rules and groups, for the completion in shells."""
    from passlib.passes.rules import Rules, books

    known = [Rules.load(path) for path in arguments.rules or ()] or books()
    return sorted({name for book in known for rule in book for name in (rule.name, rule.group)})


def _check(paths: list[str]) -> int:
    from passlib.passes.rule_examples import problems
    from passlib.passes.rules import Rules

    status = FINE
    for path in paths:
        rules = Rules.load(path)
        found = [problem for rule in rules for problem in problems(rule)]
        for problem in found:
            sys.stdout.write(f"{printable(path)}: {printable(problem)}\n")
            status = DIFFERENT
        if not found:
            sys.stdout.write(f"{printable(path)}: {counted(len(rules), 'rule')}, all as shown\n")
    return status
