"""Lowered models as ONNX files, at any operator set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.reading import set_location
from passlib.dialects.onnx.soundness.inference import unsafe_to_infer
from passlib.dialects.onnx.writing.assembly import data_left_behind, folders_of
from passlib.errors import PasslibError, UnsupportedError
from passlib.files.optional import require
from passlib.files.regular import Save, check_path, free_name, written_from
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.lowering import Lowered
from passlib.lowering.builder import LIBRARIES, OPSET

OLDEST: Final = 13
"""The oldest operator set that models can be written in."""

_REDUCTIONS: Final = frozenset(
    f"Reduce{kind}"
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
)


def check_opset(opset: int) -> None:
    """Check that models can be written in a version of the operator set.

    Raises `TypeError` if it is no whole number; `UnsupportedError` if it is older than 13, or newer
    than the package onnx knows.
    """
    if isinstance(opset, bool) or not isinstance(opset, int):
        raise TypeError(f"opset is {opset!r}, but must be a whole number, such as {OPSET}")
    newest = int(require("onnx.defs", extra="onnx").onnx_opset_version())
    if not OLDEST <= opset <= newest:
        raise UnsupportedError(f"opset is {opset}; it can be {OLDEST} to {newest}")


def at_opset(model: Any, opset: int, source_of: Mapping[str, Node]) -> None:
    """Convert a model to another version of the operator set, in place.

    ``opset``: see `check_opset`. ``source_of``: the node that each ONNX node was made of, by its
    name, for messages. Raises `UnsupportedError` if a node needs a newer version; the message names
    it.
    """
    check_opset(opset)
    if opset == OPSET:
        return
    helper: Any = require("onnx.helper", extra="onnx")
    _Converter(model, opset, source_of).convert(model.graph)
    for domain in model.opset_import:
        if not domain.domain:
            domain.version = opset
    # Versions of other domains do not matter, and the helper does not know them.
    standard = [domain for domain in model.opset_import if not domain.domain]
    model.ir_version = helper.find_min_ir_version_for(standard)


class _Converter:
    def __init__(self, model: Any, opset: int, source_of: Mapping[str, Node]) -> None:
        self._onnx: Any = require("onnx", extra="onnx")
        self._helper: Any = require("onnx.helper", extra="onnx")
        self._numpy: Any = require("onnx.numpy_helper", extra="onnx")
        self._opset = opset
        self._source_of = source_of
        self._main = model.graph
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}

    def convert(self, graph: Any) -> None:
        """Convert the nodes of a graph and of the graphs nested in it."""
        pending = [graph]
        while pending:
            current = pending.pop()
            nodes = [new for node in current.node for new in self._converted(node)]
            for node in nodes:
                self._check(node)
            # Extending copies the nodes, so nested graphs are converted in their new place.
            del current.node[:]
            current.node.extend(nodes)
            attributes = [attribute for node in current.node for attribute in node.attribute]
            pending += [a.g for a in attributes if a.type == self._onnx.AttributeProto.GRAPH]

    def _converted(self, node: Any) -> list[Any]:
        if self._opset < 14 and node.op_type == "Reshape" and _attribute(node, "allowzero"):
            shape = self._constant(node.input[1])
            if shape is not None and 0 in shape:
                self._refuse(node, "the size 0 in a shape", 14)
            _drop(node, "allowzero")
        elif self._opset < 15 and node.op_type == "Shape" and node.attribute:
            return self._sliced_shape(node)
        elif self._opset < 18 and node.op_type == "Split":
            _drop(node, "num_outputs")
        elif self._opset < 18 and node.op_type in _REDUCTIONS and len(node.input) > 1:
            axes = self._constant(node.input[1])
            if axes is None:
                self._refuse(node, f"{node.op_type} over computed axes", 18)
            del node.input[1:]
            node.attribute.append(self._helper.make_attribute("axes", [int(a) for a in axes]))
        elif self._opset < 20 and node.op_type == "GridSample":
            for attribute in node.attribute:
                if attribute.name == "mode" and attribute.s == b"linear":
                    attribute.s = b"bilinear"
        return [node]

    def _sliced_shape(self, node: Any) -> list[Any]:
        start, end = _attribute(node, "start") or 0, _attribute(node, "end")
        whole = f"{node.output[0]}_whole"
        bounds = [start, np.iinfo(np.int64).max if end is None else end, 0]
        names = []
        for number in bounds:
            name = f"opset_index_{number}"
            if name not in self._constants:
                tensor = self._numpy.from_array(np.array([number], np.int64), name)
                self._main.initializer.append(tensor)
                self._constants[name] = tensor
            names.append(name)
        return [
            self._helper.make_node("Shape", [node.input[0]], [whole], name=f"{node.name}_whole"),
            self._helper.make_node("Slice", [whole, *names], list(node.output), name=node.name),
        ]

    def _check(self, node: Any) -> None:
        """Check that this version of the operator set has the node's operator in its form."""
        if node.domain == LIBRARIES:
            return
        defs = self._onnx.defs
        try:
            schema = defs.get_schema(node.op_type, self._opset, node.domain)
        except defs.SchemaError:
            schema = None
        if schema is not None:
            known = set(schema.attributes)
            if len(node.input) <= schema.max_input and known >= {a.name for a in node.attribute}:
                return
        newer = defs.get_schema(node.op_type, max(OPSET, self._opset), node.domain)
        self._refuse(node, node.op_type, newer.since_version)

    def _constant(self, name: str) -> np.ndarray | None:
        tensor = self._constants.get(name)
        return None if tensor is None else np.asarray(self._numpy.to_array(tensor))

    def _refuse(self, node: Any, what: str, version: int) -> NoReturn:
        source = self._source_of.get(node.name)
        where = f"ONNX node {node.name!r}" if source is None else blame(source)
        raise UnsupportedError(
            f"{where}: needs {what} as in version {version} of ONNX's operator set, which "
            f"version {self._opset} does not have; ask for opset={version} or later"
        )


