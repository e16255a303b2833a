"""Writing of ONNX files: unchanged models keep their message, others are assembled again."""

from __future__ import annotations

import errno
import json
import logging
import mmap
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

import passlib._core as _core
from passlib.arrays.views import computed
from passlib.dialects.onnx import reading as external
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import ID
from passlib.dialects.onnx.reading import (
    Document,
    map_file,
    output_names,
    present_outputs,
)
from passlib.dialects.onnx.soundness.inference import disputes
from passlib.dialects.onnx.tensors import PACKED, code_of
from passlib.dialects.onnx.writing.library_nodes import library_nodes, stated
from passlib.errors import FormatError, GraphError, PasslibError, UnsupportedError, printable
from passlib.files.copying import MOST_IN_MEMORY, in_temporary_file
from passlib.files.optional import require
from passlib.files.regular import is_own, is_regular, is_temporary, open_regular
from passlib.graph.plain import collection_off
from passlib.lowering.types import TypeSpec


def is_unchanged(
    graph: _core.Graph,
    document: Document,
    params: dict[str, np.ndarray[Any, Any]],
    omitted: str = "",
) -> bool:
    """Whether a graph and its constants are those of the file, in its order.

    ``params``: constants by name; missing ones have the file's elements. ``omitted``: key of an
    attribute of nodes that does not count.
    """
    return document.file.holds(graph, omitted) and _core.same_arrays(params, document.arrays)


logger = logging.getLogger(__name__)


def folders_of(path: Path) -> set[Path]:
    """Return the folders where a model, if there is one at the path, may have data files."""
    with suppress(PasslibError, OSError):
        return {file.parent for file in _data_files(path)} | {_folder(path)}
    return {_folder(path)}


def data_left_behind(path: Path, folders: set[Path]) -> set[Path]:
    """Return the data files that passlib wrote for a model, and that no file needs any more.

    ``path``: of the model, which is in place. ``folders``: where its data files are or were. Raises
    `FormatError` if the model cannot be read.
    """
    owned = []
    for folder in folders:
        with suppress(OSError):
            owned += [f for f in folder.iterdir() if not is_temporary(f) and is_own(f, path)]
    left = set()
    for file in set(owned) - _data_files(path) if owned else ():
        user = _other_user(file, path)
        if user is None:
            left.add(file)
        else:
            logger.warning(
                "%s no longer uses %s, but %s may use it",
                path,
                *map(printable, (file.name, user.name)),
            )
    return left


def check_replaceable(path: Path, target: Path) -> None:
    """Refuse to write a data file over anything but a data file of the same model.

    Raises `FileExistsError` if another model uses the file, it is a model, or the model at the path
    does not use it, and passlib did not write it for that model.
    """
    if not os.path.lexists(target):
        return
    user = _other_user(target, path)
    if user is not None:
        what = f"{user.name} has its weights there"
    elif target.suffix.lower() == ".onnx" or _is_model(target):
        what = "it is a model"
    elif is_own(target, path) or (path.is_file() and target.resolve() in _data_files(path)):
        return
    else:
        what = f"it is no data file of {path.name}"
    raise FileExistsError(errno.EEXIST, f"{what}; choose another location", str(target))


def _data_files(path: Path) -> set[Path]:
    """Return the data files of a model; damaged locations lead to none."""
    found: set[Path] = set()
    content = map_file(path)
    for location in _core.data_locations(content):
        with suppress(FormatError):
            found.add(Path(os.fsdecode(_core.resolve_data(os.fsencode(path.parent), location, ""))))
    return found


def _folder(path: Path) -> Path:
    return Path(os.path.realpath(path.parent))


def _is_model(file: Path) -> bool:
    with suppress(FormatError, OSError):
        return bool(_core.is_onnx(map_file(file)))
    return False


