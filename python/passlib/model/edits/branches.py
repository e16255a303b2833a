"""Models whose nested graphs are simplified, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from passlib.library.pipeline.cost import cost_of, has_nested
from passlib.model.edits.content import content_of, of_content
from passlib.model.edits.nested import changed_nested


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
    def optimize_for(self, name: Any, /, **options: Any) -> Any: ...


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

    def smaller(content: bytes) -> bytes | None:
        before = of_content(model, content)
        after = simplify(before)
        return content_of(after) if cost_of(after) < cost_of(before) else None

    whole = content_of(model)
    content = None if whole is None else changed_nested(whole, smaller)
    return model if content is None else of_content(model, content)
