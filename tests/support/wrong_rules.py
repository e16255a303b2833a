"""Rules that are wrong: each lacks a condition, or changes what it must not."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Final

WRONG: Final[dict[str, str]] = {}


def _add(name: str, body: str, example: str, kind: str = "exact", first: int = 13) -> None:
    WRONG[name] = (
        f'rule {name} "Wrong."\n  onnx {first}..\n'
        + "".join(f"  {line.strip()}\n" for line in body.strip().splitlines())
        + f"  {kind}\n  enables\n  example\n"
        + "".join(f"    {line.strip()}\n" for line in example.strip().splitlines())
    )


# Movement: axes, orders, sizes.
_add(
    "transposesAreNothing",
    "y = Transpose(Transpose[perm=$q](x))\n=> y = x",
    "y = Relu(Transpose[perm=[1, 0]](Transpose[perm=[1, 0]](x: float[2, 3])))\n=> y = Relu(x)",
)
_add(
    "orderOfOrders",
    """y = Transpose[perm=$p](Transpose[perm=$q](x))
     => y = Transpose[perm=compose($p, $q)](x)""",
    """y = Transpose[perm=[0, 2, 1]](Transpose[perm=[1, 0, 2]](x: float[2, 3, 4]))
     => y = Transpose[perm=[2, 0, 1]](x)""",
)
_add(
    "inverseOfOrder",
    """y = Transpose[perm=$p](x)
     where rank(x) = 3
     => y = Transpose[perm=invert($p)](x)""",
    "y = Transpose[perm=[2, 0, 1]](x: float[2, 3, 4])\n=> y = Transpose[perm=[1, 2, 0]](x)",
)
_add(
    "transposeOfAnything",
    "y = Transpose[perm=$p](x)\n=> y = x",
    "y = Relu(Transpose[perm=[1, 0]](x: float[2, 2]))\n=> y = Relu(x)",
)
_add(
    "transposeThroughAny",
    """y = Add(Transpose[perm=$p](a), Transpose[perm=$q](b))
     where rank(a) = rank(b)
     => y = Transpose[perm=$p](Add(a, b))""",
    """y = Add(Transpose[perm=[1, 0]](a: float[3, 3]), Transpose[perm=[0, 1]](b: float[3, 3]))
     => y = Transpose[perm=[1, 0]](Add(a, b))""",
)
_add(
    "transposeOfBroadcast",
    """y = Add(Transpose[perm=[1, 0]](a), Transpose(b))
     => y = Transpose[perm=[1, 0]](Add(a, b))""",
    """y = Add(Transpose[perm=[1, 0]](a: float[2, 3]), Transpose(b: float[2]))
     => y = Transpose[perm=[1, 0]](Add(a, b))""",
)
_add(
    "squeezeOfOther",
    """y = Squeeze[axes=$a](Unsqueeze[axes=$b](x))
     where len($a) = len($b)
     => y = x""",
    "y = Relu(Squeeze[axes=[0]](Unsqueeze[axes=[1]](x: float[1, 3])))\n=> y = Relu(x)",
)
_add(
    "squeezesTogether",
    """y = Squeeze[axes=$b](Squeeze[axes=$a](x))
     => y = Squeeze[axes=concat($a, $b)](x)""",
    "y = Squeeze[axes=[0]](Squeeze[axes=[0]](x: float[1, 1, 3]))\n=> y = Squeeze[axes=[0, 0]](x)",
)
_add(
    "unsqueezesTogether",
    """y = Unsqueeze[axes=$b](Unsqueeze[axes=$a](x))
     => y = Unsqueeze[axes=sorted(concat($a, $b))](x)""",
    """y = Unsqueeze[axes=[0]](Unsqueeze[axes=[1]](x: float[2, 3]))
     => y = Unsqueeze[axes=[0, 1]](x)""",
)
_add(
    "reshapeBySize",
    "y = Reshape(x, s:param)\nwhere size(y) = size(x)\n=> y = x",
    "y = Relu(Reshape[shape=[3, 2]](x: float[2, 3]))\n=> y = Relu(x)",
)
_add(
    "reshapeWithZero",
    """y = Reshape[allowzero=0](Reshape(x, _), s:param)
     => y = Reshape(x, s)""",
    """y = Reshape[shape=[0, 2]](Reshape[shape=[6, 2]](x: float[3, 4]))
     => y = Reshape[shape=[0, 2]](x)""",
)
_add(
    "flattenIsReshape",
    "y = Flatten[axis=$a](x)\nwhere rank(x) = 3\n=> y = Reshape[shape=[0, -1]](x)",
    "y = Flatten[axis=2](x: float[2, 3, 4])\n=> y = Reshape[shape=[0, -1]](x)",
)
_add(
    "expandIsNothing",
    "y = Expand(x, s:param)\nwhere rank(x) = rank(y)\n=> y = x",
    "y = Relu(Expand(x: float[1, 3], i64[2, 3]))\n=> y = Relu(x)",
)
_add(
    "expandForgetsFirst",
    "y = Expand(Expand(x, _), t:param)\n=> y = Expand(x, t)",
    "y = Expand(Expand(x: float[3, 1], i64[3, 4]), i64[1, 1])\n=> y = Expand(x, i64[1, 1])",
)
_add(
    "tileByFirst",
    """y = Tile[repeats=$b](Tile[repeats=$a](x))
     => y = Tile[repeats=$a](x)""",
    "y = Tile[repeats=[2]](Tile[repeats=[3]](x: float[2]))\n=> y = Tile[repeats=[3]](x)",
)
_add(
    "tileIsOnce",
    "y = Tile[repeats=$r](x)\nwhere $r[0] = 1\n=> y = x",
    "y = Relu(Tile[repeats=[1, 2]](x: float[2, 3]))\n=> y = Relu(x)",
)
_add(
    "concatTheOtherWay",
    "y = Concat[axis=$a](p, q)\n=> y = Concat[axis=$a](q, p)",
    "y = Concat[axis=0](p: float[2, 3], q: float[1, 3])\n=> y = Concat[axis=0](q, p)",
)
_add(
    "concatOfOtherAxis",
    """y = Concat[axis=$a](Concat[axis=$b](p, q), r)
     => y = Concat[axis=$a](p, q, r)""",
    """y = Concat[axis=1](Concat[axis=0](p: float[2, 2], q: float[2, 2]), r: float[4, 2])
     => y = Concat[axis=1](p, q, r)""",
)
_add(
    "concatWithSmall",
    """y = Concat[axis=$a](x, e)
     where dim(e, $a) <= 1
     => y = x""",
    "y = Relu(Concat[axis=0](x: float[2, 3], e: float[1, 3]))\n=> y = Relu(x)",
)
_add(
    "sliceFromEnd",
    """y = Slice[starts=$s, ends=$e, axes=[0]](Concat[axis=0](p, q))
     where rank(p) = 1, $e[0] <= dim(p, 0), len($s) = 1
     => y = Slice[starts=$s, ends=$e, axes=[0]](p)""",
    """y = Slice[starts=[-2], ends=[2], axes=[0]](Concat[axis=0](p: float[3], q: float[1]))
     => y = Slice[starts=[-2], ends=[2], axes=[0]](p)""",
)
_add(
    "sliceIsAll",
    """y = Slice[starts=$s, ends=$e, axes=$a, steps=$t](x)
     where shape(y) = shape(x)
     => y = x""",
    """y = Relu(Slice[starts=[-1], ends=[-9], axes=[0], steps=[-1]](x: float[3]))
     => y = Relu(x)""",
)
_add(
    "sliceOfSlice",
    """y = Slice[starts=[1], ends=[9], axes=[0]](Slice[starts=[1], ends=$e, axes=[0]](x))
     where len($e) = 1
     => y = Slice[starts=[2], ends=$e, axes=[0]](x)""",
    """y = Slice[starts=[1], ends=[9], axes=[0]](Slice[starts=[1], ends=[99], axes=[0]](x: float[30]))
     => y = Slice[starts=[2], ends=[99], axes=[0]](x)""",
)
_add(
    "splitTheOtherWay",
    """p, q = Split[axis=0](Concat[axis=0](a, b), *_)
     where shape(p) = shape(a), shape(q) = shape(b)
     => p = b
     q = a""",
    """p, q = Split[axis=0, split=[2, 2]](Concat[axis=0](a: float[2], b: float[2]))
     y = Relu(p)
     z = Relu(q)
     => y = Relu(b)
     z = Relu(a)""",
)
_add(
    "splitOfUnequal",
    """p, q = Split[axis=0](Concat[axis=0](a, b), *_)
     where rank(a) = 1
     => p = a
     q = b""",
    """p, q = Split[axis=0, split=[1, 3]](Concat[axis=0](a: float[2], b: float[2]))
     y = Relu(p)
     z = Relu(q)
     => y = Relu(a)
     z = Relu(b)""",
)
_add(
    "padsOfMode",
    """y = Pad[pads=$b, mode=constant, value=$v](Pad[pads=$a, mode=constant, value=$w](x))
     where all($a >= 0), all($b >= 0), len($a) = len($b)
     => y = Pad[pads=$a + $b, mode="constant", value=$v](x)""",
    """y = Pad[pads=[1, 0], value=1.0](Pad[pads=[1, 0], value=2.0](x: float[3]))
     => y = Pad[pads=[2, 0], value=1.0](x)""",
)
_add(
    "padsThatCut",
    """y = Pad[pads=$b, mode=constant, value=$v](Pad[pads=$a, mode=constant, value=$v](x))
     where len($a) = len($b)
     => y = Pad[*y, pads=$a + $b, value=$v](x)""",
    """y = Pad[pads=[2, 0], value=1.5](Pad[pads=[-2, 0], value=1.5](x: float[4]))
     => y = Pad[pads=[0, 0], value=1.5](x)""",
)
_add(
    "padSwapsSides",
    "y = Pad[pads=$p](x)\nwhere rank(x) = 1\n=> y = Pad[pads=[$p[1], $p[0]]](x)",
    "y = Pad[pads=[1, 2]](x: float[3])\n=> y = Pad[pads=[2, 1]](x)",
)
_add(
    "gatherFromEnd",
    """y = Gather[axis=0](Concat[axis=0](p, q), i:param)
     where rank(i) = 0, rank(p) = 1, value(i) < dim(p, 0)
     => y = Gather[axis=0](p, i)""",
    """y = Gather[axis=0](Concat[axis=0](p: float[3], q: float[4]), i64(-1))
     => y = Gather[axis=0](p, i64(-1))""",
)
_add(
    "gatherTwice",
    """y = Gather[axis=0](Gather[axis=0](x, i:param), j:param)
     where rank(i) = 1
     => y = Gather[axis=0](x, j)""",
    """y = Gather[axis=0](Gather[axis=0](x: float[5], i64[4, 2, 0]), i64[1, 2])
     => y = Gather[axis=0](x, i64[1, 2])""",
)
_add(
    "gatherOtherAxis",
    """y = Gather[axis=$b](Gather[axis=$a](x, i:param), j:param)
     where rank(i) = 1, all(value(i) >= 0), all(value(i) < dim(x, $a))
     => y = Gather[axis=$a](x, fold(Gather(i, j)))""",
    """y = Gather[axis=0](Gather[axis=1](x: float[3, 3], i64[2, 0, 1]), i64[1, 1])
     => y = Gather[axis=1](x, i64[0, 0])""",
)
_add(
    "shapeOfTranspose",
    "y = Shape(Transpose[perm=$p](x))\n=> y = Shape(x)",
    "y = Shape(Transpose[perm=[1, 0]](x: float[2, 3]))\n=> y = Shape(x)",
)

# Reductions.
_add(
    "reduceOtherAxis",
    """y = ReduceMax[axes=$a, keepdims=0](Transpose[perm=$p](x))
     where len($a) = 1, rank(x) = 2
     => y = ReduceMax[axes=$a, keepdims=0](x)""",
    """y = ReduceMax[axes=[1], keepdims=0](Transpose[perm=[1, 0]](x: float[3, 3]))
     => y = ReduceMax[axes=[1], keepdims=0](x)""",
    "rounding",
    18,
)
_add(
    "reduceKeeps",
    """y = Unsqueeze[axes=$b](ReduceMax[axes=$a, keepdims=0](x))
     where len($a) = len($b)
     => y = ReduceMax[axes=$a, keepdims=1](x)""",
    """y = Unsqueeze[axes=[0]](ReduceMax[axes=[1], keepdims=0](x: float[2, 3]))
     => y = ReduceMax[axes=[1], keepdims=1](x)""",
    "exact",
    18,
)
_add(
    "reducesOfKinds",
    """i = ReduceMax[axes=[1]](x)
     y = ReduceSum[axes=[0]](i)
     => y = ReduceSum[axes=[0, 1]](x)""",
    """y = ReduceSum[axes=[0]](ReduceMax[axes=[1]](x: float[2, 3]))
     => y = ReduceSum[axes=[0, 1]](x)""",
    "rounding",
    18,
)
_add(
    "meanOfSums",
    "y = ReduceMean[axes=[1]](ReduceSum[axes=[0]](x))\n=> y = ReduceMean[axes=[0, 1]](x)",
    """y = ReduceMean[axes=[1]](ReduceSum[axes=[0]](x: float[2, 3]))
     => y = ReduceMean[axes=[0, 1]](x)""",
    "rounding",
    18,
)
_add(
    "sumOfOne",
    "y = ReduceSumSquare[axes=$a](x)\nwhere all(select(shape(x), $a) = 1)\n=> y = x",
    "y = Relu(ReduceSumSquare[axes=[1]](x: float[2, 1]))\n=> y = Relu(x)",
    "exact",
    18,
)
_add(
    "meanOfAny",
    "y = ReduceMean[axes=$a](x)\nwhere dim(x, 0) = 1\n=> y = x",
    "y = Relu(ReduceMean[axes=[1]](x: float[1, 2]))\n=> y = Relu(x)",
    "exact",
    18,
)
_add(
    "placeOfNeg",
    "y = ArgMax[axis=$a](Neg(x))\n=> y = ArgMax[axis=$a](x)",
    "y = ArgMax[axis=0](Neg(x: float[3]))\n=> y = ArgMax[axis=0](x)",
)
_add(
    "softmaxOtherAxis",
    """y = Transpose[perm=[1, 0]](Softmax[axis=$a](Transpose[perm=[1, 0]](x)))
     => y = Softmax[axis=$a](x)""",
    """y = Transpose[perm=[1, 0]](Softmax[axis=0](Transpose[perm=[1, 0]](x: float[2, 3])))
     => y = Softmax[axis=0](x)""",
    "rounding",
)
_add(
    "sumByOtherCount",
    """y = Div(ReduceSum[axes=$a](x), c:param)
     where scalar(c), rank(c) = 0, type(x) = float, value(c) = size(x), len($a) = 1
     => y = ReduceMean[axes=$a](x)""",
    """y = Div(ReduceSum[axes=[1]](x: float[2, 4]), 8)
     => y = ReduceMean[axes=[1]](x)""",
    "rounding",
    18,
)

# Elementwise: broadcasting, signs, NaN, types.
_add(
    "mulByOneOfAny",
    "y = Mul(x, one:param)\nwhere all(value(one) = 1)\n=> y = x",
    "y = Relu(Mul(x: float[1, 3], f32[[1], [1]]))\n=> y = Relu(x)".replace(
        "f32[[1], [1]]", "one: one float[2, 1]"
    ),
)
_add(
    "addPlusZero",
    "y = Add(x, z:param)\nwhere all(value(z) = 0), broadcasts(z, x)\n=> y = x",
    "y = Neg(Add(x: float[2, 3], 0.0))\n=> y = Neg(x)",
)
_add(
    "subMinusZero",
    "y = Sub(x, z:param)\nwhere all(value(z) = 0), broadcasts(z, x)\n=> y = x",
    "y = Neg(Sub(x: float[2, 3], -0.0))\n=> y = Neg(x)",
)
_add(
    "mulByZero",
    "y = Mul(x, z:param)\nwhere all(value(z) = 0), broadcasts(z, x)\n=> y = Sub(x, x)",
    "y = Mul(x: float[2], zero: zero float[2])\n=> y = Sub(x, x)",
)
_add(
    "differenceIsZero",
    "y = Sub(x, x)\nwhere type(x) = float\n=> y = Mul(x, 0.0)",
    "y = Sub(x: float[2], x)\n=> y = Mul(x, 0.0)",
)
_add(
    "negOfSubExact",
    "y = Neg(Sub(a, b))\n=> y = Sub(b, a)",
    "y = Neg(Sub(a: float[2], b: float[2]))\n=> y = Sub(b, a)",
)
_add("absIsNothing", "y = Abs(x)\n=> y = x", "y = Neg(Abs(x: float[3]))\n=> y = Neg(x)")
_add(
    "absOfSub",
    "y = Abs(Sub(a, b))\n=> y = Sub(a, b)",
    "y = Neg(Abs(Sub(a: float[3], b: float[3])))\n=> y = Neg(Sub(a, b))",
)
_add(
    "reluOfNeg",
    "y = Relu(Neg(x))\n=> y = Neg(Relu(x))",
    "y = Relu(Neg(x: float[3]))\n=> y = Neg(Relu(x))",
)
_add(
    "reluOfTanh",
    "i = shared Tanh(x)\ny = Relu(i)\n=> y = i",
    "y = Neg(Relu(Tanh(x: float[3])))\n=> y = Neg(Tanh(x))",
)
_add(
    "equalIsTrue",
    "y = Equal(x, x)\nwhere type(x) = float\n=> y = Not(Not(GreaterOrEqual(x, x)))".replace(
        "GreaterOrEqual(x, x)", "Equal(Sub(x, x), Sub(x, x))"
    ),
    "y = Equal(x: float[3], x)\n=> y = Not(Not(Equal(Sub(x, x), Sub(x, x))))",
)
_add(
    "notLessOfReals",
    "y = Not(Less(a, b))\n=> y = GreaterOrEqual(a, b)",
    "y = Not(Less(a: float[3], b: float[3]))\n=> y = GreaterOrEqual(a, b)",
    "exact",
    16,
)
_add(
    "notLessIsGreater",
    "y = Not(Less(a, b))\nwhere type(a) = int64\n=> y = Greater(a, b)",
    "y = Not(Less(a: int64[3], b: int64[3]))\n=> y = Greater(a, b)",
)
_add(
    "lessTheSameWay",
    "y = Less(a, b)\n=> y = Greater(a, b)",
    "y = Less(a: float[3], b: float[3])\n=> y = Greater(a, b)",
)
_add(
    "whereOfNotSame",
    "y = Where(Not(c), a, b)\n=> y = Where(c, a, b)",
    "y = Where(Not(c: bool[3]), a: float[3], b: float[3])\n=> y = Where(c, a, b)",
)
_add(
    "whereSmaller",
    "y = Where(c, a, a)\n=> y = a",
    "y = Relu(Where(c: bool[2, 3], a: float[3], a))\n=> y = Relu(a)",
    "rounding",
)
_add(
    "whereOfTrueSmaller",
    "y = Where(c:param, a, b)\nwhere all(value(c) = true)\n=> y = a",
    "y = Relu(Where(bool[1, 1], a: float[2], b: float[3, 2]))\n=> y = Relu(a)",
    "rounding",
)
_add(
    "maxOfMins",
    "y = Max(Min(x, a:param), b:param)\nwhere scalar(a), scalar(b)\n=> y = Min(Max(x, b), a)",
    "y = Max(Min(x: float[3], -1.0), 1.0)\n=> y = Min(Max(x, 1.0), -1.0)",
    "rounding",
)
_add(
    "clipOfClips",
    "y = Clip(Clip(x, a:param, b:param), c:param, d:param)\n=> y = Clip(x, c, d)",
    "y = Clip(Clip(x: float[5], f32(-1), f32(0)), f32(-2), f32(2))\n=> y = Clip(x, f32(-2), f32(2))",
)
_add(
    "reluOfClipBelow",
    "i = shared Clip(x, low:param)\ny = Relu(i)\nwhere rank(low) = 0\n=> y = i",
    "y = Neg(Relu(Clip(x: float[3], f32(-1))))\n=> y = Neg(Clip(x, f32(-1)))",
)
_add(
    "minusOfUnsigned",
    "y = Add(Sub(a, b), b)\n=> y = a",
    "y = Neg(Add(Sub(a: float[3], b: float[3]), b))\n=> y = Neg(a)",
)
_add(
    "absOfUnsigned",
    "y = Abs(Sub(a, b))\nwhere type(a) = uint8\n=> y = Abs(Sub(b, a))",
    "y = Abs(Sub(a: uint8[3], b: uint8[3]))\n=> y = Abs(Sub(b, a))",
    "exact",
    14,
)
_add(
    "signOfProduct",
    "y = Mul(Neg(a), b)\n=> y = Mul(a, b)",
    "y = Mul(Neg(a: float[3]), b: float[3])\n=> y = Mul(a, b)",
)
_add(
    "sumsInOtherOrder",
    "y = Add(Add(a, b), c)\n=> y = Add(a, Add(b, c))",
    "y = Add(Add(a: float[9], b: float[9]), c: float[9])\n=> y = Add(a, Add(b, c))",
)
_add(
    "mulDistributes",
    "y = Mul(Add(a, b), c)\n=> y = Add(Mul(a, c), b)",
    "y = Mul(Add(a: float[3], b: float[3]), c: float[3])\n=> y = Add(Mul(a, c), b)",
    "rounding",
)
_add(
    "wrongHalf",
    "y = Mul(x, 0.5)\nwhere type(x) = float\n=> y = Div(x, 2.01)",
    "y = Mul(x: float[3], 0.5)\n=> y = Div(x, 2.01)",
    "rounding",
)
_add(
    "powThree",
    "y = Pow(x, 3)\nwhere type(x) = float\n=> y = Mul(x, x)",
    "y = Pow(x: float[3], 3)\n=> y = Mul(x, x)",
    "rounding",
)
_add(
    "sqrtOfSquare",
    "y = Sqrt(Mul(x, x))\nwhere type(x) = float\n=> y = Identity(x)",
    "y = Sqrt(Mul(x: float[3], x))\n=> y = Identity(x)",
    "rounding",
)
_add(
    "sigmoidOfTwo",
    "y = Reciprocal(Add(Exp(Neg(x)), 2))\nwhere type(x) = float\n=> y = Sigmoid(x)",
    "y = Reciprocal(Add(Exp(Neg(x: float[3])), 2))\n=> y = Sigmoid(x)",
    "rounding",
)
_add(
    "hardSigmoidSlope",
    "y = Div(Clip(Add(x, 3), 0, 6), 6)\nwhere type(x) = float\n=> y = HardSigmoid[alpha=0.2, beta=0.5](x)",
    "y = Div(Clip[min=0.0, max=6.0](Add(x: float[3], 3)), 6)\n=> y = HardSigmoid[alpha=0.2, beta=0.5](x)",
    "rounding",
)
_add(
    "castLosing",
    "y = Cast[to=$a](Cast[to=$b](x))\nwhere type(x) = $a\n=> y = x",
    "y = Neg(Cast[to=1](Cast[to=6](x: float[3])))\n=> y = Neg(x)",
)
_add(
    "castThroughBool",
    "y = Cast[to=$a](Cast[to=9](x))\n=> y = Cast[to=$a](x)",
    "y = Cast[to=7](Cast[to=9](x: int32[3]))\n=> y = Cast[to=7](x)",
)

# Contractions.
_add(
    "gemmNotTransposed",
    "y = MatMul(a, Transpose[perm=[1, 0]](b))\nwhere rank(a) = 2, rank(b) = 2, type(a) = float\n=> y = Gemm(a, b)",
    "y = MatMul(a: float[3, 3], Transpose[perm=[1, 0]](b: float[3, 3]))\n=> y = Gemm(a, b)",
    "rounding",
)
_add(
    "productTheOtherWay",
    "y = MatMul(a, b)\nwhere rank(a) = 2, rank(b) = 2\n=> y = MatMul(b, a)",
    "y = MatMul(a: float[3, 3], b: float[3, 3])\n=> y = MatMul(b, a)",
    "rounding",
)
_add(
    "factorOfBias",
    "g = Gemm(a, b, c)\ny = Mul(g, s:param)\nwhere scalar(s), rank(s) = 0, type(a) = float\n=> y = Gemm[*g, alpha=value(s)](a, b, c)",
    "y = Mul(Gemm(a: float[2, 3], b: float[3, 2], c: float[2]), 3)\n=> y = Gemm[alpha=3.0](a, b, c)",
    "rounding",
)
_add(
    "gemmOfBroadcast",
    "m = MatMul(a, b)\ny = Add(m, c)\nwhere rank(a) = 2, rank(b) = 2, type(m) = float, rank(c) <= 2\n=> y = Gemm(a, b, c)",
    "y = Add(MatMul(a: float[1, 3], b: float[3, 4]), c: float[2, 4])\n=> y = Gemm(a, b, c)",
    "rounding",
)
_add(
    "betaIsLost",
    "g = Gemm[beta=$b](a, b, c)\n=> g = Gemm(a, b, c)".replace(
        "g = Gemm[beta=$b](a, b, c)\n=>", "y = Gemm[beta=$t](a, b, c)\n=>"
    ).replace("=> g", "=> y"),
    "y = Gemm[beta=0.5](a: float[2, 3], b: float[3, 2], c: float[2])\n=> y = Gemm(a, b, c)",
    "rounding",
)
_add(
    "factorOfRows",
    "c = MatMul(x, w:param)\ny = Mul(c, s:param)\nwhere rank(x) = 2, rank(w) = 2, rank(s) = 1, type(w) = float\n=> y = MatMul(x, fold(Mul(w, aligned(s, 0, 2))))",
    "y = Mul(MatMul(x: float[2, 3], w: param float[3, 3]), s: param float[3])\n=> y = MatMul(x, v: param float[3, 3])",
    "rounding",
)

# Casts, bounds and orders.
_add(
    "castToText",
    """y = Cast[to=8](Cast[to=$first](x))
     where lossless(type(x), $first), type(x) = float
     => y = Cast[to=8](x)""",
    "y = Cast[to=8](Cast[to=11](x: float[2]))\n=> y = Cast[to=8](x)",
)
_add(
    "castThatLoses",
    "y = Cast[to=$last](Cast[to=$first](x))\nwhere type(x) = float\n=> y = Cast[to=$last](x)",
    "y = Cast[to=11](Cast[to=6](x: float[2]))\n=> y = Cast[to=11](x)",
)
_add(
    "reluOfWholeAbs",
    "i = shared Abs(x)\ny = Relu(i)\n=> y = i",
    "y = Neg(Relu(Abs(x: int8[3])))\n=> y = Neg(Abs(x))",
    first=14,
)
_add(
    "absOfWholeSums",
    "i = shared ReduceL1(x)\ny = Abs(i)\nwhere type(x) = int32\n=> y = i",
    "y = Neg(Abs(ReduceL1(x: int32[3])))\n=> y = Neg(ReduceL1(x))",
)
_add(
    "clipsWithoutOrder",
    """y = Clip(Clip(x, a:param, b:param), c:param, d:param)
     where rank(a) = 0, rank(b) = 0, rank(c) = 0, rank(d) = 0, type(x) = float
     => y = Clip(x, fold(Max(a, c)), fold(Min(b, d)))""",
    """y = Clip[min=5.0, max=9.0](Clip[min=0.0, max=2.0](x: float[2, 3]))
     => y = Clip[min=5.0, max=2.0](x)""",
    "rounding",
)
_add(
    "reluOfClipFromBelow",
    """i = shared Clip(x, low:param, high:param)
     y = Relu(i)
     where rank(low) = 0, value(high) >= value(low)
     => y = i""",
    """y = Neg(Relu(Clip[min=-1.0, max=6.0](x: float[2, 3])))
     => y = Neg(Clip[min=-1.0, max=6.0](x))""",
)
_add(
    "placeOfFallingExp",
    "y = ArgMax(Exp(Neg(x)))\n=> y = ArgMax(x)",
    "y = ArgMax(Exp(Neg(x: float[3])))\n=> y = ArgMax(x)",
    "rounding",
)
_add(
    "placeInOtherSoftmax",
    "y = ArgMax[axis=0](Softmax[axis=1](x))\n=> y = ArgMax[axis=0](x)",
    "y = ArgMax[axis=0](Softmax[axis=1](x: float[4, 3]))\n=> y = ArgMax[axis=0](x)",
    "rounding",
)
_add(
    "tileBySum",
    "y = Tile[repeats=$b](Tile[repeats=$a](x))\n=> y = Tile[repeats=$a + $b](x)",
    "y = Tile[repeats=[3]](Tile[repeats=[2]](x: float[2]))\n=> y = Tile[repeats=[5]](x)",
)

# Operators of a family, and axes for themselves.
_add(
    "familyCommutes",
    "y = Add|Sub|Mul|Div(a, b)\nwhere type(a) = float\n=> y = @y(b, a)",
    "y = Sub(a: float[3], b: float[3])\n=> y = Sub(b, a)",
    "rounding",
)
_add(
    "expandedByNobody",
    "y = Add|Sub|Mul(Expand(x, s), b)\nwhere shape(b) = shape(x)\n=> y = @y(x, b)",
    "y = Sub(Expand(x: float[1, 3], i64[2, 3]), b: float[1, 3])\n=> y = Sub(x, b)",
)
_add(
    "expandedWhereSmaller",
    "e = shared Expand(x, s)\ny = Max(e, b)\nwhere broadcasts(b, e)\n=> y = Max(x, b)",
    "y = Max(Expand(x: float[1, 3], i64[2, 3]), b: float[3])\n=> y = Max(x, b)",
)

# Quantized values.
_add(
    "quantizeByOtherScale",
    """y = QuantizeLinear(DequantizeLinear(q, s:param, z:param), t:param, u:param)
     where same(z, u), rank(s) = 0, rank(t) = 0, value(s) > 0, value(t) > 0, value(s) < 1e30, type(s) = float
     => y = q""",
    """y = QuantizeLinear(DequantizeLinear(q: uint8[2, 3], f32(0.5), u8(3)), f32(0.25), u8(3))
     w = Cast[to=1](y)
     => w = Cast[to=1](q)""",
    first=10,
)
_add(
    "quantizeByOtherZero",
    """y = QuantizeLinear(DequantizeLinear(q, s:param, z:param), t:param, u:param)
     where same(s, t), rank(s) = 0, value(s) > 0, value(s) < 1e30, type(s) = float, type(z) = type(u)
     => y = q""",
    """y = QuantizeLinear(DequantizeLinear(q: uint8[2, 3], f32(0.5), u8(3)), f32(0.5), u8(4))
     w = Cast[to=1](y)
     => w = Cast[to=1](q)""",
    first=10,
)
_add(
    "reluBeforeAnyQuantize",
    """y = QuantizeLinear(Relu(x), s:param, z:param)
     where type(z) = uint8, rank(z) = 0, rank(s) = 0, value(s) > 0, finite(s)
     => y = QuantizeLinear(x, s, z)""",
    """y = QuantizeLinear(Relu(x: float[2, 3]), f32(0.5), u8(9))
     => y = QuantizeLinear(x, f32(0.5), u8(9))""",
    "rounding",
    10,
)
_add(
    "scaledByVector",
    """y = Mul(Cast[to=1](w:param), s:param)
     where type(w) = int8, type(s) = float, rank(s) = 1, rank(w) = 2, dim(s, 0) = dim(w, 0)
     => y = DequantizeLinear[axis=0](w, s)""",
    """y = MatMul(x: float[3, 2], Mul(Cast[to=1](w: param int8[2, 2]), s: param float[2]))
     => y = MatMul(x, DequantizeLinear[axis=0](w, s))""",
)

# Recurrent layers.
_add(
    "anyStateIsZero",
    """y = GRU(x, w, r, b?, n?, i)
     where rank(i) = 3
     => y = @y(x, w, r, b, n)""",
    """y = GRU[hidden_size=2](x: float[3, 1, 4], w: param float[1, 6, 4], r: param float[1, 6, 2], _, _, i: float[1, 1, 2])
     => y = GRU[hidden_size=2](x, w, r)""",
)
_add(
    "stateIsCell",
    """y = LSTM(x, w, r, b?, n?, i, j)
     => y = @y(x, w, r, b, n, j, i)""",
    """y = LSTM[hidden_size=2](x: float[3, 1, 4], w: param float[1, 8, 4], r: param float[1, 8, 2], _, _, i: float[1, 1, 2], j: float[1, 1, 2])
     => y = LSTM[hidden_size=2](x, w, r, _, _, j, i)""",
)
_add(
    "shorterSequences",
    """y = GRU(x, w, r, b?, n)
     where all(value(n) <= dim(x, 0)), shape(n) = [dim(x, 1)]
     => y = @y(x, w, r, b)""",
    """y = GRU[hidden_size=2](x: float[3, 1, 4], w: param float[1, 6, 4], r: param float[1, 6, 2], _, i32[2])
     => y = GRU[hidden_size=2](x, w, r)""",
)

# Sequences, and items of constants.
_add(
    "itemFromEnd",
    """y = SequenceAt(SplitToSequence[axis=0, keepdims=1](x), i:param)
     where type(x) = float, rank(i) = 0, value(i) < dim(x, 0), value(i) >= 0 - dim(x, 0)
     => y = Slice[starts=[value(i)], ends=[value(i) + 1], axes=[0]](x)""",
    """y = SequenceAt(SplitToSequence[axis=0](x: float[2, 3]), i64(-1))
     => y = Slice[starts=[-1], ends=[0], axes=[0]](x)""",
)
_add(
    "partsWithoutSize",
    """y = SequenceAt(SplitToSequence[axis=0](x, s:param), i:param)
     where type(x) = float, rank(s) = 0, value(s) > 0, rank(i) = 0, value(i) >= 0, value(i) * value(s) < dim(x, 0)
     => y = Slice[starts=[value(i)], ends=[value(i) + value(s)], axes=[0]](x)""",
    """y = SequenceAt(SplitToSequence[axis=0](x: float[6, 3], i64(2)), i64(1))
     => y = Slice[starts=[1], ends=[3], axes=[0]](x)""",
)
_add(
    "secondIsFirst",
    "y = SequenceAt(shared SequenceConstruct(a, b), i:param)\nwhere rank(i) = 0, value(i) = 1\n=> y = a",
    """y = Relu(SequenceAt(SequenceConstruct(a: float[2], b: float[2]), i64(1)))
     => y = Relu(a)""",
)
_add(
    "joinedBackwards",
    """y = ConcatFromSequence[axis=0, new_axis=0](SequenceConstruct(a, b))
     where rank(a) = 1, rank(b) = 1
     => y = Concat[axis=0](b, a)""",
    """y = ConcatFromSequence[axis=0](SequenceConstruct(a: float[2], b: float[3]))
     => y = Concat[axis=0](b, a)""",
)
_add(
    "joinedAlongOther",
    """y = ConcatFromSequence[axis=0, new_axis=1](SplitToSequence[axis=1, keepdims=0](x))
     where rank(x) = 2, dim(x, 1) > 0
     => y = x""",
    """y = Relu(ConcatFromSequence[axis=0, new_axis=1](SplitToSequence[axis=1, keepdims=0](x: float[2, 2])))
     => y = Relu(x)""",
)
_add(
    "anyDimension",
    "y = Gather[axis=0](Shape(x), i:param)\nwhere rank(i) = 0, rank(x) = 2\n=> y = i64(dim(x, 0))",
    """y = Mul(Gather[axis=0](Shape(x: float[2, 3]), i64(1)), k: int64[2])
     => y = Mul(i64(2), k)""",
)
_add(
    "gatherOfSome",
    """y = Gather[axis=0](x, i:param)
     where rank(i) = 1, k := value(i), len(k) > 0, k[0] >= 0, k[0] + len(k) <= dim(x, 0)
     => y = Slice[starts=[k[0]], ends=[k[0] + len(k)], axes=[0]](x)""",
    """y = Gather[axis=0](x: float[5], i64[0, 2])
     => y = Slice[starts=[0], ends=[2], axes=[0]](x)""",
)
_add(
    "poolWithSteps",
    """y = MaxPool[kernel_shape=$k, pads?=$p](x)
     where all($k = 1), not given($p) or all($p = 0), len($k) = rank(x) - 2
     => y = x""",
    """y = Relu(MaxPool[kernel_shape=[1], strides=[2]](x: float[1, 2, 1]))
     => y = Relu(x)""",
    "rounding",
)

# The replacement must fail where the pattern fails, and have the same bits if it is exact.
_add(
    "checkOfWhatIsRead",
    """m = Add(a, b)
     y = ReduceSum[keepdims=0, noop_with_empty_axes=0](Sub(m, m))
     => y = like(m, 0.0)""",
    """m = Add(a: float[2, 3], b: float[3])
     y = ReduceSum[keepdims=0](Sub(m, m))
     => y = f32[0.0]""",
    "rounding",
)
_add(
    "checkOfBlocks",
    """m = SpaceToDepth[blocksize=2](x)
     y = ReduceSum[keepdims=0, noop_with_empty_axes=0](Sub(m, m))
     where type(x) = float
     => y = like(x, 0.0)""",
    """m = SpaceToDepth[blocksize=2](x: float[1, 1, 4, 4])
     y = ReduceSum[keepdims=0](Sub(m, m))
     => y = f32[0.0]""",
    "rounding",
)
_add(
    "windowOfMoreThanIsThere",
    """y = MaxPool[kernel_shape=[2], strides=[2], pads=[0, 0], ceil_mode=1, dilations=[1], auto_pad="NOTSET"](x)
     where rank(x) = 3, dim(x, 2) <= 2
     => y = MaxPool[kernel_shape=[2], strides=[1], pads=[0, 0], ceil_mode=0](x)""",
    """y = MaxPool[kernel_shape=[2], strides=[2], ceil_mode=1](x: float[1, 1, 2])
     => y = MaxPool[kernel_shape=[2], strides=[1], pads=[0, 0], ceil_mode=0](x)""",
)
_PARTS = """
    => m = ReduceMean[axes=[2], keepdims=1](x)
    c = Sub(x, m)
    v = ReduceMean[axes=[2], keepdims=1](Mul(c, c))
    n = Div(c, Sqrt(Add(v, 0.5)))
    y = Add(Mul(n, Unsqueeze(s, i64[1])), Unsqueeze(b, i64[1]))"""
_add(
    "bitsOfANormalization",
    "y = InstanceNormalization[epsilon=0.5](x, s, b)\nwhere rank(x) = 3" + _PARTS,
    "y = InstanceNormalization[epsilon=0.5](x: float[2, 3, 4], s: float[3], b: float[3])" + _PARTS,
)
