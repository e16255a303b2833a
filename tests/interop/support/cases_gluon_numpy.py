"""Ask a real MXNet 1.9.1 for the results of a Gluon block in NumPy mode, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_gluon_numpy.py tests/data/mxnet

writes ``numpy_model_cases.jsonl.gz`` and ``numpy_model_cases.npz``, in the form that
cases_tensor.py describes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

# oneDNN keeps weights in layouts of its own, which cannot be set.
os.environ["MXNET_MKLDNN_ENABLED"] = "0"

import mxnet as mx
import numpy as np
from mxnet import gluon

from cases_tensor_spec import real, whole
from frozen_cases import Recorder


class Attention(gluon.HybridBlock):
    """Embedding, self-attention, normalization and convolution, with statistics at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = gluon.nn.Embedding(10, 8)
        self.query = gluon.nn.Dense(8, flatten=False)
        self.key = gluon.nn.Dense(8, flatten=False)
        self.norm = gluon.nn.LayerNorm()
        self.convolution = gluon.nn.Conv1D(8, 3, padding=1)
        self.scale = gluon.nn.BatchNorm()

    def hybrid_forward(self, F: Any, data: Any) -> Any:  # noqa: N803 (MXNet's name)
        """Compute everything that a model of MXNet 1.6 and later is made of."""
        embedded = self.embedding(data)
        scores = F.npx.batch_dot(self.query(embedded), self.key(embedded), transpose_b=True)
        weights = F.npx.softmax(scores / 8**0.5, axis=-1)
        mixed = F.np.einsum("bij,bjd->bid", weights, embedded)
        mixed = self.norm(mixed + embedded)
        bands = self.scale(self.convolution(F.np.transpose(mixed, axes=(0, 2, 1))))
        bands = F.npx.leaky_relu(bands, act_type="gelu")
        bands = F.np.concatenate([bands, F.np.tanh(bands) * 2 - 1], axis=1)
        flat = F.npx.reshape(bands, (-2, -1))
        mean = F.np.mean(flat, axis=1, keepdims=True)
        spread = F.np.std(flat, axis=1, keepdims=True)
        flat = (flat - mean) / (spread + 1e-3)
        flat = F.np.where(flat > 0, flat, flat * 0.1)
        return (
            F.np.sum(flat, axis=-1),
            F.np.split(flat, 2, axis=1)[1],
            F.npx.one_hot(data, 10).sum(axis=(0, 1)),
            F.np.linalg.norm(flat),
            F.np.maximum(flat, 0.5).argmax(axis=-1),
            F.np.expand_dims(F.np.max(flat, axis=1), 0),
        )


def main() -> None:
    """Run the block, and record the exported symbol with all its arrays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    mx.npx.set_np()
    block = Attention()
    block.initialize()
    block.hybridize()
    data = whole(2, 5, low=0, high=10)
    block(mx.np.array(data))
    for parameter in block.collect_params().values():
        low = 0.5 if parameter.name.endswith(("gamma", "var")) else -0.5
        parameter.set_data(mx.np.array(real(*parameter.shape, low=low, high=1.0)))
    outputs = block(mx.np.array(data))
    with tempfile.TemporaryDirectory() as place:
        block.export(f"{place}/model")
        symbol = mx.sym.load(f"{place}/model-symbol.json")
        saved = mx.nd.load(f"{place}/model-0000.params")
    arrays = {name.partition(":")[2]: array.asnumpy() for name, array in saved.items()}
    recorder = Recorder()
    results = [output.asnumpy() for output in outputs]
    inputs: dict[str, np.ndarray] = {"data": data, **arrays}
    recorder.add("numpy_attention", symbol, inputs, results, 2e-5)
    recorder.write(folder / "numpy_model_cases")


if __name__ == "__main__":
    main()
