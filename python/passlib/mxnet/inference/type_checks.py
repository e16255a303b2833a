"""Element types that NumPy operators refuse when MXNet infers types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from passlib.errors import GraphError
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.lowering.types import Value
from passlib.mxnet.schema import registry

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
    >>> from passlib.mxnet.inference.type_checks import complete_types
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


def _is_real(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


_REAL: Final = ("floating-point numbers", _is_real)
_BITS: Final = ("integers and truth values", lambda dtype: dtype.kind in "iub")
_SOLVED: Final = ("any type but float16", lambda dtype: dtype != np.float16)
_TRUTH: Final = ("truth values", lambda dtype: dtype == np.bool_)
_PLACES: Final = ("int64 as places", lambda dtype: dtype == np.int64)

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

    Raises
    ------
    ElementTypeError
        The operator does not take one; the message names the node and the input.
    """
    words, admits = _ADMITTED.get(node.op, ("", None))
    for index, value in enumerate(inputs if admits is not None else ()):
        if value.dtype is not None and admits is not None and not admits(value.dtype):
            _refuse(node, index, value, words)
    if node.op == "_npi_insert_tensor" and inputs:
        dtype = inputs[-1].dtype
        if dtype is not None and not _PLACES[1](dtype):
            _refuse(node, len(inputs) - 1, inputs[-1], _PLACES[0])
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
    message = (
        f"{blame(node)}: input {index} ({value.name!r}) is {value.dtype}, and the operator takes "
        f"{words}; insert Cast"
    )
    raise ElementTypeError(message)
