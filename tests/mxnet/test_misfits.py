"""Nodes with inputs or attributes that their operator cannot have are refused by name."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import places
from case_files import case_files, case_lines, case_tensors
from mxnet_graph import read_graph
from passlib.errors import GraphError, InternalError, PasslibError
from passlib.lowering import TypeSpec
from passlib.mxnet.inference.infer import infer
from passlib.mxnet.lower import lower

FILES = case_files(places.DATA / "mxnet")
TEXTS = ("-1", "0", "7", "()", "(1,)", "(0,0)", "(1,2,3,4,5)", "abc", "None", "1.5", "nan")
Shape = tuple[int, ...]

tensors = functools.cache(case_tensors)


def one_node(op: str, shapes: list[Shape], **attrs: str) -> tuple[str, dict[str, TypeSpec]]:
    """Write a symbol of one operator; return it with the types of its inputs."""
    count = len(shapes)
    variables = [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(count)]
    node = {"op": op, "name": "n", "attrs": attrs, "inputs": [[i, 0, 0] for i in range(count)]}
    graph = {
        "nodes": [*variables, node],
        "arg_nodes": list(range(count)),
        "heads": [[count, 0, 0]],
    }
    types = {f"x{i}": TypeSpec(np.dtype(np.float32), shape) for i, shape in enumerate(shapes)}
    return json.dumps(graph), types


REFUSED: list[tuple[str, list[Shape], dict[str, str], type[PasslibError], str]] = [
    ("relu", [], {}, GraphError, r"takes 1 inputs \(data\).*not 0"),
    ("take", [(2,), (2,), (2,)], {}, GraphError, r"takes 2 inputs \(a, indices\).*not 3"),
    ("FullyConnected", [(2, 3)], {"num_hidden": "2"}, GraphError, "takes 3 inputs .*not 1"),
    ("FullyConnected", [(2, 3), (2, 3)], {"num_hidden": "2"}, GraphError, "data, weight, bias"),
    ("batch_dot", [(1, 2, 2)] * 3, {}, GraphError, "takes 2 inputs .*not 3"),
    ("dot", [(2, 3), ()], {}, GraphError, "must have at least 2 dimensions"),
    ("depth_to_space", [(4, 4)], {"block_size": "2"}, GraphError, "must be 4-dimensional"),
    ("depth_to_space", [(1, 6, 2, 2)], {"block_size": "2"}, GraphError, "no multiple of 4"),
    ("space_to_depth", [(1, 2, 4, 5)], {"block_size": "2"}, GraphError, "no multiple of 2"),
    ("_linalg_det", [(3,)], {}, GraphError, "must have at least 2 dimensions"),
    ("_linalg_trsm", [(), (2, 2)], {}, GraphError, "must have at least 2 dimensions"),
    ("GroupNorm", [(2, 4), (4,), (4,)], {"num_groups": "0"}, GraphError, "'num_groups'"),
    ("LRN", [(1, 2, 3, 3)], {"nsize": "0"}, GraphError, "'nsize'"),
    ("im2col", [(1, 2, 4, 4)], {"kernel": "(2,0)"}, GraphError, "'kernel'"),
    ("Pooling", [(1, 2, 4, 4)], {"kernel": "(2,2)", "stride": "(0,1)"}, GraphError, "stride"),
    ("_histogram", [(9,)], {"bin_cnt": "3", "range": "(1,)"}, GraphError, "'range'"),
    (
        "Deconvolution", [(1, 4, 5), (4, 3, 3)],
        {"kernel": "(3,)", "num_filter": "3", "adj": "(1,1)"}, GraphError, "'adj'",
    ),
    (
        "_contrib_Proposal", [(1, 2, 3, 4), (1, 4, 3, 4), (1, 3)],
        {"scales": "(8,)", "ratios": "(0,)"}, GraphError, "'ratios'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "error", "text"), REFUSED, ids=[case[0] for case in REFUSED]
)
def test_each_misfit_names_its_node(
    op: str, shapes: list[Shape], attrs: dict[str, str], error: type[PasslibError], text: str
) -> None:
    symbol, types = one_node(op, shapes, **attrs)
    with pytest.raises(error, match=rf"node 'n' \({op}\).*{text}") as raised:
        lower(read_graph(symbol), types, {})
    assert not isinstance(raised.value, InternalError)


def test_a_scalar_has_no_axes_to_reverse() -> None:
    symbol, types = one_node("transpose", [()])
    lower(read_graph(symbol), types, {})


@pytest.mark.parametrize(
    ("op", "attrs"),
    [("diag", {}), ("_npi_diff", {}), ("slice_axis", {"axis": "0", "begin": "0", "end": "1"})],
)
def test_shapes_without_element_types_are_no_internal_error(op: str, attrs: dict[str, str]) -> None:
    symbol, _ = one_node(op, [(7, 4)], **attrs)
    infer(read_graph(symbol), {"x0": (7, 4)})


def one_of_each() -> Iterator[Any]:
    """One recorded case for each set of operators."""
    seen: set[tuple[str, ...]] = set()
    for path in FILES:
        for line in case_lines(path):
            case = json.loads(line)
            operators = tuple(node["op"] for node in json.loads(case["symbol"])["nodes"])
            if operators not in seen:
                seen.add(operators)
                yield pytest.param(path, case, id=case["name"])


def other_shape(choose: random.Random, shape: Shape) -> Shape:
    sizes, position = list(shape), choose.randrange(len(shape) + 1)
    kind = choose.randrange(4)
    if kind == 0:
        sizes.insert(position, 2)
    elif kind == 1:
        del sizes[position:]
    elif position < len(sizes):
        sizes[position] = choose.choice([0, 1, 7])
    return tuple(sizes)


def other_node(choose: random.Random, text: str) -> str:
    graph = json.loads(text)
    node = choose.choice([node for node in graph["nodes"] if node["op"] != "null"])
    attrs = node.setdefault("attrs", {})
    kind = choose.randrange(4)
    if kind == 0 and node["inputs"]:
        node["inputs"].pop()
    elif kind == 1 and node["inputs"]:
        node["inputs"].append(node["inputs"][0])
    elif attrs:
        attrs[choose.choice(sorted(attrs))] = choose.choice(TEXTS)
    return json.dumps(graph)


def failure(run: Callable[[], object]) -> PasslibError | None:
    try:
        run()
    except PasslibError as error:
        return error
    return None


@pytest.mark.parametrize(("path", "case"), [*one_of_each()])
def test_no_damage_is_an_internal_error(path: Any, case: dict[str, Any]) -> None:
    arrays, choose = tensors(path), random.Random(case["name"])
    params = {key: arrays[f"{case['name']}/in/{key}"] for key in case["aux"]}
    for turn in range(6):
        named = {key: arrays[f"{case['name']}/in/{key}"] for key in case["args"]}
        types = {key: TypeSpec(array.dtype, array.shape) for key, array in named.items()}
        symbol = case["symbol"]
        if turn % 2 and types:
            key = choose.choice(sorted(types))
            types[key] = types[key]._replace(shape=other_shape(choose, named[key].shape))
        else:
            symbol = other_node(choose, symbol)
        shapes = {key: spec.shape for key, spec in types.items()}
        for outcome in (
            failure(lambda: lower(read_graph(symbol), types, params)),  # noqa: B023 (called here)
            failure(lambda: infer(read_graph(symbol), shapes)),  # noqa: B023 (called here)
        ):
            assert not isinstance(outcome, InternalError), outcome
