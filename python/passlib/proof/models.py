"""Models from the texts of rules: examples, and up to four changes of each.

Some changes keep the match (element types, dimensions, open sizes, operator sets, forms of
constants, further users, nested graphs), others nearly do (numbers, attributes, operators, order).
A number makes the same model again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from passlib.files.optional import require
from passlib.passes.rule_examples import proto_of
from passlib.passes.rules import Rule

onnx = require("onnx", extra="prove")
helper, numpy_helper, TensorProto = onnx.helper, onnx.numpy_helper, onnx.TensorProto

_NEWEST: Final = 23
_SETS: Final = (1, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23)
_COMMON: Final = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT16, TensorProto.DOUBLE)
_TYPES: Final = (
    *_COMMON, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16,
    TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64, TensorProto.BOOL,
    TensorProto.BFLOAT16, TensorProto.STRING,
)  # fmt: skip
_SIZES: Final = (0, 1, 2, 3, 5)
_REALS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 6.0, 1e-5, 1e30, np.inf, -np.inf, np.nan)
_FAMILIES: Final = (
    "Relu Abs Neg Sign Ceil Floor Round Sqrt Exp Log Reciprocal Sigmoid Tanh Identity Not Erf",
    "Relu Softplus HardSwish Elu Selu LeakyRelu Not BitwiseNot",
    "Add Sub Mul Div Min Max Pow Sum Mean PRelu Mod",
    "And Or Xor Equal Less Greater LessOrEqual GreaterOrEqual",
    "ReduceMax ReduceMin ReduceMean ReduceSum ReduceProd ReduceL1 ReduceL2 ReduceSumSquare",
    "Reshape Expand Tile",
    "Squeeze Unsqueeze",
    "Conv ConvTranspose",
    "MaxPool AveragePool",
    "GlobalMaxPool GlobalAveragePool",
    "ArgMax ArgMin",
    "Softmax LogSoftmax Hardmax",
    "SpaceToDepth DepthToSpace",
)
_TEXTS: Final = {
    "mode": ("constant", "edge", "reflect", "wrap", "DCR", "CRD"),
    "auto_pad": ("NOTSET", "SAME_UPPER", "VALID"),
    "direction": ("forward", "reverse"),
}


class Drawn:
    """A model while it is changed.

    Attributes
    ----------
    proto : onnx.ModelProto
    changes : list of str
        Names of the changes.
    """

    def __init__(self, rule: Rule, number: int) -> None:
        self.random = random.Random(f"{rule.name} {number}")
        self.rule = rule
        self.opset = _opset(rule, self.random, newest=number % 3 == 0)
        # Each example first as it is.
        chosen = number if number < len(rule.examples) else self.random.randrange(1 << 20)
        self.proto = proto_of(rule.examples[chosen % len(rule.examples)].before, self.opset)
        self.proto.ir_version = 10
        self.graph = self.proto.graph
        self.changes: list[str] = []
        if number >= len(rule.examples):
            for _ in range(self.random.choice((1, 1, 2, 2, 3, 4))):
                change = self.random.choices(*_WEIGHTED)[0]
                self.changes.append(change.__name__.strip("_"))
                change(self)

    def finished(self) -> Any:
        """Return the model, with the types of its results."""
        if self.opset < 11:
            for node in self.graph.node:
                for each in node.attribute:
                    if each.name in ("axis", "axes") and min([each.i, *each.ints]) < 0:
                        raise ValueError("axes count from the end since operator set 11")
        scalars = {each.name for each in self.graph.initializer if not each.dims}
        for node in self.graph.node:
            for each in node.attribute:
                if each.name == "num_outputs" and each.i < len(node.output):
                    raise ValueError("onnx's inference aborts the process")
                if each.name == "saturate" and each.i not in (0, 1):
                    raise ValueError("ONNX Runtime's Cast leaves its result as the memory was")
                if each.name == "block_size" and each.i and scalars & {*node.input}:
                    raise ValueError("a number has no blocks")
        for change in ("nested", "looped", "function"):
            if change in self.changes:
                _WRAPPED[change](self)
                break
        return onnx.shape_inference.infer_shapes(self.proto, data_prop=True)

    def inner(self) -> list[str]:
        """Return the results that are no outputs."""
        outputs = {each.name for each in self.graph.output}
        names = [name for node in self.graph.node for name in node.output if name]
        return [name for name in names if name not in outputs]

    def feeds(self, *, special: bool, empty: bool) -> dict[str, Any]:
        """Return random inputs: small numbers, or with unusual ones; open sizes perhaps 0."""
        generator = np.random.default_rng(self.random.randrange(1 << 30))
        sizes: dict[str, int] = {}
        made = {}
        for each in self.graph.input:
            kind = each.type.tensor_type
            shape = [
                sizes.setdefault(
                    dim.dim_param, self.random.choice((1, 2, 3, 3, 4, 0 if empty else 5))
                )
                if dim.dim_param
                else dim.dim_value
                for dim in kind.shape.dim
            ]
            made[each.name] = _array(generator, kind.elem_type, shape, special=special)
        return made


def _opset(rule: Rule, draws: random.Random, *, newest: bool) -> int:
    first = max((low for domain, low, _ in rule.sets if not domain), default=1)
    last = min((high or _NEWEST for domain, _, high in rule.sets if not domain), default=_NEWEST)
    fitting = [each for each in _SETS if max(first, 7) <= each <= last] or [last]
    preferred = [each for each in fitting if each >= 13]
    return draws.choice(preferred if newest and preferred else fitting)


def _dtype(code: int) -> Any:
    return np.dtype(helper.tensor_dtype_to_np_dtype(code))


def _is_real(code: int) -> bool:
    return code in (1, 10, 11, 16)


def _array(generator: Any, code: int, shape: list[int], *, special: bool) -> Any:
    if code == TensorProto.STRING:
        return generator.choice(["", "a", "bc"], shape).astype(object)
    dtype = _dtype(code)
    if code == TensorProto.BOOL:
        return generator.integers(0, 2, shape).astype(dtype)
    if _is_real(code):
        numbers = generator.uniform(-3, 3, shape)
        if special:
            with np.errstate(over="ignore"):
                unusual = generator.choice([*_REALS, 2.5, -0.5, 1e-30, 3e38], shape)
            numbers = np.where(generator.random(shape) < 0.5, unusual, numbers)
        with np.errstate(over="ignore"):
            return np.asarray(numbers).astype(dtype)
    bounds = np.iinfo(dtype)
    numbers = generator.integers(0, 4, shape)
    if special:
        unusual = generator.choice(np.array([bounds.min, bounds.max, 0, 1], dtype), shape)
        return np.where(generator.random(shape) < 0.5, unusual, numbers.astype(dtype))
    return numbers.astype(dtype)


# ---- changes ----


def _constants(drawn: Drawn) -> list[tuple[int, Any]]:
    return [
        (place, numpy_helper.to_array(each)) for place, each in enumerate(drawn.graph.initializer)
    ]


def _set(drawn: Drawn, place: int, array: Any) -> None:
    each = drawn.graph.initializer[place]
    each.CopyFrom(
        numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), each.name)
    )


def _element_types(drawn: Drawn) -> None:
    graph = drawn.graph
    known = [each.type.tensor_type.elem_type for each in graph.input]
    if not known:
        return
    old = drawn.random.choice(known)
    new = drawn.random.choice(drawn.random.choice((_COMMON, _TYPES)))
    for each in graph.input:
        if each.type.tensor_type.elem_type == old:
            each.type.tensor_type.elem_type = new
    for place, tensor in enumerate(graph.initializer):
        if tensor.data_type == old and new != TensorProto.STRING:
            with np.errstate(all="ignore"):
                _set(drawn, place, numpy_helper.to_array(tensor).astype(_dtype(new)))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype", "output_dtype") and drawn.random.random() < 0.5:
                attribute.i = new if attribute.i == old else drawn.random.choice(_TYPES)


def _dimensions(drawn: Drawn) -> None:
    """Replace a number in all shapes, and perhaps in constants of whole numbers."""
    graph = drawn.graph
    dims = [dim for each in graph.input for dim in each.type.tensor_type.shape.dim]
    known = [dim.dim_value for dim in dims if not dim.dim_param]
    arrays = _constants(drawn)
    known += [size for _, array in arrays if array.dtype.kind == "f" for size in array.shape]
    if not known:
        return
    old, new = drawn.random.choice(known), drawn.random.choice(_SIZES)
    for dim in dims:
        if not dim.dim_param and dim.dim_value == old:
            dim.dim_value = new
    numbers = drawn.random.random() < 0.5
    for place, array in arrays:
        if array.dtype.kind != "i" and old in array.shape:
            _set(drawn, place, np.resize(array, [new if n == old else n for n in array.shape]))
        elif numbers and array.dtype.kind == "i" and array.size:
            _set(drawn, place, np.where(array == old, new, array).astype(array.dtype))


def _one_shape(drawn: Drawn) -> None:
    """Change a dimension, or the rank, of one input."""
    shapes = [each.type.tensor_type.shape for each in drawn.graph.input]
    if not shapes:
        return
    shape = drawn.random.choice(shapes)
    dims = [dim.dim_param or dim.dim_value for dim in shape.dim]
    action = drawn.random.randrange(4)
    if action == 0:
        dims.insert(0, drawn.random.choice(_SIZES))
    elif action == 1:
        dims = dims[1:]
    elif dims:
        dims[drawn.random.randrange(len(dims))] = drawn.random.choice(_SIZES)
    _reshape(shape, dims)


def _reshape(shape: Any, dims: list[int | str]) -> None:
    del shape.dim[:]
    for dim in dims:
        if isinstance(dim, str):
            shape.dim.add().dim_param = dim
        else:
            shape.dim.add().dim_value = dim


def _ranks(drawn: Drawn) -> None:
    """Add an axis to, or remove one from, all inputs."""
    size = drawn.random.choice(_SIZES)
    adds = drawn.random.random() < 0.6
    for each in drawn.graph.input:
        shape = each.type.tensor_type.shape
        dims = [dim.dim_param or dim.dim_value for dim in shape.dim]
        _reshape(shape, [size, *dims] if adds else dims[1:])


def _open_sizes(drawn: Drawn) -> None:
    one_name = drawn.random.random() < 0.7
    share = drawn.random.choice((0.3, 1.0))
    for each in drawn.graph.input:
        for place, dim in enumerate(each.type.tensor_type.shape.dim):
            if not dim.dim_param and drawn.random.random() < share:
                dim.dim_param = f"n{dim.dim_value}" if one_name else f"{each.name}{place}"


def _numbers(drawn: Drawn) -> None:
    """Change elements of a constant."""
    arrays = _constants(drawn)
    if not arrays:
        return
    place, array = drawn.random.choice(arrays)
    array = array.copy()
    if not array.size:
        return
    if array.dtype.kind in "iu":
        new: Any = drawn.random.choice((-2, -1, 0, 1, 2, 3, 9, np.iinfo(array.dtype).max))
        if array.dtype.kind == "u":
            new = abs(new)
    else:
        new = drawn.random.choice(_REALS)
    with np.errstate(all="ignore"):
        if drawn.random.random() < 0.5:
            array[...] = np.asarray(new).astype(array.dtype)
        elif array.dtype.kind in "iu" and array.size > 1 and drawn.random.random() < 0.5:
            array = np.roll(array, 1)
        else:
            array.reshape(-1)[drawn.random.randrange(array.size)] = np.asarray(new).astype(
                array.dtype
            )
    _set(drawn, place, array)


def _constant_shapes(drawn: Drawn) -> None:
    """Give a constant more axes, or repeat it."""
    arrays = _constants(drawn)
    if not arrays:
        return
    place, array = drawn.random.choice(arrays)
    shapes = [[1] * drawn.random.randrange(4) + list(array.shape)]
    for each in drawn.graph.input:
        dims = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        shapes += [dims, dims[-1:], [1] * len(dims)]
    if array.dtype.kind in "iu":
        shapes = [[], [0], [1], [2], [3]]
    _set(drawn, place, np.resize(array, drawn.random.choice(shapes)))


def _constant_forms(drawn: Drawn) -> None:
    """Make a constant an operator, or the default of an input, or compute it."""
    graph = drawn.graph
    if not graph.initializer:
        return
    place = drawn.random.randrange(len(graph.initializer))
    each = graph.initializer[place]
    form = drawn.random.randrange(3)
    if form == 0:
        graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, each.dims))
        return
    copy = TensorProto()
    copy.CopyFrom(each)
    if form == 1:
        copy.name = f"{each.name}_of"
        each.CopyFrom(copy)
        graph.node.insert(0, helper.make_node("Identity", [copy.name], [copy.name[:-3]]))
        return
    del graph.initializer[place]
    graph.node.insert(0, helper.make_node("Constant", [], [copy.name], value=copy))


def _attributes(drawn: Drawn) -> None:
    """Change an attribute."""
    found = [each for node in drawn.graph.node for each in node.attribute]
    if not found:
        return
    each = drawn.random.choice(found)
    if each.ints:
        items = list(each.ints)
        action = drawn.random.randrange(4)
        if action == 0:
            drawn.random.shuffle(items)
        elif action == 1:
            items[drawn.random.randrange(len(items))] = drawn.random.choice((-2, -1, 0, 1, 2, 3))
        elif action == 2:
            items = [item + drawn.random.choice((-3, -2, 2, 3)) for item in items]
        else:
            items = items[1:] or [0]
        each.ints[:] = items
    elif each.type == onnx.AttributeProto.INT:
        each.i = drawn.random.choice((-3, -2, -1, 0, 1, 2, 3, 10, 11))
    elif each.type == onnx.AttributeProto.FLOAT:
        each.f = drawn.random.choice(_REALS)
    elif each.type == onnx.AttributeProto.STRING:
        each.s = drawn.random.choice(_TEXTS.get(each.name, ("other",))).encode()


def _defaults(drawn: Drawn) -> None:
    """State an attribute that an operator has not, its default or another value."""
    if not drawn.graph.node:
        return
    node = drawn.random.choice(drawn.graph.node)
    try:
        schema = onnx.defs.get_schema(node.op_type, drawn.opset, node.domain)
    except onnx.defs.SchemaError:
        return
    stated = {each.name for each in node.attribute}
    for name, each in sorted(schema.attributes.items()):
        if name in stated or drawn.random.random() < 0.3:
            continue
        if each.default_value.type:
            node.attribute.append(each.default_value)
            if drawn.random.random() < 0.3 and node.attribute[-1].HasField("i"):
                node.attribute[-1].i = drawn.random.choice((0, 1, 2, -1))
        elif drawn.random.random() < 0.3 and each.type == onnx.defs.OpSchema.AttrType.INTS:
            node.attribute.append(
                helper.make_attribute(
                    name,
                    [drawn.random.choice((0, 1, 2)) for _ in range(drawn.random.choice((1, 2, 4)))],
                )
            )
    if drawn.random.random() < 0.2 and node.attribute:
        del node.attribute[drawn.random.randrange(len(node.attribute))]


def _operators(drawn: Drawn) -> None:
    """Replace an operator by one of its family, or by another of the rule."""
    nodes = [node for node in drawn.graph.node if node.op_type != "Constant"]
    if not nodes:
        return
    node = drawn.random.choice(nodes)
    families = [text.split() for text in _FAMILIES if node.op_type in text.split()]
    families.append(re.findall(r"\b[A-Z]\w+(?=[\[(|])", drawn.rule.text))
    node.op_type = drawn.random.choice(drawn.random.choice(families) or [node.op_type])


def _order(drawn: Drawn) -> None:
    """Exchange two inputs of an operator."""
    nodes = [node for node in drawn.graph.node if len(node.input) > 1]
    if nodes:
        node = drawn.random.choice(nodes)
        inputs = list(node.input)
        one, other = drawn.random.sample(range(len(inputs)), 2)
        inputs[one], inputs[other] = inputs[other], inputs[one]
        node.input[:] = inputs


def _one_value(drawn: Drawn) -> None:
    """Use one value at the place of another of its type and shape."""
    names = [each.name for each in drawn.graph.input]
    names += [each.name for each in drawn.graph.initializer] + drawn.inner()
    if names:
        old, new = drawn.random.choice(names), drawn.random.choice(names)
        for node in drawn.graph.node:
            node.input[:] = [new if name == old else name for name in node.input]


def _users(drawn: Drawn) -> None:
    """Use an inner result once more."""
    inner = drawn.inner()
    if inner:
        name = drawn.random.choice(inner)
        copy = f"{name}_{len(drawn.graph.node)}"
        drawn.graph.node.append(helper.make_node("Identity", [name], [copy]))
        drawn.graph.output.append(helper.make_empty_tensor_value_info(copy))


def _outputs(drawn: Drawn) -> None:
    """Make inner results outputs."""
    share = drawn.random.choice((0.4, 1.0))
    for name in drawn.inner():
        if drawn.random.random() < share:
            drawn.graph.output.append(helper.make_empty_tensor_value_info(name))


def _longer(drawn: Drawn) -> None:
    """Continue behind an output, or let the result itself be one."""
    graph = drawn.graph
    if drawn.random.random() < 0.5 and len(graph.output) == 1 and len(graph.node) > 1:
        last = graph.node[-1]
        if last.output[0] == graph.output[0].name and len(last.input) == 1:
            graph.output[0].name = last.input[0]
            del graph.node[-1]
            if any(each.name == last.input[0] for each in graph.output[1:]):
                del graph.output[0]
        return
    for each in graph.output:
        name = f"{each.name}_behind"
        graph.node.append(helper.make_node("Identity", [each.name], [name]))
        each.name = name


def _nested(drawn: Drawn) -> None:
    """Wrap the nodes at the end."""


def _looped(drawn: Drawn) -> None:
    """Wrap the nodes at the end."""


def _function(drawn: Drawn) -> None:
    """Wrap the nodes at the end."""


def _cut(drawn: Drawn) -> tuple[list[Any], list[Any]]:
    """Return the nodes before a nested graph and those in it, and remove them."""
    nodes = list(drawn.graph.node)
    first = drawn.random.choice((0, 0, drawn.random.randrange(len(nodes) + 1)))
    outer, inner = nodes[:first], nodes[first:]
    made = {name for node in inner for name in node.output}
    # Outputs of the nested graph are made in it.
    for each in drawn.graph.output:
        if each.name not in made:
            inner.append(helper.make_node("Identity", [each.name], [f"{each.name}_inside"]))
            each.name = f"{each.name}_inside"
    del drawn.graph.node[:]
    return outer, inner


def _results(drawn: Drawn, inner: list[Any], suffix: str) -> tuple[list[Any], list[Any]]:
    """Rename results of nested nodes; return the nodes and the outputs of their graph."""
    made = {name for node in inner for name in node.output if name}
    nodes = []
    for node in inner:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [name + suffix if name in made else name for name in node.input]
        copy.output[:] = [name + suffix if name else name for name in node.output]
        copy.name += suffix
        nodes.append(copy)
    outputs = [
        helper.make_empty_tensor_value_info(each.name + suffix) for each in drawn.graph.output
    ]
    return nodes, outputs


def _in_if(drawn: Drawn) -> None:
    outer, inner = _cut(drawn)
    graphs = [
        helper.make_graph(*_with_outputs(drawn, inner, suffix, "branch"))
        for suffix in ("_then", "_else")
    ]
    drawn.graph.input.append(helper.make_tensor_value_info("choice", TensorProto.BOOL, []))
    names = [each.name for each in drawn.graph.output]
    last = helper.make_node(
        "If", ["choice"], names, "if", then_branch=graphs[0], else_branch=graphs[1]
    )
    _finish(drawn, outer, last)


def _with_outputs(drawn: Drawn, inner: list[Any], suffix: str, name: str) -> tuple[Any, ...]:
    nodes, outputs = _results(drawn, inner, suffix)
    return nodes, name + suffix, [], outputs


def _in_loop(drawn: Drawn) -> None:
    outer, inner = _cut(drawn)
    nodes, outputs = _results(drawn, inner, "_body")
    nodes.append(helper.make_node("Identity", ["go_on"], ["goes_on"]))
    body = helper.make_graph(
        nodes,
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []), *outputs],
    )
    drawn.graph.initializer.append(numpy_helper.from_array(np.array(2, np.int64), "turns"))
    names = [each.name for each in drawn.graph.output]
    _finish(drawn, outer, helper.make_node("Loop", ["turns", ""], names, "loop", body=body))


def _in_function(drawn: Drawn) -> None:
    nodes = list(drawn.graph.node)
    del drawn.graph.node[:]
    made = {name for node in nodes for name in node.output}
    names = [each.name for each in drawn.graph.output if each.name in made]
    inputs = [each.name for each in drawn.graph.input]
    inputs += [each.name for each in drawn.graph.initializer if each.name not in inputs]
    drawn.proto.functions.append(
        helper.make_function("local", "Made", inputs, names, nodes, list(drawn.proto.opset_import))
    )
    drawn.proto.opset_import.append(helper.make_opsetid("local", 1))
    drawn.graph.node.append(helper.make_node("Made", inputs, names, "call", domain="local"))


def _finish(drawn: Drawn, outer: list[Any], last: Any) -> None:
    drawn.graph.node.extend([*outer, last])


_WRAPPED: Final[dict[str, Callable[[Drawn], None]]] = {
    "nested": _in_if,
    "looped": _in_loop,
    "function": _in_function,
}

_WEIGHTS: Final[dict[Callable[[Drawn], None], int]] = {
    _element_types: 5, _dimensions: 5, _one_shape: 2, _ranks: 2, _open_sizes: 3, _numbers: 4,
    _constant_shapes: 3, _constant_forms: 2, _attributes: 4, _defaults: 3, _operators: 3, _order: 2,
    _one_value: 1, _users: 2, _outputs: 2, _longer: 2, _nested: 1, _looped: 1, _function: 1,
}  # fmt: skip
_WEIGHTED: Final = (list(_WEIGHTS), list(_WEIGHTS.values()))
