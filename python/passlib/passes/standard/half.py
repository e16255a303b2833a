"""toHalf: computes an ONNX model in float16 or bfloat16."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

import numpy as np

from passlib._core import EditableGraph, EditableNode, EditableValue
from passlib.arrays import dtypes
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import ABSENT, CAPTURED, FORMAL, ID, OUTER
from passlib.dialects.onnx.nested import constant_array
from passlib.dialects.onnx.reading import document_of
from passlib.dialects.onnx.tensors import CODES
from passlib.errors import counted
from passlib.graph.names import NameSource
from passlib.library.call import write_escaped
from passlib.library.python import Graph
from passlib.model.functions import REFERRING
from passlib.passes.function import register_function
from passlib.passes.standard.facts.nodes import Model, is_constant, operator
from passlib.passes.standard.facts.shapes import Shapes

_FLOAT: Final = np.dtype("float32")

_HEAVY: Final = frozenset(
    ("Attention", "Conv", "ConvTranspose", "DeformConv", "Einsum", "GRU", "Gemm", "LSTM", "MatMul",
     "RNN")
)  # fmt: skip
"""Operators that half precision is for, whatever casts they need."""

_LARGE: Final = 1024
"""Operators with a constant of so many elements are in half precision as well."""

_FOLLOWING: Final = {("DequantizeLinear", "T3"): "T2"}
"""Types of outputs that are those of an input without the attribute ``output_dtype``."""

_STAYING: Final = frozenset((("Resize", "T2"),))
"""Types of inputs that are coordinates."""

_BY_ATTRIBUTE: Final = frozenset(
    ("Bernoulli", "BitCast", "EyeLike", "Multinomial", "RandomNormal", "RandomNormalLike",
     "RandomUniform", "RandomUniformLike")
)  # fmt: skip
"""Operators whose results, or their bits, have the type of an attribute."""

_REFUSED: Final = frozenset(("MeanVarianceNormalization",))
"""Operators that ONNX Runtime does not load in half precision: the body has float32 constants."""

_REDUCING: Final = frozenset(("ScatterElements", "ScatterND"))
"""Operators whose reductions ONNX Runtime's CPU kernels have in wider types only."""

_SUMMING: Final = frozenset(("CumProd", "CumSum"))
"""Operators whose rounding grows with the length of an axis."""

_ANY_TYPE: Final = frozenset(("Cast", "IsInf", "IsNaN", "Shape", "Size"))
"""Operators that read either type alike."""

_BOUNDS: Final = frozenset(("Clip", "Max", "Min"))
_MASKS: Final = frozenset(("Add", "Mul", "Pad", "Sub", "Where"))

_INFINITE: Final = 1e6
"""A summand, or another result of a choice, beyond this one stands for infinity."""

_WIDE_INTEGERS: Final = frozenset(("int16", "int32", "int64", "uint16", "uint32", "uint64"))
_MOST_LINES: Final = 20


def to_half(
    graph: Graph,
    *,
    dtype: Literal["float16", "bfloat16"] = "float16",
    keep_io: bool = True,
    keep_ops: Sequence[str] = (),
    keep_nodes: Sequence[str] = (),
    clamp: bool = True,
) -> None:
    """Compute float32 models in half precision.

    Operators stay in float32 if ONNX does not define them for the type, and where numbers would
    overflow or lose their meaning.

    Parameters
    ----------
    dtype : {"float16", "bfloat16"}
        The type instead of float32.
    keep_io : bool
        Keep the types of inputs and outputs, so that callers need no change.
    keep_ops : sequence of str
        Operators that stay in float32, such as Softmax.
    keep_nodes : sequence of str
        Names of nodes that stay in float32.
    clamp : bool
        Clamp constants that stand for infinity, such as those of masks. Otherwise operators with
        constants out of range stay in float32.
    """
    _Conversion(graph, dtype, keep_io, keep_ops, keep_nodes, clamp).run()


register_function(
    to_half,
    to_half,
    "graph",
    "toHalf",
    replace=False,
    dialects=["onnx"],
    enters_functions=True,
    in_functions={"keep_io": True},
)


