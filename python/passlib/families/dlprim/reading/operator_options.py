"""Reading the options of an operator as the original parser does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passlib._core import JsonObject
from passlib.families.dlprim import options
from passlib.families.dlprim.findings import Findings
from passlib.families.dlprim.reading.fields import spelled
from passlib.families.dlprim.schema import OPERATORS


class OptionReader:
    """Reads options; those of equal text only once, since networks repeat their layers.

    Parameters
    ----------
    text : bytes
        The text of the network file.
    findings : Findings
        Receives everything that is wrong.
    """

    def __init__(self, text: bytes, findings: Findings) -> None:
        self._text = text
        self._findings = findings
        self._known: dict[tuple[str, bytes], dict[str, str]] = {}

    def read(self, place: str, op: str, json: Any) -> dict[str, str] | None:
        """Read the options of an operator.

        Parameters
        ----------
        place : str
            Of the operator.
        op : str
            A known operator.
        json : object
            The field ``options``.

        Returns
        -------
        dict of str to str or None
            The attributes of the node; None after reporting an error.
        """
        if not isinstance(json, JsonObject):
            return self._read(place, op, json)
        key = op, self._text[json.start : json.end]
        known = self._known.get(key)
        if known is not None:
            return known
        count = len(self._findings.problems)
        attributes = self._read(place, op, json)
        # Findings are repeated for each operator, so only clean options are kept.
        if attributes is not None and len(self._findings.problems) == count:
            self._known[key] = attributes
        return attributes

    def _read(self, place: str, op: str, json: Any) -> dict[str, str] | None:
        place = f"{place}.options"
        if not isinstance(json, dict):
            if json is not None:
                self._findings.warn(place, "is not an object: ignored")
            json = {}
        known = OPERATORS[op].options
        attributes: dict[str, str] = {}
        failed = False
        for key, value in json.items():
            if key not in known:
                self._findings.warn(f"{place}.{key}", f"{op} has no such option: ignored")
            if options.is_hidden(key):
                continue
            try:
                text = options.attribute(key, known.get(key), value)
            except options.OptionError as error:
                self._findings.malformed(f"{place}.{key}", str(error))
                failed = True
                continue
            if text is not None:
                attributes[key] = text
            else:
                default = spelled(known[key].default)
                message = f"has the wrong type: ignored, the default is {default}"
                self._findings.warn(f"{place}.{key}", message)
        if op == "Reduction" and "dims" in json:
            failed |= self._reduction(place, json, attributes)
        missing = [n for n, o in known.items() if o.required and n not in json]
        for key in missing:
            self._findings.malformed(f"{place}.{key}", f"is required by {op}")
        return None if failed or missing else attributes

    def _reduction(self, place: str, json: Mapping[str, Any], attributes: dict[str, str]) -> bool:
        """Report axes that Reduction cannot have; return whether there are any."""
        if "start_axis" in json:
            self._findings.malformed(place, "dims and start_axis exclude each other")
            return True
        if attributes.get("dims", "[]") == "[]":
            self._findings.malformed(f"{place}.dims", "must be a list of at least one axis")
            return True
        return False
