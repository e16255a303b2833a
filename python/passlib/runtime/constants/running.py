"""Models without inputs, run in this process or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects import find
from passlib.dialects.onnx.tensors import to_bytes
from passlib.errors import PasslibError
from passlib.graph.plain import PlainGraph
from passlib.lowering import Lowered
from passlib.runtime.constants.harmless import is_harmless
from passlib.runtime.session import Session
from passlib.runtime.settings import Settings

_PROGRAM: Final = Path(__file__).with_name("child.py")

_LARGEST: Final = 1 << 30
"""Bytes of weights for a process of its own: they go into one message."""

_SECONDS: Final = 120


def run_constants(symbol: PlainGraph, params: Mapping[str, np.ndarray[Any, Any]]) -> list[Any]:
    """Compute the outputs of a graph that depend on its weights alone.

    Each operator is run without optimization. What might end the process runs in another one.

    Parameters
    ----------
    symbol : PlainGraph
    params : mapping of str to numpy.ndarray
        Weights and auxiliary states.

    Returns
    -------
    list of numpy.ndarray
        One for each output; of other values than tensors, what ONNX Runtime returns.

    Raises
    ------
    PasslibError
        ONNX Runtime failed, refused the model, or ended its process; the graph has no model.
    """
    lowered = find(symbol.dialect).lower(symbol, {}, params)
    if is_harmless(lowered.model):
        return Session(lowered, Settings(optimization="none")).run({})
    return _run_apart(lowered)


def _run_apart(lowered: Lowered) -> list[Any]:
    if sum(array.nbytes for array in lowered.weights.values()) > _LARGEST:
        raise PasslibError("its weights are too large for a process of their own")
    model = type(lowered.model)()
    model.CopyFrom(lowered.model)
    for tensor in model.graph.initializer:
        if tensor.name in lowered.weights:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = to_bytes(lowered.weights[tensor.name])
    paths = [os.fspath(Path(entry).absolute()) for entry in sys.path]
    try:
        done = subprocess.run(
            [sys.executable, "-I", os.fspath(_PROGRAM)],
            input=json.dumps(paths).encode() + b"\n" + model.SerializeToString(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PasslibError(f"a process of its own failed: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise PasslibError(f"a process of its own ended with {done.returncode}: {reason}")
    head, _, data = done.stdout.partition(b"\n")
    arrays, offset = [], 0
    for name, shape in json.loads(head):
        dtype = dtypes.as_dtype(name)
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(data, dtype, count, offset).reshape(shape))
        offset += arrays[-1].nbytes
    return arrays
