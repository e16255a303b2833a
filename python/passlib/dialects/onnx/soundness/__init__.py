"""Checks before ONNX's inference or ONNX Runtime get a model, and of models before they are saved.

Both are native code that takes the numbers of inputs, outputs and attributes for right, and may
end the process where they are not.
"""

from __future__ import annotations

from passlib.dialects.onnx.soundness.acceptance import (
    MOST_KINDS,
    are_accepted,
    check_accepted,
    loses_captured_casts,
    objection_to_types,
    states_elements,
    without_weights,
)
from passlib.dialects.onnx.soundness.inference import (
    inferred,
    inferred_with_disputes,
    open_sizes,
    unsafe_to_infer,
)
from passlib.dialects.onnx.soundness.model import (
    check_model,
    complaint_about,
    drop_omitted,
    name_omitted,
)
from passlib.dialects.onnx.soundness.sizes import check_sizes

__all__ = [
    "MOST_KINDS",
    "are_accepted",
    "check_accepted",
    "check_model",
    "check_sizes",
    "complaint_about",
    "drop_omitted",
    "inferred",
    "inferred_with_disputes",
    "loses_captured_casts",
    "name_omitted",
    "objection_to_types",
    "open_sizes",
    "states_elements",
    "unsafe_to_infer",
    "without_weights",
]
