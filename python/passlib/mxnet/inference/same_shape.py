"""Operators whose inputs and outputs share shape or type, beyond what MXNet itself infers."""

from __future__ import annotations

from typing import Final

from passlib.mxnet.schema import registry

_SHAPE: Final = frozenset(("Dropout", "MakeLoss"))

FIRST_TYPE: Final = frozenset(
    (
        "BilinearSampler",
        "CTCLoss",
        "Crop",
        "GridGenerator",
        "L2Normalization",
        "LRN",
        "ROIPooling",
        "SliceChannel",
        "SpatialTransformer",
        "_contrib_BilinearResize2D",
        "_contrib_ROIAlign",
        "_split_v2",
        "broadcast_like",
        "gather_nd",
        "pick",
        "reshape_like",
        "scatter_nd",
        "slice_like",
        "take",
    )
)
"""Operators whose outputs have the element type of the first input, whatever the others have."""

PROMOTING: Final = frozenset(
    f"_npi_{name}" for name in ("add", "mod", "multiply", "power", "subtract", "true_divide")
)
"""Operators that share a type by default, and also combine two types."""

CREATING: Final = frozenset(("_full", "_ones", "_zeros", "_zeros_without_dtype"))
"""Operators without inputs whose attribute ``shape`` may leave sizes open."""


def shares_shape(op: str) -> bool:
    """Whether all inputs and outputs of an operator have one shape, inferred in both directions."""
    operator = registry.find(op)
    return operator is not None and (operator.same_shape or operator.name in _SHAPE)


def shares_type(op: str) -> bool:
    """Whether all inputs and the first output have one element type, inferred likewise."""
    operator = registry.find(op)
    return operator is not None and operator.same_type
