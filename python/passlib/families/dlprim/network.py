"""A network as stated in a file: inputs, operators in order, outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, NoReturn

import numpy as np

from passlib._core import JsonObject
from passlib.arrays import dtypes
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError, PasslibError, UnsoundFileError, UnsupportedError
from passlib.graph.node import VARIABLE

NAMES: Final = MappingProxyType(
    {
        "float": "float32",
        "float32": "float32",
        "float16": "float16",
        "half": "float16",
        "bfloat16": "bfloat16",
        "int": "int32",
        "int32": "int32",
        "int8": "int8",
        "uint8": "uint8",
        "int16": "int16",
        "uint16": "uint16",
        "int64": "int64",
        "uint64": "uint64",
    }
)
"""NumPy's name by the name in a file. The original writes ``double`` and ``uint32``, but cannot
read them."""

FLOAT: Final = "float32"
MAX_RANK: Final = 8

LARGEST: Final = 2**62
"""Upper bound of the number of elements, so that the number of bytes fits 64 bits."""

_FILE_NAMES: Final = {"float32": "float", "float16": "half"}


class Spec(NamedTuple):
    """Element type, by NumPy's name, and shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} ({', '.join(map(str, self.shape))})"


def file_name(dtype: str) -> str | None:
    """Return the name in files of a NumPy type; None if the format has no such type."""
    name = _FILE_NAMES.get(dtype, dtype)
    return name if name in NAMES else None


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type; bfloat16 needs the package ml_dtypes."""
    return dtypes.from_code(dtypes.CODES[dtype])


ID: Final = "__id__"
"""The node's place in the file, such as ``operators[3]``."""

TENSOR: Final = "__tensor__"
"""The name of the node's output tensor, if it differs from the node's."""

FROZEN: Final = "__frozen__"
"""``true`` on an operator whose parameters are not trained."""

SHAPE: Final = "__shape__"
DTYPE: Final = "__dtype__"
"""Shape and element type of an input, as MXNet spells them."""

VIEW: Final = "view"
"""Value of ``ID`` on a Reshape that no file contains: it stands for a tensor whose memory was
written to under another name."""


def is_input(op: str, attributes: Mapping[str, str]) -> bool:
    """Whether a node is an input tensor of the file."""
    return op == VARIABLE and attributes.get(ID, "").startswith("inputs[")


def tensor_name(name: str, attributes: Mapping[str, str]) -> str:
    """Return the name of a node's output tensor."""
    return attributes.get(TENSOR, name)


class Findings:
    """Collects errors and warnings, in the order of detection."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._kinds: list[type[PasslibError]] = []

    def malformed(self, place: str, message: str) -> None:
        """Report a value that is missing or has the wrong type."""
        self._error(FormatError, place, message)

    def unsound(self, place: str, message: str) -> None:
        """Report a contradiction within the network."""
        self._error(UnsoundFileError, place, message)

    def unsupported(self, place: str, message: str) -> None:
        """Report something that passlib does not support."""
        self._error(UnsupportedError, place, message)

    def warn(self, place: str, message: str) -> None:
        """Report something that the original program accepts, but that is hardly intended."""
        self.problems.append(Problem("warning", place, message))

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return bool(self._kinds)

    def fail(self, path: str) -> NoReturn:
        """Raise the first error."""
        first = next(problem for problem in self.problems if problem.severity == "error")
        more = len(self._kinds) - 1
        rest = f" (and {more} more: see passlib.model.validate)" if more else ""
        raise self._kinds[0](f"{path}: {first.place}: {first.message}{rest}")

    def _error(self, kind: type[PasslibError], place: str, message: str) -> None:
        self._kinds.append(kind)
        self.problems.append(Problem("error", place, message))


SECTIONS = ("inputs", "operators", "outputs")
"""The lists of a file, in the order in which they are read."""

AUTO = ("", "auto")
"""Names that stand for automatic ones: the operator's name and the parameter's number."""

LOSS = "loss"
"""Prefix of the names of outputs that are losses without a loss weight."""


@dataclass(frozen=True)
class Input:
    """An input tensor, with the file's own object and its place there, such as ``inputs[0]``."""

    place: str
    name: str
    spec: Spec
    json: JsonObject


class Operator(NamedTuple):
    """An operator, as the original parser understands it."""

    place: str
    """Its place in the file, such as ``operators[3]``."""
    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    params: tuple[str, ...]
    """Names of parameters as stated in the file, including ``auto``."""
    parameters: tuple[str, ...]
    """Names of all parameters, automatic ones spelled out."""
    frozen: bool
    attributes: Mapping[str, str]
    """The options that the parser respects, as text."""
    output: Spec | None
    """None if it cannot be inferred because of an error."""
    parameter_specs: tuple[Spec, ...]
    json: JsonObject


@dataclass(frozen=True)
class Output:
    """An output tensor; ``loss_weight`` is None unless stated in the file."""

    place: str
    name: str
    loss_weight: Any
    json: Any

    @property
    def is_loss(self) -> bool:
        """Whether training minimises it."""
        return self.loss_weight is not None or is_loss(self.name)


@dataclass(frozen=True)
class Network:
    """A whole file."""

    inputs: tuple[Input, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    """Without duplicates."""

    @cached_property
    def parameters(self) -> dict[str, Spec]:
        """Return type and shape of all parameters, by name."""
        found: dict[str, Spec] = {}
        for operator in self.operators:
            for name, spec in zip(operator.parameters, operator.parameter_specs, strict=True):
                found.setdefault(name, spec)
        return found


def is_loss(name: str) -> bool:
    """Whether an output of this name is a loss even without a loss weight."""
    return name.startswith(LOSS)


def parameter_names(operator: str, params: Iterable[str], count: int) -> tuple[str, ...]:
    """Return the names of an operator's ``count`` parameters.

    ``params`` are those stated in the file, including ``auto``; at most ``count``.
    """
    given = [*params]
    given += [""] * (count - len(given))
    if not given:
        return ()
    return tuple(
        [f"{operator}.{index}" if name in AUTO else name for index, name in enumerate(given)]
    )


NETWORK_SUFFIX: Final = ".json"
WEIGHT_SUFFIXES: Final = (".dlp", ".h5", ".hdf5")

DLP_MAGIC: Final = b"DLPW"
DLP_LENGTH_BYTES: Final = 4
DLP_LONGEST_HEADER: Final = 64 << 20


@dataclass(frozen=True)
class DlpEntry:
    """Type, shape and position of one tensor in a .dlp file; ``start`` and ``size`` in bytes."""

    spec: Spec
    start: int
    size: int


@dataclass(frozen=True)
class DlpHeader:
    """The header of a .dlp file: ``{"tensors": {name: {"dtype", "shape", "start", "size"}}}``.

    The file begins with ``DLPW`` and the length of the header as four bytes, most significant
    first. Positions count from the end of the header; elements are little-endian.
    """

    text: bytes
    entries: Mapping[str, DlpEntry]


@dataclass(frozen=True)
class WeightFile:
    """The format of a weight file; ``order`` has the names of its parameters."""

    kind: Literal["dlp", "h5"] = "dlp"
    suffix: str = ".dlp"
    header: DlpHeader | None = None
    order: tuple[str, ...] = ()
