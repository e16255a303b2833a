"""Graphs as ONNX models: what no pass changed is written as it is in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays.views import computed
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.keys import ID
from passlib.dialects.onnx.tensors import code_of
from passlib.dialects.onnx.writing.attributes import AttributeMaker
from passlib.dialects.onnx.writing.outputs import present_outputs
from passlib.dialects.onnx.writing.stated import stated_type, stated_types
from passlib.dialects.onnx.writing.types import Renewed, renewed_types
from passlib.dialects.onnx.writing.unchanged import is_unchanged
from passlib.errors import GraphError, UnsupportedError
from passlib.files.collector import collection_off
from passlib.files.optional import require
from passlib.lowering.types import TypeSpec

_TYPES = ("__shape__", "__dtype__")
"""What passes state for inputs."""


class Assembled:
    """A model ready to be written.

    Parameters
    ----------
    writer : _core.OnnxWriter
    params, constants : mapping of str to numpy.ndarray
        Arrays by name: those given, and those of the file.

    Attributes
    ----------
    edited : bool
        Whether ``model`` is no longer what the writer made.
    """

    def __init__(
        self,
        writer: _core.OnnxWriter,
        params: Mapping[str, np.ndarray[Any, Any]],
        constants: Mapping[str, np.ndarray[Any, Any]],
    ) -> None:
        self.writer = writer
        self._params = params
        self._constants = constants
        self.edited = False

    @cached_property
    def model(self) -> Any:
        """The model as an onnx.ModelProto, without the elements of ``arrays``."""
        return self._parsed(outline=False)

    @cached_property
    def outline(self) -> Any:
        """The same with the long lists of attributes cut, for checks and inference."""
        return self._parsed(outline=True)

    def _parsed(self, *, outline: bool) -> Any:
        return require("onnx", extra="onnx").ModelProto.FromString(self.writer.message(outline))

    @cached_property
    def arrays(self) -> dict[int, np.ndarray[Any, Any]]:
        """Values of initializers of the main graph that are not in the message, by number."""
        return {number: computed(array) for number, array in self.held.items()}

    @property
    def held(self) -> dict[int, Any]:
        """The same, some still to be computed."""
        return {
            number: (self._params if given else self._constants)[name]
            for number, name, given, _ in self.writer.aside
        }

    @cached_property
    def external(self) -> dict[int, bool]:
        """Those of ``arrays`` that are in a file next to the model, and whether they changed."""
        return {
            number: changed for number, _, _, changed in self.writer.aside if changed is not None
        }

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return self.writer.outputs

    def names(self) -> dict[tuple[int, int], str]:
        """Return the names of the values of the main graph, by node and output."""
        return {
            (position, output): name
            for position, own in enumerate(self.writer.names())
            for output, name in enumerate(own)
        }


def assemble(
    graph: _core.Graph,
    attributes: Mapping[str, str],
    document: Document,
    params: dict[str, np.ndarray[Any, Any]],
    fed: Mapping[str, TypeSpec] | None = None,
    *,
    renew: bool = True,
    omitted: str = "",
) -> Assembled:
    """Make the model of a graph.

    Parameters
    ----------
    graph : _core.Graph
    attributes : mapping of str to str
        The graph's own, as JSON by key.
    document : Document
        The file that the graph came from.
    params : dict of str to numpy.ndarray
    fed : mapping of str to TypeSpec, optional
        Variables that become inputs, whatever they are in the file.
    renew : bool
        Infer again the types that changes have made doubtful.
    omitted : str
        Key of the attribute that nodes do not get; see `ModelData`.

    Returns
    -------
    Assembled

    Raises
    ------
    FormatError
        The file was changed since it was read.
    GraphError, UnsupportedError
        The graph, or a value in it, has no form in ONNX.
    """
    document.check()
    imports = _imports(attributes, document)
    # Inputs of the file keep the types that it states, which may be no tensors of numbers.
    own = {n for n, key in graph.variables_with(ID, "input.") if key} if fed else ()
    stated = {n: _stated(n, spec) for n, spec in (fed or {}).items() if n not in own}
    functions = (code_of, stated_type, AttributeMaker(imports or {"": 1}))

    def write(renewed: Mapping[str, Renewed]) -> Assembled:
        writer = _core.OnnxWriter(
            document.file,
            graph,
            present_outputs(attributes),
            params,
            document.arrays,
            stated,
            dict(renewed),
            functions,
            omitted,
        )
        writer.set_imports(*_new_imports(document, imports, writer.domains))
        return Assembled(writer, params, document.arrays)

    with collection_off():
        assembled = write({})
        doubtful = assembled.writer.doubtful
        if doubtful and renew:
            stated_values = stated_types(attributes)
            own_inputs = {n for n, key in graph.variables_with(ID, "input.") if key}
            restated = any(
                text and name in own_inputs
                for key in _TYPES
                for name, text in graph.variables_with(key)
            )
            types = renewed_types(
                assembled.outline,
                doubtful,
                stated_values,
                lambda: document.model,
                restated=restated,
            )
            assembled = write(types)
        return assembled


def _stated(name: str, spec: TypeSpec) -> tuple[int | None, list[int] | None]:
    """Return a type as a number of ONNX and sizes, -1 for unknown ones."""
    code = None if spec.dtype is None else code_of(spec.dtype, f"input {name!r}")
    if spec.shape is None:
        return code, None
    return code, [-1 if size is None else size for size in spec.shape]


def assemble_for_file(
    graph: _core.Graph,
    attributes: Mapping[str, str],
    document: Document,
    params: dict[str, np.ndarray[Any, Any]],
    omitted: str = "",
) -> Assembled | None:
    """Make the model of a graph, unless it is the file's.

    Parameters and errors are those of `assemble`.

    Returns
    -------
    Assembled or None
        None if nothing changed.
    """
    document.check()
    same_imports = _imports(attributes, document) == _imports({}, document)
    same = same_imports and is_unchanged(graph, document, params, omitted)
    if not same or _renames_outputs(attributes, document):
        return assemble(graph, attributes, document, params, omitted=omitted)
    return None


def _renames_outputs(attributes: Mapping[str, str], document: Document) -> bool:
    """Whether the outputs have been given other names than in the file."""
    if present_outputs(attributes).outputs is None:
        return False
    graph = document.graph
    return output_names(graph, attributes, document) != output_names(graph, {}, document)


def as_in_file(document: Document) -> Assembled:
    """Make the model of a file."""
    return assemble(document.graph, {}, document, {})


def output_names(
    graph: _core.Graph, attributes: Mapping[str, str], document: Document
) -> list[str]:
    """Name the outputs of a main graph as `assemble` does."""
    return _core.onnx_output_names(document.file, graph, present_outputs(attributes))


def _imports(attributes: Mapping[str, str], document: Document) -> dict[str, int]:
    """Return the versions of operator sets: those that a pass set, else the file's."""
    imports = dict(document.imports)
    text = attributes.get("opset_import")
    if text is None:
        return imports
    try:
        given = json.loads(text)
        return {**imports, **{str(domain): int(version) for domain, version in given.items()}}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise GraphError(
            f"the graph's attribute opset_import is {text[:80]}; it must be a JSON object of "
            "versions by domain"
        ) from None


def _new_imports(
    document: Document, imports: Mapping[str, int], needed: set[str]
) -> tuple[dict[int, int], list[tuple[str, int]]]:
    """Return new versions of the file's operator sets by number, and the sets to add.

    Added are those of ``imports`` and the needed ones that are missing.
    """
    present = {domain: number for number, (domain, _) in enumerate(document.import_list)}
    changed = {}
    added = []
    for domain, version in imports.items():
        if domain not in present:
            added.append((domain, version))
        elif document.import_list[present[domain]][1] != version:
            changed[present[domain]] = version
    known = {schema.plain(domain) for domain in imports}
    for domain in sorted(needed):
        if schema.plain(domain) not in known:
            known.add(schema.plain(domain))
            if document.ir_version < schema.NAMED_SINCE and not document.import_list and not added:
                _refuse_unnamed(domain, document.ir_version)
                continue
            added.append((domain, schema.newest_version(domain, document.ir_version)))
    return changed, added


def _refuse_unnamed(domain: str, ir_version: int) -> None:
    if schema.plain(domain):
        raise UnsupportedError(
            f"files of IR version {ir_version} cannot name operator sets, so they cannot have "
            f"operators of {domain!r}"
        )