def _attribute(node: Any, name: str) -> Any:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), None)


def _drop(node: Any, name: str) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


_ALIGNMENT = 4096
"""Alignment of larger arrays in data files, so that they can be mapped."""

_INLINE_LIMIT = 3 << 29
"""Weights of more bytes than this go to a separate file: a protobuf message ends at 2 GiB."""


def save_onnx(lowered: Lowered, path: str | Path, opset: int = OPSET) -> None:
    """Write a lowered model as an ONNX file, and check it.

    Weights up to 1.5 GiB go into the file; larger ones into ``<path>.data`` next to it. An existing
    file stays as it is if this fails. ``opset``: version of ONNX's operator set, from 13 on. Raises
    `FormatError` if the path is one that no file has, or leads to something other than a file;
    `UnsupportedError` if a node needs a newer version of the operator set; `PasslibError` if the
    ONNX checker objects to the model.
    """
    target = check_path(path, writing=True)
    model = _without_weights(lowered, opset)
    large = sum(array.nbytes for array in lowered.weights.values()) > _INLINE_LIMIT
    inferable = unsafe_to_infer(lowered.model) is None
    folders = folders_of(target)
    with (
        written_from(lowered.weights.values()),
        Save(target, left=lambda: data_left_behind(target, folders)) as save,
    ):
        if large:
            data = free_name(target, "data")
            partial = save.replace(data, free=True)
            _write_data(lowered, model, partial)
        else:
            _inline(lowered, model)
        file = save.replace(target)
        file.write_bytes(model.SerializeToString())
        _check(str(file), inferable, f"{target}: ")
        if large:
            # The checker had to find the data under its temporary name.
            for tensor in model.graph.initializer:
                for entry in tensor.external_data:
                    if entry.key == "location":
                        entry.value = data.name
            file.write_bytes(model.SerializeToString())


def _check(model: Any, inferable: bool, place: str = "") -> None:
    """Ask ONNX's checker about a model, or the path of one; `place` begins the message."""
    checker: Any = require("onnx.checker", extra="onnx")
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        checker.check_model(model, full_check=inferable)
    except (
        checker.ValidationError,
        inference.InferenceError,
        RuntimeError,
        ValueError,
        MemoryError,
    ) as error:
        raise PasslibError(f"{place}the ONNX checker objects: {error}") from error


def to_message(lowered: Lowered, opset: int = OPSET) -> Any:
    """Return a lowered model as an onnx.ModelProto with its weights.

    ``opset`` and errors: see `save_onnx`.
    """
    model = _without_weights(lowered, opset)
    _inline(lowered, model)
    _check(model, unsafe_to_infer(lowered.model) is None)
    return model


def _without_weights(lowered: Lowered, opset: int) -> Any:
    model = type(lowered.model)()
    model.CopyFrom(lowered.model)
    read = [value for value in model.graph.input if value.name not in lowered.unread]
    del model.graph.input[:]
    model.graph.input.extend(read)
    at_opset(model, opset, lowered.source_of)
    return model


def _inline(lowered: Lowered, model: Any) -> None:
    """Put the weights into the model."""
    for tensor in model.graph.initializer:
        if tensor.name in lowered.weights:
            array = np.ascontiguousarray(lowered.weights[tensor.name])
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _write_data(lowered: Lowered, model: Any, path: Path) -> None:
    """Write weights to a data file, one after the other."""
    with path.open("wb", buffering=0) as file:
        for tensor in model.graph.initializer:
            if tensor.name not in lowered.weights:
                continue
            given = lowered.weights[tensor.name]
            array = np.ascontiguousarray(given, given.dtype.newbyteorder("<"))
            if array.nbytes >= _ALIGNMENT:
                file.write(bytes(-file.tell() % _ALIGNMENT))
            set_location(tensor, path.name, file.tell(), array.nbytes)
            _core.write_array(array, file.fileno())
