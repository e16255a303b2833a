"""Checks of symbols: their results, their structure; gradients are refused."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays.context import Context
from passlib.arrays.creation import array
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.test_utils.comparing import assert_almost_equal
from passlib.mxnet.training import refuse

check_numeric_gradient = refuse("test_utils.check_numeric_gradient")
check_symbolic_backward = refuse("test_utils.check_symbolic_backward")
compare_optimizer = refuse("test_utils.compare_optimizer")
numeric_grad = refuse("test_utils.numeric_grad")


def simple_forward(
    sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any
) -> Any:
    """Compute the outputs of a symbol.

    Parameters
    ----------
    **inputs : array-like
        One for each argument.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> mx.test_utils.simple_forward(mx.sym.square(mx.sym.var("x")), x=np.array([3.0]))
    array([9.]...)
    """
    arrays = {name: array(value) for name, value in inputs.items()}
    outputs = sym.bind(ctx, arrays).forward(is_train)
    found = [output.asnumpy() for output in outputs]
    return found[0] if len(found) == 1 else found


def check_symbolic_forward(
    sym: Symbol,
    location: Sequence[Any] | Mapping[str, Any],
    expected: Sequence[Any] | Mapping[str, Any],
    rtol: float | None = None,
    atol: float | None = None,
    aux_states: Sequence[Any] | Mapping[str, Any] | None = None,
    ctx: Context | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[Any]:
    """Check the outputs of a symbol.

    Parameters
    ----------
    location, aux_states : sequence or mapping of array-like
        Arguments and auxiliary states, in their order or by name.
    expected : sequence or mapping of array-like
        Outputs, in their order or by name.
    rtol, atol, equal_nan
        As of `assert_almost_equal`.
    dtype : dtype-like
        Element type of the arguments that are no arrays of passlib.

    Returns
    -------
    list of NDArray
        The outputs.

    Raises
    ------
    AssertionError
        An output differs.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> (output,) = mx.test_utils.check_symbolic_forward(
    ...     mx.sym.square(mx.sym.var("x")), [np.array([1, 2])], [np.array([1, 4])]
    ... )
    >>> output.asnumpy()
    array([1., 4.], dtype=float32)
    """
    arguments = _named(sym.list_arguments(), location, dtype)
    states = _named(sym.list_auxiliary_states(), aux_states or {}, dtype)
    outputs = sym.bind(ctx, arguments, aux_states=states).forward()
    names = sym.list_outputs()
    wanted = expected if isinstance(expected, Mapping) else dict(zip(names, expected, strict=True))
    for name, output in zip(names, outputs, strict=True):
        assert_almost_equal(
            wanted[name], output, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan
        )
    return outputs


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Whether two symbols have the same operators in the same order, whatever their names.

    Examples
    --------
    >>> import passlib as mx
    >>> first, second = mx.sym.relu(mx.sym.var("x")), mx.sym.relu(mx.sym.var("y"))
    >>> mx.test_utils.same_symbol_structure(first, second)
    True
    """
    first, second = (symbol.get_internals() for symbol in (sym1, sym2))
    ops = [[(e.node.op, len(e.node.inputs)) for e in symbol.entries] for symbol in (first, second)]
    return ops[0] == ops[1]


def assert_exception(
    f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any
) -> None:
    """Check that a call raises an exception of this type.

    Raises
    ------
    AssertionError
        It does not.

    Examples
    --------
    >>> from passlib.test_utils import assert_exception
    >>> assert_exception(int, ValueError, "three")
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f!r} raised no {exception_type.__name__}")


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Set environment variables in a ``with`` block: a name and a value, or a mapping.

    A value of None removes the variable.

    Examples
    --------
    >>> import os
    >>> from passlib.test_utils import environment
    >>> with environment("MXNET_EXAMPLE", "1"):
    ...     os.environ["MXNET_EXAMPLE"]
    '1'
    """
    changes = args[0] if len(args) == 1 else {args[0]: args[1]}
    before = {name: os.environ.get(name) for name in changes}

    def change(values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = str(value)

    change(changes)
    try:
        yield
    finally:
        change(before)


def list_gpus() -> range:
    """Return no numbers: there are no GPUs.

    Examples
    --------
    >>> from passlib.test_utils import list_gpus
    >>> len(list_gpus())
    0
    """
    return range(0)


def np_reduce(
    dat: np.ndarray[Any, Any], axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]
) -> np.ndarray[Any, Any]:
    """Reduce axes of an array of NumPy one by one, the last one first.

    Parameters
    ----------
    axis : int, sequence of int or None
        None is all axes.
    numpy_reduce_func : callable
        Takes an array and ``axis``.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import np_reduce
    >>> np_reduce(np.ones((2, 3)), (0, 1), True, np.sum)
    array([[6.]])
    """
    chosen = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = sorted(a % dat.ndim for a in chosen)
    result = dat
    for each in reversed(axes):
        result = numpy_reduce_func(result, axis=each)
    if keepdims:
        result = result.reshape([1 if i in axes else size for i, size in enumerate(dat.shape)])
    return np.asarray(result)


def _named(names: Sequence[str], given: Any, dtype: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        given = dict(zip(names, given, strict=True))
    return {
        name: value if hasattr(value, "context") else array(value, None, dtype)
        for name, value in given.items()
    }
