"""The graph of a model, as users hold it: read, sliced, changed by passes, written."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

import passlib._core as _core
from passlib.arrays.context import Context, require_host
from passlib.arrays.dtypes import as_mapping, as_shapes, as_types
from passlib.arrays.shape_mode import is_np_shape
from passlib.arrays.views import read_only
from passlib.dialects import Dialect, find, infer
from passlib.dialects.inference import ext_dtype, ext_shape
from passlib.errors import GraphError, PasslibError, UnsupportedError, listed, printable, short_repr
from passlib.files.regular import replacing
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.graph.plain import ORIGIN, PlainGraph, collection_off
from passlib.graph.tables import Table
from passlib.library import backends
from passlib.library.call import Arrays, Backend, Call, Holder, Outcome, Param
from passlib.library.compiled import NumpyArrays
from passlib.library.pipeline import (
    Repeat,
    Step,
    Steps,
    check,
    execute,
    has_named,
    name_of,
    parse,
    steps_of,
    weights_differ,
)

logger = logging.getLogger(__name__)

_G = TypeVar("_G", bound="ModelGraph")


@short_repr
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
        del stype_dict  # MXNet's argument; storage types do not reach a pass
        if callable(backend):
            backend = name_of(backend)
        return optimized(
            self,
            backend,
            as_steps(backend),
            args,
            aux,
            ctx=ctx,
            shape_dict=shape_dict,
            type_dict=type_dict,
            skip_infer=skip_infer,
            keep_inferred=keep_inferred,
            **options,
        )

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
        from passlib.model import inferred

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
        from passlib.model import inferred

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
        from passlib.pages import MOST_IN_NOTEBOOKS, Side, content_of, framed

        counts = sorted(self.graph.operators().items(), key=lambda item: (-item[1], item[0]))
        rows = [(op, str(count)) for op, count in counts if op != VARIABLE]
        table = Table(("operator", "count"), rows)._repr_html_()
        drawn = len(self.graph) <= MOST_IN_NOTEBOOKS
        frame = framed(repr(self), content_of(Side(self))) if drawn else ""
        return f"<p>{escape(repr(self))}</p>{table}{frame}"


def graph_of(graph: _core.Graph, attributes: Mapping[str, str] | None, dialect: str) -> ModelGraph:
    """Wrap a native graph, which must not change afterwards, in the class of its dialect.

    ``graph``: checked, each node after its inputs; in post-order if the dialect wants that.
    ``attributes``: the graph's own attributes, as JSON by key; None for the dialect's defaults.
    """
    family = find(dialect)
    kind = family.graph_class or ModelGraph
    assert issubclass(kind, ModelGraph)
    return kind.of_native(graph, attributes, family)


def group(members: Sequence[ModelGraph]) -> ModelGraph:
    """Put the outputs of several parts of one model into one graph, in order.

    Raises `UnsupportedError` if the parts are not of the same model.
    """
    made = members[0].with_entries([entry for member in members for entry in member.entries])
    for member in members:
        # Facts of a model's file would be lost, or mistaken for those of another file.
        own = member.with_entries(member.entries).attributes
        if member.dialect != made.dialect or not _are_of_one_file(own, made.attributes):
            raise UnsupportedError(
                f"Group cannot put a graph of the dialect {made.dialect!r} together with one of "
                f"{member.dialect!r} from another model"
            )
    return made


def _are_of_one_file(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    # Texts that stand for a file's content have a separate class, and are equal in all files.
    return first.keys() == second.keys() and all(
        text is second[key] or (type(text) is str and text == second[key])
        for key, text in first.items()
    )


_PUNCTUATION = frozenset(",{<(")
"""Characters of a pipeline's text that no name of a pass has."""

_DIALECT = "dialect"
"""The attribute of the graph by which a pass sees the dialect."""

_INFERRED = ("__ext_shape__", "__ext_dtype__")

_kept: WeakKeyDictionary[_core.Graph, tuple[list[Any], list[tuple[str, str]]]] = WeakKeyDictionary()
"""The types of a graph's nodes, with the weights that they were inferred for."""


