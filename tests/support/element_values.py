"""Numbers of the proof's elements: meanings of operators on arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from passlib.proof.meanings import fixed, results_of
from passlib.proof.paths import Path
from passlib.proof.tensors import Choice, Const, Extent, In, Node, Op, Reduce, Side, Tensor

_NAMES = {"float32": "float", "float64": "double"}
_erf = np.vectorize(math.erf)


def results(op: str, opset: int, arrays: list[Any], attributes: dict[str, Any], count: int) -> Any:
    """Return what the meaning of an operator makes of arrays."""
    path = Path([], math.inf)
    path.opsets = [opset]
    path.exact = False
    side = Side(is_left=False)
    tensors: list[Tensor | None] = []
    for number, array in enumerate(arrays):
        if array is None:
            tensors.append(None)
            continue
        tensor = _given(path, number, array)
        if array.dtype == np.int64 and array.ndim > 1 and op == "Gather":
            _as_numbers(tensor, array)
        tensors.append(tensor)
    domain, _, name = op.rpartition("::")
    node = Node(path, side, name, tensors, dict(attributes), domain, count)
    made = results_of(node)
    assert all(condition is True for condition in side.conditions), "the operation fails"
    return [_array(each) for each in made]


def chained(steps: list[Any], opset: int, arrays: list[Any]) -> Any:
    """Return what the meanings of operators make of arrays, each of the result before it."""
    path = Path([], math.inf)
    path.opsets = [opset]
    path.exact = False
    tensors = [_given(path, number, array) for number, array in enumerate(arrays)]
    for op, attributes, more in steps:
        given = [_given(path, 9 + number, array) for number, array in enumerate(more)]
        side = Side(is_left=False)
        tensors = results_of(Node(path, side, op, [*tensors, *given], dict(attributes)))
        assert all(condition is True for condition in side.conditions), "the operation fails"
    return _array(tensors[0])


def _given(path: Path, number: int, array: Any) -> Tensor:
    kind = fixed(path, _NAMES.get(str(array.dtype), str(array.dtype)))
    tensor = Tensor(path, f"x{number}", kind, list(array.shape))
    tensor.is_constant = True
    tensor.array = array  # type: ignore[attr-defined]
    if array.dtype == np.int64 and array.ndim < 2:
        tensor.content = array.tolist()
    return tensor


def _as_numbers(tensor: Tensor, array: Any) -> None:
    """Make the elements numbers, so that they are indices."""
    source = Tensor(tensor.path, tensor.name, tensor.type, [array.size])
    source.content = array.ravel().tolist()
    tensor.source = source  # type: ignore[attr-defined]
    tensor.at = lambda index: Const(int(array[index]))


def _array(tensor: Tensor) -> Any:
    shape = tuple(tensor.shape)
    made = [number(tensor.at(index)) for index in np.ndindex(*shape)]
    return np.array(made).reshape(shape)


def number(element: Any) -> Any:
    """Return the number that an element is."""
    if isinstance(element, In):
        return element.tensor.array[element.index]  # type: ignore[attr-defined]
    if isinstance(element, Const):
        return element.value
    if isinstance(element, Extent):
        return element.size
    if isinstance(element, Choice):
        return number(element.one if element.condition else element.other)
    if isinstance(element, Reduce):
        items = np.array([number(element.body(*inner)) for inner in np.ndindex(*element.sizes)])
        return _REDUCED[element.name](items)
    assert isinstance(element, Op)
    args = [number(each) for each in element.args]
    if element.name == "Cast":
        (name,) = element.type.root()._domain and {name for _, name in element.type.root()._domain}
        return np.asarray(args[0]).astype({"float": "float32", "double": "float64"}.get(name, name))
    with np.errstate(all="ignore"):
        return _FUNCTIONS[element.name](*args, *element.told)


def _clipped(x: Any, alpha: Any, beta: Any) -> Any:
    return np.maximum(0, np.minimum(1, alpha * x + beta))


def _gelu(x: Any, approximate: str) -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _quantized(x: Any, scale: Any, zero: Any) -> Any:
    bounds = np.iinfo(np.asarray(zero).dtype if hasattr(zero, "dtype") else np.uint8)
    return np.clip(np.round(x / scale) + zero, bounds.min, bounds.max)


def _divided(x: Any, y: Any) -> Any:
    return np.trunc(x / y).astype(x.dtype) if np.asarray(x).dtype.kind in "iu" else x / y


_FUNCTIONS: dict[str, Any] = {
    "Relu": lambda x: np.maximum(x, 0), "Neg": np.negative, "Abs": np.abs, "Exp": np.exp,
    "Log": np.log, "Sqrt": np.sqrt, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Tanh": np.tanh,
    "Erf": _erf, "Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Sign": np.sign,
    "Reciprocal": lambda x: 1 / x, "Not": np.logical_not,
    "Softplus": lambda x: np.log1p(np.exp(x)), "Softsign": lambda x: x / (1 + np.abs(x)),
    "HardSwish": lambda x: x * _clipped(x, 1 / 6, 0.5), "HardSigmoid": _clipped, "Gelu": _gelu,
    "LeakyRelu": lambda x, alpha: np.where(x < 0, alpha * x, x), "Sin": np.sin, "Cos": np.cos,
    "PRelu": lambda x, slope: np.where(x < 0, slope * x, x),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "Swish": lambda x, alpha: x / (1 + np.exp(-alpha * x)),
    "Elu": lambda x, alpha: np.where(x < 0, alpha * (np.exp(x) - 1), x), "IsNaN": np.isnan,
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divided, "Pow": np.power,
    "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor, "Equal": np.equal,
    "Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor, "BitwiseNot": np.invert, "Where": np.where,
    "Max": lambda *items: np.max(items), "Min": lambda *items: np.min(items),
    "Sum": lambda *items: np.sum(items), "Mean": lambda *items: np.mean(items),
    "Difference": lambda x, zero: float(x) - float(zero), "Quantize": _quantized,
    "lowest": lambda: -np.inf, "Softmax": lambda x, total, most: np.exp(x) / total,
    "LogSoftmax": lambda x, total, most: x - np.log(total),
}  # fmt: skip

_REDUCED: dict[str, Any] = {
    "ReduceMax": np.max, "ReduceMin": np.min, "ReduceSum": np.sum, "Sum": np.sum,
    "ReduceMean": np.mean, "ReduceProd": np.prod, "ReduceL1": lambda x: np.sum(np.abs(x)),
    "ReduceL2": lambda x: np.sqrt(np.sum(x * x)), "ReduceSumSquare": lambda x: np.sum(x * x),
    "ReduceLogSum": lambda x: np.log(np.sum(x)),
    "ReduceLogSumExp": lambda x: np.log(np.sum(np.exp(x))), "ArgMax": np.argmax,
    "ArgMin": np.argmin,
}  # fmt: skip
