"""Symbols: graphs as Python holds them, and the functions that make them.

``passlib.sym`` is this module. Besides what is defined here it has every operator of MXNet 1.9.1 as
a function: ``sym.Convolution(data, kernel=(3, 3), num_filter=8)``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, cast

from passlib import _core, arithmetic, dialects, functions
from passlib._atomic import replacing
from passlib.attribute import HIDDEN
from passlib.compose import group as Group  # noqa: N812 (MXNet's name)
from passlib.compose import var
from passlib.creation import (
    arange,
    eye,
    full,
    histogram,
    hypot,
    linspace,
    maximum,
    minimum,
    ones,
    pow,
    power,
    split_v2,
    zeros,
)
from passlib.dialects.graphs import freeze, thaw
from passlib.dialects.mxnet.dialect import read_symbol
from passlib.dialects.mxnet.symbol_file import VERSION
from passlib.errors import FormatError
from passlib.functions import contrib, image, internal, linalg, op, sparse
from passlib.mixed_precision import MIXED_PRECISION, without_casts
from passlib.node import Entry, Node, postorder
from passlib.optimize import optimize_graph
from passlib.sampling import random
from passlib.substitute import substitute

if TYPE_CHECKING:
    from passlib.context import Context
    from passlib.execution import Executor
    from passlib.nd import NDArray

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "contrib",
    "eye",
    "full",
    "histogram",
    "hypot",
    "image",
    "linalg",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "op",
    "pow",
    "power",
    "random",
    "sparse",
    "split_v2",
    "var",
    "zeros",
]

logger = logging.getLogger(__name__)

Variable = var
_internal = internal


class Symbol:
    """A graph, seen from its outputs. Never changes; `optimize_for` gives a new one.

    Parameters
    ----------
    entries : sequence of Entry
        The outputs.
    dialect : str
        The family of models that the graph belongs to.
    """

    __slots__ = ("__weakref__", "_attributes", "_dialect", "_entries", "_graph", "_nodes")

    def __init__(self, entries: Sequence[Entry], dialect: str = "mxnet") -> None:
        self._dialect = dialects.find(dialect)
        self._entries: tuple[Entry, ...] | None = tuple(entries)
        self._nodes: tuple[Node, ...] | None = None
        self._graph: _core.Graph | None = None
        self._attributes = self._dialect.default_attributes()

    @classmethod
    def of_graph(
        cls,
        graph: _core.Graph,
        attributes: Mapping[str, str] | None = None,
        dialect: str = "mxnet",
    ) -> Symbol:
        """Wrap a native graph, which nobody may change from here on.

        Parameters
        ----------
        graph : _core.Graph
            Checked, each node after its inputs; in post-order if the dialect wants that.
        attributes : mapping of str to str, optional
            The graph's own attributes, as JSON by key.
        dialect : str
        """
        symbol = cls.__new__(cls)
        symbol._dialect = dialects.find(dialect)
        symbol._entries = symbol._nodes = None
        symbol._graph = graph
        symbol._attributes = dict(attributes or symbol._dialect.default_attributes())
        return symbol

    # The graph is kept in either form and made into the other one when that is asked for.

    def _thaw(self) -> None:
        name = self._dialect.name
        self._nodes, self._entries = thaw(
            cast("_core.Graph", self._graph), lambda nested: Symbol.of_graph(nested, dialect=name)
        )

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The outputs: which output of which node."""
        if self._entries is None:
            self._thaw()
        return cast("tuple[Entry, ...]", self._entries)

    @property
    def graph(self) -> _core.Graph:
        """The graph in native form. It belongs to this symbol: copy it before you change it."""
        if self._graph is None:
            self._graph = freeze(cast("tuple[Entry, ...]", self._entries), lambda s: s.graph)
            self._dialect.complete(self._graph)
        return self._graph

    @property
    def dialect(self) -> str:
        """The family of models that the graph belongs to."""
        return self._dialect.name

    def nodes(self) -> list[Node]:
        """List all nodes, each after those that it takes input from.

        A node's edges are in ``node.inputs``; see also `edges`.
        """
        if self._entries is None:
            self._thaw()
        if self._nodes is None:
            self._nodes = tuple(postorder(entry.node for entry in self.entries))
        return list(self._nodes)

    def edges(self) -> Iterator[tuple[Node, int, Node, int]]:
        """Iterate over the edges: producer, its output, consumer, its input."""
        for node in self.nodes():
            for slot, entry in enumerate(node.inputs):
                yield entry.node, entry.index, node, slot

    # What MXNet's Symbol tells about itself.

    @property
    def name(self) -> str | None:
        """The name of the node whose outputs these are; None for a group of several nodes."""
        nodes = {id(entry.node): entry.node for entry in self.entries}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    def list_arguments(self) -> list[str]:
        """Name the variables that are not auxiliary states: inputs and weights."""
        return self._dialect.variables(self.graph)[0]

    def list_auxiliary_states(self) -> list[str]:
        """Name the variables that an operator writes to, such as the moving mean of a BatchNorm."""
        return self._dialect.variables(self.graph)[1]

    def list_inputs(self) -> list[str]:
        """Name all variables, in the order of the graph."""
        return self.graph.variables({})[0]

    def list_outputs(self) -> list[str]:
        """Name the outputs: ``fc1_output``, ``split0_output1``, ``bn_mean``; variables as such."""
        names = getattr(self._dialect, "output_names", None)
        if names is not None:
            return list(names(self))
        return [self._dialect.output_name(entry.node, entry.index) for entry in self.entries]

    def attr(self, key: str) -> str | None:
        """Look up an attribute of the output's node; None if it has none of this name.

        Keys that MXNet hides between underscores, such as ``__lr_mult__``, are found without them.
        A group of several nodes has no attributes.
        """
        return self.list_attr().get(key) if self.name is not None else None

    def list_attr(self) -> dict[str, str]:
        """Give the attributes of the output's node; of a group, those of its first."""
        return _with_plain_keys(self.entries[0].node.attrs) if self.entries else {}

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Give the attributes of all nodes that have any, by node name."""
        return {node.name: _with_plain_keys(node.attrs) for node in self.nodes() if node.attrs}

    def get_internals(self) -> Symbol:
        """Give a group of all outputs of all nodes: ``get_internals()["relu0_output"]``."""
        visible = self._dialect.visible_outputs
        return self._with([Entry(node, i) for node in self.nodes() for i in range(visible(node))])

    def _with(self, entries: Sequence[Entry]) -> Symbol:
        """Give a symbol of the same dialect with other outputs."""
        symbol = Symbol(entries, self._dialect.name)
        symbol._attributes = self._attributes
        return symbol

    def get_children(self) -> Symbol | None:
        """Give a group of what the output's node takes as input; None for a variable."""
        nodes = {id(entry.node): entry.node for entry in self.entries}
        inputs = [entry for node in nodes.values() for entry in node.inputs]
        return self._with(inputs) if inputs else None

    def debug_str(self) -> str:
        """Describe every node in a few lines: operator, name, inputs, attributes."""
        lines = ["Symbol Outputs:"]
        lines += [f"\toutput[{i}]={e.node.name}({e.index})" for i, e in enumerate(self.entries)]
        for node in self.nodes():
            if node.is_variable:
                lines.append(f"Variable:{node.name}")
                continue
            lines += ["--------------------", f"Op:{node.op}, Name={node.name}", "Inputs:"]
            lines += [
                f"\targ[{i}]={e.node.name}({e.index}) version={e.version}"
                for i, e in enumerate(node.inputs)
            ]
            lines += ["Attrs:"] if node.attrs else []
            lines += [f"\t{key}={value}" for key, value in sorted(node.attrs.items())]
        return "\n".join(lines) + "\n"

    # Writing.

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Write the graph as MXNet 1.9.1 writes it, byte for byte.

        Nodes stand in post-order from the outputs; what no output needs is not written.

        Parameters
        ----------
        remove_amp_cast : bool
            Leave out the casts that automatic mixed precision put in, as MXNet does.
        """
        graph = self.graph
        if remove_amp_cast and not graph.operators().keys().isdisjoint(MIXED_PRECISION):
            graph = self._with(without_casts(self.entries)).graph
        return graph.print(pretty=True, attributes=self._attributes)

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write `tojson` to a file, which is replaced as a whole or not at all."""
        text = self.tojson(remove_amp_cast)
        with replacing(fname) as path:
            path.write_text(text, "utf-8", newline="")

    # Passes.

    def optimize_for(
        self,
        backend: str,
        args: MutableMapping[str, Any] | None = None,
        aux: MutableMapping[str, Any] | None = None,
        ctx: Context | None = None,
        shape_dict: Mapping[str, Sequence[int]] | None = None,
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, Any] | None = None,
        skip_infer: bool = False,
        keep_inferred: bool = False,
        **options: Any,
    ) -> Symbol:
        """Run a pass and give the symbol that it made; this one stays as it is.

        Parameters
        ----------
        backend : str
            Name of a pass of a loaded library, see `passlib.library.load`.
        args, aux : dict of str to array, optional
            Weights (and data) and auxiliary states by name. The pass reads and writes their
            memory. When it has succeeded, what it allocated is in these dictionaries, and
            parameters whose node is gone are not.
        ctx : Context, optional
            Only the CPU.
        shape_dict, type_dict, stype_dict : mapping, optional
            Shapes, dtypes and storage types of variables that are not in args and aux, by name.
        skip_infer : bool
            Do not infer shapes and dtypes for the pass. Otherwise, if any array, shape or dtype is
            given, every node has ``__ext_shape__`` and ``__ext_dtype__`` while the pass runs. That
            needs the package onnx, and is left out where it is not installed.
        keep_inferred : bool
            Keep these two attributes in the result.
        **options
            Given to the pass as ``str(value)``.

        Returns
        -------
        Symbol

        Raises
        ------
        PasslibError
            There is no such pass.
        PassError
            The pass failed, with what its library said. Symbol and dictionaries are as they were;
            what the pass had already written into the memory of an array stays written.
        GraphError
            Shapes contradict each other.
        """
        graph, attributes = optimize_graph(
            self,
            backend,
            args,
            aux,
            ctx,
            shape_dict,
            type_dict,
            skip_infer=skip_infer,
            keep_inferred=keep_inferred,
            options=options,
        )
        return Symbol.of_graph(graph, attributes, self._dialect.name)

    @property
    def attributes(self) -> Mapping[str, str]:
        """The graph's own attributes, as JSON by top-level key of the file."""
        return MappingProxyType(self._attributes)

    # Shapes, and running.

    def infer_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Infer the shapes of all arguments, outputs and auxiliary states.

        Parameters
        ----------
        *args, **kwargs : shape
            Shapes of arguments, in the order of `list_arguments` or by name.

        Returns
        -------
        arguments, outputs, auxiliary states : list of tuple
            None each, with a warning, where something stays unknown.

        Raises
        ------
        GraphError
            Shapes contradict each other.
        """
        from passlib import infer_symbol

        return infer_symbol.infer_shape(self, args, kwargs, partial=False)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `infer_shape` does; what stays unknown is ``()``, unknown sizes are 0."""
        from passlib import infer_symbol

        return infer_symbol.infer_shape(self, args, kwargs, partial=True)

    def infer_type(self, *args: Any, **kwargs: Any) -> Any:
        """Infer the element types of all arguments, outputs and auxiliary states.

        Parameters and results are those of `infer_shape`, with types for shapes.
        """
        from passlib import infer_symbol

        return infer_symbol.infer_type(self, args, kwargs, partial=False)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `infer_type` does; what stays unknown is None."""
        from passlib import infer_symbol

        return infer_symbol.infer_type(self, args, kwargs, partial=True)

    def bind(
        self,
        ctx: Context | None = None,
        args: Any = None,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Any = None,
    ) -> Executor:
        """Bind arrays to the arguments, to run the graph: see `passlib.executor.bind`."""
        from passlib import executor

        return executor.bind(
            self, ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec
        )

    _bind = bind

    def simple_bind(
        self,
        ctx: Context | None = None,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        **shapes: Sequence[int],
    ) -> Executor:
        """Bind new arrays of these shapes: see `passlib.executor.simple_bind`."""
        from passlib import executor

        return executor.simple_bind(self, ctx, grad_req, type_dict, **shapes)

    _simple_bind = simple_bind

    def eval(self, ctx: Context | None = None, **arrays: Any) -> list[NDArray]:
        """Compute the outputs from arrays for all variables, by name."""
        from passlib import executor

        return executor.evaluate(self, ctx, **arrays)

    # Python's protocols.

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (self._with((entry,)) for entry in self.entries)

    def __bool__(self) -> NoReturn:
        message = (
            "a symbol has no truth value: comparisons of symbols are new symbols; "
            "compare with 'is', or tojson() for equal graphs"
        )
        raise TypeError(message)

    def __getitem__(self, index: int | str | slice) -> Symbol:
        """Choose an output, by number or by its name in `list_outputs`, or a range of them."""
        if isinstance(index, slice):
            return self._with(self.entries[index])
        if isinstance(index, str):
            matches = [i for i, name in enumerate(self.list_outputs()) if name == index]
            if len(matches) != 1:
                what = "several outputs are" if matches else "no output is"
                message = f"{what} named {index!r}; there are: {_shorten(self.list_outputs())}"
                raise ValueError(message)
            index = matches[0]
        try:
            return self._with((self.entries[index],))
        except IndexError:
            message = f"there is no output {index}, the symbol has {len(self)}"
            raise IndexError(message) from None

    def __getattr__(self, name: str) -> Any:
        return functions.method(self, name)

    def __call__(self, *, name: str | None = None, **inputs: Symbol) -> Symbol:
        """Put other symbols in the place of variables, by the variables' names."""
        return substitute(self, inputs, name)

    def __copy__(self) -> Symbol:
        return self

    def __deepcopy__(self, memo: object) -> Symbol:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return load_json, (self.tojson(remove_amp_cast=False),)

    def __repr__(self) -> str:
        names = self.name or "group [" + _shorten([e.node.name for e in self.entries]) + "]"
        nodes = len(self.graph)
        outputs = len(self)
        return (
            f"<Symbol {names}: {nodes} node{'s' * (nodes != 1)}, "
            f"{outputs} output{'s' * (outputs != 1)}>"
        )

    def __add__(self, other: Any) -> Symbol:
        return arithmetic.add(self, other)

    def __radd__(self, other: Any) -> Symbol:
        return arithmetic.add(other, self)

    def __sub__(self, other: Any) -> Symbol:
        return arithmetic.subtract(self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return arithmetic.subtract(other, self)

    def __mul__(self, other: Any) -> Symbol:
        return arithmetic.multiply(self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return arithmetic.multiply(other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return arithmetic.divide(self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return arithmetic.divide(other, self)

    def __mod__(self, other: Any) -> Symbol:
        return arithmetic.modulo(self, other)

    def __rmod__(self, other: Any) -> Symbol:
        return arithmetic.modulo(other, self)

    def __pow__(self, other: Any) -> Symbol:
        return arithmetic.power(self, other)

    def __rpow__(self, other: Any) -> Symbol:
        return arithmetic.power(other, self)

    def __neg__(self) -> Symbol:
        return arithmetic.negative(self)

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]
        return arithmetic.equal(self, other)

    def __ne__(self, other: object) -> Symbol:  # type: ignore[override]
        return arithmetic.not_equal(self, other)

    def __gt__(self, other: Any) -> Symbol:
        return arithmetic.greater(self, other)

    def __ge__(self, other: Any) -> Symbol:
        return arithmetic.greater_equal(self, other)

    def __lt__(self, other: Any) -> Symbol:
        return arithmetic.lesser(self, other)

    def __le__(self, other: Any) -> Symbol:
        return arithmetic.lesser_equal(self, other)

    __hash__ = object.__hash__


def load(fname: str | os.PathLike[str]) -> Symbol:
    """Read a symbol file.

    Raises
    ------
    FormatError
        The file is no symbol; the message has file, line and column.
    """
    path = Path(fname)
    try:
        return load_json(path.read_bytes())
    except FormatError as error:
        message = f"{path}: {error}"
        raise type(error)(
            message, offset=error.offset, line=error.line, column=error.column
        ) from error


def load_json(json_str: str | bytes) -> Symbol:
    """Read a symbol from the text of a symbol file.

    Files of older MXNet versions are upgraded by MXNet's own rules; that is logged.

    Raises
    ------
    FormatError
        The text is no symbol; the message has line and column.
    """
    graph, attributes, version = read_symbol(json_str)
    if version < VERSION:
        logger.info("upgraded a symbol saved by MXNet version %d", version)
    return Symbol.of_graph(graph, attributes)


def _with_plain_keys(attrs: Mapping[str, str]) -> dict[str, str]:
    """Add the attributes that stand between underscores under their plain names, as MXNet does."""
    plain = {key: attrs[f"__{key}__"] for key in HIDDEN if f"__{key}__" in attrs}
    return {**plain, **attrs}


def _shorten(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


def __getattr__(name: str) -> Any:
    return functions.operator(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *functions.operator_names()})
