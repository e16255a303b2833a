"""An ARK file as read: its JSON, its variant, and where its ops are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passlib.dialects.json_text import compact_json, parse_plain
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


def require_key(owner: Mapping[str, Any], key: str, wanted: type, path: str = "") -> Any:
    """Return the value of a key of the object at ``path``.

    Raises `FormatError` if the key is missing, or its value is of another type.
    """
    place = f"{path}.{key}" if path else key
    if key not in owner:
        raise FormatError(f"{place}: the key is missing")
    value = owner[key]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise FormatError(f"{place}: expected {TYPE_NAMES[wanted]}, not {kind(value)}")
    return value


GROUPS = ("ReadTensors", "WriteTensors", "ResultTensors")


@dataclass(frozen=True)
class OpPlace:
    """One op of a file."""

    unit: int
    """Position of its node, or of its task in a plan."""
    position: int
    """Position in the unit's ``Ops``; 0 for the ``Op`` of one."""
    key: str
    """The hidden attribute ``__id__`` of its node in the graph."""
    path: str
    """JSON path, for messages."""
    value: dict[str, Any]
    """Its JSON object."""

    @property
    def single(self) -> bool:
        """Whether it is the ``Op`` of its unit rather than one of its ``Ops``."""
        return self.path.endswith(".Op")


@dataclass(frozen=True)
class Document:
    """A file as it was read: a model with nodes, or a plan with tasks as its units."""

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
    """Order items so that each comes after those it needs; see `stable_order` for ``rank``.

    Raises `GraphError`, with the names of the items, if they need each other in a circle.
    """
    order = stable_order(needs, rank)
    if len(order) < len(needs):
        raise circle_error(needs, name)
    return order


def circle_error(needs: Sequence[Iterable[int]], name: Callable[[int], str]) -> GraphError:
    """Return the error for items that need each other in a circle."""
    stuck = stuck_items([list(wanted) for wanted in needs])
    return GraphError(f"these need each other in a circle: {listed(list(map(name, stuck)), 4)}")
