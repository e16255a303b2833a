"""The copies of a graph that `simplify` spares: what passes make must not depend on them."""

from __future__ import annotations

import pytest

import passlib as pl
import random_graphs
from passlib.library.backends import joined
from passlib.library.python import sparing_copies

_PASSES = sorted(backend.declaration.name for backend in joined("simplify"))


def _made(model: pl.Model, names: list[str]) -> list[pl.Model]:
    """Return what each pass makes of what those before it made."""
    found = [model]
    for name in names:
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
        alone = _made(model, names)
        with sparing_copies():
            spared = _made(model, names)
        for name, one, other in zip(names, alone, spared, strict=True):
            assert one.symbol.graph.equals(other.symbol.graph), (seed, name)
            assert random_graphs.bytes_of(one) == random_graphs.bytes_of(other), (seed, name)
        same += sum(a is b for a, b in zip([model, *spared], spared, strict=False))
    assert same > len(_PASSES)


def test_a_graph_that_stays_is_the_same_object() -> None:
    model = pl.load(random_graphs.draw(1).model()).simplify()
    with sparing_copies():
        assert model.after_passes("removeNoOps", skip_infer=True) is model
    assert model.after_passes("removeNoOps", skip_infer=True) is not model
