"""quantizeWeights: stores the constant weights of ONNX models in 8 or 4 bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib._core import packed as packed_elements
from passlib.dialects.onnx.attributes import CAPTURED, DOMAIN, OPAQUE, OUTER
from passlib.errors import UnsupportedError, counted
from passlib.files.optional import require
from passlib.library.call import write_escaped
from passlib.library.python import Graph
from passlib.passes.function import register_function
from passlib.passes.rulebook import new_edit
from passlib.passes.standard.facts.nodes import Model, integer, is_constant, operator

_FLOATS: Final = ("float32", "float16", "bfloat16")
_SLOTS: Final = {"MatMul": (0, 1), "Gemm": (0, 1), "Gather": (0,), "Conv": (1,)}
"""Operators, and their inputs that may be weights in fewer bits."""

_WITH_AXIS: Final = 13
_WITH_BLOCKS: Final = 21
"""Versions of ONNX's operators in which DequantizeLinear has an axis, blocks and 4 bits."""

_LEAST_BLOCK: Final = 16
"""The smallest block of MatMulNBits; all are powers of two."""

_AT_ONCE: Final = 1 << 20
"""Elements that are rounded at once."""

_MOST_LINES: Final = 20


def quantize_weights(
    graph: Graph,
    *,
    bits: Literal[8, 4] = 8,
    block: Annotated[int, range(1 << 16)] = 32,
    symmetric: bool = True,
    target: Literal["onnx", "onnxruntime"] = "onnx",
    keep_ops: Sequence[str] = (),
    keep_nodes: Sequence[str] = (),
    least: int = 1024,
) -> None:
    """Store constant weights of MatMul, Gemm, Gather and Conv in 8 or 4 bits.

    Operators compute as before, with weights that DequantizeLinear makes of the integers.

    Parameters
    ----------
    bits : {8, 4}
        Bits of an element.
    block : int
        Elements along the summed axis that share a scale; 0 for one scale for each column. Weights
        of Conv have one for each output channel.
    symmetric : bool
        Without zero points. Otherwise the range of a block need not be centred on 0.
    target : {"onnx", "onnxruntime"}
        Make ONNX's operators only, or MatMulNBits of com.microsoft where it fits.
    keep_ops : sequence of str
        Operators whose weights stay.
    keep_nodes : sequence of str
        Names of nodes whose weights stay.
    least : int
        Weights with fewer elements stay.
    """
    form = _Form(bits, block, symmetric)
    _Conversion(graph, form, target, keep_ops, keep_nodes, least).run()


register_function(
    quantize_weights,
    quantize_weights,
    "graph",
    "quantizeWeights",
    replace=False,
    dialects=["onnx"],
    enters_functions=True,
)


