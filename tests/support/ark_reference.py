"""A machine that runs ARK files on bytes, in NumPy: the reference for the lowering.

It follows the format's documents, op by op in the order of the file, on real memory: a tensor is a
strided window on the bytes of its buffer. It shares no code with passlib.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

TYPES = {
    "FP32": np.dtype(np.float32),
    "FP16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "INT32": np.dtype(np.int32),
    "UINT32": np.dtype(np.uint32),
    "INT8": np.dtype(np.int8),
    "UINT8": np.dtype(np.uint8),
    "BYTE": np.dtype(np.uint8),
}


class Machine:
    """The memory of one rank, and the ops of its file."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.ops = [
            op for node in root["Nodes"] for op in (node["Ops"] if "Ops" in node else [node["Op"]])
        ]
        sizes: defaultdict[int, int] = defaultdict(int)
        self.tensors: dict[int, dict[str, Any]] = {}
        for op in self.ops:
            for group in ("ReadTensors", "WriteTensors", "ResultTensors"):
                for tensor in op[group]:
                    size = math.prod(tensor["Strides"]) * TYPES[tensor["DataType"]].itemsize
                    number = tensor["Buffer"]["Id"]
                    sizes[number] = max(sizes[number], size)
                    self.tensors[tensor["Id"]] = tensor
        self.buffers = {number: np.zeros(size, np.uint8) for number, size in sizes.items()}

    def window(self, tensor: dict[str, Any]) -> np.ndarray:
        """Return the elements of a tensor as a writable view."""
        dtype = TYPES[tensor["DataType"]]
        size = math.prod(tensor["Strides"])
        whole = self.buffers[tensor["Buffer"]["Id"]][: size * dtype.itemsize].view(dtype)
        array = whole.reshape(tensor["Strides"])
        box = zip(tensor["Offsets"], tensor["Shape"], strict=True)
        return array[tuple(slice(o, o + s) for o, s in box)]

    def run(self) -> None:
        for op in self.ops:
            if op["IsVirtual"] or op["Type"] == "Noop":
                continue
            reads = [self.window(tensor).copy() for tensor in op["ReadTensors"]]
            args = {k: next(iter(v.values())) for k, v in op["Args"].items()}
            target = self.window(op["WriteTensors"][0])
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                result = compute(op["Type"], reads, args, target)
                target[...] = (
                    np.asarray(result)
                    .astype(target.dtype)
                    .reshape(target.shape if np.size(result) == target.size else np.shape(result))
                )


def _wide(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "iu" else array.astype(np.float64)


def _matmul(reads: list[np.ndarray], args: dict[str, Any]) -> np.ndarray:
    left, right = reads
    left = left[None, :] if left.ndim == 1 else left
    right = right[:, None] if right.ndim == 1 else right
    left = left.swapaxes(-1, -2) if args["TransposeInput"] else left
    right = right.swapaxes(-1, -2) if args["TransposeOther"] else right
    return left @ right


def _rope(reads: list[np.ndarray]) -> np.ndarray:
    left, right = np.broadcast_arrays(*reads)
    product = (left[..., 0::2] + 1j * left[..., 1::2]) * (right[..., 0::2] + 1j * right[..., 1::2])
    return np.stack([product.real, product.imag], -1).reshape(left.shape)


def _divide(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if left.dtype.kind == "f":
        return left / right
    return np.trunc(left.astype(np.float64) / right.astype(np.float64))


_ELEMENTWISE: dict[str, Callable[..., np.ndarray]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divide,
    "Exp": np.exp,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Gelu": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "Copy": lambda x: x,
}


def compute(
    kind: str, reads: list[np.ndarray], args: dict[str, Any], target: np.ndarray
) -> np.ndarray:
    """Compute one op, in double precision."""
    reads = [_wide(read) for read in reads]
    if kind in _ELEMENTWISE:
        return _ELEMENTWISE[kind](*reads)
    if kind == "ScalarAssign":
        return np.full(target.shape, np.float32(args["Value"]))
    if kind in ("ScalarAdd", "ScalarMul"):
        factor = np.float32(args["Factor"]).astype(target.dtype).astype(reads[0].dtype)
        return reads[0] + factor if kind == "ScalarAdd" else reads[0] * factor
    if kind == "Cast":
        return reads[0].astype(target.dtype)
    if kind == "Transpose":
        return reads[0].transpose(args["Permutation"])
    if kind == "Embedding":
        return reads[1][reads[0]]
    if kind == "Rope":
        return _rope(reads)
    if kind == "Matmul":
        return _matmul(reads, args)
    reduction = {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMean": np.mean}[kind]
    return reduction(reads[0], axis=args["Axis"], keepdims=args["KeepDim"])
