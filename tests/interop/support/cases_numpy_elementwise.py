"""Cases of the NumPy operators that compute element by element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

NAN, INF = float("nan"), float("inf")
INTEGERS = ["int8", "uint8", "int32", "int64"]
REALS = ["float16", "float32", "float64"]
UNARY = (
    "absolute arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 "
    "fix floor log log10 log1p log2 negative radians reciprocal rint sign sin sinh sqrt square "
    "tan tanh trunc"
)
COMPARISONS = "equal not_equal less less_equal greater greater_equal"
UNDEFINED_AT_ZERO = "log log10 log2 reciprocal arccosh arctanh"
SPECIAL = of(NAN, INF, -INF, 0, -0.0, 1.5, -2.5)


def unary() -> Iterator[Case]:
    """Functions of one array, of every type, empty, without axes, and of special values."""
    for name in UNARY.split():
        operator = f"_npi_{name}"
        low, high = (1.0, 3.0) if name == "arccosh" else (0.05, 0.95)
        yield case(operator, real(2, 3, low=low, high=high))
        yield case(operator, real(3, low=low, high=high, dtype="float64"))
        yield case(operator, real(4, low=low, high=high, dtype="float16"))
        yield case(operator, real(low=low, high=high))
        yield case(operator, real(0, 3))
        yield case(operator, real(2, 0, 1, dtype="float64"))
        yield case(operator, whole(2, 2, low=1, high=2, dtype="int32"))
        yield case(operator, whole(3, low=1, high=2, dtype="int64"))
        yield case(operator, whole(3, low=1, high=2, dtype="uint8"))
        if name not in UNDEFINED_AT_ZERO.split():
            yield case(operator, of(0, 1, dtype="int8"))
            yield case(operator, SPECIAL)
    for name in ["isfinite", "isinf", "isnan", "isneginf", "isposinf", "logical_not"]:
        for dtype in REALS:
            yield case(f"_npi_{name}", SPECIAL.astype(dtype))
        for dtype in ("bool", *INTEGERS):
            yield case(f"_npi_{name}", of(0, 1, 3, dtype=dtype))
        yield case(f"_npi_{name}", real(0, 2))
        yield case(f"_npi_{name}", real())
    for dtype in ("bool", *INTEGERS):
        yield case("_npi_bitwise_not", of(0, 1, 6, 100, dtype=dtype))
        yield case("_npi_bitwise_not", of(dtype=dtype))
        yield case("_npi_bitwise_not", np.ones((), dtype))
    for dtype in REALS:
        yield case("_npx_sigmoid", real(2, 3, dtype=dtype))
        yield case("_npx_relu", real(2, 3, dtype=dtype))
    for shape in ((), (0,), (2, 0, 3), (1, 1)):
        yield case("_npx_sigmoid", real(*shape))
        yield case("_npx_relu", real(*shape))
    for dtype in ("int32", "int8"):
        yield case("_npx_sigmoid", whole(4, dtype=dtype))
        yield case("_npx_relu", whole(4, dtype=dtype))
    for dtype in ("bool", *INTEGERS, *REALS):
        yield case("_np_copy", whole(2, 3, dtype=dtype))
    yield case("_np_copy", real(0))
    yield case("_np_copy", real())


def rounding() -> Iterator[Case]:
    """Rounding to decimals, and replacement of NaN and infinities."""
    halves = of(2.5, -2.5, 0.5, 1.5, -0.5, 15, 25, -25, 149.5, -0.04, 1.25)
    for decimals in (0, 1, -1, 2, -2):
        yield case("_npi_around", halves, decimals=decimals)
        yield case("_npi_around", halves.astype("float64"), decimals=decimals)
        for dtype in INTEGERS:
            yield case("_npi_around", of(15, 25, 100, 7, 99, dtype=dtype), decimals=decimals)
    yield case("_npi_around", of(-15, -25, -149, dtype="int64"), decimals=-1)
    yield case("_npi_around", real(0, 2), decimals=1)
    yield case("_npi_around", real())
    for dtype in REALS:
        yield case("_npi_nan_to_num", SPECIAL.astype(dtype))
        yield case("_npi_nan_to_num", SPECIAL.astype(dtype), nan=3, posinf=5, neginf=-7.5)
        yield case("_npi_nan_to_num", SPECIAL.astype(dtype), posinf=2, copy=False)
    for dtype in ("bool", *INTEGERS):
        yield case("_npi_nan_to_num", of(0, 1, 2, dtype=dtype), nan=3)
    yield case("_npi_nan_to_num", real(0, 2))
    yield case("_npi_nan_to_num", np.full((), NAN, "float32"), nan=-1)


def pairs(*types: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Arrays of one type: of equal shapes, broadcast, empty, without axes."""
    for dtype in types:
        low = 0 if dtype == "uint8" else -4
        yield whole(2, 3, low=low, dtype=dtype), whole(2, 3, low=1, high=5, dtype=dtype)
        yield whole(2, 1, 3, low=low, dtype=dtype), whole(4, 1, low=1, high=3, dtype=dtype)
    yield real(0, 3), real(3)
    yield real(2, 0), real(1, 1)
    yield real(), real(2)
    yield real(), real()


