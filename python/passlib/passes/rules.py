"""Rules in text, which the core applies, and files that register passes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import passlib._core as _core
from passlib.errors import GraphError, LoadError, PasslibError, PatternError, short_repr
from passlib.files.regular import read_regular
from passlib.library import load
from passlib.library.backends import register, replacing, require_free
from passlib.library.declared import Declaration, Option
from passlib.library.python import Graph, PythonPass
from passlib.model import Model
from passlib.model.graph import ModelGraph
from passlib.model.loading import AnyModel, as_model
from passlib.passes.rewriting import Patterns, run_on_copy
from passlib.passes.rulebook import BOOKS, apply_rules, new_edit


@short_repr
@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    name, sentence, group, text : str
        The group is empty if the rule has none; the text is all of the rule.
    exact : bool
        Whether every bit of the results stays.
    lowers : tuple of str
        The costs that must fall: nodes, bytes, flops, traffic; empty for a rule that enables
        others.
    sets : tuple of (str, int, int)
        Operator sets in which the rule means what it says: domain, first and last version; the last
        is 0 if any later one is meant.
    drops_check : bool
        Whether the pattern may fail where the replacement does not.
    breaks : tuple of str
        Fusions that the rule would prevent, each as target and name: ``ort.MatMulAdd``.
    target : str
        The only target that the rule is for; empty for all.
    examples : tuple of Example
    rules : Rules
        The text that the rule is part of.

    Examples
    --------
    >>> import passlib as pl
    >>> (rule,) = pl.Rules('''
    ... rule reluOfRelu "Relu of Relu is Relu."
    ...   y = Relu(Relu(x))
    ...   => y = Relu(x)
    ...   exact
    ... ''')
    >>> rule
    <rule reluOfRelu: Relu of Relu is Relu.>
    >>> rule.exact, rule.lowers
    (True, ('nodes',))
    """

    name: str
    sentence: str
    group: str
    text: str
    exact: bool
    lowers: tuple[str, ...]
    sets: tuple[tuple[str, int, int], ...]
    drops_check: bool
    breaks: tuple[str, ...]
    target: str
    examples: tuple[Example, ...]
    line: int
    number: int
    rules: Rules

    @property
    def sides(self) -> dict[str, Any]:
        """The pattern, the conditions and the replacement, as the reader has them."""
        return self.rules._book.sides(self.number)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<rule {self.name}: {self.sentence}>"


@dataclass(frozen=True)
class Example:
    """A model before and after, as text and as statements of the reader."""

    text: str
    before: Any
    after: Any


