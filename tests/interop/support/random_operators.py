"""Random variations of all recorded operator cases, in MXNet 1.9.1 and in passlib.

Run with passlib's Python; see the options below::

    PYTHONPATH=tests/support python tests/interop/support/random_operators.py --match '^_np'

Prints each kind of difference of each operator with the first cases of it, then the counts.
"""

from __future__ import annotations

import argparse
import json
import re
import select
import subprocess
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import environment
import passlib as pl
import places
from passlib.errors import UnsupportedError
from random_cases import Variation, decoded, encoded, recorded, variations

HERE = Path(__file__).parent
TIMEOUT = 30
NEAR = {"float16": 4e-3, "float32": 2e-4, "float64": 2e-4}


class Real:
    """The process that runs MXNet, started again when it dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, case: Variation, *, runs: bool) -> dict[str, Any] | None:
        """Return the answer to a case; None if the process died or does not answer."""
        if self.process is None:
            self.process = subprocess.Popen(
                [environment.find().python, HERE / "random_mxnet.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        question = {
            "op": case.op,
            "attrs": dict(case.attrs),
            "symbol": case.symbol(),
            "numpy": case.numpy,
            "train": case.train,
            "runs": runs,
            "inputs": [encoded(array) for array in case.inputs],
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = ""
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            if select.select([self.process.stdout], [], [], TIMEOUT)[0]:
                line = self.process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            self.process.kill()
            self.process.communicate()
            self.process = None
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer


def attempt(function: Any) -> dict[str, Any]:
    """Call a function, and return its value or its exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"value": function()}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "exception": error}


def computed(case: Variation, *, runs: bool) -> dict[str, Any]:
    """Ask passlib for what MXNet is asked for."""
    text = case.symbol()
    given = {f"x{i}": array for i, array in enumerate(case.inputs)}
    with pl.util.np_shape(case.numpy), np.errstate(all="ignore"):

        def shapes() -> Any:
            return pl.sym.load_json(text).infer_shape(**{k: a.shape for k, a in given.items()})

        def partial() -> Any:
            first = case.inputs[0].shape if case.inputs else ()
            return pl.sym.load_json(text).infer_shape_partial(x0=first) if given else None

        def types() -> Any:
            found = pl.sym.load_json(text).infer_type(**{k: a.dtype for k, a in given.items()})
            return [None if g is None else [np.dtype(t).name for t in g] for g in found]

        def run() -> Any:
            symbol = pl.sym.load_json(text)
            arrays = {k: pl.nd.array(a, dtype=a.dtype) for k, a in given.items()}
            bound = symbol.bind(
                pl.cpu(),
                {name: arrays[name] for name in symbol.list_arguments()},
                aux_states={name: arrays[name] for name in symbol.list_auxiliary_states()},
                grad_req="null",
            )
            return [np.asarray(o) for o in bound.forward(is_train=case.train)]

        found = {"shapes": attempt(shapes), "partial": attempt(partial), "types": attempt(types)}
        return {**found, "run": attempt(run)} if runs else found


def plain(found: Any) -> Any:
    """Return inferred shapes as JSON has them."""
    return json.loads(json.dumps(found))