def binary() -> Iterator[Case]:
    """Functions of two arrays: types that promote, shapes that broadcast, odd values."""
    every = ("bool", *INTEGERS, *REALS)
    for name in ["add", "subtract", "multiply", "mod", "power", "true_divide"]:
        operator = f"_npi_{name}"
        for pair in pairs(*INTEGERS, *REALS):
            yield case(operator, *pair)
        for first in every:
            for second in every:
                left, right = of(1, 0, 3, 2, dtype=first), of(1, 1, 2, 1, dtype=second)
                if compatible(name, first, second):
                    yield case(operator, left, right)
                if compatible(name, first, second, stretched=True):
                    yield case(operator, left.reshape(4, 1), right[:2])
                    if first != second:
                        yield case(operator, of(left[2], dtype=first).reshape(()), right)
    yield case(
        "_npi_mod", of(5, -5, 5, -5, 5, 0, dtype="int32"), of(3, 3, -3, -3, 0, 4, dtype="int32")
    )
    yield case("_npi_mod", of(5.5, -5, 5, -5, 5, 0), of(3, 3, -3, -3, 0, INF))
    yield case("_npi_power", of(2, 3, -2, 0, dtype="int32"), of(-1, 3, 3, 0, dtype="int32"))
    yield case("_npi_power", of(-8, 3, -2, 0, INF), of(1 / 3, 0.5, 3, -1, 0))
    yield case("_npi_true_divide", of(1, 0, -1, dtype="int32"), of(0, 0, 0, dtype="int32"))
    yield case("_npi_add", of(100, 100, dtype="int8"), of(100, 27, dtype="int8"))
    yield case("_npi_add", of(2**24 + 1, dtype="int32"), of(1.0))
    for name in COMPARISONS.split():
        operator = f"_npi_{name}"
        for pair in pairs("bool", *INTEGERS, *REALS):
            yield case(operator, *pair)
        yield case(operator, of(1, NAN, INF, -0.0), of(NAN, NAN, INF, 0))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm"):
        kinds = INTEGERS if name == "lcm" else ["bool", *INTEGERS]
        for pair in pairs(*kinds):
            broadcasts = pair[0].shape != pair[1].shape
            # MXNet refuses truth values that broadcast.
            if pair[0].dtype.kind != "f" and not (broadcasts and pair[0].dtype == bool):
                yield case(f"_npi_{name}", *pair)
        yield case(f"_npi_{name}", of(dtype="int32"), of(3, dtype="int32"))
        yield case(f"_npi_{name}", np.int64(6) * np.ones((), "int64"), of(4, -9, 0, dtype="int64"))
    for name in ("arctan2", "hypot", "copysign", "ldexp", "maximum", "minimum"):
        kinds = REALS if name in ("arctan2", "hypot") else [*INTEGERS, *REALS]
        for pair in pairs(*kinds):
            yield case(f"_npi_{name}", *pair)
    angles = (
        of(1, -1, 0, 0, -0.0, -0.0, 2, INF, INF, 1),
        of(1, -1, -0.0, 0, -1, 1, 0, INF, -INF, -INF),
    )
    for dtype in REALS:
        yield case("_npi_arctan2", *(angle.astype(dtype) for angle in angles))
    yield case("_npi_copysign", of(1, -2, 3, 0, INF), of(-0.0, 1, -5, -1, -INF))
    yield case(
        "_npi_lcm", of(2**20, 28657, 0, -12, dtype="int64"), of(3**12, 46368, 5, 18, dtype="int64")
    )
    yield case("_npi_lcm", of(28657, 6765, dtype="int32"), of(46368, 10946, dtype="int32"))
    yield case("_npi_ldexp", of(4, -6, dtype="int32"), of(2, -2, dtype="int32"))


