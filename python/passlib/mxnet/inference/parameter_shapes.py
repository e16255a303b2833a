"""Shapes and types of inputs, as far as MXNet's operators determine them.

A convolution's weight follows from its data and attributes, a label from the prediction, one term
of a sum from the other. MXNet infers in both directions; lowering runs only forward, so these
rules complete its inputs beforehand, and find inputs that contradict their operator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.errors import UnsupportedError
from passlib.graph.attributes import Attributes, blame
from passlib.graph.node import Node
from passlib.lowering.shapes import merged
from passlib.lowering.types import Value
from passlib.mxnet.inference import (  # noqa: F401 (they register their rules)
    detection_rules,
    joining_rules,
)
from passlib.mxnet.inference.outputs.shapes import output_shapes
from passlib.mxnet.inference.outputs.types import output_types
from passlib.mxnet.inference.parameter_rules import RULES
from passlib.mxnet.inference.quantized_rules import QUANTIZED, bounds_of
from passlib.mxnet.inference.same_shape import (
    CREATING,
    FIRST_TYPE,
    PROMOTING,
    shares_shape,
    shares_type,
)
from passlib.mxnet.inference.type_checks import ElementTypeError, check_types
from passlib.mxnet.inference.type_patterns import complete_types
from passlib.mxnet.inference.window_checks import check_window
from passlib.mxnet.numpy_mode import partial_shape

_TYPED_BY_ATTRIBUTE = frozenset(("Embedding", "_contrib_SparseEmbedding", "_npx_embedding"))
"""Operators whose second input has the element type of the attribute ``dtype``."""

_UNRULY = (ArithmeticError, LookupError, TypeError, UnsupportedError, ValueError)
"""Errors of a rule on a malformed node, whose lowering reports the cause."""

_FREELY_TYPED = frozenset(("SequenceLast", "SequenceMask", "SequenceReverse", "pick", "softmax"))
"""Operators whose lengths or indices may have any element type."""

_TYPED_BY_OUTPUT = frozenset(
    (
        "BatchNorm",
        "Convolution",
        "Deconvolution",
        "FullyConnected",
        "LayerNorm",
        "LeakyReLU",
        "SliceChannel",
        "split",
    )
)
"""Layers whose inputs have the element type of the output, where that alone is known."""

_BYTE_LAYERS = frozenset(("_contrib_quantized_conv", "_contrib_quantized_fully_connected"))
"""Layers whose weight and bias are int8."""

_EQUAL_PARTS = frozenset(("SliceChannel", "split"))

_KEEPS_FLOAT32 = frozenset(
    ("BatchNorm", "BatchNorm_v1", "_contrib_BatchNormWithReLU", "_contrib_SyncBatchNorm")
)
"""Operators whose parameters stay float32 if the data are float16."""


def complete(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
    """Complete types and shapes of a node's inputs, in place.

    Parameters
    ----------
    node : Node
    inputs, outputs : sequence of Value
        ``outputs`` may be empty while they are unknown.

    Raises
    ------
    GraphError
        A known shape contradicts the operator; the message names the node and the input.
    """
    if node.op in CREATING and outputs:
        _complete_created(node, outputs[0])
    if inputs:
        check_window(node, inputs[0].shape)
        check_types(node, inputs)
    if shares_shape(node.op):
        _unify(node, inputs, outputs)
    if node.op in _EQUAL_PARTS:
        _share(outputs)
    rule = RULES.get(node.op)
    if rule is not None and inputs:
        try:
            shapes = [value.shape for value in inputs]
            expected = rule(Attributes(node), shapes, outputs[0].shape if outputs else None)
            _complete_types(node, inputs, outputs)
        except _UNRULY:
            return
        for index, (value, wanted) in enumerate(zip(inputs, expected, strict=False)):
            value.shape = merged(node, index, value.shape, wanted)
    complete_types(node, inputs, outputs)
    if outputs:
        _type_outputs(node, inputs, outputs)
        _shape_outputs(node, inputs, outputs)
    if shares_type(node.op) and node.attrs.get("dtype", "None") == "None":
        _unify_types(node, inputs, outputs[:1])
    if inputs and (node.op in FIRST_TYPE or (rule is not None and node.op not in QUANTIZED)):
        for value in outputs:
            if value.dtype is None:
                value.dtype = inputs[0].dtype


def _type_outputs(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    try:
        types = output_types(Attributes(node), [value.dtype for value in inputs], len(outputs))
    except _UNRULY:
        return
    for value, dtype in zip(outputs, types, strict=True):
        if value.dtype is None:
            value.dtype = dtype


def _shape_outputs(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    try:
        shapes = output_shapes(Attributes(node), [value.shape for value in inputs])
    except _UNRULY:
        return
    for value, shape in zip(outputs, shapes, strict=False):
        if value.shape is None or (None in value.shape and shape is not None):
            value.shape = shape


def _unify(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Set one shape for the inputs of an elementwise operator."""
    shape = outputs[0].shape if outputs else None
    for index, value in enumerate(inputs):
        shape = merged(node, index, value.shape, shape)
    for value in inputs:
        value.shape = shape


