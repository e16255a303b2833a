"""Cases of layers: convolution, pooling, normalisation, activation, softmax, attention."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cases_tensor_spec import Case, case, of, real, whole

TYPES = ("float16", "float64")
HALF = 1e-2


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    yield from linear()
    yield from convolution()
    yield from deconvolution()
    yield from pooling()
    yield from batch_norm()
    yield from normalization()
    yield from activation()
    yield from softmax()
    yield from output_layers()
    yield from attention()
    yield from sequence()


def linear() -> Iterator[Case]:
    for shape in ((2, 3), (2, 3, 4), (3,), (2, 3, 2, 2)):
        width = int(np.prod(shape[1:]))
        yield case("FullyConnected", real(*shape), real(5, width), real(5), num_hidden=5)
        yield case("FullyConnected", real(*shape), real(5, width), num_hidden=5, no_bias=True)
    for shape in ((3,), (2, 3), (2, 5, 3), (2, 2, 2, 3)):
        data, weight = real(*shape), real(4, 3)
        yield case("FullyConnected", data, weight, real(4), num_hidden=4, flatten=False)
        yield case("FullyConnected", data, weight, num_hidden=4, flatten=False, no_bias=True)
    arrays = (real(2, 3), real(4, 3), real(4))
    yield case("FullyConnected", *(a.astype("float64") for a in arrays), num_hidden=4)
    weight = real(5, 3)
    yield case("Embedding", of(0, 4, 2), weight, input_dim=5, output_dim=3)
    yield case("Embedding", of(-3, 9, 1.7, -0.5), weight, input_dim=5, output_dim=3)
    yield case("Embedding", whole(2, 2, low=0, high=5), weight, input_dim=5, output_dim=3)
    for dtype in ("int32", "int64", "uint8", "float64"):
        index = whole(2, 3, low=0, high=5, dtype=dtype)
        yield case("Embedding", index, weight, input_dim=5, output_dim=3)
    for dtype in ("float64", "float16", "int32"):
        rows = whole(5, 3, dtype=dtype)
        yield case("Embedding", of(1, 3), rows, input_dim=5, output_dim=3, dtype=dtype)
    yield case("Embedding", of(1, 3), weight, input_dim=5, output_dim=3, sparse_grad=True)
    sparse, shape = "_contrib_SparseEmbedding", {"input_dim": 5, "output_dim": 3}
    yield case(sparse, of(0, 4, 2), weight, **shape)
    yield case(sparse, of(-3, 9, 1.7, -0.5), weight, **shape, deterministic=True)
    yield case(sparse, whole(2, 2, low=0, high=5), weight, **shape, deterministic=False)
    for dtype in ("int32", "int64", "uint8", "float64"):
        yield case(sparse, whole(2, 3, low=0, high=5, dtype=dtype), weight, **shape)
    for dtype in ("float64", "float16", "int32"):
        yield case(sparse, of(1, 3), whole(5, 3, dtype=dtype), **shape, dtype=dtype)


def convolution() -> Iterator[Case]:
    one, two, three = real(2, 4, 7), real(2, 4, 6, 5), real(1, 2, 4, 5, 4)
    bias = real(6)
    yield case("Convolution", one, real(6, 4, 3), bias, kernel=(3,), num_filter=6)
    yield case(
        "Convolution", one, real(6, 2, 3), bias, kernel=(3,), num_filter=6, num_group=2,
        stride=(2,), pad=(2,), dilate=(2,), layout="NCW",
    )  # fmt: skip
    weight = real(6, 4, 3, 2)
    size = {"kernel": (3, 2), "num_filter": 6}
    yield case("Convolution", two, weight, bias, **size)
    yield case("Convolution", two, weight, **size, no_bias=True)
    yield case("Convolution", two, weight, bias, **size, stride=(2, 1), pad=(1, 0))
    yield case("Convolution", two, weight, bias, **size, dilate=(2, 3), layout="NCHW")
    yield case("Convolution", two, weight, bias, **size, pad=(4, 3), workspace=256)
    yield case("Convolution", two, weight, bias, **size, cudnn_tune="off", cudnn_off=True)
    old = "Convolution_v1"
    yield case(old, two, weight, bias, **size, stride=(2, 2), pad=(1, 1))
    yield case(old, two, weight, **size, no_bias=True, dilate=(2, 3))
    yield case(old, two, weight, bias, **size, stride=(3, 1), pad=(4, 0), cudnn_tune="off")
    yield case(old, two, real(6, 2, 1, 1), bias, kernel=(1, 1), num_filter=6, num_group=2)
    yield case(old, two, real(8, 1, 3, 3), kernel=(3, 3), num_filter=8, num_group=4, no_bias=True)
    yield case(old, two[:1], weight, bias, **size, dilate=(2, 1), stride=(1, 2), pad=(2, 1))
    yield case(old, *(a.astype("float64") for a in (two, weight, bias)), **size)
    yield case("Convolution", two, real(6, 2, 1, 1), bias, kernel=(1, 1), num_filter=6, num_group=2)
    yield case(
        "Convolution", two, real(8, 1, 3, 3), kernel=(3, 3), num_filter=8, num_group=4,
        no_bias=True, pad=(1, 1),
    )  # fmt: skip
    yield case("Convolution", three, real(3, 2, 2, 3, 2), real(3), kernel=(2, 3, 2), num_filter=3)
    yield case(
        "Convolution", three, real(4, 1, 2, 2, 2), real(4), kernel=(2, 2, 2), num_filter=4,
        num_group=2, stride=(1, 2, 1), pad=(1, 0, 1), dilate=(1, 2, 1), layout="NCDHW",
    )  # fmt: skip
    yield case("Convolution", *(a.astype("float64") for a in (two, weight, bias)), **size)


def deconvolution() -> Iterator[Case]:
    one, two, three = real(2, 4, 5), real(2, 4, 3, 4), real(1, 2, 2, 3, 2)
    yield case("Deconvolution", one, real(4, 3, 3), kernel=(3,), num_filter=3)
    yield case(
        "Deconvolution", one, real(4, 3, 3), real(3), kernel=(3,), num_filter=3, stride=(3,),
        pad=(1,), adj=(2,), no_bias=False,
    )  # fmt: skip
    weight = real(4, 3, 3, 2)
    size = {"kernel": (3, 2), "num_filter": 3}
    yield case("Deconvolution", two, weight, **size)
    yield case("Deconvolution", two, weight, real(3), **size, no_bias=False)
    yield case("Deconvolution", two, weight, **size, stride=(2, 3), pad=(1, 1), adj=(1, 2))
    yield case("Deconvolution", two, weight, **size, dilate=(2, 3), stride=(2, 1))
    yield case("Deconvolution", two, weight, **size, stride=(2, 2), adj=(1, 1), dilate=(3, 3))
    yield case("Deconvolution", two, real(4, 3, 3, 2), **{**size, "num_filter": 6}, num_group=2)
    yield case(
        "Deconvolution", two, real(4, 1, 4, 4), kernel=(4, 4), num_filter=4, num_group=4,
        stride=(2, 2), pad=(1, 1),
    )  # fmt: skip
    square = real(4, 3, 3, 3)
    yield case(
        "Deconvolution", real(2, 4, 4, 4), square, kernel=(3, 3), num_filter=3, stride=(2, 2),
        pad=(1, 1), target_shape=(7, 7),
    )  # fmt: skip
    yield case("Deconvolution", three, real(2, 3, 2, 2, 2), kernel=(2, 2, 2), num_filter=3)
    arrays = (two.astype("float64"), weight.astype("float64"))
    yield case("Deconvolution", *arrays, **size)


def pooling() -> Iterator[Case]:
    one, two, three = real(2, 3, 9), real(2, 3, 7, 8), real(1, 2, 5, 4, 5)
    kinds = (
        {"pool_type": "max"},
        {"pool_type": "avg"},
        {"pool_type": "avg", "count_include_pad": False},
        {"pool_type": "avg", "count_include_pad": True},
        {"pool_type": "sum"},
        {"pool_type": "lp", "p_value": 1},
        {"pool_type": "lp", "p_value": 2},
        {"pool_type": "lp", "p_value": 3},
    )
    for kind in kinds:
        yield case("Pooling", one, kernel=(3,), stride=(2,), pad=(1,), **kind)
        yield case("Pooling", two, kernel=(1, 1), global_pool=True, **kind)
        for convention in ("valid", "full"):
            attributes = {**kind, "pooling_convention": convention}
            yield case("Pooling", two, kernel=(3, 2), stride=(2, 3), **attributes)
            yield case("Pooling", two, kernel=(3, 3), stride=(2, 2), pad=(1, 1), **attributes)
            yield case("Pooling", two, kernel=(2, 2), stride=(3, 3), pad=(1, 1), **attributes)
        yield case("Pooling", three, kernel=(2, 2, 3), stride=(2, 1, 2), pad=(1, 0, 1), **kind)
    full = {"pooling_convention": "full"}
    yield case("Pooling", three, kernel=(2, 2, 2), stride=(2, 2, 2), pool_type="avg", **full)
    yield case("Pooling", one, kernel=(4,), stride=(3,), pool_type="max", **full)
    yield case("Pooling", two, kernel=(2, 2))
    yield case("Pooling", two, global_pool=True, pool_type="avg")
    yield case("Pooling", one, global_pool=True, pool_type="avg")
    yield case("Pooling", three, global_pool=True, pool_type="max", pad=(1, 1, 1))
    last = two.transpose(0, 2, 3, 1).copy()
    yield case("Pooling", last, kernel=(2, 3), stride=(2, 2), layout="NHWC")
    yield case("Pooling", last, kernel=(2, 3), pool_type="avg", pad=(1, 1), layout="NHWC")
    yield case("Pooling", last, global_pool=True, pool_type="avg", layout="NHWC")
    yield case("Pooling", one.transpose(0, 2, 1).copy(), kernel=(2,), layout="NWC")
    for dtype in TYPES:
        for kind in ("max", "avg", "sum"):
            yield case("Pooling", two.astype(dtype), kernel=(3, 3), pool_type=kind)
    for kind in ("max", "avg", "sum"):
        yield case("Pooling_v1", two, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=kind)
        yield case("Pooling_v1", two, kernel=(3, 3), global_pool=True, pool_type=kind)
        yield case("Pooling_v1", two, kernel=(3, 3), stride=(2, 2), pool_type=kind, **full)
        yield case("Pooling_v1", two, kernel=(2, 2), stride=(3, 3), pool_type=kind, **full)
        yield case(
            "Pooling_v1", two, kernel=(3, 3), stride=(3, 3), pad=(1, 1), pool_type=kind, **full
        )
    for size in ((), (1,), (3,), (2, 4), (7, 8), (5, 3), (9, 10)):
        yield case("_contrib_AdaptiveAvgPooling2D", two, output_size=size)
    yield case("_contrib_AdaptiveAvgPooling2D", two.astype("float64"), output_size=(3, 3))


def batch_norm() -> Iterator[Case]:
    data = real(2, 3, 4, 2)
    stats = (real(3), real(3, low=-1), real(3, low=-3), real(3, low=0.1))
    for attributes in (
        {},
        {"fix_gamma": False},
        {"eps": 0.1, "fix_gamma": False},
        {"use_global_stats": True, "fix_gamma": False},
        {"output_mean_var": True, "fix_gamma": False},
        {"output_mean_var": True, "use_global_stats": True, "momentum": 0.5},
    ):
        yield case("BatchNorm", data, *stats, **attributes)
        yield case("BatchNorm", data.transpose(0, 2, 3, 1).copy(), *stats, axis=3, **attributes)
    for train in (
        {"fix_gamma": False},
        {"output_mean_var": True},
        {"use_global_stats": True},
    ):
        yield case("BatchNorm", data, *stats, train=True, **train)
        yield case("BatchNorm", stats[1], *stats, train=True, axis=0, **train)
    yield case("BatchNorm", data[:, :, 0, 0].copy(), *stats, fix_gamma=False)
    yield case("BatchNorm", data[:, :, :, 0].copy(), *stats, fix_gamma=False, axis=-2)
    yield case("BatchNorm", real(3, 2), *stats, fix_gamma=False, axis=0)
    yield case("BatchNorm", real(2, 3, 2, 2, 2), *stats, fix_gamma=False, cudnn_off=True)
    yield case("BatchNorm", data.astype("float16"), *stats, fix_gamma=False)
    wide = tuple(array.astype("float64") for array in (data, *stats))
    yield case("BatchNorm", *wide, fix_gamma=False)
    yield case("BatchNorm_v1", data, *stats, fix_gamma=False, output_mean_var=True)
    yield case("BatchNorm_v1", data, *stats, use_global_stats=True)
    yield case("_contrib_SyncBatchNorm", data, *stats, key="k", fix_gamma=False)
    synchronized = {"fix_gamma": False, "output_mean_var": True}
    yield case("_contrib_SyncBatchNorm", data, *stats, key="t", train=True, **synchronized)
    rectified = "_contrib_BatchNormWithReLU"
    for options in (
        {"fix_gamma": False},
        {},
        {"fix_gamma": False, "eps": 0.1},
        {"fix_gamma": False, "use_global_stats": True},
        {"use_global_stats": True, "momentum": 0.5, "eps": 0.01},
    ):
        yield case(rectified, data, *stats, **options)
    for train in ({"fix_gamma": False}, {}, {"fix_gamma": False, "use_global_stats": True}):
        yield case(rectified, data, *stats, train=True, **train)


def normalization() -> Iterator[Case]:
    data = real(2, 4, 3, 2)
    for axis, size in ((-1, 2), (1, 4), (2, 3), (0, 2), (-3, 4)):
        gamma, beta = real(size), real(size, low=-1)
        yield case("LayerNorm", data, gamma, beta, axis=axis)
        yield case("LayerNorm", data, gamma, beta, axis=axis, output_mean_var=True, eps=0.1)
    yield case("LayerNorm", real(3), real(3, low=0), real(3, low=-1))
    wide = (data.astype("float64"), real(2, dtype="float64"), real(2, low=0, dtype="float64"))
    yield case("LayerNorm", *wide, output_mean_var=True)
    half = tuple(array.astype("float16") for array in wide)
    yield case("LayerNorm", *half, tolerance=HALF)
    for groups in (1, 2, 4):
        gamma, beta = real(groups), real(groups, low=-1)
        yield case("GroupNorm", data, gamma, beta, num_groups=groups)
        yield case("GroupNorm", data, gamma, beta, num_groups=groups, output_mean_var=True, eps=0.1)
    yield case("GroupNorm", real(2, 4, 3), real(2), real(2, low=-1), num_groups=2)
    gamma, beta = real(4), real(4, low=-1)
    for shape in ((2, 4, 3), (2, 4, 3, 2), (2, 4, 3, 2, 2)):
        yield case("InstanceNorm", real(*shape), gamma, beta)
        yield case("InstanceNorm", real(*shape), gamma, beta, eps=0.1)
    for mode in ("instance", "channel", "spatial"):
        yield case("L2Normalization", data, mode=mode)
        yield case("L2Normalization", real(2, 4, 3), mode=mode, eps=0.5)
        yield case("L2Normalization", data.astype("float64"), mode=mode)
    yield case("L2Normalization", real(2, 4))
    yield case("L2Normalization", data.reshape(-1)[:4].copy())
    for size in (1, 2, 3, 4, 5, 9):
        yield case("LRN", real(2, 6, 3, 2), nsize=size, alpha=0.5)
    yield case("LRN", real(2, 6, 3, 2), nsize=3, alpha=0.01, beta=0.5, knorm=1)
    yield case("Dropout", data)
    yield case("Dropout", data, p=0.0, mode="always")
    yield case("Dropout", data, p=0.0, train=True)
    yield case("Dropout", data.astype("float64"), p=0.3, axes=(1, 2))


def activation() -> Iterator[Case]:
    data = real(2, 3, 4, low=-4, high=4)
    for kind in ("relu", "sigmoid", "softrelu", "softsign", "tanh"):
        yield case("Activation", data, act_type=kind)
        yield case("Activation", of(-80, -20, -1e-4, 0, 1e-4, 20, 80), act_type=kind)
        for dtype in TYPES:
            yield case("Activation", data.astype(dtype), act_type=kind)
    for kind in ("leaky", "elu", "selu", "gelu"):
        yield case("LeakyReLU", data, act_type=kind)
        yield case("LeakyReLU", data, act_type=kind, slope=0.7)
        yield case("LeakyReLU", of(-30, -1e-3, 0, 1e-3, 30), act_type=kind)
        for dtype in TYPES:
            yield case("LeakyReLU", data.astype(dtype), act_type=kind)
    slopes = of(0.1, -0.2, 0.3)
    for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 2), (3,)):
        yield case("LeakyReLU", real(*shape), slopes, act_type="prelu")
    yield case("LeakyReLU", data, of(0.1), act_type="prelu")
    yield case("LeakyReLU", real(2, 3), of([0.1, 0.2, 0.3]), act_type="prelu")
    yield case("_npx_relu", data)


def softmax() -> Iterator[Case]:
    data = real(2, 3, 4)
    for operator in ("softmax", "log_softmax", "softmin"):
        for axis in (-1, 0, 1, -2):
            yield case(operator, data, axis=axis)
        yield case(operator, data, temperature=2.5)
        yield case(operator, data, axis=1, temperature=0.3)
        yield case(operator, real(5, low=-90, high=90))
        for dtype in TYPES:
            yield case(operator, data.astype(dtype))
        yield case(operator, data.astype("float16"), dtype="float32", tolerance=2e-3)
        yield case(operator, data, dtype="float64")
        yield case(operator, data, dtype="float16")
    for dtype in ("int32", "int64"):
        lengths = whole(2, 4, low=1, high=4, dtype=dtype)
        yield case("softmax", data, lengths, axis=1, use_length=True)
    lengths = whole(2, 3, low=0, high=5, dtype="int32")
    yield case("softmax", data, lengths, use_length=True)
    yield case("softmax", data, lengths, use_length=True, temperature=2.0)
    yield case("softmax", data[0], lengths[0], use_length=True, axis=-1)
    yield case("SoftmaxActivation", real(2, 3))
    for mode in ("instance", "channel"):
        yield case("SoftmaxActivation", data, mode=mode)
        yield case("SoftmaxActivation", real(2, 3, 2, 2), mode=mode)


def output_layers() -> Iterator[Case]:
    data = real(2, 3, 4)
    yield case("SoftmaxOutput", real(2, 3), whole(2, low=0, high=3))
    yield case("SoftmaxOutput", data, whole(2, 3, low=0, high=4))
    yield case("SoftmaxOutput", data, whole(2, 4, low=0, high=3), multi_output=True)
    yield case("SoftmaxOutput", data, whole(2, 3, low=0, high=4), preserve_shape=True)
    yield case("SoftmaxOutput", real(2, 3, 2, 2), whole(2, 2, 2, low=0, high=3), multi_output=True)
    yield case(
        "SoftmaxOutput", real(2, 3), whole(2, low=0, high=3), grad_scale=2.0, use_ignore=True,
        ignore_label=1, normalization="valid", smooth_alpha=0.1, out_grad=True,
    )  # fmt: skip
    for operator in (
        "LinearRegressionOutput",
        "LogisticRegressionOutput",
        "MAERegressionOutput",
    ):
        yield case(operator, data, real(2, 3, 4, low=0))
        yield case(operator, real(2, 1), real(2, low=0), grad_scale=0.5)
    yield case("SVMOutput", real(2, 3), whole(2, low=0, high=3), margin=0.5, use_linear=True)
    yield case("softmax_cross_entropy", real(4, 3), whole(4, low=0, high=3))
    far = of([0, 100, -100], [-18.3, 0, 0.5], [30, 11, 0])
    for dtype in ("float32", *TYPES):
        for row, label in enumerate((0, 0, 2)):
            data = far[row : row + 1].astype(dtype)
            yield case("softmax_cross_entropy", data, of(label, dtype=dtype))
    yield case("IdentityAttachKLSparseReg", real(2, 3), real(3, low=0))


def attention() -> Iterator[Case]:
    for sizes in (
        (3, 4, 2, 1, 5), (3, 4, 2, 2, 5), (1, 2, 1, 3, 1), (5, 1, 3, 4, 2), (2, 6, 1, 1, 4),
        (4, 4, 2, 2, 1), (1, 1, 1, 1, 1), (2, 3, 2, 2, 3),
    ):  # fmt: skip
        yield from interleaved(*sizes)
    for dtype in ("float32", *TYPES):
        yield case("_contrib_div_sqrt_dim", real(2, 3, 7, dtype=dtype))


def interleaved(length: int, other: int, batch: int, heads: int, depth: int) -> Iterator[Case]:
    """Attention to the own sequence and to another one, of projections that stand side by side."""
    sequence = real(length, batch, heads * 3 * depth)
    queries = real(other, batch, heads * depth)
    pairs = real(length, batch, heads * 2 * depth)
    own = real(batch * heads, length, length, low=0)
    across = real(batch * heads, other, length, low=0)
    for name, inputs in (
        ("selfatt_qk", (sequence,)),
        ("selfatt_valatt", (sequence, own)),
        ("encdec_qk", (queries, pairs)),
        ("encdec_valatt", (pairs, across)),
    ):
        yield case(f"_contrib_interleaved_matmul_{name}", *inputs, heads=heads)


def sequence() -> Iterator[Case]:
    for dtype in ("float32", "int32", "float64"):
        for shape in ((4, 3), (4, 3, 2), (4, 3, 2, 2)):
            data = whole(*shape, dtype=dtype)
            lengths = of(2, 4, 1)
            yield case("SequenceMask", data, lengths, use_sequence_length=True)
            yield case("SequenceLast", data, lengths, use_sequence_length=True)
            yield case("SequenceReverse", data, lengths, use_sequence_length=True)
            swapped = data.swapaxes(0, 1).copy()
            yield case("SequenceMask", swapped, lengths, use_sequence_length=True, axis=1, value=-2)
            yield case("SequenceLast", swapped, lengths, use_sequence_length=True, axis=1)
    data = whole(4, 3, 2)
    for operator in ("SequenceMask", "SequenceLast", "SequenceReverse"):
        yield case(operator, data)
        yield case(operator, data, of(1, 2, 3, dtype="int32"), use_sequence_length=True)
    yield case("SequenceMask", data, of(0, 4, 3), use_sequence_length=True, value=1.5)
    yield case("SequenceReverse", data, of(0, 4, 3), use_sequence_length=True)
    yield case("SequenceLast", data, axis=1)
