"""Files of operator cases: JSON lines, gzipped if large, with arrays in an .npz next to them."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np


def case_files(folder: Path) -> list[Path]:
    """Find the files below a folder, named as if none were gzipped."""
    plain = folder.rglob("*cases.jsonl")
    zipped = (path.with_suffix("") for path in folder.rglob("*cases.jsonl.gz"))
    return sorted({*plain, *zipped})


def case_lines(path: Path) -> list[str]:
    """Read the lines of a file that may be gzipped."""
    if path.exists():
        return path.read_text(encoding="utf-8").splitlines()
    return gzip.decompress(path.with_name(path.name + ".gz").read_bytes()).decode().splitlines()


def case_tensors(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays that belong to a file.

    An archive that lists arrays in ``index`` holds the elements of all of one type in one member.
    """
    archive = path.with_suffix(".npz")
    with np.load(archive if archive.exists() else path.with_name("tensors.npz")) as file:
        if "index" not in file:
            return dict(file)
        elements = dict(file)
    tensors, taken = {}, dict.fromkeys(elements, 0)
    for name, dtype, shape in json.loads(elements["index"].tobytes()):
        start, size = taken[dtype], math.prod(shape)
        tensors[name] = elements[dtype][start : start + size].reshape(shape)
        taken[dtype] = start + size
    return tensors
