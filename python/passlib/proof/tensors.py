"""Tensors of symbolic sizes whose elements are terms, and operations on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from passlib.files.optional import require
from passlib.proof.paths import DeadEndError, Path, Size, Type, UnprovenError

REALS: Final = frozenset({"float16", "bfloat16", "float", "double"})
SIGNED: Final = frozenset({"int8", "int16", "int32", "int64"})
UNSIGNED: Final = frozenset({"uint8", "uint16", "uint32", "uint64"})
WHOLE: Final = SIGNED | UNSIGNED
PLAIN: Final = REALS | WHOLE | {"bool", "string"}


# ---- elements ----


@dataclass(frozen=True, eq=False)
class In:
    """An element of an input."""

    tensor: Tensor
    index: tuple[Size, ...]


@dataclass(frozen=True, eq=False)
class Const:
    """A number."""

    value: Any
    type: Type | None = None


@dataclass(frozen=True, eq=False)
class Extent:
    """A size as a number of elements."""

    size: Size


@dataclass(frozen=True, eq=False)
class Op:
    """An operator of elements; `told` are its attributes."""

    name: str
    args: tuple[Any, ...]
    type: Type
    told: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Choice:
    """One of two elements by a condition on sizes and bound indices."""

    condition: Any
    one: Any
    other: Any


@dataclass(frozen=True, eq=False)
class Reduce:
    """A reduction over indices from 0 below sizes: `body` maps them to an element."""

    name: str
    sizes: tuple[Size, ...]
    body: Callable[..., Any]
    type: Type
    told: tuple[Any, ...] = ()


# ---- tensors ----


class Tensor:
    """A value of the graph.

    Attributes
    ----------
    path : Path
    name : str
    type : Type
    at : callable
        Maps an index to the element there.
    order : callable, optional
        Maps an index of another shape, and that shape, to the element at the same place in order.
    content : list or size, optional
        The whole numbers in it.
    is_constant : bool
    node : Node, optional
        The operation that makes it.
    facts : list
        What conditions state of each element: pairs of a comparison and a number.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        kind: Type,
        shape: Sequence[Size] | None = None,
        at: Callable[[tuple[Size, ...]], Any] | None = None,
    ) -> None:
        self.path = path
        self.name = name
        self.type = kind
        self._shape = None if shape is None else list(shape)
        self.at = at or (lambda index: In(self, tuple(index)))
        self.is_input = at is None
        self.order: Callable[[tuple[Size, ...], Sequence[Size]], Any] | None = None
        self.content: Any = None
        self.is_constant = False
        self.node: Node | None = None
        self.facts: list[tuple[str, Any]] = []
        self.equals: list[Tensor] = [self]
        """The tensors that a condition says are equal: they share `facts` and `equals`."""
        self.ranks: Sequence[int] | None = None
        """Those that a rule demands; None: all up to `Path.most_axes`."""
        self.part = 0

    @property
    def shape(self) -> list[Size]:
        """The sizes; the rank of an input is chosen when it is first asked for."""
        if self._shape is None:
            rank = self.path.count() if self.ranks is None else self.path.pick(self.ranks)
            self._shape = [self.path.number(self.name) for _ in range(rank)]
        return self._shape

    @property
    def has_rank(self) -> bool:
        """Whether the rank is chosen."""
        return self._shape is not None

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def _check_rank(self, rank: int) -> None:
        ranks = self.ranks
        if ranks is None:
            ranks = range(self.path.most_axes + 1)
            self.path.counted(rank)
        if rank not in ranks:
            raise DeadEndError

    def set_rank(self, rank: int) -> None:
        """Go on where it has this rank."""
        if self._shape is None and not self.path.closed:
            self._check_rank(rank)
            self.ranks = [rank]
        if self.rank != rank:
            raise DeadEndError

    def set_shape(self, shape: Sequence[Size]) -> None:
        """Go on where it has this shape."""
        if self._shape is None and self.is_input and not self.path.closed:
            self._check_rank(len(shape))
            self._shape = list(shape)
            return
        if self.rank != len(shape):
            raise DeadEndError
        for mine, its in zip(self.shape, shape, strict=True):
            self.path.assume(mine == its)

    def in_order(self, index: tuple[Size, ...], shape: Sequence[Size]) -> Any:
        """Return the element at the place, in order, that an index of a shape has."""
        path = self.path
        if len(shape) == self.rank and all(map(path.same, shape, self.shape)):
            return self.at(tuple(index))
        if self.order is not None:
            return self.order(index, shape)
        return self.at(moved_index(path, index, shape, self.shape))

    def numbers(self) -> list[Size]:
        """Return the whole numbers in a vector, or in a scalar, each a symbol."""
        if self.content is None:
            if self.rank > 1:
                raise DeadEndError
            if not self.is_input:
                self.content = self._computed()
            elif self.rank == 0:
                self.content = self.path.number(self.name, None)
            else:
                count = self.path.count()
                self.path.assume(self.shape[0] == count)
                self._shape = [count]
                self.content = [self.path.number(self.name, None) for _ in range(count)]
        return self.content if isinstance(self.content, list) else [self.content]

    def _computed(self) -> Any:
        """Return whole numbers that operators compute of sizes and constants."""
        count = self.shape[0] if self.rank else 1
        if not isinstance(count, int):
            raise UnprovenError(f"how many numbers are in {self.name!r} is computed")
        found = []
        for place in range(count):
            element = self.at((place,) if self.rank else ())
            while isinstance(element, Choice):
                element = element.one if self.path.decide(element.condition) else element.other
            if isinstance(element, In) and isinstance(element.tensor.content, list):
                items = element.tensor.content
                element = Extent(items[self.path.concrete(element.index[0], 0, len(items))])
            if isinstance(element, Const) and isinstance(element.value, int):
                element = Extent(element.value)
            if not isinstance(element, Extent):
                raise UnprovenError(f"the numbers in {self.name!r} are computed")
            found.append(element.size)
        return found if self.rank else found[0]


