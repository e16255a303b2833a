"""The two sides of a rule on a path: what a match computes, and what replaces it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import passlib._core as _core
from passlib.proof.conditions import _SHORT, Scope, UnknownError
from passlib.proof.equality import Equality, same_tensors
from passlib.proof.meanings import (
    any_type,
    element_of,
    families,
    filled,
    fixed,
    results_of,
)
from passlib.proof.paths import DeadEndError, Path, SkippedError, UnprovenError
from passlib.proof.tensors import (
    PLAIN,
    Extent,
    Node,
    Side,
    Tensor,
    TensorSequence,
    moved_index,
    product,
)

MOST_INPUTS: Final = 3
"""The most values that a starred name stands for."""


class Match:
    """A match of a rule's pattern on a path."""

    def __init__(self, path: Path, sides: Any) -> None:
        self.path = path
        self.sides = sides
        self.scope = Scope(path)
        self.left = Side(is_left=True)
        self.right = Side(is_left=False)
        self.made: dict[str, Any] = {}
        self.inputs: list[Tensor] = []
        self._folding = 0
        path.same_tensors = partial(same_tensors, path)
        self._left = list(sides["where"])
        self._listed = set(_listed(sides))
        self._ranks = dict(_ranks(sides["where"]))
        self._singles = set(_singles(sides))

    # ---- the pattern ----

    def build_left(self) -> None:
        """Choose a match, and compute its results."""
        names: set[str] = set()
        for targets, optional, expression in self.sides["left"]:
            names |= set(_names(expression))
            count = len(targets) or 1
            if optional:
                count -= self.path.choose(optional + 1)
            found = self._matched(expression, count)
            results, node = found
            for number, target in enumerate(targets):
                self.scope.values[target] = results[number] if number < len(results) else None
                if node is not None:
                    self.scope.nodes[target] = node
            self._assume_known()
        for name in names - self.scope.values.keys():
            self.scope.values[name] = None  # of an alternative that is not chosen
        for name in _attribute_names(self.sides["left"]) - self.scope.attributes.keys():
            self.scope.attributes[name] = None

    def assume_conditions(self) -> None:
        """Go on where the conditions are met."""
        for name, term in self._left:
            self._assume_one(name, term)
        self._left = []
        for tensor in self.inputs:
            for low, end, holds in getattr(tensor, "ranges", []):
                if self._implies(tensor, low, end):
                    self.path.assume(holds)

    def _assume_known(self) -> None:
        """Go on where the conditions on what is matched so far are met."""
        scope = self.scope
        while self._left:
            name, term = self._left[0]
            if not all(
                each in scope.terms or each in scope.values or each in scope.attributes
                for each in _names_of(term)
            ):
                return
            self._assume_one(name, term)
            del self._left[0]

    def _assume_one(self, name: str, term: Any) -> None:
        if name:
            self.scope.define(name, term)
        else:
            self.scope.assume(term)

    def _implies(self, tensor: Tensor, low: Any, end: Any) -> bool:
        plain = [
            (op, other)
            for op, other in tensor.facts
            if op in (">=", "<") and not isinstance(other, (Tensor, float))
        ]
        return any(op == ">=" and self.path.proves(other >= low) for op, other in plain) and any(
            op == "<" and self.path.proves(other <= end) for op, other in plain
        )

    def _matched(self, expression: Any, count: int = 1) -> tuple[list[Any], Node | None]:
        chosen = self.path.pick([expression, *expression["alternatives"]])
        kind = chosen["kind"]
        if kind == "name":
            name = chosen["names"][0]
            node = self.scope.nodes.get(name)
            return [self._input(chosen)], node
        if kind == "number":
            made = filled(self.path, chosen["number"], any_type())
            return [made], None
        if kind != "operation":
            raise UnprovenError("a pattern of this form is not understood")
        names = chosen["names"]
        family = self.path.pick(families(names) if self.path.joins else [(each,) for each in names])
        domain, _, op = family[0].rpartition("::")
        node = Node(self.path, self.left, op, [], domain=domain, results=count)
        if len(family) > 1:
            node.family = family
        for each in chosen["inputs"]:
            if each["starred"]:
                name = each["names"][0]
                if name == "_":
                    node.opened = True
                else:
                    node.inputs += self._inputs(name)
                continue
            found, _ = self._matched(each)
            node.inputs.append(found[max(each["output"], 0) if each["kind"] == "operation" else 0])
        while node.inputs and node.inputs[-1] is None:
            node.inputs.pop()
        for setting in chosen["settings"]:
            self._set(node, setting)
        if chosen["output"] > 0:
            raise UnprovenError("an output by its number is not understood")
        if node.op in _BROADCAST and len(node.inputs) == 2 and min(self.path.opsets) >= 7:
            for one, other in (node.inputs, reversed(node.inputs)):
                if one is not None and other is not None and one.name in self._singles:
                    self._set_single(one, other.rank)
        return list(results_of(node)), node

    def _input(self, expression: Any) -> Tensor | None:
        name = expression["names"][0]
        if name in self.scope.values:
            found: Tensor | None = self.scope.values[name]
            return found
        if expression["optional"] and self.path.choose(2):
            made = None
        else:
            made = self._fresh(name, expression["constraint"])
        if name != "_":
            self.scope.values[name] = made
        return made

    def _fresh(self, name: str, constraint: str = "") -> Tensor:
        made = Tensor(self.path, name, any_type())
        if constraint not in ("", ":param", ":value"):
            raise UnprovenError(f"the constraint {constraint!r} is not understood")
        made.is_constant = constraint == ":param"
        made.is_listed = name in self._listed  # type: ignore[attr-defined]
        if name in self._ranks:
            made.ranks = self._ranks[name]
        self.inputs.append(made)
        return made

    def _set_single(self, tensor: Tensor, rank: int) -> None:
        """Choose the rank of a constant of one element that is broadcast to another rank.

        Any rank up to the other's is as good as 0.
        """
        if not tensor.has_rank:
            path = self.path
            chosen = path.counted(path.pick([0, *range(rank + 1, path.most_axes + 1)]))
            tensor.set_shape([1] * chosen)

    def _inputs(self, name: str) -> list[Tensor]:
        if name not in self.scope.values:
            count = self.path.choose(MOST_INPUTS + 1)
            self.path.bounds.add(f"up to {MOST_INPUTS} values of *{name}")
            self.scope.values[name] = [self._fresh(f"{name}{number}") for number in range(count)]
        return list(self.scope.values[name])

    def _set(self, node: Node, setting: Any) -> None:
        """Note what the pattern says of an attribute."""
        key, relation, optional, texts, name, _ = setting
        place = _core.moved_input(node.op, key, 99)
        is_scalar = place is not None and place[1] in ("scalar", "float")
        if relation == "absent":
            node.attributes[key] = None
        elif relation == "bind":
            known = self.scope.attributes.get(name)
            if known is not None:
                if is_scalar:
                    node.attributes[key] = known[0].attributes[known[1]]
                else:
                    node.linked[key] = known
                return
            if is_scalar:
                scalar = self._fresh(f"${name}")
                scalar.set_rank(0)
                scalar.is_constant = True
                if (
                    place is not None
                    and node.inputs
                    and node.inputs[0] is not None
                    and place[1] == "scalar"
                ):
                    scalar.type = node.inputs[0].type
                node.attributes[key] = None if optional and self.path.choose(2) else scalar
            else:
                node.bound[key] = optional
            self.scope.attributes[name] = (node, key)
        elif relation == "equal":
            if optional and self.path.choose(2):
                node.attributes[key] = None
            else:
                node.attributes[key] = _value_of(self.path.pick(texts))
        else:
            raise UnprovenError(f"{node.op}: any other {key!r} is possible")

    # ---- the replacement ----

    def build_right(self) -> None:
        """Compute what replaces the results."""
        for targets, _, expression in self.sides["right"]:
            count = sum(
                1 for name in targets if name not in self.scope.values or self.scope.values[name]
            )
            results = self._replaced(expression, max(count, 1))
            for name, tensor in zip(targets, results, strict=False):
                self.made[name] = tensor

    def _replaced(self, expression: Any, count: int = 1) -> list[Any]:
        kind = expression["kind"]
        if kind == "name":
            name = expression["names"][0]
            if name == "_":
                return [None]
            if name in self.made:
                return [self.made[name]]
            self._keep(self.scope.values[name])
            return [self.scope.values[name]]
        if kind == "number":
            return [filled(self.path, expression["number"], any_type())]
        if kind == "constant":
            return [self._constructed(expression)]
        op, copied = expression["names"][0], None
        if op.startswith("@"):
            copied = self.scope.nodes[op[1:]]
            op = copied.op
            domain = copied.domain
        else:
            domain, _, op = op.rpartition("::")
        for setting in expression["settings"]:
            if setting[1] == "spread":
                copied = self.scope.nodes[setting[4]]
        node = Node(self.path, self.right, op, [], domain=domain, results=count)
        node.folded = self._folding > 0
        if copied is not None:
            node.attributes = dict(copied.attributes)
            node.chosen = dict(copied.chosen)
            node.bound, node.linked = dict(copied.bound), dict(copied.linked)
            node.copied = True
            if (
                copied.op == op
                and copied.attributes.keys() <= node.attributes.keys()
                and not [setting for setting in expression["settings"] if setting[1] != "spread"]
            ):
                node.origin = copied
            if copied.op == op:
                node.family = copied.family
                node.family_types = tuple(
                    None if each is None else each.type for each in copied.inputs
                )
            inputs = len(expression["inputs"])
            for name in ("shape", "axes", "starts", "ends", "steps", "pads", "repeats", "split"):
                place = _core.moved_input(op, name, 99)
                if place is not None and place[0] < inputs:
                    node.attributes.pop(name, None)
        numbers: list[int] = []
        for each in expression["inputs"]:
            if each["starred"]:
                node.inputs += self._starred(each["names"][0])
                continue
            if each["kind"] == "number":
                numbers.append(len(node.inputs))
            node.inputs += self._replaced(each)[:1]
        while node.inputs and node.inputs[-1] is None:
            node.inputs.pop()
        others = [
            each
            for place, each in enumerate(node.inputs)
            if place not in numbers and each is not None
        ]
        for number_place in numbers:
            if others:
                number = expression["inputs"][number_place]["number"]
                node.inputs[number_place] = filled(self.path, number, others[0].type)
        for key, relation, _, _, _, term in expression["settings"]:
            if relation == "spread":
                continue
            try:
                with self.path.opened():
                    value = self.scope.term(term)
            except UnknownError:
                node.attributes.pop(key, None)
                node.chosen.pop(key, None)
                node.attributes[key] = None
                continue
            node.linked.pop(key, None)
            node.attributes[key] = list(value) if isinstance(value, list) else value
        return list(results_of(node))

    def _keep(self, value: Tensor | None) -> None:
        """Note what may fail in the operations of the match that make a value, which stay."""
        pending, seen = [value], set()
        while pending:
            each = pending.pop()
            node = None if each is None else each.node
            if node is not None and id(node) not in seen:
                seen.add(id(node))
                self.right.conditions += node.conditions
                pending += node.inputs

    def _starred(self, name: str) -> list[Any]:
        found = self.scope.values[name]
        return list(found)

    def _constructed(self, expression: Any) -> Any:
        path, name = self.path, expression["names"][0]
        inputs = expression["inputs"]
        if name == "fold":
            if any(self._is_absent(each) for each in inputs):
                return None
            self._folding += 1
            made = self._replaced(inputs[0])[0]
            self._folding -= 1
            return made
        if name == "either":
            for each in inputs:
                if not self._is_absent(each):
                    return self._replaced(each)[0]
            return None
        with path.opened():
            try:
                terms = [self.scope.term(term) for term in expression["terms"]]
            except UnknownError:
                raise SkippedError from None
        if name in _SHORT or name == "bool":
            kind = fixed(path, _SHORT.get(name, name))
            (value,) = terms
            if isinstance(value, list):
                made = Tensor(
                    path, name, kind, [len(value)], lambda index: _nth(value, index, kind)
                )
                if name in ("i64", "i32"):
                    made.content = value
            else:
                made = filled(path, _plain(value), kind)
                if name in ("i64", "i32"):
                    made.content = value
            made.is_constant = True
            made.is_input = False
            return made
        failing = list(self.right.conditions)
        source = self._replaced(inputs[0])[0]
        if source is None:
            return None
        if name in ("like", "shape_of"):
            self.right.conditions = failing  # only type or shape of the value stay
        if name == "shape_of":
            return results_of(Node(path, self.right, "Shape", [source]))[0]
        if name == "like":
            return filled(path, _plain(terms[-1]), source.type)
        if name == "flat":
            total = product(source.shape)
            if len(terms) > 0 and terms[-1] is not None:
                wanted = terms[-1]
                if not path.same(total, wanted) and path.decide(total == 1):
                    return _repeated(path, source, wanted)
                with path.opened():
                    path.assume(total == wanted)
            return _arranged(path, source, [total])
        if name == "aligned":
            rank, axis = self.scope._int(terms[-1]), terms[-2]
            if not isinstance(axis, int):
                if path.decide(path.z3.Or(axis < 0, axis >= rank)):
                    raise SkippedError
                axis = path.concrete(axis, 0, rank)
            if not 0 <= axis < rank:
                raise SkippedError
            sizes: list[Any] = [1] * rank
            sizes[axis] = product(source.shape)
            return _arranged(path, source, sizes)
        if name == "transposed":
            node = Node(path, self.right, "Transpose", [source])
            order = list(range(source.rank))
            node.attributes["perm"] = [*order[:-2], order[-1], order[-2]]
            return results_of(node)[0]
        raise UnprovenError(f"the constant {name} is not understood")

    def _is_absent(self, expression: Any) -> bool:
        kind = expression["kind"]
        if kind == "name":
            name = expression["names"][0]
            return (
                name == "_"
                or (name not in self.made and self.scope.values.get(name) is None)
                or (name in self.made and self.made[name] is None)
            )
        if kind == "number":
            return False
        if kind == "constant" and expression["names"][0] == "either":
            return all(map(self._is_absent, expression["inputs"]))
        return any(map(self._is_absent, expression["inputs"]))


