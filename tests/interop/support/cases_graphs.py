"""Ask a real MXNet 1.9.1 for the results of whole models with nested graphs and 8-bit layers.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_graphs.py tests/data/mxnet

writes ``graph_cases.jsonl.gz`` and ``graph_cases.npz``, in the form that cases_tensor.py describes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from mxnet.contrib import quantization

import detectors
from cases_tensor_spec import of, real
from frozen_cases import Recorder

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))
import compose_loops

S = mx.sym


def run(recorder: Recorder, name: str, symbol: Any, tolerance: float, **arrays: Any) -> None:
    """Bind arrays, run the symbol and record it."""
    given = {key: np.asarray(value, "float32") for key, value in arrays.items()}
    bound = {key: mx.nd.array(value) for key, value in given.items()}
    outputs = symbol.bind(mx.cpu(), bound, grad_req="null").forward()
    recorder.add(name, symbol, given, [output.asnumpy() for output in outputs], tolerance)


def relu(data: Any, name: str) -> Any:
    return S.Activation(data, act_type="relu", name=name)


def residual(swapped: bool) -> Any:
    """Make a network with a residual sum, pooling, concatenation and two dense layers."""
    first = S.Convolution(S.var("data"), kernel=(3, 3), num_filter=8, pad=(1, 1), name="c1")
    first = relu(S.BatchNorm(first, name="bn1", fix_gamma=False), "r1")
    second = S.Convolution(first, kernel=(3, 3), num_filter=8, pad=(1, 1), name="c2")
    total = relu(first + second if swapped else second + first, "r2")
    pooled = S.Pooling(total, kernel=(2, 2), stride=(2, 2), pool_type="max", name="p1")
    pooled = S.Pooling(pooled, kernel=(2, 2), global_pool=True, pool_type="avg", name="p2")
    wide = S.flatten(S.concat(pooled, pooled, dim=1, name="cat"))
    hidden = relu(S.FullyConnected(wide, num_hidden=10, name="fc1"), "r3")
    return S.softmax(S.FullyConnected(hidden, num_hidden=5, name="fc2"), name="out")


def depthwise() -> Any:
    """Make a network of a pointwise, a depthwise and a dense layer."""
    data = relu(S.Convolution(S.var("data"), kernel=(1, 1), num_filter=6, name="c1"), "r1")
    data = S.Convolution(data, kernel=(3, 3), num_filter=6, num_group=6, name="c2")
    data = S.BatchNorm(data, name="bn", fix_gamma=True)
    return S.FullyConnected(data, num_hidden=4, no_bias=True, name="fc")


def dense() -> Any:
    """Make a network of dense layers with two activations."""
    hidden = relu(S.FullyConnected(S.var("data"), num_hidden=12, name="fc1"), "r1")
    hidden = S.FullyConnected(hidden, num_hidden=8, name="fc2")
    hidden = S.Activation(hidden, act_type="sigmoid", name="s")
    return S.FullyConnected(hidden, num_hidden=4, name="fc3")


def attention(heads: int = 2, depth: int = 4) -> Any:
    """Make self-attention with interleaved projections."""
    size = heads * 3 * depth
    data = S.FullyConnected(S.var("data"), num_hidden=size, flatten=False, name="proj")
    scores = S.contrib.interleaved_matmul_selfatt_qk(data, heads=heads, name="qk")
    scores = S.softmax(scores, axis=-1, name="sm")
    return S.contrib.interleaved_matmul_selfatt_valatt(data, scores, heads=heads, name="va")


def weights(symbol: Any, shape: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw parameters.

    Of two neighbours in a weight at most one is large: larger sums saturate in oneDNN on
    processors without VNNI.
    """
    state = np.random.RandomState(3)
    shapes, _, auxiliary = symbol.infer_shape(data=shape)
    arguments = {}
    for name, size in zip(symbol.list_arguments(), shapes):  # noqa: B905 (Python 3.8 runs this)
        drawn = state.uniform(-0.5, 0.5, size)
        if name.endswith("weight"):
            corner = (0,) * (drawn.ndim - 2)
            drawn *= 0.48
            drawn[(slice(None), 0, *corner)] = 0.5
            drawn[(slice(None), slice(1, 2), *corner)] = 0
        if name.startswith("proj"):
            drawn[1::2] = 0  # neighbours within a head
        if name != "data":
            arguments[name] = mx.nd.array(drawn)
    states = {
        name: mx.nd.array(state.uniform(0.5, 1, size))
        for name, size in zip(symbol.list_auxiliary_states(), auxiliary)  # noqa: B905
    }
    return arguments, states


def quantized(
    recorder: Recorder, name: str, symbol: Any, shape: tuple[int, ...], **options: Any
) -> None:
    """Quantize a model with MXNet's own quantizer, run and record it."""
    fused = options.pop("fused", True)
    arguments, states = weights(symbol, shape)
    data = real(2 * shape[0], *shape[1:], low=-1, high=1)
    if fused:
        symbol = symbol.get_backend_symbol("MKLDNN_QUANTIZE")
    made, arguments, states = quantization.quantize_model(
        sym=symbol, arg_params=arguments, aux_params=states, ctx=mx.cpu(), logger=None,
        calib_data=mx.io.NDArrayIter(data, None, shape[0]), num_calib_examples=2 * shape[0],
        **options,
    )  # fmt: skip
    if fused:
        made = made.get_backend_symbol("MKLDNN_QUANTIZE")
    known = {**arguments, **states, "data": mx.nd.array(data[: shape[0]])}
    bound = {key: known[key] for key in made.list_arguments()}
    held = {key: known[key] for key in made.list_auxiliary_states()}
    outputs = made.bind(mx.cpu(), bound, aux_states=held, grad_req="null").forward()
    arrays = {key: value.asnumpy() for key, value in {**bound, **held}.items()}
    recorder.add(name, made, arrays, [output.asnumpy() for output in outputs], 5e-5)


