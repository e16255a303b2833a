"""Random variations of recorded operator cases: other sizes, types, attributes, values.

Runs in passlib's environment; MXNet alone decides which variations are valid.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from case_files import case_files, case_lines, case_tensors
from passlib.errors import PasslibError
from passlib.mxnet import schema

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
WHOLE = (0, 1, -1, 2, -7, 100, 127, -128, 70_000, 2**24 + 1, 2**31 - 1, -(2**31), 3_000_000_001)
ODD = (math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, -0.5, 1.5, 2.5, -1.0, 1.0, 100.0, 3e4)
SIZES = (0, 1, 1, 2, 2, 3, 4, 5)
COUNTED = frozenset(("_npi_bincount",))
"""Operators whose results are as long as their largest number."""
FIXED = frozenset(("num_args", "num_inputs", "workspace", "ctx", "cudnn_tune", "cudnn_off"))


@dataclass(frozen=True)
class Variation:
    """One operator with inputs and attributes, in NumPy mode or not."""

    op: str
    attrs: Mapping[str, str]
    inputs: tuple[np.ndarray, ...]
    auxiliary: frozenset[int]
    numpy: bool
    train: bool

    def symbol(self) -> str:
        """Return the symbol's text: the operator of the variables x0, x1, ..."""
        nodes: list[dict[str, Any]] = [
            {"op": "null", "name": f"x{index}", "inputs": []} for index in range(len(self.inputs))
        ]
        count = len(nodes)
        entries = [[index, 0, 0] for index in range(count)]
        node = {"op": self.op, "name": "op", "attrs": dict(self.attrs), "inputs": entries}
        text = {
            "nodes": [*nodes, node],
            "arg_nodes": list(range(count)),
            "node_row_ptr": [*range(count + 1), count + self.outputs(hidden=True)],
            "heads": [[count, index, 0] for index in range(self.outputs())],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
        return json.dumps(text)

    def outputs(self, *, hidden: bool = False) -> int:
        """Count the visible outputs, or all; 1 where the attributes do not say."""
        operator = schema.find(self.op)
        assert operator is not None
        count = operator.num_outputs if hidden else operator.num_visible_outputs
        try:
            return max(count(self.attrs), 1)
        except (PasslibError, ValueError):
            return 1

    def __str__(self) -> str:
        arrays = ", ".join(f"{a.dtype}{a.shape}" for a in self.inputs)
        mode = "np " if self.numpy else ""
        return f"{mode}{self.op}({arrays}) {dict(self.attrs)}"


def encoded(array: np.ndarray) -> dict[str, Any]:
    """Return an array as what JSON can hold."""
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def decoded(record: Mapping[str, Any]) -> np.ndarray:
    """Return the array of a record; see `encoded`."""
    data = np.frombuffer(base64.b64decode(record["data"]), record["dtype"])
    return data.reshape(record["shape"]).copy()


def recorded(folder: Path) -> dict[str, list[Variation]]:
    """Return the recorded cases of one operator each, by the name of the operator."""
    found: dict[str, list[Variation]] = {}
    for path in case_files(folder) + sorted(
        each.with_suffix("") for each in (folder / "numpy").glob("*.jsonl.gz")
    ):
        tensors = case_tensors(path)
        for line in case_lines(path):
            case = json.loads(line)
            nodes = json.loads(case["symbol"])["nodes"]
            operators = [node for node in nodes if node["op"] != "null"]
            if len(operators) != 1 or "subgraphs" in operators[0]:
                continue
            (node,) = operators
            names = [nodes[entry[0]]["name"] for entry in node["inputs"]]
            inputs = tuple(tensors[f"{case['name']}/in/{name}"] for name in names)
            auxiliary = frozenset(i for i, name in enumerate(names) if name in case["aux"])
            each = Variation(
                node["op"],
                node.get("attrs", {}),
                inputs,
                auxiliary,
                path.parent.name == "numpy",
                case.get("train", False),
            )
            found.setdefault(node["op"], []).append(each)
    return found


class _Drawer:
    """Draws from one generator."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def pick(self, options: Any) -> Any:
        options = list(options)
        return options[int(self.random.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def vary(self, case: Variation) -> Variation:
        """Return a case with one or more changes."""
        for _ in range(1 + int(self.random.geometric(0.55))):
            change = self.pick(
                (self.sizes, self.types, self.attributes, self.attributes, self.values, self.shape)
            )
            case = change(case)
        return self.spelled(case) if self.chance(0.4) else case

    def sizes(self, case: Variation) -> Variation:
        """Replace sizes consistently, in attributes as well."""
        found = sorted({size for array in case.inputs for size in array.shape})
        sizes = SIZES if case.numpy else SIZES[1:]
        other = {size: self.pick(sizes) if self.chance(0.5) else size for size in found}
        inputs = [
            self.fitted(array, tuple(other[size] for size in array.shape)) for array in case.inputs
        ]
        attrs = dict(case.attrs)
        if self.chance(0.7):
            for name, text in attrs.items():
                stripped = text.strip()
                if name not in FIXED and stripped.isdigit() and int(stripped) in other:
                    attrs[name] = str(other[int(stripped)])
        return replace(case, inputs=tuple(inputs), attrs=attrs)

    def shape(self, case: Variation) -> Variation:
        """Change the shape of one input, or add or remove the first axis of all."""
        if not case.inputs:
            return case
        kind = self.pick(("one", "more", "less", "scalar"))
        inputs = list(case.inputs)
        if kind == "one":
            index = int(self.random.integers(len(inputs)))
            shape = list(inputs[index].shape)
            if shape:
                shape[int(self.random.integers(len(shape)))] = self.pick((1, 1, 2, 3))
                inputs[index] = self.fitted(inputs[index], tuple(shape))
        elif kind == "more":
            size = self.pick((1, 2))
            inputs = [self.fitted(array, (size, *array.shape)) for array in inputs]
        elif kind == "less":
            if all(array.ndim > (0 if case.numpy else 1) for array in inputs):
                inputs = [self.fitted(array, array.shape[1:]) for array in inputs]
        elif case.numpy:
            index = int(self.random.integers(len(inputs)))
            inputs[index] = self.fitted(inputs[index], ())
        return replace(case, inputs=tuple(inputs))

    def fitted(self, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if shape == array.shape:
            return array
        count = math.prod(shape)
        flat = array.ravel() if array.size else np.ones(1, array.dtype)
        return np.resize(flat, count).reshape(shape).astype(array.dtype)

    def types(self, case: Variation) -> Variation:
        """Convert all inputs, or one, to another element type."""
        if not case.inputs:
            return case
        dtype = self.pick(DTYPES)
        only = int(self.random.integers(len(case.inputs))) if self.chance(0.3) else None
        with np.errstate(all="ignore"):
            inputs = [
                array.astype(dtype) if only is None or only == index else array
                for index, array in enumerate(case.inputs)
            ]
        return replace(case, inputs=tuple(inputs))

    def values(self, case: Variation) -> Variation:
        """Put odd numbers into one input."""
        places = [i for i, a in enumerate(case.inputs) if a.size and a.dtype.kind in "fiu"]
        if not places:
            return case
        index = self.pick(places)
        array = case.inputs[index].copy()
        whole = WHOLE[:6] if case.op in COUNTED else WHOLE
        numbers = np.array(ODD if array.dtype.kind == "f" else whole).astype(array.dtype)
        for _ in range(1 + array.size // 4):
            array.flat[int(self.random.integers(array.size))] = self.pick(numbers)
        inputs = list(case.inputs)
        inputs[index] = array
        return replace(case, inputs=tuple(inputs))

    def attributes(self, case: Variation) -> Variation:
        """Change or remove one declared attribute."""
        operator = schema.find(case.op)
        assert operator is not None
        names = [n for n in operator.parameters if n not in FIXED and n != operator.variadic]
        if not names:
            return case
        name = self.pick(names)
        attrs = dict(case.attrs)
        if name in attrs and self.chance(0.2):
            del attrs[name]
        else:
            attrs[name] = self.value(operator.parameters[name], attrs.get(name), case)
        return replace(case, attrs=attrs)

    def value(self, parameter: Any, old: str | None, case: Variation) -> str:
        if parameter.optional_none and self.chance(0.12):
            return "None"
        if parameter.kind == "boolean":
            return str(self.pick(("True", "False")))
        if parameter.kind == "choice":
            return str(self.pick(parameter.choices))
        if parameter.kind == "int":
            least = 0 if parameter.limits and parameter.limits[0] == 0 else -3
            return str(int(self.random.integers(least, 5)))
        if parameter.kind in ("float", "double"):
            return str(self.pick((-1.5, -1, 0, 0.5, 1, 2, 3, 1e-3, 100, 0.25)))
        if parameter.kind in ("shape", "numbers"):
            rank = len(old.split(",")) if old and old.strip("()[] ") else 1
            if self.chance(0.4):
                rank = int(self.random.integers(0, 4))
            if self.chance(0.3) and case.inputs:
                rank = case.inputs[0].ndim
            if parameter.kind == "numbers":
                return str(tuple(self.pick((-1.0, 0.0, 0.5, 1.0, 2.0)) for _ in range(rank)))
            least = self.pick((-3, 0, 0, 1))
            return str(tuple(int(n) for n in self.random.integers(least, 4, rank)))
        return old if old is not None else "None"

    def spelled(self, case: Variation) -> Variation:
        """Spell the attributes otherwise."""
        operator = schema.find(case.op)
        assert operator is not None
        attrs = {}
        for name, text in case.attrs.items():
            parameter = operator.parameters.get(name)
            kind = parameter.kind if parameter is not None else ""
            options = [text]
            if kind == "boolean":
                true = text.lower() in ("true", "1")
                options += ["1", "true", "True"] if true else ["0", "false", "False"]
            elif kind == "shape" and text.startswith("("):
                inside = text.strip("()").rstrip(",")
                options += [f"[{inside}]", f"({inside.replace(' ', '')})", f"( {inside} )"]
                if inside.lstrip("-").isdigit():
                    options += [inside]
            elif kind == "int" and text.lstrip("-").isdigit():
                options += [f" {text}", f"+{text}" if text[0] != "-" else text]
            elif kind in ("float", "double") and text.lstrip("-").isdigit():
                options += [f"{text}.0", f"{text}.", f"{text}e0"]
            attrs[name] = self.pick(options)
        return replace(case, attrs=attrs)


def variations(cases: list[Variation], count: int, seed: int) -> Iterator[Variation]:
    """Draw variations of the cases of one operator."""
    drawer = _Drawer(np.random.default_rng(seed))
    for _ in range(count):
        yield drawer.vary(drawer.pick(cases))
