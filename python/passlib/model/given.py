"""Models that are given by their content instead of a path."""

from __future__ import annotations

import os
from typing import Any

from passlib.errors import FormatError


def content_of(given: Any) -> bytes | None:
    """Return the bytes of a model that is given by its content; None for a path.

    Raises
    ------
    TypeError
        It is neither.
    FormatError
        A message is too large to be written.
    """
    if isinstance(given, (str, os.PathLike)):
        return None
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    # The package onnx need not be installed to recognise its messages.
    if type(given).__name__ == "ModelProto" and hasattr(given, "SerializeToString"):
        try:
            return bytes(given.SerializeToString())
        except Exception as error:  # protobuf's own kinds differ between its versions
            raise FormatError(
                f"this ModelProto cannot be written as a message, whose limit is 2 GiB: {error}; "
                "save it with external data, and load the file"
            ) from error
    raise TypeError(
        f"a model is read from a path, from bytes or from an onnx.ModelProto, not from "
        f"{type(given).__name__}"
    )
