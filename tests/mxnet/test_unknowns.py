"""Unknowns of inference: MXNet 1.9.1's own results for inputs that are partly known."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from passlib import sym, util

x, y, z = sym.var("x"), sym.var("y"), sym.var("z")
DENSE = sym.FullyConnected(x, num_hidden=3, name="fc")

SHAPES: list[tuple[Any, dict[str, Any], list[Any], list[Any]]] = [
    # Layers wait for the data.
    (DENSE, {}, [(), (), ()], [()]),
    (DENSE, {"x": (0, 4)}, [(0, 4), (3, 4), (3,)], [(0, 3)]),
    (sym.relu(DENSE), {}, [(), (), ()], [()]),
    (
        sym.elemwise_add(DENSE, sym.FullyConnected(y, num_hidden=3, name="g")), {"x": (2, 4)},
        [(2, 4), (3, 4), (3,), (), (), ()], [(2, 3)],
    ),
    (sym.Convolution(x, num_filter=2, kernel=(3, 3)), {}, [(), (), ()], [()]),
    (sym.Deconvolution(x, num_filter=2, kernel=(3, 3)), {}, [(), ()], [()]),
    (sym.BatchNorm(x), {}, [(), (), ()], [()]),
    (sym.LayerNorm(x), {}, [(), (), ()], [()]),
    (sym.Embedding(x, input_dim=5, output_dim=6), {}, [(), ()], [()]),
    (sym.Embedding(x, input_dim=5, output_dim=6), {"x": (0, 2)}, [(0, 2), (5, 6)], [(0, 2, 6)]),
    (sym.LeakyReLU(x, act_type="prelu"), {}, [(), ()], [()]),
    # Other operators wait for all dimensions.
    (sym.batch_dot(x, y), {"x": (0, 3, 4), "y": (0, 4, 5)}, [(0, 3, 4), (0, 4, 5)], [(0, 3, 5)]),
    (sym.batch_dot(x, y), {"x": (0, 3, 4), "y": (0, 0, 5)}, [(0, 3, 4), (0, 0, 5)], [()]),
    (sym.argmax(x, axis=1), {"x": (0, 2)}, [(0, 2)], [()]),
    (sym.norm(x, axis=1), {"x": (0, 2)}, [(0, 2)], [()]),
    (sym.tile(x, reps=(1, 2)), {"x": (0, 2)}, [(0, 2)], [()]),
    (sym.one_hot(x, depth=3), {"x": (0, 2)}, [(0, 2)], [()]),
    (sym.flatten(x), {"x": (0, 2)}, [(0, 2)], [()]),
    (sym.flatten(x) + y, {"x": (0, 2), "y": (3, 2)}, [(0, 2), (3, 2)], [(3, 2)]),
    (sym.LinearRegressionOutput(x, y), {"x": (0, 3)}, [(0, 3), ()], [()]),
    (sym.stack(x, y, axis=1), {"x": (0, 2)}, [(0, 2), ()], [()]),
    # These do not.
    (sym.dot(x, y), {"x": (0, 3, 4), "y": (4, 5)}, [(0, 3, 4), (4, 5)], [(0, 3, 5)]),
    (sym.transpose(x), {"x": (0, 2)}, [(0, 2)], [(2, 0)]),
    (sym.pick(x, y, axis=1), {"x": (0, 3, 3), "y": (0, 3)}, [(0, 3, 3), (0, 3)], [(0, 3)]),
    (sym.sum(x, axis=1), {"x": (0, 2)}, [(0, 2)], [(0,)]),
    (sym.zeros_like(x), {"x": (0, 2)}, [(0, 2)], [(0, 2)]),
    (sym.BatchNorm(x), {"x": (2, 0, 5)}, [(2, 0, 5), (0,), (0,)], [(2, 0, 5)]),
    (sym.GroupNorm(x), {"x": (2, 0, 4)}, [(2, 0, 4), (1,), (1,)], [(2, 0, 4)]),
    (sym.SoftmaxOutput(x, y), {"x": (0, 3)}, [(0, 3), (0,)], [(0, 3)]),
]  # fmt: skip


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_partial_shapes(number: int, numpy: bool) -> None:
    graph, given, arguments, outputs = SHAPES[number]

    def spelt(shape: tuple[int, ...]) -> tuple[int, ...] | None:
        return (tuple(size or -1 for size in shape) or None) if numpy else shape

    with util.np_shape(numpy):
        known = {name: spelt(shape) for name, shape in given.items()}
        found = graph.infer_shape_partial(**known)
    assert found[:2] == ([spelt(s) for s in arguments], [spelt(s) for s in outputs])


@pytest.mark.parametrize(
    ("given", "target", "reverse"),
    [
        ((2, 0, 4), (0, -1), False),
        ((0, 3, 4), (-1, 4), False),
        ((2, 3, 0), (-3, -2), False),
        ((2, 3, 0), (-1, 0), True),
    ],
)
def test_a_reshape_completes_one_size_of_its_data(
    given: tuple[int, ...], target: tuple[int, ...], reverse: bool
) -> None:
    made = sym.reshape(x, shape=target, reverse=reverse)
    _, (result,), _ = made.infer_shape(x=(2, 3, 4))
    arguments, outputs, _ = sym.elemwise_add(made, sym.ones(shape=result)).infer_shape(x=given)
    assert (arguments, outputs) == ([(2, 3, 4)], [result])


def test_export_knows_what_infer_shape_partial_leaves_unknown() -> None:
    import passlib as pl

    model = pl.Model(sym.argmax(sym.flatten(x), axis=1))
    assert model(np.ones((2, 3, 4), np.float32)).shape == (2,)


def _numpy(op: str, *inputs: sym.Symbol, **attributes: str) -> sym.Symbol:
    """Return an operator that only NumPy's arrays have in MXNet."""
    names = [each.name for each in inputs]
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    edges = [[number, 0, 0] for number in range(len(names))]
    nodes.append({"op": op, "name": "made", "attrs": attributes, "inputs": edges})
    count = len(names)
    tree = {"nodes": nodes, "arg_nodes": [*range(count)], "heads": [[count, 0, 0]]}
    return sym.load_json(json.dumps(tree))


