"""Models lowered for export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib import dialects
from passlib.arrays.views import from_parts
from passlib.dialects import ModelData
from passlib.errors import GraphError, InputError, UnsupportedError
from passlib.lowering import Lowered
from passlib.model.graph import ModelGraph
from passlib.model.inputs import input_types
from passlib.runtime.sessions import as_dense


def lowered_for(
    symbol: ModelGraph,
    data: ModelData,
    shapes: Mapping[str, Sequence[int | None]] | None,
    types: Mapping[str, Any] | None,
) -> Lowered:
    """Lower a model for inputs of some shapes and element types.

    Parameters
    ----------
    symbol : ModelGraph
    data : ModelData
        The model.
    shapes, types : mapping of str to shape or dtype, optional
        See `Model.to_onnx`.

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
        return dialect.lower(symbol, specs, weights)
    except (GraphError, UnsupportedError) as error:
        inputs = dialect.data_inputs(symbol.graph)
        missing = [name for name in inputs if name not in specs and name not in weights]
        if not missing:
            raise
        kind = InputError if isinstance(error, GraphError) else type(error)
        raise kind(
            f"{error}; give the shapes of {', '.join(missing)} as "
            f"to_onnx(path, shapes={{{missing[0]!r}: (...)}}), as convert(..., shapes=...), or as "
            f"--shape {missing[0]}:..."
        ) from error
