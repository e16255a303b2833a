"""The NNVM dialect: graph JSON of NNVM, of TVM's graph executor, and of early MXNet."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import passlib._core as _core
from passlib.dialects.model_checks import misfit
from passlib.dialects.protocol import Dialect, ModelData, Problem
from passlib.dialects.weights.files import warn_of_weights, write_parts
from passlib.dialects.weights.params import join_names
from passlib.errors import FormatError, PasslibError, UnsupportedError
from passlib.families.nnvm import schema
from passlib.families.nnvm.lowering import load_table, lower
from passlib.families.nnvm.reading.file import PLACE, Document, input_types, read_file
from passlib.families.nnvm.reading.weights import WEIGHTS_SUFFIX, read_weights, weights_path
from passlib.families.nnvm.validation import validate
from passlib.families.nnvm.writing.file import render
from passlib.families.nnvm.writing.file import write as write_tvm_params
from passlib.files.regular import Save, check_path, is_regular, open_regular, read_together
from passlib.graph.node import VARIABLE, Node
from passlib.mxnet.dialect import dialect as mxnet

_BEGINNING = re.compile(rb"\s*\{")

_KEYS = (b'"arg_nodes"', b'"heads"', b'"node_row_ptr"')
"""Top-level keys that only graphs of this family have next to ``nodes``.

One is enough: missing keys are reported when the file is read.
"""


class NNVM(Dialect):
    """The conventions, files and meaning of NNVM models.

    Operators that NNVM does not have itself are those of the MXNet dialect.
    """

    name = "nnvm"
    title = "NNVM"
    suffixes = (".json",)
    weight_suffixes = (".params",)
    own_attributes = frozenset(("dialect",))

    def complete(self, graph: _core.Graph) -> None:
        counts = []
        for op, attributes, nodes in graph.doubtful_outputs(_UNCOUNTED):
            count = self.count_outputs(op, attributes)
            stated = PLACE in attributes and op not in schema.DECLARING
            for position, present, _ in nodes:
                if count > 0 and count != present and not (stated and present > 0):
                    counts.append((position, count))
        if counts:
            graph.set_outputs(counts)
            graph.check()

    def count_outputs(self, op: str, attributes: Mapping[str, str]) -> int:
        return 1 if op == VARIABLE else schema.count_outputs(op, attributes)

    def auxiliary_inputs(self) -> Mapping[str, list[int]]:
        return {**mxnet.auxiliary_inputs(), **schema.AUXILIARY}

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        found = mxnet.parameters_among(graph, names)
        for name, _, op, _, slot in graph.uses(names):
            if slot in schema.PARAMETER_INPUTS.get(op, ()):
                found.add(name)
        return found

    labels = staticmethod(mxnet.labels)
    mutable_inputs = staticmethod(mxnet.mutable_inputs)
    registered_name = staticmethod(mxnet.registered_name)

    def visible_outputs(self, node: Node) -> int:
        return 1 if node.op in schema.HIDDEN_OUTPUTS else mxnet.visible_outputs(node)

    def output_name(self, node: Node, index: int) -> str:
        if index == 0 and node.op in schema.HIDDEN_OUTPUTS:
            return f"{node.name}_output"
        return mxnet.output_name(node, index)

    def recognises(self, path: Path) -> bool:
        try:
            if not is_regular(path) or path.stat().st_size == 0:
                return False
            with (
                open_regular(path) as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
            ):
                if not _BEGINNING.match(text) or text.find(b'"nodes"') < 0:
                    return False
                return any(text.find(key) >= 0 for key in _KEYS)
        except (FormatError, OSError, ValueError):
            return False

    def load(
        self, path: Path, *, params: str | os.PathLike[str] | None = None, **options: Any
    ) -> ModelData:
        self.refuse(options)
        return read_together(check_path(path), lambda: self._read(path, params))

    def _read(self, path: Path, params: str | os.PathLike[str] | None) -> ModelData:
        graph, attributes, document = read_file(path)
        weights = weights_path(path) if params is None else Path(params)
        if weights is None:
            return ModelData(graph, attributes, template=document)
        read = read_weights(weights, self.variables(graph)[1])
        document = replace(document, weights=read.names, mxnet_weights=read.of_mxnet)
        return ModelData(graph, attributes, read.args, read.aux, document)

    def save(self, path: Path, model: ModelData, **options: Any) -> tuple[str, ...]:
        self.refuse(options)
        text = render(model)
        document = model.template if isinstance(model.template, Document) else None
        mxnet = document is not None and document.mxnet_weights
        named = join_names(model.args, model.aux) if mxnet else {**model.args, **model.aux}
        order = [name for name in (document.weights if document else ()) if name in named]
        known = set(order)
        order += [name for name in named if name not in known]
        target = path.with_suffix(WEIGHTS_SUFFIX)
        if named and target == path:
            message = f"{path}: the weight file needs this name; save the graph under another"
            raise UnsupportedError(message)
        with Save(path, bound=True) as save:
            save.replace(path).write_bytes(text)
            arrays = {name: named[name] for name in order}
            if arrays:
                written = save.replace(target)
                if mxnet:
                    write_parts(written, arrays, archive=False)
                else:
                    write_tvm_params(written, arrays)
            elif target != path:
                # The old weights belonged to the graph that is replaced.
                save.remove(target)
        if named:
            return str(path), str(target)
        warn_of_weights(path, [target] if target != path and target.exists() else [])
        return (str(path),)

    def validate(self, path: Path) -> list[Problem]:
        return validate(path, self)

    lower = staticmethod(lower)
    lowerings = staticmethod(load_table)
    input_types = staticmethod(input_types)

    def misfit(self, model: ModelData) -> str:
        try:
            stated = input_types(model)
        except PasslibError:
            return ""  # the attributes of the graph are unsound
        return misfit({**model.args, **model.aux}, {n: spec.shape for n, spec in stated.items()})


_UNCOUNTED = _core.OperatorTable(
    {VARIABLE: 1}, set(schema.DECLARING), counting={schema.TVM_OPERATOR: "num_outputs"}
)


dialect = NNVM()
