"""The files of a model: a network and the weights beside it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from passlib.dialects.dlprim.findings import Findings
from passlib.dialects.dlprim.reader import read_network
from passlib.dialects.dlprim.weights import SUFFIXES, Weights, beside, write_weights
from passlib.dialects.dlprim.writer import Document
from passlib.dialects.json_text import parse
from passlib.errors import FormatError
from passlib.files.atomic import replacing

__all__ = ["SUFFIX", "looks_like_network", "network_path", "parse_network", "weights_of", "write"]

SUFFIX = ".json"

_OPERATORS, _TENSORS = "operators", ("inputs", "outputs")
_HEAD = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_READ_WHOLE = 4 << 20
"""Files up to this size are parsed to recognise them; larger ones are searched for the keys."""


def network_path(path: Path) -> Path:
    """Find the network of a model that may be named by its weights, or without a suffix."""
    if path.suffix in SUFFIXES and path.with_suffix(SUFFIX).is_file():
        return path.with_suffix(SUFFIX)
    if not path.exists():
        added = path.with_name(path.name + SUFFIX)
        return added if added.is_file() else path
    return path


def weights_of(path: Path) -> Path | None:
    """Find the weights of a model: the path itself, or a file of the same name beside it."""
    return path if path.suffix in SUFFIXES and path.is_file() else beside(network_path(path))


def looks_like_network(path: Path) -> bool:
    """Whether a file has the list of operators of a network, and tensors. Does not raise.

    The rest may be missing, and the text may be no JSON: then it is a network to be reported on.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if not head.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith((b"{", b"/")):
                return False
            text = head + file.read()
    except OSError:
        return False
    names = (f'"{name}"'.encode() for name in _TENSORS)
    if f'"{_OPERATORS}"'.encode() not in text or not any(name in text for name in names):
        return False
    if len(text) <= _READ_WHOLE:
        try:
            root = parse(text, comments=True)
        except FormatError:
            pass
        else:
            listed = isinstance(root, dict) and isinstance(root.get(_OPERATORS), list)
            return listed and any(name in root for name in _TENSORS)
    return b'"nodes"' not in text


def parse_network(path: Path, findings: Findings) -> Document:
    """Read a network file as far as it can be read.

    Raises
    ------
    FormatError
        It is no JSON: the message has line and column.
    """
    text = path.read_bytes()
    try:
        root = parse(text, comments=True)
    except FormatError as error:
        raise FormatError(
            f"{path}: {error}", offset=error.offset, line=error.line, column=error.column
        ) from error
    return Document(text, root, read_network(text, root, findings))


def write(path: Path, network: bytes, arrays: dict[str, Any], template: Weights) -> tuple[str, ...]:
    """Write network and weights, both or neither; weights only if there are any."""
    name = path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)
    target = name.with_suffix(template.suffix)
    with ExitStack() as stack:
        stack.enter_context(replacing(name)).write_bytes(network)
        if arrays:
            write_weights(stack.enter_context(replacing(target)), arrays, template)
    return (os.fspath(name), os.fspath(target)) if arrays else (os.fspath(name),)
