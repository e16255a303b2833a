"""The files of a model: a network, and a weight file of the same name next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import passlib._core as _core
from passlib.dialects.json_text import parse
from passlib.errors import FormatError
from passlib.families.dlprim.findings import Findings
from passlib.families.dlprim.network import Network
from passlib.families.dlprim.reading.document import Document
from passlib.families.dlprim.reading.network import read_network
from passlib.families.dlprim.reading.versions import build_graph
from passlib.families.dlprim.weight_file import NETWORK_SUFFIX, WEIGHT_SUFFIXES
from passlib.files.regular import check_path, memory_named, read_regular


def network_path(path: Path) -> Path:
    """Return the path of a network that is given by its weight file or without a suffix.

    Raises
    ------
    FormatError
        No file can have this path.
    """
    check_path(path)
    if path.suffix in WEIGHT_SUFFIXES and path.with_suffix(NETWORK_SUFFIX).is_file():
        return path.with_suffix(NETWORK_SUFFIX)
    if not path.exists():
        added = path.with_name(path.name + NETWORK_SUFFIX)
        return added if added.is_file() else path
    return path


def weights_path(path: Path) -> Path | None:
    """Return the weight file of a model: the path itself, or one next to the network, .dlp first.

    None if there is none.
    """
    if path.suffix in WEIGHT_SUFFIXES and path.is_file():
        return path
    network = network_path(path)
    candidates = (network.with_suffix(suffix) for suffix in WEIGHT_SUFFIXES)
    # What is neither a file nor a folder is named when it is opened.
    return next((each for each in candidates if each.exists() and not each.is_dir()), None)


def read_stated(path: Path, findings: Findings) -> Network:
    """Read the network of a file as far as possible.

    Raises
    ------
    FormatError
        The file is not JSON, and the message states line and column; or there is something other
        than a file.
    """
    with memory_named(path):
        return _examined(path, read_regular(path), findings)[1]


def read_graph(path: Path) -> tuple[_core.Graph, Document]:
    """Read the graph of a network file.

    Raises
    ------
    FormatError, GraphError, UnsupportedError
    """
    with memory_named(path):
        text = read_regular(path)
        findings = Findings()
        root, network = _examined(path, text, findings)
        if findings.failed:
            findings.fail(str(path))
        return build_graph(network), Document.of(text, root, network)


def _examined(path: Path, text: bytes, findings: Findings) -> tuple[Any, Network]:
    try:
        root = parse(text, comments=True)
    except FormatError as error:
        raise error.within(path) from error
    return root, read_network(text, root, findings)
