"""Writing of MXNet models: the symbol file and the weight file, both or neither."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from passlib.arrays.storage import Array
from passlib.dialects.weights.files import write_parts
from passlib.files.atomic import replacing

__all__ = ["write_model"]


def write_model(
    symbol_path: Path,
    text: str,
    params_path: Path | None,
    arrays: Mapping[str, Array],
    *,
    archive: bool = False,
) -> None:
    """Write the two files of a model; a failure leaves both unchanged.

    Parameters
    ----------
    symbol_path : Path
    text : str
    params_path : Path or None
        None writes no weights.
    arrays : mapping of str to array
        Names with ``arg:`` and ``aux:``.
    archive : bool
        Write the weights as the .npz of MXNet 2.0.
    """
    with ExitStack() as stack:
        # Both are complete before the first is renamed, at the end of the block.
        temporary = stack.enter_context(replacing(symbol_path))
        temporary.write_text(text, "utf-8", newline="")
        if params_path is not None:
            write_parts(stack.enter_context(replacing(params_path)), arrays, archive=archive)