@short_repr
class Rules(Sequence[Rule]):
    """Rules in text, see docs/rules.md: a sequence of rules, and a pass that applies them.

    The pass is a step of any pipeline, and ``optimize_for`` takes it. It has the options ``only``
    and ``skip``, lists of names of rules and groups, and ``target``: rules that state this target
    apply too, and those that break its fusions do not.

    Parameters
    ----------
    text : str
    name : str, optional
        Name of the pass; by default one made of the text.
    file : str
        For messages.
    registers : bool
        Whether the pass can be called by its name.

    Raises
    ------
    PatternError
        The text is not well-formed; the message names file, line and column.
    PasslibError
        Another pass has the name.

    Examples
    --------
    >>> import passlib as pl
    >>> rules = pl.Rules('''
    ... rule reluOfRelu "Relu of Relu is Relu."
    ...   y = Relu(Relu(x))
    ...   => y = Relu(x)
    ...   exact
    ... ''')
    >>> len(rules), rules["reluOfRelu"].sentence
    (1, 'Relu of Relu is Relu.')
    """

    def __init__(
        self, text: str, *, name: str | None = None, file: str = "", registers: bool = True
    ) -> None:
        if not isinstance(text, str):
            raise TypeError(f"rules are text, not {type(text).__name__}")
        self.text = text
        self.file = file
        self._book = _core.RuleBook(text, file)
        if name is None:
            name = "rules:" + hashlib.sha256(text.encode()).hexdigest()[:12]
        exact = all(each["exact"] for each in self._book.rules)
        self.declaration = Declaration(
            name,
            f"Apply {len(self)} rules" + (f" of {Path(file).name}" if file else ""),
            dialects=("onnx",),
            options=(
                Option("only", "text", (), "Apply these rules only.", is_list=True),
                Option("skip", "text", (), "Skip these rules.", is_list=True),
                Option("target", "text", "", "Apply rules for this target, too."),
            ),
            exact=exact,
            library=file or "rules",
            enters_functions=True,
        )
        self._pass = PythonPass(self.declaration, self._run, f"rules {file or name}")
        if registers:
            require_free({name: self._pass}, "cannot register rules: ")
            register({name: self._pass})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, name: str | None = None) -> Rules:
        """Read a file of rules; the pass has the name of the file without its suffix.

        Raises
        ------
        OSError, FormatError
            It cannot be read, or is no regular file.
        PatternError
            It is not well-formed.
        """
        place = Path(path)
        try:
            text = read_regular(place).decode()
        except UnicodeDecodeError as error:
            raise PatternError(f"{path}: no UTF-8 at byte {error.start}") from error
        return cls(text, name=place.stem if name is None else name, file=str(path))

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        made = []
        for number, facts in enumerate(self._book.rules):
            known = {key: facts[key] for key in _PLAIN}
            made.append(
                Rule(
                    **known,
                    lowers=() if facts["enables"] else tuple(facts["lowers"]),
                    sets=tuple(facts["sets"]),
                    breaks=tuple(facts["breaks"]),
                    examples=tuple(Example(*each) for each in facts["examples"]),
                    number=number,
                    rules=self,
                )
            )
        return tuple(made)

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    @overload
    def __getitem__(self, key: int | str) -> Rule: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Rule]: ...
    def __getitem__(self, key: int | str | slice) -> Rule | Sequence[Rule]:
        if not isinstance(key, str):
            return self._rules[key]
        for rule in self._rules:
            if rule.name == key:
                return rule
        raise KeyError(f"there is no rule {key!r}")

    def __call__(self, model: AnyModel, **options: Any) -> Model:
        """Return a model to which the rules were applied; the given one stays as it is.

        Parameters
        ----------
        model : Model
        **options
            ``only`` and ``skip``, names of rules and groups; ``target``.
        """
        return as_model(model).optimize_for(self._pass, **options)

    def __repr__(self) -> str:
        return f"<rules {self.declaration.name}: {len(self)}>"

    def prove(self, *, limit: float = 30.0) -> list[Any]:
        """Prove that the rules keep results, for all sizes; see docs/proof.md.

        Parameters
        ----------
        limit : float
            Seconds of processor time for each rule.

        Returns
        -------
        list of passlib.proof.Outcome

        Raises
        ------
        PasslibError
            z3-solver or ONNX Runtime is not installed.
        """
        return list(importlib.import_module("passlib.proof").prove(self, limit=limit))

    def _chosen(self, only: Sequence[str], skip: Sequence[str], target: str) -> list[int]:
        known = {name for rule in self for name in (rule.name, rule.group) if name}
        for name in (*only, *skip):
            if name not in known:
                raise PasslibError(f"there is no rule or group of rules {name!r}")
        return [
            rule.number
            for rule in self
            if rule.target in ("", target)
            and not (target and any(each.startswith(f"{target}.") for each in rule.breaks))
            and (not only or rule.name in only or rule.group in only)
            and rule.name not in skip
            and rule.group not in skip
        ]

    def _run(
        self, graph: Graph, only: Sequence[str] = (), skip: Sequence[str] = (), target: str = ""
    ) -> None:
        self.apply(graph, self._chosen(only, skip, target))

    def apply(self, graph: Graph, chosen: Sequence[int]) -> dict[str, int]:
        """Apply rules, by their numbers, until none applies.

        Returns
        -------
        dict of str to int
            How often each rule that applied did.

        Raises
        ------
        RuntimeError
            Rules go in a circle, or one contradicts the shape or the type of a result.
        """
        from passlib.passes.standard.facts.running import fold

        counts = apply_rules(self._book, graph, chosen, fold)
        return {rule.name: count for rule, count in zip(self._rules, counts, strict=True) if count}

    def why(self, graph: Graph, node: _core.EditableNode, rule: Rule) -> str:
        """Return why a rule does not apply at a node; empty if it does."""
        return new_edit(graph).why(self._book, rule.number, node)