class TensorSequence(Tensor):
    """A sequence of tensors: listed, or a function of the place."""

    def __init__(
        self,
        path: Path,
        kind: Type,
        count: Size,
        item: Callable[[Size], Tensor],
        items: Sequence[Tensor] | None = None,
    ) -> None:
        super().__init__(path, "sequence", kind, [])
        self.count = count
        self.item = item
        self.items = items


def product(sizes: Sequence[Size]) -> Size:
    """Return the product of sizes."""
    made: Size = 1
    for size in sizes:
        if isinstance(size, int) and size == 1:
            continue
        made = size if isinstance(made, int) and made == 1 else made * size
    return made


def _flat(index: Sequence[Size], shape: Sequence[Size]) -> Size:
    place: Size = 0
    for item, size in zip(index, shape, strict=True):
        place = item if isinstance(place, int) and place == 0 else place * size + item
    return place


def divided(one: Size, other: Size) -> Size:
    """Return the whole quotient of a size from 0 on and a positive one."""
    return one // other if isinstance(one, int) and isinstance(other, int) else one / other


def quotient_and_rest(path: Path, value: Size, size: Size) -> tuple[Size, Size]:
    """Return the quotient and the rest of a place and a size, without a division if it shows."""
    z3 = path.z3
    if isinstance(value, int):
        return divided(value, size), value % size
    if isinstance(size, int):
        size = z3.IntVal(size)
    if z3.is_mod(value) and _has_factor(z3, value.arg(1), size):
        # A rest of a multiple of the size leaves the same rest.
        if value.arg(1).eq(size):
            return 0, value
        return value / size, quotient_and_rest(path, value.arg(0), size)[1]
    whole: list[Any] = []
    rest: list[Any] = []
    for each in _summands(z3, value):
        factors = factors_of(z3, each)
        place = next((n for n, factor in enumerate(factors) if factor.eq(size)), None)
        if place is None and len(factors) > 1:
            place = next((n for n, factor in enumerate(factors) if path.same(factor, size)), None)
        if place is None:
            rest.append(each)
        else:
            whole.append(product([*factors[:place], *factors[place + 1 :]]))
    left = z3.IntVal(0) if not rest else rest[0] if len(rest) == 1 else z3.Sum(*rest)
    if (whole or len(rest) == 1) and path.proves(z3.And(left >= 0, left < size)):
        return (z3.Sum(*whole) if len(whole) > 1 else whole[0] if whole else 0), left
    return value / size, value % size