def _other_user(file: Path, path: Path) -> Path | None:
    """Return what may need a data file of a model besides it: another model, or a link."""
    # The data of a model can be in folders of its own one, but not outside.
    near = {file.parent, _folder(path)}
    for folder in near.union(file.parents):
        try:
            others = sorted(folder.iterdir())
        except OSError:
            continue
        for other in others:
            if folder not in near and other.suffix.lower() != ".onnx" and not other.is_symlink():
                continue
            real = os.path.realpath(other)
            if real == os.path.realpath(path) or other == file:
                continue
            if real == os.path.realpath(file):
                return other
            suffixed = other.suffix.lower() == ".onnx"
            if is_temporary(other) or not is_regular(other):
                continue
            sys.audit("passlib.search", os.fspath(other))  # read as no input of the model
            if (suffixed or _is_model(other)) and _may_use(other, file):
                return other
    return None


def _may_use(model: Path, file: Path) -> bool:
    """Whether a model has its weights in a file."""
    try:
        return file in _data_files(model)
    except FormatError:
        # It may be damaged for passlib alone.
        return _occurs(os.fsencode(file.name), model)
    except (PasslibError, OSError):
        return True


def _occurs(text: bytes, path: Path) -> bool:
    with open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text) >= 0


_THRESHOLD = 1024
"""The default of ``onnx.save_model``."""


class Placement(NamedTuple):
    """Where weights go.

    Attributes
    ----------
    external : bool
        Whether weights go to a data file; otherwise all are in the model.
    location : str
        Path of the data file relative to the model; empty for a free name.
    size_threshold : int
        Bytes from which on a weight goes to the data file.
    """

    external: bool
    location: str
    size_threshold: int

    def target(self, path: Path) -> Path | None:
        """Return the data file of a model at a path; None where its name is not chosen.

        Raises `UnsupportedError` if the location is not a path inside the model's folder, or it is
        the model's own.
        """
        if not self.location:
            return None
        pure = PurePosixPath(self.location)
        if pure.is_absolute() or ".." in pure.parts or {"\0", "\\"}.intersection(self.location):
            raise UnsupportedError(
                f"location is {self.location!r}; it must be a plain path relative to the folder of "
                f"the model, such as {path.name + '.data'!r}"
            )
        target = path.parent / pure
        if target == path or target.is_dir():
            what = "the model itself" if target == path else "a folder"
            raise UnsupportedError(f"location is {self.location!r}, which is {what}")
        return target


def placement_of(
    external_data: Any = None, location: Any = None, size_threshold: Any = None
) -> Placement | None:
    """Return the placement that the options of `Model.save` ask for; None for that of the file.

    Raises `TypeError` if an option is of another type, or one of the data file is given without
    ``external_data=True``.
    """
    if external_data is not None and not isinstance(external_data, bool):
        raise TypeError(
            f"external_data is {external_data!r}, but must be True or False; the name of the data "
            "file is location='...'"
        )
    if not external_data and (location is not None or size_threshold is not None):
        name = "location" if location is not None else "size_threshold"
        raise TypeError(f"{name} is about the data file of external_data=True; give that as well")
    if external_data is None:
        return None
    if location is not None and not isinstance(location, (str, os.PathLike)):
        raise TypeError(f"location is {location!r}, but must be the name of a file")
    threshold = _THRESHOLD if size_threshold is None else size_threshold
    if isinstance(threshold, bool) or not isinstance(threshold, int) or threshold < 0:
        raise TypeError(f"size_threshold is {threshold!r}, but must be a number of bytes")
    return Placement(external_data, os.fspath(location or ""), threshold)


