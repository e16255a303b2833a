"""Graphs of one operator of NNVM, run on random arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import passlib
from nnvm_files import text_of
from passlib.families.nnvm.schema import count_outputs

GENERATOR = np.random.default_rng(7)
Array = np.ndarray[Any, Any]
Attrs = dict[str, str]


def real(*shape: int) -> Array:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def whole(*shape: int, low: int = -9, high: int = 9) -> Array:
    return GENERATOR.integers(low, high, shape).astype(np.int32)


def run(op: str, attrs: Attrs, inputs: list[Array], folder: Path) -> list[Array]:
    """Run a graph of one operator."""
    count = count_outputs(op, attrs) or 1
    used = 1 if op in ("batch_norm", "dropout") else count
    variables = [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(len(inputs))]
    node = {
        "op": op,
        "name": "op",
        "attrs": attrs,
        "inputs": [[i, 0, 0] for i in range(len(inputs))],
    }
    last = len(inputs)
    graph = {
        # block_grad, which only NNVM has, makes the names in both registries NNVM's.
        "nodes": [*variables, node, {"op": "block_grad", "name": "end", "inputs": [[last, 0, 0]]}],
        "arg_nodes": list(range(last)),
        "heads": [[last, i, 0] for i in range(used)],
    }
    path = folder / "graph.json"
    path.write_bytes(text_of(graph))
    model = passlib.model.load(path, dialect="nnvm")
    result = model(*inputs)
    return [np.asarray(r) for r in (result if isinstance(result, list) else [result])]


def check(
    op: str, attrs: Attrs, inputs: list[Array], expected: Array | list[Array], folder: Path
) -> None:
    outputs = run(op, attrs, inputs, folder)
    wanted = expected if isinstance(expected, list) else [expected]
    assert len(outputs) == len(wanted)
    for output, value in zip(outputs, wanted, strict=True):
        assert output.dtype == value.dtype
        assert output.shape == value.shape
        np.testing.assert_allclose(output, value, rtol=1e-5, atol=1e-5)


def windows(
    data: Array, kernel: tuple[int, int], strides: tuple[int, int], dilation: tuple[int, int]
) -> Array:
    """Return all windows of (N, C, H, W): (N, C, rows, columns, kernel height, kernel width)."""
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(data, span, axis=(2, 3))
    return view[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]


def conv2d(
    data: Array,
    weight: Array,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> Array:
    top, left, bottom, right = pads
    padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    seen = windows(padded, weight.shape[2:], strides, dilation)
    parts = []
    for part, kernels in zip(
        np.split(seen, groups, axis=1), np.split(weight, groups, axis=0), strict=True
    ):
        parts.append(np.einsum("nchwij,ocij->nohw", part, kernels))
    return np.concatenate(parts, axis=1).astype(data.dtype)


X = real(2, 4, 7, 6)
W = real(6, 4, 3, 2)
B = real(6)
CONV = {"channels": "6", "kernel_size": "[3, 2]"}
G, E, M, V = real(4), real(4), real(4), np.abs(real(4)) + 0.5
P, Q = real(3, 4), real(3, 4)
I, J = whole(3, 4), whole(3, 4, low=1)  # noqa: E741
S = np.abs(P) + 0.5
Y = real(2, 3, 5)
ROW = real(1, 4)
w5, b5 = real(5, 4), real(5)