def as_steps(backend: Any) -> Steps | None:
    """Return the steps that an argument of ``optimize_for`` stands for; None for a single pass.

    ``backend``: the name or the function of a pass, the text of a pipeline where no pass has that
    name, a pipeline, or a list of what `passlib.Pipeline` takes. Raises `FormatError` if the text
    is no pipeline; `TypeError` if an item of the list is no step.
    """
    if isinstance(backend, str):
        is_name = not _PUNCTUATION.intersection(backend) or backend in backends.passes()
        if is_name and not backends.find_pipeline(backend):
            return None
        return parse(backend)
    if isinstance(backend, tuple) and len(backend) == 2 and isinstance(backend[1], Mapping):
        return steps_of(backend)
    if isinstance(backend, (list, tuple)):
        return tuple(step for item in backend for step in as_steps(item) or steps_of(item))
    steps = getattr(backend, "steps", None)
    return steps if isinstance(steps, tuple) else None


def refuse_options(options: Mapping[str, Any]) -> None:
    """Raise if options are given next to a pipeline, which has its own."""
    if options:
        raise PasslibError(
            f"option {next(iter(options))!r} was given next to a pipeline; options of a pass "
            "stand after its name: 'first, second{level=2}'"
        )


@dataclass(frozen=True)
class Request:
    """The arguments of a call of ``optimize_for``; `ModelGraph.optimize_for` describes them.

    ``given_as`` has the names under which the caller gave shapes and types, for messages.
    """

    backend: str | Backend
    args: MutableMapping[str, Any] | list[Any] | None = None
    aux: MutableMapping[str, Any] | list[Any] | None = None
    ctx: Context | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    types: Mapping[str, Any] | None = None
    given_as: tuple[str, str] = ("shape_dict", "type_dict")
    skip_infer: bool = False
    keep_inferred: bool = False
    options: Mapping[str, object] = field(default_factory=dict)


def optimized(
    graph: _G,
    backend: Any,
    steps: Steps | None,
    args: MutableMapping[str, Any] | list[Any] | None,
    aux: MutableMapping[str, Any] | list[Any] | None,
    /,
    *,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    type_dict: Mapping[str, Any] | None = None,
    stype_dict: object = None,
    **others: Any,
) -> _G:
    """Run a pass, or the steps that `as_steps` returned, as `ModelGraph.optimize_for` does."""
    # Model and convert call them shapes and types; a pass's own options are no mappings.
    given_as = ["shape_dict", "type_dict"]
    if isinstance(others.get("shapes"), Mapping):
        given_as[0] = "shapes"
        shape_dict = _once("shapes", others.pop("shapes"), "shape_dict", shape_dict)
    if isinstance(others.get("types"), Mapping):
        given_as[1] = "types"
        type_dict = _once("types", others.pop("types"), "type_dict", type_dict)
    request = Request(
        backend=backend,
        args=args,
        aux=aux,
        ctx=others.pop("ctx", None),
        shapes=shape_dict,
        types=type_dict,
        given_as=(given_as[0], given_as[1]),
        skip_infer=others.pop("skip_infer", False),
        keep_inferred=others.pop("keep_inferred", False),
        options=others,
    )
    if steps is None:
        return graph.of_native(*optimize_graph(graph, request), graph.family)
    refuse_options(others)
    return _run_steps(graph, steps, request)


def _once(name: str, given: Any, other: str, known: Any) -> Any:
    """Return a mapping that may be given under one of two names."""
    if known:
        raise TypeError(f"{name} and {other} are two names of one argument; give one of them")
    return given


class _State(NamedTuple):
    """A graph with args and aux."""

    symbol: Any
    weights: tuple[dict[str, Any] | None, ...]


