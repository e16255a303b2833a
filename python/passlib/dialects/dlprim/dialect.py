"""The DLPrimitives dialect: network JSON with .dlp or .h5 weights beside it."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.dlprim import files, notes
from passlib.dialects.dlprim.checks import check_network
from passlib.dialects.dlprim.findings import Findings
from passlib.dialects.dlprim.inference import infer_types, input_spec
from passlib.dialects.dlprim.lowering import lower
from passlib.dialects.dlprim.schema import OPERATORS
from passlib.dialects.dlprim.weights import Weights, read_weights
from passlib.dialects.dlprim.writer import Document, write_network
from passlib.dialects.protocol import Dialect, ModelData, Problem
from passlib.errors import FormatError, PasslibError, UnsupportedError
from passlib.graph.node import VARIABLE, Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import Graph, Lowered, Shape, TypeSpec

__all__ = ["Template", "dialect"]

_OUTPUTS = "outputs"
"""The graph's attribute that keeps the names of the outputs, which belong to the network's users
and stay when a pass puts other operators there."""

_RUNNING_STATISTICS = {"BatchNorm": [1, 2]}


@dataclass(frozen=True)
class Template:
    """What a model was read from.

    Attributes
    ----------
    document : Document
    weights : Weights or None
        None where there was no weight file.
    """

    document: Document
    weights: Weights | None


class DLPrimitives(Dialect):
    """The conventions, files and meaning of DLPrimitives models."""

    name = "dlprim"
    title = "DLPrimitives"
    own_attributes = frozenset((_OUTPUTS,))

    def complete(self, graph: _core.Graph) -> None:
        counts = [(position, 1) for position, *_ in graph.doubtful_outputs(_one_output_each())]
        if counts:
            graph.set_outputs(counts)
            graph.check()

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        return graph.variables(_RUNNING_STATISTICS)

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        return {
            name
            for op, name, attributes, *_ in graph.nodes()
            if name in names and op == VARIABLE and not notes.is_input(op, attributes)
        }

    def visible_outputs(self, node: Node) -> int:
        del node
        return 1

    def output_name(self, node: Node, index: int) -> str:
        del index
        return notes.tensor_name(node.name, node.attrs)

    def output_names(self, graph: PlainGraph) -> list[str]:
        """Name the outputs of a symbol as its file does, whatever node is there now."""
        kept = _kept_names(graph.attributes)
        if len(kept) == len(graph.entries):
            return kept
        return [self.output_name(entry.node, entry.index) for entry in graph.entries]

    def recognises(self, path: Path) -> bool:
        try:
            return files.looks_like_network(files.network_path(path))
        except (OSError, ValueError):
            return False

    def load(
        self,
        path: Path,
        *,
        params: str | os.PathLike[str] | None = None,
        strict: bool = False,
        allow_missing: bool = False,
        **options: Any,
    ) -> ModelData:
        """Read a network with its weights.

        Parameters
        ----------
        path : Path
            The network, or its weights.
        params : path-like, optional
            The weight file; by default that of the network's name, .dlp before .h5.
        strict : bool
            Warn, by `warnings.warn`, wherever the original parser silently takes a default, and of
            all else that `validate` warns of.
        allow_missing : bool
            Accept weights that lack some of the network's parameters.

        Raises
        ------
        FormatError, GraphError, UnsupportedError
        """
        self.refuse(options)
        findings = Findings()
        network_path = files.network_path(path)
        document = files.parse_network(network_path, findings)
        if findings.failed:
            findings.fail(str(network_path))
        if strict:
            check_network(document.network, findings)
            for problem in findings.problems:
                warnings.warn(f"{network_path}: {problem.place}: {problem.message}", stacklevel=3)
        graph = document.graph
        names = [output.name for output in document.network.outputs]
        attributes = {_OUTPUTS: json.dumps(names)} if names else {}
        where = Path(params) if params is not None else files.weights_of(path)
        wanted = document.network.parameters
        if where is None:
            return ModelData(graph, attributes, template=Template(document, None))
        arrays, weights = read_weights(where, wanted, allow_missing=allow_missing)
        auxiliary = set(self.variables(graph)[1])
        inputs = {item.name for item in document.network.inputs}
        # Of what no operator uses, only that is kept which is no input of the same name.
        arrays = {n: a for n, a in arrays.items() if n in wanted or n not in inputs}
        return ModelData(
            graph,
            attributes,
            {name: array for name, array in arrays.items() if name not in auxiliary},
            {name: array for name, array in arrays.items() if name in auxiliary},
            Template(document, weights),
        )

    def save(
        self, path: Path, model: ModelData, *, weights: str | None = None, **options: Any
    ) -> tuple[str, ...]:
        """Write network and weights.

        Parameters
        ----------
        path : Path
            Of the network; ``.json`` is added where it is missing.
        model : ModelData
        weights : {"dlp", "h5"}, optional
            The kind of weight file, by default that which was read, or .dlp.

        Raises
        ------
        GraphError
            A pass left no sound network behind.
        UnsupportedError
            DLPrimitives has no word for something.
        """
        self.refuse(options)
        template = model.template if isinstance(model.template, Template) else None
        kind = (template.weights if template is not None else None) or Weights()
        if weights is not None:
            if weights not in ("dlp", "h5"):
                raise UnsupportedError(f"weights is 'dlp' or 'h5', not {weights!r}")
            kept = kind.suffix if weights == kind.kind else f".{weights}"
            kind = replace(kind, kind="dlp" if weights == "dlp" else "h5", suffix=kept)
        arrays = {**model.args, **model.aux}
        sparse = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
        if sparse:
            raise UnsupportedError(f"parameter {sparse[0]!r} is sparse, DLPrimitives has none such")
        text = write_network(
            model.graph,
            arrays,
            template.document if template is not None else None,
            _kept_names(model.attributes),
        )
        return files.write(path, text, arrays, kind)

    def validate(self, path: Path) -> list[Problem]:
        findings = Findings()
        network_path = files.network_path(path)
        try:
            document = files.parse_network(network_path, findings)
        except FormatError as error:
            return [_problem(network_path, error)]
        if findings.failed:
            return findings.problems
        check_network(document.network, findings)
        where = files.weights_of(path)
        if where is not None:
            try:
                read_weights(where, document.network.parameters)
            except (PasslibError, OSError) as error:
                findings.problems.append(_problem(where, error))
        return findings.problems

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
        return infer_types(graph, shapes, types, default_dtype=default_dtype, train=train)

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        return {
            name: input_spec(attributes)
            for op, name, attributes, *_ in model.graph.nodes()
            if notes.is_input(op, attributes)
        }


@lru_cache(maxsize=1)
def _one_output_each() -> _core.OutputTable:
    return _core.OutputTable(dict.fromkeys((VARIABLE, *OPERATORS), 1), set())


def _kept_names(attributes: Mapping[str, str]) -> list[str]:
    try:
        names: Sequence[Any] = json.loads(attributes.get(_OUTPUTS, "[]"))
    except ValueError:
        return []
    fine = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return list(names) if fine else []


def _problem(path: Path, error: Exception) -> Problem:
    """Report an error in a file: the path is the place, and need not be said again."""
    place = os.fspath(path)
    return Problem("error", place, str(error).removeprefix(f"{place}: "))


dialect = DLPrimitives()
