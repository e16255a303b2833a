"""Functions of two arrays that broadcast, or of an array and a number.

Arrays of different element types are promoted; comparisons return truth values. With a number
the array's type counts, but integers become float64 if ``is_int`` is false and truth values
become int64; division computes integers in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.elementwise.binary import BINARY, array_and_number
from passlib.mxnet.lowering.elementwise.unary import arctangent
from passlib.mxnet.lowering.real_arithmetic import is_real, is_true, number_of, through_real
from passlib.mxnet.lowering.table import table


def promoted(op: Operation, a: Value, b: Value, *, mixes_integers: bool) -> np.dtype:
    """Return the element type in which MXNet computes with two arrays.

    A floating-point type wins over integers whatever its width, the wider one wins among types of
    one kind, truth values lose. Raises `Misfit` if MXNet computes nothing from the two: uint8 and
    int8, or two integer types without ``mixes_integers``.
    """
    first, second = op.dtype_of(a), op.dtype_of(b)
    if first == second:
        return first
    reals = [dtype for dtype in (first, second) if is_real(dtype)]
    if len(reals) == 1:
        return reals[0]
    wider = max(first, second, key=lambda dtype: (dtype != np.bool_, dtype.itemsize))
    same_width = first.itemsize == second.itemsize and np.bool_ not in (first, second)
    if same_width or not (reals or mixes_integers):
        raise Misfit(f"MXNet does not combine {first} and {second}")
    return wider


def equal_types(op: Operation, a: Value, b: Value) -> None:
    """Check that two arrays have one element type.

    Raises `Misfit` if they differ.
    """
    first, second = op.dtype_of(a), op.dtype_of(b)
    if first != second:
        raise Misfit(f"MXNet does not combine {first} and {second} here")


def in_bytes(op: Operation, value: Value) -> Value:
    """Return truth values as uint8, in which ONNX computes; anything else as it is."""
    return op.cast(value, np.uint8) if op.dtype_of(value) == np.bool_ else value


def _is_negative(op: Operation, x: Value) -> Value:
    """Whether each element has a minus sign, -0 included."""
    return (x < 0) | op.emit("IsInf", op.emit("Reciprocal", x), detect_positive=0)


def _angle(op: Operation, y: Value, x: Value) -> Value:
    """Compute the angle of the point (x, y): arctan |y / x|, mirrored by the signs."""

    def compute(y: Value, x: Value) -> Value:
        zero = op.constant_like(0, y)
        height, width = op.emit("Abs", y), op.emit("Abs", x)
        slope = height / width
        slope = op.where(height.equals(width), 1, slope)
        slope = op.where(height.equals(zero), zero, slope)
        angle = arctangent(op, slope)
        angle = op.where(_is_negative(op, x), np.pi - angle, angle)
        return op.where(_is_negative(op, y), -angle, angle)

    return through_real(op, (y, x), compute)


def _copy_sign(op: Operation, a: Value, b: Value) -> Value:
    """Negate a where the signs differ; -0 counts as positive in MXNet."""
    if op.dtype_of(a).kind == "u":
        return a + (b - b)
    zeros = op.constant_like(0, a), op.constant_like(0, b)
    above = [op.emit("GreaterOrEqual", *pair) for pair in zip((a, b), zeros, strict=True)]
    below = [op.emit("Less", *pair) for pair in zip((a, b), zeros, strict=True)]
    return op.where(op.emit("And", *above) | op.emit("And", *below), a, -a)


def _scaled_by_power(op: Operation, a: Value, b: Value) -> Value:
    def compute(x: Value, exponent: Value) -> Value:
        return x * 2**exponent

    return through_real(op, (a, b), compute)


_EUCLIDEAN_STEPS = {1: 13, 4: 46, 8: 91}
"""By the width of the type: the most divisions that two integers need, Fibonacci numbers."""


def _common_multiple(op: Operation, a: Value, b: Value) -> Value:
    """Compute |a b| / gcd by unrolled Euclidean division; 0 where either is 0."""
    if is_real(op.dtype_of(a)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(a)}")
    if op.dtype_of(a).kind == "i":
        a, b = op.emit("Abs", a), op.emit("Abs", b)
    zero, one = op.constant_like(0, a), op.constant_like(1, a)
    larger, smaller = a, b
    for _ in range(_EUCLIDEAN_STEPS[op.dtype_of(a).itemsize]):
        done = smaller.equals(zero)
        rest = op.emit("Mod", larger, op.where(done, one, smaller))
        larger = op.where(done, larger, smaller)
        smaller = op.where(done, zero, rest)
    return a / op.where(larger.equals(zero), one, larger) * b


def _bitwise(function: str, op: Operation, a: Value, b: Value) -> Value:
    if is_real(op.dtype_of(a)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(a)}")
    return op.emit(f"Bitwise{function}", a, b)


FUNCTIONS: dict[str, Callable[[Operation, Value, Value], Value]] = {
    "arctan2": _angle,
    "bitwise_and": partial(_bitwise, "And"),
    "bitwise_or": partial(_bitwise, "Or"),
    "bitwise_xor": partial(_bitwise, "Xor"),
    "copysign": _copy_sign,
    "lcm": _common_multiple,
    "ldexp": _scaled_by_power,
}
"""By name; unsigned bytes stand for truth values."""


__all__: list[str] = []

_ARITHMETIC = {
    "add": ("add", True),
    "subtract": ("subtract", False),
    "multiply": ("multiply", True),
    "mod": ("modulo", False),
    "power": ("power", True),
}
"""The function of two arrays, and whether it takes integers of two types in one shape."""

_COMPARISONS = {
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "less": "lesser",
    "less_equal": "lesser_equal",
}

_REVERSED = ("subtract", "mod", "power", "arctan2", "copysign", "ldexp")
"""Functions that also take the number as the first operand, under a name with ``r``."""


def _compute(function: str, op: Operation, a: Value, b: Value) -> Value:
    """Apply a function to operands of one type; truth values are computed as bytes."""
    dtype = op.dtype_of(a)
    compute = FUNCTIONS.get(function) or BINARY[function]
    return op.cast(compute(op, in_bytes(op, a), in_bytes(op, b)), dtype)


def _promoting(function: str, mixes_integers: bool, op: Operation) -> Value:
    a, b = op.operands(2)
    # Where one of two shapes is stretched, MXNet mixes integers in all of these functions.
    one_shape = a.known and a.shape == b.shape
    dtype = promoted(op, a, b, mixes_integers=mixes_integers or not one_shape)
    return _compute(function, op, op.cast(a, dtype), op.cast(b, dtype))


def _of_one_type(function: str, op: Operation) -> Value:
    a, b = op.operands(2)
    equal_types(op, a, b)
    return _compute(function, op, a, b)


def _compared(function: str, op: Operation, a: Value, b: Value) -> Value:
    return op.cast(BINARY[function](op, in_bytes(op, a), in_bytes(op, b)), np.bool_)


def _comparing(function: str, op: Operation) -> Value:
    a, b = op.operands(2)
    equal_types(op, a, b)
    return _compared(function, op, a, b)


def _ordered(pair: tuple[Value, Value], *, number_first: bool) -> tuple[Value, Value]:
    return pair[::-1] if number_first else pair


def _with_number(function: str, number_first: bool, op: Operation) -> Value:
    if function.startswith("bitwise"):
        data = op.inputs[0]
        return _compute(function, op, data, number_of(op, "scalar", 1.0, op.dtype_of(data)))
    return _compute(function, op, *_ordered(array_and_number(op), number_first=number_first))


def _compared_with_number(function: str, op: Operation) -> Value:
    data = op.inputs[0]
    whole = not is_real(op.dtype_of(data)) and op.dtype_of(data) != np.bool_
    if whole and not op.bool("is_int", True):
        data = op.cast(data, np.float64)
    return _compared(function, op, data, number_of(op, "scalar", 1.0, op.dtype_of(data)))


def _as_divided(op: Operation, dtype: np.dtype) -> np.dtype:
    return dtype if is_real(dtype) else np.dtype(np.float32)


@table.register("_npi_true_divide")
def true_divide(op: Operation) -> Value:
    """Divide; two integers in float32."""
    a, b = op.operands(2)
    dtype = _as_divided(op, promoted(op, a, b, mixes_integers=False))
    return op.cast(a, dtype) / op.cast(b, dtype)


def _divided_by_number(number_first: bool, op: Operation) -> Value:
    data = op.inputs[0]
    dtype = _as_divided(op, op.dtype_of(data))
    pair = op.cast(data, dtype), number_of(op, "scalar", 1.0, dtype)
    return op.emit("Div", *_ordered(pair, number_first=number_first))


def _register(name: str, function: str, two: Callable[[Operation], Value]) -> None:
    table.register(f"_npi_{name}")(two)
    table.register(f"_npi_{name}_scalar")(partial(_with_number, function, False))
    if name in _REVERSED:
        table.register(f"_npi_r{name}_scalar")(partial(_with_number, function, True))


for _name, (_function, _mixes) in _ARITHMETIC.items():
    _register(_name, _function, partial(_promoting, _function, _mixes))
for _name in FUNCTIONS:
    _register(_name, _name, partial(_of_one_type, _name))
for _name, _function in _COMPARISONS.items():
    table.register(f"_npi_{_name}")(partial(_comparing, _function))
    table.register(f"_npi_{_name}_scalar")(partial(_compared_with_number, _function))
table.register("_npi_hypot")(partial(_of_one_type, "hypotenuse"))
table.register("_npi_true_divide_scalar")(partial(_divided_by_number, False))
table.register("_npi_rtrue_divide_scalar")(partial(_divided_by_number, True))


def _is_finite(op: Operation, x: Value) -> Value:
    return ~(op.emit("IsNaN", x) | op.emit("IsInf", x))


_PREDICATES: dict[str, tuple[bool, Callable[[Operation, Value], Value]]] = {
    "isfinite": (True, _is_finite),
    "isinf": (False, lambda op, x: op.emit("IsInf", x)),
    "isnan": (False, lambda op, x: op.emit("IsNaN", x)),
    "isneginf": (False, lambda op, x: op.emit("IsInf", x, detect_positive=0)),
    "isposinf": (False, lambda op, x: op.emit("IsInf", x, detect_negative=0)),
}
"""By name: the answer for every integer, and that for floating-point numbers."""


def _predicate(name: str, op: Operation) -> Value:
    x = op.inputs[0]
    of_integers, compute = _PREDICATES[name]
    if is_real(op.dtype_of(x)):
        return compute(op, x)
    return op.emit("Expand", op.constant(of_integers), op.emit("Shape", x))


for _name in _PREDICATES:
    table.register(f"_npi_{_name}")(partial(_predicate, _name))


@table.register("_npi_logical_not")
def logical_not(op: Operation) -> Value:
    """Whether each element is 0."""
    return ~is_true(op, op.inputs[0])


@table.register("_npi_bitwise_not")
def bitwise_not(op: Operation) -> Value:
    """Invert all bits of integers, or truth values."""
    x = op.inputs[0]
    if is_real(op.dtype_of(x)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(x)}")
    return op.emit("Not" if op.dtype_of(x) == np.bool_ else "BitwiseNot", x)


@table.register("_npi_around")
def around(op: Operation) -> Value:
    """Round to ``decimals``, halves to even; integers are truncated to tens, hundreds, ..."""
    x, decimals = op.inputs[0], op.int("decimals", 0)
    if abs(decimals) > 300:
        op.unsupported("must be between -300 and 300", "decimals")
    if not is_real(op.dtype_of(x)):
        if decimals >= 0:
            return x
        if op.dtype_of(x) == np.bool_:
            op.invalid("is negative, and truth values have no decimals", "decimals")
        unit = 10**-decimals
        if unit > np.iinfo(op.dtype_of(x)).max:
            return x * 0
        ten = op.constant_like(unit, x)
        return x / ten * ten
    if decimals == 0:
        return op.emit("Round", x)
    scale = op.constant_like(10.0 ** abs(decimals), x)
    before, after = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return op.emit(after, op.emit("Round", op.emit(before, x, scale)), scale)


@table.register("_npi_nan_to_num")
def nan_to_num(op: Operation) -> Value:
    """Replace NaN by ``nan``, infinities by ``posinf`` and ``neginf`` or the largest numbers."""
    x = op.inputs[0]
    dtype = op.dtype_of(x)
    if not is_real(dtype):
        return x
    limit = 3.38953139e38 if dtype.name == "bfloat16" else float(np.finfo(dtype).max)
    upper, lower = op.optional_float("posinf"), op.optional_float("neginf")
    replacements = (
        (op.emit("IsNaN", x), op.float("nan", 0.0)),
        (op.emit("IsInf", x, detect_negative=0), limit if upper is None else upper),
        (op.emit("IsInf", x, detect_positive=0), -limit if lower is None else lower),
    )
    for found, number in replacements:
        x = op.where(found, number, x)
    return x


_UNARY = (
    "arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 fix floor "
    "log log10 log1p log2 negative radians reciprocal rint sign sin sinh sqrt square tan tanh trunc"
)

SAME: dict[str, str] = {
    **{f"_npi_{name}": name for name in _UNARY.split()},
    "_np_copy": "_copy",
    "_npi_absolute": "abs",
    "_npi_stack": "stack",
    "_npx_sigmoid": "sigmoid",
}
"""The other operator, by the name in NumPy mode."""

IN_NUMPY_MODE: dict[str, str] = {
    "_full": "_npi_full",
    "_linalg_det": "_npi_det",
    "_linalg_slogdet": "_npi_slogdet",
    "_ones": "_npi_ones",
    "_random_randint": "_npi_random_randint",
    "_zeros": "_npi_zeros",
}
"""The NumPy operator for a name of both modes, in a graph saved in NumPy mode.

There 0 is a size, and an array may have no axes.
"""
