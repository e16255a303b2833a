"""Random inputs of a model, within the ranges that its operators accept."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from passlib import dialects
from passlib.errors import UnsupportedError
from passlib.graph.node import Node
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.model.inputs import input_types
from passlib.model.loading import AnyModel, as_model
from passlib.workbench.flow import Flow, constant_of, depth_of, flow_of, rows_of

Arrays = dict[str, "np.ndarray[Any, Any]"]


class Sizing(NamedTuple):
    """Values of open dimensions."""

    first: int
    """Of the first axis."""
    other: int
    """Of the others."""
    inner: bool = False
    """Whether the second of at least three axes has the size of the first: recurrent states."""

    def of(self, specs: Mapping[str, TypeSpec]) -> dict[str, TypeSpec]:
        """Return complete types."""
        return {
            name: TypeSpec(
                spec.dtype,
                tuple(
                    self._size(axis, len(spec.shape or ())) if size is None else size
                    for axis, size in enumerate(spec.shape or ())
                ),
            )
            for name, spec in specs.items()
        }

    def _size(self, axis: int, rank: int) -> int:
        is_first = axis == 0 or (self.inner and axis == 1 and rank > 2)
        return self.first if is_first else self.other


_TRIED: Final = (
    *(Sizing(*pair) for pair in ((2, 16), (1, 16), (1, 224), (2, 2), (1, 1))),
    *(
        Sizing(first, other, inner)
        for other in (512, 16, 224, 256, 1024, 64, 128, 32, 8, 4)
        for first in (2, 1)
        for inner in (True, False)
    ),
)
"""In order of trial."""

_FEW: Final = 2
"""Flags and trip counts are smaller."""

_SMALL: Final = 100
"""Most integers that nothing bounds are smaller."""

_NARROW: Final = 100
"""Real numbers up to this one are spread evenly, larger ones by their exponents."""

_SPECIAL: Final = (0.0, 0.5, -1.0, 2.5, 1.0, -0.5, 1.5)

_TINY: Final = 32
"""Arrays with fewer elements have special values alone."""

_IMAGE: Final = re.compile(r"image|img|pixel", re.IGNORECASE)
_LENGTH: Final = re.compile(r"length|(^|_)lens?($|_)", re.IGNORECASE)
_MASK: Final = re.compile(r"mask", re.IGNORECASE)


def input_specs(
    model: Model, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> dict[str, TypeSpec]:
    """Return the types of inputs with given, declared or inferred shapes, in the model's order.

    ``None`` leaves a dimension as it is. Raises `GraphError` for unknown inputs and wrong shapes.
    """
    family = dialects.find(model.dialect)
    if isinstance(shapes, Mapping):  # anything else is refused below
        stated = model.input_types
        shapes = {n: _completed(s, stated[n]) if n in stated else s for n, s in shapes.items()}
    specs = input_types(model.symbol, family, model.data(), shapes, None)
    return {name: specs[name] for name in model.inputs if name in specs}


def _completed(given: Any, stated: TypeSpec) -> Any:
    """Return a shape with the stated sizes where it has None."""
    shape = stated.shape
    if shape is None or not isinstance(given, Sequence) or len(given) != len(shape):
        return given
    return tuple(old if new is None else new for new, old in zip(given, shape, strict=True))


def input_shapes(
    model: AnyModel, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> Iterator[dict[str, TypeSpec]]:
    """Iterate over complete types of the inputs, with likely values for open dimensions first.

    Inputs of unknown shape are omitted.

    Parameters
    ----------
    shapes : mapping of str to shape, optional
        ``None`` leaves a dimension as it is.

    Raises
    ------
    GraphError
        An input is unknown, or a shape contradicts the graph.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> next(pl.workbench.input_shapes(model, {"x": (2, 3)}))["x"].shape
    (2, 3)
    """
    specs = input_specs(as_model(model), shapes)
    for sizing in sizings(specs):
        yield sizing.of(specs)


def sizings(specs: Mapping[str, TypeSpec]) -> Iterator[Sizing]:
    """Iterate over values of the open dimensions, likely ones first."""
    is_open = any(None in (spec.shape or ()) for spec in specs.values())
    yield from _TRIED if is_open else _TRIED[:1]


def draw_inputs(model: AnyModel, specs: Mapping[str, TypeSpec], seed: int = 0) -> Arrays:
    """Return random inputs of complete types, see `input_shapes`.

    Real numbers have a standard normal distribution. Integers that select rows of a weight (Gather,
    Embedding, take) are less than the number of rows; other integers that an operator uses as a
    size, index, count or divisor are 0 or 1; the rest is from the whole range of the type, but
    mostly small. Masks begin with ones, and lengths are at most the largest dimension.

    Raises
    ------
    UnsupportedError
        An input takes strings, sequences or maps, or has an unsupported dtype.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x", shape=(0, 3))))
    >>> specs = next(pl.workbench.input_shapes(model))
    >>> pl.workbench.draw_inputs(model, specs)["x"].shape
    (..., 3)
    """
    model = as_model(model)
    check_numeric(model)
    return drawn_as(specs, limits_of(model, flow_of(model)), seed)


def check_numeric(model: Model) -> None:
    """Raise an UnsupportedError if an input takes strings, sequences or maps."""
    others = dialects.find(model.dialect).passed_on(model.symbol) & set(model.inputs)
    if others:
        raise UnsupportedError(
            f"input {sorted(others)[0]!r} takes no numeric array: random inputs are impossible, "
            "give inputs"
        )


def limits_of(
    model: Model, flow: Flow, tables: Mapping[tuple[Node, int], Any] | None = None
) -> dict[str, int | None]:
    """Return for each input the number that its integers are less than; None for any integer.

    ``tables``: computed values, which may be tables whose rows an input selects.
    """
    limits: dict[str, int | None] = {}
    for name in model.inputs:
        limits[name] = _FEW if name in flow.bounded else None
        rows = []
        for entry, axis in flow.tables.get(name, ()):
            table = constant_of(model, entry)
            if table is None and tables:
                table = tables.get((entry.node, entry.index))
            rows.append(0 if table is None else rows_of(np.shape(table), axis))
        rows += filter(None, (depth_of(model, entry) for entry in flow.depths.get(name, ())))
        known = [count for count in rows if count]
        if known:
            limits[name] = min(known)
    return limits


def drawn_as(
    specs: Mapping[str, TypeSpec],
    limits: Mapping[str, int | None],
    seed: int,
    scale: float | None = None,
    *,
    special: bool = False,
) -> Arrays:
    """Return random inputs of complete types.

    Parameters
    ----------
    limits : mapping of str to int or None
        See `limits_of`.
    scale : float, optional
        Magnitudes of real numbers are spread up to this one.
    special : bool
        Some real numbers are 0, 1, -1 or halves, and images are from 0 to 255.
    """
    generator = np.random.default_rng(seed)
    largest = max((size or 0 for spec in specs.values() for size in spec.shape or ()), default=1)
    drawn: Arrays = {}
    for name, spec in specs.items():
        dtype = np.dtype(np.float32) if spec.dtype is None else spec.dtype
        shape = tuple(size or 0 for size in spec.shape or ())
        if dtype == np.bool_:
            drawn[name] = generator.integers(0, 2, shape).astype(np.bool_)
        elif np.issubdtype(dtype, np.integer):
            limit = limits.get(name, _FEW)
            if _MASK.search(name):
                drawn[name] = _mask(generator, shape).astype(dtype)
            elif _LENGTH.search(name) and limit in (_FEW, None):
                drawn[name] = generator.integers(1, largest + 1, shape).astype(dtype)
            elif limit is None:
                drawn[name] = _integers(generator, shape, dtype)
            else:
                drawn[name] = generator.integers(0, limit, shape).astype(dtype)
        elif dtype.kind in "fV" and not dtype.fields:
            if _MASK.search(name):
                values = _mask(generator, shape)
            elif special and _IMAGE.search(name):
                values = np.floor(generator.uniform(0, 256, shape))
            else:
                values = _reals(generator, shape, scale, special=special)
            drawn[name] = np.asarray(values).astype(dtype)
        else:
            raise UnsupportedError(
                f"input {name!r} has dtype {dtype}: random inputs are impossible, give inputs"
            )
    return drawn


def unusual(
    base: Mapping[str, Any], limits: Mapping[str, int | None], tables: Collection[str]
) -> Iterator[tuple[str, Arrays]]:
    """Yield masks, lengths and indices that rewrites may take for impossible, by what they are.

    Parameters
    ----------
    base : mapping of str to array
        Ordinary inputs.
    limits : mapping of str to int or None
        See `limits_of`.
    tables : collection of str
        The inputs that select rows of a table.
    """
    largest = max((size for value in base.values() for size in value.shape), default=1)
    changes: dict[str, Callable[[str, np.ndarray[Any, Any]], Any]] = {
        "masks of zeros": lambda name, x: x * 0 if _MASK.search(name) else x,
        "masks with a zero between ones": lambda name, x: _holed(x) if _MASK.search(name) else x,
        "masks with numbers above 1": lambda name, x: (
            x * 3 if _MASK.search(name) and x.dtype.kind in "iu" else x
        ),
        "lengths of 0": lambda name, x: (
            x * 0 if _LENGTH.search(name) and x.dtype.kind in "iu" else x
        ),
        "lengths beyond the sizes": lambda name, x: (
            x + largest if _LENGTH.search(name) and x.dtype.kind in "iu" else x
        ),
        "negative indices": lambda name, x: (
            x - limits[name] if name in tables and x.dtype.kind == "i" and limits[name] else x
        ),
    }
    for what, change in changes.items():
        changed = {name: np.asarray(change(name, value)) for name, value in base.items()}
        if any(not np.array_equal(changed[name], value) for name, value in base.items()):
            yield what, {name: value.astype(base[name].dtype) for name, value in changed.items()}


def counting(names: Iterable[str]) -> set[str]:
    """Return the inputs whose names are not those of masks."""
    return {name for name in names if not _MASK.search(name)}


def _holed(mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a mask of ones with zeros between them."""
    return np.asarray(np.arange(mask.size).reshape(mask.shape) % 3 != 1, mask.dtype)


