"""Element types: those that MXNet refuses when it infers them, and those of outputs.

Types of outputs follow without any shape. Lowering finds them, too, but only where it knows the
ranks of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from passlib.errors import GraphError
from passlib.graph.attributes import Attributes, blame
from passlib.graph.node import Node
from passlib.lowering.types import TypeSpec, Value
from passlib.mxnet.lowering.real_arithmetic import multicast
from passlib.mxnet.schema import registry

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
    return given if given is None or _is_real(given) else _DOUBLE


def _ranked(at: Attributes, given: DType | None) -> DType | None:
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

    Raises `UnsupportedError` if the attribute ``dtype`` cannot be read.

    Parameters
    ----------
    given : sequence of (numpy.dtype or None)
        Types of the inputs.
    """
    op, first = at.node.op, given[0] if given else None
    if op == "_npi_unique":
        return [first, *[_INT64] * (count - 1)]
    if op == "topk":
        kind, places = at.string("ret_typ", "indices"), at.dtype("dtype", _SINGLE)
        return [places if kind == "indices" else first, places if kind == "both" else None][:count]
    if op == "where" and len(given) > 1:
        return [given[1]] * count
    if op == "amp_multicast":
        return multicast(given, narrow=at.bool("cast_narrow", False))
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


_PATTERNS: Final = {
    "Crop": "F* F",
    "IdentityAttachKLSparseReg": "F* F",
    **dict.fromkeys(("SequenceLast", "SequenceMask", "SequenceReverse"), "Tt T"),
    "InstanceNorm": "F* F",
    "_contrib_MultiBoxDetection": "F* F",
    "_contrib_MultiBoxPrior": "F F",
    "_contrib_MultiProposal": "F* F*",
    "_contrib_Proposal": "F* F*",
    "_contrib_allclose": "--* h",
    "_contrib_box_encode": "T* T*",
    "_contrib_hawkesll": "TTTTTiTT TT",
    "_contrib_index_copy": "T-- T",
    "_contrib_quantized_act": "-ff bff",
    "_contrib_quantized_embedding": "-bff bff",
    "_contrib_quantized_flatten": "Tff Tff",
    "_contrib_quantized_pooling": "Tff Tff",
    "_contrib_requantize": "iff -ff",
    "_npi_boolean_mask_assign_tensor": "T-T T",
    "_npi_where": "-ss t",
    "_npi_where_lscalar": "-T T",
    "_npi_where_scalar2": "- f",
    "_npi_where_rscalar": "-T T",
    "all_finite": "- f",
    "batch_take": "-i -",
    "multi_all_finite": "-* f",
    "multi_sum_sq": "T* f",
    "shape_array": "- l",
    "size_array": "- l",
    "where": "-TT T",
    **{f"_npi_{name}": "TT T" for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "lcm")},
    **{
        f"_npi_{name}": "TT ?"
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    },
}
"""The types of the inputs, then of the outputs; ``*`` repeats the last place.

T and F: one type that all these places share, for F float32 if none of them is known.
t and s: takes that type where its own is unknown, and lets others take it.
?: bool, if T is known. -: free.
b, h, i, l and f: int8, uint8, int32, int64 and float32.
"""

_FIXED: Final = {letter: np.dtype(letter) for letter in "bilf"} | {"h": np.dtype("uint8")}