TYPES: list[tuple[Any, dict[str, str], list[str | None], list[str | None]]] = [
    (sym.InstanceNorm(x), {}, ["float32"] * 3, ["float32"]),
    (sym.Crop(x, h_w=(1, 1), num_args=1), {}, ["float32"], ["float32"]),
    (sym.contrib.MultiBoxPrior(x), {}, ["float32"], ["float32"]),
    (sym.contrib.MultiBoxDetection(x, y, z), {"y": "float32"}, ["float32"] * 3, ["float32"]),
    (sym.where(x, y, z), {"y": "float16"}, [None, "float16", "float16"], ["float16"]),
    (sym.where(x, y, z), {"z": "int32"}, [None, "int32", "int32"], ["int32"]),
    *(
        (make(x, y, use_sequence_length=True), given, arguments, outputs)
        for make in (sym.SequenceMask, sym.SequenceLast, sym.SequenceReverse)
        for given, arguments, outputs in (
            ({"x": "float16"}, ["float16", "float16"], ["float16"]),
            ({"x": "float16", "y": "int32"}, ["float16", "int32"], ["float16"]),
            ({"y": "int32"}, [None, "int32"], [None]),
        )
    ),
    *(
        (_numpy("_npi_where", x, y, z), given, arguments, outputs)
        for given, arguments, outputs in (
            ({"y": "float16"}, [None, "float16", None], ["float16"]),
            ({"x": "bool", "z": "int32"}, ["bool", None, "int32"], ["int32"]),
            ({"x": "bool"}, ["bool", None, None], [None]),
        )
    ),
    (_numpy("_npi_where_scalar2", x, x="1", y="2"), {}, [None], ["float32"]),
    (sym.Cast(x, dtype="float64"), {}, [None], ["float64"]),
    (sym.shape_array(x), {}, [None], ["int64"]),
    (sym.size_array(x), {}, [None], ["int64"]),
    (sym.batch_take(x, y), {"x": "float16"}, ["float16", "int32"], ["float16"]),
    (sym.multi_sum_sq(x, y, num_arrays=2), {"x": "float64"}, ["float64"] * 2, ["float32"]),
    (sym.all_finite(x), {}, [None], ["float32"]),
    *(
        (
            sym.amp_multicast(x, y, z, num_outputs=3, cast_narrow=narrow),
            {name: dtype for name, dtype in zip("xyz", given, strict=True) if dtype},
            given,
            outputs,
        )
        for narrow, given, outputs in (
            (False, ["float16", "float32", None], ["float32", "float32", None]),
            (False, ["float64", "float16", None], ["float64", "float64", None]),
            (False, [None, "float16", "float64"], [None, None, "float64"]),
            (False, [None, "int32", "float32"], [None, "int32", "float32"]),
            (True, [None, "float32", "float16"], [None, "float16", "float16"]),
            (True, ["float32", None, "float64"], ["float32", None, "float64"]),
        )
    ),
    (
        sym.contrib.SparseEmbedding(x, y, input_dim=3, output_dim=4, dtype="float64"),
        {"x": "int32"}, ["int32", "float64"], ["float64"],
    ),
    (sym.BatchNorm_v1(x), {"x": "float16"}, ["float16", "float32", "float32"], ["float16"]),
    (
        sym.contrib.requantize(x, y, z, out_type="uint8"), {},
        ["int32", "float32", "float32"], ["uint8", "float32", "float32"],
    ),
    (
        sym.SoftmaxOutput(sym.FullyConnected(sym.Cast(x, dtype="float32"), num_hidden=2)), {},
        [None, "float32", "float32", "float32"], ["float32"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(TYPES)))
def test_partial_types(number: int) -> None:
    graph, given, arguments, outputs = TYPES[number]

    def names(types: list[Any]) -> list[str | None]:
        return [None if dtype is None else np.dtype(dtype).name for dtype in types]

    found = graph.infer_type_partial(**given)
    assert (names(found[0]), names(found[1])) == (arguments, outputs)
