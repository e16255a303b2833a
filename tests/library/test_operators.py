"""Operators of libraries: arity, shapes, types, and other declared properties."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import passlib as pl
from operator_calls import operator
from passlib.errors import UnsupportedError
from passlib.library.registry import find_operator

pytestmark = pytest.mark.usefixtures("operators")


def test_what_a_library_holds(operators: pl.library.Library) -> None:
    assert len(operators.ops) == 13
    product = operator("plugin_product")
    assert product.library is operators
    assert repr(product) == f"<Operator plugin_product of {operators.path}>"
    assert (product.is_stateful, product.has_backward, product.is_subgraph) == (False, True, False)
    counter = operator("plugin_counter")
    assert (counter.is_stateful, counter.has_backward, counter.infers) == (True, True, True)
    assert not operator("plugin_abs").has_backward
    assert operator("_plugin_subgraph").is_subgraph
    assert not operator("_plugin_subgraph").infers
    assert find_operator("plugin_absent") is None


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 1), (0, 3), (7, 2)])
def test_arity_depends_on_attributes(inputs: int, outputs: int) -> None:
    attributes = {"inputs": str(inputs), "outputs": str(outputs)}
    assert operator("plugin_sums").arity(attributes) == (inputs, outputs)


def test_shapes_go_both_ways() -> None:
    accumulate, both = operator("plugin_accumulate"), (2, None, 3)
    assert accumulate.infer_shapes({}, [(2, 3), None], 1) == ([(2, 3), (2, 3)], [(2, 3)])
    assert accumulate.infer_shapes({}, [both, None], 1) == ([both, both], [both])
    assert accumulate.infer_shapes({}, [(None, 3), (2, None)], 1)[0] == [(None, 3), (2, None)]
    assert accumulate.infer_shapes({}, [None, None], 1) == ([None, None], [None])
    assert accumulate.infer_shapes({}, [(), ()], 1) == ([(), ()], [()])
    assert accumulate.infer_shapes({}, [(0, 2), None], 1)[1] == [(0, 2)]


def test_sizes_computed_from_unknown_ones_are_unknown() -> None:
    stack = operator("plugin_stack")
    assert stack.infer_shapes({}, [(3, 5)], 1)[1] == [(6, 4)]
    assert stack.infer_shapes({}, [(None, 5)], 1)[1] == [(None, 4)]
    assert stack.infer_shapes({}, [(3, None)], 1)[1] == [(6, None)]


def test_sizes_computed_from_several_unknown_ones() -> None:
    weighted = operator("plugin_weighted")
    known = weighted.infer_shapes({}, [(7, 3, 2), None], 1)
    assert known == ([(7, 3, 2), (6,)], [(1, 2)])
    # The difference is 1 if both are the same number.
    found = weighted.infer_shapes({}, [(7, None, None), None], 1)
    assert found == ([(7, None, None), (None,)], [(1, None)])


def test_sizes_that_the_operator_refuses() -> None:
    weighted = operator("plugin_weighted")
    found = weighted.infer_shapes({}, [(None, 3, 2), None], 1)
    assert found == ([(None, 3, 2), None], [(None, None)])


def test_open_sizes_in_exported_operators(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = pl.Model(pl.sym.plugin_stack(pl.sym.var("x"), name="y"))
    model.to_onnx(tmp_path / "m.onnx", shapes={"x": (None, 5)})
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    for each in (model, pl.load(tmp_path / "m.onnx")):
        (result,) = each.run({"x": x}).values()
        np.testing.assert_array_equal(result, np.tile(x[:, :4], (2, 1)))
    (output,) = onnx.load(tmp_path / "m.onnx").graph.output
    sizes = output.type.tensor_type.shape.dim
    assert [size.dim_value for size in sizes] == [0, 4]


def test_types_go_both_ways() -> None:
    half = np.dtype(np.float16)
    accumulate = operator("plugin_accumulate")
    assert accumulate.infer_types({}, [half, None], 1) == ([half, half], [half])
    assert accumulate.infer_types({}, [None, None], 1) == ([None, None], [None])


def test_size_beyond_the_abi() -> None:
    with pytest.raises(UnsupportedError, match=r"plugin_abs.*node 'n'.*32 bits.*4294967295"):
        operator("plugin_abs").infer_shapes({}, [(2**32 - 1,)], 1, "n")


@pytest.mark.parametrize("question", ["arity", "mutated_inputs"])
def test_subgraph_operator_says_nothing_of_itself(question: str) -> None:
    with pytest.raises(UnsupportedError, match="subgraph operator"):
        getattr(operator("_plugin_subgraph"), question)({}, "node")
