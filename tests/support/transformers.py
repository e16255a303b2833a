"""Blocks of transformers as exporters write them, in small operators of ONNX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, SIZE = 32, 4, 8
"""Features of a row, heads, and features of a head."""


class Net:
    """A graph in the making: ``net.Relu(x)`` adds an operator and returns its output."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.graph = onnx.GraphProto(name="transformer")
        self._random = np.random.default_rng(0)

    def __getattr__(self, op: str) -> Callable[..., Any]:
        def add(*inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
            names = [self.value(each) for each in inputs]
            number = len(self.graph.node)
            made = [f"/{op}_{number}_output_{i}" for i in range(outputs)]
            self.graph.node.append(
                helper.make_node(op, names, made, f"/{op}_{number}", **attributes)
            )
            return made[0] if outputs == 1 else made

        return add

    def value(self, given: Any) -> str:
        """Return the name of a value; numbers and arrays become constants."""
        if isinstance(given, str):
            return given
        array = np.asarray(given, np.float32 if isinstance(given, float) else None)
        name = f"constant_{len(self.graph.initializer)}"
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int, around: float = 0.0) -> np.ndarray[Any, Any]:
        """Return random numbers around one."""
        drawn = self._random.standard_normal(shape) / np.sqrt(shape[0])
        return (around + drawn).astype(np.float32)

    def feed(self, name: str, *sizes: int | str, kind: int = TensorProto.FLOAT) -> str:
        """Add an input."""
        self.graph.input.append(helper.make_tensor_value_info(name, kind, sizes))
        return name

    def result(self, value: str, *sizes: int | str) -> None:
        """Add an output."""
        self.graph.output.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, sizes))

    def model(self, output: str, *sizes: int | str) -> bytes:
        """Return the model that computes a value."""
        self.result(output, *sizes)
        sets = [helper.make_opsetid("", self.opset)]
        made = helper.make_model(self.graph, opset_imports=sets, ir_version=10)
        onnx.checker.check_model(made, full_check=True)
        return bytes(made.SerializeToString())

    # Layers that all exporters write alike.

    def mean(self, x: str) -> str:
        """Add a mean along the last axis."""
        if self.opset < 18:
            return str(self.ReduceMean(x, axes=[-1]))
        return str(self.ReduceMean(x, np.array([-1])))

    def linear(self, x: str, width: int = 0, *, bias: bool = True, wide: int = 0) -> str:
        """Add a product with weights and a sum; rows have ``WIDTH`` features if nothing is said."""
        width, wide = width or WIDTH, wide or WIDTH
        product = self.MatMul(x, self.weight(wide, width))
        return str(self.Add(self.weight(width), product) if bias else product)

    def layer_norm(self, x: str) -> str:
        """Add LayerNormalization in nine operators, as PyTorch's older exporter writes it."""
        d = self.Sub(x, self.mean(x))
        variance = self.mean(self.Pow(d, 2.0))
        normal = self.Div(d, self.Sqrt(self.Add(variance, 1e-5)))
        return str(self.Add(self.Mul(normal, self.weight(WIDTH, around=1)), self.weight(WIDTH)))

    def rms_norm(self, x: str) -> str:
        """Add RMSNormalization in six operators."""
        root = self.Sqrt(self.Add(self.mean(self.Pow(x, 2.0)), 1e-6))
        return str(self.Mul(self.weight(WIDTH, around=1), self.Mul(x, self.Reciprocal(root))))

    def split_heads(self, x: str, heads: int = 0) -> str:
        """Turn rows of features into heads, ``HEADS`` if nothing is said."""
        shape = np.array([0, -1, heads or HEADS, SIZE])
        return str(self.Transpose(self.Reshape(x, shape), perm=[0, 2, 1, 3]))

    def join_heads(self, x: str) -> str:
        """Turn heads into rows of features."""
        return str(self.Reshape(self.Transpose(x, perm=[0, 2, 1, 3]), np.array([0, -1, WIDTH])))

    def gelu(self, x: str) -> str:
        """Add Gelu in five operators."""
        h = self.Add(self.Erf(self.Div(x, 2**0.5)), 1.0)
        return str(self.Mul(self.Mul(x, h), 0.5))

    def gelu_by_tanh(self, x: str) -> str:
        """Add the approximation of Gelu in eight operators."""
        inner = self.Add(x, self.Mul(self.Pow(x, 3.0), 0.044715))
        h = self.Add(self.Tanh(self.Mul(inner, 0.7978845608028654)), 1.0)
        return str(self.Mul(self.Mul(x, 0.5), h))


