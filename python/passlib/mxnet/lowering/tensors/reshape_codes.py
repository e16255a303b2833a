"""Decoding of the special sizes in the ``shape`` of MXNet's Reshape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Dim = int | tuple[int, ...]
"""A size, -1 for the remaining size, or the axes of the input whose sizes are multiplied."""

_INFER = -1

CLASSIC = {0: "copy", -2: "rest", -3: "join", -4: "split"}
"""The codes of ``Reshape``."""

NUMPY = {-2: "copy", -3: "skip", -4: "rest", -5: "join", -6: "split"}
"""The codes of ``_npx_reshape``, in which 0 is a size; ``skip`` drops an axis of size 1."""


def decode(
    codes: Sequence[int],
    shape: Sequence[int | None],
    rank: int,
    meaning: Mapping[int, str] = CLASSIC,
) -> list[Dim]:
    """Determine the source of the size of each axis of the result.

    Parameters
    ----------
    codes : sequence of int
        Sizes, -1 (remaining size), and codes that copy one size or the rest, merge two, split one
        into the two numbers that follow, or skip one.
    shape : sequence of (int or None)
        Of the input.
    rank : int
        Of the input.
    meaning : mapping of int to str
        `CLASSIC` or `NUMPY`.

    Raises
    ------
    ValueError
        The codes refer to more axes than there are, or are invalid.
    """
    dims: list[Dim] = []
    source = 0
    position = 0
    while position < len(codes):
        code = codes[position]
        position += 1
        kind = meaning.get(code, "")
        if kind == "rest":
            dims += [(axis,) for axis in range(source, rank)]
            source = rank
        elif kind == "split":
            if position + 2 > len(codes):
                raise ValueError(f"{code} must be followed by two numbers")
            dims += _split(codes[position], codes[position + 1], source, shape)
            position += 2
            source += 1
        elif kind == "join":
            _demand(source + 1, rank)
            dims.append((source, source + 1))
            source += 2
        elif kind:
            _demand(source, rank)
            if kind == "copy":
                dims.append((source,))
            elif shape[source] != 1:
                raise ValueError(f"skips axis {source}, whose size is not known to be 1")
            source += 1
        elif code >= _INFER:
            dims.append(code)
            source += 1
        else:
            raise ValueError(f"{code} is neither a size nor a code")
    if dims.count(_INFER) > 1:
        raise ValueError("leaves more than one size open")
    return dims


def decode_reversed(
    codes: Sequence[int],
    shape: Sequence[int | None],
    rank: int,
    meaning: Mapping[int, str] = CLASSIC,
) -> list[Dim]:
    """Decode codes that are matched to the input's axes from the right.

    MXNet reverses the codes, so the two numbers of a split precede its code.
    """
    backward = decode(codes[::-1], shape[::-1], rank, meaning)
    return [
        dim if isinstance(dim, int) else tuple(rank - 1 - axis for axis in reversed(dim))
        for dim in reversed(backward)
    ]


def _split(first: int, second: int, source: int, shape: Sequence[int | None]) -> list[Dim]:
    _demand(source, len(shape))
    if first == _INFER and second == _INFER:
        raise ValueError("a split leaves both sizes open")
    if min(first, second) < _INFER or 0 in (first, second):
        raise ValueError(f"cannot split into {first} and {second}")
    size = shape[source]
    if size is None:
        return [first, second]
    if first == _INFER:
        first = size // second
    if second == _INFER:
        second = size // first
    if first * second != size:
        raise ValueError(f"cannot split {size} into {first} and {second}")
    return [first, second]


def _demand(axis: int, rank: int) -> None:
    if axis >= rank:
        raise ValueError(f"refers to axis {axis} of an input with {rank} axes")
