"""Outcomes of proofs: proven, refuted or undecided; kept by a hash of rule and meanings."""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from passlib.errors import PasslibError, short_repr
from passlib.passes.rules import Rule, Rules, books
from passlib.proof import meanings, microsoft
from passlib.proof.counterexamples import Counterexample, search
from passlib.proof.prover import Proof, _operations
from passlib.proof.prover import prove as prove_on_symbols

KEPT: Final = Path(__file__).with_name("results.json")
TRIES: Final = 60
LIMIT: Final = 30.0


@short_repr
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


_OF_ALL_RULES: Final = ("conditions", "equality", "paths", "prover", "sides", "tensors")
"""Modules of which each proof makes use; of the meanings, it uses those of the rule's operators."""


def _plain(name: str) -> ast.Module:
    """Return the code of a module without its layout, comments and docstrings."""
    tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [each for each in node.body if not _is_text(each)]
    return tree


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@cache
def _shared() -> tuple[str, frozenset[str]]:
    """Return the code that all proofs use, and the names that it takes from the meanings."""
    trees = [_plain(name) for name in _OF_ALL_RULES]
    names = {
        each.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == meanings.__name__
        for each in node.names
    }
    return "\n".join(map(ast.dump, trees)), frozenset(names)


@cache
def _definitions() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the code that defines each name of the meanings, and the names that it uses."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    modules = [each.__name__.rpartition(".")[2] for each in (meanings, microsoft)]
    for statement in (statement for each in modules for statement in _plain(each).body):
        used = frozenset(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
        targets = [*getattr(statement, "targets", []), getattr(statement, "target", None)]
        names = [getattr(statement, "name", ""), *(getattr(each, "id", "") for each in targets)]
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            names.append(getattr(getattr(statement.value.func, "value", None), "id", ""))
        for name in filter(None, names):
            code, more = found.get(name, ("", frozenset()))
            found[name] = (code + ast.dump(statement), used | more)
    return found


@cache
def hash_of_meanings(operators: frozenset[str]) -> str:
    """Return a hash of the code that proves rules of these operators."""
    code, names = _shared()
    definitions = _definitions()
    functions = (meanings.MEANINGS.get(op) for op in operators | {"Transpose"})
    pending = [*names, *(each.__name__ for each in functions if each is not None)]
    reached: set[str] = set()
    while pending:
        name = pending.pop()
        if name in definitions and name not in reached:
            reached.add(name)
            pending += definitions[name][1]
    made = hashlib.sha256(code.encode())
    for name in sorted(reached):
        made.update(definitions[name][0].encode())
    return made.hexdigest()


def hash_of(rule: Rule) -> str:
    """Return the hash under which the outcome of a rule is kept."""
    names = {name for each in _operations(rule.sides) for name in each["names"]}
    operators = frozenset(name.rpartition("::")[2] for name in names)
    return hashlib.sha256(f"{hash_of_meanings(operators)}\n{rule.text}".encode()).hexdigest()[:24]


@cache
def kept() -> dict[str, Any]:
    """Return the outcomes that come with passlib, by hash."""
    found: dict[str, Any] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    return found


def prove(
    rules: Iterable[Rule], *, limit: float = LIMIT, fresh: bool = False, jobs: int = 1
) -> Iterator[Outcome]:
    """Prove rules; yield their outcomes in order.

    Parameters
    ----------
    rules : iterable of Rule
    limit : float
        Seconds of processor time for each.
    fresh : bool
        Whether kept outcomes count for nothing.
    jobs : int
        Processes, if more than 1.

    Yields
    ------
    Outcome
    """
    given = [(rule, None if fresh else kept().get(hash_of(rule))) for rule in rules]
    texts = [rule.text for rule, known in given if known is None]
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        made = (map if pool is None else pool.map)(partial(_proven, limit=limit), texts)
        for rule, known in given:
            if known is None:
                yield next(made)
            else:
                yield Outcome(rule.name, **{**known, "bounds": tuple(known.get("bounds", ()))})


def _proven(text: str, limit: float) -> Outcome:
    start = time.process_time()
    (rule,) = Rules(text, registers=False)
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
