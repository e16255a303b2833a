"""Expressions on arrays whose results array_cases.py records: operators, methods, indices."""

from __future__ import annotations

ARITHMETIC = [
    f"{left} {sign} {right}"
    for sign in ("+", "-", "*", "/", "%", "**", "==", "!=", "<", "<=", ">", ">=")
    for left, right in (
        ("x", "y"), ("i", "j"), ("u", "u"), ("h", "h"), ("x", "2"), ("2", "x"), ("i", "2"),
        ("3", "j"), ("i", "2.7"), ("u", "3"), ("300", "u"), ("b", "2"), ("x", "row"), ("d", "0.1"),
        ("i", "True"), ("x", "np.float64(1.5)"), ("x", "np.int64(2)"),
    )
]  # fmt: skip

IN_PLACE = [
    f"after({name!r}, '{name} {sign}= {right}')"
    for name in ("x", "i")
    for sign in ("+", "-", "*", "/", "%", "**")
    for right in ("2", "2.5", "x" if name == "x" else "j")
]

_OF_FLOATS = """
abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort as_nd_ndarray
asnumpy cbrt ceil copy cos cosh degrees detach diag exp expm1 fix flatten floor log log10 log1p log2
log_softmax max mean min nanprod nansum norm ones_like prod radians rcbrt reciprocal relu rint round
rsqrt shape_array sigmoid sign sin sinh size_array softmax softmin sort sqrt square squeeze sum tan
tanh topk transpose trunc zeros_like
"""

_OF_ALL = """
abs ceil exp fix floor max mean min norm prod rint round sign sort sqrt square sum trunc argmax
argmin flatten transpose squeeze
"""

METHODS = [f"x.{name}()" for name in _OF_FLOATS.split()]

UNARY = [
    f"{array}.{name}()"
    for array in ("i", "u", "h", "d", "cube", "halves")
    for name in _OF_ALL.split()
    if (array, name) not in {("i", "norm"), ("u", "norm"), ("h", "sort")}
]