def _reals(
    generator: np.random.Generator, shape: tuple[int, ...], scale: float | None, *, special: bool
) -> Any:
    values = generator.standard_normal(shape)
    if scale is not None and scale <= _NARROW:
        values = generator.uniform(-scale, scale, shape)
    elif scale is not None:
        exponents = generator.uniform(-2, np.log10(scale), shape)
        values = np.copysign(10**exponents, values)
    if special:
        places = np.arange(values.size).reshape(shape)
        fixed = np.take(_SPECIAL, places % len(_SPECIAL))
        values = np.where(generator.integers(0, 2, shape) | (values.size < _TINY), fixed, values)
    return values


def _integers(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """Return integers of the whole range; three of four are small."""
    info = np.iinfo(dtype)
    wide = generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    low, high = max(info.min, -_SMALL), min(info.max, _SMALL)
    small = generator.integers(low, high, shape, dtype, endpoint=True)
    return np.where(generator.integers(0, 4, shape) == 0, wide, small).astype(dtype)


def _mask(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return rows of ones that zeros follow; the first is all ones."""
    if not shape:
        return np.ones(shape)
    rows = int(np.prod(shape[:-1]))
    ends = generator.integers(1, max(shape[-1], 1) + 1, rows)
    ends[:1] = shape[-1]
    return np.reshape(np.arange(shape[-1]) < ends[:, None], shape).astype(np.float64)
