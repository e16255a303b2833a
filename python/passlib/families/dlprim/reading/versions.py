"""From a network to a graph, in which each write to a tensor makes a new version.

Tensors are memory. An operator may write to a tensor that it reads, and Flatten, Squeeze and
Reshape add a name to the memory of their input; reading a name returns whatever was written last
under any name of its memory. In the graph every operator has an output of its own, and each input
leads to the operator that wrote the content. If the memory has since been written to under another
name, a Reshape that no file contains is inserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import passlib._core as _core
from passlib.errors import UnsupportedError
from passlib.families.dlprim import notes
from passlib.families.dlprim.network import Input, Network, Operator
from passlib.families.dlprim.schema import ALIASES
from passlib.families.dlprim.types import Spec, code
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE

Entry = tuple[int, int, int]
_Node = tuple[str, str, dict[str, str], list[Entry], int, list[Any], list[Any]]

_NONE: list[Any] = []
"""Control dependencies and nested graphs of a node; networks have neither."""


def build_graph(network: Network) -> _core.Graph:
    """Build the graph of a sound network.

    Raises
    ------
    UnsupportedError
        The network has no tensors.
    """
    graph = _core.Graph.build(*_Builder(network).build())
    graph.check()
    return graph


class _Memory:
    """Memory with one or more names.

    Attributes
    ----------
    latest : int
        The node that last wrote to it.
    """

    __slots__ = ("latest",)

    def __init__(self, latest: int) -> None:
        self.latest = latest


class _Tensor:
    """A name of memory.

    Attributes
    ----------
    value : int
        The node that returns the content under this name.
    written : int
        The last node that had written to the memory when ``value`` was set.
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
            notes.DTYPE: str(code(item.spec.dtype)),
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
