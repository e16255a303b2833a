"""From a network to a graph: each writer of a tensor becomes a version of its own.

Tensors are memory. An operator may write to a tensor that it reads, and Flatten, Squeeze and
Reshape give a second name to the memory of their input; who reads a name sees what was written
last under any of its names. In the graph every operator has its own output, and an input leads to
the operator that wrote what it reads. Where memory was written to under another name since, a
Reshape that no file has stands between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passlib import _core
from passlib.dialects.dlprim import notes
from passlib.dialects.dlprim.network import Input, Network, Operator
from passlib.dialects.dlprim.schema import ALIASES
from passlib.dialects.dlprim.types import Spec, code
from passlib.errors import UnsupportedError
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE

__all__ = ["describe_graph"]

Entry = tuple[int, int, int]

_NONE: list[Any] = []
"""Control dependencies and nested graphs of a node: a network has neither."""


def describe_graph(network: Network) -> tuple[list[_core.NodeTuple], list[Entry]]:
    """Give nodes and outputs of the graph of a sound network.

    Raises
    ------
    UnsupportedError
        It has no tensors at all.
    """
    return _Builder(network).build()


class _Memory:
    """Memory under one name or several.

    Attributes
    ----------
    latest : int
        The node that wrote to it last.
    """

    __slots__ = ("latest",)

    def __init__(self, latest: int) -> None:
        self.latest = latest


class _Tensor:
    """A name of memory.

    Attributes
    ----------
    value : int
        The node that gives the content under this name.
    written : int
        The node that had written to the memory last when ``value`` was noted.
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
        self._nodes: list[_core.NodeTuple] = []
        self._tensors: dict[str, _Tensor] = {}
        self._parameters: dict[str, int] = {}
        used = {operator.name for operator in network.operators}
        used.update(network.parameters, (item.name for item in network.inputs))
        self._names = NameSource(used)

    def build(self) -> tuple[list[_core.NodeTuple], list[Entry]]:
        parameters = self._network.parameters
        for item in self._network.inputs:
            self._input(item, taken=item.name in parameters)
        for operator in self._network.operators:
            self._operator(operator)
        names = [output.name for output in self._network.outputs]
        if not names:
            # A graph has outputs, even where the file lists none.
            names = [name for name, tensor in self._tensors.items() if not tensor.read]
        if not names:
            raise UnsupportedError("a network without tensors makes no graph")
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
            # Tensors and parameters are named apart in a file, but not in a graph.
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
        assert operator.output is not None  # a sound network has all of them
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
