"""Meanings of operators: each element of a result as a term of its index and the inputs.

A meaning is a function of a `Node` that returns the results. Tables hold what is equal but for a
name; tests/proof/test_meanings.py compares every meaning with ONNX's reference evaluator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import passlib._core as _core
from passlib.files.optional import require
from passlib.proof.paths import DeadEndError, Path, Size, Type, UnprovenError
from passlib.proof.tensors import (
    PLAIN,
    Choice,
    Const,
    Extent,
    Node,
    Op,
    Reduce,
    Symbol,
    Tensor,
    TensorSequence,
    axes_of,
    broadcast_index,
    broadcast_shape,
    divided,
    factors_of,
    moved_index,
    product,
    quotient_and_rest,
    schema_of,
)

Meaning = Callable[[Node], list[Tensor]]

MEANINGS: Final[dict[str, Meaning]] = {}

_UNARY: Final[dict[str, tuple[str, ...]]] = dict.fromkeys(
    [
        "Relu",
        "Neg",
        "Abs",
        "Exp",
        "Log",
        "Sqrt",
        "Sigmoid",
        "Tanh",
        "Erf",
        "Floor",
        "Ceil",
        "Round",
        "Sign",
        "Reciprocal",
        "Not",
        "Softplus",
        "Softsign",
        "HardSwish",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Acosh",
        "Atanh",
        "Mish",
        "IsNaN",
        "BitwiseNot",
    ],
    (),
)
_UNARY.update(
    LeakyRelu=("alpha",), Elu=("alpha",), Celu=("alpha",), Selu=("alpha", "gamma"),
    HardSigmoid=("alpha", "beta"), ThresholdedRelu=("alpha",), Gelu=("approximate",),
    Shrink=("bias", "lambd"), Swish=("alpha",),
)  # fmt: skip
_BINARY: Final = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
]
_VARIADIC: Final = ["Max", "Min", "Sum", "Mean"]
_REDUCTIONS: Final = [
    "ReduceMax",
    "ReduceMin",
    "ReduceSum",
    "ReduceMean",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
]
_ALONE: Final = frozenset({"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"})
"""Reductions of one element that return it."""
CHANGED: Final[dict[str, tuple[int, ...]]] = {
    "Softmax": (13,), "LogSoftmax": (13,), "Hardmax": (13,), "BatchNormalization": (7, 9, 14),
    "Dropout": (7, 12), "Add": (7,), "Sub": (7,), "Mul": (7,), "Div": (7,), "Pow": (7,),
    "And": (7,), "Or": (7,), "Xor": (7,), "Equal": (7,), "Greater": (7,), "Less": (7,),
    "Max": (8,), "Min": (8,), "Sum": (8,), "Mean": (8,), "Gemm": (7, 11), "Reshape": (5,),
    "Concat": (4,), "Pad": (2, 18), "Split": (2, 18), "Clip": (6, 11), "AveragePool": (7, 19),
    "MaxPool": (8,), "Gather": (11,), "Cast": (6,), "Slice": (10,), "Tile": (6,),
    "Squeeze": (11,), "Unsqueeze": (11,), "Resize": (11, 13), "QuantizeLinear": (13, 21),
    "DequantizeLinear": (13, 21), "ReduceSum": (11, 18), "Concat ": (), "Flatten": (11,),
    "ArgMax": (11, 12), "ArgMin": (11, 12), "Upsample": (7, 9), "PRelu": (7,),
    "DepthToSpace": (11,), "GroupNormalization": (21,),
    **{name: (11, 18) for name in _REDUCTIONS if name != "ReduceSum"},
}  # fmt: skip
"""Operator sets in which an operator changes more than its types."""

_DOMAINS: Final = {
    "DynamicQuantizeLSTM": ("com.microsoft",), "Gelu": ("", "com.microsoft"),
    "FastGelu": ("com.microsoft",), "BiasGelu": ("com.microsoft",),
    "QuickGelu": ("com.microsoft",),
}  # fmt: skip
"""Domains of operators that are not only ONNX's own."""

COMMUTATIVE: Final = frozenset(
    [
        "Add",
        "Mul",
        "And",
        "Or",
        "Xor",
        "Equal",
        "Max",
        "Min",
        "Sum",
        "Mean",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
    ]
)


_FAMILIES: Final = (
    frozenset(name for name, told in _UNARY.items() if not told) - {"IsNaN", "Not", "BitwiseNot"},
    frozenset({"Add", "Sub", "Mul", "Div"}),
    frozenset({"Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"}),
    frozenset({"And", "Or", "Xor"}),
    frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor"}),
    frozenset({"Max", "Min"}),
    frozenset({"Sum", "Mean"}),
    frozenset(_REDUCTIONS) - {"ReduceSum"},
)
"""Operators whose meanings differ in nothing but the name of an operator of elements."""


