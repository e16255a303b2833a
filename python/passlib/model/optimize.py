"""The steps of ``optimize_for``: lend parameters, infer shapes, call the pass, update."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import passlib._core as _core
from passlib.arrays.context import Context, require_host
from passlib.arrays.dtypes import as_mapping, as_shapes, as_types
from passlib.dialects import find
from passlib.dialects.inference import ext_dtype, ext_shape, infer
from passlib.errors import GraphError, listed
from passlib.files.regular import collection_off
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.library.backends import find_backend
from passlib.library.call import Backend, Call, Holder, Outcome, Param

logger = logging.getLogger(__name__)

_DIALECT = "dialect"
"""The attribute of the graph by which a pass sees the dialect."""

_INFERRED = ("__ext_shape__", "__ext_dtype__")

_kept: WeakKeyDictionary[_core.Graph, tuple[list[Any], list[tuple[str, str]]]] = WeakKeyDictionary()
"""The types of a graph's nodes, with the weights that they were inferred for."""


@dataclass(frozen=True)
class Request:
    """What a caller of ``optimize_for`` asks for; `ModelGraph.optimize_for` describes the fields.

    ``given_as`` has the names under which the caller gave shapes and types, for messages.
    """

    backend: str | Backend
    args: MutableMapping[str, Any] | list[Any] | None = None
    aux: MutableMapping[str, Any] | list[Any] | None = None
    ctx: Context | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    types: Mapping[str, Any] = field(default_factory=dict)
    given_as: tuple[str, str] = ("shape_dict", "type_dict")
    skip_infer: bool = False
    keep_inferred: bool = False
    options: Mapping[str, object] = field(default_factory=dict)


def optimize_graph(symbol: PlainGraph, request: Request) -> tuple[_core.Graph, dict[str, str]]:
    """Run a pass or a partitioner on a symbol.

    Parameters
    ----------
    symbol : PlainGraph
    request : Request

    Returns
    -------
    graph : _core.Graph
        In post-order, with all numbers of outputs.
    attributes : dict of str to str
        Its own attributes, as JSON by key.

    Raises
    ------
    PasslibError, PassError, GraphError
        As by `ModelGraph.optimize_for`.
    """
    if not isinstance(request.backend, (str, Backend)):
        message = f"backend must be the name of a pass or partitioner, not {request.backend!r}"
        raise TypeError(message)
    require_host(request.ctx, "optimize_for")
    found = request.backend
    if isinstance(found, str):
        found = find_backend(found)
    args, aux = request.args, request.aux
    if isinstance(args, list) or isinstance(aux, list):
        return _of_lists(symbol, request)
    dialect = find(symbol.dialect)
    found.declaration.require_dialect(dialect.name)
    options = found.declaration.checked(request.options)
    shapes, types = _given_types(symbol, request)
    before = symbol.graph
    given = args is not None or aux is not None
    arguments, states = dialect.variables(before) if given else ([], [])
    weights = [*_arrays(args), *_arrays(aux)]
    _core.check_files(weights)
    lent = (found.lend("args", args, arguments), found.lend("aux", aux, states))
    known = bool(args or aux or shapes or types)
    # A pass that declares itself also gets what a model without weights states or determines.
    known = known or (found.declaration.options is not None and _can_infer())
    wanted = found.declaration.needs_shapes or request.keep_inferred
    reader, shown = None, None
    if known and wanted and not request.skip_infer:
        if _can_infer():
            reader = _Types(symbol, lambda: [*lent[0].params, *lent[1].params], shapes, types)
        else:
            logger.warning(
                "shapes are not inferred for the pass, because the package onnx is not installed: "
                "pip install 'graph-passlib[onnx]', or pass skip_infer=True"
            )
    # What the caller gives must fit, whether the pass reads it or not.
    early = request.keep_inferred or shapes or types
    if reader is not None and (early or not found.reads_types(before)):
        shown = reader.shown()
    hidden = dialect.own_attributes
    visible = {k: v for k, v in symbol.attributes.items() if k not in hidden}
    own = {k: v for k, v in symbol.attributes.items() if k in hidden}
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
    finally:
        if reader is not None and reader.error is not None:
            raise reader.error from None
    _core.check_files(weights)
    if reader is not None and not request.keep_inferred:
        outcome.graph.drop_node_attributes(list(_INFERRED))
    with collection_off():
        dialect.complete(outcome.graph)
        # The operator that wrote to a state may be gone already; names in aux count as states.
        _commit(symbol, outcome, lent, {*states, *(aux or ())})
        outcome.attributes.pop(_DIALECT, None)
        own = dialect.own_after(symbol, outcome.graph)
        return outcome.graph, {**outcome.attributes, **own}


def _arrays(given: Any) -> Iterable[Any]:
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
            # Those of removed variables keep their places.
            given[:] = [found.get(name, old) for name, old in zip(names, given, strict=False)]
            known = set(names)
            given.extend(array for name, array in found.items() if name not in known)
    return result


def _commit(
    symbol: PlainGraph, outcome: Outcome, lent: tuple[Holder, Holder], was_aux: Collection[str]
) -> None:
    """Bring the caller's arrays up to date: ``args`` first in ``lent``, then ``aux``."""

    @cache
    def parameters() -> set[str]:
        readable = {name for part in lent for name, *_ in part.params}
        return _removed_parameters(symbol, outcome.graph, outcome.gone, readable)

    for part, new, is_arg in zip(lent, outcome.params, (True, False), strict=True):
        gone = [name for name in outcome.gone if (name not in was_aux) == is_arg]
        part.commit(gone, new, lambda name: name in parameters())


def _given_types(
    symbol: PlainGraph, request: Request
) -> tuple[dict[str, tuple[int | None, ...]], dict[str, np.dtype[Any]]]:
    """Return the shapes and element types that the caller gives, checked."""
    shapes_name, types_name = request.given_as
    if not (request.shapes or request.types):
        # Not even the names of variables are needed, which take time in a large graph.
        for what, given in ((shapes_name, request.shapes), (types_name, request.types)):
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
    """Infers the types of a symbol's nodes, and keeps the exception of that.

    Parameters
    ----------
    params : sequence of Param
        Those of the graph's variables.
    shapes, types : mapping
        Those of variables, as the caller gave them.
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
        texts = find(symbol.dialect).stated_texts(symbol, arrays) or self._inferred(params)
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
    that the pass computed with: all their users are gone as well, and depended on arrays alone.

    Parameters
    ----------
    symbol : PlainGraph
        The graph before the pass.
    after : _core.Graph
    gone : sequence of str
        Variables that ``after`` does not have.
    lent : collection of str
        Variables whose arrays the pass could read.
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
