"""Outcomes of proofs: proven, refuted or undecided; kept by a hash of rule and meanings."""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from passlib.errors import PasslibError
from passlib.passes.rules import Rule, books
from passlib.proof.counterexamples import Counterexample, search
from passlib.proof.prover import Proof
from passlib.proof.prover import prove as prove_on_symbols

KEPT: Final = Path(__file__).with_name("results.json")
TRIES: Final = 60
LIMIT: Final = 20.0


@dataclass(frozen=True)
class Outcome:
    """The result of a proof, or of the attempt.

    Attributes
    ----------
    rule : str
    state : str
        ``exact``: every bit of the results stays; ``real``: the results are equal in real
        arithmetic; ``refuted`` or ``undecided``.
    reason : str
        Why it is not proven.
    cases : int
        Combinations of ranks, types, operator sets and forms that were proven.
    tried : int
        Random models that the rule changed rightly.
    seconds : float
    bounds : tuple of str
        Limits up to which it is proven.
    counterexample : Counterexample or None
    """

    rule: str
    state: str
    reason: str = ""
    cases: int = 0
    tried: int = 0
    seconds: float = 0.0
    bounds: tuple[str, ...] = ()
    counterexample: Counterexample | None = None

    @property
    def is_proven(self) -> bool:
        """Whether the rule is proven."""
        return self.state in ("exact", "real")


@cache
def hash_of_meanings() -> str:
    """Return a hash of the code that proves, without its layout, comments and docstrings."""
    made = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in ("__init__", "outcomes", "models", "counterexamples"):
            tree = ast.parse(path.read_text("utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    node.body = [each for each in node.body if not _is_text(each)]
            made.update(ast.dump(tree).encode())
    return made.hexdigest()


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def hash_of(rule: Rule) -> str:
    """Return the hash under which the outcome of a rule is kept."""
    return hashlib.sha256(f"{hash_of_meanings()}\n{rule.text}".encode()).hexdigest()[:24]


@cache
def kept() -> dict[str, Any]:
    """Return the outcomes that come with passlib, by hash."""
    found: dict[str, Any] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    return found


def prove(rules: Iterable[Rule], *, limit: float = LIMIT, fresh: bool = False) -> Iterator[Outcome]:
    """Prove rules one after another.

    Parameters
    ----------
    rules : iterable of Rule
    limit : float
        Seconds of processor time for each.
    fresh : bool
        Whether kept outcomes count for nothing.

    Yields
    ------
    Outcome
    """
    for rule in rules:
        known = None if fresh else kept().get(hash_of(rule))
        if known is not None:
            yield Outcome(rule.name, **{**known, "bounds": tuple(known.get("bounds", ()))})
            continue
        yield _proven(rule, limit)


def _proven(rule: Rule, limit: float) -> Outcome:
    start = time.process_time()
    try:
        proof = prove_on_symbols(rule, limit)
    except PasslibError:
        raise
    except Exception as error:  # of a form of rule that nobody thought of
        proof = Proof(f"the prover fails: {type(error).__name__}: {error}"[:200], 0)
    # A wrong proof must not pass, so that proven rules are tried, too.
    found, tried = search(rule, TRIES)
    seconds = round(time.process_time() - start, 1)
    if found is not None:
        return Outcome(
            rule.name, "refuted", found.text, tried=tried, seconds=seconds, counterexample=found
        )
    state = "undecided" if proof.reason else "exact" if rule.exact else "real"
    return Outcome(rule.name, state, proof.reason, proof.cases, tried, seconds, bounds=proof.bounds)


def as_kept(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as the file keeps it."""
    made: dict[str, Any] = {"state": outcome.state, "cases": outcome.cases, "tried": outcome.tried}
    made["seconds"] = outcome.seconds
    if outcome.reason:
        made["reason"] = outcome.reason
    if outcome.bounds:
        made["bounds"] = list(outcome.bounds)
    return made


def keep(outcomes: dict[str, Any]) -> None:
    """Write outcomes by hash."""
    KEPT.write_text(json.dumps(outcomes, indent=0, sort_keys=True) + "\n")


def shipped() -> list[Rule]:
    """Return passlib's own rules."""
    return [rule for book in books() for rule in book]
