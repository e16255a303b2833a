"""Export an architecture of MXNet's model zoo, with weights drawn anew and what it computes.

Run by mxnet_zoo.py in MXNet's Python: ``zoo_models.py NAME FOLDER SIDE``. Writes the files of
``HybridBlock.export`` and ``<name>-io.npz``, with pictures ``in/<n>`` and outputs ``out/<n>``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mxnet as mx
import numpy as np

name, folder, side = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
mx.random.seed(7)
network = mx.gluon.model_zoo.vision.get_model(name)
network.initialize(mx.init.Xavier(magnitude=2))
network.hybridize()
draws = np.random.RandomState(7)
# Statistics and biases that are not those of new layers, whose folding would show nothing.
network(mx.nd.zeros((1, 3, side, side)))
for parameter in network.collect_params().values():
    if parameter.name.rpartition("_")[2] in ("gamma", "beta", "mean", "var", "bias"):
        low = 0.5 if parameter.name.endswith(("gamma", "var")) else -0.1
        parameter.set_data(mx.nd.array(draws.uniform(low, low + 0.5, parameter.shape)))
arrays = {}
for number, batch in enumerate((1, 2, 1)):
    data = arrays[f"in/{number}"] = draws.rand(batch, 3, side, side).astype("float32")
    arrays[f"out/{number}"] = network(mx.nd.array(data)).asnumpy()
network.export(str(folder / name))
np.savez(folder / f"{name}-io.npz", **arrays)
