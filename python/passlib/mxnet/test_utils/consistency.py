"""``check_consistency``: the same outputs from several symbols, or in several element types."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays import random
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.test_utils.comparing import assert_almost_equal


def check_consistency(
    sym: Symbol | Sequence[Symbol],
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "write",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    rtol: float | Mapping[Any, float] | None = None,
    atol: float | Mapping[Any, float] | None = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, Any]:
    """Check that several executors compute the same outputs from the same inputs.

    Gradients are not compared, since executors do not compute them.

    Parameters
    ----------
    sym : Symbol or sequence of Symbol
        One, or one for each item of ``ctx_list``.
    ctx_list : sequence of mapping
        Arguments of `Symbol.simple_bind`; at least two.
    scale : float
        Standard deviation of random inputs.
    grad_req
        Ignored.
    arg_params, aux_params : mapping of str to array-like, optional
        Arguments and auxiliary states; by default arguments are random and states zeros.
    rtol, atol : float or mapping of dtype to float, optional
        As of `assert_almost_equal`.
    raise_on_err : bool
        Whether a difference is an error; otherwise it is printed.
    ground_truth : mapping of str to array-like, optional
        Outputs by name; by default those of the executor with the widest element type.
    use_uniform : bool
        Draw inputs from a uniform distribution.
    rand_type : dtype-like
        Element type that random inputs are rounded to.

    Returns
    -------
    dict of str to NDArray
        The outputs that the others were compared with.

    Raises
    ------
    AssertionError
        An output differs, symbols have different arguments or outputs, or ``ctx_list`` has fewer
        than two items.

    Examples
    --------
    >>> import passlib as mx
    >>> y = mx.sym.square(mx.sym.var("x"), name="y")
    >>> kinds = [{"x": (2, 3), "type_dict": {"x": kind}} for kind in ("float64", "float16")]
    >>> found = mx.test_utils.check_consistency(y, kinds)
    >>> found["y_output"].dtype
    dtype('float64')
    """
    del grad_req
    symbols = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    assert len(ctx_list) > 1, "ctx_list needs at least two items"
    assert len(symbols) == len(ctx_list), "one symbol for each item of ctx_list is needed"
    names = symbols[0].list_outputs()
    for other in symbols[1:]:
        assert other.list_arguments() == symbols[0].list_arguments(), "different arguments"
        assert other.list_outputs() == names, "different outputs"
    executors = [
        each.simple_bind(**{"grad_req": "null", **context})
        for each, context in zip(symbols, ctx_list, strict=True)
    ]
    given = dict(arg_params or {})
    for name, array in executors[0].arg_dict.items():
        if name not in given:
            given[name] = _drawn(array.shape, scale, uniform=use_uniform).astype(rand_type)
    results = []
    for executor in executors:
        for name, array in executor.arg_dict.items():
            array[:] = given[name]
        for name, array in executor.aux_dict.items():
            array[:] = 0 if aux_params is None else aux_params[name]
        results.append(executor.forward(is_train=False))
    widths = [np.dtype(outputs[0].dtype).itemsize for outputs in results]
    best = widths.index(max(widths))
    truth = dict(zip(names, results[best], strict=True)) if ground_truth is None else ground_truth
    for number, outputs in enumerate(results):
        if number == best and ground_truth is None:
            continue
        for name, output in zip(names, outputs, strict=True):
            expected = np.asarray(truth[name]).astype(output.dtype)
            dtype = np.dtype(output.dtype)
            try:
                assert_almost_equal(
                    output,
                    expected,
                    _bound(rtol, dtype),
                    _bound(atol, dtype),
                    (f"{name}_{number}", name),
                    equal_nan,
                )
            except AssertionError:
                if raise_on_err:
                    raise
                traceback.print_exc()
    return dict(truth)


def _bound(given: float | Mapping[Any, float] | None, dtype: np.dtype[Any]) -> float | None:
    return given.get(dtype) if isinstance(given, Mapping) else given


def _drawn(shape: tuple[int, ...], scale: float, *, uniform: bool) -> np.ndarray[Any, Any]:
    def draw(generator: np.random.Generator) -> np.ndarray[Any, Any]:
        if uniform:
            return generator.uniform(-0.92 * scale, 0.92 * scale, shape)
        return generator.normal(0, scale, shape)

    return random.draw(draw)
