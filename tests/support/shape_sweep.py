"""Types and small values that passlib infers, against what ONNX Runtime computes.

``python tests/support/shape_sweep.py COUNT [FIRST]`` draws nodes (`operator_cases`), runs each in
ONNX Runtime without optimization in a child process, since some end it, and prints what differs:
``onnx`` for ONNX's own inference, ``passlib`` for that of passlib, which must never differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime

import passlib
from operator_case import Case, model_of
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model
from passlib.passes.standard.facts.shapes import Shapes
from sweeping import main

Types = dict[str, tuple[str, tuple[Any, ...] | None]]
"""Element type and dimensions by name, None for unknown ones."""

_facts: dict[str, tuple[Any, Any]] = {}


@graph_pass(name="noteFacts", dialects=["onnx"])
def _note_facts(graph: Graph) -> None:
    """Note what rules know of the outputs."""
    shapes = Shapes(Model(graph))
    _facts.clear()
    for place, value in enumerate(graph.outputs):
        _facts[str(place)] = shapes.shape(value), shapes.content(value)


def differences(case: Case, random: np.random.Generator) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over whose inference differs, what it says, and what ONNX Runtime computes.

    Raises
    ------
    Exception
        ONNX Runtime refuses the case.
    """
    model = model_of(case)
    results = _run(model, case)
    names = [value.name for value in model.graph.output]
    found: Types = {}
    for name, array in zip(names, results, strict=True):
        if isinstance(array, np.ndarray):
            found[name] = array.dtype.name, array.shape
    sizes, values = _opened(case, random)
    for opened in ({}, sizes):
        with_data = onnx.shape_inference.infer_shapes(model_of(case, opened), data_prop=True)
        ours = inferred(model_of(case, opened))
        for whose, made in (("onnx", with_data), ("passlib", ours)):
            types = _types(made, values)
            for name, real in found.items():
                if name in types and not _agree(types[name], real):
                    stated = [opened.get(f"x{place}") for place in range(len(case.inputs))]
                    yield whose, [name, *types[name], stated if opened else []], [name, *real]
    try:
        passlib.load(model_of(case, sizes).SerializeToString()).optimize_for("noteFacts")
    except passlib.errors.PassError as error:
        yield "facts", [str(error)], []
        return
    except passlib.errors.PasslibError:
        return
    for place, array in enumerate(results):
        shape, content = _facts[str(place)]
        if not isinstance(array, np.ndarray):
            continue
        for what, have, want in (
            ("facts", shape, array.shape),
            ("content", None if content is None else content.reshape(-1), array.reshape(-1)),
        ):
            if have is None:
                continue
            numbers = [_number(item, values) for item in have]
            if len(numbers) != len(want) or any(
                number is not None and number != item
                for number, item in zip(numbers, want, strict=True)
            ):
                shown = [str(item) for item in have]
                yield what, [names[place], shown, values], [names[place], np.asarray(want).tolist()]


def _run(model: Any, case: Case) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {
        f"x{place}": array
        for place, (array, known) in enumerate(zip(case.inputs, case.constant, strict=True))
        if array is not None and not known
    }
    return list(session.run(None, feeds))


def _types(model: Any, values: Mapping[str, int]) -> Types:
    found: Types = {}
    for value in (*model.graph.output, *model.graph.value_info):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        tensor = value.type.tensor_type
        name = ""
        if tensor.elem_type:
            name = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
        shape = None
        if tensor.HasField("shape"):
            shape = tuple(
                dim.dim_value if dim.HasField("dim_value") else values.get(dim.dim_param)
                for dim in tensor.shape.dim
            )
        found[value.name] = name, shape
    return found


def _agree(stated: tuple[str, Any], real: tuple[str, Any]) -> bool:
    (dtype, shape), (real_dtype, real_shape) = stated, real
    # ONNX Runtime hands out 8-bit floats as bytes.
    if dtype and dtype != real_dtype and not dtype.startswith("float8"):
        return False
    return shape is None or (
        len(shape) == len(real_shape)
        and all(one is None or one == other for one, other in zip(shape, real_shape, strict=True))
    )


def _opened(
    case: Case, random: np.random.Generator
) -> tuple[dict[str, list[int | str]], dict[str, int]]:
    """Give names to some dimensions; equal ones have the same name."""
    sizes: dict[str, list[int | str]] = {}
    values: dict[str, int] = {}
    for place, (array, known) in enumerate(zip(case.inputs, case.constant, strict=True)):
        if array is None or known:
            continue
        dims: list[int | str] = []
        for size in array.shape:
            if random.random() < 0.5:
                values[f"n{size}"] = size
                dims.append(f"n{size}")
            else:
                dims.append(size)
        sizes[f"x{place}"] = dims
    return sizes, values


def _number(item: Any, values: Mapping[str, int]) -> int | None:
    """Return a formula's value; None if it has names that inference made up."""
    if isinstance(item, int):
        return item
    total = 0
    for names, factor in item.terms:
        part = factor
        for name in names:
            value = _named(name, values)
            if value is None:
                return None
            part *= value
        total += part
    return total


def _named(name: str, values: Mapping[str, int]) -> int | None:
    if name in values:
        return values[name]
    found = re.fullmatch(r"\(([^/]*)\)/(-?\d+)( windows)?", name)
    if found is None:
        return None
    try:
        inner = int(eval(found[1], {"__builtins__": {}}, dict(values)))
    except (NameError, SyntaxError):
        return None
    quotient = int(inner / int(found[2]))
    return quotient + 1 if found[3] else quotient


if __name__ == "__main__":
    main(differences)