def compare(case: Variation, real: dict[str, Any], ours: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the differences: the kind of each, and what it says."""
    differences = []
    for what in ("shapes", "types"):
        a, b = real[what], ours[what]
        if "error" in a and "error" not in b:
            known = b["value"] is not None and b["value"][0] is not None
            kind = "accepts" if known else "is silent"
            differences.append(
                (f"{what}: MXNet raises, passlib {kind}", f"{a['error'][:300]} | {b['value']}")
            )
        elif "error" in b and "error" not in a:
            differences.append((f"{what}: passlib raises", f"{b['error'][:300]} | {a['value']}"))
        elif "error" not in a and plain(a["value"]) != plain(b["value"]):
            known = a["value"] is not None and a["value"][0] is not None
            kind = "differ" if known else "known to passlib only"
            differences.append((f"{what}: {kind}", f"{a['value']} | {b['value']}"))
    a, b = real["partial"], ours["partial"]
    if "value" in a and "error" not in real["shapes"]:
        if "error" in b:
            differences.append(("partial: passlib raises", f"{b['error'][:300]} | {a['value']}"))
        elif a["value"] is not None and not _covers(plain(b["value"]), a["value"]):
            differences.append(("partial: passlib knows less", f"{a['value']} | {b['value']}"))
    if "run" not in ours:
        return differences
    a, b = real["run"], ours["run"]
    if "error" in a:
        if "error" not in b:
            differences.append(("run: MXNet raises", a["error"][:300]))
        return differences
    if "error" in b:
        kind = "refuses" if isinstance(b["exception"], UnsupportedError) else "raises"
        stable = "" if a["value"]["stable"] else " (unstable)"
        return [*differences, (f"run: passlib {kind}{stable}", b["error"][:400])]
    if not a["value"]["stable"]:
        return differences
    wanted = [decoded(record) for record in a["value"]["outputs"]]
    if len(wanted) != len(b["value"]):
        return [*differences, ("run: number of outputs", f"{len(wanted)} {len(b['value'])}")]
    for one, other in zip(wanted, b["value"], strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            text = f"{one.dtype}{one.shape} | {other.dtype}{other.shape}"
            return [*differences, ("run: type", text)]
        if not alike(one, other):
            wrong = np.argwhere(~_near(one, other).ravel()).ravel()[:4]
            text = f"at {wrong}: {one.ravel()[wrong]} | {other.ravel()[wrong]}; {case.inputs}"
            return [*differences, ("run: numbers", text)]
    return differences


def _covers(ours: Any, real: Any) -> bool:
    """Whether all sizes that MXNet knows are known, and equal."""
    for one, other in zip(real, ours, strict=True):
        for known, found in zip(one, other, strict=True):
            if known and (not found or len(known) != len(found)):
                return False
            if any(a not in (0, -1, b) for a, b in zip(known or (), found or (), strict=False)):
                return False
    return True


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether numbers are equal up to rounding."""
    return bool(_near(one, other).all())


def _near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    if one.dtype.kind in "iub":
        return np.asarray(one == other)
    near = NEAR[one.dtype.name]
    with np.errstate(all="ignore"):
        a, b = one.astype(np.float64), other.astype(np.float64)
        largest = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
        close = np.isclose(
            b, a, rtol=near, atol=near * min(max(largest, 1e-3), 1.0), equal_nan=True
        )
        return np.asarray(close)


def main() -> None:
    """Draw, ask, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--match", default="")
    parser.add_argument("--skip", default=r"^$")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--show", type=int, default=2)
    parser.add_argument("--infer", action="store_true", help="infer only")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    real = Real()
    totals: Counter[str] = Counter()
    found = recorded(places.DATA / "mxnet")
    names = [n for n in sorted(found) if re.search(given.match, n) and not re.search(given.skip, n)]
    for name in names[part::parts]:
        kinds: dict[str, list[str]] = {}
        for case in variations(found[name], given.count, given.seed + zlib.crc32(name.encode())):
            answer = real.ask(case, runs=not given.infer)
            totals["drawn"] += 1
            if answer is None:
                totals["MXNet dies"] += 1
                continue
            if "value" in answer.get("run", {}):
                totals["valid"] += 1
                totals["unstable"] += not answer["run"]["value"]["stable"]
            ours = computed(case, runs=not given.infer)
            differences = compare(case, answer, ours)
            ran = "value" in answer.get("run", {})
            if ran and not any(kind.startswith("run") for kind, _ in differences):
                totals["equal"] += 1
            for kind, text in differences:
                totals[kind] += 1
                kinds.setdefault(kind, []).append(f"    {case}\n        {text}")
        for kind, texts in kinds.items():
            print(f"{name}: {kind}: {len(texts)}", *texts[: given.show], sep="\n", flush=True)
    print(dict(totals))


if __name__ == "__main__":
    main()
