"""Models with loops, branches, 8-bit layers and regions: MXNet, passlib, exported files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import passlib as pl
import places
from case_files import case_lines, case_tensors
from environment import Environment

SCRIPT = Path(__file__).parent / "support" / "cases_graphs.py"
MODELS = (
    "foreach_lstm_0 while_rows_0 cond_nested_1 residual_naive_auto residual_none_int8 "
    "dense_channels depthwise attention two_stage position_sensitive single_shot flow speech"
)

EIGHT_BIT = frozenset(("residual_naive_auto", "residual_none_int8", "depthwise"))
"""Models whose numbers depend on the processor's 8-bit instructions in MXNet itself."""

DATA = frozenset(("data", "info", "rois", "label", "left", "right"))


FROZEN = case_tensors(places.DATA / "mxnet" / "graph_cases.jsonl")


def assert_same_inputs(name: str, case: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    for key in (*case["args"], *case["aux"]):
        place = f"{name}/in/{key}"
        np.testing.assert_array_equal(tensors[place], FROZEN[place])


@pytest.fixture(scope="module")
def recorded(
    mxnet_environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    folder = tmp_path_factory.mktemp("models")
    command = [mxnet_environment.python, SCRIPT, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    path = folder / "graph_cases.jsonl"
    cases = map(json.loads, case_lines(path))
    return {case["name"]: case for case in cases}, case_tensors(path)


@pytest.mark.parametrize("name", MODELS.split())
def test_equal_here_and_in_the_exported_file(
    recorded: tuple[dict[str, Any], dict[str, np.ndarray]], name: str, tmp_path: Path
) -> None:
    cases, tensors = recorded
    case = cases[name]
    given = {key: tensors[f"{name}/in/{key}"] for key in case["args"] + case["aux"]}
    expected = [tensors[f"{name}/out/{index}"] for index in range(case["outputs"])]
    if name in EIGHT_BIT:
        assert_same_inputs(name, case, tensors)
        expected = [FROZEN[f"{name}/out/{index}"] for index in range(case["outputs"])]
    symbol = pl.sym.load_json(case["symbol"])
    assert json.loads(symbol.tojson()) == json.loads(case["symbol"])

    arrays = {key: pl.nd.array(value, dtype=value.dtype) for key, value in given.items()}
    executor = symbol.bind(
        pl.cpu(),
        {key: arrays[key] for key in case["args"]},
        aux_states={key: arrays[key] for key in case["aux"]},
    )
    outputs = [output.asnumpy() for output in executor.forward()]

    data = {
        key for key in case["args"] if key in ("data", "info", "rois", "label", "left", "right")
    }
    model = pl.Model(
        symbol,
        {key: arrays[key] for key in case["args"] if key not in data},
        {key: arrays[key] for key in case["aux"]},
    )
    target = tmp_path / "model.onnx"
    model.to_onnx(target, shapes={key: given[key].shape for key in data})
    session = onnxruntime.InferenceSession(target)
    exported = session.run(None, {key: given[key] for key in data})
    for found in (outputs, exported):
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=case["tol"], atol=case["tol"])
