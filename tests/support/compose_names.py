"""Programs about names and attributes: scopes, prefixes, spelling, the order of inputs."""

from __future__ import annotations

from typing import Any

from compose_registry import program


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
