"""Type inference for one operator: its output, and the parameters that it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from passlib.errors import counted
from passlib.families.dlprim import options as option_texts
from passlib.families.dlprim.network import FLOAT, LARGEST, MAX_RANK, NAMES, Spec
from passlib.families.dlprim.schema import OPERATORS
from passlib.lowering.types import Misfit

_Values = Mapping[str, Any]
_Rule = Callable[[_Values, Sequence[Spec]], Spec]


class Inferred(NamedTuple):
    """Output and parameters of an operator, these in its order."""

    output: Spec
    parameters: tuple[Spec, ...]


@lru_cache(maxsize=4096)
def infer(op: str, attributes: tuple[tuple[str, str], ...], inputs: tuple[Spec, ...]) -> Inferred:
    """Check inputs and options as the original program does, and infer output and parameters.

    Cached, since networks repeat their layers. Raises `Misfit` if inputs or options do not fit the
    operator; `OptionError` if an option is missing or has an invalid value.
    """
    options = option_texts.read(op, dict(attributes))
    wanted = OPERATORS[op].inputs
    if wanted is not None and len(inputs) != wanted:
        raise Misfit(f"takes {counted(wanted, 'input')}, has {len(inputs)}")
    if wanted is None and not inputs:
        raise Misfit("takes at least one input, has none")
    output = RULES[op](options, inputs)
    need(
        1 <= len(output.shape) <= MAX_RANK,
        f"returns a tensor of {len(output.shape)} dimensions, but 1 to {MAX_RANK} are possible",
    )
    need(min(output.shape) > 0, f"returns an empty tensor, {output}")
    need(output.elements < LARGEST, f"returns a tensor of 2^62 elements or more, {output}")
    return Inferred(output, _parameters(op, options, inputs))


def _parameters(op: str, options: _Values, inputs: Sequence[Spec]) -> tuple[Spec, ...]:
    if op == "Parameter":
        return (Spec(NAMES[options["dtype"]], options["shape"]),)
    if op == "BatchNorm":
        return (Spec(FLOAT, inputs[0].shape[1:2]),) * (4 if options["affine"] else 2)
    if op == "InnerProduct":
        shape: tuple[int, ...] = (options["outputs"], math.prod(inputs[0].shape[1:]))
    elif op == "Convolution2D":
        inner = inputs[0].shape[1] // options["groups"]
        shape = (options["channels_out"], inner, *options["kernel"])
    elif op == "TransposedConvolution2D":
        outer = options["channels_out"] // options["groups"]
        shape = (inputs[0].shape[1], outer, *options["kernel"])
    else:
        return ()
    weight, bias = Spec(FLOAT, shape), Spec(FLOAT, (shape[0],))
    if op == "TransposedConvolution2D":
        bias = Spec(FLOAT, (options["channels_out"],))
    return (weight, bias) if options["bias"] else (weight,)


def pooled(options: _Values, size: int, axis: int) -> int:
    """Return the size of a spatial axis after Pooling2D; axis 0 is height, 1 width.

    As in PyTorch, no window starts beyond the input and its leading padding.
    """
    kernel, stride, pad = (options[name][axis] for name in ("kernel", "stride", "pad"))
    up = stride - 1 if options["ceil_mode"] else 0
    count = int((size + 2 * pad - kernel + up) // stride) + 1
    return count - 1 if (count - 1) * stride >= size + pad else count


def resized(options: _Values, height: int, width: int) -> tuple[int, int]:
    """Return height and width after Interpolation."""
    if options["out_h"] > 0:
        return options["out_h"], options["out_w"]
    scaled = height * options["scale_y"], width * options["scale_x"]
    need(max(scaled) < LARGEST, "scales to 2^62 elements or more")
    return int(scaled[0]), int(scaled[1])


def squeezed(options: _Values, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the axes that Squeeze removes, counted from the front."""
    dims = options["dims"]
    need(not (options["all"] and dims), "has both all and dims")
    if options["all"]:
        return tuple(axis for axis, size in enumerate(shape) if size == 1)
    axes = tuple(sorted({_axis(dim, len(shape)) for dim in dims}))
    for axis in axes:
        need(shape[axis] == 1, f"squeezes axis {axis} of {tuple(shape)}, which is not 1")
    return axes


