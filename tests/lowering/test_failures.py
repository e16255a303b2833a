"""A node that does not fit is the graph's mistake; any other failure of a lowering is ours."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import passlib
from passlib.errors import GraphError, InternalError, PasslibError, UnsupportedError
from passlib.graph.node import Entry, Node
from passlib.lowering import Lowerings, Operation, TypeSpec, Value, lower_graph
from passlib.lowering.inference import infer_graph
from passlib.lowering.types import Misfit

INPUTS = {"x": TypeSpec(np.dtype(np.float32), (2, 3))}


@dataclass(frozen=True)
class OneNode:
    """A graph of one operator, named ``op``, on the variable ``x``."""

    node = Node("Op", "op", {}, [Entry(Node("null", "x"))], 1)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (Entry(self.node),)

    def nodes(self) -> list[Node]:
        return [self.node.inputs[0].node, self.node]


def table_of(error: BaseException) -> Lowerings:
    table = Lowerings("mxnet")

    @table.register("Op")
    def fails(op: Operation) -> Value:
        raise error

    return table


def no_rules(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
    pass


MISTAKES = [
    AssertionError("x"),
    AttributeError("x"),
    KeyError("x"),
    IndexError("x"),
    RecursionError("x"),
    TypeError("x"),
    ValueError("x"),
    ZeroDivisionError("x"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda error: type(error).__name__)
def test_mistakes_are_internal_errors(mistake: Exception) -> None:
    with pytest.raises(InternalError) as raised:
        lower_graph(OneNode(), table_of(mistake), INPUTS, {})
    text = str(raised.value)
    assert "node 'op' (Op): internal error while it was lowered for float32 (2, 3)" in text
    assert repr(mistake) in text
    assert not isinstance(raised.value, (GraphError, UnsupportedError))
    assert raised.value.__cause__ is mistake
    assert "in fails" in "".join(traceback.format_tb(mistake.__traceback__))
    with pytest.raises(InternalError):
        infer_graph(OneNode(), table_of(mistake), INPUTS, no_rules)


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (Misfit("too thin"), GraphError, r"\(Op\): cannot be applied to float32 .*: too thin$"),
        (MemoryError(), UnsupportedError, r"\(Op\): not enough memory"),
        (UnsupportedError("no"), UnsupportedError, "^no$"),
        (GraphError("bad"), GraphError, "^bad$"),
    ],
    ids=["misfit", "memory", "unsupported", "graph"],
)
def test_other_errors_are_the_models(
    error: Exception, expected: type[PasslibError], text: str
) -> None:
    with pytest.raises(expected, match=text):
        lower_graph(OneNode(), table_of(error), INPUTS, {})


class Enormous(OneNode):
    node = Node("Op", "op", {"n": str(10**20)}, [Entry(Node("null", "x"))], 1)


@pytest.mark.parametrize("read", ["int", "ints", "optional_int", "optional_ints"])
def test_numbers_beyond_64_bits_are_the_models(read: str) -> None:
    table = Lowerings("mxnet")

    @table.register("Op")
    def reads(op: Operation) -> Value:
        return op.constant(np.asarray(getattr(op, read)("n"), np.int64))

    with pytest.raises(UnsupportedError, match=r"node 'op' \(Op\): attribute 'n' .*64 bits"):
        lower_graph(Enormous(), table, INPUTS, {})


def test_sizes_beyond_64_bits_are_the_models() -> None:
    with pytest.raises(GraphError, match=r"\(_arange\): .* exceed what 64 bits count"):
        passlib.sym.arange(0, 1e30).infer_shape()


def test_interruption_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        lower_graph(OneNode(), table_of(KeyboardInterrupt()), INPUTS, {})
