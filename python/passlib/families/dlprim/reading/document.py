"""The files that a model was read from, kept so that unchanged parts can be written back as is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.json_text import parse
from passlib.errors import FormatError, UnsupportedError
from passlib.families.dlprim import network as notes
from passlib.families.dlprim.network import (
    NETWORK_SUFFIX,
    WEIGHT_SUFFIXES,
    Findings,
    Input,
    Network,
    Operator,
    Spec,
    WeightFile,
)
from passlib.families.dlprim.reading.network import read_network
from passlib.families.dlprim.schema import ALIASES
from passlib.files.regular import check_path, memory_named, open_regular, read_regular
from passlib.graph.names import NameSource
from passlib.graph.node import VARIABLE

_OPERATORS, _TENSORS = "operators", ("inputs", "outputs")
_HEAD: Final = 4096
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_LARGEST_PARSED: Final = 4 << 20
"""Files up to this size are parsed; in larger ones the keys are only searched for."""


def looks_like_network(path: Path) -> bool:
    """Whether a file has a network's list of operators, and tensors. Never raises.

    The rest may be missing and the JSON may be damaged, so that the file can be reported on as a
    network.
    """
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
            if not head.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith((b"{", b"/")):
                return False
            text = head + file.read()
    except (FormatError, MemoryError, OSError):
        return False
    names = (f'"{name}"'.encode() for name in _TENSORS)
    if f'"{_OPERATORS}"'.encode() not in text or not any(name in text for name in names):
        return False
    if len(text) <= _LARGEST_PARSED:
        try:
            root = parse(text, comments=True)
        except FormatError:
            pass
        else:
            has_operators = isinstance(root, dict) and isinstance(root.get(_OPERATORS), list)
            return has_operators and any(name in root for name in _TENSORS)
    return b'"nodes"' not in text


Entry = tuple[int, int, int]
_Node = tuple[str, str, dict[str, str], list[Entry], int, list[Any], list[Any]]

_NONE: list[Any] = []
"""Control dependencies and nested graphs of a node; networks have neither."""


def build_graph(network: Network) -> _core.Graph:
    """Build the graph of a sound network.

    Raises `UnsupportedError` if the network has no tensors.
    """
    graph = _core.Graph.build(*_Builder(network).build())
    graph.check()
    return graph


class _Memory:
    """Memory with one or more names; ``latest`` is the node that last wrote to it."""

    __slots__ = ("latest",)

    def __init__(self, latest: int) -> None:
        self.latest = latest


class _Tensor:
    """A name of memory.

    ``value`` is the node that returns the content under this name, and ``written`` the last node
    that had written to the memory when ``value`` was set.
    """

    __slots__ = ("memory", "read", "spec", "value", "written")

    def __init__(self, memory: _Memory, value: int, spec: Spec) -> None:
        self.memory = memory
        self.value = value
        self.written = memory.latest
        self.spec = spec
        self.read = False


class _Builder:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._nodes: list[_Node] = []
        self._tensors: dict[str, _Tensor] = {}
        self._parameters: dict[str, int] = {}
        used = {operator.name for operator in network.operators}
        used.update(network.parameters, (item.name for item in network.inputs))
        self._names = NameSource(used)

    def build(self) -> tuple[list[_Node], list[Entry]]:
        parameters = self._network.parameters
        for item in self._network.inputs:
            self._input(item, taken=item.name in parameters)
        for operator in self._network.operators:
            self._operator(operator)
        names = [output.name for output in self._network.outputs]
        if not names:
            # A graph has outputs even if the file lists none.
            names = [name for name, tensor in self._tensors.items() if not tensor.read]
        if not names:
            raise UnsupportedError("a network without tensors has no graph")
        heads = [(self._read(name), 0, 0) for name in names]
        return self._nodes, heads

    def _input(self, item: Input, *, taken: bool) -> None:
        attributes = {
            notes.ID: item.place,
            notes.SHAPE: str(item.spec.shape),
            notes.DTYPE: str(dtypes.CODES[item.spec.dtype]),
        }
        name = item.name
        if taken:
            # Files have separate namespaces for tensors and parameters, graphs do not.
            name = self._names.fresh(f"{name}_input")
            attributes[notes.TENSOR] = item.name
        position = self._add(VARIABLE, name, attributes, [])
        self._tensors[item.name] = _Tensor(_Memory(position), position, item.spec)

    def _operator(self, operator: Operator) -> None:
        (output,) = operator.outputs
        inputs = [self._read(name) for name in operator.inputs]
        positions = self._parameters
        for name in operator.parameters:
            if name not in positions:
                positions[name] = self._add(VARIABLE, name, {}, ())
            inputs.append(positions[name])
        attributes = {**operator.attributes, notes.ID: operator.place, notes.TENSOR: output}
        if operator.frozen:
            attributes[notes.FROZEN] = "true"
        position = self._add(operator.type, operator.name, attributes, inputs)
        assert operator.output is not None  # a sound network has every output
        known = self._tensors.get(output)
        if operator.type in ALIASES:
            memory = self._tensors[operator.inputs[0]].memory
            self._tensors[output] = _Tensor(memory, position, operator.output)
        elif known is None:
            self._tensors[output] = _Tensor(_Memory(position), position, operator.output)
        else:
            known.memory.latest = known.written = known.value = position
            known.read = False

    def _read(self, name: str) -> int:
        tensor = self._tensors[name]
        tensor.read = True
        if tensor.written != tensor.memory.latest:
            attributes = {
                "dims": str(list(tensor.spec.shape)),
                notes.ID: notes.VIEW,
                notes.TENSOR: name,
            }
            tensor.value = self._add(
                "Reshape", self._names.fresh(f"{name}_view"), attributes, [tensor.memory.latest]
            )
            tensor.written = tensor.memory.latest
        return tensor.value

    def _add(self, op: str, name: str, attributes: dict[str, str], inputs: Sequence[int]) -> int:
        entries = [(position, 0, 0) for position in inputs] if inputs else []
        self._nodes.append((op, name, attributes, entries, 1, _NONE, _NONE))
        return len(self._nodes) - 1


@dataclass(frozen=True)
class Document:
    """A network file, with names of its tensors, and type and shape of all parameters."""

    text: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: Mapping[str, Spec]

    @classmethod
    def of(cls, text: bytes, root: Any, network: Network) -> Document:
        """Make the document of a network that was read."""
        inputs = tuple(item.name for item in network.inputs)
        outputs = tuple(output.name for output in network.outputs)
        document = cls(text, inputs, outputs, network.parameters)
        # The cached properties would read both again.
        document.__dict__.update(root=root, network=network)
        return document

    @cached_property
    def root(self) -> Any:
        """The parsed text, which is needed for writing a changed model."""
        return parse(self.text, comments=True)

    @cached_property
    def network(self) -> Network:
        """The network, with members of ``root``."""
        return read_network(self.text, self.root, Findings())

    def __reduce__(self) -> tuple[Any, ...]:
        # Members of the root refer to their place in the text, which only the parser can set.
        return Document, (self.text, self.inputs, self.outputs, dict(self.parameters))


@dataclass(frozen=True)
class Template:
    """The files that a model was read from; nothing modifies ``graph``."""

    document: Document
    graph: _core.Graph
    weights: WeightFile | None


def network_path(path: Path) -> Path:
    """Return the path of a network that is given by its weight file or without a suffix.

    Raises `FormatError` if no file can have this path.
    """
    check_path(path)
    if path.suffix in WEIGHT_SUFFIXES and path.with_suffix(NETWORK_SUFFIX).is_file():
        return path.with_suffix(NETWORK_SUFFIX)
    if not path.exists():
        added = path.with_name(path.name + NETWORK_SUFFIX)
        return added if added.is_file() else path
    return path


def weights_path(path: Path) -> Path | None:
    """Return the weight file: the path itself, or one next to the network, .dlp first."""
    if path.suffix in WEIGHT_SUFFIXES and path.is_file():
        return path
    network = network_path(path)
    candidates = (network.with_suffix(suffix) for suffix in WEIGHT_SUFFIXES)
    # Opening reports anything that is neither a file nor a folder.
    return next((each for each in candidates if each.exists() and not each.is_dir()), None)


def read_stated(path: Path, findings: Findings) -> Network:
    """Read the network of a file as far as possible.

    Raises `FormatError` if there is no file, or it is not JSON; the message states line and column.
    """
    with memory_named(path):
        return _examined(path, read_regular(path), findings)[1]


def read_graph(path: Path) -> tuple[_core.Graph, Document]:
    """Read the graph of a network file.

    Raises `FormatError`, `GraphError` or `UnsupportedError`.
    """
    with memory_named(path):
        text = read_regular(path)
        findings = Findings()
        root, network = _examined(path, text, findings)
        if findings.failed:
            findings.fail(str(path))
        return build_graph(network), Document.of(text, root, network)


def _examined(path: Path, text: bytes, findings: Findings) -> tuple[Any, Network]:
    try:
        root = parse(text, comments=True)
    except FormatError as error:
        raise error.within(path) from error
    return root, read_network(text, root, findings)
