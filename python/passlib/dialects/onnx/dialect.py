"""The ONNX dialect: ModelProto files, with their external data."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passlib import _core
from passlib.dialects.attribute_text import parse_position
from passlib.dialects.onnx import lowering, reader, storage, validation, wire
from passlib.dialects.onnx.document import ABSENT, DOCUMENT, ID, Document, document_of
from passlib.dialects.onnx.writer import assemble_for_file
from passlib.dialects.protocol import ModelData, Problem
from passlib.errors import UnsupportedError
from passlib.node import VARIABLE

if TYPE_CHECKING:
    import numpy as np

    from passlib.dialects.lowering_types import TypeSpec
    from passlib.dialects.protocol import Lowering
    from passlib.node import Node

__all__ = ["dialect"]


class _ONNX:
    name = "onnx"
    ordered = False
    own_attributes = frozenset((DOCUMENT,))
    lower: Lowering = staticmethod(lowering.lower)
    infer = staticmethod(lowering.infer)
    output_names = staticmethod(lowering.output_names)

    def default_attributes(self) -> dict[str, str]:
        return {}

    def complete(self, graph: _core.Graph) -> None:
        """Leave the numbers of outputs to the writer, which knows the file."""

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        return graph.variables({})

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        return names - set(self.data_inputs(graph))

    def data_inputs(self, graph: _core.Graph) -> list[str]:
        """Name the inputs of a graph that has come from a file: what is no constant of it.

        They stand as in the file, whatever the order of the nodes, and new ones behind them.
        """
        inputs = []
        for op, name, attrs, *_ in graph.nodes():
            if op == VARIABLE and name != ABSENT:
                first, _, number = attrs.get(ID, "input.").partition(".")
                if first == "input":
                    place = parse_position(number)
                    inputs.append((sys.maxsize if place is None else place, name))
        inputs.sort(key=lambda item: item[0])
        return [name for _, name in inputs]

    def visible_outputs(self, node: Node) -> int:
        return max(node.num_outputs, 1)

    def output_name(self, node: Node, index: int) -> str:
        return node.name if max(node.num_outputs, 1) == 1 else f"{node.name}_{index}"

    def recognises(self, path: Path) -> bool:
        try:
            return path.is_file() and wire.is_model(reader.map_file(path))
        except OSError:
            return False

    def load(self, path: Path, **options: Any) -> ModelData:
        _refuse(options)
        return reader.read(path)

    def save(self, path: Path, model: ModelData, **options: Any) -> tuple[str, ...]:
        _refuse(options)
        document = model.template
        if not isinstance(document, Document):
            document = document_of(model.attributes)
        params: dict[str, np.ndarray[Any, Any]] = {**model.args, **model.aux}
        assembled = assemble_for_file(model.graph, model.attributes, document, params)
        return storage.save(path, assembled, document)

    def validate(self, path: Path) -> list[Problem]:
        return validation.validate(path)

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        document = model.template
        if not isinstance(document, Document):
            return {}
        return lowering.input_types(document)


def _refuse(options: Mapping[str, Any] | Sequence[str]) -> None:
    if options:
        message = f"models of ONNX have no option {', '.join(map(repr, sorted(options)))}"
        raise UnsupportedError(message)


dialect = _ONNX()
