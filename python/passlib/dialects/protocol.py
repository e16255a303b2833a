"""The contract of a dialect: what passlib needs to know about a family of models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

import passlib._core as _core
from passlib.arrays.views import AnyArray
from passlib.dialects.operator_types import Rules
from passlib.errors import UnsupportedError, printable, short_repr
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import Graph, Lowered, Lowerings, Shape, TypeSpec, Value, lower_graph
from passlib.lowering.walk import Overriding


@short_repr
class Problem(NamedTuple):
    """Something wrong with a file.

    Examples
    --------
    >>> import passlib as pl
    >>> str(pl.Problem("error", "node 'fc'", "it has no weight"))
    "error: node 'fc': it has no weight"
    """

    severity: Literal["error", "warning"]
    """An error makes the file unusable to its own framework, a warning does not."""
    place: str
    """A path inside the file such as ``Nodes[3].Op.Args``, or a node's name."""
    message: str
    """The problem in one sentence."""

    def __str__(self) -> str:
        return printable(f"{self.severity}: {self.place}: {self.message}")


class Described(NamedTuple):
    """The type of an input or an output, as far as it is known."""

    name: str
    dtype: str | None
    """The name of a NumPy dtype, or another type as the dialect spells it."""
    shape: list[int | str | None] | None
    """The sizes: a number, the name of an open size or an expression of names, or None."""


Prefix: TypeAlias = str | PathLike[str]
Weights: TypeAlias = dict[str, AnyArray]

_UNKNOWN = TypeSpec(None, None)


