"""The ARK dialect: model files and plan files."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import passlib._core as _core
from passlib.dialects.model_checks import misfit
from passlib.dialects.protocol import Dialect, ModelData, Problem
from passlib.errors import FormatError, PasslibError, UnsupportedError
from passlib.families.ark import schema
from passlib.families.ark.lowering.lower import lower
from passlib.families.ark.reading import Template, read
from passlib.families.ark.resolve import Resolver
from passlib.families.ark.tensors import numpy_type
from passlib.families.ark.validation.file import validate
from passlib.families.ark.writing.file import write
from passlib.files.regular import check_path, memory_named, open_regular, read_regular, replacing
from passlib.graph.node import VARIABLE, Node
from passlib.lowering import TypeSpec

_HEAD = 1 << 16
"""Bytes of a file that are searched to recognise it."""

_OUTPUTS = _core.OperatorTable({"null": 1, schema.TENSOR: 1}, set(schema.names()))


class Ark(Dialect):
    """The conventions, files and meaning of ARK models."""

    name = "ark"
    title = "ARK"
    suffixes = (".json",)
    part_options = MappingProxyType({"allow_removed": True})

    def complete(self, graph: _core.Graph) -> None:
        counts = []
        for op, _, nodes in graph.doubtful_outputs(_OUTPUTS):
            operator = schema.find(op)
            if operator is not None and operator.results:
                counts += [(place, operator.results) for place, present, _ in nodes if not present]
        if counts:
            graph.set_outputs(counts)
            graph.check()

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        return names  # the format does not distinguish weights from other inputs

    def visible_outputs(self, node: Node) -> int:
        operator = schema.find(node.op)
        return max(node.num_outputs, 0 if operator is not None and not operator.results else 1)

    def output_name(self, node: Node, index: int) -> str:
        return node.name if index == 0 else f"{node.name}_{index}"

    def recognises(self, path: Path) -> bool:
        try:
            with open_regular(path) as file:
                head = file.read(_HEAD)
        except (FormatError, OSError):
            return False
        if head.lstrip()[:1] != b"{" or b'"Rank"' not in head:
            return False
        return b'"Nodes"' in head or b'"TaskInfos"' in head

    def load(self, path: Path, **options: Any) -> ModelData:
        self.refuse(options)
        with memory_named(path):
            text = read_regular(path)
            try:
                graph, template = read(text)
            except FormatError as error:
                raise error.within(path) from error
        attributes = {"Rank": str(template.rank), "WorldSize": str(template.world_size)}
        return ModelData(graph, attributes, {}, {}, template)

    def save(
        self, path: Path, model: ModelData, *, allow_removed: bool = False, **options: Any
    ) -> tuple[str, ...]:
        self.refuse(options)
        weights = [*model.args, *model.aux]
        if weights:
            raise UnsupportedError(
                f"ARK files hold no data, so the array {weights[0]!r} cannot be saved; "
                "save the model without it and feed it as an input"
            )
        if not isinstance(model.template, Template):
            raise UnsupportedError(
                "only a model that was read from an ARK file can be saved as one"
            )
        text = write(model.template, model.graph, allow_removed=allow_removed)
        with replacing(check_path(path, writing=True)) as made:
            made.write_bytes(text)
        return (os.fspath(path),)

    def validate(self, path: Path) -> list[Problem]:
        return validate(read_regular(path))

    lower = staticmethod(lower)

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        resolver = Resolver()
        types = {}
        for op, name, attrs, _, _, _, _ in model.graph.nodes():
            if op == VARIABLE:
                tensor = resolver.resolve(Node(op, name, attrs)).results[0]
                dtype = numpy_type(tensor.dtype, f"input {name!r}")
                types[name] = TypeSpec(dtype, tensor.shape)
        return types

    def misfit(self, model: ModelData) -> str:
        try:
            stated = self.input_types(model)
        except PasslibError:
            return ""  # the graph is unsound by itself
        return misfit(model.args, {name: spec.shape for name, spec in stated.items()})


dialect = Ark()
