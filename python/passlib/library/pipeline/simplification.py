"""Models with fewer operators that compute the same: the standard passes, to a fixpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeVar

import passlib._core as _core
from passlib.library.backends import find_standard
from passlib.library.pipeline.cost import COSTS, Cost, CostName, Priced, cost_of, rank_of
from passlib.library.pipeline.named import check_skipped
from passlib.library.pipeline.sharing import sharing

CLEAN = (
    "foldConstants", "resolveIf", "foldShapes", "removeNoOps", "propagateCasts", "mergeReshapes",
    "cancelTransposes", "mergeSlices", "mergeConcats", "fuseSpaceToDepth", "dropZeroStates",
    "fuseDequantize", "mergeEqualNodes", "removeDeadNodes", "rebuildShapes",
)  # fmt: skip
"""The passes that keep every bit of the results, in the order of a round."""

_LINEAR = ("foldBatchNormalization", "foldLinear", "mergeFactors", "fuseMatMulAdd")
"""Passes that change results by rounding."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "mergeEqualNodes": {"inference": True, "parameters": True},
    "foldShapes": {"conditions": True},
}

_ROUNDING: dict[str, dict[str, Any]] = {
    "foldShapes": {"large_sizes": False},
    "cancelTransposes": {"empty_errors": False, "reorder_sums": True},
    "fuseSpaceToDepth": {"reorder_weights": True},
}
"""What passes may also do if results need not be the same in every case."""

_NEEDS: dict[str, set[str]] = {
    "resolveIf": {"If", "Loop"},
    "propagateCasts": {"Cast"},
    "mergeReshapes": {"Reshape", "Squeeze", "Unsqueeze", "Flatten"},
    "cancelTransposes": {"Transpose", "transpose"},
    "mergeSlices": {"Slice", "Gather"},
    "fuseSpaceToDepth": {"Slice"},
    "mergeConcats": {"Concat", "concat", "concatenate"},
    "mergeFactors": {"Add", "Mul"},
    "dropZeroStates": {"RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"},
    "fuseDequantize": {"Cast"},
    "rebuildShapes": {"Shape"},
    "foldBatchNormalization": {"BatchNormalization", "BatchNorm", "batch_norm", "BatchNorm_v1",
                               "SyncBatchNorm"},
    "foldLinear": {"Conv", "ConvTranspose", "Gemm", "MatMul", "Convolution", "Deconvolution",
                   "FullyConnected"},
    "fuseMatMulAdd": {"MatMul"},
}  # fmt: skip
"""Passes of which each needs one of these operators to have anything to do."""

_LARGEST_GROWTH = 1_000_000
_SHARE = 100
"""By default weights grow by at most a hundredth, so that no file grows noticeably."""

_BYTES_OF_NODE = 64
"""What an operator takes in a file at least, with its names."""


M = TypeVar("M", bound=Priced)


def simplified(
    model: M,
    *,
    exact: bool = False,
    cost: CostName = "nodes",
    max_growth: int | None = None,
    max_rounds: int = 16,
    skip: Collection[str] = (),
) -> M:
    """Run the standard passes until none lowers the cost; parameters as of `passlib.simplify`."""
    if cost not in COSTS:
        raise ValueError(f"cost is one of {', '.join(COSTS)}, not {cost!r}")
    check_skipped(skip)
    names = [name for name in (*CLEAN, *(() if exact else _LINEAR)) if name not in skip]
    names = [name for name in names if find_standard(name).declaration.is_for(model.dialect)]
    options = {name: dict(_OPTIONS.get(name, {})) for name in names}
    if not exact:
        for name, more in _ROUNDING.items():
            options.get(name, {}).update(more)
    start = cost_of(model)
    if max_growth is None:
        max_growth = min(_LARGEST_GROWTH, start.bytes // _SHARE)
    rounds = iter(range(max_rounds))
    before = None
    while before is not model:
        before = model
        # Facts are found anew: what was kept of a larger graph may be less than is known of this.
        with sharing(empty_errors=exact, large_sizes=exact):
            model = _to_fixpoint(model, options, cost, start, max_growth, rounds)
    return model


def _to_fixpoint(
    model: M,
    passes: dict[str, dict[str, Any]],
    cost: CostName,
    start: Cost,
    max_growth: int,
    rounds: Iterator[int],
) -> M:
    """Run passes with these options, round by round."""
    price = cost_of(model)
    rank = rank_of(model, price, cost)
    # The graph on which a pass last had no effect: it would have none again.
    settled: dict[str, _core.Graph] = {}
    for _ in rounds:
        if all(settled.get(name) is model.symbol.graph for name in passes):
            break
        for name, options in passes.items():
            graph = model.symbol.graph
            if settled.get(name) is graph:
                continue
            needed = _NEEDS.get(name)
            if needed is not None and needed.isdisjoint(graph.operators()):
                settled[name] = graph
                continue
            if name == "foldConstants":
                options["max_growth"] = max(_limit(start, price, max_growth) - price.bytes, 0)
            # Not by its name, which a pass of the user's may have.
            made = model.optimize_for(find_standard(name), skip_infer=True, **options)
            new = cost_of(made)
            grown = new.bytes > max(price.bytes, _limit(start, new, max_growth))
            new_rank = rank if grown or made.symbol.graph is graph else rank_of(made, new, cost)
            if (new_rank, new) < (rank, price) and not grown:
                model, price, rank = made, new, new_rank
            else:
                settled[name] = graph
    return model


def _limit(start: Cost, now: Cost, max_growth: int) -> int:
    """Return how large the weights may be: operators that are gone make room for weights."""
    return start.bytes + max_growth + _BYTES_OF_NODE * max(start.nodes - now.nodes, 0)
