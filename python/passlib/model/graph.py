"""The graph of a model, as users hold it: read, sliced, changed by passes, written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import passlib._core as _core
from passlib.arrays.dtypes import as_shapes, as_types
from passlib.arrays.shape_mode import is_np_shape
from passlib.dialects import Dialect, find, infer
from passlib.errors import UnsupportedError, listed, printable
from passlib.files.regular import replacing
from passlib.graph.node import VARIABLE, Entry
from passlib.graph.plain import ORIGIN, PlainGraph
from passlib.graph.tables import Table
from passlib.library.pipeline import name_of
from passlib.model import inferred
from passlib.model.optimize import Request, optimize_graph
from passlib.model.sequence import as_steps, refuse_options, run_steps
from passlib.pages import MOST_IN_NOTEBOOKS, Side, content_of, framed

if TYPE_CHECKING:
    from passlib.arrays.context import Context

_G = TypeVar("_G", bound="ModelGraph")


class ModelGraph(PlainGraph):
    """A graph, seen from its outputs. Immutable; `optimize_for` returns a new one.

    ``model.symbol`` of a model of any dialect is one. Dialects may have a class of their own with
    more methods: MXNet's is `passlib.mxnet.symbol.Symbol`.

    Parameters
    ----------
    entries : sequence of Entry
        The outputs.
    dialect : str
        The family of models that the graph belongs to.

    Examples
    --------
    >>> import passlib as pl
    >>> graph = pl.sym.relu(pl.sym.var("x"), name="y")
    >>> isinstance(graph, pl.model.ModelGraph), graph.list_outputs()
    (True, ['y_output'])
    """

    __slots__ = ()

    def __init__(self, entries: Sequence[Entry], dialect: str) -> None:
        super().__init__(entries, find(dialect))

    @property
    def family(self) -> Dialect:
        """The dialect itself."""
        return find(self.dialect)

    @property
    def name(self) -> str | None:
        """The name of the node whose outputs these are; None for a group of several nodes."""
        nodes = {id(entry.node): entry.node for entry in self.entries}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    def attr(self, key: str) -> str | None:
        """Look up an attribute of the output's node; None if it has none of this name.

        A group of several nodes has no attributes.
        """
        return self.list_attr().get(key) if self.name is not None else None

    def list_attr(self) -> dict[str, str]:
        """Return the attributes of the output's node; of a group, those of its first."""
        return dict(self.entries[0].node.attrs) if self.entries else {}

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes of all nodes that have any, by node name."""
        return {node.name: dict(node.attrs) for node in self.nodes() if node.attrs}

    def get_internals(self: _G) -> _G:
        """Return a group of all outputs of all nodes: ``get_internals()["relu0_output"]``."""
        visible = self._conventions.visible_outputs
        return self.with_entries(
            [Entry(node, i) for node in self.nodes() for i in range(visible(node))]
        )

    def get_children(self: _G) -> _G | None:
        """Return a group of the inputs of the output's node; None for a variable."""
        nodes = {id(entry.node): entry.node for entry in self.entries}
        inputs = [entry for node in nodes.values() for entry in node.inputs]
        return self.with_entries(inputs) if inputs else None

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
        return "\n".join(printable(line, keep="\t") for line in lines) + "\n"

    # Writing.

    def tojson(self) -> str:
        """Write the graph as MXNet's JSON, with the operators and attributes of its dialect.

        Nodes stand in the order of the graph.
        """
        attributes = self.family.written_attributes(self._attributes)
        return self.graph.print(pretty=True, attributes=dict(attributes), omitted=ORIGIN)

    def save(self, fname: str | os.PathLike[str]) -> None:
        """Write `tojson` to a file, which is replaced as a whole or not at all.

        `Model.save` writes the files of the dialect.
        """
        text = self.tojson()
        with replacing(fname) as path:
            path.write_text(text, "utf-8", newline="")

    # Passes.

    def optimize_for(
        self: _G,
        backend: Any,
        args: MutableMapping[str, Any] | list[Any] | None = None,
        aux: MutableMapping[str, Any] | list[Any] | None = None,
        ctx: Context | None = None,
        shape_dict: Mapping[str, Sequence[int]] | None = None,
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, Any] | None = None,
        skip_infer: bool = False,
        keep_inferred: bool = False,
        **options: Any,
    ) -> _G:
        """Run a pass and return the resulting symbol; this one stays as it is.

        Parameters
        ----------
        backend : str, list or Pipeline
            Name of a pass of a loaded library (see `passlib.library.load`) or in Python. Where no
            pass has that name, the text of a pipeline: ``"first, second{level=2}"``. A list or a
            `passlib.Pipeline` is run in order; repeats end when the graph does not change.
        args, aux : dict of str to array, optional
            Weights (and data) and auxiliary states by name. The pass reads and writes their
            memory. After success these dictionaries also hold the parameters that it allocated,
            and no longer those whose node is gone. A list, as in MXNet 1.7, has an array for
            each variable or none; what the pass allocates is appended to it.
        ctx : Context, optional
            Must be the CPU.
        shape_dict, type_dict, stype_dict : mapping, optional
            Shapes, dtypes and storage types of variables that are not in args and aux, by name.
        skip_infer : bool
            Do not infer shapes and dtypes for the pass. Otherwise, if any array, shape or dtype is
            given or the pass declares itself, every node has ``__ext_shape__`` and
            ``__ext_dtype__`` while the pass runs. This needs the package onnx; without it a warning
            is logged if something is given.
        keep_inferred : bool
            Keep these two attributes in the result.
        **options
            Passed on as ``str(value)``, except ``shapes`` and ``types``: mappings of these names
            stand for ``shape_dict`` and ``type_dict``.

        Raises
        ------
        TypeError, ValueError
            Shapes or types are no mappings; a list has another length.
        PasslibError
            No loaded library has the pass.
        PassError
            The pass failed; the message includes its library's. Symbol and dictionaries are
            unchanged, but values that the pass wrote into an array's memory stay written.
        GraphError
            Shapes contradict each other, or one is given for a variable that does not exist.
        """
        if callable(backend):  # the function of a pass
            backend = name_of(backend)
        del stype_dict  # MXNet's argument; storage types do not reach a pass
        steps = as_steps(backend)
        # Where Model and convert say shapes and types; a pass's own options are no mappings.
        given_as = ["shape_dict", "type_dict"]
        if isinstance(options.get("shapes"), Mapping):
            given_as[0] = "shapes"
            shape_dict = _once("shapes", options.pop("shapes"), "shape_dict", shape_dict)
        if isinstance(options.get("types"), Mapping):
            given_as[1] = "types"
            type_dict = _once("types", options.pop("types"), "type_dict", type_dict)
        if steps is not None:
            refuse_options(options)
            common: dict[str, Any] = {given_as[0]: shape_dict, given_as[1]: type_dict, "ctx": ctx}
            common.update(skip_infer=skip_infer, keep_inferred=keep_inferred)

            def run(symbol: _G, name: str, args: Any, aux: Any, *, chosen: Any) -> _G:
                return symbol.optimize_for(name, args, aux, **{**common, **chosen})

            return run_steps(self, steps, backend, (args, aux), run)
        request = Request(
            backend=backend,
            args=args,
            aux=aux,
            ctx=ctx,
            shapes={} if shape_dict is None else shape_dict,
            types={} if type_dict is None else type_dict,
            given_as=(given_as[0], given_as[1]),
            skip_infer=skip_infer,
            keep_inferred=keep_inferred,
            options=options,
        )
        return self.of_native(*optimize_graph(self, request), self._conventions)

    # Shapes.

    def infer_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Infer the shapes of all arguments, outputs and auxiliary states.

        Parameters
        ----------
        *args, **kwargs : shape
            Shapes of arguments, in the order of `list_arguments` or by name.

        Returns
        -------
        arguments, outputs, auxiliary states : list of tuple
            None each, with a warning, if anything stays unknown.

        Raises
        ------
        GraphError
            Shapes contradict each other.
        """
        return self._inferred_shapes(args, kwargs, partial=False)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Infer like `infer_shape`; unknown shapes are ``()``, unknown sizes are 0.

        Under `passlib.util.np_shape` unknown shapes are None, unknown sizes are -1.
        """
        return self._inferred_shapes(args, kwargs, partial=True)

    def _inferred_shapes(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
    ) -> Any:
        shapes = as_shapes("infer_shape", inferred.named(self, args, kwargs))
        known = infer(self, shapes, {}, default_dtype=np.dtype(np.float32)).outputs
        return inferred.shapes(self, known, partial=partial, numpy=is_np_shape())

    def infer_type(self, *args: Any, **kwargs: Any) -> Any:
        """Infer the element types of all arguments, outputs and auxiliary states.

        Parameters and results are those of `infer_shape`, with types for shapes.
        """
        return self._inferred_types(args, kwargs, partial=False)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Infer like `infer_type`; unknown types are None."""
        return self._inferred_types(args, kwargs, partial=True)

    def _inferred_types(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
    ) -> Any:
        types = as_types("infer_type", inferred.named(self, args, kwargs))
        return inferred.types(self, infer(self, {}, types).outputs, partial=partial)

    # Python's protocols.

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self: _G) -> Iterator[_G]:
        return (self.with_entries((entry,)) for entry in self.entries)

    def __getitem__(self: _G, index: int | str | slice) -> _G:
        """Choose an output, by number or by its name in `list_outputs`, or a range of them."""
        if isinstance(index, slice):
            return self.with_entries(self.entries[index])
        if isinstance(index, str):
            matches = [i for i, name in enumerate(self.list_outputs()) if name == index]
            if len(matches) != 1:
                what = "several outputs are" if matches else "no output is"
                message = f"{what} named {index!r}; there are: {listed(self.list_outputs())}"
                raise ValueError(message)
            index = matches[0]
        try:
            return self.with_entries((self.entries[index],))
        except IndexError:
            message = f"there is no output {index}, the symbol has {len(self)}"
            raise IndexError(message) from None

    def __eq__(self, other: object) -> Any:
        raise TypeError(
            f"graphs of {self.dialect!r} are compared with first.graph.equals(second.graph)"
        )

    __hash__ = PlainGraph.__hash__

    def __copy__(self: _G) -> _G:
        return self

    def __deepcopy__(self: _G, memo: object) -> _G:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return graph_of, (self.graph, self._attributes, self.dialect)

    def __repr__(self) -> str:
        names = (
            printable(self.name or "")
            or "group [" + listed([e.node.name for e in self.entries]) + "]"
        )
        nodes = len(self.graph)
        outputs = len(self)
        return (
            f"<{type(self).__name__} {names}: {nodes} node{'s' * (nodes != 1)}, "
            f"{outputs} output{'s' * (outputs != 1)}>"
        )

    def _repr_html_(self) -> str:
        counts = sorted(self.graph.operators().items(), key=lambda item: (-item[1], item[0]))
        rows = [(op, str(count)) for op, count in counts if op != VARIABLE]
        table = Table(("operator", "count"), rows)._repr_html_()
        drawn = len(self.graph) <= MOST_IN_NOTEBOOKS
        frame = framed(repr(self), content_of(Side(self))) if drawn else ""
        return f"<p>{escape(repr(self))}</p>{table}{frame}"


def graph_of(graph: _core.Graph, attributes: Mapping[str, str] | None, dialect: str) -> ModelGraph:
    """Wrap a native graph, which nobody may change afterwards, in the class of its dialect.

    Parameters
    ----------
    graph : _core.Graph
        Checked, each node after its inputs; in post-order if the dialect wants that.
    attributes : mapping of str to str or None
        The graph's own attributes, as JSON by key; None for the dialect's defaults.
    dialect : str
    """
    family = find(dialect)
    kind = family.graph_class or ModelGraph
    assert issubclass(kind, ModelGraph)
    return kind.of_native(graph, attributes, family)


def group(members: Sequence[ModelGraph]) -> ModelGraph:
    """Put the outputs of several parts of one model into one graph, in order.

    Raises
    ------
    UnsupportedError
        The parts are not of the same model.
    """
    made = members[0].with_entries([entry for member in members for entry in member.entries])
    for member in members:
        # What a model's file states would be lost, or be taken for what another file states.
        own = member.with_entries(member.entries).attributes
        if member.dialect != made.dialect or not _are_of_one_file(own, made.attributes):
            raise UnsupportedError(
                f"Group cannot put a graph of the dialect {made.dialect!r} together with one of "
                f"{member.dialect!r} from another model"
            )
    return made


def _are_of_one_file(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    # Texts that stand for a file's content are of a class of their own, and equal in all files.
    return first.keys() == second.keys() and all(
        text is second[key] or (type(text) is str and text == second[key])
        for key, text in first.items()
    )


def _once(name: str, given: Any, other: str, known: Any) -> Any:
    """Return a mapping that may be given under one of two names."""
    if known:
        raise TypeError(f"{name} and {other} are two names of one argument; give one of them")
    return given