def bert(opset: int) -> bytes:
    """Return two blocks of an encoder with a mask of tokens."""
    net = Net(opset)
    x = net.feed("x", "batch", "rows", WIDTH)
    given = net.feed("mask", "batch", "rows", kind=TensorProto.INT64)
    wide = net.Unsqueeze(given, np.array([1, 2]))
    mask = net.Mul(net.Sub(1.0, net.Cast(wide, to=TensorProto.FLOAT)), -10000.0)
    for _ in range(2):
        q, k, v = (net.split_heads(net.linear(x)) for _ in range(3))
        scores = net.Div(net.MatMul(q, net.Transpose(k, perm=[0, 1, 3, 2])), SIZE**0.5)
        mixed = net.MatMul(net.Softmax(net.Add(scores, mask), axis=-1), v)
        x = net.layer_norm(net.Add(net.linear(net.join_heads(mixed)), x))
        inner = net.linear(net.gelu(net.linear(x, 2 * WIDTH)), wide=2 * WIDTH)
        x = net.layer_norm(net.Add(inner, x))
    return net.model(x, "batch", "rows", WIDTH)


def gpt(opset: int) -> bytes:
    """Return two blocks of a decoder whose mask is a constant."""
    net = Net(opset)
    x = net.feed("x", "batch", 6, WIDTH)
    mask = np.triu(np.full((1, 1, 6, 6), np.finfo(np.float32).min, np.float32), 1)
    for _ in range(2):
        joined = net.linear(net.layer_norm(x), 3 * WIDTH)
        parts = net.Split(joined, np.array([WIDTH] * 3), axis=2, outputs=3)
        q, k, v = (net.split_heads(part) for part in parts)
        scores = net.Mul(net.MatMul(q, net.Transpose(k, perm=[0, 1, 3, 2])), SIZE**-0.5)
        mixed = net.MatMul(net.Softmax(net.Add(scores, mask), axis=-1), v)
        x = net.Add(net.linear(net.join_heads(mixed)), x)
        inner = net.gelu_by_tanh(net.linear(net.layer_norm(x), 2 * WIDTH))
        x = net.Add(net.linear(inner, wide=2 * WIDTH), x)
    return net.model(x, "batch", 6, WIDTH)


