"""The inputs of models: types, the arrays that are fed to them, likely causes of misfits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import passlib._core as _core
from passlib import dialects
from passlib.arrays import BaseSparseNDArray
from passlib.arrays.creation import array
from passlib.arrays.dtypes import as_shapes, as_types
from passlib.arrays.views import from_parts
from passlib.dialects import Dialect, ModelData
from passlib.dialects.inference import infer
from passlib.errors import GraphError, InputError, UnsupportedError, listed, no_input
from passlib.graph.plain import PlainGraph
from passlib.lowering import Lowered, Shape, TypeSpec
from passlib.model.graph import ModelGraph
from passlib.runtime.sessions import as_dense


def as_fed(given: Mapping[str, Any], others: Collection[str]) -> dict[str, Any]:
    """Return values as sessions take them.

    ``others``: inputs that are not arrays of numbers, but strings, sequences, maps or optional
    values. Result: arrays; lists, dictionaries and None where ``others`` permits it. Raises
    `TypeError` if a value is not an array of numbers; the message names its input.
    """
    return {n: _plain(v) if n in others else _as_array(n, v) for n, v in given.items()}


def _plain(value: Any) -> Any:
    """Return a value of strings, sequences or maps with NumPy's arrays in it, and no other ones."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, str) for item in value):
            return np.array(value, object)
        return [_plain(item) for item in value]
    return value


def _as_array(name: str, value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic, BaseSparseNDArray)):
        return value
    reason = ""
    if value is not None:  # which NumPy takes for NaN
        try:
            return array(value)
        except (TypeError, ValueError) as error:
            reason = f": {error}"
    raise TypeError(
        f"the value of {name!r} is of type {type(value).__name__}, but must be an array, or nested "
        f"lists of numbers, all of one length at each depth{reason}"
    )


_FLOAT32 = np.dtype(np.float32)


def input_types(
    symbol: ModelGraph,
    dialect: Dialect,
    data: ModelData,
    shapes: Mapping[str, Sequence[int | None]] | None,
    types: Mapping[str, Any] | None,
) -> dict[str, TypeSpec]:
    """Infer the types of all inputs whose shape is given, declared or follows from others.

    ``data``: the model. ``shapes``, ``types``: given by the caller. A given shape stays as open as
    it was given. Raises `TypeError` if shapes or types are not mappings of these; the message shows
    the right form; `InputError` if a name is not a variable; `GraphError` if shapes contradict each
    other.
    """
    weights = {**data.args, **data.aux}
    inputs = [name for name in dialect.data_inputs(data.graph) if name not in weights]
    hint = inputs[0] if inputs else ""
    given = as_shapes("shapes", shapes, hint)
    kinds = as_types("types", types, hint)
    unknown = sorted({*given, *kinds} - set(symbol.list_inputs()))
    if unknown:
        raise InputError(no_input(unknown, inputs))
    declared = dialect.input_types(data)
    known_shapes = {n: spec.shape for n, spec in declared.items() if spec.shape is not None}
    known_types = {n: spec.dtype for n, spec in declared.items() if spec.dtype is not None}
    known_shapes |= {name: array.shape for name, array in weights.items()} | given
    known_types |= {name: array.dtype for name, array in weights.items()} | kinds
    inferred = infer(symbol, known_shapes, known_types)
    specs = {}
    for node, outputs in inferred.outputs.items():
        if not node.is_variable or (node.name in weights and node.name not in given):
            continue
        # Of dialects whose graphs state all types, nothing is inferred.
        found = known_shapes.get(node.name) if outputs[0].shape is None else outputs[0].shape
        shape = _stated(given.get(node.name), found)
        if shape is not None:
            dtype = outputs[0].dtype or known_types.get(node.name) or _FLOAT32
            specs[node.name] = TypeSpec(dtype, shape)
    return specs


def _stated(given: Shape | None, found: Shape | None) -> Shape | None:
    """Return the shape of an input: as given, where 0 and -1 may stand for what is not known."""
    if given is None or found is None or len(given) != len(found):
        return found if given is None else given
    return tuple(
        known if size is not None and size < 1 else size
        for size, known in zip(given, found, strict=True)
    )


def lowered_for(
    symbol: ModelGraph,
    data: ModelData,
    shapes: Mapping[str, Sequence[int | None]] | None,
    types: Mapping[str, Any] | None,
) -> Lowered:
    """Lower a model for inputs of some shapes and element types.

    ``data``: the model. ``shapes``, ``types``: see `Model.to_onnx`.

    Raises
    ------
    GraphError, UnsupportedError
        See `Model.to_onnx`; the message names inputs without a known shape.
    """
    dialect = dialects.find(symbol.dialect)
    specs = input_types(symbol, dialect, data, shapes, types)
    arrays = {**data.args, **data.aux}
    weights = {name: as_dense(from_parts(array)) for name, array in arrays.items()}
    try:
        return dialect.lower_for_file(symbol, specs, weights)
    except (GraphError, UnsupportedError) as error:
        known = {*specs, *weights, *dialect.labels(symbol)}
        missing = [name for name in dialect.data_inputs(symbol.graph) if name not in known]
        if not missing:
            raise
        kind = InputError if isinstance(error, GraphError) else type(error)
        raise kind(
            f"{error}; give the shapes of {', '.join(missing)} as "
            f"to_onnx(path, shapes={{{missing[0]!r}: (...)}}), as convert(..., shapes=...), or as "
            f"--shape {missing[0]}:..."
        ) from error


def unknown_inputs(given: Mapping[str, Any], graph: PlainGraph, inputs: Sequence[str]) -> str:
    """Return the message for values under names that no variable has; empty if there are none."""
    others = given.keys() - set(inputs)
    unknown = sorted(str(name) for name in others - set(graph.list_inputs())) if others else []
    if not unknown:
        return ""
    return no_input(unknown, inputs)


def hint(
    said: str,
    graph: _core.Graph,
    dialect: Dialect,
    feeds: Mapping[str, Any],
    missing: Sequence[str],
    weights: Sequence[Any],
) -> str:
    """Return the likely cause of a failed run: missing values, or NumPy's float64.

    ``said``: the message of the failure; empty is returned if it states the cause already.
    ``missing``: inputs without a value. ``weights``: those of the model.
    """
    if missing:
        parameters = dialect.parameters_among(graph, set(missing)) if not weights else set()
        if parameters:
            text = without_weights(dialect, [n for n in missing if n in parameters])
            hint = "; name one with passlib.load(path, params='...')"
            return text + hint if dialect.weight_suffixes else text
        return "" if "is missing" in said else f"no value was given for {listed(missing)}"
    kinds = {name: getattr(value, "dtype", None) for name, value in feeds.items()}
    doubles = [name for name, dtype in kinds.items() if dtype == np.float64]
    if not doubles or ".astype(" in said or any(array.dtype == np.float64 for array in weights):
        return ""
    return (
        f"input {', '.join(doubles)} is float64, and no weight is: convert it with "
        ".astype('float32')"
    )


def without_weights(dialect: Dialect, parameters: Sequence[str], graph: str = "") -> str:
    """Return the message for a model whose weights were not found.

    ``graph``: path of the model, if it is known.
    """
    text = f"the model has no weights, and {listed(parameters, 3)} need them"
    if not dialect.weight_suffixes:
        return text
    suffix = dialect.weight_suffixes[0]
    name = f"{Path(graph).stem.removesuffix('-symbol')}*{suffix}" if graph else f"{suffix} file"
    return f"{text}: there was no {name} next to the graph"