def _nth(items: Sequence[Any], index: tuple[Any, ...], kind: Any) -> Any:
    if isinstance(index[0], int):
        return element_of(_plain(items[index[0]]), kind)
    if not items:
        raise DeadEndError
    return Extent(items[0]) if len(items) == 1 else _raise("an item at an open place")


def _raise(reason: str) -> Any:
    raise UnprovenError(reason)


def _plain(value: Any) -> Any:
    from passlib.proof.conditions import ValueOf

    return value.tensor if isinstance(value, ValueOf) else value


def _repeated(path: Path, source: Tensor, count: Any) -> Tensor:
    element = source.at((0,) * source.rank)
    made = Tensor(path, "flat", source.type, [count], lambda index: element)
    made.is_constant = True
    return made


def _arranged(path: Path, source: Tensor, shape: Sequence[Any]) -> Tensor:
    made = Tensor(
        path,
        source.name,
        source.type,
        shape,
        lambda index: source.at(moved_index(path, index, shape, source.shape)),
    )
    made.order = source.in_order
    made.is_constant = True
    return made


def _value_of(text: str) -> Any:
    text = text.strip()
    try:
        value = json.loads(text)
    except ValueError:
        return text.strip("\"'")
    return value


def _names(expression: Any) -> Iterator[str]:
    for each in [expression, *expression["alternatives"]]:
        if each["kind"] == "name" and each["names"][0] != "_":
            yield each["names"][0]
        for inner in each["inputs"]:
            yield from _names(inner)


