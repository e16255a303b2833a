"""The copies of a graph that `simplify` spares: what passes make must not depend on them."""

from __future__ import annotations

from contextlib import closing, nullcontext

import numpy as np
import onnx.parser
import pytest

import passlib as pl
import random_graphs
from passlib.graph.plain import operators_of
from passlib.library import backends
from passlib.library.backends import joined
from passlib.library.python import SparedCopy
from passlib.passes import Joins

_PASSES = sorted(backend.declaration.name for backend in joined("simplify"))


def _made(model: pl.Model, names: list[str], *, spared: bool) -> list[pl.Model]:
    """Return what each pass makes of what those before it made."""
    found = [model]
    with closing(SparedCopy()) as copy:
        for name in names:
            with copy.used() if spared else nullcontext():
                found.append(found[-1].after_passes(name, skip_infer=True))
    return found[1:]


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", range(8))
def test_passes_make_the_same(part: int) -> None:
    same = 0
    for seed in range(part * 5, part * 5 + 5):
        model = pl.load(random_graphs.draw(seed).model())
        # Each pass meets what others left unchanged, and what it changed itself.
        names = [*_PASSES, *reversed(_PASSES)]
        alone = _made(model, names, spared=False)
        spared = _made(model, names, spared=True)
        for name, one, other in zip(names, alone, spared, strict=True):
            assert one.symbol.graph.equals(other.symbol.graph), (seed, name)
            assert random_graphs.bytes_of(one) == random_graphs.bytes_of(other), (seed, name)
        same += sum(a is b for a, b in zip([model, *spared], spared, strict=False))
    assert same > len(_PASSES)


_TIMES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[3] x) => (float[3] y) <float[1] w = {1}> { m = Mul(x, w) y = Relu(m) }
"""


@pytest.fixture
def times() -> pl.Model:
    """Return a model of Mul by 1, which is a no-op."""
    return pl.load(onnx.parser.parse_model(_TIMES))


def test_a_graph_that_stays_is_the_same_object(times: pl.Model) -> None:
    with closing(SparedCopy()) as copy:
        with copy.used():
            assert times.after_passes("fuseLayers", skip_infer=True) is times
        with copy.used():
            assert times.after_passes("removeNoOps", skip_infer=True) is not times
    assert times.after_passes("fuseLayers", skip_infer=True) is not times


def test_weights_of_another_model_count(times: pl.Model) -> None:
    other = times.with_weights({"w": np.array([2], "float32")})
    assert other.symbol.graph is times.symbol.graph
    for first, second, left in ((times, other, 2), (other, times, 1)):
        with closing(SparedCopy()) as copy:
            with copy.used():
                assert first.after_passes("fuseLayers", skip_infer=True) is first
            with copy.used():
                made = second.after_passes("removeNoOps", skip_infer=True)
        assert operators_of(made.symbol.graph).total() == left


@pytest.mark.parametrize("inference", [{"skip_infer": True}, {"keep_inferred": True}, {}])
def test_passes_that_a_pass_calls_get_copies(
    times: pl.Model, inference: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    calls = []

    @pl.graph_pass(name="callsOthers", joins=Joins(["simplify"]), replace=True)
    def calls_others(graph: pl.Graph) -> None:
        """Run a standard pass."""
        calls.append(times.optimize_for("fuseLayers", **inference) is times)

    times.simplify()
    assert calls
    assert not any(calls)
