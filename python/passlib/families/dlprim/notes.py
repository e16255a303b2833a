"""Attributes that passlib adds to the nodes of a graph and that no file contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from passlib.graph.node import VARIABLE

ID: Final = "__id__"
"""The node's place in the file, such as ``operators[3]``."""

TENSOR: Final = "__tensor__"
"""The name of the node's output tensor, if it differs from the node's."""

FROZEN: Final = "__frozen__"
"""``true`` on an operator whose parameters are not trained."""

SHAPE: Final = "__shape__"
DTYPE: Final = "__dtype__"
"""Shape and element type of an input, as MXNet spells them."""

VIEW: Final = "view"
"""Value of ``ID`` on a Reshape that no file contains: it stands for a tensor whose memory was
written to under another name."""


def is_input(op: str, attributes: Mapping[str, str]) -> bool:
    """Whether a node is an input tensor of the file."""
    return op == VARIABLE and attributes.get(ID, "").startswith("inputs[")


def tensor_name(name: str, attributes: Mapping[str, str]) -> str:
    """Return the name of a node's output tensor."""
    return attributes.get(TENSOR, name)
