"""What passlib must know of a family of models: the contract of a dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from passlib import _core
    from passlib.dialects.lowering_types import Lowered, TypeSpec
    from passlib.node import Node

__all__ = ["Dialect", "Lowering", "ModelData", "Optional", "Problem"]

Lowering = Callable[..., "Lowered"]
"""``lower(symbol, inputs, params, *, train=False)``, see `dialects.mxnet.lowering.lower`."""


class Problem(NamedTuple):
    """Something that is wrong with a file."""

    severity: Literal["error", "warning"]
    place: str
    """Where: a path inside the file such as ``Nodes[3].Op.Args``, or a node's name."""
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.message}"


@dataclass(frozen=True)
class ModelData:
    """All of a model, as a dialect reads and writes it.

    Attributes
    ----------
    graph : _core.Graph
        The graph, without top-level attributes.
    attributes : mapping of str to str
        The graph's own attributes, as JSON by key.
    args, aux : mapping of str to array
        Parameters and auxiliary states by name of their variable: NumPy arrays, or the
        dialect's own sparse ones.
    template : object
        What the file had beyond that, for writing it back; only the dialect looks into it. None
        for a model that was not read from a file.
    """

    graph: _core.Graph
    attributes: Mapping[str, str]
    args: Mapping[str, Any] = field(default_factory=dict)
    aux: Mapping[str, Any] = field(default_factory=dict)
    template: Any = None


class Dialect(Protocol):
    """A family of models: its conventions, its files, its meaning in ONNX.

    Attributes
    ----------
    name : str
        As in ``model.dialect`` and in ``Graph::attrs["dialect"]``, which passes see.
    ordered : bool
        Whether only what the outputs need belongs to a graph, in post-order from the outputs.
        Otherwise nodes keep their order, and those that no output needs stay.
    own_attributes : frozenset of str
        Top-level attributes of a graph that are the file's business and that passes do not see.
    """

    name: str
    ordered: bool
    own_attributes: frozenset[str]

    # Conventions of its graphs.

    def default_attributes(self) -> dict[str, str]:
        """Give the top-level attributes of a new graph, as JSON by key."""

    def complete(self, graph: _core.Graph) -> None:
        """Set, in a graph that a pass gave back, the numbers of outputs that the schema knows."""

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        """Name the variables of a graph: arguments, and auxiliary states."""

    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        """Choose from variables those that are parameters, not data inputs of the model."""

    def visible_outputs(self, node: Node) -> int:
        """Count the outputs of a node that other nodes may use."""

    def output_name(self, node: Node, index: int) -> str:
        """Name an output of a node, as the user knows it."""

    # Its files.

    def recognises(self, path: Path) -> bool:
        """Whether a path leads to a model of this dialect, judged by content where there is any.

        Must not raise for files of any kind.
        """

    def load(self, path: Path, **options: Any) -> ModelData:
        """Read a model.

        Raises
        ------
        FormatError, GraphError, UnsupportedError
            The file is damaged, unsound, or uses what passlib does not know.
        """

    def save(self, path: Path, model: ModelData, **options: Any) -> tuple[str, ...]:
        """Write a model as a whole or not at all, in the form it was read in; name its files."""

    def validate(self, path: Path) -> list[Problem]:
        """Check a file, and report all that is wrong with it, in the order of the file."""

    # Its meaning.

    @property
    def lower(self) -> Lowering:
        """The lowering to ONNX."""

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        """Give the element types and shapes that the model itself says of its inputs."""


class Optional(Protocol):
    """What a dialect may have besides: each of these is used where it is there."""

    def infer(
        self,
        symbol: Any,
        shapes: Mapping[str, Any],
        types: Mapping[str, Any] | None = None,
        *,
        default_dtype: Any = None,
        train: bool = False,
    ) -> Mapping[Node, tuple[TypeSpec, ...]]:
        """Infer the types of all outputs of all nodes, see `passlib.infer.infer`."""

    def output_names(self, symbol: Any) -> list[str]:
        """Name the outputs of a symbol, where `Dialect.output_name` cannot know them."""

    def states(self, graph: _core.Graph) -> tuple[dict[str, list[int]], dict[int, list[int]]]:
        """Give the inputs that are auxiliary states, by operator and by position of the node.

        Without it there are none.
        """

    def data_inputs(self, graph: _core.Graph) -> list[str]:
        """Name the variables that users feed, where others stand for something else."""
