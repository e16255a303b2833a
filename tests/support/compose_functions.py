"""Programs that compute on arrays: arithmetic, constants, several outputs, methods."""

from __future__ import annotations

from typing import Any

from compose_registry import program


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
def casts(mx: Any) -> Any:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    both = mx.sym.amp_multicast(x, y, num_outputs=2)
    return mx.sym.Group([both[0] + both[1], mx.sym.amp_cast(x, dtype="float16")])


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
