"""Terms and conditions of rules, evaluated on symbols."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from passlib.proof.meanings import (
    _TYPE_NAMES,
    COMPARED,
    Calculated,
    all_of,
)
from passlib.proof.paths import DeadEndError, Path, SkippedError, Type, UnprovenError
from passlib.proof.tensors import (
    PLAIN,
    REALS,
    WHOLE,
    In,
    Node,
    Symbol,
    Tensor,
    broadcast_shape,
    factors_of,
    product,
)

_SHORT: Final = {"f16": "float16", "f32": "float", "f64": "double", "i8": "int8", "i32": "int32",
                 "i64": "int64", "u8": "uint8"}  # fmt: skip
_NEGATED: Final = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_BITS: Final = {
    **{name: (int(name.lstrip("uint")), name.startswith("int")) for name in WHOLE},
    "bool": (1, False),
}
_DIGITS: Final = {
    "float16": (11, 15),
    "bfloat16": (8, 127),
    "float": (24, 127),
    "double": (53, 1023),
}


class UnknownError(Exception):
    """A term whose value is not known: conditions on it are not met."""


@dataclass(frozen=True)
class ValueOf:
    """The numbers in a constant."""

    tensor: Tensor


@dataclass(frozen=True)
class Claim:
    """A comparison of each element of a constant with a number."""

    tensor: Tensor
    op: str
    other: Any


@dataclass
class Scope:
    """Meanings of the names of a rule on a path.

    Attributes
    ----------
    values : dict
        Tensors, lists of them for starred names, and None for absent ones.
    nodes : dict
        The operations that make named results.
    attributes : dict
        For each $name the operation and the attribute, or None if the match has none.
    terms : dict
        Definitions.
    """

    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    attributes: dict[str, tuple[Node, str] | None] = field(default_factory=dict)
    terms: dict[str, Any] = field(default_factory=dict)
    quotients: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def define(self, name: str, term: Any) -> None:
        """Note the value of a definition, which may be unknown."""
        try:
            self.terms[name] = self.term(term)
        except UnknownError:
            self.terms[name] = _MISSING

    # ---- conditions ----

    def assume(self, term: Any, truth: bool = True) -> None:
        """Go on where a condition is known to be true, or to be false."""
        kind, text, children = term
        if kind == "operator" and text in ("and", "or"):
            if (text == "and") == truth:
                for child in children:
                    self.assume(child, truth)
                return
            if truth and self._follows(children):
                return
            left = []
            for child in children:
                known = self._known(child)
                if known is truth:
                    return
                if known is None:
                    left.append(child)
            self.assume(self.path.pick(left), truth)
            return
        if kind == "operator" and text == "not":
            self.assume(children[0], not truth)
            return
        if not truth and (
            (kind, text) == ("operator", "near") or text in ("same", "zeros", "halves")
        ):
            raise UnprovenError("the negation of this condition is not understood")
        if kind == "call" and text == "either":
            if self._is_open(children[0]) and children[1][1] == str(truth).lower():
                return  # what holds where nothing is known holds everywhere
            try:
                if self._is_open(children[0]) and self.path.choose(2):
                    raise UnknownError
                self._settle(self.claim(children[0]), truth)
            except UnknownError:
                self.assume(children[1], truth)
            return
        try:
            if truth and (kind, text) == ("operator", "=") and children[0][0] == "attribute":
                left, right = self.term(children[0]), self.term(children[1])
                if isinstance(left, Symbol) and isinstance(right, (int, float)):
                    left.node.chosen[left.name] = right
            claim = self.claim(term)
            self._settle(claim, truth)
        except UnknownError:
            raise SkippedError from None
        if truth and self.path.z3.is_eq(claim):
            whole = claim.arg(1)
            if self.path.z3.is_mul(claim.arg(0)):
                self.path.products.append((whole, claim.arg(0)))

    def _follows(self, children: Sequence[Any]) -> bool:
        """Whether an attribute is one of some numbers on all paths that go on from here."""
        if not all(
            each[:2] == ("operator", "=") and each[2][0][0] == "attribute" for each in children
        ):
            return False
        try:
            found = [self.claim(each) for each in children]
        except UnknownError:
            return False
        z3 = self.path.z3
        if not all(isinstance(each, bool) or z3.is_bool(each) for each in found):
            return False
        return bool(self.path.proves(z3.Or(*found)))

    def _known(self, term: Any) -> bool | None:
        """Return whether a condition is true or false on this path without a choice."""
        kind, text, children = term
        if kind == "operator" and text == "not":
            found = self._known(children[0])
            return None if found is None else not found
        if kind == "operator" and text in ("and", "or"):
            all_found: list[bool | None] = [self._known(child) for child in children]
            if (text == "or") in all_found:
                return bool(text == "or")
            return None if None in all_found else bool(text == "and")
        if kind == "call" and text in ("given", "is_whole", "is_real"):
            try:
                found = self.claim(term)
            except UnknownError:
                return None
            return bool(found) if isinstance(found, bool) else None
        if kind == "operator" and text in COMPARED and children[0][:2] == ("call", "rank"):
            value = self.values.get(children[0][2][0][1])
            if isinstance(value, Tensor) and value.has_rank and children[1][0] == "integer":
                return bool(COMPARED[text](value.rank, children[1][1]))
        return None

    def _is_open(self, term: Any) -> bool:
        """Whether the engine may not know a term's value in some model."""
        kind, text, children = term
        shapes = ("rank", "dim", "shape", "size", "last_dims", "type", "broadcast", "broadcasts")
        return (kind == "call" and text in shapes) or any(map(self._is_open, children))

    def _settle(self, claim: Any, truth: bool) -> None:
        if isinstance(claim, Claim):
            tensor, op, other = claim.tensor, claim.op, claim.other
            is_single = tensor.rank == 0 or getattr(tensor, "is_single", False)
            if isinstance(claim, _Any) == truth and not is_single:
                return  # some element does, or does not: nothing follows for each
            if not truth:
                op = "not " + op
            tensor.facts.append((op, other))
            if isinstance(other, ValueOf) and not op.startswith("not "):
                turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
                if other.tensor.rank == 0:
                    other.tensor.facts.append((turned, claim.tensor))
            return
        if isinstance(claim, list):
            if len(claim) != 1:
                raise UnknownError
            self._settle(claim[0], truth)
            return
        if isinstance(claim, bool):
            if claim != truth:
                raise DeadEndError
            return
        if claim is None:
            return
        self.path.assume(claim if truth else self.path.z3.Not(claim))

    def claim(self, term: Any) -> Any:
        """Return a condition as a Python or Z3 truth, a `Claim`, a list of these, or None.

        None is a condition of which nothing is known.
        """
        kind, text, children = term
        if kind == "operator":
            if text == ">" and children[0][:2] == ("call", "size") and children[1][1] == 0:
                # No size is negative; Z3 splits a product that is not 0.
                text = "!="
            if text in _NEGATED:
                return self._compared(text, self.term(children[0]), self.term(children[1]))
            if text == "near":
                left, right = self.term(children[0]), self.term(children[1])
                if isinstance(left, Symbol):
                    left.node.chosen[left.name] = right
                    return True
                return self._compared("=", left, right)
            if text == "in":
                return self._among(self.term(children[0]), children[1][2])
            if text in ("and", "or", "not"):
                found = [self.claim(child) for child in children]
                if any(each is None or isinstance(each, (Claim, list)) for each in found):
                    raise UnprovenError("a condition of this form is not understood")
                z3 = self.path.z3
                combine = {"and": z3.And, "or": z3.Or, "not": z3.Not}[text]
                return combine(*found)
            raise UnprovenError(f"no condition: {text}")
        if kind == "call" and text in _TRUTHS:
            return _TRUTHS[text](self, children)
        found = self.term(term)
        if isinstance(found, (bool, Claim)) or found is None:
            return found
        raise UnprovenError("a condition of this form is not understood")

    def _among(self, left: Any, choices: Sequence[Any]) -> Any:
        values = [self.term(choice) for choice in choices]
        if isinstance(left, Type):
            return self.path.type_in(left, {_type_name(value) for value in values})
        if isinstance(left, (str, int)) and not isinstance(left, bool):
            return left in values
        found = [self._compared("=", left, value) for value in values]
        if all(isinstance(each, bool) for each in found):
            return any(found)
        return self.path.z3.Or(*found)

    def _compared(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, list) and isinstance(right, list):
            if op not in ("=", "!="):
                return [self._compared(op, *pair) for pair in zip(left, right, strict=True)]
            if len(left) != len(right):
                return op == "!="
            pairs = [self._compared("=", *pair) for pair in zip(left, right, strict=True)]
            if any(isinstance(each, (Claim, list)) or each is None for each in pairs):
                raise UnprovenError("a comparison of lists of numbers is not understood")
            found = all_of(self.path, pairs)
            return found if op == "=" else _negation(self.path, found)
        if isinstance(left, list) or isinstance(right, list):
            mine = left if isinstance(left, list) else [left] * len(right)
            its = right if isinstance(right, list) else [right] * len(left)
            return [self._compared(op, *pair) for pair in zip(mine, its, strict=True)]
        if isinstance(left, ValueOf):
            return Claim(left.tensor, op, right)
        if isinstance(right, ValueOf):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
            return Claim(right.tensor, turned, left)
        if isinstance(left, _Opset):
            return self.path.opset_where(lambda opset: COMPARED[op](opset, right))
        if isinstance(left, Type) or isinstance(right, Type):
            return self._equal_types(left, right) == (op == "=")
        if isinstance(left, (str, Node)) or isinstance(right, (str, Node)):
            if isinstance(left, Symbol) or isinstance(right, Symbol):
                raise UnprovenError("a text that nobody knows")
            return (left == right) == (op == "=")
        if isinstance(left, (Symbol, Calculated)) or isinstance(right, (Symbol, Calculated)):
            return None
        return COMPARED[op](left, right)

    def _equal_types(self, left: Any, right: Any) -> bool:
        if not isinstance(left, Type):
            left, right = right, left
        if not isinstance(right, Type):
            return self.path.type_in(left, {_type_name(right)})
        if left == right:
            return True
        common = self.path.type_names(left) & self.path.type_names(right)
        if not common:
            return False
        first = self.path.type_name(left)
        return self.path.type_in(right, {first})

    # ---- terms ----

    def term(self, term: Any) -> Any:
        """Return the value of a term.

        Raises
        ------
        UnknownError
            It has none on this path.
        """
        kind, text, children = term
        if kind in ("integer", "real", "text"):
            return text
        if kind == "name":
            return self._named(text)
        if kind == "attribute":
            return self._attribute(text)
        if kind == "starred":
            return self.values[text]
        if kind == "list":
            return [self.term(child) for child in children]
        if kind == "call":
            if text not in _FUNCTIONS:
                if text in _TRUTHS:
                    return _TRUTHS[text](self, children)
                raise UnprovenError(f"the function {text} is not understood")
            return _FUNCTIONS[text](self, children)
        if text == "negative":
            return self._calculated("-", 0, self.term(children[0]))
        if text == "index":
            items = self.term(children[0])
            if isinstance(items, Tensor):
                items = items.numbers()
            if not isinstance(items, list):
                raise UnknownError
            place = self._int(self.term(children[1]))
            if not -len(items) <= place < len(items):
                raise UnknownError
            return items[place]
        if text in ("+", "-", "*", "/", "%"):
            return self._calculated(text, self.term(children[0]), self.term(children[1]))
        return self.claim(term)

    def _named(self, name: str) -> Any:
        if name in self.terms:
            if self.terms[name] is _MISSING:
                raise UnknownError
            return self.terms[name]
        if name in ("true", "false"):
            return name == "true"
        if name in self.values:
            if self.values[name] is None:
                raise UnknownError
            return self.values[name]
        if name == "opset":
            return _Opset()
        if _SHORT.get(name, name) in PLAIN:
            return _SHORT.get(name, name)
        raise UnprovenError(f"{name!r} is not understood")

    def _attribute(self, name: str) -> Any:
        found = self.attributes[name]
        if found is None:
            raise UnknownError
        node, key = found
        value = node.attributes[key] if key in node.attributes else node.chosen.get(key, _MISSING)
        if value is _MISSING:
            value = node.default(key)
        if value is None:
            raise UnknownError
        return value

    def _calculated(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, list) or isinstance(right, list):
            count = len(left) if isinstance(left, list) else len(right)
            mine = left if isinstance(left, list) else [left] * count
            its = right if isinstance(right, list) else [right] * count
            if len(mine) != len(its):
                raise UnknownError
            return [self._calculated(op, *pair) for pair in zip(mine, its, strict=True)]
        names = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}
        odd = (ValueOf, Symbol, Calculated, float)
        if isinstance(left, odd) or isinstance(right, odd):
            if isinstance(left, (int, float)) and isinstance(right, (int, float)):
                if op == "/" and right == 0:
                    raise UnknownError
                plain_of: dict[str, Callable[[Any, Any], Any]] = {
                    "+": operator.add, "-": operator.sub, "*": operator.mul,
                    "/": operator.truediv,
                }  # fmt: skip
                return plain_of[op](left, right)
            if op not in names:
                raise UnknownError
            plain = [each.tensor if isinstance(each, ValueOf) else each for each in (left, right)]
            return Calculated(names[op], *plain)
        if op == "+":
            return left + right
        if op == "-":
            return left - right
        if op == "*":
            return left * right
        if isinstance(left, int) and isinstance(right, int):
            if right == 0:
                raise UnknownError
            return (
                left % right
                if op == "%"
                else (left // right if left % right == 0 else left / right)
            )
        self.path.assume(right >= 1)
        if op == "%":
            return left % right
        left, right = _cancelled(self.path, left, right)
        if isinstance(right, int) and right == 1:
            return left
        if not self.path.proves(left % right == 0):
            raise UnprovenError("a quotient that may not be whole")
        for one, other, made in self.quotients:
            if self.path.same(one, left) and self.path.same(other, right):
                return made
        made = self.path.number("quotient", None)
        self.path.assume(made * right == left)
        self.quotients.append((left, right, made))
        return made

    def _int(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            if isinstance(value, (Symbol, ValueOf, Calculated, float, str, Type)):
                raise UnknownError
            return self.path.concrete(value, -10, 11)
        return value

    def ints(self, value: Any) -> list[int]:
        """Return a list of numbers, each chosen."""
        return [self._int(each) for each in (value if isinstance(value, list) else [value])]

    def shape(self, term: Any) -> list[Any]:
        """Return the shape of a value, or a list."""
        if term[0] == "name" and isinstance(self.values.get(term[1]), Tensor):
            return list(self.values[term[1]].shape)
        found = self.term(term)
        if isinstance(found, Tensor):
            return list(found.shape)
        if not isinstance(found, list):
            raise UnknownError
        return found

    def tensor(self, term: Any) -> Tensor:
        """Return a value by its name."""
        found = self.values.get(term[1]) if term[0] == "name" else None
        if not isinstance(found, Tensor):
            raise UnknownError
        return found


def _cancelled(path: Path, left: Any, right: Any) -> tuple[Any, Any]:
    """Return a dividend and a divisor without their common factors."""
    mine = factors_of(path.z3, left)
    its = []
    for factor in factors_of(path.z3, right):
        place = next((n for n, each in enumerate(mine) if path.same(each, factor)), None)
        if place is None:
            its.append(factor)
        else:
            del mine[place]
    return product(mine), product(its)


class _Opset:
    """The operator set; compared by the path."""


_MISSING: Final = object()


def _negation(path: Path, condition: Any) -> Any:
    return not condition if isinstance(condition, bool) else path.z3.Not(condition)


def _type_name(value: Any) -> str:
    if isinstance(value, int):
        return _TYPE_NAMES.get(value, "?")
    return str(value)


def _normalized(scope: Scope, value: Any, rank: Any) -> Any:
    path = scope.path
    if isinstance(value, list):
        return [_normalized(scope, each, rank) for each in value]
    if isinstance(value, int) and isinstance(rank, int):
        if not -rank <= value < rank:
            raise UnknownError
        return value % rank
    if isinstance(rank, int):
        known = path.known_axis(value, rank)
        if known is not None:
            return known
        for place in range(rank):
            if path.proves(path.z3.Or(value == place, value == place - rank)):
                return place
        for place in range(rank):
            if path.decide(path.z3.Or(value == place, value == place - rank)):
                return place
        raise UnknownError
    raise UnknownError


def _dim(scope: Scope, children: Any) -> Any:
    shape = scope.shape(children[0])
    place = _normalized(scope, scope.term(children[1]), len(shape))
    if isinstance(place, list):
        raise UnknownError
    return shape[place]


def _rank(scope: Scope, children: Any) -> Any:
    if children[0][0] == "starred":
        found = scope.values[children[0][1]]
        if not found:
            raise UnknownError
        ranks = {each.rank for each in found}
        if len(ranks) != 1:
            raise UnknownError
        return ranks.pop()
    return len(scope.shape(children[0]))


def _value(scope: Scope, children: Any) -> Any:
    tensor = scope.tensor(children[0])
    if tensor.content is not None:
        return tensor.content
    return ValueOf(tensor)


def _select(scope: Scope, children: Any) -> Any:
    items = _list(scope, children[0])
    found = scope.term(children[1])
    made = []
    for given in found if isinstance(found, list) else [found]:
        place = given
        if not isinstance(place, int):
            if isinstance(place, (Symbol, ValueOf, Calculated, float, str, Type)):
                raise UnknownError
            if scope.path.decide(scope.path.z3.Or(place < -len(items), place >= len(items))):
                raise UnknownError
            place = scope.path.concrete(place, -len(items), len(items))
        if not -len(items) <= place < len(items):
            raise UnknownError
        made.append(items[place])
    return made


def _list(scope: Scope, term: Any) -> list[Any]:
    found = scope.term(term)
    if not isinstance(found, list):
        raise UnknownError
    return found


def _without(scope: Scope, children: Any) -> Any:
    items = _list(scope, children[0])
    places = scope.ints(scope.term(children[1]))
    away = {_normalized(scope, place, len(items)) for place in places}
    return [item for place, item in enumerate(items) if place not in away]


def _range(scope: Scope, children: Any) -> Any:
    ends = [scope.term(child) for child in children]
    first, end = (0, ends[0]) if len(ends) == 1 else ends
    count = scope.path.z3.simplify(scope.path.z3.IntVal(0) + (end - first))
    if isinstance(first, int) and isinstance(end, int):
        return list(range(first, end))
    if scope.path.z3.is_int_value(count):
        return [first + place for place in range(count.as_long())]
    raise UnknownError


def _concat(scope: Scope, children: Any) -> Any:
    made: list[Any] = []
    for child in children:
        found = scope.term(child)
        made += found if isinstance(found, list) else [found]
    return made


def _compose(scope: Scope, children: Any) -> Any:
    p, q = (scope.ints(_list(scope, child)) for child in children)
    if sorted(p) != list(range(len(p))) or sorted(q) != list(range(len(p))):
        raise UnknownError
    return [p[place] for place in q]


def _invert(scope: Scope, children: Any) -> Any:
    p = scope.ints(_list(scope, children[0]))
    if sorted(p) != list(range(len(p))):
        raise UnknownError
    return [p.index(place) for place in range(len(p))]


def _permute(scope: Scope, children: Any) -> Any:
    items, p = _list(scope, children[0]), scope.ints(_list(scope, children[1]))
    if len(items) not in (len(p), 2 * len(p)) or sorted(p) != list(range(len(p))):
        raise UnknownError
    places = p if len(items) == len(p) else [*p, *(place + len(p) for place in p)]
    return [items[place] for place in places]


def _slice(scope: Scope, children: Any) -> Any:
    items = _list(scope, children[0])
    first, end = (scope._int(scope.term(child)) for child in children[1:])
    if not 0 <= first <= end <= len(items):
        raise UnknownError
    return items[first:end]


def _insert(scope: Scope, children: Any) -> Any:
    items = list(_list(scope, children[0]))
    places = scope.ints(scope.term(children[1]))
    item = scope.term(children[2])
    total = len(items) + len(places)
    if any(not -total <= place < total for place in places):
        raise UnknownError
    away = {place % total for place in places}
    rest = iter(items)
    return [item if place in away else next(rest) for place in range(total)]


def _reshape_to(scope: Scope, children: Any) -> Any:
    """One open size is -1: which one is open depends on the model."""
    sizes = scope.shape(children[0])
    path = scope.path
    # A 0 is never written, as it would stand for an axis of the input.
    for size in sizes:
        path.assume(size != 0)
    open_ones = [place for place, size in enumerate(sizes) if not isinstance(size, int)]
    taken = path.choose(len(open_ones) + 1)
    made = list(sizes)
    if taken:
        made[open_ones[taken - 1]] = -1
    return made


def _either(scope: Scope, children: Any) -> Any:
    try:
        found = scope.term(children[0])
        if scope._is_open(children[0]) and scope.path.choose(2):
            raise UnknownError
        return found
    except UnknownError:
        return scope.term(children[1])


def _operator(node: Node) -> str:
    if node.family:
        raise UnprovenError("operators of a family differ")
    return node.op


def _sized(scope: Scope, children: Any) -> Any:
    return product(scope.shape(children[0]))


def _repeat(scope: Scope, children: Any) -> Any:
    item, count = scope.term(children[0]), scope._int(scope.term(children[1]))
    return [item] * max(count, 0)


def _extreme(op: str) -> Callable[[Scope, Any], Any]:
    def made(scope: Scope, children: Any) -> Any:
        one, other = (scope.term(child) for child in children)
        if any(isinstance(each, (ValueOf, Symbol, Calculated)) for each in (one, other)):
            raise UnprovenError("an extreme of numbers that nobody knows")
        return scope.path.either(COMPARED[op](one, other), one, other)

    return made


def _broadcast(scope: Scope, children: Any) -> Any:
    shapes = []
    for child in children:
        if child[0] == "starred" or isinstance(scope.values.get(child[1]), list):
            shapes += [each.shape for each in scope.values[child[1]]]
        else:
            shapes.append(scope.shape(child))
    total, fits = broadcast_shape(scope.path, shapes)
    for condition in fits:
        scope.path.assume(condition)
    return total


def _channel(scope: Scope, children: Any) -> Any:
    shape = scope.shape(children[0])
    rank = scope._int(scope.term(children[1]))
    others = [place for place, size in enumerate(shape) if not scope.path.decide(size == 1)]
    if len(others) != 1 or len(shape) > rank:
        raise UnknownError
    return others[0] + rank - len(shape)


def _last(scope: Scope, children: Any) -> list[int]:
    count, rank = (scope._int(scope.term(child)) for child in children)
    return list(range(rank - count, rank))


def _last_dims(scope: Scope, children: Any) -> Any:
    shape = scope.shape(children[0])
    count = scope._int(scope.term(children[1]))
    if not 0 <= count <= len(shape):
        raise UnknownError
    return shape[len(shape) - count :]


_FUNCTIONS: Final[dict[str, Callable[[Scope, Any], Any]]] = {
    "rank": _rank,
    "dim": _dim,
    "shape": lambda scope, children: list(scope.shape(children[0])),
    "last_dims": _last_dims,
    "type": lambda scope, children: scope.tensor(children[0]).type,
    "size": _sized,
    "value": _value,
    "op": lambda scope, children: _operator(scope.nodes[children[0][1]]),
    "results": lambda scope, children: scope.nodes[children[0][1]].results,
    "inputs": lambda scope, children: len(scope.values[children[0][1]]),
    "users": lambda scope, children: scope.path.number("users", 0),
    "opset_of": lambda scope, children: 1,
    "broadcast": _broadcast,
    "channel": _channel,
    "range": _range,
    "last": _last,
    "len": lambda scope, children: len(_list(scope, children[0])),
    "product": lambda scope, children: product(_list(scope, children[0])),
    "normalize": lambda scope, children: _normalized(
        scope, scope.term(children[0]), scope.term(children[1])
    ),
    "compose": _compose,
    "invert": _invert,
    "permute": _permute,
    "select": _select,
    "slice": _slice,
    "concat": _concat,
    "without": _without,
    "insert": _insert,
    "reshape_to": _reshape_to,
    "repeat": _repeat,
    "sorted": lambda scope, children: sorted(scope.ints(_list(scope, children[0]))),
    "reversed": lambda scope, children: list(reversed(_list(scope, children[0]))),
    "either": _either,
    "max": _extreme(">="),
    "min": _extreme("<="),
}


# ---- functions that are conditions ----


def _all(scope: Scope, children: Any) -> Any:
    found = scope.claim(children[0])
    if not isinstance(found, list):
        return found
    if any(isinstance(each, (Claim, list)) or each is None for each in found):
        raise UnprovenError("a condition on numbers of a list is not understood")
    return all_of(scope.path, found)


def _any(scope: Scope, children: Any) -> Any:
    found = scope.claim(children[0])
    if isinstance(found, Claim):
        return _Any(found)
    if not isinstance(found, list):
        return found
    if all(isinstance(each, bool) for each in found):
        return any(found)
    return scope.path.z3.Or(*found)


class _Any(Claim):
    """Whether some element compares so."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim.tensor, claim.op, claim.other)


def _broadcasts(scope: Scope, children: Any) -> Any:
    shape, whole = scope.shape(children[0]), scope.shape(children[1])
    if len(shape) > len(whole):
        return False
    z3 = scope.path.z3
    pairs = []
    for size, target in zip(shape, whole[len(whole) - len(shape) :], strict=True):
        if scope.path.same(size, target):
            continue
        if isinstance(size, int):
            pairs.append(size == 1 or size == target)
        else:
            pairs.append(z3.Or(size == 1, size == target))
    return all_of(scope.path, pairs)


def _per_channel(scope: Scope, children: Any) -> Any:
    path = scope.path
    shape, whole = scope.shape(children[0]), scope.shape(children[1])
    axis = _normalized(scope, scope.term(children[2]), len(whole))
    if len(shape) > len(whole):
        return False
    for place, size in enumerate(shape, len(whole) - len(shape)):
        if path.decide(size == 1):
            continue
        if place != axis or not path.decide(size == whole[axis]):
            return False
    return True


def _scalar(scope: Scope, children: Any) -> Any:
    tensor = scope.tensor(children[0])
    if not tensor.is_constant:
        return False
    is_one = scope.path.decide(product(tensor.shape) == 1) if tensor.shape else True
    if is_one:
        for size in tensor.shape:
            scope.path.assume(size == 1)
        tensor.is_single = True  # type: ignore[attr-defined]
    return is_one


def _signbit(scope: Scope, children: Any) -> Any:
    tensor = scope.tensor(children[0])
    if tensor.content is not None:
        raise UnprovenError("the sign of whole numbers")
    return Claim(tensor, "sign", True)


def _same(scope: Scope, children: Any) -> Any:
    one, other = (scope.values.get(child[1]) for child in children)
    if one is None or other is None:
        raise UnknownError
    if one is other:
        return True
    scope.path.unify(one.type, other.type)
    if one.rank != other.rank:
        return False
    for mine, its in zip(one.shape, other.shape, strict=True):
        scope.path.assume(mine == its)
    if other not in one.equals:
        one.equals += other.equals
        one.facts += other.facts
        for each in other.equals:
            each.at, each.order, each.facts = one.at, one.in_order, one.facts
            each.equals = one.equals
    return True


def _lossless(scope: Scope, children: Any) -> Any:
    source, target = (scope.term(child) for child in children)
    if isinstance(source, Type) and isinstance(target, Type):
        return lossless(scope.path.type_name(source), scope.path.type_name(target))
    raise UnprovenError("types that nobody knows")


def lossless(source: str, target: str) -> bool:
    """Whether a Cast keeps each value of a type."""
    if source == target:
        return True
    if source in _BITS and target in _BITS:
        bits, signed = _BITS[source]
        others, target_signed = _BITS[target]
        if target == "bool":
            return False
        return others - target_signed >= bits - signed and (target_signed or not signed)
    if source in _BITS and target in _DIGITS:
        bits, signed = _BITS[source]
        return bits - signed <= _DIGITS[target][0] and bits - signed <= _DIGITS[target][1]
    if source in _DIGITS and target in _DIGITS:
        return _DIGITS[source][0] <= _DIGITS[target][0] and _DIGITS[source][1] <= _DIGITS[target][1]
    return False


def _given(scope: Scope, children: Any) -> Any:
    kind, name, _ = children[0]
    if kind == "attribute":
        try:
            scope._attribute(name)
        except UnknownError:
            return False
        found = scope.attributes[name]
        assert found is not None
        node, key = found
        return node.attributes.get(key, node.chosen.get(key)) is not None
    return scope.values.get(name) is not None


def _finite(scope: Scope, children: Any) -> Any:
    return Claim(scope.tensor(children[0]), "finite", True)


def _zeros(scope: Scope, children: Any) -> Any:
    tensor = scope.tensor(children[0])
    tensor.is_zero = True  # type: ignore[attr-defined]
    tensor.facts += [("=", 0), ("not sign", True)]
    return True


def _halves(scope: Scope, children: Any) -> Any:
    tensor, path = scope.tensor(children[0]), scope.path
    if path.exact:
        raise UnprovenError("halves may differ in the signs of zeros")
    if not tensor.is_constant or not tensor.is_input or not tensor.rank:
        return False
    half = path.number("half")
    path.assume(tensor.shape[-1] == 2 * half)

    def at(index: tuple[Any, ...]) -> Any:
        *outer, place = index
        return In(tensor, (*outer, path.either(place < half, place, place - half)))

    tensor.at = at
    return True


def _contains(scope: Scope, children: Any) -> Any:
    items, item = scope.term(children[0]), scope.term(children[1])
    found = [scope._compared("=", each, item) for each in items]
    if all(isinstance(each, bool) for each in found):
        return any(found)
    return scope.path.z3.Or(*found)


_TRUTHS: Final[dict[str, Callable[[Scope, Any], Any]]] = {
    "all": _all,
    "any": _any,
    "broadcasts": _broadcasts,
    "per_channel": _per_channel,
    "scalar": _scalar,
    "signbit": _signbit,
    "same": _same,
    "lossless": _lossless,
    "given": _given,
    "finite": _finite,
    "zeros": _zeros,
    "halves": _halves,
    "contains": _contains,
    "const": lambda scope, children: scope.tensor(children[0]).is_constant,
    "output": lambda scope, children: None,
    "captured": lambda scope, children: None,
    "is_real": lambda scope, children: scope.path.type_in(scope.term(children[0]), REALS),
    "is_whole": lambda scope, children: scope.path.type_in(scope.term(children[0]), WHOLE),
}
