"""The conventions, files and meaning of DLPrimitives models."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.dialects.json_text import parse_plain
from passlib.dialects.protocol import Dialect, ModelData
from passlib.errors import FormatError, UnsupportedError
from passlib.families.dlprim import network as notes
from passlib.families.dlprim.inference import infer, input_spec
from passlib.families.dlprim.lowering import TABLE
from passlib.families.dlprim.network import Findings, WeightFile
from passlib.families.dlprim.reading.document import (
    Template,
    looks_like_network,
    network_path,
    read_graph,
    read_stated,
    weights_path,
)
from passlib.families.dlprim.reading.weights import read_weights
from passlib.families.dlprim.schema import OPERATORS
from passlib.families.dlprim.validation import check_network, validate
from passlib.families.dlprim.writing.network import write_network
from passlib.families.dlprim.writing.weights import write_files
from passlib.files.regular import read_together
from passlib.graph.node import VARIABLE, Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import Lowerings, TypeSpec

_OUTPUTS = "outputs"
"""The graph's attribute with the names of the outputs: users rely on them, so they stay when a
pass replaces the operators."""

_RUNNING_STATISTICS = {"BatchNorm": [1, 2]}
_ONE_EACH = _core.OperatorTable(dict.fromkeys((VARIABLE, *OPERATORS), 1), set())


class DLPrimitives(Dialect):
    """The conventions, files and meaning of DLPrimitives models."""

    name = "dlprim"
    title = "DLPrimitives"
    suffixes = (".json",)
    weight_suffixes = (".dlp", ".h5")
    own_attributes = frozenset((_OUTPUTS,))
    names_outputs = True

    def complete(self, graph: _core.Graph) -> None:
        kinds = graph.doubtful_outputs(_ONE_EACH)
        counts = [(position, 1) for _, _, nodes in kinds for position, *_ in nodes]
        if counts:
            graph.set_outputs(counts)
            graph.check()

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        return graph.variables(_RUNNING_STATISTICS)

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        return {
            node.name
            for node in graph.nodes()
            if node.name in names
            and node.op == VARIABLE
            and not notes.is_input(node.op, node.attrs)
        }

    def visible_outputs(self, node: Node) -> int:
        return 1

    def output_name(self, node: Node, index: int) -> str:
        return notes.tensor_name(node.name, node.attrs)

    def output_names(self, graph: PlainGraph) -> list[str]:
        """Return the names of the outputs as in the file, whatever nodes compute them now."""
        kept = _kept_names(graph.attributes)
        if len(kept) == len(graph.entries):
            return kept
        return [self.output_name(entry.node, entry.index) for entry in graph.entries]

    def with_output_names(self, graph: _core.Graph, names: Sequence[str]) -> dict[str, str]:
        return {_OUTPUTS: json.dumps(list(names))}

    def selected(self, attributes: Mapping[str, str]) -> dict[str, str]:
        """Return the attributes of a selection of outputs: these have the names of their values."""
        return {key: text for key, text in attributes.items() if key != _OUTPUTS}

    def recognises(self, path: Path) -> bool:
        try:
            return looks_like_network(network_path(path))
        except (FormatError, OSError, ValueError):
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
        """Read a network with its weights: ``path`` leads to either.

        Raises `FormatError`, `GraphError` or `UnsupportedError`.

        Parameters
        ----------
        params : path-like, optional
            The weight file; by default the one with the network's name, .dlp before .h5.
        strict : bool
            Warn, by `warnings.warn`, wherever the original parser silently takes a default, and of
            everything else that `validate` warns of.
        allow_missing : bool
            Accept weights that lack some of the network's parameters.
        """
        self.refuse(options)
        file = network_path(path)
        return read_together(file, lambda: self._read(path, params, strict, allow_missing))

    def _read(
        self, path: Path, params: str | os.PathLike[str] | None, strict: bool, allow_missing: bool
    ) -> ModelData:
        file = network_path(path)
        if strict:
            findings = Findings()
            network = read_stated(file, findings)
            if not findings.failed:
                check_network(network, findings)
                for problem in findings.problems:
                    warnings.warn(f"{file}: {problem.place}: {problem.message}", stacklevel=6)
        graph, document = read_graph(file)
        attributes = {_OUTPUTS: json.dumps(document.outputs)} if document.outputs else {}
        weight_file = Path(params) if params is not None else weights_path(path)
        if weight_file is None:
            return ModelData(graph, attributes, template=Template(document, graph, None))
        wanted = document.parameters
        arrays, weights = read_weights(weight_file, wanted, allow_missing=allow_missing)
        auxiliary = set(self.variables(graph)[1])
        inputs = set(document.inputs)
        # Arrays that no operator uses are kept, except those named like an input.
        arrays = {n: a for n, a in arrays.items() if n in wanted or n not in inputs}
        return ModelData(
            graph,
            attributes,
            {name: array for name, array in arrays.items() if name not in auxiliary},
            {name: array for name, array in arrays.items() if name in auxiliary},
            Template(document, graph, weights),
        )

    def save(
        self, path: Path, model: ModelData, *, weights: str | None = None, **options: Any
    ) -> tuple[str, ...]:
        """Write network and weights; ``.json`` is added to the path if missing.

        The weight file is .dlp or .h5, as ``weights`` states, by default as it was read, or .dlp.
        Raises `GraphError` if the graph is not a valid network; `UnsupportedError` if DLPrimitives
        lacks something in the model.
        """
        self.refuse(options)
        template = model.template if isinstance(model.template, Template) else None
        kind = (template.weights if template is not None else None) or WeightFile()
        if weights is not None:
            if weights not in ("dlp", "h5"):
                raise UnsupportedError(f"weights must be 'dlp' or 'h5', not {weights!r}")
            kept = kind.suffix if weights == kind.kind else f".{weights}"
            kind = replace(kind, kind="dlp" if weights == "dlp" else "h5", suffix=kept)
        arrays = {**model.args, **model.aux}
        sparse = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
        if sparse:
            raise UnsupportedError(
                f"parameter {sparse[0]!r} is sparse, but DLPrimitives has only dense ones"
            )
        text = write_network(model.graph, arrays, template, _kept_names(model.attributes))
        return write_files(path, text, arrays, kind)

    validate = staticmethod(validate)

    def lowerings(self) -> Lowerings:
        return TABLE

    infer = staticmethod(infer)

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        return {
            node.name: input_spec(node.attrs)
            for node in model.graph.nodes()
            if notes.is_input(node.op, node.attrs)
        }


def _kept_names(attributes: Mapping[str, str]) -> list[str]:
    try:
        names: Sequence[Any] = parse_plain(attributes.get(_OUTPUTS, "[]"))
    except FormatError:
        return []
    fine = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return list(names) if fine else []


dialect = DLPrimitives()
