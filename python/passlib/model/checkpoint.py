"""Checkpoints: the files of a symbol and of its weights at one epoch, with MXNet's names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from passlib import dialects
from passlib.arrays.views import AnyArray
from passlib.dialects.protocol import Checkpoints
from passlib.errors import UnsupportedError
from passlib.model.graph import ModelGraph


def _files() -> Checkpoints:
    for name in dialects.names():
        found = dialects.find(name).checkpoints
        if found is not None:
            return found
    raise UnsupportedError("no installed dialect has checkpoints")


def load_params(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    """Read the weights of an epoch.

    Parameters
    ----------
    prefix : path-like
        Folder and name of the model. The file is ``<prefix>-<epoch>.params``, with four digits
        for the epoch.

    Raises
    ------
    FormatError
        The file is damaged, or contains a name without the prefix ``arg:`` or ``aux:``.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as mx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.model.save_checkpoint(f"{folder}/net", 7, None, {"w": mx.nd.ones((2, 3))}, {})
    ...     arg_params, aux_params = mx.model.load_params(f"{folder}/net", 7)
    >>> arg_params["w"].shape
    (2, 3)
    """
    return _files().load_params(prefix, epoch)


def load_checkpoint(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[Any, dict[str, AnyArray], dict[str, AnyArray]]:
    """Read a symbol and the weights of an epoch.

    The symbol file is ``<prefix>-symbol.json``; otherwise as `load_params`.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as mx
    >>> y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, no_bias=True, name="fc")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.model.save_checkpoint(f"{folder}/net", 1, y, {"fc_weight": mx.nd.ones((2, 3))}, {})
    ...     symbol, arg_params, aux_params = mx.model.load_checkpoint(f"{folder}/net", 1)
    >>> symbol.list_arguments(), arg_params["fc_weight"].shape, aux_params
    (['x', 'fc_weight'], (2, 3), {})
    """
    return _files().load_checkpoint(prefix, epoch)


def save_checkpoint(
    prefix: str | os.PathLike[str],
    epoch: int,
    symbol: ModelGraph | None,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    remove_amp_cast: bool = True,
) -> None:
    """Write a symbol and its weights: both files, or neither.

    Parameters
    ----------
    prefix, epoch
        The files are those that `load_checkpoint` reads.
    symbol : Symbol or None
        None leaves the symbol file unchanged.
    remove_amp_cast : bool
        Omit the casts of automatic mixed precision.

    Raises
    ------
    UnsupportedError
        The file format cannot represent one of the arrays.
    OSError
        A file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> import passlib as mx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     symbol = mx.sym.relu(mx.sym.var("x"))
    ...     mx.model.save_checkpoint(f"{folder}/net", 3, symbol, {"w": mx.nd.ones((2,))}, {})
    ...     print(sorted(os.listdir(folder)))
    ['net-0003.params', 'net-symbol.json']
    """
    _files().save_checkpoint(prefix, epoch, symbol, arg_params, aux_params, remove_amp_cast)