def _summands(z3: Any, value: Any) -> list[Any]:
    found, pending = [], [value]
    while pending:
        each = pending.pop()
        if z3.is_add(each):
            pending += reversed(each.children())
        else:
            found.append(each)
    return found


def factors_of(z3: Any, value: Size) -> list[Size]:
    """Return the factors of a size that is written as a product."""
    found, pending = [], [value]
    while pending:
        each = pending.pop()
        if z3.is_mul(each):
            pending += reversed(each.children())
        else:
            found.append(each)
    return found


def _has_factor(z3: Any, value: Any, size: Any) -> bool:
    return any(factor.eq(size) for factor in factors_of(z3, value))


def moved_index(
    path: Path, index: Sequence[Size], source: Sequence[Size], target: Sequence[Size]
) -> tuple[Size, ...]:
    """Return the index in one shape of the element that has an index in another shape.

    Axes, or groups of them, whose sizes have equal products keep their part of the index.
    """
    made: list[Size] = []
    mine, its = 0, 0
    kept = [place for place, size in enumerate(source) if not path.same(size, 1)]
    index, source = [index[place] for place in kept], [source[place] for place in kept]
    wanted = [place for place, size in enumerate(target) if not path.same(size, 1)]
    rank, target = len(target), [target[place] for place in wanted]
    while mine < len(source) or its < len(target):
        first, second = mine + 1, its + 1
        while not path.same(product(source[mine:first]), product(target[its:second])):
            # Extend the shorter group: by the number of axes that are left if nobody knows.
            if first - mine <= second - its and first < len(source):
                first += 1
            elif second < len(target):
                second += 1
            elif first < len(source):
                first += 1
            else:
                break
        if first > len(source) or second > len(target):
            first, second = len(source), len(target)
        mine_sizes, its_sizes = source[mine:first], target[its:second]
        if len(mine_sizes) == 1 and len(its_sizes) == 1 and path.same(mine_sizes[0], its_sizes[0]):
            made.append(index[mine])
        else:
            rest = _flat(index[mine:first], mine_sizes)
            parts: list[Size] = []
            for place in reversed(range(len(its_sizes))):
                size = its_sizes[place]
                if isinstance(size, int) and size == 1:
                    parts.append(0)
                elif place == 0:
                    parts.append(rest)
                else:
                    rest, part = quotient_and_rest(path, rest, size)
                    parts.append(part)
            made += reversed(parts)
        mine, its = first, second
    whole: list[Size] = [0] * rank
    for place, item in zip(wanted, made, strict=True):
        whole[place] = item
    return tuple(whole)


# ---- operations ----


@dataclass
class Side:
    """One side of a rule.

    Attributes
    ----------
    conditions : list
        What must hold for its operations not to fail.
    is_left : bool
        Whether unstated attributes may have any value.
    """

    is_left: bool
    conditions: list[Any] = field(default_factory=list)


@cache
def schemas(op: str, domain: str) -> dict[int, Any]:
    """Return the schema of an operator by the operator sets since which it holds."""
    onnx = require("onnx", extra="onnx")
    found = {}
    for each in onnx.defs.get_all_schemas_with_history():
        if each.name == op and each.domain == domain:
            found[each.since_version] = each
    return found


def schema_of(op: str, domain: str, opset: int) -> Any:
    """Return the schema of an operator in an operator set; None if it has none."""
    versions = [each for each in schemas(op, domain) if each <= opset]
    found = schemas(op, domain)[max(versions)] if versions else None
    return None if found is not None and found.deprecated else found


