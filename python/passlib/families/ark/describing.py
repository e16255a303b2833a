"""Descriptions of new tensors and buffers, under Ids that the file does not use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib.arrays import dtypes
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.families.ark.operators import OUTPUTS
from passlib.families.ark.tensors import ITEM_SIZES, Box, Tensor, read_tensor
from passlib.graph.attributes import blame
from passlib.graph.node import Node


class Describer:
    """Describes new tensors in the style of one file.

    Parameters
    ----------
    padding : str
        The key of a tensor's padding in the file's variant.
    keys : sequence of str
        Order of the keys of a tensor's JSON object.
    tensor_id, buffer_id : int
        The first unused Ids.
    """

    def __init__(
        self,
        *,
        padding: str = "PaddedShape",
        keys: Sequence[str] = (
            "Id",
            "DataType",
            "Shape",
            "Strides",
            "Offsets",
            "Padding",
            "Buffer",
        ),
        tensor_id: int = 1 << 40,
        buffer_id: int = 1 << 40,
    ) -> None:
        self._padding = padding
        self._keys = [padding if key in ("Padding", "Pads", "PaddedShape") else key for key in keys]
        self._tensor_id = tensor_id
        self._buffer_id = buffer_id

    def renamed(
        self, like: Tensor, *, box: Box | None = None, padded: tuple[int, ...] | None = None
    ) -> Tensor:
        """Describe the memory of ``like`` under a new Id."""
        return self.describe(
            like.dtype, box or like.box, padded or like.padded, like.source["Buffer"]
        )

    def checked(
        self,
        node: Node,
        dtype: str,
        box: Box,
        buffer: Mapping[str, Any],
        padded: tuple[int, ...] | None = None,
    ) -> Tensor:
        """Describe a new tensor of a node and check it; without padding if none is given.

        Raises `GraphError` if its box is not inside its array; `UnsupportedError` if ARK does not
        have the element type.
        """
        if dtype not in ITEM_SIZES:
            raise UnsupportedError(f"{blame(node)}: ARK has no element type {dtype!r}")
        ones = (1,) * len(box.shape)
        padding = ones if self._padding == "Pads" else padded or box.shape
        tensor = self.describe(dtype, box, padding, buffer)
        try:
            return read_tensor(tensor.source, OUTPUTS)
        except FormatError as error:
            raise GraphError(f"{blame(node)}: {error}") from None

    def describe(
        self, dtype: str, box: Box, padded: tuple[int, ...], buffer: Mapping[str, Any]
    ) -> Tensor:
        """Describe a tensor under a new Id."""
        number = self.next_tensor()
        members = {
            "Id": number,
            "DataType": dtype,
            "Shape": list(box.shape),
            "Strides": list(box.strides),
            "Offsets": list(box.offsets),
            self._padding: list(padded),
            "Buffer": buffer,
        }
        source = {key: members[key] for key in self._keys if key in members}
        return Tensor(number, dtype, box, padded, buffer["Id"], buffer["Rank"], source)

    def next_tensor(self) -> int:
        """Return an unused tensor Id."""
        self._tensor_id += 1
        return self._tensor_id - 1

    def buffer(self) -> dict[str, Any]:
        """Describe a new buffer of the file's rank."""
        self._buffer_id += 1
        return {"Id": self._buffer_id - 1, "Rank": -1, "SendTags": [], "RecvTags": []}


def ark_type(node: Node) -> str:
    """Return the ARK type for the attribute ``__dtype__`` of a new variable, by default FP32."""
    text = node.attrs.get("__dtype__")
    if text is None or text == "-1":
        return "FP32"
    names = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}
    try:
        name = dtypes.from_code(int(text)).name
    except (ValueError, UnsupportedError):
        raise UnsupportedError(
            f"{blame(node)}: attribute '__dtype__' (with value {text!r}) is not an element type"
        ) from None
    found = names.get(name, name.upper())
    if found not in ITEM_SIZES:
        raise UnsupportedError(f"{blame(node)}: ARK has no element type {name}")
    return str(found)