@dataclass(frozen=True)
class _Form:
    bits: int
    block: int
    symmetric: bool

    @property
    def lowest(self) -> int:
        return 1 - (1 << self.bits - 1) if self.symmetric else 0

    @property
    def highest(self) -> int:
        return (1 << self.bits - self.symmetric) - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the integers."""
        name = f"{'' if self.symmetric else 'u'}int{self.bits}"
        if self.bits == 8:
            return np.dtype(name)
        made: np.dtype[Any] = np.dtype(getattr(require("ml_dtypes", extra="bfloat16"), name))
        return made


@dataclass(eq=False)
class _Quantized:
    """The integers of a weight, with the axis along which blocks of elements share a scale.

    For the axis of the channels, ``block`` is 0 and each channel has one scale. All numbers of a
    vector in one block have one scale, which is no vector.
    """

    integers: np.ndarray[Any, Any]
    scales: np.ndarray[Any, Any]
    zeros: np.ndarray[Any, Any] | None
    axis: int
    block: int
    largest_error: float
    relative_error: float

    @property
    def size(self) -> float:
        """The size in bytes."""
        half = 0.5 if self.integers.dtype.name in ("int4", "uint4") else 1
        zeros = 0 if self.zeros is None else self.zeros.size * half
        return self.integers.size * half + self.scales.nbytes + zeros


def _quantized(
    array: np.ndarray[Any, Any], axis: int, block: int, form: _Form
) -> _Quantized | None:
    """Return a weight in fewer bits; None if numbers are not finite.

    ``block``: elements along the axis that share a scale; 0 if those of all other axes do.
    """
    moved = np.moveaxis(array, axis, -1)
    shape = moved.shape
    lines = moved.reshape(-1, shape[-1])
    lines = lines if block else lines.T
    length = block or lines.shape[1]
    count = -(-lines.shape[1] // length) if length else 1  # rows with a scale, of a line
    whole = np.empty((len(lines) * count, length), form.dtype)
    scales = np.empty(len(whole), array.dtype)
    zeros = np.empty(len(whole), form.dtype)
    largest = squares = power = 0.0
    step = max(_AT_ONCE // max(count * length, 1), 1)
    for start in range(0, len(lines), step):
        some = lines[start : start + step]
        part = slice(start * count, (start + len(some)) * count)
        numbers = np.zeros((len(some), count * length))
        numbers[:, : lines.shape[1]] = some
        numbers = numbers.reshape(-1, length)
        if not np.isfinite(numbers).all():
            return None
        integers, scales[part], middle = _rounded(numbers, array.dtype, form)
        whole[part], zeros[part] = (each.astype(np.int16) for each in (integers, middle))
        factors = scales[part].astype(np.float32)[:, None]
        with np.errstate(over="ignore"):
            again = ((integers - middle[:, None]).astype(np.float32) * factors).astype(array.dtype)
        errors = np.abs(again.astype(np.float64) - numbers)
        if not np.isfinite(errors).all():
            return None
        largest = max(largest, float(errors.max(initial=0)))
        squares += float(np.sum(np.square(errors)))
        power += float(np.sum(np.square(numbers)))
    if block:
        whole = np.moveaxis(whole.reshape(*shape[:-1], -1)[..., : shape[-1]], -1, axis)
        scales, zeros = (
            np.moveaxis(each.reshape(*shape[:-1], -1), -1, axis) for each in (scales, zeros)
        )
    else:
        whole = np.moveaxis(whole.T.reshape(shape), -1, axis)
    if block >= array.size:
        # ONNX Runtime takes one element for the scale of all, and then refuses blocks.
        scales, zeros, block = scales.reshape(()), zeros.reshape(()), 0
    return _Quantized(
        np.ascontiguousarray(whole),
        np.ascontiguousarray(scales),
        None if form.symmetric else np.ascontiguousarray(zeros),
        axis,
        block,
        largest,
        float(np.sqrt(squares / power)) if power else 0.0,
    )


def _rounded(
    numbers: np.ndarray[Any, Any], dtype: np.dtype[Any], form: _Form
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the integers of rows of numbers, and the scale and the zero point of each row."""
    low = np.minimum(numbers.min(axis=-1), 0)
    high = np.maximum(numbers.max(axis=-1), 0)
    wide = np.maximum(high, -low) if form.symmetric else high - low
    with np.errstate(under="ignore", over="ignore"):
        scales = (wide / (form.highest - (0 if form.symmetric else form.lowest))).astype(dtype)
    scales[~(scales > 0)] = 1
    factors = scales.astype(np.float64)
    middle = np.zeros_like(factors)
    if not form.symmetric:
        middle = np.clip(np.rint(-low / factors), 0, form.highest)
    whole = np.rint(numbers / factors[:, None]) + middle[:, None]
    return np.clip(whole, form.lowest, form.highest), scales, middle


@dataclass(eq=False)
class _User:
    """An operator that reads a weight."""

    node: EditableNode
    slot: int
    is_main: bool


