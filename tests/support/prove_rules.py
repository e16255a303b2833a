"""Prove passlib's rules anew, in as many processes as there are cores, and keep the results.

``python tests/support/prove_rules.py SECONDS [RULE...]``; with names, only these rules, and those
whose kept results are of other texts or meanings.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

from passlib.proof.outcomes import as_kept, hash_of, keep, kept, prove, shipped


def main(arguments: list[str]) -> None:
    """Run the command line."""
    limit = float(arguments[0])
    rules = {rule.name: rule for rule in shipped()}
    old = {name: kept()[hash_of(rule)] for name, rule in rules.items() if hash_of(rule) in kept()}
    wanted = [
        name for name in rules if not arguments[1:] or name in arguments[1:] or name not in old
    ]
    made = dict(old)
    chosen = [rules[name] for name in wanted]
    for outcome in prove(chosen, limit=limit, fresh=True, jobs=os.cpu_count() or 1):
        made[outcome.rule] = as_kept(outcome)
        text = f"{outcome.rule}: {outcome.state}, {outcome.seconds} s; {outcome.reason}"
        sys.stdout.write(text.rstrip("; ") + "\n")
        sys.stdout.flush()
        keep({hash_of(rules[each]): made[each] for each in made})
    states = Counter(each["state"] for each in made.values())
    seconds = sum(each["seconds"] for each in made.values())
    sys.stdout.write(f"{len(made)} rules, {dict(states)}, {seconds:.0f} s of processor time\n")


if __name__ == "__main__":
    main(sys.argv[1:])