class _Observer:
    """Runs steps on graphs with the arguments of a request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def apply(self, step: Step, options: dict[str, Any], subject: _State) -> _State:
        # Weights of a model stay such, and are not copied.
        args, aux = (None if given is None else type(given)(given) for given in subject.weights)
        request = replace(self._request, backend=step.name, args=args, aux=aux, options=options)
        symbol = subject.symbol
        made = symbol.of_native(*optimize_graph(symbol, request), symbol.family)
        if isinstance(args, NumpyArrays) and isinstance(aux, NumpyArrays):
            drop_removed(symbol, made, args, aux)
        return _State(made, (args, aux))

    def differs(self, before: _State, after: _State) -> bool:
        return not before.symbol.graph.equals(after.symbol.graph) or any(
            weights_differ(old or {}, new or {})
            for old, new in zip(before.weights, after.weights, strict=True)
        )


def drop_removed(before: PlainGraph, after: PlainGraph, *weights: NumpyArrays) -> None:
    """Take the weights of variables that a pass removed out of those of a model lent to it."""
    stated = [arrays.gone for arrays in weights if arrays.gone is not None]
    if len(stated) == len(weights):
        gone = {name for names in stated for name in names}
    else:
        gone = set(before.graph.missing_variables(after.graph))
    for arrays in weights:
        for name in gone:
            arrays.pop(name, None)


def _run_steps(graph: _G, steps: Steps, request: Request) -> _G:
    """Run passes in order; args and aux change when all of them have succeeded."""
    if has_named(steps):
        raise UnsupportedError(
            "simplify and clean work on models: passlib.Model(symbol, args, aux).optimize_for(...)"
        )
    text = request.backend if isinstance(request.backend, str) else ""
    options = check(steps, text, graph.dialect)
    # A repeat would not see writes of a pass to memory that was lent to it.
    watched = any(isinstance(step, Repeat) for step in steps)
    weights: list[MutableMapping[str, Any] | None] = []
    for given in (request.args, request.aux):
        if isinstance(given, list):
            raise TypeError("args and aux of several passes must be dictionaries of arrays by name")
        weights.append(given)
    held = tuple(
        None
        if given is None
        else (NumpyArrays if isinstance(given, NumpyArrays) else dict)(
            (name, read_only(array) if watched and isinstance(array, np.ndarray) else array)
            for name, array in given.items()
        )
        for given in weights
    )
    result = execute(steps, _State(graph, held), options, _Observer(request))
    for given, before, after in zip(weights, held, result.weights, strict=True):
        if given is not None and before is not None and after is not None:
            _update(given, before, after)
    made: _G = result.symbol
    return made


def _update(
    given: MutableMapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Bring the caller's dictionary up to date, arrays of the same kind in their memory."""
    for name in given.keys() - after.keys():
        del given[name]
    for name, array in after.items():
        if name in before and array is before[name]:
            continue
        own = given.get(name)
        if (
            isinstance(own, np.ndarray)
            and own.flags.writeable
            and (own.shape, own.dtype) == (array.shape, array.dtype)
        ):
            own[...] = array
        else:
            given[name] = array


def optimize_graph(symbol: PlainGraph, request: Request) -> tuple[_core.Graph, dict[str, str]]:
    """Run a pass or a partitioner on a graph; errors are those of `ModelGraph.optimize_for`.

    Returns
    -------
    graph : _core.Graph
        In post-order, with all numbers of outputs.
    attributes : dict of str to str
        Its own attributes, as JSON by key.
    """
    if not isinstance(request.backend, (str, Backend)):
        message = f"backend must be the name of a pass or partitioner, not {request.backend!r}"
        raise TypeError(message)
    if request.ctx is not None:
        require_host(request.ctx, "optimize_for")
    found = request.backend
    if isinstance(found, str):
        found = backends.find_backend(found)
    args, aux = request.args, request.aux
    if isinstance(args, list) or isinstance(aux, list):
        return _of_lists(symbol, request)
    dialect = find(symbol.dialect)
    declaration = found.declaration
    declaration.require_dialect(dialect.name)
    options = declaration.checked(request.options)
    shapes, types = _given_types(symbol, request)
    before = symbol.graph
    given = args is not None or aux is not None
    arguments, states = dialect.variables(before) if given else ([], [])
    weights = [*_arrays("args", args), *_arrays("aux", aux)]

    def check_files() -> None:
        _core.check_files(weights)
        dialect.check_source(symbol.attributes)

    check_files()
    lent = (found.lend("args", args, arguments), found.lend("aux", aux, states))
    # A pass that declares itself also gets what a model without weights states or determines.
    known = args or aux or shapes or types or (declaration.options is not None and _can_infer())
    wanted = declaration.needs_shapes or request.keep_inferred
    reader, shown = None, None
    if known and wanted and not request.skip_infer:
        if _can_infer():
            reader = _Types(symbol, lambda: [*lent[0].params, *lent[1].params], shapes, types)
        else:
            logger.warning(
                "shapes are not inferred for the pass, because the package onnx is not installed: "
                "pip install 'graph-passlib[onnx]', or pass skip_infer=True"
            )
    # Types that the caller gives must fit, whether the pass reads them or not.
    early = request.keep_inferred or shapes or types
    if reader is not None and (early or not found.reads_types(before)):
        shown = reader.shown()
    hidden, attributes = dialect.own_attributes, symbol.attributes
    visible = {k: v for k, v in attributes.items() if k not in hidden}
    own = {k: v for k, v in attributes.items() if k in hidden}
    visible[_DIALECT] = json.dumps(dialect.name)
    call = Call(
        options,
        visible,
        *lent,
        types_known=shown is not None,
        types=reader if shown is None else None,
        own_attributes=own,
    )
    try:
        outcome = found.run(call, shown if shown is not None else before, dialect)
    except PasslibError:
        check_files()  # the change of a file is the cause
        raise
    finally:
        if reader is not None and reader.error is not None:
            raise reader.error from None
    check_files()
    if outcome.graph is before:
        return before, dict(attributes)
    if reader is not None and not request.keep_inferred:
        outcome.graph.drop_node_attributes(list(_INFERRED))
    with collection_off():
        dialect.complete(outcome.graph)
        # The operator that wrote to a state may be gone already; names in aux count as states.
        _commit(symbol, outcome, lent, {*states, *(aux or ())}, _by_kind(outcome, args, aux))
        outcome.attributes.pop(_DIALECT, None)
        own = dialect.own_after(symbol, outcome.graph)
        return outcome.graph, {**outcome.attributes, **own}


