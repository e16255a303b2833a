"""The files that a model of MXNet consists of: their names, and the names in them.

A model ``m`` is ``m-symbol.json`` and, for each epoch that was saved, ``m-0007.params``. In the
latter each name says what it is: ``arg:fc_weight`` or ``aux:bn_moving_mean``.

Source: `mx.model.save_checkpoint` and `HybridBlock.export` of MXNet 1.9.1.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from passlib.dialects.mxnet.npz import ZIP_MAGIC
from passlib.errors import FormatError

__all__ = [
    "ARG",
    "AUX",
    "SYMBOL_SUFFIX",
    "ModelFiles",
    "epochs",
    "find",
    "is_archive",
    "join_names",
    "params_path",
    "split_names",
    "symbol_path",
]

ARG: Final = "arg:"
AUX: Final = "aux:"
SYMBOL_SUFFIX: Final = "-symbol.json"

_PARAMS: Final = re.compile(r"-(\d{4,})\.params")
_T = TypeVar("_T")


class ModelFiles(NamedTuple):
    """Where a model's two halves are."""

    symbol: Path
    params: Path | None
    """None where no weights were saved."""
    epoch: int


def symbol_path(prefix: str | os.PathLike[str]) -> Path:
    """Name the symbol file of a model.

    Parameters
    ----------
    prefix : path-like
        Folder and name of the model, without any suffix.
    """
    return Path(os.fspath(prefix) + SYMBOL_SUFFIX)


def params_path(prefix: str | os.PathLike[str], epoch: int) -> Path:
    """Name the weight file of an epoch: four digits at least."""
    return Path(f"{os.fspath(prefix)}-{epoch:04d}.params")


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


def find(path: str | os.PathLike[str], epoch: int | None = None) -> ModelFiles:
    """Find the files of a model by any of their names.

    Parameters
    ----------
    path : path-like
        The symbol file, a weight file (whose epoch counts then), or the prefix of both.
    epoch : int, optional
        By default the newest that was saved.

    Returns
    -------
    ModelFiles
        Without a weight file, and of epoch 0, where there is none and no epoch was asked for.

    Raises
    ------
    FileNotFoundError
        There is no symbol file, or none of that epoch; the message says what there is.
    """
    text = os.fspath(path)
    named = _PARAMS.search(text)
    if text.endswith(SYMBOL_SUFFIX):
        prefix, symbol = text.removesuffix(SYMBOL_SUFFIX), Path(text)
    elif text.endswith(".json"):
        prefix, symbol = text.removesuffix(".json"), Path(text)
    elif named is not None and named.end() == len(text):
        prefix = text[: named.start()]
        symbol = symbol_path(prefix)
        epoch = int(named[1]) if epoch is None else epoch
    else:
        prefix, symbol = text, symbol_path(text)
    if not symbol.is_file():
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


def split_names(
    content: Mapping[str, _T], where: str, auxiliary: Collection[str] | None = None
) -> tuple[dict[str, _T], dict[str, _T]]:
    """Sort the content of a weight file into arguments and auxiliary states.

    Parameters
    ----------
    content : mapping
        By name, with ``arg:`` and ``aux:``.
    where : str
        The file, for messages.
    auxiliary : collection of str, optional
        The symbol's auxiliary states: tells what a name without prefix is.

    Returns
    -------
    args, aux : dict
        Without the prefixes. As in MXNet, what has another prefix (``foo:x``) is left out.

    Raises
    ------
    FormatError
        A name without prefix, and ``auxiliary`` was not given; or one name twice.
    """
    args: dict[str, _T] = {}
    aux: dict[str, _T] = {}
    for key, value in content.items():
        if key.startswith((ARG, AUX)):
            kind, name = key[: len(ARG)], key[len(ARG) :]
        elif ":" in key and auxiliary is None:
            continue
        elif auxiliary is None:
            raise FormatError(
                f"{where}: the name {key!r} begins with neither {ARG!r} nor {AUX!r}, so it does "
                "not say whether it is an argument or an auxiliary state; read the file with "
                "passlib.nd.load, or the whole model with passlib.load, which asks the symbol"
            )
        else:
            kind, name = (AUX if key in auxiliary else ARG), key
        target = args if kind == ARG else aux
        if name in target:
            raise FormatError(f"{where}: {name!r} is in the file twice, with a prefix and without")
        target[name] = value
    return args, aux


def join_names(args: Mapping[str, _T], aux: Mapping[str, _T]) -> dict[str, _T]:
    """Put the prefixes back, arguments first."""
    return {
        **{ARG + name: value for name, value in args.items()},
        **{AUX + name: value for name, value in aux.items()},
    }


def is_archive(path: Path) -> bool:
    """Whether a weight file is an .npz archive, as MXNet 2.0 writes, whatever its name."""
    with path.open("rb") as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