@short_repr
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
        Parameters and auxiliary states by name of their variable: NumPy arrays, or
        `passlib.arrays.sparse_array.Sparse`.
    template : object
        The rest of the file, for writing it back; only the dialect looks into it. None for a
        model that was not read from a file.
    omitted : str
        Key of an attribute of nodes that `Dialect.save` does not write; empty except for dialects
        that have `omits_attributes`. What the file that the model came from has of this key stays.
        With ``__origin__``, ``__rules__`` is omitted too.

    Examples
    --------
    >>> import passlib as pl
    >>> data = pl.Model(pl.sym.relu(pl.sym.var("x"))).data()
    >>> type(data).__name__, data.args
    ('ModelData', {})
    """

    graph: _core.Graph
    attributes: Mapping[str, str]
    args: Mapping[str, Any] = field(default_factory=dict)
    aux: Mapping[str, Any] = field(default_factory=dict)
    template: Any = None
    omitted: str = ""


class Checkpoints(Protocol):
    """Reads and writes a symbol and its weights at one epoch, see `passlib.model`."""

    def load_params(self, prefix: Prefix, epoch: int) -> tuple[Weights, Weights]:
        """Read the weights of an epoch."""

    def load_checkpoint(self, prefix: Prefix, epoch: int) -> tuple[Any, Weights, Weights]:
        """Read a symbol and the weights of an epoch."""

    def save_checkpoint(
        self,
        prefix: Prefix,
        epoch: int,
        symbol: Any,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any],
        remove_amp_cast: bool,
    ) -> None:
        """Write a symbol and its weights: both files, or neither."""


class Dialect(ABC):
    """A family of models: its conventions, its files, its meaning in ONNX.

    Dialects derive from this class and override what differs from the defaults.

    Attributes
    ----------
    name : str
        As in ``model.dialect`` and in ``Graph::attrs["dialect"]``, which passes see.
    title : str
        The name as messages spell it, ``"MXNet"``.
    suffixes : tuple of str
        Of the files that have the graph, in lower case with the point.
    weight_suffixes : tuple of str
        Of the weight files next to these.
    ordered : bool
        Whether only what the outputs need belongs to a graph, in post-order from the outputs.
        Otherwise nodes keep their order, and those that no output needs stay.
    own_attributes : frozenset of str
        Top-level attributes of a graph that belong to the file and that passes do not see.
    runs_open_sizes : bool
        Whether lowering leaves the sizes of inputs as open as the model has them, so that what is
        compiled once runs for all sizes. Otherwise it computes with the sizes.
    hosts_operators : bool
        Whether graphs may have operators of loaded libraries.
    part_options : mapping of str to object
        Options of `save` for a part of a model, which lacks nodes on purpose.
    saves_computed : bool
        Whether `save` takes weights as `_core.ScaledArray`.
    names_outputs : bool
        Whether outputs have names of their own, which `with_output_names` changes. Otherwise they
        have those of the nodes that compute them.
    appends_suffixes : bool
        Whether `save` appends suffixes to the path, so that a folder may have the path.
    graph_class : type or None
        Class of the graphs of its models, ``model.symbol``; derived from
        `passlib.model.ModelGraph`, which it is by default.
    checkpoints : Checkpoints or None
        For a dialect whose files have the names of MXNet's checkpoints.
    omits_attributes : bool
        Whether `save` can leave an attribute of nodes out, see `ModelData.omitted`.

    Examples
    --------
    >>> from passlib.dialects import Dialect, find
    >>> isinstance(find("onnx"), Dialect), find("onnx").suffixes
    (True, ('.onnx',...))
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    weight_suffixes: ClassVar[tuple[str, ...]] = ()
    ordered: ClassVar[bool] = False
    own_attributes: ClassVar[frozenset[str]] = frozenset()
    runs_open_sizes: ClassVar[bool] = False
    hosts_operators: ClassVar[bool] = False
    part_options: ClassVar[Mapping[str, Any]] = {}
    saves_computed: ClassVar[bool] = False
    names_outputs: ClassVar[bool] = False
    omits_attributes: ClassVar[bool] = False
    appends_suffixes: ClassVar[bool] = False
    graph_class: ClassVar[type[PlainGraph] | None] = None
    checkpoints: ClassVar[Checkpoints | None] = None

    # Conventions of its graphs.

    def default_attributes(self) -> dict[str, str]:
        """Return the top-level attributes of a new graph, as JSON by key: none."""
        return {}

    def written_attributes(self, attributes: Mapping[str, str]) -> Mapping[str, str]:
        """Return the top-level attributes as a file has them: by default as they are."""
        return attributes

    def complete(self, graph: _core.Graph) -> None:  # noqa: B027
        """Set, in a graph that a pass returned, the numbers of outputs that the schema knows.

        By default the graph stays as it is.
        """

    def count_outputs(self, op: str, attributes: Mapping[str, str]) -> int:
        """Count all outputs of an operator, hidden ones included; 0 if unknown, by default."""
        return 0

    def auxiliary_inputs(self) -> Mapping[str, list[int]]:
        """Return the inputs that are auxiliary states, by operator, where fixed: none."""
        return {}

    def variables(self, graph: _core.Graph) -> tuple[list[str], list[str]]:
        """Return the names of the arguments, and of the auxiliary states."""
        return graph.variables(dict(self.auxiliary_inputs()))

    def states(self, graph: _core.Graph) -> tuple[dict[str, list[int]], dict[int, list[int]]]:
        """Return the inputs that are auxiliary states, by operator and by position of the node."""
        return dict(self.auxiliary_inputs()), {}

    @abstractmethod
    def parameters_among(self, graph: _core.Graph, names: set[str]) -> set[str]:
        """Return those of some variables that are parameters, not data inputs of the model."""

    def data_inputs(self, graph: _core.Graph) -> list[str]:
        """Return the names of the variables that users may feed: all."""
        return graph.variables({})[0]

    def labels(self, graph: PlainGraph) -> set[str]:
        """Return the names of the variables on which gradients depend and outputs do not: none."""
        return set()

    def mutable_inputs(self, node: Node) -> Collection[int]:
        """Return the positions of the inputs that a built-in operator writes to: none."""
        return ()

    def visible_outputs(self, node: Node) -> int:
        """Return how many outputs of a node other nodes may use."""
        return max(node.num_outputs, 1)

    @abstractmethod
    def output_name(self, node: Node, index: int) -> str:
        """Return the name of a node's output, as the user knows it."""

    def output_names(self, graph: PlainGraph) -> list[str]:
        """Return the names of a graph's outputs."""
        return [self.output_name(entry.node, entry.index) for entry in graph.entries]

    def with_output_names(self, graph: _core.Graph, names: Sequence[str]) -> dict[str, str]:
        """Return the top-level attributes that give the outputs of a graph other names.

        Parameters
        ----------
        names : sequence of str
            One for each output.

        Raises
        ------
        UnsupportedError
            Outputs have no names of their own, which is the default, see `names_outputs`.
        """
        raise UnsupportedError(f"outputs of models of {self.title} are named after their nodes")

    def selected(self, attributes: Mapping[str, str]) -> dict[str, str]:
        """Return the top-level attributes of a graph whose outputs are chosen among another's.

        By default they are those of the other graph.
        """
        return dict(attributes)

    def own_after(self, before: PlainGraph, after: _core.Graph) -> dict[str, str]:
        """Return the `own_attributes` of what a pass returned: by default as before.

        Parameters
        ----------
        before : PlainGraph
            The graph that the pass was called with.
        after : _core.Graph
            The graph that it returned.
        """
        return {k: v for k, v in before.attributes.items() if k in self.own_attributes}

    def stating(
        self, attributes: Mapping[str, str], types: Mapping[str, TypeSpec]
    ) -> dict[str, str]:
        """Return top-level attributes that state types of outputs by name: by default no types."""
        return dict(attributes)

    # Its files.

    @abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether a path leads to a model of this dialect, judged by content where there is any.

        Must not raise for files of any kind.
        """

    @abstractmethod
    def load(self, path: Path, **options: Any) -> ModelData:
        """Read a model.

        Raises
        ------
        FormatError, GraphError, UnsupportedError
            The file is damaged, unsound, or uses a feature that passlib does not support.
        """

    def load_bytes(self, data: bytes, **options: Any) -> ModelData:
        """Read a model that is no file: by default no dialect can.

        Raises
        ------
        FormatError, GraphError, UnsupportedError
            See `load`.
        """
        raise UnsupportedError(f"models of {self.title} are read from files only")

    def check_source(self, attributes: Mapping[str, str]) -> None:  # noqa: B027
        """Check that files which a graph still needs are as they were when they were read.

        By default a graph needs none. ``attributes``: its own. Raises `FormatError` if another
        program changed one.
        """

    def refuses_to_save(self, model: ModelData) -> bool:
        """Whether the format's own checker refuses what passes made of a model; by default no."""
        return False

    @abstractmethod
    def save(self, path: Path, model: ModelData, **options: Any) -> tuple[str, ...]:
        """Write a model as a whole or not at all, in the form it was read in.

        Returns
        -------
        tuple of str
            The files that were written.
        """

    @abstractmethod
    def validate(self, path: Path) -> list[Problem]:
        """Check a file, and report everything wrong with it, in the order of the file."""

    def refuse(self, options: Mapping[str, Any]) -> None:
        """Refuse options that a reader or writer does not have.

        Raises
        ------
        UnsupportedError
            There are any.
        """
        if options:
            names = ", ".join(map(repr, sorted(options)))
            raise UnsupportedError(f"models of {self.title} have no option {names}")

    # Its meaning.

    def lower(
        self,
        graph: Graph,
        inputs: Mapping[str, TypeSpec],
        params: Mapping[str, np.ndarray],
        *,
        train: bool = False,
    ) -> Lowered:
        """Lower a graph to one ONNX model: by default node by node, with `lowerings`.

        Parameters
        ----------
        inputs : mapping of str to TypeSpec
            Variables that are fed at run time, each with its element type and shape.
        params : mapping of str to numpy.ndarray
            Variables that are built in: weights and auxiliary states.
        train : bool
            Lower as for training: batch statistics, active dropout. Dialects without a form for
            training refuse it.

        Raises
        ------
        GraphError
            Inputs of a node do not fit together.
        UnsupportedError
            An operator, an attribute or an element type has no faithful translation.
        """
        return lower_graph(graph, self.lowerings(), inputs, params, train=train)

    def lower_for_file(
        self, graph: Graph, inputs: Mapping[str, TypeSpec], params: Mapping[str, np.ndarray]
    ) -> Lowered:
        """Lower a graph as `lower` does, with the operators of libraries in a domain of their own.

        ONNX Runtime runs these with the library that `passlib.ort_library` names.
        """
        return self.lower(graph, inputs, params)

    def lowerings(self) -> Lowerings:
        """Return the lowering functions of the dialect's operators: none."""
        return Lowerings(self.name)

    def complete_types(  # noqa: B027
        self, node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /
    ) -> None:
        """Complete the types of a node's inputs in place, see `passlib.lowering.walk.Complete`.

        By default they stay as they are.
        """

    def passed_on(self, graph: PlainGraph) -> frozenset[str]:
        """Return the inputs whose values are not arrays of numbers: they are run as given."""
        return frozenset()

    def input_types(self, model: ModelData) -> dict[str, TypeSpec]:
        """Return the element types and shapes that the model itself states for its inputs."""
        return {}

    def output_types(self, model: ModelData) -> dict[str, TypeSpec]:
        """Return those that the file of the model states for its outputs; by default nothing."""
        return {}

    def interface(
        self, graph: PlainGraph, model: ModelData
    ) -> tuple[list[Described], list[Described]]:
        """Return the inputs and the outputs of a model. ``graph``: the model's."""
        weights = model.args.keys() | model.aux.keys()
        names = [name for name in self.data_inputs(model.graph) if name not in weights]
        stated, results = self.input_types(model), self.output_types(model)
        return (
            [_described(name, stated.get(name, _UNKNOWN)) for name in names],
            [_described(name, results.get(name, _UNKNOWN)) for name in graph.list_outputs()],
        )

    def doubts(self, graph: PlainGraph) -> list[str]:
        """Return what a runtime may not know of a graph that was read, each as a clause."""
        return []

    def bytes_read(self, model: ModelData) -> int:
        """Return the bytes of the files that a model was read from; 0 if that is not known."""
        return 0

    def about(self, model: ModelData) -> dict[str, Any]:
        """Return what else the file says of the model, as JSON values by title."""
        return {}

    def infer(
        self,
        graph: Graph,
        shapes: Mapping[str, Sequence[int] | Shape],
        types: Mapping[str, np.dtype] | None = None,
        *,
        default_dtype: np.dtype | None = None,
        train: bool = False,
    ) -> Mapping[Node, tuple[TypeSpec, ...]]:
        """Infer the types of all outputs of all nodes, see `passlib.dialects.inference.infer`.

        By default nothing is known.
        """
        return {node: (_UNKNOWN,) * max(node.num_outputs, 1) for node in graph.nodes()}

    def misfit(self, model: ModelData) -> str:
        """Return what contradicts the graph in weights that were put into a model.

        Only what `infer` does not find: by default nothing, which is the empty text.
        """
        return ""

    def known_texts(self, graph: Graph, params: Mapping[str, Any]) -> list[tuple[str, str]] | None:
        """Return `ext_shape` and `ext_dtype` of all nodes if they are known without `infer`."""
        return None

    def described(
        self, graph: PlainGraph, model: ModelData
    ) -> dict[Node, Sequence[Described | None]]:
        """Return the types of all outputs of all nodes, by the name of the node.

        ``graph``: the model's. An output that is left out has none.
        """
        weights = {**model.args, **model.aux}
        shapes = {name: array.shape for name, array in weights.items()}
        types = {name: array.dtype for name, array in weights.items()}
        known = self.infer(graph, shapes, types)
        return {
            node: [_described(node.name, spec) for spec in specs] for node, specs in known.items()
        }

    def has_functions(self, graph: PlainGraph) -> bool:
        """Whether the model of a graph has local functions."""
        return False

    def has_open_sizes(self, graph: Graph) -> bool:
        """Whether `open_sizes` has anything to find."""
        return False

    def open_sizes(
        self, graph: Graph, known: Mapping[str, TypeSpec], *, train: bool = False
    ) -> Overriding:
        """Find the sizes that creating operators leave open, from the nodes around them.

        Parameters
        ----------
        known : mapping of str to TypeSpec
            Types of the variables, as far as they are known.

        Returns
        -------
        mapping of Node to mapping of str to str
            The attributes that replace a node's own; empty by default.
        """
        return {}

    def registered_name(self, op: str) -> str:
        """Return the name of an operator of which ``op`` is an alias: by default itself."""
        return op

    # Operators of loaded libraries.

    def has_operator(self, name: str) -> bool:
        """Whether the dialect itself has an operator of this name."""
        return False

    def add_operator(self, rules: Rules) -> None:
        """Make an operator of a loaded library known, for dialects whose nodes may have it."""
        raise UnsupportedError(
            f"models of {self.title} cannot have the operator {rules.name!r} of a library"
        )


def _described(name: str, spec: TypeSpec) -> Described:
    dtype = None if spec.dtype is None else _name_of(spec.dtype)
    return Described(name, dtype, None if spec.shape is None else list(spec.shape))


def with_names(name: str, spec: TypeSpec, named: Described | None) -> Described:
    """Return a type with the names that another description of it has of open dimensions."""
    made = _described(name, spec)
    if made.shape is None or named is None or len(named.shape or ()) != len(made.shape):
        return made
    pairs = zip(made.shape, named.shape or (), strict=True)
    return made._replace(shape=[other if size is None else size for size, other in pairs])


def _name_of(dtype: np.dtype[Any]) -> str:
    return "str" if dtype.kind in "OU" else dtype.name
