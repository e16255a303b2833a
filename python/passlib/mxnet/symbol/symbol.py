"""The class `Symbol`: a graph with MXNet's methods."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import passlib._core as _core
from passlib.dialects import find
from passlib.errors import listed, printable
from passlib.files.saving import replacing
from passlib.graph.native import ORIGIN
from passlib.graph.node import VARIABLE, Entry
from passlib.graph.substitute import substitute
from passlib.graph.tables import Table
from passlib.library.pipeline import name_of
from passlib.mxnet.reading.symbol import read_symbol
from passlib.mxnet.schema.hidden import HIDDEN
from passlib.mxnet.symbol import inference
from passlib.mxnet.symbol.composition import functions
from passlib.mxnet.symbol.composition.arithmetic import Arithmetic
from passlib.mxnet.symbol.for_arrays import ForArrays
from passlib.mxnet.symbol.mixed_precision import MIXED_PRECISION, without_casts
from passlib.mxnet.symbol.optimize import Request, optimize_graph
from passlib.mxnet.symbol.sequence import as_steps, refuse_options, run_steps
from passlib.pages import MOST_IN_NOTEBOOKS, Side, content_of, framed
from passlib.runtime import binding

if TYPE_CHECKING:
    from passlib.arrays.context import Context
    from passlib.arrays.ndarray import NDArray
    from passlib.runtime.executor import Executor


class Symbol(ForArrays, Arithmetic):
    """A graph, seen from its outputs. Immutable; `optimize_for` returns a new one.

    Parameters
    ----------
    entries : sequence of Entry
        The outputs.
    dialect : str
        The family of models that the graph belongs to.

    Examples
    --------
    >>> import passlib as pl
    >>> y = pl.sym.relu(pl.sym.var("x")) + 1
    >>> [node.op for node in y.nodes()]
    ['null', 'relu', '_plus_scalar']
    """

    __slots__ = ()

    @classmethod
    def of_graph(
        cls,
        graph: _core.Graph,
        attributes: Mapping[str, str] | None = None,
        dialect: str = "mxnet",
    ) -> Symbol:
        """Wrap a native graph, which nobody may change afterwards.

        Parameters
        ----------
        graph : _core.Graph
            Checked, each node after its inputs; in post-order if the dialect wants that.
        attributes : mapping of str to str, optional
            The graph's own attributes, as JSON by key.
        dialect : str
        """
        return cls.of_native(graph, attributes, find(dialect))

    @classmethod
    def of_json(cls, text: str | bytes) -> Symbol:
        """Read a symbol from MXNet's JSON; parameters and errors are those of `load_json`."""
        graph, attributes, _ = read_symbol(text)
        return cls.of_graph(graph, attributes)

    @property
    def name(self) -> str | None:
        """The name of the node whose outputs these are; None for a group of several nodes."""
        nodes = {id(entry.node): entry.node for entry in self.entries}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    def attr(self, key: str) -> str | None:
        """Look up an attribute of the output's node; None if it has none of this name.

        Keys that MXNet hides between underscores, such as ``__lr_mult__``, are found without them.
        A group of several nodes has no attributes.
        """
        return self.list_attr().get(key) if self.name is not None else None

    def list_attr(self) -> dict[str, str]:
        """Return the attributes of the output's node; of a group, those of its first."""
        return _with_plain_keys(self.entries[0].node.attrs) if self.entries else {}

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes of all nodes that have any, by node name."""
        return {node.name: _with_plain_keys(node.attrs) for node in self.nodes() if node.attrs}

    def get_internals(self) -> Symbol:
        """Return a group of all outputs of all nodes: ``get_internals()["relu0_output"]``."""
        visible = self._conventions.visible_outputs
        return self.with_entries(
            [Entry(node, i) for node in self.nodes() for i in range(visible(node))]
        )

    def get_children(self) -> Symbol | None:
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

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Write the graph as MXNet 1.9.1 writes it, byte for byte.

        Nodes stand in post-order from the outputs; nodes that no output needs are not written.

        Parameters
        ----------
        remove_amp_cast : bool
            Leave out the casts that automatic mixed precision put in, as MXNet does.
        """
        graph = self.graph
        if remove_amp_cast and not graph.operators().keys().isdisjoint(MIXED_PRECISION):
            graph = self.with_entries(without_casts(self.entries)).graph
        attributes = self.family.written_attributes(self._attributes)
        return graph.print(pretty=True, attributes=dict(attributes), omitted=ORIGIN)

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write `tojson` to a file, which is replaced as a whole or not at all."""
        text = self.tojson(remove_amp_cast)
        with replacing(fname) as path:
            path.write_text(text, "utf-8", newline="")

    # Passes.

    def optimize_for(
        self,
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
    ) -> Symbol:
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

            def run(symbol: Symbol, name: str, args: Any, aux: Any, *, chosen: Any) -> Symbol:
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
            None each, with a warning, if anything stays unknown.

        Raises
        ------
        GraphError
            Shapes contradict each other.
        """
        return inference.infer_shape(self, args, kwargs, partial=False)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Infer like `infer_shape`; unknown shapes are ``()``, unknown sizes are 0.

        Under `passlib.util.np_shape` unknown shapes are None, unknown sizes are -1.
        """
        return inference.infer_shape(self, args, kwargs, partial=True)

    def infer_type(self, *args: Any, **kwargs: Any) -> Any:
        """Infer the element types of all arguments, outputs and auxiliary states.

        Parameters and results are those of `infer_shape`, with types for shapes.
        """
        return inference.infer_type(self, args, kwargs, partial=False)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Any:
        """Infer like `infer_type`; unknown types are None."""
        return inference.infer_type(self, args, kwargs, partial=True)

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
        return binding.bind(
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
        return binding.simple_bind(self, ctx, grad_req, type_dict, **shapes)

    _simple_bind = simple_bind

    def eval(self, ctx: Context | None = None, **arrays: Any) -> list[NDArray]:
        """Compute the outputs from arrays for all variables, by name."""
        return binding.evaluate(self, ctx, **arrays)

    # Python's protocols.

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (self.with_entries((entry,)) for entry in self.entries)

    def __getitem__(self, index: int | str | slice) -> Symbol:
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

    def __getattr__(self, name: str) -> Any:
        return functions.method(self, name, type(self))

    def __call__(self, *, name: str | None = None, **inputs: Symbol) -> Symbol:
        """Replace variables by other symbols, by the variables' names."""
        return type(self)(substitute(self, inputs, name))

    def __copy__(self) -> Symbol:
        return self

    def __deepcopy__(self, memo: object) -> Symbol:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Symbol.of_graph, (self.graph, self._attributes, self.dialect)

    def __repr__(self) -> str:
        names = (
            printable(self.name or "")
            or "group [" + listed([e.node.name for e in self.entries]) + "]"
        )
        nodes = len(self.graph)
        outputs = len(self)
        return (
            f"<Symbol {names}: {nodes} node{'s' * (nodes != 1)}, "
            f"{outputs} output{'s' * (outputs != 1)}>"
        )

    def _repr_html_(self) -> str:
        counts = sorted(self.graph.operators().items(), key=lambda item: (-item[1], item[0]))
        rows = [(op, str(count)) for op, count in counts if op != VARIABLE]
        table = Table(("operator", "count"), rows)._repr_html_()
        drawn = len(self.graph) <= MOST_IN_NOTEBOOKS
        frame = framed(repr(self), content_of(Side(self))) if drawn else ""
        return f"<p>{escape(repr(self))}</p>{table}{frame}"


def _once(name: str, given: Any, other: str, known: Any) -> Any:
    """Return a mapping that may be given under one of two names."""
    if known:
        raise TypeError(f"{name} and {other} are two names of one argument; give one of them")
    return given


def _with_plain_keys(attrs: Mapping[str, str]) -> dict[str, str]:
    """Add the attributes that stand between underscores under their plain names, as MXNet does."""
    plain = {key: attrs[f"__{key}__"] for key in HIDDEN if f"__{key}__" in attrs}
    return {**plain, **attrs}
