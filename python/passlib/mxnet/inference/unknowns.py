"""Shapes that MXNet leaves unknown while inputs are partly known, although they would follow.

Export needs all that follows; `Symbol.infer_shape_partial` returns what MXNet's returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from passlib.errors import UnsupportedError
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.lowering import Lowerings, Operation, Value
from passlib.lowering.table import LoweringFunction
from passlib.lowering.walk import Complete
from passlib.mxnet.schema import registry

_ALL_KNOWN: Final = (
    "BilinearSampler SpatialTransformer _contrib_boolean_mask _npi_average _npi_einsum gather_nd"
)
"""Operators that wait until all dimensions of all inputs are known."""

_FIRST_KNOWN: Final = (
    "Flatten LRN LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput "
    "_contrib_AdaptiveAvgPooling2D _contrib_BilinearResize2D _contrib_SyncBatchNorm "
    "_contrib_box_nms _contrib_quantized_act _contrib_quantized_flatten "
    "_contrib_quantized_pooling _image_to_tensor _np_all _np_any _np_max _np_min _np_prod "
    "_np_squeeze _np_sum _npi_argmax _npi_argmin _npi_bincount _npi_broadcast_to _npi_delete "
    "_npi_diag_indices_from _npi_diff _npi_ediff1d _npi_mean _npi_norm _npi_std _npi_unique "
    "_npi_var _npx_nonzero _npx_reshape argmax argmax_channel argmin broadcast_axis col2im "
    "im2col max min norm one_hot squeeze tile"
)
"""Operators that wait until all dimensions of the first input are known."""

_RANK_KNOWN: Final = (
    "BatchNorm BatchNorm_v1 Convolution Convolution_v1 Deconvolution Embedding FullyConnected "
    "GroupNorm InstanceNorm LayerNorm LeakyReLU SequenceLast SequenceMask SequenceReverse "
    "_contrib_BatchNormWithReLU _contrib_DeformableConvolution _contrib_MultiProposal "
    "_contrib_Proposal _contrib_SparseEmbedding _contrib_quantized_batch_norm "
    "_contrib_quantized_concat _contrib_quantized_elemwise_mul _contrib_quantized_embedding "
    "_contrib_quantized_fully_connected _np_diagflat repeat"
)
"""Operators that wait until the rank of the first input is known."""

_WAITS: Final = {
    name: kind
    for kind, names in (("all", _ALL_KNOWN), ("first", _FIRST_KNOWN), ("rank", _RANK_KNOWN))
    for name in names.split()
} | {"batch_dot": "inner", "stack": "any"}


class Waiting(Lowerings):
    """The functions of a table, each of which waits as its operator does."""

    def __init__(self, table: Lowerings) -> None:
        super().__init__(table.dialect)
        self._table = table

    def find(self, operator: str) -> LoweringFunction | None:
        """Return the function of an operator; it raises UnsupportedError while a node waits."""
        function = self._table.find(operator)
        return None if function is None else partial(_lower, function)

    def why_missing(self, operator: str) -> str:
        """Return why the table lacks an operator."""
        return self._table.why_missing(operator)


def leaving_unknown(complete: Complete) -> Complete:
    """Return rules that find nothing about the shapes of nodes that wait."""

    def complete_node(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
        values = [*inputs, *outputs] if _waits(node, inputs) else []
        shapes = [value.shape for value in values]
        complete(node, inputs, outputs)
        for value, shape in zip(values, shapes, strict=True):
            value.shape = shape

    return complete_node


def _lower(function: LoweringFunction, op: Operation) -> Value | Sequence[Value]:
    if _waits(op.node, op.inputs):
        raise UnsupportedError(f"{blame(op.node)}: MXNet leaves its shapes unknown")
    return function(op)


def _waits(node: Node, inputs: Sequence[Value]) -> bool:
    operator = registry.find(node.op)
    name = node.op if operator is None else operator.name
    kind = _WAITS.get(name)
    shapes = [value.shape for value in inputs]
    if kind is None or not shapes:
        return False
    if kind == "rank":
        return shapes[0] is None
    if kind == "inner":  # whatever is transposed
        return any(
            shape is None or shape[-place:][:1] == (None,)
            for place, shape in enumerate(shapes, start=1)
        )
    is_open = [shape is None or None in shape for shape in shapes]
    return {"all": any(is_open), "any": all(is_open), "first": is_open[0]}[kind]
