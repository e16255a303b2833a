"""The files that a model was read from, kept so that unchanged parts can be written back as is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import passlib._core as _core
from passlib.dialects.json_text import parse
from passlib.families.dlprim.findings import Findings
from passlib.families.dlprim.network import Network
from passlib.families.dlprim.reading.network import read_network
from passlib.families.dlprim.types import Spec
from passlib.families.dlprim.weight_file import WeightFile


@dataclass(frozen=True)
class Document:
    """A network file.

    Attributes
    ----------
    text : bytes
    inputs, outputs : tuple of str
        Names of tensors.
    parameters : mapping of str to Spec
        Type and shape of all parameters, by name.
    """

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
        # What the cached properties would read again.
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
    """The files that a model was read from.

    Attributes
    ----------
    document : Document
    graph : _core.Graph
        The graph of the network, which is never modified.
    weights : WeightFile or None
        None if there was no weight file.
    """

    document: Document
    graph: _core.Graph
    weights: WeightFile | None
