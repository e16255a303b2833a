"""Models as the bytes of their files, and back."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypeVar

from passlib import dialects

M = TypeVar("M")


def content_of(model: Any) -> bytes | None:
    """Return an ONNX model as the bytes of its file; None if one file cannot hold it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        alone = len(model.save(path, durable=False)) == 1
        return path.read_bytes() if alone else None


def of_content(model: M, content: bytes) -> M:
    """Return the model of the bytes of a file, of the class and the dialect of another one."""
    like: Any = model
    family = dialects.find(like.dialect)
    made: M = type(like).of_data(family.load_bytes(content), family.name)
    return made
