"""Element types of operators' outputs, which follow without any shape.

Lowering finds them, too, but only where it knows how many axes the inputs have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from passlib.graph.attributes import Attributes
from passlib.graph.node import Node
from passlib.lowering.types import TypeSpec

_INT32 = np.dtype(np.int32)
_DETERMINANTS = ("_linalg_det", "_linalg_slogdet")


def with_hidden(
    node: Node, inputs: Sequence[TypeSpec], specs: Sequence[TypeSpec]
) -> tuple[TypeSpec, ...]:
    """Fill in the hidden outputs of a node whose visible ones are known.

    The second output of ``sort``, ``topk`` and maximum pooling holds positions, as int32, in the
    shape of the result; the hidden outputs of the determinants hold the factorized matrix and
    its pivots.
    """
    filled = list(specs)
    if node.op in ("sort", "topk", "Pooling") and len(filled) == 2:
        if filled[1].shape is None and filled[1].dtype is None:
            filled[1] = TypeSpec(_INT32, filled[0].shape)
    elif node.op in _DETERMINANTS and inputs and filled[-2].shape is None:
        matrix = filled[-2] = inputs[0]
        if matrix.shape is not None:
            filled[-1] = TypeSpec(_INT32, matrix.shape[:-1])
    return tuple(filled)


DType = np.dtype
Rule = Callable[[Attributes, "DType | None"], "DType | None"]

_BOOL, _INT8, _INT_32, _INT64 = map(np.dtype, (np.bool_, np.int8, np.int32, np.int64))
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

_FIRST = (
    "_contrib_DeformablePSROIPooling _contrib_ModulatedDeformableConvolution "
    "_contrib_MultiBoxDetection _contrib_MultiBoxPrior _contrib_MultiProposal "
    "_contrib_PSROIPooling _contrib_Proposal _contrib_RROIAlign _contrib_arange_like "
    "_contrib_bipartite_matching _contrib_boolean_mask _contrib_box_encode _contrib_hawkesll "
    "_linalg_det _linalg_gelqf _linalg_inverse _linalg_slogdet "
    "_np_atleast_1d _np_atleast_2d _np_atleast_3d _np_diag _np_diagflat _np_diagonal _np_dot "
    "_np_max _np_min _np_moveaxis _np_reshape _np_roll _np_squeeze _np_trace _np_transpose "
    "_npi_average _npi_boolean_mask_assign_scalar _npi_boolean_mask_assign_tensor "
    "_npi_broadcast_to _npi_cholesky _npi_column_stack _npi_concatenate _npi_delete _npi_det "
    "_npi_diff _npi_dsplit _npi_dstack _npi_einsum _npi_flip _npi_hsplit _npi_hstack "
    "_npi_insert_scalar _npi_insert_slice _npi_insert_tensor _npi_inv _npi_matmul _npi_norm "
    "_npi_pad _npi_polyval _npi_rot90 _npi_slogdet _npi_stack _npi_tensordot "
    "_npi_tensordot_int_axes _npi_tril _npi_vstack _npx_reshape _slice_assign "
    "_slice_assign_scalar batch_take moments sort"
)

_CREATED = "_arange _npi_arange _npi_blackman _npi_hamming _npi_hanning _npi_identity _npi_logspace"
_INTEGER = (
    "_contrib_quantized_conv _contrib_quantized_elemwise_add _contrib_quantized_fully_connected"
)
_PLACES = "_contrib_index_array _npi_argmax _npi_argmin _npi_diag_indices_from _npx_nonzero"
_SAME_BYTES = "_contrib_quantized_act _contrib_quantized_flatten _contrib_quantized_pooling"


def _is_real(dtype: DType) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _fixed(dtype: DType) -> Rule:
    return lambda at, given: dtype


def _first(at: Attributes, given: DType | None) -> DType | None:
    del at
    return given


def _chosen(natural: Callable[[DType], DType]) -> Rule:
    """Return a rule that prefers the attribute ``dtype``."""

    def rule(at: Attributes, given: DType | None) -> DType | None:
        return at.dtype("dtype", None if given is None else natural(given))

    return rule


def _summed(dtype: DType) -> DType:
    return _INT64 if dtype == _BOOL else dtype


def _averaged(dtype: DType) -> DType:
    return dtype if _is_real(dtype) else _SINGLE


def _solved(at: Attributes, given: DType | None) -> DType | None:
    del at
    return given if given is None or _is_real(given) else _DOUBLE


def _ranked(at: Attributes, given: DType | None) -> DType | None:
    del at
    return given if given is None or given == _DOUBLE else _SINGLE


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_FIRST.split(), _first),
    **dict.fromkeys(("_np_all", "_np_any", "_npx_constraint_check"), _fixed(_BOOL)),
    **dict.fromkeys(_PLACES.split(), _fixed(_INT64)),
    **dict.fromkeys(_CREATED.split(), lambda at, given: at.dtype("dtype", _SINGLE)),
    **dict.fromkeys(("log_softmax", "softmax", "softmin"), _chosen(lambda dtype: dtype)),
    "_npi_indices": lambda at, given: at.dtype("dtype", _INT_32),
    "_image_to_tensor": _fixed(_SINGLE),
    **dict.fromkeys(("_np_cumsum", "_np_prod", "_np_sum"), _chosen(_summed)),
    **dict.fromkeys(("_npi_std", "_npi_var"), _chosen(lambda dtype: dtype)),
    "_npi_tensorinv": _solved,
    "_npi_mean": _chosen(_averaged),
    "_npi_percentile": _ranked,
    **dict.fromkeys(("Cast", "cast"), lambda at, given: at.dtype("dtype", None)),
    "norm": lambda at, given: at.dtype("out_dtype", given),
    "argsort": lambda at, given: at.dtype("dtype", _SINGLE),
}


def output_types(
    at: Attributes, given: Sequence[DType | None], count: int
) -> Sequence[DType | None]:
    """Return the element types of ``count`` outputs, ``None`` where no rule knows.

    Parameters
    ----------
    given : sequence of (numpy.dtype or None)
        Types of the inputs.

    Raises
    ------
    UnsupportedError
        The attribute ``dtype`` cannot be read.
    """
    op, first = at.node.op, given[0] if given else None
    if op == "_npi_unique":
        return [first, *[_INT64] * (count - 1)]
    if op == "topk":
        kind, places = at.string("ret_typ", "indices"), at.dtype("dtype", _SINGLE)
        return [places if kind == "indices" else first, places if kind == "both" else None][:count]
    if op == "where" and len(given) > 1:
        return [given[1]] * count
    if op == "_histogram":
        return [_INT64, first][:count]
    if op in ("_npi_solve", "_npi_tensorsolve"):
        unknown = any(dtype is None for dtype in given)
        known = None if unknown else first if given[-1] == first else _DOUBLE
        return [_solved(at, known)] * count
    if op == "_npi_bincount":
        return [given[-1]] * count
    quantized = _quantized(op, given)
    if quantized is not None:
        return [quantized, *[_SINGLE] * (count - 1)]
    rule = _RULES.get(op)
    return [None if rule is None else rule(at, first)] * count


def _quantized(op: str, given: Sequence[DType | None]) -> DType | None:
    """Return the type of the first output of an operator on bytes; two bounds follow it."""
    if op in _INTEGER.split():
        return _INT_32
    if op in _SAME_BYTES.split():
        return given[0]
    if op == "_contrib_quantized_batch_norm":
        return _INT8
    if op == "_contrib_quantized_concat":
        bytes_of = set(given[: len(given) // 3])
        return bytes_of.pop() if len(bytes_of) == 1 else _INT8
    return None
