"""Descriptions of symbols, with MXNet's names: a table, and a drawing by graphviz."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from passlib.arrays.dtypes import as_shapes, as_types
from passlib.dialects import infer
from passlib.errors import GraphError, printable
from passlib.files.optional import require
from passlib.graph.node import Node
from passlib.lowering import Shape
from passlib.model.graph import ModelGraph
from passlib.mxnet.symbol.symbol import Symbol

__all__ = ["plot_network", "print_summary"]


def require_symbol(symbol: Any) -> ModelGraph:
    """Return the symbol; TypeError if it is something else."""
    if not isinstance(symbol, ModelGraph):
        raise TypeError(f"expected a symbol, not {type(symbol).__name__}")
    return symbol


def known_shapes(
    symbol: Symbol,
    shape: Mapping[str, Sequence[int]] | None,
    dtype: Mapping[str, Any] | None = None,
) -> dict[Node, Shape]:
    """Infer the shapes of the first output of each node.

    Raises `GraphError` if a shape is given for a variable that does not exist, or shapes contradict
    each other.

    Parameters
    ----------
    shape : mapping of str to shape, optional
        Of the inputs; without it nothing is known.
    dtype : mapping of str to dtype, optional
        Element types of the inputs; float32 for others.

    Returns
    -------
    dict of Node to shape
        Without those that are unknown.
    """
    if shape is None:
        return {}
    unknown = sorted(set(shape) - set(symbol.list_inputs()))
    if unknown:
        raise GraphError(
            f"the symbol has no variable {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(symbol.list_inputs())}"
        )
    shapes, types = as_shapes("shape", shape), as_types("dtype", dtype)
    found = infer(symbol, shapes, types, default_dtype=np.dtype(np.float32))
    first = {node: specs[0].shape for node, specs in found.outputs.items()}
    return {node: sizes for node, sizes in first.items() if sizes is not None}


def text_of(shape: Shape | None) -> str:
    """Spell a shape without its first axis, the batch: ``3x224x224``; unknown sizes are ``?``."""
    return "x".join("?" if size is None else str(size) for size in (shape or ())[1:])


_LABEL = "label"
"""Suffix of the inputs that only training needs."""

_TITLES = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")


def print_summary(
    symbol: Symbol,
    shape: Mapping[str, Sequence[int]] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print a table of the operators of a symbol.

    Parameters
    ----------
    shape : mapping of str to shape, optional
        Of the inputs. Without it shapes and numbers of parameters stay unknown.
    line_length : int
        Number of characters of a line.
    positions : sequence of float
        Where the four columns end; numbers up to 1 are shares of the line.

    Raises
    ------
    TypeError
        ``symbol`` is none.
    GraphError
        A shape is given for a variable that does not exist, or shapes contradict each other.

    Examples
    --------
    >>> import passlib as mx
    >>> y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    >>> mx.viz.print_summary(y, shape={"x": (1, 3)}, line_length=80)
    ____...
    Layer (type) ...
    Total params: 8
    ...
    """
    nodes = require_symbol(symbol).nodes()
    shapes = known_shapes(symbol, shape)
    ends = [int(p * line_length) if max(positions) <= 1 else int(p) for p in positions]
    data = set(shape or ()) or _data(symbol)
    states = set(symbol.list_auxiliary_states())
    total = 0
    counted: set[Node] = set()
    print("_" * line_length)  # noqa: T201, the function prints
    _print_row(_TITLES, ends)
    print("=" * line_length)  # noqa: T201
    for node in nodes:
        if node.is_variable and node.name not in data:
            continue
        parameters = [
            entry.node
            for entry in node.inputs
            if entry.node.is_variable
            and entry.node.name not in data | states
            and not entry.node.name.endswith(_LABEL)
        ]
        number = sum(_size(shapes.get(p)) for p in parameters if p not in counted)
        counted.update(parameters)
        total += number
        before = [e.node.name for e in node.inputs if not e.node.is_variable or e.node.name in data]
        kind = "null" if node.is_variable else node.op
        first = (
            f"{node.name}({kind})",
            text_of(shapes.get(node)),
            str(number),
            *(before or [""])[:1],
        )
        _print_row(first, ends)
        for name in before[1:]:
            _print_row(("", "", "", name), ends)
        print(("=" if node is nodes[-1] else "_") * line_length)  # noqa: T201
    print(f"Total params: {total}")  # noqa: T201
    print("_" * line_length)  # noqa: T201


def _data(symbol: Symbol) -> set[str]:
    """Guess the inputs: the variables that no operator created as its parameter."""
    made = {
        entry.node.name
        for node in symbol.nodes()
        for entry in node.inputs
        if entry.node.is_variable and entry.node.name.startswith(f"{node.name}_")
    }
    return set(symbol.list_arguments()) - made


