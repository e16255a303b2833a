"""Loading, saving and running ARK files around a pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import passlib
from ark_cases import ARK
from ark_files import FILES


def load(name: str) -> passlib.model.Model:
    return passlib.model.load(FILES / f"{name}.json")


def save(model: passlib.model.Model, tmp_path: Path, **options: Any) -> Path:
    path = tmp_path / "out.json"
    model.save(path, **options)
    problems = [p for p in ARK.validate(path) if p.severity == "error"]
    assert problems == []
    return path


def nodes_of(path: Path) -> list[dict[str, Any]]:
    root = json.loads(path.read_bytes())
    listed: list[dict[str, Any]] = root["Nodes"]
    return listed


def ops_of(path: Path) -> list[dict[str, Any]]:
    return [op for n in nodes_of(path) for op in (n["Ops"] if "Ops" in n else [n["Op"]])]


def feeds(path: Path, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for spec in ARK.input_types(ARK.load(path)).values():
        values = rng.uniform(0.5, 1.5, spec.shape)
        arrays.append(values.astype(spec.dtype))
    return arrays


def run(path: Path) -> list[np.ndarray]:
    model = passlib.model.load(path)
    outputs = model(*feeds(path))
    listed = outputs if isinstance(outputs, list) else [outputs]
    return [np.asarray(output, np.float64) for output in listed]
