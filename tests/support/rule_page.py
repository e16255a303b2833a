"""The functions in docs/rules.md, from the core, and docs/rule-catalogue.md, from the rules.

Run ``.venv/bin/python tests/support/rule_page.py`` to write them again.
"""

from __future__ import annotations

import re
from pathlib import Path

from passlib import _core
from passlib.passes.rules import Rule, books
from passlib.proof.outcomes import hash_of
from passlib.proof.outcomes import kept as kept_results

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "rules.md"
CATALOGUE = DOCS / "rule-catalogue.md"

_PROVEN = {"exact": " Proven.", "real": " Proven in real arithmetic."}

_HEAD = """\
# Rules of passlib

Each rule with its example; [rules.md](rules.md) describes the language. A standard pass that is a
group applies the rules of the group, as [standard-passes.md](standard-passes.md) describes. Rules
without a group run by `passlib opt --rules` or `pl.Rules` only. An exact rule keeps every bit; the
others are equal in real arithmetic. [Rewrites of other tools](rules-of-others.md) lists what other
tools have, and under which name passlib has it. *Proven* stands for all sizes, see [proofs of
rules](proof.md).
"""


def page() -> str:
    """Return docs/rules.md with the functions as they are now."""
    rows = [f"| `{name}({given})` | {text} |" for name, given, text in _core.rule_functions()]
    made = "\n".join(["| function | |", "|---|---|", *rows])
    part = f"<!-- functions -->\n{made}\n<!-- end of functions -->"
    found = r"(?s)<!-- functions -->\n.*?<!-- end of functions -->"
    return re.sub(found, lambda _: part, PAGE.read_text())


def catalogue() -> str:
    """Return docs/rule-catalogue.md."""
    parts = [_HEAD]
    for book in books():
        parts.append(f"## {Path(book.file).stem.capitalize()}\n")
        parts += map(_section, book)
    return "\n".join(parts)


def _section(rule: Rule) -> str:
    kept = "Exact" if rule.exact else "Rounding"
    group = f", in the group `{rule.group}`" if rule.group else ""
    proof = _PROVEN.get(kept_results().get(hash_of(rule), {}).get("state", ""), "")
    _, _, body = rule.text.partition("\n")
    return (
        f"### {rule.name}\n\n{rule.sentence} {kept}{group}.{proof}\n\n```\n{_dedented(body)}\n```\n"
    )


def _dedented(body: str) -> str:
    """Return what the text of a rule adds to its section, without the indent."""
    lines = [line.removeprefix("  ") for line in body.strip("\n").splitlines()]
    told = ("exact", "rounding")
    kept = [line for line in lines if line not in told and not line.startswith("group ")]
    return "\n".join(kept).strip("\n")


if __name__ == "__main__":
    PAGE.write_text(page())
    CATALOGUE.write_text(catalogue())
