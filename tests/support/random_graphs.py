"""Random ONNX graphs whose operators fit together, and what simplification makes of them.

``python tests/support/random_graphs.py FIRST COUNT`` simplifies the graphs of as many seeds from
the first one on, and prints counts and the seeds of wrong results.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import passlib
from drawn_graph import FLOAT, HALF, INT, Drawn
from passlib.dialects.onnx.nested import graphs_within
from passlib.proof.counterexamples import same_bits
from random_operators import OPERATORS

FINE = ("equal", "fails", "empty", "varies", "amplifies")
"""Verdicts on what is right: the results are equal, there are none, or they are not certain."""


def draw(seed: int) -> Drawn:
    """Return the graph of a seed."""
    random = np.random.default_rng(seed)
    drawn = Drawn(random, int(random.choice((13, 15, 17, 18))))
    sizes = random.choice((1, 1, 2, 3, 4), int(random.integers(1, 5)))
    if random.random() < 0.1:
        sizes[0] = 0
    drawn.add_input(FLOAT, tuple(sizes))
    if random.random() < 0.3:
        drawn.add_input(INT, tuple(sizes))
    for _ in range(int(random.integers(3, 14))):
        drawn.choice(OPERATORS)(drawn)
    return drawn


def verdict(seed: int, *, exact: bool) -> str:
    """Simplify the graph of a seed; return "equal", "fails" if it fails anyway, or what is wrong.

    Results with ``exact`` must have the same bits; otherwise they may differ by rounding.
    """
    drawn = draw(seed)
    model = drawn.model()
    found = compared(model, drawn.feeds, passlib.Model.simplify, exact=exact)
    return found if found in FINE else f"seed {seed}: {found}"


def compared(
    model: Any,
    feeds: dict[str, np.ndarray[Any, Any]],
    change: Callable[..., passlib.Model],
    *,
    exact: bool,
) -> str:
    """Change a model and compare its results before and after.

    Parameters
    ----------
    model : onnx.ModelProto
    feeds : dict of str to numpy.ndarray
        Inputs, and perhaps others.
    change : callable
        Gets a `passlib.Model` and ``exact``.
    exact : bool
        Whether the results must have the same bits.

    Returns
    -------
    str
        One of `FINE`, or what is wrong.
    """
    if not model.graph.output:
        return "empty"
    data = model.SerializeToString()
    want = _run(data, feeds)
    if isinstance(want, str):
        return "fails"
    have = _run(bytes_of(change(passlib.load(data), exact=exact)), feeds)
    if isinstance(have, str):
        return f"fails after simplification: {have[:200]}"
    if same_bits(have, want):
        return "equal"
    again = [_run(data, feeds) for _ in range(4)]
    if not all(isinstance(item, list) and same_bits(item, want) for item in again):
        return "varies"  # the recurrent layers of ONNX Runtime do, with nan
    # ONNX Runtime sums products of constants in another order than those of computed values.
    nodes = [node for graph in graphs_within(model.graph, *model.functions) for node in graph.node]
    sums = any(node.op_type in ("MatMul", "Conv", "LSTM") for node in nodes)
    if (exact and not sums) or len(have) != len(want):
        return "results differ"
    # Rounding decides to which of two numbers of half precision a number between them goes.
    narrow = any(
        attribute.name == "to" and attribute.i == HALF
        for node in nodes
        for attribute in node.attribute
    )
    tolerance = 1e-2 if narrow and not exact else 1e-4
    pairs = zip(have, want, strict=True)
    if all(_close(*pair, tolerance, signed=exact) for pair in pairs):
        return "equal"
    amplifies = not exact and _amplifies(data, feeds, have, want)
    return "amplifies" if amplifies else "results differ"


def _amplifies(data: bytes, feeds: dict[str, Any], have: list[Any], want: list[Any]) -> bool:
    """Whether the model itself makes as much of a change in the last bits of its inputs.

    It divides by the difference of nearly equal numbers, for example.
    """
    random = np.random.default_rng(0)
    spread = [np.zeros(array.shape) for array in want]
    for _ in range(8):
        nudged = {
            name: array * (1 + random.choice((-2.5e-7, 2.5e-7), array.shape)).astype(array.dtype)
            if array.dtype.kind == "f"
            else array
            for name, array in feeds.items()
        }
        found = _run(data, nudged)
        if isinstance(found, str) or any(
            a.shape != b.shape for a, b in zip(found, want, strict=True)
        ):
            return False
        spread = [
            np.maximum(most, np.abs(a.astype(float) - b.astype(float)))
            for most, a, b in zip(spread, found, want, strict=True)
        ]
    return all(
        a.shape == b.shape
        and bool(
            np.all(np.isclose(a, b, 1e-4, 1e-5, equal_nan=True) | (np.abs(a - b) <= 10 * most))
        )
        for a, b, most in zip(have, want, spread, strict=True)
        if a.dtype.kind == "f"
    )


def _close(left: Any, right: Any, tolerance: float, *, signed: bool) -> bool:
    if left.dtype.kind != "f":
        return bool(np.array_equal(left, right))
    if not signed:
        # A factor below 0 in the weights gives zeros the other sign, and so what they divide. A
        # product that overflows in one order of its factors does not in another one.
        left, right = (
            np.where(np.abs(each) > np.finfo(each.dtype).max / 1024, np.inf, each)
            for each in (left, right)
        )
    return left.shape == right.shape and bool(
        np.allclose(left, right, rtol=tolerance, atol=tolerance / 10, equal_nan=True)
    )


def bytes_of(model: passlib.Model) -> bytes:
    """Return the file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.onnx"
        model.save(path, durable=False)
        return path.read_bytes()


def _run(data: bytes, feeds: dict[str, Any]) -> list[Any] | str:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Packed weights are multiplied in another order, which is none of the models' doing.
    options.add_session_config_entry("session.disable_prepacking", "1")
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        names = {value.name for value in session.get_inputs()}
        outputs: list[Any] = session.run(None, {k: v for k, v in feeds.items() if k in names})
    except Exception as error:
        return str(error)
    return outputs


def main() -> None:
    """Count the verdicts of seeds."""
    first, count = (int(item) for item in sys.argv[1:3])
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        for exact in (True, False):
            try:
                found = verdict(seed, exact=exact)
            except Exception as error:
                found = f"seed {seed}: {type(error).__name__}: {error}"
            short = found if found in FINE else "wrong"
            counts[f"{short}, exact" if exact else short] += 1
            if short == "wrong":
                sys.stdout.write(f"{found} (exact={exact})\n")
                sys.stdout.flush()
    sys.stdout.write(f"{dict(counts)}\n")


if __name__ == "__main__":
    main()
