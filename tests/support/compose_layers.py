"""Programs that build networks: layers, shared parameters, auxiliary states, hidden outputs."""

from __future__ import annotations

from typing import Any

from compose_registry import program


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
