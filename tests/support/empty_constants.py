"""The models of onnx.backend.test with constants for inputs, some of them without elements.

``python tests/support/empty_constants.py [FIRST [COUNT]]`` simplifies them in child processes, and
prints those that ended their process. Models that passlib gives a process of their own while it
folds them (`passlib.runtime.constants`) are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import passlib
from fuzzing import attempt, sweep
from passlib.runtime.constants import is_harmless


@cache
def models() -> list[bytes]:
    """Return the models: of each case one for each size that becomes 0."""
    from onnx_suite import node_cases

    found = []
    for case in node_cases():
        for inputs, _ in case.data_sets[:1]:
            if all(isinstance(each, np.ndarray) for each in inputs):
                found += list(_emptied(case.data, inputs))
    return found


def _emptied(data: bytes, inputs: list[Any]) -> Iterator[bytes]:
    sizes = sorted({size for each in inputs for size in each.shape})
    for size in sizes:
        yield _with_constants(data, [_without(each, size) for each in inputs])
    for place, each in enumerate(inputs):
        if each.ndim:
            one = [*inputs]
            one[place] = each[:0]
            yield _with_constants(data, one)


def _without(array: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """Return the part of an array whose axes of this size are empty."""
    return array[tuple(slice(0 if each == size else each) for each in array.shape)]


def _with_constants(data: bytes, inputs: list[Any]) -> bytes:
    model = onnx.ModelProto.FromString(data)
    graph = model.graph
    names = [value.name for value in graph.input]
    for name, array in zip(names, inputs, strict=False):
        graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
    kept = [value for value in graph.input if value.name in names[len(inputs) :]]
    del graph.input[:]
    graph.input.extend(kept)
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    return bytes(model.SerializeToString())


def prepare() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of one model, by its number."""
    passlib.library.load_standard()

    def check(number: int, folder: Path) -> Iterator[str]:
        data = models()[number]
        try:
            harmless = is_harmless(onnx.ModelProto.FromString(data))
        except passlib.errors.PasslibError:
            return
        if harmless:
            yield from attempt("simplify", lambda: passlib.simplify(data))

    return check


if __name__ == "__main__":
    sweep(__file__, prepare, len(models()), sys.argv[1:])
