"""The files of an MXNet model, by their names.

A model ``m`` is ``m-symbol.json`` and, for each saved epoch, ``m-0007.params``.

Source: `mx.model.save_checkpoint` and `HybridBlock.export` of MXNet 1.9.1.
"""

from __future__ import annotations

import errno
import operator
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from passlib.files.regular import check_path

SYMBOL_SUFFIX: Final = "-symbol.json"

_PARAMS: Final = re.compile(r"-([0-9]{4,18})\.params")


class ModelFiles(NamedTuple):
    """The two files of a model."""

    symbol: Path
    params: Path | None
    """None where no weights were saved."""
    epoch: int


def symbol_path(prefix: str | os.PathLike[str]) -> Path:
    """Return the path of a model's symbol file.

    Parameters
    ----------
    prefix : path-like
        Folder and name of the model, without any suffix.
    """
    return Path(os.fspath(prefix) + SYMBOL_SUFFIX)


def params_path(prefix: str | os.PathLike[str], epoch: int) -> Path:
    """Return the path of an epoch's weight file; its number has at least four digits."""
    return Path(f"{os.fspath(prefix)}-{_number(epoch):04d}.params")


def target(path: str | os.PathLike[str]) -> tuple[str, Path]:
    """Return the prefix and the symbol file of a model that is given by either.

    ``x`` and ``x-symbol.json`` have the prefix ``x``, and so has ``x.json``, a symbol file too.
    """
    text = os.fspath(path)
    if text.endswith(SYMBOL_SUFFIX):
        return text.removesuffix(SYMBOL_SUFFIX), Path(text)
    if text.endswith(".json"):
        return text.removesuffix(".json"), Path(text)
    return text, symbol_path(text)


def epochs(prefix: str | os.PathLike[str]) -> dict[int, Path]:
    """Find the weight files of a model, by epoch."""
    base = Path(prefix)
    found = {}
    if base.parent.is_dir():
        for path in base.parent.iterdir():
            match = _PARAMS.fullmatch(path.name[len(base.name) :])
            if path.name.startswith(base.name) and match:
                found[int(match[1])] = path
    return dict(sorted(found.items()))


def named_files(path: str | os.PathLike[str]) -> tuple[str, Path, int | None]:
    """Return prefix and symbol file of a model by any name of `find`, and the epoch in the name."""
    text = os.fspath(path)
    named = _PARAMS.search(text)
    if named is None or named.end() < len(text):
        return *target(text), None
    prefix = text[: named.start()]
    return prefix, symbol_path(prefix), int(named[1])


def find(path: str | os.PathLike[str], epoch: int | None = None) -> ModelFiles:
    """Find the files of a model by any of their names.

    Raises `TypeError` or `ValueError` if the epoch is not an integer >= 0; `FormatError`
    if no file can have this path, or there is something other than a file; `FileNotFoundError` if
    there is no symbol file, or no weight file of that epoch; the message lists the epochs that were
    saved.

    Parameters
    ----------
    path : path-like
        The symbol file, a weight file (which selects its epoch), or the prefix of both.
    epoch : int, optional
        By default the newest that was saved.

    Returns
    -------
    ModelFiles
        Without a weight file and with epoch 0 if no weights were saved and ``epoch`` is None.
    """
    epoch = None if epoch is None else _number(epoch)
    prefix, symbol, named = named_files(path)
    epoch = named if epoch is None else epoch
    check_path(symbol)
    if not symbol.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such symbol file", str(symbol))
    saved = epochs(prefix)
    if epoch is None:
        newest = max(saved, default=0)
        return ModelFiles(symbol, saved.get(newest), newest)
    if epoch not in saved:
        have = f"those saved are {', '.join(map(str, saved))}" if saved else "none was saved"
        what = f"there are no weights of epoch {epoch}; {have}"
        raise FileNotFoundError(errno.ENOENT, what, str(params_path(prefix, epoch)))
    return ModelFiles(symbol, saved[epoch], epoch)


def _number(epoch: object) -> int:
    """Return the number of an epoch, which may be of any integral type."""
    problem = (
        f"the epoch is {epoch!r}, but must be an integer >= 0; weights in a file of "
        "another name are loaded with params='...'"
    )
    try:
        number = operator.index(epoch)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(problem) from None
    if number < 0:
        raise ValueError(problem)
    return number
