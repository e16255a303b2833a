"""Operators in the form of another version, where ONNX's version converter has no adapter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.calls import values_of
from passlib.dialects.onnx.forms import drop_defaults, other_form
from passlib.dialects.onnx.nested import copy_of, graphs_within, refill, used_by
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.dialects.onnx.targets import Known, walk
from passlib.dialects.onnx.tensors import to_array
from passlib.files.optional import require
from passlib.graph.names import NameSource

_HIDDEN: Final = "passlib.kept"
"""The domain of nodes that ONNX's converter passes over."""


Convert = Callable[[Any], Any]
"""Returns a model in the other version."""


def hide(
    model: Any, operators: Collection[str], present: int, target: int, convert: Convert
) -> Any:
    """Return a model that hides nodes from ONNX's converter, if both versions have them.

    A copy, or the model itself if nothing may be hidden.

    Parameters
    ----------
    model : onnx.ModelProto
    operators : collection of str
    present, target : int
        The version that the model is of, and the other one.
    convert : callable
        Converts nested graphs of these nodes, each as a model.
    """
    nodes = (node for graph in graphs_within(model.graph) for node in graph.node)
    if not any(
        node.op_type in operators or node.domain == _HIDDEN or _bodies(node) for node in nodes
    ):
        return model
    typed = inferred(model)
    made = copy_of(model)
    made.opset_import.add(domain=_HIDDEN, version=1)
    pairs = zip(walk(made.graph), walk(typed.graph), strict=True)
    known = [(node, types) for (node, _), (_, types) in pairs]
    constants = _constants(made)
    inner: set[int] = set()
    stated = _stated(made)
    for node, types in known:
        if id(node) in inner:  # is converted with the node around it
            continue
        bodies = _bodies(node)
        is_meant = node.op_type in operators or bodies
        if not is_meant or schema.plain(node.domain) or other_form(node, present, target):
            continue
        for body in bodies:
            inner.update(id(each) for each, _ in walk(body))
            _convert_body(made, body, types, constants, convert)
        node.domain = _HIDDEN
        _state(made, stated, node, types)
    return made


def _stated(model: Any) -> set[str]:
    """Return the values of a model whose types it states."""
    return {
        value.name
        for graph in graphs_within(model.graph)
        for value in (*graph.value_info, *graph.input, *graph.output)
    }


def _state(model: Any, stated: Collection[str], node: Any, known: Known) -> None:
    """State the types of the results of a node, which nothing infers while it is hidden."""
    for name in node.output:
        kind = known.get(name, ("", None, None))[2]
        if kind is not None and name not in stated:
            model.graph.value_info.add(name=name).type.CopyFrom(kind)


def _bodies(node: Any) -> list[Any]:
    return [each.g for each in node.attribute if each.HasField("g")]


def _constants(model: Any) -> dict[str, Any]:
    """Return the tensors of a model by name, nested ones as well."""
    found = {}
    for graph in graphs_within(model.graph):
        found.update({tensor.name: tensor for tensor in graph.initializer})
        for node in graph.node:
            for attribute in node.attribute:
                if node.op_type != "Constant":
                    continue
                if attribute.HasField("t"):
                    found[node.output[0]] = attribute.t
                elif attribute.name in _LISTED:
                    found[node.output[0]] = _tensor_of(attribute)
    return found


_LISTED: Final = {
    "value_float": 1,
    "value_floats": 1,
    "value_int": 7,
    "value_ints": 7,
    "value_string": 8,
    "value_strings": 8,
}
"""Attributes of Constant that are no tensors, and the type that they have as one."""


def _tensor_of(attribute: Any) -> Any:
    helper: Any = require("onnx.helper", extra="onnx")
    value = helper.get_attribute_value(attribute)
    is_list = attribute.name.endswith("s")
    dims = [len(value)] if is_list else []
    return helper.make_tensor("", _LISTED[attribute.name], dims, value if is_list else [value])