def why(
    model: AnyModel | ModelGraph,
    pattern: str | Sequence[str] | Rule,
    node: str,
    *,
    shapes: bool = False,
) -> str | None:
    """Return why a pattern does not match, or a rule does not apply, at a node.

    Parameters
    ----------
    model, shapes
        See `passlib.find`. For a rule, shapes and dtypes are always inferred.
    pattern : str, sequence of str or Rule
        See docs/patterns.md; or a rule of `Rules`.
    node : str
        Name of the node of the pattern's first result; nested graphs are searched last.

    Returns
    -------
    str or None
        The first unmet condition of the most successful attempt; None if the pattern matches or the
        rule applies.

    Raises
    ------
    PatternError
        A pattern is malformed.
    GraphError
        There is no such node.

    Examples
    --------
    >>> import passlib as pl
    >>> y = pl.sym.relu(pl.sym.exp(pl.sym.var("x"), name="a"), name="b")
    >>> print(pl.why(y, "relu(relu(x))", "b"))
    relu is needed, and this is 'a' (exp)
    """
    rule = pattern if isinstance(pattern, Rule) else None
    patterns = None if isinstance(pattern, Rule) else Patterns(pattern)
    reasons: list[str] = []

    def look(graph: Graph) -> None:
        graphs: list[_core.EditableGraph] = [graph]
        for each in graphs:
            place = each.find(node)
            if place is not None:
                if rule is not None:
                    reasons.append(rule.rules.why(graph, place, rule))
                if patterns is not None:
                    reasons.append(patterns.why(graph, place))
                return
            graphs += [nested for owner in each.nodes for nested in owner.subgraphs]

    run_on_copy(model, look, shapes or rule is not None)
    if not reasons:
        raise GraphError(f"the graph has no node {node!r}")
    return reasons[0] or None


_PLAIN = ("name", "sentence", "group", "text", "exact", "drops_check", "target", "line")


def books() -> list[Rules]:
    """Read the rules that come with passlib, a book for each file."""
    return [
        Rules(place.read_text("utf-8"), name=place.stem, file=place.name, registers=False)
        for place in sorted(BOOKS.glob("*.rules"))
    ]


def rules_file(backend: PythonPass) -> str | None:
    """Return the file of the rules that a pass applies; None if it is no pass of rules."""
    owner = getattr(backend.body, "__self__", None)
    return owner.file or None if isinstance(owner, Rules) else None


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Reads a file, and writes no ``__pycache__`` next to it."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Write nothing."""


def load_passes(path: str | os.PathLike[str], *, replace: bool = False) -> None:
    """Load a library or a file of rules, or run a Python file that registers passes, once.

    A file of rules becomes a pass that has the name of the file without its suffix.

    Parameters
    ----------
    path : path-like
    replace : bool
        Let the passes take over the names of others, standard ones included.

    Raises
    ------
    LoadError
        The file is not a library, a name is taken, or the file raises an exception, which is the
        cause.
    PatternError
        A file of rules is malformed.
    OSError
        It cannot be read.
    """
    place = Path(path).resolve()
    if place.suffix == ".rules":
        with replacing() if replace else contextlib.nullcontext():
            Rules.load(place)
        return
    if place.suffix != ".py":
        load(path, verbose=False, replace=replace)
        return
    digest = hashlib.sha256(place.read_bytes() + bytes(place)).hexdigest()[:8]
    name = f"{place.stem}@{digest}"
    if name in sys.modules:
        return
    loader = _SourceLoader(name, str(place))
    spec = importlib.util.spec_from_file_location(name, place, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with replacing() if replace else contextlib.nullcontext():
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, PasslibError) or not isinstance(error, Exception):
            raise
        raise LoadError(f"{path}: {type(error).__name__}: {error}") from error
