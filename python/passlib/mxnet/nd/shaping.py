"""Arrays in other shapes: MXNet's codes of sizes, parts, axes in another order."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib.arrays.ndarray import NDArray
from passlib.mxnet.lowering.tensors.shape import decode, decode_reversed
from passlib.mxnet.nd import operators
from passlib.mxnet.symbol.composition import split_arguments


def reshape(array: NDArray, *shape: Any, **kwargs: Any) -> NDArray:
    """Return the elements of an array in another shape, on the same memory if it is contiguous.

    Parameters
    ----------
    *shape : int or tuple of int
        Sizes, and MXNet's codes: 0 keeps a size, -1 is what remains, -2 keeps all others, -3
        merges two, -4 splits one into the two numbers that follow.
    shape : tuple of int
        The same by keyword.
    reverse : bool
        Match sizes and codes from the right.

    Raises
    ------
    ValueError
        The number of elements differs, or the codes do not fit.
    TypeError
        There is no shape, or another keyword.
    """
    given = kwargs.pop("shape", None)
    reverse = bool(kwargs.pop("reverse", False))
    kwargs.pop("order", None)  # NumPy's, which libraries give with its only value here, "C"
    if kwargs:
        raise TypeError(f"reshape has no argument {', '.join(kwargs)}; it has shape and reverse")
    if given is None:
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    elif shape:
        raise TypeError("reshape: the shape is given by position and by keyword")
    codes = [operator.index(code) for code in ((given,) if isinstance(given, int) else given)]
    try:
        sources = (decode_reversed if reverse else decode)(codes, array.shape, array.ndim)
    except ValueError as error:
        raise ValueError(f"reshape of {array.shape} to {tuple(codes)}: {error}") from None
    sizes = [
        source if isinstance(source, int) else math.prod(array.shape[axis] for axis in source)
        for source in sources
    ]
    return array.as_numpys(np.asarray(array).reshape(sizes))


def split_v2(
    ary: NDArray,
    indices_or_sections: int | tuple[int, ...],
    axis: int = 0,
    squeeze_axis: bool = False,
) -> Any:
    """Split along an axis into equal parts, or at the given indices.

    Returns
    -------
    list of NDArray
        A single array if there is one part only.

    Raises
    ------
    ValueError
        ``indices_or_sections`` is neither an int nor a tuple of int.

    Examples
    --------
    >>> import passlib as mx
    >>> [part.asnumpy().tolist() for part in mx.nd.split_v2(mx.nd.arange(4), (1, 3))]
    [[0.0], [1.0, 2.0], [3.0]]
    """
    attributes = split_arguments(indices_or_sections, axis, squeeze_axis)
    return operators.invoke("_split_v2", ary, *attributes)


def concatenate(arrays: Sequence[Any], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join arrays along an axis.

    Parameters
    ----------
    always_copy : bool
        False returns the only array of a list of one itself.

    Raises
    ------
    ValueError
        There are no arrays, or their shapes differ in another axis.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.concatenate([mx.nd.ones((1, 3)), mx.nd.zeros((2, 3))]).shape
    (3, 3)
    """
    if len(arrays) == 0:
        raise ValueError("concatenate needs at least one array")
    if len(arrays) == 1 and not always_copy:
        only: NDArray = arrays[0]
        return only
    joined = np.concatenate([np.asarray(array) for array in arrays], axis)
    return _like(arrays[0], joined)


def moveaxis(tensor: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """Move axes to other positions; the others keep their order.

    Raises
    ------
    ValueError
        An axis does not exist, is named twice, or the numbers of axes differ.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.moveaxis(mx.nd.zeros((2, 3, 4)), 0, 2).shape
    (3, 4, 2)
    """
    return _like(tensor, np.moveaxis(np.asarray(tensor), source, destination).copy())


def _like(array: Any, result: np.ndarray[Any, Any]) -> NDArray:
    if isinstance(array, NDArray):
        return array.as_numpys(result)
    return result.view(NDArray)


def get_oshape_of_gather_nd_op(dshape: Sequence[int], ishape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of ``gather_nd`` of data and indices of these shapes.

    Raises
    ------
    ValueError
        There are more indices than axes.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.get_oshape_of_gather_nd_op((4, 5, 6), (2, 3))
    (3, 6)
    """
    if not ishape or ishape[0] > len(dshape):
        raise ValueError(f"indices of shape {tuple(ishape)} do not fit data of {tuple(dshape)}")
    return (*ishape[1:], *dshape[ishape[0] :])


def indexing_key_expand_implicit_axes(
    key: Any, shape: Sequence[int]
) -> tuple[tuple[Any, ...], int]:
    """Write an index out, with a full slice for every axis that it does not mention.

    Returns
    -------
    key : tuple
        Without an ellipsis.
    place : int
        The place of the first array of bool, -1 if there is none.

    Raises
    ------
    IndexError
        The index has more than one ellipsis, or more entries than there are axes.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.indexing_key_expand_implicit_axes((0, ...), (2, 3))[0]
    (0, slice(None, None, None))
    """
    entries = key if isinstance(key, tuple) else (key,)
    used = sum(_axes_of(entry) for entry in entries if entry is not Ellipsis)
    rest = [slice(None)] * (len(shape) - used)
    places = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(places) > 1 or used > len(shape):
        raise IndexError(f"index {key!r} does not fit an array of {len(shape)} axes")
    place = places[0] if places else len(entries)
    whole = (*entries[:place], *rest, *entries[place + 1 :])
    masks = [i for i, entry in enumerate(whole) if _is_mask(entry)]
    return whole, masks[0] if masks else -1


def get_indexing_dispatch_code(key: tuple[Any, ...]) -> int:
    """Return 1 for an index that has arrays or lists, 0 for one of numbers and slices, else -1.

    Examples
    --------
    >>> import passlib as mx
    >>> [mx.nd.get_indexing_dispatch_code(key) for key in [(0, slice(None)), ([0, 2],)]]
    [0, 1]
    """
    if not isinstance(key, tuple):
        raise TypeError(f"the index must be a tuple, not {type(key).__name__}")
    basic = (int, np.integer, slice, type(None), type(Ellipsis))
    if all(isinstance(entry, basic) for entry in key):
        return 0
    known = (*basic, list, tuple, range, np.ndarray)
    return 1 if all(isinstance(entry, known) for entry in key) else -1


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, (bool, np.bool_)) or getattr(entry, "dtype", None) == np.bool_


def _axes_of(entry: Any) -> int:
    if entry is None or isinstance(entry, bool):
        return 0
    return entry.ndim if _is_mask(entry) else 1
