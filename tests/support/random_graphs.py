"""Random ONNX graphs whose operators fit together, and what simplification makes of them.

``python tests/support/random_graphs.py FIRST COUNT`` simplifies the graphs of as many seeds from
the first one on, and prints counts and the seeds of wrong results.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import passlib
from rewriting import same_bits

__all__ = ["FINE", "Drawn", "draw", "verdict"]

Shape = tuple[int, ...]
Operator = Callable[["Drawn"], None]

FINE = ("equal", "fails", "empty", "varies")

_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.0, 0.5, 6.0, 3.0)
_INTEGERS = (0, 1, -1, 2, 3, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
_FLOAT, _INT, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
_TYPES = {_FLOAT: np.float32, _INT: np.int64, _BOOL: np.bool_}


@dataclass
class Drawn:
    """A graph as it is drawn.

    Attributes
    ----------
    random : numpy.random.Generator
    opset : int
    values : dict of str to (int, Shape)
        Element type and shape, for one choice of open sizes.
    """

    random: np.random.Generator
    opset: int
    values: dict[str, tuple[int, Shape]] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    feeds: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def choice(self, items: Any) -> Any:
        """Return one of several items."""
        return items[int(self.random.integers(len(items)))]

    def pick(self, code: int = _FLOAT, rank: int | None = None) -> str:
        """Return the name of a value of this element type; a new input if there is none."""
        names = [
            name
            for name, (kind, shape) in self.values.items()
            if kind == code and (rank is None or len(shape) == rank)
        ]
        if names:
            # Recent values more often, so that chains get long.
            return str(names[-1 - int(self.random.exponential(2)) % len(names)])
        return self.add_input(code, tuple(self.random.integers(1, 5, rank if rank else 2)))

    def shape(self, name: str) -> Shape:
        """Return the shape of a value."""
        return self.values[name][1]

    def numbers(self, code: int, shape: Shape) -> np.ndarray[Any, Any]:
        """Return random numbers, special ones among them."""
        if code == _BOOL:
            return self.random.integers(0, 2, shape).astype(np.bool_)
        if code == _INT:
            return self.random.choice(np.array(_INTEGERS), shape)
        made = self.random.standard_normal(shape).astype(np.float32)
        if self.random.random() < 0.4:
            special = self.random.choice(np.array(_SPECIAL, np.float32), shape)
            made = np.where(self.random.random(shape) < 0.3, special, made)
        return np.asarray(made, np.float32)

    def add_input(self, code: int, shape: Shape) -> str:
        """Add an input, some of whose sizes are open."""
        name = f"x{len(self.inputs)}"
        shape = tuple(int(size) for size in shape)
        dims = [f"n{size}" if self.random.random() < 0.5 else size for size in shape]
        self.inputs.append(helper.make_tensor_value_info(name, code, dims))
        self.feeds[name] = self.numbers(code, shape)
        self.values[name] = (code, shape)
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Add a constant; it is no candidate for `pick`."""
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(self, op: str, inputs: list[str], code: int, *shapes: Shape, **attributes: Any) -> str:
        """Add an operator; return its first result."""
        names = [f"v{len(self.nodes)}_{number}" for number in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        for name, shape in zip(names, shapes, strict=True):
            self.values[name] = (code, tuple(int(size) for size in shape))
        return names[0]

    def axes(self, op: str, value: str, axes: list[int], shape: Shape, **attributes: Any) -> str:
        """Add an operator whose axes are an input."""
        given = self.constant(axes, np.int64)
        return self.add(op, [value, given], self.values[value][0], shape, **attributes)

    def model(self) -> Any:
        """Return the model, whose outputs are the values that nothing uses."""
        used = {name for node in self.nodes for name in node.input}
        ends = [name for name in self.values if name not in used and name[0] == "v"]
        outputs = [helper.make_tensor_value_info(name, self.values[name][0], None) for name in ends]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.initializers)
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _unary(drawn: Drawn) -> None:
    op = drawn.choice(("Neg", "Abs", "Relu", "Sigmoid", "Exp", "Sqrt", "Identity", "Floor", "Erf"))
    value = drawn.pick()
    drawn.add(op, [value], _FLOAT, drawn.shape(value))


