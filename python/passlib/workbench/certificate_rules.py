"""Reads rules in text, and verifies that a step of a certificate is an application of one.

This is a small reading of the language, for rules with one result whose operators have fixed
inputs. Nothing of passlib's own reader or matcher takes part. What this module does not know of a
rule or of a value is not proven: such steps are recomputed only.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from passlib.workbench.certificate_checker import CertificateError, Graph, Node, Step, is_known

Array: TypeAlias = np.ndarray[Any, Any]

_CLAUSES: Final = frozenset(
    (
        "rule",
        "group",
        "onnx",
        "where",
        "exact",
        "rounding",
        "lowers",
        "enables",
        "drops",
        "breaks",
        "target",
    )
)
_TOKEN: Final = re.compile(
    r"""\s*(?:"([^"]*)"|(\d+\.\d+(?:e[+-]?\d+)?|\d+)|([A-Za-z_][\w.]*(?:::\w+)?)|(=>|!=|[^\s\w]))"""
)
_COMMUTATIVE: Final = frozenset(
    ("Add", "Mul", "Max", "Min", "Sum", "Mean", "And", "Or", "Xor", "Equal")
)
_TYPES: Final = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "string": 8, "bool": 9, "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
}  # fmt: skip
Binding: TypeAlias = dict[str, Any]
_DONE: Final = "="
"""Where a binding has the statements that it met."""


class UnsaidError(Exception):
    """Something that this module does not know of a rule or of a value."""


