"""An ARK file as read: its JSON, its variant, and where its ops are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from passlib.dialects.json_text import JsonNumber, parse_plain
from passlib.errors import FormatError, GraphError, listed
from passlib.families.ark.schema import Variant
from passlib.graph.ordering import stable_order, stuck_items

TYPE_NAMES: dict[type, str] = {
    int: "an integer",
    list: "an array",
    str: "a string",
    bool: "true or false",
    dict: "an object",
}
"""The types of JSON values as messages spell them."""


def compact_json(value: Any) -> str:
    """Print JSON on one line without spaces; numbers keep their spelling."""
    if isinstance(value, dict):
        items = (f"{json.dumps(k, ensure_ascii=False)}:{compact_json(v)}" for k, v in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple, range)):
        return "[" + ",".join(map(compact_json, value)) + "]"
    if isinstance(value, JsonNumber):
        return value.text
    return json.dumps(value, ensure_ascii=False)


def plain_json(text: str) -> Any:
    """Read JSON that does not come from a file, so that printing never copies it from one.

    Raises `ValueError` if it is not JSON.
    """
    try:
        return parse_plain(text)
    except FormatError as error:
        raise ValueError(str(error)) from None


def kind(value: Any) -> str:
    """Return a JSON value as messages name it: numbers and constants as such, others by type."""
    if value is None or isinstance(value, (bool, int, float)):
        return compact_json(value)
    return next(TYPE_NAMES[known] for known in (dict, list, str) if isinstance(value, known))


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


def ordered(
    needs: Sequence[Iterable[int]], name: Callable[[int], str], rank: Sequence[Any] | None = None
) -> list[int]:
    """Order items so that each comes after those it needs.

    Raises `GraphError` if items need each other in a circle.

    Parameters
    ----------
    needs : sequence of iterable of int
        The items that each item needs.
    name : callable
        Spells an item for the error.
    rank : sequence, optional
        As in `passlib.graph.ordering.stable_order`.
    """
    order = stable_order(needs, rank)
    if len(order) < len(needs):
        raise circle_error(needs, name)
    return order


def circle_error(needs: Sequence[Iterable[int]], name: Callable[[int], str]) -> GraphError:
    """Return the error for items that need each other in a circle."""
    stuck = stuck_items([list(wanted) for wanted in needs])
    return GraphError(f"these need each other in a circle: {listed(list(map(name, stuck)), 4)}")
