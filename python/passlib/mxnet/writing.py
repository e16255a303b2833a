"""Writing of MXNet models: the symbol file and the weight file, both or neither."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from passlib.arrays.sparse_array import Array
from passlib.dialects.weights.files import write_parts
from passlib.files.regular import Save


def write_model(
    symbol_path: Path,
    text: str,
    params_path: Path,
    arrays: Mapping[str, Array] | None,
    *,
    archive: bool = False,
) -> None:
    """Write the two files of a model; a failure leaves both unchanged.

    Parameters
    ----------
    arrays : mapping of str to array or None
        Names with ``arg:`` and ``aux:``. None writes no weight file, and deletes one that passlib
        wrote for the graph that is replaced.
    archive : bool
        Write the weights as the .npz of MXNet 2.0.
    """
    with Save(symbol_path, bound=True) as save:
        save.replace(symbol_path).write_text(text, "utf-8", newline="")
        if arrays is None:
            save.remove(params_path)
        else:
            write_parts(save.replace(params_path), arrays, archive=archive)
