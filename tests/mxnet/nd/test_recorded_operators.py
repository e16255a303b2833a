"""Operators on arrays give MXNet's recorded numbers, as they do in symbols: a part of the cases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import case_files, case_lines, case_tensors
from mxnet_graph import read_graph
from passlib.graph.node import Node
from passlib.mxnet import schema
from passlib.mxnet.nd.operators import invoke
from passlib.nd import sampling
from places import DATA

FILES = case_files(DATA / "mxnet")
STEP = 16
"""Every so many cases of a file are run; all of them run as symbols in another test."""


def single(case: dict[str, Any]) -> Node | None:
    """Return the only operator of a case that is one, to be run on its inputs."""
    nodes = [node for node in read_graph(case["symbol"]).nodes() if not node.is_variable]
    operator = schema.find(nodes[0].op)
    fits = len(nodes) == 1 and not case.get("train") and not nodes[0].subgraphs
    return nodes[0] if fits and operator and operator.name not in sampling.OPERATORS else None


def results(path: Path) -> Iterator[tuple[dict[str, Any], list[Any], list[Any]]]:
    """Iterate over cases of a file, with their results and those of MXNet."""
    arrays = case_tensors(path)
    for line in case_lines(path)[::STEP]:
        case = json.loads(line)
        node = single(case)
        if node is None:
            continue
        given = [arrays[f"{case['name']}/in/{entry.node.name}"] for entry in node.inputs]
        attributes = {key: value for key, value in node.attrs.items() if key[:2] != "__"}
        operator = schema.find(node.op)
        assert operator is not None
        if operator.takes_any_number:
            found = invoke(node.op, *given, **attributes)
        else:
            names = operator.input_names(node.attrs)
            found = invoke(node.op, **dict(zip(names, given, strict=True)), **attributes)
        wanted = [arrays[f"{case['name']}/out/{index}"] for index in range(case["outputs"])]
        yield case, found if isinstance(found, list) else [found], wanted


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_same_numbers_as_mxnet(path: Path) -> None:
    wrong = []
    for case, found, wanted in results(path):
        tolerance = max(np.min(case["tol"]), 1e-6)
        for one, other in zip(found, wanted, strict=True):
            alike = (one.shape, one.dtype) == (other.shape, other.dtype) and np.allclose(
                np.asarray(one, np.float64),
                other.astype(np.float64),
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
            )
            wrong += [] if alike else [(case["name"], one, other)]
    assert wrong == []
