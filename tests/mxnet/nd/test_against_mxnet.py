"""Methods, operators and functions of arrays give what MXNet 1.9.1 gives, recorded in a file.

`tests/interop/support/array_cases.py mxnet tests/data/mxnet/array_cases.json` records it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import passlib
from array_cases import EXPRESSIONS, REFUSED, evaluate, refuses
from places import DATA

RECORDED = json.loads((DATA / "mxnet/array_cases.json").read_text("utf-8"))
TOLERANCES = {"float16": 5e-3, "float32": 1e-5, "float64": 1e-6}
"""MXNet computes some functions of float64 in float32."""


def numbers(values: list[str]) -> np.ndarray[Any, Any]:
    return np.array([float({"True": 1, "False": 0}.get(text, text)) for text in values])


def equal(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(map(equal, found, wanted))
    if not isinstance(wanted, dict):
        return bool(found == wanted)
    if not isinstance(found, dict) or any(found[k] != wanted[k] for k in ("dtype", "shape")):
        return False
    tolerance = TOLERANCES.get(wanted["dtype"], 0)
    left, right = numbers(found["values"]), numbers(wanted["values"])
    return np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_equal_to_mxnet(kind: str) -> None:
    wrong = {}
    for text in EXPRESSIONS[kind]:
        try:
            found = evaluate(passlib, text)
        except Exception as error:  # reported with the expression
            found = repr(error)
        if not equal(found, RECORDED[text]):
            wrong[text] = found, RECORDED[text]
    assert wrong == {}


def test_every_result_is_recorded() -> None:
    assert sorted(RECORDED) == sorted({text for group in EXPRESSIONS.values() for text in group})


@pytest.mark.parametrize("text", REFUSED)
def test_refused_as_by_mxnet(text: str) -> None:
    assert refuses(passlib, text)
