"""Shapes and types of the inputs of operators on bytes: arrays, then the bounds of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from passlib.graph.attributes import Attributes
from passlib.graph.node import Node
from passlib.lowering.types import Shape
from passlib.mxnet import schema
from passlib.mxnet.inference.parameter_rules import RULES, Known, rule

_ONE: Final[Shape] = (1,)
_ALIKE: Final = (
    "_contrib_dequantize",
    "_contrib_quantize",
    "_contrib_quantized_act",
    "_contrib_quantized_flatten",
    "_contrib_quantized_pooling",
    "_contrib_requantize",
)
_BINARY: Final = ("_contrib_quantized_elemwise_add", "_contrib_quantized_elemwise_mul")
_REAL: Final = {
    "_contrib_quantized_conv": "Convolution",
    "_contrib_quantized_embedding": "Embedding",
    "_contrib_quantized_fully_connected": "FullyConnected",
}
"""Operators on bytes whose arrays have the shapes that another operator's have."""

QUANTIZED: Final = frozenset(
    (*_ALIKE, *_BINARY, *_REAL, "_contrib_quantized_batch_norm", "_contrib_quantized_concat")
)


def bounds_of(node: Node) -> Sequence[bool]:
    """Whether each input of an operator on bytes is a bound, or another array of real numbers."""
    operator = schema.find(node.op)
    names = operator.input_names(node.attrs) if operator is not None else ()
    real = ("min_", "max_", "gamma", "beta", "moving_")
    if node.op == "_contrib_quantize":
        return [True] * len(names)
    return [name.startswith(real) or name.endswith(("_min", "_max")) for name in names]


@rule(*_ALIKE)
def _one_array(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    del at, shapes
    return None, _ONE, _ONE


@rule(*_BINARY)
def _two_arrays(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    del at
    known = next((shape for shape in (*shapes[:2], result) if shape is not None), None)
    return known, known, *[_ONE] * 4


@rule(*_REAL)
def _layer(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    arrays = len(shapes) // 3 if at.node.op != "_contrib_quantized_embedding" else 2
    wanted = list(RULES[_REAL[at.node.op]](at, shapes[:arrays], result))[:arrays]
    wanted += [None] * (arrays - len(wanted))
    return *wanted, *[_ONE] * (len(shapes) - arrays)


@rule("_contrib_quantized_batch_norm")
def _batch_norm(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    return *RULES["BatchNorm"](at, shapes, result), _ONE, _ONE


@rule("_contrib_quantized_concat")
def _concat(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    arrays = len(shapes) // 3
    wanted = RULES["Concat"](at, shapes[:arrays], result) or [None] * arrays
    return *wanted, *[_ONE] * (2 * arrays)
