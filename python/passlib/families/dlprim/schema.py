"""The operators of DLPrimitives: their options, inputs and parameters.

Facts from the format's documentation and from its parser: an optional value of the wrong type
silently counts as absent, while enumerations, pairs and required values are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

Kind = Literal["int", "float", "bool", "string", "pair", "ints"]

ACTIVATIONS: Final = ("identity", "relu", "tanh", "sigmoid", "relu6")

ALIASES: Final = frozenset(("Flatten", "Squeeze", "Reshape"))
"""Operators whose output shares the memory of their input."""

RENAMED: Final = MappingProxyType({"BatchNorm2D": "BatchNorm"})
"""Present names of operators, by their names before September 2021."""


@dataclass(frozen=True)
class Option:
    """One option of an operator."""

    kind: Kind
    """``pair`` is an integer or a list of two, height and width."""
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    """The permitted words; empty if any string is permitted."""
    strict: bool = False
    """Whether a value of the wrong type is an error instead of counting as absent."""


@dataclass(frozen=True)
class Operator:
    """An operator type."""

    options: MappingProxyType[str, Option]
    inputs: int | None = 1
    """Number of data inputs; None for one or more."""
    integer_input: int | None = None
    """Position of the data input that may hold integers: a label."""
    loss: bool = False
    """Whether the operator computes a loss."""


def _operator(
    inputs: int | None = 1,
    integer_input: int | None = None,
    loss: bool = False,
    /,  # InnerProduct has an option named inputs
    **options: Option,
) -> Operator:
    return Operator(MappingProxyType(options), inputs, integer_input, loss)


def _pair(default: int | None = None) -> Option:
    value = None if default is None else (default, default)
    return Option("pair", value, required=default is None, strict=True)


_REQUIRED_INT = Option("int", required=True, strict=True)
_DEDUCED = Option("int", -1)
_FALSE, _TRUE = Option("bool", False), Option("bool", True)
_ACTIVATION = Option("string", "identity", choices=ACTIVATIONS)
_MODE = Option("string", "max", choices=("max", "avg"), strict=True)
_REDUCE = Option("string", "mean", choices=("none", "mean", "sum"), strict=True)
_ALGORITHM = Option("string", "auto")


def _convolution(**more: Option) -> Operator:
    return _operator(
        channels_out=_REQUIRED_INT,
        channels_in=_DEDUCED,
        groups=Option("int", 1),
        bias=_TRUE,
        kernel=_pair(),
        stride=_pair(1),
        pad=_pair(0),
        dilate=_pair(1),
        **more,
        activation=_ACTIVATION,
        fwd_algo=_ALGORITHM,
        bwd_data_algo=_ALGORITHM,
        bwd_filter_algo=_ALGORITHM,
    )


OPERATORS: Final = MappingProxyType(
    {
        "Abs": _operator(),
        "Activation": _operator(activation=_ACTIVATION),
        "BatchNorm": _operator(
            features=_DEDUCED,
            eps=Option("float", 1e-5),
            momentum=Option("float", 0.1),
            affine=_TRUE,
            use_global_stats=_FALSE,
        ),
        "Concat": _operator(None, dim=Option("int", 1)),
        "Convolution2D": _convolution(),
        "Elementwise": _operator(
            2,
            operation=Option("string", "sum", choices=("sum", "prod", "max")),
            coef1=Option("float", 1.0),
            coef2=Option("float", 1.0),
            activation=_ACTIVATION,
        ),
        "Flatten": _operator(),
        "GlobalPooling": _operator(mode=_MODE),
        "Hardtanh": _operator(min_val=Option("float", -1.0), max_val=Option("float", 1.0)),
        "InnerProduct": _operator(
            outputs=_REQUIRED_INT, inputs=_DEDUCED, bias=_TRUE, activation=_ACTIVATION
        ),
        "Interpolation": _operator(
            method=Option(
                "string",
                required=True,
                choices=("nearest", "nearest-exact", "bilinear"),
                strict=True,
            ),
            out_h=_DEDUCED,
            out_w=_DEDUCED,
            scale_y=Option("float", -1.0),
            scale_x=Option("float", -1.0),
            align_corners=_FALSE,
        ),
        "MSELoss": _operator(2, None, True, reduce=_REDUCE),
        "NLLLoss": _operator(2, 1, True, reduce=_REDUCE),
        "Parameter": _operator(
            0,
            shape=Option("ints", required=True, strict=True),
            dtype=Option("string", "float"),
            is_trainable=_TRUE,
        ),
        "Pooling2D": _operator(
            mode=_MODE,
            kernel=_pair(),
            stride=_pair(1),
            pad=_pair(0),
            count_include_pad=_FALSE,
            ceil_mode=_FALSE,
        ),
        "Reduction": _operator(
            method=Option("string", "sum", choices=("sum", "sumsq", "abssum", "mean"), strict=True),
            keep_dim=_TRUE,
            output_scale=Option("float", 1.0),
            dims=Option("ints", ()),
            start_axis=Option("int", 0),
        ),
        "Reshape": _operator(dims=Option("ints", ())),
        "Slice": _operator(dim=Option("int", 1), begin=Option("int", 0), end=Option("int", -1)),
        "Softmax": _operator(log=_FALSE),
        "SoftmaxWithLoss": _operator(2, 1, True),
        "Squeeze": _operator(all=_FALSE, dims=Option("ints", ())),
        "Threshold": _operator(threshold=Option("float", 0.0)),
        "TransposedConvolution2D": _convolution(output_pad=_pair(0)),
    }
)
"""All operators, by type."""
