"""An ARK file as read: its JSON, its variant, and where its ops are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from passlib.families.ark.schema import Variant

GROUPS = ("ReadTensors", "WriteTensors", "ResultTensors")


@dataclass(frozen=True)
class OpPlace:
    """One op of a file.

    Attributes
    ----------
    unit : int
        Position of its node, or of its task in a plan.
    position : int
        Position in the unit's ``Ops``; 0 for the ``Op`` of one.
    key : str
        The hidden attribute ``__id__`` of its node in the graph.
    path : str
        JSON path, for messages.
    value : dict
        Its JSON object.
    """

    unit: int
    position: int
    key: str
    path: str
    value: dict[str, Any]

    @property
    def single(self) -> bool:
        """Whether it is the ``Op`` of its unit rather than one of its ``Ops``."""
        return self.path.endswith(".Op")


@dataclass(frozen=True)
class Document:
    """A file as it was read.

    Attributes
    ----------
    text : bytes
    root : dict
    variant : Variant
        The generation of the format, by its structure.
    plan : bool
        Whether it is a plan, which has tasks instead of nodes.
    units : list of dict
        JSON objects of the nodes or tasks.
    ops : tuple of OpPlace
        In the order of the file.
    """

    text: bytes
    root: dict[str, Any]
    variant: Variant
    plan: bool
    units: list[dict[str, Any]]
    ops: tuple[OpPlace, ...]

    @property
    def units_key(self) -> str:
        """The key of the list of nodes or tasks."""
        return "TaskInfos" if self.plan else "Nodes"

    @property
    def rank(self) -> int:
        """The rank that the file is for."""
        rank: int = self.root["Rank"]
        return rank
