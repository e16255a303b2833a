"""Models whose open sizes of inputs are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from passlib.dialects.onnx.lowering.types import fix_sizes
from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require
from passlib.lowering import TypeSpec
from passlib.model.edits.content import content_of, of_content

M = TypeVar("M")


def with_sizes(model: M, shapes: Mapping[str, Sequence[int | None]]) -> M:
    """Return an ONNX model whose inputs state given sizes.

    Parameters
    ----------
    model : Model
    shapes : mapping of str to shape
        By input; ``None`` leaves a size as it is.

    Raises
    ------
    GraphError
        A name is no input, or a shape contradicts the one that the model states.
    UnsupportedError
        The model is of another dialect, or one file cannot hold it.
    """
    like: Any = model
    if like.dialect != "onnx":
        raise UnsupportedError(
            f"sizes of inputs are fixed in ONNX models only, and this one is of {like.dialect}; "
            f"Model.to_onnx(shapes=) writes it as ONNX with these sizes"
        )
    content = content_of(model)
    if content is None:
        raise UnsupportedError("a model with data in several files cannot get fixed sizes")
    onnx: Any = require("onnx", extra="onnx")
    proto = onnx.ModelProto.FromString(content)
    inputs = {value.name: value for value in proto.graph.input}
    for name, shape in shapes.items():
        value = inputs.get(name)
        if value is None or value.type.WhichOneof("value") != "tensor_type":
            raise GraphError(f"the model has no tensor input {name!r}; its inputs are {[*inputs]}")
        spec = TypeSpec(None, tuple(None if size is None else int(size) for size in shape))
        _state_rank(value.type.tensor_type, len(shape))
        fix_sizes(value, {name: spec})
    return of_content(model, proto.SerializeToString())


def _state_rank(tensor: Any, rank: int) -> None:
    """Make a shape of open sizes for an input that states none."""
    if not tensor.HasField("shape"):
        tensor.shape.SetInParent()
        for _ in range(rank):
            tensor.shape.dim.add()