def families(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return operators by families."""
    found: dict[Any, list[str]] = {}
    for name in names:
        family = next((each for each in _FAMILIES if name in each), name)
        found.setdefault(family, []).append(name)
    return [tuple(sorted(each)) for each in found.values()]


BY_ELEMENT: Final = frozenset(
    [*_UNARY, *_BINARY, *_VARIADIC, "Identity", "Where", "Clip", "Cast", "Expand"]
)
"""Operators that treat each axis alike: sizes are equal, or one is 1."""


def means(*names: str) -> Callable[[Meaning], Meaning]:
    """Register the meaning of operators."""

    def register(meaning: Meaning) -> Meaning:
        for name in names:
            MEANINGS[name] = meaning
        return meaning

    return register


def results_of(node: Node) -> list[Tensor]:
    """Return the results of an operation, whose types and inputs are checked."""
    if node.op not in MEANINGS or node.domain not in _DOMAINS.get(node.op, ("",)):
        raise UnprovenError(f"{node.op} has no meaning here")
    if not node.domain:
        _check_types(node)
    made = MEANINGS[node.op](node)
    for part, tensor in enumerate(made):
        tensor.node = node
        tensor.part = part
        tensor.is_input = False
    return made


# ---- element types ----


def _formal(schema: Any, place: int) -> Any:
    formals = list(schema.inputs)
    if place < len(formals):
        return formals[place]
    onnx = require("onnx", extra="onnx")
    if formals and formals[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic:
        return formals[-1]
    return None


def _check_types(node: Node) -> None:
    """Make the inputs' types those that the schema allows, in every operator set of the path."""
    path = node.path
    operators = node.family or (node.op,)
    if not node.folded:  # what the engine computes is the same in all operator sets
        path.split_opsets(
            lambda opset: tuple(signature(op, node.domain, opset) for op in operators)
        )
    known = lambda opset: any(schema_of(op, node.domain, opset) for op in operators)  # noqa: E731
    if node.side.is_left and not path.opset_where(known):
        raise DeadEndError
    groups: dict[str, Type] = {}
    for place, tensor in enumerate(node.inputs):
        if tensor is None:
            continue
        every = not node.side.is_left and (
            node.family_types[place : place + 1] != (tensor.type,) or node.op not in node.family
        )
        pairs, name, missing = _allowed(
            operators, node.domain, place, tuple(path.opsets), every=every
        )
        if missing is not None and not node.side.is_left:
            node.fails(f"operator set {missing} has no input {place}")
        if node.side.is_left:
            path.restrict(tensor.type, pairs)
        elif not path.allows(tensor.type, pairs):
            names = sorted(path.type_names(tensor.type))
            raise UnprovenError(f"the replacement has {node.op} of types that it may lack: {names}")
        if "(" in name or not name:
            continue
        if name in groups:
            _unify(node, groups[name], tensor.type)
        else:
            groups[name] = tensor.type


@cache
def _allowed(
    operators: tuple[str, ...], domain: str, place: int, opsets: tuple[int, ...], *, every: bool
) -> tuple[frozenset[tuple[int, str]], str, int | None]:
    """Return the types of an input, its type parameter, and an operator set that lacks it.

    The types are those of some of the operators, or of every one that an operator set has.
    """
    pairs: set[tuple[int, str]] = set()
    name, missing = "", None
    for opset in opsets:
        found: list[set[str]] = []
        for op in operators:
            schema = schema_of(op, domain, opset)
            formal = None if schema is None else _formal(schema, place)
            if formal is not None:
                found.append(_element_types(op, formal.types))
                name = formal.type_str
            elif schema is not None and _is_moved(op, place):
                found.append(set(PLAIN))  # an attribute in this operator set
            elif schema is not None:
                missing = opset
        if not found:
            missing = opset
            continue
        types = set.intersection(*found) if every else set.union(*found)
        pairs |= {(opset, each) for each in types}
    return frozenset(pairs), name, missing


def _is_moved(op: str, place: int) -> bool:
    return any((_core.moved_input(op, name, 99) or (-1,))[0] == place for name in ALL_MOVED)


ALL_MOVED: Final = [
    "min",
    "max",
    "axis",
    "ratio",
    "shape",
    "pads",
    "value",
    "axes",
    "starts",
    "ends",
    "steps",
    "split",
    "repeats",
    "k",
    "scales",
    "depth",
]


def _element_types(op: str, types: Sequence[str]) -> set[str]:
    """Return the element types of tensors, and of sequences where an operator is of those."""
    starts = ["tensor("]
    if op in ("SequenceAt", "SequenceLength", "ConcatFromSequence"):
        starts.append("seq(tensor(")
    if op.startswith("Optional"):
        starts.append("optional(tensor(")
    return {
        each[len(start) :].rstrip(")") for each in types for start in starts
        if each.startswith(start)
    }  # fmt: skip


@cache
def signature(op: str, domain: str, opset: int) -> Any:
    """Return what an operator is in an operator set, but for its types; None if it has none."""
    schema = schema_of(op, domain, opset)
    if schema is None:
        return None
    changes = sum(opset >= since for since in CHANGED.get(op, ()))
    defaults = tuple(
        (name, str(each.default_value))
        for name, each in sorted(schema.attributes.items())
        if name not in ("consumed_inputs", "axes", "saturate", "precision", "block_size",
                        "output_dtype", "round_mode")
    )  # fmt: skip
    return changes, defaults


def _unify(node: Node, one: Type, other: Type) -> None:
    if node.side.is_left:
        node.path.unify(one, other)
    elif one != other:
        first, second = node.path.type_names(one), node.path.type_names(other)
        if len(first) != 1 or first != second:
            node.fails("its inputs have different types")


@cache
def _everywhere(names: frozenset[str]) -> frozenset[tuple[int, str]]:
    return frozenset((opset, name) for opset in range(1, 100) for name in names)


def fixed(path: Path, name: str) -> Type:
    """Return the type of a name."""
    return Type(_everywhere(frozenset({name})))


def truth() -> Type:
    """Return the type of truths."""
    return Type(_everywhere(frozenset({"bool"})))


def any_type() -> Type:
    """Return a type of which nothing is known."""
    return Type(_everywhere(PLAIN))


# ---- numbers as elements ----


def element_of(value: Any, kind: Type) -> Any:
    """Return a number of an attribute or a term as an element."""
    value = known_number(value)
    if isinstance(value, (int, float)):
        return Const(value, kind)
    value = getattr(value, "tensor", value)
    if isinstance(value, Tensor):
        return value.at((0,) * value.rank)
    if isinstance(value, Symbol):
        return Op("symbol", (), kind, (value,))
    if isinstance(value, Calculated):
        return Op(value.op, tuple(element_of(each, kind) for each in value.args), kind)
    return Extent(value)


def known_number(value: Any) -> Any:
    """Return the number that a condition says an attribute is, if one does."""
    if isinstance(value, Symbol):
        stated = value.node.chosen.get(value.name)
        return stated if isinstance(stated, (int, float)) else value
    return value


class Calculated:
    """Arithmetic of numbers that nobody knows."""

    def __init__(self, op: str, *args: Any) -> None:
        self.op = op
        self.args = args


def filled(path: Path, value: Any, kind: Type, shape: Sequence[Size] = ()) -> Tensor:
    """Return a constant of equal elements."""
    element = element_of(value, kind)
    made = Tensor(path, "number", kind, shape, lambda index: element)
    made.order = lambda index, whole: element
    made.is_constant = True
    return made


# ---- elementwise operators ----


def elementwise(
    node: Node, name: str, inputs: Sequence[Tensor], kind: Type, told: tuple[Any, ...] = ()
) -> Tensor:
    """Return an operator of elements whose inputs are broadcast."""
    path = node.path
    shape, fits = broadcast_shape(path, [each.shape for each in inputs])
    for condition in fits:
        node.requires(condition)

    def at(index: tuple[Size, ...]) -> Any:
        args = [each.at(broadcast_index(path, index, each.shape, shape)) for each in inputs]
        return Op(name, tuple(args), kind, told)

    def in_order(index: tuple[Size, ...], whole: Sequence[Size]) -> Any:
        args = []
        for each in inputs:
            if each.rank == 0:
                args.append(each.at(()))
            elif each.rank == len(shape) and all(map(path.same, each.shape, shape)):
                args.append(each.in_order(index, whole))
            else:
                return at(moved_index(path, index, whole, shape))
        return Op(name, tuple(args), kind, told)

    made = Tensor(path, node.op, kind, shape, at)
    made.order = in_order
    made.is_constant = all(each.is_constant for each in inputs)
    return made


def _told(node: Node, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(node.text(name) if name == "approximate" else node.real(name) for name in names)


@means(*_UNARY)
def _unary(node: Node) -> list[Tensor]:
    x = node.input(0)
    kind = fixed(node.path, "bool") if node.op == "IsNaN" else x.type
    if len(node.inputs) != 1:
        node.fails("it has one input")
    told = ("none",) if node.domain else _told(node, _UNARY[node.op])  # of com.microsoft: Gelu
    return [elementwise(node, node.name, [x], kind, told)]


@means("PRelu")
def _prelu(node: Node) -> list[Tensor]:
    x, slope = node.input(0), node.input(1)
    if node.path.opset_where(lambda opset: opset < 7):
        raise UnprovenError("PRelu before operator set 7 has no meaning here")
    if slope.rank > x.rank:
        node.fails("its slope has no more axes than the value")
    for mine, its in zip(slope.shape, x.shape[x.rank - slope.rank :], strict=True):
        if not node.path.same(mine, its):
            _forbidden_unless(node, _or(node.path, mine == 1, mine == its))
    return [elementwise(node, "PRelu", [x, slope], x.type)]


@means("FastGelu", "BiasGelu", "QuickGelu")
def _microsoft_gelu(node: Node) -> list[Tensor]:
    x = node.input(0)
    _require_real(node)
    if node.op == "QuickGelu":
        alpha = node.real("alpha")
        told = 1.702 if alpha is None else alpha
        return [elementwise(node, "Swish", [x], x.type, (told,))]
    bias = node.input(1) if node.op == "BiasGelu" else node.optional(1)
    if bias is not None:
        if x.rank == 0 or bias.rank != 1:
            node.fails("the bias is a vector, along the last axis")
        _unify(node, x.type, bias.type)
        _demanded(node, bias.shape[0], x.shape[-1])
        x = elementwise(node, "Add", [x, bias], x.type)
    approximate = "tanh" if node.op == "FastGelu" else "none"
    return [elementwise(node, "Gelu", [x], x.type, (approximate,))]


def _legacy_shapes(node: Node, since: int, inputs: Sequence[Tensor]) -> None:
    """Before operator set 7 or 8, operators broadcast only where an attribute says so."""
    path = node.path
    if node.folded or not path.opset_where(lambda opset: opset < since):
        return
    if since == 7 and inputs[1].rank == 0 and node.is_open:
        return  # a number, of which no attribute needs to say where it stands
    if since == 7:
        for name in ("broadcast", "axis"):
            if name not in node.attributes and node.side.is_left and path.choose(2):
                raise UnprovenError(f"{node.op}: broadcasting by attributes has no meaning here")
    for each in inputs[1:]:
        if len(each.shape) != len(inputs[0].shape):
            node.fails(f"before operator set {since}, shapes are equal")
        for mine, its in zip(inputs[0].shape, each.shape, strict=True):
            if node.side.is_left:
                path.assume(mine == its)
            else:
                node.requires(mine == its)


@means(*_BINARY)
def _binary(node: Node) -> list[Tensor]:
    one, other = node.input(0), node.input(1)
    if len(node.inputs) != 2:
        node.fails("it has two inputs")
    if not node.op.startswith("Bitwise") and not node.op.endswith("OrEqual"):
        _legacy_shapes(node, 7, [one, other])
    compares = node.op in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    kind = fixed(node.path, "bool") if compares else one.type
    return [elementwise(node, node.name, [one, other], kind)]


@means(*_VARIADIC)
def _variadic(node: Node) -> list[Tensor]:
    inputs = [node.input(place) for place in range(len(node.inputs))]
    if not inputs:
        node.fails("it has no input")
    _legacy_shapes(node, 8, inputs)
    if len(inputs) == 1:
        return [alias(inputs[0])]
    return [elementwise(node, node.name, inputs, inputs[0].type)]


def alias(tensor: Tensor) -> Tensor:
    """Return a tensor with the elements of another."""
    made = Tensor(tensor.path, tensor.name, tensor.type, tensor.shape, tensor.at)
    made.order = tensor.in_order
    made.content = tensor.content
    made.is_constant = tensor.is_constant
    made.facts = tensor.facts
    return made


@means("Identity")
def _identity(node: Node) -> list[Tensor]:
    return [alias(node.input(0))]


@means("Dropout")
def _dropout(node: Node) -> list[Tensor]:
    """In inference: a mode that is given must be a constant that says so."""
    path = node.path
    if path.opset_where(lambda opset: opset < 7):
        is_test = node.number("is_test")
        if is_test is None or path.decide(is_test == 0):
            return [_trained(node, node.input(0))] * node.results
    mode = node.optional(2)
    if mode is not None:
        mode.set_rank(0)
        mode.is_mode = True  # type: ignore[attr-defined]
        node.chosen["training"] = mode
    return [alias(node.input(0))]


def _trained(node: Node, x: Tensor) -> Tensor:
    """Return what an operator makes in training: nothing is known of it."""
    kind = x.type
    return Tensor(
        node.path,
        node.op,
        kind,
        x.shape,
        lambda index: Op("trained", (x.at(index),), kind, (node,)),
    )


@means("Where")
def _where(node: Node) -> list[Tensor]:
    inputs = [node.input(place) for place in range(3)]
    return [elementwise(node, "Where", inputs, inputs[1].type)]


@means("Clip")
def _clip(node: Node) -> list[Tensor]:
    x = node.input(0)
    bounds: list[Tensor | None] = []
    has_attributes = node.path.opset_where(lambda opset: opset < 11)
    for place, name in ((1, "min"), (2, "max")):
        value = node.attributes.get(name)
        tensor = node.optional(place)
        if tensor is not None:
            if tensor.is_input:
                tensor.set_rank(0)
            elif tensor.rank != 0:
                node.fails("its bounds are scalars")
            bounds.append(tensor)
        elif value is None and name not in node.attributes and has_attributes:
            value = node.real(name)
            bounds.append(None if value is None else filled(node.path, value, x.type))
        elif value is not None:
            bounds.append(filled(node.path, value, x.type))
        else:
            bounds.append(None)
    made = x
    for op, bound in zip(("Max", "Min"), bounds, strict=True):
        if bound is not None:
            made = elementwise(node, op, [made, bound], x.type)
    return [alias(made)]


_TYPE_NAMES: Final = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
    9: "bool", 10: "float16", 11: "double", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip


@means("Cast")
def _cast(node: Node) -> list[Tensor]:
    x = node.input(0)
    target = node.attributes.get("to")
    if isinstance(target, int):
        if target not in _TYPE_NAMES:
            raise UnprovenError(f"Cast to type {target} has no meaning here")
        target = node.attributes["to"] = fixed(node.path, _TYPE_NAMES[target])
    if target is None:
        target = node.chosen.setdefault("to", any_type())
    if not isinstance(target, Type):
        raise UnprovenError("Cast to a type that nobody knows")
    return [elementwise(node, "Cast", [x], target)]


# ---- movement ----


@means("Transpose")
def _transpose(node: Node) -> list[Tensor]:
    x = node.input(0)
    rank = x.rank
    perm = node.order("perm", rank)
    if perm is None:
        perm = list(reversed(range(rank)))
    order: list[int] = []
    for item in perm:
        if not isinstance(item, int):
            raise UnprovenError("an order of axes that is computed")
        if not 0 <= item < rank or item in order:
            node.fails("perm is no order of axes")
        order.append(item)
    if len(order) != rank:
        node.fails("perm is no order of its axes")
    return [_swapped(node, x, order)]


def reordered(node: Node, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """Return the elements in their order with another shape of the same size."""
    made = Tensor(node.path, node.op, x.type, shape, lambda index: x.in_order(tuple(index), shape))
    made.order = x.in_order
    made.is_constant = x.is_constant
    return made


@means("Reshape")
def _reshape(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    shape: list[Size] = []
    sizes = None
    if not _is_computed(node, "shape", 1):
        sizes = node.whole("shape", place=1)
    if sizes is None:
        # A shape that is computed: any of that many elements.
        if not node.is_open:
            raise UnprovenError("Reshape to a shape that is computed")
        if len(node.inputs) < 2 and not node.opened and path.opset_where(lambda each: each >= 5):
            node.fails("its shape is missing")
        if "computed shape" not in node.chosen:
            node.chosen["computed shape"] = (x.shape, _any_shape(node))
        source, shape = node.chosen["computed shape"]
        if len(source) != x.rank or not all(map(path.same, source, x.shape)):
            # 0 and -1 in it stand for other sizes.
            raise UnprovenError("Reshape of another shape to one that is computed")
        if not path.same(product(shape), product(x.shape)):
            node.requires(product(shape) == product(x.shape))
            path.reshaped.append(shape)
        return [reordered(node, x, shape)]
    allow = node.number("allowzero", 0, 2) if node.is_since(14) else 0
    open_place = None
    for place, size in enumerate(sizes):
        if path.decide(size == -1):
            if open_place is not None:
                node.fails("two sizes are -1")
            open_place = place
            shape.append(-1)
        elif not allow and path.decide(size == 0):
            if place >= x.rank:
                node.fails("0 stands for an axis that is not there")
            shape.append(x.shape[place])
        else:
            if path.decide(size < 0):
                node.fails("a size is negative")
            shape.append(size)
    total = product(x.shape)
    if open_place is not None:
        rest = product([size for place, size in enumerate(shape) if place != open_place])
        shape[open_place] = _quotient(node, x.shape, shape, open_place)
        node.requires(rest * shape[open_place] == total)
        node.requires(rest != 0)
    elif not path.same(product(shape), total):
        node.requires(product(shape) == total)
        path.reshaped.append(shape)
    return [reordered(node, x, shape)]


def _any_shape(node: Node) -> list[Size]:
    return [node.path.number("size") for _ in range(node.path.count())]


def _is_computed(node: Node, name: str, place: int) -> bool:
    """Whether an input that states numbers is no constant."""
    if name in node.attributes or name in node.chosen:
        return False
    if place < len(node.inputs):
        given = node.inputs[place]
        return given is not None and given.content is None and not given.is_constant
    return node.opened


def _quotient(node: Node, source: Sequence[Size], shape: Sequence[Size], place: int) -> Size:
    """Return the size for -1: what is left of the input's sizes, if they show it."""
    path = node.path
    others = [size for number, size in enumerate(shape) if number != place]
    # Other shapes of as many elements may show it, too.
    for each in (source, *path.reshaped):
        if each is source or path.same(product(each), product(source)):
            left = _left_over(path, each, others)
            if left is not None:
                return left
    rest, total = product(others), product(source)
    if isinstance(rest, int) and isinstance(total, int):
        return total // rest if rest else 0
    # The quotient is a number of its own: equal dividends and divisors have equal ones.
    divide = path.z3.Function("quotient", *[path.z3.IntSort()] * 3)
    parts = (path.z3.IntVal(0) + total, path.z3.IntVal(0) + rest)
    made = divide(*(path.z3.simplify(each, som=True) for each in parts))
    path.solver.add(made >= 0)
    return made


def _left_over(path: Path, source: Sequence[Size], others: Sequence[Size]) -> Size | None:
    """Return the product of sizes without the factors of others; None if it lacks one."""
    left = [factor for size in source for factor in factors_of(path.z3, size)]
    for size in (factor for other in others for factor in factors_of(path.z3, other)):
        if isinstance(size, int) and size == 1:
            continue
        for number, each in enumerate(left):
            if path.same(each, size):
                del left[number]
                break
        else:
            return None
    return product(left)


def _share(node: Node, size: Size, count: Size) -> Size:
    """Return the quotient of a size and a positive number that must divide it."""
    path = node.path
    for whole, parts in path.products:
        if path.same(whole, size):
            left = _left_over(path, [parts], [count])
            if left is not None:
                return left
    node.requires(size % count == 0)
    return divided(size, count)


def _multiple(node: Node, x: Tensor, axis: int, by: Size) -> Size:
    """Return the quotient of a size and a number that must divide it; write the size as product."""
    path = node.path
    if not node.side.is_left or not path.decide(x.shape[axis] % by == 0):
        node.requires(x.shape[axis] % by == 0)
        return divided(x.shape[axis], by)
    quotient = path.number("quotient")
    path.assume(x.shape[axis] == quotient * by)
    x.shape[axis] = quotient * by
    return quotient


def _swapped(node: Node, x: Tensor, perm: Sequence[int]) -> Tensor:
    """Return a value with its axes in another order."""

    def at(index: tuple[Size, ...]) -> Any:
        made: list[Size] = [0] * x.rank
        for place, axis in enumerate(perm):
            made[axis] = index[place]
        return x.at(tuple(made))

    made = Tensor(node.path, node.op, x.type, [x.shape[axis] for axis in perm], at)
    made.is_constant = x.is_constant
    return made


@means("DepthToSpace", "SpaceToDepth")
def _blocks(node: Node) -> list[Tensor]:
    """Reshape, Transpose and Reshape, as ONNX defines them."""
    path, x = node.path, node.input(0)
    if x.rank != 4:
        node.fails("its value has rank 4")
    side = node.number("blocksize")
    if path.decide(side <= 0):
        node.fails("the size of blocks is not positive")
    mode = "DCR"
    if node.op == "DepthToSpace" and path.opset_where(lambda opset: opset >= 11):
        mode = _among(node, "mode", ("DCR", "CRD"))
    if node.op == "SpaceToDepth":
        rows, columns = (_multiple(node, x, axis, side) for axis in (2, 3))
        count, channels = x.shape[:2]
        parts = [count, channels, rows, side, columns, side]
        perm, whole = (0, 3, 5, 1, 2, 4), [count, channels * side * side, rows, columns]
    else:
        channels = _multiple(node, x, 1, side * side)
        count, _, rows, columns = x.shape
        is_first = mode == "DCR"
        blocks = [side, side, channels] if is_first else [channels, side, side]
        parts = [count, *blocks, rows, columns]
        perm = (0, 3, 4, 1, 5, 2) if is_first else (0, 1, 4, 2, 5, 3)
        whole = [count, channels, rows * side, columns * side]
    return [reordered(node, _swapped(node, reordered(node, x, parts), perm), whole)]


def _among(node: Node, name: str, texts: Sequence[str]) -> Any:
    """Return an attribute that is one of some texts."""
    is_open = node.is_open or name in node.bound
    if is_open and not any(name in each for each in (node.linked, node.attributes, node.chosen)):
        node.chosen[name] = node.path.pick(texts)
    return node.text(name)


@means("Range")
def _range(node: Node) -> list[Tensor]:
    path = node.path
    kind = node.input(0).type
    ends = [node.input(place) for place in range(3)]
    for each in ends:
        if each.rank != 0:
            node.fails("its ends are numbers")
    if not path.type_in(kind, {"int16", "int32", "int64"}):
        raise UnprovenError("Range of real numbers has no meaning here")
    start, end, step = (whole_number(node, each)(()) for each in ends)
    if path.decide(step == 0):
        node.fails("the step is 0")
    distance, unit = (end - start, step) if path.decide(step > 0) else (start - end, -step)
    count = distance if _is_one(unit) else divided(distance + unit - 1, unit)
    if not path.proves(distance >= 0):
        count = path.either(distance > 0, count, 0)
    return [Tensor(path, "Range", kind, [count], lambda index: Extent(start + index[0] * step))]


@means("Trilu")
def _trilu(node: Node) -> list[Tensor]:
    path, x, diagonal = node.path, node.input(0), node.optional(1)
    if x.rank < 2:
        node.fails("its value has rank 2 or more")
    shift: Size = 0
    if diagonal is not None:
        if diagonal.rank != 0:
            node.fails("its diagonal is a number")
        shift = whole_number(node, diagonal)(())
    is_upper = path.decide(node.number("upper") != 0)

    def at(index: tuple[Size, ...]) -> Any:
        place = index[-1] - index[-2]
        kept = place >= shift if is_upper else place <= shift
        return choice(path, kept, lambda: x.at(index), lambda: Const(0, x.type))

    made = Tensor(path, "Trilu", x.type, x.shape, at)
    made.is_constant = x.is_constant
    return [made]


@means("Flatten")
def _flatten(node: Node) -> list[Tensor]:
    x = node.input(0)
    value = node.number("axis")
    if isinstance(value, int):
        low = -x.rank if node.path.opset_where(lambda opset: opset >= 11) else 0
        if not low <= value <= x.rank:
            node.fails("the axis is outside of the rank")
        axis = value + x.rank if value < 0 else value
    else:
        axis = node.path.choose(x.rank + 1)
        is_last = axis == x.rank
        node.path.assume(
            value == axis if is_last else _or(node.path, value == axis, value == axis - x.rank)
        )
    return [reordered(node, x, [product(x.shape[:axis]), product(x.shape[axis:])])]


@means("Squeeze")
def _squeeze(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    values = node.axes("axes", x.rank, 1)
    if values is None:
        axes = [axis for axis, size in enumerate(x.shape) if path.decide(size == 1)]
    else:
        axes = axes_of(path, values, x.rank)
        for axis in axes:
            node.requires(x.shape[axis] == 1)
    kept = [axis for axis in range(x.rank) if axis not in axes]

    def at(index: tuple[Size, ...]) -> Any:
        made: list[Size] = [0] * x.rank
        for item, axis in zip(index, kept, strict=True):
            made[axis] = item
        return x.at(tuple(made))

    made = Tensor(path, "Squeeze", x.type, [x.shape[axis] for axis in kept], at)
    made.order = x.in_order
    made.is_constant = x.is_constant
    return [made]


@means("Unsqueeze")
def _unsqueeze(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    values = node.axes("axes", None, 1, x.rank)
    if values is None:
        node.fails("axes are missing")
    assert values is not None
    rank = x.rank + len(values)
    if rank > 2 * 5:
        raise DeadEndError
    axes = axes_of(path, values, rank)
    kept = [axis for axis in range(rank) if axis not in axes]
    shape: list[Size] = [1] * rank
    for size, axis in zip(x.shape, kept, strict=True):
        shape[axis] = size

    def at(index: tuple[Size, ...]) -> Any:
        return x.at(tuple(index[axis] for axis in kept))

    made = Tensor(path, "Unsqueeze", x.type, shape, at)
    made.order = x.in_order
    made.is_constant = x.is_constant
    return [made]


@means("Expand")
def _expand(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    sizes = node.whole("shape", place=1)
    if sizes is None:
        raise UnprovenError("Expand to a shape that is computed")
    for size in sizes:
        if path.decide(size < 0):
            node.fails("a size is negative")
    shape, fits = broadcast_shape(path, [x.shape, sizes])
    for condition in fits:
        node.requires(condition)
    return [_broadcast_to(node, x, shape)]


def _broadcast_to(node: Node, x: Tensor, shape: Sequence[Size]) -> Tensor:
    made = Tensor(
        node.path,
        node.op,
        x.type,
        shape,
        lambda index: x.at(broadcast_index(node.path, index, x.shape, shape)),
    )
    made.is_constant = x.is_constant
    return made


@means("Concat")
def _concat(node: Node) -> list[Tensor]:
    inputs = [node.input(place) for place in range(len(node.inputs))]
    return [joined(node, inputs, _concat_axis(node, inputs))]


def _concat_axis(node: Node, inputs: Sequence[Tensor]) -> int:
    """Return the axis along which values are joined; their other sizes must be equal."""
    path = node.path
    if not inputs:
        node.fails("it has no input")
    rank = inputs[0].rank
    for each in inputs[1:]:
        if each.rank != rank:
            if each.is_input and each._shape is None:
                each.set_rank(rank)
            node.fails("the ranks differ")
    axis = node.axis("axis", rank)
    for each in inputs[1:]:
        for place in range(rank):
            if place != axis and not path.same(each.shape[place], inputs[0].shape[place]):
                node.requires(each.shape[place] == inputs[0].shape[place])
    return axis


def joined(node: Node, inputs: Sequence[Tensor], axis: int) -> Tensor:
    """Return tensors one after another along an axis."""
    path = node.path
    shape = list(inputs[0].shape)
    for each in inputs[1:]:
        shape[axis] = shape[axis] + each.shape[axis]

    def at(index: tuple[Size, ...], start: int = 0) -> Any:
        first = inputs[start]
        if start == len(inputs) - 1:
            return first.at(index)
        size = first.shape[axis]
        rest = (*index[:axis], index[axis] - size, *index[axis + 1 :])
        return choice(
            path, index[axis] < size, lambda: first.at(index), lambda: at(rest, start + 1)
        )

    made = Tensor(path, node.op, inputs[0].type, shape, at)
    made.is_constant = all(each.is_constant for each in inputs)
    return made


def choice(path: Path, condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """Return one of two elements: this path takes one way, unless an index is bound."""
    if not isinstance(condition, bool) and path.bound:
        if path.proves(condition):
            return one()
        if path.proves(path.z3.Not(condition)):
            return other()
        return Choice(condition, one(), other())
    return one() if path.decide(condition) else other()


@means("Split")
def _split(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    axis = node.axis("axis", x.rank)
    sizes = node.whole("split", node.results, place=1)
    whole = x.shape[axis]
    if sizes is None:
        if path.opset_where(lambda opset: opset >= 18):
            count = node.number("num_outputs")
            if count is None or not path.decide(count == node.results):
                node.fails("num_outputs is not the number of results")
            each = divided(whole + node.results - 1, node.results)
            sizes = [each] * (node.results - 1)
            sizes.append(whole - each * (node.results - 1))
            node.requires(sizes[-1] >= 0)
        else:
            each = divided(whole, node.results)
            node.requires(each * node.results == whole)
            sizes = [each] * node.results
    else:
        for size in sizes:
            if path.decide(size < 0):
                node.fails("a size is negative")
        total = sizes[0]
        for size in sizes[1:]:
            total = total + size
        node.requires(total == whole)
    made = []
    start: Size = 0
    for size in sizes:
        shape = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
        made.append(_shifted(node, x, shape, {axis: (start, 1)}))
        start = start + size
    return made


def _shifted(
    node: Node, x: Tensor, shape: Sequence[Size], moved: dict[int, tuple[Size, Size]]
) -> Tensor:
    def at(index: tuple[Size, ...]) -> Any:
        made = [
            moved[axis][0] + item * moved[axis][1] if axis in moved else item
            for axis, item in enumerate(index)
        ]
        return x.at(tuple(made))

    made = Tensor(node.path, node.op, x.type, shape, at)
    made.is_constant = x.is_constant
    return made


@means("Slice")
def _slice(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    axes_given = node.axes("axes", x.rank, 3)
    count = len(axes_given) if axes_given is not None else None
    starts = node.whole("starts", count, place=1)
    if starts is None:
        node.fails("starts are missing")
    assert starts is not None
    ends = node.whole("ends", len(starts), place=2)
    if ends is None:
        node.fails("ends are missing")
    assert ends is not None
    steps = None
    if path.opset_where(lambda opset: opset >= 10):
        steps = node.whole("steps", len(starts), place=4)
    if len(starts) > x.rank:
        node.fails("there are more starts than axes")
    axes = list(range(len(starts))) if axes_given is None else axes_of(path, axes_given, x.rank)
    if len(axes) != len(starts):
        node.fails("axes and starts differ in number")
    shape = list(x.shape)
    moved = {}
    for place, axis in enumerate(axes):
        step = 1 if steps is None else steps[place]
        shape[axis], moved[axis] = _cut(node, starts[place], ends[place], step, x.shape[axis])
    return [_shifted(node, x, shape, moved)]


def _cut(node: Node, start: Size, end: Size, step: Size, size: Size) -> tuple[Size, Any]:
    """Return the size of a slice along an axis, and its first place and step."""
    path = node.path
    either = path.either

    def least(one: Size, other: Size) -> Size:
        return either(one <= other, one, other)

    def most(one: Size, other: Size) -> Size:
        return either(one >= other, one, other)

    if path.decide(step == 0):
        node.fails("a step is 0")
    start = either(start < 0, start + size, start)
    end = either(end < 0, end + size, end)
    if path.decide(step > 0):
        start, end = least(most(start, 0), size), least(most(end, 0), size)
        if path.decide(step == 1):
            return most(end - start, 0), (start, 1)
        count = divided(most(end - start, 0) + step - 1, step)
    else:
        start, end = least(most(start, 0), size - 1), least(most(end, -1), size - 1)
        count = divided(most(start - end, 0) - step - 1, -step)
    return count, (start, step)


@means("Pad")
def _pad(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    axes_given = None
    if path.opset_where(lambda opset: opset >= 18):
        axes_given = node.whole("axes", place=3)
    axes = list(range(x.rank)) if axes_given is None else axes_of(path, axes_given, x.rank)
    name = "paddings" if "paddings" in node.attributes else "pads"
    pads = node.whole(name, 2 * len(axes), place=1)
    if pads is None:
        node.fails("pads are missing")
    assert pads is not None
    shape = list(x.shape)
    before: list[Size] = [0] * x.rank
    for place, axis in enumerate(axes):
        before[axis] = pads[place]
        shape[axis] = shape[axis] + pads[place] + pads[place + len(axes)]
        node.requires(shape[axis] >= 0)
    fill = _fill(node, x)

    def at(index: tuple[Size, ...]) -> Any:
        inner = tuple(item - start for item, start in zip(index, before, strict=True))
        inside: list[Any] = []
        for item, size, start, whole in zip(inner, x.shape, before, shape, strict=True):
            if isinstance(start, int) and start == 0 and path.same(size, whole):
                continue
            inside += [item >= 0, item < size]
        if not inside:
            return x.at(inner)
        return choice(path, all_of(path, inside), lambda: x.at(inner), lambda: fill)

    made = Tensor(path, "Pad", x.type, shape, at)
    made.is_constant = x.is_constant
    return [made]


def all_of(path: Path, conditions: Sequence[Any]) -> Any:
    """Return a condition that all of some hold."""
    left = [each for each in conditions if not (isinstance(each, bool) and each)]
    if any(isinstance(each, bool) for each in left):
        return False
    if not left:
        return True
    return left[0] if len(left) == 1 else path.z3.And(*left)


def _fill(node: Node, x: Tensor) -> Any:
    """Return the element that Pad fills in."""
    mode = node.attributes.get("mode", node.chosen.get("mode"))
    if mode is None:
        if node.side.is_left and node.path.choose(2):
            mode = "any"
            node.chosen["mode"] = mode
        else:
            mode = "constant"
    if mode == "any":
        return Op("padding", (), x.type, (node.attributes.get("value"), id(node)))
    if mode != "constant":
        raise UnprovenError(f"Pad with mode {mode!r} has no meaning here")
    if "value" in node.attributes:
        value = node.attributes["value"]
        return Const(0.0, x.type) if value is None else element_of(value, x.type)
    given = node.optional(2) if not node.opened else None
    if node.opened and node.side.is_left:
        return Op("padding", (), x.type, (id(node),))
    if given is None:
        return Const(0.0, x.type)
    if given.rank > 1:
        raise DeadEndError
    return given.at((0,) * given.rank)


@means("Tile")
def _tile(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    repeats = node.whole("repeats", x.rank, place=1)
    if repeats is None:
        raise UnprovenError("Tile by numbers that are computed")
    shape = []
    for size, count in zip(x.shape, repeats, strict=True):
        if path.decide(count < 0):
            node.fails("a number of repeats is negative")
        shape.append(size if isinstance(count, int) and count == 1 else size * count)

    def at(index: tuple[Size, ...]) -> Any:
        made = [
            item if path.same(size, whole) else quotient_and_rest(path, item, size)[1]
            for item, size, whole in zip(index, x.shape, shape, strict=True)
        ]
        return x.at(tuple(made))

    made = Tensor(path, "Tile", x.type, shape, at)
    made.is_constant = x.is_constant
    return [made]


@means("Gather")
def _gather(node: Node) -> list[Tensor]:
    path, x, places = node.path, node.input(0), node.input(1)
    if x.rank == 0:
        node.fails("it has no axis")
    axis = node.axis("axis", x.rank)
    size = x.shape[axis]
    place_of = whole_number(node, places)
    shape = [*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]]
    least = 0 if path.opset_where(lambda opset: opset < 11) else -size
    node.requires(in_range(node, places, least, size))

    def at(index: tuple[Size, ...]) -> Any:
        place = place_of(tuple(index[axis : axis + places.rank]))
        place = path.either(place < 0, place + size, place)
        return x.at((*index[:axis], place, *index[axis + places.rank :]))

    made = Tensor(path, "Gather", x.type, shape, at)
    made.is_constant = x.is_constant and places.is_constant
    made.source = x  # type: ignore[attr-defined]
    return [made]


def whole_number(node: Node, tensor: Tensor) -> Callable[[tuple[Size, ...]], Size]:
    """Return a function of an index: the whole number of a tensor there."""
    path = node.path
    if tensor.content is None and tensor.is_constant and tensor.is_input:
        is_listed = tensor.rank == 1 and getattr(tensor, "is_listed", False)
        if is_listed:
            path.bounds.add(f"up to {{most}} numbers in {tensor.name}")
        if tensor.rank == 0 or is_listed:
            tensor.numbers()
    return lambda index: number_at(path, tensor, index)


def number_at(path: Path, tensor: Tensor, index: tuple[Size, ...]) -> Size:
    """Return a whole number of a tensor as a term of Z3, with what conditions say of it."""
    if tensor.content is not None:
        if not isinstance(tensor.content, list):
            return tensor.content
        made = tensor.content[-1] if tensor.content else 0
        for place in reversed(range(len(tensor.content) - 1)):
            made = path.either(index[0] == place, tensor.content[place], made)
        return made
    return as_size(path, tensor.at(index))


def as_size(path: Path, element: Any) -> Size:
    """Return an element of whole numbers as a size."""
    from passlib.proof.tensors import In

    if isinstance(element, Extent):
        return element.size
    if isinstance(element, Const):
        return int(element.value)
    if isinstance(element, In):
        z3 = path.z3
        name = f"number:{element.tensor.name}"
        if not element.index:
            made = z3.Int(name)
        else:
            made = z3.Function(name, *[z3.IntSort()] * (len(element.index) + 1))(*element.index)
        for op, other in element.tensor.facts:
            if op != "sign" and not isinstance(other, (Tensor, float)):
                path.solver.add(COMPARED[op](made, other))
        return made
    raise UnprovenError("indices that are computed have no meaning here")


COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def in_range(node: Node, tensor: Tensor, low: Size, end: Size) -> Any:
    """Return the condition that all whole numbers of a tensor lie in a range."""
    path, z3 = node.path, node.path.z3
    if tensor.content is not None:
        numbers = tensor.content if isinstance(tensor.content, list) else [tensor.content]
        return all_of(path, [each for item in numbers for each in (item >= low, item < end)])
    source = getattr(tensor, "source", None)
    if source is not None:
        return in_range(node, source, low, end)
    if tensor.is_input:
        # Either each element lies in it, or one at a place does not.
        low_term, end_term = z3.IntVal(0) + low, z3.IntVal(0) + end
        holds = z3.Function(f"within:{tensor.name}", z3.IntSort(), z3.IntSort(), z3.BoolSort())(
            z3.simplify(low_term), z3.simplify(end_term)
        )
        is_low = any(op == ">=" and path.same(other, low) for op, other in _sized(tensor))
        is_low = is_low or any(
            op == ">=" and path.proves(other >= low) for op, other in _sized(tensor)
        )
        is_high = any(op == "<" and path.proves(other <= end) for op, other in _sized(tensor))
        if is_low and is_high:
            return True
        tensor.ranges = [*getattr(tensor, "ranges", []), (low, end, holds)]  # type: ignore[attr-defined]
        return holds
    raise UnprovenError("indices that are computed have no meaning here")


def _sized(tensor: Tensor) -> list[tuple[str, Any]]:
    return [
        (op, other)
        for op, other in tensor.facts
        if op != "sign" and not isinstance(other, (Tensor, float))
    ]


@means("Shape")
def _shape(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    kind = fixed(path, "int64")
    ends = {"start": 0, "end": x.rank}
    if node.path.opset_where(lambda opset: opset >= 15):
        for name in ends:
            if node.attributes.get(name) is not None:
                raise UnprovenError(f"Shape with {name!r} has no meaning here")
            if name in node.attributes or not node.is_open:
                continue
            if name not in node.chosen:
                node.chosen[name] = (x.rank, _shape_end(node, name, x.rank))
            rank, place = node.chosen[name]
            if place is not None:
                if rank != x.rank:
                    raise UnprovenError(f"Shape with {name!r} of another rank")
                ends[name] = place
    sizes = x.shape[ends["start"] : ends["end"]]
    made = Tensor(path, "Shape", kind, [len(sizes)], lambda index: _item(path, sizes, index))
    made.content = list(sizes)
    return [made]


def _shape_end(node: Node, name: str, rank: int) -> int | None:
    """Choose an end of Shape: absent, or a place counted from the front."""
    if not node.path.choose(2):
        return None
    place = node.path.choose(rank + 1)
    value = node.path.number(name, None)
    node.path.assume(_cut_place(node.path, value, rank) == place)
    return place


def _cut_place(path: Path, value: Size, rank: int) -> Size:
    """Return where an end of Shape lies, counted from the front and cut to the rank."""
    value = path.either(value < 0, value + rank, value)
    value = path.either(value < 0, 0, value)
    return path.either(value > rank, rank, value)


def _item(path: Path, items: Sequence[Size], index: tuple[Size, ...]) -> Any:
    if isinstance(index[0], int):
        return Extent(items[index[0]])
    if not items:
        raise DeadEndError
    made = items[-1]
    for place in reversed(range(len(items) - 1)):
        made = path.either(index[0] == place, items[place], made)
    return Extent(made)


@means("Size")
def _size(node: Node) -> list[Tensor]:
    total = product(node.input(0).shape)
    made = Tensor(node.path, "Size", fixed(node.path, "int64"), [], lambda index: Extent(total))
    made.content = total
    return [made]


# ---- reductions ----


@means(*_REDUCTIONS)
def _reduce(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    moved = node.is_since(13 if node.op == "ReduceSum" else 18)
    values = node.axes("axes", x.rank, 1 if moved else None)
    keep = node.number("keepdims", 0, 2)
    axes = list(range(x.rank))
    if moved and not values and node.number("noop_with_empty_axes", 0, 2):
        if all(name in _ALONE for name in node.family or (node.op,)):
            return [alias(x)]
        # ONNX does not say whether each element becomes, for example, its absolute value.
        return [elementwise(node, f"{node.name}:one", [x], x.type)]
    if values:
        axes = sorted(axes_of(path, values, x.rank))
    return [reduced(node, node.name, x, axes, bool(keep), x.type)]


def reduced(
    node: Node, name: str, x: Tensor, axes: Sequence[int], keep: bool, kind: Type,
    told: tuple[Any, ...] = (),
) -> Tensor:  # fmt: skip
    """Return a reduction of axes."""
    kept = [axis for axis in range(x.rank) if axis not in axes]
    shape = [
        1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes
    ]
    sizes = tuple(x.shape[axis] for axis in axes)

    def at(index: tuple[Size, ...]) -> Any:
        outer = [index[axis] for axis in kept] if keep else index

        def body(*inner: Size) -> Any:
            whole: list[Size] = [0] * x.rank
            for axis, item in zip(kept, outer, strict=True):
                whole[axis] = item
            for axis, item in zip(axes, inner, strict=True):
                whole[axis] = item
            return x.at(tuple(whole))

        return Reduce(name, sizes, body, kind, told)

    return Tensor(node.path, node.op, kind, shape, at)


@means("ArgMax", "ArgMin")
def _place(node: Node) -> list[Tensor]:
    x = node.input(0)
    if x.rank == 0:
        raise DeadEndError
    axis = node.axis("axis", x.rank)
    keep = node.number("keepdims", 0, 2)
    last = node.number("select_last_index", 0, 2) if node.path.opset_where(lambda v: v >= 12) else 0
    node.requires(x.shape[axis] > 0)
    return [reduced(node, node.op, x, [axis], bool(keep), fixed(node.path, "int64"), (last,))]


@means("Softmax", "LogSoftmax")
def _softmax(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    if x.rank == 0:
        raise DeadEndError
    axis = node.axis("axis", x.rank)
    axes = [axis]
    if path.opset_where(lambda opset: opset < 13):
        axes = list(range(axis, x.rank))
    return [_softmax_of(node, node.op, x, axes)]


def _softmax_of(node: Node, name: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    sums = reduced(node, "Sum", _mapped(node, "Exp", x), axes, True, x.type)
    greatest = reduced(node, "ReduceMax", x, axes, True, x.type)

    def at(index: tuple[Size, ...]) -> Any:
        outer = tuple(0 if place in axes else item for place, item in enumerate(index))
        return Op(name, (x.at(index), sums.at(outer), greatest.at(outer)), x.type)

    return Tensor(node.path, name, x.type, x.shape, at)


def _mapped(node: Node, name: str, x: Tensor) -> Tensor:
    return Tensor(node.path, name, x.type, x.shape, lambda index: Op(name, (x.at(index),), x.type))


# ---- contractions ----


@means("MatMul")
def _matmul(node: Node) -> list[Tensor]:
    path, a, b = node.path, node.input(0), node.input(1)
    if a.rank == 0 or b.rank == 0:
        raise DeadEndError
    inner = a.shape[-1]
    second = b.shape[-2] if b.rank > 1 else b.shape[0]
    if not path.same(inner, second):
        node.requires(inner == second)
    batch, fits = broadcast_shape(path, [a.shape[:-2], b.shape[:-2]])
    for condition in fits:
        node.requires(condition)
    shape = [*batch, *([a.shape[-2]] if a.rank > 1 else []), *([b.shape[-1]] if b.rank > 1 else [])]

    def at(index: tuple[Size, ...]) -> Any:
        outer = index[: len(batch)]
        row = (index[len(batch)],) if a.rank > 1 else ()
        column = (index[-1],) if b.rank > 1 else ()
        first = broadcast_index(path, outer, a.shape[:-2], batch)
        other = broadcast_index(path, outer, b.shape[:-2], batch)

        def body(k: Size) -> Any:
            args = (a.at((*first, *row, k)), b.at((*other, k, *column)))
            return Op("Mul", args, a.type)

        return Reduce("Sum", (inner,), body, a.type, ("MatMul",))

    made = Tensor(path, "MatMul", a.type, shape, at)
    made.is_constant = a.is_constant and b.is_constant
    return [made]


@means("Gemm")
def _gemm(node: Node) -> list[Tensor]:
    path, a, b = node.path, node.input(0), node.input(1)
    for each in (a, b):
        if each.rank != 2:
            node.fails("its matrices have rank 2")
    c = node.optional(2)
    if c is None and path.opset_where(lambda opset: opset < 11):
        node.fails("it has three inputs before operator set 11")
    turned = [path.decide(node.number(name) != 0) for name in ("transA", "transB")]
    alpha, beta = node.real("alpha"), node.real("beta")
    rows, inner = reversed(a.shape) if turned[0] else a.shape
    second, columns = reversed(b.shape) if turned[1] else b.shape
    if not path.same(inner, second):
        node.requires(inner == second)
    shape = [rows, columns]
    if c is not None:
        if c.rank > 2:
            node.fails("its third matrix has rank 2 at most")
        if path.opset_where(lambda opset: opset < 7):
            raise UnprovenError("Gemm before operator set 7 has no meaning here")
        for place, size in enumerate(c.shape, 2 - c.rank):
            if not path.same(size, shape[place]):
                node.requires(_or(path, size == 1, size == shape[place]))

    def at(index: tuple[Size, ...]) -> Any:
        row, column = index

        def body(k: Size) -> Any:
            first = a.at((k, row) if turned[0] else (row, k))
            other = b.at((column, k) if turned[1] else (k, column))
            return Op("Mul", (first, other), a.type)

        total: Any = Reduce("Sum", (inner,), body, a.type, ("Gemm",))
        total = Op("Mul", (element_of(alpha, a.type), total), a.type)
        if c is None:
            return total
        summand = c.at(broadcast_index(path, index, c.shape, shape))
        scaled = Op("Mul", (element_of(beta, a.type), summand), a.type)
        return Op("Add", (total, scaled), a.type)

    return [Tensor(path, "Gemm", a.type, shape, at)]


def _or(path: Path, one: Any, other: Any) -> Any:
    if isinstance(one, bool):
        return True if one else other
    if isinstance(other, bool):
        return True if other else one
    return path.z3.Or(one, other)


# ---- convolutions and pooling ----


def _lasting(node: Node, name: str, count: int, default: Size) -> list[Size]:
    """Return numbers for each axis of a window."""
    found = _listed(node, name, count)
    if found is None:
        return [default] * count
    return found


def _listed(node: Node, name: str, count: int) -> list[Size] | None:
    """Return numbers of an attribute whose default is equal to some numbers."""
    if node.is_any(name):
        node.chosen[name] = [node.path.number(name, None) for _ in range(count)]
    return node.whole(name, count)


def _pads(node: Node, count: int) -> list[Size]:
    mode = node.text("auto_pad") if "auto_pad" in node.attributes else _any_padding(node)
    found = _listed(node, "pads", 2 * count)
    if mode == "VALID":
        return [0] * (2 * count)
    if mode not in ("NOTSET", None):
        raise UnprovenError(f"{node.op} with auto_pad {mode!r} has no meaning here")
    made = [0] * (2 * count) if found is None else found
    for pad in made:
        if node.path.decide(pad < 0):
            node.fails("a pad is negative")
    return made


def _any_padding(node: Node) -> Any:
    """Return the mode of padding: one that nobody states is a function of all sizes."""
    if "auto_pad" not in node.chosen:
        node.chosen["auto_pad"] = (
            "NOTSET" if not node.is_open or not node.path.choose(2) else "SAME"
        )
    mode = node.chosen["auto_pad"]
    return "ANY" if mode == "SAME" else mode


@dataclass(frozen=True)
class _Window:
    """What convolutions are told of their windows: numbers for each axis of space."""

    group: Size
    strides: list[Size]
    steps: list[Size]
    more: list[Size]
    """What a transposed convolution adds to its sizes."""
    pads: list[Size]


def _window(node: Node) -> _Window:
    """Check the ranks of a convolution, and return its attributes."""
    path, x, w = node.path, node.input(0), node.input(1)
    if x.rank < 3:
        node.fails("it has axes of space")
    if w.rank != x.rank:
        if w.is_input and not w.has_rank:
            w.set_rank(x.rank)
        node.fails("weight and input differ in rank")
    space = x.rank - 2
    kernel = _listed(node, "kernel_shape", space)
    if kernel is not None:
        for mine, its in zip(kernel, w.shape[2:], strict=True):
            _demanded(node, mine, its)
    strides, steps = (_lasting(node, name, space, 1) for name in ("strides", "dilations"))
    for each in (*strides, *steps):
        if path.decide(each <= 0):
            node.fails("a stride is not positive")
    more: list[Size] = []
    if node.op == "ConvTranspose":
        more = _lasting(node, "output_padding", space, 0)
    group = node.number("group")
    if path.decide(group <= 0):
        node.fails("the number of groups is not positive")
    if path.decide(group == 1):
        group = 1
    mode = node.attributes.get("auto_pad", node.chosen.get("auto_pad"))
    if mode is None and "auto_pad" not in node.attributes:
        _any_padding(node)
    is_any = node.chosen.get("auto_pad") == "SAME"
    if node.op == "ConvTranspose" and not is_any:
        # The sizes of the result may be stated instead of pads.
        if "output_shape" in node.attributes or "output_shape" in node.bound:
            raise UnprovenError("output_shape has no meaning here")
        if "output_shape" not in node.chosen and node.is_open:
            node.chosen["output_shape"] = path.choose(2) == 1
        is_any = node.chosen.get("output_shape", False)
    if is_any:
        pads = _same_pads(node, x.shape[2:], w.shape[2:], strides, steps, *([more] if more else []))
    else:
        pads = _pads(node, space)
    return _Window(group, strides, steps, more, pads)


def _bias(node: Node, channels: Size) -> Tensor | None:
    b = node.optional(2)
    if b is not None:
        if b.rank != 1:
            node.fails("the bias is a vector")
        _demanded(node, b.shape[0], channels)
    return b


@means("Conv")
def _conv(node: Node) -> list[Tensor]:
    path, x, w = node.path, node.input(0), node.input(1)
    z3 = path.z3
    window = _window(node)
    b = _bias(node, w.shape[0])
    group, strides, steps, pads = window.group, window.strides, window.steps, window.pads
    space = x.rank - 2
    channels = w.shape[1]
    node.requires(x.shape[1] == channels * group)
    per_group: Size = w.shape[0]
    if not (isinstance(group, int) and group == 1):
        node.requires(w.shape[0] % group == 0)
        per_group = divided(w.shape[0], group)
    shape: list[Size] = [x.shape[0], w.shape[0]]
    for axis in range(space):
        reach = (w.shape[axis + 2] - 1) * steps[axis] + 1
        whole = x.shape[axis + 2] + pads[axis] + pads[axis + space]
        node.requires(whole >= reach)
        shape.append(_places(whole - reach, strides[axis]))

    def at(index: tuple[Size, ...]) -> Any:
        batch, out = index[:2]
        first: Size = 0
        if not (isinstance(group, int) and group == 1):
            first = divided(out, per_group) * channels
            # Follows from 0 <= out < w.shape[0] by products, which the solver may not find.
            whole = z3.And(out >= 0, out < w.shape[0])
            path.solver.add(z3.Implies(whole, z3.And(first >= 0, first <= (group - 1) * channels)))

        def body(*inner: Size) -> Any:
            place, inside = _windowed(path, index[2:], inner[1:], strides, steps, pads, x.shape[2:])

            def product_at() -> Any:
                args = (x.at((batch, first + inner[0], *place)), w.at((out, *inner)))
                return Op("Mul", args, x.type)

            if inside is True:
                return product_at()
            outside = Const(0.0, x.type)
            return choice(path, inside, product_at, lambda: outside)

        total: Any = Reduce("Sum", (channels, *w.shape[2:]), body, x.type, ("Conv",))
        if b is not None:
            total = Op("Add", (total, b.at((out,))), x.type)
        return total

    return [Tensor(path, "Conv", x.type, shape, at)]


@means("ConvTranspose")
def _conv_transpose(node: Node) -> list[Tensor]:
    """Each element of the input adds a window to the result.

    A mode of padding, or `output_shape`, makes the pads some function of the sizes.
    """
    path, x, w = node.path, node.input(0), node.input(1)
    window = _window(node)
    group, strides, steps, pads = window.group, window.strides, window.steps, window.pads
    space = x.rank - 2
    channels = w.shape[1] * group
    b = _bias(node, channels)
    node.requires(x.shape[1] == w.shape[0])
    per_group: Size = w.shape[0]
    if not (isinstance(group, int) and group == 1):
        node.requires(w.shape[0] % group == 0)
        per_group = divided(w.shape[0], group)
    shape: list[Size] = [x.shape[0], channels]
    for axis in range(space):
        reach = (w.shape[axis + 2] - 1) * steps[axis] + 1
        whole = strides[axis] * (x.shape[axis + 2] - 1) + window.more[axis] + reach
        shape.append(whole - pads[axis] - pads[axis + space])
        node.requires(shape[-1] >= 0)

    def at(index: tuple[Size, ...]) -> Any:
        batch, out = index[:2]
        first: Size = 0
        column = out
        if not (isinstance(group, int) and group == 1):
            first = divided(out, w.shape[1]) * per_group
            column = out % w.shape[1]

        def body(*inner: Size) -> Any:
            place: list[Size] = []
            inside = []
            for axis, size in enumerate(x.shape[2:]):
                item = index[axis + 2] + pads[axis] - inner[axis + 1] * steps[axis]
                inside.append(item >= 0)
                if not _is_one(strides[axis]):
                    inside.append(item % strides[axis] == 0)
                    item = divided(item, strides[axis])
                inside.append(item < size)
                place.append(item)

            def product_at() -> Any:
                channel = first + inner[0]
                args = (x.at((batch, channel, *place)), w.at((channel, column, *inner[1:])))
                return Op("Mul", args, x.type)

            outside = Const(0.0, x.type)
            return choice(path, all_of(path, inside), product_at, lambda: outside)

        total: Any = Reduce("Sum", (per_group, *w.shape[2:]), body, x.type, ("Conv",))
        if b is not None:
            total = Op("Add", (total, b.at((out,))), x.type)
        return total

    return [Tensor(path, "ConvTranspose", x.type, shape, at)]


def _demanded(node: Node, one: Size, other: Size) -> None:
    """Leave models in which ONNX forbids the size of a weight."""
    if not node.path.same(one, other):
        _forbidden_unless(node, one == other)


def _forbidden_unless(node: Node, condition: Any) -> None:
    """Leave models that ONNX forbids."""
    if node.side.is_left:
        node.path.assume(condition)
    else:
        node.requires(condition)


def _places(rest: Size, stride: Size) -> Size:
    return rest + 1 if _is_one(stride) else divided(rest, stride) + 1


def _windowed(
    path: Path, out: Sequence[Size], inner: Sequence[Size], strides: Sequence[Size],
    steps: Sequence[Size], pads: Sequence[Size], sizes: Sequence[Size], *, may_end: bool = False,
) -> tuple[list[Size], Any]:  # fmt: skip
    """Return the place of an element of a window, and whether it lies in the input.

    It may end behind the input and its pads.
    """
    place, inside = [], []
    for axis, size in enumerate(sizes):
        first = out[axis] if _is_one(strides[axis]) else out[axis] * strides[axis]
        step = inner[axis] if _is_one(steps[axis]) else inner[axis] * steps[axis]
        item = first + step
        if not (isinstance(pads[axis], int) and pads[axis] == 0):
            item = item - pads[axis]
            inside.append(item >= 0)
        pad = pads[axis + len(sizes)]
        if may_end or not (isinstance(pad, int) and pad == 0):
            inside.append(item < size)
        place.append(item)
    return place, all_of(path, inside)


def _is_one(value: Size) -> bool:
    return isinstance(value, int) and value == 1


def _same_pads(node: Node, *numbers: Sequence[Size]) -> list[Size]:
    """Return pads by a mode: some function of the sizes of the input and the window, and more.

    Two operators may have two modes, so that it is a function of the operator, too.
    """
    path, z3 = node.path, node.path.z3
    if "any padding" not in node.chosen:
        node.chosen["any padding"] = path.number("mode")
    pads = []
    for side in ("first", "last"):
        for axis in range(len(numbers[0])):
            sizes = [node.chosen["any padding"], *(each[axis] for each in numbers)]
            function = z3.Function(f"pad:{side}", *[z3.IntSort()] * (len(sizes) + 1))
            pads.append(function(*(z3.IntVal(0) + each for each in sizes)))
    return pads


@means("BatchNormalization")
def _batch_normalization(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    if node.results != 1:
        raise UnprovenError("BatchNormalization in training has no meaning here")
    if path.opset_where(lambda opset: opset >= 14):
        training = node.number("training_mode", 0, 2)
    elif path.opset_where(lambda opset: opset < 7):
        is_test = node.number("is_test")
        training = is_test is None or path.decide(is_test == 0)
    else:
        training = 0
    if training:
        return [_trained(node, x)]
    if path.opset_where(lambda opset: opset < 9) and not node.number("spatial", 0, 2):
        raise UnprovenError("BatchNormalization of each place has no meaning here")
    if x.rank < 2:
        node.fails("it has an axis of channels")
    given = [node.input(place) for place in range(1, 5)]
    for each in given:
        if each.rank != 1:
            node.fails("scale and bias are vectors")
        _demanded(node, each.shape[0], x.shape[1])
    epsilon = element_of(node.real("epsilon"), x.type)

    def at(index: tuple[Size, ...]) -> Any:
        scale, bias, mean, variance = (each.at((index[1],)) for each in given)
        root = Op("Sqrt", (Op("Add", (variance, epsilon), x.type),), x.type)
        centred = Op("Sub", (x.at(index), mean), x.type)
        factor = Op("Div", (scale, root), x.type)
        return Op("Add", (Op("Mul", (centred, factor), x.type), bias), x.type)

    return [Tensor(path, "BatchNormalization", x.type, x.shape, at)]


def _require_real(node: Node) -> None:
    """Refuse a proof of each bit: how it rounds is no matter of the definition."""
    if node.path.exact:
        raise UnprovenError(f"{node.op} rounds as its kernel does")


def _normalized(node: Node, x: Tensor, axes: Sequence[int]) -> Tensor:
    """Return the difference to the mean, through the deviation."""
    _require_real(node)
    kind = x.type
    epsilon = filled(node.path, node.real("epsilon"), kind)
    mean = reduced(node, "ReduceMean", x, axes, True, kind)
    centred = elementwise(node, "Sub", [x, mean], kind)
    squares = elementwise(node, "Mul", [centred, centred], kind)
    variance = reduced(node, "ReduceMean", squares, axes, True, kind)
    root = elementwise(node, "Sqrt", [elementwise(node, "Add", [variance, epsilon], kind)], kind)
    return elementwise(node, "Div", [centred, root], kind)


@means("InstanceNormalization", "GroupNormalization")
def _normalization_of_channels(node: Node) -> list[Tensor]:
    x = node.input(0)
    if x.rank < 3:
        node.fails("it has axes of space")
    if node.op == "InstanceNormalization":
        normal = _normalized(node, x, range(2, x.rank))
    else:
        if not node.is_since(21):
            raise UnprovenError("GroupNormalization before operator set 21 has no meaning here")
        groups = node.number("num_groups")
        if node.path.decide(groups <= 0):
            node.fails("the number of groups is not positive")
        channels = _multiple(node, x, 1, groups)
        # ONNX defines it by a Reshape to three sizes, of which the last is -1, and one back.
        for size in (x.shape[0], *x.shape[3:]):
            _forbidden_unless(node, size != 0)
        parts = [x.shape[0], groups, product([channels, *x.shape[2:]])]
        normal = reordered(node, _normalized(node, reordered(node, x, parts), [2]), x.shape)
    given = [node.input(place) for place in (1, 2)]
    for each in given:
        if each.rank != 1:
            node.fails("scale and bias are vectors")
        _demanded(node, each.shape[0], x.shape[1])

    def at(index: tuple[Size, ...]) -> Any:
        scale, bias = (each.at((index[1],)) for each in given)
        return Op("Add", (Op("Mul", (normal.at(index), scale), x.type), bias), x.type)

    return [Tensor(node.path, node.op, x.type, x.shape, at)]


@means("LayerNormalization", "RMSNormalization")
def _normalization(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    _require_real(node)
    if x.rank == 0:
        raise DeadEndError
    axis = node.axis("axis", x.rank)
    axes = list(range(axis, x.rank))
    epsilon = element_of(node.real("epsilon"), x.type)
    kind = x.type
    given = [node.input(1)]
    if node.op == "LayerNormalization" and node.optional(2) is not None:
        given.append(node.input(2))
    for each in given:
        if each.rank > x.rank:
            node.fails("scale and bias have no more axes than the value")
        shape, fits = broadcast_shape(path, [each.shape, x.shape])
        for condition in fits:
            node.requires(condition)
        for mine, its in zip(shape, x.shape, strict=True):
            if not path.same(mine, its):
                node.requires(mine == its)
    centred = x
    if node.op == "LayerNormalization":
        mean = reduced(node, "ReduceMean", x, axes, True, kind)
        centred = elementwise(node, "Sub", [x, mean], kind)
    squares = elementwise(node, "Mul", [centred, centred], kind)
    variance = reduced(node, "ReduceMean", squares, axes, True, kind)

    def at(index: tuple[Size, ...]) -> Any:
        outer = tuple(0 if place in axes else item for place, item in enumerate(index))
        root = Op("Sqrt", (Op("Add", (variance.at(outer), epsilon), kind),), kind)
        made: Any = Op("Div", (centred.at(index), root), kind)
        for each, op in zip(given, ("Mul", "Add"), strict=False):
            other = each.at(broadcast_index(path, index, each.shape, x.shape))
            made = Op(op, (made, other), kind)
        return made

    return [Tensor(path, node.op, kind, x.shape, at)]


@means("Attention")
def _attention(node: Node) -> list[Tensor]:
    """Softmax of scores, times values, as operator set 23 defines it.

    What no rule makes of other operators is some function of what it depends on: causal masks, a
    bound of the scores, and the fourth result.
    """
    path = node.path
    q, k, v = (node.input(place) for place in range(3))
    mask, past, gone = (node.optional(place) for place in range(3, 6))
    kind = q.type
    if q.rank not in (3, 4) or k.rank != q.rank or v.rank != q.rank:
        node.fails("its values have rank 3 or 4")
    queries = _heads(node, q, "q_num_heads")
    keys, values = (_heads(node, each, "kv_num_heads") for each in (k, v))
    if (past is None) != (gone is None):
        node.fails("past keys and values come together")
    if past is not None and gone is not None:
        keys, values = _after(node, past, keys), _after(node, gone, values)
    batch, heads, rows, size = queries.shape
    columns = keys.shape[2]
    for each in (keys, values):
        for mine, its in zip(each.shape[:3], (batch, keys.shape[1], columns), strict=True):
            if not path.same(mine, its):
                node.requires(mine == its)
    if not path.same(keys.shape[3], size):
        node.requires(keys.shape[3] == size)
    shares = None
    if not path.same(heads, keys.shape[1]):
        node.requires(keys.shape[1] > 0)
        node.requires(heads % keys.shape[1] == 0)
        shares = divided(heads, keys.shape[1])
    shape = [batch, heads, rows, columns]
    is_truth = False
    if mask is not None:
        is_truth = path.type_in(mask.type, {"bool"})
        if mask.rank > 4:
            node.fails("its mask has rank 4 at most")
        for mine, its in zip(mask.shape, shape[4 - mask.rank :], strict=True):
            if not path.same(mine, its):
                node.requires(_or(path, mine == 1, mine == its))
    factor = node.real("scale")
    if factor is None:
        root = Op("Sqrt", (Extent(size),), kind)
        scale: Any = Op("Reciprocal", (root,), kind)
    else:
        scale = element_of(factor, kind)
    is_causal = node.number("is_causal", 0, 2)
    softcap = known_number(node.real("softcap"))
    is_capped = not (isinstance(softcap, (int, float)) and softcap == 0)

    def share(head: Size) -> Size:
        if shares is None or path.proves(keys.shape[1] == 1):
            return head if shares is None else 0
        return divided(head, shares)

    def plain(index: tuple[Size, ...]) -> Any:
        outer, head, row, column = index

        def body(item: Size) -> Any:
            one = queries.at((outer, head, row, item))
            return Op("Mul", (one, keys.at((outer, share(head), column, item))), kind)

        return Op("Mul", (Reduce("Sum", (size,), body, kind, ("MatMul",)), scale), kind)

    def score(index: tuple[Size, ...]) -> Any:
        made = plain(index)
        other = None
        if mask is not None:
            other = mask.at(broadcast_index(path, index, mask.shape, shape))
        if is_capped:
            made = Op(
                "softcap", (made, element_of(softcap, kind), *([other] if mask else [])), kind
            )
        elif other is not None and is_truth:
            made = Op("Where", (other, made, Const(-math.inf, kind)), kind)
        elif other is not None:
            made = Op("Add", (made, other), kind)
        if is_causal:
            made = Op("causal", (made, Extent(index[2]), Extent(index[3])), kind)
        return made

    scores = Tensor(path, "scores", kind, shape, score)
    weights = _softmax_of(node, "Softmax", scores, [3])

    def result(index: tuple[Size, ...]) -> Any:
        if q.rank == 4:
            outer, head, row, item = index
        else:
            outer, row = index[:2]
            head, item = quotient_and_rest(path, index[2], values.shape[3])

        def body(column: Size) -> Any:
            one = weights.at((outer, head, row, column))
            return Op("Mul", (one, values.at((outer, share(head), column, item))), kind)

        return Reduce("Sum", (columns,), body, kind, ("MatMul",))

    mode = node.number("qk_matmul_output_mode")

    def part(index: tuple[Size, ...]) -> Any:
        told = (plain(index), score(index), weights.at(index), Extent(mode))
        return Op("scores of Attention", told, kind)

    width = values.shape[3]
    whole = [batch, heads, rows, width] if q.rank == 4 else [batch, rows, heads * width]
    made = [Tensor(path, "Attention", kind, whole, result), keys, values]
    return [*made, Tensor(path, "scores", kind, shape, part)][: node.results]


def _heads(node: Node, x: Tensor, name: str) -> Tensor:
    """Return rows as heads: an axis of heads comes before that of places."""
    path = node.path
    if x.rank == 4:
        return alias(x)
    count = node.number(name)
    if count is None or path.decide(count <= 0):
        node.fails(f"{name} is missing")
    size = _share(node, x.shape[2], count)
    shape = [x.shape[0], count, x.shape[1], size]
    return Tensor(
        path, "heads", x.type, shape,
        lambda index: x.at((index[0], index[2], index[1] * size + index[3])),
    )  # fmt: skip


def _after(node: Node, past: Tensor, x: Tensor) -> Tensor:
    """Return what was kept before, and what comes after it along the places."""
    path = node.path
    if past.rank != 4:
        node.fails("past keys and values have rank 4")
    for axis in (0, 1, 3):
        if not path.same(past.shape[axis], x.shape[axis]):
            node.requires(past.shape[axis] == x.shape[axis])
    before = past.shape[2]

    def at(index: tuple[Size, ...]) -> Any:
        place = index[2]
        return choice(
            path, place < before, lambda: past.at(index),
            lambda: x.at((*index[:2], place - before, index[3])),
        )  # fmt: skip

    return Tensor(path, "present", x.type, [*x.shape[:2], before + x.shape[2], x.shape[3]], at)


@means("RotaryEmbedding")
def _rotary_embedding(node: Node) -> list[Tensor]:
    """Pairs of elements, turned by the angles of their place, as operator set 23 defines it."""
    path, x = node.path, node.input(0)
    cosines, sines = node.input(1), node.input(2)
    if node.optional(3) is not None:
        raise UnprovenError("places in tables of RotaryEmbedding have no meaning here")
    if x.rank not in (3, 4) or cosines.rank != 3 or sines.rank != 3:
        node.fails("it has a value of rank 3 or 4, and cosines and sines of rank 3")
    if x.rank == 4:
        heads, places, size = x.shape[1:]
    else:
        heads, places = node.number("num_heads"), x.shape[1]
        if path.decide(heads <= 0):
            node.fails("num_heads is missing")
        size = _share(node, x.shape[2], heads)
    turned = node.number("rotary_embedding_dim")
    if path.decide(turned == 0):
        turned = size
    half = cosines.shape[2]
    node.requires(turned == 2 * half)
    node.requires(turned <= size)
    for each in (cosines, sines):
        for mine, its in zip(each.shape, (x.shape[0], places, half), strict=True):
            if not path.same(mine, its):
                node.requires(mine == its)
    interleaved = node.number("interleaved", 0, 2)

    def at(index: tuple[Size, ...]) -> Any:
        if x.rank == 4:
            batch, head, place, item = index
        else:
            batch, place = index[:2]
            head, item = quotient_and_rest(path, index[2], size)

        def value(which: Size) -> Any:
            if x.rank == 4:
                return x.at((batch, head, place, which))
            return x.at((batch, place, head * size + which))

        def pair(low: Size, high: Size, angle: Size, is_high: bool) -> Any:
            cosine, sine = (each.at((batch, place, angle)) for each in (cosines, sines))
            factors = [(low, sine), (high, cosine)] if is_high else [(low, cosine), (high, sine)]
            one, other = (Op("Mul", (value(which), by), x.type) for which, by in factors)
            return Op("Add" if is_high else "Sub", (one, other), x.type)

        def pairs() -> Any:
            if interleaved:
                angle, rest = quotient_and_rest(path, item, 2)
                low = 2 * angle
                return choice(
                    path, rest == 0, lambda: pair(low, low + 1, angle, False),
                    lambda: pair(low, low + 1, angle, True),
                )  # fmt: skip
            return choice(
                path, item < half, lambda: pair(item, item + half, item, False),
                lambda: pair(item - half, item, item - half, True),
            )  # fmt: skip

        return choice(path, item < turned, pairs, lambda: value(item))

    return [Tensor(path, node.op, x.type, x.shape, at)]


@means("GlobalMaxPool", "GlobalAveragePool")
def _global_pool(node: Node) -> list[Tensor]:
    x = node.input(0)
    if x.rank < 3:
        node.fails("it has axes of space")
    name = "ReduceMax" if node.op == "GlobalMaxPool" else "ReduceMean"
    return [reduced(node, name, x, range(2, x.rank), True, x.type)]


def _unknown(node: Node, x: Tensor, name: str) -> Tensor:
    """Return a result of pooling whose sizes and elements have no meaning here."""
    at = _without_meaning(node, f"{node.op} with {name} has no meaning here")
    sizes = [node.path.number("size") for _ in x.shape[2:]]
    return Tensor(node.path, node.op, x.type, [*x.shape[:2], *sizes], at)


@means("MaxPool", "AveragePool")
def _pool(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    if x.rank < 3:
        node.fails("it has axes of space")
    if node.results != 1:
        raise UnprovenError("places of MaxPool have no meaning here")
    space = x.rank - 2
    kernel = node.whole("kernel_shape", space)
    if kernel is None:
        node.fails("kernel_shape is missing")
    assert kernel is not None
    if node.side.is_left and "auto_pad" not in node.attributes:
        _any_padding(node)
    strides, steps = (_lasting(node, name, space, 1) for name in ("strides", "dilations"))
    for each in (*strides, *steps, *kernel):
        if path.decide(each <= 0):
            node.fails("a stride is not positive")
    all_one = all(path.decide(each == 1) for each in kernel)
    if node.chosen.get("auto_pad") == "SAME":
        if not all_one and node.op == "AveragePool":
            return [_unknown(node, x, "auto_pad")]
        pads: list[Size] = [0] * (2 * space)
        if not all_one:
            pads = _same_pads(node, x.shape[2:], kernel, strides, steps)
    else:
        pads = _pads(node, space)
        for place, pad in enumerate(pads):
            if path.decide(pad >= kernel[place % space]):
                node.fails("a pad is as large as the window")
    rounds_up = node.number("ceil_mode", 0, 2) if path.opset_where(lambda v: v >= 10) else 0
    if rounds_up and not all_one and node.op == "AveragePool":
        return [_unknown(node, x, "ceil_mode")]
    counts_all = 0
    if node.op == "AveragePool" and path.opset_where(lambda opset: opset >= 7):
        counts_all = node.number("count_include_pad", 0, 2)
    shape: list[Size] = list(x.shape[:2])
    for axis in range(space):
        window = (kernel[axis] - 1) * steps[axis] + 1
        whole = x.shape[axis + 2] + pads[axis] + pads[axis + space]
        if not all_one:
            # The last window may be larger than what is left, also where it is the first.
            node.requires(whole > window - strides[axis] if rounds_up else whole >= window)
        if rounds_up and not path.decide(strides[axis] == 1):
            count = divided(whole - window + strides[axis] - 1, strides[axis]) + 1
            # A window that begins behind the value is none.
            ends = x.shape[axis + 2] + pads[axis]
            shape.append(path.either((count - 1) * strides[axis] >= ends, count - 1, count))
        else:
            shape.append(_places(whole - window, strides[axis]))
    kind = x.type
    name = "ReduceMax" if node.op == "MaxPool" else "Sum"

    def at(index: tuple[Size, ...]) -> Any:
        def body(*inner: Size) -> Any:
            sizes = x.shape[2:]
            place, inside = _windowed(
                path, index[2:], inner, strides, steps, pads, sizes, may_end=bool(rounds_up)
            )
            if inside is True:
                return x.at((*index[:2], *place))
            outside: Any = Const(0.0, kind) if name == "Sum" else Op("lowest", (), kind)
            return Choice(inside, x.at((*index[:2], *place)), outside)

        total: Any = Reduce(name, tuple(kernel), body, kind)
        if name == "Sum":
            if not counts_all and not all(path.same(pad, 0) for pad in pads):
                raise UnprovenError("AveragePool that counts inner elements has no meaning here")
            total = Op("Div", (total, Extent(product(kernel))), kind)
        return total

    return [Tensor(path, node.op, kind, shape, at)]


@means("Resize")
def _resize(node: Node) -> list[Tensor]:
    """Nearest elements where each dimension stays; else the result has no meaning here."""
    path, x = node.path, node.input(0)
    if not node.is_since(11) or node.attributes.get("axes") is not None:
        raise UnprovenError("Resize of some axes, or before operator set 11, has no meaning here")
    mode = _among(node, "mode", ("nearest", "linear", "cubic"))
    systems = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "other")
    system = _among(node, "coordinate_transformation_mode", systems)
    scales, sizes = [*node.inputs, None, None, None][2:4]
    shape = [path.number("size") for _ in x.shape]
    if sizes is not None and isinstance(sizes.content, list) and len(sizes.content) == x.rank:
        shape = list(sizes.content)

    def at(index: tuple[Size, ...]) -> Any:
        is_one = scales is None or any(op == "=" and other == 1 for op, other in _sized(scales))
        stays = is_one and all(map(path.same, shape, x.shape))
        if mode != "nearest" or system not in systems[:4] or not stays:
            raise UnprovenError("Resize to other dimensions has no meaning here")
        return x.at(index)

    return [Tensor(path, "Resize", x.type, shape, at)]


# ---- quantization ----


def _scale_at(node: Node, x: Tensor, given: Tensor) -> Callable[[tuple[Size, ...]], Any]:
    """Return a scale or zero point as a function of the index: of all elements, or of an axis."""
    path = node.path
    if given.rank == 0:
        return lambda index: given.at(())
    if path.opset_where(lambda opset: opset < 13):
        node.fails("before operator set 13, scales are numbers")
    has_blocks = path.opset_where(lambda opset: opset >= 21)
    if given.rank > 1 or (has_blocks and node.number("block_size", 0, 2)):
        if "block_size" in node.attributes and node.attributes["block_size"] == 0:
            node.fails("scales are a number or a vector")
        return _without_meaning(node, "scales of blocks have no meaning here")
    if path.decide(given.shape[0] == 1):
        return lambda index: given.at((0,))
    if x.rank == 0:
        node.fails("scales of an axis that is not there")
    axis = node.axis("axis", x.rank)
    _demanded(node, given.shape[0], x.shape[axis])
    return lambda index: given.at((index[axis],))


def _without_meaning(node: Node, reason: str) -> Callable[[tuple[Size, ...]], Any]:
    """Return elements of a match without a meaning, which the conditions may yet exclude."""

    def at(index: tuple[Size, ...]) -> Any:
        raise UnprovenError(reason)

    if not node.side.is_left:
        at(())
    return at


def _quantization(node: Node) -> tuple[Tensor, Callable[..., Any], Callable[..., Any] | None]:
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    if zero is not None and zero.rank != scale.rank:
        if zero.is_input and zero._shape is None:
            zero.set_rank(scale.rank)
        node.fails("scale and zero point differ in rank")
    scale_at = _scale_at(node, x, scale)
    if zero is None:
        return x, scale_at, None
    for mine, its in zip(scale.shape, zero.shape, strict=True):
        _demanded(node, mine, its)
    return x, scale_at, _scale_at(node, x, zero)


@means("DequantizeLinear")
def _dequantize(node: Node) -> list[Tensor]:
    path = node.path
    if path.opset_where(lambda opset: opset >= 23) and "output_dtype" not in node.attributes:
        if node.is_open and path.choose(2):
            raise UnprovenError("DequantizeLinear to a stated type has no meaning here")
    elif node.attributes.get("output_dtype"):
        raise UnprovenError("DequantizeLinear to a stated type has no meaning here")
    x, scale_at, zero_at = _quantization(node)
    kind = node.input(1).type

    def at(index: tuple[Size, ...]) -> Any:
        number = x.at(index)
        if zero_at is None:
            return Op("Mul", (Op("Cast", (number,), kind), scale_at(index)), kind)
        return Op("Mul", (Op("Difference", (number, zero_at(index)), kind), scale_at(index)), kind)

    made = Tensor(path, node.op, kind, x.shape, at)
    made.is_constant = x.is_constant
    return [made]


@means("QuantizeLinear")
def _quantize(node: Node) -> list[Tensor]:
    path = node.path
    x, scale_at, zero_at = _quantization(node)
    zero = node.optional(2)
    kind = fixed(path, "uint8") if zero is None else zero.type
    stated = node.attributes.get("output_dtype", None if node.is_open else 0)
    if zero is None and stated != 0 and path.opset_where(lambda opset: opset >= 21):
        raise UnprovenError("QuantizeLinear to a stated type has no meaning here")

    def at(index: tuple[Size, ...]) -> Any:
        least = Const(0, kind) if zero_at is None else zero_at(index)
        return Op("Quantize", (x.at(index), scale_at(index), least), kind)

    made = Tensor(path, node.op, kind, x.shape, at)
    made.is_constant = x.is_constant
    return [made]


# ---- sequences and optional values ----


@means("Optional", "OptionalGetElement")
def _optional(node: Node) -> list[Tensor]:
    return [alias(node.input(0))]


@means("OptionalHasElement")
def _has_element(node: Node) -> list[Tensor]:
    node.input(0)
    return [filled(node.path, 1, fixed(node.path, "bool"))]


@means("SequenceConstruct")
def _sequence(node: Node) -> list[Tensor]:
    items = [node.input(place) for place in range(len(node.inputs))]
    if not items:
        node.fails("it has no input")

    def item(place: Size) -> Tensor:
        for number, each in enumerate(items):
            if node.path.decide(place == number):
                return each
        return items[-1]

    return [TensorSequence(node.path, items[0].type, len(items), item, items)]


@means("SplitToSequence")
def _split_to_sequence(node: Node) -> list[Tensor]:
    path, x = node.path, node.input(0)
    if x.rank == 0:
        raise DeadEndError
    axis = node.axis("axis", x.rank)
    whole = x.shape[axis]
    split = node.optional(1)
    keeps = True
    if split is None:
        size: Size = 1
        keeps = bool(node.number("keepdims", 0, 2))
        count = whole
    else:
        if split.rank != 0:
            raise UnprovenError("SplitToSequence into parts of listed sizes has no meaning here")
        (size,) = split.numbers()
        if path.decide(size <= 0):
            node.fails("the size of parts is not positive")
        count = divided(whole + size - 1, size)

    def item(place: Size) -> Tensor:
        start = place if split is None else place * size
        rest = whole - start
        part = 1 if split is None else path.either(rest < size, rest, size)
        shape = [*x.shape[:axis], part, *x.shape[axis + 1 :]]
        kept = _shifted(node, x, shape, {axis: (start, 1)})
        if keeps:
            return kept
        return Tensor(
            path, node.op, x.type, [*x.shape[:axis], *x.shape[axis + 1 :]],
            lambda index: kept.at((*index[:axis], 0, *index[axis:])),
        )  # fmt: skip

    made = TensorSequence(path, x.type, count, item)
    made.unit = axis if split is None else None  # type: ignore[attr-defined]
    made.keeps = keeps  # type: ignore[attr-defined]
    return [made]


def _sequence_of(node: Node) -> TensorSequence:
    found = node.input(0)
    if not isinstance(found, TensorSequence):
        raise UnprovenError(f"{node.op} of any sequence has no meaning here")
    return found


@means("SequenceAt")
def _sequence_at(node: Node) -> list[Tensor]:
    path, sequence, place = node.path, _sequence_of(node), node.input(1)
    if place.is_input and place.content is None:
        place.set_rank(0)
    elif place.rank != 0:
        node.fails("the place is a number")
    (number,) = place.numbers()
    number = path.either(number < 0, number + sequence.count, number)
    node.requires(all_of(path, [number >= 0, number < sequence.count]))
    return [alias(sequence.item(number))]


@means("SequenceLength")
def _sequence_length(node: Node) -> list[Tensor]:
    count = _sequence_of(node).count
    made = filled(node.path, count, fixed(node.path, "int64"))
    made.content = count
    return [made]


@means("ConcatFromSequence")
def _concat_from_sequence(node: Node) -> list[Tensor]:
    path, sequence = node.path, _sequence_of(node)
    adds = bool(node.number("new_axis", 0, 2))
    if sequence.items is not None:
        items = list(sequence.items)
        if not adds:
            axis = _concat_axis(node, items)
            return [joined(node, items, axis)]
        raise UnprovenError("ConcatFromSequence of listed values along a new axis")
    first = sequence.item(0)
    axis = node.axis("axis", first.rank + adds)
    node.requires(sequence.count > 0)
    keeps = getattr(sequence, "keeps", adds)
    if keeps == adds or (keeps and getattr(sequence, "unit", None) != axis):
        unknown = [path.number("size") for _ in range(first.rank + adds)]
        found = _without_meaning(node, "ConcatFromSequence along another axis has no meaning here")
        return [Tensor(path, node.op, first.type, unknown, found)]
    shape = [*first.shape[:axis], sequence.count, *first.shape[axis + keeps :]]

    def at(index: tuple[Size, ...]) -> Any:
        inner = (*index[:axis], *([0] if keeps else []), *index[axis + 1 :])
        return sequence.item(index[axis]).at(inner)

    return [Tensor(path, node.op, first.type, shape, at)]


# ---- recurrent layers ----


@means("RNN", "GRU", "LSTM", "DynamicQuantizeLSTM")
def _recurrent(node: Node) -> list[Tensor]:
    """Results are functions of all inputs and attributes; inputs that are absent have defaults."""
    path = node.path
    x, weight, state = (node.input(place) for place in range(3))
    for each in (x, weight, state):
        if each.rank != 3:
            node.fails("its matrices have rank 3")
    layout = 0
    if not node.domain and path.opset_where(lambda opset: opset >= 14):
        layout = int(node.number("layout", 0, 2))
    steps, batch = (x.shape[1], x.shape[0]) if layout else (x.shape[0], x.shape[1])
    hidden = state.shape[1 if node.domain else 2]
    parts = [batch, weight.shape[0]] if layout else [weight.shape[0], batch]
    inputs = [*node.inputs, *[None] * (8 - len(node.inputs))]
    kind = fixed(path, "float") if node.domain else x.type
    if inputs[4] is None:
        inputs[4] = filled(path, steps, fixed(path, "int32"), [batch])
    states = (5,) if node.op in ("RNN", "GRU") else (5, 6)
    for place in states:
        given = inputs[place]
        if given is None:
            inputs[place] = filled(path, 0.0, kind, [*parts, hidden])
        elif node.domain and node.side.is_left:
            path.unify(given.type, kind)
    if node.side.is_left:
        node.whole_inputs = inputs
        node.whole_results = [
            Tensor(path, f"{node.op}:{place}", kind) for place in range(node.results)
        ]
        return list(node.whole_results)
    origin = node.origin
    if origin is None or len(origin.whole_results) < node.results:
        raise UnprovenError(f"{node.op} with other attributes has no meaning here")
    for one, other in zip(origin.whole_inputs, inputs, strict=True):
        if not path.same_tensors(one, other):
            raise UnprovenError(f"{node.op} has other inputs")
    return origin.whole_results[: node.results]
