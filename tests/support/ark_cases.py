"""Runs of ARK files by passlib and by the reference machine, compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import passlib
from ark_files import genuine
from ark_reference import Machine

ARK = passlib.dialects.find("ark")

TOLERANCES = {"FP32": (1e-5, 1e-5), "FP16": (1e-2, 1e-2), "BF16": (2e-2, 2e-2)}


def values(dtype: np.dtype, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
    return rng.uniform(-1.5, 1.5, shape).astype(dtype)


def small(dtype: np.dtype, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return values that neither saturate a softmax nor overflow a half."""
    array = values(dtype, shape, seed)
    return array if dtype.kind in "iu" else array * np.asarray(0.2).astype(dtype)


def positive(dtype: np.dtype, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.abs(values(dtype, shape, seed)) + np.asarray(1).astype(dtype)


def described(node: Any, index: int = 0) -> dict[str, Any]:
    tensor: dict[str, Any] = json.loads(node.attrs["__outputs__"])[index]
    return tensor


def agree(path: Path, make: Any = values, seed: int = 0) -> int:
    """Run a file by passlib and on the machine, and compare all outputs; return their number."""
    model = passlib.model.load(path)
    machine = Machine(json.loads(path.read_bytes()))
    types = ARK.input_types(ARK.load(path))
    feeds = {}
    by_name = {node.name: node for node in model.symbol.nodes()}
    for number, name in enumerate(model.inputs):
        feeds[name] = make(types[name].dtype, types[name].shape, seed + number)
        machine.window(described(by_name[name]))[...] = feeds[name]
    machine.run()
    outputs = model.run(feeds)
    for entry, (name, output) in zip(model.symbol.entries, outputs.items(), strict=True):
        tensor = described(entry.node, entry.index)
        expected = machine.window(tensor)
        assert output.dtype == expected.dtype
        assert output.shape == expected.shape
        rtol, atol = TOLERANCES.get(tensor["DataType"], (0, 0))
        atol *= max(1.0, float(np.abs(expected.astype(np.float64)).max()))
        np.testing.assert_allclose(
            np.asarray(output, np.float64), expected.astype(np.float64), rtol, atol, err_msg=name
        )
    return len(outputs)


def computes_alone(path: Path) -> bool:
    text = path.read_text()
    remote = any(f'"{op}' in text for op in ("Send", "Recv", "DeviceSync"))
    communicates = any(
        f'"Type":{space}"{op}' in text
        for op in ("Send", "Recv", "SendPacket", "RecvPacket", "RecvReduceSend", "DeviceSync")
        for space in ("", " ")
    )
    assert remote or not communicates
    bits = path.name.removeprefix("gen_head-").startswith("casts")
    return not communicates and not bits


SMALL = [
    path
    for path in genuine(plans=False)
    if computes_alone(path) and not path.name.startswith("model_")
]


def given_small(model: passlib.model.Model, path: Path) -> list[np.ndarray]:
    types = ARK.input_types(ARK.load(path))
    return [small(types[n].dtype, types[n].shape, i) for i, n in enumerate(model.inputs)]
