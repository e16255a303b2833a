"""Conversion to half precision, with the ranges of values on example inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from passlib.library.declared import names_of
from passlib.model import Model
from passlib.model.loading import AnyModel, as_model
from passlib.workbench.parts import outputs_of, values_of

_LARGEST: Final = float(np.finfo(np.float16).max)

_INFINITE: Final = 1e30
"""Numbers from this one on stand for infinity, as those of masks."""


def to_half(
    model: AnyModel,
    *,
    dtype: Literal["float16", "bfloat16"] = "float16",
    keep_io: bool = True,
    keep_ops: Collection[str] = (),
    keep_nodes: Collection[str] = (),
    clamp: bool = True,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
) -> Model:
    """Return an ONNX model that computes in half precision.

    It is the pass ``toHalf``, and with `inputs` more operators stay in float32.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    dtype : {"float16", "bfloat16"}
        The type instead of float32.
    keep_io : bool
        Keep the types of inputs and outputs, so that callers need no change.
    keep_ops, keep_nodes : collection of str
        Operators, and names of nodes, that stay in float32.
    clamp : bool
        Clamp constants that stand for infinity, such as those of masks.
    inputs : mapping of str to array, or sequence of these
        Examples of inputs. Nodes of the main graph stay in float32 if they read or compute a number
        beyond the range of float16, and below 1e30, which masks have. All values are computed at
        once, which takes memory.

    Raises
    ------
    PasslibError
        The model cannot be loaded or does not run on `inputs`, or the pass failed.

    Examples
    --------
    >>> import passlib
    >>> passlib.to_half("model.onnx").save("half.onnx")  # doctest: +SKIP
    """
    found = as_model(model)
    kept = set(names_of("keep_nodes", keep_nodes))
    for each in [inputs] if isinstance(inputs, Mapping) else inputs:
        if dtype == "float16":  # bfloat16 has the range of float32
            kept |= _beyond(found, each)
    return found.optimize_for(
        "toHalf",
        dtype=dtype,
        keep_io=keep_io,
        keep_ops=sorted(names_of("keep_ops", keep_ops)),
        keep_nodes=sorted(kept),
        clamp=clamp,
    )


def _beyond(model: Model, inputs: Mapping[str, Any]) -> set[str]:
    """Return the names of nodes that read or compute numbers beyond float16."""
    outputs_of(model, inputs)  # raises what is wrong with the inputs
    values = values_of(model, inputs)
    large = {key for key, value in values.items() if _largest_of(value) > _LARGEST}
    large |= {(name, 0) for name, value in inputs.items() if _largest_of(value) > _LARGEST}
    return {
        node.name
        for node in model.symbol.nodes()
        if not node.is_variable
        and (
            any((node.name, index) in large for index in range(node.num_outputs))
            or any((entry.node.name, entry.index) in large for entry in node.inputs)
        )
    }


def _largest_of(value: Any) -> float:
    """Return the largest magnitude of an array of float32 below that of masks, else 0."""
    array = np.asarray(value)
    if array.dtype != np.float32 or not array.size:
        return 0.0
    sizes = np.abs(array)
    return float(np.max(sizes, initial=0.0, where=sizes < _INFINITE))
