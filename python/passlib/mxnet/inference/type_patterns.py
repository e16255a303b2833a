"""Element types that operators share between inputs and outputs, or fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

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
    >>> from passlib.mxnet.inference.type_patterns import complete_types
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