def _convert_body(
    model: Any, body: Any, known: Known, constants: Mapping[str, Any], convert: Convert
) -> None:
    """Convert a nested graph in place, as a model whose inputs are the values that it captures."""
    alone = type(model)(ir_version=model.ir_version)
    alone.opset_import.extend(each for each in model.opset_import if each.domain != _HIDDEN)
    alone.graph.CopyFrom(body)
    own = {value.name for value in (*body.input, *body.initializer)}
    own.update(name for node in body.node for name in node.output)
    read = dict.fromkeys(name for node in body.node for name in used_by(node))
    read.update(dict.fromkeys(value.name for value in body.output))
    for name in read:
        kind = known.get(name, ("", None, None))[2]
        if not name or name in own:
            continue
        if name in constants:
            lent = alone.graph.initializer.add()
            lent.CopyFrom(constants[name])
            lent.name = name
        elif kind is not None:
            alone.graph.input.add(name=name).type.CopyFrom(kind)
    made = convert(alone).graph
    tensors = [
        copy_of(each) for each in made.initializer if each.name in own or each.name not in read
    ]
    for field, items in (("node", made.node), ("initializer", tensors)):
        body.ClearField(field)
        getattr(body, field).extend(items)


def show(model: Any, present: int, target: int) -> None:
    """Restore the hidden operators, and drop new attributes that have their default."""
    for graph in graphs_within(model.graph):
        for node in graph.node:
            if node.domain == _HIDDEN:
                node.ClearField("domain")
            if not schema.plain(node.domain):
                drop_defaults(node, present, target)


def adapt(model: Any, present: int, target: int) -> None:
    """Replace nodes by equal ones that both versions have, where there are any."""
    chosen = {
        operator: adapter
        for operator, (version, adapter) in _ADAPTERS.items()
        if target < version <= present
    }
    found = [
        (number, node)
        for number, (node, _) in enumerate(walk(model.graph))
        if node.op_type in chosen and not schema.plain(node.domain)
    ]
    if not found:
        return
    known = [types for _, types in walk(inferred(model).graph)]
    around = _Around(model, target)
    for number, node in found:
        chosen[node.op_type](node, known[number], around)
    around.add()


