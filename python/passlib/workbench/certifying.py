"""Writes certificates of pipelines: what each step made of which operators.

The models before and after each step are compared as ONNX graphs, so that a certificate judges the
work of any pass. Operators that did not change are paired by structure; what is new is named anew.
A value that keeps its name is taken for the same value, unless computed values differ: passes that
move operators change what names in between mean.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, Final

from passlib.errors import PasslibError, UnsupportedError
from passlib.files.optional import require
from passlib.files.regular import replacing
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.model.edits import whole_content_of
from passlib.passes import Instrument, Rule, StepResult
from passlib.passes.rules import books

_MOST_TRIES: Final = 12
_SECONDS: Final = 300.0


class Certify(Instrument):
    """Keeps what a certificate of a pipeline says, see docs/proof.md.

    Examples
    --------
    >>> import passlib as pl
    >>> from passlib.workbench import Certify
    >>> certify = Certify()
    >>> result = pl.Pipeline("simplify").run(pl.load("model.onnx"), [certify])  # doctest: +SKIP
    >>> result.model.save("out.onnx")  # doctest: +SKIP
    >>> certify.save("model.onnx", "out.onnx", "out.cert.json")  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._steps: list[tuple[str, Model, Model]] = []
        self._before: Model | None = None

    def before_pass(self, step: Step, model: Model) -> None:
        """Keep the model before a step."""
        if model.dialect != "onnx":
            raise UnsupportedError(
                f"certificates are for ONNX models, and this one is of {model.dialect}"
            )
        self._before = model

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Keep the model after a step."""
        assert self._before is not None
        if model is not self._before:
            self._steps.append((str(step), self._before, model))

    def save(
        self,
        before: str | os.PathLike[str],
        after: str | os.PathLike[str],
        certificate: str | os.PathLike[str],
    ) -> None:
        """Write the certificate of the last run.

        Parameters
        ----------
        before, after : path-like
            The files of both models.
        certificate : path-like
            The file to write.

        Raises
        ------
        PasslibError
            The models do not belong to the run, or cannot be certified.
        """
        require("onnx", extra="onnx")
        from passlib.workbench.certificate_checker import CertificateError

        try:
            made = _Certificate(Path(before), Path(after), self._kept()).made()
        except CertificateError as error:
            raise PasslibError(f"{after}: no certificate: {error}") from error
        with replacing(certificate) as target:
            target.write_text(json.dumps(made, indent=1) + "\n", "utf-8")

    def _kept(self) -> list[tuple[str, Model]]:
        """Return the steps that led to the last model, with their results."""
        kept: list[tuple[str, Model]] = []
        first: Model | None = None
        for label, before, after in reversed(self._steps):
            if first is None or after is first:
                kept.append((label, after))
                first = before
        return kept[::-1]


class _Certificate:
    """A certificate while it is made."""

    def __init__(self, before: Path, after: Path, kept: Iterable[tuple[str, Model]]) -> None:
        from passlib.workbench import certificate_checker as checker

        self._checker: Any = checker
        self._contents = [path.read_bytes() for path in (before, after)]
        self._models = [
            checker.load_model(content, path)
            for content, path in zip(self._contents, (before, after), strict=True)
        ]
        checker.require_same_sets(*self._models)
        self._after = checker.read_graph(self._models[1])
        self._rules = {rule.name: rule for book in books() for rule in book}
        # Rules that replace a value by another leave no operator that bears their name.
        proven = known_rules()
        self._dropping = [
            name
            for name, rule in self._rules.items()
            if proven[_stated(rule)["sha256"]] and _drops(rule)
        ]
        self._constants: dict[Any, Any] = {}
        self._snapshots = []
        for label, model in kept:
            content = whole_content_of(model, origins=True)
            graph = checker.read_graph(checker.load_model(content, after))
            self._snapshots.append((label, self._slim(graph)))
        self._snapshots.append(("save", self._after))
        self._banned: set[tuple[int, str, str]] = set()
        self._fitting: dict[int, list[tuple[str, Any]]] = {}

    def _slim(self, graph: Any) -> Any:
        """Let go of the file of a graph; equal constants of all graphs are one."""
        for name, constant in graph.constants.items():
            known = self._constants.get(constant.key)
            if known is None:
                known = self._constants[constant.key] = deepcopy(constant)
            graph.constants[name] = known
        for values in (graph.inputs, graph.types):
            values.update(deepcopy(values))
        return graph

    def made(self) -> dict[str, Any]:
        """Return the certificate as JSON values."""
        settled: set[tuple[int, str, str]] = set()
        for _ in range(_MOST_TRIES):
            replay, steps, places = self._steps()
            wrong = {
                (places[number], old, new): (number, why)
                for number, old, new, why in self._wrong(replay, steps)
            }
            left = wrong.keys() - settled
            if not left:
                break
            # Values behind a wrong pair are computed from it.
            first = min(place for place, _, _ in left)
            keys = {key for key in left if key[0] == first}
            if keys <= self._banned:
                settled |= keys  # outputs, which have no other value to be the same as
            self._banned |= keys
        for number, why in wrong.values():
            steps[number - 1]["believe"] = f"the values differ when they are computed: {why}"
        self._name_rules(replay, steps)
        used = {name for step in steps for name in step["rules"]}
        return {
            "format": self._checker.FORMAT,
            "before": hashlib.sha256(self._contents[0]).hexdigest(),
            "after": hashlib.sha256(self._contents[1]).hexdigest(),
            "rules": {name: _stated(self._rules[name]) for name in sorted(used)},
            "steps": steps,
        }

    def _steps(self) -> tuple[Any, list[dict[str, Any]], dict[int, int]]:
        """Return the last graph, the steps, and the pass of each by their numbers."""
        checker = self._checker
        sets = checker.sets_of(self._models[0])
        replay = checker.Replay(checker.read_graph(self._models[0]), sets)
        self._fitting.clear()
        names = {name: name for name in replay.taken}
        steps: list[dict[str, Any]] = []
        places: dict[int, int] = {}
        for place, (label, graph) in enumerate(self._snapshots):
            change = _Change(checker, replay, graph, names, place, self._banned)
            texts = {name: _stated(rule) for name, rule in self._rules.items()}
            for each in change.steps(label, self._after, self._rules):
                number = len(steps) + 1
                step = checker.read_step(number, each, texts, self._after)
                fitting = self._fitting[number] = []
                replay.apply(step, partial(self._find_rules, step, replay, fitting))
                if each["claim"] == "same" and number not in replay.pairs:
                    each["claim"] = "equal"
                steps.append(each)
                places[number] = place
            names = change.known
        wrong = checker.difference(replay.graph, self._after)
        if wrong:
            raise PasslibError(f"the steps do not lead to the saved model: {wrong}")
        return replay, steps, places

    def _find_rules(self, step: Any, replay: Any, found: list[tuple[str, Any]]) -> None:
        """Find the rules that fit a step in their text."""
        from passlib.workbench.certificate_rules import UnsaidError, match

        if len(step.same) != 1 or (step.constants and not step.nodes):
            return
        for name in step.rules if step.nodes else self._dropping:
            with suppress(UnsaidError):
                made = match(replay.graph, replay.sets, self._rules[name].text, step, {})
                if made is not None:
                    found.append((name, made))

    def _name_rules(self, replay: Any, steps: Sequence[dict[str, Any]]) -> None:
        """Say that a step applies one rule where the conditions of the rule do not fail."""
        from passlib.workbench.certificate_rules import doubt, facts_of

        if not any(self._fitting.values()):
            return
        values = [name for node, _, _ in (*replay.first, *replay.made) for name in node.outputs]
        values += [*replay.given_constants, *replay.added]
        union = self._checker.union_of(replay, *self._models, [*filter(None, values)])
        facts = facts_of(union)
        for number, fitting in self._fitting.items():
            doubts = []
            for name, found in fitting:
                with suppress(self._checker.CertificateError):
                    doubts.append((doubt(found, facts), name, found))
            if doubts:
                _, name, found = min(doubts, key=lambda item: bool(item[0]))
                steps[number - 1].update(claim="rule", rules=[name], bound=found.values)

    def _wrong(self, replay: Any, steps: Sequence[Any]) -> list[tuple[int, str, str, str]]:
        """Return the pairs of values that differ: number of the step, values, and how."""
        listed = [(number, pair) for number in replay.pairs for pair in replay.pairs[number]]
        if not listed:
            return []
        options: dict[str, Any] = {"shapes": {}, "inputs": None, "seconds": _SECONDS, "draws": 1}
        pairs = [pair for _, pair in listed]
        results = self._checker.compared(replay, *self._models, pairs, options)
        return [
            (number, *pair, result.wrong)
            for (number, pair), result in zip(listed, results, strict=True)
            if result.wrong
        ]


def known_rules() -> dict[str, bool]:
    """Return the SHA-256 of the texts of passlib's rules, and whether proofs of them are kept."""
    from passlib.proof import outcomes

    found = outcomes.kept()
    return {
        hashlib.sha256(rule.text.encode()).hexdigest(): (
            found.get(outcomes.hash_of(rule), {}).get("state") in ("exact", "real")
        )
        for rule in outcomes.shipped()
    }


