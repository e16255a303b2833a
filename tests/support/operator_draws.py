"""Random parts of nodes of one version of an operator of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, defs, helper

Maker = Callable[["Draw"], "Node"]

MAKERS: dict[str, Maker] = {}
"""The makers of random nodes, by operator."""


def maker_of(*names: str) -> Callable[[Maker], Maker]:
    """Register what makes nodes of operators."""

    def register(maker: Maker) -> Maker:
        MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return register


F, D, H = np.float32, np.float64, np.float16
L, J, B = np.int64, np.int32, np.bool_


class Node(NamedTuple):
    """A node: its attributes, and its inputs, None for omitted ones."""

    inputs: list[Any]
    attributes: dict[str, Any]
    outputs: int = 1


class Draw:
    """Random parts of a node of one version of an operator."""

    def __init__(self, op: str, opset: int, rng: np.random.Generator) -> None:
        self.op = op
        self.opset = opset
        self.rng = rng
        self.schema = defs.get_schema(op, opset)

    def has(self, attribute: str) -> bool:
        return attribute in self.schema.attributes

    def some(self, **attributes: Any) -> dict[str, Any]:
        """Return a random choice of those attributes that the operator has."""
        kept = {k: v for k, v in attributes.items() if self.has(k) and self.chance()}
        return {k: v() if callable(v) else v for k, v in kept.items()}

    def all(self, **attributes: Any) -> dict[str, Any]:
        return {key: value for key, value in attributes.items() if self.has(key)}

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, *items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def real(self, *shape: int, dtype: Any = F, low: float = -3, high: float = 3) -> Any:
        return self.rng.uniform(low, high, shape).astype(dtype)

    def whole(self, *shape: int, low: int = 0, high: int = 5, dtype: Any = L) -> Any:
        return self.rng.integers(low, high, shape).astype(dtype)

    def shape(self, least: int = 1, most: int = 4) -> tuple[int, ...]:
        return tuple(
            int(n) for n in self.rng.integers(1, 5, int(self.rng.integers(least, most + 1)))
        )

    def dtype(self, *wished: Any, number: int = 0) -> Any:
        """Return one of some types that an input may have."""
        formal = self.schema.inputs[min(number, len(self.schema.inputs) - 1)]
        names = {np.dtype(each): _type_name(each) for each in wished}
        allowed = [each for each, name in names.items() if name in formal.types]
        return self.pick(*allowed) if allowed else np.dtype(F)

    def array(self, *shape: int, dtype: Any, low: int = -3, high: int = 4) -> Any:
        dtype = np.dtype(dtype)
        if dtype == B:
            return self.whole(*shape, low=0, high=2).astype(B)
        if dtype.kind == "f":
            return self.real(*shape, dtype=dtype, low=low, high=high)
        return self.whole(
            *shape, low=max(low, 0) if dtype.kind == "u" else low, high=high, dtype=dtype
        )

    def axes(self, rank: int, least: int = 1) -> list[int]:
        count = int(self.rng.integers(least, rank + 1))
        found = self.rng.permutation(rank)[:count].tolist()
        signed = self.opset >= 11
        return [axis - rank if signed and self.chance(0.3) else axis for axis in sorted(found)]

    def axis(self, rank: int) -> int:
        return int(self.rng.integers(-rank if self.opset >= 11 else 0, rank))


def _type_name(dtype: Any) -> str:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = {TensorProto.FLOAT: "float", TensorProto.DOUBLE: "double"}
    return f"tensor({names.get(code, TensorProto.DataType.Name(code).lower())})"


NUMBERS = (F, F, F, D, H, L, J, np.int8, np.uint8, np.int16)
