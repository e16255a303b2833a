"""Whether ONNX accepts each kind of node that passes made, without a check of the whole model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from passlib.dialects.onnx.soundness.acceptance import is_accepted, lacks_type
from passlib.files.optional import require

MOST_KINDS: Final = 100
"""The number of kinds whose checks take as long as that of a model of some thousand nodes."""

_SMALL: Final = 1 << 14
"""Kinds of fewer bytes are remembered."""


def are_accepted(kinds: Iterable[bytes], outputs: Iterable[bytes]) -> bool:
    """Whether ONNX's checker accepts models of one node each, and the outputs are described.

    Parameters
    ----------
    kinds : iterable of bytes
        Each an onnx.ModelProto.
    outputs : iterable of bytes
        Those of the model that the file does not describe so, each an onnx.ValueInfoProto.
    """
    onnx: Any = require("onnx", extra="onnx")
    if any(lacks_type(onnx.ValueInfoProto.FromString(output)) for output in outputs):
        return False
    return all(_checked(kind) if len(kind) < _SMALL else _check(kind) for kind in kinds)


def _check(kind: bytes) -> bool:
    return is_accepted(require("onnx", extra="onnx").ModelProto.FromString(kind))


_checked = lru_cache(maxsize=1024)(_check)
