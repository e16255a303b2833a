"""Declarations of the standard passes that the core runs: groups of rules, and algorithms."""

from __future__ import annotations

import json

from passlib import _core
from passlib.graph.plain import operators_of
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.model import Model
from passlib.model.graph import graph_of
from passlib.passes.function import graph_pass
from passlib.passes.standard.book import apply_groups, apply_move
from passlib.passes.standard.facts.kernels import Fused
from passlib.passes.standard.families import linear, moves, no_ops

_LAYERS = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul"))


@graph_pass(
    name="fuseLayers",
    dialects=["onnx"],
    triggers=[
        "Erf",
        "Tanh",
        "ReduceMean",
        "ReduceMax",
        "Softmax",
        "Attention",
        "LayerNormalization",
        "Gemm",
        "MatMul",
        "Split",
        "Slice",
    ],
    joins=Joins(["simplify"], after="foldShapes"),
)
def fuse_layers(graph: Graph) -> None:
    """Replace LayerNormalization, Gelu, Attention and their kin, written as many operators.

    The operators are ONNX's own, where the model's operator set has them: LayerNormalization from
    17 on, Gelu from 20 on, Attention, RotaryEmbedding and RMSNormalization from 23 on.
    """
    apply_groups(graph, "fuseLayers")
    apply_groups(graph, "fuseHeads", kept=Fused(graph).names)


_LAYER_SETS = (17, 20, 23)
"""Versions of ONNX's operators with new ones that fuse_layers makes."""


def more_layers(model: Model) -> tuple[int, int] | None:
    """Return the version of ONNX's operators in which most layers could be fused.

    Operators whose form changed between the versions are not counted.

    Returns
    -------
    tuple of int, or None
        The version, and how many operators fewer the model would have; None if there are none.
    """
    graph, attributes = model.symbol.graph, dict(model.symbol.attributes)
    versions = json.loads(attributes.get("opset_import", "{}"))
    domain = "ai.onnx" if "ai.onnx" in versions else ""
    if model.dialect != "onnx" or not isinstance(versions.get(domain), int):
        return None
    template = model.data(whole=False).template
    now = operators_of(graph).total()
    best: tuple[int, int] | None = None
    for version in _LAYER_SETS:
        if version <= versions[domain]:
            continue
        attributes["opset_import"] = json.dumps({**versions, domain: version})
        symbol = graph_of(graph, attributes, model.dialect)
        raised = Model.of_parts(symbol, model.args, model.aux, template)
        raised = raised.after_passes("fuseLayers", skip_infer=True)
        if raised.symbol.graph is graph:
            continue
        for name in ("rebuildShapes", "mergeEqualNodes"):
            raised = raised.after_passes(name, skip_infer=True)
        fewer = now - operators_of(raised.symbol.graph).total()
        if fewer > (best[1] if best else 0):
            best = (version, fewer)
    return best


@graph_pass(
    name="removeNoOps",
    dialects=["onnx", "mxnet", "nnvm", "dlprim"],
    exact=True,
    joins=Joins(["clean", "simplify"], after="fuseLayers", rounding={"rounding": True}),
)
def remove_no_ops(graph: Graph, *, signed_zeros: bool = True, rounding: bool = False) -> None:
    """Remove operators that return an input unchanged.

    Parameters
    ----------
    signed_zeros : bool
        Keep the addition of 0.0, which turns -0.0 into 0.0. The addition of -0.0 or an integer 0,
        and the subtraction of 0.0, are removed in any case.
    rounding : bool
        Also remove what returns its input but for -0.0 and NaN, such as pooling of one element and
        Where with a known condition.
    """
    if graph.dialect != "onnx":
        no_ops.remove_no_ops(graph)
        return
    groups = ["removeNoOps"]
    if rounding:
        groups += ["removePools", "removeChoices"]
    if not signed_zeros:
        groups.append("removeZeros")
    apply_groups(graph, *groups)


@graph_pass(
    name="fuseFunctions",
    dialects=["onnx"],
    triggers=["Exp", "Clip", "HardSigmoid", "Abs", "ReduceSum", "ReduceSumSquare"],
    joins=Joins(["simplify"], after="foldBatchNormalization"),
)
def fuse_functions(graph: Graph) -> None:
    """Replace Sigmoid, HardSwish, ReduceL2 and the like, written as many operators, by these."""
    apply_groups(graph, "fuseFunctions", kept=Fused(graph).names)


@graph_pass(
    name="foldLinear",
    dialects=["onnx", "mxnet", "nnvm"],
    triggers=[
        "Conv",
        "ConvTranspose",
        "Gemm",
        "MatMul",
        "Convolution",
        "Deconvolution",
        "FullyConnected",
        "MaxPool",
        "AveragePool",
    ],
    joins=Joins(["simplify"], after="fuseFunctions", cost="weights"),
)
def fold_linear(graph: Graph) -> None:
    """Fold Mul, Div, Add, Sub and Pad with constants into the weights of linear layers.

    The layers are Conv, ConvTranspose, Gemm and MatMul with floating-point weights.
    BatchNormalization before Conv and Gemm is folded, too; an addition before a layer with padding
    stays.
    """
    if graph.dialect != "onnx":
        linear.fold_linear(graph)
        return
    kept = Fused(graph).names
    if kept:
        # Layers may change: only the arithmetic next to them is what the runtime fuses.
        kept = kept - {node.name for node in graph.sorted(*_LAYERS)}
    apply_groups(graph, "foldLinear", kept=kept)


