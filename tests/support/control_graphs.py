"""Random ONNX graphs with If, Loop and Scan in one another, functions, and parts that nothing uses.

``python tests/support/control_graphs.py FIRST COUNT`` simplifies the graphs of as many seeds from
the first one on, in both modes, and runs one standard pass alone on each, in child processes. It
prints the seeds of wrong results, and of exceptions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from onnx import helper

import passlib
from drawn_graph import BOOL, FLOAT, INT, Shape
from drawn_scope import Scope
from fuzzing import sweep
from passlib.library.backends import joined
from random_graphs import FINE, compared
from random_operators import OPERATORS
from rewriting import results

CLEAN, PASSES = (
    [backend.declaration.name for backend in joined(name)] for name in ("clean", "simplify")
)
"""The passes of simplification."""

_DEEPEST: Final = 3


def _fresh(scope: Scope) -> str:
    """Return a prefix for the names of a nested graph, which may be that of another one beside."""
    return f"{scope.prefix}g{scope.choice((0, len(scope.nodes)))}_"


def _formal(body: Scope, formal: list[tuple[str, tuple[int, Shape]]]) -> list[str]:
    """Add the inputs of a nested graph; return their names."""
    names = []
    for name, kind in formal:
        full = f"{body.prefix}{name}"
        body.values[full] = kind
        body.own.add(full)
        names.append(full)
    return names


def _fill(scope: Scope, most: int) -> None:
    for _ in range(int(scope.random.integers(0, most))):
        if scope.depth < _DEEPEST and scope.chance(0.35 if scope.depth else 0.5):
            scope.choice(_CONTROL)(scope)
        elif scope.chance(0.15):
            scope.choice(_SPARING)(scope)
        else:
            scope.choice(OPERATORS)(scope)


def _condition(scope: Scope) -> tuple[str, bool]:
    """Return a condition, and its value."""
    value = scope.chance(0.5)
    kind = scope.random.random()
    if kind < 0.45:
        return scope.constant(value, np.bool_), value
    if kind < 0.75:
        source = scope.pick()
        rank = len(scope.shape(source))
        size = scope.add("Shape", [source], INT, (rank,))
        number = scope.add("Size", [size], INT, ())
        wanted = scope.constant(rank if value else rank + 1, np.int64)
        return scope.add("Equal", [number, wanted], BOOL, ()), value
    root = scope
    while root.outer is not None:
        root = root.outer
    if root.in_function:
        return scope.constant(value, np.bool_), value
    name = root.add_input(BOOL, ())
    inner: Scope | None = scope
    while inner is not None:
        inner.values[name] = (BOOL, ())
        inner = inner.outer
    return name, bool(root.feeds[name])


def _if(scope: Scope) -> None:
    condition, taken = _condition(scope)
    count = int(scope.choice((1, 1, 2)))
    codes = [scope.choice((FLOAT, FLOAT, INT)) for _ in range(count)]
    graphs = {}
    shapes: list[Shape] = []
    prefix = _fresh(scope)
    for name in ("then_branch", "else_branch"):
        branch = scope.inside(prefix if scope.chance(0.3) else f"{prefix}{name[0]}_")
        _fill(branch, 5)
        results = branch.results([(code, None) for code in codes])
        if (name == "then_branch") == taken:
            shapes = [branch.shape(result) for result in results]
        graphs[name] = branch.graph(name, [], results)
    _finish(scope, "If", [condition], codes, shapes, graphs)


def _loop(scope: Scope) -> None:
    rounds = int(scope.choice((0, 1, 1, 2, 3)))
    states = [scope.pick() for _ in range(int(scope.random.integers(0, 3)))]
    going, goes = _condition(scope) if scope.chance(0.4) else ("", True)
    limit = scope.constant(rounds, np.int64)
    stops = scope.chance(0.3)
    if stops and scope.chance(0.5):
        limit = ""
    rounds = 0 if not goes else min(rounds, 1) if stops and limit else 1 if stops else rounds
    prefix = _fresh(scope)
    body = scope.inside(prefix)
    formal = [("round", (INT, ())), ("go", (BOOL, ()))]
    formal += [(f"s{place}", scope.values[name]) for place, name in enumerate(states)]
    names = _formal(body, formal)
    inputs = [body.info(name, stated=place < 2) for place, name in enumerate(names)]
    _fill(body, 5)
    if stops:
        again = body.add("Identity", [body.constant(False, np.bool_)], BOOL, ())
    else:
        again = names[1] if scope.chance(0.3) else body.add("Identity", [names[1]], BOOL, ())
    count = int(scope.random.integers(0 if states else 1, 2))
    wanted = [*(scope.values[name] for name in states), *[(FLOAT, None)] * count]
    results = body.results(wanted, names)
    listed = results[len(states) :]
    graph = body.graph("body", inputs, [again, *results])
    shapes = [scope.shape(name) for name in states]
    shapes += [(rounds, *body.shape(name)) for name in listed]
    codes = [scope.values[name][0] for name in states] + [FLOAT] * len(listed)
    _finish(scope, "Loop", [limit, going, *states], codes, shapes, {"body": graph})
    if not rounds:  # the sizes of what no round collected are those that inference finds
        for name in scope.nodes[-1].output[len(states) :]:
            del scope.values[name]


def _scan(scope: Scope) -> None:
    wide = [name for name, (code, shape) in scope.values.items() if code == FLOAT and shape]
    if not wide:
        return
    scanned = scope.choice(wide)
    shape = scope.shape(scanned)
    axis = int(scope.random.integers(len(shape)))
    if not shape[axis]:
        return
    states = [scope.pick() for _ in range(int(scope.random.integers(0, 2)))]
    prefix = _fresh(scope)
    body = scope.inside(prefix)
    formal = [(f"s{place}", scope.values[name]) for place, name in enumerate(states)]
    formal.append(("part", (FLOAT, (*shape[:axis], *shape[axis + 1 :]))))
    names = _formal(body, formal)
    inputs = [body.info(name, stated=True) for name in names]
    _fill(body, 5)
    results = body.results([*(scope.values[name] for name in states), (FLOAT, None)], names)
    listed = results[-1]
    graph = body.graph("body", inputs, results, stated=True)
    shapes = [*(scope.shape(name) for name in states), (shape[axis], *body.shape(listed))]
    attributes: dict[str, Any] = {"body": graph, "num_scan_inputs": 1}
    if axis or scope.chance(0.3):
        attributes["scan_input_axes"] = [axis]
    if scope.chance(0.2):
        attributes["scan_input_directions"] = [1]
    codes = [scope.values[name][0] for name in states] + [FLOAT]
    _finish(scope, "Scan", [*states, scanned], codes, shapes, attributes)


def _finish(
    scope: Scope,
    op: str,
    inputs: list[str],
    codes: list[int],
    shapes: list[Shape],
    attributes: dict[str, Any],
) -> None:
    scope.add(op, inputs, FLOAT, *shapes, **attributes)
    for name, code, shape in zip(scope.nodes[-1].output, codes, shapes, strict=True):
        scope.values[name] = (code, shape)


def _call(scope: Scope) -> None:
    """Call a function, perhaps one that is called already."""
    value = scope.pick()
    shape = scope.shape(value)
    body = Scope(
        scope.random, scope.opset, {"formal": (FLOAT, shape)}, prefix="f", depth=scope.depth + 1,
        functions=scope.functions, in_function=True,
    )  # fmt: skip
    _fill(body, 4)
    result = body.result(FLOAT)
    name = f"function{len(scope.functions)}"
    imports = [helper.make_opsetid("", scope.opset), helper.make_opsetid("own", 1)]
    scope.functions.append(
        helper.make_function("own", name, ["formal"], [result], body.nodes, imports)
    )
    scope.add(name, [value], FLOAT, body.shape(result), domain="own")


def _clip(scope: Scope) -> None:
    value = scope.pick()
    bounds = [scope.constant(number, np.float32) for number in (-1, 1)]
    inputs = scope.choice(([bounds[0]], ["", bounds[1]], bounds, [], ["", ""]))
    scope.add("Clip", [value, *inputs], FLOAT, scope.shape(value))


def _dropout(scope: Scope) -> None:
    value = scope.pick()
    shape = scope.shape(value)
    scope.add("Dropout", [value, "", ""][: int(scope.random.integers(1, 4))], FLOAT, shape, shape)
    scope.values.pop(scope.nodes[-1].output[1])
    if scope.chance(0.7):
        del scope.nodes[-1].output[1]


def _sequence(scope: Scope) -> None:
    parts = [scope.pick() for _ in range(int(scope.random.integers(1, 3)))]
    place = int(scope.random.integers(len(parts)))
    made = scope.add("SequenceConstruct", parts, FLOAT, ())
    del scope.values[made]
    index = scope.constant(place, np.int64)
    scope.add("SequenceAt", [made, index], FLOAT, scope.shape(parts[place]))


def _gemm(scope: Scope) -> None:
    value = scope.pick(rank=2)
    rows, size = scope.shape(value)
    weight = scope.constant(scope.random.standard_normal((size, 2)), np.float32)
    made = scope.add("Gemm", [value, weight], FLOAT, (rows, 2))
    bias = scope.constant(scope.random.standard_normal(2), np.float32)
    scope.add(scope.choice(("Add", "Mul")), [made, bias], FLOAT, (rows, 2))


def _split(scope: Scope) -> None:
    value = scope.pick()
    shape = scope.shape(value)
    if shape and shape[0] > 1:
        sizes = scope.constant([1, shape[0] - 1], np.int64)
        shapes = [(1, *shape[1:]), (shape[0] - 1, *shape[1:])]
        scope.add("Split", [value, sizes], FLOAT, *shapes, axis=0)


_CONTROL: Final = (_if, _if, _loop, _loop, _scan)
_SPARING: Final = (_clip, _clip, _dropout, _sequence, _gemm, _split)


def draw(seed: int) -> tuple[Any, dict[str, Any]]:
    """Return the model of a seed, and its inputs."""
    random = np.random.default_rng(seed)
    scope = Scope(random, int(random.choice((13, 15, 17, 18, 20))))
    sizes = [int(size) for size in random.choice((1, 1, 2, 3), int(random.integers(0, 4)))]
    if random.random() < 0.05 and sizes:
        sizes[0] = 0
    scope.add_input(FLOAT, tuple(sizes))
    _fill(scope, 8)
    scope.choice(_CONTROL)(scope)
    if scope.chance(0.15):
        _call(scope)
    _fill(scope, 4)
    model = scope.model()
    model.functions.extend(scope.functions)
    if scope.functions:
        model.opset_import.add(domain="own", version=1)
    outputs = [value for value in model.graph.output if len(model.graph.output) < 2 or
               scope.chance(0.7)]  # fmt: skip
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return model, scope.feeds


def _simplified(model: passlib.Model, *, exact: bool) -> passlib.Model:
    made = model.simplify(exact=exact)
    assert made.simplify(exact=exact) is made, "a second simplification changes the model"
    return made


def _ends_the_runtime(model: bytes, feeds: dict[str, Any]) -> bool:
    """Whether ONNX Runtime ends the process on the model as it was drawn."""
    child = os.fork()
    if not child:
        with suppress(Exception):
            results(model, feeds)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def verdicts(seed: int) -> Iterator[str]:
    """Iterate over what is wrong with the simplification of the graph of a seed."""
    model, feeds = draw(seed)
    if _ends_the_runtime(model.SerializeToString(), feeds):
        return
    one = PASSES[seed % len(PASSES)]
    changes: dict[str, Callable[..., passlib.Model]] = {
        "simplify": _simplified,
        one: lambda model, exact: model.optimize_for(one),
    }
    for name, change in changes.items():
        for exact in (True, False) if name == "simplify" else (one in CLEAN,):
            try:
                found = compared(model, feeds, change, exact=exact)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if found == "fails":
                return
            if found not in FINE:
                yield f"{name}, exact={exact}: {found}"


def prepare() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of one seed."""
    passlib.library.load_standard()
    return lambda seed, _: verdicts(seed)


if __name__ == "__main__":
    sweep(__file__, prepare, sys.maxsize, sys.argv[1:])
