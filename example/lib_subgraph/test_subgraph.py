"""Load libsubgraph_lib.so, hand parts of three models to its operator, and run them."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import passlib as pl

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "tests/data/mxnet/models/resnet_v1_small"


def show(title: str, symbol: pl.sym.Symbol) -> None:
    """Print the operators of a symbol."""
    names = [f"{node.name} ({node.op})" for node in symbol.nodes() if not node.is_variable]
    print(f"{title}: {', '.join(names)}\n")


def partition_a_symbol() -> None:
    """Partition all supported nodes, none, and chains of at least two."""
    a, b = pl.sym.var("a"), pl.sym.var("b")
    symbol = pl.sym.log(pl.sym.sin(pl.sym.exp(a + b), name="sine"), name="log")
    arrays = {"a": pl.nd.ones((3, 2)), "b": pl.nd.ones((3, 2))}
    show("before", symbol)
    show("myProp", symbol.optimize_for("myProp", arrays))
    show("myProp, reject=True", symbol.optimize_for("myProp", reject=True))
    chains = symbol.optimize_for("mySelect", arrays, min_length=2)
    show("mySelect, min_length=2", chains)
    before, after = (s.eval(**arrays)[0] for s in (symbol, chains))
    print("largest difference:", float(np.abs(before - after).max()))


def partition_a_block() -> None:
    """Partition a Gluon block, run a pass on the result, export it and load it again."""
    data = pl.sym.var("data")
    block = pl.gluon.SymbolBlock(pl.sym.exp(pl.sym.relu(data)), data)
    block.initialize()
    x = pl.nd.array([[-1, 0], [0, 2]])
    block.optimize_for(x, backend="myProp", verbose=True)
    print(block(x).tolist())
    block.optimize_for(x, backend="addInputPass", clear=False)
    with tempfile.TemporaryDirectory() as folder:
        files = block.export(f"{folder}/partitioned")
        loaded = pl.gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    print(loaded(x).tolist())


def partition_a_model() -> None:
    """Hand the additions and relus of a ResNet to the library."""
    model = pl.load(MODEL)
    inputs = np.random.default_rng(0).normal(size=(1, 3, 64, 64)).astype("float32")
    partitioned = model.optimize_for("myProp")
    counts = Counter(node.op for node in partitioned.symbol.nodes())
    print(f"{counts['_custom_subgraph_op']} nodes of the ResNet are the library's")
    same = np.allclose(model(inputs), partitioned(inputs), rtol=1e-5, atol=1e-6)
    print("same outputs:", same)


def partition_an_onnx_model() -> None:
    """Hand the relus of the ResNet as a model of ONNX to the library, and save and run it."""
    inputs = np.random.default_rng(0).normal(size=(1, 3, 64, 64)).astype("float32")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/resnet.onnx"
        pl.load(MODEL).to_onnx(path, shapes={"data": inputs.shape})
        model = pl.load(path)
        model.optimize_for("myProp").save(f"{folder}/partitioned.onnx")
        partitioned = pl.load(f"{folder}/partitioned.onnx")
    counts = Counter(node.op for node in partitioned.symbol.nodes())
    print(f"{counts['_custom_subgraph_op']} nodes of the ONNX model are the library's")
    print("same outputs:", np.allclose(model(inputs), partitioned(inputs), rtol=1e-5, atol=1e-6))


def main() -> None:
    """Run the example."""
    library = pl.library.load(HERE / "libsubgraph_lib.so")
    print(f"{Path(library.path).name} has the partitioners {', '.join(library.partitioners)}\n")
    partition_a_symbol()
    partition_a_block()
    partition_a_model()
    partition_an_onnx_model()


if __name__ == "__main__":
    main()
