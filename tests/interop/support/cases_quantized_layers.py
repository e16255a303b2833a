"""Ask a real MXNet 1.9.1 for what each dense layer of its own quantized models computes.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_quantized_layers.py tests/data/mxnet

writes ``quantized_layer_cases.jsonl.gz`` and ``quantized_layer_cases.npz``, in the form that
cases_tensor.py describes. A tolerance of 1 stands for one step of integers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mxnet as mx
from mxnet.contrib import quantization

from cases_graphs import dense, relu, weights
from cases_tensor_spec import real
from frozen_cases import Recorder

S = mx.sym

OPTIONS: tuple[dict[str, str], ...] = (
    {"calib_mode": "naive", "quantized_dtype": "int8"},
    {"calib_mode": "naive", "quantized_dtype": "auto"},
    {"calib_mode": "naive", "quantized_dtype": "uint8"},
    {"calib_mode": "none", "quantized_dtype": "int8"},
    {"calib_mode": "none", "quantized_dtype": "auto"},
    {
        "calib_mode": "naive",
        "quantized_dtype": "auto",
        "quantize_granularity": "channel-wise",
    },
)


def steps() -> Any:
    """Make dense layers that run over each step of sequences, with and without a bias."""
    data = S.FullyConnected(S.var("data"), num_hidden=6, flatten=False, no_bias=True, name="fc1")
    data = S.FullyConnected(relu(data, "r1"), num_hidden=4, flatten=False, name="fc2")
    return S.FullyConnected(data, num_hidden=3, name="fc3")


def models() -> Iterator[tuple[str, Any, tuple[int, ...], dict[str, str]]]:
    """Yield name, symbol, shape of the data, and options of the quantizer."""
    for options in OPTIONS:
        stem = "_".join(text.replace("-wise", "") for text in options.values())
        yield f"dense_{stem}", dense(), (4, 9), options
        yield f"steps_{stem}", steps(), (3, 5, 8), options


def quantized(symbol: Any, shape: tuple[int, ...], options: dict[str, str]) -> tuple[Any, Any]:
    """Quantize a model with MXNet's own quantizer; return it and its arrays."""
    arguments, states = weights(symbol, shape)
    low = 0 if options["quantized_dtype"] == "uint8" else -1
    data = real(2 * shape[0], *shape[1:], low=low, high=1)
    made, arguments, states = quantization.quantize_model(
        sym=symbol.get_backend_symbol("MKLDNN_QUANTIZE"), arg_params=arguments,
        aux_params=states, ctx=mx.cpu(), logger=None, num_calib_examples=2 * shape[0],
        calib_data=mx.io.NDArrayIter(data, None, shape[0]), **options,
    )  # fmt: skip
    known = {**arguments, **states, "data": mx.nd.array(data[: shape[0]])}
    return made.get_backend_symbol("MKLDNN_QUANTIZE"), known


def layer_outputs(symbol: Any) -> Any:
    """Return a symbol of the outputs of all quantized dense layers."""
    layers = symbol.get_internals()
    names = layers.list_outputs()
    return S.Group([layers[i] for i, name in enumerate(names) if "quantized_sg_mkldnn" in name])


def main() -> None:
    """Record every model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    recorder = Recorder()
    for name, symbol, shape, options in models():
        made, known = quantized(symbol, shape, options)
        every = layer_outputs(made)
        bound = {key: known[key] for key in every.list_arguments()}
        outputs = every.bind(mx.cpu(), bound, grad_req="null").forward()
        arrays = {key: value.asnumpy() for key, value in bound.items()}
        recorder.add(name, every, arrays, [output.asnumpy() for output in outputs], 1)
    recorder.write(parser.parse_args().folder / "quantized_layer_cases")


if __name__ == "__main__":
    main()
