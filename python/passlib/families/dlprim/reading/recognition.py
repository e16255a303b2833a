"""Recognition of network files by their content."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from passlib.dialects.json_text import parse
from passlib.errors import FormatError
from passlib.files.regular import open_regular

_OPERATORS, _TENSORS = "operators", ("inputs", "outputs")
_HEAD: Final = 4096
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_LARGEST_PARSED: Final = 4 << 20
"""Files up to this size are parsed; in larger ones the keys are only searched for."""


def looks_like_network(path: Path) -> bool:
    """Whether a file has a network's list of operators, and tensors. Never raises.

    The rest may be missing and the JSON may be damaged, so that the file can be reported on as a
    network.
    """
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
            if not head.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith((b"{", b"/")):
                return False
            text = head + file.read()
    except (FormatError, MemoryError, OSError):
        return False
    names = (f'"{name}"'.encode() for name in _TENSORS)
    if f'"{_OPERATORS}"'.encode() not in text or not any(name in text for name in names):
        return False
    if len(text) <= _LARGEST_PARSED:
        try:
            root = parse(text, comments=True)
        except FormatError:
            pass
        else:
            has_operators = isinstance(root, dict) and isinstance(root.get(_OPERATORS), list)
            return has_operators and any(name in root for name in _TENSORS)
    return b'"nodes"' not in text