def _size(shape: Shape | None) -> int:
    sizes = [size for size in shape or () if size is not None]
    return math.prod(sizes) if shape is not None and len(sizes) == len(shape) else 0


def _print_row(fields: Sequence[Any], ends: Sequence[int]) -> None:
    line = ""
    for field, end in zip(fields, ends, strict=False):
        line = (line + str(field))[:end].ljust(end)
    print(printable(line))  # noqa: T201


_NODE: Final = {
    "shape": "box",
    "fixedsize": "true",
    "width": "1.3",
    "height": "0.8034",
    "style": "filled",
}

# The colours are those of ColorBrewer's palette Set3, as in MXNet's drawings.
_VARIABLE, _WEIGHTED, _NORMALIZING, _ACTIVATION, _POOLING, _SHAPING, _LOSS, _OTHER = (
    "#8dd3c7", "#fb8072", "#bebada", "#ffffb3", "#80b1d3", "#fdb462", "#fccde5", "#b3de69",
)  # fmt: skip

_COLOURS: Final = {
    **dict.fromkeys(("Convolution", "Deconvolution", "FullyConnected"), _WEIGHTED),
    "BatchNorm": _NORMALIZING,
    **dict.fromkeys(("Activation", "LeakyReLU"), _ACTIVATION),
    "Pooling": _POOLING,
    **dict.fromkeys(("Concat", "Flatten", "Reshape"), _SHAPING),
    **dict.fromkeys(("Softmax", "SoftmaxOutput", "softmax"), _LOSS),
}

_PARAMETERS: Final = (
    "_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var",
    "_running_mean",
)  # fmt: skip
"""Endings of the names of parameters, which ``hide_weights`` leaves out."""


def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
    """Draw a symbol.

    Parameters
    ----------
    title : str
        Name of the drawing, and of the file that its method ``render`` writes.
    save_format : str
        Format of that file.
    shape : mapping of str to shape, optional
        Of the inputs; edges are then labelled with shapes.
    dtype : mapping of str to dtype, optional
        Element types of the inputs.
    node_attrs : mapping of str to str, optional
        Graphviz's attributes of all nodes.
    hide_weights : bool
        Leave parameters out.

    Raises
    ------
    TypeError
        ``symbol`` is none.
    GraphError
        A shape is given for a variable that does not exist, or shapes contradict each other.
    PasslibError
        The package graphviz is not installed.

    Examples
    --------
    >>> import passlib as mx
    >>> y = mx.sym.relu(mx.sym.var("x"), name="y")
    >>> print(mx.viz.plot_network(y, shape={"x": (1, 3)}).source)
    digraph plot {...x...y...}...
    """
    nodes = require_symbol(symbol).nodes()
    shapes = known_shapes(symbol, shape, dtype)
    graphviz = require("graphviz", extra="viz")
    drawing = graphviz.Digraph(name=title, format=save_format)
    hidden = {
        node
        for node in nodes
        if hide_weights and node.is_variable and node.name.endswith(_PARAMETERS)
    }
    counts = Counter(printable(node.name) for node in nodes)
    # Names may repeat, numbers do not.
    place = {
        node: name if counts[name := printable(node.name)] == 1 else f"{name}#{number}"
        for number, node in enumerate(nodes)
    }
    for node in nodes:
        if node in hidden:
            continue
        look = {**_NODE, **(node_attrs or {}), "fillcolor": _COLOURS.get(node.op, _OTHER)}
        if node.is_variable:
            look |= {"shape": "oval", "fillcolor": _VARIABLE}
        drawing.node(place[node], label=_label(node), **look)
    for node in nodes:
        for entry in node.inputs:
            if entry.node not in hidden:
                label = text_of(shapes.get(entry.node))
                ends = {"dir": "back", "arrowtail": "open"}
                drawing.edge(place[node], place[entry.node], label=label, **ends)
    return drawing


def _label(node: Node) -> str:
    attrs = {key: printable(text) for key, text in node.attrs.items()}
    if node.op in ("Convolution", "Deconvolution"):
        strides = _joined(attrs.get("stride", "1"))
        return f"{node.op}\n{_joined(attrs['kernel'])}/{strides}, {attrs['num_filter']}"
    if node.op == "FullyConnected":
        return f"FullyConnected\n{attrs['num_hidden']}"
    if node.op in ("Activation", "LeakyReLU"):
        return f"{node.op}\n{attrs.get('act_type', 'leaky')}"
    if node.op == "Pooling":
        kernel = _joined(attrs.get("kernel", "global"))
        sizes = f"{kernel}/{_joined(attrs.get('stride', '1'))}"
        return f"Pooling\n{attrs.get('pool_type', 'max')}, {sizes}"
    return printable(node.name)


def _joined(sizes: str) -> str:
    return "x".join(size.strip() for size in sizes.strip("()[]").split(",") if size.strip())