def quantized_models(recorder: Recorder) -> None:
    image = (2, 3, 8, 8)
    for kind in ("int8", "auto"):
        for mode in ("naive", "none"):
            how = {"calib_mode": mode, "quantized_dtype": kind}
            quantized(recorder, f"residual_{mode}_{kind}", residual(False), image, **how)
            quantized(recorder, f"dense_{mode}_{kind}", dense(), (4, 9), **how)
            quantized(recorder, f"layers_{mode}_{kind}", dense(), (4, 9), fused=False, **how)
    calibrated = {"calib_mode": "naive", "quantized_dtype": "auto"}
    quantized(recorder, "residual_swapped", residual(True), image, **calibrated)
    quantized(recorder, "attention", attention(), (5, 2, 6), **calibrated)
    # In others, two probabilities times two values exceed what oneDNN sums without VNNI.
    for heads, depth, shape in (
        (1, 2, (3, 1, 4)), (2, 2, (1, 3, 5)), (1, 1, (2, 2, 1)), (2, 4, (6, 1, 3)),
        (1, 3, (4, 2, 5)), (4, 1, (3, 2, 3)), (1, 5, (2, 3, 4)),
    ):  # fmt: skip
        name = f"attention_{heads}_{depth}"
        quantized(recorder, name, attention(heads, depth), shape, **calibrated)
    quantized(recorder, "depthwise", depthwise(), image, **calibrated)
    by_channel = {"quantize_granularity": "channel-wise", **calibrated}
    quantized(recorder, "residual_channels", residual(False), image, **by_channel)
    quantized(recorder, "dense_channels", dense(), (4, 9), **by_channel)
    # Fused, not quantized.
    arguments, states = weights(residual(False), image)
    fused = residual(False).get_backend_symbol("MKLDNN")
    known = {**arguments, **states, "data": mx.nd.array(real(*image))}
    outputs = fused.bind(
        mx.cpu(), {key: known[key] for key in fused.list_arguments()},
        aux_states={key: known[key] for key in fused.list_auxiliary_states()}, grad_req="null",
    ).forward()  # fmt: skip
    arrays = {key: value.asnumpy() for key, value in known.items()}
    recorder.add("fused", fused, arrays, [output.asnumpy() for output in outputs], 2e-5)


def loops_and_branches(recorder: Recorder) -> None:
    """Run the symbols of compose_loops.py on one or several sets of arrays."""
    state, row, weight = real(2, 3), real(2), real(3, 4)
    lstm = {f"lstm_{part}_weight": real(12, n) for part, n in (("i2h", 4), ("h2h", 3))}
    lstm |= {f"lstm_{part}_bias": real(12) for part in ("i2h", "h2h")}
    lstm |= {"data": real(4, 2, 4), "state": state, "other": real(2, 3, low=0)}
    total = {"total": real(2, 3), "data": real(2, 3, low=0)}
    three = real(3, low=0.1)
    sets: dict[str, list[dict[str, Any]]] = {
        "foreach_cell": [
            {"data": real(rows, 2, 4), "state": state, "other": real(1), "weight": weight}
            for rows in (5, 1)
        ],
        "foreach_sums": [{"data": real(rows, 3), "state": real(3)} for rows in (4, 1, 7)],
        "foreach_two": [
            {"data": real(3, 2), "other": real(3, 2, low=0), "state": row, "weight": real(2, low=0)}
        ],
        "foreach_handed_on": [{"data": real(3, 2), "state": row}],
        "foreach_nested": [{"data": real(3, 2, 2), "state": row, "weight": real(2, low=0)}],
        "foreach_lstm": [
            {"data": real(4, 2, 4), "state": state, "other": real(2, 3, low=0), **lstm}
        ],
        "while_sum": [{"count": [1], "total": [0], "limit": [limit]} for limit in (1, 3, 9)],
        "while_rows": [{"count": [0], "limit": [1000], **total}],
        "while_without_outputs": [{"count": [1], "limit": [limit]} for limit in (100, 2)],
        "while_cond": [{"count": [0], "total": three, "limit": [limit]} for limit in (3, 9)],
        "while_dense": [{"count": [2], "total": state, "data": real(3, 3)}],
        "cond": [
            {"a": scale * abs(real(2, 3)), "b": abs(real(2, 3))} for scale in (0.1, 4.0, -2.0)
        ],
        "cond_several": [{"a": scale * abs(real(2, 2)), "b": real(2, 2)} for scale in (1, -1)],
        "cond_nested": [
            {"a": of(first, 2 * first), "b": of(second, second)}
            for first, second in ((1, 1), (1, -1), (-1, 1))
        ],
    }
    for name, function in compose_loops.PROGRAMS.items():
        for index, arrays in enumerate(sets[name]):
            with mx.name.NameManager():
                symbol = function(mx)
            run(recorder, f"{name}_{index}", symbol, 2e-5, **arrays)


def detectors_and_sequences(recorder: Recorder) -> None:
    for name, symbol, arrays in detectors.models():
        run(recorder, name, symbol, 5e-5, **arrays)


FAMILIES: tuple[Callable[[Recorder], None], ...] = (
    loops_and_branches,
    quantized_models,
    detectors_and_sequences,
)


def main() -> None:
    """Write the files into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    recorder = Recorder()
    for family in FAMILIES:
        family(recorder)
    recorder.write(parser.parse_args().folder / "graph_cases")
    print(f"{len(recorder.lines)} cases written")


if __name__ == "__main__":
    main()