@graph_pass(
    name="fuseMatMulAdd",
    dialects=["onnx"],
    triggers=["MatMul"],
    joins=Joins(["simplify"], after="mergeFactors"),
)
def fuse_matmul_add(graph: Graph) -> None:
    """Replace MatMul of two matrices and an Add that does not enlarge the product by Gemm."""
    apply_groups(graph, "fuseMatMulAdd")


@graph_pass(
    name="fuseDequantize",
    dialects=["onnx"],
    exact=True,
    triggers=["Cast", "DequantizeLinear", "QuantizeLinear"],
    joins=Joins(["clean", "simplify"], after="dropZeroStates", rounding={"rounding": True}),
)
def fuse_dequantize(graph: Graph, *, rounding: bool = False) -> None:
    """Replace Cast of 8-bit weights and Mul with a scale, or one per row, by DequantizeLinear.

    Weights of MatMul and Gemm stay as they are, because ONNX Runtime computes with other numbers
    where they are quantized. Movements between equal scales move the integers.

    Parameters
    ----------
    rounding : bool
        Also let QuantizeLinear do what Relu and Clip before it do.
    """
    more = ["removeBounds"] if rounding else []
    # ONNX Runtime turns a product with DequantizeLinear into MatMulNBits, which rounds the other
    # factor to 8 bits.
    weights = {
        value.node.name
        for node in graph.sorted("MatMul", "Gemm")
        for value in node.inputs[1:2]
        if value.node.op == "Mul"
    }
    apply_groups(graph, "fuseDequantize", "moveQuantized", *more, kept=weights)


@graph_pass(
    name="dropZeroStates",
    dialects=["onnx"],
    exact=True,
    triggers=["RNN", "GRU", "LSTM", "DynamicQuantizeLSTM"],
    joins=Joins(["clean", "simplify"], after="fuseSpaceToDepth"),
)
def drop_zero_states(graph: Graph) -> None:
    """Omit what is the default of RNN, GRU and LSTM: states of 0.0, lengths of full sequences."""
    apply_groups(graph, "dropZeroStates")


@graph_pass(
    name="mergeSigns",
    dialects=["onnx"],
    exact=True,
    triggers=["Abs", "Neg", "Not"],
    joins=Joins(["clean", "simplify"], after="removeNoOps", rounding={"rounding": True}),
)
def merge_signs(graph: Graph, *, rounding: bool = False) -> None:
    """Merge Neg, Abs and Not with the arithmetic and the comparisons around them.

    Parameters
    ----------
    rounding : bool
        Also where 0.0 may become -0.0.
    """
    more = ["fuseSigns"] if rounding else []
    apply_groups(graph, "mergeSigns", *more, kept=Fused(graph).names)


@graph_pass(
    name="mergeClips",
    dialects=["onnx"],
    exact=True,
    triggers=["Clip", "Max", "Min"],
    joins=Joins(["clean", "simplify"], after="mergeSigns", rounding={"rounding": True}),
)
def merge_clips(graph: Graph, *, rounding: bool = False) -> None:
    """Merge successive Clip, Max and Min.

    Parameters
    ----------
    rounding : bool
        Also where a NaN may become a bound.
    """
    more = ["fuseClips"] if rounding else []
    apply_groups(graph, "mergeClips", *more)


@graph_pass(
    name="fuseTransposes",
    dialects=["onnx"],
    triggers=["Transpose"],
    joins=Joins(["simplify"], after="cancelTransposes"),
)
def fuse_transposes(graph: Graph) -> None:
    """Let Gemm, and MatMul with constants, read transposed matrices."""
    apply_groups(graph, "fuseTransposes", kept=Fused(graph).names)


@graph_pass(
    name="removeSequences",
    dialects=["onnx"],
    exact=True,
    triggers=[
        "SplitToSequence",
        "SequenceConstruct",
        "SequenceLength",
        "Optional",
        "OptionalGetElement",
    ],
    joins=Joins(["clean", "simplify"], after="mergeConcats"),
)
def remove_sequences(graph: Graph) -> None:
    """Replace sequences and optional values whose elements are known by tensors."""
    apply_groups(graph, "removeSequences")


