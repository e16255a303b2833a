"""Examples of rules: models before and after, which show a rule and test it."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.model import Model, load

_SHORT = {"f16": "float16", "f32": "float", "f64": "double", "i8": "int8", "i32": "int32",
          "i64": "int64", "u8": "uint8"}  # fmt: skip
_OPEN = 3
"""The number for open sizes where results are compared."""

_MOST_ELEMENTS = 1 << 20
"""The most elements of a value in an example."""

_MOST_AXES = 32


@dataclass
class Built:
    """A model of an example.

    Attributes
    ----------
    model : Model
    made_up : set of str
        Parameters whose values are random numbers.
    inputs : dict of str to (int, list)
        ONNX's element type, and dimensions: numbers and names.
    """

    model: Model
    made_up: set[str]
    inputs: dict[str, tuple[int, list[Any]]]


def build(statements: Any, opset: int, given: Built | None = None) -> Built:
    """Make a model of the statements of an example.

    Parameters
    ----------
    statements : list
        As `_core.RuleBook` reads them.
    opset : int
    given : Built, optional
        The model before: values without a type are those of it.
    """
    builder = _Builder(statements, opset, given)
    proto = builder.proto()
    load(proto)  # inference is for sound nodes
    proto = inferred(proto)
    for value in proto.graph.value_info:
        dims = value.type.tensor_type.shape.dim
        _check_size([size.dim_value for size in dims if not size.dim_param], value.name)
    return Built(load(proto), builder.made_up, builder.inputs)


def proto_of(statements: Any, opset: int) -> Any:
    """Make ONNX's model of the statements of an example, whose outputs have no types yet."""
    return _Builder(statements, opset, None).proto()


def _code(name: str) -> int:
    """Return ONNX's number of an element type."""
    onnx = require("onnx", extra="onnx")
    wanted = _SHORT.get(name, name)
    return int(onnx.TensorProto.DataType.Value(wanted.upper()))


