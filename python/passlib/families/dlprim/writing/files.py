"""Writing the files of a model, both or neither."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from passlib.families.dlprim.network import NETWORK_SUFFIX, WEIGHT_SUFFIXES, WeightFile
from passlib.families.dlprim.writing import dlp, h5
from passlib.files.regular import Save


def write_files(
    path: Path, network: bytes, arrays: Mapping[str, Any], weights: WeightFile
) -> tuple[str, ...]:
    """Write network and weights, both or neither; weights only if there are any.

    Raises `UnsupportedError` if the format of the weight file cannot hold an array.

    Returns
    -------
    tuple of str
        The files that were written.
    """
    name = path if path.suffix == NETWORK_SUFFIX else path.with_name(path.name + NETWORK_SUFFIX)
    target = name.with_suffix(weights.suffix)
    with Save(name, bound=True) as save:
        save.replace(name).write_bytes(network)
        if arrays:
            _write_weights(save.replace(target), arrays, weights)
        for suffix in WEIGHT_SUFFIXES:
            # The replaced network had these weights, and reading would take them.
            if suffix != target.suffix or not arrays:
                save.remove(name.with_suffix(suffix))
    return (os.fspath(name), os.fspath(target)) if arrays else (os.fspath(name),)


def _write_weights(path: Path, arrays: Mapping[str, Any], weights: WeightFile) -> None:
    """Write a weight file, parameters in the order of the one that was read."""
    known = [name for name in weights.order if name in arrays]
    ordered = {name: arrays[name] for name in known}
    ordered.update({name: arrays[name] for name in arrays if name not in ordered})
    if weights.kind == "dlp":
        dlp.write(path, ordered, weights.header)
    else:
        h5.write(path, ordered)