@dataclass
class RuleText:
    """A rule: the operator sets, and the statements of both sides by their results."""

    sets: dict[str, tuple[int, int]] = field(default_factory=dict)
    left: dict[str, Any] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    right: dict[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> str:
        """The name of the only result."""
        return list(self.left)[-1]


def read_rule(text: str) -> RuleText:
    """Read the text of a rule; raises `UnsaidError`."""
    made = RuleText()
    place, open_text = "", ""
    for line in text.splitlines():
        open_text += " " + line.partition("#")[0].strip()
        if sum(map(open_text.count, "([")) > sum(map(open_text.count, ")]")):
            continue
        stated, open_text = open_text.strip(), ""
        word = re.match(r"=>|[\w.]+|", stated)
        first = word.group() if word else ""
        span = re.fullmatch(r"([\w.]+) (\d+)\.\.(\d*)", stated)
        if span:
            domain = "" if span[1] == "onnx" else span[1]
            made.sets[domain] = (int(span[2]), int(span[3] or 10**6))
            place = "left"
            continue
        if first == "example":
            break
        if first in _CLAUSES or first == "=>":
            place = {"where": "where", "=>": "right"}.get(first, "")
            stated = stated[len(first) :].strip()
        if place == "where":
            made.where += _split(stated)
        elif place and stated:
            target, _, expression = stated.partition("=")
            if not target.strip().isidentifier() or not expression:
                raise UnsaidError("a statement with several results")
            reader = _Expressions(expression)
            getattr(made, place)[target.strip()] = reader.expression()
            if reader.left:
                raise UnsaidError(f"what {reader.left[0]!r} means")
    if not made.left or made.result not in made.right:
        raise UnsaidError("a rule with several results")
    return made


def _split(text: str) -> list[str]:
    """Split a text at the commas outside of parentheses."""
    parts, level = [""], 0
    for letter in text:
        level += (letter in "([") - (letter in ")]")
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


class _Expressions:
    """Reads an expression of a side into tuples."""

    def __init__(self, text: str) -> None:
        self.left = [
            f'"{each[1]}"' if each[1] is not None else each[0].strip()
            for each in _TOKEN.finditer(text)
        ]

    def _next(self, wanted: str = "") -> str:
        if not self.left or (wanted and self.left[0] != wanted):
            raise UnsaidError(f"what stands where {wanted or 'an expression'!r} could")
        return self.left.pop(0)

    def _has(self, *wanted: str) -> bool:
        return bool(self.left) and self.left[0] in wanted

    def expression(self) -> Any:
        """Read alternatives."""
        found = [self._item()]
        while self._has("|"):
            self._next()
            found.append(self._item())
        return found[0] if len(found) == 1 else ("choice", found)

    def _item(self) -> Any:
        word = self._next()
        if word == "shared":
            return self._item()
        if word == "-" or word[0].isdecimal():
            return ("number", float(word + self._next() if word == "-" else word))
        if word == "@":
            word += self._next()
        elif not (word[0].isalpha() or word == "_"):
            raise UnsaidError(f"what {word!r} means")
        words = [word]
        ahead = 0
        while self.left[ahead : ahead + 1] == ["|"] and self.left[ahead + 1][0].isalpha():
            ahead += 2
        if self.left[ahead : ahead + 1] in (["("], ["["]) or self._has("(", "["):
            while self._has("|"):
                self._next()
                words.append(self._next())
            return self._operation(words)
        optional = self._has("?") and bool(self._next())
        is_param = self._has(":") and bool(self._next()) and bool(self._next("param"))
        if self._has("["):
            raise UnsaidError("a param with conditions")
        return ("name", word, is_param, optional)

    def _operation(self, words: list[str]) -> Any:
        settings = [self._text("[", "]")] if self._has("[") else []
        if words[0] in ("i64", "like"):
            return (words[0], settings[0] if settings else self._text("(", ")"))
        self._next("(")
        inputs = []
        while not self._has(")"):
            inputs.append(self.expression())
            if not self._has(")"):
                self._next(",")
        self._next(")")
        if self._has(":"):
            raise UnsaidError("a chosen output")
        return ("op", words, _split(settings[0]) if settings else [], inputs)

    def _text(self, first: str, last: str) -> str:
        """Read the text in parentheses."""
        self._next(first)
        found, level = "", 1
        while True:
            word = self._next()
            level += (word in "([") - (word in ")]")
            if level == 0:
                if word != last:
                    raise UnsaidError("parentheses")
                return found
            found += word + ("" if word in "$([*!@" else " ")


class Application:
    """An application of a rule in a graph that has both what is replaced and what replaces it.

    Parameters
    ----------
    graph : Graph
    sets : mapping of str to int
        The operator sets of the model.
    rule : RuleText
    """

    def __init__(self, graph: Graph, sets: Mapping[str, int], rule: RuleText) -> None:
        self.graph = graph
        self.sets = sets
        self.rule = rule
        self.folds = False

    def bind(self, old: str, new: str, given: Mapping[str, str]) -> Binding | None:
        """Return what the names of the rule are bound to; None if it does not fit.

        Raises
        ------
        UnsaidError
            The rule says what this module does not know.
        """
        for domain, (first, last) in self.rule.sets.items():
            if not first <= self.sets.get(domain, 0) <= last:
                return None
        for found in self._match(("name", self.rule.result, False, False), old, dict(given)):
            if set(found[_DONE]) != set(self.rule.left):
                continue
            self.folds = False
            if self._is_made(self.rule.right[self.rule.result], new, found):
                return found
        return None

    def _match(self, wanted: Any, value: str, bound: Binding) -> Iterator[Binding]:
        kind = wanted[0]
        if kind == "choice":
            for each in wanted[1]:
                yield from self._match(each, value, bound)
        elif kind == "number":
            array = self._array(value)
            if array is not None and array.size == 1 and array.ndim == 0:
                close = 1e-3 if array.dtype == np.float16 else 1e-5
                if abs(float(array) - wanted[1]) <= close * max(abs(wanted[1]), 1):
                    yield bound
        elif kind == "name":
            _, name, is_param, optional = wanted
            if name == "_":
                yield bound
            elif (
                bound.get(name, value) != value
                or (not value and not optional)
                or (is_param and value and value not in self.graph.constants)
            ):
                return
            elif name in self.rule.left and name not in bound.get(_DONE, ()):
                seen = {**bound, name: value, _DONE: (*bound.get(_DONE, ()), name)}
                yield from self._match(self.rule.left[name], value, seen)
            else:
                yield {**bound, name: value}
        elif kind == "op":
            node = self.graph.producers.get(value)
            if node is None or value != node.outputs[0] or self._name(node) not in wanted[1]:
                return
            after = self._settings(wanted[2], node, bound)
            if after is not None:
                orders = [wanted[3]]
                if node.op in _COMMUTATIVE and len(wanted[3]) == 2 and not node.domain:
                    orders.append(wanted[3][::-1])
                for order in orders:
                    yield from self._inputs(order, node.inputs, after)
        else:
            raise UnsaidError(f"what {kind} means in a pattern")

    def _inputs(self, wanted: Any, values: Sequence[str], bound: Binding) -> Iterator[Binding]:
        values = [*values, *[""] * (len(wanted) - len(values))]
        if any(values[len(wanted) :]):
            return
        found = [bound]
        for each, value in zip(wanted, values, strict=False):
            found = [after for before in found for after in self._match(each, value, before)]
        yield from found

    @staticmethod
    def _name(node: Node) -> str:
        return f"{node.domain}::{node.op}" if node.domain else node.op

    def _settings(self, stated: Iterable[str], node: Node, bound: Binding) -> Binding | None:
        """Return the binding with the attributes of an operator; None if they do not fit."""
        for text in stated:
            parts = re.fullmatch(r"(!?)\s*(\w+)\s*(\??\s*!?=)?\s*(.*)", text)
            if parts is None:
                raise UnsaidError(f"what [{text}] means")
            absent, key, relation, wanted = parts.groups()
            value = self._attribute(node, key)
            if absent:
                if key in dict(node.attributes):
                    return None
                continue
            if relation is None or "!" in relation:
                raise UnsaidError(f"what [{text}] means")
            if value is None and "?" in relation:
                continue
            if value is None:
                raise UnsaidError(f"the {key} of {node.name!r}")
            if wanted.startswith("$"):
                if bound.setdefault(wanted, value) != value:
                    return None
                bound = dict(bound)
            elif value not in [self._plain(each, bound) for each in wanted.split("|")]:
                return None
        return dict(bound)

    def _plain(self, text: str, bound: Binding) -> Any:
        text = text.strip()
        return text if text.isidentifier() else Terms(self, {}, bound).value(text)

    def _attribute(self, node: Node, key: str) -> Any:
        """Return an attribute, or its default; None if there is neither."""
        stated = dict(node.attributes).get(key)
        if stated is not None:
            value = onnx.helper.get_attribute_value(onnx.AttributeProto.FromString(stated))
        else:
            try:
                schema = onnx.defs.get_schema(node.op, self.sets.get(node.domain, 1), node.domain)
                default = schema.attributes[key].default_value
            except (onnx.defs.SchemaError, KeyError):
                return None
            if not default.name:
                return None
            value = onnx.helper.get_attribute_value(default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def _array(self, value: str) -> Array | None:
        constant = self.graph.constants.get(value)
        return None if constant is None else numpy_helper.to_array(constant.tensor)

    def _is_made(self, wanted: Any, value: str, bound: Binding) -> bool:
        """Whether a value is what the right side says."""
        kind = wanted[0]
        if kind == "name":
            name = wanted[1]
            if name in self.rule.right and name != self.rule.result and name not in bound:
                return self._is_made(self.rule.right[name], value, bound)
            return bool(bound.get(name, "") == value)
        if kind == "op" and wanted[1] == ["fold"]:
            self.folds = True
            return value in self.graph.constants
        if kind in ("number", "i64"):
            array = self._array(value)
            if array is None or (kind == "i64" and array.dtype != np.int64):
                return False
            number = wanted[1] if kind == "number" else Terms(self, {}, bound).value(wanted[1])
            return array.shape == np.shape(number) and bool(
                np.array_equal(array, np.asarray(number, array.dtype))
            )
        node = self.graph.producers.get(value)
        if kind != "op" or len(wanted[1]) != 1 or wanted[1][0] in ("flat", "either", "aligned"):
            raise UnsaidError("the right side")
        if node is None or value != node.outputs[0]:
            return False
        attributes: dict[str, Any] = {}
        op = wanted[1][0]
        if op.startswith("@"):
            like = self.graph.producers[bound[op[1:]]]
            op, attributes = self._name(like), self._all_attributes(like)
        for text in wanted[2]:
            if text.startswith("*"):
                attributes.update(
                    self._all_attributes(self.graph.producers[bound[text[1:].strip()]])
                )
                continue
            key, _, term = text.partition("=")
            attributes[key.strip()] = self._plain(term, bound)
        if self._name(node) != op or self._all_attributes(node) != attributes:
            return False
        values = [*node.inputs, *[""] * (len(wanted[3]) - len(node.inputs))]
        return len(values) == len(wanted[3]) and all(
            self._is_made(each, one, bound) for each, one in zip(wanted[3], values, strict=True)
        )

    def _all_attributes(self, node: Node) -> dict[str, Any]:
        return {key: self._attribute(node, key) for key, _ in node.attributes}


class Terms:
    """Terms of a rule under a binding: as Python has them, but for a few signs."""

    def __init__(self, at: Application, facts: Mapping[str, Any], bound: Binding) -> None:
        self._at = at
        self._facts = facts
        self._bound = bound

    def value(self, text: str) -> Any:
        """Return the value of a term; raises `UnsaidError`."""
        plain = re.sub(r"(?<![<>!:=])=(?!=)", "==", text).replace("$", "_S_").replace("+-", "@")
        try:
            tree = ast.parse(plain.strip(), mode="eval")
            return self._of(tree.body)
        except (SyntaxError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise UnsaidError(f"the value of {text!r}: {error}") from None

    def _of(self, tree: ast.expr) -> Any:
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, (ast.List, ast.Tuple)):
            return [self._of(each) for each in tree.elts]
        if isinstance(tree, ast.Name):
            return self._named(tree.id)
        if isinstance(tree, ast.BoolOp):
            return self._joined(tree)
        if isinstance(tree, ast.UnaryOp):
            value = self._of(tree.operand)
            return not value if isinstance(tree.op, ast.Not) else -value
        if isinstance(tree, ast.Subscript):
            return self._of(tree.value)[self._of(tree.slice)]
        if isinstance(tree, ast.BinOp) and type(tree.op) in _ARITHMETIC:
            return _each(_ARITHMETIC[type(tree.op)], self._of(tree.left), self._of(tree.right))
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            one, two = self._of(tree.left), self._of(tree.comparators[0])
            if isinstance(tree.ops[0], ast.In):
                return one in two
            return _each(_COMPARED[type(tree.ops[0])], one, two)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            return self._called(tree.func.id, tree.args)
        raise UnsaidError("a term")

    def _joined(self, tree: ast.BoolOp) -> bool:
        """Return the truth of ``and`` or ``or``, which one operand may decide."""
        deciding = isinstance(tree.op, ast.Or)
        found = [self._truth_of(each) for each in tree.values]
        if deciding in found:
            return deciding
        if None in found:
            raise UnsaidError("a term")
        return not deciding

    def _truth_of(self, tree: ast.expr) -> bool | None:
        try:
            return truth(self._of(tree))
        except UnsaidError:
            return None

    def _named(self, name: str) -> Any:
        if name.startswith("_S_"):
            return self._bound[f"${name[3:]}"]
        if name in ("true", "false"):
            return name == "true"
        if name == "opset":
            return self._at.sets.get("", 1)
        return _TYPES[name]

    def _called(self, name: str, arguments: list[ast.expr]) -> Any:
        if name in ("all", "any", "len"):
            (value,) = map(self._of, arguments)
            if name == "len":
                return len(value)
            return {"all": all, "any": any}[name](value if isinstance(value, list) else [value])
        first = arguments[0]
        if name == "normalize":
            axes, rank = map(self._of, arguments)
            return [axis % rank for axis in axes] if isinstance(axes, list) else axes % rank
        if name == "without":
            items, places = map(self._of, arguments)
            gone = {place % len(items) for place in places}
            return [item for place, item in enumerate(items) if place not in gone]
        if name == "compose":
            one, two = map(self._of, arguments)
            return [one[place] for place in two]
        if name == "broadcast":
            return self._broadcast([self._shape(each) for each in arguments])
        if name == "is_real":
            return self._of(first) in (1, 10, 11, 16)
        if name == "is_whole":
            return self._of(first) in (2, 3, 4, 5, 6, 7, 12, 13)
        if name == "range":
            return list(range(*map(self._of, arguments)))
        if name == "either":
            try:
                return self._of(first)
            except UnsaidError:
                return self._of(arguments[1])
        if not isinstance(first, ast.Name):
            raise UnsaidError(name)
        bound = self._bound.get(f"${first.id[3:]}" if first.id.startswith("_S_") else first.id, "")
        if name == "given":
            return bound != ""
        if name in ("value", "signbit", "scalar", "finite", "halves", "causal"):
            array = self._at._array(bound)
            if array is None:
                raise UnsaidError(f"the elements of {bound!r}")
            made: dict[str, Callable[[], Any]] = {
                "value": array.tolist,
                "signbit": lambda: np.signbit(array).tolist(),
                "scalar": lambda: array.size == 1,
                "finite": lambda: bool(np.isfinite(array).all()),
                "halves": lambda: _has_equal_halves(array),
                "causal": lambda: _is_causal(array),
            }
            return made[name]()
        kind, shape = self._facts.get(bound, (0, None))
        if name == "type" and kind:
            return kind
        if name == "type" or shape is None:
            raise UnsaidError(f"the type or the shape of {bound!r}")
        if name == "rank":
            return len(shape)
        if name == "shape":
            return list(shape)
        if name == "dim":
            return shape[self._of(arguments[1])]
        if name == "size":
            return math.prod(shape)
        if name == "last_dims":
            count = self._of(arguments[1])
            return list(shape[len(shape) - count :])
        if name == "broadcasts" and isinstance(arguments[1], ast.Name):
            target = self._shape(arguments[1])
            pairs = zip(shape[::-1], target[::-1], strict=False)
            return len(shape) <= len(target) and all(
                one == 1 or _each(operator.eq, one, two) for one, two in pairs
            )
        raise UnsaidError(name)

    def _shape(self, tree: ast.expr) -> list[Any]:
        if not isinstance(tree, ast.Name) or tree.id.startswith("_S_"):
            return list(self._of(tree))
        shape = self._facts.get(self._bound.get(tree.id, ""), (0, None))[1]
        if shape is None:
            raise UnsaidError("a shape")
        return list(shape)

    @staticmethod
    def _broadcast(shapes: list[list[Any]]) -> list[Any]:
        made: list[Any] = []
        for sizes in itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
            larger = [size for size in sizes if size != 1]
            if any(not _each(operator.eq, larger[0], size) for size in larger):
                raise UnsaidError("a shape, because sizes do not fit")
            made.insert(0, larger[0] if larger else 1)
        return made


_ARITHMETIC: Final[dict[Any, Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARED: Final[dict[Any, Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def _each(apply: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
    """Apply an operation to numbers, names of sizes, or lists item by item."""
    if isinstance(one, list) and isinstance(two, list):
        if apply in (operator.eq, operator.ne) and len(one) != len(two):
            return apply is operator.ne
        items = [_each(apply, *pair) for pair in zip(one, two, strict=True)]
        return all(items) if apply is operator.eq else items
    if isinstance(one, list) or isinstance(two, list):
        rest = max(one, two, key=lambda side: isinstance(side, list))
        return [_each(apply, *((x, two) if rest is one else (one, x))) for x in rest]
    if isinstance(one, str) or isinstance(two, str):
        if one == two and apply in (operator.eq, operator.le, operator.ge):
            return True
        raise UnsaidError(f"whether {one!r} is {two!r}")  # sizes of other names may be equal
    return apply(one, two)


def _has_equal_halves(array: np.ndarray[Any, Any]) -> bool:
    """Whether the halves along the last axis are equal."""
    if not array.ndim or array.shape[-1] % 2:
        return False
    first, second = np.split(array, 2, axis=-1)
    return np.array_equal(first, second)


def _is_causal(array: np.ndarray[Any, Any]) -> bool:
    """Whether a mask hides what is above the diagonal, and nothing else."""
    if array.ndim < 2:
        return False
    shown = np.tri(*array.shape[-2:]) == 1
    if array.dtype == bool:
        return bool((array == shown).all())
    return bool(np.where(shown, array == 0, array < -9e37).all())


def truth(value: Any) -> bool:
    """Return whether a value, or each item of a list, is true."""
    return all(map(truth, value)) if isinstance(value, list) else bool(value)


def facts_of(union: onnx.ModelProto) -> dict[str, tuple[int, list[Any] | None]]:
    """Return types and shapes as onnx infers them; open sizes have names."""
    try:
        inferred = onnx.shape_inference.infer_shapes(union, data_prop=True)
    except Exception:  # of onnx: any
        return {}
    found: dict[str, tuple[int, list[Any] | None]] = {}
    graph = inferred.graph
    for value in [*graph.input, *graph.value_info, *graph.output]:
        kind = value.type.tensor_type
        shape: list[Any] | None = None
        if kind.HasField("shape"):
            shape = [
                dim.dim_value if is_known(dim) else dim.dim_param or f"{value.name}.{axis}"
                for axis, dim in enumerate(kind.shape.dim)
            ]
        found[value.name] = (kind.elem_type, shape)
    for tensor in graph.initializer:
        found[tensor.name] = (tensor.data_type, list(tensor.dims))
    return found


@dataclass
class Match:
    """A rule that a step applies: what its names are bound to."""

    application: Application
    binding: Binding
    digest: str = ""

    @property
    def values(self) -> dict[str, str]:
        """The values that the rule's names are bound to."""
        return {
            name: value
            for name, value in self.binding.items()
            if name.isidentifier() and isinstance(value, str)
        }


def match(
    graph: Graph, sets: Mapping[str, int], text: str, step: Step, given: Mapping[str, str]
) -> Match | None:
    """Match a rule where a step replaces one value, in the graph that has both.

    Returns
    -------
    Match or None
        None if it is no application of the rule with the values that are given for its names.

    Raises
    ------
    UnsaidError
        The rule says what this module does not know.
    """
    ((old, new),) = step.same
    application = Application(graph, sets, read_rule(text))
    found = application.bind(old, new, given)
    return None if found is None else Match(application, found)


def doubt(found: Match, facts: Mapping[str, Any]) -> str:
    """Return which condition of a rule is not known to be true; empty if there is none.

    Raises
    ------
    CertificateError
        A condition is false.
    """
    terms = Terms(found.application, facts, found.binding)
    for text in found.application.rule.where:
        try:
            holds = truth(terms.value(text))
        except UnsaidError:
            return f"the condition '{text}' is not known to be true"
        if not holds:
            raise CertificateError(f"the condition '{text}' of the rule is not met")
    return ""


class Reader:
    """Verifies the applications of rules in a certificate.

    Parameters
    ----------
    known : mapping of str to bool
        The SHA-256 of the texts of rules that are read, and whether they are proven. Other texts
        are those of the certificate only, which may say anything.
    """

    def __init__(self, known: Mapping[str, bool]) -> None:
        self._known = known

    def apply(self, graph: Graph, sets: Mapping[str, int], step: Step, text: str) -> Match | None:
        """Return how a step applies its rule, or raise `CertificateError`; None if unknown."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in self._known:
            return None
        if len(step.same) != 1:
            raise CertificateError(f"{step}: a rule replaces one value")
        try:
            found = match(graph, sets, text, step, step.bound)
        except UnsaidError as error:
            raise CertificateError(f"{step}: the rule cannot be verified: {error}") from None
        if found is None:
            old, _ = step.same[0]
            raise CertificateError(f"{step}: the rule does not fit at {old!r}")
        found.digest = digest
        return found

    def judge(self, found: Match, facts: Mapping[str, Any], computed: bool) -> str:
        """Return why an application is not proven; empty if it is."""
        unknown = doubt(found, facts)
        if not self._known[found.digest]:
            return "the rule is not proven"
        if found.application.folds and not computed:
            return "its constants could not be computed"
        return unknown

    def facts(self, union: onnx.ModelProto) -> dict[str, Any]:
        """Return types and shapes of the values of a model."""
        return facts_of(union)