class _Around:
    """The constants of a model, and the nodes to add to it."""

    def __init__(self, model: Any, target: int) -> None:
        self.target = target
        self._model = model
        self._stated = _stated(model)
        self._names = NameSource(set(values_of(model.graph)))
        self._before: list[tuple[Any, Any]] = []
        self._tensors = _constants(model)

    def elements(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return a constant; None if it is not one."""
        tensor = self._tensors.get(name)
        return None if tensor is None else to_array(tensor, repr(name))

    def constant(self, numbers: list[int]) -> str:
        """Return the name of a new constant."""
        name = self._names.fresh("_".join(["numbers", *map(str, numbers)]).replace("-", "minus"))
        make = require("onnx.numpy_helper", extra="onnx").from_array
        self._model.graph.initializer.append(make(np.array(numbers, np.int64), name))
        return name

    def before(self, node: Any, operator: str, inputs: list[str]) -> str:
        """Return the name of the result of a new node before another one."""
        name = self._names.fresh(f"{node.output[0]}_{operator.lower()}")
        new = type(node)(op_type=operator, name=name, input=inputs, output=[name])
        self._before.append((node, new))
        return name

    def hide(self, node: Any, known: Known) -> None:
        """Hide a node, which has its new form, from ONNX's converter."""
        node.domain = _HIDDEN
        _state(self._model, self._stated, node, known)

    def add(self) -> None:
        """Add the new nodes."""
        new: dict[int, list[Any]] = {}
        for node, made in self._before:
            new.setdefault(id(node), []).append(made)
        if not new:
            return
        for graph in reversed(list(graphs_within(self._model.graph))):
            nodes = [each for node in graph.node for each in (*new.get(id(node), ()), node)]
            if len(nodes) > len(graph.node):
                refill(graph.node, nodes)


def _attributes(node: Any) -> Mapping[str, Any]:
    return {each.name: each for each in node.attribute}


def _drop(node: Any, *names: str) -> None:
    refill(node.attribute, [each for each in node.attribute if each.name not in names])


def _reshape(node: Any, known: Known, around: _Around) -> None:
    """Drop ``allowzero`` where no size is 0."""
    stated = _attributes(node).get("allowzero")
    if stated is not None and stated.i:
        shape = around.elements(node.input[1])
        if shape is not None and (shape != 0).all():
            _drop(node, "allowzero")


def _shape(node: Any, known: Known, around: _Around) -> None:
    """Take a part of a shape with Slice."""
    found = _attributes(node)
    start = found["start"].i if "start" in found else 0
    end = found["end"].i if "end" in found else np.iinfo(np.int64).max
    if not found:
        return
    _drop(node, "start", "end")
    whole = around.before(node, "Shape", list(node.input))
    node.op_type = "Slice"
    bounds = [around.constant([int(each)]) for each in (start, end, 0)]
    del node.input[:]
    node.input.extend([whole, *bounds])


def _split(node: Any, known: Known, around: _Around) -> None:
    """Drop the number of parts, which is that of the outputs, and state sizes that differ."""
    found = _attributes(node)
    if "num_outputs" not in found:
        return
    kind = known.get(node.input[0], ("", None, None))[2]
    axis = found["axis"].i if "axis" in found else 0
    dims = kind.tensor_type.shape.dim if kind is not None else ()
    parts = len(node.output)
    if not -len(dims) <= axis < len(dims) or not dims[axis].HasField("dim_value"):
        return
    size = dims[axis].dim_value
    length = -(-size // parts)
    if found["num_outputs"].i != parts or length * (parts - 1) > size:
        return
    _drop(node, "num_outputs")
    if size % parts:
        del node.input[1:]
        node.input.append(around.constant([length] * (parts - 1) + [size - length * (parts - 1)]))


def _pad(node: Any, known: Known, around: _Around) -> None:
    """State the padding of every axis instead of that of some."""
    if len(node.input) < 4:
        return
    if node.input[3]:
        axes, pads = (around.elements(node.input[place]) for place in (3, 1))
        rank = known.get(node.input[0], ("", None, None))[1]
        if axes is None or pads is None or rank is None or pads.size != 2 * axes.size:
            return
        whole = np.zeros((2, rank), np.int64)
        if axes.size and not -rank <= axes.min() <= axes.max() < rank:
            return
        whole[:, axes] = pads.reshape(2, -1)
        node.input[1] = around.constant(whole.ravel().tolist())
    del node.input[3:]


def _reduce(node: Any, known: Known, around: _Around) -> None:
    """State the axes as an attribute, as all reductions do before version 13."""
    axes = around.elements(node.input[1]) if len(node.input) > 1 and node.input[1] else _NONE
    if axes is None:
        return
    if axes.size:
        _drop(node, "noop_with_empty_axes")
        if around.target < 13:
            node.attribute.add(name="axes", type=7, ints=axes.ravel().tolist())
    elif any(each.name == "noop_with_empty_axes" and each.i for each in node.attribute):
        return
    if around.target < 13:
        del node.input[1:]
        around.hide(node, known)


_NONE: Final = np.zeros(0, np.int64)


def _constant(node: Any, known: Known, around: _Around) -> None:
    """State numbers and texts as a tensor."""
    for stated in node.attribute:
        if stated.name in _LISTED:
            made = _tensor_of(stated)
            stated.Clear()
            stated.CopyFrom(require("onnx.helper", extra="onnx").make_attribute("value", made))


_MODES: Final = {b"linear": b"bilinear", b"cubic": b"bicubic", b"nearest": b"nearest"}


def _grid_sample(node: Any, known: Known, around: _Around) -> None:
    """Use the older names of the modes, which are those of images with two dimensions."""
    rank = known.get(node.input[0], ("", None, None))[1]
    mode = _attributes(node)["mode"].s if "mode" in _attributes(node) else b"linear"
    if rank != 4 or mode not in _MODES:
        return
    _drop(node, "mode")
    node.attribute.add(name="mode", type=3, s=_MODES[mode])
    around.hide(node, known)


_REDUCTIONS: Final = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")

_Adapter = Callable[[Any, Known, _Around], None]

_ADAPTERS: Final[Mapping[str, tuple[int, _Adapter]]] = {
    "Constant": (12, _constant),
    "GridSample": (20, _grid_sample),
    "Pad": (18, _pad),
    "ReduceSum": (13, _reduce),
    **{f"Reduce{name}": (18, _reduce) for name in _REDUCTIONS},
    "Reshape": (14, _reshape),
    "Shape": (15, _shape),
    "Split": (18, _split),
}
"""Operators, and the version that added the form to replace."""
