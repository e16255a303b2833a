"""Types that new variables state in their attributes."""

from __future__ import annotations

import re

from passlib.arrays import dtypes
from passlib.dialects.onnx.tensors import code_of
from passlib.errors import UnsupportedError

__all__ = ["stated_type"]


def stated_type(name: str, dtype: str | None, shape: str | None) -> tuple[int, list[int] | None]:
    """Read the attributes ``__dtype__`` and ``__shape__`` of a variable without values.

    Returns
    -------
    code : int
        ONNX's number of the element type.
    sizes : list of int or None
        -1 for unknown sizes; None for an unknown shape.

    Raises
    ------
    UnsupportedError
        There is no type, or a text is neither.
    """
    if dtype is None:
        raise UnsupportedError(
            f"variable {name!r} is new and has no values; allocate them with alloc_arg, or "
            "state the type of a new model input as __dtype__ and __shape__"
        )
    if not re.fullmatch(r"\d{1,3}", dtype):
        raise UnsupportedError(f"variable {name!r}: __dtype__ {dtype!r} is not a number")
    code = code_of(dtypes.from_code(int(dtype)), repr(name))
    if shape is None:
        return code, None
    if not re.fullmatch(r"[\[(][-\d, ]*[\])]", shape):
        raise UnsupportedError(f"variable {name!r}: __shape__ {shape!r} is not a shape")
    sizes = map(int, re.findall(r"-?\d+", shape))
    return code, [size if size > 0 else -1 for size in sizes]
