"""Operators against the numbers that MXNet 1.9.1 computed, case by case."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import places
from case_files import case_files, case_lines, case_tensors
from mxnet_graph import read_graph
from passlib import runtime
from passlib.lowering import TypeSpec
from passlib.mxnet.lower import lower

DATA = places.DATA / "mxnet"
FILES = case_files(DATA)


tensors = functools.cache(case_tensors)


def cases() -> list[Any]:
    found = []
    for path in FILES:
        for line in case_lines(path):
            case = json.loads(line)
            family = path.parent.name if path.stem == "cases" else path.stem
            found.append(pytest.param(path, case, id=f"{family}-{case['name']}"))
    return found


def test_the_cases_are_there() -> None:
    assert DATA / "op_cases" / "cases.jsonl" in FILES
    assert len(cases()) >= 135


@pytest.mark.parametrize(("path", "case"), cases())
def test_same_numbers_as_mxnet(path: Path, case: dict[str, Any]) -> None:
    arrays = tensors(path)
    name = case["name"]
    graph = read_graph(case["symbol"])
    inputs = {key: arrays[f"{name}/in/{key}"] for key in case["args"]}
    params = {key: arrays[f"{name}/in/{key}"] for key in case["aux"]}
    specs = {key: TypeSpec(array.dtype, array.shape) for key, array in inputs.items()}
    lowered = lower(graph, specs, params, train=case.get("train", False))
    if not lowered.weights:
        onnx.checker.check_model(lowered.model, full_check=True)
    outputs = runtime.Session(lowered, runtime.Settings(threads=1)).run(inputs)
    assert len(outputs) == case["outputs"]
    for index, actual in enumerate(outputs):
        expected = arrays[f"{name}/out/{index}"]
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype
        relative = absolute = case["tol"]
        if absolute >= 1:
            relative, absolute = (0, absolute) if expected.dtype.kind in "iu" else (2e-5, 2e-5)
        np.testing.assert_allclose(actual, expected, rtol=relative, atol=absolute)