@lru_cache(maxsize=4096)
def _typing(op: str, version: int, half: str) -> tuple[list[str], list[str], bool, bool] | None:
    """Return the type parameter of each input and output of an operator, empty if it is not half.

    Two more: whether the last input, and the last output, may be repeated. None if ONNX's own set
    has no such operator.
    """
    found = schema.schema_of(op, "", version)
    if found is None:
        return None
    wanted = {f"tensor({half})", "tensor(float)"}
    open_types = {
        each.type_param_str
        for each in found.type_constraints
        if wanted <= set(each.allowed_type_strs)
    }
    inputs, outputs = (
        [each.type_str if each.type_str in open_types else "" for each in formal]
        for formal in (found.inputs, found.outputs)
    )
    variadic = [
        bool(formal) and formal[-1].option == type(formal[-1].option).Variadic
        for formal in (found.inputs, found.outputs)
    ]
    return inputs, outputs, variadic[0], variadic[1]


@dataclass(eq=False)
class _Scope:
    """A graph, and where it is nested."""

    graph: EditableGraph
    parent: _Scope | None = None
    owner: EditableNode | None = None


@dataclass(eq=False)
class _Source:
    """A value as its producer, or the main graph, holds it: captured ones are the same source."""

    value: EditableValue
    scope: _Scope
    producer: _Operation | None = None
    array: np.ndarray[Any, Any] | None = None
    """The elements of a constant in float32."""
    is_constant: bool = False
    is_counted: bool = False
    """Computed from integers and constants alone, such as positions and sizes."""
    is_flag: bool = False
    """Computed from truth values and constants alone, such as masks."""
    fixed_half: bool = False
    users: list[_Operation | None] = field(default_factory=list)
    """Operators that read one of the types only, and None for each output of a graph."""
    half_users: int = 0
    """How many of them read half precision."""

    @property
    def is_half(self) -> bool:
        """Whether the value is half in the changed graph."""
        if self.producer is None:
            return self.fixed_half
        return self.producer.is_half and self.value.index in self.producer.half_outputs

    @property
    def is_read_as_half(self) -> bool:
        """Whether a user reads half precision."""
        return self.half_users > 0

    @property
    def is_read_as_float(self) -> bool:
        """Whether a user reads float32."""
        return len(self.users) > self.half_users

    @property
    def casts(self) -> int:
        """The number of casts that the value needs."""
        if self.is_constant:
            return 0
        return int(self.is_read_as_float if self.is_half else self.is_read_as_half)


@dataclass(eq=False)
class _Operation:
    """A node, and what of it would be in half precision."""

    node: EditableNode
    scope: _Scope
    half_inputs: dict[int, _Source] = field(default_factory=dict)
    half_outputs: frozenset[int] = frozenset()
    float_inputs: dict[int, _Source] = field(default_factory=dict)
    free_inputs: dict[int, _Source] = field(default_factory=dict)
    results: list[_Source] = field(default_factory=list)
    is_half: bool = False
    is_mark: bool = False
    """Whether only the body of a function has the node, while it is changed."""
    clamped: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)

    def switch(self, *, is_half: bool) -> None:
        """Choose the type that the node computes in."""
        if self.is_half != is_half:
            self.is_half = is_half
            for source in self.half_inputs.values():
                source.half_users += 1 if is_half else -1

    @property
    def is_light(self) -> bool:
        """Whether the node is in half precision, but may be in float32 to spare casts."""
        return self.is_half and not self.is_heavy and not self.clamped

    @property
    def is_heavy(self) -> bool:
        """Whether half precision pays for it alone."""
        return operator(self.node) in _HEAVY or any(
            each.is_constant and each.array is not None and each.array.size >= _LARGE
            for each in self.half_inputs.values()
        )


