"""Inference of the shapes and element types of all nodes of an MXNet symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.shape_mode import is_np_shape
from passlib.dialects.operator_types import CustomTypes
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.graph.attributes import Attributes, blame, parse_int, parse_optional_ints
from passlib.graph.node import Node
from passlib.lowering import Graph, Lowerings, Operation, Shape, TypeSpec, Value, type_of
from passlib.lowering.inference import infer_graph
from passlib.lowering.table import LoweringFunction
from passlib.lowering.types import merged
from passlib.lowering.walk import Complete
from passlib.mxnet import schema
from passlib.mxnet.inference.parameter_rules import QUANTIZED, RULES, bounds_of, channels_last
from passlib.mxnet.inference.shapes import output_shapes
from passlib.mxnet.inference.types import (
    ElementTypeError,
    check_types,
    complete_types,
    output_types,
    with_hidden,
)
from passlib.mxnet.lowering import table_for
from passlib.mxnet.lowering.real_arithmetic import is_real
from passlib.mxnet.numpy_mode import leaves_sizes_open, mode_of, partial_shape
from passlib.mxnet.schema import registry
from passlib.mxnet.schema.calls import check_nodes
from passlib.mxnet.schema.registry import library_rules

_ALL_KNOWN: Final = (
    "BilinearSampler SpatialTransformer _contrib_boolean_mask _npi_average _npi_einsum gather_nd"
)
"""Operators that wait until all dimensions of all inputs are known."""

_FIRST_KNOWN: Final = (
    "Flatten LRN LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput "
    "_contrib_AdaptiveAvgPooling2D _contrib_BilinearResize2D _contrib_SyncBatchNorm "
    "_contrib_box_nms _contrib_quantized_act _contrib_quantized_flatten "
    "_contrib_quantized_pooling _image_to_tensor _np_all _np_any _np_max _np_min _np_prod "
    "_np_squeeze _np_sum _npi_argmax _npi_argmin _npi_bincount _npi_broadcast_to _npi_delete "
    "_npi_diag_indices_from _npi_diff _npi_ediff1d _npi_mean _npi_norm _npi_std _npi_unique "
    "_npi_var _npx_nonzero _npx_reshape argmax argmax_channel argmin broadcast_axis col2im "
    "im2col max min norm one_hot squeeze tile"
)
"""Operators that wait until all dimensions of the first input are known."""

_RANK_KNOWN: Final = (
    "BatchNorm BatchNorm_v1 Convolution Convolution_v1 Deconvolution Embedding FullyConnected "
    "GroupNorm InstanceNorm LayerNorm LeakyReLU SequenceLast SequenceMask SequenceReverse "
    "_contrib_BatchNormWithReLU _contrib_DeformableConvolution _contrib_MultiProposal "
    "_contrib_Proposal _contrib_SparseEmbedding _contrib_quantized_batch_norm "
    "_contrib_quantized_concat _contrib_quantized_elemwise_mul _contrib_quantized_embedding "
    "_contrib_quantized_fully_connected _np_diagflat repeat"
)
"""Operators that wait until the rank of the first input is known."""

_WAITS: Final = {
    name: kind
    for kind, names in (("all", _ALL_KNOWN), ("first", _FIRST_KNOWN), ("rank", _RANK_KNOWN))
    for name in names.split()
} | {"batch_dot": "inner", "stack": "any"}


class Waiting(Lowerings):
    """The functions of a table, each of which waits as its operator does."""

    def __init__(self, table: Lowerings) -> None:
        super().__init__(table.dialect)
        self._table = table

    def find(self, operator: str) -> LoweringFunction | None:
        """Return the function of an operator; it raises UnsupportedError while a node waits."""
        function = self._table.find(operator)
        return None if function is None else partial(_lower, function)

    def why_missing(self, operator: str) -> str:
        """Return why the table lacks an operator."""
        return self._table.why_missing(operator)


def leaving_unknown(complete: Complete) -> Complete:
    """Return rules that find nothing about the shapes of nodes that wait."""

    def complete_node(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
        values = [*inputs, *outputs] if _waits(node, inputs) else []
        shapes = [value.shape for value in values]
        complete(node, inputs, outputs)
        for value, shape in zip(values, shapes, strict=True):
            value.shape = shape

    return complete_node


def _lower(function: LoweringFunction, op: Operation) -> Value | Sequence[Value]:
    if _waits(op.node, op.inputs):
        raise UnsupportedError(f"{blame(op.node)}: MXNet leaves its shapes unknown")
    return function(op)


def _waits(node: Node, inputs: Sequence[Value]) -> bool:
    operator = registry.find(node.op)
    name = node.op if operator is None else operator.name
    kind = _WAITS.get(name)
    shapes = [value.shape for value in inputs]
    if kind is None or not shapes:
        return False
    if kind == "rank":
        return shapes[0] is None
    if kind == "inner":  # whatever is transposed
        return any(
            shape is None or shape[-place:][:1] == (None,)
            for place, shape in enumerate(shapes, start=1)
        )
    is_open = [shape is None or None in shape for shape in shapes]
    return {"all": any(is_open), "any": all(is_open), "first": is_open[0]}[kind]


_SHAPE: Final = frozenset(("Dropout", "MakeLoss"))

FIRST_TYPE: Final = frozenset((
    "BilinearSampler", "CTCLoss", "Crop", "GridGenerator", "L2Normalization", "LRN", "ROIPooling",
    "SliceChannel", "SpatialTransformer", "_contrib_BilinearResize2D", "_contrib_ROIAlign",
    "_split_v2", "broadcast_like", "gather_nd", "pick", "reshape_like", "scatter_nd", "slice_like",
    "take",
))  # fmt: skip
"""Operators whose outputs have the element type of the first input, whatever the others have."""

PROMOTING: Final = frozenset(
    f"_npi_{name}" for name in ("add", "mod", "multiply", "power", "subtract", "true_divide")
)
"""Operators that share a type by default, and also combine two types."""

CREATING: Final = frozenset(("_full", "_ones", "_zeros", "_zeros_without_dtype"))
"""Operators without inputs whose attribute ``shape`` may leave sizes open."""


def shares_shape(op: str) -> bool:
    """Whether all inputs and outputs of an operator have one shape, inferred in both directions."""
    operator = registry.find(op)
    return operator is not None and (operator.same_shape or operator.name in _SHAPE)


def shares_type(op: str) -> bool:
    """Whether all inputs and the first output have one element type, inferred likewise."""
    operator = registry.find(op)
    return operator is not None and operator.same_type


_INTEGERS: Final = frozenset((
    "_npi_bincount", "_npi_bitwise_and", "_npi_bitwise_and_scalar", "_npi_bitwise_not",
    "_npi_bitwise_or", "_npi_bitwise_or_scalar", "_npi_bitwise_xor", "_npi_bitwise_xor_scalar",
    "_npi_lcm", "_npi_lcm_scalar",
))  # fmt: skip
_INT8, _UINT8, _INT32 = map(np.dtype, (np.int8, np.uint8, np.int32))


def default_types(nodes: Iterable[Node], default: np.dtype) -> Callable[[Node], np.dtype]:
    """Return a function from a variable to its default element type.

    Parameters
    ----------
    default : numpy.dtype
        The type for operators that take any, or real numbers.
    """
    found: dict[Node, np.dtype] = {}
    whole = _INT32 if is_real(default) else default
    for node in nodes:
        for index, entry in enumerate(node.inputs):
            if entry.node.is_variable:
                special = whole if node.op in _INTEGERS else _quantized(node, index)
                if special is not None:
                    found.setdefault(entry.node, special)
    return lambda node: found.get(node, default)


def _quantized(node: Node, index: int) -> np.dtype | None:
    """Return the type of an input of an operator on bytes, which has real bounds next to them."""
    if node.op == "_contrib_requantize":
        return _INT32 if index == 0 else None
    if node.op not in QUANTIZED:
        return None
    if node.op == "_contrib_quantized_conv" and index == 0:
        return _UINT8
    real = bounds_of(node)
    return None if index >= len(real) or real[index] else _INT8


_CONVOLUTIONS: Final = frozenset(("Convolution", "Convolution_v1", "_npx_convolution"))
_TRANSPOSED: Final = frozenset(("Deconvolution", "_npx_deconvolution"))
_POOLINGS: Final = frozenset(("Pooling", "Pooling_v1", "_npx_pooling"))


def check_window(node: Node, data: Shape | None) -> None:
    """Check the groups of a convolution, and that its window or a pooling's is within the input.

    Raises `GraphError` if the channels or filters are not a multiple of the groups, a size of the
    kernel, stride or dilation is not positive, or the kernel exceeds the padded input.

    Parameters
    ----------
    node : Node
        Of any operator.
    data : Shape or None
        The shape of its first input.
    """
    convolves = node.op in _CONVOLUTIONS or node.op in _TRANSPOSED
    if data is None or not (convolves or node.op in _POOLINGS):
        return
    at = Attributes(node)
    try:
        kernel, stride, dilate, pad = (
            at.ints(name, ()) for name in ("kernel", "stride", "dilate", "pad")
        )
        filters, groups = at.int("num_filter", 0), at.int("num_group", 1)
        everywhere = at.bool("global_pool", False)
    except UnsupportedError:
        return  # the lowering reports attributes that cannot be read
    if convolves:
        _check_groups(node, at, data, filters, groups)
    if everywhere or len(data) != len(kernel) + 2:
        return
    for name, sizes in (("kernel", kernel), ("stride", stride), ("dilate", dilate)):
        if any(size < 1 for size in sizes):
            raise GraphError(f"{blame(node)}: {name} {tuple(sizes)} has a size below 1")
    if node.op not in _TRANSPOSED:
        _check_extent(node, _spatial(at, data), kernel, dilate, pad)


def _check_groups(node: Node, at: Attributes, data: Shape, filters: int, groups: int) -> None:
    channels = data[-1 if channels_last(at) else 1] if len(data) > 1 else None
    for what, count in (("num_filter", filters), ("the number of channels", channels)):
        if count is not None and (groups < 1 or count % groups):
            raise GraphError(
                f"{blame(node)}: num_group {groups} does not divide {what}, which is {count}"
            )


def _check_extent(
    node: Node, sizes: Shape, kernel: Sequence[int], dilate: Sequence[int], pad: Sequence[int]
) -> None:
    rank = len(kernel)
    dilate, pad = dilate or (1,) * rank, pad or (0,) * rank
    if not len(dilate) == len(pad) == rank:
        return  # the lowering reports it
    for size, count, step, border in zip(sizes, kernel, dilate, pad, strict=True):
        extent = step * (count - 1) + 1
        if size is not None and 0 < size + 2 * border < extent:
            raise GraphError(
                f"{blame(node)}: the kernel spans {extent} elements of an axis, which exceeds the "
                f"input of {size}, padded to {size + 2 * border}"
            )


def _spatial(at: Attributes, data: Shape) -> Shape:
    return data[1:-1] if channels_last(at) else data[2:]


_TYPED_BY_ATTRIBUTE = frozenset(("Embedding", "_contrib_SparseEmbedding", "_npx_embedding"))
"""Operators whose second input has the element type of the attribute ``dtype``."""

_UNRULY = (ArithmeticError, LookupError, TypeError, UnsupportedError, ValueError)
"""Errors of a rule on a malformed node, whose lowering reports the cause."""

_FREELY_TYPED = frozenset(("SequenceLast", "SequenceMask", "SequenceReverse", "pick", "softmax"))
"""Operators whose lengths or indices may have any element type."""

_TYPED_BY_OUTPUT = frozenset((
    "BatchNorm", "Convolution", "Deconvolution", "FullyConnected", "LayerNorm", "LeakyReLU",
    "SliceChannel", "split",
))  # fmt: skip
"""Layers whose inputs have the element type of the output, where that alone is known."""

_BYTE_LAYERS = frozenset(("_contrib_quantized_conv", "_contrib_quantized_fully_connected"))
"""Layers whose weight and bias are int8."""

_EQUAL_PARTS = frozenset(("SliceChannel", "split"))

_KEEPS_FLOAT32 = frozenset(
    ("BatchNorm", "BatchNorm_v1", "_contrib_BatchNormWithReLU", "_contrib_SyncBatchNorm")
)
"""Operators whose parameters stay float32 if the data are float16."""


def complete(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
    """Complete types and shapes of a node's inputs, in place.

    Raises `GraphError` if a known shape contradicts the operator; the message names the node and
    the input.

    Parameters
    ----------
    inputs, outputs : sequence of Value
        ``outputs`` may be empty while they are unknown.
    """
    if node.op in CREATING and outputs:
        _complete_created(node, outputs[0])
    if inputs:
        check_window(node, inputs[0].shape)
        check_types(node, inputs)
    if shares_shape(node.op):
        _unify(node, inputs, outputs)
    if node.op in _EQUAL_PARTS:
        _share(outputs)
    rule = RULES.get(node.op)
    if rule is not None and inputs:
        try:
            shapes = [value.shape for value in inputs]
            expected = rule(Attributes(node), shapes, outputs[0].shape if outputs else None)
            _complete_types(node, inputs, outputs)
        except _UNRULY:
            return
        for index, (value, wanted) in enumerate(zip(inputs, expected, strict=False)):
            value.shape = merged(node, index, value.shape, wanted)
    complete_types(node, inputs, outputs)
    if outputs:
        _type_outputs(node, inputs, outputs)
        _shape_outputs(node, inputs, outputs)
    if shares_type(node.op) and node.attrs.get("dtype", "None") == "None":
        _unify_types(node, inputs, outputs[:1])
    if inputs and (node.op in FIRST_TYPE or (rule is not None and node.op not in QUANTIZED)):
        for value in outputs:
            if value.dtype is None:
                value.dtype = inputs[0].dtype


def _type_outputs(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    try:
        types = output_types(Attributes(node), [value.dtype for value in inputs], len(outputs))
    except _UNRULY:
        return
    for value, dtype in zip(outputs, types, strict=True):
        if value.dtype is None:
            value.dtype = dtype


def _shape_outputs(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    try:
        shapes = output_shapes(Attributes(node), [value.shape for value in inputs])
    except _UNRULY:
        return
    for value, shape in zip(outputs, shapes, strict=False):
        if value.shape is None or (None in value.shape and shape is not None):
            value.shape = shape


def _unify(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Set one shape for the inputs of an elementwise operator."""
    shape = outputs[0].shape if outputs else None
    for index, value in enumerate(inputs):
        shape = merged(node, index, value.shape, shape)
    for value in inputs:
        value.shape = shape


