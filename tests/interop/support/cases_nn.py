"""Ask a real MXNet 1.9.1 for the results of the neural-network operators, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_nn.py tests/data/mxnet

writes ``nn_cases.jsonl.gz`` and ``nn_cases.npz`` in the form that cases_tensor.py describes, with
``"train": true`` in a case that ran as in training. A case that MXNet refuses ends the run.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from mxnet._ctypes.symbol import _symbol_creator
from mxnet.base import _LIB, OpHandle, c_str, check_call

import cases_nn_layers
import cases_nn_recurrent
import cases_nn_vision
from cases_tensor_spec import Case

FAMILIES = (cases_nn_layers, cases_nn_recurrent, cases_nn_vision)
TOLERANCE = {"float16": 2e-3}
DEFAULT_TOLERANCE = 2e-5


def compose(case: Case, name: str) -> Any:
    """Make the symbol of one operator on variables x0, x1, ..."""
    handle = OpHandle()
    check_call(_LIB.NNGetOpHandle(c_str(case.operator), ctypes.byref(handle)))
    variables = [mx.sym.Variable(f"x{i}") for i in range(len(case.inputs))]
    attributes = {k: v for k, v in case.attributes.items() if k != "train"}
    values = [str(value) for value in attributes.values()]
    return _symbol_creator(handle.value, variables, {}, list(attributes), values, name, False)


def evaluate(symbol: Any, case: Case) -> list[np.ndarray]:
    """Run the symbol and return all visible outputs."""
    given = {f"x{i}": mx.nd.array(a, dtype=a.dtype) for i, a in enumerate(case.inputs)}
    executor = symbol.bind(
        mx.cpu(),
        {key: given[key] for key in symbol.list_arguments()},
        aux_states={key: given[key] for key in symbol.list_auxiliary_states()},
        grad_req="null",
    )
    outputs = executor.forward(is_train=case.attributes.get("train", False))
    return [output.asnumpy() for output in outputs]


def freeze(specifications: Iterable[Case], folder: Path) -> int:
    """Write the case files and return how many cases they hold."""
    counts: Counter[str] = Counter()
    lines: list[str] = []
    tensors: dict[str, np.ndarray] = {}
    for case in specifications:
        counts[case.operator] += 1
        name = f"{case.operator.strip('_')}_{counts[case.operator]:02d}"
        try:
            symbol = compose(case, name)
            outputs = evaluate(symbol, case)
        except mx.base.MXNetError as error:
            shapes = [(a.dtype.name, a.shape) for a in case.inputs]
            raise SystemExit(f"{name} {case.attributes} {shapes}: {error}") from error
        narrow = max((TOLERANCE.get(a.dtype.name, 0.0) for a in outputs), default=0.0)
        line = {
            "name": name,
            "symbol": json.dumps(json.loads(symbol.tojson()), separators=(",", ":")),
            "args": symbol.list_arguments(),
            "aux": symbol.list_auxiliary_states(),
            "outputs": len(outputs),
            "tol": case.tolerance or narrow or DEFAULT_TOLERANCE,
        }
        if case.attributes.get("train"):
            line["train"] = True
        lines.append(json.dumps(line))
        for index, array in enumerate(case.inputs):
            tensors[f"{name}/in/x{index}"] = array
        for index, array in enumerate(outputs):
            tensors[f"{name}/out/{index}"] = array
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (folder / "nn_cases.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    np.savez_compressed(folder / "nn_cases.npz", **tensors)
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
