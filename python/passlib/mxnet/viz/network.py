"""A drawing of a symbol as graphviz makes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from passlib.files.optional import require
from passlib.graph.node import Node
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.viz.shapes import known_shapes, require_symbol, text_of

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
    symbol : Symbol
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

    Returns
    -------
    graphviz.Digraph

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
    counts = Counter(node.name for node in nodes)
    # Names may repeat, numbers do not.
    place = {
        node: node.name if counts[node.name] == 1 else f"{node.name}#{number}"
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
    attrs = node.attrs
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
    return node.name


def _joined(sizes: str) -> str:
    return "x".join(size.strip() for size in sizes.strip("()[]").split(",") if size.strip())