class _Conversion:
    def __init__(
        self,
        graph: Graph,
        dtype: str,
        keep_io: bool,
        keep_ops: Sequence[str],
        keep_nodes: Sequence[str],
        clamp: bool,
    ) -> None:
        self._graph = graph
        self._half = dtypes.as_dtype(dtype)
        self._code = CODES[dtype]
        self._keep_io = keep_io
        self._keep_ops = frozenset(keep_ops)
        self._keep_nodes = frozenset(keep_nodes)
        self._clamp = clamp
        self._model = Model(graph)
        self._shapes = Shapes(self._model)
        self._main = _Scope(graph)
        self._sources: dict[EditableValue, _Source] = {}
        self._operations: list[_Operation] = []
        self._outputs: list[tuple[_Scope, int, _Source, bool]] = []
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._constants: list[str] = []
        self._of_small: set[_Operation] = set()
        self._captured: list[tuple[_Scope, _Source, EditableValue]] = []
        self._local: dict[tuple[_Scope, _Source, bool], EditableValue] = {}
        self._made = 0

    @cached_property
    def _largest(self) -> float:
        return float(65504.0 if self._half == np.float16 else 3.3895313892515355e38)

    @cached_property
    def _smallest(self) -> float:
        return float(2.0**-24 if self._half == np.float16 else 2.0**-133)

    def run(self) -> None:
        """Choose the operators, then change the graph."""
        self._read()
        self._names = NameSource({value.node.name for value in self._sources})
        for each in self._operations:
            each.switch(is_half=self._can_be_half(each))
        self._spare_casts()
        self._write()
        self._report()

    # ---- what is there ----

    def _read(self) -> None:
        """Read all nodes, those of nested graphs at the place of the node that has them."""
        pending = [(self._main, iter(self._main.graph.sorted()))]
        while pending:
            scope, nodes = pending[-1]
            node = next(nodes, None)
            if node is None:
                pending.pop()
                self._read_outputs(scope)
            elif node.is_variable:
                self._read_variable(scope, node)
            else:
                self._read_operator(scope, node)
                for nested in node.subgraphs:
                    inner = _Scope(nested, scope, node)
                    pending.append((inner, iter(nested.sorted())))

    def _read_variable(self, scope: _Scope, node: EditableNode) -> None:
        value = node.outputs[0]
        if node.name == ABSENT:
            return
        if OUTER in node.attrs:
            assert scope.owner is not None
            source = self._sources.get(scope.owner.inputs[int(node.attrs[OUTER])])
            if source is not None:
                self._sources[value] = source
                self._captured.append((scope, source, value))
            return
        source = _Source(value, scope)
        self._sources[value] = source
        if self._shapes.dtype(value) != _FLOAT:
            return
        if scope is not self._main:
            document = document_of(self._graph.own_attributes)
            source.array = constant_array(document, node.attrs.get(ID, ""))
            source.is_constant = source.array is not None
        elif is_constant(self._graph, node):
            source.array = self._graph.args.get(node.name)
            source.is_constant = source.array is not None
        elif "__default__" not in node.attrs:
            source.fixed_half = not self._keep_io

    def _read_operator(self, scope: _Scope, node: EditableNode) -> None:
        made = _Operation(node, scope, is_mark=operator(node).startswith(REFERRING))
        self._operations.append(made)
        for value in node.outputs:
            source = _Source(value, scope, made)
            self._sources[value] = source
            made.results.append(source)
        captured = int(node.attrs.get(CAPTURED, 0))
        own = len(node.inputs) - captured
        floats = {
            slot: self._sources[value]
            for slot, value in enumerate(node.inputs[:own])
            if self._is_float(value)
        }
        self._follow_integers(made, list(floats.values()))
        half_inputs, half_outputs = self._typed(node, floats)
        for slot, source in floats.items():
            if slot in half_inputs and operator(node) in _ANY_TYPE:
                made.free_inputs[slot] = source
            elif slot in half_inputs:
                made.half_inputs[slot] = source
            else:
                made.float_inputs[slot] = source
            if slot not in made.free_inputs:
                source.users.append(made)
        made.half_outputs = half_outputs

    def _is_float(self, value: EditableValue) -> bool:
        return value.node.name != ABSENT and self._shapes.dtype(value) == _FLOAT

    def _follow_integers(self, made: _Operation, floats: list[_Source]) -> None:
        """Note results that are computed from integers, and from truth values."""
        name = operator(made.node)
        counted = flag = False
        if name == "Cast":
            source = self._shapes.dtype(made.node.inputs[0])
            counted = source is not None and source.name in _WIDE_INTEGERS
            flag = source is not None and source.name == "bool"
        elif name == "Range":
            counted = True
        elif not made.node.subgraphs:
            computed = [each for each in floats if not each.is_constant]
            if computed and all(each.is_counted or each.is_flag for each in computed):
                counted = any(each.is_counted for each in computed)
                flag = not counted
        for each in made.results:
            each.is_counted, each.is_flag = counted, flag

    def _typed(
        self, node: EditableNode, floats: dict[int, _Source]
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Return the inputs and outputs that are half if the node is, by ONNX's definition."""
        nothing: frozenset[int] = frozenset()
        name = operator(node)
        typing = _typing(name, self._model.opset, self._half.name)
        if typing is None or node.subgraphs or name in _BY_ATTRIBUTE:
            return nothing, nothing
        inputs, outputs, many_inputs, many_outputs = typing
        bound = [self._parameter(inputs, slot, many_inputs) for slot in range(len(node.inputs))]
        doubtful = {
            parameter
            for slot, parameter in enumerate(bound)
            if node.inputs[slot].node.name != ABSENT and slot not in floats
        }
        flips = {bound[slot] for slot in floats} - doubtful - {""}
        flips -= {parameter for parameter in flips if (name, parameter) in _STAYING}
        results = set()
        for place, value in enumerate(node.outputs):
            if self._is_used(value) and self._shapes.dtype(value) is None:
                return nothing, nothing  # of unknown type, or a sequence
            parameter = self._parameter(outputs, place, many_outputs)
            if (name, parameter) in _FOLLOWING and "output_dtype" not in node.attrs:
                parameter = _FOLLOWING[name, parameter]
            if parameter in flips and self._is_used(value):
                results.add(place)
        if name in ("Cast", "ConstantOfShape") and self._shapes.dtype(node.outputs[0]) == _FLOAT:
            if name == "Cast" and self._shapes.dtype(node.inputs[0]) in (None, _FLOAT):
                return nothing, nothing
            results.add(0)
        return frozenset(slot for slot in floats if bound[slot] in flips), frozenset(results)

    def _is_used(self, value: EditableValue) -> bool:
        return bool(value.uses) or value.is_output

    def _parameter(self, formal: list[str], place: int, is_repeated: bool) -> str:
        if place < len(formal):
            return formal[place]
        return formal[-1] if is_repeated and formal else ""

    def _read_outputs(self, scope: _Scope) -> None:
        is_half = scope is self._main and not self._keep_io
        for place, value in enumerate(scope.graph.outputs):
            source = self._sources.get(value)
            if source is not None and self._is_float(value):
                source.users.append(None)
                source.half_users += is_half
                self._outputs.append((scope, place, source, is_half))

    # ---- what is to be half ----

    def _can_be_half(self, made: _Operation) -> bool:
        node, name = made.node, operator(made.node)
        if not made.half_inputs and not made.half_outputs:
            if made.float_inputs:
                self._keep(made, self._why_typed(made))
            return False
        if name in self._keep_ops:
            return self._keep(made, "listed in keep_ops")
        if node.name in self._keep_nodes:
            return self._keep(made, "listed in keep_nodes")
        if made in self._of_small:
            return self._keep(made, "reads numbers that are too small")
        if node.control_deps:
            return self._keep(made, "has control dependencies")
        reduces = node.attrs.get("reduction", "none") != "none"
        if name in _REFUSED or (name in _REDUCING and reduces):
            return self._keep(made, "ONNX Runtime lacks it in half precision")
        if name in _SUMMING:
            return self._keep(made, "its rounding grows with the length of the axis")
        fits = all(self._fits(made, slot, each) for slot, each in made.half_inputs.items())
        if not fits or not self._attribute_fits(node):
            return False
        is_counted = name != "Cast" and any(each.is_counted for each in made.results)
        if is_counted and not made.clamped:
            return self._keep(made, "computes with integers, such as positions and sizes")
        return True

    def _why_typed(self, made: _Operation) -> str:
        node = made.node
        if node.subgraphs:
            return "its results and parameters keep their types"
        if operator(node) in _BY_ATTRIBUTE:
            return "the type of its results is an attribute"
        if _typing(operator(node), self._model.opset, self._half.name) is None:
            return "a local function, or not an operator of ONNX"
        if any(self._is_used(v) and self._shapes.dtype(v) is None for v in node.outputs):
            return "its results are sequences, or of unknown type"
        return f"operator set {self._model.opset} does not have it in {self._half.name}"

    def _keep(self, made: _Operation, reason: str) -> bool:
        self._reasons[operator(made.node), reason] += 1
        return False

    def _fits(self, made: _Operation, slot: int, source: _Source) -> bool:
        """Whether a constant fits; if not, the operator may have one of its own instead."""
        array = source.array
        if not source.is_constant or array is None or not array.size:
            return True
        name = operator(made.node)
        low, high = float(np.fmin.reduce(array, None)), float(np.fmax.reduce(array, None))
        extreme = high if high >= -low else low
        if not np.isfinite(extreme):
            finite = array[np.isfinite(array)]
            extreme = float(max(finite, key=abs, default=0.0)) if finite.size else 0.0
        title = f"constant {source.value.node.name!r} of {name} {made.node.name!r}"
        if abs(extreme) > self._largest:
            stands = name in _BOUNDS or (name in _MASKS and abs(extreme) >= _INFINITE)
            if name == "Mul":
                others = [each for each in made.half_inputs.values() if each is not source]
                stands = stands and all(each.is_counted or each.is_flag for each in others)
            if not (self._clamp and stands):
                self._constants.append(f"{title}: {extreme:.4g} is out of range; stays in float32")
                return self._keep(made, "a constant is out of range")
            bound = np.float32(self._largest)
            made.clamped[slot] = np.where(np.isfinite(array), np.clip(array, -bound, bound), array)
            kept = float(np.clip(np.float32(extreme), -bound, bound))
            self._constants.append(f"{title}: {extreme:.4g} becomes {kept:.5g}")
        elif self._is_bound(made, slot, array) or self._is_sensitive(name, slot):
            return self._is_no_zero(made, slot, source, title)
        return True

    def _is_bound(self, made: _Operation, slot: int, array: np.ndarray[Any, Any]) -> bool:
        """Whether a number keeps results from 0, as in ``Log(Add(x, 1e-10))``."""
        name = operator(made.node)
        return array.size == 1 and (name in ("Add", "Max") or (name == "Clip" and slot == 1))

    def _is_sensitive(self, name: str, slot: int) -> bool:
        """Whether zeros, or few digits, in a constant change results beyond rounding."""
        if name in ("Div", "DequantizeLinear", "QuantizeLinear"):
            return slot == 1
        return (name == "Mul") or (name == "BatchNormalization" and slot == 4)

    def _is_no_zero(self, made: _Operation, slot: int, source: _Source, title: str) -> bool:
        array = source.array
        assert array is not None
        name = operator(made.node)
        sizes = np.abs(array)
        is_scale = name in ("DequantizeLinear", "QuantizeLinear")
        least = 2.0**-14 if is_scale and self._half == np.float16 else self._smallest
        lost = (sizes < least) & (sizes > 0)
        if not lost.any():
            return True
        found = float(sizes[lost].min())
        users = [user for each in made.results for user in each.users if user is not None]
        logarithms = {user for user in users if operator(user.node) == "Log"}
        self._of_small.update(logarithms)
        if self._is_bound(made, slot, array) and not logarithms:
            made.clamped[slot] = np.copysign(np.float32(self._smallest), array)
            self._constants.append(f"{title}: {found:.4g} becomes {self._smallest:.4g}")
            return True
        if array.size > 1 and name == "Mul":
            return True
        self._constants.append(f"{title}: {found:.4g} is too small; stays in float32")
        return self._keep(made, "a constant is too small")

    def _attribute_fits(self, node: EditableNode) -> bool:
        """Whether the elements that ConstantOfShape has in an attribute fit."""
        if operator(node) != "ConstantOfShape" or "value" not in node.attrs:
            return True
        stated = json.loads(node.attrs["value"])["data"]
        return all(abs(float(each)) <= self._largest or np.isinf(float(each)) for each in stated)

    def _spare_casts(self) -> None:
        """Leave groups of light operators in float32 where that needs fewer casts."""
        group_of: dict[_Operation, int] = {}
        groups: list[list[_Operation]] = []
        for start in self._operations:
            if not start.is_light or start in group_of:
                continue
            group_of[start] = len(groups)
            group, pending = [], [start]
            while pending:
                each = pending.pop()
                group.append(each)
                for near in self._neighbours(each):
                    if near.is_light and near not in group_of:
                        group_of[near] = len(groups)
                        pending.append(near)
            groups.append(group)
        for group in groups:
            self._try_float(group)
        for _ in range(2):
            for each in self._operations:
                if each.is_light:
                    self._try_float([each])

    def _neighbours(self, made: _Operation) -> Iterator[_Operation]:
        for source in made.half_inputs.values():
            if source.producer is not None:
                yield source.producer
        for source in made.results:
            yield from (user for user in source.users if user is not None)

    def _try_float(self, group: Sequence[_Operation]) -> None:
        near = {source for each in group for source in (*each.half_inputs.values(), *each.results)}
        before = sum(source.casts for source in near)
        for each in group:
            each.switch(is_half=False)
        if sum(source.casts for source in near) >= before:
            for each in group:
                each.switch(is_half=True)

    # ---- the changes ----

    def _write(self) -> None:
        sources = list(dict.fromkeys(self._sources.values()))
        for source in sources:
            self._retype(source)
        for scope, source, value in self._captured:
            self._local[scope, source, source.is_half] = value
        for made in self._operations:
            self._rewrite(made)
        for scope, place, source, is_half in self._outputs:
            values = list(scope.graph.outputs)
            values[place] = self._as(scope, source, is_half)
            scope.graph.outputs = tuple(values)
        self._join_casts()
        self._remove_unused(sources)

    def _retype(self, source: _Source) -> None:
        """Convert an input, and a constant that is used in half precision only."""
        node = source.value.node
        if not source.is_constant:
            if source.fixed_half:
                node.attrs["__dtype__"] = str(dtypes.code(self._half))
            return
        if source.scope is not self._main or source.is_read_as_float or not source.users:
            return
        if any(self._reads_clamped(user, source) for user in source.users):
            return
        assert source.array is not None
        self._graph.args[node.name] = self._converted(source.array)
        source.fixed_half = True

    def _reads_clamped(self, user: _Operation | None, source: _Source) -> bool:
        if user is None:
            return False
        return any(user.half_inputs[slot] is source for slot in user.clamped)

    def _converted(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        with np.errstate(over="ignore", under="ignore"):
            return array.astype(self._half)

    def _rewrite(self, made: _Operation) -> None:
        node = made.node
        inputs = list(node.inputs)
        for slot, source in (*made.half_inputs.items(), *made.float_inputs.items()):
            is_half = made.is_half and slot in made.half_inputs
            if is_half and slot in made.clamped:
                inputs[slot] = self._weight(made.scope, source, made.clamped[slot])
            else:
                inputs[slot] = self._as(made.scope, source, is_half)
        # New captured values may have joined the inputs meanwhile.
        current = list(node.inputs)
        node_inputs = [*inputs, *current[len(inputs) :]]
        if node_inputs != current:
            made.scope.graph.set_inputs(node, node_inputs)
        if made.is_half and operator(node) == "Cast" and 0 in made.half_outputs:
            node.attrs["to"] = str(self._code)
        if made.is_half and operator(node) == "ConstantOfShape":
            stated = json.loads(node.attrs.get("value", '{"shape": [1], "data": [0.0]}'))
            node.attrs["value"] = json.dumps({**stated, "dtype": self._half.name})

    def _as(self, scope: _Scope, source: _Source, is_half: bool) -> EditableValue:
        """Return a value in a graph, in float32 or half, which may need a cast or a capture."""
        steps = []
        while (scope, source, is_half) not in self._local:
            home = self._main if source.is_constant and is_half else source.scope
            if scope is home:
                self._local[scope, source, is_half] = self._own(source, is_half)
                break
            steps.append(scope)
            assert scope.parent is not None
            scope = scope.parent
        value = self._local[scope, source, is_half]
        for inner in reversed(steps):
            value = self._capture(inner, value)
            self._local[inner, source, is_half] = value
        return value

    def _own(self, source: _Source, is_half: bool) -> EditableValue:
        """Return a value in the graph that has it."""
        if source.is_half == is_half:
            return source.value
        if source.is_constant:
            assert source.array is not None
            assert is_half
            return self._parameter_of(source, self._converted(source.array))
        value, node = source.value, source.value.node
        name = self._names.fresh(f"{node.name}_{self._half.name if is_half else 'float32'}")
        code = self._code if is_half else CODES["float32"]
        from_ = node.inputs[0] if operator(node) == "Cast" and not node.is_variable else value
        self._made += 1
        made = source.scope.graph.add_node("Cast", [from_], {"to": str(code)}, name=name)
        return made.outputs[0]

    def _parameter_of(self, source: _Source, array: np.ndarray[Any, Any]) -> EditableValue:
        name = self._names.fresh(f"{source.value.node.name}_{self._half.name}")
        return self._graph.add_parameter(name, array).outputs[0]

    def _weight(self, scope: _Scope, source: _Source, array: np.ndarray[Any, Any]) -> EditableValue:
        """Return a constant of an operator alone, which is held by the main graph."""
        value = self._parameter_of(source, self._converted(array))
        around = []
        while scope is not self._main:
            around.append(scope)
            assert scope.parent is not None
            scope = scope.parent
        for inner in reversed(around):
            value = self._capture(inner, value)
        return value

    def _capture(self, scope: _Scope, value: EditableValue) -> EditableValue:
        """Make a value of the graph around a nested graph known in it."""
        owner, around = scope.owner, scope.parent
        assert owner is not None
        assert around is not None
        slot = len(owner.inputs)
        captured = int(owner.attrs.get(CAPTURED, 0))
        owner.attrs.setdefault(FORMAL, str(slot - captured))
        owner.attrs[CAPTURED] = str(captured + 1)
        around.graph.set_inputs(owner, [*owner.inputs, value])
        name = self._names.fresh(value.node.name)
        return scope.graph.add_variable(name, {OUTER: str(slot)}).outputs[0]

    def _join_casts(self) -> None:
        """Remove casts of the model between equal types."""
        for made in self._operations:
            node = made.node
            if operator(node) != "Cast":
                continue
            value = node.inputs[0]
            source = self._sources.get(value)
            before = self._shapes.dtype(value)
            if source is not None and source.is_half:
                before = self._half
            target = node.attrs.get("to", "")
            if before is None or CODES.get(before.name) != int(target or 0):
                continue
            if node.outputs[0].is_output:
                continue
            made.scope.graph.replace(node.outputs[0], value)
            made.scope.graph.remove(node)

    def _remove_unused(self, sources: Iterable[_Source]) -> None:
        for source in sources:
            if not source.is_constant or source.value.node.is_used:
                continue
            if source.scope is self._main:
                self._model.remove_unused([source.value.node])
            else:
                source.scope.graph.remove(source.value.node)

    # ---- what is said ----

    def _report(self) -> None:
        own = [each for each in self._operations if not each.is_mark]
        halves = sum(each.is_half for each in own)
        total = len(own)
        added = counted(self._made, "Cast")
        lines = [f"{halves} of {total} operators in {self._half.name}, {added} added"]
        kept = defaultdict(list)
        for (name, reason), count in sorted(self._reasons.items()):
            if not name.startswith(REFERRING):
                kept[reason].append(name if count == 1 else f"{count} {name}")
        lines += [f"in float32: {', '.join(names)}: {reason}" for reason, names in kept.items()]
        lines += self._constants[:_MOST_LINES]
        if len(self._constants) > _MOST_LINES:
            lines.append(f"{len(self._constants) - _MOST_LINES} more constants")
        write_escaped("".join(f"toHalf: {line}\n" for line in lines))