@graph_pass(
    name="mergeReshapes",
    dialects=["onnx"],
    exact=True,
    triggers=[
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Tile",
        "Pad",
        "Expand",
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
    ],
    joins=Joins(["clean", "simplify"], after="propagateCasts", rounding={"rounding": True}),
)
def merge_reshapes(graph: Graph, *, rounding: bool = False) -> None:
    """Replace chains of operators that keep the order of the elements by one operator or none.

    Also successive Tile, Pad and Expand, and reductions whose axes are added again.

    Parameters
    ----------
    rounding : bool
        Also merge successive reductions of one kind, which may add in another order.
    """
    kept = Fused(graph).names
    apply_move(graph, _core.merge_reshapes, kept)
    more = ["fuseReductions"] if rounding else []
    apply_groups(graph, "mergeReshapes", *more, kept=kept)


@graph_pass(
    name="mergeFactors",
    dialects=["onnx"],
    triggers=["Add", "Mul", "Reciprocal", "Pow", "Max", "Min"],
    joins=Joins(["simplify"], after="foldLinear"),
)
def merge_factors(graph: Graph) -> None:
    """Merge two multiplications by constants, two additions of constants, and reciprocals.

    A number after a choice between two numbers changes these.
    """
    apply_groups(graph, "mergeInverses")  # which the runtime does before it fuses, too
    kept = Fused(graph).names
    apply_move(graph, _core.merge_factors, kept)
    apply_groups(graph, "mergeFactors", kept=kept)


@graph_pass(
    name="cancelTransposes",
    dialects=["onnx", "mxnet", "nnvm"],
    exact=True,
    triggers=["Transpose", "transpose"],
    joins=Joins(
        ["clean", "simplify"],
        after="mergeReshapes",
        rounding={"empty_errors": False, "reorder_sums": True},
    ),
)
def cancel_transposes(
    graph: Graph, *, empty_errors: bool = True, reorder_sums: bool = False
) -> None:
    """Merge successive Transposes, also across a Reshape that merges axes.

    Parameters
    ----------
    empty_errors : bool
        Keep a Reshape with -1 and an open dimension, which fails if this dimension is 0.
    reorder_sums : bool
        Also move a Transpose into a reduction, which changes the order of its sums and thus their
        rounding.
    """
    if graph.dialect != "onnx":
        moves.cancel_transposes(graph)
        return
    apply_move(graph, _core.cancel_transposes, empty_errors=empty_errors, reorder_sums=reorder_sums)


@graph_pass(
    name="foldShapes",
    dialects=["onnx"],
    exact=True,
    joins=Joins(
        ["clean", "simplify"],
        after="resolveIf",
        options={"conditions": True},
        rounding={"large_sizes": False},
    ),
)
def fold_shapes(graph: Graph, *, large_sizes: bool = True, conditions: bool = False) -> None:
    """Replace computations on dimensions by their results; open dimensions stay open.

    If the target shape of a Reshape depends on open dimensions, it becomes a constant with 0 for
    dimensions of the input at the same position, and -1 for at most one other.

    Parameters
    ----------
    large_sizes : bool
        Keep computations on open dimensions in floating point, because float32 rounds above 2^24.
        If false, multiples of one open dimension are assumed to be smaller, as in `simplify`;
        products of open dimensions stay in any case.
    conditions : bool
        Also fold conditions of If, as in `simplify`, which resolves them. With a constant
        condition, ONNX Runtime may reject an error in the taken branch when it loads the model
        instead of when it runs.
    """
    apply_move(graph, _core.fold_shapes, large_sizes=large_sizes, conditions=conditions)


@graph_pass(
    name="propagateCasts",
    dialects=["onnx"],
    exact=True,
    triggers=["Cast"],
    joins=Joins(["clean", "simplify"], after="removeNoOps"),
)
def propagate_casts(graph: Graph) -> None:
    """Merge a Cast with an earlier lossless one.

    Operators between the casts that only move elements, such as Transpose and Slice, then run on
    the first type. Both casts are removed if the second one returns to this type.
    """
    apply_move(graph, _core.propagate_casts)


@graph_pass(
    name="mergeConcats",
    dialects=["onnx", "mxnet", "nnvm"],
    exact=True,
    triggers=["Concat", "concat", "concatenate"],
    joins=Joins(["clean", "simplify"], after="mergeSlices"),
)
def merge_concats(graph: Graph) -> None:
    """Merge nested Concats on the same axis, and Splits of Concats into the same parts.

    An inner Concat with other users stays.
    """
    if graph.dialect != "onnx":
        moves.merge_concats(graph)
        return
    apply_move(graph, _core.merge_concats)
    apply_groups(graph, "mergeConcats")


@graph_pass(
    name="mergeSlices",
    dialects=["onnx"],
    exact=True,
    triggers=["Slice", "Gather", "Concat", "Split"],
    joins=Joins(["clean", "simplify"], after="cancelTransposes"),
)
def merge_slices(graph: Graph) -> None:
    """Merge successive Slices, Gather and Unsqueeze of one index, and Slices that cover an axis.

    The results are a Slice, a Slice and a Split. Concats of all parts of a value become the value.
    """
    apply_move(graph, _core.merge_slices)
    apply_groups(graph, "mergeSlices", kept=Fused(graph).names)
