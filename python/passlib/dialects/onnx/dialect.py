"""The ONNX dialect: ModelProto files with their external data."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx import library_nodes, schema
from passlib.dialects.onnx.attributes import ABSENT, DOCUMENT, ID
from passlib.dialects.onnx.reading import (
    OUTPUTS,
    STATED,
    Document,
    Present,
    Reference,
    document_of,
    map_file,
    output_names,
    read,
    read_bytes,
    selection,
    stated_text,
)
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.dialects.operator_types import Rules
from passlib.dialects.protocol import Described, Dialect, ModelData, Problem
from passlib.errors import GraphError
from passlib.files.regular import check_path, read_together
from passlib.graph.attributes import parse_position
from passlib.graph.node import Entry, Node
from passlib.graph.plain import WITH_GRAPHS, PlainGraph
from passlib.lowering import Graph, Lowered, Shape, TypeSpec


class ONNX(Dialect):
    """The conventions, files and meaning of ONNX models."""

    name = "onnx"
    title = "ONNX"
    suffixes = (".onnx",)
    runs_open_sizes = True
    names_outputs = True
    saves_computed = True
    omits_attributes = True
    own_attributes = frozenset((DOCUMENT, OUTPUTS, STATED))

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        return names - set(self.data_inputs(graph))

    def data_inputs(self, graph: _core.Graph) -> list[str]:
        """Return the names of a graph's inputs, constants excluded.

        They are in the order of the file, whatever the order of the nodes; new ones are last.
        """
        inputs = []
        for name, key in graph.variables_with(ID, "input"):
            if name != ABSENT:
                first, _, number = (key or "input.").partition(".")
                if first == "input":
                    place = parse_position(number)
                    inputs.append((sys.maxsize if place is None else place, name))
        inputs.sort(key=lambda item: item[0])
        return [name for _, name in inputs]

    def output_name(self, node: Node, index: int) -> str:
        return node.name if max(node.num_outputs, 1) == 1 else f"{node.name}_{index}"

    def output_names(self, graph: PlainGraph) -> list[str]:
        attributes = graph.attributes
        return output_names(graph.graph, attributes, document_of(attributes))

    def with_output_names(self, graph: _core.Graph, names: Sequence[str]) -> dict[str, str]:
        return {OUTPUTS: Present.of(graph, names).text()}

    def selected(self, attributes: Mapping[str, str]) -> dict[str, str]:
        """Return the attributes of a selection of outputs: these have the names of their values."""
        return selection(attributes)

    def stating(
        self, attributes: Mapping[str, str], types: Mapping[str, TypeSpec]
    ) -> dict[str, str]:
        return {**attributes, STATED: stated_text(types)}

    def own_after(self, before: PlainGraph, after: _core.Graph) -> dict[str, str]:
        """Return the attributes of the file and of the outputs, which keep their present names."""
        own = super().own_after(before, after)
        if DOCUMENT not in own or before.graph.heads_with(ID) == after.heads_with(ID):
            return own
        document = document_of(before.attributes)
        try:
            names = output_names(before.graph, own, document)
            own[OUTPUTS] = Present.of(before.graph, names).text()
            names = output_names(after, own, document)
        except GraphError:  # as saving and running will report
            return own
        own[OUTPUTS] = Present.of(after, names).text()
        return own

    def recognises(self, path: Path) -> bool:
        try:
            return path.is_file() and _core.is_onnx(map_file(path))
        except OSError:
            return False

    def load(self, path: Path, **options: Any) -> ModelData:
        if options:
            self.refuse(options)
        return read_together(check_path(path), lambda: read(path), bound=False)

    def load_bytes(self, data: bytes, **options: Any) -> ModelData:
        if options:
            self.refuse(options)
        return read_bytes(data)

    def check_source(self, attributes: Mapping[str, str]) -> None:
        found = attributes.get(DOCUMENT)
        if isinstance(found, Reference):
            for data in found.document.folder.mapped:
                data.check()

    def save(
        self,
        path: Path,
        model: ModelData,
        *,
        external_data: bool | None = None,
        location: str | None = None,
        size_threshold: int | None = None,
        opset: int | None = None,
        **options: Any,
    ) -> tuple[str, ...]:
        from passlib.dialects.onnx.writing import saving
        from passlib.dialects.onnx.writing.assembly import placement_of

        if options:
            self.refuse(options)
        check_path(path, writing=True)
        placement = placement_of(external_data, location, size_threshold)
        return saving.save(path, model, placement, opset)

    # Modules that write, check or run models are imported on use: loading takes half as long.

    def validate(self, path: Path) -> list[Problem]:
        from passlib.dialects.onnx.validation import validate

        return validate(path)

    def lower(
        self,
        graph: Graph,
        inputs: Mapping[str, TypeSpec],
        params: Mapping[str, np.ndarray],
        *,
        train: bool = False,
    ) -> Lowered:
        from passlib.dialects.onnx.lowering.model import lower

        return lower(graph, inputs, params, train=train)

    def infer(
        self,
        graph: Graph,
        shapes: Mapping[str, Sequence[int] | Shape],
        types: Mapping[str, np.dtype] | None = None,
        *,
        default_dtype: np.dtype | None = None,
        train: bool = False,
    ) -> Mapping[Node, tuple[TypeSpec, ...]]:
        from passlib.dialects.onnx.lowering.inference import infer

        return infer(graph, shapes, types, default_dtype=default_dtype, train=train)

    def refuses_to_save(self, model: ModelData) -> bool:
        from passlib.dialects.onnx.writing.saving import is_refused

        # The other nodes all run, so that a model in which one cannot fails before and after.
        nested = any(True for _ in model.graph.nodes_with(WITH_GRAPHS))
        template = model.template
        document = template if isinstance(template, Document) else document_of(model.attributes)
        return (nested or document.file.refers_to_results) and is_refused(model)

    def misfit(self, model: ModelData) -> str:
        from passlib.dialects.onnx.lowering.model import misfit

        return misfit(model)

    def known_texts(self, graph: Graph, params: Mapping[str, Any]) -> list[tuple[str, str]] | None:
        from passlib.dialects.onnx.lowering.types import known_texts

        return known_texts(graph, params)

    def described(
        self, graph: PlainGraph, model: ModelData
    ) -> dict[Node, Sequence[Described | None]]:
        """Return the types of all outputs; open dimensions are in terms of named ones."""
        document = document_of(graph.attributes)
        facts = _core.GraphFacts(
            document.file, graph.graph, document.imports, dict(model.args), stated=True
        )
        known = zip(graph.nodes(), facts.listed(), facts.printed(), strict=True)
        return {
            node: [
                _described(node.name, fact, text) if text else None
                for fact, text in zip(found, texts, strict=True)
            ]
            for node, found, texts in known
        }

    def interface(
        self, graph: PlainGraph, model: ModelData
    ) -> tuple[list[Described], list[Described]]:
        document = document_of(graph.attributes)
        facts = _core.GraphFacts(
            document.file, graph.graph, document.imports, dict(model.args), stated=True
        )
        known, texts = facts.listed(), facts.printed()
        places = {node: place for place, node in enumerate(graph.nodes())}

        def described(name: str, entry: Entry) -> Described:
            place = places[entry.node]
            return _described(name, known[place][entry.index], texts[place][entry.index])

        variables = {node.name: Entry(node, 0) for node in places if node.is_variable}
        names = [name for name in self.data_inputs(graph.graph) if name in variables]
        inputs = [described(name, variables[name]) for name in names]
        outputs = list(map(described, graph.list_outputs(), graph.entries))
        if any(each.dtype is None for each in outputs):  # what unknown operators compute
            stated = super().interface(graph, model)[1]
            outputs = [
                one if one.dtype else other for one, other in zip(outputs, stated, strict=True)
            ]
        return inputs, outputs

    def doubts(self, graph: PlainGraph) -> list[str]:
        document = document_of(graph.attributes)
        version, found = document.imports.get("", 0), []
        if version > _ORDINARY_VERSION:
            newest = schema.newest()
            if version > newest:
                found.append(
                    f"its operator set is {version}, and the newest that the installed onnx knows "
                    f"is {newest}"
                )
        if not document.file.has_functions:
            unknown = _core.unknown_operators(graph.graph)
            found += [
                f"ONNX has no operator {op} (node {node!r})"
                for op, node in unknown.items()
                if op not in library_nodes.OPERATORS
            ]
        return found

    def bytes_read(self, model: ModelData) -> int:
        document = document_of(model.attributes)
        files = (document.data, *document.folder.mapped)
        return sum({id(file): len(file) for file in files}.values())

    def about(self, model: ModelData) -> dict[str, Any]:
        document = document_of(model.attributes)
        sets = {domain or "ai.onnx": version for domain, version in document.import_list}
        producer = " ".join(filter(None, document.file.producer))
        nested = _core.nested_bytes(document.file, model.graph)
        return {
            "opsets": sets,
            "ir_version": document.ir_version,
            **({"producer": producer} if producer else {}),
            **({"nested_weight_bytes": nested} if nested else {}),
        }

    def complete(self, graph: _core.Graph) -> None:
        if library_nodes.OPERATORS:
            _core.claim_library_nodes(graph, library_nodes.OPERATORS.keys())

    def add_operator(self, rules: Rules) -> None:
        library_nodes.add(rules)

    def has_functions(self, graph: PlainGraph) -> bool:
        found = graph.attributes.get(DOCUMENT)
        return isinstance(found, Reference) and found.document.file.has_functions

    def passed_on(self, graph: PlainGraph) -> frozenset[str]:
        from passlib.dialects.onnx.lowering.types import other_inputs

        return other_inputs(graph)

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        from passlib.dialects.onnx.lowering.types import input_types

        document = model.template
        if not isinstance(document, Document):
            document = document_of(model.attributes)
        return input_types(model.graph, document)

    def output_types(self, model: ModelData) -> dict[str, TypeSpec]:
        from passlib.dialects.onnx.lowering.types import spec_of

        document = model.template
        if not isinstance(document, Document):
            return {}
        return {each.name: spec_of(each.type) for each in document.outline.graph.output}


_ORDINARY_VERSION: Final = 21
"""Package onnx is asked for the newest operator set only where it may be exceeded."""

_UNNAMED: Final = re.compile(r"[^\s()]+/\d+/\d+:\d+")
"""How facts call an open size of an input that has no name in the file."""


def _described(name: str, fact: Any, text: str) -> Described:
    code, wrappers, sizes, *_ = fact
    if wrappers:
        return Described(name, text, None)
    if not code:
        return Described(name, None, None)
    dtype = ELEMENT_TYPES.get(code, text.partition("[")[0])
    return Described(name, dtype, None if sizes is None else [_named(size) for size in sizes])


def _named(size: int | str | None) -> int | str | None:
    """Return a size, without names that the file does not have."""
    if not isinstance(size, str) or size == "?" or _UNNAMED.fullmatch(size):
        return size if isinstance(size, int) else None
    return _UNNAMED.sub("?", size)


dialect = ONNX()
