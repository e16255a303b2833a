"""Whether two elements are equal: bit for bit, or in real arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from passlib.proof.conditions import ValueOf, lossless
from passlib.proof.meanings import (
    COMMUTATIVE,
    COMPARED,
    Calculated,
    element_of,
    known_number,
    number_at,
    truth,
)
from passlib.proof.paths import Path, Size, Type, UnprovenError
from passlib.proof.tensors import (
    REALS,
    SIGNED,
    WHOLE,
    Choice,
    Const,
    Extent,
    In,
    Op,
    Reduce,
    Symbol,
    Tensor,
    factors_of,
    product,
)

_TOLERANCE: Final = 1e-6
_SMALL: Final = frozenset({"int8", "uint8", "int16", "uint16"})
_INFINITY: Final = 1 << 1100
"""A number above those of all types."""
_MOST_TERMS: Final = 400
_LOWEST: Final = -1e30
"""A least element from here down is taken for none, within a bound that is stated."""
_FORMATS: Final = {"float16": (5, 11), "bfloat16": (8, 8), "float": (8, 24), "double": (11, 53)}
_ALONE: Final = frozenset({"ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"})
"""Reductions of one element that return it."""


_ANSWERS: Final[dict[tuple[int, ...], tuple[Any, bool]]] = {}
"""Whether Z3 refutes a condition with some facts, by the numbers that Z3 gives to terms."""


class Equality:
    """Compares elements on a path.

    Parameters
    ----------
    path : Path
    exact : bool
        Whether every bit counts.
    """

    def __init__(self, path: Path, *, exact: bool) -> None:
        self.path = path
        self.exact = exact
        self.z3 = path.z3
        self._atoms: list[tuple[Any, Any]] = []
        self._facts: list[Any] = []
        self._steps = 0
        self._is_pattern = False

    def equal(self, one: Any, other: Any) -> bool:
        """Whether two elements are equal, for all values of the inputs."""
        if self._alike(one, other):
            return True
        if self._is_float(one) and not self.exact:
            return self._real_equal(one, other) or self._real_by_z3(one, other)
        if not self.exact and self._whole_sums(one, other):
            return True
        if not self.exact and self._same_quantized(one, other):
            return True
        if self._same_extreme(one, other):
            return True
        return self._exact_by_z3(one, other)

    def _is_float(self, element: Any) -> bool:
        kind = type_of(element)
        return kind is not None and self.path.type_in(kind, REALS)

    def _whole_sums(self, one: Any, other: Any) -> bool:
        """Whether sums and products of whole numbers, which wrap around, are equal."""
        return self._real_equal(one, other)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > 20_000:
            raise UnprovenError("the terms are too large")

    # ---- the same computation ----

    def _alike(self, one: Any, other: Any) -> bool:
        """Whether two elements are the same computation of the same elements."""
        self._step()
        if one is other:
            return True
        one, other = self._settled(one), self._settled(other)
        if isinstance(one, Reduce) or isinstance(other, Reduce):
            one, other = self._single(one), self._single(other)
        path = self.path
        if type(one) is not type(other):
            number = one if isinstance(one, In) else other
            kind = type_of(number)
            return (
                isinstance(number, In)
                and kind is not None
                and path.type_in(kind, WHOLE)
                and self._same_numbers(one, other)
            )
        if isinstance(one, In):
            return one.tensor is other.tensor and self._same_places(one.index, other.index)
        if isinstance(one, Const):
            return same_number(one.value, other.value)
        if isinstance(one, Extent):
            return path.same(one.size, other.size)
        if isinstance(one, Op):
            if one.name != other.name or not same_told(one.told, other.told):
                return False
            if one.name == "Cast" and one.type != other.type:
                return False
            if len(one.args) != len(other.args):
                return False
            if all(map(self._alike, one.args, other.args)):
                return True
            return (
                one.name in COMMUTATIVE
                and len(one.args) == 2
                and self._alike(one.args[0], other.args[1])
                and self._alike(one.args[1], other.args[0])
            )
        if isinstance(one, Reduce):
            if one.name != other.name or not same_told(one.told, other.told):
                return False
            if one.told and one.told[0] in ("MatMul", "Gemm", "Conv") and not self.exact:
                return False
            if len(one.sizes) != len(other.sizes):
                return False
            if not all(map(path.same, one.sizes, other.sizes)):
                return False
            with path.scope():
                inner = self._inside(one.sizes)
                if inner is None:
                    return True
                return self._alike(one.body(*inner), other.body(*inner))
        return False

    def _settled(self, element: Any) -> Any:
        element = self._by_sizes(element)
        while isinstance(element, Choice):
            element = element.one if self.path.decide(element.condition) else element.other
            element = self._by_sizes(element)
        return element

    def _by_sizes(self, element: Any) -> Any:
        """Return a Where whose condition is one on sizes and indices as a choice by these."""
        if isinstance(element, Op) and element.name == "Where":
            condition = self._of_sizes(element.args[0])
            if condition is not None:
                return Choice(condition, *element.args[1:])
        return element

    def _of_sizes(self, element: Any) -> Any:
        """Return a truth as a condition on sizes and indices; None of another."""
        if not isinstance(element, Op):
            return None
        if element.name == "Not":
            inner = self._of_sizes(element.args[0])
            return None if inner is None else self.z3.Not(inner)
        if element.name == "IsNaN" and not self.exact:
            found = element.args[0]
            is_softmax = isinstance(found, Op) and found.name == "Softmax"
            return False if is_softmax and self._is_real(found) else None
        op = _COMPARES.get(element.name)
        if op is None:
            return None
        one, other = map(self._size_of, element.args)
        return None if one is None or other is None else COMPARED[op](one, other)

    def _is_real(self, element: Any) -> bool:
        """Whether an element is a real number if the values that are no constants are."""
        if isinstance(element, In):
            return not element.tensor.is_constant or ("finite", True) in element.tensor.facts
        if isinstance(element, Const):
            return math.isfinite(element.value)
        if isinstance(element, Op):
            return element.name != "lowest" and all(map(self._is_real, element.args))
        if isinstance(element, Choice):
            return self._is_real(element.one) and self._is_real(element.other)
        if isinstance(element, Reduce):
            return self._is_real(element.body(*(self.path.number("k") for _ in element.sizes)))
        return isinstance(element, Extent)

    def _size_of(self, element: Any) -> Any:
        """Return a number as a size, an index or a difference of two; None of another."""
        path = self.path
        if isinstance(element, Extent):
            return element.size
        if isinstance(element, Const) and type(element.value) is int:
            return element.value
        if isinstance(element, In) and element.tensor.content is not None:
            return number_at(path, element.tensor, element.index)
        if isinstance(element, Op) and element.name == "Sub":
            one, other = map(self._size_of, element.args)
            # A difference of numbers from 0 on does not wrap around in the type of sizes.
            if one is None or other is None or not path.type_in(element.type, {"int64"}):
                return None
            if path.proves(one >= 0) and path.proves(other >= 0):
                return one - other
        return None

    def _single(self, element: Any) -> Any:
        """Return a reduction without axes of size 1."""
        if not isinstance(element, Reduce):
            return element
        kept = [place for place, size in enumerate(element.sizes) if not self.path.same(size, 1)]
        if len(kept) == len(element.sizes):
            return element
        body = element.body

        def smaller(*inner: Size) -> Any:
            whole: list[Size] = [0] * len(element.sizes)
            for place, item in zip(kept, inner, strict=True):
                whole[place] = item
            return body(*whole)

        if not kept and (element.name in _ALONE or (not self.exact and element.name == "Sum")):
            return self._settled(smaller())
        sizes = tuple(element.sizes[place] for place in kept)
        return Reduce(element.name, sizes, smaller, element.type, element.told)

    def _same_places(self, one: Sequence[Size], other: Sequence[Size]) -> bool:
        return len(one) == len(other) and all(map(self.path.same, one, other))

    def _inside(self, sizes: Sequence[Size]) -> tuple[Any, ...] | None:
        """Return indices below sizes; None if there are none."""
        inner = tuple(self.path.number("k") for _ in sizes)
        for item, size in zip(inner, sizes, strict=True):
            self.path.solver.add(item < size)
        return inner if self.path.possible(True) else None

    # ---- bit for bit, by order ----

    def _same_extreme(self, one: Any, other: Any) -> bool:
        """Whether Max and Min return the same of some numbers, for all types at once.

        They depend on the order alone: a number is a place on a line that ends with the
        infinities, with a sign that tells zeros apart, or NaN. Whole numbers are some of these.
        """
        for each in (one, other):
            top = self._settled(each)
            if not isinstance(top, Op) or top.name not in ("Max", "Min"):
                return False
        z3 = self.z3
        self._atoms, self._facts = [], []
        (mine, my_sign, my_nan), (its, its_sign, its_nan) = map(self._placed, (one, other))
        same = z3.And(mine == its, z3.Implies(mine == 0, my_sign == its_sign))
        return self._refutes(z3.Not(z3.And(my_nan == its_nan, z3.Or(my_nan, same))))

    def _placed(self, element: Any) -> tuple[Any, Any, Any]:
        """Return the place of a number, whether its sign is minus, and whether it is NaN."""
        z3 = self.z3
        element = self._settled(element)
        if isinstance(element, Const):
            return self._place_of(element.value)
        if isinstance(element, Op) and element.name in ("Max", "Min"):
            made, *others = map(self._placed, element.args)
            for each in others:
                made = self._extreme_place(element.name == "Max", made, each)
            return made
        for known, found in self._atoms:
            if self._alike(known, element):
                return found  # type: ignore[no-any-return]
        number = len(self._atoms)
        made = (z3.Real(f"place.{number}"), z3.Bool(f"minus.{number}"), z3.Bool(f"nan.{number}"))
        self._atoms.append((element, made))
        self._facts += [made[0] >= -_INFINITY, made[0] <= _INFINITY]
        for op, other in element.tensor.facts if isinstance(element, In) else ():
            said = self._said_of(made, op.removeprefix("not "), other)
            if said is not None:
                self._facts.append(z3.Not(said) if op.startswith("not ") else said)
        return made

    def _place_of(self, value: Any) -> tuple[Any, Any, Any]:
        z3 = self.z3
        if math.isnan(value):
            return z3.RealVal(0), z3.BoolVal(False), z3.BoolVal(True)
        sign = -1 if math.copysign(1, value) < 0 else 1
        place = sign * _INFINITY if math.isinf(value) else Fraction(value)
        return z3.RealVal(place), z3.BoolVal(sign < 0), z3.BoolVal(False)

    def _extreme_place(self, greatest: bool, one: Any, other: Any) -> tuple[Any, Any, Any]:
        z3 = self.z3
        above = one[0] > other[0] if greatest else one[0] < other[0]
        # Implementations return the first of two zeros, the second, or that of IEEE 754.
        of_both = z3.And(one[1], other[1]) if greatest else z3.Or(one[1], other[1])
        by_place = z3.If(z3.Bool("zeros:first"), one[1], other[1])
        sign = z3.If(z3.Bool("zeros:by place"), by_place, of_both)
        sign = z3.If(above, one[1], z3.If(one[0] == other[0], sign, other[1]))
        return z3.If(above, one[0], other[0]), sign, z3.Or(one[2], other[2])

    def _said_of(self, made: Any, op: str, other: Any) -> Any:
        """Return what a condition says of a number; None if it is not understood."""
        z3 = self.z3
        place, minus, nan = made
        if op == "sign":
            return z3.And(z3.Not(nan), z3.Or(place < 0, z3.And(place == 0, minus)))
        if op == "finite":
            return z3.And(z3.Not(nan), place > -_INFINITY, place < _INFINITY)
        tensor = other.tensor if isinstance(other, ValueOf) else other
        if isinstance(tensor, Tensor):
            if tensor.rank or not tensor.is_input:
                return None
            its = self._placed(In(tensor, ()))
        elif isinstance(other, (int, float)):
            its = self._place_of(other)
        else:
            return None
        if op == "!=":
            return z3.Or(nan, its[2], place != its[0])
        return z3.And(z3.Not(nan), z3.Not(its[2]), COMPARED[op](place, its[0]))

    # ---- bit for bit, by Z3 ----

    def _exact_by_z3(self, one: Any, other: Any) -> bool:
        self._atoms, self._facts = [], []
        self._is_pattern = True
        left = self._encoded(one)
        self._is_pattern = False
        right = self._encoded(other)
        if left.sort() != right.sort():
            raise UnprovenError("two elements of different types")
        return self._refutes(left != right)

    def _refutes(self, condition: Any) -> bool:
        asked = (condition, *self._facts)
        key = tuple(each.get_id() for each in asked)
        if key not in _ANSWERS:
            solver = self.z3.Solver()
            solver.set("rlimit", 8_000_000)
            solver.add(*asked)
            # The question is kept, so that no other term gets its number.
            _ANSWERS[key] = (asked, bool(solver.check() == self.z3.unsat))
        return _ANSWERS[key][1]

    def _sort(self, kind: Type) -> Any:
        name = self.path.type_name(kind)
        if name in _FORMATS:
            return self.z3.FPSort(*_FORMATS[name])
        if name == "bool":
            return self.z3.BoolSort()
        if name == "string":
            return self.z3.StringSort()
        return self.z3.BitVecSort(int(name.lstrip("uint")))

    def _atom(self, element: Any, alike: Callable[[Any, Any], bool], sort: Any) -> tuple[Any, bool]:
        for known, symbol in self._atoms:
            if symbol.sort() == sort and alike(known, element):
                return symbol, False
        made = self.z3.Const(f"element.{len(self._atoms)}", sort)
        self._atoms.append((element, made))
        return made, True

    def _encoded(self, element: Any, sort: Any = None) -> Any:
        self._step()
        z3 = self.z3
        element = self._settled(element)
        if isinstance(element, Reduce):
            element = self._single(element)
        if isinstance(element, Const):
            if sort is None:
                sort = self._sort(element.type)  # type: ignore[arg-type]
            return self._number(element.value, sort)
        if isinstance(element, Extent):
            made = z3.IntVal(0) + element.size
            if sort is not None and sort.kind() != z3.Z3_BV_SORT:
                return made
            return z3.Int2BV(made, 64 if sort is None else sort.size())
        if isinstance(element, In):
            sort = self._sort(element.tensor.type)
            for op, number in element.tensor.facts:
                if op != "=" or not isinstance(number, (int, float)) or not number:
                    continue
                if sort.kind() != self.z3.Z3_BOOL_SORT and math.isfinite(number):
                    return self._number(number, sort)
            made, is_new = self._atom(element, self._alike, sort)
            if is_new:
                for fact in element.tensor.facts:
                    self._note(made, fact, sort)
            return made
        if isinstance(element, Reduce):
            sort = self._sort(element.type)
            made, is_new = self._atom(element, self._alike, sort)
            if is_new and set(element.name.split("|")) <= _SUMS_FROM_ZERO:
                self._facts.append(self._from_zero(made))
            return made
        if not isinstance(element, Op):
            raise UnprovenError("an element of no known form")
        sort = self._sort(element.type)
        if element.name == "symbol":
            return self._atom(element, self._alike, sort)[0]
        parts = set(element.name.split("|"))
        if element.name == "padding":
            raise UnprovenError("what a Pad of any mode fills in")
        if element.name == "Quantize":
            found = self._requantized(element)
            if found is not None:
                return self._encoded(found)
        if element.name == "Cast":
            element = self._direct_cast(element)
            if not isinstance(element, Op):
                return self._encoded(element)
        args = [self._encoded(each, None if parts & _MIXED else sort) for each in element.args]
        found = exact_operator(self, element, args, sort) if args else None
        if found is not None:
            return found
        name = f"{element.name}:{[_print(each) for each in element.told]}"
        made = z3.Function(name, *[each.sort() for each in args], sort)(*args)
        if parts <= _FROM_ZERO | {"Abs"} and z3.is_fp(made):
            self._facts.append(self._from_zero(made))
        return made

    def _requantized(self, element: Op) -> Any:
        """Return the numbers that are quantized again with the scale that they had.

        A number of up to 17 bits, times a scale and divided by it, is rounded to itself: each
        operator of floats errs by a factor of 1 + 2^-24 at most, unless the product is infinite.
        """
        value, scale, zero = map(self._settled, element.args)
        if isinstance(scale, In) and self.path.type_in(element.type, _SMALL):
            is_positive = any(
                op == ">" and isinstance(other, (int, float)) and other >= 0
                for op, other in scale.tensor.facts
            )
            found = _stated(value) if isinstance(value, In) else value
            if is_positive and isinstance(found, Const) and found.value == 0:
                return zero
            if is_positive and isinstance(found, Reduce) and found.name == "ReduceMax":
                return self._requantized_extreme(element, found)
        if not isinstance(value, Op) or value.name != "Mul" or not isinstance(scale, In):
            return None
        number, its_scale = map(self._settled, value.args)
        if not isinstance(number, Op) or number.name != "Difference":
            return None
        kinds = self.path.type_names(element.type)
        source = type_of(self._settled(number.args[0]))
        facts = [(op, other) for op, other in scale.tensor.facts if isinstance(other, (int, float))]
        if (
            source == element.type
            and kinds <= _SMALL
            and self.path.type_in(scale.tensor.type, {"float"})
            and any(op == ">" and other >= 0 for op, other in facts)
            and any(op in ("<", "<=") and other <= 1e30 for op, other in facts)
            and self._alike(scale, its_scale)
            and self._alike(zero, number.args[1])
        ):
            return number.args[0]
        return None

    def _requantized_extreme(self, element: Op, value: Reduce) -> Any:
        """Return the greatest of the numbers, as quantization keeps the order."""
        kind = element.type

        def part(inner: Any) -> Any:
            if isinstance(inner, Choice):
                one, other = part(inner.one), part(inner.other)
                return None if None in (one, other) else Choice(inner.condition, one, other)
            if isinstance(inner, Op) and inner.name == "lowest":
                return Op("lowest", (), kind)
            return self._requantized(Op("Quantize", (inner, *element.args[1:]), kind))

        if part(value.body(*(self.path.number("k") for _ in value.sizes))) is None:
            return None
        return Reduce(value.name, value.sizes, lambda *inner: part(value.body(*inner)), kind)

    def _same_quantized(self, one: Any, other: Any) -> bool:
        """Whether two numbers are quantized equally: rounded in order, and cut to the type."""
        one, other = self._settled(one), self._settled(other)
        if not all(isinstance(each, Op) and each.name == "Quantize" for each in (one, other)):
            return False
        if not all(map(self._alike, one.args[1:], other.args[1:])):
            return False
        z3, name = self.z3, self.path.type_name(one.type)
        if name not in WHOLE:
            return False
        bits = int(name.lstrip("uint"))
        low = -(1 << (bits - 1)) if name in SIGNED else 0
        high = low + (1 << bits) - 1
        self._atoms, self._facts = [], []
        scale, zero = self._as_real(one.args[1]), self._as_real(one.args[2])
        self._facts += [z3.IsInt(zero), zero >= low, zero <= high]
        made, places, values = [], [], []
        for number, each in enumerate((one, other)):
            place, rounded = z3.Real(f"place.{number}"), z3.Int(f"rounded.{number}")
            value = self._as_real(each.args[0])
            self._facts.append(place * scale == value)
            for bound in (low - zero, high - zero):
                # Division by a positive scale keeps a number on its side of a bound.
                same = z3.And(
                    (place <= bound) == (value <= bound * scale),
                    (place >= bound) == (value >= bound * scale),
                )
                self._facts.append(z3.Implies(scale > 0, same))
            values.append(value)
            self._facts += [rounded - place <= 0.5, place - rounded <= 0.5]
            places.append((place, rounded))
            whole = z3.ToReal(rounded) + zero
            made.append(z3.If(whole < low, low, z3.If(whole > high, high, whole)))
        (first, its_first), (second, its_second) = places
        self._facts += [
            z3.Implies(first <= second, its_first <= its_second),
            z3.Implies(second <= first, its_second <= its_first),
            z3.Implies(scale > 0, (first <= second) == (values[0] <= values[1])),
            z3.Implies(scale > 0, (second <= first) == (values[1] <= values[0])),
        ]
        # A scale of 0 makes no numbers.
        return self._refutes(z3.And(scale != 0, made[0] != made[1]))

    def _direct_cast(self, element: Op) -> Any:
        """Return a Cast without one before it that loses nothing.

        What a Cast of reals makes of numbers outside of whole numbers is not specified: it is taken
        to depend on the number and the type. Of whole numbers it is specified, so that one of reals
        is no replacement for it.
        """
        path = self.path
        while True:
            inner = self._settled(element.args[0])
            if not isinstance(inner, Op) or inner.name != "Cast":
                return element
            source = type_of(self._settled(inner.args[0]))
            if source is None:
                return element
            names = [path.type_name(each) for each in (source, inner.type, element.type)]
            if "string" in names or not lossless(names[0], names[1]):
                return element
            specifies = names[1] in REALS and names[0] not in REALS and names[2] in WHOLE
            if specifies and not self._is_pattern and not lossless(names[0], names[2]):
                return element
            if names[0] == names[2]:
                return inner.args[0]
            element = Op("Cast", inner.args, element.type)

    def _from_zero(self, made: Any) -> Any:
        """Return that a value is no negative number and no -0.0; it may be NaN."""
        z3 = self.z3
        if not z3.is_fp(made):
            return z3.BoolVal(True)
        return z3.Or(z3.fpIsNaN(made), z3.Not(z3.fpIsNegative(made)))

    def _number(self, value: Any, sort: Any) -> Any:
        z3 = self.z3
        if sort.kind() == z3.Z3_FLOATING_POINT_SORT:
            return z3.FPVal(float(value), sort)
        if sort.kind() == z3.Z3_BOOL_SORT:
            return z3.BoolVal(bool(value))
        if sort.kind() == z3.Z3_REAL_SORT:
            return z3.RealVal(_fraction(value))
        if sort.kind() != z3.Z3_BV_SORT or float(value) != int(value):
            raise UnprovenError("a number of another type")
        return z3.BitVecVal(int(value), sort)

    def _note(self, made: Any, fact: tuple[str, Any], sort: Any) -> None:
        """State what a condition says of an element."""
        z3 = self.z3
        op, other = fact
        negated = op.startswith("not ")
        op = op.removeprefix("not ")
        is_fp = z3.is_fp(made)
        if op == "sign":
            if is_fp:
                said = z3.And(z3.fpIsNegative(made), z3.Not(z3.fpIsNaN(made)))
            elif z3.is_bv(made):
                said = made < 0 if self._is_signed(made) else z3.BoolVal(False)
            else:
                return
        elif op == "finite":
            if not is_fp:
                return
            said = z3.Not(z3.Or(z3.fpIsInf(made), z3.fpIsNaN(made)))
        else:
            found = self._comparison(op, made, other, sort)
            if found is None:
                return
            said = found
        self._facts.append(z3.Not(said) if negated else said)

    def _is_signed(self, made: Any) -> bool:
        for element, symbol in self._atoms:
            if symbol.eq(made):
                kind = type_of(element)
                return kind is not None and self.path.type_in(kind, SIGNED)
        return False

    def _comparison(self, op: str, made: Any, other: Any, sort: Any) -> Any:
        z3 = self.z3
        if isinstance(other, (ValueOf, Tensor)):
            tensor = other.tensor if isinstance(other, ValueOf) else other
            if tensor.rank or not tensor.is_input:
                return None
            scalar = In(tensor, ())
            its = self._as_real(scalar) if z3.is_real(made) else self._encoded(scalar)
            if its.sort() != made.sort():
                return None
        elif isinstance(other, bool) or (z3.is_bool(made) and isinstance(other, int)):
            its = z3.BoolVal(bool(other)) if z3.is_bool(made) else self._number(int(other), sort)
        elif isinstance(other, (int, float)):
            if z3.is_fp(made):
                # A number between two of the type is moved so that less is assumed.
                mode = {">": z3.RTN(), ">=": z3.RTN(), "<": z3.RTP(), "<=": z3.RTP()}.get(
                    op, z3.RNE()
                )
                if math.isinf(other) or math.isnan(other):
                    its = z3.FPVal(other, sort)
                else:
                    its = z3.simplify(z3.fpRealToFP(mode, z3.RealVal(Fraction(other)), sort))
            elif z3.is_bv(made):
                if other != int(other) or not -(1 << (sort.size() - 1)) <= other < 1 << (
                    sort.size() - 1
                ):
                    return None
                its = z3.BitVecVal(int(other), sort)
            elif z3.is_real(made):
                if not math.isfinite(other):
                    return None
                its = z3.RealVal(_fraction(other))
            else:
                return None
        elif z3.is_real(made) and not isinstance(other, (Symbol, Calculated, str)):
            its = z3.ToReal(z3.IntVal(0) + other)
        elif z3.is_real(made) and isinstance(other, Calculated):
            its = self._as_real(element_of(other, None))  # type: ignore[arg-type]
        else:
            return None
        if z3.is_fp(made):
            return {
                "=": z3.fpEQ, "!=": z3.fpNEQ, "<": z3.fpLT, "<=": z3.fpLEQ, ">": z3.fpGT,
                ">=": z3.fpGEQ,
            }[op](made, its)  # fmt: skip
        if z3.is_bv(made) and not self._is_signed(made):
            return {
                "=": lambda: made == its, "!=": lambda: made != its,
                "<": lambda: z3.ULT(made, its), "<=": lambda: z3.ULE(made, its),
                ">": lambda: z3.UGT(made, its), ">=": lambda: z3.UGE(made, its),
            }[op]()  # fmt: skip
        if z3.is_bool(made):
            return made == its if op == "=" else made != its if op == "!=" else None
        return {
            "=": made == its, "!=": made != its, "<": made < its, "<=": made <= its,
            ">": made > its, ">=": made >= its,
        }[op]  # fmt: skip

    # ---- in real arithmetic ----

    def _real_equal(self, one: Any, other: Any) -> bool:
        """Whether the difference of two elements has no term left."""
        self._step()
        if self._alike(one, other):
            return True
        with self.path.scope():
            terms = self._terms(one)
            terms += [_scaled(each, -1) for each in self._terms(other)]
            if len(terms) > _MOST_TERMS:
                raise UnprovenError("the terms are too large")
            groups: list[tuple[_Term, Any, float]] = []
            for term in terms:
                if term.factor == 0:
                    continue
                for place, (known, total, size) in enumerate(groups):
                    if self._same_term(known, term):
                        most = max(size, abs(float(term.factor)))
                        groups[place] = (known, total + term.factor, most)
                        break
                else:
                    groups.append((term, term.factor, abs(float(term.factor))))
            return all(abs(float(total)) <= _TOLERANCE * size for _, total, size in groups)

    def _terms(self, element: Any) -> list[_Term]:
        """Return an element as a sum of products."""
        self._step()
        path = self.path
        if isinstance(element, Choice):
            return [
                *(_guarded(each, element.condition) for each in self._terms(element.one)),
                *(
                    _guarded(each, self.z3.Not(element.condition))
                    for each in self._terms(element.other)
                ),
            ]
        if isinstance(element, Const):
            value = element.value
            if isinstance(value, float) and not math.isfinite(value):
                return [_Term(1, (), (), ((element, 1),))]
            return [_Term(_fraction(value), (), (), ())]
        if isinstance(element, In):
            element = _stated(element)
            if isinstance(element, Const):
                return self._terms(element)
        if isinstance(element, Extent):
            if isinstance(element.size, int):
                return [_Term(Fraction(element.size), (), (), ())]
            if self.z3.is_mul(element.size):
                made = [_Term(Fraction(1), (), (), ())]
                for size in element.size.children():
                    plain = size.as_long() if self.z3.is_int_value(size) else size
                    made = self._multiplied(made, self._terms(Extent(plain)))
                return made
        if isinstance(element, Op):
            element = expanded(element)
        if isinstance(element, Reduce):
            element = self._expanded_sum(self._single(element))
        if isinstance(element, Op):
            element = self._undone(element)
        if isinstance(element, Op):
            found = self._operated(element)
            if found is not None:
                return found
        if isinstance(element, Reduce) and element.name == "Sum":
            if not element.sizes:
                return self._terms(element.body())
            element = self._by_factors(element)
            inner = tuple(path.number("k", None) for _ in element.sizes)
            path.bound.append(inner)
            try:
                # A sum without terms is 0, whatever its terms would be.
                with path.scope():
                    for item, size in zip(inner, element.sizes, strict=True):
                        path.solver.add(item >= 0, item < size)
                    body = self._terms(element.body(*inner))
            finally:
                path.bound.pop()
            bound = tuple(zip(inner, element.sizes, strict=True))
            return [
                _Term(each.factor, bound + each.bound, each.guards, each.factors) for each in body
            ]
        return [_Term(Fraction(1), (), (), ((element, 1),))]

    def _by_factors(self, element: Reduce) -> Reduce:
        """Return a sum along axes whose sizes are products as one along axes of their factors."""
        parts = [factors_of(self.z3, size) for size in element.sizes]
        if all(len(each) == 1 for each in parts):
            return element

        def body(*inner: Size) -> Any:
            left = list(inner)
            whole = []
            for sizes in parts:
                place = left.pop(0)
                for size in sizes[1:]:
                    place = place * size + left.pop(0)
                whole.append(place)
            return element.body(*whole)

        sizes = tuple(size for each in parts for size in each)
        return self._without_ones(Reduce(element.name, sizes, body, element.type, element.told))

    def _without_ones(self, element: Reduce) -> Reduce:
        """Return a sum without the axes that are 1 unless there is nothing to sum."""
        path, sizes = self.path, element.sizes
        with path.scope():
            for size in sizes:
                path.solver.add(size > 0)
            kept = [place for place, size in enumerate(sizes) if not path.same(size, 1)]
        left = tuple(sizes[place] for place in kept)
        if len(kept) == len(sizes) or not path.same(product(left), product(sizes)):
            return element

        def smaller(*inner: Size) -> Any:
            whole: list[Size] = [0] * len(sizes)
            for place, item in zip(kept, inner, strict=True):
                whole[place] = item
            return element.body(*whole)

        return Reduce(element.name, left, smaller, element.type, element.told)

    def _expanded_sum(self, element: Any) -> Any:
        if not isinstance(element, Reduce):
            return self._settled(element) if not self.path.bound else element
        body, kind, sizes = element.body, element.type, element.sizes
        name = element.name

        def summed(change: Callable[[Any], Any]) -> Reduce:
            return Reduce("Sum", sizes, lambda *inner: change(body(*inner)), kind)

        if name == "ReduceSum":
            return summed(lambda each: each)
        if not self.path.type_in(kind, REALS):
            if name == "ReduceSumSquare":
                return summed(lambda each: Op("Mul", (each, each), kind))
            return element
        if name in ("ReduceMax", "ReduceMin", "ReduceProd"):
            return self._merged_reduction(element)
        if name == "ReduceMean":
            count: Any = Const(1, kind)
            for size in sizes:
                count = Op("Mul", (count, Extent(size)), kind)
            return Op("Div", (summed(lambda each: each), count), kind)
        if name == "ReduceSumSquare":
            return summed(lambda each: Op("Mul", (each, each), kind))
        if name == "ReduceL1":
            return summed(lambda each: Op("Abs", (each,), kind))
        if name == "ReduceL2":
            return Op("Sqrt", (summed(lambda each: Op("Mul", (each, each), kind)),), kind)
        if name == "ReduceLogSum":
            return Op("Log", (summed(lambda each: each),), kind)
        if name == "ReduceLogSumExp":
            return Op("Log", (summed(lambda each: Op("Exp", (each,), kind)),), kind)
        return element

    def _merged_reduction(self, element: Reduce) -> Reduce:
        """Return a reduction of reductions of its kind as one."""
        body = element.body
        probe = body(*[0] * len(element.sizes))
        if not isinstance(probe, Reduce) or probe.name != element.name:
            return element
        count = len(element.sizes)

        def merged(*inner: Size) -> Any:
            made = body(*inner[:count])
            return made.body(*inner[count:])

        both = Reduce(element.name, element.sizes + probe.sizes, merged, element.type)
        return self._merged_reduction(both)

    def _undone(self, element: Op) -> Any:
        """Return what an operator leaves of its inverse, or of numbers that it keeps."""
        (inner,) = element.args if len(element.args) == 1 else (None,)
        if isinstance(inner, Reduce):
            inner = self._expanded_sum(self._single(inner))
        if isinstance(inner, Op):
            inner = expanded(inner)
        undoes = element.name == "Exp" and isinstance(inner, Op) and inner.name == "Log"
        if isinstance(inner, Op) and undoes and self._positive(inner.args[0]):
            return inner.args[0]
        if element.name == "Log":
            return _softplus_of_negative(element)
        if element.name == "Abs" and inner is not None and self._from_zero_on(inner):
            return inner
        if element.name == "Mul" and self._alike(*element.args):
            root = element.args[0]
            if isinstance(root, Reduce):
                root = self._expanded_sum(self._single(root))
            if isinstance(root, Op) and root.name == "Sqrt" and self._from_zero_on(root.args[0]):
                return root.args[0]
        return element

    def _positive(self, element: Any) -> bool:
        return _is_positive(element)

    def _from_zero_on(self, element: Any) -> bool:
        """Whether a real number is never negative by its form."""
        if isinstance(element, Reduce):
            element = self._expanded_sum(element)
        if isinstance(element, Reduce) and element.name == "Sum":
            return self._from_zero_on(element.body(*[0] * len(element.sizes)))
        if isinstance(element, Op):
            if element.name in ("Abs", "Exp", "Sqrt"):
                return True
            return element.name == "Mul" and self._alike(*element.args)
        return False

    def _operated(self, element: Op) -> list[_Term] | None:
        name, args, kind = element.name, element.args, element.type
        if name == "symbol":
            return None
        is_real = self.path.type_in(kind, REALS) if kind is not None else True
        if name in ("Add", "Sum"):
            return [term for each in args for term in self._terms(each)]
        if name == "Sub":
            return self._terms(args[0]) + [_scaled(each, -1) for each in self._terms(args[1])]
        if name == "Difference":
            return self._terms(args[0]) + [_scaled(each, -1) for each in self._terms(args[1])]
        if name == "Neg":
            return [_scaled(each, -1) for each in self._terms(args[0])]
        if name == "Mul":
            return self._multiplied(self._terms(args[0]), self._terms(args[1]))
        if name == "Max" and is_real and len(args) == 2 and isinstance(args[1], Const):
            least = args[1].value
            if least <= _LOWEST:
                self.path.bounds.add(f"elements from {least:g} on in Max")
                return self._terms(args[0])
        if name == "Mean" and is_real:
            total = [term for each in args for term in self._terms(each)]
            return [_scaled(each, Fraction(1, len(args))) for each in total]
        if name == "Pow" and isinstance(args[1], Const) and is_real:
            power = args[1].value
            if power in (0, 1, 2, 3, 4):
                made = [_Term(Fraction(1), (), (), ())]
                for _ in range(int(power)):
                    made = self._multiplied(made, self._terms(args[0]))
                return made
            if power == -1:
                return self._inverse(args[0])
            if power == 0.5:
                return self._terms(Op("Sqrt", (args[0],), kind))
        if name == "Pow" and isinstance(args[1], Const) and args[1].value == 2:
            return self._multiplied(self._terms(args[0]), self._terms(args[0]))
        if name == "Div" and is_real:
            return self._multiplied(self._terms(args[0]), self._inverse(args[1]))
        if name == "Reciprocal":
            return self._inverse(args[0])
        if name == "Log":
            return self._logarithm(args[0])
        if name == "Exp":
            return self._exponential(args[0])
        return None

    def _exponential(self, element: Any) -> list[_Term] | None:
        """Return the exponential of a sum as a product; None of what is no sum."""
        element = element if self.path.bound else self._settled(element)
        if not isinstance(element, Op) or element.name not in ("Add", "Sub", "Neg"):
            return None
        made = [_Term(Fraction(1), (), (), ())]
        for place, each in enumerate(element.args):
            power = Op("Exp", (each,), element.type)
            is_added = element.name == "Add" or (element.name == "Sub" and place == 0)
            part = self._terms(power) if is_added else self._inverse(power)
            made = self._multiplied(made, part)
        return made

    def _multiplied(self, one: Sequence[_Term], other: Sequence[_Term]) -> list[_Term]:
        if len(one) * len(other) > _MOST_TERMS:
            raise UnprovenError("the terms are too large")
        made = []
        for left in one:
            for right in other:
                again = right
                if {item for item, _ in left.bound} & {item for item, _ in right.bound}:
                    raise UnprovenError("a product of a sum with itself")
                made.append(
                    _Term(
                        left.factor * again.factor,
                        left.bound + again.bound,
                        left.guards + again.guards,
                        left.factors + again.factors,
                    )
                )
        return made

    def _inverse(self, element: Any) -> list[_Term]:
        terms = self._terms(element)
        if len(terms) == 1 and not terms[0].bound and not terms[0].guards and terms[0].factor:
            factors = tuple((atom, -power) for atom, power in terms[0].factors)
            return [_Term(1 / terms[0].factor, (), (), factors)]
        common, rest = self._without_common(element, terms)
        factors = tuple((atom, -power) for atom, power in common)
        return [_Term(Fraction(1), (), (), (*factors, (rest, -1)))]

    def _without_common(
        self, element: Any, terms: Sequence[_Term]
    ) -> tuple[list[tuple[Any, Any]], Any]:
        """Return the factors that all terms of a sum have, and the sum without these."""
        if isinstance(element, Reduce):
            element = self._expanded_sum(self._single(element))
        if not isinstance(element, Reduce) or element.name != "Sum" or len(terms) != 1:
            return [], element
        items = [item for item, _ in terms[0].bound]
        common = [each for each in terms[0].factors if not self._mentions(each[0], items)]
        if not common or terms[0].guards:
            return [], element
        body, kind = element.body, element.type

        def smaller(*inner: Size) -> Any:
            made = body(*inner)
            for atom, power in common:
                for _ in range(abs(power)):
                    made = Op("Div" if power > 0 else "Mul", (made, atom), kind)
            return made

        return common, Reduce("Sum", element.sizes, smaller, kind, element.told)

    def _mentions(self, element: Any, items: Sequence[Any]) -> bool:
        """Whether an element depends on some of the indices."""
        parts: Sequence[Any] = ()
        places: Sequence[Any] = ()
        if isinstance(element, Op):
            parts = element.args
        elif isinstance(element, Choice):
            parts, places = (element.one, element.other), (element.condition,)
        elif isinstance(element, Reduce):
            inner = (self.path.number("k", None) for _ in element.sizes)
            parts, places = (element.body(*inner),), element.sizes
        elif isinstance(element, In):
            places = element.index
        elif isinstance(element, Extent):
            places = (element.size,)
        changed = [(item, self.z3.IntVal(-1)) for item in items]
        return any(
            not isinstance(each, (int, bool)) and not self.z3.substitute(each, *changed).eq(each)
            for each in places
        ) or any(self._mentions(each, items) for each in parts)

    def _logarithm(self, element: Any) -> list[_Term] | None:
        terms = self._terms(element)
        if len(terms) != 1 or terms[0].guards or terms[0].factor != 1:
            return None
        factors: Sequence[tuple[Any, Any]] = terms[0].factors
        if terms[0].bound:
            common, rest = self._without_common(element, terms)
            if not common:
                return None
            factors = [*common, (rest, 1)]
        if not factors or not all(_is_positive(atom) for atom, _ in factors):
            return None
        made: list[_Term] = []
        for atom, power in factors:
            if isinstance(atom, Op) and atom.name == "Exp":
                part = self._terms(atom.args[0])
            else:
                part = [_Term(Fraction(1), (), (), ((Op("Log", (atom,), atom.type), 1),))]
            made += [_scaled(each, power) for each in part]
        return made

    def _same_term(self, one: _Term, other: _Term) -> bool:
        """Whether two products are equal but for their numbers."""
        if len(one.bound) != len(other.bound):
            return False
        mine, its = _powers(one.factors), _powers(other.factors)
        if len(mine) != len(its):
            mine, its = self._merged(mine), self._merged(its)
            if len(mine) != len(its):
                return False
        path = self.path
        for order in itertools.permutations(range(len(other.bound))):
            pairs = [(one.bound[place], other.bound[item]) for place, item in enumerate(order)]
            if not all(path.same(first[1], second[1]) for first, second in pairs):
                continue
            with path.scope():
                for first, second in pairs:
                    path.solver.add(first[0] == second[0], first[0] >= 0, first[0] < first[1])
                if pairs and not path.possible(True):
                    return True  # the sums are empty
                if not self._same_guards(one, other):
                    continue
                path.solver.add(*one.guards)  # elsewhere, both products are nothing
                if self._same_factors(mine, its):
                    return True
        return False

    def _merged(self, factors: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        made: list[tuple[Any, Any]] = []
        for atom, power in factors:
            for place, (known, total) in enumerate(made):
                if self._same_atom(known, atom):
                    made[place] = (known, total + power)
                    break
            else:
                made.append((atom, power))
        return [each for each in made if each[1] != 0]

    def _same_factors(self, one: list[tuple[Any, Any]], other: list[tuple[Any, Any]]) -> bool:
        left = list(other)
        for atom, power in one:
            for place, (its, its_power) in enumerate(left):
                if power == its_power and self._same_atom(atom, its):
                    del left[place]
                    break
            else:
                return False
        return not left

    def _same_guards(self, one: _Term, other: _Term) -> bool:
        if not one.guards and not other.guards:
            return True
        z3 = self.z3
        return self.path.proves(z3.And(*one.guards) == z3.And(*other.guards))

    def _same_atom(self, one: Any, other: Any) -> bool:
        if self._alike(one, other):
            return True
        if isinstance(one, Op):
            one = expanded(one)
        if isinstance(other, Op):
            other = expanded(other)
        if isinstance(one, Op) and isinstance(other, Op):
            return (
                one.name == other.name
                and one.name not in ("Add", "Sub", "Mul", "Div", "symbol")
                and same_told(one.told, other.told)
                and len(one.args) == len(other.args)
                and all(map(self._real_equal, one.args, other.args))
            ) or (one.name in ("Add", "Sub", "Sum", "Mul", "Div") and self._real_equal(one, other))
        if isinstance(one, Reduce) and isinstance(other, Reduce):
            if one.name == other.name == "Sum":
                return self._real_equal(one, other)
            return self._same_reduction(one, other)
        if isinstance(one, (In, Extent)) and isinstance(other, (In, Extent)):
            return self._same_numbers(one, other)
        return False

    def _same_numbers(self, one: Any, other: Any) -> bool:
        """Whether a condition says that the number in a constant is a size."""
        if isinstance(one, Extent):
            one, other = other, one
        if not isinstance(one, In) or not isinstance(other, Extent):
            return False
        return any(
            op == "=" and not isinstance(size, (ValueOf, Tensor, float, Symbol, Calculated, bool))
            and self.path.same(size, other.size)
            for op, size in one.tensor.facts
        )  # fmt: skip

    def _same_reduction(self, one: Reduce, other: Reduce) -> bool:
        path = self.path
        if one.name != other.name or not same_told(one.told, other.told):
            return False
        first, second = self._single(one), self._single(other)
        if isinstance(first, Reduce) and isinstance(second, Reduce):
            first, second = self._expanded_sum(first), self._expanded_sum(second)
        if not isinstance(first, Reduce) or not isinstance(second, Reduce):
            return self._real_equal(first, second)
        if len(first.sizes) != len(second.sizes):
            return False
        for order in itertools.permutations(range(len(second.sizes))):
            if not all(path.same(first.sizes[n], second.sizes[m]) for n, m in enumerate(order)):
                continue
            with path.scope():
                inner = self._inside(first.sizes)
                if inner is None:
                    return True
                turned: list[Any] = [0] * len(order)
                for place, item in enumerate(order):
                    turned[item] = inner[place]
                mine, its = first.body(*inner), second.body(*turned)
                if first.name in ("ArgMax", "ArgMin"):
                    mine = self._ordered(mine, first, inner)
                    its = self._ordered(its, second, turned)
                if self._real_equal(mine, its):
                    return True
        return False

    def _ordered(self, element: Any, whole: Reduce, inner: Sequence[Any]) -> Any:
        """Return an element that is ordered as another is, along the axes of a reduction."""
        while isinstance(element, Op):
            if element.name in ("Softmax", "LogSoftmax"):
                # The sum must be the same for each element that is compared.
                others = tuple(self.path.number("k") for _ in inner)
                again = whole.body(*others)
                if not isinstance(again, Op) or not self._alike(element.args[1], again.args[1]):
                    return element
            elif element.name != "Exp":
                return element
            element = self._settled(element.args[0])
        return element

    # ---- in real arithmetic, by Z3 ----

    def _real_by_z3(self, one: Any, other: Any) -> bool:
        self._atoms, self._facts = [], []
        left, right = self._as_real(one), self._as_real(other)
        return self._refutes(left != right)

    def _as_real(self, element: Any) -> Any:
        self._step()
        z3 = self.z3
        element = self._settled(element)
        if isinstance(element, Reduce):
            element = self._single(element)
        if isinstance(element, Op):
            element = expanded(element)
        if isinstance(element, Const):
            if isinstance(element.value, bool):
                return z3.BoolVal(element.value)
            if not math.isfinite(element.value):
                raise UnprovenError("an infinite number in real arithmetic")
            return z3.RealVal(_fraction(element.value))
        if isinstance(element, Extent):
            if self.path.same(element.size, 1):
                return z3.RealVal(1)
            return z3.ToReal(z3.IntVal(0) + element.size)
        is_bool = False
        kind = type_of(element)
        if kind is not None:
            is_bool = self.path.type_in(kind, {"bool"})
        sort = z3.BoolSort() if is_bool else z3.RealSort()
        if isinstance(element, In):
            made, is_new = self._atom(element, self._alike, sort)
            if is_new:
                for fact in element.tensor.facts:
                    if fact[0].removeprefix("not ") not in ("sign", "finite"):
                        self._note(made, fact, sort)
            return made
        if isinstance(element, Op):
            if element.name == "symbol":
                return self._atom(element, self._alike, sort)[0]
            args = [self._as_real(each) for each in element.args]
            found = real_operator(self, element, args)
            if found is not None:
                return found
            made, is_new = self._atom(element, self._same_atom, sort)
            if is_new and element.name in _FROM_ZERO:
                self._facts.append(made >= 0)
            return made
        made, is_new = self._atom(element, self._same_atom, sort)
        if is_new and set(element.name.split("|")) <= _SUMS_FROM_ZERO:
            self._facts.append(made >= 0)
        return made


def same_tensors(path: Path, one: Tensor | None, other: Tensor | None) -> bool:
    """Whether two tensors have the same shape and elements, bit for bit."""
    if one is None or other is None:
        return one is other
    if one is other:
        return True
    if one.rank != other.rank or not all(map(path.same, one.shape, other.shape)):
        return False
    with path.scope():
        index = tuple(path.number("i") for _ in one.shape)
        for item, size in zip(index, one.shape, strict=True):
            path.solver.add(item < size)
        if not path.possible(True):
            return True
        return Equality(path, exact=True).equal(one.at(index), other.at(index))


@dataclass(frozen=True, eq=False)
class _Term:
    """A product: a number, the sums over indices that it stands in, conditions, and factors."""

    factor: Any
    bound: tuple[tuple[Any, Size], ...]
    guards: tuple[Any, ...]
    factors: tuple[tuple[Any, Any], ...]


def _scaled(term: _Term, by: Any) -> _Term:
    return _Term(term.factor * by, term.bound, term.guards, term.factors)


def _guarded(term: _Term, condition: Any) -> _Term:
    return _Term(term.factor, term.bound, (*term.guards, condition), term.factors)


def _powers(factors: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return list(factors)


def _fraction(value: Any) -> Any:
    """Return a number, and one next to a simple fraction as this."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    near = Fraction(value).limit_denominator(100)
    if near and abs(float(near) - value) <= _TOLERANCE * abs(value):
        return near
    return Fraction(value)


