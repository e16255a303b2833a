"""Random nodes of every operator of every operator set that onnx describes.

A case begins with a node of onnx's own tests, in the form of an older operator set if need be. Its
attributes, element types, dimensions and small integer inputs are then changed at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from onnx_suite import node_cases
from operator_case import Array, Case, numbers
from operator_seeds import EXTRA, WORDS

Key = tuple[str, str, int]
"""Domain, operator, and the operator set since which it has its form."""

_MOST_BYTES: Final = 1 << 16

_LISTS: Final = frozenset(
    ("M", "axes", "axis", "block_shape", "depth", "dft_length", "ends", "frame_length",
     "frame_step", "indices", "k", "max_output_boxes_per_class", "output_shape", "pads", "ratio",
     "repeats", "roi", "scales", "shape", "sizes", "size", "split", "starts", "steps", "start",
     "limit", "delta", "tiles", "trip_count", "condition", "input_lengths", "values")
)  # fmt: skip
"""Inputs whose elements count, not their number."""

_FOLLOWING: Final = frozenset(("kernel_shape", "output_shape", "shape", "split"))
"""Attributes that repeat dimensions of inputs."""

_REALS: Final = (
    0.0, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 2.0, 2.6, -1.0, 3.0, np.nan, np.nan, np.inf, -np.inf, -0.0,
)  # fmt: skip

_EXTREME: Final = (2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 2**63 - 2, 1000)

_NAMES: Final = (
    "float32", "float32", "float32", "int64", "int32", "float64", "bool", "uint8", "int8", "uint16",
    "int16", "uint32", "uint64", "float16",
)  # fmt: skip

_CODES: Final = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13)


@cache
def _versions() -> dict[tuple[str, str], list[int]]:
    """Return the operator sets in which operators have a form of their own."""
    found: dict[tuple[str, str], list[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        found.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    return found


@cache
def operators() -> tuple[Key, ...]:
    """Return all operators that have a node to begin with, those without a form left out."""
    keys = [(*name, since) for name in sorted(_seeds()) for since in sorted(_versions()[name])]
    return tuple(key for key in keys if not _schema(key).deprecated)


@cache
def _schema(key: Key) -> Any:
    domain, op, since = key
    return defs.get_schema(op, since, domain)


@cache
def _seeds() -> dict[tuple[str, str], list[Case]]:
    found: dict[tuple[str, str], list[Case]] = {}
    for domain, op, attributes, inputs in EXTRA:
        arrays = [None if each is None else np.asarray(each) for each in inputs]
        newest = max(
            since
            for since in _versions()[domain, op]
            if not _schema((domain, op, since)).deprecated
        )
        case = Case(domain, op, newest, dict(attributes), arrays, [False] * len(arrays), [True])
        found.setdefault((domain, op), []).append(case)
    for each in node_cases():
        case = _seed(onnx.ModelProto.FromString(each.data), each.data_sets[0][0])
        if case is not None:
            found.setdefault((case.domain, case.op), []).append(case)
    return found


def _seed(model: Any, arrays: Sequence[Any]) -> Case | None:
    graph = model.graph
    node = graph.node[0]
    kinds = {value.type.WhichOneof("value") for value in graph.input}
    if len(graph.node) != 1 or kinds - {"tensor_type"}:
        return None
    if any(not isinstance(array, np.ndarray) or array.dtype.name not in (*_NAMES, "object", "str")
           for array in arrays):  # fmt: skip
        return None
    versions = {each.domain: each.version for each in model.opset_import}
    by_name = {value.name: array for value, array in zip(graph.input, arrays, strict=True)}
    by_name |= {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if any(isinstance(value, onnx.GraphProto) for value in attributes.values()):
        return None
    inputs = [by_name[name] if name else None for name in node.input]
    if sum(array.nbytes for array in inputs if array is not None) > _MOST_BYTES:
        return None
    version = defs.get_schema(node.op_type, versions[node.domain], node.domain).since_version
    outputs = [bool(name) for name in node.output]
    return Case(
        node.domain, node.op_type, version, attributes, inputs, [False] * len(inputs), outputs
    )


def draw(number: int) -> Case:
    """Return the case of a number; operators come in turn."""
    keys = operators()
    key = keys[number % len(keys)]
    random = np.random.default_rng(number)
    seeds = _seeds()[key[:2]]
    case = _adapted(seeds[int(random.integers(len(seeds)))], key)
    changes = (_resized, _retyped, _attributes, _attributes, _elements, _one_size, _shorter)
    for _ in range(int(random.choice((0, 1, 1, 2, 2, 3, 4, 5)))):
        case = changes[int(random.integers(len(changes)))](case, key, random)
    formal = _schema(key).inputs
    listed = [_name(formal, place) in _LISTS for place in range(len(case.inputs))]
    constant = [
        array is not None and bool(random.random() < (0.85 if is_list else 0.15))
        for array, is_list in zip(case.inputs, listed, strict=True)
    ]
    return replace(case, version=_model_version(key, random), constant=constant)


def _model_version(key: Key, random: np.random.Generator) -> int:
    """Draw one of the operator sets in which an operator has this form."""
    later = [since for since in _versions()[key[:2]] if since > key[2]]
    newest = defs.onnx_opset_version() if not key[0] else 5 if key[0] == "ai.onnx.ml" else key[2]
    return int(random.integers(key[2], min(later, default=newest + 1)))


def _name(formal: Sequence[Any], place: int) -> str:
    return str(formal[min(place, len(formal) - 1)].name) if formal else ""


def _adapted(case: Case, key: Key) -> Case:
    """Give a case the form of another operator set: its inputs that were attributes there."""
    here, there = _schema((case.domain, case.op, case.version)), _schema(key)
    attributes = dict(case.attributes)
    inputs: list[Array | None] = []
    names = {formal.name for formal in there.inputs}
    for place, array in enumerate(case.inputs):
        name = _name(here.inputs, place)
        if name in there.attributes and name not in names:
            if array is not None:
                kind = there.attributes[name].type.name
                attributes[name] = (
                    array.reshape(-1).tolist() if kind.endswith("S") else array.item(0)
                )
        else:
            inputs.append(array)
    for formal in there.inputs[len(inputs) :]:
        value = attributes.get(formal.name)
        if value is not None and formal.name not in there.attributes:
            inputs.append(np.array(value))
    kept = {
        name: _of_kind(value, there.attributes[name].type.name)
        for name, value in attributes.items()
        if name in there.attributes
    }
    kept = {name: value for name, value in kept.items() if value is not None}
    while inputs and (inputs[-1] is None or len(inputs) > there.max_input):
        inputs.pop()
    return replace(
        case,
        attributes=kept,
        inputs=inputs,
        constant=[False] * len(inputs),
        outputs=case.outputs[: there.max_output],
    )


def _of_kind(value: Any, kind: str) -> Any:
    """Return the value of an attribute in the type of another operator set; None without one."""
    here = helper.make_attribute("a", value, attr_type=None).type if value != [] else None
    name = kind if here is None else onnx.AttributeProto.AttributeType.Name(here)
    if name == kind:
        return value
    if (name, kind) == ("INT", "STRING"):
        return onnx.TensorProto.DataType.Name(value)
    if kind == f"{name}S":
        return [value]
    return {"INT": int, "FLOAT": float}[kind](value) if name in ("INT", "FLOAT") else None


def _fitted(array: Array, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return an array of another shape with elements like those of an array."""
    if not array.size:
        return numbers(random, array.dtype, shape)
    return np.resize(array, shape)