def _share(outputs: Sequence[Value]) -> None:
    """Set the type and the shape of all outputs to those of one that has them."""
    known = [value.shape for value in outputs if value.shape is not None]
    dtype = next((value.dtype for value in outputs if value.dtype is not None), None)
    for value in outputs:
        value.dtype = value.dtype or dtype
        if known and all(len(shape) == len(known[0]) for shape in known):
            value.shape = tuple(
                next((size for size in sizes if size is not None), None)
                for sizes in zip(*known, strict=True)
            )


def _unify_types(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Set one element type where none is known.

    Raises `ElementTypeError` if two inputs have different ones.
    """
    values = [*inputs, *outputs]
    known = next((value.dtype for value in values if value.dtype is not None), None)
    for index, value in enumerate(inputs):
        # By identity: NumPy takes None for float64.
        differs = value.dtype is not None and value.dtype != known
        if differs and node.op not in PROMOTING:
            raise ElementTypeError(
                f"{blame(node)}: input {index} ({value.name!r}) is {value.dtype}, and the operator "
                f"wants one element type, which is {known} of input 0; insert Cast"
            )
    for value in values:
        if value.dtype is None:
            value.dtype = known


def _complete_created(node: Node, value: Value) -> None:
    """Complete the type and the shape of a created array, of which sizes may stay unknown."""
    at = Attributes(node)
    if value.dtype is None:
        value.dtype = at.dtype("dtype", np.dtype(np.float32))
    if value.shape is None and at.attr("shape") is not None:
        value.shape = partial_shape(at.ints("shape"))


def _complete_types(node: Node, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    if node.op in QUANTIZED:
        for index, (value, real) in enumerate(zip(inputs, bounds_of(node), strict=False)):
            if value.dtype is None and (real or (index and node.op in _BYTE_LAYERS)):
                value.dtype = np.dtype(np.float32 if real else np.int8)
        return
    if node.op in _TYPED_BY_ATTRIBUTE:
        dtype = Attributes(node).dtype("dtype", np.dtype(np.float32))
        if inputs[1].dtype is None:
            inputs[1].dtype = dtype
        return
    if node.op in _FREELY_TYPED:
        return
    values = [*(outputs[:1] if node.op in _TYPED_BY_OUTPUT else ()), *inputs]
    known = next((value.dtype for value in values if value.dtype is not None), None)
    if known is None:
        return
    for index, value in enumerate(inputs):
        if value.dtype is None:
            narrow = node.op in _KEEPS_FLOAT32 and index > 0 and known == np.float16
            value.dtype = np.dtype(np.float32) if narrow else known


_UNKNOWN = TypeSpec(None, None)


def infer(
    graph: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype] | None = None,
    *,
    default_dtype: np.dtype | None = None,
    train: bool = False,
    partial: bool = False,
) -> dict[Node, tuple[TypeSpec, ...]]:
    """Infer the types of all outputs, hidden ones included; see `Dialect.infer`.

    With ``partial``, shapes are unknown that MXNet leaves unknown.
    """
    with mode_of(graph):
        return _infer(graph, shapes, types or {}, default_dtype, train=train, partial=partial)


def _infer(
    symbol: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    given: Mapping[str, np.dtype],
    default_dtype: np.dtype | None,
    *,
    train: bool,
    partial: bool,
) -> dict[Node, tuple[TypeSpec, ...]]:
    nodes = symbol.nodes()
    check_nodes(nodes)
    variables = {node.name: node for node in nodes if node.is_variable}
    known = {
        name: TypeSpec(
            _dtype(node, given, ignore_attribute=default_dtype is not None), _shape(node, shapes)
        )
        for name, node in variables.items()
    }
    if default_dtype is not None:
        for name in _lengths(nodes):
            known[name] = known[name]._replace(dtype=known[name].dtype or default_dtype)
    table, rules = table_for(symbol), completing(symbol)
    if partial:
        table, rules = Waiting(table), leaving_unknown(rules)
    found = infer_graph(
        symbol,
        table,
        known,
        rules,
        leaves_sizes_open,
        default=None if default_dtype is None else default_types(nodes, default_dtype),
        train=train,
    )
    outputs: dict[Node, tuple[TypeSpec, ...]] = {}
    for node in nodes:
        values = (found.value_of.get((node, index)) for index in range(_count(node)))
        specs = [_UNKNOWN if v is None else TypeSpec(v.dtype, v.shape) for v in values]
        inputs = [type_of(entry, outputs) for entry in node.inputs]
        outputs[node] = with_hidden(node, inputs, specs)
    return outputs


def _lengths(nodes: Sequence[Node]) -> Iterator[str]:
    """Iterate over variables of lengths: float32 where MXNet has a default, else as the data."""
    for node in nodes:
        if node.op in ("SequenceLast", "SequenceMask", "SequenceReverse"):
            yield from (each.node.name for each in node.inputs[1:] if each.node.is_variable)


def completing(symbol: Graph) -> Complete:
    """Return the rules for all nodes of a symbol: MXNet's own, and those of libraries."""
    operators = library_rules(symbol)
    if not operators:
        return complete
    custom = CustomTypes(operators, infer)

    def complete_node(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
        rule = custom.complete if node.op in operators else complete
        rule(node, inputs, outputs)

    return complete_node


def _shape(node: Node, shapes: Mapping[str, Sequence[int] | Shape]) -> Shape | None:
    given: Sequence[int | None] | None = shapes.get(node.name)
    if given is None:
        text = node.attrs.get("__shape__")
        if text is None or text == "None":
            return None
        try:
            given = parse_optional_ints(text)
        except ValueError as error:
            raise FormatError(f"variable {node.name!r}: attribute __shape__: {error}") from None
        if not given and not is_np_shape():
            return None
    return partial_shape(given)


def _dtype(node: Node, given: Mapping[str, np.dtype], *, ignore_attribute: bool) -> np.dtype | None:
    if node.name in given:
        return np.dtype(given[node.name])
    text = node.attrs.get("__dtype__")
    if text is None or ignore_attribute:
        return None
    try:
        code = parse_int(text)
        return None if code < 0 else dtypes.from_code(code)
    except (ValueError, UnsupportedError) as error:
        raise FormatError(f"variable {node.name!r}: attribute __dtype__: {error}") from None


def _count(node: Node) -> int:
    """Count all outputs of a node, hidden ones included."""
    if node.is_variable:
        return 1
    operator = schema.find(node.op)
    if operator is None:
        return max(node.num_outputs, 1)
    # Operators that run a subgraph have as many outputs as the node states.
    return operator.num_outputs(node.attrs) or max(node.num_outputs, 1)
