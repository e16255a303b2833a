"""Shapes and element types in the form of the ABI, and the answers of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from passlib.arrays import dtypes
from passlib.errors import UnsupportedError

if TYPE_CHECKING:
    from passlib.lowering.types import Shape

UNKNOWN_SIZE: Final = 0xFFFFFFFF
"""MXNet 1.9.1's form of an unknown size, in both directions."""

_UNKNOWN_TYPE: Final = -1


def extents(shape: Shape | None, user: str) -> list[int]:
    """Return a shape in the ABI's form; a scalar and an unknown rank have no sizes.

    Raises
    ------
    UnsupportedError
        A size does not fit into 32 bits. ``user`` begins the message.
    """
    for size in shape or ():
        if size is not None and size >= UNKNOWN_SIZE:
            raise UnsupportedError(f"{user}: the ABI has no size beyond 32 bits, such as {size}")
    return [UNKNOWN_SIZE if size is None else size for size in shape or ()]


def merge_shapes(
    known: Sequence[Shape | None], inputs: Sequence[list[int]], outputs: Sequence[list[int]]
) -> tuple[list[Shape | None], list[Shape | None]]:
    """Join known types of the inputs with an operator's answer.

    Raises
    ------
    ValueError
        The answer contradicts what is known.
    """
    merged = [
        _merge(position, shape, answer)
        for position, (shape, answer) in enumerate(zip(known, inputs, strict=True))
    ]
    complete = all(shape is not None and None not in shape for shape in merged)
    scalar: Shape | None = () if complete else None
    return merged, [_shape(answer) if answer else scalar for answer in outputs]


def _shape(answer: list[int]) -> Shape:
    return tuple(None if size == UNKNOWN_SIZE else size for size in answer)


def _merge(position: int, known: Shape | None, answer: list[int]) -> Shape | None:
    if not answer:
        return known
    found = _shape(answer)
    if known is None:
        return found
    if len(found) != len(known) or any(
        None not in (old, new) and old != new for old, new in zip(known, found, strict=True)
    ):
        raise ValueError(
            f"infers the shape {_spell(found)} for its input {position}, which has the shape "
            f"{_spell(known)}"
        )
    return tuple(new if old is None else old for old, new in zip(known, found, strict=True))


def _spell(shape: Shape) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def type_codes(types: Sequence[np.dtype[Any] | None]) -> list[int]:
    """Return element types in the ABI's form.

    Raises
    ------
    UnsupportedError
        The ABI has no such type.
    """
    return [_UNKNOWN_TYPE if dtype is None else dtypes.code(dtype) for dtype in types]


def merge_dtypes(
    known: Sequence[np.dtype[Any] | None], inputs: Sequence[int], outputs: Sequence[int]
) -> tuple[list[np.dtype[Any] | None], list[np.dtype[Any] | None]]:
    """Join known types of the inputs with an operator's answer.

    Raises
    ------
    ValueError
        The answer contradicts what is known, or names a type that does not exist.
    """
    merged = []
    for position, (old, number) in enumerate(zip(known, inputs, strict=True)):
        new = _dtype(number, f"input {position}")
        if old is not None and new is not None and dtypes.code(old) != number:
            raise ValueError(f"infers {new} for its input {position}, which is {old}")
        merged.append(new if old is None else old)
    return merged, [_dtype(number, f"output {i}") for i, number in enumerate(outputs)]


def _dtype(number: int, what: str) -> np.dtype[Any] | None:
    if number == _UNKNOWN_TYPE:
        return None
    if number not in dtypes.NAMES:
        raise ValueError(f"infers the type code {number} for its {what}; the codes are 0 to 12")
    return dtypes.from_code(number)