def _listed(sides: Any) -> Iterator[str]:
    """Yield constants whose numbers a rule uses as a list."""
    pending = [(term, not name) for name, term in sides["where"]]
    for _, _, expression in sides["right"]:
        expressions = [expression]
        while expressions:
            each = expressions.pop()
            expressions += each["inputs"]
            pending += [(term, False) for term in each["terms"]]
            pending += [(setting[5], False) for setting in each["settings"] if setting[5]]
    while pending:
        (kind, text, children), is_claim = pending.pop()
        if (kind, text) == ("call", "value") and not is_claim:
            yield children[0][1]
        claims = kind == "operator" and text in ("and", "or", "not", *_CLAIMS)
        claims = claims or (kind == "call" and text in ("all", "any"))
        pending += [(child, is_claim and claims) for child in children]


_CLAIMS: Final = ("=", "!=", "<", "<=", ">", ">=", "near", "in", "+", "-", "*", "/", "negative")


def _names_of(term: Any) -> Iterator[str]:
    """Yield the names that a term uses, but for those of types and truths."""
    kind, text, children = term
    known = PLAIN | {"true", "false", "opset"}
    if kind in ("attribute", "starred") or (kind == "name" and _SHORT.get(text, text) not in known):
        yield text
    for child in children:
        yield from _names_of(child)


