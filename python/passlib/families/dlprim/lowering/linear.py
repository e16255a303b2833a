"""Inner products and convolutions, each with its bias and activation."""

from __future__ import annotations

from typing import Any

from passlib.families.dlprim.lowering.common import activate, floats, options_of
from passlib.families.dlprim.lowering.table import table
from passlib.lowering import Operation, Value

_PAST_END = 2**63 - 1


@table.register("InnerProduct")
def inner_product(op: Operation) -> Value:
    """Multiply (N, ...) with W (outputs, inputs): ``x W^T + bias``, shape (N, outputs).

    All axes but the first count as features.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    data = op.inputs[0]
    if op.rank_of(data) != 2:
        data = op.emit("Flatten", data, axis=1)
    product = op.emit("Gemm", data, *_weights(op, options), transB=1)
    return activate(op, product, options["activation"])


@table.register("Convolution2D")
def convolution(op: Operation) -> Value:
    """Cross-correlate (N, C, H, W) with W (out, C / groups, kh, kw).

    A size becomes ``(size + 2 * pad - dilate * (kernel - 1) - 1) / stride + 1``. C division
    truncates: a kernel that overhangs by less than a stride still has one position, which the
    original pads with zeros.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    ends = list(options["pad"])
    for axis, size in enumerate((op.inputs[0].shape or ())[2:]):
        reach = options["dilate"][axis] * (options["kernel"][axis] - 1) + 1
        if size is not None:  # an image of unknown size that is too small fails at run time
            ends[axis] += max(reach - size - 2 * options["pad"][axis], 0)
    result = op.emit(
        "Conv",
        op.inputs[0],
        *_weights(op, options),
        pads=[*options["pad"], *ends],
        **_window(options),
    )
    return activate(op, result, options["activation"])


@table.register("TransposedConvolution2D")
def transposed_convolution(op: Operation) -> Value:
    """Apply the gradient of a convolution: (N, C, H, W) with W (C, out / groups, kh, kw).

    A size becomes ``(size - 1) * stride - 2 * pad + dilate * (kernel - 1) + output_pad + 1``.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    # ONNX Runtime requires output_padding below stride or dilation; reducing the trailing padding
    # is equivalent and has no such limit.
    ends = [p - more for p, more in zip(options["pad"], options["output_pad"], strict=True)]
    extra = [max(-end, 0) for end in ends]
    cuts = [*options["pad"], *(max(end, 0) for end in ends)]
    # The extension may be all that is left of an axis, so it must precede the cut.
    late = any(extra) and any(cuts)
    result = op.emit(
        "ConvTranspose",
        op.inputs[0],
        *_weights(op, options),
        pads=[0, 0, 0, 0] if late else cuts,
        **_window(options),
    )
    if any(extra):
        result = _extended(op, result, extra, options["bias"])
    if late:
        stops = [-cut or _PAST_END for cut in cuts[2:]]
        bounds = (cuts[:2], stops, [2, 3])
        result = op.emit("Slice", result, *(op.constant(bound, "int64") for bound in bounds))
    return activate(op, result, options["activation"])


def _extended(op: Operation, value: Value, extra: list[int], bias: bool) -> Value:
    """Add rows and columns that no window reaches, which hold only the bias."""
    added = op.constant([0, 0, 0, 0, 0, 0, *extra], "int64")
    if not bias:
        return op.emit("Pad", value, added)
    shift = op.emit("Reshape", op.inputs[2], op.constant([1, -1, 1, 1], "int64"))
    plain = op.emit("Pad", op.emit("Sub", value, shift), added)
    return op.emit("Add", plain, shift)


def _weights(op: Operation, options: dict[str, Any]) -> list[Value]:
    wanted = 3 if options["bias"] else 2
    if len(op.inputs) != wanted:
        op.unsupported(f"needs {wanted} inputs with this option, has {len(op.inputs)}", "bias")
    return op.inputs[1:]


def _window(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "kernel_shape": list(options["kernel"]),
        "strides": list(options["stride"]),
        "dilations": list(options["dilate"]),
        "group": options["groups"],
    }
