"""Element types that ONNX Runtime's CPU kernels compute, and substitutes for the others.

ONNX allows more types than ONNX Runtime has kernels for. For each operator with a gap the table
lists the types that are computed, by the operator's type parameter, by ONNX Runtime 1.29 to 1.31
alike (tests/lowering/test_kernels.py repeats the measurement). float16 counts as computed:
ONNX Runtime itself falls back to float32 where it has no kernel.
"""

from __future__ import annotations

from typing import Final

_REAL: Final = "float16 float32"
_DOUBLE: Final = "float16 float32 float64"
_SUMS: Final = "float16 float32 float64 int32 int64"
_EXTREMES: Final = "bool float16 float32 float64 int32 int64 int8 uint8"
_NUMBERS: Final = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_ANY: Final = f"bool {_NUMBERS}"
_PADDING: Final = "bool float16 float32 float64 int32 int64 int8 uint32 uint64 uint8"

_GROUPS: Final = (
    (
        (
            "Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Col2Im Conv "
            "ConvTranspose Cosh Det Elu Erf GRU Gelu GlobalAveragePool GlobalLpPool "
            "GlobalMaxPool GroupNormalization HardSigmoid HardSwish Hardmax "
            "InstanceNormalization LRN LSTM LeakyRelu LpPool MaxRoiPool Mean "
            "MeanVarianceNormalization Mish PRelu RNN Selu Sinh Softplus Softsign Tan "
            "ThresholdedRelu"
        ),
        "T",
        _REAL,
    ),
    ("BatchNormalization GridSample", "T1", _REAL),
    ("BatchNormalization GridSample MelWeightMatrix OneHot", "T2", _REAL),
    ("OneHot", "T3", _REAL),
    ("OneHot", "T1", "float16 float32 int32 int64"),
    ("AffineGrid DFT STFT", "T1", _DOUBLE),
    (
        "Ceil Dropout Exp Floor Gemm Log LogSoftmax Reciprocal Sigmoid Softmax Sqrt Sum Tanh",
        "T",
        _DOUBLE,
    ),
    (
        (
            "CumSum Einsum Pow ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean "
            "ReduceProd ReduceSum ReduceSumSquare"
        ),
        "T",
        _SUMS,
    ),
    ("Pow", "T1", _SUMS),
    ("ReduceMax ReduceMin", "T", _EXTREMES),
    ("ArgMax ArgMin", "T", "float16 float32 float64 int32 int64 int8 uint8"),
    ("Abs Add Div Greater GreaterOrEqual Less LessOrEqual Mod Mul Sub", "T", _NUMBERS),
    ("Equal Expand Size Tile", "T", _ANY),
    ("CenterCropPad Pad", "T", _PADDING),
    ("DepthToSpace SpaceToDepth", "T", "float16 float32 float64 int8 uint8"),
    ("MatMul", "T", "float16 float32 float64 int32 int64 uint32 uint64"),
    ("Max Min", "T", "float16 float32 float64 int32 int64 int8 uint32 uint64 uint8"),
    ("Neg", "T", "float16 float32 float64 int16 int32 int64 int8"),
    ("NonZero", "T", "bool float16 float32 int32 int64 uint8"),
    ("Relu", "T", "float16 float32 float64 int32 int8"),
    ("Resize", "T1", "float16 float32 int32 int8 uint8"),
    ("TopK", "T", "float16 float32 float64 int16 int32 int64 int8 uint8"),
    ("Trilu", "T", "bool float16 float32 float64 int32 int64"),
    ("Unique", "T", "float16 float32 float64 int64 int8"),
    ("Where", "T", "float16 float32 float64 int32 int64 uint8"),
)

_SUBSTITUTES: Final = {
    "bfloat16": ("float32",),
    "float64": ("float32",),
    "bool": ("uint8", "int32"),
    "int8": ("int32", "int64"),
    "uint8": ("int32", "int64"),
    "int16": ("int32", "int64"),
    "uint16": ("int32", "int64"),
    "int32": ("int64", "float64"),
    "uint32": ("int64",),
}

_COMPUTED: Final = {
    (operator, parameter): frozenset(types.split())
    for operators, parameter, types in _GROUPS
    for operator in operators.split()
}


def computed_types(op_type: str, parameter: str) -> frozenset[str] | None:
    """Return the types computed for a type parameter; ``None`` if the operator has no known gap."""
    return _COMPUTED.get((op_type, parameter))


def substitute(dtype_name: str, computed: frozenset[str]) -> str | None:
    """Choose the type to compute in if ``dtype_name`` has no kernel; ``None`` if there is none.

    A substitute holds every value of the original type, except float32 for float64, where the
    result has float32's precision.
    """
    return next((name for name in _SUBSTITUTES.get(dtype_name, ()) if name in computed), None)