def _attribute_names(statements: Any) -> set[str]:
    found: set[str] = set()

    def look(expression: Any) -> None:
        for each in [expression, *expression["alternatives"]]:
            found.update(setting[4] for setting in each["settings"] if setting[1] == "bind")
            for inner in each["inputs"]:
                look(inner)

    for _, _, expression in statements:
        look(expression)
    return found


def _ranks(where: Any) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield ranks that conditions demand of values, so that no other is tried."""
    for name, term in where:
        if name:
            continue
        kind, text, children = term
        if kind != "operator" or text not in ("=", "in") or not children:
            continue
        call, wanted = children[0], children[1]
        if call[:2] == ("call", "shape") and call[2][0][0] == "name" and wanted[0] == "list":
            yield call[2][0][1], [len(wanted[2])]
        if call[0] != "call" or call[1] != "rank" or call[2][0][0] != "name":
            continue
        if text == "=" and wanted[0] == "integer":
            yield call[2][0][1], [wanted[1]]
        elif text == "in" and all(each[0] == "integer" for each in wanted[2]):
            yield call[2][0][1], [each[1] for each in wanted[2]]


def _singles(sides: Any) -> Iterator[str]:
    """Yield constants that must have one element, and whose shape counts for nothing else."""
    demanded: set[str] = set()
    shown: list[str] = []
    for name, term in sides["where"]:
        if not name:
            demanded.update(_demanded(term))
        shown += _shown(term)
    used = [name for _, _, expression in sides["left"] for name in _names(expression)]
    pending = [expression for _, _, expression in sides["right"]]
    while pending:
        each = pending.pop()
        pending += each["inputs"]
        if each["kind"] == "name":
            shown += each["names"]
        for term in [*each["terms"], *(setting[5] for setting in each["settings"] if setting[5])]:
            shown += _shown(term)
    yield from (name for name in demanded if name not in shown and used.count(name) == 1)


def _demanded(term: Any) -> Iterator[str]:
    """Yield the constants that a condition demands to have one element where they are given."""
    kind, text, children = term
    if (kind, text) == ("call", "scalar"):
        yield children[0][1]
    elif (kind, text) == ("operator", "and"):
        for child in children:
            yield from _demanded(child)
    elif (kind, text) == ("operator", "or") and len(children) == 2:
        first, second = children
        if first[:2] == ("operator", "not") and first[2][0][:2] == ("call", "given"):
            yield from (name for name in _demanded(second) if name == first[2][0][2][0][1])


def _shown(term: Any) -> Iterator[str]:
    """Yield the names in a term whose shapes count, but for bounds of ranks."""
    kind, text, children = term
    if (kind, text) == ("operator", "not") and children[0][:2] != ("call", "given"):
        yield from _names_of(term)
    if kind in ("name", "starred"):
        yield text
    if kind == "call" and text in ("value", "scalar", "given", "finite", "signbit", "type"):
        return
    is_bound = (kind, text) == ("operator", "<=") and children[0][:2] == ("call", "rank")
    for child in children[1:] if is_bound else children:
        yield from _shown(child)


_BROADCAST: Final = ("Add", "Sub", "Mul", "Div")


# ---- comparison ----


def compare_failures(match: Match) -> None:
    """Prove that the replacement fails where the match does.

    Raises
    ------
    UnprovenError
    """
    path = match.path
    left, right = match.left.conditions, match.right.conditions
    for condition in right:
        path.solver.add(condition)
    for condition in left:
        is_there = any(_is_same(condition, each) for each in right)
        if not is_there and not path.proves(condition):
            raise UnprovenError("the pattern can fail where the replacement does not")


def compare(match: Match, *, exact: bool) -> None:
    """Prove that the replacement is what the match computes where it does not fail.

    Raises
    ------
    UnprovenError
        With the reason.
    """
    path = match.path
    left = match.left.conditions
    for condition in match.right.conditions:
        is_there = any(_is_same(condition, each) for each in left)
        if not is_there and not path.proves(condition):
            raise UnprovenError("the replacement can fail where the pattern does not")
    for name, made in match.made.items():
        wanted = match.scope.values.get(name)
        if not any(name in targets for targets, _, _ in match.sides["left"]) or wanted is None:
            continue
        if made is None:
            raise UnprovenError(f"nothing replaces {name!r}")
        with path.scope():
            _compare(path, wanted, made, exact)


def _is_same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) or isinstance(other, bool) or bool(one.eq(other))


def _compare(path: Path, one: Tensor, other: Tensor, exact: bool) -> None:
    if one is other:
        return
    if isinstance(one, TensorSequence) or isinstance(other, TensorSequence):
        raise UnprovenError("a sequence is replaced")
    if one.type != other.type:
        first, second = path.type_names(one.type), path.type_names(other.type)
        if first != second or len(first) != 1:
            raise UnprovenError("the element types may differ")
    if one.rank != other.rank:
        raise UnprovenError(f"the ranks differ: {one.rank} and {other.rank}")
    for mine, its in zip(one.shape, other.shape, strict=True):
        if not path.same(mine, its):
            raise UnprovenError("the shapes may differ")
    index: list[Any] = []
    for size in one.shape:
        if isinstance(size, int) and (one.content is not None or other.content is not None):
            if size == 0:
                return
            index.append(path.choose(size))
            continue
        if isinstance(size, int) and size == 1:
            index.append(0)
            continue
        item = path.number("i")
        path.solver.add(item < size)
        index.append(item)
    if not path.possible(True):
        return
    place = tuple(index)
    if not Equality(path, exact=exact).equal(one.at(place), other.at(place)):
        raise UnprovenError("the elements may differ")
