"""The open dimensions of inputs: their names, and which sizes a number of inputs show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passlib import dialects
from passlib.errors import listed, printable
from passlib.lowering import TypeSpec
from passlib.model import Model

Symbols = Mapping[str, tuple[str | None, ...]]
"""Names of the open dimensions of each input; None for others."""


def symbols_of(model: Model, specs: Mapping[str, TypeSpec]) -> Symbols:
    """Return the names of the open dimensions of inputs; those without a name get one."""
    stated = {}
    if any(None in (spec.shape or ()) for spec in specs.values()):
        family = dialects.find(model.dialect)
        inputs, _ = family.interface(model.symbol, model.data(whole=False))
        stated = {each.name: each.shape or [] for each in inputs}
    found: dict[str, tuple[str | None, ...]] = {}
    for name, spec in specs.items():
        sizes = spec.shape or ()
        texts = stated.get(name, [])
        texts = texts if len(texts) == len(sizes) else [None] * len(sizes)
        found[name] = tuple(
            None
            if size is not None
            else repr(printable(text))
            if isinstance(text, str)
            else f"dimension {axis} of {printable(name)!r}"
            for axis, (size, text) in enumerate(zip(sizes, texts, strict=True))
        )
    return found


def with_sizes(
    specs: Mapping[str, TypeSpec], symbols: Symbols, sizes: Mapping[str, int]
) -> dict[str, TypeSpec]:
    """Return complete types with other sizes of some open dimensions, by their names."""
    return {
        name: TypeSpec(
            spec.dtype,
            tuple(
                size if symbol is None else sizes.get(symbol, size)
                for size, symbol in zip(spec.shape or (), symbols[name], strict=True)
            ),
        )
        for name, spec in specs.items()
    }


def sizes_in(symbols: Symbols, inputs: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes of the open dimensions in inputs."""
    found: dict[str, int] = {}
    for name, names in symbols.items():
        shape = np.shape(inputs[name]) if name in inputs else ()
        if len(shape) == len(names):
            known = zip(names, shape, strict=True)
            found.update({symbol: size for symbol, size in known if symbol is not None})
    return found


def different(sizes: Mapping[str, int], step: int) -> dict[str, int]:
    """Return sizes that are all different, some of them larger by a multiple of the step."""
    found: dict[str, int] = {}
    for symbol, size in sizes.items():
        chosen = size
        while chosen in found.values():
            chosen += step
        found[symbol] = chosen
    return found


def unshown(symbols: Symbols, inputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield sentences about open dimensions that have one size, or the same, in all inputs."""
    same = []
    for name, names in symbols.items():
        shapes = {np.shape(each[name]) for each in inputs if name in each}
        if len(shapes) == 1 and any(symbol is not None for symbol in names):
            same.append(f"{shapes.pop()} of input {printable(name)!r}")
    if same:
        yield f"sizes other than {listed(same)}"
    shown = [sizes_in(symbols, each) for each in inputs]
    groups: dict[tuple[int | None, ...], list[str]] = {}
    for symbol in dict.fromkeys(each for names in symbols.values() for each in names if each):
        groups.setdefault(tuple(sizes.get(symbol) for sizes in shown), []).append(symbol)
    for group in groups.values():
        if len(group) > 1:
            yield f"different sizes of {listed(group)}"
