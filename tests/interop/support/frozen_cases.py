"""Run the cases of operators in a real MXNet 1.9.1, and write its results."""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import mxnet as mx
import numpy as np
from mxnet._ctypes.symbol import _symbol_creator
from mxnet.base import _LIB, OpHandle, c_str, check_call

from cases_tensor_spec import Case

__all__ = ["freeze", "main"]

TOLERANCE = {"float16": 2e-3}

Widest = Callable[[Iterable[float]], float]


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


def freeze(cases: Iterable[Case], target: Path, default: float, narrow: Widest) -> int:
    """Write the results of all cases.

    Parameters
    ----------
    cases : iterable of Case
        A case that MXNet refuses ends the run.
    target : Path
        Without an extension; the files get ``.jsonl.gz`` and ``.npz``.
    default : float
        Tolerance of a case that has none and whose outputs are not in half precision.
    narrow : callable
        ``min`` if all outputs must be in half precision for its tolerance to apply, ``max`` if one
        is enough.

    Returns
    -------
    int
        The number of cases.
    """
    counts: Counter[str] = Counter()
    lines: list[str] = []
    tensors: dict[str, np.ndarray] = {}
    for case in cases:
        counts[case.operator] += 1
        name = f"{case.operator.strip('_')}_{counts[case.operator]:02d}"
        try:
            symbol = compose(case, name)
            outputs = evaluate(symbol, case)
        except mx.base.MXNetError as error:
            shapes = [(a.dtype.name, a.shape) for a in case.inputs]
            raise SystemExit(f"{name} {case.attributes} {shapes}: {error}") from error
        half = narrow([TOLERANCE.get(a.dtype.name, 0.0) for a in outputs] or [0.0])
        line = {
            "name": name,
            "symbol": json.dumps(json.loads(symbol.tojson()), separators=(",", ":")),
            "args": symbol.list_arguments(),
            "aux": symbol.list_auxiliary_states(),
            "outputs": len(outputs),
            "tol": case.tolerance or half or default,
        }
        if case.attributes.get("train"):
            line["train"] = True
        lines.append(json.dumps(line))
        for index, array in enumerate(case.inputs):
            tensors[f"{name}/in/x{index}"] = array
        for index, array in enumerate(outputs):
            tensors[f"{name}/out/{index}"] = array
    target.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    Path(f"{target}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    np.savez_compressed(f"{target}.npz", **tensors)
    return len(lines)


def main(
    description: str | None, name: str, families: Iterable[ModuleType], **options: Any
) -> None:
    """Read the target folder from the command line and write the files there."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    cases = (case for family in families for case in family.cases())
    count = freeze(cases, folder / name, **options)
    print(f"{count} cases written to {folder}")
