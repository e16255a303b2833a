"""Operators with few recorded cases: variations of these, until each has eight.

Run with passlib's Python; the real MXNet answers in a process of its own::

    PYTHONPATH=tests/support python tests/interop/support/cases_varied.py tests/data/mxnet

Cases with infinities and NaN are left out, since docs/mxnet-differences.md lists their differences,
and those whose results depend on memory that MXNet does not set. What differs is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import zlib
from pathlib import Path

import numpy as np

from passlib.mxnet import schema
from passlib.mxnet.lowering import load_table
from random_cases import Variation, decoded, recorded, variations
from random_operators import NEAR, Real, compare, computed

WANTED = 8
TRIALS = 60
NAME = "varied_cases"


def by_operator(folder: Path) -> dict[str, list[Variation]]:
    """Return the recorded cases outside NumPy mode by the registered name of their operator."""
    table = load_table()
    found: dict[str, list[Variation]] = {}
    for name, cases in recorded(folder).items():
        operator = schema.find(name)
        assert operator is not None
        own = [case for case in cases if not case.numpy]
        if own and table.find(name) is not None:
            found.setdefault(operator.name, []).extend(own)
    return found


def drawn(
    real: Real, cases: list[Variation], name: str
) -> list[tuple[Variation, list[np.ndarray]]]:
    """Draw the missing cases of one operator, with MXNet's results."""
    kept: list[tuple[Variation, list[np.ndarray]]] = []
    seen = {str(case) for case in cases}
    for case in variations(cases, TRIALS, zlib.crc32(name.encode())):
        if len(kept) + len(cases) >= WANTED:
            break
        finite = all(np.isfinite(array).all() for array in case.inputs if array.dtype.kind == "f")
        if case.numpy or str(case) in seen or not finite:
            continue
        answer = real.ask(case, runs=True)
        if answer is None or not answer["run"].get("value", {}).get("stable"):
            continue
        differences = [d for d in compare(case, answer, computed(case, runs=True)) if "run" in d[0]]
        for kind, text in differences:
            print(f"{case}: {kind}: {text[:200]}")
        if not differences:
            seen.add(str(case))
            kept.append((case, [decoded(record) for record in answer["run"]["value"]["outputs"]]))
    return kept


def main() -> None:
    """Draw the cases of all operators that have too few, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    real, lines, arrays = Real(), [], {}
    for stale in (f"{NAME}.jsonl.gz", f"{NAME}.npz"):
        (folder / stale).unlink(missing_ok=True)
    for operator, cases in sorted(by_operator(folder).items()):
        for number, (case, outputs) in enumerate(drawn(real, cases, operator)):
            name = f"{operator.strip('_')}_varied_{number}"
            near = max((NEAR.get(output.dtype.name, 2e-4) for output in outputs), default=2e-4)
            variables = [f"x{index}" for index in range(len(case.inputs))]
            line = {
                "name": name,
                "symbol": case.symbol(),
                "args": [v for i, v in enumerate(variables) if i not in case.auxiliary],
                "aux": [v for i, v in enumerate(variables) if i in case.auxiliary],
                "outputs": len(outputs),
                "tol": near,
                **({"train": True} if case.train else {}),
            }
            lines.append(json.dumps(line))
            arrays |= {f"{name}/in/{v}": a for v, a in zip(variables, case.inputs, strict=True)}
            arrays |= {f"{name}/out/{index}": output for index, output in enumerate(outputs)}
    text = "".join(line + "\n" for line in lines).encode()
    (folder / f"{NAME}.jsonl.gz").write_bytes(gzip.compress(text, mtime=0))
    members: dict[str, list[np.ndarray]] = {}
    for array in arrays.values():
        members.setdefault(array.dtype.name, []).append(array.ravel())
    index = json.dumps([(name, a.dtype.name, a.shape) for name, a in arrays.items()]).encode()
    whole = {dtype: np.concatenate(parts) for dtype, parts in members.items()}
    np.savez_compressed(folder / f"{NAME}.npz", index=np.frombuffer(index, np.uint8), **whole)
    print(len(lines), "cases")


if __name__ == "__main__":
    main()
