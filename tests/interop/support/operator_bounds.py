"""The limits of operators' numbers, which MXNet checks when it makes a node but does not list."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import mxnet as mx

TRIED = ("-100", "-1", "0", "1", "100")
NUMBERS = ("int", "long", "float", "double", "real_t")


def bounds_of(
    operator: str, parameters: Mapping[str, str], in_child: Callable[[Callable[[], Any]], Any]
) -> dict[str, list[float | None]]:
    """Return the least and the largest value of parameters that have any, by name.

    Parameters
    ----------
    operator : str
    parameters : mapping of str to str
        The declarations by name.
    in_child : callable
        Returns what a function returns, None where that ends the process.
    """

    def ask() -> dict[str, list[float | None]]:
        numbers = [p for p, text in parameters.items() if re.split(r"[ ,]", text)[0] in NUMBERS]
        found = {name: _bounds(operator, name) for name in numbers}
        shapes = [p for p, text in parameters.items() if text.startswith("Shape")]
        found |= {name: [1, None] for name in shapes if _is_positive(operator, name)}
        return {name: bounds for name, bounds in found.items() if bounds != [None, None]}

    return in_child(ask) or {}


def _bounds(operator: str, parameter: str) -> list[float | None]:
    for value in TRIED:
        message = _refusal(operator, {parameter: value})
        start = rf"value {re.escape(value)} for Parameter {parameter} "
        if both := re.search(start + r"exceed bound \[(.*),(.*)\]", message):
            return [_number(both[1]), _number(both[2])]
        if least := re.search(start + r"should be greater equal to (\S+)", message):
            return [_number(least[1]), None]
        if most := re.search(start + r"should be smaller equal to (\S+)", message):
            return [None, _number(most[1])]
    return [None, None]


def _is_positive(operator: str, parameter: str) -> bool:
    """Whether no size of a shape may be 0."""
    return "must be nonzero in all dimensions" in _refusal(operator, {parameter: "(0, 0)"})


def _refusal(operator: str, attrs: Mapping[str, str]) -> str:
    node = {"op": operator, "name": "n", "attrs": attrs, "inputs": []}
    graph = {"nodes": [node], "arg_nodes": [], "heads": [[0, 0, 0]], "node_row_ptr": [0, 1]}
    try:
        mx.sym.load_json(json.dumps({**graph, "attrs": {"mxnet_version": ["int", 10901]}}))
    except mx.MXNetError as error:
        return str(error)
    return ""


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value