WITH_ARGUMENTS = """
x.sum(1)
x.sum(axis=(0, 1))
x.sum(axis=0, keepdims=True)
x.sum(axis=1, exclude=True)
cube.sum(axis=(0, -1))
cube.mean(axis=1)
cube.max(axis=(1, 2), keepdims=True)
cube.min(axis=0)
cube.prod(axis=2)
i.sum(axis=0)
i.mean(axis=1)
x.argmax(axis=1)
x.argmax(axis=0, keepdims=True)
x.argmin(axis=1)
x.argsort(is_ascend=False)
x.argsort(axis=0)
x.argsort(axis=None)
x.argsort(dtype='int32')
x.sort(is_ascend=False)
x.sort(axis=0)
x.sort(axis=None)
x.topk(k=2)
x.topk(k=2, ret_typ='both')
x.topk(k=1, axis=0, ret_typ='value', is_ascend=True)
x.topk(k=2, ret_typ='mask')
x.topk(k=2, dtype='int64')
x.norm(ord=1)
x.norm(axis=1)
x.norm(ord=2, axis=0, keepdims=True)
x.clip(1, 2)
x.clip(a_min=0.5, a_max=2.5)
i.clip(0, 3)
u.clip(2, 4)
x.take(rows)
x.take(rows, mode='wrap')
x.take(cols, axis=1)
x.take(nd.array([1.9, -1]))
x.take(nd.array([[0, 1], [1, 0]], dtype='int32'))
x.pick(nd.array([0, 2]), axis=1)
x.pick(nd.array([0, 1, 0]), axis=0, keepdims=True)
rows.one_hot(4)
rows.one_hot(3, on_value=5, off_value=-1)
rows.one_hot(3, dtype='int32')
x.reshape((3, 2))
x.reshape(3, 2)
x.reshape(-1)
x.reshape(6)
x.reshape((0, -1))
x.reshape((0, 0))
x.reshape(shape=(-3,))
x.reshape((-4, 1, -1, 0))
x.reshape((-2, 1))
x.reshape((2, 0), reverse=True)
cube.reshape((-1, 0), reverse=True)
cube.reshape((-3, 0))
cube.reshape((0, -3))
cube.reshape((0, -4, -1, 1, 0))
cube.reshape((-1,))
e.reshape((-1, 4))
x.reshape_like(nd.ones((3, 2)))
x.flatten()
cube.flatten()
v.flatten()
cube.flatten(inplace=True)
x.expand_dims(0)
x.expand_dims(axis=-1)
x.expand_dims(1, inplace=True)
ones.squeeze()
ones.squeeze(0)
ones.squeeze(axis=(0, 2))
ones.squeeze(axis=-1, inplace=True)
x.transpose((1, 0))
cube.transpose(axes=(2, 0, 1))
x.T
cube.T
v.T
x.swapaxes(0, 1)
cube.swapaxes(dim1=0, dim2=2)
x.flip(axis=1)
cube.flip(axis=0)
x.broadcast_to((4, 2, 3))
x.broadcast_to((2, 3))
row.broadcast_to((2, 3))
row.broadcast_like(x)
row.broadcast_axes(axis=0, size=3)
x.slice_axis(axis=1, begin=0, end=2)
x.slice_axis(axis=-1, begin=-2, end=None)
x.slice(begin=(0, 1), end=(2, 3))
x.slice((0, 1), (2, 3))
x.slice((None, None), (None, 2), (None, 1))
x.slice_like(nd.ones((1, 2)))
x.slice_like(nd.ones((1, 2)), axes=(1,))
x.diag()
x.diag(1)
x.diag(k=-1)
v.diag()
x.tile((2, 1))
x.tile(2)
x.tile(reps=(2, 1, 1))
x.repeat(2)
x.repeat(2, axis=0)
x.repeat(repeats=3, axis=1)
batch.pad(mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 2), constant_value=7)
batch.pad(mode='edge', pad_width=(0, 0, 0, 0, 1, 0, 0, 1))
batch.depth_to_space(2)
batch.space_to_depth(1)
x.split(3, axis=1)
x.split(num_outputs=3, axis=1, squeeze_axis=True)
x.split_v2(3, axis=1)
x.split_v2((1,), axis=1)
x.split_v2((1, 2), axis=1, squeeze_axis=False)
x.softmax(axis=0)
x.softmax(temperature=2)
x.log_softmax(axis=0)
x.softmin(axis=0)
x.astype('int32')
x.astype('float64')
halves.astype('int32')
x.astype(np.float16)
x.astype('uint8', copy=False)
x.astype('float32', copy=False) is x
x.as_nd_ndarray() is x
x.grad
x.writable
x.stype
x.shape
x.size
x.ndim
len(x)
v.asscalar() if v.size == 1 else v.size
nd.array([3]).asscalar()
x.context
x.ctx
x.slice_assign(nd.zeros((1, 2)), (0, 0), (1, 2), (None, None))
x.slice_assign_scalar(9, (0, 0), (1, 1), (None, None))
x.copyto(nd.zeros((2, 3)))
x.copyto(nd.zeros((2, 3), dtype='int32'))
x.tostype('csr').asnumpy()
x.tostype('default')
halves.round()
halves.rint()
halves.fix()
abs(-x)
-i
-u
bool(nd.array([1]))
bool(nd.array([0]))
list(x)
list(v)
x[0]
x[-1]
x[0, 1]
x[:, 1]
x[1:]
x[::-1]
x[:, ::2]
x[..., 0]
x[None]
x[()]
v[0]
v[1:3]
v[0:2, None]
x[0][1]
x[[1, 0]]
x[np.array([1, 0])]
x[nd.array([1, 0])]
x[nd.array([1, 0], dtype='int32')]
x[nd.array([0.9, 1.2])]
x[nd.array([1, 0]), nd.array([2, 1])]
x[nd.array([[0, 1], [1, 0]])]
x[:, nd.array([2, 0])]
v[v > 3]
x[nd.array([1, 0]), 1]
cube[1, 0]
cube[0, :, 1]
cube[:, [0, 1], 1]
after('x', 'x[:] = 5')
after('x', 'x[0] = 7.9')
after('i', 'i[0] = 7.9')
after('x', 'x[nd.array([1])] = 9')
after('x', 'x[1:] = nd.array([[8, 9, 7]], dtype="float64")')
after('x', 'x[:] = [4, 5, 6]')
after('x', 'x[:] = np.array([1.5, 2.5, 3.5])')
after('x', 'x[:, 1] = v[:2]')
after('x', 'x[0, 1] = nd.array([3])')
after('v', 'v[v > 3] = 0')
after('x', 'x[x.shape[0] - 1] += 1')
after('x', 'x.reshape((6,))[0] = 50')
after('x', 'x[0][:] = 4')
after('x', 'x[0:1].reshape((-1,))[2] = 8')
""".strip().splitlines()
