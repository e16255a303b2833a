"""The same fusion by hand, by a pattern in C++, and by a rule in Python."""

from __future__ import annotations

import pathlib

import numpy as np

import passlib as pl

pl.library.load(pathlib.Path(__file__).with_name("libpattern.so"), verbose=False)


@pl.rewrite(
    "c = FullyConnected[no_bias=True](x, w:param)\n y = broadcast_add(c, b:param[rank=1])",
    dialects=["mxnet"],
)
def fuse_bias_in_python(m: pl.Match) -> object:
    """Make the sum behind FullyConnected its bias."""
    attributes = m.attributes(m.c) | {"no_bias": "False"}
    return m.op("FullyConnected", m.x, m.w, m.b, **attributes)


def layer(x: pl.Symbol, number: int) -> pl.Symbol:
    """FullyConnected without a bias, a sum, and relu."""
    product = pl.sym.FullyConnected(x, num_hidden=4, no_bias=True, name=f"fc{number}")
    total = pl.sym.broadcast_add(pl.sym.var(f"bias{number}"), product, name=f"sum{number}")
    return pl.sym.relu(total, name=f"relu{number}")


rng = np.random.default_rng(0)
symbol = layer(layer(pl.sym.var("x"), 1), 2)
weights = {f"fc{i}_weight": rng.standard_normal((4, 4)).astype("float32") for i in (1, 2)}
weights |= {f"bias{i}": rng.standard_normal(4).astype("float32") for i in (1, 2)}
model = pl.Model(symbol, weights)
x = {"x": rng.standard_normal((2, 4)).astype("float32")}
expected = model.run(x)["relu2_output"].asnumpy()

for name in ("fuseBiasByHand", "fuseBias", "fuse_bias_in_python"):
    fused = model.optimize_for(name)
    operators = [node.op for node in fused.symbol.nodes() if node.op != "null"]
    difference = np.abs(fused.run(x)["relu2_output"].asnumpy() - expected).max()
    print(f"{name}: {', '.join(operators)}; equal: {difference < 1e-5}")

print(pl.why(model, "broadcast_add(FullyConnected[no_bias=False](*_), b)", "sum1"))