def _arrays(kind: str, given: Any) -> Iterable[Any]:
    if given is not None and not isinstance(given, MutableMapping):
        message = f"{kind} must be a dictionary of arrays by name, not {type(given).__name__}"
        raise TypeError(message)
    return given.values() if isinstance(given, dict) else ()


def _of_lists(symbol: PlainGraph, request: Request) -> tuple[_core.Graph, dict[str, str]]:
    """Take lists, as MXNet 1.7 does: in the order of the variables, new arrays at the end."""
    variables = find(symbol.dialect).variables(symbol.graph)
    by_name: list[MutableMapping[str, Any] | None] = []
    for what, given, names in zip(
        ("args", "aux"), (request.args, request.aux), variables, strict=True
    ):
        if isinstance(given, list):
            if given and len(given) != len(names):
                raise ValueError(
                    f"{what} has {len(given)} arrays, but the symbol wants {len(names)}: "
                    f"{', '.join(names) or 'none'}"
                )
            by_name.append(dict(zip(names, given, strict=False)))
        else:
            by_name.append(given)
    result = optimize_graph(symbol, replace(request, args=by_name[0], aux=by_name[1]))
    for given, found, names in zip((request.args, request.aux), by_name, variables, strict=True):
        if isinstance(given, list) and found is not None:
            # Arrays of removed variables keep their places.
            given[:] = [found.get(name, old) for name, old in zip(names, given, strict=False)]
            known = set(names)
            given.extend(array for name, array in found.items() if name not in known)
    return result


def _commit(
    symbol: PlainGraph,
    outcome: Outcome,
    lent: tuple[Holder, Holder],
    was_aux: Collection[str],
    params: tuple[Arrays, Arrays],
) -> None:
    """Bring the caller's arrays up to date: ``args`` first in ``lent`` and ``params``."""

    @cache
    def parameters() -> set[str]:
        readable = {name for part in lent for name, *_ in part.params}
        return _removed_parameters(symbol, outcome.graph, outcome.gone, readable)

    for part, new, is_arg in zip(lent, params, (True, False), strict=True):
        gone = [name for name in outcome.gone if (name not in was_aux) == is_arg]
        part.commit(gone, new, lambda name: name in parameters())


def _by_kind(
    outcome: Outcome, args: Mapping[str, Any] | None, aux: Mapping[str, Any] | None
) -> tuple[Arrays, Arrays]:
    """Return the new parameters, for ``args`` and ``aux``: there or where the caller has them.

    In both they would be twice in a file.
    """
    made: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for kind, new in enumerate(outcome.params):
        for name, array in new.items():
            has = [name in (given or ()) for given in (args, aux)]
            made[kind if has[0] == has[1] else has.index(True)][name] = array
    return made


