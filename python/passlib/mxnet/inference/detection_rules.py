"""Shapes of the inputs of operators for detection, and of layers that displace their windows."""

from __future__ import annotations

from passlib.graph.attributes import Attributes
from passlib.lowering.types import Shape
from passlib.mxnet.inference.parameter_rules import RULES, Known, rule

__all__: list[str] = []


@rule("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution")
def _deformable(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    """Offsets stay free, weight and bias are those of a convolution of the data."""
    displacing = 2 if at.node.op == "_contrib_DeformableConvolution" else 3
    _, weight, bias = RULES["Convolution"](at, shapes[:1], None)
    return *[None] * displacing, weight, bias


@rule("_contrib_Proposal", "_contrib_MultiProposal")
def _proposal(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    """Two scores and four displacements of each anchor, and three facts of each image."""
    del at
    scores = shapes[0]
    if scores is None or len(scores) != 4:
        return None, None, (None, 3)
    batch, both, height, width = scores
    return None, (batch, None if both is None else 2 * both, height, width), (batch, 3)


@rule(
    "ROIPooling", "_contrib_DeformablePSROIPooling", "_contrib_PSROIPooling", "_contrib_ROIAlign"
)  # fmt: skip
def _regions(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    del at, shapes
    return None, (None, 5)


@rule("_contrib_RROIAlign")
def _rotated_regions(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    del at, shapes
    return None, (None, 6)


@rule("_contrib_box_decode")
def _box_decode(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    del at, shapes
    return (None, None, 4), (1, None, 4)