class _Conversion:
    def __init__(
        self,
        graph: Graph,
        form: _Form,
        target: str,
        keep_ops: Sequence[str],
        keep_nodes: Sequence[str],
        least: int,
    ) -> None:
        self._graph = graph
        self._form = form
        self._target = target
        self._keep_ops = frozenset(keep_ops)
        self._keep_nodes = frozenset(keep_nodes)
        self._least = max(least, 1)
        self._model = Model(graph)
        self._before = 0
        self._after = 0.0
        self._made: list[tuple[float, str]] = []
        self._kept: dict[str, list[str]] = defaultdict(list)

    def run(self) -> None:
        """Quantize the weights, then print what was made."""
        new_edit(self._graph).lift_constants(lambda node: self._is_read(node.outputs[0]))
        for node in [each for each in self._graph.nodes if is_constant(self._graph, each)]:
            array = self._graph.args.get(node.name)
            if array is None:
                continue
            if array.dtype.name in _FLOATS and array.size >= self._least:
                self._try(node, array)
        self._report()

    def _is_read(self, value: EditableValue) -> bool:
        """Whether an operator reads a constant of a nested graph as a weight."""
        return any(slot in _SLOTS.get(operator(node), ()) for node, slot in value.uses)

    # ---- what may be quantized ----

    def _try(self, node: EditableNode, array: np.ndarray[Any, Any]) -> None:
        users = list(self._users(node.outputs[0]))
        if not any(self._is_weight(each) for each in users):
            return
        title = f"{node.name!r} {array.shape}"
        reason = self._why_not(node, users)
        if reason:
            self._kept[reason].append(title)
            return
        axis, block = self._place(array, users)
        made = _quantized(array, axis, block, self._form)
        if made is None:
            self._kept["has numbers that are not finite, or too large"].append(title)
            return
        if made.size >= array.nbytes:
            self._kept["would not be smaller"].append(title)
            return
        readers = dict.fromkeys(f"{operator(e.node)} {e.node.name!r}" for e in users)
        shown = ", ".join(list(readers)[:3]) + (", ..." if len(readers) > 3 else "")
        line = (
            f"{title} of {shown}: largest error {made.largest_error:.3g}, "
            f"relative {made.relative_error:.3g}"
        )
        self._made.append((made.relative_error, line))
        self._before += array.nbytes
        self._after += made.size
        self._replace(node, made, users)

    def _users(self, value: EditableValue) -> Iterator[_User]:
        """Iterate over the readers of a value, in nested graphs too."""
        pending = [(value, True)]
        while pending:
            each, is_main = pending.pop()
            for node, slot in each.uses:
                if slot < len(node.inputs) - int(node.attrs.get(CAPTURED, 0)):
                    yield _User(node, slot, is_main)
                    continue
                pending += [
                    (inner.outputs[0], False)
                    for nested in node.subgraphs
                    for inner in nested.nodes
                    if inner.attrs.get(OUTER) == str(slot) and inner.is_variable
                ]

    def _is_weight(self, user: _User) -> bool:
        return user.slot in _SLOTS.get(operator(user.node), ())

    def _why_not(self, node: EditableNode, users: list[_User]) -> str:
        if node.outputs[0].is_output:
            return "is an output"
        for each in users:
            name = operator(each.node)
            if name in self._keep_ops:
                return "listed in keep_ops"
            if each.node.name in self._keep_nodes:
                return "listed in keep_nodes"
            if not self._is_weight(each):
                return f"also read by {name}"
        return ""

    def _place(self, array: np.ndarray[Any, Any], users: list[_User]) -> tuple[int, int]:
        """Return the axis and the block: by the operator that gains most, if there are several."""
        order = list(_SLOTS)
        user = min(users, key=lambda each: order.index(operator(each.node)))
        axis = self._axis(array.ndim, user)
        if operator(user.node) == "Conv":
            return axis, 0
        if not self._form.block and array.ndim == 2:
            return 1 - axis, 0
        block = self._form.block or array.shape[axis]
        if self._target == "onnxruntime" and block >= _LEAST_BLOCK and self._form.block:
            return axis, block
        return axis, min(block, array.shape[axis])

    def _axis(self, rank: int, user: _User) -> int:
        """Return the summed axis; that of the output channels for Conv."""
        node, name = user.node, operator(user.node)
        if name == "Conv":
            return 0
        if name == "Gemm":
            is_turned = integer(node, "transB" if user.slot else "transA", 0) != 0
            return int(is_turned == (user.slot == 1))
        if name == "MatMul" and user.slot == 1 and rank > 1:
            return rank - 2
        return rank - 1

    # ---- the changes ----

    def _replace(self, node: EditableNode, made: _Quantized, users: list[_User]) -> None:
        if all(self._fits_operator(made, each) for each in users):
            self._multiply(node, made, users)
        else:
            self._require_set(made)
            self._dequantize(node, made)
        self._model.remove_unused([node])

    def _require_set(self, made: _Quantized) -> None:
        version = _WITH_BLOCKS if made.block or self._form.bits == 4 else _WITH_AXIS
        if self._model.opset >= version:
            return
        fits = self._form.bits == 8 and self._model.opset >= _WITH_AXIS
        other = ", or use block=0" if fits else ""
        lacking = "blocks" if made.block else "4 bits" if self._form.bits == 4 else "an axis"
        raise UnsupportedError(
            f"operator set {self._model.opset} has no DequantizeLinear with {lacking}; raise it "
            f"first, by opt --opset {version} or Model.with_opset({version}){other}"
        )

    def _dequantize(self, node: EditableNode, made: _Quantized) -> None:
        name = node.name
        inputs = [
            self._constant(f"{name}_quantized", made.integers),
            self._constant(f"{name}_scale", made.scales),
        ]
        if made.zeros is not None:
            inputs.append(self._constant(f"{name}_zero_point", made.zeros))
        attributes = {"axis": made.axis} if made.scales.ndim else {}
        if made.block:
            attributes["block_size"] = made.block
        value = node.outputs[0]
        dequantized = self._model.add(
            f"{name}_dequantized", "DequantizeLinear", inputs, attributes
        ).outputs[0]
        self._graph.replace(value, dequantized)

    def _constant(self, wish: str, array: np.ndarray[Any, Any]) -> EditableValue:
        made = self._model.add_constant(wish, array)
        if array.dtype.name in ("int4", "uint4"):
            made.node.attrs[OPAQUE] = array.dtype.name
            made.node.attrs["__shape__"] = str(array.shape)
        return made

    # ---- MatMulNBits ----

    def _fits_operator(self, made: _Quantized, user: _User) -> bool:
        """Whether MatMulNBits computes what the operator does."""
        block = made.block
        return (
            self._target == "onnxruntime"
            and user.is_main
            and operator(user.node) == "MatMul"
            and user.slot == 1
            and made.integers.ndim == 2
            and block >= _LEAST_BLOCK
            and block & (block - 1) == 0
        )

    def _multiply(self, weight: EditableNode, made: _Quantized, users: list[_User]) -> None:
        bits, name = self._form.bits, weight.name
        rows, columns = made.integers.shape
        count = -(-rows // made.block)
        filled = np.zeros((columns, count * made.block), np.uint8)
        middle = 2 ** (bits - 1) if made.zeros is None else 0
        filled[:, :rows] = made.integers.T.astype(np.int16) + middle
        constants = [
            self._constant(f"{name}_quantized", self._packed(filled).reshape(columns, count, -1)),
            self._constant(f"{name}_scale", np.ascontiguousarray(made.scales.T)),
        ]
        if made.zeros is not None:
            zeros = self._packed(made.zeros.T.astype(np.uint8))
            constants.append(self._constant(f"{name}_zero_point", zeros))
        attributes = {
            DOMAIN: "com.microsoft", "K": rows, "N": columns, "bits": bits,
            "block_size": made.block,
        }  # fmt: skip
        for each in users:
            node, title = each.node, each.node.name
            inputs = [node.inputs[0], *constants]
            new = self._model.add(title, "MatMulNBits", inputs, attributes)
            self._graph.replace(node.outputs[0], new.outputs[0])
            self._graph.remove(node)
            new.name = title

    def _packed(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the rows of a matrix of bytes, each packed on its own."""
        if self._form.bits == 8:
            return np.ascontiguousarray(rows)
        even = np.zeros((rows.shape[0], rows.shape[1] + rows.shape[1] % 2), np.uint8)
        even[:, : rows.shape[1]] = rows
        return packed_elements(even).reshape(rows.shape[0], -1)

    # ---- what is said ----

    def _report(self) -> None:
        lines = []
        if self._made or self._kept:
            lines.append(
                f"{counted(len(self._made), 'weight')} in {self._form.bits} bits: "
                f"{self._before:,} bytes became {int(self._after):,}"
            )
        self._made.sort(key=lambda each: -each[0])
        lines += [line for _, line in self._made[:_MOST_LINES]]
        if len(self._made) > _MOST_LINES:
            lines.append(f"{len(self._made) - _MOST_LINES} more weights with smaller errors")
        for reason, titles in self._kept.items():
            shown = ", ".join(titles[:3]) + (", ..." if len(titles) > 3 else "")
            lines.append(f"{counted(len(titles), 'weight')} kept: {shown}: {reason}")
        write_escaped("".join(f"quantizeWeights: {line}\n" for line in lines))
