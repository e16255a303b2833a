"""The NNVM dialect: graph JSON of NNVM, of TVM's graph executor, and of early MXNet."""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.mxnet import files as mxnet_files
from passlib.dialects.mxnet import schema, symbol_file, weight_files
from passlib.dialects.nnvm import files, operators, tvm_params
from passlib.dialects.nnvm.document import PLACE, Document, parse
from passlib.dialects.nnvm.lowering import lower
from passlib.dialects.nnvm.types import listed_types
from passlib.dialects.protocol import Dialect, ModelData, Problem
from passlib.errors import FormatError, UnsupportedError
from passlib.files.atomic import replacing
from passlib.graph.attribute_text import parse_position
from passlib.graph.node import VARIABLE, Node
from passlib.lowering import Graph, Lowered, TypeSpec

__all__ = ["dialect"]

_BEGINNING = re.compile(rb"\s*\{")

_KEYS = (b'"arg_nodes"', b'"heads"', b'"node_row_ptr"')
"""What graphs of this family, and no others, have at their top level beside nodes.

One will do, for what a file lacks is said when it is read.
"""

_WEIGHTS = ".params"
"""Ending of the file of weights that stands beside ``name.json``."""


class NNVM(Dialect):
    """The conventions, files and meaning of NNVM models."""

    name = "nnvm"
    title = "NNVM"
    own_attributes = frozenset(("dialect",))

    def complete(self, graph: _core.Graph) -> None:
        counts = []
        for position, op, attributes, present, _ in graph.doubtful_outputs(_UNCOUNTED):
            count = 1 if op == VARIABLE else operators.count_outputs(op, attributes)
            known = PLACE in attributes and present > 0 and op not in operators.DECLARING
            if count > 0 and count != present and not known:
                counts.append((position, count))
        if counts:
            graph.set_outputs(counts)
            graph.check()

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        return graph.variables(operators.auxiliary_inputs())

    def states(self, graph: _core.Graph) -> tuple[dict[str, list[int]], dict[int, list[int]]]:
        del graph  # the operator says it all
        return operators.auxiliary_inputs(), {}

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        found = symbol_file.parameters_among(graph, names)
        for name, _, op, _, slot in graph.uses(names):
            if slot in operators.PARAMETER_INPUTS.get(op, ()):
                found.add(name)
        return found

    def visible_outputs(self, node: Node) -> int:
        if node.op in operators.HIDDEN_OUTPUTS or node.is_variable:
            return 1
        operator = schema.find(node.op)
        visible = operator.num_visible_outputs(node.attrs) if operator is not None else 0
        return visible or max(node.num_outputs, 1)

    def output_name(self, node: Node, index: int) -> str:
        if node.is_variable:
            return node.name
        operator = schema.find(node.op)
        names = operator.output_names(node.attrs) if operator is not None else ()
        if index < len(names):
            return f"{node.name}_{names[index]}"
        hidden = node.op in operators.HIDDEN_OUTPUTS
        several = node.num_outputs > 1 and not (hidden and index == 0)
        return f"{node.name}_output" + (str(index) if several else "")

    def recognises(self, path: Path) -> bool:
        try:
            if not path.is_file() or path.stat().st_size == 0:
                return False
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
            ):
                if not _BEGINNING.match(text) or text.find(b'"nodes"') < 0:
                    return False
                return any(text.find(key) >= 0 for key in _KEYS)
        except (OSError, ValueError):
            return False

    def load(
        self, path: Path, *, params: str | os.PathLike[str] | None = None, **options: Any
    ) -> ModelData:
        self.refuse(options)
        try:
            graph, attributes, document = files.load(path.read_bytes())
        except FormatError as error:
            raise error.within(path) from error
        beside = path.with_suffix(_WEIGHTS)
        weights = Path(params) if params is not None else beside
        if params is None and (weights == path or not weights.is_file()):
            return ModelData(graph, attributes, template=document)
        mxnet = not tvm_params.is_params(weights)
        named = weight_files.load_parts(weights) if mxnet else tvm_params.read(weights)
        states = frozenset(self.variables(graph)[1])
        if mxnet:
            args, aux = mxnet_files.split_names(named, str(weights), states)
        else:
            args = {name: array for name, array in named.items() if name not in states}
            aux = {name: array for name, array in named.items() if name in states}
        document = replace(document, weights=tuple(named), mxnet_weights=mxnet)
        return ModelData(graph, attributes, args, aux, document)

    def save(self, path: Path, model: ModelData, **options: Any) -> tuple[str, ...]:
        self.refuse(options)
        text = files.render(model)
        template = model.template
        document = template if isinstance(template, Document) else None
        mxnet = document is not None and document.mxnet_weights
        named = (
            mxnet_files.join_names(model.args, model.aux) if mxnet else {**model.args, **model.aux}
        )
        order = [name for name in (document.weights if document else ()) if name in named]
        known = set(order)
        order += [name for name in named if name not in known]
        target = path.with_suffix(_WEIGHTS)
        if named and target == path:
            message = f"{path}: the weights of the model need this name; give the graph another"
            raise UnsupportedError(message)
        with ExitStack() as stack:
            # Both are complete before the first is renamed, at the end of the block.
            stack.enter_context(replacing(path)).write_bytes(text)
            arrays = {name: named[name] for name in order}
            if arrays and mxnet:
                written = stack.enter_context(replacing(target))
                weight_files.write_parts(written, arrays, archive=False)
            elif arrays:
                tvm_params.write(stack.enter_context(replacing(target)), arrays)
        return (str(path), str(target)) if named else (str(path),)

    def validate(self, path: Path) -> list[Problem]:
        try:
            _, findings = parse(path.read_bytes())
        except FormatError as error:
            place = f"line {error.line}, column {error.column}" if error.line else str(path)
            return [Problem("error", place, str(error))]
        return [Problem(found.severity, found.place, found.message) for found in findings]

    def lower(
        self,
        graph: Graph,
        inputs: Mapping[str, TypeSpec],
        params: Mapping[str, np.ndarray],
        *,
        train: bool = False,
    ) -> Lowered:
        return lower(graph, inputs, params, train=train)

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        if files.ATTRIBUTES not in model.attributes:
            return {}
        attributes = json.loads(model.attributes[files.ATTRIBUTES])
        listed = listed_types(attributes if isinstance(attributes, dict) else {})
        first = [0]
        if isinstance(model.template, Document):
            for outputs in model.template.graph.outputs:
                first.append(first[-1] + outputs)
        types = {}
        for op, name, own, *_rest in model.graph.nodes():
            place = parse_position(own.get(PLACE, ""))
            if op != VARIABLE or place is None or place >= len(first) - 1:
                continue
            if first[place] < len(listed):
                types[name] = listed[first[place]]
        return types


_UNCOUNTED = _core.OutputTable({VARIABLE: 1}, set(operators.DECLARING))


dialect = NNVM()
