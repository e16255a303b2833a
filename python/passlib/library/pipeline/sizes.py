"""Shapes of inputs as text: ``name:1,3,224,224``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def shape_of_text(text: str) -> tuple[str, tuple[int | None, ...]]:
    """Return the name of an input and its shape.

    Parameters
    ----------
    text : str
        Such as ``x:1,?,4``, where ``?`` is an open size; nothing after the colon is a scalar.

    Raises
    ------
    ValueError
        The text has another form.
    """
    name, colon, sizes = text.rpartition(":")
    items = [item.strip() for item in sizes.split(",")] if sizes.strip() else []
    valid = all(item == "?" or (item.isdecimal() and len(item) < 20) for item in items)
    if not (colon and name and valid):
        raise ValueError(f"{text}: write name:1,3,224,224, with ? for an open size")
    return name, tuple(None if item == "?" else int(item) for item in items)


def text_of_shapes(shapes: Mapping[str, Sequence[int | None]]) -> list[str]:
    """Return the texts of shapes by input."""
    return [
        f"{name}:{','.join('?' if size is None else str(int(size)) for size in shape)}"
        for name, shape in shapes.items()
    ]
