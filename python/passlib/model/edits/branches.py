"""Models whose nested graphs are simplified, too."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from passlib import dialects
from passlib.library.pipeline.simplification import cost_of, has_nested
from passlib.model.edits.nested import changed_nested

__all__ = ["with_nested"]


class _Model(Protocol):
    """What is needed of a model."""

    @property
    def symbol(self) -> Any: ...
    @property
    def args(self) -> Any: ...
    @property
    def aux(self) -> Any: ...
    @property
    def dialect(self) -> str: ...
    @classmethod
    def of_data(cls, data: Any, dialect: str) -> Any: ...
    def optimize_for(self, name: Any, /, **options: Any) -> Any: ...
    @property
    def save(self) -> Any: ...


M = TypeVar("M", bound=_Model)


def with_nested(model: M, simplify: Callable[[M], M]) -> M:
    """Return an ONNX model with its nested graphs simplified; the model itself if none changes.

    Parameters
    ----------
    model : Model
    simplify : callable
        Simplifies a model that has the operators of one nested graph.
    """
    if not has_nested(model.symbol):
        return model
    family = dialects.find(model.dialect)

    def read(content: bytes) -> M:
        made: M = type(model).of_data(family.load_bytes(content), family.name)
        return made

    def smaller(content: bytes) -> bytes | None:
        before = read(content)
        after = simplify(before)
        return _content(after) if cost_of(after) < cost_of(before) else None

    whole = _content(model)
    content = None if whole is None else changed_nested(whole, smaller)
    return model if content is None else read(content)


def _content(model: _Model) -> bytes | None:
    """Return a model as the bytes of its file; None if one file cannot hold it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        alone = len(model.save(path, durable=False)) == 1
        return path.read_bytes() if alone else None
