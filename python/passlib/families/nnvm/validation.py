"""Validation of graph JSON, its operators, and the weights next to it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import passlib._core as _core
from passlib.dialects.model_checks import (
    check_end,
    check_names,
    check_shapes,
    file_problem,
    unknown_operators,
)
from passlib.dialects.protocol import Dialect, ModelData, Problem
from passlib.errors import FormatError, PasslibError
from passlib.families.nnvm.lowering import load_table
from passlib.families.nnvm.reading.file import input_types, parse, read_file
from passlib.families.nnvm.reading.weights import bytes_left, read_weights, weights_path
from passlib.families.nnvm.schema import NOT_LOWERED, TVM_OPERATOR
from passlib.files.regular import check_whole, memory_named, read_regular
from passlib.graph.node import VARIABLE
from passlib.mxnet.dialect import dialect as mxnet

_CREATING: Final = re.compile(r"_|random_|(arange|full|normal|ones|uniform|zeros)$")
"""The beginning of names of operators that may have no inputs, those of MXNet included."""


def validate(path: Path, dialect: Dialect) -> list[Problem]:
    """Check a file, and report all findings in its order; those of the weights come last.

    An operator that neither NNVM nor MXNet has is a warning: other programs have their own.
    """
    with memory_named(path):
        text = read_regular(path)
        try:
            check_whole(path)
            _, findings = parse(text)
        except FormatError as error:
            place = f"line {error.line}, column {error.column}" if error.line else str(path)
            return [Problem("error", place, str(error))]
        problems = [Problem(found.severity, found.place, found.message) for found in findings]
        if any(found.severity == "error" and not found.bearable for found in findings):
            return problems
        try:
            graph, attributes, document = read_file(path)
        except PasslibError as error:
            return [*problems, file_problem(path, error)]
    problems += _operators(graph)
    weights = weights_path(path)
    if weights is None:
        return problems
    try:
        read = read_weights(weights, dialect.variables(graph)[1])
        left = bytes_left(weights)
    except (PasslibError, OSError) as error:
        return [*problems, file_problem(weights, error)]
    model = ModelData(graph, attributes, read.args, read.aux, document)
    place = os.fspath(weights)
    return [*problems, *check_end(place, left), *_weights(place, model, dialect)]


def _operators(graph: _core.Graph) -> Iterator[Problem]:
    table = load_table()

    def known(name: str) -> bool:
        own = name == TVM_OPERATOR or name.startswith("__") or name in NOT_LOWERED
        return own or mxnet.has_operator(name) or table.find(name) is not None

    for found in unknown_operators(graph, known, table.operators):
        message = f"{found.name!r} is no known operator"
        if found.nearest is not None:
            message += f"; did you mean {found.nearest!r}?"
        yield Problem("warning", found.place, message)
    for op, name, _, inputs, *_ in graph.nodes():
        creates = op in (VARIABLE, TVM_OPERATOR) or _CREATING.match(op)
        if not inputs and not creates and known(op):
            yield Problem("warning", name, f"operator {op!r} has no inputs")


def _weights(place: str, model: ModelData, dialect: Dialect) -> Iterator[Problem]:
    names, states = dialect.variables(model.graph)
    known = dialect.parameters_among(model.graph, set(names))
    parameters = [name for name in names if name in known]
    weights = {**model.args, **model.aux}
    yield from check_names(place, weights.keys(), [*parameters, *states], {*names, *states})
    stated = {name: spec.shape for name, spec in input_types(model).items()}
    yield from check_shapes(place, weights, stated)
