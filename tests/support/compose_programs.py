"""Small programs that build symbols, for MXNet and passlib alike.

Each function takes the module (``mxnet`` or ``passlib``) and returns a symbol. What MXNet 1.9.1
makes of each is frozen in tests/data/compose/<function>.json. Run this file inside the MXNet
environment, with that folder as argument, to write them again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    """Register a program."""
    PROGRAMS[function.__name__] = function
    return function


@program
def lenet(mx: Any) -> Any:
    data = mx.sym.var("data")
    net = data
    for filters in (20, 50):
        net = mx.sym.Convolution(data=net, kernel=(5, 5), num_filter=filters)
        net = mx.sym.Activation(data=net, act_type="tanh")
        net = mx.sym.Pooling(data=net, pool_type="max", kernel=(2, 2), stride=(2, 2))
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=500, name="hidden")
    net = mx.sym.Activation(net, act_type="tanh")
    net = mx.sym.FullyConnected(net, num_hidden=10)
    return mx.sym.SoftmaxOutput(data=net, name="softmax")


@program
def residual_block(mx: Any) -> Any:
    x = mx.sym.Variable("data", shape=(0, 3, 32, 32), dtype="float32")

    def unit(x: Any, filters: int, stride: tuple[int, int], name: str) -> Any:
        y = mx.sym.BatchNorm(x, fix_gamma=False, eps=2e-5, momentum=0.9, name=name + "_bn1")
        y = mx.sym.Activation(y, act_type="relu", name=name + "_relu1")
        short = mx.sym.Convolution(
            y, num_filter=filters, kernel=(1, 1), stride=stride, no_bias=True, name=name + "_sc"
        )
        y = mx.sym.Convolution(
            y, num_filter=filters, kernel=(3, 3), stride=stride, pad=(1, 1), no_bias=True
        )
        return mx.sym.BatchNorm(y, fix_gamma=True, use_global_stats=True) + short

    for number, filters in enumerate((16, 32)):
        x = unit(x, filters, (number + 1, number + 1), f"stage{number}")
    return mx.sym.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg")


@program
def recurrent(mx: Any) -> Any:
    data = mx.sym.Embedding(mx.sym.var("words"), input_dim=50, output_dim=8, name="embed")
    data = mx.sym.swapaxes(data, dim1=0, dim2=1)
    lstm = mx.sym.RNN(data, state_size=16, num_layers=2, mode="lstm", state_outputs=True, p=0.5)
    gru = mx.sym.RNN(data, state_size=4, num_layers=1, mode="gru", bidirectional=True, name="gru")
    counted = mx.sym.RNN(
        data, state_size=4, num_layers=1, mode="rnn_tanh", use_sequence_length=True
    )
    return mx.sym.Group([lstm, gru, counted])


@program
def scalars(mx: Any) -> Any:
    x = mx.sym.var("x")
    y = 2 * x + 1 - x / 3.0
    y = 1 - y
    y = 4 / y
    y = y % 3
    y = 5 % y
    y = y**2
    y = 2.5**y
    return -y


@program
def pairs(mx: Any) -> Any:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    z = (x + y) * (x - y) / (x % y)
    return z**x


@program
def comparisons(mx: Any) -> Any:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    found = [x == y, x != y, x > y, x >= y, x < y, x <= y]
    found += [x == 1, x != 2, x > 3, x >= 4.5, x < 5, x <= 6]
    found += [1 == x, 2 != x, 3 > x, 4 >= x, 5 < x, 6 <= x]  # noqa: SIM300, the order is tested
    return mx.sym.Group(found)


@program
def functions_of_two(mx: Any) -> Any:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    sym = mx.sym
    found = [sym.pow(x, y), sym.pow(x, 2), sym.pow(2, x), sym.power(x, 3)]
    found += [sym.maximum(x, y), sym.maximum(x, 0), sym.maximum(0, x)]
    found += [sym.minimum(x, y), sym.minimum(x, 1.5), sym.minimum(1.5, x)]
    found += [sym.hypot(x, y), sym.hypot(x, 3), sym.hypot(4, x)]
    return sym.Group(found)


@program
def constants(mx: Any) -> Any:
    sym = mx.sym
    found = [sym.zeros((2, 3)), sym.ones(4, dtype="int32"), sym.full((1,), 3)]
    found += [sym.arange(5), sym.arange(1, 9, 2, name="odd", dtype="int64"), sym.eye(3)]
    found += [sym.linspace(0, 1, 11), sym.zeros(shape=(1, 2), name="z")]
    return sym.Group(found)


@program
def scope(mx: Any) -> Any:
    data = mx.sym.var("data")
    with mx.AttrScope(ctx_group="dev1", __mood__="good"):
        inside = mx.sym.var("inside", lr_mult=2.0)
        net = mx.sym.FullyConnected(data, num_hidden=4, name="fc1")
        with mx.AttrScope(ctx_group="dev2"):
            net = mx.sym.FullyConnected(net, num_hidden=4, name="fc2", attr={"__own__": "1"})
        net = mx.sym.Concat(net, inside, name="both")
    return mx.sym.Activation(net, act_type="relu")


@program
def hidden_attributes(mx: Any) -> Any:
    data = mx.sym.var("data")
    net = mx.sym.Convolution(
        data, num_filter=8, kernel=(3, 3), name="c", lr_mult=2, attr={"__foo__": "1"}
    )
    net = mx.sym.BatchNorm(net, name="b", attr={"wd_mult": "0.5", "force_mirroring": "True"})
    return mx.sym.relu(net, __own__="x", mirror_stage="3")


@program
def prefixes(mx: Any) -> Any:
    data = mx.sym.var("data")
    with mx.name.Prefix("outer_"):
        net = mx.sym.FullyConnected(data, num_hidden=3)
        with mx.name.Prefix("inner_"):
            net = mx.sym.FullyConnected(net, num_hidden=3)
            net = mx.sym.FullyConnected(net, num_hidden=3, name="named")
        net = mx.sym.FullyConnected(net, num_hidden=3)
    return mx.sym.FullyConnected(net, num_hidden=3)


@program
def names_of_kinds(mx: Any) -> Any:
    x = mx.sym.var("x")
    sym = mx.sym
    found = [sym.ElementWiseSum(x, x), sym.add_n(x, x, x), sym.elemwise_add(x, x)]
    found += [sym.broadcast_plus(x, x), sym.broadcast_add(x, x), sym._internal._plus_scalar(x)]
    found += [sym.linalg.gemm2(x, x), sym.linalg_gemm2(x, x), sym.contrib.box_iou(x, x)]
    found += [sym.image.normalize(x, mean=(0.5,), std=(0.5,)), sym.SwapAxis(x), sym.Cast(x, "int8")]
    found += [sym.random.uniform_like(x), sym.sparse.dot(x, x), sym.op.relu(x)]
    return sym.Group(found)


@program
def variables(mx: Any) -> Any:
    sym = mx.sym
    found = [
        sym.var("a", shape=(1, 2), lr_mult=0.1, wd_mult=0, dtype="float16", stype="row_sparse"),
        sym.var("b", attr={"lr_mult": "3", "plain": "yes"}, init="zeros", __extra__=(1, 2)),
        sym.var("c", shape=[4, 5], dtype="bool", stype="default"),
        sym.Variable("d", attr={"__shape__": "(9,)"}, shape=(7,)),
    ]
    return sym.Group(found)


@program
def shared_weights(mx: Any) -> Any:
    weight, bias = mx.sym.var("w"), mx.sym.var("b")
    left = mx.sym.FullyConnected(mx.sym.var("l"), weight, bias, num_hidden=3, name="fc")
    right = mx.sym.FullyConnected(
        data=mx.sym.var("r"), bias=bias, weight=weight, num_hidden=3, name="fc"
    )
    return mx.sym.Concat(left, right, dim=0)


@program
def shared_states(mx: Any) -> Any:
    data, mean = mx.sym.var("data"), mx.sym.var("mean")
    first = mx.sym.BatchNorm(data, moving_mean=mean, name="first")
    second = mx.sym.BatchNorm(first, moving_mean=mean, name="second", output_mean_var=True)
    return mx.sym.Group([second, first + mean, mean])


@program
def own_initialisers(mx: Any) -> Any:
    data = mx.sym.var("data")
    states = [mx.sym.var(n, init='["normal", {}]') for n in ("mean", "var")]
    net = mx.sym.BatchNorm(data, moving_mean=states[0], moving_var=states[1], name="bn")
    net = mx.sym.BatchNorm(net, name="all", attr={"__init__": '["one", {}]'})
    net = mx.sym.LeakyReLU(net, act_type="prelu", name="prelu")
    net = mx.sym.UpSampling(net, scale=2, sample_type="bilinear", num_filter=4, name="up")
    return mx.sym.IdentityAttachKLSparseReg(net, name="kl")


@program
def hidden_outputs(mx: Any) -> Any:
    x = mx.sym.var("x")
    net = mx.sym.Dropout(x, p=0.3)
    net = mx.sym.LayerNorm(net, axis=-1)
    net = mx.sym.LRN(net, nsize=5)
    net = mx.sym.InstanceNorm(net)
    net = mx.sym.L2Normalization(net)
    net = mx.sym.GroupNorm(net, num_groups=2)
    return mx.sym.Pooling(net, kernel=(2, 2), pool_type="sum")


@program
def several_outputs(mx: Any) -> Any:
    x = mx.sym.var("x")
    parts = mx.sym.split(x, num_outputs=3, axis=1, name="parts")
    one = mx.sym.SliceChannel(x, num_outputs=1)
    top = mx.sym.topk(x, k=2, ret_typ="both")
    best = mx.sym.topk(x, k=1, ret_typ="value", name="best")
    mean = mx.sym.LayerNorm(x, output_mean_var=True, name="ln")
    chosen = parts[0] + parts[2]
    return mx.sym.Group([chosen, one, top, best, mean[1], mx.sym.sort(x)])


@program
def split_points(mx: Any) -> Any:
    x = mx.sym.var("x")
    return mx.sym.Group([mx.sym.split_v2(x, 2), mx.sym.split_v2(x, (1, 3), axis=1)])


@program
def methods(mx: Any) -> Any:
    x = mx.sym.var("x")
    y = x.reshape(shape=(-1, 4)).transpose(axes=(1, 0)).sum(axis=1, keepdims=True)
    y = y.astype("float16").expand_dims(axis=0).squeeze().flatten()
    y = y.slice_axis(axis=0, begin=1, end=None).clip(0, 6).mean().abs()
    return mx.sym.Group([y.exp().log().sqrt(), x.split(num_outputs=2), x.diag(), x.softmax()])


@program
def positional_attributes(mx: Any) -> Any:
    x = mx.sym.var("x")
    y = mx.sym.reshape(x, (2, 3), True)
    y = mx.sym.clip(y, 0, 1)
    y = mx.sym.slice_axis(y, 0, 0, 2)
    return mx.sym.Activation(y, "relu", name="act")


@program
def spelling(mx: Any) -> Any:
    x = mx.sym.var("x")
    y = mx.sym.Convolution(x, kernel=[3, 3], num_filter=4, no_bias=1, layout=None, name="c")
    y = mx.sym.sum(y, axis=None)
    y = mx.sym.sum(y, axis=(0,), keepdims=1)
    y = mx.sym.Dropout(y, p=1e-7)
    return mx.sym.Cast(y, dtype="float64")


@program
def attention(mx: Any) -> Any:
    x = mx.sym.var("x")
    scores = mx.sym.contrib.interleaved_matmul_selfatt_qk(x, heads=4)
    weights = mx.sym.softmax(scores, axis=-1)
    weights = mx.sym.softmax(weights, mx.sym.var("lengths"), use_length=True)
    y = mx.sym.contrib.interleaved_matmul_selfatt_valatt(x, weights, heads=4)
    return mx.sym.contrib.div_sqrt_dim(y)


@program
def detection(mx: Any) -> Any:
    feature, image = mx.sym.var("feature"), mx.sym.var("image")
    anchors = mx.sym.contrib.MultiBoxPrior(feature, sizes=(0.2, 0.4), ratios=(1, 2))
    loc = mx.sym.Flatten(mx.sym.Convolution(feature, kernel=(3, 3), num_filter=12))
    cls = mx.sym.var("cls")
    found = mx.sym.contrib.MultiBoxDetection(cls, loc, anchors, nms_threshold=0.4)
    kept = mx.sym.contrib.box_nms(found, overlap_thresh=0.5, valid_thresh=0.01)
    target = mx.sym.contrib.MultiBoxTarget(anchors, mx.sym.var("label"), cls)
    roi = mx.sym.ROIPooling(image, kept, pooled_size=(2, 2), spatial_scale=0.5)
    return mx.sym.Group([kept, target, roi])


@program
def sequences(mx: Any) -> Any:
    x, lengths = mx.sym.var("x"), mx.sym.var("lengths")
    y = mx.sym.SequenceMask(x, lengths, use_sequence_length=True, value=-1)
    y = mx.sym.SequenceReverse(y)
    y = mx.sym.SequenceReverse(y, use_sequence_length=True, name="rev")
    return mx.sym.SequenceLast(y, sequence_length=lengths, use_sequence_length=True)


@program
def counted_inputs(mx: Any) -> Any:
    a, b = mx.sym.var("a"), mx.sym.var("b")
    stacked = mx.sym.stack(a, b, axis=1)
    joined = mx.sym.Concat(arg1=b, arg0=a, name="joined")
    open_end = mx.sym.Concat(a, num_args=3, name="open")
    total = mx.sym.add_n(stacked, joined, open_end)
    upper = mx.sym.UpSampling(a, b, scale=2, sample_type="nearest", num_args=2)
    return mx.sym.Group([total, upper, mx.sym.khatri_rao(a, b), mx.sym.Crop(a, b, h_w=(2, 2))])


@program
def without_data(mx: Any) -> Any:
    net = mx.sym.FullyConnected(num_hidden=3, name="fc")
    return mx.sym.elemwise_add(net)


@program
def conditional_inputs(mx: Any) -> Any:
    x, like = mx.sym.var("x"), mx.sym.var("like")
    found = [mx.sym.Deconvolution(x, kernel=(2, 2), num_filter=3)]
    found += [mx.sym.Deconvolution(x, kernel=(2, 2), num_filter=3, no_bias=False)]
    found += [mx.sym.contrib.BilinearResize2D(x, like, mode="like")]
    found += [mx.sym.contrib.BilinearResize2D(x, height=4, width=4)]
    found += [mx.sym.CTCLoss(x, mx.sym.var("label"), use_label_lengths=True)]
    found += [mx.sym.LeakyReLU(x, act_type="rrelu")]
    found += [mx.sym.contrib.DeformableConvolution(x, kernel=(3, 3), num_filter=2)]
    return mx.sym.Group(found)


@program
def losses(mx: Any) -> Any:
    x = mx.sym.var("x")
    found = [mx.sym.LinearRegressionOutput(x), mx.sym.LogisticRegressionOutput(x)]
    found += [mx.sym.SoftmaxOutput(x, name="softmax", multi_output=True), mx.sym.MakeLoss(x)]
    found += [mx.sym.make_loss(x), mx.sym.BlockGrad(x), mx.sym.SVMOutput(x, name="svm")]
    return mx.sym.Group(found)


@program
def random_numbers(mx: Any) -> Any:
    x = mx.sym.var("x")
    random = mx.sym.random
    found = [random.uniform(0, 2, shape=(2,)), random.normal(loc=x, scale=x), random.randn(3, 4)]
    found += [random.multinomial(x, get_prob=False), random.shuffle(x), random.poisson(3)]
    found += [random.randint(0, 9, shape=(3,)), random.gamma(1, 2), random.exponential(2)]
    return mx.sym.Group(found)


@program
def linear_algebra(mx: Any) -> Any:
    a, b = mx.sym.var("a"), mx.sym.var("b")
    linalg = mx.sym.linalg
    found = [linalg.gemm(a, b, a, alpha=2.0), linalg.potrf(a), linalg.det(a), linalg.slogdet(a)]
    found += [linalg.syevd(a), linalg.trsm(a, b, rightside=True), mx.sym.dot(a, b)]
    found += [mx.sym.batch_dot(a, b, transpose_b=True), linalg.syrk(a, transpose=True)]
    return mx.sym.Group(found)


@program
def indexing(mx: Any) -> Any:
    x, index = mx.sym.var("x"), mx.sym.var("index")
    found = [mx.sym.take(x, index), mx.sym.pick(x, index, axis=1), mx.sym.gather_nd(x, index)]
    found += [mx.sym.one_hot(index, depth=5), mx.sym.where(index, x, x)]
    found += [mx.sym.slice(x, begin=(0, None), end=(2, None), step=(1, -1))]
    found += [mx.sym.tile(x, reps=(2, 1)), mx.sym.repeat(x, repeats=2), mx.sym.reverse(x, axis=0)]
    found += [mx.sym.pad(x, mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 1, 1))]
    return mx.sym.Group(found)


@program
def internals(mx: Any) -> Any:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    net = mx.sym.Activation(net, act_type="relu", name="act")
    again = net.get_internals()["fc_output"]
    return mx.sym.Group([net, mx.sym.tanh(again)])


@program
def one_name_twice(mx: Any) -> Any:
    x = mx.sym.var("x")
    y = mx.sym.relu(x, name="same")
    return mx.sym.relu(y, name="same")


@program
def casts(mx: Any) -> Any:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    both = mx.sym.amp_multicast(x, y, num_outputs=2)
    return mx.sym.Group([both[0] + both[1], mx.sym.amp_cast(x, dtype="float16")])


@program
def quantized(mx: Any) -> Any:
    x = mx.sym.var("x")
    q = mx.sym.contrib.quantize_v2(x, out_type="int8")
    y = mx.sym.contrib.quantized_conv(
        data=q[0], min_data=q[1], max_data=q[2], kernel=(1, 1), num_filter=2, no_bias=True, name="q"
    )
    return mx.sym.contrib.dequantize(y[0], y[1], y[2])


@program
def spatial(mx: Any) -> Any:
    x = mx.sym.var("x")
    moved = mx.sym.SpatialTransformer(
        x, target_shape=(4, 4), transform_type="affine", sampler_type="bilinear", name="st"
    )
    grid = mx.sym.GridGenerator(mx.sym.var("theta"), transform_type="affine", target_shape=(4, 4))
    return mx.sym.Group([moved, mx.sym.BilinearSampler(x, grid), mx.sym.Correlation(x, x)])


@program
def histograms(mx: Any) -> Any:
    x = mx.sym.var("x")
    counted = mx.sym.histogram(x, bins=5, range=(0, 1))
    return mx.sym.Group([counted, mx.sym.histogram(x, mx.sym.var("edges"))])


@program
def deep_chain(mx: Any) -> Any:
    x = mx.sym.var("x")
    for _ in range(30):
        x = x + 1
    return x


def write(folder: str) -> None:
    """Write what the installed MXNet makes of each program."""
    import mxnet as mx

    for name, function in PROGRAMS.items():
        with mx.name.NameManager():
            symbol = function(mx)
        text = symbol.tojson(remove_amp_cast=False)
        Path(folder, f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
