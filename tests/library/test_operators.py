"""Operators of libraries: arity, shapes, types, and other declared properties."""

from __future__ import annotations

import numpy as np
import pytest

import passlib as pl
from operator_calls import operator
from passlib.errors import UnsupportedError
from passlib.library.registry import find_operator

pytestmark = pytest.mark.usefixtures("operators")


def test_what_a_library_holds(operators: pl.library.Library) -> None:
    assert len(operators.ops) == 11
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