def _resized(case: Case, key: Key, random: np.random.Generator) -> Case:
    """Replace one dimension by another one in all inputs that have it."""
    formal = _schema(key).inputs
    sizes = sorted({n for array in case.inputs if array is not None for n in array.shape})
    if not sizes:
        return case
    old, new = (int(random.choice(each)) for each in (sizes, (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 10)))
    inputs = [
        array
        if array is None or _name(formal, place) in _LISTS
        else _fitted(array, tuple(new if size == old else size for size in array.shape), random)
        for place, array in enumerate(case.inputs)
    ]
    attributes = dict(case.attributes)
    if random.random() < 0.5:
        for name in _FOLLOWING & attributes.keys():
            if isinstance(attributes[name], list):
                attributes[name] = [new if item == old else item for item in attributes[name]]
    return _bounded(case, replace(case, inputs=inputs, attributes=attributes))


def _one_size(case: Case, key: Key, random: np.random.Generator) -> Case:
    """Replace one dimension, or the rank, of one input."""
    places = [place for place, array in enumerate(case.inputs) if array is not None]
    if not places:
        return case
    place = int(random.choice(places))
    array = case.inputs[place]
    assert array is not None
    shape = list(array.shape)
    if random.random() < 0.25:
        shape.insert(int(random.integers(len(shape) + 1)), int(random.choice((1, 2))))
    elif shape and random.random() < 0.2:
        shape.pop(int(random.integers(len(shape))))
    elif shape:
        shape[int(random.integers(len(shape)))] = int(random.choice((0, 1, 2, 3, 5, 6, 11)))
    inputs = list(case.inputs)
    inputs[place] = _fitted(array, tuple(shape), random)
    return _bounded(case, replace(case, inputs=inputs))


def _bounded(before: Case, after: Case) -> Case:
    total = sum(array.nbytes for array in after.inputs if array is not None)
    return after if total <= 2 * _MOST_BYTES else before