def _given_types(
    symbol: PlainGraph, request: Request
) -> tuple[dict[str, tuple[int | None, ...]], dict[str, np.dtype[Any]]]:
    """Return the shapes and element types that the caller gives, checked."""
    shapes_name, types_name = request.given_as
    if not (request.shapes or request.types):
        # The names of variables, which take time in a large graph, are not needed.
        for what, given in ((shapes_name, request.shapes), (types_name, request.types)):
            if given is not None:
                as_mapping(what, given, "...")
        return {}, {}
    weights = {*(request.args or ()), *(request.aux or ())}
    inputs = [n for n in find(symbol.dialect).data_inputs(symbol.graph) if n not in weights]
    hint = inputs[0] if inputs else ""
    shapes = as_shapes(shapes_name, request.shapes, hint)
    types = as_types(types_name, request.types, hint)
    unknown = sorted({*shapes, *types} - set(symbol.list_inputs()))
    if unknown:
        which = shapes_name if unknown[0] in shapes else types_name
        raise GraphError(
            f"{which}: the graph has no variable {listed([repr(name) for name in unknown])}; its "
            f"inputs are {listed(inputs)}"
        )
    return shapes, types


@cache
def _can_infer() -> bool:
    return importlib.util.find_spec("onnx") is not None


class _Types:
    """Infers the types of a symbol's nodes and keeps the exception that inference raises.

    Shapes and types are those that the caller gave for variables.
    """

    def __init__(
        self,
        symbol: PlainGraph,
        params: Callable[[], Sequence[Param]],
        shapes: Mapping[str, Sequence[int | None]],
        types: Mapping[str, np.dtype[Any]],
    ) -> None:
        self._symbol = symbol
        self._params = params
        self._given = (shapes, types)
        self.error: BaseException | None = None

    def __call__(self) -> list[tuple[str, str]]:
        """Return the texts of ``__ext_shape__`` and ``__ext_dtype__`` of each node."""
        try:
            return self._texts()
        except BaseException as error:
            self.error = error
            raise

    def _texts(self) -> list[tuple[str, str]]:
        params, symbol = self._params(), self._symbol
        if any(self._given):
            return self._inferred(params)
        key = [(name, array.ctypes.data, array.shape, array.dtype) for name, array, _ in params]
        kept = _kept.get(symbol.graph)
        if kept is not None and kept[0] == key:
            return kept[1]
        arrays = {name: array for name, array, _ in params}
        texts = find(symbol.dialect).known_texts(symbol, arrays) or self._inferred(params)
        _kept[symbol.graph] = (key, texts)
        return texts

    def _inferred(self, params: Sequence[Param]) -> list[tuple[str, str]]:
        given_shapes, given_types = self._given
        shapes: dict[str, tuple[int | None, ...]] = {name: array.shape for name, array, _ in params}
        shapes.update({name: tuple(shape) for name, shape in given_shapes.items()})
        types = {name: array.dtype for name, array, _ in params}
        types.update(given_types)
        # As in MXNet, unknown types are float32.
        found = infer(self._symbol, shapes, types, default_dtype=np.dtype(np.float32)).outputs
        each = (found[node] for node in self._symbol.nodes())
        return [(ext_shape(specs), ext_dtype(specs)) for specs in each]

    def shown(self) -> _core.Graph:
        """Return a copy of the graph, each node with these attributes."""
        graph = self._symbol.graph.copy()
        graph.set_node_attributes(
            [
                (position, key, text)
                for position, texts in enumerate(self())
                for key, text in zip(_INFERRED, texts, strict=True)
            ]
        )
        return graph


def _removed_parameters(
    symbol: PlainGraph, after: _core.Graph, gone: Sequence[str], lent: Collection[str]
) -> set[str]:
    """Return those of the removed variables that were parameters.

    These are the variables that only parameters can be, by the operators that used them, and those
    of ``lent``, whose arrays the pass could read, that it computed with: all their users are gone
    as well, and depended on arrays alone.
    """
    found = find(symbol.dialect).parameters_among(symbol.graph, set(gone))
    rest = {name for name in gone if name in lent and name not in found}
    if not rest:
        return found
    remaining = {node.name for node in after.nodes()}
    constant: dict[Node, bool] = {}
    folded = dict.fromkeys(rest, True)
    for node in symbol.nodes():
        if node.is_variable:
            constant[node] = node.name in lent
            continue
        constant[node] = all(constant[entry.node] for entry in node.inputs)
        for entry in node.inputs:
            if entry.node.is_variable and entry.node.name in folded:
                folded[entry.node.name] &= constant[node] and node.name not in remaining
    return found | {name for name, was in folded.items() if was}
