"""Loops and branches, whose bodies are graphs nested in the node."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np

from passlib.lowering import Operation, Shape, TypeSpec, Value
from passlib.lowering.extents import concatenated, extent, vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.real_arithmetic import is_true
from passlib.mxnet.lowering.table import table

_COUNT = np.dtype(np.int64)
_FLAG = np.dtype(bool)
_T = TypeVar("_T")


@table.register("_foreach")
def foreach(op: Operation) -> Sequence[Value]:
    """Apply the nested graph to each row of the data, with states handed from row to row.

    The inputs are data, initial states, and values that every row sees; ``in_data_locs``,
    ``in_state_locs`` and ``remain_locs`` state where the graph takes them. Outputs: the first
    ``num_out_data`` results of all rows, stacked, then the states after the last row.
    """
    places = [op.ints(name) for name in ("in_data_locs", "in_state_locs", "remain_locs")]
    rows, states, rest = _split(op.inputs, [len(locations) for locations in places])
    with op.body() as body:
        carried = [body.input("state", value.dtype, value.shape) for value in states]
        slices = [body.input("row", value.dtype, _without_first(value)) for value in rows]
        order = [location for locations in places for location in locations]
        results = op.subgraph(0, _ordered(order, [*slices, *carried, *rest]))
        outputs, ends = _split(results, [op.int("num_out_data"), len(states)])
        ends = [_typed(op, end, state) for end, state in zip(ends, states, strict=True)]
        shapes = [_common(a.shape, b.shape) for a, b in zip(ends, states, strict=True)]
        for value, shape in zip(ends, shapes, strict=True):
            body.output(value, shape)
        for value in outputs:
            body.output(value)
    length = rows[0].shape[0] if rows and rows[0].shape else None
    types = [TypeSpec(value.dtype, shape) for value, shape in zip(ends, shapes, strict=True)]
    types += [TypeSpec(value.dtype, _with_first(value, length)) for value in outputs]
    made = op.emit(
        "Scan",
        *states,
        *rows,
        outputs=len(types),
        types=types,
        body=body.graph(),
        num_scan_inputs=len(rows),
    )
    return [*made[len(states) :], *made[: len(states)]]


@table.register("_while_loop")
def while_loop(op: Operation) -> Sequence[Value]:
    """Repeat the second nested graph while the first is true, at most ``max_iterations`` times.

    ``cond_input_locs`` and ``func_input_locs`` state which inputs of the node the graphs take,
    ``func_var_locs`` which inputs of the second graph are the variables of the loop. Outputs: the
    first ``num_out_data`` results of all rounds, stacked and filled up to ``max_iterations`` rows
    with zeros (MXNet leaves those rows undefined), then the variables after the last round.
    """
    tested, taken = op.ints("cond_input_locs"), op.ints("func_input_locs")
    most = op.int("max_iterations")
    if most < 1:
        op.invalid("is not positive", "max_iterations")
    places = [_picked(taken, place) for place in op.ints("func_var_locs")]
    states = [_picked(op.inputs, place) for place in places]

    def condition(values: Sequence[Value]) -> Value:
        return _scalar_flag(op, op.subgraph(0, [_picked(values, place) for place in tested])[0])

    with op.body() as body:
        body.input("round", _COUNT, ())
        body.input("goes_on", _FLAG, ())
        current = list(op.inputs)
        for place, value in zip(places, states, strict=True):
            current[place] = body.input("variable", value.dtype, value.shape)
        results = op.subgraph(1, [_picked(current, place) for place in taken])
        outputs, ends = _split(results, [op.int("num_out_data"), len(states)])
        ends = [_typed(op, end, state) for end, state in zip(ends, states, strict=True)]
        shapes = [_common(a.shape, b.shape) for a, b in zip(ends, states, strict=True)]
        for place, value in zip(places, ends, strict=True):
            current[place] = value
        body.output(condition(current))
        for value, shape in zip(ends, shapes, strict=True):
            body.output(value, shape)
        for value in outputs:
            body.output(value)
    types = [TypeSpec(value.dtype, shape) for value, shape in zip(ends, shapes, strict=True)]
    types += [TypeSpec(value.dtype, _with_first(value, None)) for value in outputs]
    made = op.emit(
        "Loop",
        op.constant(most, _COUNT),
        condition(op.inputs),
        *states,
        outputs=len(types),
        types=types,
        body=body.graph(),
    )
    padded = [_filled(op, value, most) for value in made[len(states) :]]
    return [*padded, *made[: len(states)]]


@table.register("_cond")
def cond(op: Operation) -> Sequence[Value]:
    """Compute the second nested graph if the first is true, otherwise the third.

    ``cond_input_locs``, ``then_input_locs`` and ``else_input_locs`` state which inputs of the
    node the graphs take.
    """
    taken = [op.ints(f"{which}_input_locs") for which in ("cond", "then", "else")]
    inputs = [[_picked(op.inputs, place) for place in places] for places in taken]
    test = _scalar_flag(op, op.subgraph(0, inputs[0])[0])
    graphs, results = [], []
    for position in (1, 2):
        with op.body() as body:
            values = op.subgraph(position, inputs[position])
            for value in values:
                body.output(value)
        graphs.append(body.graph())
        results.append(values)
    chosen, other = results
    if len(chosen) != len(other):
        raise Misfit(f"its branches have {len(chosen)} and {len(other)} outputs")
    types = [
        TypeSpec(a.dtype if a.dtype == b.dtype else None, _common(a.shape, b.shape))
        for a, b in zip(chosen, other, strict=True)
    ]
    return op.emit(
        "If", test, outputs=len(types), types=types, then_branch=graphs[0], else_branch=graphs[1]
    )


def _split(values: Sequence[Value], counts: Sequence[int]) -> list[list[Value]]:
    if len(values) != sum(counts):
        raise Misfit(f"there are {len(values)} values, its attributes count {sum(counts)}")
    starts = accumulate(counts, initial=0)
    return [list(values[a:b]) for a, b in pairwise(starts)]


def _ordered(locations: Sequence[int], values: Sequence[Value]) -> list[Value]:
    """Return the values, each at its location."""
    if sorted(locations) != list(range(len(values))):
        raise Misfit(f"its attributes put {len(values)} values at {list(locations)}")
    return [value for _, value in sorted(zip(locations, values, strict=True), key=lambda p: p[0])]


def _picked(values: Sequence[_T], place: int) -> _T:
    if not 0 <= place < len(values):
        raise Misfit(f"an attribute refers to input {place} of {len(values)}")
    return values[place]


def _scalar_flag(op: Operation, value: Value) -> Value:
    return op.emit("Reshape", is_true(op, value), op.constant(np.zeros(0, np.int64)))


def _typed(op: Operation, value: Value, like: Value) -> Value:
    """Convert a state to its initial element type, as MXNet stores it."""
    return value if like.dtype is None or value.dtype is None else op.cast(value, like.dtype)


def _without_first(value: Value) -> Shape | None:
    return None if value.shape is None else value.shape[1:]


def _with_first(value: Value, size: int | None) -> Shape | None:
    return None if value.shape is None else (size, *value.shape)


def _common(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def _filled(op: Operation, rows: Value, count: int) -> Value:
    """Append rows of zeros up to ``count``."""
    rank = op.rank_of(rows)
    missing = vector(op, count) - extent(op, rows, 0)
    pads = concatenated(op, [vector(op, *[0] * rank), missing, vector(op, *[0] * (rank - 1))])
    filled = op.emit("Pad", rows, pads, 0)
    filled.shape = _with_first(Value("", shape=_without_first(rows)), count)
    return filled
