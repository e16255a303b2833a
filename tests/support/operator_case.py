"""One node of ONNX with the arrays that it gets: as a model, and as a line of text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One node with the arrays that it gets.

    Attributes
    ----------
    domain, op : str
    version : int
        The operator set that its model states.
    attributes : dict of str to object
    inputs : list of numpy.ndarray or None
        None for omitted ones.
    constant : list of bool
        Whether inputs are initializers.
    outputs : list of bool
        Whether optional outputs are there.
    """

    domain: str
    op: str
    version: int
    attributes: dict[str, Any] = field(default_factory=dict)
    inputs: list[Array | None] = field(default_factory=list)
    constant: list[bool] = field(default_factory=list)
    outputs: list[bool] = field(default_factory=list)

    def text(self) -> str:
        """Return the case as JSON, which `from_text` reads."""
        attributes = {name: _written(value) for name, value in sorted(self.attributes.items())}
        inputs = [
            None
            if array is None
            else {
                "dtype": array.dtype.name,
                "shape": list(array.shape),
                **({"data": _data(array)} if array.size <= (64 if known else 8) else {}),
                **({} if known else {"fed": True}),
            }
            for array, known in zip(self.inputs, self.constant, strict=True)
        ]
        return json.dumps(
            {
                "domain": self.domain,
                "op": self.op,
                "version": self.version,
                "attributes": attributes,
                "inputs": inputs,
                "outputs": self.outputs,
            }
        )


def _data(array: Array) -> list[Any]:
    if array.dtype.kind in "fc":
        return [float(item).hex() for item in array.reshape(-1)]
    return [item if array.dtype.kind == "O" else int(item) for item in array.reshape(-1)]


def _written(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return {"tensor": _tensor(numpy_helper.to_array(value))}
    return value.decode() if isinstance(value, bytes) else value


def _tensor(array: Array) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": _data(array)}


def from_text(text: str) -> Case:
    """Return the case that `Case.text` wrote; elements that it left out are drawn."""
    found = json.loads(text)
    random = np.random.default_rng(0)
    inputs = [None if entry is None else _read(entry, random) for entry in found["inputs"]]
    return Case(
        found["domain"],
        found["op"],
        found["version"],
        {
            name: numpy_helper.from_array(_read(value["tensor"], random))
            if isinstance(value, dict)
            else value
            for name, value in found["attributes"].items()
        },
        inputs,
        [entry is not None and "data" in entry and "fed" not in entry for entry in found["inputs"]],
        found["outputs"],
    )


def _read(entry: Mapping[str, Any], random: np.random.Generator) -> Array:
    dtype = np.dtype(entry["dtype"])
    if "data" not in entry:
        return numbers(random, dtype, tuple(entry["shape"]))
    data = entry["data"]
    if dtype.kind == "f":
        data = [float.fromhex(item) for item in data]
    return np.array(data, dtype).reshape(entry["shape"])


def numbers(random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Draw elements of a type."""
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "OU":
        return random.choice(np.array(["a", "b", "", "c d"], object), shape)
    if dtype.kind in "iu":
        return random.integers(0, 4, shape).astype(dtype)
    return np.asarray(random.standard_normal(shape) * 2).astype(dtype)


def model_of(case: Case, sizes: Mapping[str, Sequence[int | str]] | None = None) -> Any:
    """Return the model of a case.

    Parameters
    ----------
    case : Case
    sizes : mapping of str to sequence, optional
        Dimensions to state for inputs instead of their own.
    """
    names = ["" if array is None else f"x{place}" for place, array in enumerate(case.inputs)]
    outputs = [f"y{place}" if there else "" for place, there in enumerate(case.outputs)]
    kinds = defs.get_schema(case.op, case.version, case.domain).attributes
    node = helper.make_node(case.op, names, outputs, domain=case.domain)
    for key, value in case.attributes.items():
        # The type of an empty list does not show.
        kind = onnx.AttributeProto.AttributeType.Value(kinds[key].type.name)
        node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
    graph = onnx.GraphProto(name="g")
    graph.node.append(node)
    for name, array, known in zip(names, case.inputs, case.constant, strict=True):
        if array is None:
            continue
        if known:
            graph.initializer.append(numpy_helper.from_array(array, name))
        else:
            code = helper.np_dtype_to_tensor_dtype(array.dtype) if array.dtype.kind != "U" else 8
            shape = (sizes or {}).get(name, array.shape)
            graph.input.append(helper.make_tensor_value_info(name, code, shape))
    for name in outputs:
        if name:
            graph.output.add(name=name)
    imports = [helper.make_opsetid(case.domain, case.version)]
    if case.domain:
        imports.append(helper.make_opsetid("", 15))
    return helper.make_model(graph, opset_imports=imports, ir_version=10)
