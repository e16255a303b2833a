"""Shapes and element types as callers give them, by name of a variable."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib.arrays import dtypes

_EXAMPLE = "(1, 3, 224, 224)"


def as_mapping(what: str, given: Any, example: str, hint: str = "") -> Mapping[str, Any]:
    """Check that an argument is a mapping.

    Raises `TypeError` if it is something else; the message shows the right form.

    Parameters
    ----------
    what : str
        Name of the argument, for the message.
    given : mapping or None
        None is an empty one.
    example : str
        A value of the mapping.
    hint : str, optional
        A name for the example.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{what} is of type {type(given).__name__}, but must be a dictionary by name, such as "
            f"{{{hint or 'data'!r}: {example}}}"
        )
    return given


def as_shape(what: str, given: Any) -> tuple[int | None, ...]:
    """Return a shape as a tuple of sizes; None is an open one.

    Raises `TypeError` if it is not a sequence of whole numbers.
    """
    try:
        if isinstance(given, (str, bytes)):
            raise TypeError
        return tuple(None if size is None else operator.index(size) for size in given)
    except TypeError:
        raise TypeError(
            f"{what} is {given!r}, but must be a tuple of whole numbers, such as {_EXAMPLE}"
        ) from None


def as_shapes(what: str, given: Any, hint: str = "") -> dict[str, tuple[int | None, ...]]:
    """Return shapes by name.

    Raises `TypeError` if it is not a mapping, or a shape is not a sequence of whole numbers.

    Parameters
    ----------
    what : str
        Name of the argument, for messages.
    hint : str, optional
        Name of a variable, for messages.
    """
    shapes = as_mapping(what, given, _EXAMPLE, hint)
    return {name: as_shape(f"{what}: the shape of {name!r}", s) for name, s in shapes.items()}


def as_types(what: str, given: Any, hint: str = "") -> dict[str, np.dtype[Any]]:
    """Return element types by name; parameters are those of `as_shapes`.

    Raises `TypeError` if it is not a mapping, or a value does not denote an element type.
    """
    types = as_mapping(what, given, "'float32'", hint)
    return {name: _as_type(what, name, kind) for name, kind in types.items()}


def _as_type(what: str, name: str, given: Any) -> np.dtype[Any]:
    try:
        return dtypes.as_dtype(given)
    except TypeError:
        raise TypeError(
            f"{what}: the element type of {name!r} is {given!r}, which is not one; "
            f"there are {', '.join(dtypes.NAMES.values())}"
        ) from None
