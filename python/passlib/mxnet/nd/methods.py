"""Methods of arrays that apply an operator of MXNet: ``x.sort(is_ascend=False)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from passlib.arrays import OPERATORS, NDArray
from passlib.arrays.ndarray import elements
from passlib.errors import UnsupportedError
from passlib.mxnet import schema
from passlib.mxnet.nd import operators
from passlib.mxnet.nd.shaping import reshape, split_v2
from passlib.mxnet.schema import calls as namespaces

_OF_NUMPY: Final = frozenset(("dtype", "initial", "kind", "order", "stable", "where"))
"""Keywords of NumPy's methods that MXNet's lack; other packages call arrays with them."""


def _method(name: str) -> Callable[..., Any]:
    registered = namespaces.registered_name(name)
    assert registered is not None, name
    operator = schema.find(registered)
    assert operator is not None
    foreign = _OF_NUMPY - operator.parameters.keys() if hasattr(np.ndarray, name) else frozenset()

    def method(self: NDArray, *args: Any, **kwargs: Any) -> Any:
        if not foreign.isdisjoint(kwargs):
            return self.as_numpys(getattr(elements(self), name)(*args, **kwargs))
        return operators.invoke(registered, self, *args, **kwargs)

    method.__doc__ = (
        f"Apply the operator {registered} to this array, as ``passlib.nd.{name}``.\n\n"
        + ("Keywords that only NumPy's method has call NumPy's.\n" if foreign else "")
    )
    return method


def _transpose(self: NDArray, *axes: Any, **kwargs: Any) -> NDArray:
    """Permute the axes; without ``axes`` reverse them. The axes may be given one by one."""
    if len(axes) > 1:
        axes = (axes,)
    result: NDArray = operators.invoke("transpose", self, *axes, **kwargs)
    return result


def _flatten(self: NDArray, inplace: bool = False) -> NDArray:
    """Merge all axes but the first."""
    if inplace:
        return reshape(self, (0, -1))
    result: NDArray = operators.invoke("Flatten", self)
    return result


def _expand_dims(self: NDArray, axis: int, inplace: bool = False) -> NDArray:
    """Insert an axis of size 1; the result shares memory if ``inplace``."""
    if not inplace:
        result: NDArray = operators.invoke("expand_dims", self, axis=axis)
        return result
    return self.as_numpys(np.expand_dims(np.asarray(self), axis))


def _squeeze(self: NDArray, axis: Any = None, inplace: bool = False) -> NDArray:
    """Remove axes of size 1, by default all; the result shares memory if ``inplace``."""
    if not inplace:
        result: NDArray = operators.invoke("squeeze", self, axis=axis)
        return result
    squeezed = np.squeeze(np.asarray(self), axis)
    return self.as_numpys(squeezed if squeezed.ndim else squeezed.reshape(1))


def _broadcast_to(self: NDArray, shape: Any) -> NDArray:
    """Broadcast to a shape; a size of 0 is that of this array."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    added = (1,) * (len(sizes) - self.ndim)
    result: NDArray = operators.invoke("broadcast_to", self.reshape((*added, *self.shape)), sizes)
    return result


def _slice_assign(self: NDArray, rhs: Any, begin: Any, end: Any, step: Any) -> NDArray:
    """Write an array or a number to a range of this array, and return this array."""
    ranges = zip(begin, end, step or (None,) * len(begin), strict=True)
    self[tuple(slice(*each) for each in ranges)] = rhs
    return self


def _slice_assign_scalar(self: NDArray, value: Any, begin: Any, end: Any, step: Any) -> NDArray:
    """Write a number to a range of this array, and return this array."""
    return _slice_assign(self, value, begin, end, step)


def _detach(self: NDArray) -> NDArray:
    """Return an array on the same memory; there are no gradients to detach from."""
    return self.as_numpys(np.asarray(self))


def _as_nd_ndarray(self: NDArray) -> NDArray:
    """Return this array."""
    return self


def _to_dlpack(self: NDArray) -> Any:
    """Return a DLPack capsule on the memory of this array."""
    return np.asarray(self).__dlpack__()


def _refusing(name: str, why: str) -> Callable[..., Any]:
    def method(self: NDArray, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"NDArray.{name}: {why}")

    method.__doc__ = f"Raise UnsupportedError: {why}."
    return method


METHODS: Final[dict[str, Any]] = {
    **{name: _method(name) for name in OPERATORS.split()},
    "as_nd_ndarray": _as_nd_ndarray,
    "as_np_ndarray": _refusing(
        "as_np_ndarray", "passlib has no arrays of mx.np; asnumpy() returns one of NumPy"
    ),
    "attach_grad": _refusing("attach_grad", "passlib does not train, so arrays have no gradients"),
    "backward": _refusing("backward", "passlib does not train, so arrays have no gradients"),
    "broadcast_to": _broadcast_to,
    "detach": _detach,
    "expand_dims": _expand_dims,
    "flatten": _flatten,
    "grad": property(lambda self: None, doc="None: passlib does not train."),
    "handle": property(lambda self: None, doc="None: there is no C library of MXNet."),
    "reshape": reshape,
    "slice_assign": _slice_assign,
    "slice_assign_scalar": _slice_assign_scalar,
    "split_v2": split_v2,
    "squeeze": _squeeze,
    "to_dlpack_for_read": _to_dlpack,
    "to_dlpack_for_write": _to_dlpack,
    "transpose": _transpose,
    "writable": property(lambda self: self.flags.writeable, doc="Whether it can be written to."),
}
"""By name; `passlib.nd` adds them to the class."""

_FOR_DENSE: Final = (
    "broadcast_to expand_dims flatten reshape slice_assign slice_assign_scalar squeeze"
)

SPARSE_METHODS: Final[dict[str, Any]] = {
    **{name: METHODS[name] for name in OPERATORS.split()},
    **{
        name: _refusing(name, "sparse arrays have none; tostype('default') gives a dense array")
        for name in (*_FOR_DENSE.split(), "split_v2", "to_dlpack_for_read", "to_dlpack_for_write")
    },
    **{name: METHODS[name] for name in ("as_nd_ndarray", "as_np_ndarray", "attach_grad")},
    **{name: METHODS[name] for name in ("backward", "grad", "handle", "transpose")},
    "T": property(lambda self: self.transpose(), doc="The transposed matrix, which is dense."),
    "detach": _as_nd_ndarray,
    "writable": property(lambda self: True, doc="True: all elements can be set together."),
}
"""The methods of sparse arrays, by name."""
