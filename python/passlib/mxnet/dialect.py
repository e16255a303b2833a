"""The MXNet dialect: symbol files with weight files next to them."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from passlib.dialects.operator_types import Rules
from passlib.dialects.protocol import Checkpoints, Dialect, ModelData, Problem
from passlib.dialects.weights.files import is_archive, load_parts, warn_of_weights
from passlib.dialects.weights.params import ARG, AUX, join_names, split_names
from passlib.errors import FormatError
from passlib.files.regular import open_regular, read_together
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.mxnet import checkpoint, files, reading, schema
from passlib.mxnet.inference.infer import complete as complete_types
from passlib.mxnet.inference.infer import infer
from passlib.mxnet.lower import has_open_sizes, lower, lower_for_file, of_labels, open_sizes
from passlib.mxnet.lowering import load_table
from passlib.mxnet.numpy_mode import written
from passlib.mxnet.schema import registry
from passlib.mxnet.schema.registry import LibraryOperator
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.validation import validate
from passlib.mxnet.writing import write_model

_TAIL = 4096
"""How many bytes at the end of a file are searched for its version."""


@dataclass(frozen=True)
class Variant:
    """The form of the files that a model was read from, in which it is saved again.

    Attributes
    ----------
    epoch : int
        Number in the name of the weight file.
    archive : bool
        Whether the weights are an .npz archive.
    order : tuple of str
        Names in the weight file, in its order.
    """

    epoch: int = 0
    archive: bool = False
    order: tuple[str, ...] = ()


class MXNet(Dialect):
    """The conventions, files and meaning of MXNet models."""

    name = "mxnet"
    title = "MXNet"
    suffixes = (".json",)
    weight_suffixes = (".params", ".npz", ".safetensors")
    ordered = True
    hosts_operators = True
    own_attributes = frozenset((reading.ATTRIBUTES,))
    appends_suffixes = True
    graph_class = Symbol
    checkpoints: ClassVar[Checkpoints | None] = checkpoint

    default_attributes = staticmethod(reading.default_attributes)
    written_attributes = staticmethod(written)
    complete = staticmethod(registry.complete)
    count_outputs = staticmethod(registry.count_outputs)
    variables = staticmethod(registry.variables)
    auxiliary_inputs = staticmethod(registry.auxiliary_inputs)
    states = staticmethod(registry.states)
    parameters_among = staticmethod(registry.parameters_among)
    lowerings = staticmethod(load_table)
    lower = staticmethod(lower)
    lower_for_file = staticmethod(lower_for_file)
    infer = staticmethod(infer)
    complete_types = staticmethod(complete_types)
    has_open_sizes = staticmethod(has_open_sizes)
    open_sizes = staticmethod(open_sizes)

    def visible_outputs(self, node: Node) -> int:
        if node.is_variable:
            return 1
        operator = schema.find(node.op)
        visible = operator.num_visible_outputs(node.attrs) if operator is not None else 0
        return visible or max(node.num_outputs, 1)

    def labels(self, graph: PlainGraph) -> set[str]:
        return {node.name for node in of_labels(graph) if node.is_variable}

    def mutable_inputs(self, node: Node) -> Collection[int]:
        operator = schema.find(node.op)
        return () if operator is None else operator.mutable_inputs(node.attrs)

    def output_name(self, node: Node, index: int) -> str:
        if node.is_variable:
            return node.name
        operator = schema.find(node.op)
        names = operator.output_names(node.attrs) if operator is not None else ()
        if index < len(names):
            return f"{node.name}_{names[index]}"
        return f"{node.name}_output" + (str(index) if node.num_outputs > 1 else "")

    def recognises(self, path: Path) -> bool:
        symbol_path = files.named_files(path)[1]
        try:
            with open_regular(symbol_path) as file:
                head = file.read(1)
                file.seek(max(symbol_path.stat().st_size - _TAIL, 0))
                tail = file.read()
        except (FormatError, OSError):
            return False
        if symbol_path.name.endswith(files.SYMBOL_SUFFIX):
            return head == b"{"
        # The version is the last member; other programs that write NNVM's JSON have none.
        return head == b"{" and b'"mxnet_version"' in tail

    def load(
        self,
        path: Path,
        *,
        epoch: int | None = None,
        params: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> ModelData:
        self.refuse(options)
        symbol_path = files.named_files(path)[1]
        return read_together(symbol_path, lambda: self._read(path, epoch, params))

    def _read(
        self, path: Path, epoch: int | None, params: str | os.PathLike[str] | None
    ) -> ModelData:
        found = files.find(path, epoch)
        graph, attributes, _ = reading.read_file(found.symbol)
        weights = found.params if params is None else Path(params)
        if weights is None:
            return ModelData(graph, attributes, template=Variant())
        named = load_parts(weights)
        args, aux = split_names(named, str(weights), frozenset(registry.variables(graph)[1]))
        # A weight file of another name determines the content, not the form of the saved files.
        variant = Variant(found.epoch, params is None and is_archive(weights), tuple(named))
        return ModelData(graph, attributes, args, aux, variant)

    def save(
        self, path: Path, model: ModelData, *, epoch: int | None = None, **options: Any
    ) -> tuple[str, ...]:
        self.refuse(options)
        prefix, symbol_path = files.target(path)
        variant = model.template if isinstance(model.template, Variant) else Variant()
        weights = join_names(model.args, model.aux)
        order = [name for name in variant.order if name in weights]
        known = set(order)
        order += [name for name in _in_graph_order(model) if name not in known]
        target = files.params_path(prefix, variant.epoch if epoch is None else epoch)
        write_model(
            symbol_path,
            model.graph.print(pretty=True, attributes=dict(written(model.attributes))),
            target,
            {name: weights[name] for name in order} if weights else None,
            archive=variant.archive,
        )
        if weights:
            return str(symbol_path), str(target)
        warn_of_weights(symbol_path, files.epochs(prefix).values())
        return (str(symbol_path),)

    def validate(self, path: Path) -> list[Problem]:
        return validate(path, self)

    def registered_name(self, op: str) -> str:
        operator = schema.find(op)
        return op if operator is None else operator.name

    def has_operator(self, name: str) -> bool:
        return schema.find(name) is not None

    def add_operator(self, rules: Rules) -> None:
        schema.register(LibraryOperator(rules))


def _in_graph_order(model: ModelData) -> list[str]:
    """Order the weights as `HybridBlock.export` does; unused ones come last."""
    inputs = model.graph.variables({})[0]
    names = [
        ARG + n if n in model.args else AUX + n for n in inputs if n in model.args or n in model.aux
    ]
    known = set(names)
    return names + [n for n in join_names(model.args, model.aux) if n not in known]


dialect = MXNet()