def llama(opset: int) -> bytes:
    """Return two blocks with rotary positions, and two heads of keys for four of queries."""
    net = Net(opset)
    x = net.feed("x", "batch", "rows", WIDTH)
    positions = net.feed("positions", "batch", "rows", kind=TensorProto.INT64)
    mask = net.feed("mask", "batch", 1, "rows", "rows")
    rows = net.Cast(net.Unsqueeze(positions, np.array([1])), to=TensorProto.FLOAT)
    steps = (10000.0 ** -np.linspace(0, 1, SIZE // 2, endpoint=False)).astype(np.float32)
    waves = net.Transpose(net.MatMul(steps.reshape(1, -1, 1), rows), perm=[0, 2, 1])
    angles = net.Concat(waves, waves, axis=-1)
    cosines, sines = (net.Unsqueeze(f(angles), np.array([1])) for f in (net.Cos, net.Sin))

    def turned(value: str) -> str:
        half, end = SIZE // 2, np.iinfo(np.int64).max
        low = net.Slice(value, np.array([0]), np.array([half]), np.array([3]), np.array([1]))
        high = net.Slice(value, np.array([half]), np.array([end]), np.array([3]), np.array([1]))
        other = net.Concat(net.Neg(high), low, axis=-1)
        return str(net.Add(net.Mul(value, cosines), net.Mul(other, sines)))

    def repeated(value: str) -> str:
        first = net.Slice(net.Shape(x), np.array([0]), np.array([1]), np.array([0]))
        second = net.Slice(net.Shape(x), np.array([1]), np.array([2]), np.array([0]))
        middle, size = np.array([HEADS // 2, 2]), np.array([SIZE])
        wide = net.Expand(
            net.Unsqueeze(value, np.array([2])), net.Concat(first, middle, second, size, axis=0)
        )
        joined = net.Concat(first, np.array([HEADS]), second, size, axis=0)
        return str(net.Reshape(wide, joined))

    for _ in range(2):
        normal = net.rms_norm(x)
        q = turned(net.split_heads(net.linear(normal, bias=False)))
        k = turned(net.split_heads(net.linear(normal, WIDTH // 2, bias=False), HEADS // 2))
        v = net.split_heads(net.linear(normal, WIDTH // 2, bias=False), HEADS // 2)
        turn = net.Transpose(repeated(k), perm=[0, 1, 3, 2])
        scores = net.Add(net.Mul(net.MatMul(q, turn), SIZE**-0.5), mask)
        mixed = net.MatMul(net.Softmax(scores, axis=-1), repeated(v))
        x = net.Add(x, net.linear(net.join_heads(mixed), bias=False))
        normal = net.rms_norm(x)
        gate = net.linear(normal, 2 * WIDTH, bias=False)
        inner = net.Mul(net.Mul(gate, net.Sigmoid(gate)), net.linear(normal, 2 * WIDTH, bias=False))
        x = net.Add(x, net.linear(inner, bias=False, wide=2 * WIDTH))
    return net.model(x, "batch", "rows", WIDTH)


def vit(opset: int) -> bytes:
    """Return patches of an image and two blocks; queries and keys are scaled by the root."""
    net = Net(opset)
    image = net.feed("image", "batch", 3, 8, 8)
    patches = net.Conv(image, net.weight(WIDTH, 3, 4, 4), strides=[4, 4])
    x = net.Transpose(net.Reshape(patches, np.array([0, WIDTH, -1])), perm=[0, 2, 1])
    x = net.Add(x, net.weight(1, 4, WIDTH))
    root = float(SIZE**-0.25)
    for _ in range(2):
        normal = net.layer_norm(x)
        q, k, v = (net.split_heads(net.linear(normal)) for _ in range(3))
        turned = net.Mul(net.Transpose(k, perm=[0, 1, 3, 2]), root)
        scores = net.MatMul(net.Mul(q, root), turned)
        mixed = net.MatMul(net.Softmax(scores, axis=-1), v)
        x = net.Add(net.linear(net.join_heads(mixed)), x)
        inner = net.gelu(net.linear(net.layer_norm(x), 2 * WIDTH))
        x = net.Add(net.linear(inner, wide=2 * WIDTH), x)
    return net.model(x, "batch", 4, WIDTH)


def whisper(opset: int) -> bytes:
    """Return two blocks of a decoder that looks at an encoder's rows; queries are scaled first."""
    net = Net(opset)
    x = net.feed("x", "batch", "rows", WIDTH)
    seen = net.feed("seen", "batch", "frames", WIDTH)
    allowed = net.feed("allowed", "rows", "rows", kind=TensorProto.BOOL)
    low = np.float32(-np.inf)

    def attended(x: str, source: str, mask: str | None) -> str:
        q = net.split_heads(net.Mul(net.linear(x), SIZE**-0.5))
        k, v = (net.split_heads(net.linear(source)) for _ in range(2))
        scores = net.MatMul(q, net.Transpose(k, perm=[0, 1, 3, 2]))
        masked = scores if mask is None else net.Where(mask, scores, low)
        return net.linear(net.join_heads(net.MatMul(net.Softmax(masked, axis=-1), v)))

    for _ in range(2):
        normal = net.layer_norm(x)
        x = net.Add(attended(normal, normal, allowed), x)
        x = net.Add(attended(net.layer_norm(x), seen, None), x)
        inner = net.gelu(net.linear(net.layer_norm(x), 2 * WIDTH))
        x = net.Add(net.linear(inner, wide=2 * WIDTH), x)
    return net.model(x, "batch", "rows", WIDTH)


def cached(opset: int) -> bytes:
    """Return two blocks of a decoder that go on from keys and values of earlier rows."""
    net = Net(opset)
    x = net.feed("x", "batch", "rows", WIDTH)

    def rows_of(value: str, axis: int) -> str:
        place = np.array([axis]), np.array([axis + 1])
        return str(net.Squeeze(net.Slice(net.Shape(value), *place, np.array([0])), np.array([0])))

    given = [
        (
            net.feed(f"past_key_{i}", "batch", HEADS, "past", SIZE),
            net.feed(f"past_value_{i}", "batch", HEADS, "past", SIZE),
        )
        for i in range(2)
    ]
    seen = rows_of(given[0][0], 2)
    total = net.Add(seen, rows_of(x, 1))
    columns = net.Unsqueeze(net.Range(0, total, 1), np.array([0, 1, 2]))
    lines = net.Unsqueeze(net.Range(seen, total, 1), np.array([0, 1, 3]))
    mask = net.Where(net.LessOrEqual(columns, lines), 0.0, float(np.finfo(np.float32).min))
    for past_key, past_value in given:
        normal = net.layer_norm(x)
        q, k, v = (net.split_heads(net.linear(normal)) for _ in range(3))
        k, v = net.Concat(past_key, k, axis=2), net.Concat(past_value, v, axis=2)
        for value in (k, v):
            net.result(value, "batch", HEADS, "all", SIZE)
        scores = net.Mul(net.MatMul(q, net.Transpose(k, perm=[0, 1, 3, 2])), SIZE**-0.5)
        mixed = net.MatMul(net.Softmax(net.Add(scores, mask), axis=-1), v)
        x = net.Add(net.linear(net.join_heads(mixed)), x)
        inner = net.gelu(net.linear(net.layer_norm(x), 2 * WIDTH))
        x = net.Add(net.linear(inner, wide=2 * WIDTH), x)
    return net.model(x, "batch", "rows", WIDTH)


BLOCKS: dict[str, Callable[[int], bytes]] = {
    "bert": bert, "cached": cached, "gpt": gpt, "llama": llama, "vit": vit, "whisper": whisper,
}  # fmt: skip


def feeds(model: bytes, batch: int, rows: int = 6, frames: int = 9) -> dict[str, Any]:
    """Return random inputs of a block; masks leave each row something to look at."""
    sizes = {"batch": batch, "rows": rows, "frames": frames, "past": rows - 1}
    random = np.random.default_rng(batch)
    found: dict[str, Any] = {}
    for value in onnx.load_from_string(model).graph.input:
        tensor = value.type.tensor_type
        shape = [sizes.get(d.dim_param, d.dim_value) for d in tensor.shape.dim]
        if value.name == "positions":
            found[value.name] = np.tile(np.arange(rows), (batch, 1))
        elif tensor.elem_type == TensorProto.BOOL:
            found[value.name] = np.tril(np.ones(shape, bool))
        elif tensor.elem_type == TensorProto.INT64:
            found[value.name] = (np.arange(rows) < rows - 1)[None].repeat(batch, 0).astype(np.int64)
        elif value.name == "mask":
            found[value.name] = np.triu(np.full(shape, -1e9, np.float32), 1)
        else:
            found[value.name] = random.standard_normal(shape).astype(np.float32)
    return found


def operators(model: bytes) -> Counter[str]:
    """Count the operators of a model."""
    return Counter(node.op_type for node in onnx.load_from_string(model).graph.node)


def results(model: bytes, feeds: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """Run a model as it is in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options).run(None, feeds)  # type: ignore[no-any-return]


def assert_equal(name: str, before: bytes, after: bytes, sizes: Sequence[tuple[int, int]]) -> None:
    """Compare results of blocks for pairs of batch and rows, and what inputs state."""
    for batch, rows in sizes:
        if rows != 6 and name == "gpt":
            continue  # whose mask has six rows
        given = feeds(before, batch, rows)
        for mine, its in zip(results(after, given), results(before, given), strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)
    first, second = (onnx.load_from_string(each).graph for each in (before, after))
    assert list(first.input) == list(second.input)
    assert list(first.output) == list(second.output)
