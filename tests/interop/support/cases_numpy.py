"""Ask a real MXNet 1.9.1 for the results of its NumPy operators, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_numpy.py tests/data/mxnet/numpy [family ...]

writes ``<family>.jsonl.gz`` and ``<family>.npz`` for each family, in the form that cases_tensor.py
describes, and prints the number of cases of each operator. The specifications are in
``cases_numpy_<family>.py``.
"""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

# oneDNN refuses element types that MXNet's own code computes.
os.environ["MXNET_MKLDNN_ENABLED"] = "0"

import mxnet as mx

import frozen_cases

FAMILIES = sorted(path.stem[12:] for path in Path(__file__).parent.glob("cases_numpy_*.py"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("families", nargs="*")
    given = parser.parse_args()
    mx.npx.set_np()
    for family in given.families or FAMILIES:
        cases = importlib.import_module(f"cases_numpy_{family}").cases()
        target = given.folder / family
        found = frozen_cases.freeze(cases, target, 1e-5, max, frozen_cases.call)
        print(f"{family}: {found.total()} cases of {len(found)} operators")
        print("  " + ", ".join(f"{name} {count}" for name, count in sorted(found.items())))
