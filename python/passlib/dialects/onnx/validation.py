"""Checks of an ONNX file, which report all problems instead of the first one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from passlib.dialects.onnx import schema, tensors
from passlib.dialects.onnx.attributes import is_graph
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.external import EXTERNAL, Folder
from passlib.dialects.onnx.messages import copy_of
from passlib.dialects.onnx.reading.file import map_file, parse_model
from passlib.dialects.onnx.reading.levels import LevelReader
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.files.optional import require

__all__ = ["validate"]

_MOST = (1 << 31) - 1
"""The highest version number that ONNX's checker accepts."""


def validate(path: Path) -> list[Problem]:
    """Check a file and report all its problems.

    passlib's own checks come first, with ONNX's checker on each node. If they find no error,
    ONNX's checker checks the whole model; problems of its strict type inference are warnings.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of Problem
        In the order of the file; places are paths in the message, such as ``graph.node[3]``.
    """
    try:
        model, payloads, _ = parse_model(map_file(path))
    except FormatError as error:
        return [Problem("error", os.fspath(path), str(error))]
    check = _Check(model, path, payloads)
    problems = check.run()
    if any(problem.severity == "error" for problem in problems):
        return problems
    return problems + _as_a_whole(path, model, payloads)


def _as_a_whole(path: Path, model: Any, payloads: dict[int, np.ndarray[Any, Any]]) -> list[Problem]:
    """Run the checks that stop at the first problem: passlib's reader and ONNX's checker."""
    try:
        LevelReader(Document(model, path), path.parent, payloads).read(model.graph)
    except (FormatError, GraphError, UnsupportedError) as error:
        return [Problem("error", "graph", str(error))]
    checker: Any = require("onnx.checker", extra="onnx")
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        checker.check_model(os.fspath(path))
    except (checker.ValidationError, ValueError, RuntimeError) as error:
        return [Problem("error", "model", _first_line(error))]
    try:
        checker.check_model(os.fspath(path), full_check=True)
    except (checker.ValidationError, inference.InferenceError, ValueError, RuntimeError) as error:
        return [Problem("warning", "model", _first_line(error))]
    return []


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