def need(condition: object, message: str) -> None:
    """Raise `Misfit` unless a condition holds."""
    if not condition:
        raise Misfit(message)


def _axis(dim: int, rank: int) -> int:
    need(-rank <= dim < rank, f"has no axis {dim} in {rank} dimensions")
    return dim % rank


def _floats(inputs: Sequence[Spec]) -> None:
    for index, spec in enumerate(inputs):
        need(spec.dtype == FLOAT, f"computes on float, but input {index} is {spec.dtype}")


def _rank(spec: Spec, *ranks: int) -> None:
    words = " or ".join(map(str, ranks))
    need(len(spec.shape) in ranks, f"needs an input of {words} dimensions, has {spec}")


def _same(options: _Values, inputs: Sequence[Spec]) -> Spec:
    return inputs[0]


def _positive(options: _Values, *names: str, least: int = 1) -> None:
    for name in names:
        values = options[name] if isinstance(options[name], tuple) else (options[name],)
        need(min(values) >= least, f"needs {name} of at least {least}, has {options[name]}")


def _elementwise(options: _Values, inputs: Sequence[Spec]) -> Spec:
    left, right = inputs
    need(left.dtype == right.dtype, f"needs inputs of the same type, has {left} and {right}")
    rank = max(len(left.shape), len(right.shape))
    pairs = zip(
        (1,) * (rank - len(left.shape)) + left.shape,
        (1,) * (rank - len(right.shape)) + right.shape,
        strict=True,
    )
    shape = []
    for a, b in pairs:
        need(a == b or 1 in (a, b), f"cannot broadcast {left} and {right}")
        shape.append(max(a, b))
    return Spec(FLOAT, tuple(shape))