def _array(code: int, shape: tuple[int, ...], name: str) -> np.ndarray[Any, Any]:
    """Return random numbers, the same for each name."""
    _check_size(shape, name)
    if code not in ELEMENT_TYPES:
        raise PasslibError(f"{name!r}: no numbers are drawn for this element type")
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    dtype = np.dtype(ELEMENT_TYPES[code])
    if dtype.kind == "f":
        return generator.uniform(0.25, 2.0, shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    return generator.integers(0, 4, shape).astype(dtype)


def _causal(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Return a mask of an array's shape and type that hides what is above the diagonal."""
    if array.ndim < 2 or array.dtype.kind not in "fb":
        raise PasslibError(f"{name!r}: a causal mask has real or truth values, and rank 2 or more")
    shown = np.broadcast_to(np.tri(*array.shape[-2:]) == 1, array.shape)
    made = shown if array.dtype == bool else np.where(shown, 0, -np.inf)
    return made.astype(array.dtype)


def _check_size(shape: Sequence[Any], name: str) -> None:
    """Raise `PasslibError` for what is no shape of a small array."""
    for size in shape:
        if type(size) is not int or size < 0:
            raise PasslibError(f"{name!r}: no array has the size {size!r}")
    if len(shape) > _MOST_AXES or math.prod(shape) > _MOST_ELEMENTS:
        raise PasslibError(f"{name!r}: too large for an example: at most {_MOST_ELEMENTS} elements")


@dataclass
class _Builder:
    statements: Any
    opset: int
    given: Built | None
    inputs: dict[str, tuple[int, list[Any]]] = field(default_factory=dict)
    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    domains: set[str] = field(default_factory=set)
    made_up: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    _number: int = 0

    def proto(self) -> Any:
        onnx = require("onnx", extra="onnx")
        results: list[str] = []
        for targets, expression in self.statements:
            if expression["kind"] == "operation":
                self._operation(expression, ["" if each == "_" else each for each in targets])
            else:
                self.nodes.append(
                    onnx.helper.make_node("Identity", [self._value(expression, 1)], [targets[0]])
                )
            results += targets
        outputs = [name for name in results if name not in self.used and name != "_"]
        values = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = onnx.helper.make_graph(
            self.nodes,
            "example",
            [
                onnx.helper.make_tensor_value_info(name, *shown)
                for name, shown in self.inputs.items()
            ],
            values,
            [onnx.numpy_helper.from_array(array, name) for name, array in self.arrays.items()],
        )
        sets = [onnx.helper.make_opsetid("", self.opset)]
        sets += [onnx.helper.make_opsetid(domain, 1) for domain in sorted(self.domains)]
        return onnx.helper.make_model(graph, opset_imports=sets, ir_version=8)

    def _name(self, wish: str) -> str:
        self._number += 1
        return f"{wish}_{self._number}"

    def _add(self, array: np.ndarray[Any, Any], name: str) -> str:
        self.arrays[name] = array
        return name

    def _operation(self, expression: Any, outputs: list[str]) -> str:
        onnx = require("onnx", extra="onnx")
        domain, _, op = expression["name"].rpartition("::")
        if domain:
            self.domains.add(domain)
        code = self._type_of(expression)
        inputs = [self._value(each, code) for each in expression["inputs"]]
        attributes: dict[str, Any] = {}
        for key, text in expression["attributes"].items():
            value = _parsed(text)
            place = _core.moved_input(op, key, self.opset) if not domain else None
            if place is None:
                attributes[key] = value
                continue
            number, form = place
            inputs += [""] * (number + 1 - len(inputs))
            dtype = {"integers": 7, "integer": 7, "scalar": code}.get(form, 1)
            listed = (
                [value] if form in ("integers", "floats") and not isinstance(value, list) else value
            )
            array = np.array(listed, ELEMENT_TYPES[dtype])
            inputs[number] = self._add(array, self._name(key))
        if not outputs:
            outputs = [self._name(op.lower())]
        while len(outputs) <= expression["output"]:
            outputs.append(self._name(op.lower()))
        self.nodes.append(
            onnx.helper.make_node(op, inputs, outputs, domain=domain, name=outputs[0])
        )
        self.nodes[-1].attribute.extend(
            onnx.helper.make_attribute(key, value) for key, value in attributes.items()
        )
        return outputs[max(int(expression["output"]), 0)]

    def _type_of(self, expression: Any) -> int:
        """Return the first element type that stands in an operation, for its numbers."""
        condition = expression["kind"] == "operation" and expression["name"] == "Where"
        for each in expression["inputs"][condition:]:
            if each["type"]:
                return _code(each["type"].partition("[")[0].rpartition(" ")[2])
            if each["kind"] == "operation":
                return self._type_of(each)
            if each["name"] in self.inputs:
                return self.inputs[each["name"]][0]
            if each["name"] in self.arrays:
                onnx = require("onnx", extra="onnx")
                return int(onnx.helper.np_dtype_to_tensor_dtype(self.arrays[each["name"]].dtype))
        return 1

    def _value(self, expression: Any, code: int) -> str:
        kind, name = expression["kind"], expression["name"]
        if kind == "operation":
            made = self._operation(expression, [])
        elif kind == "number":
            array = np.array(expression["number"], ELEMENT_TYPES[code])
            made = self._add(array, self._name("number"))
        elif kind == "constant":
            items = expression["terms"][0]
            made = self._add(np.array(items, ELEMENT_TYPES[_code(name)]), self._name("constant"))
        elif name == "_":
            return ""
        else:
            made = self._named(name, expression["type"])
        self.used.add(made)
        return made

    def _named(self, name: str, text: str) -> str:
        if text:
            stated, _, sizes = text.partition("[")
            kind, _, plain = stated.rpartition(" ")
            code = _code(plain)
            dims: list[Any] = [
                _parsed(item) for item in sizes.rstrip("]").split(",") if item.strip()
            ]
            _check_size([_OPEN if isinstance(size, str) else size for size in dims], name)
            if kind:
                array = _array(code, tuple(dims), name)
                if kind == "param":
                    self.made_up.add(name)
                elif kind == "causal":
                    array = _causal(array, name)
                else:
                    array[...] = kind == "one"
                return self._add(array, name)
            self.inputs[name] = (code, dims)
        elif self.given is not None and name in self.given.model.args and name not in self.arrays:
            self._add(np.asarray(self.given.model.args[name]), name)
        elif self.given is not None and name in self.given.inputs:
            self.inputs[name] = self.given.inputs[name]
        return name


def _parsed(text: str) -> Any:
    """Return a number, a list of them, or other text as it is."""
    text = text.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    plain = value if isinstance(value, list) else [value]
    return value if all(type(each) in (int, float, str) for each in plain) else text


# ---- comparison ----


def difference(found: Model, wanted: Built, opset: int) -> str:
    """Return the first place where a model differs from that of an example; empty if none does."""
    if len(found.symbol.entries) != len(wanted.model.symbol.entries):
        return f"{len(found.symbol.entries)} outputs, expected {len(wanted.model.symbol.entries)}"
    pairs = list(zip(found.symbol.entries, wanted.model.symbol.entries, strict=True))
    seen: set[tuple[int, int]] = set()
    for left, right in pairs:
        if (id(left.node), id(right.node)) in seen:
            continue
        seen.add((id(left.node), id(right.node)))
        text = _differs(left.node, right.node, found, wanted, opset)
        if text:
            return text
        if left.index != right.index:
            return f"output {left.index} of {left.node.name!r}, expected output {right.index}"
        ins, others = _inputs(left.node), _inputs(right.node)
        if len(ins) != len(others):
            return f"{left.node.op} has {len(ins)} inputs, expected {len(others)}"
        pairs += zip(ins, others, strict=True)
    return ""


def _inputs(node: Any) -> list[Any]:
    inputs = list(node.inputs)
    while inputs and inputs[-1].node.name == "__absent__":
        inputs.pop()
    return inputs


def _differs(first: Any, second: Any, found: Model, wanted: Built, opset: int) -> str:
    if first.op != second.op:
        return f"{first.op} ({first.name!r}), expected {second.op}"
    if first.op != "null":
        mine, its = _attributes(first, opset), _attributes(second, opset)
        return "" if mine == its else f"{first.op} has {mine}, expected {its}"
    array, other = found.args.get(first.name), wanted.model.args.get(second.name)
    if (array is None) != (other is None):
        return f"{first.name!r} and {second.name!r} are not both constants"
    if array is None or other is None:
        return "" if first.name == second.name else f"{first.name!r}, expected {second.name!r}"
    mine_, its_ = np.asarray(array), np.asarray(other)
    if mine_.dtype != its_.dtype or mine_.shape != its_.shape:
        return (
            f"constant {first.name!r} is {mine_.dtype}{list(mine_.shape)}, expected "
            f"{its_.dtype}{list(its_.shape)}"
        )
    if second.name in wanted.made_up and first.name != second.name:
        return ""  # computed values
    if not np.array_equal(mine_, its_):
        return f"constant {first.name!r} is {mine_.tolist()}, expected {its_.tolist()}"
    return ""


def _attributes(node: Any, opset: int) -> dict[str, Any]:
    """Return the attributes that are not defaults, as values."""
    onnx = require("onnx", extra="onnx")
    domain = node.attrs.get("__domain__", "")
    defaults: Mapping[str, Any] = {}
    try:
        schema = onnx.defs.get_schema(node.op, 1 if domain else opset, domain)
        defaults = {key: each.default_value for key, each in schema.attributes.items()}
    except onnx.defs.SchemaError:
        pass
    made = {"__domain__": domain} if domain else {}
    for key, text in node.attrs.items():
        if key.startswith("__"):
            continue
        value = _parsed(text)
        if isinstance(value, float):
            value = float(np.float32(value))
        default = defaults.get(key)
        if default is not None and default.type:
            preset = onnx.helper.get_attribute_value(default)
            if (preset.decode() if isinstance(preset, bytes) else preset) == value:
                continue
        made[key] = value
    return made


def random_inputs(built: Built) -> dict[str, np.ndarray[Any, Any]]:
    """Return random numbers for the inputs of a model of an example."""
    return {
        name: _array(code, tuple(_OPEN if isinstance(size, str) else size for size in dims), name)
        for name, (code, dims) in built.inputs.items()
    }


def problems(rule: Any, opset: int | None = None) -> Iterator[str]:
    """Try a rule on its examples, and yield what is wrong.

    Parameters
    ----------
    rule : Rule
    opset : int, optional
        By default the newest of the rule's up to 21.
    """
    first = max((each[1] for each in rule.sets if not each[0]), default=1)
    last = min((each[2] or 99 for each in rule.sets if not each[0]), default=99)
    chosen = max(first, min(last, 21)) if opset is None else opset
    if not first <= chosen <= last:
        return
    if not rule.examples:
        yield f"rule {rule.name}: no example"
    for number, example in enumerate(rule.examples, 1):
        place = f"rule {rule.name}, example {number}, operator set {chosen}: "
        try:
            before = build(example.before, chosen)
            after = build(example.after, chosen, before)
            found = rule.rules(before.model, only=[rule.name], target=rule.target)
            text = difference(found, after, chosen)
            wrong = [text] if text else list(_numbers(before, found, exact=rule.exact))
        except (PasslibError, ValueError, KeyError, OverflowError) as error:
            wrong = [str(error)]
        yield from (place + each for each in wrong)


def _numbers(before: Built, after: Model, *, exact: bool) -> Iterator[str]:
    """Compare results of ONNX Runtime without its own optimizations."""
    runtime = require("onnxruntime", extra="onnx")
    options = {"graph_optimization_level": runtime.GraphOptimizationLevel.ORT_DISABLE_ALL}
    inputs = random_inputs(before)
    expected = before.model.run(inputs, session_options=options)
    taken = {name: array for name, array in inputs.items() if name in after.inputs}
    found = after.run(taken, session_options=options)
    for (name, one), other in zip(expected.items(), found.values(), strict=True):
        left, right = np.asarray(one), np.asarray(other)
        if left.shape != right.shape or left.dtype != right.dtype:
            yield f"{name} is {right.dtype}{right.shape}, expected {left.dtype}{left.shape}"
        elif exact and left.tobytes() != right.tobytes():
            yield f"{name} has other bits"
        elif not np.allclose(
            left, right, rtol=1e-3 if left.dtype == np.float16 else 1e-4, atol=1e-5
        ):
            yield f"{name} differs by {np.abs(left.astype(float) - right.astype(float)).max()}"
