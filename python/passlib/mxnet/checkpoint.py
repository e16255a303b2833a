"""Checkpoints: the files of a symbol and of its weights at one epoch, see `passlib.model`."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from passlib.arrays.views import AnyArray, from_parts, to_parts
from passlib.dialects.weights.files import load_parts, write_parts
from passlib.dialects.weights.params import join_names, split_names
from passlib.files.regular import read_together, written_from
from passlib.mxnet import files
from passlib.mxnet.symbol.namespaces import load
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.writing import write_model

logger = logging.getLogger(__name__)


def load_params(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    """Read the weights of an epoch."""
    return read_together(files.symbol_path(prefix), lambda: _load_params(prefix, epoch))


def _load_params(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    path = files.params_path(prefix, epoch)
    content = {name: from_parts(parts) for name, parts in load_parts(path).items()}
    if not content:
        logger.warning("the parameter file %s is empty", path)
    return split_names(content, str(path))


def load_checkpoint(
    prefix: str | os.PathLike[str], epoch: int
) -> tuple[Symbol, dict[str, AnyArray], dict[str, AnyArray]]:
    """Read a symbol and the weights of an epoch."""
    path = files.symbol_path(prefix)
    return read_together(path, lambda: (load(path), *_load_params(prefix, epoch)))


def save_checkpoint(
    prefix: str | os.PathLike[str],
    epoch: int,
    symbol: Symbol | None,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    remove_amp_cast: bool,
) -> None:
    """Write a symbol and its weights: both files, or neither."""
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
