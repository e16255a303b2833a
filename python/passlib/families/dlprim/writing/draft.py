"""A network before its tensors have names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from passlib.families.dlprim.types import Spec


@dataclass(eq=False)
class Value:
    """A tensor: an input of the network, or the output of an operator.

    Attributes
    ----------
    node : str
        Name of the node, and of the operator to be written.
    op : str
    wish : str
        The preferred name of the tensor.
    spec : Spec
    attributes : mapping of str to str
        Options, without passlib's own attributes.
    inputs : list of Value
    parameters : list of str
    place : str
        Of the original in the file; empty if there is none.
    frozen : bool
    view : bool
        Whether this is only another name for memory that was written to.
    """

    node: str
    op: str
    wish: str
    spec: Spec
    attributes: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Value] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    place: str = ""
    frozen: bool = False
    view: bool = False


@dataclass(frozen=True)
class Draft:
    """A network before its tensors have names.

    Attributes
    ----------
    inputs : list of Value
    operators : list of Value
        Each after its inputs.
    outputs : list of Value
    names : list of str
        The name that each output must have.
    """

    inputs: list[Value]
    operators: list[Value]
    outputs: list[Value]
    names: list[str]