def _stated(element: In) -> Any:
    """Return the number that a condition says each element of a constant is."""
    for op, number in element.tensor.facts:
        if op != "=" or isinstance(number, (ValueOf, Tensor, Symbol, Calculated, str, bool)):
            continue
        if isinstance(number, (int, float)):
            return Const(number, element.tensor.type)
        return Extent(number)
    return element


def same_number(one: Any, other: Any) -> bool:
    """Whether two numbers have the same bits."""
    if isinstance(one, float) or isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


def same_told(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether attributes are equal."""

    def same(mine: Any, its: Any) -> bool:
        mine, its = known_number(mine), known_number(its)
        if mine is its or (isinstance(mine, (int, float, str)) and mine == its):
            return True
        floats = isinstance(mine, float) and isinstance(its, float)
        return floats and abs(mine - its) <= _TOLERANCE * abs(mine)

    return len(one) == len(other) and all(map(same, one, other))


def _print(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else f"{value!r}"
        if isinstance(value, (int, float))
        else f"#{id(value)}"
    )


def type_of(element: Any) -> Type | None:
    """Return the type of an element; None of a size."""
    if isinstance(element, In):
        return element.tensor.type
    if isinstance(element, Choice):
        return type_of(element.one)
    return getattr(element, "type", None)


def _softplus_of_negative(element: Op) -> Op:
    """Return log(exp(-|x|) + 1) as log(exp(x) + 1) - max(x, 0), other logarithms as they are."""
    kind, found = element.type, element.args[0]
    for name in ("Add", "Exp", "Neg", "Abs"):
        if not isinstance(found, Op) or found.name != name:
            return element
        if name == "Add":
            one, other = found.args
            if isinstance(one, Const):
                one, other = other, one
            if not isinstance(other, Const) or other.value != 1:
                return element
            found = one
        else:
            found = found.args[0]
    greatest = Op("Max", (found, Const(0, kind)), kind)
    return Op("Sub", (expanded(Op("Softplus", (found,), kind)), greatest), kind)


def _is_positive(element: Any) -> bool:
    if isinstance(element, Op):
        if element.name in ("Mul", "Div"):
            return all(map(_is_positive, element.args))
        return element.name == "Exp"
    if isinstance(element, Reduce) and element.name == "Sum":
        body = element.body(*[0] * len(element.sizes))
        return _is_positive(body)
    return False


_FROM_ZERO: Final = frozenset({"Exp", "Sigmoid", "Softmax", "HardSigmoid"})
_SUMS_FROM_ZERO: Final = frozenset({"ReduceL1", "ReduceL2", "ReduceSumSquare"})
_MIXED: Final = frozenset(
    [
        "Equal",
        "Greater",
        "Less",
        "GreaterOrEqual",
        "LessOrEqual",
        "Where",
        "Cast",
        "IsNaN",
        "Pow",
        "Difference",
        "Quantize",
        "trained",
    ]
)

_COMPARES: Final = {
    "Equal": "=", "Less": "<", "Greater": ">", "LessOrEqual": "<=", "GreaterOrEqual": ">=",
}  # fmt: skip

SQRT_HALF: Final = 0.7071067811865476
SQRT_TWO_BY_PI: Final = 0.7978845608028654


def expanded(element: Op) -> Any:
    """Return an element written with simpler operators, as ONNX defines it for real numbers."""
    kind, args, name = element.type, element.args, element.name

    def op(which: str, *given: Any) -> Op:
        made = [Const(each, kind) if isinstance(each, (int, float)) else each for each in given]
        return Op(which, tuple(made), kind)

    if name == "Softmax":
        return op("Div", op("Exp", args[0]), args[1])
    if name == "LogSoftmax":
        return op("Sub", args[0], op("Log", args[1]))
    x = args[0] if args else None
    if name == "Sigmoid":
        return op("Reciprocal", op("Add", op("Exp", op("Neg", x)), 1))
    if name == "Softplus":
        return op("Log", op("Add", op("Exp", x), 1))
    if name == "Mish":
        return op("Mul", x, op("Tanh", op("Softplus", x)))
    if name == "Swish":
        alpha = element_of(known_number(element.told[0]), kind)
        return op("Mul", x, op("Sigmoid", op("Mul", x, alpha)))
    if name in ("LeakyRelu", "PRelu", "Elu"):
        factor = args[1] if name == "PRelu" else element_of(known_number(element.told[0]), kind)
        part = op("Sub", op("Exp", x), 1) if name == "Elu" else x
        below = Op("Less", (x, Const(0, kind)), truth())
        return op("Where", below, op("Mul", part, factor), x)
    if name == "Softsign":
        return op("Div", x, op("Add", op("Abs", x), 1))
    if name == "HardSwish":
        return op("Mul", x, expanded(Op("HardSigmoid", args, kind, (1 / 6, 0.5))))
    if name == "HardSigmoid":
        alpha, beta = (element_of(known_number(each), kind) for each in element.told)
        return op("Max", op("Min", op("Add", op("Mul", x, alpha), beta), 1), 0)
    if name == "Gelu":
        if element.told[0] == "none":
            inner = op("Erf", op("Mul", x, SQRT_HALF))
        else:
            cube = op("Mul", op("Mul", x, op("Mul", x, x)), 0.044715)
            inner = op("Tanh", op("Mul", op("Add", x, cube), SQRT_TWO_BY_PI))
        return op("Mul", op("Mul", x, op("Add", inner, 1)), 0.5)
    return element


# ---- operators of Z3 ----


def exact_operator(owner: Equality, element: Op, args: Sequence[Any], sort: Any) -> Any:
    """Return an operator of numbers as they are in memory; None if Z3 has none."""
    z3, name = owner.z3, element.name
    first = args[0]
    kind = type_of(element.args[0])
    if name == "Where":
        return z3.If(args[0], args[1], args[2])
    if name == "Cast":
        return _exact_cast(owner, element, first, sort)
    if z3.is_bool(first):
        logic = {"And": z3.And, "Or": z3.Or, "Xor": z3.Xor}
        if name in logic:
            return logic[name](*args)
        if name == "Not":
            return z3.Not(first)
        return first == args[1] if name == "Equal" else None
    if name in ("Max", "Min"):
        made = first
        for each in args[1:]:
            made = _extreme(owner, name == "Max", made, each, kind)
        return made
    if z3.is_fp(first):
        return _exact_float(owner, name, args)
    if z3.is_bv(first):
        signed = kind is not None and owner.path.type_in(kind, SIGNED)
        return _exact_whole(z3, name, args, signed)
    return None


def _extreme(owner: Equality, greatest: bool, one: Any, other: Any, kind: Any) -> Any:
    z3 = owner.z3
    if z3.is_fp(one):
        # Implementations return the first of two zeros, the second, or that of IEEE 754.
        first = z3.Bool("zeros:first")
        zero_of = z3.If(
            z3.Bool("zeros:by place"),
            z3.If(first, one, other),
            z3.fpPlusZero(one.sort()) if greatest else z3.fpMinusZero(one.sort()),
        )
        above = z3.fpGT(one, other) if greatest else z3.fpLT(one, other)
        below = z3.fpLT(one, other) if greatest else z3.fpGT(one, other)
        return z3.If(
            z3.fpIsNaN(one), one, z3.If(z3.fpIsNaN(other), other, z3.If(
                above, one, z3.If(below, other, z3.If(one == other, one, zero_of))))
        )  # fmt: skip
    signed = kind is not None and owner.path.type_in(kind, SIGNED)
    above = (one >= other) if signed else z3.UGE(one, other)
    return z3.If(above, one, other) if greatest else z3.If(above, other, one)


def _exact_float(owner: Equality, name: str, args: Sequence[Any]) -> Any:
    z3 = owner.z3
    x, sort, even = args[0], args[0].sort(), z3.RNE()
    zero = z3.If(z3.Bool(f"zero:{name}"), z3.fpPlusZero(sort), z3.fpMinusZero(sort))
    one = z3.FPVal(1.0, sort)
    if name == "Relu":
        # The sign of Relu(-0.0) is not specified: it is that of Max(-0.0, 0.0).
        zero = z3.If(
            z3.And(z3.Bool("zeros:by place"), z3.Bool("zeros:first")),
            z3.fpMinusZero(sort), z3.fpPlusZero(sort),
        )  # fmt: skip
        return z3.If(z3.fpIsNaN(x), x, z3.If(
            z3.fpGT(x, z3.fpPlusZero(sort)), x,
            z3.If(x == z3.fpMinusZero(sort), zero, z3.fpPlusZero(sort))))  # fmt: skip
    if name == "Sign":
        same = z3.If(z3.fpIsZero(x), z3.If(z3.fpIsNegative(x), zero, z3.fpPlusZero(sort)), x)
        return z3.If(z3.Or(z3.fpIsNaN(x), z3.fpIsZero(x)), same,
                     z3.If(z3.fpIsNegative(x), z3.fpNeg(one), one))  # fmt: skip
    unary: dict[str, Callable[[], Any]] = {
        "Neg": lambda: z3.fpNeg(x),
        "Abs": lambda: z3.fpAbs(x),
        "Ceil": lambda: z3.fpRoundToIntegral(z3.RTP(), x),
        "Floor": lambda: z3.fpRoundToIntegral(z3.RTN(), x),
        "Round": lambda: z3.fpRoundToIntegral(even, x),
        "IsNaN": lambda: z3.fpIsNaN(x),
    }
    if name in unary:
        return unary[name]()
    if len(args) != 2:
        return None
    y = args[1]
    binary: dict[str, Callable[[], Any]] = {
        "Add": lambda: z3.fpAdd(even, x, y),
        "Sub": lambda: z3.fpAdd(even, x, z3.fpNeg(y)),
        "Mul": lambda: _signed(z3, "Mul", x, y),
        "Div": lambda: _signed(z3, "Div", x, y),
        "Equal": lambda: z3.fpEQ(x, y),
        "Less": lambda: z3.fpLT(x, y),
        "Greater": lambda: z3.fpGT(x, y),
        "LessOrEqual": lambda: z3.fpLEQ(x, y),
        "GreaterOrEqual": lambda: z3.fpGEQ(x, y),
    }
    if name == "Pow":
        made = z3.Function("Pow", sort, y.sort(), sort)(x, y)
        return z3.If(y == (z3.FPVal(1.0, y.sort()) if z3.is_fp(y) else 1), x, made)
    return binary[name]() if name in binary else None


def _signed(z3: Any, name: str, x: Any, y: Any) -> Any:
    """Return a product or quotient: the sign, and some function of the absolute values.

    Rounding to the nearest number is symmetric, so that this holds of IEEE's operators; a product
    does not depend on the order, and 1 changes nothing.
    """
    sort = x.sort()
    one = z3.FPVal(1.0, sort)
    left, right = z3.fpAbs(x), z3.fpAbs(y)
    function = z3.Function(f"{name}:absolute", sort, sort, sort)
    made = function(left, right)
    if name == "Mul":
        # The same function of both orders.
        made = z3.If(z3.fpLEQ(left, right), function(left, right), function(right, left))
        made = z3.If(left == one, right, made)
    made = z3.If(right == one, left, made)
    negative = z3.Xor(z3.fpIsNegative(x), z3.fpIsNegative(y))
    made = z3.If(z3.Or(z3.fpIsNaN(x), z3.fpIsNaN(y)), z3.fpNaN(sort), z3.fpAbs(made))
    return z3.If(z3.fpIsNaN(made), made, z3.If(negative, z3.fpNeg(made), made))


def _exact_whole(z3: Any, name: str, args: Sequence[Any], signed: bool) -> Any:
    x = args[0]
    zero, one = z3.BitVecVal(0, x.sort()), z3.BitVecVal(1, x.sort())
    unary: dict[str, Callable[[], Any]] = {
        "Neg": lambda: -x,
        "Abs": lambda: z3.If(x < 0, -x, x) if signed else x,
        "Relu": lambda: z3.If(x < 0, zero, x) if signed else x,
        "Sign": lambda: z3.If(x == 0, zero, z3.If(x < 0, -one, one) if signed else one),
        "BitwiseNot": lambda: ~x,
    }
    if name in unary:
        return unary[name]()
    if len(args) != 2 or not z3.is_bv(args[1]):
        return None
    y = args[1]
    binary: dict[str, Callable[[], Any]] = {
        "Add": lambda: x + y,
        "Sub": lambda: x - y,
        "Mul": lambda: x * y,
        "BitwiseAnd": lambda: x & y,
        "BitwiseOr": lambda: x | y,
        "BitwiseXor": lambda: x ^ y,
        "Equal": lambda: x == y,
        "Less": lambda: x < y if signed else z3.ULT(x, y),
        "Greater": lambda: x > y if signed else z3.UGT(x, y),
        "LessOrEqual": lambda: x <= y if signed else z3.ULE(x, y),
        "GreaterOrEqual": lambda: x >= y if signed else z3.UGE(x, y),
    }
    if name == "Div":
        made = z3.Function(f"Div:{signed}", x.sort(), x.sort(), x.sort())(x, y)
        return z3.If(y == 1, x, made)
    return binary[name]() if name in binary else None


def _exact_cast(owner: Equality, element: Op, x: Any, sort: Any) -> Any:
    z3, even = owner.z3, owner.z3.RNE()
    if x.sort() == sort:
        return x
    kind = type_of(element.args[0])
    signed = kind is not None and owner.path.type_in(kind, SIGNED)
    if z3.is_bool(x):
        return z3.If(x, owner._number(1, sort), owner._number(0, sort))
    if sort.kind() == z3.Z3_BOOL_SORT:
        if z3.is_fp(x):
            return z3.Not(z3.fpIsZero(x))
        return x != 0 if z3.is_bv(x) else None
    if z3.is_fp(x) and sort.kind() == z3.Z3_FLOATING_POINT_SORT:
        return z3.fpFPToFP(even, x, sort)
    if z3.is_bv(x) and sort.kind() == z3.Z3_FLOATING_POINT_SORT:
        return z3.fpSignedToFP(even, x, sort) if signed else z3.fpUnsignedToFP(even, x, sort)
    if z3.is_bv(x) and sort.kind() == z3.Z3_BV_SORT:
        if x.size() > sort.size():
            return z3.Extract(sort.size() - 1, 0, x)
        more = sort.size() - x.size()
        return z3.SignExt(more, x) if signed else z3.ZeroExt(more, x)
    if z3.is_fp(x) and sort.kind() == z3.Z3_BV_SORT:
        # Implementations differ for numbers outside of the type.
        whole = z3.fpToSBV(z3.RTZ(), x, sort)
        other = z3.Function("Cast:outside", x.sort(), sort)(x)
        name = owner.path.type_name(element.type)
        if name not in SIGNED:
            whole = z3.fpToUBV(z3.RTZ(), x, sort)
        low = -(1 << (sort.size() - 1)) if name in SIGNED else 0
        high = (1 << (sort.size() - 1)) if name in SIGNED else 1 << sort.size()
        inside = z3.And(z3.Not(z3.fpIsNaN(x)), z3.fpGEQ(x, z3.FPVal(low, x.sort())),
                        z3.fpLT(x, z3.FPVal(high, x.sort())))  # fmt: skip
        return z3.If(inside, whole, other)
    return None


def real_operator(owner: Equality, element: Op, args: Sequence[Any]) -> Any:
    """Return an operator of real numbers; None if Z3 has none."""
    z3, name = owner.z3, element.name
    if name == "Where":
        return z3.If(args[0], args[1], args[2])
    if args and z3.is_bool(args[0]):
        return {"And": z3.And, "Or": z3.Or, "Xor": z3.Xor, "Not": z3.Not}.get(
            name, lambda *_: None
        )(*args)
    if name in ("Max", "Min"):
        made = args[0]
        for each in args[1:]:
            made = z3.If(made >= each if name == "Max" else made <= each, made, each)
        return made
    if name in ("Sum", "Mean"):
        total = z3.Sum(*args)
        return total if name == "Sum" else total / len(args)
    table: dict[str, Callable[..., Any]] = {
        "Add": lambda x, y: x + y,
        "Sub": lambda x, y: x - y,
        "Mul": lambda x, y: x * y,
        "Div": lambda x, y: x / y,
        "Neg": lambda x: -x,
        "Reciprocal": lambda x: 1 / x,
        "Abs": lambda x: z3.If(x >= 0, x, -x),
        "Relu": lambda x: z3.If(x >= 0, x, z3.RealVal(0)),
        "Sign": lambda x: z3.If(x > 0, z3.RealVal(1), z3.If(x < 0, z3.RealVal(-1), z3.RealVal(0))),
        "Equal": lambda x, y: x == y,
        "Less": lambda x, y: x < y,
        "Greater": lambda x, y: x > y,
        "LessOrEqual": lambda x, y: x <= y,
        "GreaterOrEqual": lambda x, y: x >= y,
    }
    return table[name](*args) if name in table else None