def _share(outputs: Sequence[Value]) -> None:
    """Set the type and the shape of all outputs to those of one that has them."""
    known = [value.shape for value in outputs if value.shape is not None]
    dtype = next((value.dtype for value in outputs if value.dtype is not None), None)
    for value in outputs:
        value.dtype = value.dtype or dtype
        if known and all(len(shape) == len(known[0]) for shape in known):
            value.shape = tuple(
                next((size for size in sizes if size is not None), None)
                for sizes in zip(*known, strict=True)
            )


def _unify_types(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Set one element type where none is known.

    Raises
    ------
    ElementTypeError
        Two inputs have different ones.
    """
    values = [*inputs, *outputs]
    known = next((value.dtype for value in values if value.dtype is not None), None)
    for index, value in enumerate(inputs):
        # By identity: NumPy takes None for float64.
        differs = value.dtype is not None and value.dtype != known
        if differs and node.op not in PROMOTING:
            message = (
                f"{blame(node)}: input {index} ({value.name!r}) is {value.dtype}, and the operator "
                f"wants one element type, which is {known} of input 0; insert Cast"
            )
            raise ElementTypeError(message)
    for value in values:
        if value.dtype is None:
            value.dtype = known


def _complete_created(node: Node, value: Value) -> None:
    """Complete the type and the shape of a created array, of which sizes may stay unknown."""
    at = Attributes(node)
    if value.dtype is None:
        value.dtype = at.dtype("dtype", np.dtype(np.float32))
    if value.shape is None and at.attr("shape") is not None:
        value.shape = partial_shape(at.ints("shape"))


def _complete_types(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    if node.op in QUANTIZED:
        for index, (value, real) in enumerate(zip(inputs, bounds_of(node), strict=False)):
            if value.dtype is None and (real or (index and node.op in _BYTE_LAYERS)):
                value.dtype = np.dtype(np.float32 if real else np.int8)
        return
    if node.op in _TYPED_BY_ATTRIBUTE:
        dtype = Attributes(node).dtype("dtype", np.dtype(np.float32))
        if inputs[1].dtype is None:
            inputs[1].dtype = dtype
        return
    if node.op in _FREELY_TYPED:
        return
    values = [*(outputs[:1] if node.op in _TYPED_BY_OUTPUT else ()), *inputs]
    known = next((value.dtype for value in values if value.dtype is not None), None)
    if known is None:
        return
    for index, value in enumerate(inputs):
        if value.dtype is None:
            narrow = node.op in _KEEPS_FLOAT32 and index > 0 and known == np.float16
            value.dtype = np.dtype(np.float32) if narrow else known
