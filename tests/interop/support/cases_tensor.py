"""Ask a real MXNet 1.9.1 for the results of the tensor operators, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_tensor.py tests/data/mxnet

writes ``tensor_cases.jsonl.gz`` and ``tensor_cases.npz``: one graph of one operator a line, and its
tensors under ``<name>/in/<input>`` and ``<name>/out/<index>``. The specifications stand beside
this file, in ``cases_tensor_<family>.py``; one that MXNet refuses ends the run.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from mxnet._ctypes.symbol import _symbol_creator
from mxnet.base import _LIB, OpHandle, c_str, check_call

import cases_tensor_elementwise
import cases_tensor_index
import cases_tensor_matrix
import cases_tensor_reduce
import cases_tensor_shape

# oneDNN refuses element types that MXNet's own code computes.
os.environ["MXNET_MKLDNN_ENABLED"] = "0"

FAMILIES = (
    cases_tensor_elementwise,
    cases_tensor_reduce,
    cases_tensor_shape,
    cases_tensor_index,
    cases_tensor_matrix,
)
TOLERANCE = {"float16": 2e-3}
DEFAULT_TOLERANCE = 1e-5


def compose(operator: str, count: int, attributes: dict[str, Any], name: str) -> Any:
    """Make the symbol of one operator on ``count`` variables x0, x1, ..."""
    handle = OpHandle()
    check_call(_LIB.NNGetOpHandle(c_str(operator), ctypes.byref(handle)))
    variables = [mx.sym.Variable(f"x{i}") for i in range(count)]
    keys = list(attributes)
    values = [str(attributes[key]) for key in keys]
    return _symbol_creator(handle.value, variables, {}, keys, values, name, False)


def evaluate(symbol: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run the symbol for inference and return all outputs."""
    given = {f"x{i}": mx.nd.array(a, dtype=a.dtype) for i, a in enumerate(arrays)}
    executor = symbol.bind(mx.cpu(), given, grad_req="null")
    return [output.asnumpy() for output in executor.forward(is_train=False)]


def freeze(specifications: Iterable[Any], folder: Path) -> int:
    """Write the case files and return how many cases they hold."""
    counts: Counter[str] = Counter()
    lines: list[str] = []
    tensors: dict[str, np.ndarray] = {}
    for case in specifications:
        counts[case.operator] += 1
        name = f"{case.operator.strip('_')}_{counts[case.operator]:02d}"
        symbol = compose(case.operator, len(case.inputs), case.attributes, name)
        try:
            outputs = evaluate(symbol, case.inputs)
        except mx.base.MXNetError as error:
            shapes = [(a.dtype.name, a.shape) for a in case.inputs]
            raise SystemExit(f"{name} {case.attributes} {shapes}: {error}") from error
        narrow = min((TOLERANCE.get(a.dtype.name, 0.0) for a in outputs), default=0.0)
        line = {
            "name": name,
            "symbol": json.dumps(json.loads(symbol.tojson()), separators=(",", ":")),
            "args": symbol.list_arguments(),
            "aux": [],
            "outputs": len(outputs),
            "tol": case.tolerance or narrow or DEFAULT_TOLERANCE,
        }
        lines.append(json.dumps(line))
        for index, array in enumerate(case.inputs):
            tensors[f"{name}/in/x{index}"] = array
        for index, array in enumerate(outputs):
            tensors[f"{name}/out/{index}"] = array
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (folder / "tensor_cases.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    np.savez_compressed(folder / "tensor_cases.npz", **tensors)
    return len(lines)


def main() -> None:
    """Read the target folder from the command line and write the files there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    count = freeze((case for family in FAMILIES for case in family.cases()), folder)
    print(f"{count} cases written to {folder}")


if __name__ == "__main__":
    main()