class _Check:
    """The checks that continue after a problem."""

    def __init__(self, model: Any, path: Path, payloads: dict[int, np.ndarray[Any, Any]]) -> None:
        self._model = model
        self._folder = Folder(path.parent)
        self._payloads = payloads
        self._problems: list[Problem] = []
        self._checker: Any = require("onnx.checker", extra="onnx")
        self._imports: dict[str, int] = {}
        self._functions = {(f.domain, f.name) for f in model.functions}
        self._context: Any = None

    def run(self) -> list[Problem]:
        self._check_model()
        self._context = self._make_context()
        self._check_graph(self._model.graph, "graph", frozenset())
        return self._problems

    def _error(self, place: str, message: str) -> None:
        self._problems.append(Problem("error", place, message))

    def _warn(self, place: str, message: str) -> None:
        self._problems.append(Problem("warning", place, message))

    def _check_model(self) -> None:
        onnx: Any = require("onnx", extra="onnx")
        model = self._model
        if not model.HasField("ir_version"):
            self._error("ir_version", "the version of the file format is missing")
        elif not 0 < model.ir_version <= _MOST:
            self._error("ir_version", f"there is no version {model.ir_version}")
        elif model.ir_version > onnx.IR_VERSION:
            self._warn(
                "ir_version",
                f"version {model.ir_version} is newer than {onnx.IR_VERSION}, the newest that the "
                "installed onnx knows",
            )
        for number, entry in enumerate(model.opset_import):
            if entry.domain in self._imports:
                self._error(f"opset_import[{number}]", f"domain {entry.domain!r} occurs twice")
            if not 0 < entry.version <= _MOST:
                self._error(f"opset_import[{number}]", f"there is no version {entry.version}")
            self._imports[entry.domain] = min(max(entry.version, 0), _MOST)
        if model.ir_version >= schema.NAMED_SINCE and not model.opset_import:
            self._error("opset_import", "no operator set is imported")
        keys = [entry.key for entry in model.metadata_props]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                self._error(f"metadata_props[{number}]", f"key {key!r} occurs twice")

    def _make_context(self) -> Any:
        context = self._checker.C.CheckerContext()
        context.ir_version = min(max(self._model.ir_version, 0), _MOST)
        context.opset_imports = self._imports or {"": 1}
        return context

    def _check_graph(self, graph: Any, place: str, outer: frozenset[str]) -> None:
        known: set[str] = set()
        defaults = set()
        for number, tensor in enumerate(graph.initializer):
            where = f"{place}.initializer[{number}]"
            if tensor.name in defaults:
                self._error(where, f"{tensor.name!r} is defined twice")
            defaults.add(tensor.name)
            payload = self._payloads.get(number) if place == "graph" else None
            self._check_tensor(tensor, where, payload)
        defaults.update(sparse.values.name for sparse in graph.sparse_initializer)
        for number, value in enumerate(graph.input):
            where = f"{place}.input[{number}]"
            if not value.name:
                self._error(where, "the input has no name")
            elif value.name in known:
                self._error(where, f"{value.name!r} is defined twice")
            known.add(value.name)
        known |= defaults
        for number, node in enumerate(graph.node):
            self._check_node(node, f"{place}.node[{number}]", known, outer)
        if not graph.output:
            self._error(f"{place}.output", "the graph has no outputs")
        for number, value in enumerate(graph.output):
            if value.name and value.name not in known and value.name not in outer:
                self._error(f"{place}.output[{number}]", f"nothing computes {value.name!r}")

    def _check_node(self, node: Any, place: str, known: set[str], outer: frozenset[str]) -> None:
        what = f"{node.op_type} {node.name!r}" if node.name else str(node.op_type)
        for slot, name in enumerate(node.input):
            if name and name not in known and name not in outer:
                self._error(place, f"{what}: input {slot}, {name!r}, is not defined before it")
        self._check_schema(node, place, what)
        inside = outer | known
        labels: set[str] = set()
        for value in node.attribute:
            label = f"{place}.attribute[{value.name!r}]"
            if value.name in labels:
                self._error(label, f"{what}: the attribute occurs twice")
            labels.add(value.name)
            if value.HasField("t"):
                self._check_tensor(value.t, label, None)
            if value.HasField("g"):
                self._check_graph(value.g, label, inside)
            for number, graph in enumerate(value.graphs):
                self._check_graph(graph, f"{label}[{number}]", inside)
        for name in node.output:
            if name and name in known:
                self._error(place, f"{what}: its output {name!r} is defined twice")
            known.add(name)

    def _check_schema(self, node: Any, place: str, what: str) -> None:
        named = {schema.plain(domain) for domain in self._imports}
        if self._model.ir_version >= schema.NAMED_SINCE and schema.plain(node.domain) not in named:
            self._error(place, f"{what}: operator set {node.domain!r} is not imported")
            return
        if (node.domain, node.op_type) in self._functions:
            return
        if any(map(is_graph, node.attribute)):
            return  # the checker would check the nested graphs without the names around them
        try:
            self._checker.check_node(_without_external(node), self._context)
        except (self._checker.ValidationError, ValueError, RuntimeError, TypeError) as error:
            self._error(place, f"{what}: {_first_line(error)}")

    def _check_tensor(self, tensor: Any, place: str, payload: Any) -> None:
        def look() -> object:
            if tensor.data_location == EXTERNAL:
                return self._folder.array(tensor, repr(tensor.name))
            return tensors.to_array(tensor, repr(tensor.name), payload)

        for message in _complaints(look):
            self._error(place, message)


def _without_external(node: Any) -> Any:
    """Empty the tensors with external data, which the checker could not find."""
    if all(value.t.data_location != EXTERNAL for value in node.attribute if value.HasField("t")):
        return node
    made = copy_of(node)
    for value in made.attribute:
        if value.HasField("t") and value.t.data_location == EXTERNAL:
            kind = value.t.data_type
            value.t.Clear()
            value.t.data_type = kind
            value.t.dims.append(0)
    return made


def _complaints(action: Callable[[], object]) -> Iterator[str]:
    try:
        action()
    except FormatError as error:
        yield str(error)
