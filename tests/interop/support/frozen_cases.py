"""Run the cases of operators in a real MXNet 1.9.1, and write its results."""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import mxnet as mx
import numpy as np
from mxnet._ctypes.ndarray import _imperative_invoke
from mxnet._ctypes.symbol import _symbol_creator
from mxnet.base import _LIB, OpHandle, c_str, check_call

from cases_tensor_spec import Case

IN_PLACE = ("_npi_boolean_mask_assign_scalar", "_npi_boolean_mask_assign_tensor")
IN_ROWS = ("_square_sum",)
"""Operators that MXNet computes of sparse rows alone."""
TOLERANCE = {"float16": 2e-3}

Widest = Callable[[Iterable[float]], float]


def _handle(operator: str) -> Any:
    handle = OpHandle()
    check_call(_LIB.NNGetOpHandle(c_str(operator), ctypes.byref(handle)))
    return handle.value


def compose(case: Case, name: str) -> Any:
    """Make the symbol of one operator on variables x0, x1, ..."""
    variables = [mx.sym.Variable(f"x{i}") for i in range(len(case.inputs))]
    attributes = {k: v for k, v in case.attributes.items() if k != "train"}
    values = [str(value) for value in attributes.values()]
    handle = _handle(case.operator)
    return _symbol_creator(handle, variables, {}, list(attributes), values, name, False)


def evaluate(symbol: Any, case: Case) -> list[np.ndarray]:
    """Run the symbol and return all visible outputs."""
    given = {f"x{i}": mx.nd.array(a, dtype=a.dtype) for i, a in enumerate(case.inputs)}
    if case.operator in IN_ROWS:
        given = {name: array.tostype("row_sparse") for name, array in given.items()}
    executor = symbol.bind(
        mx.cpu(),
        {key: given[key] for key in symbol.list_arguments()},
        aux_states={key: given[key] for key in symbol.list_auxiliary_states()},
        grad_req="null",
    )
    outputs = executor.forward(is_train=case.attributes.get("train", False))
    return [output.asnumpy() for output in outputs]


def call(symbol: Any, case: Case) -> list[np.ndarray]:
    """Call the operator on arrays: a symbol's executor cannot size outputs by their data."""
    del symbol
    inputs = [mx.np.array(array, dtype=array.dtype) for array in case.inputs]
    values = [str(value) for value in case.attributes.values()]
    handle = _handle(case.operator)
    # MXNet assigns in place only.
    out = inputs[:1] if case.operator in IN_PLACE else None
    outputs = _imperative_invoke(handle, inputs, list(case.attributes), values, out, True, True)
    # An error of this operator must not surface in the next one.
    mx.nd.waitall()
    return [output.asnumpy() for output in outputs]


class Recorder:
    """The lines and tensors of a file of cases."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._tensors: dict[str, np.ndarray] = {}

    def add(
        self,
        name: str,
        symbol: Any,
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[np.ndarray],
        tolerance: float,
        *,
        train: bool = False,
    ) -> None:
        """Add a symbol with the arrays of its variables and the results."""
        line = {
            "name": name,
            "symbol": json.dumps(json.loads(symbol.tojson()), separators=(",", ":")),
            "args": symbol.list_arguments(),
            "aux": symbol.list_auxiliary_states(),
            "outputs": len(outputs),
            "tol": tolerance,
        }
        if train:
            line["train"] = True
        self.lines.append(json.dumps(line))
        for key, array in inputs.items():
            self._tensors[f"{name}/in/{key}"] = array
        for index, array in enumerate(outputs):
            self._tensors[f"{name}/out/{index}"] = array

    def write(self, target: Path) -> None:
        """Write ``<target>.jsonl.gz`` and ``<target>.npz``.

        A member of the archive costs more than most arrays: all elements of one type are in one.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(self.lines) + "\n"
        Path(f"{target}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        index = [(name, a.dtype.name, a.shape) for name, a in self._tensors.items()]
        elements: dict[str, list[np.ndarray]] = {}
        for array in self._tensors.values():
            elements.setdefault(array.dtype.name, []).append(array.ravel())
        members = {dtype: np.concatenate(parts) for dtype, parts in elements.items()}
        members["index"] = np.frombuffer(json.dumps(index).encode(), np.uint8)
        np.savez_compressed(f"{target}.npz", **members)


def freeze(
    cases: Iterable[Case],
    target: Path,
    default: float,
    narrow: Widest,
    compute: Callable[[Any, Case], list[np.ndarray]] = evaluate,
) -> Counter[str]:
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
    compute : callable
        `evaluate` or `call`.

    Returns
    -------
    Counter
        The number of cases of each operator.
    """
    counts: Counter[str] = Counter()
    recorder = Recorder()
    for case in cases:
        counts[case.operator] += 1
        name = f"{case.operator.strip('_')}_{counts[case.operator]:02d}"
        try:
            symbol = compose(case, name)
            outputs = compute(symbol, case)
        except mx.base.MXNetError as error:
            shapes = [(a.dtype.name, a.shape) for a in case.inputs]
            raise SystemExit(f"{name} {case.attributes} {shapes}: {error}") from error
        half = narrow([TOLERANCE.get(a.dtype.name, 0.0) for a in outputs] or [0.0])
        recorder.add(
            name,
            symbol,
            {f"x{index}": array for index, array in enumerate(case.inputs)},
            outputs,
            case.tolerance or half or default,
            train=bool(case.attributes.get("train")),
        )
    recorder.write(target)
    return counts


def main(
    description: str | None, name: str, families: Iterable[ModuleType], **options: Any
) -> None:
    """Read the target folder from the command line and write the files there."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    cases = (case for family in families for case in family.cases())
    count = freeze(cases, folder / name, **options)
    print(f"{count.total()} cases written to {folder}")
