"""Loops and branches over arrays, ``nd.contrib``: Python's own, with MXNet's results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from passlib.arrays.context import Context
from passlib.arrays.creation import array, zeros
from passlib.arrays.ndarray import NDArray
from passlib.mxnet.nd import sampling
from passlib.mxnet.nd.elementwise import isfinite, isinf, isnan


def _foreach(body: Callable[..., Any], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Call a function on each slice of arrays along their first axis, with states between calls.

    Parameters
    ----------
    body : callable
        Takes the slices and the states, each a single array or a list as they were given, and
        returns outputs and new states.

    Returns
    -------
    outputs : NDArray or list of NDArray
        Those of all calls, stacked along a new first axis.
    states : NDArray or list of NDArray
        After the last call.

    Raises
    ------
    ValueError
        The arrays have different lengths, or none.
    """
    arrays = list(data) if isinstance(data, (list, tuple)) else [data]
    lengths = {len(each) for each in arrays}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(
            f"foreach: the arrays have the lengths {sorted(lengths)}; they must have one, above 0"
        )
    states = init_states
    steps = []
    for position in range(*lengths):
        slices = [each[position] for each in arrays]
        outputs, states = body(slices if isinstance(data, (list, tuple)) else slices[0], states)
        steps.append(outputs)
    return _stacked(steps), states


def _while_loop(
    cond: Callable[..., Any],
    func: Callable[..., Any],
    loop_vars: Any,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:
    """Call a function while a condition on the loop's variables holds.

    Parameters
    ----------
    cond : callable
        Takes the variables, and returns an array of one element.
    func : callable
        Takes the variables, and returns outputs and new variables.

    Returns
    -------
    outputs : NDArray or list of NDArray
        Those of all calls, stacked; 0 for the calls up to ``max_iterations`` that were not made.
    loop_vars : NDArray or list of NDArray
        After the last call.

    Raises
    ------
    ValueError
        ``max_iterations`` is absent, or there are no variables.
    """
    if max_iterations is None:
        raise ValueError("while_loop needs max_iterations")
    single = not isinstance(loop_vars, (list, tuple))
    variables = [loop_vars] if single else list(loop_vars)
    if not variables:
        raise ValueError("while_loop needs at least one variable")
    steps: list[Any] = []
    while len(steps) < max_iterations and bool(cond(*variables)):
        outputs, changed = func(*variables)
        steps.append([] if outputs is None else outputs)
        variables = list(changed) if isinstance(changed, (list, tuple)) else [changed]
    stacked = _stacked(steps) if steps else []
    length = int(max_iterations)
    padded = (
        [_padded(each, length) for each in stacked]
        if isinstance(stacked, list)
        else _padded(stacked, length)
    )
    return padded, variables[0] if single else variables


def _cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """Call one of two functions, chosen by an array of one element."""
    return then_func() if bool(pred) else else_func()


def _rand_zipfian(
    true_classes: Any, num_sampled: int, range_max: int, ctx: Context | None = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Draw classes from an approximately log-uniform distribution.

    The probability of class ``c`` is ``log((c + 2) / (c + 1)) / log(range_max + 1)``.

    Parameters
    ----------
    true_classes : array
        Classes whose expected counts are returned.
    range_max : int
        Number of classes.

    Returns
    -------
    samples, expected counts of ``true_classes``, expected counts of the samples : NDArray
        int64, float64, float64.
    """
    width = math.log(range_max + 1)
    drawn = sampling.FUNCTIONS["uniform"](0, width, (num_sampled,), "float64", ctx)
    samples = (np.exp(np.asarray(drawn)) - 1).astype(np.int64) % range_max

    def expected(classes: Any) -> NDArray:
        numbers = np.asarray(classes).astype(np.float64)
        counts = np.log((numbers + 2) / (numbers + 1)) / width * num_sampled
        made: NDArray = array(counts, ctx, "float64")
        return made

    return array(samples, ctx, np.int64), expected(true_classes), expected(samples)


def _stacked(steps: list[Any]) -> Any:
    if isinstance(steps[0], (list, tuple)):
        return [_stacked(list(each)) for each in zip(*steps, strict=True)]
    stacked = np.stack([np.asarray(step) for step in steps])
    first = steps[0]
    return first.as_numpys(stacked) if isinstance(first, NDArray) else stacked.view(NDArray)


def _padded(stacked: NDArray, length: int) -> NDArray:
    rest = zeros((length - len(stacked), *stacked.shape[1:]), None, stacked.dtype)
    return stacked.as_numpys(np.concatenate([np.asarray(stacked), np.asarray(rest)]))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cond": _cond,
    "foreach": _foreach,
    "isfinite": isfinite,
    "isinf": isinf,
    "isnan": isnan,
    "rand_zipfian": _rand_zipfian,
    "while_loop": _while_loop,
}
"""The functions of ``nd.contrib`` that are no operators."""
