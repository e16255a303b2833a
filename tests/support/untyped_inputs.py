"""Every operator of every version of ONNX's sets, with inputs whose types are not known.

``python tests/support/untyped_inputs.py [FIRST [COUNT]]`` does with a model of each all that infers
types, in child processes, and prints those that ended their process or raised an exception that is
not of passlib's tree. A number makes the same model again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import onnx
from onnx import TensorProto, defs, helper

import passlib
from fuzzing import attempt, sweep

PLACES: Final = ("graph", "If", "Loop", "Scan", "function", "branch in a function")
"""Where the node stands."""

TYPES: Final = ("custom", "no type", "no element type", "no rank", "scalar", "vector", "sequence",
                "optional", "map")  # fmt: skip
"""The knowledge of an input: "custom" is the result of an operator that ONNX does not know."""

ATTRIBUTES: Final = ("required", "all", "none")

_MORE: Final = 3
"""Inputs and outputs beyond the least, of those whose number is free."""


class Case(NamedTuple):
    """One operator with one form of inputs."""

    schema: Any
    place: str
    types: tuple[str, ...]
    outputs: int
    attributes: str

    def __str__(self) -> str:
        schema = self.schema
        return (
            f"{schema.domain}:{schema.name} {schema.since_version} in {self.place}, inputs "
            f"{', '.join(self.types)}; attributes: {self.attributes}"
        )


def _schemas() -> list[Any]:
    found = defs.get_all_schemas_with_history()
    return sorted(found, key=lambda each: (each.domain, each.name, each.since_version))


def _most_inputs(schema: Any) -> int:
    return int(min(schema.max_input, schema.min_input + _MORE))


@cache
def one_each() -> list[Case]:
    """Return one case for each version of each operator."""
    return [
        Case(schema, "graph", ("custom",) * _most_inputs(schema), max(schema.min_output, 1), "all")
        for schema in _schemas()
    ]


@cache
def cases() -> list[Case]:
    """Return `one_each`, and then all cases of each operator; where nodes are nested, only some."""
    found = list(one_each())
    for schema in _schemas():
        most = _most_inputs(schema)
        fewest = max(schema.min_input, min(1, most))
        outputs = sorted({max(schema.min_output, 1), min(schema.max_output, 3)})
        for count in sorted({fewest, most}):
            for types in _types(count):
                kinds = ATTRIBUTES if len(set(types)) < 2 else ("all",)
                found += [Case(schema, "graph", types, outputs[-1], kind) for kind in kinds]
        for place in PLACES[1:]:
            for kind in TYPES[:2]:
                found.append(Case(schema, place, (kind,) * most, outputs[0], "all"))
    return found


def _types(count: int) -> list[tuple[str, ...]]:
    if not count:
        return [()]
    found = [(kind,) * count for kind in TYPES]
    for place in range(count if count > 1 else 0):
        for one, others in (("custom", "no rank"), ("vector", "custom"), ("omitted", "custom")):
            found.append((others,) * place + (one,) + (others,) * (count - 1 - place))
    return found


def model(case: Case) -> bytes:
    """Return the model of a case."""
    names = [f"i{place}" for place in range(len(case.types))]
    given = list(zip(names, case.types, strict=True))
    values = [_value(*each) for each in given if each[1] not in ("custom", "omitted")]
    nodes = [
        helper.make_node("f", [], [name], domain="own") for name, kind in given if kind == "custom"
    ]
    schema = case.schema
    inputs = ["" if kind == "omitted" else name for name, kind in given]
    results = [f"o{place}" for place in range(case.outputs)]
    node = helper.make_node(schema.name, inputs, results, domain=schema.domain)
    node.attribute.extend(_attributes(schema, case.attributes))
    functions = []
    imports = [helper.make_opsetid(schema.domain, schema.since_version)]
    imports += [helper.make_opsetid("", 13)] if schema.domain else []
    imports.append(helper.make_opsetid("own", 1))
    formal = list(filter(None, inputs))
    if case.place == "graph":
        nodes.append(node)
    elif case.place in ("If", "Loop", "Scan"):
        nodes.append(_around(case.place, [node], results, formal))
    else:
        inside = [node] if case.place == "function" else [_around("If", [node], results, formal)]
        results = results if case.place == "function" else results[:1]
        if case.place != "function":
            inside.insert(0, helper.make_node("f", [], ["condition"], domain="own"))
        functions.append(helper.make_function("own", "g", formal, results, inside, imports))
        nodes.append(helper.make_node("g", formal, results, domain="own"))
    values += [helper.make_tensor_value_info("condition", TensorProto.BOOL, [])]
    values += [helper.make_tensor_value_info("times", TensorProto.INT64, [])]
    outputs = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output[:1]]
    graph = helper.make_graph(nodes, "g", values, outputs)
    return bytes(
        helper.make_model(
            graph, opset_imports=imports, ir_version=8, functions=functions
        ).SerializeToString()
    )


def _around(place: str, nodes: list[Any], results: list[str], captured: list[str]) -> Any:
    """Return a node with a nested graph of these nodes."""
    value = onnx.ValueInfoProto
    outputs = [value(name=results[0])]
    if place == "If":
        branch = helper.make_graph(nodes, "branch", [], outputs)
        return helper.make_node("If", ["condition"], ["y"], then_branch=branch, else_branch=branch)
    first = captured[:1]
    nodes = [*nodes, helper.make_node("Identity", results[:1], ["next"])]
    state = [value(name=name) for name in first]
    if place == "Scan":
        body = helper.make_graph(nodes, "body", state, [value(name="next")] * len(first))
        return helper.make_node("Scan", first, ["y"][: len(first)], body=body, num_scan_inputs=1)
    nodes.append(helper.make_node("Identity", ["go"], ["again"]))
    counters = [value(name="round"), value(name="go")]
    body = helper.make_graph(
        nodes, "body", counters + state, [value(name="again"), value(name="next")]
    )
    return helper.make_node("Loop", ["times", "", *first], ["y"], body=body)


def _value(name: str, kind: str) -> Any:
    if kind == "no type":
        return onnx.ValueInfoProto(name=name)
    made = onnx.TypeProto()
    if kind == "map":
        made.map_type.key_type = TensorProto.INT64
        made.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
        return helper.make_value_info(name, made)
    inner = made
    if kind in ("sequence", "optional"):
        inner = getattr(made, f"{kind}_type").elem_type
    inner.tensor_type.elem_type = TensorProto.INT64 if kind == "scalar" else TensorProto.FLOAT
    if kind == "no element type":
        inner.tensor_type.elem_type = TensorProto.UNDEFINED
    if kind in ("scalar", "vector"):
        inner.tensor_type.shape.SetInParent()
    if kind == "vector":
        inner.tensor_type.shape.dim.add(dim_value=2)
    return helper.make_value_info(name, made)


def _attributes(schema: Any, which: str) -> Iterator[Any]:
    kinds = defs.OpSchema.AttrType
    one = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])
    body = helper.make_graph(
        [helper.make_node("Identity", ["condition"], ["r"])],
        "n",
        [],
        [onnx.ValueInfoProto(name="r")],
    )
    values = {kinds.INT: 1, kinds.FLOAT: 1.0, kinds.STRING: "a", kinds.INTS: [1], kinds.TENSOR: one,
              kinds.FLOATS: [1.0], kinds.STRINGS: ["a"], kinds.GRAPH: body}  # fmt: skip
    for name, attribute in schema.attributes.items():
        wanted = which == "all" or (which == "required" and attribute.required)
        if wanted and attribute.type in values:
            yield helper.make_attribute(name, values[attribute.type])


def prepare() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of one case, by its number."""
    passlib.library.load_standard()

    def check(number: int, folder: Path) -> Iterator[str]:
        sys.stdout.write(f"{cases()[number]} ")
        file = folder / "a.onnx"
        file.write_bytes(model(cases()[number]))
        loaded: list[passlib.Model] = []
        yield from attempt("load", lambda: loaded.append(passlib.load(file)))
        for each in loaded:
            yield from _use(each, folder)

    return check


def _use(each: passlib.Model, folder: Path) -> Iterator[str]:
    yield from attempt("infer", each.symbol.infer_shape_partial)
    yield from attempt("simplify", lambda: each.simplify().save(folder / "b.onnx"))
    yield from attempt("convert", lambda: each.save(folder / "c.onnx", opset=14))
    yield from attempt("to_onnx", lambda: each.to_onnx(folder / "d.onnx", {}))
    yield from attempt("run", lambda: each.run({}))


if __name__ == "__main__":
    sweep(__file__, prepare, len(cases()), sys.argv[1:])
