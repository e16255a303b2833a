"""Checkpoints: the files of a symbol and of its weights at one epoch, with MXNet's names."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from passlib.arrays.views import AnyArray, to_parts
from passlib.dialects.weights.files import write_parts
from passlib.dialects.weights.names import join_names, split_names
from passlib.files.saving import written_from
from passlib.files.stamps import read_together
from passlib.mxnet import files
from passlib.mxnet.nd.weights import load_weights
from passlib.mxnet.symbol import files as symbol_files
from passlib.mxnet.writing import write_model

if TYPE_CHECKING:
    from passlib.mxnet.symbol.symbol import Symbol

logger = logging.getLogger(__name__)


def load_params(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    """Read the weights of an epoch.

    Parameters
    ----------
    prefix : path-like
        Folder and name of the model. The file is ``<prefix>-<epoch>.params``, with four digits
        for the epoch.
    epoch : int

    Returns
    -------
    arg_params, aux_params : dict of str to array

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
    return read_together(files.symbol_path(prefix), lambda: _load_params(prefix, epoch))


def _load_params(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    path = files.params_path(prefix, epoch)
    content = load_weights(path)
    if not content:
        logger.warning("the parameter file %s is empty", path)
    return split_names(content, str(path))


def load_checkpoint(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[Symbol, dict[str, AnyArray], dict[str, AnyArray]]:
    """Read a symbol and the weights of an epoch.

    The symbol file is ``<prefix>-symbol.json``; otherwise as `load_params`.

    Returns
    -------
    symbol : Symbol
    arg_params, aux_params : dict of str to array

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
    path = files.symbol_path(prefix)
    return read_together(path, lambda: (symbol_files.load(path), *_load_params(prefix, epoch)))


def save_checkpoint(
    prefix: str | os.PathLike[str],
    epoch: int,
    symbol: Symbol | None,
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
    arg_params, aux_params : mapping of str to array
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
    target = files.params_path(prefix, epoch)
    # As in MXNet, checkpoints do not record the devices of arrays.
    content = {n: to_parts(a) for n, a in join_names(arg_params, aux_params).items()}
    with written_from(content.values()):
        if symbol is None:
            write_parts(target, content, archive=False)
        else:
            text = symbol.tojson(remove_amp_cast)
            write_model(files.symbol_path(prefix), text, target, content)
    logger.info("saved checkpoint to %s", target)
