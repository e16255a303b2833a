"""Types that new variables state in their attributes, and those that graphs state for values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from passlib.arrays import dtypes
from passlib.dialects.onnx.nested import value_info
from passlib.dialects.onnx.reading import STATED
from passlib.dialects.onnx.tensors import code_of
from passlib.errors import UnsupportedError


def stated_types(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the types, as ``onnx.TypeProto``, that a graph states for values, by name."""
    stated = json.loads(attributes.get(STATED, "{}"))
    return {name: value_info(name, code, sizes).type for name, (code, sizes) in stated.items()}


def stated_type(
    name: str, dtype: str | None, shape: str | None, code: int | None = None
) -> tuple[int, list[int] | None]:
    """Read the attributes ``__dtype__`` and ``__shape__`` of a variable without values.

    Parameters
    ----------
    name : str
        Of the variable, for messages.
    dtype, shape : str or None
        The attributes.
    code : int, optional
        The element type that holds without ``dtype``.

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
    if dtype is None and code is None:
        raise UnsupportedError(
            f"variable {name!r} is new and has no values; allocate them with alloc_arg, or "
            "state the type of a new model input as __dtype__ and __shape__"
        )
    if dtype is not None and not re.fullmatch(r"\d{1,3}", dtype):
        raise UnsupportedError(f"variable {name!r}: __dtype__ {dtype!r} is not a number")
    if dtype is not None:
        code = code_of(dtypes.from_code(int(dtype)), repr(name))
    assert code is not None
    if shape is None:
        return code, None
    if not re.fullmatch(r"[\[(][-\d, ]*[\])]", shape):
        raise UnsupportedError(f"variable {name!r}: __shape__ {shape!r} is not a shape")
    sizes = map(int, re.findall(r"-?\d+", shape))
    return code, [size if size > 0 else -1 for size in sizes]
