"""The files of a model: a network, and a weight file of the same name next to it."""

from __future__ import annotations

import copyreg
from pathlib import Path

from passlib.dialects.dlprim.findings import Findings
from passlib.dialects.dlprim.reading.network import read_network
from passlib.dialects.dlprim.template import NETWORK_SUFFIX, WEIGHT_SUFFIXES, Document
from passlib.dialects.json_text import parse
from passlib.errors import FormatError
from passlib.files.regular import check_path, memory_named, read_regular

__all__ = ["network_path", "read_document", "weights_path"]


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


def read_document(path: Path, findings: Findings) -> Document:
    """Read a network file as far as possible.

    Raises
    ------
    FormatError
        The file is not JSON, and the message states line and column; or there is something other
        than a file.
    """
    with memory_named(path):
        text = read_regular(path)
        try:
            root = parse(text, comments=True)
        except FormatError as error:
            raise error.within(path) from error
        return Document(text, root, read_network(text, root, findings))


def _reread(text: bytes) -> Document:
    root = parse(text, comments=True)
    return Document(text, root, read_network(text, root, Findings()))


# Members refer to their place in the text, which only the parser can set: pickle the text alone.
copyreg.pickle(Document, lambda document: (_reread, (document.text,)))