def _binary(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    other = drawn.choice([name for name, kind in drawn.values.items() if kind == (_FLOAT, shape)])
    if drawn.random.random() < 0.7:
        start = int(drawn.random.integers(len(shape) + 1))
        sizes = tuple(size if drawn.random.random() < 0.5 else 1 for size in shape[start:])
        array = drawn.numbers(_FLOAT, sizes)
        if drawn.random.random() < 0.6:
            array = np.full(sizes, drawn.choice(_SPECIAL), np.float32)
        other = drawn.constant(array)
    both = [value, other] if drawn.random.random() < 0.6 else [other, value]
    drawn.add(drawn.choice(("Add", "Sub", "Mul", "Div", "Max", "Min")), both, _FLOAT, shape)


def _integer(drawn: Drawn) -> None:
    value = drawn.pick(_INT)
    other = drawn.constant(drawn.choice(_INTEGERS), np.int64)
    drawn.add(drawn.choice(("Add", "Sub", "Mul")), [value, other], _INT, drawn.shape(value))


def _cast(drawn: Drawn) -> None:
    code = drawn.choice((_FLOAT, _FLOAT, _BOOL))
    value = drawn.pick(code)
    to = drawn.choice((_FLOAT, _BOOL) if code == _FLOAT else (_FLOAT, _BOOL, _INT))
    drawn.add("Cast", [value], to, drawn.shape(value), to=to)


def _reshape(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = list(drawn.shape(value))
    target, result = list(shape), list(shape)
    if len(shape) > 1 and drawn.random.random() < 0.5:
        place = int(drawn.random.integers(len(shape) - 1))
        result[place : place + 2] = [shape[place] * shape[place + 1]]
        target = [0] * place + [-1] + result[place + 1 :]
    else:
        place = int(drawn.random.integers(len(shape) + 1))
        result.insert(place, 1)
        target = list(result)
        if place < len(result) - 1:
            target[int(drawn.random.integers(place + 1, len(result)))] = -1
    drawn.axes("Reshape", value, target, tuple(result))


def _reshape_by_shape(drawn: Drawn) -> None:
    value = drawn.pick()
    rank = len(drawn.shape(value))
    if not rank:
        return
    list_ = drawn.add("Shape", [value], _INT, (rank,))
    sizes = []
    for axis in range(rank):
        index = drawn.constant([axis], np.int64)
        sizes.append(drawn.add("Gather", [list_, index], _INT, (1,)))
    order = [int(axis) for axis in drawn.random.permutation(rank)]
    parts = [sizes[axis] for axis in order]
    if drawn.random.random() < 0.5:
        parts[-1] = drawn.constant([-1], np.int64)
    target = drawn.add("Concat", parts, _INT, (rank,), axis=0)
    shape = tuple(drawn.shape(value)[axis] for axis in order)
    drawn.add("Reshape", [value, target], _FLOAT, shape)


def _squeeze(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    if ones and drawn.random.random() < 0.5:
        axis = drawn.choice(ones)
        drawn.axes("Squeeze", value, [axis], shape[:axis] + shape[axis + 1 :])
    else:
        axis = int(drawn.random.integers(len(shape) + 1))
        drawn.axes("Unsqueeze", value, [axis], (*shape[:axis], 1, *shape[axis:]))


def _transpose(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    order = [int(axis) for axis in drawn.random.permutation(len(shape))]
    drawn.add("Transpose", [value], _FLOAT, tuple(shape[axis] for axis in order), perm=order)


def _slice(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    axis = int(drawn.random.integers(len(shape)))
    step = int(drawn.choice((1, 1, 1, 2, -1)))
    bounds = [int(drawn.choice((0, 1, 2, -1, -2, shape[axis], 1 << 62, -(1 << 62)))) for _ in "ab"]
    size = len(range(*slice(bounds[0], bounds[1], step).indices(shape[axis])))
    if step < 0:
        bounds, size = [-1, -(1 << 62)], shape[axis]
    given = [drawn.constant([item], np.int64) for item in (*bounds, axis, step)]
    drawn.add("Slice", [value, *given], _FLOAT, (*shape[:axis], size, *shape[axis + 1 :]))


def _slices(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    axis = next((axis for axis, size in enumerate(shape) if size > 1), None)
    if axis is None:
        return
    edge = int(drawn.random.integers(1, shape[axis]))
    where = drawn.constant([axis], np.int64)
    edges = [drawn.constant([item], np.int64) for item in (0, edge, shape[axis])]
    for start, end, size in ((0, 1, edge), (1, 2, shape[axis] - edge)):
        result = (*shape[:axis], size, *shape[axis + 1 :])
        drawn.add("Slice", [value, edges[start], edges[end], where], _FLOAT, result)


def _gather(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape or 0 in shape:
        return
    axis = int(drawn.random.integers(len(shape)))
    index = drawn.constant(int(drawn.random.integers(-shape[axis], shape[axis])), np.int64)
    rest = (*shape[:axis], *shape[axis + 1 :])
    made = drawn.add("Gather", [value, index], _FLOAT, rest, axis=axis)
    if drawn.random.random() < 0.5:
        drawn.axes("Unsqueeze", made, [axis], (*shape[:axis], 1, *shape[axis + 1 :]))


def _concat(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    axis = int(drawn.random.integers(-len(shape), len(shape)))
    parts = [value] * int(drawn.random.integers(1, 3))
    parts += [name for name, kind in drawn.values.items() if kind == (_FLOAT, shape)][:2]
    result = list(shape)
    result[axis] *= len(parts)
    drawn.add("Concat", parts, _FLOAT, tuple(result), axis=axis)


def _expand(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    target = [size if size != 1 else int(drawn.random.integers(1, 4)) for size in shape]
    drawn.axes("Expand", value, target, tuple(target))


def _pad(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    pads = [int(item) for item in drawn.random.integers(0, 2, 2 * len(shape))]
    rank = len(shape)
    result = tuple(size + pads[i] + pads[i + rank] for i, size in enumerate(shape))
    drawn.axes("Pad", value, pads, result)


def _reduce(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape or 0 in shape:
        return
    axis, keep = int(drawn.random.integers(len(shape))), int(drawn.random.integers(2))
    result = (*shape[:axis], *([1] if keep else []), *shape[axis + 1 :])
    op = drawn.choice(("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"))
    if op == "ReduceSum" or drawn.opset >= 18:
        drawn.axes(op, value, [axis], result, keepdims=keep)
    else:
        drawn.add(op, [value], _FLOAT, result, axes=[axis], keepdims=keep)


def _matmul(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    columns = int(drawn.random.integers(1, 4))
    weight = drawn.constant(drawn.random.standard_normal((shape[-1], columns)), np.float32)
    if drawn.random.random() < 0.3:
        data = drawn.random.integers(-128, 128, (shape[-1], columns))
        integers = drawn.constant(data, np.int8)
        scale = drawn.constant(drawn.random.random((1, columns)), np.float32)
        real = drawn.add("Cast", [integers], _FLOAT, data.shape, to=_FLOAT)
        weight = drawn.add("Mul", [real, scale], _FLOAT, data.shape)
    result = (*shape[:-1], columns)
    made = drawn.add("MatMul", [value, weight], _FLOAT, result)
    if drawn.random.random() < 0.7:
        bias = drawn.constant(drawn.random.standard_normal(columns), np.float32)
        drawn.add(drawn.choice(("Add", "Mul")), [made, bias], _FLOAT, result)


def _conv(drawn: Drawn) -> None:
    value = drawn.pick(rank=4)
    shape = drawn.shape(value)
    if 0 in shape:
        return
    weight = drawn.random.standard_normal((2, shape[1], 1, 1))
    result = (shape[0], 2, *shape[2:])
    made = drawn.add("Conv", [value, drawn.constant(weight, np.float32)], _FLOAT, result)
    if drawn.random.random() < 0.5:
        four = [drawn.constant(drawn.random.random(2) + 0.5, np.float32) for _ in range(4)]
        drawn.add("BatchNormalization", [made, *four], _FLOAT, result)
    else:
        scale = drawn.constant(drawn.random.standard_normal((2, 1, 1)), np.float32)
        drawn.add(drawn.choice(("Add", "Mul", "Sub", "Div")), [made, scale], _FLOAT, result)


def _lstm(drawn: Drawn) -> None:
    value = drawn.pick(rank=3)
    length, batch, size = drawn.shape(value)
    if 0 in (length, batch, size):  # ONNX Runtime reads numbers that are not there
        return
    weights = [
        drawn.constant(drawn.random.standard_normal(shape), np.float32)
        for shape in ((1, 8, size), (1, 8, 2))
    ]
    list_ = drawn.add("Shape", [value], _INT, (3,))
    number = drawn.add("Gather", [list_, drawn.constant([1], np.int64)], _INT, (1,))
    ends = [drawn.constant([item], np.int64) for item in (1, 2)]
    sizes = drawn.add("Concat", [ends[0], number, ends[1]], _INT, (3,), axis=0)
    zero = drawn.constant(drawn.choice((0.0, 0.0, -0.0, 1.0)), np.float32)
    state = drawn.add("Expand", [zero, sizes], _FLOAT, (1, batch, 2))
    inputs = [value, *weights, "", "", state, state]
    drawn.add("LSTM", inputs, _FLOAT, (length, 1, batch, 2), hidden_size=2)


def _condition(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    if not shape:
        return
    axis = int(drawn.random.integers(len(shape)))
    if drawn.random.random() < 0.5:
        condition = drawn.constant(bool(drawn.random.integers(2)), np.bool_)
    else:
        list_ = drawn.add("Shape", [value], _INT, (len(shape),))
        size = drawn.add("Gather", [list_, drawn.constant(axis, np.int64)], _INT, ())
        one = drawn.constant(int(drawn.choice((1, shape[axis]))), np.int64)
        condition = drawn.add("Equal", [size, one], _BOOL, ())
    branches = {}
    for name, ops in (("then_branch", ("Neg", "Neg", "Abs")), ("else_branch", ("Identity",) * 3)):
        names = [f"b{len(drawn.nodes)}{name}{number}" for number in range(len(ops))]
        nodes = [
            helper.make_node(op, [before], [after])
            for op, before, after in zip(ops, [value, *names], names, strict=False)
        ]
        end = helper.make_tensor_value_info(names[-1], _FLOAT, None)
        branches[name] = helper.make_graph(nodes, name, [], [end])
    drawn.add("If", [condition], _FLOAT, shape, **branches)


def _where(drawn: Drawn) -> None:
    value = drawn.pick()
    shape = drawn.shape(value)
    isnan = drawn.add("IsNaN", [value], _BOOL, shape)
    zero = drawn.constant(drawn.choice(_SPECIAL), np.float32)
    drawn.add("Where", [isnan, zero, value], _FLOAT, shape)


_OPERATORS: tuple[Operator, ...] = (
    _unary, _unary, _binary, _binary, _integer, _cast, _reshape, _reshape, _reshape_by_shape,
    _squeeze, _squeeze, _transpose, _transpose, _slice, _slice, _slices, _gather, _concat, _expand,
    _pad, _reduce, _matmul, _conv, _lstm, _condition, _where,
)  # fmt: skip


def draw(seed: int) -> Drawn:
    """Return the graph of a seed."""
    random = np.random.default_rng(seed)
    drawn = Drawn(random, int(random.choice((13, 15, 17, 18))))
    sizes = random.choice((1, 1, 2, 3, 4), int(random.integers(1, 5)))
    if random.random() < 0.1:
        sizes[0] = 0
    drawn.add_input(_FLOAT, tuple(sizes))
    if random.random() < 0.3:
        drawn.add_input(_INT, tuple(sizes))
    for _ in range(int(random.integers(3, 14))):
        drawn.choice(_OPERATORS)(drawn)
    return drawn


def verdict(seed: int, *, exact: bool) -> str:
    """Simplify the graph of a seed; return "equal", "fails" if it fails anyway, or what is wrong.

    Results with ``exact`` must have the same bits; otherwise they may differ by rounding.
    """
    drawn = draw(seed)
    model = drawn.model()
    if not model.graph.output:
        return "empty"
    data = model.SerializeToString()
    want = _run(data, drawn.feeds)
    if isinstance(want, str):
        return "fails"
    made = passlib.simplify(data, exact=exact)
    have = _run(_bytes(made), drawn.feeds)
    if isinstance(have, str):
        return f"seed {seed}: fails after simplification: {have[:200]}"
    if same_bits(have, want):
        return "equal"
    again = [_run(data, drawn.feeds) for _ in range(4)]
    if not all(isinstance(item, list) and same_bits(item, want) for item in again):
        return "varies"  # the recurrent layers of ONNX Runtime do, with nan
    # ONNX Runtime sums products of constants in another order than those of computed values.
    sums = any(node.op_type in ("MatMul", "Conv", "LSTM") for node in model.graph.node)
    if (exact and not sums) or len(have) != len(want) or not all(map(_close, have, want)):
        return f"seed {seed}: results differ"
    return "equal"


def _close(left: Any, right: Any) -> bool:
    if left.dtype.kind != "f":
        return bool(np.array_equal(left, right))
    return left.shape == right.shape and bool(
        np.allclose(left, right, rtol=1e-4, atol=1e-5, equal_nan=True)
    )


def _bytes(model: passlib.Model) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.onnx"
        model.save(path, durable=False)
        return path.read_bytes()


def _run(data: bytes, feeds: dict[str, Any]) -> list[Any] | str:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Packed weights are multiplied in another order, which is none of the models' doing.
    options.add_session_config_entry("session.disable_prepacking", "1")
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        names = {value.name for value in session.get_inputs()}
        outputs: list[Any] = session.run(None, {k: v for k, v in feeds.items() if k in names})
    except Exception as error:
        return str(error)
    return outputs


def main() -> None:
    """Count the verdicts of seeds."""
    first, count = (int(item) for item in sys.argv[1:3])
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        for exact in (True, False):
            try:
                found = verdict(seed, exact=exact)
            except Exception as error:
                found = f"seed {seed}: {type(error).__name__}: {error}"
            short = found if found in FINE else "wrong"
            counts[f"{short}, exact" if exact else short] += 1
            if short == "wrong":
                sys.stdout.write(f"{found} (exact={exact})\n")
                sys.stdout.flush()
    sys.stdout.write(f"{dict(counts)}\n")


if __name__ == "__main__":
    main()