@dataclass
class Node:
    """An operation: its attributes are stated, or chosen when a meaning asks for one."""

    path: Path
    side: Side
    op: str
    inputs: list[Tensor | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""
    results: int = 1
    opened: bool = False
    """Whether unnamed inputs may follow."""
    folded: bool = False
    """Whether it is computed when the rule is applied."""
    copied: bool = False
    """Whether its attributes are those of an operation of the left side."""
    origin: Node | None = None
    """The operation of which it has the attributes."""
    whole_results: list[Tensor] = field(default_factory=list)
    """Results of which nothing is known but that equal inputs have equal ones."""
    whole_inputs: list[Tensor | None] = field(default_factory=list)
    bound: dict[str, bool] = field(default_factory=dict)
    """Attributes that the pattern names, and whether they may be missing."""
    linked: dict[str, tuple[Node, str]] = field(default_factory=dict)
    """Attributes that are equal to others."""
    chosen: dict[str, Any] = field(default_factory=dict)
    """Attributes that only this match has: shared with copies of it."""
    family: tuple[str, ...] = ()
    """Operators that `op` stands for, of which nothing but the name differs."""
    conditions: list[Any] = field(default_factory=list)
    """Conditions without which the operation fails."""
    family_types: tuple[Type | None, ...] = ()
    """Types of the inputs that each of the family has where it is matched."""

    @property
    def name(self) -> str:
        """The operator, or all that it stands for, as an operator of elements."""
        return "|".join(self.family) or self.op

    @property
    def is_open(self) -> bool:
        """Whether attributes that nobody stated may have any value."""
        return self.side.is_left or self.copied

    def is_since(self, opset: int) -> bool:
        """Whether the operator set is at least this; what the engine computes is of the newest."""
        return self.folded or self.path.opset_where(lambda each: each >= opset)

    def requires(self, condition: Any) -> None:
        """State a condition without which the operation fails."""
        if not (isinstance(condition, bool) and condition):
            self.conditions.append(condition)
            self.side.conditions.append(condition)

    def default(self, name: str) -> Any:
        """Return the default of an attribute in the operator sets of the path."""
        onnx = require("onnx", extra="onnx")

        def in_set(opset: int) -> Any:
            schema = schema_of(self.op, self.domain, opset)
            if schema is None or name not in schema.attributes:
                return None
            value = schema.attributes[name].default_value
            made = onnx.helper.get_attribute_value(value) if value.type else None
            return made.decode() if isinstance(made, bytes) else made

        if not self.folded:
            self.path.split_opsets(in_set)
        return in_set(self.path.opsets[-1])

    def number(self, name: str, low: int | None = None, end: int | None = None) -> int | Any:
        """Return an attribute that is a whole number; one that lies in a range as such."""
        if low is not None and end is not None and self.is_any(name):
            # The default is one of the numbers.
            self.chosen[name] = low + self.path.choose(end - low)
        value = self._value(name, lambda: self.path.number(name, None), any_number=True)
        if isinstance(value, list):
            (value,) = value
        if value is None or low is None or end is None:
            return value
        return self.path.concrete(value, low, end)

    def axis(self, name: str, rank: int, value: Any = None) -> int:
        """Return an attribute that is an axis, counted from the front."""
        if value is None and rank and self.is_any(name) and self.default(name) is not None:
            place = self.path.choose(rank)
            self.chosen[name] = self.path.axis(name, place, rank)
            return place
        if value is None:
            value = self._value(name, lambda: self._any_axis(name, rank))
        return axis_of(self.path, value, rank)

    def _any_axis(self, name: str, rank: int) -> Any:
        if not rank:
            raise DeadEndError
        return self.path.axis(name, self.path.choose(rank), rank)

    def is_any(self, name: str) -> bool:
        """Whether nothing is said of an attribute, so that its default is like another value."""
        return (
            self.is_open
            and name not in self.linked
            and name not in self.attributes
            and name not in self.chosen
            and name not in self.bound
            and any(
                schema is not None and name in schema.attributes
                for schema in (schema_of(self.op, self.domain, each) for each in self.path.opsets)
            )
        )

    def text(self, name: str) -> Any:
        """Return an attribute that is a text, or another value that is used as it is."""
        return self._value(name, lambda: None)

    def real(self, name: str) -> Any:
        """Return an attribute that is a number: a symbol if it is not known."""
        return self._value(name, lambda: Symbol(name, self), any_number=True)

    def _value(self, name: str, unknown: Callable[[], Any], any_number: bool = False) -> Any:
        if name in self.linked:
            node, key = self.linked[name]
            return node._value(key, unknown, any_number)
        if name in self.attributes:
            found = self.attributes[name]
            return self.default(name) if found is None else found
        if name in self.chosen:
            found = self.chosen[name]
            return self.default(name) if found is None else found
        if not self.is_open:
            return self.default(name)
        # The match may state the attribute, or not. Nothing tells a default from an equal number
        # but `given`, of an optional attribute.
        may_lack = self.bound.get(name, True) or self.default(name) is not None
        is_covered = any_number and not self.bound.get(name) and self.default(name) is not None
        if may_lack and not is_covered and self.path.choose(2) == 0:
            made = self.default(name)
            if name in self.bound and made is not None and self.bound[name]:
                self.chosen[name] = None
                return made
        else:
            made = unknown()
            if made is None:
                raise UnprovenError(f"{self.op}: any {name!r} is possible")
        self.chosen[name] = made
        return made

    def whole(
        self, name: str, count: int | None = None, place: int | None = None
    ) -> list[Size] | None:
        """Return whole numbers, which an attribute or an input states; None if neither does.

        Parameters
        ----------
        name : str
        count : int, optional
            How many there must be.
        place : int, optional
            The number of the input.
        """
        found: Any = None
        if name in self.linked:
            node, key = self.linked[name]
            found = node.whole(key, count, place)
        elif name in self.attributes:
            found = self.attributes[name]
        elif place is not None and place < len(self.inputs):
            tensor = self.inputs[place]
            if tensor is None:
                return None
            if count is not None and tensor.content is None and tensor.is_input:
                tensor.set_rank(1)
                tensor.set_shape([count])
                tensor.content = [self.path.number(tensor.name, None) for _ in range(count)]
            found = tensor.numbers()
            self.attributes.setdefault(name, found)
        elif name in self.chosen:
            found = self.chosen[name]
        elif name in self.bound or (self.is_open and (place is None or self.opened)):
            if not self.bound.get(name, True) or self.path.choose(2):
                length = count
                if length is None:
                    length = self.path.counted(1 + self.path.choose(self.path.most_axes))
                found = [self.path.number(name, None) for _ in range(length)]
                if name in ("axes", "starts", "ends", "pads") and self.path.closed:
                    raise UnprovenError(f"{self.op}: any {name!r} is possible")
            self.chosen[name] = found
        if found is None:
            return None
        found = found if isinstance(found, list) else [found]
        if count is not None and len(found) != count:
            if self.side.is_left:
                raise DeadEndError
            raise UnprovenError(f"{self.op}: {name!r} has {len(found)} items, not {count}")
        return found  # type: ignore[no-any-return]

    def order(self, name: str, rank: int) -> list[Any] | None:
        """Return an attribute that is an order of axes: an open one is chosen."""
        if name in self.linked:
            node, key = self.linked[name]
            linked: list[Any] | None = node.order(key, rank)
            return linked
        if (
            name in self.attributes
            or name in self.chosen
            or not (name in self.bound or self.is_open)
        ):
            known: list[Any] | None = self.attributes.get(name, self.chosen.get(name))
            return known
        found: list[Any] | None = None
        if not self.bound.get(name, True) or self.path.choose(2):
            found = []
            for _ in range(rank):
                found.append(self.path.pick([axis for axis in range(rank) if axis not in found]))
        self.chosen[name] = found
        return found

    def axes(
        self, name: str, rank: int | None, place: int | None, more: int = 0
    ) -> list[Size] | None:
        """Return axes, which an attribute or an input states: open ones are chosen.

        Parameters
        ----------
        rank : int or None
            None: there are as many axes as `more` and the list together have.
        """
        if name in self.linked:
            node, key = self.linked[name]
            return node.axes(key, rank, place, more)
        if name in self.attributes or name in self.chosen:
            found: list[Size] | None = self.attributes.get(name, self.chosen.get(name))
            return found
        source = None
        if place is not None and place < len(self.inputs):
            source = self.inputs[place]
            if source is None or source.content is not None or not source.is_input:
                return self.whole(name, None, place)
        elif name in self.bound:
            if self.bound[name] and not self.path.choose(2):
                self.chosen[name] = None
                return None
        elif not (self.is_open and (place is None or self.opened)) or not self.path.choose(2):
            self.chosen[name] = None
            return None
        if self.path.closed:
            raise UnprovenError(f"{self.op}: any {name!r} are possible")
        count = self.path.count() if rank is None else self.path.choose(rank + 1)
        # An attribute that is an empty list is no list; an input may be one.
        if count == 0 and source is None and place is None:
            raise DeadEndError
        total = rank if rank is not None else more + count
        axes: list[int] = []
        made: list[Size] = []
        # An order that the pattern does not name counts for nothing in these operators.
        is_set = self.op.startswith(("Reduce", "Squeeze", "Unsq")) and (
            name in self.path.unordered or (name not in self.bound and source is None)
        )
        for _ in range(count):
            low = axes[-1] + 1 if axes and is_set else 0
            axes.append(self.path.pick([axis for axis in range(low, total) if axis not in axes]))
            made.append(self.path.axis(name, axes[-1], total))
        if source is not None:
            source.set_rank(1)
            source.set_shape([count])
            source.content = made
        self.chosen[name] = made
        return made

    def input(self, place: int) -> Tensor:
        """Return an input that must be present."""
        tensor = self.inputs[place] if place < len(self.inputs) else None
        if tensor is None:
            if self.side.is_left:
                raise DeadEndError
            raise UnprovenError(f"{self.op} lacks input {place}")
        return tensor

    def optional(self, place: int) -> Tensor | None:
        """Return an input, or None if it is absent."""
        if place < len(self.inputs):
            return self.inputs[place]
        if self.opened and self.side.is_left:
            raise UnprovenError(f"{self.op}: any further inputs are possible")
        return None

    def fails(self, why: str) -> None:
        """Leave a match that is no valid model; a replacement must be one."""
        if self.side.is_left:
            raise DeadEndError
        raise UnprovenError(f"the replacement is no valid {self.op}: {why}")


@dataclass(frozen=True, eq=False)
class Symbol:
    """A number that an attribute states and nobody knows."""

    name: str
    node: Any


def axis_of(path: Path, value: Size, rank: int) -> int:
    """Return an axis counted from the front; it must be one of the rank."""
    if isinstance(value, int):
        if not -rank <= value < rank:
            raise DeadEndError
        return value % rank
    if value is None:
        raise DeadEndError
    known = path.known_axis(value, rank)
    if known is not None:
        return known
    for place in range(rank):
        if path.decide(path.z3.Or(value == place, value == place - rank)):
            return place
    raise DeadEndError


def axes_of(path: Path, values: Sequence[Size], rank: int) -> list[int]:
    """Return different axes counted from the front."""
    found = [axis_of(path, value, rank) for value in values]
    if len(set(found)) != len(found):
        raise DeadEndError
    return found


# ---- broadcasting ----


def broadcast_size(path: Path, one: Size, other: Size) -> tuple[Size, Any]:
    """Return the size to which two are broadcast, and the condition that they fit."""
    if isinstance(one, int) and one == 1:
        return other, True
    if isinstance(other, int) and other == 1:
        return one, True
    if path.same(one, other):
        return one, True
    fits = path.z3.Or(_is(one, 1), _is(other, 1), one == other)
    if path.proves(one == 1):
        return other, True
    if path.proves(other == 1):
        return one, True
    return path.z3.If(_is(one, 1), other, one), fits


def _is(size: Size, number: int) -> Any:
    return size == number


def broadcast_shape(path: Path, shapes: Sequence[Sequence[Size]]) -> tuple[list[Size], list[Any]]:
    """Return the shape to which shapes are broadcast, and the conditions that they fit."""
    rank = max((len(each) for each in shapes), default=0)
    total: list[Size] = [1] * rank
    fits: list[Any] = []
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            total[place], condition = broadcast_size(path, total[place], size)
            if condition is not True:
                fits.append(condition)
    return total, fits


def broadcast_index(
    path: Path, index: Sequence[Size], shape: Sequence[Size], whole: Sequence[Size]
) -> tuple[Size, ...]:
    """Return the index in a tensor that is broadcast to another shape."""
    made: list[Size] = []
    shift = len(whole) - len(shape)
    for place, size in enumerate(shape):
        item = index[place + shift]
        if isinstance(size, int):
            made.append(0 if size == 1 else item)
        elif path.same(size, whole[place + shift]):
            made.append(item)
        else:
            made.append(path.z3.If(size == 1, 0, item))
    return tuple(made)
