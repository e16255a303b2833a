"""Attributes of nodes that passes made or changed, as serialized messages."""

from __future__ import annotations

import json
from collections.abc import Mapping

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.writing import attribute_parser


class AttributeMaker:
    """Makes attributes from their text.

    Parameters
    ----------
    imports : mapping of str to int
        Versions of the operator sets, for the types of new attributes.
    """

    def __init__(self, imports: Mapping[str, int]) -> None:
        self._imports = {schema.plain(domain): number for domain, number in imports.items()}

    def __call__(
        self, name: str, op: str, domain: str, key: str, text: str, kind: int
    ) -> bytes | str:
        """Make an attribute.

        Parameters
        ----------
        name, op, domain : str
            Of the node.
        key, text : str
        kind : int
            The type that it has in the file; 0 for a new attribute.

        Returns
        -------
        bytes or str
            An onnx.AttributeProto, or the place of the one that the text refers to.

        Raises
        ------
        UnsupportedError
            The text is not a value of the attribute's type.
        """
        place = _reference_of(text)
        if place is not None:
            return place
        if not kind:
            domain = schema.plain(domain)
            version = self._imports.get(domain, 0) or schema.newest_version(domain, 1 << 30)
            kind = schema.attribute_types(op, domain, version).get(key, 0)
        made = attribute_parser.parse(key, text, kind, f"node {name!r} ({op})")
        message: bytes = made.SerializeToString()
        return message


def _reference_of(text: str) -> str | None:
    """Return the place of the attribute that a text refers to; None if it states the value."""
    if '"same_as"' not in text:
        return None
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        return None
    while isinstance(described, list) and described:
        described = described[0]
    if isinstance(described, dict) and "values" in described:
        described = described["values"]
    place = described.get("same_as") if isinstance(described, dict) else None
    return place.partition("[")[0] if isinstance(place, str) else None
