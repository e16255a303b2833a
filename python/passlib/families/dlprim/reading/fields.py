"""Reading the fields of JSON objects as the original parser does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passlib.dialects.json_text import JsonNumber
from passlib.families.dlprim.findings import Findings

_TEXT = frozenset((str,))


class Fields:
    """Reads fields, and reports those that are missing, unknown or of the wrong type.

    Parameters
    ----------
    findings : Findings
        Receives the reports.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def required(self, place: str, json: Mapping[str, Any], field: str) -> str | None:
        """Return a required string; None after reporting an error."""
        value = json.get(field)
        if isinstance(value, str):
            return value
        self._findings.malformed(f"{place}.{field}", "is required, and must be a string")
        return None

    def optional(self, place: str, json: Mapping[str, Any], field: str, default: str | bool) -> Any:
        """Return a string or Boolean; the default if it is absent or of another type."""
        value = json.get(field, default)
        if isinstance(value, type(default)):
            return value
        wanted = "true or false" if isinstance(default, bool) else "a string"
        message = f"must be {wanted}: ignored, the default is {spelled(default)}"
        self._findings.warn(f"{place}.{field}", message)
        return default

    def names(self, place: str, json: Mapping[str, Any], field: str) -> tuple[str, ...]:
        """Return a list of strings; an empty one if it is absent or of another type."""
        if field not in json:
            return ()
        value = json[field]
        if isinstance(value, list) and _TEXT.issuperset(map(type, value)):
            return tuple(value)
        message = "must be a list of strings: ignored, the default is an empty list"
        self._findings.warn(f"{place}.{field}", message)
        return ()

    def report_unknown(self, place: str, json: Mapping[str, Any], known: frozenset[str]) -> None:
        """Warn of fields that the format does not have."""
        if json.keys() <= known:
            return
        for key in json:
            if key not in known:
                where = f"{place}.{key}" if place else key
                self._findings.warn(where, "unknown field: ignored")


def spelled(value: Any) -> str:
    """Spell a JSON value for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, JsonNumber):
        return value.text
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