def _retyped(case: Case, key: Key, random: np.random.Generator) -> Case:
    """Give all inputs of one element type another one that the operator permits."""
    schema = _schema(key)
    permitted = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    kinds = {
        schema.inputs[min(place, len(schema.inputs) - 1)].type_str
        for place, array in enumerate(case.inputs)
        if array is not None
    }
    kinds = sorted(kind for kind in kinds if kind in permitted)
    if not kinds:
        return case
    kind = str(random.choice(kinds))
    wish = np.dtype(str(random.choice(_NAMES)))
    onnx_name = {"float32": "float", "float64": "double"}.get(wish.name, wish.name)
    if f"tensor({onnx_name})" not in permitted[kind]:
        return case
    inputs = list(case.inputs)
    for place, array in enumerate(inputs):
        formal = schema.inputs[min(place, len(schema.inputs) - 1)]
        if array is not None and formal.type_str == kind and array.dtype.kind != "O":
            with np.errstate(all="ignore"):
                inputs[place] = array.astype(wish)
    return replace(case, inputs=inputs)


def _elements(case: Case, key: Key, random: np.random.Generator) -> Case:
    """Change elements of an input, integers above all."""
    formal = _schema(key).inputs
    places = [place for place, array in enumerate(case.inputs) if array is not None and array.size]
    lists = [place for place in places if _name(formal, place) in _LISTS]
    if not places:
        return case
    place = int(random.choice(lists if lists and random.random() < 0.8 else places))
    array = np.array(case.inputs[place])
    flat = array.reshape(-1)
    for _ in range(int(random.integers(1, 4))):
        at = int(random.integers(flat.size))
        if flat.dtype.kind in "iu":
            wish = int(flat[at]) + int(random.choice((-2, -1, 1, 2, 3)))
            wish = wish if random.random() < 0.5 else int(random.choice((-3, -2, -1, 0, 1, 2, 4)))
            wish = int(random.choice(_EXTREME)) if random.random() < 0.1 else wish
            info = np.iinfo(flat.dtype)
            flat[at] = min(max(wish, info.min), info.max)
        elif flat.dtype.kind == "f":
            flat[at] = random.choice(_REALS)
    inputs = list(case.inputs)
    inputs[place] = array
    return replace(case, inputs=inputs)


def _shorter(case: Case, key: Key, random: np.random.Generator) -> Case:
    """Drop the last input, or change the number of outputs."""
    schema = _schema(key)
    if random.random() < 0.5 and len(case.inputs) > schema.min_input:
        return replace(case, inputs=case.inputs[:-1], constant=case.constant[:-1])
    most = min(schema.max_output, 4)
    least = max(schema.min_output, 1)
    return replace(case, outputs=[True] * int(random.integers(least, max(most, least) + 1)))


def _attributes(case: Case, key: Key, random: np.random.Generator) -> Case:
    """Add, change or drop an attribute."""
    schema = _schema(key)
    names = sorted(schema.attributes)
    if not names:
        return case
    name = str(random.choice(names))
    attributes = dict(case.attributes)
    if name in attributes and random.random() < 0.15:
        del attributes[name]
        return replace(case, attributes=attributes)
    rank = max((array.ndim for array in case.inputs[:1] if array is not None), default=1)
    made = _attribute(schema.attributes[name], attributes.get(name), rank, case.op, random)
    if made is not None:
        attributes[name] = made
    return replace(case, attributes=attributes)


def _attribute(formal: Any, old: Any, rank: int, op: str, random: np.random.Generator) -> Any:
    kind, name = formal.type.name, formal.name
    if kind == "INT":
        if name in ("to", "dtype", "output_datatype"):
            return int(random.choice(_CODES))
        return int(random.choice((0, 0, 1, 1, -1, -2, 2, 3, 4, *_EXTREME[:1])))
    if kind == "FLOAT":
        return float(random.choice((0.0, 0.5, 1.0, -1.0, 2.0, 1.3)))
    if kind == "STRING":
        words = WORDS.get(name, ())
        return str(random.choice(words)) if words else None
    if kind == "TENSOR" and op == "ConstantOfShape":
        dtype = np.dtype(str(random.choice(_NAMES)))
        return numpy_helper.from_array(numbers(random, dtype, (1,)))
    if kind == "INTS":
        if old:
            made = list(old)
            at = int(random.integers(len(made)))
            made[at] = int(random.choice((0, 1, 2, 3, 4, 5, -1, made[at] + 1, made[at] - 1)))
            return made
        if "axes" in name or name == "perm":
            return [int(axis) for axis in random.permutation(rank)[: int(random.integers(1, 3))]]
        count = 2 * (rank - 2) if name == "pads" else rank - 2
        return [int(item) for item in random.integers(0, 4, max(count, 1))]
    if kind == "FLOATS" and old:
        return [float(random.choice((0.3, 0.7, 1.3, 2.6, 2.0, item))) for item in old]
    return None