def _pooling(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _floats(inputs)
    _rank(inputs[0], 4)
    _positive(options, "kernel", "stride")
    _positive(options, "pad", least=0)
    batch, channels, *sizes = inputs[0].shape
    for axis, size in enumerate(sizes):
        need(
            size + 2 * options["pad"][axis] >= options["kernel"][axis],
            f"has a kernel {options['kernel']} larger than the padded input {inputs[0]}",
        )
    spatial = (pooled(options, size, axis) for axis, size in enumerate(sizes))
    return Spec(FLOAT, (batch, channels, *spatial))


def _global_pooling(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _floats(inputs)
    _rank(inputs[0], 4)
    return Spec(FLOAT, (*inputs[0].shape[:2], 1, 1))


def _inner_product(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _positive(options, "outputs")
    shape = inputs[0].shape
    need(len(shape) >= 2, f"needs an input of 2 dimensions or more, has {inputs[0]}")
    features = math.prod(shape[1:])
    need(
        options["inputs"] in (-1, features),
        f"has inputs {options['inputs']}, but receives {features} features",
    )
    return Spec(inputs[0].dtype, (shape[0], options["outputs"]))


def _channels(options: _Values, inputs: Sequence[Spec]) -> int:
    _rank(inputs[0], 4)
    _positive(options, "channels_out", "groups", "kernel", "stride", "dilate")
    _positive(options, "pad", least=0)
    channels = inputs[0].shape[1]
    need(
        options["channels_in"] in (-1, channels),
        f"has channels_in {options['channels_in']}, but receives {channels} channels",
    )
    for count in (channels, options["channels_out"]):
        need(
            count % options["groups"] == 0,
            f"cannot divide {count} channels into {options['groups']} groups",
        )
    return channels


def _convolution(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _channels(options, inputs)
    sizes = []
    for axis, size in enumerate(inputs[0].shape[2:]):
        reach = options["dilate"][axis] * (options["kernel"][axis] - 1) + 1
        rest = size + 2 * options["pad"][axis] - reach
        stride = options["stride"][axis]
        # C division truncates: the original accepts a kernel that overhangs by less than a stride.
        need(-rest < stride, f"has a kernel larger than the padded input {inputs[0]}")
        sizes.append(max(rest, 0) // stride + 1)
    return Spec(FLOAT, (inputs[0].shape[0], options["channels_out"], *sizes))


def _transposed(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _channels(options, inputs)
    _positive(options, "output_pad", least=0)
    sizes = []
    for axis, size in enumerate(inputs[0].shape[2:]):
        reach = options["dilate"][axis] * (options["kernel"][axis] - 1) + 1
        extent = (size - 1) * options["stride"][axis] - 2 * options["pad"][axis] + reach
        sizes.append(extent + options["output_pad"][axis])
    return Spec(FLOAT, (inputs[0].shape[0], options["channels_out"], *sizes))


def _batch_norm(options: _Values, inputs: Sequence[Spec]) -> Spec:
    shape = inputs[0].shape
    need(len(shape) >= 2, f"needs an input of 2 dimensions or more, has {inputs[0]}")
    need(
        options["features"] in (-1, shape[1]),
        f"has features {options['features']}, but receives {shape[1]} channels",
    )
    return inputs[0]


def _softmax(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _floats(inputs)
    _rank(inputs[0], 2, 3)
    return inputs[0]


def _softmax_with_loss(options: _Values, inputs: Sequence[Spec]) -> Spec:
    scores, label = inputs
    _floats([scores])
    _rank(scores, 2)
    need(label.dtype in (FLOAT, "int32"), f"needs a label of float or int32, has {label}")
    fits = label.shape[0] == scores.shape[0] == label.elements
    need(fits, f"needs one label for each of {scores.shape[0]} items, has {label}")
    return Spec(FLOAT, (1,))


def _nll_loss(options: _Values, inputs: Sequence[Spec]) -> Spec:
    scores, label = inputs
    _floats([scores])
    _rank(scores, 2)
    need(label.shape == scores.shape[:1], f"needs labels of shape ({scores.shape[0]}), has {label}")
    return Spec(FLOAT, scores.shape[:1] if options["reduce"] == "none" else (1,))


def _mse_loss(options: _Values, inputs: Sequence[Spec]) -> Spec:
    left, right = inputs
    _floats(inputs)
    need(left == right, f"needs tensors of the same shape, has {left} and {right}")
    return left if options["reduce"] == "none" else Spec(FLOAT, (1,))


def _concat(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _floats(inputs)
    first, dim = inputs[0].shape, options["dim"]
    need(0 <= dim < len(first), f"has no dim {dim} in {inputs[0]}")
    total = 0
    for spec in inputs:
        same = spec.shape[:dim] == first[:dim] and spec.shape[dim + 1 :] == first[dim + 1 :]
        need(
            same and len(spec.shape) == len(first),
            f"cannot concatenate {inputs[0]} and {spec} along dim {dim}",
        )
        total += spec.shape[dim]
    return Spec(FLOAT, (*first[:dim], total, *first[dim + 1 :]))


def _slice(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _floats(inputs)
    shape, dim = inputs[0].shape, options["dim"]
    need(0 <= dim < len(shape), f"has no dim {dim} in {inputs[0]}")
    begin = options["begin"]
    end = shape[dim] if options["end"] == -1 else options["end"]
    need(
        0 <= begin < end <= shape[dim],
        f"cannot take {begin} to {options['end']} of {shape[dim]} elements",
    )
    return Spec(FLOAT, (*shape[:dim], end - begin, *shape[dim + 1 :]))


def _flatten(options: _Values, inputs: Sequence[Spec]) -> Spec:
    shape = inputs[0].shape
    return Spec(inputs[0].dtype, (shape[0], math.prod(shape[1:])))


def _squeeze(options: _Values, inputs: Sequence[Spec]) -> Spec:
    shape = inputs[0].shape
    axes = squeezed(options, shape)
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return Spec(inputs[0].dtype, kept or (1,))


def _reshape(options: _Values, inputs: Sequence[Spec]) -> Spec:
    dims, shape = options["dims"], inputs[0].shape
    need(dims, "needs dims, a non-empty list of integers")
    need(len(dims) <= MAX_RANK, f"has {len(dims)} dims, but at most {MAX_RANK} are possible")
    need(
        min(dims) >= -1 and dims.count(-1) <= 1, f"has dims {dims}: one may be -1, none may be less"
    )
    sizes = []
    for axis, dim in enumerate(dims):
        need(dim != 0 or axis < len(shape), f"has dim 0 at {axis}, but the input is {inputs[0]}")
        sizes.append(shape[axis] if dim == 0 else dim)
    known = math.prod(size for size in sizes if size != -1)
    if -1 in sizes:
        sizes[sizes.index(-1)] = inputs[0].elements // known if known else 0
    need(
        math.prod(sizes) == inputs[0].elements,
        f"cannot reshape {inputs[0]}, of {inputs[0].elements} elements, to {dims}",
    )
    return Spec(inputs[0].dtype, tuple(sizes))


def _reduction(options: _Values, inputs: Sequence[Spec]) -> Spec:
    shape = inputs[0].shape
    axes = reduced(options, len(shape))
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    if not options["keep_dim"]:
        kept = [size for axis, size in enumerate(shape) if axis not in axes]
    return Spec(inputs[0].dtype, tuple(kept) or (1,))


def reduced(options: _Values, rank: int) -> tuple[int, ...]:
    """Return the axes that Reduction reduces, counted from the front."""
    if options["dims"]:
        return tuple(sorted({_axis(dim, rank) for dim in options["dims"]}))
    return tuple(range(_axis(options["start_axis"], rank), rank))


def _parameter(options: _Values, inputs: Sequence[Spec]) -> Spec:
    need(options["dtype"] in NAMES, f"has the unknown dtype {options['dtype']!r}")
    need(options["shape"], "has an empty shape")
    return Spec(NAMES[options["dtype"]], options["shape"])


def _interpolation(options: _Values, inputs: Sequence[Spec]) -> Spec:
    _rank(inputs[0], 4)
    sizes = options["out_h"] > 0, options["out_w"] > 0
    scales = options["scale_y"] > 0, options["scale_x"] > 0
    one = sizes in ((True, True), (False, False)) and scales == (not sizes[0], not sizes[1])
    need(one, "needs either out_h and out_w or scale_y and scale_x")
    need(
        options["method"] == "bilinear" or not options["align_corners"],
        "has align_corners, which only bilinear supports",
    )
    batch, channels, height, width = inputs[0].shape
    return Spec(inputs[0].dtype, (batch, channels, *resized(options, height, width)))


RULES: Final[Mapping[str, _Rule]] = {
    "Abs": _same,
    "Activation": _same,
    "BatchNorm": _batch_norm,
    "Concat": _concat,
    "Convolution2D": _convolution,
    "Elementwise": _elementwise,
    "Flatten": _flatten,
    "GlobalPooling": _global_pooling,
    "Hardtanh": _same,
    "InnerProduct": _inner_product,
    "Interpolation": _interpolation,
    "MSELoss": _mse_loss,
    "NLLLoss": _nll_loss,
    "Parameter": _parameter,
    "Pooling2D": _pooling,
    "Reduction": _reduction,
    "Reshape": _reshape,
    "Slice": _slice,
    "Softmax": _softmax,
    "SoftmaxWithLoss": _softmax_with_loss,
    "Squeeze": _squeeze,
    "Threshold": _same,
    "TransposedConvolution2D": _transposed,
}