def _drops(rule: Rule) -> bool:
    """Whether a rule replaces a value by one that was there."""
    right = rule.sides["right"]
    return len(right) == 1 and right[0][2]["kind"] == "name"


def _stated(rule: Rule) -> dict[str, str]:
    return {"text": rule.text, "sha256": hashlib.sha256(rule.text.encode()).hexdigest()}


class _Change:
    """A change by one pass: the graph before, as it is replayed, and the graph after."""

    def __init__(
        self,
        checker: Any,
        replay: Any,
        after: Any,
        names: Mapping[str, str],
        place: int,
        banned: set[tuple[int, str, str]],
    ) -> None:
        self._checker = checker
        self._replay = replay
        self._graph = replay.graph
        self._after = after
        self._names = names
        self._place = place
        self._banned = banned
        self._names_of: dict[str, list[str]] = defaultdict(list)
        for name, value in names.items():
            self._names_of[value].append(name)
        self._taken: set[str] = set()
        self._new: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._same: dict[str, str] = {}
        self._matched: set[Any] = set()
        self.known: dict[str, str] = {"": ""}
        """The values that the names of the graph after stand for."""
        self._pair()

    def _now(self, name: str) -> str:
        while name in self._same:
            name = self._same[name]
        return name

    def _pair(self) -> None:
        graph, after = self._graph, self._after
        for name in after.inputs:
            self.known[name] = name
        by_key = {constant.key: name for name, constant in reversed(graph.constants.items())}
        for name, constant in after.constants.items():
            old = self._names.get(name, "")
            if old in graph.constants and graph.constants[old].key == constant.key:
                self.known[name] = old
            elif constant.key in by_key:
                self.known[name] = by_key[constant.key]
            else:
                made = self._fresh(name)
                by_key[constant.key] = made
                self._constants[made] = constant
                self._define(name, made)
        structures: dict[Any, list[Any]] = defaultdict(list)
        for node in graph.nodes.values():
            structures[node.key(str)].append(node)
        for node in after.nodes.values():
            self._pair_node(node, structures)
        for output, value in after.outputs.items():
            old, new = self._now(graph.outputs[output]), self.known[value]
            if old != new:
                self._same[old] = new

    def _pair_node(self, node: Any, structures: Mapping[Any, list[Any]]) -> None:
        key = node.key(self.known.__getitem__)
        old = self._graph.producers.get(self._names.get(node.name, ""))
        found = None
        if (
            old is not None
            and old not in self._matched
            and (old.key(self._now) == key or self._is_rewired(old, key))
        ):
            found = old
        if found is None:
            others = (each for each in structures.get(key, ()) if each not in self._matched)
            found = next((each for each in others if each.key(self._now) == key), None)
        if found is not None:
            self._matched.add(found)
            for name, value in zip(node.outputs, found.outputs, strict=True):
                if name:
                    self._define(name, value)
            return
        made = self._checker.Node(
            node.op,
            node.domain,
            node.attributes,
            [self.known[name] for name in node.inputs],
            [self.known[name] for name in node.captures],
            [self._fresh(name) if name else "" for name in node.outputs],
            node.made_by,
        )
        self._new.append(made)
        for name, value in zip(node.outputs, made.outputs, strict=True):
            if name:
                self._define(name, value)

    def _is_rewired(self, old: Any, key: Any) -> bool:
        """Whether an operator is the same but for inputs that other values may have replaced."""
        mine = old.key(self._now)
        if mine[:3] != key[:3] or mine[5] != key[5] or [*map(len, mine)] != [*map(len, key)]:
            return False
        changed: dict[str, str] = {}
        for one, two in zip((*mine[3], *mine[4]), (*key[3], *key[4]), strict=True):
            if one == two:
                continue
            if not one or not two or changed.setdefault(one, two) != two:
                return False
            if not self._is_gone(one) or not self._may_replace(one, two):
                return False
        self._same.update(changed)
        return True

    def _is_gone(self, value: str) -> bool:
        """Whether no name stands for a value any more."""
        for name in self._names_of[value]:
            now = self.known.get(name)
            if now == value or (now is None and self._after.has(name)):
                return False
        return True

    def _may_replace(self, old: str, new: str) -> bool:
        if (self._place, old, new) in self._banned or self._now(new) == old:
            return False
        first = self._graph.constants.get(old)
        second = self._constants.get(new) or self._graph.constants.get(new)
        return first is None or (second is not None and first.key == second.key)

    def _define(self, name: str, value: str) -> None:
        """Note what a name stands for; what it stood for may be the same."""
        self.known[name] = value
        old = self._names.get(name)
        if old is None or old == value or old in self._same or not self._graph.has(old):
            return
        if self._graph.producers.get(old) in self._matched or old in self._graph.inputs:
            return
        if old not in self._graph.constants and self._may_replace(old, value):
            self._same[old] = value

    def _fresh(self, name: str) -> str:
        made, count = name, 1
        while made in self._replay.taken or made in self._taken:
            count += 1
            made = f"{name}#{count}"
        self._taken.add(made)
        return made

    def steps(self, label: str, last: Any, rules: Mapping[str, Rule]) -> list[dict[str, Any]]:
        """Return the steps as JSON values, each change of its own as one."""
        groups = self._groups()
        by_key = {constant.key: name for name, constant in reversed(last.constants.items())}
        users: dict[str, set[str]] = defaultdict(set)
        for node in self._graph.nodes.values():
            if node in self._matched:
                continue
            for name in node.uses:
                users[name].add(node.name)
        left: list[Any] = []
        made = []
        for group in groups:
            nodes = [item for kind, item in group if kind == "new"]
            constants = [item for kind, item in group if kind == "constant"]
            same = [(item, self._same[item]) for kind, item in group if kind == "same"]
            dead = [item for kind, item in group if kind == "dead"]
            made_before = set(_rules_behind(dead))
            names = [name for name in _rules_behind(nodes) if name not in made_before]
            left += reversed(dead)
            removed = []
            while True:
                free = [n for n in left if not any(users[name] for name in n.outputs if name)]
                if not free:
                    break
                for node in free:
                    left.remove(node)
                    removed.append(node.name)
                    for name in node.uses:
                        users[name].discard(node.name)
            made.append(
                {
                    "pass": label,
                    "claim": _claim(nodes, constants, same),
                    "rules": list(dict.fromkeys(name for name in names if name in rules)),
                    "constants": [self._stated(name, by_key) for name in constants],
                    "nodes": [self._node(node) for node in nodes],
                    "same": [list(pair) for pair in same],
                    "dead": removed,
                    "bound": {},
                    "believe": "",
                }
            )
        return made

    def _stated(self, name: str, by_key: Mapping[Any, str]) -> dict[str, str]:
        constant = self._constants[name]
        source = by_key.get(constant.key, "")
        content = b"" if source else constant.tensor.SerializeToString()
        return {
            "name": name,
            "sha256": constant.key[-1],
            "after": source,
            "tensor": base64.b64encode(content).decode(),
        }

    def _node(self, node: Any) -> dict[str, Any]:
        return {
            "op": node.op,
            "domain": node.domain,
            "attributes": {
                name: self._checker.attribute_as_json(content) for name, content in node.attributes
            },
            "inputs": node.inputs,
            "captures": node.captures,
            "outputs": node.outputs,
        }

    def _groups(self) -> list[list[tuple[str, Any]]]:
        """Return the changes, those together that depend on each other."""
        dead = [node for node in self._graph.nodes.values() if node not in self._matched]
        users: dict[str, list[Any]] = defaultdict(list)
        for node in dead:
            for name in node.uses:
                users[name].append(node)
        items: list[tuple[str, Any]] = [
            *(("constant", name) for name in self._constants),
            *(("new", node) for node in self._new),
            *(("same", name) for name in self._same),
            *(("dead", node) for node in dead),
        ]
        parent = {item: item for item in items}

        def root(item: Any) -> Any:
            while parent[item] != item:
                parent[item] = parent[parent[item]]
                item = parent[item]
            return item

        made: dict[str, tuple[str, Any]] = {name: ("constant", name) for name in self._constants}
        for node in self._new:
            made.update({name: ("new", node) for name in node.outputs if name})
        joins: list[tuple[Any, Any]] = []
        for node in self._new:
            joins += [(("new", node), made[name]) for name in node.uses if name in made]
        for old, new in self._same.items():
            if new in made:
                joins.append((("same", old), made[new]))
            if ("dead", self._graph.producers.get(old)) in parent:
                joins.append((("same", old), ("dead", self._graph.producers[old])))
        for node in dead:
            if any(name in self._same for name in node.outputs):
                continue
            later = [user for name in node.outputs if name for user in users[name]]
            joins += [(("dead", node), ("dead", user)) for user in later[:1]]
        for one, two in joins:
            parent[root(one)] = root(two)
        groups: dict[Any, list[tuple[str, Any]]] = defaultdict(list)
        for item in items:
            groups[root(item)].append(item)
        # Constants that nothing uses are no change.
        return [group for group in groups.values() if any(kind != "constant" for kind, _ in group)]


def _rules_behind(nodes: Iterable[Any]) -> list[str]:
    """Return the names of the rules that made operators."""
    found: list[str] = []
    for text in [text for node in nodes for text in node.made_by]:
        with suppress(ValueError):  # an attribute of the file
            names = json.loads(text)
            if isinstance(names, list):
                found += [name for name in names if isinstance(name, str)]
    return found


def _claim(nodes: Sequence[Any], constants: Sequence[str], same: Sequence[Any]) -> str:
    if nodes:
        return "rewrite"
    if constants and same:
        return "fold"
    return "same" if same else "dead"