def _packed(arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return arrays with two elements in a byte, in a file if they are large and there is room."""
    if sum(array.size for array in arrays) // 2 > MOST_IN_MEMORY:
        with suppress(OSError):
            return in_temporary_file(map(_core.packed, arrays))
    return [_core.packed(array) for array in arrays]


class Assembled:
    """A model ready to be written.

    Parameters
    ----------
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
        """Values of initializers of the main graph that are not in the message, by number.

        Those of types smaller than a byte are bytes with two elements each.
        """
        held = self.held
        small = {number: array for number, array in held.items() if array.dtype.name in PACKED}
        made = dict(zip(small, _packed(list(small.values())), strict=True))
        return {n: made[n] if n in made else computed(array) for n, array in held.items()}

    @property
    def held(self) -> dict[int, Any]:
        """The same as the model has them, some still to be computed."""
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
    given: Mapping[str, TypeSpec] | None = None,
    renew: bool = True,
    omitted: str = "",
) -> Assembled:
    """Make the model of a graph.

    Raises `FormatError` if the file was changed since it was read; `GraphError` or
    `UnsupportedError` if the graph, or a value in it, has no form in ONNX.

    Parameters
    ----------
    attributes : mapping of str to str
        The graph's own, as JSON by key.
    document : Document
        The file that the graph came from.
    fed : mapping of str to TypeSpec, optional
        Variables that become inputs, whatever they are in the file.
    given : mapping of str to TypeSpec, optional
        What is known of other variables, for operators of libraries.
    renew : bool
        Infer again the types that changes have made doubtful.
    omitted : str
        Key of the attribute that nodes do not get; see `ModelData`.
    """
    document.check()
    imports = _imports(attributes, document)
    # Inputs of the file keep the types that it states, which may be no tensors of numbers.
    own = {n for n, key in graph.variables_with(ID, "input.") if key} if fed else ()
    states = {n: stated(n, spec) for n, spec in (fed or {}).items() if n not in own}
    versions = {schema.plain(domain): number for domain, number in (imports or {"": 1}).items()}
    known = {**(given or {}), **(fed or {})}
    nodes = library_nodes(graph, document, imports or {"": 1}, params, known)

    def write(renewed: _core.RenewedTypes | None) -> Assembled:
        writer = _core.OnnxWriter(
            document.file,
            graph,
            present_outputs(attributes),
            params,
            document.arrays,
            states,
            renewed,
            code_of,
            partial(schema.attribute_type, versions),
            omitted,
            nodes,
        )
        writer.set_imports(*_new_imports(document, imports, writer.domains))
        return Assembled(writer, params, document.arrays)

    with collection_off():
        assembled = write(None)
        if renew:
            renewed = assembled.writer.renewed_types(
                imports or {"": 1}, params, states, _stated_outputs(attributes)
            )
            if renewed is not None:
                renewed.disputed = disputes(assembled.outline, assembled.writer.doubtful)
                assembled = write(renewed)
        return assembled


def assemble_for_file(
    graph: _core.Graph,
    attributes: Mapping[str, str],
    document: Document,
    params: dict[str, np.ndarray[Any, Any]],
    omitted: str = "",
) -> Assembled | None:
    """Make the model of a graph, unless it is the file's.

    Parameters and errors are those of `assemble`. None if nothing changed. Raises
    `UnsupportedError` if training information refers to a value that is gone.
    """
    document.check()
    same_imports = _imports(attributes, document) == _imports({}, document)
    same = same_imports and is_unchanged(graph, document, params, omitted)
    if same and present_outputs(attributes).outputs is not None:  # which may have other names
        own = document.graph
        same = output_names(own, attributes, document) == output_names(own, {}, document)
    if same:
        return None
    assembled = assemble(graph, attributes, document, params, omitted=omitted)
    assembled.writer.require_references()
    return assembled


def as_in_file(document: Document) -> Assembled:
    """Make the model of a file."""
    return assemble(document.graph, {}, document, {})


def _stated_outputs(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the types that a graph states for outputs, as of `stated`."""
    types = json.loads(attributes.get(external.STATED, "{}"))
    return {
        name: (code, [-1 if size is None else size for size in sizes])
        for name, (code, sizes) in types.items()
    }


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
