"""ONNX's operator sets: the versions that belong to a file version, and their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from passlib.files.optional import require

INT_MAX: Final = (1 << 31) - 1
"""The highest version, and number of inputs, that onnx's code holds."""

NAMED_SINCE = 3
"""The first version of the file format that names operator sets; earlier, all are version 1."""


def plain(domain: str) -> str:
    """Return the canonical name of a domain: ONNX's own is ``""``, also called ``ai.onnx``."""
    return "" if domain == "ai.onnx" else domain


def newest() -> int:
    """Return the newest operator set of ONNX that the installed package knows."""
    return int(require("onnx.defs", extra="onnx").onnx_opset_version())


def newest_version(domain: str, ir_version: int) -> int:
    """Return the newest version of an operator set that belongs to a version of the file format.

    A domain that ONNX does not define has version 1.
    """
    helper: Any = require("onnx.helper", extra="onnx")
    domain = domain or "ai.onnx"
    column = {"ai.onnx": 2, "ai.onnx.ml": 3, "ai.onnx.training": 4}.get(domain)
    if column is None:
        return _newest_registered(domain)
    rows = [row for row in helper.VERSION_TABLE if row[1] <= max(ir_version, 3)]
    versions = [int(row[column]) for row in rows if len(row) > column]
    return max(versions, default=1)


@lru_cache(maxsize=64)
def _newest_registered(domain: str) -> int:
    defs: Any = require("onnx.defs", extra="onnx")
    versions = [s.since_version for s in defs.get_all_schemas() if s.domain == domain]
    return max(versions, default=1)


def attribute_type(versions: Mapping[str, int], op: str, domain: str, key: str) -> int:
    """Return the type of an attribute in the schema of its operator; 0 if there is none.

    ``versions``: of the operator sets, by canonical names.
    """
    domain = plain(domain)
    version = versions.get(domain, 0) or newest_version(domain, 1 << 30)
    return _attribute_types(op, domain, version).get(key, 0)


@lru_cache(maxsize=4096)
def _attribute_types(op: str, domain: str, version: int) -> Mapping[str, int]:
    schema = schema_of(op, domain, version)
    if schema is None:
        return {}
    return {name: int(attribute.type.value) for name, attribute in schema.attributes.items()}


def schema_of(op: str, domain: str, version: int) -> Any:
    """Return the schema of an operator; None for an unknown one."""
    defs: Any = require("onnx.defs", extra="onnx")
    try:
        return defs.get_schema(op, min(max(version, 0), INT_MAX), plain(domain))
    except (defs.SchemaError, TypeError):  # protobuf returns names that are no UTF-8 as bytes
        return None
