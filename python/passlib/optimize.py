"""What ``optimize_for`` does: lend the parameters, infer shapes, call the pass, take stock."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib import _core, dialects, dtypes, library
from passlib.context import require_host
from passlib.parameters import Lent
from passlib.partition_call import call_partitioner
from passlib.pass_call import Param, call_pass

if TYPE_CHECKING:
    from passlib.context import Context
    from passlib.symbol import Symbol

__all__ = ["optimize_graph"]

logger = logging.getLogger(__name__)

_DIALECT = "dialect"
"""The attribute of the graph that tells a pass which family of models it has before it."""

_INFERRED = ("__ext_shape__", "__ext_dtype__")


def optimize_graph(
    symbol: Symbol,
    backend: str,
    args: MutableMapping[str, Any] | None,
    aux: MutableMapping[str, Any] | None,
    ctx: Context | None,
    shape_dict: Mapping[str, Sequence[int]] | None,
    type_dict: Mapping[str, Any] | None,
    *,
    skip_infer: bool,
    keep_inferred: bool,
    options: Mapping[str, object],
) -> tuple[_core.Graph, dict[str, str]]:
    """Run a pass or a partitioner on a symbol.

    Parameters and errors are those of `Symbol.optimize_for`.

    Returns
    -------
    graph : _core.Graph
        In post-order, with all numbers of outputs.
    attributes : dict of str to str
        Its own attributes, as JSON by key.
    """
    if not isinstance(backend, str):
        message = f"backend must be the name of a pass or partitioner, not {backend!r}"
        raise TypeError(message)
    require_host(ctx, "optimize_for")
    found = library.find_backend(backend)
    dialect = dialects.find(symbol.dialect)
    before = symbol.graph
    given = args is not None or aux is not None
    arguments, states = dialect.variables(before) if given else ([], [])
    lent_args = Lent("args", args, arguments)
    lent_aux = Lent("aux", aux, states)
    infer = bool(args or aux or shape_dict or type_dict) and not skip_infer
    shown = None
    if infer:
        params = [*lent_args.params, *lent_aux.params]
        shown = _with_inferred(symbol, params, shape_dict or {}, type_dict or {})
    own = {k: v for k, v in symbol.attributes.items() if k in dialect.own_attributes}
    visible = {k: v for k, v in symbol.attributes.items() if k not in own}
    visible[_DIALECT] = json.dumps(dialect.name)
    graph = shown if shown is not None else before
    consume = shown is not None
    if found.is_partitioner:
        outcome = call_partitioner(
            found,
            graph,
            options,
            dialect,
            consume=consume,
            attributes=visible,
            args=lent_args.params,
            aux=lent_aux.params,
        )
    else:
        outcome = call_pass(
            found,
            graph,
            options,
            consume=consume,
            attributes=visible,
            ordered=dialect.ordered,
            args=lent_args.params,
            aux=lent_aux.params,
            accept_args=lent_args.accepts_new,
            accept_aux=lent_aux.accepts_new,
        )
    if shown is not None and not keep_inferred:
        outcome.graph.drop_node_attributes(list(_INFERRED))
    dialect.complete(outcome.graph)
    parameters = dialect.parameters_among(before, set(outcome.gone)) if outcome.gone else set()
    # An operator that wrote to a state may be gone for long: what lies in aux is taken from there.
    was_aux = {*states, *(aux or ())}
    for lent, is_arg in ((lent_args, True), (lent_aux, False)):
        lent.commit(
            [name for name in outcome.gone if (name not in was_aux) == is_arg],
            [param for param in outcome.params if param.is_arg == is_arg],
            parameters.__contains__,
        )
    outcome.attributes.pop(_DIALECT, None)
    return outcome.graph, {**outcome.attributes, **own}


def _with_inferred(
    symbol: Symbol,
    params: Sequence[Param],
    shape_dict: Mapping[str, Sequence[int]],
    type_dict: Mapping[str, Any],
) -> _core.Graph | None:
    """Copy the graph, with shapes and dtypes of all outputs as attributes of every node."""
    if importlib.util.find_spec("onnx") is None:
        logger.warning(
            "shapes are not inferred for the pass, for the package onnx is not installed: "
            "pip install 'graph-passlib[onnx]', or give skip_infer=True"
        )
        return None
    from passlib.infer import ext_dtype, ext_shape, infer

    shapes: dict[str, Sequence[int]] = {name: array.shape for name, array, _ in params}
    shapes.update(shape_dict)
    types = {name: array.dtype for name, array, _ in params}
    types.update({name: dtypes.as_dtype(dtype) for name, dtype in type_dict.items()})
    # As in MXNet, what nobody knows the type of is float32.
    inferred = infer(symbol, shapes, types, default_dtype=np.dtype(np.float32))
    values = []
    for position, node in enumerate(symbol.nodes()):
        specs = inferred.outputs[node]
        values.append((position, "__ext_shape__", ext_shape(specs)))
        values.append((position, "__ext_dtype__", ext_dtype(specs)))
    graph = symbol.graph.copy()
    graph.set_node_attributes(values)
    return graph
