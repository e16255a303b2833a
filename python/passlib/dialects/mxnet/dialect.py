"""The MXNet dialect: symbol files with their weights beside them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.mxnet import files, legacy, schema, symbol_file, weight_files
from passlib.dialects.mxnet.inference.infer import infer, open_sizes
from passlib.dialects.mxnet.library_operator import LibraryOperator
from passlib.dialects.mxnet.lower import lower
from passlib.dialects.operator_rules import Rules
from passlib.dialects.protocol import Dialect, ModelData, Problem
from passlib.errors import FormatError, GraphError
from passlib.graph.native import freeze, thaw
from passlib.graph.node import Node
from passlib.lowering import Graph, Lowered, Shape, TypeSpec
from passlib.lowering.walk import Overriding

__all__ = ["Variant", "dialect", "read_symbol"]

_TAIL = 4096
"""How much of the end of a file is looked at to recognise it."""


@dataclass(frozen=True)
class Variant:
    """Which of the forms of MXNet's files a model was read from, so that it is saved in the same.

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


def read_symbol(text: str | bytes) -> tuple[_core.Graph, dict[str, str], int]:
    """Read a symbol file of any version, and upgrade an old one by MXNet's rules.

    Returns
    -------
    graph : _core.Graph
    attributes : dict of str to str
        Top-level attributes as JSON by key.
    version : int
        The version that wrote it.

    Raises
    ------
    FormatError
        The text is no symbol; the message has line and column.
    """
    graph, attributes, version = symbol_file.read(text)
    if version < symbol_file.VERSION:
        _, entries = thaw(graph, lambda nested: nested)
        graph = freeze(legacy.upgrade(entries, version), lambda nested: nested)
        symbol_file.complete(graph)
        attributes = symbol_file.default_attributes()
    return graph, attributes, version


class MXNet(Dialect):
    """The conventions, files and meaning of MXNet models."""

    name = "mxnet"
    title = "MXNet"
    ordered = True
    hosts_operators = True
    own_attributes = frozenset((symbol_file.ATTRIBUTES,))

    def default_attributes(self) -> dict[str, str]:
        return symbol_file.default_attributes()

    def complete(self, graph: _core.Graph) -> None:
        symbol_file.complete(graph)

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        return symbol_file.variables(graph)

    def states(self, graph: _core.Graph) -> tuple[dict[str, list[int]], dict[int, list[int]]]:
        return symbol_file.states(graph)

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        return symbol_file.parameters_among(graph, names)

    def visible_outputs(self, node: Node) -> int:
        if node.is_variable:
            return 1
        operator = schema.find(node.op)
        visible = operator.num_visible_outputs(node.attrs) if operator is not None else 0
        return visible or max(node.num_outputs, 1)

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
        try:
            found = files.find(path)
            with found.symbol.open("rb") as file:
                head = file.read(1)
                file.seek(max(found.symbol.stat().st_size - _TAIL, 0))
                tail = file.read()
        except OSError:
            return False
        if found.symbol.name.endswith(files.SYMBOL_SUFFIX):
            return head == b"{"
        # The version stands last; other programs that write NNVM's JSON have none.
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
        found = files.find(path, epoch)
        graph, attributes, _ = _read_file(found.symbol)
        weights = found.params if params is None else Path(params)
        if weights is None:
            return ModelData(graph, attributes, template=Variant())
        named = weight_files.load_parts(weights)
        auxiliary = frozenset(self.variables(graph)[1])
        args, aux = files.split_names(named, str(weights), auxiliary)
        # Of weights in a file of another name, only their content is taken over.
        variant = Variant(found.epoch, params is None and files.is_archive(weights), tuple(named))
        return ModelData(graph, attributes, args, aux, variant)

    def save(
        self, path: Path, model: ModelData, *, epoch: int | None = None, **options: Any
    ) -> tuple[str, ...]:
        self.refuse(options)
        prefix = os.fspath(path).removesuffix(files.SYMBOL_SUFFIX)
        variant = model.template if isinstance(model.template, Variant) else Variant()
        weights = files.join_names(model.args, model.aux)
        order = [name for name in variant.order if name in weights]
        known = set(order)
        order += [name for name in _in_graph_order(model) if name not in known]
        target = files.params_path(prefix, variant.epoch if epoch is None else epoch)
        written = files.symbol_path(prefix)
        weight_files.write_model(
            written,
            model.graph.print(pretty=True, attributes=dict(model.attributes)),
            target if weights else None,
            {name: weights[name] for name in order},
            archive=variant.archive,
        )
        return (str(written), str(target)) if weights else (str(written),)

    def validate(self, path: Path) -> list[Problem]:
        try:
            found = files.find(path)
            _read_file(found.symbol)
        except (FormatError, GraphError) as error:
            return [Problem("error", os.fspath(path), str(error))]
        return []

    def lower(
        self,
        graph: Graph,
        inputs: Mapping[str, TypeSpec],
        params: Mapping[str, np.ndarray],
        *,
        train: bool = False,
    ) -> Lowered:
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
        return infer(graph, shapes, types, default_dtype=default_dtype, train=train)

    def open_sizes(
        self, graph: Graph, known: Mapping[str, TypeSpec], *, train: bool = False
    ) -> Overriding:
        return open_sizes(graph, known, train=train)

    def has_operator(self, name: str) -> bool:
        return schema.find(name) is not None

    def add_operator(self, rules: Rules) -> None:
        schema.register(LibraryOperator(rules))


def _read_file(path: Path) -> tuple[_core.Graph, dict[str, str], int]:
    try:
        return read_symbol(path.read_bytes())
    except FormatError as error:
        raise error.within(path) from error


def _in_graph_order(model: ModelData) -> list[str]:
    """Order the weights as `HybridBlock.export` does; those that no node uses come last."""
    inputs = model.graph.variables({})[0]
    names = [
        files.ARG + n if n in model.args else files.AUX + n
        for n in inputs
        if n in model.args or n in model.aux
    ]
    known = set(names)
    return names + [n for n in files.join_names(model.args, model.aux) if n not in known]


dialect = MXNet()
