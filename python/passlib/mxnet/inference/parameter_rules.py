"""Shapes that operators require of their inputs, one rule for each family of operators.

A rule takes the attributes, the shapes of the inputs as far as they are known, and the shape of
the first output if it is known. It returns the required shape of each input, ``None`` for an
unconstrained one. The shapes follow MXNet 1.9.1's operator documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from passlib.graph.attributes import Attributes
from passlib.graph.node import Node
from passlib.lowering.types import Shape
from passlib.mxnet import schema
from passlib.mxnet.lowering.recurrent import Packing

Known = Sequence["Shape | None"]
Rule = Callable[[Attributes, Known, "Shape | None"], Known]

RULES: dict[str, Rule] = {}
"""The rules by operator."""


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register the decorated rule for these operators."""

    def register(rule: Rule) -> Rule:
        for operator in operators:
            RULES[operator] = rule
        return rule

    return register


@rule("Convolution", "Convolution_v1", "_npx_convolution")
def _convolution(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    filters, groups, kernel = at.int("num_filter"), at.int("num_group", 1), at.ints("kernel")
    channels = _size(shapes[0], -1 if channels_last(at) else 1)
    inner = None if channels is None else channels // groups
    weight: Shape = (filters, inner, *kernel)
    if channels_last(at):
        weight = (filters, *kernel, inner)
    return _before(at, shapes[0], result, transposed=False), weight, (filters,)


@rule("Deconvolution", "_npx_deconvolution")
def _deconvolution(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    filters, groups, kernel = at.int("num_filter"), at.int("num_group", 1), at.ints("kernel")
    channels = _size(shapes[0], -1 if channels_last(at) else 1)
    weight: Shape = (channels, filters // groups, *kernel)
    if channels_last(at):
        weight = (channels, *kernel, filters // groups)
    return _before(at, shapes[0], result, transposed=True), weight, (filters,)


@rule("FullyConnected", "_npx_fully_connected", "_sparse_FullyConnected")
def _fully_connected(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    hidden = at.int("num_hidden")
    data, weight = shapes[:2]
    flatten = at.bool("flatten", True)
    width = _product(data[1:]) if data is not None and flatten else _size(data, -1)
    wanted: Shape | None = None
    if data is None and result is not None and not flatten:
        wanted = (*result[:-1], _size(weight, 1))
    elif (data is None or len(data) == 2) and result is not None:
        wanted = (result[0], _size(weight, 1))
    return wanted, (hidden, width), (hidden,)


@rule(
    "BatchNorm", "_npx_batch_norm", "BatchNorm_v1", "_contrib_SyncBatchNorm",
    "_contrib_BatchNormWithReLU",
)  # fmt: skip
def _batch_norm(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    channels = (_size(shapes[0], at.int("axis", 1)),)
    return None, channels, channels, channels, channels


@rule("LayerNorm", "_npx_layer_norm")
def _layer_norm(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    size = (_size(shapes[0], at.int("axis", -1)),)
    return None, size, size


@rule("InstanceNorm")
def _instance_norm(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    channels = (_size(shapes[0], 1),)
    return None, channels, channels


@rule("GroupNorm")
def _group_norm(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    given = shapes[1] or shapes[2] or (at.int("num_groups", 1),)
    return None, given, given


@rule("IdentityAttachKLSparseReg")
def _sparse_regularised(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    return None, (_size(shapes[0], 1),)


@rule("Embedding", "_npx_embedding", "_sparse_Embedding", "_contrib_SparseEmbedding")
def _embedding(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    data = result[:-1] if shapes[0] is None and result is not None else None
    return data, (at.int("input_dim"), at.int("output_dim"))


@rule("LeakyReLU", "_npx_leaky_relu")
def _leaky_relu(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    if at.attr("act_type") != "prelu" or len(shapes) < 2:
        return (result,)
    given = shapes[1]
    known = given is not None and (len(given) != 1 or None not in given)
    learnt = None if known else (_size(shapes[0], 1),)
    return result, learnt


@rule("RNN", "_npx_rnn")
def _rnn(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    data = shapes[0]
    if data is None or len(data) != 3 or data[2] is None:
        return ()
    packing, batch = Packing.of(at, data[2]), data[1]
    wanted: list[Shape | None] = [None, (packing.size,), (packing.rows, batch, packing.recurrent)]
    if at.string("mode") == "lstm":
        wanted.append((packing.rows, batch, packing.state))
    return *wanted, (batch,)


@rule("UpSampling")
def _upsampling(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    if at.attr("sample_type") != "bilinear":
        return ()
    kernel = 2 * at.int("scale") - at.int("scale") % 2
    return None, (_size(shapes[0], 1), 1, kernel, kernel)


@rule("SoftmaxOutput", "Softmax")
def _softmax_output(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    data, label = shapes[:2]
    if data is None or label == data:
        return ()
    if not at.bool("multi_output", False):
        return None, data[:-1]
    if label in ((data[0], *data[2:]), (data[0], 1, *data[2:])):
        return ()
    return None, (data[0], _product(data[2:]))


@rule(
    "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput",
    "_sparse_LinearRegressionOutput", "_sparse_LogisticRegressionOutput",
    "_sparse_MAERegressionOutput",
)  # fmt: skip
def _regression_output(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    data, label = shapes[:2]
    if data is None:
        return ()
    if label is None:
        return None, data[:1] if len(data) == 2 and data[1] == 1 else data
    sizes = [_product(shape) for shape in (data, label)]
    agree = data[:1] == label[:1] and sizes[0] == sizes[1]
    return None, label if agree or None in sizes else data


@rule("Reshape", "reshape")
def _reshape(at: Attributes, shapes: Known, output: Shape | None) -> Known:
    """Complete the one unknown dimension of the data by the number of elements of the result."""
    data = shapes[0]
    if data is None or data.count(None) != 1 or output is None or None in output:
        return ()
    known = math.prod(size for size in data if size is not None)
    elements = math.prod(size for size in output if size is not None)
    if not known or elements % known:
        return ()
    return (tuple(elements // known if size is None else size for size in data),)


@rule("SVMOutput")
def _svm_output(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    return None, None if shapes[0] is None else shapes[0][:-1]


@rule("SequenceMask", "SequenceLast", "SequenceReverse", "_npx_sequence_mask")
def _sequence(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    return None, (_size(shapes[0], 1 - at.int("axis", 0)),)


@rule("softmax", "_npx_softmax")
def _softmax(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    data = shapes[0]
    if data is None or len(shapes) < 2:
        return (result,)
    axis = at.int("axis", -1) % len(data)
    return result, data[:axis] + data[axis + 1 :]


@rule("pick", "_npx_pick")
def _pick(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    data, axis = shapes[0], at.optional_int("axis", -1)
    if data is None or axis is None:
        return ()
    axis %= len(data)
    dropped, kept = (*data[:axis], *data[axis + 1 :]), (*data[:axis], 1, *data[axis + 1 :])
    return None, kept if shapes[1] is not None and len(shapes[1]) == len(kept) else dropped


def _before(
    at: Attributes, data: Shape | None, result: Shape | None, *, transposed: bool
) -> Shape | None:
    """Return the sizes of the data that the result implies: the batch, and sizes at stride 1."""
    kernel = at.ints("kernel")
    if data is None or result is None or channels_last(at) or any(at.ints("target_shape", ())):
        return None
    rank = len(kernel)
    stride, dilate = at.ints("stride", ()) or (1,) * rank, at.ints("dilate", ()) or (1,) * rank
    pad = at.ints("pad", ()) or (0,) * rank
    sizes: list[int | None] = [result[0], None]
    for axis, size in enumerate(result[2:]):
        grown = dilate[axis] * (kernel[axis] - 1) - 2 * pad[axis]
        known = size is not None and stride[axis] == 1
        sizes.append(
            size + (-grown if transposed else grown) if size is not None and known else None
        )
    return tuple(sizes)


def channels_last(at: Attributes) -> bool:
    """Whether the layout has the channels as the last axis."""
    return (at.attr("layout") or "").endswith("C")


def _size(shape: Shape | None, axis: int) -> int | None:
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis]


def _product(sizes: Shape) -> int | None:
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


@rule("Concat", "concat", "_rnn_param_concat")
def _concat(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    return _joined(at.int("dim", 1), shapes, result)


@rule("_npi_concatenate")
def _concatenate(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    axis = at.optional_int("axis", 0)
    return () if axis is None else _joined(axis, shapes, result)


def _joined(axis: int, shapes: Known, result: Shape | None) -> Known:
    """All but the joined axis agree, among inputs of known rank and with the result."""
    known = [shape for shape in (*shapes, result) if shape is not None]
    if not known or all(shape is None for shape in shapes):
        return ()
    axis %= len(known[0])
    agreed: list[int | None] = [
        None if i == axis else next((shape[i] for shape in known if shape[i] is not None), None)
        for i in range(len(known[0]))
    ]
    wanted: list[Shape | None] = [tuple(agreed)] * len(shapes)
    lengths = [None if shape is None else shape[axis] for shape in shapes]
    whole = None if result is None else result[axis]
    if whole is not None and lengths.count(None) == 1:
        missing = lengths.index(None)
        agreed[axis] = whole - sum(length for length in lengths if length is not None)
        wanted[missing] = tuple(agreed)
    return wanted


@rule("stack", "_npi_stack")
def _stack(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    """All inputs have one shape."""
    known = [shape for shape in shapes if shape is not None]
    if not known or any(len(shape) != len(known[0]) for shape in known):
        return ()
    agreed = tuple(
        next((shape[i] for shape in known if shape[i] is not None), None)
        for i in range(len(known[0]))
    )
    return [agreed] * len(shapes)


@rule("SliceChannel", "split")
def _slice_channel(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    """Each part has a share of the axis, which ``squeeze_axis`` removes."""
    data = shapes[0]
    if data is None or result is None:
        return ()
    axis, parts = at.int("axis", 1) % len(data), at.int("num_outputs")
    if at.bool("squeeze_axis", False):
        return ((*result[:axis], parts, *result[axis:]),)
    share = result[axis]
    return ((*result[:axis], None if share is None else share * parts, *result[axis + 1 :]),)


@rule("transpose")
def _transpose(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    if result is None:
        return ()
    axes = at.ints("axes", ()) if at.attr("axes") not in (None, "None") else ()
    if not axes:
        return (result[::-1],) if shapes[0] is not None else ()
    turned: list[int | None] = [None] * len(result)
    for size, axis in zip(result, axes, strict=True):
        turned[axis] = size
    return (tuple(turned),)


@rule("expand_dims")
def _expand_dims(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    if result is None:
        return ()
    axis = at.int("axis") % len(result)
    return ((*result[:axis], *result[axis + 1 :]),)


@rule("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution")
def _deformable(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    """Offsets stay free, weight and bias are those of a convolution of the data."""
    displacing = 2 if at.node.op == "_contrib_DeformableConvolution" else 3
    _, weight, bias = RULES["Convolution"](at, shapes[:1], None)
    return *[None] * displacing, weight, bias


@rule("_contrib_Proposal", "_contrib_MultiProposal")
def _proposal(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    """Two scores and four displacements of each anchor, and three facts of each image."""
    scores = shapes[0]
    if scores is None or len(scores) != 4:
        return None, None, (None, 3)
    batch, both, height, width = scores
    return None, (batch, None if both is None else 2 * both, height, width), (batch, 3)


@rule(
    "ROIPooling", "_contrib_DeformablePSROIPooling", "_contrib_PSROIPooling", "_contrib_ROIAlign"
)  # fmt: skip
def _regions(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    return None, (None, 5)


@rule("_contrib_RROIAlign")
def _rotated_regions(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    return None, (None, 6)


@rule("_contrib_box_decode")
def _box_decode(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    return (None, None, 4), (1, None, 4)


_ONE: Final[Shape] = (1,)
_ALIKE: Final = (
    "_contrib_dequantize", "_contrib_quantize", "_contrib_quantized_act",
    "_contrib_quantized_flatten", "_contrib_quantized_pooling", "_contrib_requantize",
)  # fmt: skip
_BINARY: Final = ("_contrib_quantized_elemwise_add", "_contrib_quantized_elemwise_mul")
_REAL: Final = {
    "_contrib_quantized_conv": "Convolution",
    "_contrib_quantized_embedding": "Embedding",
    "_contrib_quantized_fully_connected": "FullyConnected",
}
"""Operators on bytes whose arrays have the shapes that another operator's have."""

QUANTIZED: Final = frozenset(
    (*_ALIKE, *_BINARY, *_REAL, "_contrib_quantized_batch_norm", "_contrib_quantized_concat")
)


def bounds_of(node: Node) -> Sequence[bool]:
    """Whether each input of an operator on bytes is a bound, or another array of real numbers."""
    operator = schema.find(node.op)
    names = operator.input_names(node.attrs) if operator is not None else ()
    real = ("min_", "max_", "gamma", "beta", "moving_")
    if node.op == "_contrib_quantize":
        return [True] * len(names)
    return [name.startswith(real) or name.endswith(("_min", "_max")) for name in names]


@rule(*_ALIKE)
def _one_array(at: Attributes, shapes: Known, _: Shape | None) -> Known:
    return None, _ONE, _ONE


@rule(*_BINARY)
def _two_arrays(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    known = next((shape for shape in (*shapes[:2], result) if shape is not None), None)
    return known, known, *[_ONE] * 4


@rule(*_REAL)
def _layer(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    arrays = len(shapes) // 3 if at.node.op != "_contrib_quantized_embedding" else 2
    wanted = list(RULES[_REAL[at.node.op]](at, shapes[:arrays], result))[:arrays]
    wanted += [None] * (arrays - len(wanted))
    return *wanted, *[_ONE] * (len(shapes) - arrays)


@rule("_contrib_quantized_batch_norm")
def _quantized_batch_norm(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    return *RULES["BatchNorm"](at, shapes, result), _ONE, _ONE


@rule("_contrib_quantized_concat")
def _quantized_concat(at: Attributes, shapes: Known, result: Shape | None) -> Known:
    arrays = len(shapes) // 3
    wanted = RULES["Concat"](at, shapes[:arrays], result) or [None] * arrays
    return *wanted, *[_ONE] * (2 * arrays)