def compatible(name: str, first: str, second: str, *, stretched: bool = False) -> bool:
    """Whether MXNet computes with two element types, of equal shapes or of one that stretches."""
    kinds = {first, second}
    if first == second:
        return name not in ("subtract", "mod") or first != "bool"
    if name == "true_divide":
        return len(kinds & set(REALS)) == 1
    if kinds & set(REALS):
        return True
    mixes = stretched or name in ("add", "multiply", "power")
    return mixes and kinds != {"int8", "uint8"}


def numbers() -> Iterator[Case]:
    """Functions of an array and a number."""
    plain = "add subtract rsubtract multiply mod rmod power rpower true_divide rtrue_divide"
    other = "arctan2 rarctan2 copysign rcopysign ldexp rldexp maximum minimum"
    for name in f"{plain} {other} {COMPARISONS}".split():
        operator = f"_npi_{name}_scalar"
        for dtype in ("bool", *INTEGERS, *REALS):
            if dtype == "bool" and name in ("maximum", "minimum"):
                continue
            data = of(1, 2, 3, dtype=dtype)
            yield case(operator, data, scalar=2)
            if name not in ("rldexp", "ldexp") or dtype != "bool":
                yield case(operator, data, scalar=2.5, is_int=False)
        yield case(operator, real(0, 2), scalar=1.5, is_int=False)
        yield case(operator, real(), scalar=-3)
        yield case(operator, of(1, 3, dtype="int32"))
    yield case("_npi_add_scalar", of(200, 0, dtype="uint8"), scalar=256)
    yield case("_npi_add_scalar", of(200, 0, dtype="uint8"), scalar=2.7)
    yield case("_npi_mod_scalar", of(5, -5, dtype="int32"), scalar=0)
    yield case("_npi_mod_scalar", of(5, -5.5), scalar=-3)
    yield case("_npi_rmod_scalar", of(3, -3, 0, dtype="int32"), scalar=5)
    yield case("_npi_true_divide_scalar", of(1, 2, dtype="int32"), scalar=0)
    yield case("_npi_power_scalar", of(2, -3, 1, dtype="int32"), scalar=-1)
    yield case("_npi_less_scalar", of(1, 2, 3, dtype="int32"), scalar=2.5)
    yield case("_npi_equal_scalar", of(200, 0, dtype="uint8"), scalar=-56)
    yield case("_npi_equal_scalar", of(1, 0, dtype="bool"), scalar=2)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm"):
        kinds = INTEGERS if name == "lcm" else ["bool", *INTEGERS]
        for dtype in kinds:
            yield case(f"_npi_{name}_scalar", of(0, 1, 6, dtype=dtype), scalar=3)
            yield case(f"_npi_{name}_scalar", of(dtype=dtype), scalar=5)
            yield case(f"_npi_{name}_scalar", np.ones((), dtype), scalar=7)
        yield case(f"_npi_{name}_scalar", of(12, -7, dtype="int32"), scalar=-6)


def cases() -> Iterator[Case]:
    """Yield every case of the family."""
    yield from unary()
    yield from rounding()
    yield from binary()
    yield from numbers()
