"""Programs that build loops and branches, for MXNet and passlib alike.

Each takes the module (``mxnet`` or ``passlib``) and returns a symbol. What MXNet 1.9.1 writes for
it, and computes, is among the cases of tests/interop/support/cases_graphs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def variables(mx: Any, names: str) -> list[Any]:
    return [mx.sym.var(name) for name in names.split()]


def everything(mx: Any, outputs: Any, states: Any) -> Any:
    members = [part if isinstance(part, list) else [part] for part in (outputs, states)]
    return mx.sym.Group([symbol for part in members for symbol in part])


@program
def foreach_cell(mx: Any) -> Any:
    data, state, other, weight = variables(mx, "data state other weight")

    def step(row: Any, states: Any) -> Any:
        hidden = mx.sym.FullyConnected(row, weight=weight, num_hidden=3, no_bias=True, name="fc")
        hidden = mx.sym.Activation(hidden + states[0], act_type="tanh")
        return [hidden * 2, row], [hidden, states[1] + 1]

    return everything(mx, *mx.sym.contrib.foreach(step, data, [state, other]))


@program
def foreach_sums(mx: Any) -> Any:
    data, state = variables(mx, "data state")
    loop = mx.sym.contrib.foreach(lambda row, held: (row * held, held + row), data * 2, state)
    return everything(mx, *loop)


@program
def foreach_two(mx: Any) -> Any:
    data, other, state, weight = variables(mx, "data other state weight")
    loop = mx.sym.contrib.foreach(
        lambda rows, held: (rows[0] - rows[1], held * mx.sym.exp(weight)), [data, other], state
    )
    return everything(mx, *loop)


@program
def foreach_handed_on(mx: Any) -> Any:
    data, state = variables(mx, "data state")
    return everything(mx, *mx.sym.contrib.foreach(lambda row, held: (held, row), data, state))


@program
def foreach_nested(mx: Any) -> Any:
    data, state, weight = variables(mx, "data state weight")

    def outer(row: Any, held: Any) -> Any:
        return mx.sym.contrib.foreach(lambda x, y: (x * weight + y, y + 1), row, held)

    return everything(mx, *mx.sym.contrib.foreach(outer, data, state))


@program
def foreach_lstm(mx: Any) -> Any:
    data, state, other = variables(mx, "data state other")

    def step(row: Any, states: Any) -> Any:
        parts = [
            mx.sym.FullyConnected(value, num_hidden=12, name=f"lstm_{name}")
            for value, name in ((row, "i2h"), (states[0], "h2h"))
        ]
        gates = mx.sym.SliceChannel(parts[0] + parts[1], num_outputs=4)
        opened = [mx.sym.Activation(gates[i], act_type="sigmoid") for i in (0, 1, 3)]
        cell = opened[1] * states[1] + opened[0] * mx.sym.Activation(gates[2], act_type="tanh")
        hidden = opened[2] * mx.sym.Activation(cell, act_type="tanh")
        return hidden, [hidden, cell]

    return everything(mx, *mx.sym.contrib.foreach(step, data, [state, other]))


def repeated(mx: Any, rows: int, *loop: Any) -> Any:
    """Group the outputs of a loop, without the rows that MXNet leaves undefined."""
    outputs, ends = loop
    kept = [mx.sym.slice_axis(output, axis=0, begin=0, end=rows) for output in outputs]
    return mx.sym.Group([*kept, *ends])


@program
def while_sum(mx: Any) -> Any:
    count, total, limit = variables(mx, "count total limit")
    loop = mx.sym.contrib.while_loop(
        cond=lambda i, s: i <= limit,
        func=lambda i, s: ([i + s], [i + 1, s + i]),
        loop_vars=(count, total),
        max_iterations=6,
    )
    return repeated(mx, 1, *loop)


@program
def while_rows(mx: Any) -> Any:
    count, total, limit, data = variables(mx, "count total limit data")
    loop = mx.sym.contrib.while_loop(
        cond=lambda i, x: (i < 4) * (mx.sym.sum(x) < limit),
        func=lambda i, x: ([x, x * data], [i + 1, x + data]),
        loop_vars=[count, total],
        max_iterations=8,
    )
    return repeated(mx, 4, *loop)


@program
def while_without_outputs(mx: Any) -> Any:
    count, limit = variables(mx, "count limit")
    _, ends = mx.sym.contrib.while_loop(
        cond=lambda i: i < limit,
        func=lambda i: ([], [i * 2]),
        loop_vars=[count],
        max_iterations=20,
    )
    return mx.sym.Group(ends)


@program
def while_cond(mx: Any) -> Any:
    count, total, limit = variables(mx, "count total limit")

    def step(i: Any, x: Any) -> Any:
        chosen = mx.sym.contrib.cond(mx.sym.sum(x) > limit, lambda: x - 1, lambda: x + 1)
        return [chosen], [i + 1, x * 2]

    loop = mx.sym.contrib.while_loop(
        cond=lambda i, x: i < 3, func=step, loop_vars=[count, total], max_iterations=5
    )
    return repeated(mx, 3, *loop)


@program
def while_dense(mx: Any) -> Any:
    count, total, data = variables(mx, "count total data")
    loop = mx.sym.contrib.while_loop(
        cond=lambda i, x: i > 0,
        func=lambda i, x: (
            [mx.sym.FullyConnected(x, weight=data, num_hidden=3, no_bias=True)],
            [i - 1, x + 1],
        ),
        loop_vars=[count, total],
        max_iterations=3,
    )
    return repeated(mx, 2, *loop)


@program
def cond(mx: Any) -> Any:
    a, b = variables(mx, "a b")
    return mx.sym.contrib.cond(
        a.sum() * b.sum() < 5, lambda: (a + 5) * (b + 5), lambda: (a - 5) * (b - 5)
    )


@program
def cond_several(mx: Any) -> Any:
    a, b = variables(mx, "a b")
    chosen = mx.sym.contrib.cond(a.sum() > 0, lambda: [a, a * b], lambda: [b, a - b])
    return mx.sym.Group(chosen)


@program
def cond_nested(mx: Any) -> Any:
    a, b = variables(mx, "a b")
    return mx.sym.contrib.cond(
        a.sum() > 0,
        lambda: mx.sym.contrib.cond(b.sum() > 0, lambda: a, lambda: b * 2),
        lambda: -a,
    )
