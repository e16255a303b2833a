"""Arrays that are compared by name, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passlib import _core

NAMES = st.lists(st.text(max_size=4), unique=True, max_size=24)


def _arrays(names: list[str]) -> dict[str, Any]:
    return {name: np.full(2, float(number)) for number, name in enumerate(names)}


@given(names=NAMES, data=st.data())
def test_order_does_not_matter(names: list[str], data: st.DataObject) -> None:
    arrays = _arrays(names)
    asked = data.draw(st.permutations(names))
    some = asked[: data.draw(st.integers(0, len(names)))]
    assert _core.same_arrays({name: arrays[name] for name in some}, arrays)


@given(names=NAMES, changed=st.integers(0, 23))
def test_one_that_differs(names: list[str], changed: int) -> None:
    arrays = _arrays(names)
    if changed >= len(names):
        return
    other = {**arrays, names[changed]: np.full(2, -1.0)}
    assert not _core.same_arrays(arrays, other)
    assert not _core.same_arrays(arrays, {n: a for n, a in arrays.items() if n != names[changed]})


def test_keys_that_name_nothing() -> None:
    one = {"a": np.zeros(1), "\udcff": np.zeros(1)}
    assert _core.same_arrays({"a": one["a"]}, one)
    assert not _core.same_arrays(one, one)