def complete_types(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Complete unknown element types in place; ``outputs`` may be empty.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.mxnet.inference.types import complete_types
    >>> from passlib.graph.node import Node
    >>> from passlib.lowering.types import Value
    >>> values = [Value("condition"), Value("x", np.dtype("float32")), Value("y")]
    >>> complete_types(Node("where", "w"), values, [])
    >>> [value.dtype for value in values]
    [None, dtype('float32'), dtype('float32')]
    """
    operator = registry.find(node.op)
    pattern = _PATTERNS.get(node.op if operator is None else operator.name)
    if pattern is None:
        return
    places = [
        place
        for text, values in zip(pattern.split(), (inputs, outputs), strict=True)
        for place in zip(_spread(text, len(values)), values, strict=False)
    ]
    known = [v.dtype for letter, v in places if letter in "TFs" and v.dtype is not None]
    shared = known[0] if known else _FIXED["f"] if "F" in pattern else None
    if "s" in pattern and any(dtype != shared for dtype in known):
        shared = None
    for letter, value in places:
        if value.dtype is not None:
            continue
        if letter in "TFt":
            value.dtype = shared
        elif letter == "?":
            value.dtype = None if shared is None else np.dtype(np.bool_)
        else:
            value.dtype = _FIXED.get(letter)


def _spread(text: str, count: int) -> str:
    return text[:-1] + text[-2] * count if text.endswith("*") else text


_Admits = Callable[[np.dtype], bool]

_REAL: Final = ("floating-point numbers", _is_real)
_BITS: Final = ("integers and truth values", lambda dtype: dtype.kind in "iub")
_SOLVED: Final = ("any type but float16", lambda dtype: dtype != np.float16)
_TRUTH: Final = ("truth values", lambda dtype: dtype == np.bool_)
_AS_PLACES: Final = ("int64 as places", lambda dtype: dtype == np.int64)

_ADMITTED: Final[dict[str, tuple[str, _Admits]]] = {
    **dict.fromkeys(("_npi_arctan2", "_npi_hypot"), _REAL),
    **{
        f"_npi_bitwise_{name}{scalar}": _BITS
        for name in ("and", "or", "xor")
        for scalar in ("", "_scalar")
    },
    **dict.fromkeys(("_npi_lcm", "_npi_lcm_scalar"), _BITS),
    **dict.fromkeys(("_npi_around", "_npi_solve", "_npi_tensorinv", "_npi_tensorsolve"), _SOLVED),
    "_npx_constraint_check": _TRUTH,
}
"""By operator: the element types that its inputs may have, in words and as a test."""

_SAME_TYPE: Final = (
    "_np_atleast_1d _np_atleast_2d _np_atleast_3d _np_dot _npi_average _npi_bitwise_and "
    "_npi_bitwise_or _npi_bitwise_xor _npi_column_stack _npi_concatenate _npi_dstack "
    "_npi_ediff1d _npi_equal _npi_greater _npi_greater_equal _npi_hstack _npi_lcm _npi_ldexp "
    "_npi_less _npi_less_equal _npi_matmul _npi_not_equal _npi_stack _npi_tensordot "
    "_npi_tensordot_int_axes _npi_vstack"
)
_EQUAL: Final = frozenset(_SAME_TYPE.split())
"""Operators whose inputs have one element type."""


class ElementTypeError(GraphError):
    """An operator does not take the element types of its inputs."""


def check_types(node: Node, inputs: Sequence[Value]) -> None:
    """Check the element types of a node's inputs, as far as they are known.

    Raises `ElementTypeError` if the operator does not take one; the message names the node and the
    input.
    """
    words, admits = _ADMITTED.get(node.op, ("", None))
    for index, value in enumerate(inputs if admits is not None else ()):
        if value.dtype is not None and admits is not None and not admits(value.dtype):
            _refuse(node, index, value, words)
    if node.op == "_npi_insert_tensor" and inputs:
        dtype = inputs[-1].dtype
        if dtype is not None and not _AS_PLACES[1](dtype):
            _refuse(node, len(inputs) - 1, inputs[-1], _AS_PLACES[0])
    _check_equal(node, inputs)


def _check_equal(node: Node, inputs: Sequence[Value]) -> None:
    equal = list(range(len(inputs))) if node.op in _EQUAL else []
    if node.op == "_npi_boolean_mask_assign_tensor" and len(inputs) == 3:
        equal = [0, 2]
    known: np.dtype | None = None
    for index in equal:
        dtype = inputs[index].dtype
        # By identity: NumPy takes None for float64.
        if dtype is None:
            continue
        if known is None:
            known = dtype
        elif dtype != known:
            _refuse(node, index, inputs[index], f"one element type, here {known}")


def _refuse(node: Node, index: int, value: Value, words: str) -> None:
    raise ElementTypeError(
        f"{blame(node)}: input {index} ({value.name!r}) is {value.dtype}, and the operator takes "
        f"{words}; insert Cast"
    )
