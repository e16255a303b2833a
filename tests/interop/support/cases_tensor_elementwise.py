"""Cases of the operators that act on each element: unary, scalar, binary, broadcast."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

NAN, INF = float("nan"), float("inf")
SPECIAL = of(-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 3.0, NAN, INF, -INF)

EVERYWHERE = (
    "abs sign ceil floor trunc fix rint round exp expm1 square cbrt rcbrt reciprocal sin cos "
    "negative degrees radians arctan arcsinh tanh sinh cosh sigmoid relu softsign erf "
    "logical_not identity BlockGrad make_loss zeros_like ones_like log log2 log10 log1p sqrt rsqrt "
    "hard_sigmoid gamma _contrib_div_sqrt_dim _contrib_round_ste _contrib_sign_ste"
)
SMALL = "arcsin arccos arctanh erfinv tan gammaln log1p expm1 arccosh"
IN_SINGLE_PRECISION = "erf degrees radians hard_sigmoid"
"""Operators that passlib (erf) or MXNet (the others, by their constants) computes imprecisely."""
ON_INTEGERS = (
    "abs sign ceil floor trunc fix rint round square exp sqrt cbrt negative relu tanh sigmoid "
    "logical_not _copy zeros_like ones_like gamma degrees erf arctan softsign sin log1p"
)
SCALAR = (
    "_plus_scalar _minus_scalar _rminus_scalar _mul_scalar _div_scalar _rdiv_scalar _mod_scalar "
    "_rmod_scalar _maximum_scalar _minimum_scalar _hypot_scalar _equal_scalar _not_equal_scalar "
    "_greater_scalar _greater_equal_scalar _lesser_scalar _lesser_equal_scalar "
    "_logical_and_scalar _logical_or_scalar _logical_xor_scalar _power_scalar _rpower_scalar "
    "_scatter_plus_scalar _scatter_minus_scalar"
)
SAME_SHAPE = (
    "elemwise_add elemwise_sub elemwise_mul elemwise_div _mod _power _maximum _minimum _hypot "
    "_equal _not_equal _greater _greater_equal _lesser _lesser_equal _logical_and _logical_or "
    "_logical_xor _grad_add _scatter_elemwise_div"
)
BROADCAST = (
    "broadcast_add broadcast_sub broadcast_mul broadcast_div broadcast_mod broadcast_power "
    "broadcast_maximum broadcast_minimum broadcast_hypot broadcast_equal broadcast_not_equal "
    "broadcast_greater broadcast_greater_equal broadcast_lesser broadcast_lesser_equal "
    "broadcast_logical_and broadcast_logical_or broadcast_logical_xor"
)
INTEGERS = of(1, 2, 3, 5, 7)


def unary() -> Iterator[Case]:
    """One input; special values, integers (MXNet truncates), half and double precision."""
    for name in EVERYWHERE.split():
        yield case(name, SPECIAL)
        precise = 1e-6 if name in IN_SINGLE_PRECISION.split() else 1e-12
        yield case(name, real(2, 3, 4, low=0.1, dtype="float64"), tolerance=precise)
    for name in SMALL.split():
        yield case(name, of(-0.99, -0.5, -1e-4, 0.0, 1e-4, 0.3, 0.99, 1.5, -1.5))
        doubles = of(-1, -0.9, -0.5, 0, 1e-9, 0.25, 0.75, 0.9999999, 1, 1.5, dtype="float64")
        yield case(name, doubles, tolerance=1e-6 if name == "erfinv" else 1e-12)
    yield case("arctan", of(-INF, -1e9, -30, 0.1, 1e200, INF, NAN, dtype="float64"), tolerance=1e-7)
    for name in ON_INTEGERS.split():
        yield case(name, of(0, 1, 2, 3, 5, 7, dtype="int32"))
        yield case(name, of(1, 2, 3, 5, dtype="int64"))
    for name in ("abs", "sign", "negative", "relu", "square"):
        yield case(name, of(-3, 0, 4, dtype="int8"))
        yield case(name, of(3, 0, 4, dtype="uint8"))
    for name in ("exp", "sqrt", "relu", "sigmoid", "gammaln", "cbrt", "arcsinh", "softsign"):
        yield case(name, of(0.5, 1, 2, 3, dtype="float16"))
    yield case("gammaln", of(1e-3, 0.1, 0.5, 1, 2, 2.5, 10, 100.5, 1e6), tolerance=1e-4)
    yield case("gammaln", of(0.1, 0.5, 3.5, 100, dtype="float64"), tolerance=1e-5)
    yield case("gammaln", of(-0.5, -1.5, -2.25, -3.75), tolerance=1e-4)
    yield case("gamma", of(0.1, 0.5, 1, 4.5, 10, 20), tolerance=1e-4)
    yield case("gamma", of(-0.5, -1.5, -2.25, -3.75), tolerance=1e-4)
    yield case("erfinv", of(-1, -0.999, -0.9, -0.1, 0, 0.1, 0.9, 0.999, 1), tolerance=1e-4)
    yield case("erfinv", of(-0.999, -0.9, -0.1, 0.1, 0.9, 0.999, dtype="float64"), tolerance=1e-4)
    yield case("hard_sigmoid", SPECIAL, alpha=0.5, beta=0.25)
    yield case("hard_sigmoid", SPECIAL.astype("float16"), alpha=0.1)
    for sigma in (0.5, 1.0, 2.0):
        yield case("smooth_l1", SPECIAL, scalar=sigma)
    yield case("smooth_l1", SPECIAL)
    yield case("smooth_l1", real(2, 3, dtype="float64"), scalar=3)
    yield case("clip", SPECIAL, a_min=-1.0, a_max=1.5)
    yield case("clip", of(-3, 0, 2, 9, dtype="int32"), a_min=-1.5, a_max=2.5)
    yield case("clip", real(2, 3, dtype="float64"), a_min=-0.1, a_max=0.1)
    yield case("clip", of(1, 5, 9, dtype="uint8"), a_min=2, a_max=6)
    yield case("clip", real(3), a_min=1, a_max=-1)
    yield case("clip", of(0, 1, 5, dtype="uint8"), a_min=-1, a_max=3)
    yield case("erf", of(-9, -6, -5, 0, 5, 6, dtype="int32"))
    yield case("_contrib_quadratic", real(2, 3), a=1.5, b=-2.0, c=0.5)
    yield case("_contrib_gradientmultiplier", real(2, 3), scalar=0.5)
    yield case("_identity_with_attr_like_rhs", real(2, 3), real(2, 3))
    for dtype in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"):
        yield case("_CrossDeviceCopy", whole(2, 3, dtype=dtype))
    yield case("MakeLoss", real(2, 3), grad_scale=2.0, normalization="batch")
    yield case("cast_storage", real(2, 3), stype="default")
    targets = "float16 float32 float64 int8 uint8 int32 int64 bool"
    for target in targets.split():
        yield case("Cast", of(-2.7, -0.5, 0, 0.5, 2.7, 100), dtype=target)
        yield case("Cast", of(0, 1, 200, dtype="int32"), dtype=target)
    yield case("Cast", of(True, False, dtype="bool"), dtype="float32")
    yield case("Cast", of(1.5, 2.5, dtype="float16"), dtype="int32")
    for target in ("float16", "float32"):
        yield case("amp_cast", real(2, 3), dtype=target)
        yield case("amp_cast", of(1, 2, dtype="int32"), dtype=target)
    yield case("amp_multicast", real(2), real(2, dtype="float16"), num_outputs=2)
    yield case("amp_multicast", real(2), real(2, dtype="float16"), num_outputs=2, cast_narrow=True)
    yield case("amp_multicast", real(2, dtype="float16"), real(2, dtype="float16"), num_outputs=2)
    yield case("amp_multicast", real(2, dtype="float64"), real(2), num_outputs=2)


def scalar() -> Iterator[Case]:
    """One input and a number, which MXNet first converts to the dtype of the input."""
    for name in SCALAR.split():
        yield case(name, SPECIAL, scalar=1.5)
        yield case(name, SPECIAL, scalar=-2)
        yield case(name, SPECIAL, scalar=0)
        yield case(name, SPECIAL)
        yield case(name, real(2, 3, dtype="float64"), scalar=0.1)
        yield case(name, of(0.5, 1, 3, dtype="float16"), scalar=1.1)
        yield case(name, INTEGERS.astype("int32"), scalar=2.5)
        yield case(name, INTEGERS.astype("int32"), scalar=2.5, is_int=False)
        yield case(name, INTEGERS.astype("int64"), scalar=3)
        yield case(name, INTEGERS.astype("uint8"), scalar=3)
        if name not in ("_power_scalar", "_rpower_scalar"):
            yield case(name, of(-7, -5, -1, 4, 6, dtype="int32"), scalar=-3)
            yield case(name, of(-7, -5, -1, 4, 6, dtype="int8"), scalar=3)


def binary() -> Iterator[Case]:
    """Two inputs of one shape, the special values crossed; sums of many inputs."""
    left, right = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(SPECIAL, SPECIAL))
    negative = of(-7, -5, 5, 7, 6, -6), of(3, -3, 3, -3, -3, 3)
    for name in SAME_SHAPE.split():
        yield case(name, left, right)
        yield case(name, real(2, 3, dtype="float64"), real(2, 3, low=0.5, dtype="float64"))
        yield case(name, real(2, 3, dtype="float16"), real(2, 3, low=0.5, dtype="float16"))
        for dtype in ("int32", "int64", "int8"):
            if name == "_power":
                yield case(name, INTEGERS.astype(dtype), of(2, 1, 0, 2, 2, dtype=dtype))
            else:
                yield case(name, *(a.astype(dtype) for a in negative))
        yield case(name, of(7, 5, 3, dtype="uint8"), of(3, 2, 1, dtype="uint8"))
        yield case(name, whole(2, 1, 3), whole(2, 1, 3, low=1))
    yield case("add_n", real(2, 3), num_args=1)
    yield case("add_n", real(2, 3), real(2, 3), real(2, 3, high=5), num_args=3)
    yield case("add_n", of(1, 2, dtype="int32"), of(5, 6, dtype="int32"), num_args=2)
    yield case("_contrib_allclose", real(2, 3), real(2, 3) + 1e-9)
    yield case("_contrib_allclose", of(1, NAN), of(1, NAN), equal_nan=False)
    yield case("_contrib_allclose", of(1, NAN), of(1, NAN))
    yield case("_contrib_allclose", of(1, 2), of(1, 2.1), rtol=0.1)
    yield case("_contrib_allclose", of(1, INF), of(1, INF))


def broadcast() -> Iterator[Case]:
    """Two inputs of shapes that stretch to each other, and explicit stretching."""
    for name in BROADCAST.split():
        low = 0.5 if name.endswith("power") else -2.0
        yield case(name, real(2, 3, 4, low=low), real(1, 3, 1, low=low))
        yield case(name, whole(2, 1, 4, low=1), whole(1, 3, 1, low=1))
        yield case(
            name,
            whole(2, 3, low=1, high=4, dtype="int32"),
            whole(2, 1, low=1, high=4, dtype="int32"),
        )
        yield case(name, real(2, 3, low=0.5, dtype="float64"), real(1, 3, low=0.5, dtype="float64"))
    for name in ("broadcast_mod", "broadcast_div"):
        left = of(-7, -5, 5, 7, -6, 0, dtype="int64").reshape(6, 1)
        yield case(name, left, of(3, -3, 2, dtype="int64").reshape(1, 3))
        yield case(name, left.astype("float32"), of(3, -3, 0, 2).reshape(1, 4))
    yield case("broadcast_to", real(1, 3, 1), shape=(2, 3, 4))
    yield case("broadcast_to", real(1, 3, 1), shape=(2, 0, 4))
    yield case("broadcast_to", real(1), shape=(5,))
    yield case("broadcast_to", whole(2, 1, dtype="int32"), shape=(2, 4))
    yield case("broadcast_axis", real(1, 3, 1), axis=0, size=4)
    yield case("broadcast_axis", real(1, 3, 1), axis=(0, 2), size=(2, 5))
    yield case("broadcast_axis", real(1, 3, 1), axis=(2, 0), size=(5, 2))
    yield case("broadcast_axis", real(2, 3))
    yield case("broadcast_axis", real(2, 3), axis=None, size=None)
    yield case("broadcast_like", real(1, 3, 1), real(2, 3, 4))
    yield case("broadcast_like", real(1, 3, 1), real(5, 7), lhs_axes=(0, 2), rhs_axes=(1, 0))
    yield case("broadcast_like", real(1, 3, 1), real(5, 7), lhs_axes=(-1,), rhs_axes=(-1,))


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    yield from unary()
    yield from scalar()
    yield from binary()
    yield from broadcast()
