"""Inference of shapes and element types, and their spelling in MXNet's attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects.table import find
from passlib.errors import UnsupportedError, short_repr
from passlib.graph.attributes import parse_int, parse_optional_ints
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.lowering import Shape, TypeSpec


@short_repr
@dataclass(frozen=True)
class Inferred:
    """Inferred types of a graph's values.

    Attributes
    ----------
    outputs : mapping of Node to tuple of TypeSpec
        For every node, variables too, each of its outputs, the hidden ones included.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as pl
    >>> from passlib.dialects import infer
    >>> y = pl.sym.relu(pl.sym.var("x"), name="y")
    >>> [spec.shape for spec in infer(y, {"x": (2, 3)}, {"x": np.dtype("float32")}).by_name()["y"]]
    [(2, 3)]
    """

    outputs: Mapping[Node, tuple[TypeSpec, ...]]

    def by_name(self) -> dict[str, tuple[TypeSpec, ...]]:
        """Return the outputs by node name; of several nodes with one name, those of the last."""
        return {node.name: specs for node, specs in self.outputs.items()}


def infer(
    symbol: PlainGraph,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype] | None = None,
    *,
    default_dtype: np.dtype | None = None,
    train: bool = False,
) -> Inferred:
    """Infer shapes and element types of every node.

    Outputs of an operator without lowering have unknown shapes; inference continues after them.
    For dialects without inference everything is unknown.

    Parameters
    ----------
    shapes : mapping of str to shape
        Of any variables; a size of 0, -1 or ``None`` is unknown. For other variables the
        attribute ``__shape__`` counts.
    types : mapping of str to numpy.dtype, optional
        Of any variables. For other variables the attribute ``__dtype__`` counts, unless
        ``default_dtype`` is given.
    default_dtype : numpy.dtype, optional
        Element type of variables whose type is neither given nor inferred.
    train : bool
        Infer for training.

    Raises
    ------
    GraphError
        Shapes or types contradict each other; the message names the node.

    Examples
    --------
    >>> import passlib as pl
    >>> from passlib.dialects import infer
    >>> y = pl.sym.FullyConnected(pl.sym.var("x"), num_hidden=4, name="fc")
    >>> [spec.shape for spec in infer(y, {"x": (2, 3)}).by_name()["fc_weight"]]
    [(4, 3)]
    """
    known = find(symbol.dialect).infer(
        symbol, shapes, types, default_dtype=default_dtype, train=train
    )
    return Inferred(known)


def declared(attrs: Mapping[str, str]) -> TypeSpec:
    """Return the shape and type that the attributes of a variable declare.

    Examples
    --------
    >>> from passlib.dialects import declared
    >>> declared({"__shape__": "(2, 3)"}).shape
    (2, 3)
    """
    shape, dtype = attrs.get("__shape__"), attrs.get("__dtype__")
    code = -1 if dtype is None else parse_int(dtype)
    return TypeSpec(
        None if code < 0 else dtypes.from_code(code),
        None if shape in (None, "None") else parse_optional_ints(str(shape)),
    )


def ext_shape(specs: Sequence[TypeSpec]) -> str:
    """Write shapes as MXNet does in ``__ext_shape__``: ``[[2,4],[4],[4]]``.

    An output of unknown rank is ``None``, an unknown size -1.
    """
    return "[" + ",".join(_shape_text(spec.shape) for spec in specs) + "]"


def ext_dtype(specs: Sequence[TypeSpec]) -> str:
    """Write element types as MXNet does in ``__ext_dtype__``: ``[0,0,0]``.

    Types that are unknown, or have no code in MXNet, are -1.
    """
    return "[" + ",".join(str(_code(spec.dtype)) for spec in specs) + "]"


def _code(dtype: np.dtype | None) -> int:
    try:
        return -1 if dtype is None else dtypes.code(dtype)
    except UnsupportedError:  # text, complex numbers: other dialects have them
        return -1


def _shape_text(shape: Shape | None) -> str:
    if shape is None:
        return "None"
    return "[" + ",".join("-1" if size is None else str(size) for size in shape) + "]"
